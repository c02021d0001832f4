"""Tables of results as the book's panels have them, for one data set or for all; and drawings that stay in their panels."""

import re
import xml.etree.ElementTree as ET
from html import unescape

from pages import report

from aslab import papers, records
from aslab.show.markup import NAMES

from ..made_up import cells, line

NS = "{http://www.w3.org/2000/svg}"
REDUCED = "Ours is a reduced budget, so its figures are not compared with the paper's."


def results_table(paper, table, runs=None, dataset=None, folder=None):
    """The HTML of all panels; of one data set its table and the rows that are folded away below it."""
    runs = records.records(paper) if runs is None else runs
    html = "\n".join(panel for _, panel in report.results_panels(papers.read(paper, folder), runs, table))
    parts = re.findall(r'<details.*?</details>|<div class="as2-box".*?</table></div>', html, re.DOTALL)
    return "".join(part for part in parts if f"<caption>{NAMES[dataset]}. " in part) if dataset else html


def caption_of(html):
    """The words above the first table."""
    return unescape(re.search("<caption>(.*?)</caption>", html)[1])


def verdict_of(html, *starts):
    """The verdict of the first line of ours with these cells, from its column or, where the first table has none, from the caption."""
    first = re.search("<table.*?</table>", html, re.DOTALL)[0]
    heads, caption = cells(first)[0], caption_of(first)
    own = line(first, *starts)
    if "Verdict" in heads:
        assert REDUCED not in caption and heads[-1] == "Verdict"
        return own[-1]
    assert caption.endswith(REDUCED) and heads[-1] == "Budget" and "reduced budget" not in first.partition("</caption>")[2]
    assert {len(row) for row in cells(first)} <= {len(heads), len(heads) - 1}, "no line has a cell for it"
    return "reduced budget"


def drawn_inside(drawing):
    """The width and height of a panel: all boxes are drawn inside it, and it has no colour of its own."""
    width, height = map(float, drawing.get("viewBox").split()[2:])
    for box in drawing.iter(f"{NS}rect"):
        left, top, wide, high = (float(box.get(name)) for name in ("x", "y", "width", "height"))
        assert left >= 0 and top >= 0 and left + wide <= width and top + high <= height
    assert not re.search("#[0-9a-f]{3}|fill=", ET.tostring(drawing, "unicode"))
    return width, height
