"""The papers' tables beside ours, from records to HTML: cells, untrained baselines, lines."""

from html import escape
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from aslab import papers, records, rundir
from aslab.analysis import comparisons, significance_tables, testable, verdicts
from aslab.analysis.comparisons import printed_points, rows_and_runs
from aslab.papers import untrained
from aslab.records import COMMITTED, HERE, values
from aslab.show import markup
from aslab.show.markup import BEST, LEGEND, NAMES, Html
from pages import render, row
from pages import table as html_table

NOT_RUN = "Not run"  # the panel of the data sets without runs
REDUCED = "Ours is a reduced budget, so its figures are not compared with the paper's."
PRETRAINING = papers.NOTEBOOKS["pretrain"]
# Shown below a figure of an own task: what needs no training.
UNTRAINED = {
    "accuracy": {"majority": "majority"},
    "rank_1": {"chance": "rank_1_chance", "TF-IDF": "rank_1_tfidf"},
    "auc": {"TF-IDF": "auc_tfidf"},
}


def sources(paper: str) -> list[Path]:
    """The files that a paper's page is made of: its rows, its committed results, the records of its runs on this machine."""
    _, runs = rows_and_runs(paper)
    local = sorted(folder / "record.json" for folder in runs.loc[runs.source == HERE, "folder"])
    committed = sorted((rundir.root() / "results" / paper).glob("*/*.json"))
    return [rundir.root() / "experiments" / f"{paper}.yml", *committed, *local]


def logs(runs: pd.DataFrame, data: dict) -> dict[tuple[str, int], Path]:
    """The training logs of the runs on this machine, by the row's name and the seed."""
    logged = [run for run in runs.itertuples() if run.folder is not None and (run.folder / "log.jsonl").is_file()]
    return {(data["rows"][run.row]["name"], run.seed): run.folder / "log.jsonl" for run in logged}


# ------------------------------------------------------------------ a table of a paper


def results_panels(data: dict, runs: pd.DataFrame, table_id: str, links=None) -> list[tuple[str, str]]:
    """A table of the paper beside ours as (name, HTML) of each data set that has runs; then, as one panel, those that have none.

    Under each printed line is our own with budget and verdict. Rows that have not been run are folded into one line. A row
    whose `published` names the data set without figures (`{}`) has no printed line, only ours.
    Figures of a row that names a baseline have the marks of `markup.marked`: printed ones by Student's t from what is
    printed, ours by a t over seeds and a bootstrap over questions, against runs of the same budget.

    Args:
        runs: the paper's records. Runs of budget laptop are left out of this table.
        links: name of a run -> address of its page.
    Raises: ValueError for a table that the paper lacks, with the nearest name.
    """
    papers.one_of(table_id, data["tables"], data["slug"], "table")
    table = data["tables"][table_id]
    panels, without = [], []
    for name in table["datasets"]:
        rows = [row for row in table["rows"] if name in data["rows"][row]["published"]]
        ours = {row: list(verdicts.at_largest_budget(runs, row, name)) for row in rows}
        html = _of_dataset(data, table, name, runs, links or {}, ours)
        if any(ours.values()):
            panels.append((NAMES.get(name, name), html))
        else:
            without.append(html)
    return [*panels, (NOT_RUN, "\n".join(without))] if without else panels


def _of_dataset(data: dict, table: dict, dataset: str, runs: pd.DataFrame, links: dict, ours: dict[str, list]) -> str:
    """The table of a data set: untrained baselines, each row's printed line and ours; rows without runs folded away.

    Where all our lines have the verdict "reduced budget", the caption has it in place of a column.

    Args:
        ours: row -> what `verdicts.at_largest_budget` gives of it.
    """
    metrics = _metrics(table, [data["rows"][name]["published"][dataset] for name in ours])
    groups = [lines for made in ours.values() for _, _, lines in made]
    own = pd.concat(groups) if groups else runs[:0]
    best, origins = best_cells(data, own, metrics), Origins(links, models(own))

    def lines_of(names: list[str]):
        """(cells, kind) of each line: a row's printed line and ours, with its name once."""
        for name in names:
            lines = list(_printed_line(data, table, name, dataset, metrics, runs[:0], bool(ours[name])))
            lines += _our_lines(data, name, dataset, metrics, runs, origins, best, ours[name])
            heads = [_row_head(data["rows"][name], len(lines)), *[[]] * (len(lines) - 1)]
            yield from (([*head, *cells], kind) for head, (cells, kind) in zip(heads, lines))

    beside = [row for row in ours if len(own) and (ours[row] or "system_of" in data["rows"][row])]
    folded = [row for row in ours if row not in beside]
    html = ""
    if beside:
        lines = list(lines_of(beside))
        reduced = all(cells[-1] == markup.said("reduced budget") for cells, kind in lines if not kind)
        body = baseline_lines(runs[(runs.dataset == dataset) & (runs.budget != "laptop")], metrics, 3 - reduced)
        body += [markup.line(cells[: len(cells) - reduced], kind) for cells, kind in lines]
        words = [BEST] * bool(best) + origins.words + [REDUCED] * reduced
        html = _titled(table, dataset, metrics, body, words, [] if reduced else ["Verdict"])
    if folded:
        words = f"{NAMES.get(dataset, dataset)}: {len(folded)} of {len(ours)} rows without runs of ours"
        content = _titled(table, dataset, metrics, [markup.line(*line) for line in lines_of(folded)])
        html += render("details.html", kind="as2-folded", summary=words, content=content)
    return html


