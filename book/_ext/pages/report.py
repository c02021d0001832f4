"""Records in, display out: the papers' tables beside ours, verdicts, training curves. No number here is typed by hand."""

from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from aslab import papers, plan
from aslab import records as measured
from aslab.papers import untrained
from aslab.records import COMMITTED, HERE, PER_CLAIM, PER_CONTEXT, PER_QUESTION, records, values
from aslab.show import markup
from aslab.show.markup import LEGEND, NAMES, Html
from asutil.io import rundir, spelling
from pages import comparisons, testable
from pages.comparisons import given, printed_points

# The worst first: the verdict of a line is the worst of its cells.
VERDICTS = (
    "differs",
    "close",
    "matches",
    "reduced budget",
    testable.VERDICT,
    "private data",
    "not run",
    "not published",
)
PRETRAINING = papers.NOTEBOOKS["pretrain"]
SEEDS = 3  # that a match asks for
# Below a figure of an own task: what needs no training.
UNTRAINED = {
    "accuracy": {"majority": "majority"},
    "rank_1": {"chance": "rank_1_chance", "TF-IDF": "rank_1_tfidf"},
    "auc": {"TF-IDF": "auc_tfidf"},
}


def sources(
    paper: str, results: str | Path = "results", runs_dir: str | Path = "runs", folder: str | Path | None = None
) -> list[Path]:
    """The files that a paper's page is made of: its rows, its committed results, the records of its runs on this machine."""
    rows = (Path(folder) if folder else rundir.root() / "experiments") / f"{paper}.yml"
    found = records(paper, results, runs_dir, folder)
    local = [path / "record.json" for path in found.loc[found.source == HERE, "folder"]]
    return [rows, *sorted((rundir.root() / results / paper).glob("*/*.json")), *sorted(local)]


def logs(found: pd.DataFrame, data: dict) -> dict[tuple[str, int], Path]:
    """The training logs of the runs on this machine, by the row's name and the seed."""
    logged = [run for run in found.itertuples() if run.folder is not None and (run.folder / "log.jsonl").is_file()]
    return {(data["rows"][run.row]["name"], run.seed): run.folder / "log.jsonl" for run in logged}


def _groups(found: pd.DataFrame, row: str, dataset: str, budgets=rundir.BUDGETS[1:]):
    """(source, budget, records) of a row on a data set: of each source its largest budget."""
    for source in (COMMITTED, HERE):
        lines = found[(found.row == row) & (found.dataset == dataset) & (found.source == source)]
        for budget in reversed(budgets):
            if (lines.budget == budget).any():
                yield source, budget, lines[lines.budget == budget]
                break


def verdict(
    published,
    ours: list[float],
    questions: int | None = None,
    at_paper_settings: bool = False,
    private: bool = False,
    seeds: int = SEEDS,
) -> str:
    """How one of our numbers stands to the printed one, in words.

    t = min(2, max(2 std, 0.5, 100 / questions)) points; matches: |ours - published| <= t and as many seeds as asked; close: <= 2 t
    Args:
        published: (mean, std) or a mean, in points (0 to 100); None where there is no number to compare with.
        ours: one value a seed, 0 to 1.
        questions: of the test set; None where the metric is not a mean over questions.
        at_paper_settings: whether the runs' effective parameters and data are the paper's; if not, nothing is compared.
        seeds: that a match asks for, 3, or 1 where nothing was trained and there is no spread.
    Example:
        >>> verdict((78.3, 2.8), [0.77, 0.78, 0.78], questions=237, at_paper_settings=True)
        'matches'
    """
    if private:
        return "private data"
    if not ours:
        return "not run"
    if not at_paper_settings:
        return "reduced budget"
    if published is None:
        return "not published"
    mean, std = published if isinstance(published, tuple | list) else (published, 0.0)
    tolerance = min(2.0, max(2 * std, 0.5, 100 / questions if questions else 0.0))
    gap = round(abs(100 * float(np.mean(ours)) - mean), 9)
    if gap <= tolerance and len(ours) >= seeds:
        return "matches"
    return "close" if gap <= 2 * tolerance else "differs"


