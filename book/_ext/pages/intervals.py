"""Differences with their intervals as plots: the printed gains, and our own."""

import textwrap

import pandas as pd

from aslab import papers
from aslab.analysis import claims
from aslab.analysis.comparisons import printed_difference, rows_and_runs, rows_of_claim
from aslab.analysis.significance_tables import limits, own_tests, printed_tests
from aslab.show.markup import NAMES
from pages import findings

MARKERS = {"better": "^", "neither": "o", "worse": "v"}
NARROW = 4.5  # inches: what a phone shows almost whole
NAME_WIDTH = 46  # characters of a line of a name beside a plot
WIDE_NAME = 68  # of a name above its differences
BLOCK_GAP = 0.6  # lines between the last difference of a name and the next name
APART = 0.3  # lines between two tests of one difference
PRINTED = "as printed"
PYDOCS = "ours, on pydocs"


def gains_plot(paper: str, folder=None):
    """The published gains in P@1 with intervals over seeds, a panel a data set; dashed: the smallest gain that is seen.

    Returns: None for a paper whose rows name no baseline.
    """
    data = papers.read(paper, folder)
    tests = printed_tests(data)
    by_dataset = limits(data).drop_duplicates("dataset").set_index("dataset")
    frame = tests.assign(name=[data["rows"][row]["name"] for row in tests.row], test=PRINTED)
    titles = {name: f"{NAMES.get(name, name)}, {by_dataset.questions[name]:,} questions" for name in by_dataset.index}
    frame["panel"] = [titles.get(name, NAMES.get(name, name)) for name in frame.dataset]
    smallest = {titles[name]: by_dataset.gain[name] for name in by_dataset.index}
    return None if frame.empty else intervals_plot(frame, smallest)


def own_plot(paper: str, runs: pd.DataFrame | None = None, folder=None):
    """Our differences with both intervals, a line for each claim that can be tested; None without any."""
    tests = own_tests(*rows_and_runs(paper, runs, folder))
    tests = tests[tests.reason == ""]
    each = [tests.assign(test=f"interval over {name}", pair=tests[f"over_{name}"]) for name in ("seeds", "questions")]
    frame = pd.concat(each).dropna(subset="pair")
    return intervals_plot(frame.assign(panel="ours")) if len(frame) else None


def claims_plot(paper: str, runs: pd.DataFrame | None = None, folder=None):
    """The claims that committed runs test: the printed difference beside ours; None where no claim was tested."""
    data, runs = rows_and_runs(paper, runs, folder)
    points = claim_points(data, claims.judged(data, runs))
    return intervals_plot(points.assign(panel="claims")) if len(points) else None


def claim_points(data: dict, every: list[claims.Judged]) -> pd.DataFrame:
    """What `claims_plot` draws of the claims that were tested: name, test (whose figures), pair (a Comparison)."""
    on_papers_data = {one.outcome.claim["id"]: one.outcome.claim for one in every if one.family != claims.PYDOCS}
    pairs = {}
    for one in every:
        if one.adjusted is not None:
            claim = on_papers_data.get(one.outcome.claim["id"], one.outcome.claim)
            name = rows_of_claim(data, claim)
            pairs[name, PRINTED] = printed_difference(data, claim)
            pairs[name, PYDOCS if one.family == claims.PYDOCS else "ours"] = one.outcome.primary
    rows = [(*key, pair) for key, pair in pairs.items() if pair]
    return pd.DataFrame(rows, columns=["name", "test", "pair"], dtype=object)


def overview_plot():
    """The headline claims that committed runs test, the printed difference beside ours; None where none was tested."""
    headline = findings.headline_claims()
    parts = [claim_points(data, [one]) for data, one in headline]
    points = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return intervals_plot(points.assign(panel="claims")) if len(points) else None


