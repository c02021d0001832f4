"""The identity of a run: its settings as a record shows them, the fingerprints of its inputs, its hash, name and folder."""

import hashlib
import json
import re
from pathlib import Path

from asutil.corpus import sources
from asutil.data import answers, claims, long_questions
from asutil.data.data_sets import TEST_ONLY, TITLES
from asutil.io import hub, remote
from asutil.io.spelling import nearest

from .parameters import changed, effective, names_of, settings
from .rundir import find, folders, read_record, runs_folder

NAMED_BY = ("objective", "data", "dataset", "embed.architecture")  # always in a run's name; `embed.`: of that notebook
# The order of the words in a run's name. It is fixed, because old runs are found by their names.
WORDS = """
objective data dataset first_run joint_run rerank.k models objectives budget embed.architecture encoder model generator
corpus text_column paragraph_separator exclude_titles splitter min_sentence_chars hard_negatives negatives positives
max_sentences same_paragraph_before architecture head k keep_head head_form positions slot_pooling slot_init slot_start labels
heads steps pooling rank_by protocol train_questions projection similarity loss_weight temperatures least_of_type
projection_size projection_dropout wrong_type_negatives other_evidence reduction question_limit finetune.keep_head
triplet_limit triplets_per_question margin distance selection distractors max_tokens epochs batch_size
pretrain.max_tokens peak_lr warmup_steps warmup_share weight_decay mlm_share mlm_weight objective_weight
detection_weight patience evaluations precision gradient_checkpointing rerank.dataset
task_difficulty.validation_examples micro_tokens validation_examples workers claim_limit train_limit test_limit
min_paragraph_chars min_document_chars lengths type_loss loss teacher also_rank seed
""".split()
FROM_SCRATCH = ("tiny", "tiny_electra", "tiny_longformer", "tiny_led", "mini")  # models that start from random weights
STARTS = ("model", "generator", "teacher")  # parameters that name a run, a folder or a hub id
STAGES = ("first_run", "joint_run")  # parameters that name a finished run
PATHS = ("corpus", "dataset", "exclude_titles", *STARTS)  # parameters that may be a file or a folder


def shown(values: dict) -> dict:
    """Settings as a record shows them: a run by its name, a user's file or folder as `own:<name>`, without its path."""
    named = {name: value for name, value in values.items() if name != "runs_dir"}
    for name in (*PATHS, *STAGES):
        value = str(values.get(name) or "")
        if is_published(name, value):
            named[name] = value
        elif find(value):
            named[name] = Path(value).name
        elif name == "corpus" and value:
            named[name] = sources.without_paths(value)
        elif value and (Path(value).exists() or remote.is_url(value) or value.startswith(("/", "~", "."))):
            named[name] = f"own:{Path(value).name}"
    if values.get("models"):
        named["models"] = ",".join(map(ranker_shown, names_of(values["models"])))
    if values.get("also_rank"):
        titles = sorted(shown({"dataset": name})["dataset"] for name in names_of(values["also_rank"]))
        named["also_rank"] = ",".join(titles)
    return named


def is_published(parameter: str, value: str) -> bool:
    """Whether a name is that of a data set or ranker of the package, whatever the working folder has under that name."""
    return value in {"dataset": TITLES, "corpus": ("pydocs",)}.get(parameter, ("bm25",))


def fused(name: str, runs_dir: str | Path | None = None) -> list[str]:
    """The rankers of a fusion, or the one that is named: a run or a path may have a plus sign."""
    is_run = lambda one: (folder := find(one, runs_dir)) is not None and folder.is_dir()
    return hub.joined(name, lambda one: is_run(one) or Path(one).exists())


def ranker_shown(name: str) -> str:
    """A ranker as a record shows it, each part of a fusion by itself."""
    return "+".join(shown({"model": part})["model"] for part in fused(name))


