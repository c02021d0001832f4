"""Verdicts on claims computed once more from the committed records alone: python -m tests.trust.recompute_claims

Nothing of the project is imported. From results/claims.csv come the rows, the questions and the records of a claim; its difference,
interval, p, Holm's p, smallest effect and verdict are computed by sums over the values of questions, and compared with the file's.
"""

import argparse
import csv
import json
import math
import sys
from pathlib import Path

from scipy import optimize, stats

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "verify_claims": ["label_accuracy"],
    "find_evidence": ["answer_f1", "evidence_f1", "map_raw", "map_projected", "map_predicted_type"],
}
SPLITS = {"test": ["per_question"], "dev": ["per_question_dev"], "dev and test": ["per_question_dev", "per_question"]}
POINTS = ("difference", "low", "high", "smallest_effect")  # with three decimals in the file; p have six digits
NO_TEST = ("not testable here", "not run")
FAR = 1e-6


# ------------------------------------------------------------------ values of questions


def read(files: list[Path], dataset: str) -> list[dict]:
    """The records about a data set: of `selqa_from_nq_sentences` the part about SelQA of those of nq_sentences."""
    records, ranked = [json.loads(file.read_text("utf-8")) for file in files], dataset.rpartition("_from_")[0]
    return [record | record["transfer"][ranked] if ranked else record for record in records]


def untrained(record: dict) -> bool:
    return record["settings"].get("architecture") == "untrained"


def by_question(records: list[dict], metric: str, sample: str) -> dict:
    """(split, id) -> the value of each seed; without questions that have no value."""
    values = {}
    for record in records:
        place = PLACES.get(record["notebook"], ["p@1", "map", "mrr"]).index(metric) + 1
        for split in SPLITS[sample]:
            for line in record.get(split, record["per_question"]):  # a record about dev has no others
                values.setdefault((split, line[0]), []).append(line[place])
    return {key: each for key, each in values.items() if None not in each and len(each) == len(records)}


def mean(values) -> float:
    return math.fsum(values) / len(values)


def variance(values) -> float:
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


def seed_variance(systems: list[dict]) -> tuple[float, float]:
    """What seeds alone add to the variance of a mean over questions, pooled over systems, and its degrees of freedom.

    v - e / n: the variance of the seeds' means, without the share that questions cause.
    """
    between = residual = freedom = 0.0
    for values in systems:
        rows = list(values.values())
        seeds, questions = len(rows[0]), len(rows)
        levels = [mean([row[seed] for row in rows]) for seed in range(seeds)]
        grand = mean(levels)
        between += (seeds - 1) * variance(levels)
        rest = math.fsum((row[seed] - mean(row) - levels[seed] + grand) ** 2 for row in rows for seed in range(seeds))
        residual += rest / (questions - 1) / questions
        freedom += seeds - 1
    between, residual = between / freedom, residual / freedom
    if between - residual <= 1e-12 * between:
        return 0.0, 0.0
    return between - residual, (between - residual) ** 2 / (between**2 / freedom + residual**2 / (freedom * (questions - 1)))


# ------------------------------------------------------------------ one claim


def tested(line: dict) -> dict:
    """What `compared` gives of a line of the file."""
    files = [ROOT / file for file in line["records"].split()]
    test = compared(line, *(read([file for file in files if file.parent.name == line[row]], line["dataset"]) for row in ("row_a", "row_b")))
    if test.pop("questions") != int(line["questions"]):
        raise ValueError(f"{line['claim']}: {line['questions']} questions expected, the records have other ones")
    return test


def compared(line: dict, *records: list[dict]) -> dict:
    """Difference, interval and smallest effect in points, p, and the number of questions.

    Args:
        line: paper, dataset, budget, metric and sample. records: those of either row.
    """
    ours, other = (by_question(of, line["metric"], line["sample"]) for of in records)
    if ours.keys() != other.keys():
        raise ValueError(f"the same questions of both rows expected, got {len(ours)} and {len(other)}, or others")
    few = [of for of in records if len(of) < 3 and not untrained(of[0])]
    lent = lenders(line, ours.keys(), {how(of) for of in few}) if few else []
    return over_both(ours, other, [len(of) for of in few], lent) | {"questions": len(ours)}


def over_both(ours: dict, other: dict, few=(), lent=()) -> dict:
    """Difference, interval and smallest effect in points, and p, of two rows on the same questions: question -> the value of each seed.

    Args:
        few: the numbers of seeds of the rows that have the variance of `lent`, the values of other rows, in place of their own.
    """
    apart = [mean(ours[key]) - mean(other[key]) for key in ours]
    parts = [(variance(apart) / len(apart), len(apart) - 1)]
    for values in (ours, other):
        seeds = len(next(iter(values.values())))
        if seeds > 1 and seeds not in few:
            own, freedom = seed_variance([values])
            parts.append((own / seeds, freedom))
    if few:
        own, freedom = seed_variance(lent)
        parts.append((own * math.fsum(1 / seeds for seeds in few), freedom))
    total, middle = math.fsum(part for part, _ in parts), mean(apart)
    if total == 0:
        return dict.fromkeys(POINTS, 100 * middle) | {"smallest_effect": 0.0, "p": float(middle == 0)}
    freedom = max(1.0, total**2 / math.fsum(part**2 / of for part, of in parts if part))
    if few:  # no more than the seeds that lend
        freedom = min(freedom, sum(len(next(iter(values.values()))) - 1 for values in lent))
    error, chance = math.sqrt(total), stats.t(freedom)
    border = chance.ppf(0.975)
    power = lambda effect: stats.nct.cdf(border, freedom, effect) - 0.2
    results = {
        "difference": middle,
        "low": middle - border * error,
        "high": middle + border * error,
        "smallest_effect": error * optimize.brentq(power, 0, 40 * border, xtol=1e-12),
    }
    return {name: 100 * value for name, value in results.items()} | {"p": 2 * chance.sf(abs(middle) / error)}