def intervals_plot(frame: pd.DataFrame, smallest: dict | None = None):
    """Differences with their 95 % intervals in points as a matplotlib Figure.

    An arrowhead that points up is better, one that points down worse, a dot neither. In a single panel a name stands
    above its differences, so that the figure fits a narrow screen; several panels share the names on the left.

    Args:
        frame: name (a line), panel, test (a colour), pair (a Comparison).
        smallest: panel -> the gain at its dashed line.
    """
    import seaborn
    from matplotlib.figure import Figure

    panels, names, tests = (list(dict.fromkeys(frame[column])) for column in ("panel", "name", "test"))
    beside = len(panels) > 1
    places = _places_beside(frame, names, tests) if beside else _places_below(frame, names)
    size = (
        (max(8.0, 3 + 2.2 * len(panels)), 1.4 + 0.17 * len(names) * (len(tests) + 1))
        if beside
        else (NARROW, 1.5 + 0.155 * places.max())
    )
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    colours = dict(zip(tests, seaborn.color_palette("colorblind")))
    points = _points(frame, places)
    looks = {"hue": "Interval over", "palette": colours, "style": "Difference", "s": 50, "zorder": 3}
    looks |= {"style_order": list(MARKERS), "markers": MARKERS}
    for axis, panel in zip(axes, panels):
        part = points[points.panel == panel]
        known = part.dropna(subset="low")
        axis.hlines(known.line, known.low, known.high, colors=[colours[test] for test in known["Interval over"]])
        legend = "full" if axis is axes[-1] else False
        seaborn.scatterplot(part, x="difference", y="line", ax=axis, legend=legend, **looks)
        axis.axvline(0, color="black", linewidth=0.8)
        if smallest and panel in smallest:
            axis.axvline(smallest[panel], color="black", linewidth=0.8, linestyle="--")
        axis.set(xlabel="difference in points", ylabel="", title=panel if beside else "")
        axis.grid(axis="x", alpha=0.3)
    if beside:
        axes[0].set_yticks(range(len(names)), [textwrap.fill(name, NAME_WIDTH) for name in names])
        axes[0].invert_yaxis()
    else:
        _names_above(axes[0], {name: places[frame.name == name].min() for name in names}, places.max())
    _below(figure, axes[-1].get_legend())
    return figure


def _places_beside(frame: pd.DataFrame, names: list[str], tests: list[str]) -> pd.Series:
    """The line of each difference: of the tests of one name close to each other, with the name in their middle."""
    middle = (len(tests) - 1) / 2
    return frame.name.map(names.index) + APART * (frame.test.map(tests.index) - middle)


def _places_below(frame: pd.DataFrame, names: list[str]) -> pd.Series:
    """The line of each difference: those of one name one below the other, after the lines of the name."""
    own = frame.name.value_counts(sort=False)[names]
    name_lines = pd.Series([len(_wrapped(name)) for name in names], names)
    ends = (own + name_lines + BLOCK_GAP).cumsum()
    return frame.name.map(ends - own) + frame.groupby("name").cumcount()


def _names_above(axis, first: dict[str, float], last: float) -> None:
    """Writes each name above its differences.

    Args:
        first: the line of a name's first difference. last: of the last difference of all.
    """
    looks = {"va": "bottom", "fontsize": "small", "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5}}
    top = min(place - len(_wrapped(name)) for name, place in first.items())
    axis.set(yticks=[], ylim=(last + 0.7, top - 0.7))
    for name, place in first.items():
        words = "\n".join(_wrapped(name))
        axis.text(0.01, place - 0.5, words, transform=axis.get_yaxis_transform(), in_layout=False, **looks)


def _wrapped(name: str) -> list[str]:
    return textwrap.wrap(name, WIDE_NAME)


def _points(frame: pd.DataFrame, places: pd.Series) -> pd.DataFrame:
    """Each difference in points, its interval, and its line."""
    points = pd.DataFrame({"Interval over": frame.test, "panel": frame.panel, "line": places})
    points["difference"] = [100 * pair.difference for pair in frame.pair]
    points["Difference"] = [{1: "better", 0: "neither", -1: "worse"}[pair.sign] for pair in frame.pair]
    intervals = [pair.interval for pair in frame.pair]
    points["low"] = [100 * low for low, _ in intervals]
    points["high"] = [100 * high for _, high in intervals]
    return points


def _below(figure, legend) -> None:
    """Moves a legend below all panels, without the names of its two groups."""
    entries = zip(legend.legend_handles, (text.get_text() for text in legend.texts))
    handles, labels = zip(
        *((handle, label) for handle, label in entries if label not in ("Interval over", "Difference"))
    )
    columns = 2 if figure.get_figwidth() == NARROW else 3
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.2, frameon=False)
    legend.remove()