def _judged(data: dict, row: str, dataset: str, metrics, lines: pd.DataFrame) -> list[tuple[str, str]]:
    """The verdict of each metric of a line, and why nothing can be tested where that is the verdict; `lines` may be empty."""
    chains = [measured.chain(line) for line in lines.itertuples()]
    exact = all(plan.at_paper_settings(data, row, dataset, chain) for chain in chains)
    cells, private = data["rows"][row]["published"].get(dataset, {}), dataset in data.get("private", ())
    ours, asked, seeds = (
        {m: values(lines, m, as_printed=True) for m in metrics},
        _questions(lines),
        1 if untrained(data, row) else SEEDS,
    )
    words = {
        m: verdict(printed_points(cells.get(m), data["unit"]), ours[m], asked, exact, private, seeds) for m in metrics
    }
    reasons = {
        "not run": lambda _: testable.declared(data, row, dataset),
        "reduced budget": lambda m: testable.of_row(data, lines, m),
    }
    known = [(word, reasons[word](m) if word in reasons else "") for m, word in words.items()]
    return [(testable.VERDICT, reason) if reason else (word, "") for word, reason in known]


def _verdicts(*line) -> list[str]:
    """The words of `_judged`."""
    return [word for word, _ in _judged(*line)]


def _questions(lines: pd.DataFrame) -> int | None:
    """How many test questions or claims stand behind a line; None for a pre-training run."""
    figures = next((measured.figures(one) for one in lines.itertuples()), {})
    return figures.get("questions") or figures.get("claims")


