"""What the result tables of the book must say, counted again from `results/` and `experiments/` with nothing of `asutil`.

A directive of the book is a word with arguments; each function here gives the lines of its tables as texts. A page that says anything
else is Broken.
"""

import itertools
import json
import statistics
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml
from scipy import stats

from . import traced_reasons

PAPERS = ("sentence_objectives", "contextual_as2", "asbert", "joint_inference", "evidence_contrast")
RANKED = {"wikiqa": "WikiQA", "trecqa": "TREC-QA", "selqa": "SelQA"}
NAMES = {
    **{"p@1": "P@1", "map": "MAP", "mrr": "MRR", "accuracy": "Accuracy", "f1": "F1", "label_accuracy": "Label accuracy"},
    **{"auc": "AUC", "rank_1": "First in its group"},
    **{"answer_f1": "Answer F1", "evidence_f1": "Evidence F1", "map_raw": "mAP, raw vectors", "map_projected": "mAP, as trained"},
    **{"map_predicted_type": "mAP, predicted type", "asnq": "ASNQ", "wikiqa": "WikiQA", "wikiqa_dev": "WikiQA, dev"},
    **{"trecqa": "TREC-QA", "trecqa_dev": "TREC-QA, dev", "wqa": "WQA", "newsas2": "NewsAS2", "iqad_bench_1": "IQAD, bench 1"},
    **{"iqad_bench_2": "IQAD, bench 2", "fever_dev": "FEVER, dev", "fever_test": "FEVER, test", "climate_fever": "Climate-FEVER"},
    **{"qasper": "QASPER", "hotpotqa": "HotpotQA", "random": "random order", "document_order": "document order", "bm25": "BM25"},
    **{
        "majority": "most frequent label",
        "most_frequent_answer": "most frequent answer",
        "zero_shot": "zero-shot cosine",
        "all_sentences": "all sentences",
    },
    **{f"{name}_from_nq_sentences": f"{title}, trained on NQ sentences" for name, title in RANKED.items()},
    **{"pydocs_more": "more of pydocs", "pydocs_evidence": "pydocs evidence", "pydocs_claims": "pydocs claims"},
    **{"nq_sentences": "NQ sentences", "selqa": "SelQA", "trecqa_transfer": "TREC-QA, transfer"},
}
BY_QUESTION = {
    "verify_claims": ("label_accuracy",),
    "find_evidence": ("answer_f1", "evidence_f1", "map_raw", "map_projected", "map_predicted_type"),
}
BUDGETS = ("small", "gpu", "paper")  # those beside whose figures the book puts printed ones
EVERY = ("laptop", *BUDGETS)
UNTESTABLE = "not testable here"
WORDS = ("reduced budget", UNTESTABLE, "private data", "not run")  # the worst first
NONE = "–"
OWN_TASK = "Own pre-training task, validation documents"
BESIDE = {  # of a metric of own tasks what needs no training: its word, its name in a record
    "accuracy": {"majority": "majority"},
    "rank_1": {"chance": "rank_1_chance", "TF-IDF": "rank_1_tfidf"},
    "auc": {"TF-IDF": "auc_tfidf"},
}