def how(records: list[dict]) -> tuple:
    """The settings by which a row lends its variance to another or does not."""
    return tuple(records[0]["settings"].get(name) for name in ("architecture", "loss", "train_limit"))


def lenders(line: dict, questions, alike: set[tuple]) -> list[dict]:
    """The values of all rows trained alike with more than one seed on the same questions: a row with one or two has their variance."""
    rows = sorted((ROOT / "results" / line["paper"]).glob("*"))
    own = line["dataset"].rpartition("_from_")[2]
    each = [read(sorted(row.glob(f"{own}-{line['budget']}-seed*.json")), line["dataset"]) for row in rows]
    each = [of for of in each if len(of) > 1 and not all(map(untrained, of)) and {how(of)} == alike]
    values = [by_question(of, line["metric"], line["sample"]) for of in each]
    return [own for own in values if own.keys() == questions]


def verdict(line: dict, test: dict, adjusted: float) -> str:
    as_claimed = (test["difference"] > 0) == (line["sign"] == "+")
    if adjusted < 0.05:
        return "supported" if as_claimed else "reversed"
    if test["p"] < 0.05 and as_claimed:
        return "suggestive"
    return "no effect beyond 1 point" if test["low"] > -1 and test["high"] < 1 else "inconclusive"


def holm(p_values: list[float]) -> list[float]:
    """p' of a test: the largest (m - j + 1) p_(j) of all tests with a p as small or smaller, at most 1."""
    ranked = sorted(p_values)
    scaled = [min(1.0, (len(ranked) - place) * value) for place, value in enumerate(ranked)]
    return [max(own for own, other in zip(scaled, ranked) if other <= value) for value in p_values]


# ------------------------------------------------------------------ all claims


def recomputed(lines: list[dict]) -> list[tuple[dict, dict]]:
    """(line of the file, what its records give) of each claim that has a test.

    A family is all lines of one budget of a paper that were stated on one day.
    """
    tests = {place: tested(line) for place, line in enumerate(lines) if line["p"]}
    families = {}
    for place, line in enumerate(lines):
        families.setdefault((line["paper"], line["family"], line["stated"]), []).append(place)
    for places in families.values():
        counts = [place in tests and lines[place]["verdict"] not in NO_TEST for place in places]
        adjusted = holm([tests[place]["p"] if known else 1.0 for place, known in zip(places, counts)])
        for place, known, p_value in zip(places, counts, adjusted):
            if known:
                tests[place] |= {"p_holm": p_value, "verdict": verdict(lines[place], tests[place], p_value)}
    return [(lines[place], test) for place, test in tests.items()]


def rounded(name: str, value):
    """As the file has it."""
    if isinstance(value, str):
        return value
    return round(value, 3) if name in POINTS else float(f"{value:.6g}")


def equal(line: dict, test: dict) -> bool:
    words = line["verdict"] == test.get("verdict", line["verdict"])
    return words and all(abs(float(line[name]) - rounded(name, value)) <= FAR for name, value in test.items() if name != "verdict")


def shown(values: dict) -> str:
    numbers = [f"{float(values[name]):+.3f}" for name in POINTS]
    p_values = [f"{float(values[name]):.3g}" for name in ("p", "p_holm") if values.get(name)]
    return f"{numbers[0]} [{', '.join(numbers[1:3])}] 80 % from {numbers[3][1:]}, p {', Holm '.join(p_values)}, {values['verdict']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?", type=Path, default=ROOT / "results" / "claims.csv", help="the file to check")
    with parser.parse_args().table.open(encoding="utf-8", newline="") as file:
        every = recomputed(list(csv.DictReader(file)))
    print("claim | ours | recomputed | equal")
    for line, test in every:
        name = f"{line['paper']} {line['claim']} {line['family']}"
        told = {name: rounded(name, value) for name, value in test.items()}
        print(f"{name} | {shown(line)} | {shown({'verdict': line['verdict']} | told)} | {'yes' if equal(line, test) else 'NO'}")
    wrong = sum(not equal(line, test) for line, test in every)
    print(f"{len(every)} claims of {len({line['paper'] for line, _ in every})} papers, {wrong} not equal")
    return int(wrong > 0 or not every)


if __name__ == "__main__":
    sys.exit(main())
