"""Everything that was run on one data set, on the same questions, the best first."""

from html import escape
from typing import NamedTuple

import pandas as pd

from aslab import papers, rankers, records, rundir
from aslab.analysis import testable
from aslab.records import COMMITTED
from aslab.show import markup
from aslab.show.markup import NAMES, Html
from asutil.metrics import significance


class Entry(NamedTuple):
    """A row of a paper at its largest budget: how it was made, and the values of each question, averaged over its seeds."""

    name: str
    papers: list[str]
    backbone: str
    parameters: int | None
    training: str
    budget: str
    seeds: int
    questions: pd.DataFrame


def entries(dataset: str, runs: dict[str, pd.DataFrame] | None = None, folder=None) -> list[Entry]:
    """Every row with committed records of ranking on a data set above budget laptop; the same runs under two names are one entry."""
    made = {}
    for paper in papers.papers():
        data = papers.read(paper, folder)
        lines = runs[paper] if runs is not None else records.records(paper, folder=folder)
        lines = lines[(lines.source == COMMITTED) & (lines.dataset == dataset) & (lines.budget != "laptop")]
        for row, own in lines.groupby("row", sort=False):
            largest = max(own.budget, key=rundir.BUDGETS.index)
            own = own[own.budget == largest].sort_values("seed")
            if records.kind(own.record.iloc[0]) != "question" or testable.of_row(data, own, "map"):
                continue
            names = tuple(record.get("name") for record in own.record)
            if names in made:
                made[names].papers.append(paper)
            else:
                made[names] = _entry(data, row, paper, own, largest)
    return list(made.values())


def _entry(data: dict, row: str, paper: str, own: pd.DataFrame, budget: str) -> Entry:
    first = next(own.itertuples())
    values = pd.concat([records.per_question(line) for line in own.itertuples()]).groupby(level=0).mean()
    parameters = first.record.get("figures", {}).get("parameters")
    backbone = records.backbone(first).rsplit("/", 1)[-1]
    return Entry(data["rows"][row]["name"], [paper], backbone, parameters, training(first), budget, len(own), values)


def training(line) -> str:
    """What a line's runs did to the model, in their order: `SSP, then pair model`."""
    steps = []
    for record in records.chain(line):
        settings = record["settings"]
        if record["notebook"] == "pretrain":
            steps.append(settings["objective"].upper())
        elif settings.get("architecture") == "untrained":
            steps.append("none")
        else:
            kind = {"embed": "network", "rerank": "re-ranking"}.get(record["notebook"], "model")
            steps.append(f"{settings.get('architecture', '')} {kind}".strip())
    return ", then ".join(steps)


def leaderboard(dataset: str, runs: dict[str, pd.DataFrame] | None = None, folder=None, draws: int = 10_000) -> str:
    """A table of all entries on the questions that all of them have, by MAP; an interval is over questions, of the mean over seeds.

    Rows whose paired difference to the best has an interval with zero are in bold: they are tied for best.
    """
    every = entries(dataset, runs, folder)
    heads = ["Row", "Begins with", "Seeds", "MAP [95 %]", "P@1 [95 %]", "MRR", "Learnt from answers before"]
    if not every:
        return markup.table(f"{NAMES.get(dataset, dataset)}: not run.", heads, [])
    common = sorted(set.intersection(*(set(entry.questions.index) for entry in every)))
    each = {number: entry.questions.loc[common] for number, entry in enumerate(every)}
    body = []
    for place, (number, tied) in enumerate(_best_first(each, draws), 1):
        body.append(markup.line(_cells(place, every[number], each[number], tied, draws)))
    title = f"{NAMES.get(dataset, dataset)}, {len(common)} test questions that all rows have; points. {markup.BEST}"
    return markup.table(title, heads, body)


def _best_first(each: dict, draws: int) -> list[tuple]:
    """Keys in the order of their MAP, and whether a key is the best or not told from it."""
    order = sorted(each, key=lambda key: -each[key]["average_precision"].mean())
    best = each[order[0]]["average_precision"]
    compared = {
        key: significance.paired_bootstrap(best, each[key]["average_precision"], draws=draws) for key in order[1:]
    }
    return [(key, key == order[0] or compared[key].sign <= 0) for key in order]


def _cells(place: int, entry: Entry, values: pd.DataFrame, tied: bool, draws: int) -> list:
    ranked = [markup.number(_mean(values[column], draws)) for column in ("average_precision", "p_at_1")]
    size = f"{entry.parameters / 1e6:.1f} M" if entry.parameters else ""
    notes = (f"{entry.training}, budget {entry.budget}", ", ".join(entry.papers))
    row = f"{place}. {escape(entry.name)}" + "".join(f"<small>{escape(note)}</small>" for note in notes)
    return [
        markup.cell(Html(row), "th", scope="row"),
        Html(f"{escape(entry.backbone)}<small>{size}</small>"),
        markup.number(str(entry.seeds)),
        markup.best(ranked[0]) if tied else ranked[0],
        ranked[1],
        markup.number(f"{100 * values['reciprocal_rank'].mean():.1f}"),
        rankers.pairs_before(entry.backbone),
    ]


def _mean(values: pd.Series, draws: int) -> str:
    low, high = significance.mean_interval(values, draws)
    return f"{100 * values.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def of_rankers(dataset: str, results: str = "results", draws: int = 10_000) -> str:
    """A table of the rankers of others on a data set, from the committed record of `rank`; "" where there is none."""
    record = rankers.committed(results).get(dataset)
    if record is None:
        return ""
    each = rankers.questions_of(record)
    count = len(next(iter(each.values())))
    heads = ["Ranker", "MAP [95 %]", "P@1 [95 %]", "MRR", "Parameters", "ms a question", "Learnt from answers before"]
    body = []
    for name, tied in _best_first(each, draws):
        ranked = [markup.number(_mean(each[name][column], draws)) for column in ("average_precision", "p_at_1")]
        figures = record["figures"][name]
        seconds = figures["seconds_a_question"]
        cells = [
            markup.cell(name, "th", scope="row"),
            markup.best(ranked[0]) if tied else ranked[0],
            ranked[1],
            markup.number(f"{100 * each[name]['reciprocal_rank'].mean():.1f}"),
            markup.number(f"{figures['parameters'] / 1e6:.1f} M" if figures["parameters"] else "–"),
            markup.number("–" if seconds is None else f"{1000 * seconds:.1f}"),
            figures["pairs_before"],
        ]
        body.append(markup.line(cells))
    hardware = record["hardware"]
    machine = hardware.get("gpu") or f"{hardware['cpu_cores']} CPU cores"
    protocol = record["settings"]["protocol"]
    title = f"{NAMES.get(dataset, dataset)}, {count} test questions, protocol {protocol}; points; on {machine}. {markup.BEST}"
    return markup.table(title, heads, body)
