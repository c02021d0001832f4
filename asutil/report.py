"""Records in, display out: the papers' tables beside ours, verdicts, claims, curves, examples. No number here is typed by hand.

Classes for a style sheet: tables `as2-table`; lines `as2-from-paper`, `as2-from-ours`, `as2-from-baseline`; cells `as2-number`;
verdicts `as2-verdict` with one of `as2-matches`, `as2-close`, `as2-differs`, `as2-reduced`, `as2-private`, `as2-not-run`,
`as2-not-published`, and for claims `as2-shows`, `as2-unclear`, `as2-opposite`; rankings `as2-ranking`, lines `as2-right`, `as2-wrong`.
"""

import json
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from . import experiments, runs, significance
from .experiments import COMMITTED, HERE, records

# fmt: off
NAMES = {
    "p@1": "P@1", "map": "MAP", "mrr": "MRR", "accuracy": "Accuracy", "f1": "F1", "label_accuracy": "Label accuracy",
    "answer_f1": "Answer F1", "evidence_f1": "Evidence F1", "asnq": "ASNQ", "wikiqa": "WikiQA", "wikiqa_dev": "WikiQA, dev",
    "trecqa": "TREC-QA", "trecqa_dev": "TREC-QA, dev", "wqa": "WQA", "newsas2": "NewsAS2", "iqad_bench_1": "IQAD, bench 1",
    "iqad_bench_2": "IQAD, bench 2", "fever_dev": "FEVER, dev", "fever_test": "FEVER, test", "qasper": "QASPER",
    "hotpotqa": "HotpotQA", "pretraining": "own pre-training task, validation documents", "random": "random order",
    "document_order": "document order", "bm25": "BM25",
}
# fmt: on
# The worst first: the verdict of a line is the worst of its cells.
VERDICTS = ("differs", "close", "matches", "reduced budget", "private data", "not run", "not published")
PER_QUESTION = {"p@1": "p_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}


class Html(str):
    """Text that is markup already; every other text is escaped on its way into a table."""


def sources(paper: str, results: str | Path = "results", runs_dir: str | Path = "runs", folder: str | Path | None = None) -> list[Path]:
    """The files that a paper's page is made of: its rows, its committed results, the records of its runs on this machine."""
    rows = (Path(folder) if folder else runs.root() / "experiments") / f"{paper}.yml"
    found = records(paper, results, runs_dir, folder)
    local = [path / "record.json" for path in found.loc[found.source == HERE, "folder"]]
    return [rows, *sorted((runs.root() / results / paper).glob("*/*.json")), *sorted(local)]


def _given(paper: str, found: pd.DataFrame | None, folder) -> tuple[dict, pd.DataFrame]:
    return experiments.read(paper, folder), records(paper, folder=folder) if found is None else found


def logs(found: pd.DataFrame) -> dict[str, Path]:
    """The training logs of the runs on this machine, by a name for a legend."""
    logged = [run for run in found.itertuples() if run.folder is not None and (run.folder / "log.jsonl").is_file()]
    return {f"{run.row}, {run.dataset}, {run.rung}, seed {run.seed}": run.folder / "log.jsonl" for run in logged}


def _values(lines: pd.DataFrame, metric: str) -> list[float]:
    """One value a seed, 0 to 1."""
    measured = [record.get("metrics", {}) for record in lines.record]
    metrics = [splits.get("test") or splits.get("validation", {}) for splits in measured]
    return [values[metric] for values in metrics if values.get(metric) is not None]


def _groups(found: pd.DataFrame, row: str, dataset: str, rungs=experiments.RUNGS[1:]):
    """(source, rung, records) of a row on a data set: of each source its largest rung."""
    for source in (COMMITTED, HERE):
        lines = found[(found.row == row) & (found.dataset == dataset) & (found.source == source)]
        for rung in reversed(rungs):
            if (lines.rung == rung).any():
                yield source, rung, lines[lines.rung == rung]
                break


def verdict(published, ours: list[float], questions: int | None = None, at_paper_settings: bool = False, private: bool = False) -> str:
    """How one of our numbers stands to the printed one, in words.

    t = min(2, max(2 std, 0.5, 100 / questions)) points; matches: |ours - published| <= t and 3 seeds or more; close: <= 2 t
    Args:
        published: (mean, std) or a mean, in points (0 to 100); None where there is no number to compare with.
        ours: one value a seed, 0 to 1.
        questions: of the test set; None where the metric is not a mean over questions.
        at_paper_settings: whether the runs' effective parameters and data are the paper's; if not, nothing is compared.
    Example:
        >>> verdict((78.3, 2.8), [0.77, 0.78, 0.78], questions=237, at_paper_settings=True)
        'matches'
    """
    if private:
        return "private data"
    if not ours:
        return "not run"
    if not at_paper_settings:
        return "reduced budget"
    if published is None:
        return "not published"
    mean, std = published if isinstance(published, tuple | list) else (published, 0.0)
    tolerance = min(2.0, max(2 * std, 0.5, 100 / questions if questions else 0.0))
    gap = round(abs(100 * float(np.mean(ours)) - mean), 9)
    if gap <= tolerance and len(ours) >= 3:
        return "matches"
    return "close" if gap <= 2 * tolerance else "differs"


def _points(cell, unit: str) -> tuple[float, float] | None:
    scale = 100 if unit == "fraction" else 1
    if isinstance(cell, list):
        return cell[0] * scale, cell[1] * scale
    return (cell * scale, 0.0) if isinstance(cell, int | float) else None


def _verdicts(data: dict, row: str, dataset: str, metrics, lines: pd.DataFrame) -> list[str]:
    """The verdict of each metric of a line; `lines` may be empty."""
    chains = [[*line.earlier, line.record] for line in lines.itertuples()]
    exact = all(experiments.at_paper_settings(data, row, dataset, chain) for chain in chains)
    cells, private = data["rows"][row]["published"].get(dataset, {}), dataset in data.get("private", ())
    return [verdict(_points(cells.get(m), data["unit"]), _values(lines, m), _questions(lines), exact, private) for m in metrics]


def _questions(lines: pd.DataFrame) -> int | None:
    """How many test questions stand behind a line; None for a pre-training run."""
    return next((record.get("metrics", {}).get("test", {}).get("questions") for record in lines.record), None)


def line_verdicts(data: dict, found: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(row, data set) -> the worst verdict of its cells, by the committed results alone."""
    out = {}
    for row, content in data["rows"].items():
        for dataset, cells in content["published"].items():
            groups = [lines for source, _, lines in _groups(found, row, dataset) if source == COMMITTED]
            words = _verdicts(data, row, dataset, cells, groups[0] if groups else found.iloc[:0])
            out[row, dataset] = min(words, key=VERDICTS.index)
    return out


def results_table(paper: str, table_id: str, found: pd.DataFrame | None = None, dataset: str | None = None, links=None, folder=None) -> str:
    """A table of the paper beside ours as HTML, one table a data set: each printed line, and under it our own with rung and verdict.

    Args:
        found: what `records` gave; read anew by default. Runs of rung laptop never stand in this table.
        dataset: one of the table's data sets; all by default.
        links: name of a run -> address of its page.
    Raises: ValueError for a table or data set that the paper lacks, with the nearest name.
    """
    data, found = _given(paper, found, folder)
    if table_id not in data["tables"]:
        raise ValueError(f"{paper} has no table {table_id!r}{runs.nearest(table_id, data['tables'])} (it has: {', '.join(data['tables'])})")
    table = data["tables"][table_id]
    if dataset is not None and dataset not in table["datasets"]:
        raise ValueError(f"{table_id} has no data set {dataset!r} (it has: {', '.join(table['datasets'])})")
    return "\n".join(_one_table(data, table, name, found, links or {}) for name in ([dataset] if dataset else table["datasets"]))


def _one_table(data: dict, table: dict, dataset: str, found: pd.DataFrame, links: dict) -> str:
    rows = {name: data["rows"][name] for name in table["rows"] if dataset in data["rows"][name]["published"]}
    metrics = [m for m in table["metrics"] if any(m in row["published"][dataset] for row in rows.values())]
    body = _baselines(found[(found.dataset == dataset) & (found.rung != "laptop")], metrics, 3)
    for row, content in rows.items():
        cells = content["published"][dataset]
        groups = list(_groups(found, row, dataset))
        words = _verdicts(data, row, dataset, metrics, found.iloc[:0]) if not groups else []
        printed = [_printed(cells[m], data["unit"]) if m in cells else "–" for m in metrics]
        name = _cell(content["name"], "th", scope="row", rowspan=str(1 + len(groups)))
        body.append(_line([name, "paper", *map(_number, printed), data.get("runs", "–"), "paper", _said(metrics, words)], "as2-from-paper"))
        for source, rung, lines in groups:
            origin = Html("ours" if source == COMMITTED else "ours, this machine" + _linked(lines, links))
            ours = [_number(_spread(_values(lines, m))) for m in metrics]
            words = _verdicts(data, row, dataset, metrics, lines)
            body.append(_line([origin, *ours, len(lines), rung, _said(metrics, words)], "as2-from-ours"))
    title = f"{NAMES.get(dataset, dataset)}. {table['where']}: {table['caption']}. Points, mean ± std over seeds."
    return _table(title, ["Row", "From", *(NAMES[m] for m in metrics), "Seeds", "Budget", "Verdict"], body)


def _baselines(lines: pd.DataFrame, metrics, after: int) -> list[str]:
    """Lines of the orders that no training made, from the records of models on the same test set."""
    known = next((record["baselines"] for record in lines.record if record.get("baselines")), {})
    body = []
    for name, values in known.items():
        if not values:  # an order that means nothing for this data set
            continue
        numbers = [_number(_spread([values[m]] if values.get(m) is not None else [])) for m in metrics]
        body.append(_line([_cell(NAMES.get(name, name), "th", scope="row"), "no training", *numbers, *["–"] * after], "as2-from-baseline"))
    return body


def laptop_table(paper: str, found: pd.DataFrame | None = None, dataset: str = "pydocs", links=None, folder=None) -> str:
    """Rung laptop as HTML: our own data and the embedded corpus, models beside orders that no training made. Not the paper's numbers.

    The last column is the difference in MAP to the first row, paired by question, with its 95 % bootstrap interval.
    """
    data, found = _given(paper, found, folder)
    lines, metrics = found[found.rung == "laptop"], list(PER_QUESTION)
    tests = lines[lines.dataset == dataset]
    body = _baselines(tests, metrics, 4)
    for row in (rows := data["rungs"]["laptop"]["rows"]):
        own, task = tests[tests.row == row], lines[(lines.row == row) & (lines.dataset == "pretraining")]
        origin = Html("model" + _linked(own, links or {})) if len(own) else Html(_word("not run"))
        gain = _difference(_paired(tests, row, rows[0], "map") if row != rows[0] else None)
        numbers = [_number(_spread(_values(own, m))) for m in metrics] + [_number(_spread(_values(task, "accuracy")))]
        head = _cell(data["rows"][row]["name"], "th", scope="row")
        body.append(_line([head, origin, *numbers, len(own) or "–", "laptop", _number(gain)], "as2-from-ours"))
    size = f" {_questions(tests):,} test questions." if _questions(tests) else ""
    title = f"{dataset}, rung laptop: our own data and a tiny model, nothing of the paper.{size} Points, mean ± std over seeds."
    heads = ["Row", "From", *(NAMES[m] for m in metrics), "Pre-training accuracy", "Seeds", "Budget", "MAP against the first row [95 %]"]
    return _table(title, heads, body)


def verdict_table(found: dict[str, pd.DataFrame] | None = None, links=None, folder=None) -> str:
    """All five papers: how many lines (a row on one data set) have which verdict, by the committed results alone.

    Args:
        found: paper -> what `records` gave. links: paper -> address of its page, by default `papers/<paper>.html`.
    """
    body, shown = [], VERDICTS[:-1]
    for paper in experiments.papers():
        data, own = _given(paper, found and found[paper], folder)
        words = list(line_verdicts(data, own).values())
        address = (links or {}).get(paper, f"papers/{paper}.html")
        name = _cell(Html(f'<a href="{escape(address)}">{escape(data["title"])}</a>'), "th", scope="row")
        body.append(_line([name, len(words), *(_number(str(words.count(word) or "–")) for word in shown)]))
    heads = ["Paper", "Lines", *(Html(_word(word)) for word in shown)]
    return _table("A line is one row of a paper's tables on one data set.", heads, body)


def claims_table(paper: str, found: pd.DataFrame | None = None, draws: int = 10_000, folder=None) -> str:
    """The paper's claims as HTML: row A minus row B, the printed difference beside ours, paired by question, with its 95 % interval.

    The direction "shows" when the whole interval lies on the claimed side, is "opposite" when it lies on the other, else "unclear".
    """
    data, found = _given(paper, found, folder)
    body = []
    for claim in data.get("claims", ()):
        a, b, dataset, metric = claim["row_a"], claim["row_b"], claim["dataset"], claim["metric"]
        printed = [_points(data["rows"][row]["published"].get(dataset, {}).get(metric), data["unit"]) for row in (a, b)]
        theirs = f"{printed[0][0] - printed[1][0]:+.1f}" if all(printed) else "–"
        pair, rung, seeds = _best_pair(found, a, b, dataset, metric, draws)
        said = _word("not run")
        if pair:
            low, high = pair.interval if claim["sign"] == "+" else (-pair.interval[1], -pair.interval[0])
            said = _word("shows" if low > 0 else "opposite" if high < 0 else "unclear")
        compared = f"{data['rows'][a]['name']} − {data['rows'][b]['name']}, {NAMES.get(dataset, dataset)}, {NAMES[metric]}"
        text = f"{escape(claim['claim'])} <small>{escape(claim['where'])}</small>"
        body.append(_line([Html(text), compared, claim["sign"], _number(theirs), _number(_difference(pair)), seeds, rung, Html(said)]))
    heads = ["Claim", "Row A − row B", "Claimed", "Paper", "Ours [95 %]", "Seeds", "Budget", "Direction"]
    return _table("Differences in points.", heads, body)


def _best_pair(found: pd.DataFrame, a: str, b: str, dataset: str, metric: str, draws: int):
    for source in (COMMITTED, HERE):
        for rung in reversed(experiments.RUNGS[1:]):
            lines = found[(found.dataset == dataset) & (found.source == source) & (found.rung == rung)]
            if pair := _paired(lines, a, b, metric, draws):
                return pair, rung + (f", {HERE}" if source == HERE else ""), len(_common_seeds(lines, a, b))
    return None, "–", "–"


def _common_seeds(lines: pd.DataFrame, a: str, b: str) -> list[int]:
    return sorted(set(lines.seed[lines.row == a]) & set(lines.seed[lines.row == b]))


def _paired(lines: pd.DataFrame, a: str, b: str, metric: str, draws: int = 10_000):
    """Row a minus row b, each question's value the mean over the seeds that both have; None where they have none."""
    seeds = _common_seeds(lines, a, b)
    if not seeds or metric not in PER_QUESTION:
        return None
    sides = []
    for row in (a, b):
        of_row = lines[(lines.row == row) & lines.seed.isin(seeds)]
        sides.append(pd.concat([per_question(line)[PER_QUESTION[metric]] for line in of_row.itertuples()], axis=1).mean(axis=1))
    return significance.paired_bootstrap(*sides, draws=draws)


def per_question(line) -> pd.DataFrame:
    """One record's values of every question, from the record itself or from its run's folder, with question_id as index."""
    if line.folder is not None:
        return pd.read_parquet(line.folder / "per_question.parquet").set_index("question_id")
    return pd.DataFrame(line.record["per_question"], columns=["question_id", *PER_QUESTION.values()]).set_index("question_id")


def _table(caption: str, heads, body: list[str]) -> str:
    head = "".join(_cell(text, "th", scope="col") for text in heads)
    body = "\n".join(body) or _line([_cell("nothing to show yet", colspan=str(len(heads)))])
    head, body = f"<thead><tr>{head}</tr></thead>", f"<tbody>\n{body}\n</tbody>"
    return f'<table class="as2-table">\n<caption>{escape(caption)}</caption>\n{head}\n{body}\n</table>'


def _line(cells, kind: str = "") -> str:
    made = "".join(cell if isinstance(cell, Html) and cell.startswith(("<td", "<th")) else _cell(cell) for cell in cells)
    return f'<tr class="{kind}">{made}</tr>' if kind else f"<tr>{made}</tr>"


def _cell(content, tag: str = "td", **attributes: str) -> Html:
    text = content if isinstance(content, Html) else escape(str(content))
    shown = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return Html(f"<{tag}{shown}>{text}</{tag}>")


def _number(text: str) -> Html:
    return Html(f'<td class="as2-number">{escape(text)}</td>')


def _word(word: str) -> str:
    kind = word.removesuffix(" budget").removesuffix(" data").replace(" ", "-")
    return f'<span class="as2-verdict as2-{kind}">{escape(word)}</span>'


def _said(metrics, words: list[str]) -> Html:
    if len(set(words)) <= 1:
        return Html(_word(words[0]) if words else "")
    return Html("<br>".join(f"{escape(NAMES[m])} {_word(word)}" for m, word in zip(metrics, words)))


def _linked(lines: pd.DataFrame, links: dict) -> str:
    made = [f'<a href="{escape(links[line.name])}">seed {line.seed}</a>' for line in lines.itertuples(index=False) if line.name in links]
    return f" ({', '.join(made)})" if made else ""


def _printed(cell, unit: str) -> str:
    if isinstance(cell, dict):
        return f"{cell['relative']:+.1f} %"
    points = _points(cell, unit)
    if points is None:
        return "baseline" if cell == "baseline" else "lost"
    texts = [f"{value:.2f}" for value in (points if isinstance(cell, list) else points[:1])]
    return " ± ".join(text[:-1] if all(t.endswith("0") for t in texts) else text for text in texts)


def _spread(values: list[float]) -> str:
    if not values:
        return "–"
    points = 100 * np.asarray(values)
    return f"{points.mean():.1f}" + (f" ± {points.std(ddof=1):.1f}" if len(points) > 1 else "")


def _difference(pair: significance.Comparison | None) -> str:
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * x for x in (pair.difference, *pair.interval))) if pair else "–"


