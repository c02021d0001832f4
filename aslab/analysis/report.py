"""The report of a paper from its records: what came out, the main table, claims, ranks that moved, vectors, examples."""

from html import escape

import pandas as pd
from IPython.display import HTML, Markdown

from .. import records
from ..cards import licence_of
from ..records import COMMITTED
from ..rundir import BUDGETS
from ..show import lists, pca
from ..show.markup import NAMES, points, spread_text
from . import claims, difference_plots, examples, verdicts
from .comparisons import printed_difference, printed_points, rows_and_runs

QUESTIONS = 3  # with their text


def answer(paper: str) -> Markdown:
    """How many headline claims have which verdict, and the difference of those that are decided."""
    data, runs = rows_and_runs(paper)
    every = claims.headline_of(data, runs)
    decided = [one for one in every if one.word in (claims.SUPPORTED, claims.SUGGESTIVE, claims.REVERSED)]
    told = [f"- *{one.word}*: {one.outcome.claim['claim']} {points(one.outcome.primary)}" for one in decided]
    return Markdown("\n".join([f"**{claims.counted(every)}.**", "", *(told or ["No claim is decided."])]))


def outcome(paper: str) -> pd.DataFrame:
    """The headline claims: what the paper says, the printed difference and ours in points, the verdict."""
    data, runs = rows_and_runs(paper)
    lines = [_line(data, one) for one in claims.headline_of(data, runs)]
    return pd.DataFrame(lines, columns=["claim", "printed", "ours [95 %]", "verdict"]).set_index("claim")


def _line(data: dict, one: claims.Judged) -> tuple[str, str, str, str]:
    printed = printed_difference(data, one.outcome.claim)
    told = f"{100 * printed.difference:+.1f}" if printed else "–"
    return one.outcome.claim["claim"], told, points(one.outcome.primary), one.word


def main_table(paper: str) -> pd.DataFrame:
    """The rows that have run, by the metrics of the headline claims: printed and ours in points, mean ± std over seeds."""
    data, runs = rows_and_runs(paper)
    asked = dict.fromkeys(_decided_by(one) for one in claims.headline_of(data, runs))
    columns = {
        (NAMES.get(dataset, dataset), f"{NAMES[metric]}, {whose}"): _column(data, runs, dataset, metric, whose)
        for dataset, metric in asked
        for whose in ("paper", "ours")
        if (runs.dataset == dataset).any()
    }
    table = pd.DataFrame(columns, index=pd.Index(data["rows"], name="row"))
    ran = table[[name for name in table if name[1].endswith("ours")]].notna().any(axis=1)
    names = {row: content["name"] for row, content in data["rows"].items()}
    return table[ran].dropna(axis=1, how="all").rename(index=names).fillna("–")


def _decided_by(one: claims.Judged) -> tuple[str, str]:
    return one.outcome.claim["dataset"], one.outcome.claim["metric"]


def _column(data: dict, runs: pd.DataFrame, dataset: str, metric: str, whose: str) -> dict[str, str]:
    """row -> its figure on a data set; rows without one are left out."""
    column = {}
    for row, content in data["rows"].items():
        if whose == "paper":
            figures = printed_points(content["published"].get(dataset, {}).get(metric), data["unit"])
            column |= {row: " ± ".join(f"{value:.1f}" for value in figures if value)} if figures else {}
        else:
            _, _, lines = next(verdicts.at_largest_budget(runs, row, dataset), ("", "", runs[:0]))
            reached = records.values(lines, metric)
            column |= {row: spread_text(reached)} if reached else {}
    return column


def claims_plot(paper: str):
    """The claims that runs test, the printed difference beside ours, as a matplotlib Figure; None where none was tested."""
    return difference_plots.claims_plot(paper)


def moves(paper: str):
    """Where the first right candidate moved between the two rows of a headline claim, as a matplotlib Figure; None for contexts."""
    for _, pair, before, after in _compared(paper):
        if records.kind(pair.lines.iloc[0].record) == "question":
            shown = examples.moves_of_rows(paper, before, after)
            return next(figure for dataset, _, figure in shown if dataset == pair.dataset)
    return None


def components(paper: str):
    """Questions and candidates in two dimensions before and after training, as a matplotlib Figure; None for models without vectors."""
    data, runs = rows_and_runs(paper)
    for claim in (one.outcome.claim for one in claims.headline_of(data, runs)):
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
        shown = [one for one in examples.of_pair(data, pair, (before, after)) if one.texts][:QUESTIONS]
        if shown:
            tables = (
                lists.beside(
                    f"{one.fate.capitalize() or 'Nearest sentences'}: {one.question}", one.ranked, one.texts, one.reason
                )
                for one in shown
            )
            return HTML("".join([f"<p>{escape(pair.place)}. Text: {escape(licence_of(pair.dataset))}.</p>", *tables]))
    return None


def _compared(paper: str):
    """(the paper's file, pair, row B, row A) of each headline claim on each data set that both have run on, the best verdict first."""
    data, runs = rows_and_runs(paper)
    best_first = sorted(claims.headline_of(data, runs), key=lambda one: claims.VERDICTS.index(one.word))
    for claim in (one.outcome.claim for one in best_first):
        for pair in examples.best_pairs(data, runs, claim["row_b"], claim["row_a"]):
            yield data, pair, claim["row_b"], claim["row_a"]
