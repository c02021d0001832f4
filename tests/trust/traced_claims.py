"""What the book says of claims and of tests, ours and printed, counted again as in `traced`."""

from collections import Counter
from pathlib import Path

from . import traced_reasons
from .traced import (
    BUDGETS,
    EVERY,
    NAMES,
    NONE,
    PAPERS,
    UNTESTABLE,
    Paper,
    as_printed,
    mark,
    over_both,
    over_questions,
    over_seeds,
    p_value,
    points,
    sign,
    untrained,
    values,
)

PRE_TRAINING = ("sentence_objectives", "contextual_as2", "joint_inference")


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
    """The claims with runs or a reason for none, the others below one line."""
    paper = Paper(root, name)
    every = [(claim, claimed(paper, claim)) for claim in paper.claims()]
    together = any(traced_reasons.on_dev(paper, claim, *found[:2]) for claim, (_, found, _, _) in every)
    known = {claim["id"] for claim, (_, (_, _, seeds), _, reason) in every if seeds or reason}
    for one in every:
        if one[0]["id"] in known:
            yield claim_line(paper, *one, together)
    without = [one for one in every if one[0]["id"] not in known]
    if without:
        missing = len({claim["id"] for claim, _ in without})
        yield f"{missing} of {missing + len(known)} claims without runs of ours"
    for one in without:
        yield claim_line(paper, *one, together)


def claim_line(paper: Paper, claim: dict, found: tuple, together: bool) -> list[str]:
    printed, (ours, other, seeds), test, reason = found
    head = [f"{claim['claim']} {claim['where']}"] if claim["first"] else []
    text = [*head, compared(paper, claim), f"{NONE if printed is None else f'{printed:+.1f}'} claimed {claim['sign']}"]
    origin = f"{seeds} seed{'s' * (seeds > 1)}, {ours[0]['budget']}" if seeds else "" if reason else f"needs {needed(paper, claim)}"
    cells = [f"{points(test)} {origin}".strip()]
    last = NONE
    if dev := traced_reasons.on_dev(paper, claim, ours, other):
        both = traced_reasons.on_dev(paper, claim, ours, other, with_test=True)
        last = f"{points(dev)} {direction(claim, dev, reason)} pooled {points(both)} {direction(claim, both, reason)}"
    return [*text, *cells, f"{direction(claim, test, reason)} {reason}".strip(), *([last] if together else [])]


def needed(paper: Paper, claim: dict) -> str:
    """The first budget of the paper's file that has both rows and the data set of a claim."""
    name = claim["dataset"].removesuffix("_dev").removesuffix("_test")
    for budget in EVERY[1:]:
        entry = paper.data["budgets"].get(budget, {})
        has_data = name in [*entry.get("datasets", []), *entry.get("claims", [])]
        if has_data and not {claim["row_a"], claim["row_b"]} - set(entry["rows"]):
            return budget
    raise ValueError(f"no budget of {paper.name} has the rows and the data set of {claim['id']}")


def asked(paper: Paper, laptop: bool) -> list[tuple]:
    """(claim, what `claimed` gives) of all claims on the paper's own data sets, or of those that the laptop asks of ours."""
    if not laptop:
        return [(claim, claimed(paper, claim)) for claim in paper.claims()]
    entry, every = paper.data["budgets"].get("laptop", {"rows": []}), {}
    for claim in paper.claims():
        dataset = entry.get("asked_of", {}).get(claim["dataset"])
        if dataset and {claim["row_a"], claim["row_b"]} <= set(entry["rows"]):
            key = (claim["row_a"], claim["row_b"], claim["metric"], claim["sign"], dataset)
            every.setdefault(key, claim | {"dataset": dataset})
    return [(claim, claimed(paper, claim, ("laptop",))) for claim in every.values()]


def tested(every: list[tuple]) -> dict[int, float]:
    """Place of a claim that was tested -> its p by Holm's rule."""
    p_values = {place: test[3] for place, (_, (_, _, test, reason)) in enumerate(every) if test and not reason}
    least, adjusted = 0.0, {}
    for number, place in enumerate(sorted(p_values, key=p_values.get)):
        least = adjusted[place] = max(least, min(1.0, (len(p_values) - number) * p_values[place]))
    return adjusted


