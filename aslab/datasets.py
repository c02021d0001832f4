"""The labelled data of a run, read before its kernel starts."""

import logging
from types import SimpleNamespace

from asutil.data import answers, claims, long_questions
from asutil.data.data_sets import TITLES

from . import rundir, stages, transfer
from .parameters import settings


def check(notebook: str, given: dict) -> None:
    """Read data of a user or of the hub, and all that is also ranked, as the notebook will: faults are said before a kernel starts.

    Raises: ValueError, OSError that name the file and the row.
    """
    absent = dict.fromkeys(("dataset", "architecture", "also_rank", "question_limit", "train_limit", "test_limit"))
    s = SimpleNamespace(**absent | {"train_questions": "all"} | settings(notebook, given))
    if notebook == "rerank":  # the first run has read the table
        both = (rundir.find(name, s.runs_dir) for name in (s.first_run, s.joint_run))
        first, _ = stages.records(*both, s.budget)
        stages.same_data(first, s.dataset)
        return
    logging.disable(logging.WARNING)  # the notebook warns
    try:
        if s.also_rank:
            transfer.load(notebook, given)
        if not s.dataset or s.dataset in TITLES:
            return
        if notebook == "verify_claims":
            claims.load_claims(s.dataset)
        elif notebook == "find_evidence":
            long_questions.load_evidence(s.dataset)
        else:
            needed = ("test",) if notebook == "rank" else answers.SPLITS
            context = s.architecture == "context"
            limits = {"limit": s.question_limit, "train_limit": s.train_limit, "test_limit": s.test_limit}
            splits = answers.load_answers(
                s.dataset, s.protocol, s.train_questions, **limits, context=context, needed=needed
            )
            if notebook == "embed" and s.architecture == "triplet" and not len(splits["train"].under("mixed")):
                raise ValueError(
                    f"{s.dataset}: triplets need a training question with right and wrong candidates, got none"
                )
    finally:
        logging.disable(logging.NOTSET)
