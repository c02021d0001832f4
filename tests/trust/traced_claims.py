"""What the book says of claims and of tests, ours and printed, counted again as in `traced`."""

from collections import Counter
from pathlib import Path

from . import traced_reasons
from .traced import (
    BUDGETS,
    NAMES,
    NONE,
    UNTESTABLE,
    Paper,
    as_printed,
    mark,
    over_questions,
    over_seeds,
    p_value,
    points,
    sign,
    values,
)


def compared(paper: Paper, claim: dict) -> str:
    dataset, rows = claim["dataset"], [paper.title(claim[side]) for side in ("row_a", "row_b")]
    return f"{' − '.join(rows)}, {NAMES.get(dataset, dataset)}, {NAMES[claim['metric']]}"


def direction(claim: dict, test, reason: str = "") -> str:
    if reason:
        return UNTESTABLE
    return "not run" if test is None else ("unclear", "shows", "opposite")[sign(test) * (1 if claim["sign"] == "+" else -1)]


def claimed(paper: Paper, claim: dict, budgets=BUDGETS) -> tuple:
    """The printed difference of a claim, its sides' records with their number of seeds, the test over questions, why it says nothing."""
    row, other, dataset, metric = (claim[key] for key in ("row_a", "row_b", "dataset", "metric"))
    theirs = [paper.published(name, dataset, metric) for name in (row, other)]
    found = paper.pair(row, other, dataset, budgets)
    reason = traced_reasons.of_pair(paper, claim, *found[:2])
    return theirs[0][0] - theirs[1][0] if all(theirs) else None, found, over_questions(*found[:2], metric), reason


def claims(root: Path, name: str):
    paper = Paper(root, name)
    every = [(claim, claimed(paper, claim)) for claim in paper.claims()]
    together = [traced_reasons.pooled(paper, claim, *found[:2]) for claim, (_, found, _, _) in every]
    for (claim, (printed, (ours, _, seeds), test, reason)), both in zip(every, together):
        head = [f"{claim['claim']} {claim['where']}"] if claim["first"] else []
        text = [*head, compared(paper, claim), claim["sign"], NONE if printed is None else f"{printed:+.1f}"]
        cells = [points(test), *([str(seeds), ours[0]["budget"]] if seeds else [NONE, NONE])]
        last = f"{points(both)} {direction(claim, both, reason)}" if both else NONE
        yield [*text, *cells, f"{direction(claim, test, reason)} {reason}".strip(), *([last] if any(together) else [])]


def orderings(root: Path, name: str):
    paper, lines = Paper(root, name), {}
    for claim in paper.data["claims"]:
        lines.setdefault((claim["row_a"], claim["sign"], claim["row_b"]), {})[claim["dataset"]] = claim
    datasets = dict.fromkeys(claim["dataset"] for claim in paper.data["claims"])
    words = Counter(direction(claim, *claimed(paper, claim)[2:]) for claim in paper.data["claims"])
    yield (
        f"{words.total()} orderings of two rows that the paper names: {words['shows']} show, {words['unclear']} are unclear, "
        f"{words['opposite']} are opposite, {words[UNTESTABLE]} are {UNTESTABLE}, {words['not run']} are not run. "
        "Differences in points, ours with the 95 % interval."
    )
    for (row, way, other), of in lines.items():
        cells = []
        for claim in map(of.get, datasets):
            if claim is None:
                cells += ["", ""]
                continue
            printed, _, test, reason = claimed(paper, claim)
            cells += [
                f"{printed:+.1f}" + ("" if (printed > 0) == (way == "+") else " not as said"),
                f"{direction(claim, test, reason)} {points(test)} {reason}".strip(),
            ]
        yield [f"{paper.title(row)} {'ahead of' if way == '+' else 'behind'} {paper.title(other)}", *cells]


def with_interval(test, seeds=None, questions=None) -> str:
    """The difference with its mark, its interval and its p."""
    gain, reach = points(test).split(" ", 1)
    return f"{gain}{mark(seeds, questions)} {reach}, {p_value(test)}"


def two_tests(root: Path, name: str):
    paper, shown = Paper(root, name), False
    for claim in paper.claims():
        _, (ours, _, seeds), asked, reason = claimed(paper, claim)
        if seeds:
            budget, metric, shown = ours[0]["budget"], claim["metric"], True
            t = over_seeds(*(values(paper.of(claim[row], claim["dataset"], (budget,)), metric) for row in ("row_a", "row_b")))
            over = with_interval(t, seeds=t) if t else "no spread: no test" if seeds > 1 else "one seed: no test"
            seen = " and ".join(word for word, test in (("seeds", t), ("questions", asked)) if sign(test)) or "neither"
            cells = [over, with_interval(asked, questions=asked), str(seeds), budget]
            yield [compared(paper, claim), *cells, f"{UNTESTABLE} {reason}" if reason else seen]
    if not shown:
        yield ["no two rows of a claim", "not run", *[NONE] * 4]


def printed_tests(paper: Paper) -> list[tuple]:
    """(row, data set, test) of every published P@1 with a baseline; figures that a checkpoint's row repeats are one."""
    known, found = [], []
    for row, content in paper.rows.items():
        for dataset, cells in content["published"].items():
            if content.get("baseline") and not any(cells is one for one in known):
                known.append(cells)
                if (test := as_printed(paper, row, dataset, "p@1")) is not None:
                    found.append((row, dataset, test))
    return found


def t_tests(root: Path, name: str):
    paper = Paper(root, name)
    tests = printed_tests(paper)
    datasets, rows = (dict.fromkeys(one[place] for one in tests) for place in (1, 0))
    by_place, signs = {(row, dataset): test for row, dataset, test in tests}, Counter(sign(test) for *_, test in tests)
    yield (
        f"P@1 as printed, minus that of the baseline, in points [95 % interval over {paper.data['runs']} seeds]: {signs[1]} of "
        f"{len(tests)} are better at 95 %, {signs[-1]} worse. † better than the baseline row over seeds, ‡ over questions, both at 95 %; "
        "↓ worse. Underlined: better over seeds."
    )
    for row in rows:
        cells = [by_place.get((row, dataset)) for dataset in datasets]
        yield [
            paper.title(row),
            paper.title(paper.rows[row]["baseline"]),
            *(with_interval(cell, seeds=cell) if cell else NONE for cell in cells),
        ]
