"""What plots draw, read off a page: places become values by the grid lines of an axis and the labels beside them."""

import re
from typing import NamedTuple

import numpy as np
from bs4 import Tag

from . import must

GRID = "#b0b0b0"
NEUTRAL = "currentColor"  # the colour of an entry of a legend that explains a mark in any colour
LONG = 128  # corners from which on a line is drawn without those that stand on it
OFF = 0.001  # how far off the line such a corner may stand, as a share of the line's height


class Shape(NamedTuple):
    style: dict[str, str]
    mark: tuple[bool, int]  # whether it is round, and how many sides it has: what tells one mark from another
    points: np.ndarray  # (corners, 2), in the units of the axes


class Panel(NamedTuple):
    words: list[str]  # labels of both axes, then the lines of the title
    shapes: list[Shape]


def panels(block: Tag) -> list[Panel]:
    """The panels of all plots of a block, as they stand on the page."""
    of_panel: dict[str, list[Tag]] = {}
    for path in block.find_all(["path", "use"]):
        marks = path.parent if "as2-marks" in path.parent.get("class", ()) else path
        if path.name == "path" or marks is not path:
            of_panel.setdefault(marks.get("clip-path"), []).append(path)
    return [panel(paths) for name, paths in of_panel.items() if name]


def panel(paths: list[Tag]) -> Panel:
    grid = [path for path in paths if GRID in path.get("style", "")]
    must(bool(grid), "a plot has a grid, by which its places are values; one has none")
    labels = {id(path): path.find_parent("g").find_parent("g").find("text") for path in grid}
    scales = [scale([path for path in grid if np.ptp(corners(path)[:, way]) == 0], labels, way) for way in (0, 1)]
    ticks = {id(label) for label in labels.values()}
    axes = grid[0].find_parents("g")[3]
    words = [" ".join(text.get_text().split()) for text in axes.find_all("text") if id(text) not in ticks]
    shapes = []
    for path in paths:
        if not any(path is line for line in grid):
            drawn = axes.find("path", id=path["xlink:href"][1:]) if path.name == "use" else path
            style = style_of("; ".join(tag.get("style", "") for tag in reversed((drawn, path, *path.find_parents("g")))))
            places = corners(drawn) + ([float(path["x"]), float(path["y"])] if path.name == "use" else 0)
            shapes.append(Shape(style, mark_of(drawn), np.column_stack([scales[way](places[:, way]) for way in (0, 1)])))
    return Panel(words, shapes)


def corners(path: Tag) -> np.ndarray:
    return np.array(re.findall(r"-?[\d.]+", path["d"]), float).reshape(-1, 2)


def style_of(style: str) -> dict[str, str]:
    return dict(part.strip().split(": ", 1) for part in style.split(";") if part.strip())


def mark_of(path: Tag) -> tuple[bool, int]:
    return "C" in path["d"], path["d"].count("L")


def scale(grid: list[Tag], labels: dict[int, Tag], way: int):
    """Places -> values along one axis, linear or logarithmic as its labels are; the places themselves where it has no grid."""
    known = {}
    for path in grid:
        text = labels[id(path)].get_text().strip() if labels[id(path)] else ""
        if re.fullmatch(r"−?[\d.,]+", text):
            known[corners(path)[0, way]] = float(text.replace("−", "-").replace(",", ""))
    if not known:
        return lambda places: places
    must(len(known) > 1, f"an axis of a plot has two labels or more, one has {len(known)}")
    places, values = np.array(list(known.items())).T
    slope, start = np.polyfit(places, values, 1)
    if np.allclose(slope * places + start, values, atol=0.01 * np.ptp(values)):
        return lambda places: slope * places + start
    slope, start = np.polyfit(places, np.log(values), 1)
    must(np.allclose(np.exp(slope * places + start), values, rtol=0.001), f"the labels of an axis are on no scale: {values}")
    return lambda places: np.exp(slope * places + start)


