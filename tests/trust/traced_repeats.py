"""What the tables of runs that were made twice, and of questions about known articles, must say, counted again as in `traced`."""

import json
import statistics
from itertools import pairwise
from pathlib import Path

from scipy import stats

from .traced import BY_QUESTION, NAMES, NONE, PAPERS, Paper, bootstrap, p_value, points, untrained, values
from .traced_verdicts import over_both, training

OWN = ("evidence_f1", "answer_f1")
NO_EFFECT = {"workers", "micro_tokens", "precision", "model", "rung", "budget"}  # `model` may be the name of a run


def repeats(root: Path, name: str = ""):
    """With all papers the counts, then a line for each pair of runs."""
    every = [(paper, *pair) for slug in ([name] if name else PAPERS) for paper in [Paper(root, slug)] for pair in pairs(root, paper)]
    if every and not name:
        tests = [tested(paper, *pair, metric) for paper, *pair in every for metric in metrics(pair[0])]
        apart = [sum(test is not None and test[1] * test[2] > 0 for test in each) for each in zip(*tests)]
        yield (
            f"{len(every)} pairs of equal runs give {len(tests)} tests: of MAP and P@1, or of the F1 of evidence and of answers. "
            f"At level .05 the test over questions and seeds is significant in {apart[0]} of {len(tests)}, the bootstrap over "
            f"questions alone in {apart[1]} of {len(tests)}."
        )
    for paper, later, before in every:
        metric = metrics(later)[0]
        both, alone = tested(paper, later, before, metric)
        first = later[0]
        yield [
            f"{paper.title(first['row'])} {paper.name}",
            f"{NAMES[first['dataset']]}, {NAMES[metric]}",
            str(len(first["per_question"])),
            ", ".join(str(one["seed"]) for one in later),
            *(f"{100 * statistics.fmean(values(side, metric)):.1f}" for side in (later, before)),
            points(both or alone),
            *(p_value(test) if test else NONE for test in (both, alone)),
        ]


def metrics(records: list[dict]) -> tuple[str, ...]:
    return OWN if records[0]["notebook"] == "find_evidence" else ("map", "p@1")


def pairs(root: Path, paper: Paper) -> list[tuple[list[dict], list[dict]]]:
    """By the times in the records: the latest two runs of each row on a data set, with all seeds that have two, then those before."""
    made, steps = {}, {}
    for path in (root / "results").glob(f"**/{paper.name}/*/*.json"):
        record = json.loads(path.read_text("utf-8"))
        place = (record["row"], record["dataset"], record.get("budget") or record["rung"], record["seed"])
        if "per_question" in record:
            made.setdefault(place, {})[record["created"]] = record
    for (row, dataset, budget, _), by_time in sorted(made.items()):
        in_time, step = [by_time[time] for time in sorted(by_time, reverse=True)], 0
        for later, before in pairwise(in_time):
            if alike(later, before):
                steps.setdefault((list(paper.rows).index(row), dataset, budget, step), []).append((later, before))
                step += 1
    return [tuple(map(list, zip(*steps[key]))) for key in sorted(steps)]


def alike(one: dict, other: dict) -> bool:
    """Whether the settings of two records are equal, as far as both have them."""
    chains = [[run["settings"] for run in (*side.get("earlier", ()), side)] for side in (one, other)]
    common = [(a, b, (a.keys() & b.keys()) - NO_EFFECT) for a, b in zip(*chains)]
    return len({len(chain) for chain in chains}) == 1 and all(a[name] == b[name] for a, b, names in common for name in names)


