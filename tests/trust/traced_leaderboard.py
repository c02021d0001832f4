"""What the leaderboards say, counted again as in `traced`."""

import json
import statistics
from pathlib import Path

import yaml
from scipy import stats

from . import traced_reasons
from .traced import NAMES, PAPERS, Paper, bootstrap, by_question, models, spread, untrained

RANKED = ("map", "p@1", "mrr")


def leaderboard(root: Path, dataset: str):
    """The words above the table, then a line for each row."""
    seen = yaml.safe_load((root / "experiments" / "rankers.yml").read_text("utf-8"))["pairs_before"]
    found = {}
    for name in PAPERS:
        paper = Paper(root, name)
        for row in paper.rows:
            records = paper.of(row, dataset)
            ranks = records and records[0]["notebook"] not in ("verify_claims", "find_evidence", "pretrain", "task_difficulty")
            if ranks and not traced_reasons.of_row(paper, row, records, "map"):
                found.setdefault(tuple(one["name"] for one in records), (paper.title(row), records, []))[2].append(name)
    if not found:
        return
    every = [{metric: by_question(records, metric) for metric in RANKED} for _, records, _ in found.values()]
    common = sorted(set.intersection(*(set(one["map"]) for one in every)))
    yield f"{NAMES[dataset]}, {len(common)} test questions that all rows have; points."
    values = [{metric: [one[metric][name] for name in common] for metric in RANKED} for one in every]
    lines = sorted(zip(values, found.values()), key=lambda line: -sum(line[0]["map"]))
    for place, (of, (title, records, papers)) in enumerate(lines, 1):
        ranges = [reach(of[metric]) for metric in ("map", "p@1")]
        size, begins = records[0]["figures"].get("parameters"), models(records[:1])
        row = f"{place}. {title} {steps(records[0])}, budget {records[0]['budget']} {', '.join(papers)}"
        model = f"{begins} {size / 1e6:.1f} M" if size else begins
        yield [row, model, str(len(records)), *ranges, f"{100 * sum(of['mrr']) / len(common):.1f}", seen.get(begins, "not known")]


def rankers(root: Path, dataset: str):
    """The words above the table of rankers of others, then a line for each."""
    places = [
        path for budget in ("paper", "gpu", "small", "laptop") for path in (root / "results" / "rankers").glob(f"{dataset}-{budget}.json")
    ]
    if not places:
        return
    record = json.loads(places[0].read_text("utf-8"))
    each = {name: list(zip(*(row[1:] for row in rows))) for name, rows in record["per_question"].items()}
    count = len(next(iter(record["per_question"].values())))
    machine = record["hardware"].get("gpu") or f"{record['hardware']['cpu_cores']} CPU cores"
    yield f"{NAMES[dataset]}, {count} test questions, protocol {record['settings']['protocol']}; points; on {machine}."
    for name in sorted(each, key=lambda name: -sum(each[name][1])):
        figures, (first, precision, reciprocal) = record["figures"][name], each[name]
        size = f"{figures['parameters'] / 1e6:.1f} M" if figures["parameters"] else "–"
        time = "–" if figures["seconds_a_question"] is None else f"{1000 * figures['seconds_a_question']:.1f}"
        yield [name, reach(precision), reach(first), f"{100 * sum(reciprocal) / count:.1f}", size, time, figures["pairs_before"]]


def blind(root: Path, protocol: str = ""):
    """A line for each bag of words, and for each readout of the runs of one kind, from the records of `aslab.blind`."""
    places = [root / "results" / "blind.json", *sorted((root / "results").glob("blind-*.json"))]
    records = [json.loads(place.read_text("utf-8")) for place in places if place.is_file()]
    bags = {(bag["dataset"], bag["protocol"]): bag for record in records for bag in record["bag_of_words"]}
    runs = {run["name"]: run for record in records for run in record["runs"]}
    for words in (bag for bag in bags.values() if protocol in ("", bag["protocol"])):
        head = f"bag of words of the candidate, {NAMES.get(words['dataset'], words['dataset'])}, {words['protocol']}"
        yield [head, "–", "1", "–", f"{100 * words['map']:.1f}", "–", "–", f"{100 * words['p@1']:.1f}"]
    kinds = {}
    for run in (run for run in runs.values() if protocol in ("", run["protocol"])):
        name = f"{run['architecture']}, {run['model'].rsplit('/', 1)[-1]}, {NAMES.get(run['dataset'], run['dataset'])}, {run['protocol']}"
        kinds.setdefault(name, []).append(run["readouts"])
    lost = lambda seeds, readout: statistics.fmean(seed[readout]["own"]["map"] - seed[readout]["exchanged"]["map"] for seed in seeds)
    order = sorted(kinds, key=lambda name: -lost(kinds[name], next(iter(kinds[name][0]))))
    for name in sorted(order, key=lambda name: len(kinds[name][0]) > 1):
        seeds = kinds[name]
        for number, readout in enumerate(seeds[0]):
            cells = [[seed[readout][which][metric] for seed in seeds] for metric in ("map", "p@1") for which in ("own", "exchanged")]
            own, exchanged, *first = map(spread, cells)
            head = [name] if number == 0 else []
            interval, values = "", [[seed[readout][which].get("per_question") for seed in seeds] for which in ("own", "exchanged")]
            if None not in [*values[0], *values[1]]:
                means = [[statistics.fmean(line[2] for line in lines) for lines in zip(*side)] for side in values]
                _, low, high, _ = bootstrap(tuple(a - b for a, b in zip(*means)))
                interval = f" [{100 * low:.1f}, {100 * high:.1f}]"
            yield [*head, readout, str(len(seeds)), own, exchanged, f"{100 * lost(seeds, readout):.1f}{interval}", *first]


