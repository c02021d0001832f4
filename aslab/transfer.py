"""Transfer: a trained model ranks the questions of other data sets, which `also_rank` names, and learns nothing more."""

import itertools
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from asutil import metrics
from asutil.data import answers, baseline_scores
from asutil.data.data_sets import TEST_ONLY
from asutil.data.questions import Split
from asutil.data.splits import same_text
from asutil.io import disk

from . import chains, identity, rundir, runs
from .parameters import settings
from .show import tables
from .show.markup import NAMES

log = logging.getLogger(__name__)
TESTED = ("dev", "test")
# Parameters that are about the run's own data set alone; the others hold for a data set that is also ranked.
OF_ITS_OWN = ("dataset", "also_rank", "protocol", "train_questions", "train_limit")


def load(notebook: str, given: dict) -> dict[str, dict[str, Split]]:
    """The data sets that a run also ranks: name as the record shows it -> split -> the questions.

    They are those of a run of the same budget on that data set: under its protocol, with its limits. A warning counts those that the run
    is trained on.
    Raises: ValueError for a data set whose questions the model was trained on; as `answers.load_answers`.
    """
    own = settings(notebook, given)
    context = own.get("architecture") == "context"
    loaded, named = {}, {}
    for name, path in identity.also_ranked(own).items():
        file = file_of(name, "test")
        if (other := named.setdefault(file, name)) != name:
            raise ValueError(f"also_rank: {other} and {name} would share the file {file}: rename one of them")
        require_unseen(path, own)
        shared = {parameter: value for parameter, value in given.items() if parameter not in OF_ITS_OWN}
        s = settings(notebook, shared | {"dataset": path})
        limits = {"limit": s["question_limit"], "test_limit": s["test_limit"]}
        try:
            splits = answers.load_answers(path, s["protocol"], **limits, context=context, needed=("test",))
        except ValueError as error:
            raise ValueError(f"also_rank: {error}") from None
        loaded[name] = {split: splits[split] for split in TESTED if split in splits}
    if loaded and own.get("architecture") != "untrained":
        limits = {"limit": own["question_limit"], "train_limit": own["train_limit"]}
        questions = own.get("train_questions") or "all"
        train = answers.load_answers(own["dataset"], own["protocol"], questions, **limits)["train"]
        learnt = set(map(same_text, train.texts()))
        for name, split in [(name, split) for name, splits in loaded.items() for split in splits.values()]:
            if count := sum(same_text(text) in learnt for text in split.texts()):
                seen = f"{count:,} of {len(split):,} {split.name} questions are training questions of this run"
                log.warning("also_rank %s: %s", name, seen)
    return loaded


def require_unseen(name: str, own: dict) -> None:
    """Refuse questions that a run, or one that its model or its teacher came from, was trained on. Raises: ValueError.

    Mined questions are those of the data set that they were made from.
    """
    before = (chains.leading_to(own.get(start), own.get("runs_dir")) for start in ("model", "teacher"))
    every = [own, *map(chains.settings_of, itertools.chain(*before))]
    for dataset in filter(None, (known.get("dataset") for known in every)):
        mined = Path(dataset) / disk.MINED
        learnt = disk.read_json(mined)["dataset"]["name"] if mined.is_file() else dataset
        if TEST_ONLY.get(name) == learnt:
            reason = f"{name} are the training questions of {learnt}, which this model was fine-tuned on"
            raise ValueError(f"also_rank: {reason}: expected a model that never saw them, or another data set")


def file_of(name: str, split: str) -> str:
    """The file in a run's folder with the scores of a data set that it also ranked.

    Example:
        >>> file_of("own:my table.tsv", "dev")
        'scores_own-my-table.tsv_dev.parquet'
    """
    return f"scores_{re.sub(r'[^A-Za-z0-9.-]+', '-', name)}{'_dev' if split == 'dev' else ''}.parquet"


def ranked(run: runs.Run, loaded: dict[str, dict[str, Split]], score: Callable) -> dict[str, dict]:
    """Rank the other data sets and keep their scores in the run's folder.

    Args: score: (questions, folder of finished windows) -> scores; a stopped run continues after these.
    Returns: what the record gets under `transfer`: name -> fingerprint of the data, metrics of its splits, and baselines on test,
        which need no training. Empty where there are no others.
    """
    others = {}
    windows = run.folder / "scoring_others"
    for name, splits in loaded.items():
        measured = {}
        for split, questions in splits.items():
            scores = score(questions, windows)
            run.write(file_of(name, split), scores)
            measured[split] = metrics.of(scores).record()
        orders = ["document_order", "bm25"] if splits["test"].ordered else ["bm25"]
        untrained = {"random": metrics.at_random(splits["test"].frame())}
        untrained |= {order: metrics.of(baseline_scores(splits["test"], order)) for order in orders}
        others[name] = {"fingerprint": run.identity["inputs"]["also_rank"][name], "metrics": measured}
        others[name]["baselines"] = {order: ranking.record() for order, ranking in untrained.items()}
    shutil.rmtree(windows, ignore_errors=True)
    return {"transfer": others} if others else {}


def table(record: dict) -> pd.DataFrame | None:
    """The test metrics of the run's model and of the baselines, by data set; None where there are no others."""
    if not record.get("transfer"):
        return None
    rows = lambda part: part["baselines"] | {"this run": part["metrics"]["test"]}
    each = {NAMES.get(name, name): tables.in_points(rows(part), "test") for name, part in record["transfer"].items()}
    return pd.concat(each, names=["data set"])


def per_question(folder: Path, name: str) -> pd.DataFrame:
    """The metrics of every test question of a data set that a run also ranked, with ids as index."""
    return metrics.of(rundir.read_table(folder, file_of(name, "test"))).per_question.set_index("question_id")
