"""Answer sentence selection data: questions, their candidates in order, and protocols with their published counts."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from .. import plugins
from ..io import disk, hub, remote
from ..io.spelling import require_one_of
from . import document_order, hub_answers, own_answers, table_files, tables
from .data_sets import ANSWERS, SPLITS
from .own_answers import ALL_RIGHT
from .questions import Candidate, Question, Split, grouped
from .splits import fingerprint, limits_of

__all__ = ["ALL_RIGHT", "SPLITS", "Candidate", "Question", "Split", "fingerprint_of_answers", "load_answers"]

PROTOCOLS = ("clean", "asbert")
BUDGET_LAPTOP = 240  # questions of each split of pydocs that a run of budget laptop reads
# (Data set, protocol) -> triplets of its whole train split.
TRIPLETS = {(name, protocol): count for name, data in ANSWERS.items() for protocol, count in data.triplets.items()}


def load_answers(
    name,
    protocol="clean",
    train_questions="all",
    limit: int | None = None,
    context: bool = False,
    train_limit: int | None = None,
    test_limit: int | None = None,
    columns: dict[str, str] | None = None,
    needed: Sequence[str] = SPLITS,
) -> dict[str, Split]:
    """The splits of an answer sentence selection data set under a protocol.

    Args:
        name: `wikiqa`, `trecqa`, `trecqa_transfer` (TREC-QA's training questions as a test), `asnq`, `newsas2`, `nq_sentences`,
            `selqa`, `pydocs`, `pydocs_more` (240 of its training and dev questions each, and all test questions that `pydocs` leaves
            out with `limit=240`), a folder with train, dev (or validation) and test as .tsv, .csv, .jsonl (all three also as .gz),
            .json or .parquet, or one such file, whose questions are then divided 8 : 1 : 1 by a hash of their texts.
            Columns question, answer, label; optional question_id and document_title (rows of a question are then in document
            order). A .tsv has a header line and no quoting; one that was written with quoting is recognised, with a warning.
            A folder or file may be a URL of any file system that fsspec knows (`s3://bucket/questions.parquet`, `hf://`, `https://`).
            Also any data set of the hub with these columns, `owner/name`, with `:configuration` or the ending of its splits' names
            (`matteogabburo/mWikiQA:de`), and a `Dataset` or `DatasetDict`.
        protocol: `clean` (wikiqa: dev and test questions with both labels; a user's data: those with a positive, and a warning of
            others) or `asbert` (questions with a positive, in every split; for wikiqa, trecqa and a user's data).
        train_questions: `all`, or `with_positive` for those alone.
        limit: at most that many questions a split, chosen by a hash of their ids.
        train_limit, test_limit: the same for train alone, and for dev and test, each; for these splits they go before `limit`.
        columns: of a user's data or the hub's, what it calls the columns: {"question": "query", "answer": "passage"}.
        needed: the splits that a user's folder, or a data set of the hub with several splits, must have; the others may be missing.
        context: every candidate has the sentences before and after it. Where only the order of rows shows which these are (asnq,
            newsas2), that order is checked first (`document_order.check`); a data set that cannot give them is refused.
    Returns: {"train", "dev", "test"}, each a lazy `Split` of `Question`s; of `trecqa_transfer` {"test"},
        of a user's data those that are there.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    published = isinstance(name, str) and name in ANSWERS
    require_one_of("protocol", protocol, ANSWERS[name].protocols if published else PROTOCOLS)
    require_one_of("train_questions", train_questions, ("all", "with_positive"))
    for split in needed or ("",):
        require_one_of("needed", split, SPLITS)
    limits = limits_of(limit, train_limit, test_limit, "question")
    if published and columns:
        raise ValueError(f"columns: those of {name} are known; expected a user's data or a data set of the hub")
    if published:
        made = {"pydocs": _pydocs, "pydocs_more": _pydocs_more}
        splits = made[name]() if name in made else _published(name, protocol, context)
    elif hub_answers.is_data_set(name):
        splits = hub_answers.load(name, protocol, columns, needed)
        name = name if isinstance(name, str) else type(name).__name__
    else:
        splits = own_answers.load(_path(name), protocol, columns, needed)
    if context and (unordered := [split for split, questions in splits.items() if not questions.ordered]):
        reason = (
            "a file needs a column document_title and rows in the document's order (a warning says where they are not)"
        )
        if published:
            reason = ANSWERS[name].no_context or reason
        raise ValueError(
            f"{name}, {unordered[0]}: no sentences before and after a candidate are known, so that only pairs of question and "
            f"candidate can be made; {reason}"
        )
    if train_questions == "with_positive" and "train" in splits:
        splits["train"] = splits["train"].under("positive")
    splits = {split: questions.limited(limits[split]) for split, questions in splits.items()}
    for split, questions in splits.items():
        if not len(questions):
            read, dropped = questions.report["read"], questions.report["dropped"]
            reasons = "; ".join(f"{reason}: {_counted(counts)}" for reason, counts in dropped.items())
            raise ValueError(f"{name}, {split}: no question is left, of {_counted(read)}: {reasons}")
    if "train" in needed and "train" in splits and not splits["train"].positives().any():
        raise ValueError(
            f"{name}, train: expected a question with a right candidate, label 1; got none in {len(splits['train'])}"
        )
    return splits


def fingerprint_of_answers(name) -> str:
    """`splits.fingerprint`; of a user's data a hash of the files, of other data sets of the hub one of their rows.

    The name of a file counts, too: the ids of questions without one follow from it. So does the way in which a file is divided: a run
    that began with another division must not continue with this one.
    """
    if name in ANSWERS:
        return fingerprint(name, {other: data.hub_id for other, data in ANSWERS.items()}, dict)
    if hub_answers.is_data_set(name):
        return hub_answers.fingerprint(name)
    path = _path(name)
    if path.is_file():
        hashes = [own_answers.DIVISION, path.stem, hub.sha256(path)]
    else:
        paths = own_answers.split_files(path, ("test",))
        hashes = [hub.sha256(file) for file in paths.values()]
        hashes += ["without " + split for split in SPLITS if split not in paths]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def of_one_source(name, fingerprint: str, other: str) -> bool:
    """Whether two fingerprints are of one published data set, read from a mirror and from the hub."""
    return name in ANSWERS and ANSWERS[name].hub_id in (fingerprint, other)


def _counted(counts: dict[str, int]) -> str:
    return " and ".join(f"{count:,} {what}" for what, count in counts.items())


def _published(name: str, protocol: str, context: bool) -> dict[str, Split]:
    """The splits of a data set of the hub, whose counts are asserted."""
    data = ANSWERS[name]
    expected = _counts_of_copy(name) if data.built else None
    splits = {}
    for split, (stem, rule, *count) in data.protocols[protocol].items():
        where = f"{data.hub_id}/{stem}"
        if data.streamed:
            table = tables.open_parquet(hub.parquet_files(data.hub_id, stem), data.keyed)
        else:
            table = tables.checked(hub.table(data.hub_id, stem), where)
        whole = grouped(split, table, stem, where, ordered=data.ordered)
        questions = whole.under(rule)
        counted = whole if data.streamed else questions
        came, count = list(counted.report["kept"].values()), expected[split] if expected else count
        if came != count:
            raise ValueError(
                f"{name}, protocol {protocol}, {split}: expected {count[0]:,} questions and {count[1]:,} candidates, "
                f"got {came[0]:,} and {came[1]:,} (from {where})"
            )
        if data.positives:
            _check_positives(counted, data.positives[split], where)
        if context and data.streamed:
            document_order.check(whole, where)
            questions = replace(questions, ordered=True)
        splits[split] = questions
    return splits


def _counts_of_copy(name: str) -> dict[str, list[int]] | None:
    """The counts of the copy that was built on this machine, whose files are checked by their hashes; None for a copy without a record."""
    hub_id = ANSWERS[name].hub_id
    folder = hub.mirror(hub_id)
    if folder is None:
        command = f"asutil build {name} RELEASE --to ${hub.MIRROR}/{hub_id}"
        raise FileNotFoundError(f"{hub.unreachable(hub_id)} Build it: {command} (data_cards/{name}.md)")
    if not (folder / disk.BUILT).is_file():
        return None
    disk.check_made(folder)
    return disk.read_json(folder / disk.BUILT)["counts"]


def _check_positives(questions: Split, published: float, where: str) -> None:
    """The published share of positives, as per cent of the candidates or as positives a question."""
    positives = int(questions.positives().sum())
    came = [100 * positives / questions.report["kept"]["candidates"], positives / len(questions)]
    if all(abs(value - published) > 0.01 for value in came):
        expected = f"{published} positives in 100 candidates or a question"
        raise ValueError(f"{where}: expected {expected}, got {came[0]:.2f} and {came[1]:.2f}")


def _pydocs() -> dict[str, Split]:
    columns = {split: defaultdict(list) for split in SPLITS}
    documents = plugins.pydocs("documents")
    for question in documents.questions():
        own, size = columns[documents.split_of(question.function)], len(question.sentences)
        own["question_id"] += size * [question.id]
        own["question"] += size * [question.text]
        own["answer"] += question.sentences
        own["label"] += [number in question.positive for number in range(size)]
    checked = {split: tables.checked(pa.table(columns[split]), "pydocs") for split in SPLITS}
    every = {split: grouped(split, table, "pydocs", "pydocs", ordered=True) for split, table in checked.items()}
    return {split: questions.under("mixed") for split, questions in every.items()}


def _pydocs_more() -> dict[str, Split]:
    """What budget laptop reads of pydocs, with the test questions that it leaves out in place of those that it reads."""
    whole = _pydocs()
    few = {split: questions.limited(BUDGET_LAPTOP) for split, questions in whole.items()}
    read = np.isin(whole["test"].ids, few["test"].ids)
    return few | {"test": whole["test"]._keep(~read, f"in the test split of pydocs with a limit of {BUDGET_LAPTOP}")}


def _path(name) -> Path:
    path = remote.path_of(name)
    if not path.exists():
        if isinstance(name, Path) or len(path.parts) > 1 or table_files.ending_of(path):
            expected = f"a folder, or a file that ends in {', '.join(tables.SUFFIXES)}"
            raise FileNotFoundError(f"{path} does not exist: expected {expected}")
        require_one_of("data set (and no such file or folder)", str(name), ANSWERS)
    return path