def calibration(root: Path):
    """A line for each data set and kind of run, from the record of `aslab.calibration`."""
    place = root / "results" / "calibration.json"
    kinds = {}
    for run in json.loads(place.read_text("utf-8"))["runs"] if place.is_file() else []:
        head = f" {run['head']}" if run["head"] else ""
        name = f"{NAMES.get(run['dataset'], run['dataset'])}, {run['protocol']}: {run['architecture']}{head}, {run['model'].split('/')[-1]}"
        kinds.setdefault(name, []).append(run.get("test"))
    for name, seeds in kinds.items():
        seeds = [seed for seed in seeds if seed]
        columns = ("error_before", "error", "answer_rate", "precision")
        yield [name, str(len(seeds)), *(spread([seed[column] for seed in seeds]) for column in columns)]


def mined(root: Path):
    """The words above the table, then a line for each data set with its negatives, from the record of `aslab.mined`."""
    place = root / "results" / "mined.json"
    sets = json.loads(place.read_text("utf-8"))["sets"] if place.is_file() else []
    values = [[row[1] for row in one["per_question"]] for one in sets]
    if sets:
        yield f"{sets[0]['runs'][0]['dataset']}, {len(values[0])} test questions; points, mean ± std over seeds, intervals over questions."
    random = [number for number, one in enumerate(sets) if one.get("model", {}).get("name") == "random"]
    for number, one in enumerate(sets):
        name = one.get("model", {"name": None})["name"]
        known = {None: "none", "random": "random ones", "bm25": "the best by BM25"}
        head = known.get(name) or f"the best by {name.split('/')[-1]}"
        apart = [apart_from(values[number], values[other]) if other != number else "–" for other in (0, *random)]
        added = f"{one['counts']['negatives']:,}" if name else "–"
        yield [head, added, str(len(one["runs"])), spread([run["map"] for run in one["runs"]]), *apart]


def apart_from(ours: list[float], other: list[float]) -> str:
    mean, low, high, _ = bootstrap(tuple(a - b for a, b in zip(ours, other)))
    return f"{100 * mean:+z.1f} [{100 * low:+z.1f}, {100 * high:+z.1f}]"


def reach(values: list[float]) -> str:
    mean, low, high, _ = bootstrap(tuple(values))
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def steps(record: dict) -> str:
    said = []
    for one in (*record.get("earlier", []), record):
        settings = one["settings"]
        if one["notebook"] == "pretrain":
            said.append(settings["objective"].upper())
        elif untrained([one]):
            said.append("none")
        else:
            kind = {"embed": "network", "rerank": "re-ranking"}.get(one["notebook"], "model")
            said.append(f"{settings.get('architecture') or ''} {kind}".strip())
    return ", then ".join(said)


def first_stage(root: Path):
    """Of each data set its size, then for each ranker the share of questions with a right sentence by depth, with Wilson's interval."""
    for one in json.loads((root / "results" / "first_stage.json").read_text("utf-8"))["sets"]:
        size = one["questions"]
        yield (
            f"{NAMES[one['dataset']]}, {size:,} questions and {one['sentences']:,} sentences: "
            "questions with a right sentence among the best, in % with 95 % intervals."
        )
        for model, recall in one["recall"].items():
            cells = []
            for own in recall.values():
                ends = stats.binomtest(round(own["recall"] * size), size).proportion_ci(method="wilson")
                cells.append(f"{100 * own['recall']:.0f} [{100 * ends.low:.0f}, {100 * ends.high:.0f}]")
            yield ["BM25" if model == "bm25" else model.rsplit("/", 1)[-1], *cells]