def line_verdicts(data: dict, found: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(row, data set) -> the worst verdict of its cells, by the committed results alone."""
    out = {}
    for row, content in ((row, content) for row, content in data["rows"].items() if "system_of" not in content):
        for dataset, cells in ((name, cells) for name, cells in content["published"].items() if cells):
            groups = [lines for source, _, lines in _groups(found, row, dataset) if source == COMMITTED]
            words = _verdicts(data, row, dataset, cells, groups[0] if groups else found.iloc[:0])
            out[row, dataset] = min(words, key=VERDICTS.index)
    return out


def results_table(
    paper: str, table_id: str, found: pd.DataFrame | None = None, dataset: str | None = None, links=None, folder=None
) -> str:
    """A table of the paper beside ours as HTML, one table a data set: each printed line, and under it our own with budget and verdict.

    A row whose `published` names the data set without figures (`{}`) is ours alone there, and has no printed line.
    Figures of a row that names a baseline have the marks of `markup.marked`: printed ones by Student's t from what is printed, ours by
    a t over seeds and a bootstrap over questions, against runs of the same budget.

    Args:
        found: what `records` gave; read anew by default. Runs of budget laptop never stand in this table.
        dataset: one of the table's data sets; all by default.
        links: name of a run -> address of its page.
    Raises: ValueError for a table or data set that the paper lacks, with the nearest name.
    """
    data, found = given(paper, found, folder)
    if table_id not in data["tables"]:
        known = ", ".join(data["tables"])
        raise ValueError(
            f"{paper} has no table {table_id!r}{spelling.nearest(table_id, data['tables'])} (it has: {known})"
        )
    table = data["tables"][table_id]
    if dataset is not None and dataset not in table["datasets"]:
        raise ValueError(f"{table_id} has no data set {dataset!r} (it has: {', '.join(table['datasets'])})")
    return "\n".join(
        _one_table(data, table, name, found, links or {}) for name in ([dataset] if dataset else table["datasets"])
    )


def _one_table(data: dict, table: dict, dataset: str, found: pd.DataFrame, links: dict) -> str:
    rows = {name: data["rows"][name] for name in table["rows"] if dataset in data["rows"][name]["published"]}
    cells = [row["published"][dataset] for row in rows.values()]
    lost = any(None in one.values() for one in cells)  # then every column is shown: nobody knows which were printed
    metrics = [m for m in table["metrics"] if lost or any(m in one for one in cells)] or table["metrics"]
    body = _baselines(found[(found.dataset == dataset) & (found.budget != "laptop")], metrics, 3)
    single = dataset == PRETRAINING  # one model a row, pre-trained once
    for row, content in rows.items():
        groups, shown = list(_groups(found, row, dataset)), []
        printed = any(metric in content["published"][dataset] for metric in metrics)
        if printed or not groups:
            compared = not groups and "system_of" not in content
            words = _judged(data, row, dataset, metrics, found.iloc[:0]) if compared else []
            theirs = [_printed(data, row, dataset, metric) for metric in metrics]
            seeds = "–" if single or "system_of" in content else table.get("runs", data.get("runs"))
            budget = [seeds or "–", "paper"] if printed else ["–", "–"]
            origin = "paper" if printed else "ours"
            shown.append(([origin, *theirs, *budget, _said(metrics, words)], f"as2-from-{origin}"))
        for source, budget, lines in groups:
            origin = Html("ours" if source == COMMITTED else "ours, this machine" + _linked(lines, links))
            ours = [_ours(data, row, found, source, budget, lines, metric, as_printed=True) for metric in metrics]
            words = _judged(data, row, dataset, metrics, lines)
            shown.append(([origin, *ours, _seeds(data, row, lines), budget, _said(metrics, words)], "as2-from-ours"))
        notes = [content.get("system_of"), "printed figures doubtful" if "doubtful" in content else None]
        name = Html(escape(content["name"]) + "".join(f"<small>{escape(note)}</small>" for note in notes if note))
        head = markup.cell(name, "th", scope="row", rowspan=str(len(shown)))
        body += [markup.line([*([] if place else [head]), *cells], kind) for place, (cells, kind) in enumerate(shown)]
    title = f"{NAMES.get(dataset, dataset)}. {table['where']}: {table['caption']}. Points"
    title += (
        "; F1 is that of class 1. Under ours: the share of the most frequent class, or what a random order "
        "reaches (AUC: one half), and the cosine of TF-IDF vectors of the two parts."
        if single
        else ", mean ± std over seeds."
    )
    if any("as2-mark" in shown for shown in body):
        title += f" {LEGEND}"
    heads = ["Row", "From", *(NAMES[m] for m in metrics), "Seeds", "Budget", "Verdict"]
    return markup.table(title, heads, body)


def _ours(
    data: dict,
    row: str,
    found: pd.DataFrame,
    source: str,
    budget: str,
    lines: pd.DataFrame,
    metric: str,
    as_printed=False,
) -> Html:
    """Our figure of one metric; with the marks of its tests where the row names a baseline that has run at the same budget."""
    text, baseline, dataset = (
        spread(values(lines, metric, as_printed)),
        data["rows"][row].get("baseline"),
        lines.dataset.iloc[0],
    )
    if beside := {name: known for name, key in UNTRAINED.get(metric, {}).items() if (known := values(lines, key))}:
        return markup.number(
            Html(text + "".join(f"<small>{name} {spread(known[:1])}</small>" for name, known in beside.items()))
        )
    where = [
        at for at in comparisons.pairs(found, row, baseline, dataset) if (at.source, at.budget) == (source, budget)
    ]
    if not where or testable.of_pair(data, where[0].of(row), where[0].of(baseline), metric):
        return markup.number(text)
    tests = (
        comparisons.over_seeds(where[0].lines, row, baseline, metric),
        comparisons.over_questions(where[0], row, baseline, metric),
    )
    return markup.marked(text, data["rows"][baseline]["name"], *tests)


def _seeds(data: dict, row: str, lines: pd.DataFrame) -> str:
    return f"{len(lines)}, untrained" if untrained(data, row) else str(len(lines))


def _baselines(lines: pd.DataFrame, metrics, after: int) -> list[str]:
    """Lines of the untrained baselines, from the records of models on the same questions; a zero-shot line for each backbone."""
    same = (one for one in lines.itertuples() if measured.split(one) == measured.reported(one))
    same = (
        one for one in same if one.record.get("notebook") != "find_evidence"
    )  # its baseline is each model before its own training
    known = {}
    for one in same:
        for name, figures in (one.record.get("baselines") or {}).items():
            known.setdefault((name, measured.backbone(one) if name == "zero_shot" else ""), figures)
    body = []
    for (name, backbone), figures in known.items():
        if not figures:  # an order that means nothing for this data set
            continue
        numbers = [markup.number(spread([figures[m]] if figures.get(m) is not None else [])) for m in metrics]
        note = f"<small>{escape(backbone)}</small>" if backbone else ""
        head = markup.cell(Html(escape(NAMES.get(name, name)) + note), "th", scope="row")
        body.append(markup.line([head, "no training", *numbers, *["–"] * after], "as2-from-baseline"))
    return body


def laptop_table(
    paper: str,
    found: pd.DataFrame | None = None,
    dataset: str = "pydocs",
    links=None,
    folder=None,
    table: str | None = None,
) -> str:
    """Budget laptop as HTML: our own data and the embedded corpus, models beside orders that no training made. Not the paper's numbers.

    The difference in MAP (in evidence F1 where the table is about evidence) is that to the row's baseline, paired by question, with its
    95 % bootstrap interval. A paper that has no laptop budget yet shows all its rows as not run.

    Args:
        table: the rows of this table of the paper alone; where it is about pre-training tasks, the table's own figures, where it is about
            claims, label accuracy on the budget's own, and where it is about evidence in long contexts, the table's own figures.
    """
    data, found = given(paper, found, folder)
    budget = data.get("budgets", {}).get("laptop", {"rows": list(data["rows"]), "claims": [dataset]})
    shown = data["tables"][table] if table else {"datasets": [], "metrics": [], "rows": budget["rows"]}
    rows, tasks = [row for row in shown["rows"] if row in budget["rows"]], shown["datasets"] == [PRETRAINING]
    claims, evidence = shown["metrics"] == [*PER_CLAIM], set(shown["metrics"]) & set(PER_CONTEXT)
    dataset = (
        PRETRAINING if tasks else budget["claims"][0] if claims else budget["datasets"][0] if evidence else dataset
    )
    lines = found[(found.budget == "laptop") & (found.dataset == dataset)]
    metrics = (
        shown["metrics"] if tasks else list(PER_CLAIM if claims else shown["metrics"] if evidence else PER_QUESTION)
    )
    gained, kind = ("label_accuracy", "claims") if claims else ("evidence_f1" if evidence else "map", "questions")
    body, where = [] if tasks else _baselines(lines, metrics, 4), f"{shown['where']}. " if table else ""
    for row in rows:
        groups = [
            own for source in (COMMITTED, HERE) if len(own := lines[(lines.row == row) & (lines.source == source)])
        ]
        head = [markup.cell(data["rows"][row]["name"], "th", scope="row", rowspan=str(max(1, len(groups))))]
        if not groups:
            body.append(
                markup.line([*head, markup.word("not run"), *["–"] * (len(metrics) + 4 - tasks)], "as2-from-ours")
            )
        for own in groups:
            source = own.source.iloc[0]
            figures = [_ours(data, row, lines, source, "laptop", own, metric) for metric in metrics]
            origin = Html("ours" if source == COMMITTED else "ours, this machine" + _linked(own, links or {}))
            gain = [] if tasks else [_gain(data, row, lines, source, gained)]
            words = [_seeds(data, row, own), "laptop", *gain, markup.word("reduced budget")]
            body.append(markup.line([*head, origin, *figures, *words], "as2-from-ours"))
            head = []
    size = f" {_questions(lines):,} test {kind}." if not tasks and _questions(lines) else ""
    task = (
        "the task of each row on held-out documents; F1 is that of class 1" if tasks else f"{dataset}, our own {kind}"
    )
    title = f"{where}Budget laptop: {task}; nothing of the paper.{size}{_made_on(lines)} Points, mean ± std over seeds."
    gain = [] if tasks else [f"{NAMES[gained]} against its baseline [95 %]"]
    return markup.table(title, ["Row", "From", *(NAMES[m] for m in metrics), "Seeds", "Budget", *gain, "Verdict"], body)


def _gain(data: dict, row: str, lines: pd.DataFrame, source: str, metric: str) -> Html:
    """The difference of a row of the laptop budget to its baseline, question by question, both from one source."""
    other, dataset = data["rows"][row].get("baseline"), lines.dataset.iloc[0]
    same = comparisons.pairs(lines[lines.source == source], row, other, dataset, ("laptop",)) if other else iter(())
    pair = next(same, None)
    if reason := pair and testable.of_pair(data, pair.of(row), pair.of(other), metric):
        return markup.said(testable.VERDICT, reason)
    return markup.number(markup.points(pair and comparisons.over_questions(pair, row, other, metric)))


def _made_on(lines: pd.DataFrame) -> str:
    """Which machines made the committed runs among some lines."""
    machines = (line.record.get("hardware", {}) for line in lines[lines.source == COMMITTED].itertuples())
    named = (f"{one['cpu_cores']} {one['architecture']} cores, {one['system']}" for one in machines if one)
    known = list(dict.fromkeys(named))
    return f" Ours: {'; '.join(known)}." if known else ""


def demo_table(paper: str = "sentence_objectives", found: pd.DataFrame | None = None, folder=None) -> str:
    """What `make book` made on this machine as HTML: each row's own task beside shared words, its ranking, and what it gains.

    MAP of answer sentence selection on our own questions; the difference to the baseline is paired by question, with its 95 % bootstrap
    interval. Nothing of a committed record stands here.
    Returns: "" where no row of the demonstration has been fine-tuned on this machine.
    """
    data, found = given(paper, found, folder)
    demo = data["demo"]
    here = found[(found.source == HERE) & (found.budget == demo["budget"])]
    ranked = here[here.dataset.isin(data["budgets"][demo["budget"]]["datasets"]) & here.row.isin(demo["rows"])]
    if ranked.empty:
        return ""
    body = _baselines(ranked, ["map"], 1)
    for row in demo["rows"]:
        own, task = ranked[ranked.row == row], here[(here.dataset == PRETRAINING) & (here.row == row)]
        name = markup.cell(data["rows"][row]["name"], "th", scope="row")
        figures = [
            _ours(data, row, here, HERE, demo["budget"], of, metric) if len(of) else markup.number("–")
            for of, metric in ((task, "auc"), (own, "map"))
        ]
        body.append(markup.line([name, *figures, _gain(data, row, ranked, HERE, "map")], "as2-from-ours"))
    title = (
        f"Made on this machine: {_questions(ranked):,} test questions of {ranked.dataset.iloc[0]}, one seed. Points."
    )
    heads = [
        "Row",
        "AUC on its own task, held-out documents",
        NAMES["map"],
        f"{NAMES['map']} against its baseline [95 %]",
    ]
    return markup.table(title, heads, body)


def verdict_table(found: dict[str, pd.DataFrame] | None = None, links=None, folder=None) -> str:
    """All five papers: how many lines (a row on one data set) have which verdict, by the committed results alone.

    Args:
        found: paper -> what `records` gave. links: paper -> address of its page, by default `papers/<paper>.html`.
    """
    body, shown = [], VERDICTS[:-1]
    for paper in papers.papers():
        data, own = given(paper, found and found[paper], folder)
        words = list(line_verdicts(data, own).values())
        address = (links or {}).get(paper, f"papers/{paper}.html")
        head = markup.cell(Html(f'<a href="{escape(address)}">{escape(data["title"])}</a>'), "th", scope="row")
        body.append(markup.line([head, len(words), *(markup.number(str(words.count(word) or "–")) for word in shown)]))
    heads = ["Paper", "Lines", *map(markup.word, shown)]
    return markup.table("A line is one row of a paper's tables on one data set.", heads, body)


def _said(metrics, words: list[tuple[str, str]]) -> Html:
    if len(set(words)) <= 1:
        return markup.said(*words[0]) if words else Html("")
    return Html("<br>".join(f"{escape(NAMES[m])} {markup.said(*word)}" for m, word in zip(metrics, words)))


def _linked(lines: pd.DataFrame, links: dict) -> str:
    known = [(links[line.name], f"seed {line.seed}") for line in lines.itertuples(index=False) if line.name in links]
    made = [f'<a href="{escape(address)}">{escape(text)}</a>' for address, text in known]
    return f" ({', '.join(made)})" if made else ""


def _printed(data: dict, row: str, dataset: str, metric: str) -> Html:
    """A published cell, with the mark of its t test where the row names a baseline."""
    cells = data["rows"][row]["published"][dataset]
    if metric not in cells:
        return markup.number("–")
    published = cells[metric]
    if isinstance(published, dict):
        return markup.number(f"{published['relative']:+.1f} %")
    figures = printed_points(published, data["unit"])
    if figures is None:
        return markup.number("baseline" if published == "baseline" else "lost")
    texts = [f"{value:.2f}" for value in (figures if isinstance(published, list) else figures[:1])]
    text = " ± ".join(text[:-1] if all(t.endswith("0") for t in texts) else text for text in texts)
    pair = comparisons.printed(data, row, dataset, metric)
    return (
        markup.marked(text, data["rows"][data["rows"][row]["baseline"]]["name"], pair) if pair else markup.number(text)
    )


def spread(values: list[float]) -> str:
    """The mean of some seeds' values in per cent, with the standard deviation where there are several: `62.4 ± 1.3`."""
    if not values:
        return "–"
    points = 100 * np.asarray(values)
    return f"{points.mean():.1f}" + (f" ± {points.std(ddof=1):.1f}" if len(points) > 1 else "")
