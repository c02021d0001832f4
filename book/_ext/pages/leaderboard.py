"""Tables of everything that was run on one data set, and of the rankers of others, the best first."""

from html import escape

import pandas as pd

from aslab import rankers
from aslab.analysis.comparisons import rows_and_runs
from aslab.analysis.leaderboard import Entry, best_first, entries
from aslab.show import markup
from aslab.show.markup import NAMES, Html
from asutil.metrics import significance
from pages import note, register, row, table


@register("leaderboard", "all results", files=["experiments/rankers.yml"])
def leaderboard(dataset: str, read=rows_and_runs, draws: int = 10_000) -> str:
    """A table of all entries on the questions that all of them have, by MAP; an interval is over questions, of the mean over seeds.

    Rows whose paired difference to the best has an interval with zero are in bold: they are tied for best.
    """
    every = entries(dataset, read)
    heads = ["Row", "Begins with", "Seeds", "MAP [95 %]", "P@1 [95 %]", "MRR", "Learnt from answers before"]
    if not every:
        return table(f"{NAMES.get(dataset, dataset)}: not run.", heads, [])
    common = sorted(set.intersection(*(set(entry.questions.index) for entry in every)))
    each = {number: entry.questions.loc[common] for number, entry in enumerate(every)}
    body = []
    for place, (number, tied) in enumerate(best_first(each, draws), 1):
        body.append(_line(place, every[number], each[number], tied, draws))
    title = f"{NAMES.get(dataset, dataset)}, {len(common)} test questions that all rows have; points. {markup.BEST}"
    return table(title, heads, body)


def _line(place: int, entry: Entry, values: pd.DataFrame, tied: bool, draws: int) -> str:
    size = f"{entry.parameters / 1e6:.1f} M" if entry.parameters else ""
    notes = (f"{entry.training}, budget {entry.budget}", ", ".join(entry.papers))
    head = f"{place}. {escape(entry.name)}" + "".join(f"<small>{escape(note)}</small>" for note in notes)
    return row(
        Html(head),
        Html(f"{escape(entry.backbone)}<small>{size}</small>"),
        markup.number(str(entry.seeds)),
        *_figures(values, tied, draws),
        rankers.pairs_before(entry.backbone),
    )


def _figures(values: pd.DataFrame, tied: bool, draws: int) -> list[Html]:
    """The cells of MAP, P@1 and MRR."""
    ranked = [markup.number(_mean(values[column], draws)) for column in ("average_precision", "p_at_1")]
    first = markup.best(ranked[0]) if tied else ranked[0]
    return [first, ranked[1], markup.number(f"{100 * values['reciprocal_rank'].mean():.1f}")]


def _mean(values: pd.Series, draws: int) -> str:
    low, high = significance.mean_interval(values, draws)
    return f"{100 * values.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"


@register("rankers", "rankers")
def of_rankers(dataset: str, results: str = "results", draws: int = 10_000) -> str:
    """A table of the rankers of others on a data set, from the committed record of `rank`."""
    record = rankers.committed(results).get(dataset)
    if record is None:
        return note(f"Rankers of others on {NAMES.get(dataset, dataset)}: not run. snakemake rankers_small ranks them.")
    each = rankers.questions_of(record)
    count = len(next(iter(each.values())))
    heads = ["Ranker", "MAP [95 %]", "P@1 [95 %]", "MRR", "Parameters", "ms a question", "Learnt from answers before"]
    body = []
    for name, tied in best_first(each, draws):
        figures = record["figures"][name]
        seconds = figures["seconds_a_question"]
        cells = [
            *_figures(each[name], tied, draws),
            markup.number(f"{figures['parameters'] / 1e6:.1f} M" if figures["parameters"] else "–"),
            markup.number("–" if seconds is None else f"{1000 * seconds:.1f}"),
            figures["pairs_before"],
        ]
        body.append(row(name, *cells))
    hardware = record["hardware"]
    machine = hardware.get("gpu") or f"{hardware['cpu_cores']} CPU cores"
    protocol = record["settings"]["protocol"]
    title = f"{NAMES.get(dataset, dataset)}, {count} test questions, protocol {protocol}; points; on {machine}. {markup.BEST}"
    return table(title, heads, body)