def legend(block: Tag) -> list[tuple[str, Tag | None, Tag | None]]:
    """(word, the line before it, the mark before it) of the legends below plots."""
    found = []
    for text in block.find_all("text"):
        entry = text.find_parent("g")
        sample = entry.find_previous_sibling("g")
        if sample and not entry.parent.find("path", attrs={"clip-path": True}):  # else a word of an axis
            line, used = sample.find("path", style=re.compile("fill: none")), sample.find("use")
            found.append((text.get_text().strip(), line, used))
    return found


# ------------------------------------------------------------------ what is drawn, with its names

Drawn = list[tuple[list[str], list[tuple[str, np.ndarray]]]]  # of each panel its words, and what it draws: a name and corners or a place


def line_of(style: dict[str, str]) -> tuple[str, str]:
    return style["stroke"], style.get("stroke-dasharray", "")


def lines(block: Tag) -> Drawn:
    """The lines of plots, named by their legend where they have one."""
    names = {line_of(style_of(line["style"])): word for word, line, _ in legend(block) if line}
    return [(words, [(names.get(line_of(shape.style), ""), shape.points) for shape in shapes]) for words, shapes in panels(block)]


def marks(block: Tag) -> Drawn:
    """The marks of plots, each named by the words of the legend that it fits, and before them the lines."""
    sampled = [(word, used) for word, _, used in legend(block) if used]
    entries = [(word, mark_of(block.find("path", id=used["xlink:href"][1:])), style_of(used["style"])["fill"]) for word, used in sampled]
    found = []
    for words, shapes in panels(block):
        between = [("line", shape.points) for shape in shapes if shape.style["fill"] == "none"]
        placed = [
            (named(entries, shape), (shape.points.min(0) + shape.points.max(0)) / 2) for shape in shapes if shape.style["fill"] != "none"
        ]
        found.append((words, between + placed))
    return found


def named(entries: list[tuple], shape: Shape) -> str:
    """The words of a legend that a mark fits: those of its mark and colour; where some entries have no colour, those of either."""
    colour = shape.style["fill"]
    if any(fill == NEUTRAL for *_, fill in entries):
        fits = [word for word, mark, fill in entries if (mark == shape.mark if fill == NEUTRAL else fill == colour)]
    else:
        fits = [word for word, mark, fill in entries if (mark, fill) == (shape.mark, colour)]
    return ", ".join(sorted(fits))


def differences(block: Tag) -> dict[str, list]:
    """Intervals, differences and dashed lines of a plot of gains, along its one axis with units."""
    found = {"intervals": [], "differences": [], "dashed": []}
    for _, shapes in panels(block):
        for style, _, points in shapes:
            (left, top), (right, bottom) = points.min(0), points.max(0)
            if style["fill"] != "none":
                found["differences"].append((left + right) / 2)
            elif "stroke-dasharray" in style:
                found["dashed"].append(left)
            elif top == bottom:
                found["intervals"].append((left, right))
    return {name: sorted(values) for name, values in found.items()}


# ------------------------------------------------------------------ what is drawn, beside what is known


def drawn_through(points: np.ndarray, places: np.ndarray) -> bool:
    """Whether something is drawn at some places, and at all of them; of a long line those on it may be missing."""
    if points.shape == places.shape or len(places) < LONG or not len(points):
        return points.shape == places.shape and near(points, places)
    (across, height), (steps, values) = points.T, places.T
    at = [int(np.abs(steps - one).argmin()) for one in across]
    ends = (at[0], at[-1]) == (0, len(places) - 1)
    apart = np.abs(np.interp(steps, across, height) - values)
    return ends and near(points, places[at]) and bool((apart <= OFF * np.ptp(values)).all())


def near(points: np.ndarray, places: np.ndarray) -> bool:
    """Whether points are at some places, as exactly as an SVG writes its coordinates: to a millionth of an axis."""
    return np.allclose(points, places, rtol=1e-4, atol=np.maximum(5e-5, 1e-6 * np.ptp(places, axis=0)))
