"""Why a comparison cannot be tested with the runs available here: the verdict *not testable here* and its reason.

Deviation: D-118.
"""

from functools import lru_cache

import pandas as pd

from asutil.metrics import registry, significance

from ..papers import NOTEBOOKS, SPLITS
from ..records import PER_CONTEXT, backbone, chain, figures, kind, no_spread, per_question, reported, split, values
from ..show.markup import NAMES

VERDICT = "not testable here"
CHANCE = ("random", "majority", "all_sentences", "most_frequent_answer")  # baselines that do not read the question
COLLAPSED = 0.999  # cosine between the slot vectors of a joint model above which the slots count as one vector
STANDARD_ERRORS = 1.96  # above one half from which on an AUC is more than chance


def declared(data: dict, row: str, dataset: str) -> str:
    """The reason that a paper's file gives for a row without runs, at a budget that has the data set; "" for none."""
    for budget, reason in data["rows"][row].get("not_testable", {}).items():
        entry = data["budgets"].get(budget, {"datasets": ()})
        name, _ = SPLITS.get(dataset, (dataset, ""))
        if name in (*entry["datasets"], *entry.get("claims", ())):
            return reason
    return ""


def of_row(data: dict, lines: pd.DataFrame, metric: str, may_be_at_chance: bool = False) -> str:
    """Why the records of one row, all of one budget, cannot be judged by a metric; "" where they can.

    At budget `paper` a model at chance or with collapsed slots is a result: the paper's own settings lead there.

    Args:
        may_be_at_chance: whether chance is no reason, because the paper says so of the row.
    """
    row, budget = lines.row.iloc[0], lines.budget.iloc[0]
    reason = data["rows"][row].get("not_testable", {}).get(budget, "")
    if reason or budget == "paper":
        return reason
    if any(collapsed(record) for line in lines.itertuples() for record in chain(line)):
        return "the slots of its joint model are one vector"
    return "" if may_be_at_chance else at_chance(lines, metric)


def of_pair(data: dict, where, claim: dict) -> str:
    """Why the runs of two rows cannot be compared as a claim asks; "" where they can.

    Below budget paper two rows that begin with different encoders are two stand-ins, and a baseline whose mean is not
    above that of its own untrained encoder shows what its training broke, not what the other row adds.

    Args:
        where: a `comparisons.Pair`. claim: row_a, row_b, metric; `b_at_chance` where row B is claimed to be at chance.
    """
    lines, other = where.of(claim["row_a"]), where.of(claim["row_b"])
    if one_encoder(lines, other):
        return "one encoder under two names"
    reasons = [
        (lines.row.iloc[0], of_row(data, lines, claim["metric"])),
        (other.row.iloc[0], of_row(data, other, claim["metric"], claim.get("b_at_chance", False))),
    ]
    reason = _first_reason(data, reasons)
    if reason or where.budget == "paper":
        return reason
    first, second = (sorted({backbone(line) for line in each.itertuples()}) for each in (lines, other))
    if first != second:
        names = " and ".join(model.rsplit("/", 1)[-1] for model in (*first, *second))
        return f"its rows begin with two encoders, {names}"
    level = untrained_level(where.lines, other, claim["metric"])
    if level is not None and 100 * _mean(other, claim["metric"]) <= 100 * level:
        return f"{data['rows'][claim['row_b']]['name']} is not above its own untrained encoder, {100 * level:.1f}"
    return ""


def _mean(lines: pd.DataFrame, metric: str) -> float:
    reached = values(lines, metric)
    return sum(reached) / len(reached)


def untrained_level(every: pd.DataFrame, lines: pd.DataFrame, metric: str) -> float | None:
    """What the encoder of some trained records has on their questions before any training; None where nobody measured it.

    That is `zero_shot` of the records, else the best untrained row of `every` that has the same weights.
    """
    if no_spread(lines) or not values(lines, metric):
        return None
    name = "map" if metric.startswith("map") else metric
    known = [(line.record.get("baselines") or {}).get("zero_shot", {}).get(name) for line in lines.itertuples()]
    if None not in known and all(split(line) == reported(line) for line in lines.itertuples()):
        return sum(known) / len(known)
    weights = _first_weights(lines)
    untrained = [own for _, own in every.groupby("row") if no_spread(own) and values(own, metric)]
    same = [_mean(own, metric) for own in untrained if None not in weights and _first_weights(own) == weights]
    return max(same, default=None)


