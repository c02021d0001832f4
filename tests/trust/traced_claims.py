"""What the book says of claims and of tests, ours and printed, counted again as in `traced`."""

import statistics
from collections import Counter
from pathlib import Path

from . import traced, traced_verdicts
from .traced import NAMES, NONE, PAPERS, UNTESTABLE, Paper, as_printed, began_with, mark, over_seeds, p_value, points, side, sign, values
from .traced_verdicts import WORDS, Judged, Told, judged, told

PRE_TRAINING = ("sentence_objectives", "contextual_as2", "joint_inference")


def compared(paper: Paper, claim: dict) -> str:
    dataset, rows = claim["dataset"], [paper.title(claim[side]) for side in ("row_a", "row_b")]
    return f"{' − '.join(rows)}, {NAMES.get(dataset, dataset)}, {NAMES[claim['metric']]}"


def dated(words: str, claim: dict) -> str:
    return f"{words}; stated {claim['stated']}, before the runs" if claim.get("stated") else words


def printed(paper: Paper, claim: dict) -> float | None:
    """The printed difference in points."""
    theirs = [paper.published(claim[row], claim["dataset"], claim["metric"]) for row in ("row_a", "row_b")]
    return theirs[0][0] - theirs[1][0] if all(theirs) else None


def seeds_of(one: Told) -> str:
    return f"{one.seeds} seed{'s' * (one.seeds > 1)}"


def on_papers_data(paper: Paper) -> dict[str, Judged]:
    return {one.told.claim["id"]: one for one in judged(paper) if one.family != "laptop"}


# ------------------------------------------------------------------ tables of claims


def claims(root: Path, name: str):
    """The claims with runs or a reason for none, the others below one line; then those that the laptop asks."""
    paper = Paper(root, name)
    verdicts = on_papers_data(paper)
    every = [told(paper, claim) for claim in paper.claims() if claim["id"] in verdicts]
    known = {name for name, one in verdicts.items() if one.word != "not run"} | {one.claim["id"] for one in every if one.seeds}
    yield from (claim_line(paper, one, verdicts) for one in every if one.claim["id"] in known)
    without = [one for one in every if one.claim["id"] not in known]
    if without:
        yield f"{len({one.claim['id'] for one in without})} of {len(verdicts)} claims without runs of ours"
    yield from (claim_line(paper, one, verdicts) for one in without)
    yield "Budget laptop, pydocs. Differences in points over questions and seeds."
    for one in sorted(judged(paper), key=lambda one: "stated" in one.told.claim):
        if one.family == "laptop":
            ours = [points(one.told.primary), "ours", str(one.told.seeds)] if one.told.seeds else [NONE] * 3
            head = dated(compared(paper, one.told.claim), one.told.claim)
            yield [head, one.told.claim["sign"], *ours, f"{one.word} {one.told.reason}".strip()]


def claim_line(paper: Paper, one: Told, verdicts: dict[str, Judged]) -> list[str]:
    claim, gain = one.claim, printed(paper, one.claim)
    head = [f"{claim['claim']} {dated(claim['where'], claim)}"] if claim["first"] else []
    text = [*head, compared(paper, claim), f"{NONE if gain is None else f'{gain:+.1f}'} claimed {claim['sign']}"]
    origin = "" if one.reason else f"needs {traced_verdicts.needed(paper, claim)}"
    if one.seeds:
        origin = f"{f'{one.questions} questions, ' * bool(one.questions)}{seeds_of(one)}, {one.ours[0]['budget']}"
    decides = verdicts[claim["id"]] if verdicts[claim["id"]].told.claim["metric"] == claim["metric"] else None
    last = f"{decides.word} {decides.told.reason}".strip() if decides else ""
    return [*text, f"{points(one.primary)} {origin}".strip(), points(one.test), last]


# ------------------------------------------------------------------ sentences


def counted(words: list[str]) -> str:
    return ", ".join(f"{words.count(word)} {word}" for word in WORDS if word in words)


