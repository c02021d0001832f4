"""What the book shows of budget laptop, counted again as in `traced`: our own questions, and nothing printed."""

from pathlib import Path

from . import traced, traced_reasons
from .traced import BY_QUESTION, NONE, UNTESTABLE, WORDS, Paper, baselines, figure, over_questions, points, untrained

LAPTOP = ("laptop",)
RANKED = ["p@1", "map", "mrr"]
MORE = ["pydocs_more"]  # a table of its own


def results(root: Path, name: str, table_id: str, laptop: str = ""):
    """The tabs of a table of the paper: the data sets with runs, our own questions, the data sets without runs."""
    of_laptop = Paper(root, name).data["tables"][table_id]["datasets"] == MORE
    with_runs, without = ([], []) if of_laptop else traced.results(root, name, table_id)
    return [*with_runs, *(rows_of(root, name, table_id) if laptop else ()), *without]


def rows_of(root: Path, name: str, table_id: str):
    """The words above a table, the baselines from records of the laptop alone, then a line for each row."""
    paper = Paper(root, name)
    budget, table = paper.data["budgets"]["laptop"], paper.data["tables"].get(table_id, {"datasets": [], "metrics": []})
    dataset, metrics, gained = asked(budget, table)
    known = [one for one in paper.records if (one["budget"], one["dataset"]) == ("laptop", dataset)]
    yield words_above(table, dataset, gained, known)
    if gained:
        yield from baselines(paper, dataset, metrics, LAPTOP, after=2)
    several = "," in traced.models(known)
    for row in table.get("rows", budget["rows"]):
        if row in budget["rows"]:
            yield line(paper, row, dataset, metrics, gained, several)


def asked(budget: dict, table: dict) -> tuple[str, list[str], str]:
    """The data set of a table on the laptop, its metrics, and that of its gains; "" for own tasks, which have none."""
    metrics = table["metrics"]
    if table["datasets"] == ["pretraining"]:
        return "pretraining", metrics, ""
    if metrics == ["label_accuracy"]:
        return budget["claims"][0], metrics, "label_accuracy"
    if set(metrics) & set(BY_QUESTION["find_evidence"]):
        return budget["datasets"][0], metrics, "evidence_f1"
    return MORE[0] if table["datasets"] == MORE else "pydocs", RANKED, "map"


def words_above(table: dict, dataset: str, gained: str, known: list[dict]) -> str:
    where = f"{table['where']}. " if "where" in table else ""
    kind = "claims" if gained == "label_accuracy" else "questions"
    task = "the task of each row on held-out documents; F1 is that of class 1"
    what = f"{traced.NAMES.get(dataset, dataset)}, our own {kind}" if gained else task
    size = f" {len(known[0]['per_question']):,} test {kind}." if gained and known else ""
    made = [one["hardware"] for one in known if one.get("hardware")]
    machines = dict.fromkeys(f"{one['cpu_cores']} {one['architecture']} cores, {one['system']}" for one in made)
    ours = f" Ours: {'; '.join(machines)}." if machines else ""
    words = f"{where}Budget laptop: {what}; nothing of the paper.{size}{ours} Points, mean ± std over seeds."
    alone = "intervals over questions alone, those of verdicts over seeds, too"
    gains = [f"Differences: test questions, seeds that both rows have; {alone}."] * bool(gained)
    return " ".join([words, *gains, *traced.above(known, reduced=False)])


def line(paper: Paper, row: str, dataset: str, metrics: list[str], gained: str, several: bool) -> list[str]:
    """The cells of a row: those of our runs, without marks of tests, or that it was not run."""
    records = paper.of(row, dataset, LAPTOP)
    if not records:
        reason = traced_reasons.declared(paper, row, dataset)
        return [paper.title(row), f"{UNTESTABLE} {reason}" if reason else WORDS[-1], *[NONE] * (len(metrics) + 1 + bool(gained))]
    figures = [figure(records, metric) for metric in metrics]
    seeds = f"{len(records)}{', untrained' if untrained(records) else ''}"
    last = [gain(paper, row, dataset, gained)] if gained else []
    return [paper.title(row), f"ours {traced.models(records) if several else ''}".strip(), *figures, seeds, *last]


def gain(paper: Paper, row: str, dataset: str, metric: str) -> str:
    """The difference of a row to its baseline over questions, with its interval; or why it says nothing."""
    baseline = paper.rows[row].get("baseline")
    ours, other, seeds = paper.pair(row, baseline, dataset, LAPTOP) if baseline else ([], [], 0)
    if not seeds:
        return NONE
    reason = traced_reasons.of_pair(paper, {"row_a": row, "row_b": baseline, "metric": metric}, ours, other)
    return f"{UNTESTABLE} {reason}" if reason else points(over_questions(ours, other, metric))
