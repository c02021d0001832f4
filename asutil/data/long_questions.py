"""Questions about a long context with evidence: HotpotQA, QASPER, questions about documented functions, a folder of one's own.

A folder has train.jsonl, dev.jsonl and, if there is one, test.jsonl, in the form that `question_rows` describes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm.auto import tqdm

from .. import plugins
from ..corpus import sources
from ..io import files, hub, remote, spelling
from . import hotpotqa, qasper
from .data_sets import LONG, SPLITS
from .question_rows import KINDS, Answer, LongQuestion, LongQuestions, Passage, questions_of
from .splits import file_of_split, fingerprint, limits_of, require_fields, warn_of_shared

__all__ = ["KINDS", "Answer", "LongQuestion", "LongQuestions", "Passage", "load_evidence"]


FORMS = {"hotpotqa": hotpotqa, "qasper": qasper}


def load_evidence(
    name, limit: int | None = None, train_limit: int | None = None, test_limit: int | None = None
) -> dict[str, LongQuestions]:
    """The splits of a data set of questions with evidence. Where test is empty, results are reported on dev.

    Paper: evidence_contrast, section 4.1 and appendix B.
    Args:
        name: `hotpotqa` (the distractor setting; its test set has no labels, so test is empty), `qasper`, `pydocs_evidence` (embedded), or
            a folder: train.jsonl, dev.jsonl and maybe test.jsonl in the form above, or the JSON files of HotpotQA's or QASPER's release.
        limit: at most that many questions a split, chosen by a hash of their ids.
        train_limit, test_limit: the same for train alone, and for dev and test, each; for these splits they go before `limit`.
    Returns: {"train", "dev", "test"}: lists of `LongQuestion`s, with a `report`. Evidence that names no sentence is dropped, and counted
        there; its question stays. White space is single blanks.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    limits = limits_of(limit, train_limit, test_limit, "question")
    if name == "pydocs_evidence":
        rows = plugins.pydocs("evidence").rows()
        splits = {split: questions_of((row["id"], row, {}) for row in rows[split]) for split in SPLITS}
    elif name in LONG:
        splits = {split: _published(name, split) for split in SPLITS}
    else:
        splits = _own(name)
    return {split: questions.limited(limits[split]) for split, questions in splits.items()}


def an_answer_each(questions: Iterable[LongQuestion]) -> list[LongQuestion]:
    """Questions with one answer each: one that several annotators answered comes once for every answer, as QASPER's authors train.

    Paper: evidence_contrast, section 4.1, which replicates them.
    """
    return [replace(question, answers=(gold,)) for question in questions for gold in dict.fromkeys(question.answers)]


def question_types(name, splits: dict[str, LongQuestions]) -> tuple[str, ...]:
    """The question types of a data set: those of `KINDS`. A folder has QASPER's where a question needs them, else HotpotQA's."""
    if name in KINDS:
        return KINDS[name]
    questions = [question for split in splits.values() for question in split]
    return KINDS["qasper" if any(_form(question) == "qasper" for question in questions) else "hotpotqa"]


def types_of(kinds: Sequence[str], splits: dict[str, LongQuestions], fewest: int | None = None) -> list[int]:
    """The number of each kind's question type: a kind that is rare in train or dev has the type of the most frequent one.

    Args:
        fewest: a kind with that many answers in train and in dev is a type of its own; None: every kind is one.
    Deviation: D-95.
    """
    train, dev = (
        Counter(answer.kind for question in splits[split] for answer in question.answers) for split in ("train", "dev")
    )
    counts = {kind: min(train[kind], dev[kind]) for kind in kinds}
    largest = max(kinds, key=counts.__getitem__)
    types = [kind for kind in kinds if kind == largest or counts[kind] >= (fewest or 0)]
    return [types.index(kind if kind in types else largest) for kind in kinds]


def _form(question: LongQuestion) -> str | None:
    """Whose question types a question needs; None for one answer of yes or no, which both have."""
    kinds = {answer.kind for answer in question.answers}
    if "span" in kinds:
        return "hotpotqa"
    return "qasper" if kinds - {"yes", "no"} or len(question.answers) > 1 else None


def fingerprint_of_evidence(name) -> str:
    """`splits.fingerprint`."""
    return fingerprint(name, {other: data.hub_id for other, data in LONG.items()}, lambda: _paths(name)[1])


# ------------------------------------------------------------------------------------------------------------ the sources


def _published(name: str, split: str) -> LongQuestions:
    """One split from the mirror, which may have a part of it, or whole from the hub."""
    data = LONG[name]
    if split not in data.stems:
        return LongQuestions(note=f"no labelled {split} set")
    stem = data.stems[split]
    folder = hub.mirror(data.hub_id)
    if folder and (path := _release(folder, name).get(split)):
        return _released(name, split, path)
    try:
        paths = hub.parquet_files(data.hub_id, stem, **data.options)
    except FileNotFoundError:
        if folder and split == "test":
            return LongQuestions(note=f"the mirror has no {stem} file")
        raise
    content = [(f"{data.hub_id}/{path.name}", files.table(path)) for path in paths]
    rows = parquet_rows(content, FORMS[name].COLUMNS)
    if name == "qasper":
        rows = ((f"{location}, paper {paper['id']}", paper) for location, paper in rows)
    return _read(name, split, rows, f"{data.hub_id}/{stem}", whole=folder is None)


