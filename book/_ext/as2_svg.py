"""Shapes of the figures that are drawn as inline SVG: boxes, words and arrows, a panel for them, and the figure
around the panels.
"""

from html import escape

WIDTH = 360  # of a panel, in its own units
HALO = "paint-order:stroke;stroke:var(--pst-color-background);stroke-width:6px"  # of words that arrows pass behind


def figure(content: str, caption: str) -> str:
    """A figure with its caption, which is also its label for those who do not see it."""
    text = escape(caption)
    return (
        f'<figure class="as2-figure" role="group" aria-label="{text}">{content}<figcaption>{text}</figcaption></figure>'
    )


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
