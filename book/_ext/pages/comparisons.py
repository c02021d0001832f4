"""One row against another: by the printed figures, over seeds, over questions, and what the questions of a test set can show at all."""

import html
from typing import NamedTuple

import pandas as pd

from aslab import papers, records
from aslab.papers import claims, claims_asked
from aslab.records import COMMITTED, HERE, PER_CLAIM, PER_CONTEXT, PER_QUESTION, no_spread, per_question, values
from aslab.show import markup
from aslab.show.markup import LEGEND, NAMES, Html
from asutil.data import answers
from asutil.io import rundir
from asutil.metrics import significance
from asutil.metrics.significance import Comparison
from pages import testable

LOST = 20  # one question in so many that a better system loses: for the table of what can be seen


class Outcome(NamedTuple):
    """A claim on one metric, tested with our runs: where, over its questions, over those of dev as well, and why nothing can be tested."""

    claim: dict
    where: "Pair | None"
    questions: Comparison | None
    pooled: Comparison | None
    reason: str

    @property
    def word(self) -> str:
        return testable.VERDICT if self.reason else direction(self.claim, self.questions)


class Pair(NamedTuple):
    """Two rows on one data set, from one source at one budget: the seeds that both have, and every record of that data set there.

    The one run of an untrained encoder stands for every seed: it has no spread.
    """

    dataset: str
    source: str
    budget: str
    seeds: list[int]
    lines: pd.DataFrame

    @property
    def shown_budget(self) -> str:
        return self.budget + (f", {HERE}" if self.source == HERE else "")

    def of(self, row: str) -> pd.DataFrame:
        """A row's records with the pair's seeds."""
        lines = self.lines[self.lines.row == row]
        return lines if no_spread(lines) else lines[lines.seed.isin(self.seeds)]


def pairs(found: pd.DataFrame, row: str, other: str, dataset: str, budgets=rundir.BUDGETS[1:]):
    """Where two rows can be compared: the committed results first, of each source the largest budget first."""
    known = found[found.dataset == dataset]
    if not {row, other} <= set(known.row):
        return
    for source in (COMMITTED, HERE):
        for budget in reversed(budgets):
            lines = known[(known.source == source) & (known.budget == budget)]
            seeds = _common_seeds([lines[lines.row == name] for name in (row, other)])
            if seeds:
                yield Pair(dataset, source, budget, seeds, lines)


def _common_seeds(sides: list[pd.DataFrame]) -> list[int]:
    each = [set(lines.seed) for lines in sides]
    spread = [seeds for seeds, lines in zip(each, sides) if not no_spread(lines)]
    return sorted(set.intersection(*(spread or each))) if all(each) else []


def given(paper: str, found: pd.DataFrame | None, folder) -> tuple[dict, pd.DataFrame]:
    """A paper's rows and its records, read anew where they are not given."""
    return papers.read(paper, folder), records.records(paper, folder=folder) if found is None else found


# ------------------------------------------------------------------ the two tests


def printed_points(published, unit: str) -> tuple[float, float] | None:
    """Mean and std of a published cell in points; None for a cell without a number of its own."""
    scale = 100 if unit == "fraction" else 1
    if isinstance(published, list):
        return published[0] * scale, published[1] * scale
    return (published * scale, 0.0) if isinstance(published, int | float) else None


def printed(data: dict, row: str, dataset: str, metric: str) -> Comparison | None:
    """Student's t of a published cell against its baseline row, from printed means, standard deviations and number of runs.

    Paper: sentence_objectives, table 1.
    Returns: values from 0 to 1; None where a row has no baseline, or the paper prints no deviation or number of runs.
    """
    baseline = data["rows"][row].get("baseline")
    cells = [data["rows"][name]["published"].get(dataset, {}).get(metric) for name in (row, baseline) if name]
    if not baseline or not data.get("runs") or not all(isinstance(one, list) for one in cells):
        return None
    (mean, std), (other, other_std) = ([x / 100 for x in printed_points(cell, data["unit"])] for cell in cells)
    return significance.student_t_from_summary(mean, std, data["runs"], other, other_std, data["runs"])


