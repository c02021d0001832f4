"""What else the book shows of results, counted again as in `traced`: ranked lists, moves, vectors, verdicts, evidence.

Each function yields the lines of a directive's block in the order of the page: a text for each paragraph and figure's words, and the texts
of the cells for each line of a table.
"""

import hashlib
import itertools
import statistics
from collections import Counter
from functools import lru_cache
from pathlib import Path

from asutil.data import answers

from . import traced_plots
from .traced import EVERY, NAMES, NONE, Paper, by_question, spread, untrained, values

EMBEDDED = ("pydocs", "pydocs_evidence")
PLACES = ("1", "2", "3", "4", "5", "6 to 10", "11 on")
FATES = ("rescued", "lost", "right by both", "wrong by both")
SAID = ("✗ does not answer", "✓ answers")
ROLES = {"question": "question", "positive": "right", "negative": "wrong"}


def pairs(paper: Paper, before: str, after: str):
    """Each data set of questions on which two rows have run: their records, and the first of each."""
    printed = [dataset for table in paper.data["tables"].values() for dataset in table["datasets"]]
    for dataset in dict.fromkeys([*printed, *(one["dataset"] for one in paper.records)]):
        ours, other, count = paper.pair(after, before, dataset, EVERY)
        if count and dataset not in ("pretraining", "transfer", "pydocs_more") and not dataset.endswith(("_dev", "_test")):
            seeds = sorted({one["seed"] for side in (ours, other) if not untrained(side) for one in side}) or [ours[0]["seed"]]
            yield (
                dataset,
                seeds,
                [[next(one for one in side if untrained(side) or one["seed"] == s) for s in seeds] for side in (other, ours)],
            )


def ranks(record: dict) -> dict[str, float]:
    """Question -> the rank of its first right candidate; questions without one are left out."""
    found = by_question([record], "map_raw" if record["notebook"] == "find_evidence" else "mrr")
    return {name: round(1 / value) for name, value in found.items() if value > 0}


def fates(before: dict, after: dict) -> dict[str, str]:
    """What became of each question's first place."""
    names = {(False, True): "rescued", (True, False): "lost", (True, True): "right by both", (False, False): "wrong by both"}
    sides = [by_question([one], "mrr") for one in (before, after)]
    return {name: names[sides[0][name] == 1, sides[1][name] == 1] for name in sides[0]}


# ------------------------------------------------------------------ ranked lists


def examples(root: Path, name: str, before: str, after: str, only: str = ""):
    """How many questions have which fate; of each list of pydocs the caption with its fate, and its candidates."""
    paper, most = Paper(root, name), 1 if only else 2
    for dataset, seeds, (first, last) in readable_first(pairs(paper, before, after)):
        if only not in ("", dataset):
            continue
        fate = fates(first[0], last[0])
        counts, held = Counter(fate.values()), lists(before, first[0], last[0])
        counted = ", ".join(f"{counts[one]:,} {one}" for one in FATES)
        apart = "" if held else " The two records keep no list of the same question."
        yield f"{place(dataset, last[0], seeds)}. Of {len(fate):,} questions: {counted}, by first place.{apart}"
        if dataset not in EMBEDDED:
            continue
        easy = {question for question in held if question in short_questions()}
        of = {one: [question for question in held if fate[question] == one] for one in FATES[:2]}
        first_ones = {one: [question for question in names if question in easy] or names for one, names in of.items()}
        shown = [question for one in FATES[:2] for question in chosen(first_ones[one], most if one == "rescued" else 1)]
        for question in shown or chosen(held, most):
            yield from ranked(fate[question].capitalize(), held[question])


@lru_cache
def short_questions() -> set[str]:
    """Test questions of pydocs whose candidates have 25 words or fewer on average."""
    words = lambda question: [len(candidate.text.split()) for candidate in question.candidates]
    return {question.id for question in answers.load_answers("pydocs", "clean")["test"] if statistics.mean(words(question)) <= 25}


def readable_first(of_pairs) -> list:
    """The books are built without other data than the embedded."""
    return sorted(of_pairs, key=lambda pair: pair[0] not in EMBEDDED)


def asked(root: Path, name: str, before: str, after: str):
    """The ranks of the questions that the paper prints: their text is not there."""
    paper = Paper(root, name)
    for dataset, seeds, (first, last) in pairs(paper, before, after):
        of_each = [ranks(one) for one in (first[0], last[0])]
        known = [one for one in paper.data.get("questions", {}).get(dataset, ()) if all(one in of for of in of_each)]
        if known:
            yield f"{place(dataset, last[0], seeds)}."
        names = [paper.data["rows"][row]["name"] for row in (before, after)]
        for question in known:
            both_ranks = " and ".join(f"rank {of[question]} by {row}" for of, row in zip(of_each, names))
            yield f"{question}: the first right candidate has {both_ranks}."