class Paper:
    """One paper's YAML and its committed records."""

    def __init__(self, root: Path, name: str):
        self.name, self.data = name, yaml.safe_load((root / "experiments" / f"{name}.yml").read_text("utf-8"))
        files = sorted((root / "results" / name).glob("*/*.json"))
        own = [json.loads(path.read_text("utf-8")) for path in files]
        self.records = [*own, *(part | before_training(part, own) for one in own for part in transferred(one))]
        self.rows, self.scale = self.data["rows"], 100 if self.data["unit"] == "fraction" else 1

    def title(self, row: str) -> str:
        return self.rows[row]["name"]

    def of(self, row: str, dataset: str, budgets=BUDGETS) -> list[dict]:
        """The records of a row on a data set at its largest budget, by seed."""
        known = [one for one in self.records if (one["row"], one["dataset"]) == (row, dataset) and one["budget"] in budgets]
        largest = max((EVERY.index(one["budget"]) for one in known), default=None)
        return sorted((one for one in known if EVERY.index(one["budget"]) == largest), key=lambda one: one["seed"])

    def drawable(self, row: str, dataset: str) -> list[dict]:
        """The first seed's record of a row on a data set that holds coordinates, at the largest budget that has some."""
        for budget in reversed(EVERY):
            if found := [one for one in self.of(row, dataset, (budget,)) if one.get("pca")]:
                return found[:1]
        return []

    def pair(self, row: str, other: str, dataset: str, budgets=BUDGETS) -> tuple[list[dict], list[dict], int]:
        """Records of two rows at the largest budget that both have, of the seeds that both have, and how many those are."""
        for budget in reversed(budgets):
            sides = [self.of(name, dataset, (budget,)) for name in (row, other)]
            trained = [{one["seed"] for one in side} for side in sides if not untrained(side)]
            seeds = set.intersection(*(trained or [{one["seed"] for one in side} for side in sides]))
            if all(sides) and seeds:
                return *([one for one in side if untrained(side) or one["seed"] in seeds] for side in sides), len(seeds)
        return [], [], 0

    def claims(self):
        """Every claim with one metric after the other; `first` with its first."""
        for claim in self.data.get("claims", ()):
            metrics = claim["metric"] if isinstance(claim["metric"], list) else [claim["metric"]]
            yield from (claim | {"metric": metric, "first": metric == metrics[0]} for metric in metrics)

    def published(self, row: str, dataset: str, metric: str) -> list[float] | None:
        """[mean] or [mean, std] in points, as printed."""
        cell = self.rows[row]["published"].get(dataset, {}).get(metric)
        values = cell if isinstance(cell, list) else [cell]
        return [value * self.scale for value in values] if all(isinstance(value, int | float) for value in values) else None


def transferred(record: dict):
    """What a record says of the data sets that its model ranked without more training, as records of their own."""
    kept = ("row", "budget", "seed", "settings", "inputs", "earlier", "notebook", "name", "versions", "created")
    for name, part in record.get("transfer", {}).items():
        yield {key: record[key] for key in kept if key in record} | part | {"dataset": f"{name}_from_{record['dataset']}"}


def before_training(part: dict, own: list[dict]) -> dict:
    """The baselines of what a model only ranked, with those of its encoder as runs measured it that learn from the same data."""
    encoder = lambda one: [*one.get("earlier", []), one][0].get("inputs", {}).get("model")
    for one in own:
        known = (one["budget"], one.get("inputs", {}).get("dataset"), encoder(one)) == (part["budget"], part["fingerprint"], encoder(part))
        if known and "zero_shot" in (one.get("baselines") or {}):
            return {"baselines": part["baselines"] | {"zero_shot": one["baselines"]["zero_shot"]}}
    return {}


def untrained(records: list[dict]) -> bool:
    return bool(records) and all(one["settings"].get("architecture") == "untrained" for one in records)


def side(record: dict) -> str:
    if record["dataset"].endswith(("_dev", "_test")):
        return record["dataset"].rsplit("_", 1)[1]
    return reported(record)


def reported(record: dict) -> str:
    return next((name for name in ("test", "validation", "dev") if record["metrics"].get(name)), "test")


def values(records: list[dict], metric: str, printed: bool = False) -> list[float]:
    """One value a seed; `printed` takes a re-ranking's candidates alone."""
    measured = [(printed and one["metrics"].get("top_k")) or one["metrics"].get(side(one), {}) for one in records]
    return [one[metric] for one in measured if one.get(metric) is not None]