def over_seeds(lines: pd.DataFrame, row: str, other: str, metric: str) -> Comparison | None:
    """Student's t of one row's seeds against another's; None for fewer than two seeds a side."""
    sides = [values(lines[lines.row == name], metric) for name in (row, other)]
    return significance.student_t(*sides) if min(map(len, sides)) > 1 else None


def over_questions(
    pair: Pair, row: str, other: str, metric: str, draws: int = 10_000, of=per_question
) -> Comparison | None:
    """Paired bootstrap of two rows, each question's value the mean over the seeds that both have; None for other metrics.

    A question without evidence has no average precision, and is not drawn where that is compared.

    Args:
        of: a record -> its values of every question; None is returned where it gives None for one of them.
    """
    column, sides = (PER_QUESTION | PER_CLAIM | PER_CONTEXT).get(metric), []
    if column is None:
        return None
    for name in (row, other):
        tables = [of(one) for one in pair.of(name).itertuples()]
        if any(table is None for table in tables):
            return None
        values = pd.concat([table[column] for table in tables], axis=1).mean(axis=1)
        sides.append(values.dropna() if metric in PER_CONTEXT else values)
    return significance.paired_bootstrap(*sides, draws=draws)


def direction(claim: dict, pair: Comparison | None) -> str:
    """`shows` when the whole interval lies on the claimed side, `opposite` when it lies on the other, else `unclear`; `not run`."""
    if pair is None:
        return "not run"
    return {1: "shows", -1: "opposite", 0: "unclear"}[pair.sign if claim["sign"] == "+" else -pair.sign]


def outcome(data: dict, found: pd.DataFrame, claim: dict, draws: int = 10_000, where: "Pair | None" = None) -> Outcome:
    """A claim on one metric with the best runs of its two rows that there are, see `pairs`, or with those given."""
    a, b, metric = claim["row_a"], claim["row_b"], claim["metric"]
    where = where or next(pairs(found, a, b, claim["dataset"]), None)
    if where is None:
        return Outcome(claim, None, None, None, testable.of_rows(data, (a, b), claim["dataset"]))
    ours = over_questions(where, a, b, metric, draws)
    together = over_questions(where, a, b, metric, draws, of=lambda one: records.pooled(data, one))
    return Outcome(claim, where, ours, together, testable.of_pair(data, where.of(a), where.of(b), metric))


def printed_tests(data: dict, metric: str = "p@1") -> pd.DataFrame:
    """The t test of every published row that names a baseline: row, baseline, dataset, pair (a Comparison)."""
    rows, known = [], []
    for name, row in data["rows"].items():
        for dataset, cells in row["published"].items() if row.get("baseline") else ():
            if not any(
                cells is other for other in known
            ):  # a released checkpoint's row repeats the figures that were printed once
                rows.append((name, row["baseline"], dataset, printed(data, name, dataset, metric)))
                known.append(cells)
    return pd.DataFrame([row for row in rows if row[-1]], columns=["row", "baseline", "dataset", "pair"])


# ------------------------------------------------------------------ tables


def claims_table(paper: str, found: pd.DataFrame | None = None, draws: int = 10_000, folder=None) -> str:
    """The paper's claims as HTML: row A minus row B, the printed difference beside ours, paired by question, with its 95 % interval.

    The last column is over the questions of dev and test together, where dev chose nothing; it is not there where no claim has it.
    Deviation: D-116, D-117, D-118.
    """
    data, found = given(paper, found, folder)
    every = [outcome(data, found, claim, draws) for claim in claims(data)]
    together = any(one.pooled for one in every)
    body = [markup.line(_claim_cells(data, one, together)) for one in every]
    heads = ["Claim", "Row A − row B", "Claimed", "Paper", "Ours [95 %]", "Seeds", "Budget", "Direction"]
    title = "Differences in points."
    if together:
        heads.append("Ours, dev and test pooled [95 %]")
        title += " The last column is ours alone: dev chose nothing in these runs, so its questions may be counted with those of test."
    return markup.table(title, heads, body)


