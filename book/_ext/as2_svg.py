"""Drawings of matplotlib on a page: the page's own colours, and half of their bytes."""

import itertools
import re
from collections import Counter

MARK = r'<path d="([^"]*)" clip-path="([^"]*)" style="([^"]*)"/>'
MARKS = re.compile(rf"(?:\s*{MARK}){{8,}}")  # so many in a row are worth a definition
PLACES = re.compile(r'\b[dxy]="[^"]*"')
LONG = re.compile(r"-?\d+\.\d{4,}")
CELLS = re.compile(r"(?:<g><text[^>]*>[^<]*</text></g>){8,}")  # the numbers of a heat map
FONTS = re.compile(r"font-family: '[^;\"]*(?:; )?")
WORDS = re.compile(r'<text style="([^"]*)" ')
TICKS = re.compile(r'(<use [^>]*) style="stroke: [^;"]*; stroke-width: [^;"]*"')  # the style of their shape
UPRIGHT = re.compile(r' transform="rotate\(-0 [^"]*"')
FONT = "'DejaVu Sans', Verdana, sans-serif"
COORDINATE = re.compile(r"-?\d+(?:\.\d+)?")
PAGE_COLOURS = {  # matplotlib's -> the page's; seaborn's legends are #333333
    "#000000": "currentColor",
    "#333333": "currentColor",
    "#ffffff": "var(--pst-color-background)",
}


def in_page_colours(svg: str) -> str:
    """A figure's SVG in the page's own colours, and half of its bytes: one font, three decimals of a point, equal marks defined once."""
    for colour, of_page in PAGE_COLOURS.items():
        svg = svg.replace(colour, of_page)
    numbers = itertools.count()
    svg = re.sub(r"\s*\n\s*", "\n", TICKS.sub(r"\1", UPRIGHT.sub("", FONTS.sub("", svg)))).replace(">\n<", "><")
    svg = _with_shared_words(svg).replace("<svg ", f'<svg font-family="{FONT}" ', 1)
    svg = CELLS.sub(lambda found: re.sub("</?g>", "", found[0]), svg)
    svg = MARKS.sub(lambda found: _defined(re.findall(MARK, found[0]), numbers), svg)
    return PLACES.sub(lambda found: LONG.sub(lambda number: f"{round(float(number[0]), 3)}", found[0]), svg)


def _with_shared_words(svg: str) -> str:
    """The drawing has the size and the anchor that most of its words have; the others keep their own."""
    styles = [style if "text-anchor" in style else f"{style}; text-anchor: start" for style in WORDS.findall(svg)]
    if not styles:
        return svg
    shared, own = _shared(styles, but="fill")  # the page has a rule for it
    own = iter(own)
    return WORDS.sub(lambda _: f"<text{next(own)} ", svg).replace("<svg ", f'<svg style="{shared}" ', 1)


def _defined(marks: list[tuple[str, str, str]], numbers) -> str:
    """Marks in a group with the style that most of them have; one that comes again, in shape and style, is drawn by `<use>`."""
    paths, clips, styles = zip(*marks)
    shared, attributes = _shared(styles)
    looks = list(zip(map(_from_origin, paths), attributes))
    prefix = clips[0].removeprefix("url(#")[:6]
    bare = Counter((shape, "") for shape, style in looks if style)  # a `<use>` may have a style of its own
    counted = Counter(looks) + bare
    names = {look: f"{prefix}-{next(numbers)}" for look, count in counted.items() if count > 1}
    made = "".join(f'<path id="{name}" d="{shape}"{style}/>' for (shape, style), name in names.items())
    made = f"<defs>{made}</defs>" if made else ""
    for path, (shape, style) in zip(paths, looks):
        x, y = COORDINATE.findall(path)[:2]
        if (shape, style) in names:
            made += f'<use xlink:href="#{names[shape, style]}" x="{x}" y="{y}"/>'
        elif (shape, "") in names:
            made += f'<use xlink:href="#{names[shape, ""]}" x="{x}" y="{y}"{style}/>'
        else:
            made += f'<path d="{" ".join(path.split())}"{style}/>'
    return f'<g class="as2-marks" clip-path="{clips[0]}" style="{shared}">{made}</g>'


def _shared(styles: list[str], but: str = "") -> tuple[str, list[str]]:
    """What most of these styles have for a group around them, and the attribute of each with what is its own."""
    declared = [style.split("; ") for style in styles]
    everywhere = set.intersection(*({part.split(":")[0] for part in parts} for parts in declared)) - {but}
    usual = Counter(styles).most_common(1)[0][0].split("; ")
    shared = [part for part in usual if part.split(":")[0] in everywhere]  # a mark cannot undo what others have alone
    own = ("; ".join(part for part in parts if part not in shared) for parts in declared)
    return "; ".join(shared), [f' style="{style}"' if style else "" for style in own]


def _from_origin(path: str) -> str:
    """A path moved so that it begins at (0, 0)."""
    start = itertools.cycle([float(number) for number in COORDINATE.findall(path)[:2]])
    return " ".join(COORDINATE.sub(lambda number: f"{round(float(number[0]) - next(start), 3) + 0:g}", path).split())
