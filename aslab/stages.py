"""The two runs of a re-ranking, and the questions that a run has ranked."""

from pathlib import Path

import pandas as pd

from asutil.data import answers
from asutil.tasks import reranking

from . import rundir

SAME = ("dataset", "protocol", "question_limit")  # settings that decide which questions a run ranks


def records(first_run: str | Path, joint_run: str | Path, budget: str) -> tuple[dict, dict]:
    """The records of both stages, which must have ranked the same questions, the second one with a joint model.

    Raises: ValueError for a run that is not finished, another architecture, data set, protocol or limit, and for a budget that
        is not the lower one of the two runs'.
    """
    first, joint = rundir.read_record(first_run), rundir.read_record(joint_run)
    if (architecture := joint["settings"].get("architecture")) != "joint":
        raise ValueError(f"joint_run: a run with architecture joint expected, {joint['name']} has {architecture}")
    identities = []
    for record in (first, joint):  # what decides which questions a run ranks, and what they say
        settings, fingerprint = record["settings"], record["inputs"].get("dataset")
        decided = {name: settings.get(name) for name in SAME} | {"question_limit": _test_limit(settings)}
        identities.append(decided | {"fingerprint": fingerprint})
    for name, value in identities[0].items():
        if value != identities[1][name]:
            came = f"{name} is {value} in {first['name']}, {identities[1][name]} in {joint['name']}"
            raise ValueError(f"both runs must have ranked the same questions: {came}")
    lower = min(first["budget"], joint["budget"], key=rundir.BUDGETS.index)
    if budget != lower:
        both = f"{first['budget']} and {joint['budget']}"
        raise ValueError(f"budget: {lower} expected, the lower one of {both} (-p budget {lower}); got {budget}")
    return first, joint


def _test_limit(settings: dict) -> int | None:
    """At most so many test questions; records of earlier versions have one limit for all splits."""
    special = settings.get("test_limit")
    return settings.get("question_limit") if special is None else special


def first_scores(first_run: str | Path, joint_run: str | Path) -> pd.DataFrame:
    """The first stage's scores of the test candidates, which the joint run must have ranked, too.

    Raises: ValueError for a run without scores, or with other questions, candidates or labels.
    """
    first_run, joint_run = Path(first_run), Path(joint_run)
    first = reranking.checked_scores(rundir.read_table(first_run), f"{first_run.name}/scores.parquet")
    joint = reranking.checked_scores(rundir.read_table(joint_run), f"{joint_run.name}/scores.parquet")
    reranking.require_same_rows(first, joint, first_run.name, joint_run.name)
    return first


def load_questions(record: dict, scores: pd.DataFrame, dataset: str | None = None) -> answers.Split:
    """The test questions that a run has ranked, with their text.

    Args: dataset: where the questions are, for a user's own file or folder; None: what the record names.
    Raises: ValueError where the run was made from other data.
    """
    settings, dataset = record["settings"], same_data(record, dataset)
    split = answers.load_answers(dataset, settings["protocol"], limit=_test_limit(settings))["test"]
    reranking.require_same_rows(scores, split.frame(), record["name"], dataset)
    return split


def same_data(record: dict, dataset: str | None = None) -> str:
    """The data set that a run was made from: what its record names, or a user's own file or folder.

    Raises: ValueError where it has changed since.
    """
    named, expected = record["settings"]["dataset"], record["inputs"]["dataset"]
    if dataset is None and named.startswith("own:"):
        to_do = f"name the file or folder of {named} again (in a notebook: -p dataset <path>)"
        raise ValueError(f"dataset: a record keeps no path, {to_do}")
    dataset = dataset or named
    came = answers.fingerprint_of_answers(dataset)
    if came != expected and not (dataset == named and answers.of_one_source(dataset, came, expected)):
        reason = f"fingerprint {expected} expected, got {came} (of a file, its name counts, too)"
        raise ValueError(f"dataset: {dataset} is not what {record['name']} was made from: {reason}")
    return dataset