def _claim_cells(data: dict, one: Outcome, together: bool) -> list:
    """A line of the table; the words of a claim stand once, beside the lines of all its metrics."""
    claim, where = one.claim, one.where
    theirs = [_published(data, claim[row], claim) for row in ("row_a", "row_b")]
    same = [other["metric"] for other in claims(data) if other["id"] == claim["id"]]
    text = Html(f"{html.escape(claim['claim'])} <small>{html.escape(claim['where'])}</small>")
    return [
        *([markup.cell(text, rowspan=str(len(same)))] if claim["metric"] == same[0] else []),
        _compared(data, claim),
        claim["sign"],
        markup.number(f"{theirs[0][0] - theirs[1][0]:+.1f}" if all(theirs) else "–"),
        markup.number(markup.points(one.questions)),
        *((len(where.seeds), where.shown_budget) if where else "––"),
        markup.said(one.word, one.reason),
        *([_pooled_cell(one)] if together else []),
    ]


def laptop_claims_table(paper: str, found: pd.DataFrame | None = None, draws: int = 10_000, folder=None) -> str:
    """The claims that the laptop budget asks of its own questions as HTML: the committed runs, and under them those of this machine."""
    (data, found), body = given(paper, found, folder), []
    for claim in claims_asked(data, "laptop"):
        where = list(pairs(found, claim["row_a"], claim["row_b"], claim["dataset"], ("laptop",))) or [None]
        text = Html(f"{html.escape(claim['claim'])} <small>{html.escape(claim['where'])}</small>")
        head = [markup.cell(cell, rowspan=str(len(where))) for cell in (text, _compared(data, claim), claim["sign"])]
        for pair in where:
            one = outcome(data, found, claim, draws, pair) if pair else Outcome(claim, None, None, None, "")
            origin = ["ours, this machine" if pair.source == HERE else "ours", len(pair.seeds)] if pair else "––"
            body.append(
                markup.line(
                    [*head, markup.number(markup.points(one.questions)), *origin, markup.said(one.word, one.reason)]
                )
            )
            head = []
    heads = ["The paper's claim", "Row A − row B", "Claimed", "Difference [95 %]", "From", "Seeds", "Direction"]
    return markup.table("Budget laptop, our own questions. Differences in points.", heads, body)


def _pooled_cell(one: Outcome) -> Html:
    if not one.pooled:
        return markup.number("–")
    word = one.word if one.reason else direction(one.claim, one.pooled)
    return markup.number(Html(f"{markup.points(one.pooled)}<small>{word}</small>"))


def _published(data: dict, row: str, claim: dict) -> tuple[float, float] | None:
    return printed_points(data["rows"][row]["published"].get(claim["dataset"], {}).get(claim["metric"]), data["unit"])


def _head(name: str) -> Html:
    return markup.cell(name, "th", scope="row")


def _compared(data: dict, claim: dict) -> str:
    rows, dataset = data["rows"], claim["dataset"]
    return f"{rows[claim['row_a']]['name']} − {rows[claim['row_b']]['name']}, {NAMES.get(dataset, dataset)}, {NAMES[claim['metric']]}"


def own_tests(data: dict, found: pd.DataFrame, draws: int = 10_000) -> pd.DataFrame:
    """Both tests of our runs for each claim that has some.

    Columns: name, budget, seeds (how many), over_seeds and over_questions (Comparisons or None), reason (why nothing can be tested).
    """
    rows = []
    for claim in claims(data):
        one = outcome(data, found, claim, draws)
        if where := one.where:
            seeds = over_seeds(where.lines, claim["row_a"], claim["row_b"], claim["metric"])
            rows.append(
                (_compared(data, claim), where.shown_budget, len(where.seeds), seeds, one.questions, one.reason)
            )
    return pd.DataFrame(
        rows, columns=["name", "budget", "seeds", "over_seeds", "over_questions", "reason"], dtype=object
    )


def two_tests_table(paper: str, found: pd.DataFrame | None = None, draws: int = 10_000, folder=None) -> str:
    """Our runs as HTML: for each claim's two rows Student's t over seeds beside the bootstrap over questions."""
    data, found = given(paper, found, folder)
    body = []
    for name, budget, seeds, t, asked, reason in own_tests(data, found, draws).itertuples(index=False):
        seen = (
            " and ".join(test for test, pair in (("seeds", t), ("questions", asked)) if pair and pair.sign) or "neither"
        )
        over = _tested(t, "row B") if t else "no spread: no test" if seeds > 1 else "one seed: no test"
        word = markup.said(testable.VERDICT, reason) if reason else seen
        body.append(markup.line([_head(name), over, _tested(None, "row B", asked), seeds, budget, word]))
    if not body:
        body = [markup.line(["no two rows of a claim", markup.word("not run"), *"––––"])]
    heads = [
        "Row A − row B",
        "Over seeds: t [95 %]",
        "Over questions: bootstrap [95 %]",
        "Seeds",
        "Budget",
        "Seen over",
    ]
    return markup.table(f"Differences in points. {LEGEND.replace('the baseline row', 'row B')}", heads, body)