def findings(root: Path, name: str):
    """For each kind of questions how many tests came out how, then a line for each claim that has runs, or a reason for none."""
    paper = Paper(root, name)
    for laptop, kind in ((False, "The paper's data sets, budget small and above."), (True, "Our own questions, budget laptop.")):
        every = asked(paper, laptop)
        holm, groups = tested(every), {}
        for place, (claim, found) in enumerate(every):
            groups.setdefault(claim["id"], []).append((claim, found, holm.get(place)))
        if every:
            yield f"{kind} {outcomes(paper, every, holm, groups, laptop)}."
        for group in groups.values():
            claim, (_, (ours, other, seeds), _, reason), _ = group[0]
            head = f"{claim['claim']} {claim['where']}"
            if seeds:
                seen = f"{seeds} seed{'s' * (seeds > 1)}, budget {ours[0]['budget']}, {' and '.join(models(ours, other))}"
                where = f"{compared(paper, claim).removesuffix(', ' + NAMES[claim['metric']])}, {seen}"
                yield f"{head} {where}: {'; '.join(result(*one) for one in group)}."
            elif reason:
                yield f"{head} {UNTESTABLE} : {reason}."


def scorecard(root: Path):
    """A line for each paper and kind of questions: its claims by their word on their last metric."""
    for name in PAPERS:
        paper = Paper(root, name)
        for laptop, kind in ((False, "its own"), (True, "ours")):
            words = {claim["id"]: direction(claim, *found[2:]) for claim, found in asked(paper, laptop)}
            count = Counter(words.values())
            cells = [str(count[word] or NONE) for word in ("shows", "unclear", "opposite", UNTESTABLE, "not run")]
            what = "pre-trains on text" if name in PRE_TRAINING else "changes how labels are learnt"
            yield [*([] if laptop else [f"{paper.data['title']} {what}"]), kind, *cells]


def outcomes(paper: Paper, every: list[tuple], holm: dict[int, float], groups: dict, laptop: bool) -> str:
    words = {place: direction(every[place][0], every[place][1][2]) for place in holm}
    count = Counter(words.values())
    kept = Counter(word for place, word in words.items() if how_far(every[place], holm[place]) == "finding")
    each = []
    for word, said in (("shows", "show"), ("unclear", "unclear"), ("opposite", "opposite")):
        believed = f" ({kept[word]} finding{'s' if kept[word] > 1 else ''})" if kept[word] else ""
        each.append(f"{count[word]} {said}{believed}")
    without = [claim for (claim, found, _), *_ in groups.values() if not found[1][2] and not found[3]]
    waiting = f"{len(without)} of {len(groups)} claims have no runs yet"
    if not laptop:
        budgets = Counter(needed(paper, claim) for claim in without)
        waiting += ": " + ", ".join(f"{budgets[budget]} need budget {budget}" for budget in EVERY if budget in budgets)
    parts = [f"{len(holm)} tests: {', '.join(each)}"] * bool(holm) + [waiting] * bool(without)
    return ". ".join(parts) or "Nothing could be tested"


def how_far(one: tuple, holm: float) -> str:
    """Whether a difference that was tested is a finding, a hint, or can be chance."""
    claim, (_, (ours, other, _), test, _) = one
    if not sign(test):
        return "can be chance"
    seeds = over_seeds(ours, other, claim["metric"])
    repeats = sign(seeds) == sign(test) if seeds else untrained(ours) and untrained(other)
    return "finding" if holm < 0.05 and repeats else "hint"


def findings_and_hints(root: Path):
    """The differences that are a finding or a hint somewhere: by the last metric of a claim, a line for each two rows."""
    places, again = ("wikiqa", "trecqa", "hotpotqa", "ours"), {}
    for name in PAPERS:
        paper, lines = Paper(root, name), {}
        last = {claim["id"]: claim["metric"] for claim in paper.claims()}
        for laptop in (False, True):
            every = asked(paper, laptop)
            for place, holm in sorted(tested(every).items()):
                claim, (_, (ours, other, _), test, _) = every[place]
                if claim["metric"] == last[claim["id"]]:
                    word = how_far(every[place], holm)
                    opposite = "opposite " * (direction(claim, test) == "opposite")
                    cell = f"{100 * test[0]:+.1f} {opposite}{word}".replace("-0.0", "+0.0")
                    if dev := traced_reasons.on_dev(paper, claim, ours, other):
                        cell += f" dev {100 * dev[0]:+.1f}".replace("-0.0", "+0.0")
                        again.setdefault((laptop, word), []).append((dev[0] * test[0] > 0, sign(dev) == sign(test)))
                    rows = claim["row_a"], claim["row_b"], claim["sign"]
                    lines.setdefault(rows, {})["ours" if laptop else claim["dataset"]] = cell
        kept = {rows: cells for rows, cells in lines.items() if any("chance" not in cell for cell in cells.values())}
        if kept:
            yield [paper.data["title"]]
        for (row, other, _), cells in kept.items():
            yield [f"{paper.title(row)} − {paper.title(other)}", *(cells.get(place, NONE) for place in places)]
    said = ""
    for laptop, whose in ((False, "public"), (True, "our own")):
        known = [(word, again[laptop, word]) for word in ("finding", "hint") if (laptop, word) in again]
        of = "{} of {} {}s have the same sign and {} show again"
        each = [of.format(sum(one for one, _ in kept), len(kept), word, sum(one for _, one in kept)) for word, kept in known]
        said += f" On {whose} ones {'; '.join(each)}." if each else ""
    if said:
        yield f"Dev questions that chose nothing are a second sample.{said}"


