"""The YAML of a paper, strictly read: its rows with what was printed and what makes them again, its tables, budgets and claims.

An unknown key, row, data set or metric in `experiments/<paper>.yml` is refused with the file and the place.
"""

from functools import cache
from pathlib import Path

import yaml

from asutil.io import files, rundir, spelling
from asutil.io.rundir import BUDGETS

from . import runs

PAPERS = ("sentence_objectives", "contextual_as2", "asbert", "joint_inference", "evidence_contrast")
FOUND = ("answer_f1", "evidence_f1", "map_raw", "map_projected", "map_predicted_type")  # of evidence in a long context
METRICS = ("p@1", "map", "mrr", "accuracy", "f1", "auc", "rank_1", "label_accuracy", *FOUND)
ROBERTA = "roberta"  # the kind of backbone of a row that names none
PAIRED = (*METRICS[:3], "label_accuracy", *FOUND)  # those that have one value a question or claim
# what a stage is scored on; None: the budget's data sets
NOTEBOOKS = {
    "pretrain": "pretraining",
    "task_difficulty": "pretraining",
    "finetune": None,
    "embed": None,
    "rerank": None,
    "verify_claims": None,
    "find_evidence": None,
}
# a column -> the data set of its runs, and which side of it; without a column of its own, the test side has its data set's name
SIDES = {
    "fever_dev": ("fever", "dev"),
    "fever_test": ("fever", "test"),
    "wikiqa_dev": ("wikiqa", "dev"),
    "trecqa_dev": ("trecqa", "dev"),
}

# place -> (keys it must have, keys it may have)
KEYS = {
    "the file": (
        ("slug", "title", "authors", "unit", "rows", "tables"),
        (
            "venue",
            "arxiv",
            "runs",
            "parameters",
            "private",
            "budgets",
            "demo",
            "settings",
            "claims",
            "counts",
            "questions",
        ),
    ),
    "budgets": (
        ("backbones", "datasets", "seeds", "rows"),
        ("more_seeds", "corpus", "claims", "search", "gpu_hours", "asked_of"),
    ),
    "demo": (("budget", "rows", "seeds"), ()),
    "settings": (("notebook", "are"), ("when",)),
    "rows": (
        ("name", "published"),
        ("stages", "backbone", "baseline", "system_of", "doubtful", "search", "not_testable"),
    ),
    "tables": (("where", "caption", "datasets", "metrics", "rows"), ("runs",)),
    "claims": (("id", "where", "claim", "row_a", "row_b", "dataset", "metric", "sign"), ()),
}


def papers() -> tuple[str, ...]:
    """The slugs of the five papers, in the order of the book."""
    return PAPERS


def read(paper: str, folder: str | Path | None = None) -> dict:
    """The rows, tables, budgets and claims of one paper, checked.

    Args:
        folder: where the YAML files are; the project's experiments/ by default.
    Raises: FileNotFoundError for a paper without a file; ValueError naming file and place for anything that is not as it should be.
    """
    path = _folder(folder) / f"{paper}.yml"
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


def _folder(folder) -> Path:
    if folder is not None:
        return Path(folder)
    return rundir.root() / "experiments"


