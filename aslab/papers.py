"""Reads `experiments/<paper>.yml`: rows with published values and stages, tables, budgets and claims.

An unknown key, row, data set or metric is refused with the file and the place.
"""

import re
from functools import cache
from pathlib import Path

import yaml

from asutil.io import files, spelling
from asutil.metrics import registry

from . import parameters, rules, rundir
from .rundir import BUDGETS

# In the order of the book.
PAPERS = ("sentence_objectives", "contextual_as2", "asbert", "joint_inference", "evidence_contrast")
METRICS = tuple(measure.key for measure in registry.measures() if measure.printed)
# Claims are about these: they can be paired.
PER_QUESTION_METRICS = tuple(key for of in ("question", "claim", "context") for key in registry.columns(of))
OWN_TASK = "pretraining"  # the column of figures on the task that a model was pre-trained on
ROBERTA = "roberta"  # the backbone of a row that names none
# The notebooks of stages, and what each is scored on; None: the budget's data sets.
NOTEBOOKS = {"pretrain": OWN_TASK, "task_difficulty": OWN_TASK}
NOTEBOOKS |= dict.fromkeys(("finetune", "embed", "rerank", "verify_claims", "find_evidence"))
# Columns of tables that are one split of a data set. A column with a data set's own name is its test split.
SPLITS = {f"{dataset}_dev": (dataset, "dev") for dataset in ("fever", "wikiqa", "trecqa")}
SPLITS["fever_test"] = ("fever", "test")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
# In the name of a column: the questions before it, ranked by a model that was fine-tuned on the data set after it.
TRANSFER = "_from_"
# A part of the file: the keys that it must have, and those that it may have.
KEYS = {
    "the file": (
        "slug title authors unit rows tables",
        "venue arxiv runs parameters private budgets demo settings claims headline figure_claims counts questions",
    ),
    "rows": ("name published", "stages backbone baseline system_of doubtful search not_testable"),
    "tables": ("where caption datasets metrics rows", "runs"),
    "budgets": (
        "backbones datasets seeds rows",
        "more_seeds more_datasets pretrain_each also_rank corpus claims search gpu_hours asked_of",
    ),
    "claims": ("id where claim row_a row_b dataset metric sign", "not_testable b_at_chance stated"),
    "figure_claims": ("id where claim plus minus dataset metric sign", ""),
    "settings": ("notebook are", "when"),
    "demo": ("budget rows seeds data_sets", ""),
}


def read(paper: str, folder: str | Path | None = None) -> dict:
    """The rows, tables, budgets and claims of one paper, checked.

    Args:
        folder: where the YAML files are; the project's experiments/ by default.
    Raises: FileNotFoundError for a paper without a file; ValueError naming the file and the place of what is wrong.
    """
    path = (Path(folder) if folder is not None else rundir.root() / "experiments") / f"{paper}.yml"
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is not in {path.parent.name}/ (papers: {', '.join(PAPERS)})")
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> dict:
    try:
        data = files.yaml_value(path.read_text(encoding="utf-8"), _Strict)
        _check(data, path.stem)
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    return data