def models(ours: list[dict], other: list[dict]) -> dict[str, None]:
    """The names of the models that the runs of two rows began with."""
    names = {}
    for record in (*ours, *other):
        settings = {one["name"]: one["settings"] for one in record.get("earlier", [])}
        model = record["settings"].get("first_run") or record["settings"].get("model", "")
        while model in settings:
            model = settings[model].get("model", "")
        names[model.rsplit("/", 1)[-1]] = None
    return names


def result(claim: dict, found: tuple, holm: float | None) -> str:
    """A claim's words on one metric."""
    _, _, test, reason = found
    if holm is None:
        return f"{NAMES[claim['metric']]} {direction(claim, test, reason)}" + f" ({reason})" * bool(reason)
    p_values = [p_value(test), p_value((0, 0, 0, holm)).replace("p", "Holm", 1)]
    if seeds := over_seeds(*found[1][:2], claim["metric"]):
        p_values.append(f"over seeds {p_value(seeds)}")
    word = how_far((claim, found), holm)
    said = word if word == "can be chance" else f"a {word}"
    return f"{NAMES[claim['metric']]} {points(test)} {direction(claim, test)} ({said}: {', '.join(p_values)})"


def quoted(root: Path, expression: str, shown: str) -> str:
    """What a figure in the text of a page must say, by its expression; words are repeated where their direction is right, else ""."""
    name, metric, _, row, *rest = expression.split()
    other = rest[1] if rest[0] == "-" else None
    rest = rest[2:] if other else rest
    (_, dataset, _, budget), rest = rest[:4], rest[4:]
    over = rest[1:2] if rest[:1] == ["over"] else []
    said = rest[2 * len(over) + 1 :]
    paper = Paper(root, name)
    if not other:
        known = [one for one in paper.records if (one["dataset"], one["budget"]) == (dataset, budget)]
        own = [one for one in known if one["row"] == row]
        baseline = [one["baselines"][row][metric] for one in known if (one.get("baselines") or {}).get(row)][:1]
        figures = values(own, metric) if row in paper.rows else baseline
        return f"{100 * sum(figures) / len(figures):.{decimals(shown)}f}"
    ours, theirs, _ = paper.pair(row, other, dataset, (budget,))
    test = over_questions(ours, theirs, metric)
    if over:
        test = traced_reasons.on_dev(
            paper, {"row_a": row, "row_b": other, "dataset": dataset, "metric": metric}, ours, theirs, over[0] == "both"
        )
    if said:
        right = sign(test) == {"better": 1, "worse": -1, "unclear": 0}[said[0]]
        told = {word for word in ("finding", "hint") if word in shown.split()}
        return shown if right and (not told or told == {said_of_claim(paper, {row, other}, metric, dataset, budget)}) else ""
    return f"{100 * test[0]:+.{decimals(shown)}f}"


def said_of_claim(paper: Paper, rows: set[str], metric: str, dataset: str, budget: str) -> str:
    """How far the difference of a claim's two rows can be believed; "" where no claim is about them."""
    every = asked(paper, budget == "laptop")
    for place, holm in tested(every).items():
        claim = every[place][0]
        if ({claim["row_a"], claim["row_b"]}, claim["metric"], claim["dataset"]) == (rows, metric, dataset):
            return how_far(every[place], holm)
    return ""


def decimals(shown: str) -> int:
    return len(shown.partition(".")[2])


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
    return f"{gain}{mark(seeds, questions, with_p=False)} {reach}, {p_value(test)}"


def two_tests(root: Path, name: str):
    paper, shown = Paper(root, name), False
    for claim in paper.claims():
        _, (ours, theirs, seeds), asked, reason = claimed(paper, claim)
        if seeds:
            budget, metric, shown = ours[0]["budget"], claim["metric"], True
            t = over_seeds(ours, theirs, metric)
            over = with_interval(t, seeds=t) if t else "one seed: no test"
            seen = " and ".join(word for word, test in (("seeds", t), ("questions", asked)) if sign(test)) or "neither"
            both = over_both(ours, theirs, metric)
            together = with_interval(both) if both else "one seed" if asked else NONE
            cells = [over, with_interval(asked, questions=asked), together, str(seeds), budget]
            yield [compared(paper, claim), *cells, f"{UNTESTABLE} {reason}" if reason else seen]
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