class _Strict(yaml.SafeLoader):
    """A key that stands twice is an error: YAML would silently drop the first, a published number among them."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _check(data, paper: str) -> None:
    _keys(data, "the file", "the file")
    for key in ("rows", "tables", "budgets"):
        if not isinstance(data.get(key, {}), dict):
            raise ValueError(f"{key}: a mapping is expected, got {data[key]!r}")
    one_of(data["slug"], [paper], "slug")
    one_of(data["unit"], ["percent", "fraction"], "unit")
    rows, datasets = data["rows"], {d for table in data["tables"].values() for d in table.get("datasets", ())}
    for name, row in rows.items():
        _keys(row, "rows", f"row {name}")
        all_of([row["baseline"]] if "baseline" in row else (), rows, f"row {name}: baseline")
        for stage in row.get("stages") or ():
            _stage(stage, f"a stage of row {name}")
        for dataset, cells in row["published"].items():
            one_of(dataset, datasets, f"row {name}")
            for metric, cell in cells.items():
                one_of(metric, METRICS, f"row {name}, {dataset}")
                _cell(cell, f"row {name}, {dataset}, {metric}")
        if "doubtful" in row and (
            not isinstance(row["doubtful"], str) or not row["doubtful"].strip() or not any(row["published"].values())
        ):
            raise ValueError(f"row {name}: doubtful says in words why its printed figures are; got {row['doubtful']!r}")
        reasons = row.get("not_testable", {})
        if not isinstance(reasons, dict) or not all(
            isinstance(reason, str) and reason.strip() for reason in reasons.values()
        ):
            raise ValueError(f"row {name}: not_testable says in words for each budget why; got {reasons!r}")
        all_of(reasons, BUDGETS, f"row {name}: not_testable", "budget")
    for name in rows:
        _reranking(rows, name)
        _embedding(rows, name)
    for name, table in data["tables"].items():
        _keys(table, "tables", name)
        all_of(table["rows"], rows, name)
        all_of(table["metrics"], METRICS, name)
    all_of(data.get("private", ()), datasets, "private")
    runnable = [name for name, row in rows.items() if row.get("stages")]
    for name, budget in data.get("budgets", {}).items():
        one_of(name, BUDGETS, "budgets")
        _keys(budget, "budgets", f"budget {name}")
        all_of(budget["rows"], runnable, f"budget {name}: rows with stages")
        all_of(
            [rows[row].get("backbone", ROBERTA) for row in budget["rows"]],
            budget["backbones"],
            f"budget {name}: backbones",
        )
        all_of(budget.get("search", {}).get("datasets", ()), budget["datasets"], f"budget {name}: search")
        all_of(budget.get("more_seeds", ()), budget["rows"], f"budget {name}: more_seeds")
        asked_of = budget.get("asked_of", {})
        all_of(asked_of, datasets, f"budget {name}: asked_of", "data set")
        all_of(
            asked_of.values(),
            (*budget["datasets"], *budget.get("claims", ())),
            f"budget {name}: asked_of",
            "data set of the budget",
        )
        verifying = [row for row in budget["rows"] if rows[row]["stages"][-1]["notebook"] == "verify_claims"]
        if verifying and not budget.get("claims"):
            raise ValueError(
                f"budget {name}: row {verifying[0]} verifies claims, but the budget has no claims (data sets of claims)"
            )
        reading = [row for row in budget["rows"] if any(NOTEBOOKS[stage["notebook"]] for stage in rows[row]["stages"])]
        if reading and "corpus" not in budget:
            raise ValueError(f"budget {name}: row {reading[0]} reads a corpus, but the budget has none")
    if "demo" in data:
        _keys(data["demo"], "demo", "demo")
        one_of(data["demo"]["budget"], data.get("budgets", {}), "demo")
    for rule in data.get("settings", ()):
        _keys(rule, "settings", "a rule of settings")
        one_of(rule["notebook"], NOTEBOOKS, "a rule of settings")
        for name, values in rule["are"].items():
            for one in values if isinstance(values, list) else [values]:
                all_of(one if isinstance(one, dict) else (), ("each", "at_most"), f"a rule of settings: {name}", "key")
    for claim in data.get("claims", ()):
        _keys(claim, "claims", f"claim {claim.get('id')}")
        place = f"claim {claim['id']}"
        all_of([claim["row_a"], claim["row_b"]], rows, place)
        one_of(claim["dataset"], datasets, place)
        all_of(_metrics(claim), PAIRED, place)
        one_of(claim["sign"], ["+", "-"], place)
    all_of(data.get("questions", ()), datasets, "questions")
    for dataset, sides in data.get("counts", {}).items():
        one_of(dataset, datasets, "counts")
        for side, counted in sides.items():
            one_of(side, ("train", "dev", "test"), f"counts, {dataset}")
            if not isinstance(counted, list) or [type(number) for number in counted] != [int, int]:
                raise ValueError(f"counts, {dataset}, {side}: expected [questions, candidates], got {counted!r}")


def _keys(mapping, kind: str, place: str) -> None:
    if not isinstance(mapping, dict):
        raise ValueError(f"{place}: a mapping is expected, got {mapping!r}")
    must, may = KEYS[kind]
    absent = [key for key in must if key not in mapping]
    if absent:
        raise ValueError(f"{place} lacks {', '.join(absent)}")
    all_of(mapping, must + may, place, "key")


def _stage(stage: dict, place: str) -> None:
    """A stage: a notebook, what it is given (a value, one a budget, or one a budget and data set), and the budgets that it belongs to."""
    if not isinstance(stage, dict) or "notebook" not in stage:
        raise ValueError(f"{place}: a mapping with a notebook is expected, got {stage!r}")
    one_of(stage["notebook"], NOTEBOOKS, place)
    own = ("first",) if stage["notebook"] == "rerank" else ()
    all_of(stage, ("notebook", "budgets", *own, *runs.parameters(stage["notebook"])), place, "key")
    all_of(stage.get("budgets", ()), BUDGETS, place, "budget")
    for value in stage.values():
        all_of(value if isinstance(value, dict) else (), BUDGETS, place, "budget")


def _reranking(rows: dict, name: str) -> None:
    """A stage that re-ranks is a row's last, after one that fine-tunes, and its `first` is the row whose best candidates it takes."""
    notebooks = [stage["notebook"] for stage in rows[name].get("stages") or ()]
    if "rerank" in notebooks:
        last = rows[name]["stages"][-1]
        if notebooks.index("rerank") != len(notebooks) - 1 or notebooks[-2:-1] != ["finetune"] or "first" not in last:
            raise ValueError(
                f"row {name}: rerank is the last stage, after finetune, and has first: <row>; got {', '.join(notebooks)}"
            )
        ranked = [row for row in rows if (rows[row].get("stages") or [{}])[-1].get("notebook") == "finetune"]
        one_of(last["first"], ranked, f"row {name}: first", "row that ends with finetune")


