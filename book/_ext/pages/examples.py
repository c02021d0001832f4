"""Two models on the same questions: rescued and lost ones, both ranked lists side by side, ranks that moved.

A ranking's lines have the classes `as2-right` and `as2-wrong`, its table `as2-ranking`.
"""

from html import escape

import pandas as pd

from aslab import records
from aslab.analysis import comparisons
from aslab.analysis.examples import at_hand, best_pairs, lists, texts_of
from aslab.show import markup, plots
from aslab.show.markup import NAMES, Html
from asutil.metrics.changes import FATES, fates, move_counts, rank_moves
from pages import register, row, table

IDS_SHOWN = "The texts of this data set are not available here; ids are shown."
WITHOUT_TEXT = f"<p>{IDS_SHOWN} The paper's page <em>Run</em> has the commands that make both rankings again.</p>"

# ------------------------------------------------------------------ ranked lists


def side_by_side(question: str, ranked: dict[str, list], texts: dict[str, str] | None = None) -> str:
    """The best candidates of a question by two models, list beside list; right ones ✓, wrong ones ✗, texts escaped.

    Args:
        ranked: name of a model -> its candidates as `best_of` gives them.
        texts: candidate id -> text; a candidate without text is shown by its id.
    """
    body = []
    for rank in range(max(map(len, ranked.values()))):
        cells = [_candidate(entries[rank], texts or {}) if rank < len(entries) else "" for entries in ranked.values()]
        body.append(row(rank + 1, *cells))
    return table(question, ["Rank", *ranked], body, "as2-table as2-beside")


def place(pair: comparisons.Pair, texts) -> str:
    """The line above the lists of one data set, where there may be no texts."""
    without = "" if texts else f" {IDS_SHOWN}"
    return f"<p><strong>{escape(pair.place)}.</strong>{without}</p>"


def _candidate(entry: list, texts: dict[str, str]) -> Html:
    name, label, score, _ = entry
    kind, mark, words = ("as2-right", "✓", "answers") if label else ("as2-wrong", "✗", "does not answer")
    text = f'<abbr title="{words}">{mark}</abbr> {escape(str(texts.get(name, name)))} <small>score {score:.3f}</small>'
    return markup.cell(Html(text), kind=kind, **{"data-candidate": str(name)})


# ------------------------------------------------------------------ two rows of a paper


def moves_of_rows(paper: str, before: str, after: str, runs: pd.DataFrame | None = None, folder=None) -> list[tuple]:
    """(data set, what the figure shows in words, Figure) for each data set on which both rows have run, all seeds."""
    data, runs = comparisons.rows_and_runs(paper, runs, folder)
    shown, pairs = [], best_pairs(data, runs, before, after)
    names = [data["rows"][name]["name"] for name in (before, after)]
    for pair in pairs:
        each = [rank_moves(*map(records.per_question, pair.records_of((before, after), seed))) for seed in pair.seeds]
        moves = pd.concat(each)
        words = _moves_in_words(pair, names, move_counts(moves), len(each[0]))
        shown.append((pair.dataset, words, plots.moves_plot(moves, *names)))
    return shown


def _moves_in_words(pair: comparisons.Pair, names: list[str], count: dict[str, int], questions: int) -> str:
    several = len(pair.seeds) > 1
    seeds = f"{len(pair.seeds)} seeds put together" if several else f"seed {pair.seeds[0]}"
    moved = f"{questions:,} questions" + (f" times {len(pair.seeds)} seeds" if several else "")
    return (
        f"{NAMES.get(pair.dataset, pair.dataset)}, budget {pair.shown_budget}, {seeds}: of {moved} the first right candidate "
        f"ranks higher by {names[1]} than by {names[0]} for {count['higher']:,}, the same for {count['as before']:,}, "
        f"lower for {count['lower']:,}."
    )


@register("examples", empty="Examples: not run, there is no data set on which both rows have results.")
def examples(paper: str, before: str, after: str, dataset: str | None = None) -> str:
    return examples_table(paper, before, after, limit=1 if dataset else 2, dataset=dataset)


def examples_table(
    paper: str,
    before: str,
    after: str,
    runs: pd.DataFrame | None = None,
    limit: int = 2,
    folder=None,
    dataset: str | None = None,
) -> str:
    """Some rescued questions and a lost one by two rows, both lists side by side; a part a data set, or one alone.

    A hash chooses the questions: of this machine's runs among all of them, of committed records among those that they
    hold. Where the data set is not on this machine, ids and the command that makes the ranking again replace the texts.
    """
    data, runs = comparisons.rows_and_runs(paper, runs, folder)
    pairs = [pair for pair in best_pairs(data, runs, before, after) if dataset in (None, pair.dataset)]
    names = [data["rows"][name]["name"] for name in (before, after)]
    parts = [_of_pair(pair, (before, after), names, limit) for pair in pairs]
    parts.sort(key=lambda lines: lines[-1] == WITHOUT_TEXT)  # what can be read comes first
    return "\n".join(part for lines in parts for part in lines)


def _of_pair(pair: comparisons.Pair, rows, names: list[str], limit: int) -> list[str]:
    """The examples of one data set: how many questions have which fate, then the lists."""
    both = pair.records_of(rows, pair.seeds[0])
    fate = fates(*map(records.per_question, both))
    ranked = lists(both, rows[0], fate, limit)
    questions, tables = at_hand(both[1].record, pair.dataset, ranked), ""
    for name, two in ranked.items():
        title, texts = texts_of(questions.get(name), name, two)
        tables += side_by_side(f"{fate[name].capitalize()}: {title}", dict(zip(names, two)), texts)
    counts = ", ".join(f"{int((fate == word).sum()):,} {word}" for word in FATES)
    parts = [
        f"<p><strong>{escape(pair.place)}.</strong> Of {len(fate):,} questions: {counts}, by first place.</p>{tables}"
    ]
    if not tables:
        parts.append("<p>The committed records of these two rows share no question.</p>")
    elif not questions:
        parts.append(WITHOUT_TEXT)
    return parts
