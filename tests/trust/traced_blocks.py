"""What else the book shows of results, counted again as in `traced`: ranked lists, moves, vectors, verdicts, evidence, benchmarks.

Each function yields the lines of a directive's block in the order of the page: a text for each paragraph and figure's words, and the texts
of the cells for each line of a table.
"""

import hashlib
import itertools
import json
import statistics
from collections import Counter
from pathlib import Path

from .traced import NAMES, NONE, Paper, by_question, spread, untrained, values

PLACES = ("1", "2", "3", "4", "5", "6 to 10", "11 on")
FATES = ("rescued", "lost", "right by both", "wrong by both")
ROLES = {"question": "question", "positive": "right", "negative": "wrong"}


def pairs(paper: Paper, before: str, after: str):
    """Each data set of questions on which two rows have run: their records, and the first of each."""
    printed = [dataset for table in paper.data["tables"].values() for dataset in table["datasets"]]
    for dataset in dict.fromkeys([*printed, *(one["dataset"] for one in paper.records)]):
        ours, other, count = paper.pair(after, before, dataset)
        if count and dataset != "pretraining" and not dataset.endswith(("_dev", "_test")):
            seeds = sorted({one["seed"] for side in (ours, other) if not untrained(side) for one in side}) or [ours[0]["seed"]]
            yield (
                dataset,
                seeds,
                [[next(one for one in side if untrained(side) or one["seed"] == s) for s in seeds] for side in (other, ours)],
            )


def ranks(record: dict) -> dict[str, float]:
    """Question -> the rank of its first right candidate; questions without one are left out."""
    found = by_question([record], "map_raw" if record["notebook"] == "find_evidence" else "mrr")
    return {name: round(1 / value) for name, value in found.items() if value > 0}


def fates(before: dict, after: dict) -> dict[str, str]:
    """What became of each question's first place."""
    names = {(False, True): "rescued", (True, False): "lost", (True, True): "right by both", (False, False): "wrong by both"}
    sides = [by_question([one], "mrr") for one in (before, after)]
    return {name: names[sides[0][name] == 1, sides[1][name] == 1] for name in sides[0]}


# ------------------------------------------------------------------ ranked lists


def examples(root: Path, name: str, before: str, after: str):
    """How many questions have which fate; of each list that is shown the caption with its fate, and its candidates."""
    paper = Paper(root, name)
    for dataset, seeds, (first, last) in pairs(paper, before, after):
        fate = fates(first[0], last[0])
        counts, held = Counter(fate.values()), lists(before, first[0], last[0])
        counted = ", ".join(f"{counts[one]:,} {one}" for one in FATES)
        yield f"{place(dataset, last[0], seeds)}. Of {len(fate):,} questions: {counted}, by first place."
        shown = [question for one in FATES[:2] for question in chosen([q for q in held if fate[q] == one], 2 if one == "rescued" else 1)]
        for question in shown or chosen(held, 2):
            yield from ranked(f"{fate[question].capitalize()}: {question}", held[question])


def asked(root: Path, name: str, before: str, after: str):
    """The questions that the paper prints."""
    paper = Paper(root, name)
    for dataset, seeds, (first, last) in pairs(paper, before, after):
        each = [{entry["question_id"]: entry["candidates"] for entry in one.get("chosen", ())} for one in (first[0], last[0])]
        names = [one for one in paper.data.get("questions", {}).get(dataset, ()) if all(one in side for side in each)]
        if names:
            yield f"{place(dataset, last[0], seeds)}."
        for question in names:
            yield from ranked(question, [side[question] for side in each])


def nearest(root: Path, name: str, before: str, after: str):
    """Questions with the sentences that are nearest to them."""
    for dataset, seeds, (first, last) in pairs(Paper(root, name), before, after):
        each = [{entry["question_id"]: entry["candidates"] for entry in one.get("chosen", ())} for one in (first[0], last[0])]
        names = chosen(set(each[0]) & set(each[1]), 3)
        if names:
            yield f"{place(dataset, last[0], seeds)}."
        for question in names:
            yield from ranked(question, [side[question] for side in each])


def place(dataset: str, record: dict, seeds: list[int]) -> str:
    return f"{NAMES.get(dataset, dataset)}, budget {record['budget']}, seed {seeds[0]}"


def lists(baseline: str, before: dict, after: dict) -> dict[str, list]:
    """Question -> both ranked lists that the records hold."""
    beside = {
        one["question_id"]: one["baseline"]["candidates"] for one in after["chosen"] if one.get("baseline", {}).get("row") == baseline
    }
    beside |= {one["question_id"]: one["candidates"] for one in before["chosen"]}
    return {one["question_id"]: [beside[one["question_id"]], one["candidates"]] for one in after["chosen"] if one["question_id"] in beside}


