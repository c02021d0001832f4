"""Evidence in a long context: how near questions come to it, and what was read."""

from pages import numbers, register, row, table

from aslab import records, rundir
from aslab.papers import one_of
from aslab.records import COMMITTED
from aslab.show import markup
from aslab.show.markup import NAMES

BEFORE = "before training"  # the baseline of a record that is its model before its own training
UNTRAINED = dict.fromkeys(("random", "document_order", "zero_shot"), "map")
UNTRAINED |= {"all_sentences": "evidence_f1", "most_frequent_answer": "answer_f1"}
SEEN = {
    "map_raw": "raw vectors",
    "map_projected": "as trained",
    "map_predicted_type": "predicted type",
    "map_evidence_head": "evidence head",
}


def best(runs, name: str, dataset: str):
    """The records of a row on a data set, of the largest budget, committed ones first."""
    lines = runs[(runs.row == name) & (runs.dataset == dataset)]
    rank = 2 * lines.budget.map(rundir.BUDGETS.index).astype(int) + (lines.source == COMMITTED)
    return lines[rank == rank.max()]


def lines_of(data: dict, runs, places, title, of_place, width: int) -> list[str]:
    """The lines of a table, those that `of_place` gives for the best records of a place; `not run` where there are none.

    Args:
        places: (row, data set). title: (row, data set) -> the head of a line. width: cells after the head.
    """
    body = []
    for name, dataset in places:
        one_of(name, data["rows"], data["slug"], "row")
        lines = best(runs, name, dataset)
        if lines.empty:
            body.append(row(title(name, dataset), markup.word("not run"), *"–" * (width - 1)))
        else:
            body += of_place(title(name, dataset), lines)
    return body


def made_at(lines) -> str:
    return records.origin(lines.budget.iloc[0], lines.source.iloc[0])


@register("evidence-near", of_paper=True)
def near_table(data: dict, runs, dataset: str, *rows: str) -> str:
    """A line a row: mAP before training, and after it by raw vectors, as trained, by type and by evidence head."""

    def of_place(title: str, lines):
        before = [line.record["baselines"][BEFORE]["map_projected"] for line in lines.itertuples()]
        figures = [before, *(records.values(lines, name) for name in SEEN)]
        yield row(title, *map(markup.spread, figures), len(lines), made_at(lines))

    places = [(name, dataset) for name in rows]
    body = lines_of(data, runs, places, lambda name, _: data["rows"][name]["name"], of_place, len(SEEN) + 3)
    heads = ["Row", "Before training, dev", *(f"After: {name}" for name in SEEN.values()), "Seeds", "Budget"]
    title = f"{NAMES.get(dataset, dataset)}. Mean average precision of the evidence, in points, mean ± std over seeds."
    return table(title, heads, body)


@register("evidence-left-out", of_paper=True)
def left_out_table(data: dict, runs, name: str, *datasets: str) -> str:
    """A line a data set and split, from the record of the row that is `best`: what was read, and what did not fit."""

    def of_place(title: str, lines):
        record = lines.iloc[0].record
        for split, lost in record["figures"]["left_out"].items():
            counts = [record["figures"]["read"][split], lost["distractors"], lost["evidence"], lost["others"]]
            figures = [f"{count:,}" for count in (*counts, record["settings"]["max_tokens"])]
            yield row(f"{title}, {split}", *numbers(*figures), made_at(lines))

    places = [(name, dataset) for dataset in datasets]
    body = lines_of(data, runs, places, lambda _, dataset: NAMES.get(dataset, dataset), of_place, 6)
    heads = ["Split", "Questions", "Sentences of passages not chosen", "Evidence cut away", "Other sentences cut away"]
    title = "The content of the inputs. Evidence that is cut away counts as missed."
    return table(title, [*heads, "Tokens", "Budget"], body)


@register("evidence-chance", of_paper=True)
def chance_table(data: dict, runs, name: str, *datasets: str) -> str:
    """The figures of untrained baselines on the contexts of a row, a line a data set."""

    def of_place(title: str, lines):
        baselines = lines.iloc[0].record["baselines"]
        figures = (markup.spread([baselines[name][metric]]) for name, metric in UNTRAINED.items())
        yield row(title, *figures, made_at(lines))

    places = [(name, dataset) for dataset in datasets]
    body = lines_of(data, runs, places, lambda _, dataset: NAMES.get(dataset, dataset), of_place, len(UNTRAINED) + 1)
    heads = [f"{NAMES[name].capitalize()}, {NAMES[metric]}" for name, metric in UNTRAINED.items()]
    title = "Without any training, on the contexts that the models read: points."
    return table(title, ["Data set", *heads, "Budget"], body)
