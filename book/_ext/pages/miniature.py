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
from pages.report import PRETRAINING, Origins, baseline_lines, best_cells, our_cell, our_cells, seed_count

PYDOCS = "pydocs"
MORE = "pydocs_more"  # other questions, a table of their own
GAINS = "Differences: test questions, seeds that both rows have; intervals over questions alone, those of verdicts over seeds, too."


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
        return f"{NAMES.get(self.dataset, self.dataset)}, our own {self.kind}"


@pages.register("results", on_page=True, of_paper=True)
def results(data: dict, runs: pd.DataFrame, table: str, laptop: str = "", *, page) -> str:
    """A table of a paper beside ours; with the word `laptop` also one of pydocs."""
    if laptop not in ("", "laptop"):
        raise ValueError(f"after a table the word laptop is expected, or nothing: got {laptop!r}")
    return results_tabs(data, runs, table, bool(laptop), page.links)


def results_tabs(data: dict, runs: pd.DataFrame, table: str, laptop: bool = False, links=None) -> str:
    """A table of a paper beside ours, a tab a data set; with `laptop` also our own, before those without runs."""
    of_laptop = data["tables"][table]["datasets"] == [MORE]
    panels = [] if of_laptop else report.results_panels(data, runs, table, links)
    if laptop:
        html = laptop_table(data, runs, table, links)
        panels.insert(sum(name != report.NOT_RUN for name, _ in panels), _panel(html))
    return markup.tabs(f"as2-{data['slug']}-{table}", panels)


@pages.register("claims", of_paper=True)
def claims_tabs(data: dict, runs: pd.DataFrame) -> str:
    """The claims of a paper on its own data sets, and on pydocs."""
    panels = [
        ("The paper's data sets", differences.claims_table(data, runs)),
        _panel(differences.laptop_claims_table(data, runs)),
    ]
    return markup.tabs(f"as2-{data['slug']}-claims", panels)


def _panel(html: str) -> tuple[str, str]:
    return PYDOCS, f'<div class="as2-laptop">{html}</div>'


def laptop_table(data: dict, runs: pd.DataFrame, table: str, links=None) -> str:
    """The rows of a table at budget laptop as HTML: our own data, models below untrained baselines. Not the paper's numbers.

    The difference in MAP (in label accuracy where the table is about claims, in evidence F1 where it is about
    evidence) is that to the row's baseline, paired by question, with its 95 % bootstrap interval. A table about
    pre-training tasks or about evidence has its own figures, one about claims label accuracy on the budget's own claims.
    """
    of_paper, budget = data["tables"][table], data["budgets"]["laptop"]
    rows = [row for row in of_paper["rows"] if row in budget["rows"]]
    questions = _questions(of_paper, budget)
    lines = runs[(runs.budget == "laptop") & (runs.dataset == questions.dataset)]
    body = baseline_lines(lines, questions.metrics, 2) if questions.gained else []
    best = best_cells(data, lines[lines.row.isin(rows)], questions.metrics)
    origins = Origins(links or {}, report.models(lines))
    for row in rows:
        body += _row_lines(data, row, lines, questions, origins, best)
    count = question_count(lines) if questions.gained else 0
    size = f" {count:,} test {questions.kind}." if count else ""
    about = f"{of_paper['where']}. Budget laptop: {questions.title}; nothing of the paper."
    title = f"{about}{size}{_made_on(lines)} Points, mean ± std over seeds."
    gain = [f"{NAMES[questions.gained]} against its baseline [95 %]"] if questions.gained else []
    heads = ["Row", "From", *(NAMES[metric] for metric in questions.metrics), "Seeds", *gain]
    words = [title, *[GAINS] * bool(gain), *origins.words, *[BEST] * bool(best)]
    return html_table(" ".join(words), heads, body)


def _questions(table: dict, budget: dict) -> Questions:
    metrics = table["metrics"]
    if table["datasets"] == [PRETRAINING]:
        return Questions(PRETRAINING, metrics, gained="")
    if metrics == [*PER_CLAIM]:
        return Questions(budget["claims"][0], metrics, gained="label_accuracy", kind="claims")
    if set(metrics) & set(PER_CONTEXT):
        return Questions(budget["datasets"][0], metrics, gained="evidence_f1")
    return Questions(MORE if table["datasets"] == [MORE] else PYDOCS, list(PER_QUESTION), gained="map")


def _row_lines(data: dict, row: str, lines: pd.DataFrame, questions: Questions, origins: Origins, best: set) -> list:
    """The lines of a row: one for each source that has runs, or one that says not run."""
    of_sources = [lines[(lines.row == row) & (lines.source == source)] for source in (COMMITTED, HERE)]
    groups = [own for own in of_sources if len(own)]
    head = [markup.cell(data["rows"][row]["name"], "th", scope="row", rowspan=str(max(1, len(groups))))]
    if not groups:
        empty = len(questions.metrics) + (2 if questions.gained else 1)
        reason = testable.declared(data, row, questions.dataset)
        word = markup.said(testable.VERDICT, reason) if reason else markup.word("not run")
        return [markup.line([*head, word, *["–"] * empty])]
    made = []
    for own in groups:
        figures = our_cells(data, own, lines, questions.metrics, best)
        gain = [gain_cell(data, own, lines, questions.gained)] if questions.gained else []
        made.append(markup.line([*head, origins.cell(own.source.iloc[0], own), *figures, seed_count(data, own), *gain]))
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
def demo_of_this_machine() -> str:
    return demo_table(*rows_and_runs("sentence_objectives"))


def demo_table(data: dict, runs: pd.DataFrame) -> str:
    """What `make demo` made on this machine: each row's own task, its ranking, its gain. No committed record is shown.

    MAP of answer sentence selection on pydocs; the difference to the baseline is paired by question, with
    its 95 % bootstrap interval.

    Returns: "" where no row of the demonstration has been fine-tuned on this machine.
    """
    demo = data["demo"]
    here = runs[(runs.source == HERE) & (runs.budget == demo["budget"]) & runs.seed.isin(demo["seeds"])]
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