def chosen(names, limit: int) -> list[str]:
    """Those with the lowest hash."""
    return sorted(names, key=lambda name: hashlib.blake2b(f"0 {name}".encode(), digest_size=8).digest())[:limit]


def ranked(said: str, two: list[list]):
    """The lines of one question's table; `said` stands above it."""
    yield f"{said}"
    for rank, entries in enumerate(itertools.zip_longest(*two), 1):
        yield [
            str(rank),
            *(f"{'✓ answers' if one[1] else '✗ does not answer'} {one[0]} score {one[2]:.3f}" if one else "" for one in entries),
        ]


# ------------------------------------------------------------------ figures in words


def rank_moves(root: Path, name: str, before: str, after: str):
    """How many questions moved, in words, and the counts that are drawn."""
    paper = Paper(root, name)
    for dataset, seeds, sides in pairs(paper, before, after):
        moved = [
            (one[question], other[question])
            for one, other in zip(*(map(ranks, side) for side in sides))
            for question in one
            if question in other
        ]
        up, same, down = (sum(way(a, b) for a, b in moved) for way in (int.__gt__, int.__eq__, int.__lt__))
        each = len(moved) // len(seeds)
        asked = f"{each:,} questions" + (f" times {len(seeds)} seeds" if len(seeds) > 1 else "")
        together = f"{len(seeds)} seeds put together" if len(seeds) > 1 else f"seed {seeds[0]}"
        yield (
            f"{NAMES.get(dataset, dataset)}, budget {sides[1][0]['budget']}, {together}: of {asked} the first right candidate stands higher "  # noqa: E501
            f"after {paper.title(after)} than after {paper.title(before)} for {up:,}, as before for {same:,}, lower for {down:,}."
        )
        cells = Counter((binned(a), binned(b)) for a, b in moved)
        drawn = [str(cells[row, column]) for row in range(7) for column in range(7) if cells[row, column]]
        yield Counter([*drawn, *map(str, (up, same, down))])


def binned(rank: int) -> int:
    return rank - 1 if rank < 6 else 5 if rank <= 10 else 6


def components(root: Path, name: str, row: str, dataset: str):
    """What a figure of vectors says in words."""
    paper = Paper(root, name)
    for record in [one for one in paper.of(row, dataset) if one.get("pca")][:1]:
        shown = record["pca"]
        counted = [f"{shown['roles'].count(role)} {word}" for role, word in ROLES.items()]
        said = f"{paper.title(row)} on {NAMES.get(dataset, dataset)}, budget {record['budget']}, seed {record['seed']}: "
        said += f"{counted[0]}s with {counted[1]} and {counted[2]} candidates, in the two directions in which their vectors differ most."
        panels = [panel for panel in ("before", "after") if panel in shown]
        for panel in panels:
            near, far = (shown[panel]["distance"][role] for role in ("positive", "negative"))
            when = f"{panel.capitalize()} training" if len(panels) > 1 else "Untrained"
            said += f" {when}, a question is {near:.2f} from its right candidates on average and {far:.2f} from its wrong ones"
            said += f"{f', {far / near:.2f} times as far' if near else ''}, measured in all dimensions; these two hold "
            said += f"{100 * sum(shown[panel]['explained']):.0f} % of the variance."
        yield said


# ------------------------------------------------------------------ verdicts, evidence, contexts


def readouts(root: Path, name: str):
    """MAP of test questions by each readout; what a record lacks that was made before all were kept is its ranking alone."""
    paper = Paper(root, name)
    for dataset in ("wikiqa", "trecqa"):
        for row, content in paper.rows.items():
            cells, records = [], paper.of(row, dataset)
            for by in ("distance", "cosine", "dot", "probability"):
                found = [
                    one["readouts"].get(by) if "readouts" in one else one["settings"]["rank_by"] == by and one["metrics"] for one in records
                ]
                cells.append(spread([one["test"]["map"] for one in found if one]))
            if records:
                yield [content["name"], *cells, f"{len(records)}{', untrained' * untrained(records)}", records[0]["budget"]]
            elif row.split("_")[0] in ("siamese", "triplet"):
                yield [content["name"], "not run", *[NONE] * 5]


