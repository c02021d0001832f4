"""The verdict on each claim, counted again as in `traced`: one test over questions and seeds, Holm over a budget's plan, one word."""

from typing import NamedTuple

from . import recompute_claims, traced_reasons
from .recompute_claims import by_question, holm, how, verdict
from .traced import BUDGETS, BY_QUESTION, EVERY, UNTESTABLE, Paper, side, untrained

WORDS = ("supported", "suggestive", "inconclusive", "no effect beyond 1 point", "reversed", UNTESTABLE, "not run")
ALONE = "one seed, and no row trained alike shows how much seeds differ"


class Test(NamedTuple):
    """As the tests of `traced`, and the effect that would be seen in four of five samples."""

    difference: float
    low: float
    high: float
    p_value: float
    smallest: float

    @property
    def in_points(self) -> dict:
        return {"difference": 100 * self.difference, "low": 100 * self.low, "high": 100 * self.high, "p": self.p_value}


class Told(NamedTuple):
    """What the records give on a claim: those of its rows, how many seeds, the tests on test and on dev and test, or a reason for none."""

    claim: dict
    ours: list[dict]
    other: list[dict]
    seeds: int
    test: Test | None
    pooled: Test | None
    reason: str
    questions: int

    @property
    def primary(self) -> Test | None:
        return self.pooled or self.test


class Judged(NamedTuple):
    told: Told
    family: str
    adjusted: float | None
    word: str


# ------------------------------------------------------------------ the test


def over_both(ours: list[dict], other: list[dict], metric: str, lenders: list[list[dict]] = ()) -> Test | None:
    """The test over questions and seeds.

    A row with fewer than three seeds has the variance of `lenders`. None for a metric without values of questions, and for one seed
    where no row lends.
    """
    if not ours or metric not in BY_QUESTION.get(ours[0]["notebook"], ("p@1", "map", "mrr")):
        return None
    tables = [by_question(records, metric, "test") for records in (ours, other)]
    same = [table for table in (by_question(records, metric, "test") for records in lenders) if table.keys() == tables[0].keys()]
    few = [len(records) for records in (ours, other) if len(records) < (3 if same else 2) and not untrained(records)]
    if few and not same:
        return None
    test = recompute_claims.over_both(*tables, few, same)
    return Test(*(test[name] / 100 for name in ("difference", "low", "high")), test["p"], test["smallest_effect"] / 100)


def on_dev(paper: Paper, row: str, records: list[dict], with_test: bool) -> list[dict] | None:
    """Records with the questions of dev, or of dev and test, as their questions; None where dev chose anything."""
    budget = paper.data["budgets"].get(records[0]["budget"], {})
    search = budget.get("search", {}) | paper.rows[row].get("search", {})
    runs = [run for record in records for run in (record, *record.get("earlier", []))]
    chosen = records[0]["dataset"] in search.get("datasets", ()) or any(run["settings"].get("patience") is not None for run in runs)
    if chosen or not all("per_question_dev" in one and side(one) == "test" and one["notebook"] not in BY_QUESTION for one in records):
        return None
    of_dev = [[[f"dev {name}", *values] for name, *values in one["per_question_dev"]] for one in records]
    return [one | {"per_question": [*dev, *(one["per_question"] if with_test else [])]} for one, dev in zip(records, of_dev)]


def compared(paper: Paper, rows: tuple[str, str], ours: list[dict], other: list[dict], metric: str, over: str = "test") -> Test | None:
    """`over_both` on the questions of test, of "dev", or of "both"."""
    if not ours:
        return None
    place = ours[0]["dataset"], (ours[0]["budget"],)
    alike = {how(records) for records in (ours, other) if 0 < len(records) < 3 and not untrained(records)}
    lenders = {row: paper.of(row, *place) for row in paper.rows} if len(alike) == 1 else {}
    lenders = {row: records for row, records in lenders.items() if len(records) > 1 and not untrained(records) and how(records) in alike}
    each = [*zip(rows, (ours, other)), *lenders.items()]
    if over != "test":
        each = [(row, on_dev(paper, row, records, over == "both")) for row, records in each]
    (_, first), (_, second), *lent = each
    return over_both(first, second, metric, [records for _, records in lent if records]) if first and second else None


