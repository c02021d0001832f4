"""Drawings of matplotlib on a page: the page's own colours, and a third of their bytes."""

import itertools
import re
from collections import Counter

MARK = r'<path d="([^"]*)" clip-path="([^"]*)" style="([^"]*)"/>'
MARKS = re.compile(rf"(?:\s*{MARK}){{8,}}")  # so many in a row are worth a definition
PATH = re.compile(r'\bd="[^"]*"')
LONG = re.compile(r"-?\d+\.\d{5,}")
FONTS = re.compile(r"font-family: '[^;\"]*")
COORDINATE = re.compile(r"-?\d+(?:\.\d+)?")
PAGE_COLOURS = {  # matplotlib's -> the page's; seaborn's legends are #333333
    "#000000": "currentColor",
    "#333333": "currentColor",
    "#ffffff": "var(--pst-color-background)",
}


def in_page_colours(svg: str) -> str:
    """A figure's SVG in the page's own colours of text and background, and in fewer bytes."""
    for colour, of_page in PAGE_COLOURS.items():
        svg = svg.replace(colour, of_page)
    return compact(svg)


def compact(svg: str) -> str:
    """A drawing in a third of its bytes: four digits of a point are enough, marks of one look share a definition."""
    numbers = itertools.count()
    svg = re.sub(r"\s*\n\s*", "\n", FONTS.sub("font-family: 'DejaVu Sans', Verdana, sans-serif", svg))
    svg = PATH.sub(lambda found: LONG.sub(lambda number: f"{float(number[0]):.4f}", found[0]), svg)
    return MARKS.sub(lambda found: _defined(re.findall(MARK, found[0]), numbers), svg)


def _defined(paths: list[tuple[str, str, str]], numbers) -> str:
    """Marks as `<use>` of their shapes; what has a shape of its own keeps its path."""
    clip = paths[0][1]
    shapes = [(_from_origin(path), style) for path, _, style in paths]
    repeated = [shape for shape, count in Counter(shapes).items() if count > 1]
    names = {shape: f"{clip.removeprefix('url(#').removesuffix(')')}-{next(numbers)}" for shape in repeated}
    common = Counter(style for _, style in shapes).most_common(1)[0][0]
    own = lambda style: "" if style == common else f' style="{style}"'
    made = "".join(f'<path id="{name}" d="{path}"{own(style)}/>' for (path, style), name in names.items())
    made = f"<defs>{made}</defs>" if made else ""
    for (path, _, style), shape in zip(paths, shapes):
        x, y = COORDINATE.findall(path)[:2]
        if shape in names:
            made += f'<use xlink:href="#{names[shape]}" x="{x}" y="{y}"/>'
        else:
            made += f'<path d="{" ".join(path.split())}"{own(style)}/>'
    return f'<g class="as2-marks" clip-path="{clip}" style="{common}">{made}</g>'


def _from_origin(path: str) -> str:
    """A path moved so that it begins at (0, 0)."""
    start = itertools.cycle([float(number) for number in COORDINATE.findall(path)[:2]])
    return " ".join(COORDINATE.sub(lambda number: f"{round(float(number[0]) - next(start), 3) + 0:g}", path).split())