def claim_verdicts(root: Path, name: str):
    paper = Paper(root, name)
    made = sorted({(one["dataset"], one["budget"], one["row"]) for one in paper.records if one["notebook"] == "verify_claims"})
    for dataset, budget, row in made:
        records = paper.of(row, dataset, (budget,))
        metrics = ("label_accuracy", "f1_supports", "f1_not_enough_info", "f1_refutes", "majority")
        cells = [f"{100 * statistics.fmean(found):.1f}" if (found := values(records, metric)) else NONE for metric in metrics]
        yield [paper.title(row), NAMES.get(dataset, dataset), *cells, str(len(records)), budget]


def evidence_near(root: Path, name: str, dataset: str, *rows: str):
    paper = Paper(root, name)
    for row in rows:
        records = paper.of(row, dataset)
        started = [one["baselines"]["before training"]["map_projected"] for one in records]
        after = [values(records, f"map_{way}") for way in ("raw", "projected", "predicted_type", "evidence_head")]
        cells = [*map(spread, (started, *after)), str(len(records)), records[0]["budget"]] if records else ["not run", *[NONE] * 6]
        yield [paper.title(row), *cells]


def evidence_left_out(root: Path, name: str, row: str, *datasets: str):
    paper = Paper(root, name)
    for dataset in datasets:
        records = paper.of(row, dataset)[:1]
        if not records:
            yield [NAMES[dataset], "not run", *[NONE] * 5]
        for record in records:
            for side, lost in record["figures"]["left_out"].items():
                counts = [record["figures"]["read"][side], *(lost[what] for what in ("distractors", "evidence", "others"))]
                counts.append(record["settings"]["max_tokens"])
                yield [f"{NAMES[dataset]}, {side}", *(f"{count:,}" for count in counts), record["budget"]]


def evidence_chance(root: Path, name: str, row: str, *datasets: str):
    paper = Paper(root, name)
    metrics = {"random": "map", "document_order": "map", "zero_shot": "map", "all_sentences": "evidence_f1"}
    for dataset in datasets:
        records = paper.of(row, dataset)[:1]
        if not records:
            yield [NAMES[dataset], "not run", *[NONE] * 4]
        for record in records:
            cells = [f"{100 * record['baselines'][order][metric]:.1f}" for order, metric in metrics.items()]
            yield [NAMES[dataset], *cells, record["budget"]]


def overlap(root: Path, name: str):
    found = {}
    for one in Paper(root, name).records:
        if measured := one.get("figures", {}).get("context_overlap"):
            found[str(one["settings"].get("corpus")), str(one["settings"].get("splitter")), one["budget"]] = measured
    for where, measured in sorted(found.items()):
        shares = [f"{measured[name]:.1%}" for name in ("identical", "overlap")]
        yield [*where, f"{measured['examples']:,}", f"{measured['paragraph_sentences']:.1f}", *shares]


# ------------------------------------------------------------------ benchmarks


def benchmark(root: Path, name: str) -> dict | None:
    path = root / "results" / "benchmarks" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def machine(known: dict) -> str:
    device = known["gpu"] or f"{known['cores']} cores of {known['processor']}"
    return f"{device}, {known['system']}, Python {known['python']}"


