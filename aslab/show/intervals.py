"""Differences with their intervals as a plot: the names of what is compared on the left, the axis above and below."""

import textwrap

import numpy as np
import pandas as pd

from .picture import Later, Picture

seaborn = Later("seaborn")

MARKERS = {"better": "^", "neither": "o", "worse": "v"}
NAME_WIDTH = 34  # characters of a line of a name
WIDTH = 8.0  # inches: the width of a page's text
LINE = 0.18  # inches of a line of text, or of one test
GAP = 0.5  # lines between two names


def intervals_plot(frame: pd.DataFrame, words: str, smallest: dict | None = None, title: str = ""):
    """Differences with their 95 % intervals in points as a matplotlib Figure.

    An arrowhead that points up is better, one that points down worse, a dot neither. Panels share the names on the left.

    Args:
        frame: name (a line), panel, test (a colour), pair (a Comparison).
        words: what the figure shows, for those who do not see it.
        smallest: panel -> the gain at its dashed line.
        title: the message of a single panel.
    """
    panels, names, tests = (list(dict.fromkeys(frame[column])) for column in ("panel", "name", "test"))
    wrapped = [textwrap.fill(name, NAME_WIDTH) for name in names]
    heights = np.array([max(len(tests), 1 + name.count("\n")) + GAP for name in wrapped])
    middles = heights.cumsum() - heights / 2
    figure = Picture(words, figsize=(max(WIDTH, 3 + 2.2 * len(panels)), 1.6 + LINE * heights.sum()))
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    colours = dict(zip(tests, seaborn.color_palette("colorblind")))
    beside = frame.test.map(tests.index) - (len(tests) - 1) / 2
    points = _points(frame, frame.name.map(dict(zip(names, middles))) + beside)
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
        axis.set(xlabel="difference in points", ylabel="", title=panel if len(panels) > 1 else title)
        axis.tick_params(labeltop=True, top=True)
        axis.grid(axis="x", alpha=0.3)
    axes[0].set(yticks=middles, yticklabels=wrapped, ylim=(heights.sum(), 0))
    _above(figure, axes[-1].get_legend())
    return figure


def _points(frame: pd.DataFrame, places: pd.Series) -> pd.DataFrame:
    """Each difference in points, its interval, and its line."""
    points = pd.DataFrame({"Interval over": frame.test, "panel": frame.panel, "line": places})
    points["difference"] = [100 * pair.difference for pair in frame.pair]
    points["Difference"] = [{1: "better", 0: "neither", -1: "worse"}[pair.sign] for pair in frame.pair]
    intervals = [pair.interval for pair in frame.pair]
    points["low"] = [100 * low for low, _ in intervals]
    points["high"] = [100 * high for _, high in intervals]
    return points


def _above(figure, legend) -> None:
    """Moves a legend above all panels, without the names of its two groups."""
    entries = zip(legend.legend_handles, (text.get_text() for text in legend.texts))
    shown = [(handle, label) for handle, label in entries if label not in ("Interval over", "Difference")]
    handles, labels = zip(*shown)
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), columnspacing=1.2, frameon=False)
    legend.remove()
