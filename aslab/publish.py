"""Writes `results/`: small records of the papers' finished runs, with numbers and without any text.

`asutil publish` (or `make results`) writes `results/<paper>/<row>/<dataset>-<budget>-seed<k>.json` for every
finished run of a row above the laptop budget, and with `--laptop` for those of the laptop budget alone. Where the
record of another run with equal settings is there, the new one is written to `results/repeats/`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from asutil import draws
from asutil.io import disk
from asutil.metrics import changes, rankings

from . import commands, papers, rankers, records, repeats, rundir, transfer
from .papers import untrained

# Questions that are published with their best candidates.
SHARED = 3  # the same ones in every row
RESCUED, LOST = 3, 1  # of each fate against the baseline


def publish(paper: str, results="results", runs_dir: str | Path = "runs", laptop: bool = False) -> Iterator[Path]:
    """Write the records of a paper's finished runs above the laptop budget, or of that budget, one file a step.

    A record never replaces that of another run with equal settings and data: it is written to `results/repeats/`.
    """
    data, known = papers.read(paper), records.records(paper, results, runs_dir)
    known = known[(known.source == records.HERE) & ((known.budget == "laptop") == laptop)]
    for line in known.itertuples():
        file = rundir.root() / results / paper / line.row / f"{line.dataset}-{line.budget}-seed{line.seed}.json"
        baseline = data["rows"][line.row].get("baseline")
        same = known[(known.row == baseline) & (known.dataset == line.dataset) & (known.budget == line.budget)]
        # The run with the same seed, or the only one of an untrained row; None where there is none here.
        fits = same[(same.seed == line.seed) | untrained(data, baseline)] if len(same) else same
        record = disk.sealed(_published(data, line, next(fits.itertuples(), None)))
        file = repeats.file_for(record, file, results)
        # One line an entry: a change of a figure is a change of its line.
        entries = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in record.items()]
        text = "{\n" + ",\n".join(entries) + "\n}\n"
        disk.atomically(file, lambda path, text=text: path.write_text(text, encoding="utf-8"))
        yield file


def _published(data: dict, line, baseline) -> dict:
    record = dict(line.record) | {"paper": data["slug"], "row": line.row, "dataset": line.dataset}
    record["earlier"] = [_earlier(before) for before in line.earlier]
    dev = records.split(line) != records.reported(line)
    if dev or line.seed != data["budgets"][line.budget]["seeds"][0]:
        record.pop("pca", None)  # one seed is enough to look at
    scores = line.folder / f"scores{'_dev' if dev else ''}.parquet"
    if record.get("notebook") == "verify_claims":
        right = records.per_question(line)["label_accuracy"]
        record["per_question"] = [[claim, int(value)] for claim, value in right.items()]
    elif record.get("notebook") == "find_evidence":
        values = records.per_question(line)
        values = values[[name for name in records.PER_CONTEXT.values() if name in values]].round(6)
        record |= records.values_entry(values, "context")
        record["chosen"] = _chosen(_ranked(line.folder, scores.name), baseline)
    elif scores.is_file():
        table = rundir.read_table(line.folder, scores.name)
        record |= records.values_entry(rankings.of(table).per_question.set_index("question_id"))
        if not dev:
            record["chosen"] = _chosen(table, baseline, data.get("questions", {}).get(line.dataset, ()))
            if (of_dev := records.dev_questions(data, line)) is not None:
                record["per_question_dev"] = records.rounded(of_dev)
    for name, part in record.get("transfer", {}).items():
        ranked = part | records.values_entry(transfer.per_question(line.folder, name))
        record["transfer"] = record["transfer"] | {name: ranked}
    return record


def _earlier(before: dict) -> dict:
    """The published part of an earlier run's record: what the run is, and the cosines between its slots if any."""
    known = ("notebook", "name", "budget", "seed", "settings", "inputs", "created", "weights_sha256")
    part = {name: before[name] for name in known if name in before}
    cosines = before.get("figures", {}).get("slot_cosines")
    return part | ({"figures": {"slot_cosines": cosines}} if cosines else {})


def _ranked(folder: Path, name: str = "scores.parquet") -> pd.DataFrame:
    """A run's scores; for evidence in a long context, the cosine of each sentence and its question by the loss's vectors."""
    table = rundir.read_table(folder, name)
    return table.assign(score=table["gold"]) if "gold" in table else table


def _chosen(table: pd.DataFrame, baseline, printed=()) -> list[dict]:
    """Best candidates of the questions that the paper prints, and of others chosen by a hash, the same for every row.

    Where the baseline's run is on this machine, also of some that the row rescues and one that it loses, with the
    baseline's ranking.
    """
    ids = set(table.question_id)
    names = dict.fromkeys([*(name for name in printed if name in ids), *draws.choose(ids, SHARED)])
    chosen = [{"question_id": name, "candidates": changes.best_of(table, name)} for name in names]
    if baseline is not None:
        before = _ranked(baseline.folder)
        fates = changes.fates(before, table)
        rescued = draws.choose(fates.index[fates == "rescued"], RESCUED)
        lost = draws.choose(fates.index[fates == "lost"], LOST)
        for name in [*rescued, *lost]:
            first = {"row": baseline.row, "candidates": changes.best_of(before, name)}
            chosen.append({"question_id": name, "candidates": changes.best_of(table, name), "baseline": first})
    return chosen


def publish_all(slugs: list[str], runs_dir: str, laptop: bool) -> Iterator[Path | str]:
    """Write the records of several papers, or of all; a sentence where there is nothing to write."""
    known = [*papers.PAPERS, rankers.SLUG]
    papers.all_of(slugs, known, "publish", "paper")
    path = None
    for slug in slugs or known:
        if slug != rankers.SLUG:
            written = publish(slug, "results", runs_dir, laptop)
        else:
            written = [] if laptop else rankers.publish(runs_dir=runs_dir)
        for path in written:
            yield path.relative_to(rundir.root())
    if path is None:
        kept = "of budget laptop" if laptop else "above budget laptop (--laptop writes those of it)"
        yield f"nothing to write: no finished run in {runs_dir} has the settings of a paper's row {kept}"


SLUGS = "short names of papers, or rankers; default: all"
command = commands.command(
    publish_all,
    commands.argument("slugs", SLUGS, required=False, nargs=-1, metavar="[PAPER]..."),
    commands.option("--runs-dir", "where the run folders are", default="runs"),
    commands.option("--laptop", "write the records of budget laptop instead of the larger budgets'", is_flag=True),
    example="asutil publish asbert --laptop",
)
