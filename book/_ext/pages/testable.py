"""Why a comparison cannot be tested with the runs at hand: the verdict *not testable here* and its reason.

Deviation: D-118.
"""

from functools import cache

import pandas as pd

from aslab.papers import NOTEBOOKS, SPLITS
from aslab.records import PER_CONTEXT, chain, columns, figures, per_question, reported, split
from aslab.show.markup import NAMES
from asutil.metrics import significance

VERDICT = "not testable here"
CHANCE = ("random", "majority", "all_sentences")  # baselines that know nothing of the question
COLLAPSED = 0.999  # cosine between the vectors of a joint model's slots from which on they are one
LEVEL = 1.96  # standard errors above one half from which on an AUC is more than chance


def declared(data: dict, row: str, dataset: str) -> str:
    """The reason that the file of a paper gives for a row without runs, at a budget that has the data set; "" where it gives none."""
    for budget, reason in data["rows"][row].get("not_testable", {}).items():
        entry = data["budgets"].get(budget, {"datasets": ()})
        if SPLITS.get(dataset, (dataset,))[0] in (*entry["datasets"], *entry.get("claims", ())):
            return reason
    return ""


def of_row(data: dict, lines: pd.DataFrame, metric: str) -> str:
    """Why the records of one row, all of one budget, say nothing about a metric; "" where they do.

    At budget `paper` a model at chance or with collapsed slots is a result: the paper's own settings lead there.
    """
    row, budget = lines.row.iloc[0], lines.budget.iloc[0]
    reason = data["rows"][row].get("not_testable", {}).get(budget, "")
    if reason or budget == "paper":
        return reason
    if any(collapsed(record) for one in lines.itertuples() for record in chain(one)):
        return "the slots of its joint model are one vector"
    return at_chance(lines, metric)


def of_pair(data: dict, lines: pd.DataFrame, other: pd.DataFrame, metric: str) -> str:
    """Why the records of two rows cannot be compared; "" where they can."""
    if one_encoder(lines, other):
        return "one encoder under two names"
    reasons = [(one.row.iloc[0], of_row(data, one, metric)) for one in (lines, other)]
    return next((of_name(data, row, reason) for row, reason in reasons if reason), "")


def of_rows(data: dict, rows, dataset: str) -> str:
    """Why two rows that have no runs of one budget cannot be compared: what the paper's file declares of either."""
    reasons = [(row, declared(data, row, dataset)) for row in rows]
    return next((of_name(data, row, reason) for row, reason in reasons if reason), "")


def of_name(data: dict, row: str, reason: str) -> str:
    return f"{data['rows'][row]['name']}: {reason}"


def one_encoder(lines: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two rows are the same runs, or the same weights with the same figures of every question.

    An untrained encoder is known by the model that it was made of: two libraries may read it in two forms.
    """
    pairs = list(zip(lines.sort_values("seed").itertuples(), other.sort_values("seed").itertuples()))
    return bool(pairs) and all(_same(one, two) for one, two in pairs)


def _same(one, two) -> bool:
    if one.record.get("name") and one.record["name"] == two.record.get("name"):
        return True
    weights = [
        record.get("weights_sha256") or record.get("inputs", {}).get("model") for record in (one.record, two.record)
    ]
    return bool(weights[0]) and weights[0] == weights[1] and per_question(one).equals(per_question(two))


def collapsed(record: dict) -> bool:
    """Whether the slots of a joint model are one vector in its last layer, as its pooling reads them."""
    cosines = record.get("figures", {}).get("slot_cosines")
    return bool(cosines) and cosines[cosines["pooling"]][-1] > COLLAPSED


def at_chance(lines: pd.DataFrame, metric: str) -> str:
    """Says so where the 95 % interval over questions of some records reaches down to what knows nothing; else ""."""
    if lines.dataset.iloc[0] == NOTEBOOKS["pretrain"]:
        return _at_chance_on_its_own_task(lines)
    known = [chance(one, metric) for one in lines.itertuples()]
    if metric not in columns(lines.record.iloc[0]) or None in known:
        return ""
    column = columns(lines.record.iloc[0])[metric]
    values = pd.concat([per_question(one)[column] for one in lines.itertuples()], axis=1).mean(axis=1)
    values = values.dropna() if metric in PER_CONTEXT else values
    level = sum(known) / len(known)
    return "" if _above(tuple(values), level) else f"{NAMES[metric]} is not above chance, {100 * level:.1f}"


@cache
def _above(values: tuple[float, ...], level: float) -> bool:
    """Whether the 95 % interval of the mean over the questions lies above a level; asked again for every cell and claim of a page."""
    return significance.paired_bootstrap(values, [level] * len(values)).sign > 0


def chance(one, metric: str) -> float | None:
    """The best figure of a record's baselines that know nothing; None where it has none, or where they are of other questions."""
    if split(one) != reported(one):
        return None
    known = one.record.get("baselines") or {}
    name = "map" if metric.startswith("map") else metric
    reached = [(known.get(baseline) or {}).get(name) for baseline in CHANCE]
    return max((figure for figure in reached if figure is not None), default=None)


def _at_chance_on_its_own_task(lines: pd.DataFrame) -> str:
    """AUC <= 1/2 + 1.96 sqrt((n + 1) / (12 n+ n-)), the standard error of the AUC of scores without any signal."""
    for one in lines.itertuples():
        found, settings = figures(one), one.record["settings"]
        examples, majority = found.get("examples") or settings.get("validation_examples"), found.get("majority")
        if None in (found.get("auc"), examples, majority):
            return ""
        error = ((examples + 1) / (12 * examples**2 * majority * (1 - majority))) ** 0.5
        if found["auc"] > 0.5 + LEVEL * error:
            return ""
    return f"at chance on its own task, AUC {100 * figures(one)['auc']:.1f}"
