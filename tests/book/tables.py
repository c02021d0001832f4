"""Tables of results as the book's panels have them, for one data set or for all."""

import re

from pages import report

from aslab.show.markup import NAMES


def results_table(paper, table, runs=None, dataset=None, folder=None):
    """The HTML of all panels; of one data set its table and the rows that are folded away below it."""
    html = "\n".join(panel for _, panel in report.results_panels(paper, table, runs, folder=folder))
    parts = re.findall(r'<details.*?</details>|<div class="as2-box".*?</table></div>', html, re.DOTALL)
    return "".join(part for part in parts if f"<caption>{NAMES[dataset]}. " in part) if dataset else html
