"""Tables of budget laptop, a miniature of each paper on pydocs, and of what `make demo` runs."""

from typing import NamedTuple

import pandas as pd

import pages
from aslab.analysis import comparisons, testable
from aslab.analysis.comparisons import rows_and_runs
from aslab.analysis.verdicts import question_count
from aslab.records import COMMITTED, HERE, PER_CLAIM, PER_CONTEXT, PER_QUESTION
from aslab.show import markup
from aslab.show.markup import BEST, NAMES, Html
from pages import differences, report
from pages import table as html_table
from pages.report import PRETRAINING, baseline_lines, best_cells, origin_cell, our_cell, seed_count


class Questions(NamedTuple):
    """What a laptop table shows: data set, metrics, the metric of its column of differences ("" for none), words."""

    dataset: str
    metrics: list[str]
    gained: str
    kind: str = "questions"

    @property
    def title(self) -> str:
        if self.dataset == PRETRAINING:
            return "the task of each row on held-out documents; F1 is that of class 1"
        return f"{self.dataset}, our own {self.kind}"


@pages.register("results", on_page=True)
def results(paper: str, table: str, laptop: str = "", *, page) -> str:
    """A table of a paper beside ours; with the word `laptop` also one of pydocs."""
    if laptop not in ("", "laptop"):
        raise ValueError(f"after a table the word laptop is expected, or nothing: got {laptop!r}")
    return results_tabs(paper, table, bool(laptop), links=page.links)


def results_tabs(
    paper: str, table: str, laptop: bool = False, runs: pd.DataFrame | None = None, links=None, folder=None
) -> str:
    """A table of a paper beside ours, a tab a data set; with `laptop` also our own, before those without runs."""
    panels = report.results_panels(paper, table, runs, links=links, folder=folder)
    if laptop:
        html = laptop_table(paper, runs, links=links, folder=folder, table=table)
        panels.insert(sum(name != report.NOT_RUN for name, _ in panels), _panel(html))
    return markup.tabs(f"as2-{paper}-{table}", panels)


@pages.register("claims")
def claims_tabs(paper: str, runs: pd.DataFrame | None = None, folder=None) -> str:
    """The claims of a paper on its own data sets, and on pydocs."""
    panels = [
        ("The paper's data sets", differences.claims_table(paper, runs, folder=folder)),
        _panel(differences.laptop_claims_table(paper, runs, folder=folder)),
    ]
    return markup.tabs(f"as2-{paper}-claims", panels)


def _panel(html: str) -> tuple[str, str]:
    return "pydocs", f'<div class="as2-laptop">{html}</div>'


def laptop_table(
    paper: str,
    runs: pd.DataFrame | None = None,
    dataset: str = "pydocs",
    links=None,
    folder=None,
    table: str | None = None,
) -> str:
    """Budget laptop as HTML: our own data, models below untrained baselines. Not the paper's numbers.

    The difference in MAP (in label accuracy where the table is about claims, in evidence F1 where it is about
    evidence) is that to the row's baseline, paired by question, with its 95 % bootstrap interval. A paper without
    laptop budget shows all its rows as not run.

    Args:
        table: shows only the rows of this table of the paper: one about pre-training tasks or about evidence with its
        own figures, one
            about claims with label accuracy on the budget's own claims.
    """
    data, runs = rows_and_runs(paper, runs, folder)
    budget = data.get("budgets", {}).get("laptop", {"rows": list(data["rows"]), "claims": [dataset]})
    rows = [row for row in data["tables"][table]["rows"] if row in budget["rows"]] if table else budget["rows"]
    shown = _shown(data["tables"][table] if table else {}, budget, dataset)
    lines = runs[(runs.budget == "laptop") & (runs.dataset == shown.dataset)]
    body = baseline_lines(lines, shown.metrics, 4) if shown.gained else []
    best = best_cells(data, lines[lines.row.isin(rows)], shown.metrics)
    for row in rows:
        body += _row_lines(data, row, lines, shown, links or {}, best)
    where = f"{data['tables'][table]['where']}. " if table else ""
    size = f" {question_count(lines):,} test {shown.kind}." if shown.gained and question_count(lines) else ""
    title = f"{where}Budget laptop: {shown.title}; nothing of the paper.{size}{_made_on(lines)} Points, mean ± std over seeds."
    if best:
        title += f" {BEST}"
    gain = [f"{NAMES[shown.gained]} against its baseline [95 %]"] if shown.gained else []
    heads = ["Row", "From", *(NAMES[metric] for metric in shown.metrics), "Seeds", "Budget", *gain, "Verdict"]
    return html_table(title, heads, body)