def shown(value) -> str:
    """Three digits that count, thousands marked; words as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def benchmarks(root: Path, *names: str):
    """The overview of all, then the figures of each."""
    found = {name: benchmark(root, name) for name in names}
    for name, one in found.items():
        if one is None:
            yield [name, "", "", "", "not run", ""]
            continue
        reached = "reached" if one["ratio"] >= one["goal"] else "not reached"
        between = f"{shown(one['spread']['least'])} to {shown(one['spread']['most'])}"
        yield [name, shown(one["ratio"]), between, shown(one["goal"]), reached, machine(one["machine"])]
    for one in filter(None, found.values()):
        apart = ("name", "ratio", "goal", "spread", "machine", "commit", "created")
        yield from ([label, text] for label, text in flat({key: value for key, value in one.items() if key not in apart}))
        yield ["versions", ", ".join(f"{name} {version}" for name, version in one["machine"]["versions"].items())]
        yield from ([word, one.get(key, "unknown")] for word, key in (("commit", "commit"), ("date", "created")))


def flat(found: dict, before: str = ""):
    """(name, text) of every figure in nested dictionaries; a median is one with its least and most."""
    for name, value in found.items():
        label = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            if {"median", "least", "most"} <= set(value):
                yield label, f"{shown(value['median'])} ({shown(value['least'])} to {shown(value['most'])})"
            yield from flat(
                {key: one for key, one in value.items() if key not in ("median", "least", "most") or "most" not in value}, f"{label}: "
            )
        elif value is not None:
            yield label, shown(value)


def latency(root: Path):
    """The words under the plot, then the ratios by number of candidates."""
    for one in filter(None, (benchmark(root, name) for name in ("latency", "latency-gpu"))):
        model, rounds, paper = one["model"], one["rounds"], one["published"]
        yield (
            f"Time to rank the first k candidates of {one['questions']:,} questions of {one['dataset']} from texts to scores, "
            f"{one['questions_alone']:,} of them also one at a time: the median over {rounds} round{'s' * (rounds > 1)}, by "
            f"{model['name']} ({model['layers']} layers of {model['hidden']}) on {machine(one['machine'])}. Padded: every text to "
            f"{one['slot_tokens']} tokens, as in the paper's formula, whose lines start from the time of padded pairs."
        )
        for k, at in one["by_k"].items():
            found = [ratio["median"] for way in ("joint_by_pair", "joint_by_pair_padded") for ratio in at[way].values()]
            printed = f"{paper['joint_seconds']} / {paper['pair_seconds']} = {paper['joint_seconds'] / paper['pair_seconds']:.2f}"
            yield [k, *(f"{value:.2f}" for value in (*found, *at["formula"].values())), printed if int(k) == paper["k"] else NONE]


def slot_cosines(root: Path):
    """The words under the plot, then each model's cosines after its last layer."""
    for one in filter(None, [cosines(root)]):
        yield (
            f"Mean cosine between two slots of one input, after the embeddings (0) and after each layer, before any training: "
            f"{one['inputs']} inputs of {one['dataset']}. At 1 all slots are one vector. Types: the standard deviation of fresh slot types."
        )
        for model in one["models"]:
            last = [model[name][-1] for name in ("first", "first_least", "mean", "mean_least")]
            yield [slotted(model), *(f"{value:.4f}" for value in last)]


def cosines(root: Path) -> dict | None:
    path = root / "results" / "joint_inference" / "slot_cosines.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def slotted(model: dict) -> str:
    name = model["model"].rpartition("/")[2]
    return f"{'RoBERTa-Base, random weights' if name == 'random' else name}, types {model['init']:g}"


def growth(root: Path):
    for one in filter(None, (benchmark(root, name) for name in ("growth", "growth-gpu"))):
        yield (
            f"How time (above) and memory (below) grow, each point in a process of its own, on {machine(one['machine'])}; text of "
            f"{one['source']}, a model of {one['model']['layers']} layers of {one['model']['hidden']}, one thread a process. Two "
            f"processes train on {one['ratio']:.2f} times the tokens of one."
        )


def trained(root: Path):
    """The committed runs that trained, by kind: medians."""
    kinds, found = {}, {}
    for path in sorted((root / "results").glob("*/*/*.json")):
        one = json.loads(path.read_text("utf-8"))
        if one.get("figures", {}).get("examples"):
            found[one["name"]] = one
    for one in found.values():
        settings = one["settings"]
        kind = next((settings[name] for name in ("objective", "architecture", "head") if settings.get(name)), "pair")
        kind += f", pairs of {settings['data']}" if settings.get("data") else ""
        kinds.setdefault((one["notebook"], kind, settings.get("dataset") or settings.get("corpus"), settings["max_tokens"]), []).append(one)
    for (notebook, kind, data, longest), of in sorted(kinds.items()):
        measured = [(one["figures"]["tokens"], one["figures"]["examples"], one["figures"]["training_seconds"]) for one in of]
        tokens, speed = (statistics.median(each) for each in ([t / n for t, n, _ in measured], [t / s for t, _, s in measured]))
        share = f"{tokens / longest:.0%}" if notebook in ("pretrain", "finetune") and kind != "joint" else NONE
        hours = statistics.median(one["seconds"] / 3600 for one in of)
        figures = [str(len(of)), str(longest), f"{tokens:.0f}", share, f"{speed:,.0f}", f"{hours:.2f}"]
        yield [notebook, kind, NAMES.get(data, data), *figures]


def trust(root: Path):
    """The figures of each part of `python -m tests.trust`, and what they were measured with."""
    for path in sorted((root / "results" / "trust").glob("*.json")):
        record = json.loads(path.read_text("utf-8"))
        shown = [f"{' '.join(name.split('_'))} {value}" for name, value in record["figures"].items() if type(value) in (int, float, str)]
        cores, day = record["hardware"]["cpu_cores"], record["created"].split("T")[0]
        yield [record["part"], ", ".join(shown), f"{record['size']} size, seed {record['seed']}, {cores} cores, {day}"]
    if not any((root / "results" / "trust").glob("*.json")):
        yield "Not run: make trust measures it."