def _titled(table: dict, dataset: str, metrics, body: list[str], words=(), last=("Verdict",)) -> str:
    """A table with its caption: data set, place in the paper, unit and, where they are used, what the marks mean.

    Args:
        words: the last sentences of the caption. last: the last column, if any.
    """
    title = f"{NAMES.get(dataset, dataset)}. {table['where']}: {table['caption']}. Points"
    if dataset == PRETRAINING:
        title += (
            "; F1 is that of class 1. Under ours: the share of the most frequent class, or what a random order "
            "reaches (AUC: one half), and the cosine of TF-IDF vectors of the two parts."
        )
    else:
        title += ", mean ± std over seeds."
    marks = [LEGEND] * any("as2-mark" in line for line in body)
    heads = ["Row", "From", *(NAMES[metric] for metric in metrics), "Seeds", "Budget", *last]
    return html_table(" ".join([title, *marks, *words]), heads, body)


def _metrics(table: dict, cells: list[dict]) -> list[str]:
    """The metrics of a table that are printed for one of these rows; all where a figure is lost or none is printed."""
    if any(None in printed.values() for printed in cells):
        return table["metrics"]
    return [metric for metric in table["metrics"] if any(metric in printed for printed in cells)] or table["metrics"]


def _row_head(content: dict, lines: int) -> list[Html]:
    """A row's name with its notes, in a cell that spans its lines."""
    notes = [content.get("system_of"), "printed figures doubtful" if "doubtful" in content else None]
    name = Html(escape(content["name"]) + "".join(f"<small>{escape(note)}</small>" for note in notes if note))
    return [markup.cell(name, "th", scope="row", rowspan=str(lines))]


def _printed_line(data: dict, table: dict, row: str, dataset: str, metrics, no_runs: pd.DataFrame, ran: bool):
    """The printed line of a row; without printed figures, a line of ours that is not run, if it is not."""
    content = data["rows"][row]
    printed = any(metric in content["published"][dataset] for metric in metrics)
    if ran and not printed:
        return
    others = "system_of" in content  # a system of another paper, which is never trained here
    words = [] if ran or others else verdicts.of_cells(data, row, dataset, metrics, no_runs)
    theirs = [printed_cell(data, row, dataset, metric) for metric in metrics]
    single = dataset == PRETRAINING  # one model a row, pre-trained once
    seeds = "–" if single or others else table.get("runs", data.get("runs")) or "–"
    origin, budget = ("paper", [seeds, "paper"]) if printed else ("ours", ["–", "–"])
    yield [origin, *theirs, *budget, _verdict_cell(metrics, words)], "as2-from-paper" * printed


def _our_lines(data: dict, row: str, dataset: str, metrics, runs: pd.DataFrame, origins: "Origins", best: set, ours):
    """A line of ours for each source that has runs of a row; of a re-ranking's candidates alone beside printed figures of these."""
    as_printed = bool(data["rows"][row]["published"][dataset])
    for source, budget, lines in ours:
        figures = our_cells(data, lines, runs, metrics, best, as_printed=as_printed)
        verdict = _verdict_cell(metrics, verdicts.of_cells(data, row, dataset, metrics, lines))
        yield [origins.cell(source, lines), *figures, seed_count(data, lines), budget, verdict], ""


def _verdict_cell(metrics, words: list[tuple[str, str]]) -> Html:
    """One verdict where all metrics have the same; else each different one, with its reasons or its metrics below."""
    if len(set(words)) <= 1:
        return markup.said(*words[0]) if words else Html("")
    below = {}
    for metric, (word, reason) in zip(metrics, words):
        below.setdefault(word, []).append(reason or NAMES[metric])
    return Html("".join(markup.said(word, "; ".join(dict.fromkeys(lines))) for word, lines in below.items()))


# ------------------------------------------------------------------ cells and lines


def our_cell(data: dict, lines: pd.DataFrame, runs: pd.DataFrame, metric: str, as_printed=False) -> Html:
    """Our figure of one metric, with the marks of its tests where the row's baseline has run at the same budget.

    Budget laptop has no marks: its tables have a column of differences.

    Args:
        lines: the records of one row on one data set, of one source and budget. runs: all records, the baseline's
        among them.
    """
    own = lines.iloc[0]
    baseline = data["rows"][own.row].get("baseline")
    text = markup.spread_text(values(lines, metric, as_printed))
    beside = {name: values(lines, key)[:1] for name, key in UNTRAINED.get(metric, {}).items()}
    if any(beside.values()):
        notes = (f"<small>{name} {markup.spread_text(figures)}</small>" for name, figures in beside.items() if figures)
        return markup.number(Html(text + "".join(notes)))
    pairs = comparisons.pairs(runs, own.row, baseline, own.dataset)
    pair = next((pair for pair in pairs if (pair.source, pair.budget) == (own.source, own.budget)), None)
    rows = {"row_a": own.row, "row_b": baseline, "metric": metric}
    if pair is None or testable.of_pair(data, pair, rows):
        return markup.number(text)
    seeds = comparisons.over_seeds(pair, own.row, baseline, metric)
    questions = comparisons.over_questions(pair, own.row, baseline, metric)
    return markup.marked(text, data["rows"][baseline]["name"], seeds, questions)


