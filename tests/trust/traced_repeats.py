"""What the tables of runs that were made twice, and of questions about known articles, must say, counted again as in `traced`."""

import json
import statistics
from itertools import pairwise
from pathlib import Path

from .recompute_claims import by_question, how
from .traced import NAMES, NONE, PAPERS, Paper, bootstrap, p_value, points, untrained, values
from .traced_verdicts import over_both

OWN = ("evidence_f1", "answer_f1")
NO_EFFECT = {"workers", "micro_tokens", "precision", "model", "budget"}  # `model` may be the name of a run


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
        place = (record["row"], record["dataset"], record["budget"], record["seed"])
        if "per_question" in record and not untrained([record]):
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
    ours, other = (by_question(side, metric, "test") for side in (later, before))
    apart = tuple(statistics.fmean(ours[name]) - statistics.fmean(other[name]) for name in ours)
    return over_both(later, before, metric, lenders(paper, later[0]) if len(later) < 3 else []), bootstrap(apart)


def lenders(paper: Paper, record: dict) -> list[list[dict]]:
    """The committed records of the rows with several seeds that were trained like the row of one seed, on its data set and budget."""
    place, trained = (record["dataset"], record["budget"]), {}
    for one in paper.records:
        if (one["dataset"], one["budget"]) == place and not untrained([one]):
            trained.setdefault(one["row"], []).append(one)
    own = how(trained[record["row"]])
    return [side for side in trained.values() if len(side) > 1 and how(side) == own]


def in_corpus(root: Path, name: str):
    """The claimed differences of rows that read the corpus, with and without the questions about its articles."""
    about, paper, seen = json.loads((root / "results" / "overlap.json").read_text("utf-8")), Paper(root, name), set()
    for claim in paper.claims():
        rows, dataset = (claim["row_a"], claim["row_b"]), claim["dataset"]
        known = about["datasets"].get(dataset.split("_from_")[0])
        ours, other, seeds = paper.pair(*rows, dataset, ("small",))
        read = seeds > 1 and {about["corpus"]} <= {run["settings"].get("corpus") for run in ours[0]["earlier"]}
        if known and read and (rows, dataset) not in seen:
            seen.add((rows, dataset))
            sides = [ours, other, *(lenders(paper, ours[0]) if min(len(ours), len(other)) < 3 else [])]
            cut = [
                [one | {"per_question": [line for line in one["per_question"] if line[0] not in known["in_corpus"]]} for one in side]
                for side in sides
            ]
            every, without = (points(over_both(*two, "map", lent)) for *two, lent in ((*each[:2], each[2:]) for each in (sides, cut)))
            counts = f"{len(known['in_corpus'])} of {known['questions']:,}"
            yield [" − ".join(map(paper.title, rows)), NAMES.get(dataset, dataset), every, counts, without]
