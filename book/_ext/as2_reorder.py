"""One question whose candidates a reader puts in order, with the metrics of that order.

The page has the order of BM25 and its metrics, computed here; `reorder.js` computes those of other orders. It is part
of the page: what is in `_static` is loaded by every page.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from docutils import nodes
from pages import render
from sphinx.util.docutils import SphinxDirective

from asutil import metrics
from asutil.data import baselines

SCRIPT = Path(__file__).with_name("reorder.js")
CANDIDATE = re.compile(r"- (yes|no): (\S.*)")
METRICS = {"p_at_1": "P@1", "reciprocal_rank": "Reciprocal rank", "average_precision": "Average precision"}
ORDERS = {"bm25": "BM25", "best": "Best order", "worst": "Worst order", "shuffled": "Shuffle"}


class Candidate(NamedTuple):
    label: int
    text: str


def read(lines) -> list[Candidate]:
    """Candidates, one a line. Raises: ValueError for another line, and where no candidate is right."""
    matches = {line: CANDIDATE.fullmatch(line) for line in lines if line.strip()}
    if wrong := [line for line, match in matches.items() if not match]:
        raise ValueError(f"expected `- yes: sentence` or `- no: sentence` on every line, got {wrong[0]!r}")
    candidates = [Candidate(int(match[1] == "yes"), match[2]) for match in matches.values()]
    if not any(candidate.label for candidate in candidates):
        raise ValueError("expected at least one right candidate, a line `- yes: sentence`")
    return candidates


def by_bm25(question: str, candidates: list[Candidate]) -> list[Candidate]:
    """Candidates in the order of BM25; at equal scores the wrong one first."""
    scores = baselines.bm25([question], [candidate.text for candidate in candidates], [len(candidates)])
    return [candidates[place] for place in np.lexsort(([candidate.label for candidate in candidates], -scores))]


def values(labels: list[int]) -> dict[str, float]:
    """The metrics of one question whose candidates have these labels, the best first."""
    made = metrics.ranking([0] * len(labels), labels, range(len(labels), 0, -1))
    return made.per_question.iloc[0][list(METRICS)].to_dict()


def precisions(labels: list[int]) -> dict[int, str]:
    """Rank of a right candidate -> the share of right candidates down to it."""
    ranks = [rank for rank, label in enumerate(labels, 1) if label]
    return {rank: f"{count}/{rank}" for count, rank in enumerate(ranks, 1)}


def formulas(labels: list[int]) -> dict[str, str]:
    """The metrics of one question with the numbers filled in."""
    shares = precisions(labels)
    return {
        "p_at_1": "rank 1 answers" if labels[0] else "rank 1 does not answer",
        "reciprocal_rank": f"1/{min(shares)}",
        "average_precision": f"({' + '.join(shares.values())}) / {len(shares)}",
    }


def figure(question: str, candidates: list[Candidate]) -> str:
    """The question, its metrics and its candidates in the order of BM25."""
    candidates = by_bm25(question, candidates)
    labels = [candidate.label for candidate in candidates]
    filled, made = formulas(labels), values(labels)
    rows = [(metric, name, filled[metric], f"{made[metric]:.3f}") for metric, name in METRICS.items()]
    shares = precisions(labels)
    items = [(rank, *candidate, shares.get(rank, "")) for rank, candidate in enumerate(candidates, 1)]
    return render("reorder.html", question=question, rows=rows, items=items, orders=ORDERS.items())


class Reorder(SphinxDirective):
    """A question and its candidates, in an order that the reader changes."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        try:
            html = figure(self.arguments[0], read(self.content))
        except ValueError as error:
            raise self.error(str(error)) from error
        self.env.note_dependency(str(SCRIPT))
        return [nodes.raw("", f"{html}<script>\n{SCRIPT.read_text('utf-8')}</script>", format="html")]