def models(names: str, budget: str, runs_dir: str | None = None) -> list[str]:
    """The models of a list joined by commas; for `all`, the budget's finished pre-training runs that learnt a task.

    Returns: hub ids, and folders of models and runs.
    """
    if names != "all":
        listed = names_of(names)
        if not all(listed):
            raise ValueError(f"models: expected names joined by commas, one is empty in {names!r}")
        return ["+".join(str(find(part, runs_dir) or part) for part in fused(name, runs_dir)) for name in listed]
    records = {path: read_record(path) for path in folders(runs_dir) if (path / "record.json").is_file()}
    is_pretrained = lambda record: (record.get("notebook"), record.get("budget")) == ("pretrain", budget)
    objectives = {path: record["settings"]["objective"] for path, record in records.items() if is_pretrained(record)}
    learnt = [str(path) for path, objective in objectives.items() if objective != "mlm"]
    if not learnt:
        to_do = "name runs or hub ids, joined by commas"
        raise ValueError(f"models: no pre-training run of budget {budget} is finished; {to_do}")
    return learnt


def also_ranked(values: dict) -> dict[str, str]:
    """The data sets of `also_rank`: name as a record shows it -> name, file or folder.

    Raises: ValueError for an empty name, one that comes twice, and the run's own data set.
    """
    own, named = shown({"dataset": values.get("dataset")})["dataset"], {}
    for name in names_of(values["also_rank"]) if values.get("also_rank") else ():
        title = shown({"dataset": name})["dataset"] if name else ""
        expected = "also_rank: expected different data sets joined by commas, none of them the run's own"
        if not name or title in (own, *named):
            raise ValueError(f"{expected}, got {title or 'an empty name'!r} in {values['also_rank']!r}")
        named[title] = name
    return named


def _start_fingerprint(name: str, runs_dir, must_exist: bool, parameter: str) -> str:
    """What identifies the run, the model's folder or the hub id that a parameter names. Raises: as `of_run`."""
    if run := find(name, runs_dir):
        if must_exist and not (run / "record.json").is_file():
            raise ValueError(f"{parameter}: {run.name} is not a finished run (no record.json); finish it first")
        return run.name[-12:]
    if parameter in STAGES:
        raise ValueError(f"{parameter}: a finished run's name or folder is expected, got {name or None!r}")
    if Path(name).exists():
        return hub.sha256(Path(name))
    if name in hub.EMBEDDED:
        return hub.sha256(Path(hub.model_path(name)) / "model.safetensors")
    folder = runs_folder(runs_dir)
    slashes = name.count("/")  # a hub id has one
    in_runs = Path(name).parts[:1] == (folder.name,) or name.startswith(("pretrain-", "finetune-", "embed-"))
    looks_like_run = in_runs and slashes < 2
    looks_like_path = name.startswith(("/", ".", "~")) or slashes > 1
    known = (*FROM_SCRATCH, *hub.EMBEDDED, *["bm25"] * (parameter in ("models", "teacher")))
    if must_exist and looks_like_run:
        names = [path.name for path in folder.glob("*-*") if path.is_dir()]
        raise ValueError(f"{parameter}: no run {name!r}{nearest(Path(name).name, names)}")
    if not slashes and name not in known and (hint := nearest(name, known, 0.7)):
        raise ValueError(f"{parameter}: no folder or run {name!r}{hint}")
    if looks_like_path:
        expected = "a folder, a run, or a hub id owner/name"
        raise FileNotFoundError(f"{parameter}: {name} does not exist (expected {expected})")
    mirrored = hub.mirror(name)
    return hub.sha256(mirrored) if mirrored else name