def parquet_rows(content, columns: tuple[str, ...]) -> Iterator[tuple[str, dict]]:
    """(location, row) of all rows of some (name, pyarrow.Table). Raises: ValueError naming a table that lacks a column."""
    for where, table in content:
        require_fields(dict.fromkeys(table.column_names), columns, f"the columns {', '.join(columns)}", where)
        batches = table.select(list(columns)).to_batches(max_chunksize=256)
        rows = tqdm(files.rows(batches, Path(where)), desc=f"reading {where}", total=len(table), delay=5, leave=False)
        yield from ((f"{where}, row {number}", row) for number, (_, row) in enumerate(rows, 1))


def _released(name: str, split: str, path: Path) -> LongQuestions:
    """A file of a release, whose counts are the published ones."""
    return _read(name, split, FORMS[name].release(path), path.name, whole=True)


def _read(name: str, split: str, rows: Iterable[tuple[str, dict]], where: str, whole: bool) -> LongQuestions:
    """The questions of (location, row in the hub's form), a paper a row for QASPER, with a note of their counts.

    Raises: ValueError for the counts of a whole split that are not the published ones.
    """
    locations = set()

    def question_rows():
        for location, row in rows:
            locations.add(location)
            yield from FORMS[name].rows(location, row)

    questions = questions_of(question_rows())
    expected = LONG[name].counts[split]
    counts = {what: {"questions": len(questions), "papers": len(locations)}[what] for what in expected}
    published, came = (" and ".join(f"{n:,} {what}" for what, n in some.items()) for some in (expected, counts))
    if whole and counts != expected:
        raise ValueError(f"{where}: expected {published}, got {came}")
    notes = [f"{came}, of the published {published}"] if counts != expected else []
    if unnamed := sum(question.id.startswith(hotpotqa.UNNAMED) for question in questions):
        notes.append(f"{unnamed} without an id")
    questions.report["note"] = "; ".join(notes)
    return questions


def _release(folder: Path, name: str) -> dict[str, Path]:
    """The files of a data set's release, by split."""
    paths = {split: sorted(folder.rglob(pattern)) for split, pattern in LONG[name].release.items()}
    for several in paths.values():
        if len(several) > 1:
            raise ValueError(f"{folder}: expected one file a split, got {', '.join(path.name for path in several)}")
    return {split: matching[0] for split, matching in paths.items() if matching}


# ------------------------------------------------------------------------------------------------------ a folder of one's own


def _paths(name) -> tuple[str | None, dict[str, Path | None]]:
    """The data set whose release a folder has, None for questions of one's own; and the file of each split, None for an absent test."""
    folder = remote.path_of(name)
    if not folder.is_dir():
        expected = f"one of {', '.join(KINDS)} or a folder with questions"
        raise FileNotFoundError(f"{name}: expected {expected}{spelling.nearest(name, tuple(KINDS))}")
    released = next((other for other in LONG if _release(folder, other)), None)
    if released:
        paths = _release(folder, released)
    else:
        paths = {split: path for split in SPLITS if (path := file_of_split(folder, split, ["{}.jsonl"], optional=True))}
    for split in ("train", "dev"):
        if split not in paths:
            names = ", ".join(data.release[split] for data in LONG.values() if data.release)
            expected = f"{split}.jsonl or one of {names}"
            raise FileNotFoundError(f"{folder}: expected {expected}; it holds {files.listing(folder)}")
    return released, {split: paths.get(split) for split in SPLITS}


def _own(name) -> dict[str, LongQuestions]:
    released, paths = _paths(name)
    splits = {}
    first_of_form = {}
    for split, path in paths.items():
        if path is None:
            splits[split] = LongQuestions(note=f"no {split} file")
        elif released:
            splits[split] = _released(released, split, path)
        else:
            rows = sources.read_rows(path, "question")
            splits[split] = questions_of((location, row, {}) for location, row in rows)
            if not splits[split]:
                raise ValueError(f"{path.name} is empty: expected at least one question")
            for number, question in enumerate(splits[split], 1):
                _check_own(question, f"{path.name} line {number}", first_of_form)
    if not released:
        warn_of_shared(splits, lambda question: [question.text, *sorted(map(str, question.passages))], name)
    return splits


def _check_own(question: LongQuestion, location: str, first_of_form: dict[str, str]) -> None:
    """A span must be a span of the context, and question types HotpotQA's or QASPER's, not both.

    Args:
        first_of_form: the location of the first question that needs the question types of a data set; extended here.
    """
    passages = [" ".join([passage.title, *passage.sentences]) for passage in question.passages]
    for answer in question.answers:
        if answer.kind == "span" and not any(answer.text in passage for passage in passages):
            expected = "a span that stands in the context as it is written"
            raise ValueError(f"{location}: expected {expected}, got {answer.text[:80]!r}")
    kinds = {answer.kind for answer in question.answers}
    if "span" in kinds and len(question.answers) > 1:
        hint = f"several are for {', '.join(KINDS['qasper'])}"
        raise ValueError(f"{location}: expected one answer with a span, got {len(question.answers)}: {hint}")
    form = _form(question)
    if form is None:
        return
    first_of_form.setdefault(form, location)
    for other, first in first_of_form.items():
        if other != form:
            raise ValueError(
                f"{location}: expected questions of one kind, with types of {', '.join(KINDS[other])} as {first}, "
                f"got {len(question.answers)} of {', '.join(sorted(kinds))}"
            )
