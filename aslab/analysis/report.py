"""The report of a paper from its records: what came out, the main table, claims, ranks that moved, vectors, examples."""

from html import escape

import pandas as pd
from IPython.display import HTML, Markdown

from .. import records
from ..cards import licence_of
from ..records import COMMITTED
from ..rundir import BUDGETS
from ..show import lists, pca
from ..show.markup import NAMES, gain, points, spread_text
from . import claims, difference_plots, examples, verdicts
from .comparisons import printed_difference, printed_points, rows_and_runs

QUESTIONS = 3  # with their text
DECIDED = (claims.SUPPORTED, claims.SUGGESTIVE, claims.REVERSED, claims.NO_EFFECT)


def answer(paper: str) -> Markdown:
    """How many headline claims have which verdict, and the difference of those that are decided."""
    data, runs = rows_and_runs(paper)
    every = claims.headline_of(data, runs)
    decided = [claim for claim in every if claim.word in DECIDED]
    lines = [f"- *{claim.word}*: {claim.outcome.claim['claim']} {points(claim.outcome.primary)}" for claim in decided]
    return Markdown("\n".join([f"**{claims.counted(every)}.**", "", *(lines or ["No claim is decided."])]))


def outcome(paper: str) -> pd.DataFrame:
    """The headline claims: what the paper says, the printed difference and ours in points, the verdict."""
    data, runs = rows_and_runs(paper)
    lines = []
    for claim in claims.headline_of(data, runs):
        printed = gain(printed_difference(data, claim.outcome.claim))
        lines.append((claim.outcome.claim["claim"], printed, points(claim.outcome.primary), claim.word))
    return pd.DataFrame(lines, columns=["claim", "printed", "ours [95 %]", "verdict"]).set_index("claim")


def undecided(paper: str) -> Markdown:
    """Why the other headline claims with runs are not decided: the reason, or the smallest difference that our questions and seeds show.

    The smallest difference is the one that is significant in 80 % of repetitions.
    """
    data, runs = rows_and_runs(paper)
    lines = []
    for claim in claims.headline_of(data, runs):
        why = claim.outcome.reason
        if claim.word == claims.INCONCLUSIVE:
            why = f"differences from {100 * claim.outcome.smallest:.1f} points on would be significant in 80 % of repetitions"
            if printed := printed_difference(data, claim.outcome.claim):
                why += f"; the paper prints {100 * printed.difference:+.1f}"
        if why:
            lines.append(f"- *{claim.word}*: {claim.outcome.claim['claim']} {why[0].upper()}{why[1:]}.")
    return Markdown("\n".join(lines) or "Every headline claim that has run is decided.")


def main_table(paper: str) -> pd.DataFrame:
    """The rows that have run, by the metrics of the headline claims: printed and ours in points, mean ± std over seeds."""
    data, runs = rows_and_runs(paper)
    decided_by = dict.fromkeys((claim["dataset"], claim["metric"]) for claim in _headline(data, runs))
    columns = {
        (NAMES.get(dataset, dataset), f"{NAMES[metric]}, {whose}"): _column(data, runs, dataset, metric, whose)
        for dataset, metric in decided_by
        for whose in ("paper", "ours")
        if (runs.dataset == dataset).any()
    }
    table = pd.DataFrame(columns, index=pd.Index(data["rows"], name="row"))
    ran = table[[name for name in table if name[1].endswith("ours")]].notna().any(axis=1)
    names = {row: content["name"] for row, content in data["rows"].items()}
    return table[ran].dropna(axis=1, how="all").rename(index=names).fillna("–")


def _headline(data: dict, runs: pd.DataFrame) -> list[dict]:
    """The headline claims as the paper's file has them, those with the best verdict first."""
    best_first = sorted(claims.headline_of(data, runs), key=lambda claim: claims.VERDICTS.index(claim.word))
    return [claim.outcome.claim for claim in best_first]


def _column(data: dict, runs: pd.DataFrame, dataset: str, metric: str, whose: str) -> dict[str, str]:
    """row -> its figure on a data set; rows without one are left out."""
    column = {}
    for row, content in data["rows"].items():
        if whose == "paper":
            figures = printed_points(content["published"].get(dataset, {}).get(metric), data["unit"])
            mean, spread = figures or (None, None)
            column |= {row: f"{mean:.1f} ± {spread:.1f}" if spread else f"{mean:.1f}"} if figures else {}
        else:
            _, _, lines = next(verdicts.at_largest_budget(runs, row, dataset), ("", "", runs[:0]))
            reached = records.values(lines, metric)
            column |= {row: spread_text(reached)} if reached else {}
    return column


claims_plot = difference_plots.claims_plot


def moves(paper: str):
    """Where the first right candidate moved between the two rows of a headline claim, as a matplotlib Figure; None for contexts."""
    for _, pair, before, after in _compared(paper):
        if records.kind(pair.lines.iloc[0].record) == "question":
            shown = examples.moves_of_rows(*rows_and_runs(paper), before, after)
            return next(figure for dataset, _, figure in shown if dataset == pair.dataset)
    return None


def components(paper: str):
    """Questions and candidates in two dimensions before and after training, as a matplotlib Figure; None for models without vectors."""
    data, runs = rows_and_runs(paper)
    for claim in _headline(data, runs):
        if line := drawable(runs, claim["row_a"], claim["dataset"]):
            return pca.plot(line.record["pca"])
    return None


def drawable(runs: pd.DataFrame, row: str, dataset: str):
    """The record with coordinates, a committed one first, of the largest budget and first seed; None without any."""
    own = runs[(runs.row == row) & (runs.dataset == dataset)]
    lines = [line for line in own.itertuples() if line.record.get("pca")]
    best_first = lambda line: (line.source == COMMITTED, BUDGETS.index(line.budget), -line.seed)
    return max(lines, key=best_first, default=None)


def ranked_examples(paper: str) -> HTML | None:
    """Questions with their text, ranked by the two rows of a headline claim; None where no text is here."""
    for data, pair, before, after in _compared(paper):
        readable = [example for example in examples.of_pair(data, pair, (before, after)) if example.texts]
        if readable:
            tables = map(table_of, readable[:QUESTIONS])
            return HTML("".join([f"<p>{escape(pair.place)}. Text: {escape(licence_of(pair.dataset))}.</p>", *tables]))
    return None


def table_of(example: examples.Example) -> str:
    """Both rankings of a question, list next to list, as HTML."""
    fate = example.fate.capitalize() or "Nearest sentences"
    return lists.beside(f"{fate}: {example.question}", example.ranked, example.texts, example.reason)


def _compared(paper: str):
    """(the paper's file, pair, row B, row A) of each headline claim on each data set that both have run on, the best verdict first."""
    data, runs = rows_and_runs(paper)
    for claim in _headline(data, runs):
        for pair in examples.best_pairs(data, runs, claim["row_b"], claim["row_a"]):
            yield data, pair, claim["row_b"], claim["row_a"]
