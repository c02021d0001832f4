"""What the teacher of a distillation says of the training candidates."""

import shutil
from collections.abc import Sequence

import numpy as np

from asutil import load_ranker
from asutil.io import disk, files

from . import runs

FILE = "teacher.parquet"


def scores(run: runs.Run, teacher: str | None, questions: Sequence) -> np.ndarray | None:
    """The teacher's scores of all candidates, kept in the run's folder; None without a teacher. Shapes: -> (N,)"""
    if teacher is None:
        return None
    with disk.lock_beside(run.folder / FILE):  # several processes may train this run
        if not (run.folder / FILE).is_file():
            windows = run.folder / "scoring_teacher"  # a stopped scoring continues after the finished windows
            run.write(FILE, load_ranker(teacher).score(questions, folder=windows))
            shutil.rmtree(windows)
    return files.frame(run.folder / FILE, ["question_id"], ["score"])["score"].to_numpy()
