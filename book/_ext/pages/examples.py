"""Two rows on the same questions: rescued and lost ones with both ranked lists side by side; of contexts the nearest sentences."""

from html import escape

import pandas as pd

from aslab import records
from aslab.analysis import comparisons
from aslab.analysis.examples import Example, best_pairs, of_pair
from aslab.analysis.report import table_of
from aslab.cards import licence_of
from asutil.metrics.changes import FATES, fates
from pages import register

OF_QUESTIONS = "Examples: not run, there is no data set on which both rows have results."
OF_CONTEXTS = "Nearest sentences: not run, no two runs of these rows hold the same questions."


@register("examples", empty=OF_QUESTIONS, of_paper=True)
@register("evidence-nearest", empty=OF_CONTEXTS, of_paper=True)
def examples_table(data: dict, runs: pd.DataFrame, before: str, after: str, dataset: str | None = None) -> str:
    """Two rescued questions and a lost one by two rows, both lists side by side, for each data set; of `dataset` alone one rescued.

    A hash chooses the questions: of this machine's runs among all of them, of committed records among those that they
    hold. Where the text of a data set is not here, its questions are counted, and no list of ids is shown.
    """
    parts, silent = [], []
    for pair in best_pairs(data, runs, before, after):
        if dataset in (None, pair.dataset):
            shown = of_pair(data, pair, (before, after), 1 if dataset else 2)
            read = [one for one in shown if one.texts]
            (parts if read else silent).append(_part(pair, (before, after), read, bool(shown)))
    return "\n".join([*parts, *silent])


def _part(pair: comparisons.Pair, rows, shown: list[Example], held: bool) -> str:
    """The examples of one data set: how many questions have which fate, then the lists.

    Args:
        held: whether both records hold lists of the same questions.
    """
    both = pair.records_of(rows, pair.seeds[0])
    counts = ""
    if records.kind(both[0].record) == "question":
        fate = fates(*map(records.per_question, both))
        told = ", ".join(f"{int((fate == word).sum()):,} {word}" for word in FATES)
        counts = f" Of {len(fate):,} questions: {told}, by first place."
    if shown:
        note = f" Text: {licence_of(pair.dataset)}."
    elif held:
        note = " The texts of its questions are not available here."
    else:
        note = " The two records keep no list of the same question."
    tables = "".join(f'<div class="as2-box" tabindex="0">{table_of(one)}</div>' for one in shown)
    return f"<p><strong>{escape(pair.place)}.</strong>{escape(counts + note)}</p>{tables}"
