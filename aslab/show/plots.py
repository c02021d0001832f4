"""What a run shows as matplotlib Figures: training curves, accuracies, confusions, calibration, and where ranks moved."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, PowerNorm, to_rgb
from matplotlib.patches import Rectangle
from scipy import special

from asutil.io import files
from asutil.metrics import calibration, changes, registry, significance, verdicts

from .markup import NAMES
from .picture import Later, Picture

seaborn = Later("seaborn")
# A log has one of these by step.
EVALUATED = tuple(measure.key for measure in registry.measures() if measure.curve)
DRAWN = ("step", "loss", *(f"eval_{metric}" for metric in EVALUATED))
LARGEST = 1e15  # of what is drawn: beyond it an axis has no ticks
BLUE = to_rgb("#0173b2")  # the first colour of seaborn's palette colorblind
# Ranks in the plot, by their last one.
PLACES = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6 to 10": 10, "11 on": np.inf}


def accuracy_bars(table: pd.DataFrame):
    """A matplotlib Figure: accuracy of models on their own tasks, each with a line at the share of its majority class.

    Args:
        table: one row a model, with `accuracy` and `majority` from 0 to 1.
    """
    words = "Accuracy of each model on its own task, in points, with the share of its larger class."
    figure = Picture(words, figsize=(8, 0.8 + 0.45 * len(table)))
    axis = figure.subplots()
    points = 100 * table[["accuracy", "majority"]].astype(float)
    seaborn.barplot(x=points.accuracy, y=points.index, ax=axis, color="C0", width=0.6, errorbar=None)
    for place, (accuracy, majority) in enumerate(points.to_numpy()):
        label = "" if place else "majority class"
        axis.plot([majority] * 2, [place - 0.4, place + 0.4], color="black", linestyle="--", label=label)
        axis.text(accuracy + 0.5, place, f"{accuracy:.1f}", va="center", fontsize="small")
    axis.set(xlabel="accuracy on held-out documents, points", ylabel="", xlim=(0, 109))
    figure.legend(loc="outside upper right", fontsize="small", frameon=False)
    return figure


def training_curves(logs: dict):
    """A matplotlib Figure: loss and validation metric by step; a colour and a dash for a name, a line for a seed.

    Args:
        logs: name, or (name, seed) -> path of a `log.jsonl`, or its lines as dicts.
    Raises: ValueError naming file and line of a log that is not one JSON object a line.
    """
    named = [(*key, log) if isinstance(key, tuple) else (key, None, log) for key, log in logs.items()]
    seeds = {name: [str(seed) for other, seed, _ in named if other == name and seed is not None] for name, *_ in named}
    titles = {name: f"{name}, seed{'s' * (len(of) > 1)} {', '.join(of)}" if of else name for name, of in seeds.items()}
    steps, seen = [], set()
    for run, (name, _, log) in enumerate(named):
        lines = log if isinstance(log, list) else _read_log(Path(log))
        metric = next((m for m in EVALUATED if any(f"eval_{m}" in line for line in lines)), None)
        seen |= {NAMES[metric]} if metric else set()
        for line in lines:
            reached = 100 * line.get(f"eval_{metric}", np.nan)
            steps.append((line["step"], line.get("loss"), reached, run, titles[name]))
    frame = pd.DataFrame(steps, columns=["step", "loss", "reached", "run", "name"])
    drawn = [("loss", "training loss", "")]
    if seen:
        drawn.append(("reached", f"validation {' or '.join(sorted(seen))}, points", "o"))
    figure = Picture(f"By optimiser step: {' and '.join(label for _, label, _ in drawn)}.", figsize=(8, 3.2))
    looks = {"hue": "name", "style": "name", "units": "run", "estimator": None, "palette": "colorblind"}
    looks |= {f"{look}_order": list(titles.values()) for look in ("hue", "style")}
    for axis, (column, label, marker) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn):
        known = frame.dropna(subset=column)
        if len(known):
            seaborn.lineplot(known, x="step", y=column, ax=axis, marker=marker, legend=column == "loss", **looks)
        axis.set(xlabel="optimiser step", ylabel=label)
        axis.grid(alpha=0.3)
        if axis.get_legend():
            seaborn.move_legend(axis, "best", title=None, fontsize="x-small")
    return figure


def _read_log(path: Path) -> list[dict]:
    rows = []
    for number, (_, text) in enumerate(files.lines(path), 1):
        try:
            rows.append(dict(json.loads(text)))
            drawn = [rows[-1].get("step"), *(value for name, value in rows[-1].items() if name in DRAWN)]
            if not all(isinstance(value, int | float) and abs(value) < LARGEST for value in drawn):
                raise ValueError(f"expected a number below {LARGEST:.0e} as step, and as whatever is drawn")
        except (ValueError, TypeError, RecursionError) as error:
            line = f"{path.parent.name}/{path.name}, line {number}"
            raise ValueError(f"{line}: not a JSON object of a step ({error})") from error
    return rows


def confusion_plot(scores: pd.DataFrame):
    """The confusion matrix as a heatmap, a matplotlib Figure: counts, coloured by their share of the label's claims."""
    table = verdicts.confusion(scores["label"], verdicts.predictions(scores))
    shares = table.div(table.sum(axis=1).clip(lower=1), axis=0)
    words = "Claims by label (rows) and by predicted verdict (columns), shaded by their share of the label's claims."
    figure = Picture(words, figsize=(6.4, 4))
    axis = figure.subplots()
    _heatmap(shares, table.map(str), axis, vmin=0, vmax=1)
    axis.set(xlabel="predicted", ylabel="label", title="claims; shade: share of the label's claims")
    axis.tick_params(axis="y", rotation=0)
    return figure