def _first_weights(lines: pd.DataFrame) -> set[str | None]:
    """Hashes of the encoders that some records began with; None for a record that names none."""
    return {chain(line)[0].get("inputs", {}).get("model") for line in lines.itertuples()}


def of_rows(data: dict, rows, dataset: str) -> str:
    """Why two rows that have no runs of one budget cannot be compared, by what the paper's file declares of either."""
    return _first_reason(data, [(row, declared(data, row, dataset)) for row in rows])


def _first_reason(data: dict, reasons: list[tuple[str, str]]) -> str:
    return next((f"{data['rows'][row]['name']}: {reason}" for row, reason in reasons if reason), "")


def one_encoder(lines: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two rows are the same runs, or the same weights with the same figures of every question.

    Untrained encoders are compared by the model that they were made from: two libraries may read it in two forms.
    """
    pairs = list(zip(lines.sort_values("seed").itertuples(), other.sort_values("seed").itertuples()))
    for line, twin in pairs:
        both = (line.record, twin.record)
        weights, others = (record.get("weights_sha256") or record.get("inputs", {}).get("model") for record in both)
        same_run = line.record.get("name") and line.record["name"] == twin.record.get("name")
        if not same_run and not (weights and weights == others and per_question(line).equals(per_question(twin))):
            return False
    return bool(pairs)


def collapsed(record: dict) -> bool:
    """Whether the slots of a joint model are one vector in its last layer, as its pooling reads them."""
    cosines = record.get("figures", {}).get("slot_cosines")
    return bool(cosines) and cosines[cosines["pooling"]][-1] > COLLAPSED


def at_chance(lines: pd.DataFrame, metric: str) -> str:
    """A reason where the 95 % interval over questions is not above the best baseline of `CHANCE`; else ""."""
    if lines.dataset.iloc[0] == NOTEBOOKS["pretrain"]:
        return _at_chance_on_its_own_task(lines)
    levels = [chance(line, metric) for line in lines.itertuples()]
    column = registry.columns(kind(lines.record.iloc[0])).get(metric)
    tables = [per_question(line) for line in lines.itertuples()] if column and None not in levels else []
    if not tables or any(column not in table for table in tables):
        return ""
    values = pd.concat([table[column] for table in tables], axis=1).mean(axis=1)
    values = values.dropna() if metric in PER_CONTEXT else values
    level = sum(levels) / len(levels)
    above = bootstrap(tuple(values), (level,) * len(values)).sign > 0
    return "" if above else f"{NAMES[metric]} is not above chance, {100 * level:.1f}"


@lru_cache(maxsize=10_000)  # a page after the other asks for the same differences
def bootstrap(ours: tuple, theirs: tuple, draws: int = 10_000) -> significance.Comparison:
    return significance.paired_bootstrap(ours, theirs, draws=draws)


def chance(line, metric: str) -> float | None:
    """The best figure of the baselines of `CHANCE` in a record; None without any, or if they are of other questions."""
    if split(line) != reported(line):
        return None
    baselines = line.record.get("baselines") or {}
    name = "map" if metric.startswith("map") else metric
    figures = [(baselines.get(baseline) or {}).get(name) for baseline in CHANCE]
    return max((figure for figure in figures if figure is not None), default=None)


def _at_chance_on_its_own_task(lines: pd.DataFrame) -> str:
    """AUC <= 1/2 + 1.96 sqrt((n + 1) / (12 n+ n-)), the standard error of the AUC of scores without any signal.

    n counts labels: an example of MSPP has one for each of its candidates.
    """
    for line in lines.itertuples():
        own, settings = figures(line), line.record["settings"]
        examples, majority = own.get("examples") or settings.get("validation_examples"), own.get("majority")
        if None in (own.get("auc"), examples, majority):
            return ""
        if settings.get("objective") == "mspp":
            examples *= settings["positives"] + settings["negatives"]
        error = ((examples + 1) / (12 * examples**2 * majority * (1 - majority))) ** 0.5
        if own["auc"] > 0.5 + STANDARD_ERRORS * error:
            return ""
    meant = ", as labels that were shuffled intend" * (line.record["settings"].get("labels") == "shuffled")
    return f"at chance on its own task{meant}, AUC {100 * figures(line)['auc']:.1f}"
