"""Which comparisons nothing can be said of, counted again from records and the papers' files, as in `traced`."""

from . import traced

CHANCE = ("random", "majority", "all_sentences", "most_frequent_answer")


def of_row(paper, row: str, records: list[dict], metric: str, may_be_at_chance: bool = False) -> str:
    """Why a row's records of one budget say nothing about a metric."""
    budget, content = records[0]["budget"], paper.rows[row].get("not_testable", {})
    if content.get(budget) or budget == "paper":
        return content.get(budget, "")
    slots = [one["figures"].get("slot_cosines") for record in records for one in (record, *record.get("earlier", [])) if "figures" in one]
    if any(one[one["pooling"]][-1] > 0.999 for one in slots if one):
        return "the slots of its joint model are one vector"
    if may_be_at_chance:
        return ""
    return own_task(records) if records[0]["dataset"] == "pretraining" else at_chance(records, metric)


def declared(paper, row: str, dataset: str) -> str:
    """What the paper's file says of a row that has not run, at a budget that has the data set."""
    name = dataset.removesuffix("_dev").removesuffix("_test")
    reasons = paper.rows[row].get("not_testable", {})
    datasets = {budget: [*of["datasets"], *of.get("claims", ())] for budget, of in paper.data["budgets"].items()}
    return next((reason for budget, reason in reasons.items() if name in datasets[budget]), "")


def at_chance(records: list[dict], metric: str) -> str:
    levels = [level_of(one, metric) for one in records]
    if None in levels or metric not in traced.BY_QUESTION.get(records[0]["notebook"], ("p@1", "map", "mrr")):
        return ""
    level = sum(levels) / len(levels)
    above = traced.bootstrap(tuple(value - level for value in traced.by_question(records, metric).values()))
    return "" if above[1] > 0 else f"{traced.NAMES[metric]} is not above chance, {100 * level:.1f}"


def level_of(record: dict, metric: str) -> float | None:
    """What is reached without knowing anything of the question."""
    if traced.side(record) != traced.reported(record):
        return None
    known, name = record.get("baselines") or {}, "map" if metric.startswith("map_") else metric
    reached = [(known.get(baseline) or {}).get(name) for baseline in CHANCE]
    return max((one for one in reached if one is not None), default=None)


def own_task(records: list[dict]) -> str:
    for record in records:
        found = record["metrics"]["validation"]
        asked, majority = found.get("examples") or record["settings"].get("validation_examples"), found.get("majority")
        if None in (found.get("auc"), asked, majority):
            return ""
        if record["settings"].get("objective") == "mspp":  # a label for each candidate
            asked *= record["settings"]["positives"] + record["settings"]["negatives"]
        right, wrong = asked * majority, asked * (1 - majority)
        if found["auc"] > 0.5 + 1.96 * ((asked + 1) / (12 * right * wrong)) ** 0.5:
            return ""
    meant = ", as labels that were shuffled intend" if record["settings"].get("labels") == "shuffled" else ""
    return f"at chance on its own task{meant}, AUC {100 * found['auc']:.1f}"


def of_pair(paper, claim: dict, ours: list[dict], other: list[dict]) -> str:
    """Why two rows cannot be compared on a claim's metric; where they have not run, what their file declares."""
    rows, records = (claim["row_a"], claim["row_b"]), (ours, other)
    if not ours:
        known = [(row, declared(paper, row, claim["dataset"])) for row in rows]
        return next((f"{paper.title(row)}: {reason}" for row, reason in known if reason), "")
    if said := claim.get("not_testable", {}).get(ours[0]["budget"]):
        return said
    if all(same(one, two) for one, two in zip(ours, other)):
        return "one encoder under two names"
    low = (False, claim.get("b_at_chance", False))
    reasons = [(row, of_row(paper, row, of, claim["metric"], chance)) for row, of, chance in zip(rows, records, low)]
    known = next((f"{paper.title(row)}: {reason}" for row, reason in reasons if reason), "")
    if known or ours[0]["budget"] == "paper":
        return known
    begun = [sorted({traced.began_with(one) for one in of}) for of in records]
    if begun[0] != begun[1]:
        return "its rows begin with two encoders, " + " and ".join(name.rsplit("/", 1)[-1] for of in begun for name in of)
    level, reached = before_training(paper, other, claim["metric"]), traced.values(other, claim["metric"])
    if level is not None and 100 * sum(reached) / len(reached) <= 100 * level:
        return f"{paper.title(claim['row_b'])} is not above its own untrained encoder, {100 * level:.1f}"
    return ""


def before_training(paper, records: list[dict], metric: str) -> float | None:
    """What the encoder of a trained row reaches untrained on the same questions; None where no record has it."""
    if traced.untrained(records) or not traced.values(records, metric):
        return None
    zero_shot = [
        ((one.get("baselines") or {}).get("zero_shot") or {}).get("map" if metric.startswith("map") else metric) for one in records
    ]
    if None not in zero_shot and all(traced.side(one) == traced.reported(one) for one in records):
        return sum(zero_shot) / len(zero_shot)
    weights = lambda some: {one.get("inputs", {}).get("model") for one in some}
    place = records[0]["dataset"], (records[0]["budget"],)
    same = [own for own in (paper.of(row, *place) for row in paper.rows) if traced.untrained(own) and weights(own) == weights(records)]
    reached = [traced.values(own, metric) for own in same]
    return max((sum(own) / len(own) for own in reached if own), default=None)


def same(one: dict, two: dict) -> bool:
    """Whether two records are of one run, or of one encoder with the same figures; an untrained one is its model."""
    made = [record.get("weights_sha256") or record.get("inputs", {}).get("model") for record in (one, two)]
    return one["name"] == two["name"] or bool(made[0] and made[0] == made[1] and one["per_question"] == two["per_question"])