def printed_table(paper: str, metric: str = "p@1", folder=None) -> str:
    """The published gains over each backbone as HTML, with their t tests: a line a row, a column a data set."""
    data = papers.read(paper, folder)
    tests = printed_tests(data, metric)
    names = list(dict.fromkeys(tests.dataset))
    body = []
    for row, of_row in tests.groupby("row", sort=False):
        pair = of_row.set_index("dataset").pair
        against = data["rows"][of_row.baseline.iloc[0]]["name"]
        shown = [_tested(pair.get(name), against) for name in names]
        body.append(markup.line([_head(data["rows"][row]["name"]), against, *shown]))
    signs = [pair.sign for pair in tests.pair]
    counts = f"{signs.count(1)} of {len(signs)} are better at 95 %, {signs.count(-1)} worse"
    title = f"{NAMES[metric]} as printed, minus that of the baseline, in points [95 % interval over {data.get('runs')} seeds]: {counts}."
    title = f"{title} {LEGEND}"
    return markup.table(title, ["Row", "Baseline", *(NAMES.get(name, name) for name in names)], body)


def _tested(seeds: Comparison | None, against: str, questions: Comparison | None = None) -> Html:
    """The difference with its mark, and below it the interval and p of the one test that is given."""
    pair = seeds or questions
    if pair is None:
        return markup.number("–")
    gain, reach = markup.points(pair).split(" ", 1)
    return markup.marked(gain, against, seeds, questions, f"{reach}, {markup.probability(pair.p_value)}")


def limits(data: dict, metric: str = "p@1") -> pd.DataFrame:
    """What a test set can show: one line a data set and baseline row, in points.

    Columns: dataset, baseline, questions; mean and std of the baseline as printed; low and high, the binomial 95 % interval of its P@1
    over questions; gain and gain_lost, the smallest gains that a paired bootstrap sees when no question is lost and when one in 20 is;
    largest and best, the largest gain that the paper prints and its row.
    """
    rows = []
    for (dataset, baseline), tests in printed_tests(data, metric).groupby(["dataset", "baseline"], sort=False):
        asked = answers.COUNTS.get(dataset, {}).get("clean", {}).get("test", (None,))[0]
        if asked:
            mean, std = printed_points(data["rows"][baseline]["published"][dataset][metric], data["unit"])
            interval = [100 * x for x in significance.proportion_interval(mean / 100, asked)]
            gains = [100 * significance.smallest_gain(asked, lost) / asked for lost in (0, round(asked / LOST))]
            largest = max(tests.itertuples(), key=lambda one: one.pair.difference)
            most = 100 * largest.pair.difference
            rows.append((dataset, baseline, asked, mean, std, *interval, *gains, most, largest.row))
    names = ["dataset", "baseline", "questions", "mean", "std", "low", "high", "gain", "gain_lost", "largest", "best"]
    return pd.DataFrame(rows, columns=names)


def limits_table(paper: str, folder=None) -> str:
    """`limits` as HTML."""
    data, body = papers.read(paper, folder), []
    for at in limits(data).itertuples():
        figures = [f"{at.questions:,}", f"{at.mean:.1f}", f"± {at.std:.1f}", f"± {(at.high - at.low) / 2:.1f}"]
        figures += [f"{at.gain:.1f}", f"{at.gain_lost:.1f}"]
        best = markup.number(Html(f"{at.largest:+.1f}<small>{html.escape(data['rows'][at.best]['name'])}</small>"))
        head = _head(f"{NAMES.get(at.dataset, at.dataset)}, {data['rows'][at.baseline]['name']}")
        body.append(markup.line([head, *map(markup.number, figures), best]))
    heads = [
        "Data set and row",
        "Test questions",
        "P@1",
        "std over seeds",
        "95 % over questions",
        "Smallest gain seen",
        f"if one in {LOST} is lost",
    ]
    title = "In points. A gain is seen when the 95 % interval of a paired bootstrap over the questions lies above zero."
    return markup.table(title, [*heads, "Largest gain printed"], body)


