"""Principal components of questions with a right and a wrong candidate, before and after training."""

from collections.abc import Iterable
from itertools import zip_longest

import numpy as np
import pandas as pd
import seaborn
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from sklearn.decomposition import PCA

from asutil import draws
from asutil.data.answers import Question
from asutil.tasks.embedding import encoded

from .picture import Picture

# Each with a mark of its own: a colour is never the only sign.
ROLES = {"question": "o", "positive": "^", "negative": "X"}
PANELS = {"before": "before training", "after": "after training"}
NAMED = ("A", "B")  # the first questions, which a reader can follow from panel to panel; the others are pale
PALE = 0.45
DIGITS = 4


def chosen(questions: Iterable[Question], count: int = 40, seed: int = 0) -> list[tuple[str, str, str]]:
    """(question, positive, negative): texts of some questions with a right and a wrong candidate, chosen by hashes.

    Args:
        count: at most so many, of the questions that have a candidate of both kinds.
    """
    both = {question.id: question for question in questions if {one.label for one in question.candidates} >= {0, 1}}
    found = []
    for name in draws.choose(both, count, seed):
        texts = {label: {one.id: one.text for one in both[name].candidates if one.label == label} for label in (1, 0)}
        found.append((both[name].text, *(known[draws.choose(known, 1, seed)[0]] for known in texts.values())))
    return found


def embedded(encoder, triplets: list[tuple[str, str, str]]) -> np.ndarray:
    """The vectors of some texts as `chosen` gives them, (3 N, H): questions as queries, the others as documents."""
    roles = ("query", "document", "document")
    vectors = [encoded(encoder, list(texts), role) for texts, role in zip(zip(*triplets), roles)]
    return np.stack(vectors, axis=1).reshape(3 * len(triplets), -1)


def coordinates(
    before: np.ndarray, after: np.ndarray | None, roles: list[str], questions: list[int], kinds: list[str] | None = None
) -> dict:
    """The first two principal components of some texts' vectors, before and after training, as numbers for a record.

    (x, y) = (v - mean) W, W the two directions of the largest variance, each with its largest entry positive
    Each panel is fitted on the vectors that it shows and on nothing else; both show the same texts.
    Paper: evidence_contrast, appendix A and figure 2; asbert has no such figure.
    Shapes: before, after (N, H)
    Args:
        after: None for an encoder that was not trained. roles: what each text is: question, positive or negative.
        questions: the number of the question that it belongs to. kinds: its type; a plot gives each type a colour.
    Returns: roles, questions, kinds where they are given, and of each panel ("before", "after") x, y, explained (share of
        the variance), away (Euclidean distance of each text to its question, in all H dimensions) and distance (its mean over
        positives and over negatives).
    Raises: ValueError for vectors, roles and numbers that do not belong together, or a value that is not finite.

    Example:
        >>> shown = coordinates(np.eye(3), None, ["question", "positive", "negative"], [0, 0, 0])
        >>> shown["before"]["explained"], shown["before"]["distance"]
        ([0.5, 0.5], {'positive': 1.4142, 'negative': 1.4142})
    """
    panels = {"before": before} | ({} if after is None else {"after": after})
    for name, vectors in panels.items():
        _check(name, vectors, roles, questions)
    shown = {"roles": list(roles), "questions": [int(number) for number in questions]}
    if kinds is not None:
        if len(kinds) != len(roles):
            raise ValueError(f"one question type a text expected, got {len(kinds)} for {len(roles)} texts")
        shown["kinds"] = list(kinds)
    return shown | {name: _panel(np.asarray(vectors, np.float64), roles, questions) for name, vectors in panels.items()}


def _check(name: str, vectors: np.ndarray, roles, questions) -> None:
    shape = np.shape(vectors)
    if len(shape) != 2 or not len(vectors) == len(roles) == len(questions):
        came = f"{shape} of vectors {name} training, {len(roles)} roles, {len(questions)} numbers of questions"
        raise ValueError(f"one vector, role and question a text expected, got {came}")
    if min(shape) < 2:
        raise ValueError(f"two components need two texts and two dimensions at least, got {shape} {name} training")
    if not (finite := np.isfinite(vectors).all(1)).all():
        raise ValueError(f"finite vectors expected, got nan or infinity {name} training in row {finite.argmin()}")


def _panel(vectors: np.ndarray, roles, questions) -> dict:
    # Vectors that are all the same have no direction. The signs of the components follow from the vectors alone.
    spread = bool(np.ptp(vectors, axis=0).any())
    fitted = PCA(2, svd_solver="full").fit(vectors if spread else np.eye(*vectors.shape))
    places = (vectors - vectors.mean(0)) @ fitted.components_.T
    explained = fitted.explained_variance_ratio_ * spread
    asked = {number: vector for vector, role, number in zip(vectors, roles, questions) if role == "question"}
    away = pd.Series([np.linalg.norm(vector - asked[number]) for vector, number in zip(vectors, questions)])
    means = away.groupby(list(roles)).mean()
    return {
        "explained": _rounded(explained),
        "away": _rounded(away.to_numpy()),
        "distance": {role: round(float(means[role]), DIGITS) for role in list(ROLES)[1:]},
        "x": _rounded(places[:, 0]),
        "y": _rounded(places[:, 1]),
    }


