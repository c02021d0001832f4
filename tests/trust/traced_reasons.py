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
    return next((f"{paper.title(row)}: {reason}" for row, reason in reasons if reason), "")


def same(one: dict, two: dict) -> bool:
    """Whether two records are of one run, or of one encoder with the same figures; an untrained one is its model."""
    made = [record.get("weights_sha256") or record.get("inputs", {}).get("model") for record in (one, two)]
    return one["name"] == two["name"] or bool(made[0] and made[0] == made[1] and one["per_question"] == two["per_question"])


def on_dev(paper, claim: dict, ours: list[dict], other: list[dict], with_test: bool = False):
    """The test over the questions of dev, or of dev and test together; None where dev chose anything."""
    sides = []
    for row, records in ((claim["row_a"], ours), (claim["row_b"], other)):
        search = paper.data["budgets"][records[0]["budget"]].get("search", {}) | paper.rows[row].get("search", {}) if records else {}
        runs = [run for record in records for run in (record, *record.get("earlier", []))]
        chosen = claim["dataset"] in search.get("datasets", ()) or any(run["settings"].get("patience") is not None for run in runs)
        if chosen or not records or not all("per_question_dev" in one and traced.side(one) == "test" for one in records):
            return None
        of_dev = [[[f"dev {name}", *values] for name, *values in one["per_question_dev"]] for one in records]
        both = [one | {"per_question": [*dev, *(one["per_question"] if with_test else [])]} for one, dev in zip(records, of_dev)]
        sides.append(traced.by_question(both, claim["metric"]))
    return traced.bootstrap(tuple(sides[0][name] - sides[1][name] for name in sides[0]))