def our_cells(data: dict, own: pd.DataFrame, runs: pd.DataFrame, metrics, best: set, as_printed=False) -> list[Html]:
    """`our_cell` of each metric, those that are in `best_cells` in bold."""
    row, source, budget = own[["row", "source", "budget"]].iloc[0]
    cells = [(metric, our_cell(data, own, runs, metric, as_printed)) for metric in metrics]
    return [markup.best(cell) if (row, source, budget, metric) in best else cell for metric, cell in cells]


def best_cells(data: dict, lines: pd.DataFrame, metrics) -> set[tuple[str, str, str, str]]:
    """(row, source, budget, metric) of the figures that are the best of a table, or not to be told from the best over questions."""
    groups = lines.groupby(["source", "budget"])
    return {
        (row, *group, metric)
        for group, own in groups
        for metric in metrics
        for row in comparisons.best_rows(data, own, metric)
    }


def printed_cell(data: dict, row: str, dataset: str, metric: str) -> Html:
    """A published cell, with the mark of its t test where the row names a baseline."""
    content = data["rows"][row]
    cells = content["published"][dataset]
    if metric not in cells:
        return markup.number("–")
    published = cells[metric]
    if isinstance(published, dict):
        return markup.number(f"{published['relative']:+.1f} %")
    figures = printed_points(published, data["unit"])
    if figures is None:
        return markup.number("baseline" if published == "baseline" else "lost")
    texts = [f"{value:.2f}" for value in (figures if isinstance(published, list) else figures[:1])]
    one_digit = all(text.endswith("0") for text in texts)
    text = " ± ".join(text[:-1] if one_digit else text for text in texts)
    test = significance_tables.printed(data, row, dataset, metric)
    return markup.marked(text, data["rows"][content["baseline"]]["name"], test) if test else markup.number(text)


def baseline_lines(lines: pd.DataFrame, metrics, after: int) -> list[str]:
    """Lines of untrained baselines, from records of models on the same questions; a zero-shot line a backbone.

    A record of `find_evidence` has each model before its own training as baseline, so it gives none here.

    Args:
        after: how many empty cells follow the figures.
    """
    known = {}
    for line in lines.itertuples():
        of_same_split = records.split(line) == records.reported(line)
        if of_same_split and line.record.get("notebook") != "find_evidence":
            for name, figures in (line.record.get("baselines") or {}).items():
                known.setdefault((name, records.backbone(line) if name == "zero_shot" else ""), figures)
    body = []
    for (name, backbone), figures in known.items():
        if not figures:  # an order that means nothing for this data set
            continue
        cells = [markup.spread([figures[m]] if figures.get(m) is not None else []) for m in metrics]
        note = f"<small>{escape(backbone)}</small>" if backbone else ""
        head = Html(escape(NAMES.get(name, name)) + note)
        body.append(row(head, "no training", *cells, *"–" * after, kind="as2-from-baseline"))
    return body


def seed_count(data: dict, lines: pd.DataFrame) -> str:
    """The number of seeds of some records of one row; said so where nothing was trained."""
    return f"{len(lines)}, untrained" if untrained(data, lines.row.iloc[0]) else str(len(lines))


class Origins(NamedTuple):
    """Where the figures of a table come from: addresses of the runs' pages, and all models that its runs began with.

    A single model is in the caption (`words`), several are in the lines.
    """

    links: dict[str, str]
    models: list[str]

    @property
    def words(self) -> list[str]:
        return [f"Our runs began with {self.models[0]}."] if len(self.models) == 1 else []

    def cell(self, source: str, lines: pd.DataFrame) -> Html:
        """The origin of a line's figures, with links to the pages of executed notebooks."""
        names = escape(", ".join(models(lines))) if len(self.models) > 1 else ""
        began = f'<small class="as2-model">{names}</small>' if names else ""
        pages = [(self.links[run.name], run.seed) for run in lines.itertuples(index=False) if run.name in self.links]
        if source == COMMITTED:
            notebooks = (
                f'<a class="as2-notebook" href="{escape(address)}" aria-label="Executed notebook, seed {seed}"></a>'
                for address, seed in pages
            )
            return Html(f"ours{''.join(notebooks)}{began}")
        made = [f'<a href="{escape(address)}">seed {seed}</a>' for address, seed in pages]
        return Html("ours, this machine" + (f" ({', '.join(made)})" if made else "") + began)


def models(lines: pd.DataFrame) -> list[str]:
    """The models that some runs began with."""
    return list(filter(None, dict.fromkeys(records.backbone(line).rsplit("/", 1)[-1] for line in lines.itertuples())))
