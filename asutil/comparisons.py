"""One row against another: by the printed figures, over seeds, over questions, and what the questions of a test set can show at all."""

import html
from typing import NamedTuple

import pandas as pd

from . import experiments, markup, questions, runs, significance
from .experiments import COMMITTED, HERE
from .markup import LEGEND, NAMES, Html
from .rows import FOUND, SIDES, claims
from .significance import Comparison

PER_QUESTION = {"p@1": "p_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}
PER_CLAIM = {"label_accuracy": "label_accuracy"}
PER_CONTEXT = {name: name for name in FOUND}
LOST = 20  # one question in so many that a better system loses: for the table of what can be seen


class Pair(NamedTuple):
    """Two rows on one data set, from one source at one rung: the seeds that both have, and every record of that data set there.

    The one run of an untrained encoder stands for every seed: it has no spread.
    """

    dataset: str
    source: str
    rung: str
    seeds: list[int]
    lines: pd.DataFrame

    @property
    def budget(self) -> str:
        return self.rung + (f", {HERE}" if self.source == HERE else "")

    def of(self, row: str) -> pd.DataFrame:
        """A row's records with the pair's seeds."""
        lines = self.lines[self.lines.row == row]
        return lines if no_spread(lines) else lines[lines.seed.isin(self.seeds)]


def pairs(found: pd.DataFrame, row: str, other: str, dataset: str, rungs=experiments.RUNGS[1:]):
    """Where two rows can be compared: the committed results first, of each source the largest rung first."""
    known = found[found.dataset == dataset]
    if not {row, other} <= set(known.row):
        return
    for source in (COMMITTED, HERE):
        for rung in reversed(rungs):
            lines = known[(known.source == source) & (known.rung == rung)]
            seeds = _common_seeds([lines[lines.row == name] for name in (row, other)])
            if seeds:
                yield Pair(dataset, source, rung, seeds, lines)


def no_spread(lines: pd.DataFrame) -> bool:
    """Whether records are those of an encoder that was taken as it is."""
    return len(lines) > 0 and all(record.get("settings", {}).get("architecture") == "untrained" for record in lines.record)


def _common_seeds(sides: list[pd.DataFrame]) -> list[int]:
    each = [set(lines.seed) for lines in sides]
    spread = [seeds for seeds, lines in zip(each, sides) if not no_spread(lines)]
    return sorted(set.intersection(*(spread or each))) if all(each) else []


def given(paper: str, found: pd.DataFrame | None, folder) -> tuple[dict, pd.DataFrame]:
    """A paper's rows and its records, read anew where they are not given."""
    return experiments.read(paper, folder), experiments.records(paper, folder=folder) if found is None else found


def chain(one) -> list[dict]:
    """The records of the runs that led to a line, first to last."""
    return [*one.earlier, one.record]


def backbone(one) -> str:
    """The model that a line's runs began with; of a re-ranking that of the row that ranked first."""
    settings = {record["name"]: record["settings"] for record in one.earlier}
    model = one.record["settings"].get("first_run") or one.record["settings"].get("model", "")
    while model in settings:
        model = settings[model].get("model", "")
    return model


def reported(one) -> str:
    """The side that a run's record is about: the first that has figures of test, validation and dev."""
    measured = one.record.get("metrics", {})
    return next((name for name in ("test", "validation", "dev") if measured.get(name)), "test")


def side(one) -> str:
    """The side of its data set that a line is about: its column's, else the one that its record is about."""
    return SIDES[one.dataset][1] if one.dataset in SIDES else reported(one)


def figures(one, as_printed: bool = False) -> dict:
    """The metrics of a line's side.

    Args:
        as_printed: of a re-ranking those of its k candidates alone, as table 7 of joint_inference has them; else those of whole lists,
            which alone can be compared with other rows.
    """
    measured = one.record.get("metrics", {})
    return (as_printed and measured.get("top_k")) or measured.get(side(one), {})


def values(lines: pd.DataFrame, metric: str, as_printed: bool = False) -> list[float]:
    """One value a seed, 0 to 1; `as_printed` as of `figures`."""
    measured = [figures(one, as_printed) for one in lines.itertuples()]
    return [found[metric] for found in measured if found.get(metric) is not None]


def columns(record: dict) -> dict[str, str]:
    """The metrics of a record that have one value a question or claim, and the names of their columns."""
    return {"verify_claims": PER_CLAIM, "find_evidence": PER_CONTEXT}.get(record.get("notebook"), PER_QUESTION)


def per_question(one) -> pd.DataFrame:
    """One record's values of every question or claim, from the record itself or from its run's folder, with their ids as index."""
    if one.folder is not None:
        name = f"per_question{'' if side(one) == reported(one) else '_' + side(one)}.parquet"
        return runs.read_table(one.folder, name).set_index("question_id")
    names, values = ["question_id", *columns(one.record).values()], one.record["per_question"]
    if wrong := [row for row in values if not isinstance(row, list) or len(row) != len(names)]:
        place = f"{one.row}/{one.dataset}-{one.rung}-seed{one.seed}.json"
        raise ValueError(f"{place}: per_question is expected to have rows of {', '.join(names)}, got {wrong[0]!r:.80}")
    return pd.DataFrame(values, columns=names).set_index("question_id")


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


def over_questions(pair: Pair, row: str, other: str, metric: str, draws: int = 10_000) -> Comparison | None:
    """Paired bootstrap of two rows, each question's value the mean over the seeds that both have; None for other metrics.

    A question without evidence has no average precision, and is not drawn where that is compared.
    """
    column, sides = (PER_QUESTION | PER_CLAIM | PER_CONTEXT).get(metric), []
    if column is None:
        return None
    for name in (row, other):
        values = pd.concat([per_question(one)[column] for one in pair.of(name).itertuples()], axis=1).mean(axis=1)
        sides.append(values.dropna() if metric in PER_CONTEXT else values)
    return significance.paired_bootstrap(*sides, draws=draws)


def printed_tests(data: dict, metric: str = "p@1") -> pd.DataFrame:
    """The t test of every published row that names a baseline: row, baseline, dataset, pair (a Comparison)."""
    rows, known = [], []
    for name, row in data["rows"].items():
        for dataset, cells in row["published"].items() if row.get("baseline") else ():
            if not any(cells is other for other in known):  # a released checkpoint's row repeats the figures that were printed once
                rows.append((name, row["baseline"], dataset, printed(data, name, dataset, metric)))
                known.append(cells)
    return pd.DataFrame([row for row in rows if row[-1]], columns=["row", "baseline", "dataset", "pair"])


# ------------------------------------------------------------------ tables


def claims_table(paper: str, found: pd.DataFrame | None = None, draws: int = 10_000, folder=None) -> str:
    """The paper's claims as HTML: row A minus row B, the printed difference beside ours, paired by question, with its 95 % interval.

    The direction "shows" when the whole interval lies on the claimed side, is "opposite" when it lies on the other, else "unclear".
    """
    data, found = given(paper, found, folder)
    body = []
    for claim in claims(data):
        a, b, dataset, metric = claim["row_a"], claim["row_b"], claim["dataset"], claim["metric"]
        theirs = [printed_points(data["rows"][row]["published"].get(dataset, {}).get(metric), data["unit"]) for row in (a, b)]
        theirs = f"{theirs[0][0] - theirs[1][0]:+.1f}" if all(theirs) else "–"
        where = next(pairs(found, a, b, dataset), None)
        pair = over_questions(where, a, b, metric, draws) if where else None
        said = "not run"
        if pair:
            said = {1: "shows", -1: "opposite", 0: "unclear"}[pair.sign if claim["sign"] == "+" else -pair.sign]
        seeds, budget = (len(where.seeds), where.budget) if where else ("–", "–")
        text = Html(f"{html.escape(claim['claim'])} <small>{html.escape(claim['where'])}</small>")
        metrics = [one["metric"] for one in claims(data) if one["id"] == claim["id"]]
        head = [markup.cell(text, rowspan=str(len(metrics)))] if metric == metrics[0] else []
        body.append(
            markup.line(
                [
                    *head,
                    _compared(data, claim),
                    claim["sign"],
                    markup.number(theirs),
                    markup.number(markup.points(pair)),
                    seeds,
                    budget,
                    markup.word(said),
                ]
            )
        )
    heads = ["Claim", "Row A − row B", "Claimed", "Paper", "Ours [95 %]", "Seeds", "Budget", "Direction"]
    return markup.table("Differences in points.", heads, body)


def _head(name: str) -> Html:
    return markup.cell(name, "th", scope="row")


def _compared(data: dict, claim: dict) -> str:
    rows, dataset = data["rows"], claim["dataset"]
    return f"{rows[claim['row_a']]['name']} − {rows[claim['row_b']]['name']}, {NAMES.get(dataset, dataset)}, {NAMES[claim['metric']]}"


def own_tests(data: dict, found: pd.DataFrame, draws: int = 10_000) -> pd.DataFrame:
    """Both tests of our runs for each claim that has some: name, budget, seeds, over seeds and over questions (Comparisons or None)."""
    rows = []
    for claim in claims(data):
        a, b, metric = claim["row_a"], claim["row_b"], claim["metric"]
        for where in list(pairs(found, a, b, claim["dataset"]))[:1]:
            seeds, asked = over_seeds(where.lines, a, b, metric), over_questions(where, a, b, metric, draws)
            rows.append((_compared(data, claim), where.budget, len(where.seeds), seeds, asked))
    return pd.DataFrame(rows, columns=["name", "budget", "seeds", "over_seeds", "over_questions"], dtype=object)


def two_tests_table(paper: str, found: pd.DataFrame | None = None, draws: int = 10_000, folder=None) -> str:
    """Our runs as HTML: for each claim's two rows Student's t over seeds beside the bootstrap over questions."""
    data, found = given(paper, found, folder)
    body = []
    for name, budget, seeds, t, asked in own_tests(data, found, draws).itertuples(index=False):
        seen = [test for test, pair in (("seeds", t), ("questions", asked)) if pair and pair.sign]
        figures = [_tested(t, "row B") if t else "no spread: no test" if seeds > 1 else "one seed: no test", _tested(None, "row B", asked)]
        body.append(markup.line([_head(name), *figures, seeds, budget, " and ".join(seen) or "neither"]))
    if not body:
        body = [markup.line(["no two rows of a claim", markup.word("not run"), *"––––"])]
    heads = ["Row A − row B", "Over seeds: t [95 %]", "Over questions: bootstrap [95 %]", "Seeds", "Budget", "Seen over"]
    return markup.table(f"Differences in points. {LEGEND.replace('the baseline row', 'row B')}", heads, body)


def printed_table(paper: str, metric: str = "p@1", folder=None) -> str:
    """The published gains over each backbone as HTML, with their t tests: a line a row, a column a data set."""
    data = experiments.read(paper, folder)
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
        asked = questions.COUNTS.get(dataset, {}).get("clean", {}).get("test", (None,))[0]
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
    data, body = experiments.read(paper, folder), []
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
    data = experiments.read(paper, folder)
    tests, at = printed_tests(data), limits(data).drop_duplicates("dataset").set_index("dataset")
    frame = tests.assign(name=[data["rows"][row]["name"] for row in tests.row], test="seeds, as printed")
    titles = {name: f"{NAMES.get(name, name)}, {at.questions[name]:,} questions" for name in at.index}
    frame["panel"] = [titles.get(name, NAMES.get(name, name)) for name in frame.dataset]
    return None if frame.empty else intervals_plot(frame, {titles[name]: at.gain[name] for name in at.index})


def own_plot(paper: str, found: pd.DataFrame | None = None, folder=None):
    """Our differences for each claim, with the interval over seeds and the one over questions; None where no two rows have run."""
    data, found = given(paper, found, folder)
    wide = own_tests(data, found)
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
    figure = Figure(figsize=(max(8.0, 3 + 2.2 * len(panels)), 1.4 + 0.26 * len(names) * len(tests)), layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    colours = dict(zip(tests, seaborn.color_palette("colorblind")))
    flat = pd.DataFrame({"Interval over": frame.test, "panel": frame.panel})
    flat["difference"] = [100 * pair.difference for pair in frame.pair]
    flat["Difference"] = [{1: "better", 0: "neither", -1: "worse"}[pair.sign] for pair in frame.pair]
    flat["place"] = [names.index(one.name) + 0.3 * (tests.index(one.test) - (len(tests) - 1) / 2) for one in frame.itertuples(index=False)]
    flat["low"], flat["high"] = ([100 * pair.interval[side] for pair in frame.pair] for side in (0, 1))
    for axis, panel in zip(axes, panels):
        part = flat[flat.panel == panel]
        axis.hlines(part.place, part.low, part.high, colors=[colours[test] for test in part["Interval over"]])
        marks = {"style_order": ["better", "neither", "worse"], "markers": {"better": "^", "neither": "o", "worse": "v"}}
        looks = {"hue": "Interval over", "palette": colours, "style": "Difference", "s": 50, "zorder": 3, **marks}
        seaborn.scatterplot(part, x="difference", y="place", ax=axis, legend="full" if axis is axes[-1] else False, **looks)
        axis.axvline(0, color="black", linewidth=0.8)
        if smallest and panel in smallest:
            axis.axvline(smallest[panel], color="black", linewidth=0.8, linestyle="--")
        axis.set(xlabel="difference in points", ylabel="", title=panel if len(panels) > 1 else "")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    legend = axes[-1].get_legend()
    labels = [text.get_text() for text in legend.texts]
    figure.legend(legend.legend_handles, labels, loc="outside lower center", ncols=len(labels), columnspacing=1.2, frameon=False)
    legend.remove()
    return figure