def _embedding(rows: dict, name: str) -> None:
    """What embeds starts from a model as it is, so it is a row's only stage."""
    notebooks = [stage["notebook"] for stage in rows[name].get("stages") or ()]
    if "embed" in notebooks and len(notebooks) > 1:
        raise ValueError(f"row {name}: embed is a row's only stage; got {', '.join(notebooks)}")


def one_of(value, known, place: str, what: str = "value") -> None:
    if value not in known:
        raise ValueError(
            f"{place}: unknown {what} {value!r}{spelling.nearest(value, known)} (expected: {', '.join(map(str, known))})"
        )


def all_of(values, known, place: str, what: str = "value") -> None:
    for value in values:
        one_of(value, known, place, what)


def _cell(cell, place: str) -> None:
    numbers = cell if isinstance(cell, list) else list(cell.values()) if isinstance(cell, dict) else [cell]
    shaped = (isinstance(cell, list) and len(cell) == 2) or (isinstance(cell, dict) and list(cell) == ["relative"])
    if cell in (None, "baseline"):
        return
    if not (shaped or not isinstance(cell, list | dict)) or not all(type(n) in (int, float) for n in numbers):
        raise ValueError(f"{place}: expected [mean, std], a number, {{relative: x}}, baseline or null; got {cell!r}")


def claims(data: dict) -> list[dict]:
    """The claims of a paper, each once for every metric that it is tested on, which is then its `metric`."""
    return [claim | {"metric": metric} for claim in data.get("claims", ()) for metric in _metrics(claim)]


def claims_asked(data: dict, budget: str) -> list[dict]:
    """The claims whose rows a budget runs, each on the data set that it asks them of in place of the paper's (`asked_of`).

    Of claims that differ in the paper's data set alone, the first stands for all.
    """
    entry, known = data["budgets"][budget], {}
    for claim in claims(data):
        dataset = entry.get("asked_of", {}).get(claim["dataset"])
        if dataset and {claim["row_a"], claim["row_b"]} <= set(entry["rows"]):
            asked = tuple(claim[key] for key in ("row_a", "row_b", "metric", "sign"))
            known.setdefault((*asked, dataset), claim | {"dataset": dataset})
    return list(known.values())


def _metrics(claim: dict) -> list[str]:
    return claim["metric"] if isinstance(claim["metric"], list) else [claim["metric"]]


def stages(data: dict, row: str, budget: str) -> list[dict]:
    """The stages of a row at one budget, each with the values of that budget: a value may still be one a data set."""
    found = []
    for stage in data["rows"][row].get("stages") or ():
        if budget in stage.get("budgets", BUDGETS):
            values = {
                key: value.get(budget) if isinstance(value, dict) else value
                for key, value in stage.items()
                if key != "budgets"
            }
            found.append({key: value for key, value in values.items() if value is not None})
    return found


def datasets(data: dict, row: str, budget: str) -> list[str]:
    """What a row runs on at one budget: the budget's claims where it verifies claims, else its data sets."""
    return data["budgets"][budget][
        "claims" if stages(data, row, budget)[-1]["notebook"] == "verify_claims" else "datasets"
    ]


def untrained(data: dict, row: str) -> bool:
    """Whether a row takes its encoder as it is: it has no spread over seeds, and its one run stands for every seed."""
    return any(stage.get("architecture") == "untrained" for stage in data["rows"][row].get("stages") or ())


def seeds(data: dict, row: str, budget: str, asked: list[int] | None = None) -> list[int]:
    """The seeds that a row is run with at one budget: all of its own, or those asked for; of an untrained encoder the first."""
    entry = data["budgets"][budget]
    known = [*entry["seeds"], *entry.get("more_seeds", {}).get(row, ())]
    return known[:1] if untrained(data, row) else [seed for seed in known if asked is None or seed in asked]
