"""Twenty test sets with a bootstrap interval each: the reader changes the number of questions and the true gain.

The page has the figure of one setting and a table of others, computed here; `bootstrap.js` draws and computes the rest.
The new ranker loses a fixed share of the questions. It gains that share and the true gain.
"""

from pathlib import Path

import numpy as np
from docutils import nodes
from pages import render
from scipy import stats
from sphinx.util.docutils import SphinxDirective

from asutil import metrics

SCRIPT = Path(__file__).with_name("bootstrap.js")
QUESTIONS = (25, 50, 68, 100, 150, 237, 400, 700, 1000, 2000, 4000)
GAINS = (0, 1, 2, 3, 5, 8)  # points, of the table
LOST = 0.08  # share of the questions that the new ranker loses
SETS = 20
DRAWS = 500
DEFAULT = 237, 2  # questions and points of the figure
WIDEST = 30  # points left and right of zero that the figure has room for


def smallest(questions: int, lost: int) -> int:
    """The fewest gained questions whose mean difference is more than 1.96 standard errors above zero."""
    gained = lost + 1
    while (gained - lost) ** 2 <= 1.96**2 * (gained + lost - (gained - lost) ** 2 / questions):
        gained += 1
    return gained


def power(questions: int, gain: float) -> float:
    """The share of test sets with a significant difference: the sum over all numbers of gained and lost questions.

    gained, lost ~ multinomial(questions; LOST + gain, LOST)
    Args:
        gain: the true gain, as a share.
    """
    better, worse = (_share_above(questions, *chances) for chances in ((LOST + gain, LOST), (LOST, LOST + gain)))
    return better + worse


def _share_above(questions: int, gained: float, lost: float) -> float:
    """The share of test sets where `gained` is significantly more than `lost`."""
    counts = np.arange(questions + 1)
    chance = stats.binom.pmf(counts, questions, lost)
    likely = counts[chance > 1e-9]
    needed = np.array([smallest(questions, count) for count in likely])
    return float(chance[likely] @ stats.binom.sf(needed - 1, questions - likely, gained / (1 - lost)))


def intervals(questions: int, gain: float) -> list[metrics.Comparison]:
    """The bootstrap of some test sets with a true gain, a share."""
    draw = np.random.default_rng(0)
    result = []
    for gained, lost, _ in draw.multinomial(questions, [LOST + gain, LOST, 1 - 2 * LOST - gain], size=SETS):
        deltas = np.repeat([1, -1, 0], [gained, lost, questions - gained - lost])
        result.append(metrics.paired_bootstrap(deltas, np.zeros(questions), DRAWS))
    return result


def figure() -> str:
    """The figure of one setting, and the table of power."""
    questions, points = DEFAULT
    of_sets = intervals(questions, points / 100)
    rows = [(count, [f"{100 * power(count, points / 100):.0f}" for points in GAINS]) for count in QUESTIONS[1::2]]
    shown = {"questions": questions, "points": points, "share": f"{100 * power(questions, points / 100):.0f}"}
    shown |= {"steps": QUESTIONS, "gains": GAINS, "lost": round(100 * LOST), "widest": WIDEST}
    significant = sum(test.sign != 0 for test in of_sets)
    return render("bootstrap.html", intervals=of_sets, significant=significant, rows=rows, **shown)


class Bootstrap(SphinxDirective):
    """The figure with its sliders."""

    def run(self):
        self.env.note_dependency(str(SCRIPT))
        return [nodes.raw("", f"{figure()}<script>\n{SCRIPT.read_text('utf-8')}</script>", format="html")]