def findings(root: Path, name: str):
    """For each kind of questions how many claims have which verdict, then a sentence for each that has one."""
    paper = Paper(root, name)
    for laptop, kind in ((False, "Public data sets, with small models."), (True, "pydocs, with a model of four layers.")):
        every = [one for one in judged(paper) if (one.family == "laptop") == laptop]
        known = [one for one in every if one.word != "not run"]
        if known:
            yield f"{kind} {len(every)} claims: {counted([one.word for one in every])}."
        yield from (sentence(paper, one) for one in known)


def sentence(paper: Paper, one: Judged) -> str:
    claim = one.told.claim
    head = "" if one.family == "laptop" and "stated" not in claim else f"{claim['claim']} {dated(claim['where'], claim)} "
    if not one.told.seeds:
        return f"{head}{compared(paper, claim)}: {one.word} {one.told.reason}".strip()
    sample = "dev and test" if one.told.pooled else side(one.told.ours[0])
    questions = f"{one.told.questions} questions of {sample}, " * bool(one.told.questions)
    origin = f"{questions}{seeds_of(one.told)}, budget {one.told.ours[0]['budget']}, {' and '.join(models(one.told))}"
    notes = [result(one), *limits(paper, one)]
    return f"{head}{compared(paper, claim)}, {origin}: {one.word} {'; '.join(filter(None, notes))}."


def result(one: Judged) -> str:
    test = one.told.primary
    if test is None:
        return one.told.reason
    if one.adjusted is None:
        return f"{points(test)}; {one.told.reason}"
    return f"{points(test)}, {p_value(test)}, {p_value((0, 0, 0, one.adjusted)).replace('p', 'Holm', 1)}"


def limits(paper: Paper, one: Judged):
    """What is said after a result: the smallest effect that would be seen, the share of the printed difference, and heads."""
    if one.word == "inconclusive":
        yield f"80 % power from {100 * one.told.primary.smallest:.1f} points on"
    gain = printed(paper, one.told.claim)
    if one.family != "laptop" and one.adjusted is not None and gain:
        ratio, *ends = (100 * value / gain for value in one.told.primary[:3])
        yield f"{ratio:.1f} [{min(ends):.1f}, {max(ends):.1f}] times the printed difference"
    kept = [keeps_head(records) for records in (one.told.ours, one.told.other)]
    if None not in kept and kept[0] != kept[1]:
        yield f"row {'A' if kept[0] else 'B'} alone keeps the head of its pre-training"


def keeps_head(records: list[dict]) -> bool | None:
    """Whether a row that was pre-trained is fine-tuned from the head of its pre-training; None for one that was not pre-trained."""
    chains = [[*record.get("earlier", []), record] for record in records]
    if not all(len(chain) > 1 and chain[0].get("notebook") == "pretrain" for chain in chains):
        return None
    return any(run["settings"].get("keep_head") for chain in chains for run in chain[1:])


def models(one: Told) -> dict[str, None]:
    """The names of the models that the runs of two rows began with."""
    return dict.fromkeys(began_with(record).rsplit("/", 1)[-1] for record in (*one.ours, *one.other))


# ------------------------------------------------------------------ all papers


def headlines(root: Path) -> list[tuple[Paper, Judged]]:
    """The claims that each paper's file names as headline, by family."""
    every = [(paper, one) for paper in (Paper(root, name) for name in PAPERS) for one in judged(paper)]
    return [(paper, one) for paper, one in every if one.told.claim["id"] in paper.data["headline"] and one.family != "laptop"]


def headline(root: Path):
    """A line with the title of each paper, then one for each of its headline claims."""
    last = None
    for paper, one in headlines(root):
        if paper.name != last:
            last = paper.name
            yield [paper.data["title"]]
        claim, test, gain = one.told.claim, one.told.primary, printed(paper, one.told.claim)
        ours = f"{points(test)} {one.told.questions} questions, {seeds_of(one.told)}" if test else NONE
        cells = [NONE if gain is None else f"{gain:+.1f}", ours, f"{one.word} {one.told.reason}".strip()]
        yield [f"{claim['claim']} {dated(compared(paper, claim), claim)}", *cells]


def scorecard(root: Path):
    """A line for each paper: how many of its headline claims have which verdict."""
    words = {}
    for paper, one in headlines(root):
        words.setdefault(paper.name, []).append(one.word)
    for name, own in words.items():
        kind = "pre-trains on text" if name in PRE_TRAINING else "changes how labels are learnt"
        yield [f"{name} {kind}", counted(own)]