def spread(values: list[float]) -> str:
    points = [100 * value for value in values]
    deviation = f" ± {statistics.stdev(points):.1f}" if len(points) > 1 else ""
    return f"{statistics.fmean(points):.1f}{deviation}" if points else NONE


# ------------------------------------------------------------------ the two tests


def by_question(records: list[dict], metric: str) -> dict[str, float]:
    """The mean over seeds of each question's value."""
    each = {}
    for record in records:
        place = BY_QUESTION.get(record["notebook"], ("p@1", "map", "mrr")).index(metric) + 1
        for line in record["per_question"]:
            each.setdefault(line[0], []).append(line[place])
    known = {name: [value for value in found if value is not None] for name, found in each.items()}
    return {name: statistics.fmean(found) for name, found in known.items() if found}


def over_questions(ours: list[dict], other: list[dict], metric: str):
    """(difference, low, high, p) of the paired bootstrap; None where the metric has no value a question."""
    if not ours or metric not in BY_QUESTION.get(ours[0]["notebook"], ("p@1", "map", "mrr")):
        return None
    first, second = by_question(ours, metric), by_question(other, metric)
    return bootstrap(tuple(first[name] - second[name] for name in first))


@lru_cache
def bootstrap(deltas: tuple[float, ...], draws: int = 10_000):
    apart, draw = np.array(deltas), np.random.default_rng(0)
    means = np.concatenate([apart[draw.integers(len(apart), size=(100, len(apart)))].mean(1) for _ in range(draws // 100)])
    extreme = np.count_nonzero(np.abs(means - apart.mean()) >= abs(apart.mean()) - 1e-12)
    low, high = (end * (abs(end) >= 1e-12) for end in np.percentile(means, [2.5, 97.5]))
    return apart.mean(), low, high, (1 + extreme) / (1 + draws)


def over_seeds(ours: list[dict], other: list[dict], metric: str):
    """The same four numbers of Student's t; an untrained encoder is a number. None where a trained row has one seed, or none is trained."""
    trained = [values(records, metric) for records in (ours, other) if not untrained(records)]
    if not trained or min(map(len, trained)) < 2:
        return None
    first, second = values(ours, metric), values(other, metric)
    apart = statistics.fmean(first) - statistics.fmean(second)
    if all(statistics.pstdev(each) == 0 for each in trained):
        return apart, apart, apart, float(apart == 0)
    if len(trained) == 2:
        test = stats.ttest_ind(first, second)
        return apart, *test.confidence_interval(0.95), test.pvalue
    level = 1 if untrained(other) else -1  # of the row that is trained against the one that is not
    test = stats.ttest_1samp(trained[0], statistics.fmean(second if level > 0 else first))
    half = (test.confidence_interval(0.95).high - test.confidence_interval(0.95).low) / 2
    return apart, apart - half, apart + half, test.pvalue


def as_printed(paper: Paper, row: str, dataset: str, metric: str):
    """The same of a published cell against its baseline's."""
    baseline, runs = paper.rows[row].get("baseline"), paper.data.get("runs")
    cells = [paper.published(name, dataset, metric) for name in (row, baseline) if name]
    if len(cells) < 2 or not runs or any(cell is None or len(cell) < 2 for cell in cells):
        return None
    (mean, std), (other, other_std) = ([value / 100 for value in cell] for cell in cells)
    error = np.sqrt((std**2 + other_std**2) / runs)
    if error == 0:
        return mean - other, mean - other, mean - other, float(mean == other)
    reach = stats.t(2 * runs - 2).ppf(0.975) * error
    return mean - other, mean - other - reach, mean - other + reach, 2 * stats.t(2 * runs - 2).sf(abs(mean - other) / error)


def sign(test) -> int:
    return 0 if test is None else int(test[1] > 0) - int(test[2] < 0)


def mark(seeds, questions=None, with_p: bool = True) -> str:
    """The marks behind a figure, each with its p-value, where the cell has none of its own."""
    shown = (("†", seeds), ("‡", questions))
    last = lambda test: f" {p_value(test)}" * with_p
    return "".join(f" {symbol}{'↓' if sign(test) < 0 else ''}{last(test)}" for symbol, test in shown if sign(test))


def p_value(test) -> str:
    return f"p = {test[3]:.3f}" if test[3] >= 0.001 else "p < 0.001"


def points(test) -> str:
    return "{:+z.1f} [{:+z.1f}, {:+z.1f}]".format(*(100 * value for value in test[:3])) if test else NONE


# ------------------------------------------------------------------ tables


def verdict(paper: Paper, row: str, dataset: str, records: list[dict], metric: str) -> tuple[str, str]:
    """A word and, where nothing can be tested, its reason.

    Nothing that is committed was made with a paper's own settings; a record of that budget is not known here, and refused."""
    if dataset in paper.data.get("private", ()):
        return "private data", ""
    if any(one["budget"] == "paper" for one in records):
        raise ValueError(f"{row} on {dataset}: verdicts at budget paper are not traced")
    known = bool(values(records, metric, printed=True))
    reason = traced_reasons.of_row(paper, row, records, metric) if known else traced_reasons.declared(paper, row, dataset)
    return (UNTESTABLE if reason else "reduced budget" if known else "not run"), reason


def verdicts_of(paper: Paper, row: str, dataset: str, records: list[dict], metrics: list[str]) -> str:
    """The cell of a line: one verdict where all metrics have the same, else each with its reasons, or the metrics without any."""
    said = [verdict(paper, row, dataset, records, metric) for metric in metrics]
    if len(set(said)) == 1:
        return " ".join(said[0]).strip()
    words = list(dict.fromkeys(word for word, _ in said))
    below = [[reason or NAMES[metric] for metric, (own, reason) in zip(metrics, said) if own == word] for word in words]
    return " ".join(f"{word} {'; '.join(sorted(set(lines), key=lines.index))}" for word, lines in zip(words, below))


def printed_cell(paper: Paper, row: str, dataset: str, metric: str) -> str:
    cells = paper.rows[row]["published"][dataset]
    cell = cells.get(metric, NONE)
    if isinstance(cell, dict):
        return f"{cell['relative']:+.1f} %"
    known = paper.published(row, dataset, metric)
    if known is None:
        return cell if cell in (NONE, "baseline") else "lost"
    digits = 2 if any(f"{value:.2f}"[-1] != "0" for value in known) else 1
    return " ± ".join(f"{value:.{digits}f}" for value in known) + mark(as_printed(paper, row, dataset, metric))


def figure(records: list[dict], metric: str, printed: bool = False) -> str:
    """Mean and deviation over seeds, and beside a figure of an own task what needs no training."""
    levels = {word: values(records, name) for word, name in BESIDE.get(metric, {}).items()}
    beside = [f"{word} {100 * known[0]:.1f}" for word, known in levels.items() if known]
    return " ".join([spread(values(records, metric, printed)), *beside])


def our_cell(paper: Paper, row: str, dataset: str, metric: str, records: list[dict]) -> str:
    text, baseline = figure(records, metric, bool(paper.rows[row]["published"][dataset])), paper.rows[row].get("baseline")
    if any(values(records, name) for name in BESIDE.get(metric, {}).values()):
        return text
    budget = (records[0]["budget"],)
    ours, other, count = paper.pair(row, baseline, dataset, budget) if baseline else ([], [], 0)
    if not count or traced_reasons.of_pair(paper, {"row_a": row, "row_b": baseline, "metric": metric}, ours, other):
        return text
    seeds = over_seeds(ours, other, metric)
    return text + mark(seeds, over_questions(ours, other, metric))


def baselines(paper: Paper, dataset: str, metrics: list[str], budgets=BUDGETS, after: int = 3):
    """The untrained baselines, each once, and a zero-shot line for each backbone that a record's runs began with."""
    known = [one for one in paper.records if one["dataset"] == dataset and one["budget"] in budgets]
    same = [one for one in known if side(one) == reported(one) and one["notebook"] != "find_evidence"]
    lines = {}
    for one in same:
        for name, found in (one.get("baselines") or {}).items():
            lines.setdefault((name, began_with(one) if name == "zero_shot" else ""), found)
    for (name, backbone), found in lines.items():
        if found:
            cells = [spread([found[metric]]) if found.get(metric) is not None else NONE for metric in metrics]
            yield [f"{NAMES.get(name, name)} {backbone}".strip(), "no training", *cells, *[NONE] * after]


def began_with(record: dict) -> str:
    """The model of the first run of a chain."""
    name = record["settings"].get("first_run", record["settings"].get("model"))
    for earlier in reversed(record.get("earlier", [])):
        name = earlier["settings"]["model"] if earlier["name"] == name else name
    return name


def seeds_of(paper: Paper, budget: str) -> str:
    counts = {}
    for one in paper.records:
        if one["budget"] == budget and one["dataset"] != "pretraining" and not untrained([one]):
            place = one["row"], one["dataset"]
            counts[place] = counts.get(place, 0) + 1
    least, most = (pick(counts.values() or [len(paper.data["budgets"][budget]["seeds"])]) for pick in (min, max))
    return str(most) if least == most else f"{least} to {most}"


PRINTED_VOLUMES = {  # (steps, longest input), batches of 4,096: section 5.2, section 5 and appendix B.1
    "sentence_objectives": [(400_000, 128), (200_000, 256)],
    "contextual_as2": [(400_000, 128)],
    "joint_inference": [(100_000, 384)],
}


def volumes(paper: Paper, budget: str) -> str:
    """Examples and most tokens of a row's pre-training: as printed, and as the committed records have them."""
    made = [(4096 * steps, length) for steps, length in PRINTED_VOLUMES.get(paper.name, [])]
    if budget != "paper":
        before = [one for record in paper.records if record["budget"] == budget for one in (record, *record.get("earlier", ()))]
        settings = [one["settings"] for one in before if one["notebook"] == "pretrain"]
        made = sorted({(one["steps"] * one["batch_size"], one["max_tokens"]) for one in settings}, reverse=True)
    said = [f"{large(count)} examples of {length} tokens or fewer, {large(count * length)} tokens at most" for count, length in made]
    return " ".join(said)


def large(number: int) -> str:
    if number >= 1e9:
        return f"{number / 1e9:.3g} billion"
    return f"{number / 1e6:.3g} million" if number >= 1e6 else f"{number:,}"


def budgets(root: Path, name: str):
    """What the paper has and what the budgets have of which rows are committed."""
    paper = Paper(root, name)
    ran = {budget: {one["row"] for one in paper.records if one["budget"] == budget} for budget in reversed(EVERY)}
    shown = {"paper": paper.data["budgets"]["paper"]}
    shown |= {budget: paper.data["budgets"][budget] for budget in ran if ran[budget]}
    listed = lambda names: " ".join(dict.fromkeys(filter(None, names)))
    sets = {budget: {one["dataset"] for one in paper.records if one["budget"] == budget} for budget in ran}
    more = lambda entry: [name for names in entry.get("more_datasets", {}).values() for name in names]
    parts = {
        "Models": [listed(entry["backbones"].values()) for entry in shown.values()],
        "Text to pre-train on": [listed(entry.get("corpus", "").split(",")) for entry in shown.values()],
        "Pre-training of a row": [volumes(paper, budget) for budget in shown],
        "Questions": [
            listed(
                NAMES.get(name, name)
                for name in (*entry["datasets"], *entry.get("claims", ()), *more(entry))
                if budget == "paper" or name in sets[budget]
            )
            for budget, entry in shown.items()
        ],
        "Seeds of a row": [seeds_of(paper, budget) for budget in shown],
        "Rows with runs, of those planned": [
            f"{len(ran[budget].intersection(entry['rows']))} of {len(entry['rows'])}" for budget, entry in shown.items()
        ],
    }
    for title, each in parts.items():
        if any(each):
            yield [title, *(text or NONE for text in each)]


def results(root: Path, name: str, table_id: str):
    """The data sets with runs first: baselines and rows with runs, then those without, below one line."""
    paper = Paper(root, name)
    table = paper.data["tables"][table_id]
    parts = {True: [], False: []}
    for dataset in table["datasets"]:
        rows = [row for row in table["rows"] if dataset in paper.rows[row]["published"]]
        ran = [row for row in rows if paper.of(row, dataset)]
        cells = [paper.rows[row]["published"][dataset] for row in rows]
        lost = any(None in one.values() for one in cells)
        metrics = [metric for metric in table["metrics"] if lost or any(metric in one for one in cells)] or table["metrics"]
        beside = [row for row in rows if row in ran or (ran and "system_of" in paper.rows[row])]
        part = parts[bool(ran)]
        if ran:
            records = {row: paper.of(row, dataset) for row in ran}
            several = "," in models(itertools.chain(*records.values()))
            verdicts = {verdicts_of(paper, row, dataset, records[row], metrics) for row in ran}
            reduced = verdicts == {"reduced budget"}
            part += above(*records.values(), reduced=reduced)
            part += baselines(paper, dataset, metrics, after=3 - reduced)
            lines = [line for row in beside for line in lines_of(paper, table, row, dataset, metrics, several)]
            part += [line[:-1] for line in lines] if reduced else lines
        if folded := [row for row in rows if row not in beside]:
            part.append(f"{NAMES.get(dataset, OWN_TASK)}: {len(folded)} of {len(rows)} rows without runs of ours")
            part += [line for row in folded for line in lines_of(paper, table, row, dataset, metrics)]
    return parts[True], parts[False]


def above(*records: list[dict], reduced: bool) -> list[str]:
    """The last words above a table: the model of all our runs, where there is only one, and that nothing was made at full size."""
    name = models(itertools.chain(*records))
    words = [f"Our runs began with {name}."] if name and "," not in name else []
    words += ["Ours is a reduced budget, so its figures are not compared with the paper's."] if reduced else []
    return [" ".join(words)] if words else []


def lines_of(paper: Paper, table: dict, row: str, dataset: str, metrics: list[str], several: bool = False):
    """The printed line of a row, and below it ours, with the names of its models where a table has several."""
    records, content = paper.of(row, dataset), paper.rows[row]
    notes = [content.get("system_of"), "printed figures doubtful" if "doubtful" in content else None]
    head = [" ".join([content["name"], *filter(None, notes)])]
    said = verdicts_of(paper, row, dataset, records, metrics)
    printed = any(metric in content["published"][dataset] for metric in metrics)
    if printed or not records:
        runs = None if dataset == "pretraining" or "system_of" in content else table.get("runs", paper.data.get("runs"))
        cells = [printed_cell(paper, row, dataset, metric) for metric in metrics]
        budget = [str(runs or NONE), "paper"] if printed else [NONE, NONE]
        words = "" if records or "system_of" in content else said
        yield [*head, "paper" if printed else "ours", *cells, *budget, words]
        head = []
    if records:
        cells = [our_cell(paper, row, dataset, metric, records) for metric in metrics]
        seeds = f"{len(records)}{', untrained' if untrained(records) else ''}"
        yield [*head, f"ours {models(records) if several else ''}".strip(), *cells, seeds, records[0]["budget"], said]


def models(records: Iterable[dict]) -> str:
    """The last part of the names of the models that some records' runs began with."""
    return ", ".join(dict.fromkeys(filter(None, (began_with(one).rsplit("/", 1)[-1] for one in records))))