class _Strict(yaml.SafeLoader):
    """Refuses a key that appears twice: plain YAML would silently drop the first value, maybe a published number."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} appears twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _check(data, paper: str) -> None:
    _keys(data, "the file", "the file")
    for key in ("rows", "tables", "budgets"):
        if not isinstance(data.get(key, {}), dict):
            raise ValueError(f"{key}: a mapping is expected, got {data[key]!r}")
    one_of(data["slug"], [paper], "slug")
    one_of(data["unit"], ["percent", "fraction"], "unit")
    rows, tables, budgets = data["rows"], data["tables"], data.get("budgets", {})
    datasets = {dataset for table in tables.values() for dataset in table.get("datasets", ())}
    for name, row in rows.items():
        _check_row(row, rows, datasets, f"row {name}")
    for name, row in rows.items():
        _check_chain(row.get("stages") or (), rows, f"row {name}")
    for name, table in tables.items():
        _keys(table, "tables", name)
        all_of(table["rows"], rows, name)
        all_of(table["metrics"], METRICS, name)
        printed = {dataset for row in table["rows"] for dataset in rows[row]["published"]}
        all_of(table["datasets"], printed, f"{name}: data sets that a row of the table has under `published`")
    all_of(budgets, BUDGETS, "budgets")
    for name, budget in budgets.items():
        _check_budget(budget, rows, datasets, f"budget {name}")
    if "demo" in data:
        _keys(data["demo"], "demo", "demo")
        one_of(data["demo"]["budget"], budgets, "demo")
    for rule in data.get("settings", ()):
        _check_rule(rule, rows, "a rule of settings")
    for kind, metrics in {"claims": PER_QUESTION_METRICS, "figure_claims": METRICS}.items():
        for claim in data.get(kind, ()):
            _check_claim(claim, kind, metrics, rows, datasets)
    all_of(data.get("headline", ()), [claim["id"] for claim in data.get("claims", ())], "headline", "claim")
    for key in ("private", "questions", "counts"):
        all_of(data.get(key, ()), datasets, key)
    for dataset, splits in data.get("counts", {}).items():
        all_of(splits, ("train", "dev", "test"), f"counts, {dataset}")
        for split, counts in splits.items():
            if not isinstance(counts, list) or [type(number) for number in counts] != [int, int]:
                raise ValueError(f"counts, {dataset}, {split}: expected [questions, candidates], got {counts!r}")


def _keys(mapping, kind: str, place: str) -> None:
    if not isinstance(mapping, dict):
        raise ValueError(f"{place}: a mapping is expected, got {mapping!r}")
    must, may = (keys.split() for keys in KEYS[kind])
    if absent := [key for key in must if key not in mapping]:
        raise ValueError(f"{place} lacks {', '.join(absent)}")
    all_of(mapping, must + may, place, "key")


def _check_row(row, rows: dict, datasets: set, place: str) -> None:
    _keys(row, "rows", place)
    all_of([row["baseline"]] if "baseline" in row else (), rows, f"{place}: baseline")
    for stage in row.get("stages") or ():
        _check_stage(stage, f"a stage of {place}")
    all_of(row["published"], datasets, place)
    for dataset, cells in row["published"].items():
        all_of(cells, METRICS, f"{place}, {dataset}")
        for metric, cell in cells.items():
            _check_cell(cell, f"{place}, {dataset}, {metric}")
    if "doubtful" in row and not (_is_text(row["doubtful"]) and any(row["published"].values())):
        raise ValueError(f"{place}: doubtful says in words why its printed figures are; got {row['doubtful']!r}")
    _check_reasons(row, place)


def _check_reasons(content: dict, place: str) -> None:
    """`not_testable` of a row or a claim: why it cannot be answered, for some budgets."""
    reasons = content.get("not_testable", {})
    if not isinstance(reasons, dict) or not all(map(_is_text, reasons.values())):
        raise ValueError(f"{place}: not_testable says in words for each budget why; got {reasons!r}")
    all_of(reasons, BUDGETS, f"{place}: not_testable", "budget")


def _is_text(value) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_cell(cell, place: str) -> None:
    numbers = [cell]
    if cell in (None, "baseline"):
        return
    if isinstance(cell, dict):
        numbers = [cell.get("relative"), *([None] * (len(cell) > 1))]
    elif isinstance(cell, list):
        numbers = cell if len(cell) == 2 else [None]
    if not all(type(number) in (int, float) for number in numbers):
        raise ValueError(f"{place}: expected [mean, std], a number, {{relative: x}}, baseline or null; got {cell!r}")


def _check_stage(stage, place: str) -> None:
    """A stage has a notebook, values of its parameters (for all, by budget, or also by data set), and its budgets."""
    if not isinstance(stage, dict) or "notebook" not in stage:
        raise ValueError(f"{place}: a mapping with a notebook is expected, got {stage!r}")
    one_of(stage["notebook"], NOTEBOOKS, place)
    first = ["first"] * (stage["notebook"] == "rerank")
    all_of(stage, ("notebook", "budgets", *first, *parameters.parameters(stage["notebook"])), place, "key")
    by_budget = [budget for value in stage.values() if isinstance(value, dict) for budget in value]
    all_of([*stage.get("budgets", ()), *by_budget], BUDGETS, place, "budget")


def _check_chain(stages: list[dict], rows: dict, place: str) -> None:
    """`rerank` is the last stage, after `finetune`, and has a `first` row; `embed` is the only stage."""
    notebooks = [stage["notebook"] for stage in stages]
    shown = ", ".join(notebooks)
    if "rerank" in notebooks:
        is_last = notebooks.index("rerank") == len(notebooks) - 1
        if not is_last or notebooks[-2:-1] != ["finetune"] or "first" not in stages[-1]:
            raise ValueError(f"{place}: rerank is the last stage, after finetune, and has first: <row>; got {shown}")
        ranked = [row for row in rows if (rows[row].get("stages") or [{}])[-1].get("notebook") == "finetune"]
        one_of(stages[-1]["first"], ranked, f"{place}: first", "row that ends with finetune")
    if "embed" in notebooks and len(notebooks) > 1:
        raise ValueError(f"{place}: embed is a row's only stage; got {shown}")


def _check_budget(budget, rows: dict, datasets: set, place: str) -> None:
    _keys(budget, "budgets", place)
    all_of(budget["rows"], [name for name, row in rows.items() if row.get("stages")], f"{place}: rows with stages")
    backbones = [rows[name].get("backbone", ROBERTA) for name in budget["rows"]]
    all_of(backbones, budget["backbones"], f"{place}: backbones")
    all_of(budget.get("search", {}).get("datasets", ()), budget["datasets"], f"{place}: search")
    for more in ("more_seeds", "more_datasets"):
        all_of(budget.get(more, ()), budget["rows"], f"{place}: {more}")
    own = (*budget["datasets"], *budget.get("claims", ()))
    more = [name for names in budget.get("more_datasets", {}).values() for name in names]
    for key in ("pretrain_each", "also_rank"):
        all_of(budget.get(key, ()), [*own, *more], f"{place}: {key}", "data set of the budget")
    for dataset, others in budget.get("also_rank", {}).items():
        columns = [column.removesuffix(f"{TRANSFER}{dataset}") for column in datasets if TRANSFER in column]
        what = f"data set that a table has as <name>{TRANSFER}{dataset}"
        all_of(others, columns, f"{place}: also_rank of {dataset}", what)
    asked = budget.get("asked_of", {})
    all_of(asked, datasets, f"{place}: asked_of", "data set")
    all_of(asked.values(), own, f"{place}: asked_of", "data set of the budget")
    for name in budget["rows"]:
        notebooks = [stage["notebook"] for stage in rows[name]["stages"]]
        if notebooks[-1] == "verify_claims" and not budget.get("claims"):
            raise ValueError(f"{place}: row {name} verifies claims, but the budget has no claims (data sets of claims)")
        if any(NOTEBOOKS[notebook] for notebook in notebooks) and "corpus" not in budget:
            raise ValueError(f"{place}: row {name} reads a corpus, but the budget has none")


def _check_rule(rule, rows: dict, place: str) -> None:
    _keys(rule, "settings", place)
    one_of(rule["notebook"], NOTEBOOKS, place)
    known, when = parameters.parameters(rule["notebook"]), rule.get("when", {})
    all_of(rule["are"], known, place, "parameter")
    all_of(when, ("row", *known), f"{place}: when", "parameter")
    all_of(when.get("row", ()), rows, f"{place}: when", "row")
    for name, values in rule["are"].items():
        forms = [form for value in rules.listed(values) if isinstance(value, dict) for form in value]
        all_of(forms, rules.FORMS, f"{place}: {name}", "key")


def _check_claim(claim, kind: str, metrics, rows: dict, datasets: set) -> None:
    place = f"{kind[:-1].replace('_', ' ')} {claim.get('id')}"
    _keys(claim, kind, place)
    all_of(rules.listed(claim["metric"]), metrics, place)
    named = [claim["row_a"], claim["row_b"]] if "row_a" in claim else [*claim["plus"], *claim["minus"]]
    all_of(named, rows, place)
    one_of(claim["dataset"], datasets, place)
    one_of(claim["sign"], ["+", "-"], place)
    one_of(claim.get("b_at_chance", False), [True, False], f"{place}: b_at_chance")
    if "stated" in claim and not (isinstance(claim["stated"], str) and DAY.fullmatch(claim["stated"])):
        raise ValueError(f"{place}: stated: expected a day in quotes, as '2026-11-27', got {claim['stated']!r}")
    _check_reasons(claim, place)


def one_of(value, known, place: str, what: str = "value") -> None:
    """Refuse a value that is not among the known ones, with the place in the file and the nearest name."""
    if value not in known:
        hint = spelling.nearest(value, known)
        raise ValueError(f"{place}: unknown {what} {value!r}{hint} (expected: {', '.join(map(str, known))})")


def all_of(values, known, place: str, what: str = "value") -> None:
    """`one_of` for each value."""
    for value in values:
        one_of(value, known, place, what)


def claims(data: dict, kind: str = "claims") -> list[dict]:
    """The claims of a paper, or its `figure_claims`, one for each metric that a claim is tested on."""
    return [claim | {"metric": metric} for claim in data.get(kind, ()) for metric in rules.listed(claim["metric"])]


def primary_metrics(data: dict) -> dict[str, str]:
    """The metric that decides each claim, by id: MAP where the claim names it, else its only one."""
    metrics = {claim["id"]: rules.listed(claim["metric"]) for claim in data.get("claims", ())}
    return {name: "map" if "map" in own else own[0] for name, own in metrics.items()}


def claims_asked(data: dict, budget: str) -> list[dict]:
    """The claims whose rows a budget runs, on the data sets that replace the paper's there (`asked_of`).

    Claims that differ only in the paper's data set are listed once.
    """
    entry, first = data["budgets"][budget], {}
    for claim in claims(data):
        dataset = entry.get("asked_of", {}).get(claim["dataset"])
        if dataset and {claim["row_a"], claim["row_b"]} <= set(entry["rows"]):
            key = (claim["row_a"], claim["row_b"], claim["metric"], claim["sign"], dataset)
            first.setdefault(key, claim | {"dataset": dataset})
    return list(first.values())


def first_budget(data: dict, claim: dict) -> str | None:
    """The smallest budget that runs both rows of a claim on its data set; None if there is none."""
    dataset, _ = SPLITS.get(claim["dataset"], (claim["dataset"], ""))
    ranked, _, dataset = dataset.rpartition(TRANSFER)
    for budget in BUDGETS:
        entry = data.get("budgets", {}).get(budget, {"rows": ()})
        rows = (claim["row_a"], claim["row_b"])
        if ranked and ranked not in entry.get("also_rank", {}).get(dataset, ()):
            continue
        if all(row in entry["rows"] and dataset in datasets(data, row, budget) for row in rows):
            return budget
    return None


def stages(data: dict, row: str, budget: str) -> list[dict]:
    """The stages of a row at one budget, with the values of that budget; such a value may differ between data sets."""
    chosen = []
    for stage in data["rows"][row].get("stages") or ():
        if budget in stage.get("budgets", BUDGETS):
            values = {key: value.get(budget) if isinstance(value, dict) else value for key, value in stage.items()}
            chosen.append({key: value for key, value in values.items() if value is not None and key != "budgets"})
    return chosen


def datasets(data: dict, row: str, budget: str) -> list[str]:
    """The data sets of a row at one budget: of claims if it verifies claims, else of questions, and `more_datasets`."""
    entry = data["budgets"][budget]
    verifies = stages(data, row, budget)[-1]["notebook"] == "verify_claims"
    return [*entry["claims" if verifies else "datasets"], *entry.get("more_datasets", {}).get(row, ())]


def untrained(data: dict, row: str) -> bool:
    """Whether a row uses its encoder as it is: all seeds would give the same figures, so it is run once."""
    return any(stage.get("architecture") == "untrained" for stage in data["rows"][row].get("stages") or ())


def seeds(data: dict, row: str, budget: str, chosen: list[int] | None = None) -> list[int]:
    """The seeds of a row at one budget, or the chosen ones of them; of an untrained encoder only the first."""
    entry = data["budgets"][budget]
    every = [*entry["seeds"], *entry.get("more_seeds", {}).get(row, ())]
    if untrained(data, row):
        return every[:1]
    return [seed for seed in every if chosen is None or seed in chosen]