def nearest(root: Path, name: str, before: str, after: str):
    """Questions of pydocs with the sentences that are nearest to them."""
    for dataset, seeds, (first, last) in readable_first(pairs(Paper(root, name), before, after)):
        each = [{entry["question_id"]: entry["candidates"] for entry in one.get("chosen", ())} for one in (first[0], last[0])]
        yield f"{place(dataset, last[0], seeds)}."
        for question in chosen(set(each[0]) & set(each[1]), 3) if dataset in EMBEDDED else ():
            yield from ranked("Nearest sentences", [side[question] for side in each])


def place(dataset: str, record: dict, seeds: list[int]) -> str:
    return f"{NAMES.get(dataset, dataset)}, budget {record['budget']}, seed {seeds[0]}"


def lists(baseline: str, before: dict, after: dict) -> dict[str, list]:
    """Question -> both ranked lists that the records hold; none of a data set that was also ranked."""
    old, new = (side.get("chosen", ()) for side in (before, after))
    beside = {one["question_id"]: one["baseline"]["candidates"] for one in new if one.get("baseline", {}).get("row") == baseline}
    beside |= {one["question_id"]: one["candidates"] for one in old}
    return {one["question_id"]: [beside[one["question_id"]], one["candidates"]] for one in new if one["question_id"] in beside}


def chosen(names, limit: int) -> list[str]:
    """Those with the lowest hash."""
    return sorted(names, key=lambda name: hashlib.blake2b(f"0 {name}".encode(), digest_size=8).digest())[:limit]


def ranked(fate: str, two: list[list]):
    """The lines of one question's table: above it what became of the question, and the ranks of the first right candidates."""
    first = [next((str(rank) for _, label, _, rank in own if label), f"below {len(own)}") for own in two]
    yield f"{fate}. First right candidate: rank {first[0]} on the left, {first[1]} on the right."
    for rank, entries in enumerate(itertools.zip_longest(*two), 1):
        yield [str(rank), *(f"{SAID[bool(one[1])]} {one[0]} score {one[2]:.3f}" if one else "" for one in entries)]


# ------------------------------------------------------------------ figures in words


def rank_moves(root: Path, name: str, before: str, after: str):
    """How many questions moved, in words, and the counts that are drawn."""
    paper = Paper(root, name)
    for dataset, seeds, sides in pairs(paper, before, after):
        moved = [
            (one[question], other[question])
            for one, other in zip(*(map(ranks, side) for side in sides))
            for question in one
            if question in other
        ]
        up, same, down = (sum(way(a, b) for a, b in moved) for way in (int.__gt__, int.__eq__, int.__lt__))
        each = len(moved) // len(seeds)
        asked = f"{each:,} questions" + (f" times {len(seeds)} seeds" if len(seeds) > 1 else "")
        together = f"{len(seeds)} seeds put together" if len(seeds) > 1 else f"seed {seeds[0]}"
        yield (
            f"{NAMES.get(dataset, dataset)}, budget {sides[1][0]['budget']}, {together}: of {asked} the first right candidate ranks higher "
            f"by {paper.title(after)} than by {paper.title(before)} for {up:,}, the same for {same:,}, lower for {down:,}."
        )
        cells = Counter((binned(a), binned(b)) for a, b in moved)
        drawn = [str(cells[row, column]) for row in range(7) for column in range(7) if cells[row, column]]
        yield Counter(drawn)


def binned(rank: int) -> int:
    return rank - 1 if rank < 6 else 5 if rank <= 10 else 6


def components(root: Path, name: str, row: str, dataset: str):
    """What a figure of vectors says in words."""
    paper = Paper(root, name)
    for record in paper.drawable(row, dataset):
        shown = record["pca"]
        counted = [f"{shown['roles'].count(role)} {word}" for role, word in ROLES.items()]
        said = f"{paper.title(row)} on {NAMES.get(dataset, dataset)}, budget {record['budget']}, seed {record['seed']}: "
        said += f"{counted[0]}s with {counted[1]} and {counted[2]} candidates, in the two directions in which their vectors differ most."
        panels = [panel for panel in ("before", "after") if panel in shown]
        for panel in panels:
            near, far = (shown[panel]["distance"][role] for role in ("positive", "negative"))
            when = f"{panel.capitalize()} training" if len(panels) > 1 else "Untrained"
            said += f" {when}, a question is {near:.2f} from its right candidates on average and {far:.2f} from its wrong ones"
            said += f"{f', {far / near:.2f} times as far' if near else ''}, measured in all dimensions; these two hold "
            said += f"{100 * sum(shown[panel]['explained']):.0f} % of the variance."
        yield said