def answer(root: Path):
    """How many claims have which verdict, in words."""
    chosen = [one.word for _, one in headlines(root)]
    every = [one for name in PAPERS for one in judged(Paper(root, name))]
    own, pydocs = ([one.word for one in every if (one.family == "laptop") == laptop] for laptop in (False, True))
    yield (
        f"{len(chosen)} headline claims: {counted(chosen)}. In all, {len(own)} claims on public data sets: {counted(own)}. "
        f"And {len(pydocs)} claims on pydocs: {counted(pydocs)}."
    )


# ------------------------------------------------------------------ figures in the text


def quoted(root: Path, expression: str, shown: str) -> str:
    """What a figure in the text of a page must say, by its expression; words are repeated where their direction is right, else ""."""
    name, metric, _, row, *rest = expression.split()
    other = rest[1] if rest[0] == "-" else None
    rest = rest[2:] if other else rest
    (_, dataset, _, budget), rest = rest[:4], rest[4:]
    over = rest[1] if rest[:1] == ["over"] else "test"
    paper = Paper(root, name)
    if not other:
        known = [one for one in paper.records if (one["dataset"], one["budget"]) == (dataset, budget)]
        own = [one for one in known if one["row"] == row]
        baseline = [one["baselines"][row][metric] for one in known if (one.get("baselines") or {}).get(row)][:1]
        if metric == "hours":
            taken = (max(one["seconds"], one["figures"].get("training_seconds", 0)) for one in own)  # `seconds`: of the last process
            return f"{statistics.fmean(taken) / 3600:.{decimals(shown)}f}"
        figures = values(own, metric) if row in paper.rows else baseline
        return f"{100 * sum(figures) / len(figures):.{decimals(shown)}f}"
    ours, theirs, _ = paper.pair(row, other, dataset, (budget,))
    test = traced_verdicts.compared(paper, (row, other), ours, theirs, metric, over)
    if rest[-2:-1] != ["is"]:
        return points(test) if shown.endswith("]") else f"{100 * test[0]:+.{decimals(shown)}f}"
    right = sign(test) == {"better": 1, "worse": -1, "unclear": 0}[rest[-1]]
    verdicts = [word for word in WORDS[:-1] if word in shown]
    return shown if right and (not verdicts or said_of_claim(paper, {row, other}, metric, dataset, budget) in verdicts) else ""


def said_of_claim(paper: Paper, rows: set[str], metric: str, dataset: str, budget: str) -> str:
    """The verdict on the claim about two rows; "" where no claim is about them."""
    for one in judged(paper):
        claim, place = one.told.claim, (metric, dataset, budget == "laptop")
        if {claim["row_a"], claim["row_b"]} == rows and (claim["metric"], claim["dataset"], one.family == "laptop") == place:
            return one.word
    return ""


def decimals(shown: str) -> int:
    return len(shown.partition(".")[2])


# ------------------------------------------------------------------ tests


def with_interval(test, seeds=None, questions=None) -> str:
    """The difference with its mark, its interval and its p."""
    gain, reach = points(test).split(" ", 1)
    return f"{gain}{mark(seeds, questions, with_p=False)} {reach}, {p_value(test)}"


def two_tests(root: Path, name: str):
    paper, shown = Paper(root, name), False
    for one in (told(paper, claim) for claim in paper.claims()):
        if one.seeds:
            metric, shown = one.claim["metric"], True
            t, asked = over_seeds(one.ours, one.other, metric), traced.over_questions(one.ours, one.other, metric)
            over = with_interval(t, seeds=t) if t else "one seed: no test"
            seen = " and ".join(word for word, test in (("seeds", t), ("questions", asked)) if sign(test)) or "neither"
            together = with_interval(one.test) if one.test else "one seed" if asked else NONE
            questions = with_interval(asked, questions=asked) if asked else NONE
            cells = [over, questions, together, str(one.seeds), one.ours[0]["budget"]]
            yield [compared(paper, one.claim), *cells, f"{UNTESTABLE} {one.reason}" if one.reason else seen]
    if not shown:
        yield ["no two rows of a claim", "not run", *[NONE] * 5]


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