# ------------------------------------------------------------------ plots


def gains_plot(paper: str, folder=None):
    """The published gains in P@1 with their intervals over seeds, a panel a data set; dashed: the smallest gain seen over questions.

    Returns: None for a paper whose rows name no baseline.
    """
    data = papers.read(paper, folder)
    tests, at = printed_tests(data), limits(data).drop_duplicates("dataset").set_index("dataset")
    frame = tests.assign(name=[data["rows"][row]["name"] for row in tests.row], test="seeds, as printed")
    titles = {name: f"{NAMES.get(name, name)}, {at.questions[name]:,} questions" for name in at.index}
    frame["panel"] = [titles.get(name, NAMES.get(name, name)) for name in frame.dataset]
    return None if frame.empty else intervals_plot(frame, {titles[name]: at.gain[name] for name in at.index})


def own_plot(paper: str, found: pd.DataFrame | None = None, folder=None):
    """Our differences for each claim that can be tested, with the intervals over seeds and over questions; None where there is none."""
    data, found = given(paper, found, folder)
    wide = own_tests(data, found)
    wide = wide[wide.reason == ""]
    sides = [wide.assign(test=test.replace("over_", ""), pair=wide[test]) for test in ("over_seeds", "over_questions")]
    frame = pd.concat(sides).dropna(subset="pair")
    return intervals_plot(frame.assign(panel="ours")) if len(frame) else None


def intervals_plot(frame: pd.DataFrame, smallest: dict | None = None):
    """Differences with their 95 % intervals in points as a matplotlib Figure: an arrowhead up is better, one down worse, a dot neither.

    Args:
        frame: name (a line), panel, test (a colour), pair (a Comparison).
        smallest: panel -> the gain at its dashed line.
    """
    import seaborn
    from matplotlib.figure import Figure

    panels, names, tests = (list(dict.fromkeys(frame[column])) for column in ("panel", "name", "test"))
    figure = Figure(
        figsize=(max(8.0, 3 + 2.2 * len(panels)), 1.4 + 0.26 * len(names) * len(tests)), layout="constrained"
    )
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    colours = dict(zip(tests, seaborn.color_palette("colorblind")))
    flat = pd.DataFrame({"Interval over": frame.test, "panel": frame.panel})
    flat["difference"] = [100 * pair.difference for pair in frame.pair]
    flat["Difference"] = [{1: "better", 0: "neither", -1: "worse"}[pair.sign] for pair in frame.pair]
    flat["place"] = [
        names.index(one.name) + 0.3 * (tests.index(one.test) - (len(tests) - 1) / 2)
        for one in frame.itertuples(index=False)
    ]
    flat["low"], flat["high"] = ([100 * pair.interval[side] for pair in frame.pair] for side in (0, 1))
    for axis, panel in zip(axes, panels):
        part = flat[flat.panel == panel]
        axis.hlines(part.place, part.low, part.high, colors=[colours[test] for test in part["Interval over"]])
        marks = {
            "style_order": ["better", "neither", "worse"],
            "markers": {"better": "^", "neither": "o", "worse": "v"},
        }
        looks = {"hue": "Interval over", "palette": colours, "style": "Difference", "s": 50, "zorder": 3, **marks}
        seaborn.scatterplot(
            part, x="difference", y="place", ax=axis, legend="full" if axis is axes[-1] else False, **looks
        )
        axis.axvline(0, color="black", linewidth=0.8)
        if smallest and panel in smallest:
            axis.axvline(smallest[panel], color="black", linewidth=0.8, linestyle="--")
        axis.set(xlabel="difference in points", ylabel="", title=panel if len(panels) > 1 else "")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    legend = axes[-1].get_legend()
    labels = [text.get_text() for text in legend.texts]
    figure.legend(
        legend.legend_handles, labels, loc="outside lower center", ncols=len(labels), columnspacing=1.2, frameon=False
    )
    legend.remove()
    return figure