def of_run(notebook: str, given: dict, must_exist: bool = True) -> dict:
    """Name, hash, effective settings and input fingerprints of the run that these parameters make; needs no torch.

    Args:
        must_exist: refuse a model or a stage that names an unfinished run; False for planning a chain of runs.
    """
    values = settings(notebook, given)
    runs_dir = values.pop("runs_dir", None)
    inputs = {}
    of_dataset = {"verify_claims": claims.fingerprint_of_claims}
    of_dataset["find_evidence"] = long_questions.fingerprint_of_evidence
    fingerprints = {
        "corpus": sources.fingerprint_of_source,
        "dataset": of_dataset.get(notebook, answers.fingerprint_of_answers),
        "exclude_titles": lambda path: hub.sha256(Path(path)),
    }
    for name, fingerprint in fingerprints.items():
        if values.get(name) is not None:
            inputs[name] = fingerprint(values[name])
    if source := TEST_ONLY.get(values.get("dataset")):
        advice = f"{values['dataset']} has only test questions, those that {source} trains on"
        raise ValueError(f"dataset: {advice}: name it in also_rank of finetune or embed")
    _check_loss(values, runs_dir)
    if others := {name: answers.fingerprint_of_answers(path) for name, path in also_ranked(values).items()}:
        inputs["also_rank"] = others
    for name in models(values["models"], values["budget"], runs_dir) if values.get("models") else ():
        parts = [_start_fingerprint(part, runs_dir, must_exist, "models") for part in fused(name, runs_dir)]
        inputs.setdefault("models", []).append("+".join(parts))
    for name in (*STARTS, *STAGES):
        if values.get(name) or (name in STAGES and name in values):
            inputs[name] = _start_fingerprint(values[name] or "", runs_dir, must_exist, name)
    named = shown(values)
    decided = {name: value for name, value in values.items() if value is not None}  # None: as before the parameter
    if "budget" in decided:
        decided["rung"] = decided.pop("budget")  # its name when the first runs were made: they keep their hash
    digest = hashlib.sha256(json.dumps([notebook, {**decided, **inputs}], sort_keys=True).encode()).hexdigest()[:12]
    name = f"{notebook}{_slug(notebook, given, named)}-{digest}"
    return {"name": name, "hash": digest, "settings": named, "inputs": inputs}


def _check_loss(values: dict, runs_dir) -> None:
    """Refuse a loss on lists where there is nothing to compare, and a teacher without distillation, or the reverse."""
    loss, teacher = values.get("loss"), values.get("teacher")
    if loss and values["k"] < 2:
        raise ValueError(f"k: {loss} compares the candidates of a list, at least 2 expected, got {values['k']}")
    if loss and values["architecture"] == "joint":
        raise ValueError(f"loss: {loss} compares pairs, and a joint model reads candidates together: leave loss out")
    if (loss == "distillation") != (teacher is not None):
        raise ValueError(f"teacher: a ranker with loss=distillation, and there alone, got {teacher!r} with loss {loss}")
    if teacher and len(fused(teacher, runs_dir)) > 1:
        flat = "fused ranks differ by less than a hundredth, too little for a softmax to learn from"
        raise ValueError(f"teacher: expected one ranker, got {teacher!r}: {flat}")


def _slug(notebook: str, given: dict, named: dict) -> str:
    """Words for the task and for what was chosen: the same run has the same name however it was asked for."""
    values, chosen, words = effective(notebook, given), changed(notebook, given), {}
    for name, value in values.items():
        special = f"{notebook}.{name}"
        is_named = name in chosen or name in NAMED_BY or special in NAMED_BY
        if is_named and name != "runs_dir" and value is not None:
            word = re.split("[/:]", named[name])[-1] if isinstance(named[name], str) else f"{name}{named[name]}"
            word = re.sub(r"-?[0-9a-f]{12}$", "", re.sub(r"[^A-Za-z0-9.+]+", "-", word))
            words[special if special in WORDS else name] = word.strip("-.")[:24]
    place = lambda name: WORDS.index(name) if name in WORDS else len(WORDS)
    return "".join(f"-{words[name]}" for name in sorted(words, key=place) if words[name])[:80]


def folder_for(notebook: str, given: dict, runs_dir: str | Path | None = None, must_exist: bool = True) -> Path:
    """The folder of the run with these parameters, whether it exists or not."""
    return runs_folder(runs_dir or given.get("runs_dir")) / of_run(notebook, given, must_exist)["name"]
