"""From runs to `results/`: finished runs of the papers' rows as small records of numbers, without any text.

`python -m aslab.publish` (or `make results`) writes `results/<paper>/<row>/<dataset>-<budget>-seed<k>.json` for every finished run of a
row above the laptop budget, and with `--laptop` for those of the laptop budget alone.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from asutil import draws
from asutil.io import disk, rundir, spelling
from asutil.metrics import changes, rankings

from . import papers, records
from .papers import untrained

SHARED, RESCUED, LOST = (
    3,
    3,
    1,
)  # questions with their best candidates: the same ones in every row, and of each fate against the baseline


def publish(
    paper: str, results: str | Path = "results", runs_dir: str | Path = "runs", laptop: bool = False
) -> list[Path]:
    """Write the records of a paper's finished runs into `results/`, those above the laptop budget or those of it. Returns the files."""
    written, found, data = [], records.records(paper, results, runs_dir), papers.read(paper)
    found = found[(found.source == records.HERE) & ((found.budget == "laptop") == laptop)]
    for line in found.itertuples():
        place = rundir.root() / results / paper / line.row / f"{line.dataset}-{line.budget}-seed{line.seed}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        entries = disk.sealed(_published(data, line, _baseline(data, line, found))).items()
        # One line an entry: a change of a figure is a change of its line.
        text = (
            "{\n"
            + ",\n".join(f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in entries)
            + "\n}\n"
        )
        disk.atomically(place, lambda path, text=text: path.write_text(text, encoding="utf-8"))
        written.append(place)
    return written


def _baseline(data: dict, line, found: pd.DataFrame):
    """The run of the row's baseline with the same seed, or its only one where it was not trained; None where it is not on this machine."""
    other = data["rows"][line.row].get("baseline")
    if other is None:
        return None
    same = found[(found.row == other) & (found.dataset == line.dataset) & (found.budget == line.budget)]
    return next(same[(same.seed == line.seed) | untrained(data, other)].itertuples(), None)


def _published(data: dict, line, baseline) -> dict:
    record = dict(line.record) | {"paper": data["slug"], "row": line.row, "dataset": line.dataset}
    record["earlier"] = [_earlier(before) for before in line.earlier]
    dev = records.split(line) != records.reported(line)
    if dev or line.seed != data["budgets"][line.budget]["seeds"][0]:
        record.pop("pca", None)  # one seed is enough to look at
    scores = line.folder / f"scores{'_dev' if dev else ''}.parquet"
    if record.get("notebook") == "verify_claims":
        record["per_question"] = [
            [claim, int(right)] for claim, right in records.per_question(line)["label_accuracy"].items()
        ]
    elif record.get("notebook") == "find_evidence":
        known = records.per_question(line)[list(records.columns(record).values())].round(6)
        record["per_question"] = [
            [name, *(None if pd.isna(value) else value for value in row)] for name, *row in known.itertuples()
        ]
        record["chosen"] = _chosen(_ranked(line.folder, scores.name), baseline)
    elif scores.is_file():
        table = rundir.read_table(line.folder, scores.name)
        per_question = rankings.of(table).per_question
        record["per_question"] = [
            [row[0], *(round(value, 6) for value in row[1:])] for row in per_question.itertuples(index=False)
        ]
        if not dev:
            record["chosen"] = _chosen(table, baseline, data.get("questions", {}).get(line.dataset, ()))
            if (of_dev := records.dev_questions(data, line)) is not None:
                record["per_question_dev"] = [
                    [row[0], *(round(value, 6) for value in row[1:])] for row in of_dev.itertuples()
                ]
    return record


def _earlier(before: dict) -> dict:
    """What is kept of a run that a model came from: what it was, and the cosines between its slots where it has some."""
    kept = {name: before[name] for name in ("notebook", "name", "budget", "seed", "settings", "inputs")}
    cosines = before.get("figures", {}).get("slot_cosines")
    return kept | ({"figures": {"slot_cosines": cosines}} if cosines else {})


def _ranked(folder: Path, name: str = "scores.parquet") -> pd.DataFrame:
    """A run's scores; of evidence in a long context how near each sentence is to its question, as the loss compares them."""
    table = rundir.read_table(folder, name)
    return table.assign(score=table["gold"]) if "gold" in table else table


def _chosen(table: pd.DataFrame, baseline, printed=()) -> list[dict]:
    """Best candidates of some questions: those that the paper prints, and others chosen by a hash of their ids, the same for every row.

    Where the baseline's run is on this machine, also some that the row rescues and one that it loses, with the baseline's ranking.
    """
    asked = set(table.question_id)
    names = dict.fromkeys([*(name for name in printed if name in asked), *draws.choose(asked, SHARED)])
    chosen = [{"question_id": name, "candidates": changes.best_of(table, name)} for name in names]
    if baseline is not None:
        before = _ranked(baseline.folder)
        fate = changes.fates(before, table)
        for name in [
            name
            for one, limit in (("rescued", RESCUED), ("lost", LOST))
            for name in draws.choose(fate.index[fate == one], limit)
        ]:
            beside = {"row": baseline.row, "candidates": changes.best_of(before, name)}
            chosen.append({"question_id": name, "candidates": changes.best_of(table, name), "baseline": beside})
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.publish", description=publish.__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", help="slugs of papers; all of them by default", metavar="paper")
    parser.add_argument("--runs-dir", default="runs", help="where the run folders are (default: runs)")
    parser.add_argument(
        "--laptop", action="store_true", help="the records of the laptop budget, in place of those above it"
    )
    given = parser.parse_args()
    unknown = [paper for paper in given.papers if paper not in papers.papers()]
    if unknown:
        parser.error(
            f"no paper {unknown[0]!r}{spelling.nearest(unknown[0], papers.papers())} ({', '.join(papers.papers())})"
        )
    for paper in given.papers or papers.papers():
        for path in publish(paper, runs_dir=given.runs_dir, laptop=given.laptop):
            print(path.relative_to(rundir.root()))


if __name__ == "__main__":
    main()
