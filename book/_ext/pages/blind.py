"""Which rankers read the question: figures with the texts of the questions exchanged, from the records of `asutil blind`."""

import numpy as np

from aslab import measured
from aslab.blind import committed
from aslab.show import markup
from aslab.show.markup import NAMES, Html
from asutil.metrics import significance
from pages import numbers, register, row, table

PRECISION = 2  # the place of average precision in a row of per_question
TITLE = "Test questions, points, mean ± std over seeds"
WITH_INTERVALS = "; MAP lost with its 95 % interval over questions, where the record has values of questions"


@register("blind", "blind", "Rankers without the question: not run. asutil blind measures it.")
def blind_table(protocol: str = "") -> str:
    """MAP and P@1 of each kind of run by each of its readouts, own and exchanged, mean and std over seeds; "" without a record.

    Models that read question and candidate together come first, those that lose most MAP on top.

    Args:
        protocol: of the runs that are shown; all by default.
    """
    record = committed()
    of_protocol = lambda lines: [line for line in lines if protocol in ("", line["protocol"])]
    bags, runs = of_protocol(record["bag_of_words"]), of_protocol(record["runs"])
    if not runs:
        return ""
    body = []
    for words in bags:
        ranked, first = numbers(*(f"{100 * words[metric]:.1f}" for metric in ("map", "p@1")))
        head = f"bag of words of the candidate, {_of(words)}"
        body.append(row(head, "–", "1", "–", ranked, "–", "–", first, kind="as2-from-baseline"))
    groups, intervals = {}, []
    for run in runs:
        key = (f"{run['architecture']}, {run['model'].rsplit('/', 1)[-1]}", _of(run))
        groups.setdefault(key, []).append(run["readouts"])
    for (name, of), seeds in sorted(groups.items(), key=lambda group: (len(group[1][0]) > 1, -_map_lost(group[1]))):
        head = [markup.cell(f"{name}, {of}", "th", scope="row", rowspan=str(len(seeds[0])))]
        for readout in seeds[0]:
            cells = [
                markup.spread([seed[readout][which][metric] for seed in seeds])
                for metric in ("map", "p@1")
                for which in ("own", "exchanged")
            ]
            interval = _interval(seeds, readout)
            intervals.append(interval)
            cells.insert(2, markup.number(Html(f"{100 * _map_lost(seeds, readout):.1f}{interval}")))
            body.append(markup.line([*head, readout, str(len(seeds)), *cells]))
            head = []
    heads = ["Model", "Scoring function", "Seeds"]
    heads += [f"{NAMES[metric]}{when}" for metric in ("map", "p@1") for when in ("", ", questions exchanged")]
    heads.insert(5, "MAP lost")
    return table(f"{TITLE}{WITH_INTERVALS * any(intervals)}.", heads, body)


def _map_lost(seeds: list[dict], readout: str | None = None) -> float:
    """The mean MAP over seeds that a kind of run loses, by one of its readouts, the first where none is named."""
    readout = readout or next(iter(seeds[0]))
    return sum(seed[readout]["own"]["map"] - seed[readout]["exchanged"]["map"] for seed in seeds) / len(seeds)


def _interval(seeds: list[dict], readout: str) -> str:
    """The 95 % interval of the MAP lost, paired over questions; "" where a record has no values of questions."""
    records_of = {asked: [seed[readout][asked] for seed in seeds] for asked in ("own", "exchanged")}
    if not all("per_question" in record for records in records_of.values() for record in records):
        return ""
    precision = {
        asked: np.mean([[line[PRECISION] for line in record["per_question"]] for record in records], axis=0)
        for asked, records in records_of.items()
    }
    low, high = significance.paired_bootstrap(precision["own"], precision["exchanged"]).interval
    return f"<small>[{100 * low:.1f}, {100 * high:.1f}]</small>"


def _of(one: dict) -> str:
    return f"{NAMES.get(one['dataset'], one['dataset'])}, {one['protocol']}{measured.words_of(one)}"