def _shown(table: dict, budget: dict, dataset: str) -> Questions:
    metrics = table.get("metrics", [])
    if table.get("datasets") == [PRETRAINING]:
        return Questions(PRETRAINING, metrics, gained="")
    if metrics == [*PER_CLAIM]:
        return Questions(budget["claims"][0], metrics, gained="label_accuracy", kind="claims")
    if set(metrics) & set(PER_CONTEXT):
        return Questions(budget["datasets"][0], metrics, gained="evidence_f1")
    return Questions(dataset, list(PER_QUESTION), gained="map")


def _row_lines(data: dict, row: str, lines: pd.DataFrame, shown: Questions, links: dict, best: set) -> list[str]:
    """The lines of a row: one for each source that has runs, or one that says not run."""
    of_sources = [lines[(lines.row == row) & (lines.source == source)] for source in (COMMITTED, HERE)]
    groups = [own for own in of_sources if len(own)]
    head = [markup.cell(data["rows"][row]["name"], "th", scope="row", rowspan=str(max(1, len(groups))))]
    if not groups:
        empty = len(shown.metrics) + (4 if shown.gained else 3)
        reason = testable.declared(data, row, shown.dataset)
        word = markup.said(testable.VERDICT, reason) if reason else markup.word("not run")
        return [markup.line([*head, word, *["–"] * empty])]
    made = []
    for own in groups:
        source = own.source.iloc[0]
        figures = [our_cell(data, own, lines, metric) for metric in shown.metrics]
        figures = [
            markup.best(cell) if (row, source, "laptop", metric) in best else cell
            for cell, metric in zip(figures, shown.metrics)
        ]
        gain = [gain_cell(data, own, lines, shown.gained)] if shown.gained else []
        words = [seed_count(data, own), "laptop", *gain, markup.word("reduced budget")]
        origin = origin_cell(source, own, links)
        made.append(markup.line([*head, origin, *figures, *words]))
        head = []
    return made


def gain_cell(data: dict, own: pd.DataFrame, lines: pd.DataFrame, metric: str) -> Html:
    """The difference of a row of the laptop budget to its baseline, question by question, both from one source.

    Args:
        own: the row's records of one source. lines: the records of all rows on the same data set.
    """
    row, source = own.row.iloc[0], own.source.iloc[0]
    other = data["rows"][row].get("baseline")
    same = lines[lines.source == source]
    pair = next(comparisons.pairs(same, row, other, own.dataset.iloc[0], ("laptop",)), None) if other else None
    if pair is None:
        return markup.number(markup.points(None))
    if reason := testable.of_pair(data, pair, {"row_a": row, "row_b": other, "metric": metric}):
        return markup.said(testable.VERDICT, reason)
    return markup.number(markup.points(comparisons.over_questions(pair, row, other, metric)))


def _made_on(lines: pd.DataFrame) -> str:
    """Which machines made the committed runs among some lines."""
    machines = (line.record.get("hardware", {}) for line in lines[lines.source == COMMITTED].itertuples())
    words = (f"{one['cpu_cores']} {one['architecture']} cores, {one['system']}" for one in machines if one)
    different = list(dict.fromkeys(words))
    return f" Ours: {'; '.join(different)}." if different else ""


@pages.register("demo", empty="Nothing has run on this machine yet: the command make demo fills this table.")
def demo_table(paper: str = "sentence_objectives", runs: pd.DataFrame | None = None, folder=None) -> str:
    """What `make demo` made on this machine: each row's own task, its ranking, its gain. No committed record is shown.

    MAP of answer sentence selection on pydocs; the difference to the baseline is paired by question, with
    its 95 % bootstrap interval.

    Returns: "" where no row of the demonstration has been fine-tuned on this machine.
    """
    data, runs = rows_and_runs(paper, runs, folder)
    demo = data["demo"]
    here = runs[(runs.source == HERE) & (runs.budget == demo["budget"])]
    ranked = here[here.dataset.isin(data["budgets"][demo["budget"]]["datasets"]) & here.row.isin(demo["rows"])]
    if ranked.empty:
        return ""
    body = baseline_lines(ranked, ["map"], 1)
    for row in demo["rows"]:
        own, task = ranked[ranked.row == row], here[(here.dataset == PRETRAINING) & (here.row == row)]
        figures = [
            our_cell(data, lines, here, metric) if len(lines) else markup.number("–")
            for lines, metric in ((task, "auc"), (own, "map"))
        ]
        gain = gain_cell(data, own, ranked, "map") if len(own) else markup.number("–")
        name = markup.cell(data["rows"][row]["name"], "th", scope="row")
        body.append(markup.line([name, *figures, gain]))
    dataset = ranked.dataset.iloc[0]
    count = question_count(ranked)
    questions = f"{count:,} test questions of {dataset}" if count else f"test questions of {dataset}"
    title = f"Made on this machine: {questions}, one seed. Points."
    gained = f"{NAMES['map']} against its baseline [95 %]"
    return html_table(title, ["Row", "AUC on its own task, held-out documents", NAMES["map"], gained], body)