def training_curves(logs: dict):
    """Loss and validation metric by step of some runs, as a matplotlib Figure.

    Args:
        logs: label -> path of a `log.jsonl`, or its lines as dicts.
    Raises: ValueError naming file and line of a log that is not one JSON object a line.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    loss, valid = figure.subplots(1, 2)
    seen = set()
    for number, (label, log) in enumerate(logs.items()):
        lines = log if isinstance(log, list) else _read_log(Path(log))
        look = {"color": f"C{number % 10}", "linestyle": ("-", "--", ":", "-.")[number % 4], "label": label}
        loss.plot(*zip(*[(line["step"], line["loss"]) for line in lines if "loss" in line] or [((), ())]), **look)
        metric = next((m for m in ("map", "accuracy") if any(f"eval_{m}" in line for line in lines)), None)
        if metric:
            seen.add(NAMES[metric])
            points = [(line["step"], 100 * line[f"eval_{metric}"]) for line in lines if f"eval_{metric}" in line]
            valid.plot(*zip(*points), marker="o", **look)
    loss.set(xlabel="optimiser step", ylabel="training loss")
    valid.set(xlabel="optimiser step", ylabel=f"validation {' or '.join(sorted(seen)) or 'metric'}, points")
    loss.grid(alpha=0.3)
    valid.grid(alpha=0.3)
    if logs:
        loss.legend(fontsize="x-small")
    return figure


def _read_log(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, text in enumerate(lines):
        try:
            lines[number] = dict(json.loads(text))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path.parent.name}/{path.name}, line {number + 1}: not a JSON object ({error})") from error
    return lines


def ranked_example(question: str, candidates: list[str], scores, labels, top: int = 5) -> str:
    """One question with its best candidates as HTML, best first; at one score the wrong candidate stands first, as in the metrics."""
    return compare_rankings(question, candidates, labels, {"score": scores}, top)


def compare_rankings(question: str, candidates: list[str], labels, scores: dict, top: int = 5) -> str:
    """One question ranked by several models as HTML: rank (score) by each, in the order of the first; texts are escaped.

    Args:
        scores: name of a model -> one score a candidate.
        top: candidates that some model ranks this high are shown.
    """
    for name, values in {"labels": labels, **scores}.items():
        if len(values) != len(candidates):
            raise ValueError(f"one value a candidate: got {len(values)} of {name} for {len(candidates)} candidates")
    orders = {name: sorted(range(len(candidates)), key=lambda i: (-values[i], labels[i])) for name, values in scores.items()}
    shown = [i for i in next(iter(orders.values())) if any(i in order[:top] for order in orders.values())]
    body = []
    for i in shown:
        ranks = [_number(f"{order.index(i) + 1} ({scores[name][i]:.3f})") for name, order in orders.items()]
        kind, said = ("as2-right", "✓ answers") if labels[i] else ("as2-wrong", "✗ does not")
        body.append(_line([*ranks, said, candidates[i]], kind))
    heads = [*("Rank (score)" if len(scores) == 1 else f"Rank by {name} (score)" for name in orders), "Label", "Candidate"]
    more = f" ({len(candidates) - len(shown)} more candidates)" if len(candidates) > len(shown) else ""
    return _table(f"{question}{more}", heads, body).replace("as2-table", "as2-table as2-ranking", 1)