# ------------------------------------------------------------------ the word


def told(paper: Paper, claim: dict, budgets=BUDGETS) -> Told:
    """A claim on one metric, at the largest of some budgets that has both rows."""
    row, other, dataset, metric = (claim[key] for key in ("row_a", "row_b", "dataset", "metric"))
    first, second, seeds = paper.pair(row, other, dataset, budgets)
    reason = traced_reasons.of_pair(paper, claim, first, second)
    if not first:
        said = claim.get("not_testable", {}).get(needed(paper, claim), "") if budgets is BUDGETS else ""
        return Told(claim, first, second, 0, None, None, said or reason, 0)
    test, pooled = (compared(paper, (row, other), first, second, metric, over) for over in ("test", "both"))
    asked = by_question_of(paper, row, first, metric, bool(pooled))
    if asked and not (test or pooled):
        reason = reason or ALONE
    return Told(claim, first, second, seeds, test, pooled, reason, asked)


def by_question_of(paper: Paper, row: str, records: list[dict], metric: str, pooled: bool) -> int:
    """How many questions have a value; 0 for a metric that has none."""
    if metric not in BY_QUESTION.get(records[0]["notebook"], ("p@1", "map", "mrr")):
        return 0
    return len(by_question(on_dev(paper, row, records, with_test=True) if pooled else records, metric, "test"))


def judged(paper: Paper) -> list[Judged]:
    """Every claim of a paper by MAP, or its first metric, and after them those that the laptop asks; by family."""
    own = [(needed(paper, claim), claim) for claim in paper.claims() if claim["metric"] == primary(paper, claim["id"])]
    asked = [(family, told(paper, claim, (family,) if family == "laptop" else BUDGETS)) for family, claim in own]
    entry, first = paper.data["budgets"].get("laptop", {"rows": []}), {}
    for claim in paper.claims():
        dataset = entry.get("asked_of", {}).get(claim["dataset"])
        if dataset and {claim["row_a"], claim["row_b"]} <= set(entry["rows"]) and claim["metric"] == primary(paper, claim["id"]):
            key = (claim["row_a"], claim["row_b"], claim["metric"], claim["sign"], dataset)
            first.setdefault(key, claim | {"dataset": dataset})
    asked += [("laptop", told(paper, claim, ("laptop",))) for claim in first.values()]
    every = []
    for family, stated in dict.fromkeys((family, one.claim.get("stated")) for family, one in asked):
        of = [one for name, one in asked if (name, one.claim.get("stated")) == (family, stated)]
        p_values = [one.primary.p_value if one.primary and not one.reason else 1.0 for one in of]
        for one, adjusted in zip(of, holm(p_values)):
            tested = bool(one.primary) and not one.reason
            word = UNTESTABLE if one.reason else verdict(one.claim, one.primary.in_points, adjusted) if one.primary else "not run"
            every.append(Judged(one, family, adjusted if tested else None, word))
    return every


def primary(paper: Paper, name: str) -> str:
    metrics = [claim["metric"] for claim in paper.claims() if claim["id"] == name]
    return "map" if "map" in metrics else metrics[0]


def needed(paper: Paper, claim: dict) -> str:
    """The first budget of the paper's file that has both rows and the data set of a claim."""
    ranked, _, name = claim["dataset"].removesuffix("_dev").removesuffix("_test").rpartition("_from_")
    for budget in EVERY:
        entry = paper.data["budgets"].get(budget, {"rows": []})
        if ranked and ranked not in entry.get("also_rank", {}).get(name, []):
            continue
        known = [*entry.get("datasets", []), *entry.get("claims", [])]
        rows = [row for row in (claim["row_a"], claim["row_b"]) if name in [*known, *entry.get("more_datasets", {}).get(row, [])]]
        if len(rows) == 2 and set(rows) <= set(entry["rows"]):
            return budget
    return "paper"
