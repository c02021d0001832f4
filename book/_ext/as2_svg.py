"""Shapes of the figures that are drawn as inline SVG: boxes, words and arrows, a panel for them, and the figure
around the panels.
"""

import itertools
import re
from collections import Counter
from html import escape

WIDTH = 360  # of a panel, in its own units
MARK = r'<path d="([^"]*)" clip-path="([^"]*)" style="([^"]*)"/>'
MARKS = re.compile(rf"(?:\s*{MARK}){{8,}}")  # so many in a row are worth a definition
PATH = re.compile(r'\bd="[^"]*"')
LONG = re.compile(r"-?\d+\.\d{5,}")
FONTS = re.compile(r"font-family: '[^;\"]*")
COORDINATE = re.compile(r"-?\d+(?:\.\d+)?")
HALO = "paint-order:stroke;stroke:var(--pst-color-background);stroke-width:6px"  # of words that arrows pass behind


def figure(content: str, caption: str) -> str:
    """A figure with its caption, which is also its label for those who do not see it; on a narrow screen the drawing scrolls."""
    text = escape(caption)
    drawing = f'<div class="as2-drawing" tabindex="0">{content}</div>'
    return f'<figure class="as2-figure" aria-label="{text}">{drawing}<figcaption>{text}</figcaption></figure>'


def panel(name: str, words: str, shapes: str, height: int = 394) -> str:
    head = f'<p class="as2-kind"><strong>{escape(name)}</strong> {escape(words)}</p>'
    size = f'viewBox="0 0 {WIDTH} {height}" style="min-width:0;max-width:27rem;margin:0 auto"'
    return f'<div class="as2-input">{head}<svg {size} aria-hidden="true" xmlns="http://www.w3.org/2000/svg">{shapes}</svg></div>'


def box(middle: float, top: float, width: float, words: str, kind: str = "p", words_kind: str = "l") -> str:
    place = f'x="{middle - width / 2:g}" y="{top:g}" width="{width:g}" height="28" rx="5"'
    return f'<rect class="{kind}" {place}/>' + text(middle, top + 18, words, words_kind)


def text(middle: float, base: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{middle:g}" y="{base:g}" text-anchor="middle">{escape(words)}</text>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """A line with a head that points down."""
    head = f"M{to_x - 4:g} {to_y - 6:g}L{to_x:g} {to_y:g}L{to_x + 4:g} {to_y - 6:g}"
    return f'<path class="k" d="M{x:g} {y:g}L{to_x:g} {to_y:g}{head}"/>'


# ------------------------------------------------------------------ smaller drawings


def compact(svg: str) -> str:
    """A drawing of matplotlib in a third of its bytes: a ten-thousandth of a point is enough, and many marks of one shape and
    style share a definition.
    """
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