def learning_curve(root: Path, name: str, dataset: str, budget: str, *rows: str):
    """What a learning curve says in words."""
    curves, _ = traced_plots.curves_of(root, name, dataset, budget, *rows)
    seeds = {counted for curve in curves.values() for counted, *_ in curve.values()}
    each = " to ".join(dict.fromkeys([str(min(seeds)), str(max(seeds))]))
    said = f"MAP on the test questions of {NAMES[dataset]} by the number of training questions: the mean over seeds, "
    said += f"{each} a point, with its 95 % interval over test questions, and rankers without training."
    yield said


# ------------------------------------------------------------------ verdicts, evidence, contexts


def readouts(root: Path, name: str):
    """MAP of test questions by each readout; what a record lacks that was made before all were kept is its ranking alone."""
    paper = Paper(root, name)
    for dataset in ("wikiqa", "trecqa"):
        for row, content in paper.rows.items():
            cells, records = [], paper.of(row, dataset)
            for by in ("distance", "cosine", "dot", "probability"):
                found = [
                    one["readouts"].get(by) if "readouts" in one else one["settings"]["rank_by"] == by and one["metrics"] for one in records
                ]
                cells.append(spread([one["test"]["map"] for one in found if one]))
            if records:
                yield [content["name"], *cells, f"{len(records)}{', untrained' * untrained(records)}", records[0]["budget"]]
            elif row.split("_")[0] in ("siamese", "triplet"):
                yield [content["name"], "not run", *[NONE] * 5]


def claim_verdicts(root: Path, name: str):
    paper = Paper(root, name)
    made = [(one["dataset"], one["budget"], one["row"]) for one in paper.records if one["notebook"] == "verify_claims"]
    for dataset, budget, row in dict.fromkeys(made):
        records = paper.of(row, dataset, (budget,))
        metrics = ("label_accuracy", "f1_supports", "f1_not_enough_info", "f1_refutes", "majority")
        cells = [f"{100 * statistics.fmean(found):.1f}" if (found := values(records, metric)) else NONE for metric in metrics]
        yield [paper.title(row), NAMES.get(dataset, dataset), *cells, str(len(records)), budget]


def evidence_near(root: Path, name: str, dataset: str, *rows: str):
    paper = Paper(root, name)
    for row in rows:
        records = paper.of(row, dataset, EVERY)
        started = [one["baselines"]["before training"]["map_projected"] for one in records]
        after = [values(records, f"map_{way}") for way in ("raw", "projected", "predicted_type", "evidence_head")]
        cells = [*map(spread, (started, *after)), str(len(records)), records[0]["budget"]] if records else ["not run", *[NONE] * 6]
        yield [paper.title(row), *cells]


def evidence_left_out(root: Path, name: str, row: str, *datasets: str):
    paper = Paper(root, name)
    for dataset in datasets:
        records = paper.of(row, dataset, EVERY)[:1]
        if not records:
            yield [NAMES[dataset], "not run", *[NONE] * 5]
        for record in records:
            for side, lost in record["figures"]["left_out"].items():
                counts = [record["figures"]["read"][side], *(lost[what] for what in ("distractors", "evidence", "others"))]
                counts.append(record["settings"]["max_tokens"])
                yield [f"{NAMES[dataset]}, {side}", *(f"{count:,}" for count in counts), record["budget"]]


def evidence_chance(root: Path, name: str, row: str, *datasets: str):
    paper = Paper(root, name)
    metrics = dict.fromkeys(("random", "document_order", "zero_shot"), "map")
    metrics |= {"all_sentences": "evidence_f1", "most_frequent_answer": "answer_f1"}
    for dataset in datasets:
        records = paper.of(row, dataset, EVERY)[:1]
        if not records:
            yield [NAMES[dataset], "not run", *[NONE] * 5]
        for record in records:
            cells = [f"{100 * record['baselines'][order][metric]:.1f}" for order, metric in metrics.items()]
            yield [NAMES[dataset], *cells, record["budget"]]


def overlap(root: Path, name: str):
    found = {}
    for one in Paper(root, name).records:
        if measured := one.get("figures", {}).get("context_overlap"):
            found[str(one["settings"].get("corpus")), str(one["settings"].get("splitter")), one["budget"]] = measured
    for where, measured in sorted(found.items()):
        shares = [f"{measured[name]:.1%}" for name in ("identical", "overlap")]
        yield [*where, f"{measured['examples']:,}", f"{measured['paragraph_sentences']:.1f}", *shares]
