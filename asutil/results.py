"""From runs to `results/`: finished runs of the papers' rows as small records of numbers, without any text.

`python -m asutil.results` (or `make results`) writes `results/<paper>/<row>/<dataset>-<rung>-seed<k>.json` for every finished run of a
row above the laptop rung.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from . import experiments, metrics, runs

CHOSEN_QUESTIONS, TOP = 3, 5


def publish(paper: str, results: str | Path = "results", runs_dir: str | Path = "runs") -> list[Path]:
    """Write the records of a paper's finished runs into `results/`, never those of the laptop rung. Returns the files written."""
    written = []
    for line in experiments.records(paper, results, runs_dir).itertuples():
        if line.source != experiments.HERE or line.rung == "laptop":
            continue
        place = runs.root() / results / paper / line.row / f"{line.dataset}-{line.rung}-seed{line.seed}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        entries = _published(paper, line).items()  # one line an entry: a change of a figure is a change of its line
        text = "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in entries) + "\n}\n"
        runs.atomically(place, lambda path, text=text: path.write_text(text, encoding="utf-8"))
        written.append(place)
    return written


def _published(paper: str, line) -> dict:
    record = dict(line.record) | {"paper": paper, "row": line.row, "dataset": line.dataset}
    record["earlier"] = [
        {name: before[name] for name in ("notebook", "name", "rung", "seed", "settings", "inputs")} for before in line.earlier
    ]
    scores = line.folder / "scores.parquet"
    if scores.is_file():
        table = pd.read_parquet(scores)
        per_question = metrics.of(table).per_question
        record["per_question"] = [[row[0], *(round(value, 6) for value in row[1:])] for row in per_question.itertuples(index=False)]
        record["chosen"] = [_top(table, question) for question in _chosen(per_question)]
    return record


def _chosen(per_question: pd.DataFrame) -> list[str]:
    """Questions at the lower end, in the middle and at the upper end of the reciprocal rank: ids alone decide between equals."""
    ordered = per_question.sort_values(["reciprocal_rank", "question_id"]).question_id.tolist()
    places = [round(i * (len(ordered) - 1) / max(CHOSEN_QUESTIONS - 1, 1)) for i in range(CHOSEN_QUESTIONS)]
    return list(dict.fromkeys(ordered[place] for place in places))


def _top(table: pd.DataFrame, question: str) -> dict:
    ranked = table[table.question_id == question].sort_values(["score", "label"], ascending=[False, True], kind="stable")
    best = ranked.head(TOP).itertuples()
    candidates = [[row.candidate_id, int(row.label), round(float(row.score), 4), rank] for rank, row in enumerate(best, 1)]
    return {"question_id": question, "candidates": candidates}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m asutil.results", description=publish.__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", help="slugs of papers; all of them by default", metavar="paper")
    parser.add_argument("--runs-dir", default="runs", help="where the run folders are (default: runs)")
    given = parser.parse_args()
    unknown = [paper for paper in given.papers if paper not in experiments.papers()]
    if unknown:
        parser.error(f"no paper {unknown[0]!r}{runs.nearest(unknown[0], experiments.papers())} ({', '.join(experiments.papers())})")
    for paper in given.papers or experiments.papers():
        for path in publish(paper, runs_dir=given.runs_dir):
            print(path.relative_to(runs.root()))


if __name__ == "__main__":
    main()