def _rounded(values: np.ndarray) -> list[float]:
    return (values.round(DIGITS) + 0.0).tolist()  # no -0.0


def plot(coordinates: dict):
    """`coordinates` as a matplotlib Figure: a panel before and one after training, lines from questions to positives.

    Marks tell what a text is; colours tell it too, or, where question types are given, the type. Two questions have a letter, the same
    in both panels.
    """
    panels = [name for name in PANELS if name in coordinates]
    colour = "type" if "kinds" in coordinates else "role"
    hues = list(dict.fromkeys(coordinates["kinds"])) if colour == "type" else list(ROLES)
    said = " and ".join(PANELS[name] for name in panels) if len(panels) > 1 else "untrained"
    words = f"Two principal components of the vectors of questions and candidates, {said}."
    figure = Picture(words, figsize=(1.2 + 3.6 * len(panels), 4.8))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, name in zip(axes, panels):
        panel = coordinates[name]
        points = pd.DataFrame({"x": panel["x"], "y": panel["y"], "role": coordinates["roles"]})
        points = points.assign(question=coordinates["questions"], type=coordinates.get("kinds", ""))
        asked = points[points.role == "question"].set_index("question")
        letters, positives = dict(zip(asked.index, NAMED)), points[points.role == "positive"]
        lines = [(asked.loc[point.question, ["x", "y"]], (point.x, point.y)) for point in positives.itertuples()]
        widths = [1.5 if number in letters else 0.6 for number in positives.question]
        axis.add_collection(LineCollection(lines, colors="black", linewidths=widths, alpha=0.4, zorder=1))
        looks = {"hue": colour, "hue_order": hues, "style": "role", "style_order": list(ROLES), "markers": ROLES}
        looks |= {"palette": "colorblind", "s": 45, "zorder": 2}
        seaborn.scatterplot(points, x="x", y="y", ax=axis, legend="full" if axis is axes[-1] else False, **looks)
        axis.collections[-1].set_alpha([1.0 if number in letters else PALE for number in points.question])
        for number, letter in letters.items():
            place = asked.loc[number, ["x", "y"]]
            axis.annotate(letter, place, xytext=(5, 5), textcoords="offset points", weight="bold", zorder=3)
        labels = [f"component {n} ({100 * part:.0f} % of the variance)" for n, part in enumerate(panel["explained"], 1)]
        near = ", ".join(f"{role} {mean:.2f}" for role, mean in panel["distance"].items())
        title = PANELS[name] if len(panels) > 1 else "untrained"
        axis.set(xlabel=labels[0], ylabel=labels[1])
        axis.set_title(f"{title}\nmean distance: {near}", fontsize="small")
        axis.set_aspect("equal", adjustable="datalim")  # a distance is the same in every direction
        axis.grid(alpha=0.3)
    legend = axes[-1].get_legend()
    known = {text.get_text(): handle for handle, text in zip(legend.legend_handles, legend.texts)}
    # A line of types, a line of roles; a legend is filled column by column.
    rows = [ROLES] if colour == "role" else [hues, ROLES]
    blank = Line2D([], [], linestyle="")
    names = [name or "" for column in zip_longest(*rows) for name in column]
    handles, columns = [known.get(name, blank) for name in names], max(map(len, rows))
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
    legend.remove()
    return figure


def farther(coordinates: dict, panel: str) -> pd.Series:
    """By question: mean distance to its negatives minus mean distance to its positives; above 0 the right ones are nearer."""
    texts = pd.DataFrame(
        {"away": coordinates[panel]["away"], "role": coordinates["roles"], "question": coordinates["questions"]}
    )
    means = texts.pivot_table(index="question", columns="role", values="away", aggfunc="mean")
    return (means.negative - means.positive).dropna()


def farther_plot(coordinates: dict):
    """`farther` before and after training as a matplotlib Figure: a histogram over questions; None for a record without each distance."""
    panels = [name for name in PANELS if "away" in coordinates.get(name, ())]
    if not panels:
        return None
    each = pd.DataFrame({PANELS[key] if len(panels) > 1 else "untrained": farther(coordinates, key) for key in panels})
    nearer = ", ".join(f"{(values > 0).sum()} of {values.count()} {name}" for name, values in each.items())
    title = f"Questions nearer to their right candidates: {nearer}"
    figure = Picture(f"{title}.", figsize=(8.4, 2.6))
    axis = figure.subplots()
    seaborn.histplot(each, ax=axis, element="step", palette="colorblind", bins=20)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.set(xlabel="distance to wrong candidates minus distance to right ones", ylabel="questions")
    axis.set_title(title, fontsize="small")
    return figure