def tested(paper: Paper, later: list[dict], before: list[dict], metric: str) -> tuple:
    """(difference, low, high, p) over questions and seeds, and of the bootstrap over questions alone."""
    tables, most = [table(side, metric) for side in (later, before)], float("inf")
    names = sorted(tables[0], key=[line[0] for line in later[0]["per_question"]].index)
    apart = [statistics.fmean(tables[0][name]) - statistics.fmean(tables[1][name]) for name in names]
    parts = [(statistics.variance(apart) / len(names), len(names) - 1)]
    if len(later) > 1:
        for each in tables:
            between, rest, freedom = mean_squares([each])
            if between > rest:
                parts += [(between / len(later), freedom), (-rest / len(later), freedom * (len(names) - 1))]
    else:
        first = later[0]
        budget = first.get("budget") or first["rung"]
        trained = {}
        for one in paper.records:
            if (one["dataset"], one["budget"]) == (first["dataset"], budget) and not untrained([one]):
                trained.setdefault(one["row"], []).append(one)
        own = training(trained[first["row"]])
        known = [table(side, metric) for side in trained.values() if len(side) > 1 and training(side) == own]
        known = [each for each in known if each.keys() == tables[0].keys()]
        if not known:
            return None, bootstrap(tuple(apart))
        between, rest, freedom = mean_squares(known)
        variance, most = between - rest, freedom
        spread = between**2 / freedom + rest**2 / (freedom * (len(names) - 1))
        if variance > 0:
            parts.append((2 * variance, variance**2 / spread))
    error, middle = sum(part for part, _ in parts) ** 0.5, statistics.fmean(apart)
    if error == 0:
        return (middle, middle, middle, float(middle == 0)), bootstrap(tuple(apart))
    chance = stats.t(min(most, max(1.0, error**4 / sum(part**2 / freedom for part, freedom in parts))))
    reach = chance.ppf(0.975) * error
    return (middle, middle - reach, middle + reach, 2 * chance.sf(abs(middle) / error)), bootstrap(tuple(apart))


def table(records: list[dict], metric: str) -> dict[str, list[float]]:
    """Question -> its value of each seed, without the questions that lack one."""
    place = BY_QUESTION.get(records[0]["notebook"], ("p@1", "map", "mrr")).index(metric) + 1
    each = {}
    for record in records:
        for line in record["per_question"]:
            each.setdefault(line[0], []).append(line[place])
    return {name: own for name, own in each.items() if None not in own}


def mean_squares(tables: list[dict]) -> tuple[float, float, int]:
    """Variance of the seeds' means, the residual mean square a question, and the seeds' degrees of freedom, of all tables together."""
    between = rest = freedom = 0
    for each in tables:
        columns = list(zip(*each.values()))
        means, grand = [statistics.fmean(column) for column in columns], statistics.fmean(map(statistics.fmean, columns))
        freedom += len(columns) - 1
        between += sum((mean - grand) ** 2 for mean in means)
        rest += sum((value - statistics.fmean(line) - mean + grand) ** 2 for line in each.values() for value, mean in zip(line, means)) / (
            len(each) - 1
        )
    return between / freedom, rest / freedom / len(tables[0]), freedom


def in_corpus(root: Path, name: str):
    """How many questions are about articles of the corpus, then the claimed differences with and without them."""
    about, paper, seen = json.loads((root / "results" / "overlap.json").read_text("utf-8")), Paper(root, name), set()
    known, of_dev = (about["splits"][split] for split in ("test", "dev"))
    yield (
        f"{len(known['in_corpus'])} of the {known['questions']} test questions of WikiQA, and {len(of_dev['in_corpus'])} of the "
        f"{of_dev['questions']} of dev, are about an article that is in the corpus of pre-training."
    )
    for claim in paper.claims():
        rows = claim["row_a"], claim["row_b"]
        ours, other, seeds = paper.pair(*rows, "wikiqa", ("small",))
        read = seeds > 1 and {about["corpus"]} <= {run["settings"].get("corpus") for run in ours[0]["earlier"]}
        if claim["dataset"] == "wikiqa" and read and rows not in seen:
            seen.add(rows)
            cut = [
                [one | {"per_question": [line for line in one["per_question"] if line[0] not in known["in_corpus"]]} for one in side]
                for side in (ours, other)
            ]
            apart = [points(over_both(*sides, "map")) for sides in ((ours, other), cut)]
            yield [" − ".join(map(paper.title, rows)), *apart]