def _heatmap(values: pd.DataFrame, texts: pd.DataFrame, axis, **scale) -> None:
    """Cells from clear to half clear blue, which black and white text is read on."""
    shades = LinearSegmentedColormap.from_list("shades", [(*BLUE, 0), (*BLUE, 0.65)])
    looks = {"cmap": shades, "cbar": False, "linewidths": 0.5, "linecolor": "#8888", "annot_kws": {"color": "black"}}
    seaborn.heatmap(values, annot=texts, fmt="", ax=axis, **looks, **scale)


def moves_plot(moves: pd.DataFrame, before: str, after: str):
    """A matplotlib Figure: questions by rank before and after; its title counts those that went up, stayed and went down."""
    words = f"Questions by the rank of their first right candidate by {before} (rows) and by {after} (columns)."
    figure = Picture(words, figsize=(5.4, 3.9))
    grid = figure.subplots()
    binned = moves.apply(lambda ranks: pd.cut(ranks, [0, *PLACES.values()], labels=list(PLACES)))
    counts = pd.crosstab(binned.before, binned.after, dropna=False)
    counts = counts.reindex(index=list(PLACES), columns=list(PLACES), fill_value=0)
    _heatmap(counts, counts.map(lambda count: str(count) if count else ""), grid, norm=PowerNorm(0.5, vmin=0))
    unmoved = [Rectangle((place, place), 1, 1) for place in range(len(PLACES))]
    grid.add_collection(PatchCollection(unmoved, facecolor="none", edgecolor="black"))
    counted = changes.move_counts(moves)
    title = "{higher:,} higher, {as before:,} as before (outlined), {lower:,} lower".format_map(counted)
    grid.set(xlabel=f"rank by {after}", ylabel=f"rank by {before}", title=title)
    grid.tick_params(axis="x", rotation=0)
    return figure


def calibration_plot(scores: pd.DataFrame, fitted: calibration.Calibration):
    """A matplotlib Figure: a reliability diagram before and after, and precision against the share of questions that are answered.

    Args:
        scores: question_id, label, score of one split.
    """
    words = "Left: share of right answers by predicted probability. Right: precision by share of answered questions."
    figure = Picture(words, figsize=(8, 3.6))
    diagram, answers = figure.subplots(1, 2)
    probabilities = {"1 / (1 + exp(-s))": special.expit(scores["score"])}
    probabilities["fitted on dev"] = fitted.probabilities(scores["score"])
    for (name, values), marker in zip(probabilities.items(), "os"):
        table = calibration.reliability(scores["label"], values)
        error = calibration.expected_error(scores["label"], values)
        label = f"{name}, error {error:.3f}"
        seaborn.lineplot(table, x="probability", y="right", marker=marker, ax=diagram, label=label)
    diagram.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
    diagram.set(xlabel="mean probability of a bin", ylabel="share of its candidates that answer")
    diagram.set(xlim=(0, 1), ylim=(0, 1))
    curve = calibration.answering(scores.assign(score=probabilities["fitted on dev"], order=scores["score"]))
    seaborn.lineplot(x=100 * curve.rate, y=100 * curve.precision, estimator=None, ax=answers)
    answered = curve[curve.threshold >= fitted.threshold].head(1)
    threshold = f"threshold {fitted.threshold:.2f}"
    answers.plot(100 * answered.rate, 100 * answered.precision, "s", color="C3", label=threshold)
    answers.set(xlabel="questions answered, %", ylabel="of these rightly, %", xlim=(0, 102), ylim=(0, 102))
    for axis in (diagram, answers):
        axis.grid(alpha=0.3)
        axis.legend(fontsize="x-small")
    return figure


def intervals(values: dict[str, pd.DataFrame]):
    """A matplotlib Figure: the MAP of each ranker in points, with its 95 % interval over questions, the best on top.

    Args:
        values: name of a ranker -> the values of its questions.
    """
    precision = {name: own["average_precision"] for name, own in values.items()}
    order = sorted(precision, key=lambda name: -precision[name].mean())
    words = "MAP of each ranker in points, with its 95 % interval over questions."
    figure = Picture(words, figsize=(8, 0.9 + 0.4 * len(order)))
    axis = figure.subplots()
    for place, name in enumerate(order):
        low, high = significance.mean_interval(precision[name])
        axis.plot([100 * low, 100 * high], [place, place], color="C0")
    means = [100 * precision[name].mean() for name in order]
    seaborn.scatterplot(x=means, y=range(len(order)), ax=axis, zorder=3)
    axis.set(xlabel="MAP, points, with 95 % intervals over questions", ylabel="")
    axis.set_yticks(range(len(order)), order)
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    return figure
