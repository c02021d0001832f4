"""Questions about a long context with evidence: HotpotQA, QASPER, questions about documented functions, a folder of one's own.

A folder has train.jsonl, dev.jsonl and, if there is one, test.jsonl, a JSON object a line, with id, question, passages =
[{title, sentences}, ...] and answer, kind, evidence = [[passage, sentence], ...], numbers from 0; or, where there are several annotators,
answers = [{answer, kind, evidence}, ...].
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm.auto import tqdm

from ..corpus import docstrings, sources
from ..io import files, hub, spelling
from . import hotpotqa, pydocs_evidence, qasper, tables
from .claims import _sound

SIDES = ("train", "dev", "test")
# Question types; a number is a place. Both kinds of data have yes and no, the others are of one kind each.
KINDS = {
    "hotpotqa": ("span", "yes", "no"),
    "qasper": ("extractive", "abstractive", "yes", "no", "unanswerable"),
    "pydocs_evidence": ("span", "yes", "no"),
}
ANY = tuple(dict.fromkeys(kind for kinds in KINDS.values() for kind in kinds))
HUB = {"hotpotqa": "hotpotqa/hotpot_qa", "qasper": "allenai/qasper"}
STEMS = {
    "hotpotqa": {"train": "train", "dev": "validation"},
    "qasper": {"train": "train", "dev": "validation", "test": "test"},
}
# QASPER's repository is a loading script, which nothing here runs: the hub keeps its parquet files on a branch.
OPTIONS = {"hotpotqa": {"name": "distractor"}, "qasper": {"revision": "refs/convert/parquet"}}
# The files of each release, of the sides that have labels.
RELEASES = {
    "hotpotqa": {"train": "hotpot_train_v*.json", "dev": "hotpot_dev_distractor_v*.json"},
    "qasper": {side: f"qasper-{side}-v*.json" for side in SIDES},
}
# The whole published data, data_cards/hotpotqa.md and data_cards/qasper.md; asserted when read from the hub or from a release.
COUNTS = {
    "hotpotqa": {"train": {"questions": 90_447}, "dev": {"questions": 7_405}},
    "qasper": {
        "train": {"questions": 2_593, "papers": 888},
        "dev": {"questions": 1_005, "papers": 281},
        "test": {"questions": 1_451, "papers": 416},
    },
}


@dataclass(frozen=True, slots=True)
class Passage:
    """HotpotQA: a paragraph and its sentences; QASPER: a section and its paragraphs; a sentence is what is evidence or is not."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    kind: str  # one of KINDS
    evidence: frozenset[tuple[int, int]]  # (passage number, sentence number)


@dataclass(frozen=True, slots=True)
class LongQuestion:
    id: str
    text: str
    passages: tuple[Passage, ...]
    answers: tuple[Answer, ...]  # one an annotator; HotpotQA has one


class LongQuestions(list):
    """One side of a data set; `report` counts questions and evidence that were read, kept and dropped, by reason, with a note."""

    def __init__(self, questions=(), dropped=None, note=""):
        super().__init__(questions)
        kept, dropped = _count(self), dropped or {}
        read = {what: kept[what] + sum(lost[what] for lost in dropped.values()) for what in kept}
        self.report = {"read": read, "kept": kept, "dropped": dropped, "note": note}

    def limited(self, limit: int) -> "LongQuestions":
        """At most that many questions, chosen by a hash of their ids, in the order they had."""
        ids = [
            (hashlib.blake2b(question.id.encode(), digest_size=8, key=b"limit").digest(), i)
            for i, question in enumerate(self)
        ]
        chosen = {i for _, i in heapq.nsmallest(limit, ids)}
        beyond = [question for i, question in enumerate(self) if i not in chosen]
        dropped = self.report["dropped"] | ({"beyond the limit": _count(beyond)} if beyond else {})
        return LongQuestions([self[i] for i in sorted(chosen)], dropped, self.report["note"])


def an_answer_each(questions: Iterable[LongQuestion]) -> list[LongQuestion]:
    """Questions with one answer each: one that several annotators answered comes once for every answer, as QASPER's authors train.

    Paper: evidence_contrast, section 4.1, which replicates them.
    """
    return [
        replace(question, answers=(answer,)) for question in questions for answer in dict.fromkeys(question.answers)
    ]


def _count(questions) -> dict:
    return {
        "questions": len(questions),
        "evidence": sum(len(answer.evidence) for question in questions for answer in question.answers),
    }


def load_evidence(name, limit: int | None = None) -> dict[str, LongQuestions]:
    """The sides of a data set of questions with evidence. Where test is empty, dev is the side that is reported.

    Paper: evidence_contrast, section 4.1 and appendix B.
    Args:
        name: `hotpotqa` (the distractor setting; its test set has no labels, so test is empty), `qasper`, `pydocs_evidence` (embedded), or
            a folder: train.jsonl, dev.jsonl and maybe test.jsonl in the form above, or the JSON files of HotpotQA's or QASPER's release.
        limit: at most that many questions a side, chosen by a hash of their ids.
    Returns: {"train", "dev", "test"}: lists of `LongQuestion`s, with a `report`. Evidence that names no sentence is dropped, and counted
        there; its question stays. White space is single blanks.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1 question, got {limit}")
    if name == "pydocs_evidence":
        made = pydocs_evidence.rows()
        sides = {side: _built((row["id"], row, {}) for row in made[side]) for side in SIDES}
    elif name in HUB:
        sides = {
            side: _from_hub(name, side) if side in STEMS[name] else LongQuestions(note=f"no labelled {side} set")
            for side in SIDES
        }
    else:
        sides = _folder(name)
    return {side: questions.limited(limit) if limit else questions for side, questions in sides.items()}


def question_types(name, sides: dict[str, LongQuestions]) -> tuple[str, ...]:
    """The question types of a data set: those of `KINDS`; a folder has QASPER's where it asks for one of them or has several answers."""
    if name in KINDS:
        return KINDS[name]
    questions = [question for side in sides.values() for question in side]
    return KINDS["qasper" if any(_form(question) == "qasper" for question in questions) else "hotpotqa"]


def types_of(kinds: Sequence[str], sides: dict[str, LongQuestions], fewest: int | None = None) -> list[int]:
    """The number of each kind's question type: a kind that is rare in train or dev is of the type of the most frequent one.

    Args:
        fewest: answers of its kind in train and in dev that make a kind a type of its own; None: each is one.
    Deviation: D-95.
    """
    counts = [
        Counter(answer.kind for question in sides[side] for answer in question.answers) for side in ("train", "dev")
    ]
    seen = {kind: min(count[kind] for count in counts) for kind in kinds}
    largest = max(kinds, key=seen.__getitem__)
    own = [kind for kind in kinds if kind == largest or seen[kind] >= (fewest or 0)]
    return [own.index(kind if kind in own else largest) for kind in kinds]


def _form(question: LongQuestion) -> str | None:
    """Whose question types a question needs; None for one answer of yes or no."""
    kinds = {answer.kind for answer in question.answers}
    return "hotpotqa" if "span" in kinds else "qasper" if kinds - {"yes", "no"} or len(question.answers) > 1 else None


def fingerprint_of_evidence(name) -> str:
    """What identifies a data set's content: a hash of its files, of pydocs' package versions, or the hub id (its counts are asserted)."""
    if name == "pydocs_evidence":
        return docstrings.fingerprint_of_docstrings(docstrings.NUMPYDOC)
    if name in HUB:
        folder = hub.mirror(HUB[name])
        return hub.sha256(folder) if folder else HUB[name]
    hashes = [f"{side} {hub.sha256(path)}" for side, path in _paths(name)[1].items() if path]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------------ the sources


def _from_hub(name: str, side: str) -> LongQuestions:
    """From the mirror, which may hold a part, or whole from the hub."""
    hub_id, stem, folder = HUB[name], STEMS[name][side], hub.mirror(HUB[name])
    if folder is None:
        found = [(f"{hub_id}/{stem}", hub.load_from_hub(hub_id, split=stem, **OPTIONS[name]).data.table)]
    elif path := _release(folder, name).get(side):
        return _released(name, side, path)
    elif side == "test" and not any(folder.rglob(f"{stem}[-.]*parquet")):
        return LongQuestions(note=f"the mirror has no {stem} file")
    else:
        found = [(f"{hub_id}/{path.name}", files.table(path)) for path in tables.parquet_files(hub_id, stem)]
    if name == "qasper":
        papers = ((f"{place}, paper {paper['id']}", paper) for place, paper in _parquet(found, qasper.COLUMNS))
        return _papers(side, papers, f"{hub_id}/{stem}", whole=folder is None)
    return _supported(side, _parquet(found, hotpotqa.COLUMNS), f"{hub_id}/{stem}", whole=folder is None)


def _parquet(found, columns: Iterable[str]) -> Iterator[tuple[str, dict]]:
    for where, table in found:
        if missing := [column for column in columns if column not in table.column_names]:
            came = ", ".join(table.column_names)
            raise ValueError(
                f"{where}: expected the columns {', '.join(columns)}, lacks {', '.join(missing)}; got {came}"
            )
        batches = table.select(list(columns)).to_batches(max_chunksize=256)
        rows = tqdm(files.rows(batches, Path(where)), desc=f"reading {where}", total=len(table), delay=5, leave=False)
        yield from ((f"{where}, row {number}", row) for number, (_, row) in enumerate(rows, 1))


def _released(name: str, side: str, path: Path) -> LongQuestions:
    """A file of a release, whose counts are those that were published."""
    if name == "qasper":
        return _papers(side, qasper.release(path), path.name, whole=True)
    return _supported(side, hotpotqa.release(path), path.name, whole=True)


def _supported(side: str, rows, where: str, whole: bool) -> LongQuestions:
    """HotpotQA's questions, of (place, row in the hub's form)."""
    questions = _built(hotpotqa.row(place, row) for place, row in rows)
    return _counted(questions, COUNTS["hotpotqa"][side], {"questions": len(questions)}, where, whole)


def _papers(side: str, papers, where: str, whole: bool) -> LongQuestions:
    seen = {}

    def rows():
        for place, paper in papers:
            seen[place] = None
            yield from qasper.rows(place, paper)

    questions = _built(rows())
    return _counted(questions, COUNTS["qasper"][side], {"questions": len(questions), "papers": len(seen)}, where, whole)


def _counted(questions: LongQuestions, expected: dict, came: dict, where: str, whole: bool) -> LongQuestions:
    published, got = (
        " and ".join(f"{number:,} {what}" for what, number in counts.items()) for counts in (expected, came)
    )
    if whole and came != expected:
        raise ValueError(f"{where}: expected {published}, got {got}")
    unnamed = sum(question.id.startswith(hotpotqa.UNNAMED) for question in questions)
    notes = [f"{got}, of the published {published}"] * (came != expected) + [f"{unnamed} without an id"] * bool(unnamed)
    questions.report["note"] = "; ".join(notes)
    return questions


def _release(folder: Path, name: str) -> dict[str, Path]:
    """The files of a data set's release, by side."""
    found = {side: sorted(folder.rglob(pattern)) for side, pattern in RELEASES[name].items()}
    if several := [paths for paths in found.values() if len(paths) > 1]:
        raise ValueError(f"{folder}: expected one file a side, got {', '.join(path.name for path in several[0])}")
    return {side: paths[0] for side, paths in found.items() if paths}


# ------------------------------------------------------------------------------------------------------ a folder of one's own


def _paths(name) -> tuple[str | None, dict[str, Path | None]]:
    """Whose release a folder holds, None for questions of one's own, and the file of each side; None for a test set that is not there."""
    folder = files.expanded(name)
    if not folder.is_dir():
        known = ", ".join(KINDS)
        raise FileNotFoundError(
            f"{name}: expected one of {known} or a folder with questions{spelling.nearest(name, tuple(KINDS))}"
        )
    own = {side: path for side in SIDES if (path := folder / f"{side}.jsonl").is_file()}
    released, paths = next(((one, paths) for one in RELEASES if (paths := _release(folder, one))), (None, own))
    if missing := [side for side in ("train", "dev") if side not in paths]:
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
        names = ", ".join(of[missing[0]] for of in RELEASES.values())
        raise FileNotFoundError(f"{folder}: expected {missing[0]}.jsonl or one of {names}; it holds {held}")
    return released, {side: paths.get(side) for side in SIDES}


def _folder(name) -> dict[str, LongQuestions]:
    (released, paths), sides, first = _paths(name), {}, {}
    for side, path in paths.items():
        if path is None:
            sides[side] = LongQuestions(note=f"no {side} file")
        elif released:
            sides[side] = _released(released, side, path)
        else:
            sides[side] = _built((place, row, {}) for place, row in sources.read_rows(path, "question"))
            if not sides[side]:
                raise ValueError(f"{path.name} is empty: expected at least one question")
            for number, question in enumerate(sides[side], 1):
                _check_own(question, f"{path.name} line {number}", first)
    return sides


def _check_own(question: LongQuestion, place: str, first: dict) -> None:
    """A span is a span of the context, and question types are HotpotQA's or QASPER's, not both."""
    for answer in question.answers:
        if answer.kind == "span" and not any(
            answer.text in " ".join([one.title, *one.sentences]) for one in question.passages
        ):
            raise ValueError(
                f"{place}: expected a span that stands in the context as it is written, got {answer.text[:80]!r}"
            )
    if "span" in (kinds := {answer.kind for answer in question.answers}) and len(question.answers) > 1:
        raise ValueError(
            f"{place}: expected one answer beside a span, got {len(question.answers)}: several are for {_listed('qasper')}"
        )
    if form := _form(question):
        first.setdefault(form, place)
        if len(first) > 1:
            other = next(other for other in first if other != form)
            raise ValueError(
                f"{place}: expected questions of one kind, with types of {_listed(other)} as {first[other]}, "
                f"got {len(question.answers)} of {', '.join(sorted(kinds))}"
            )


def _listed(name: str) -> str:
    return ", ".join(KINDS[name])


# --------------------------------------------------------------------------------------------------------------- the rows


def _built(rows: Iterable[tuple[str, dict, dict]]) -> LongQuestions:
    """The questions of (place, row, lost evidence by reason); rows have the form that a folder has."""
    found, places, lost = [], {}, Counter()
    for place, row, missed in rows:
        question = _question(row, place)
        if question.id in places:
            raise ValueError(f"{place}: expected distinct ids, got {question.id!r} as in {places[question.id]}")
        places[question.id] = place
        found.append(question)
        lost.update(missed)
    return LongQuestions(
        found, {f"evidence {reason}": {"questions": 0, "evidence": number} for reason, number in sorted(lost.items())}
    )


def _question(row: dict, place: str) -> LongQuestion:
    if missing := [name for name in ("id", "question", "passages") if name not in row]:
        raise ValueError(
            f"{place}: expected id, question, passages and answers, lacks {', '.join(missing)}; got {', '.join(row) or 'nothing'}"
        )
    id, asked, passages = row["id"], row["question"], row["passages"]
    if isinstance(id, bool) or not isinstance(id, int | str) or not str(id).strip():
        raise ValueError(f"{place}: expected an id, a number or text, got {id!r}")
    if not isinstance(asked, str) or not asked.strip():
        raise ValueError(f"{place}: expected text in 'question', got {asked!r}")
    if not isinstance(passages, list) or not passages:
        raise ValueError(f"{place}: expected a list of passages, at least one, got {str(passages)[:80]}")
    context = tuple(_passage(passage, f"{place}, passage {number}") for number, passage in enumerate(passages))
    if ("answers" in row) == ("answer" in row):
        raise ValueError(f"{place}: expected either answer, kind and evidence, or answers; got {', '.join(row)}")
    answers = row.get("answers", [row])
    if not isinstance(answers, list) or not answers:
        raise ValueError(f"{place}: expected a list of answers, at least one, got {str(answers)[:80]}")
    where = f"{place}, answer {{}}" if "answers" in row else place
    made = tuple(_answer(answer, context, where.format(number)) for number, answer in enumerate(answers, 1))
    texts = (text for passage in context for text in (passage.title, *passage.sentences))
    _sound(" ".join([str(id), asked, *(answer.text for answer in made), *texts]), place)
    return LongQuestion(str(id), qasper.plain(asked), context, made)


def _passage(passage, place: str) -> Passage:
    """A sentence may be blank: evidence counts it."""
    title, sentences = (passage.get("title"), passage.get("sentences")) if isinstance(passage, dict) else (None, None)
    if (
        not isinstance(title, str)
        or not isinstance(sentences, list)
        or not all(isinstance(text, str) for text in sentences)
    ):
        raise ValueError(f"{place}: expected a title and a list of sentences, all text, got {str(passage)[:80]}")
    return Passage(qasper.plain(title), tuple(map(qasper.plain, sentences)))


def _answer(answer, context: tuple[Passage, ...], place: str) -> Answer:
    if not isinstance(answer, dict) or (
        missing := [name for name in ("answer", "kind", "evidence") if name not in answer]
    ):
        lacks = f"lacks {', '.join(missing)}" if isinstance(answer, dict) else f"got {str(answer)[:80]}"
        raise ValueError(f"{place}: expected answer, kind and evidence, {lacks}")
    text, kind, evidence = answer["answer"], answer["kind"], answer["evidence"]
    if kind not in ANY:
        raise ValueError(f"{place}: expected a kind of {', '.join(ANY)}, got {kind!r}")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{place}: expected text in 'answer', got {text!r}")
    if kind in ("yes", "no", "unanswerable") and text.strip().lower() != kind:
        raise ValueError(f"{place}: expected the answer {kind!r} for that kind, got {text[:80]!r}")
    if not isinstance(evidence, list):
        raise ValueError(f"{place}: expected a list of evidence, got {str(evidence)[:80]}")
    pairs = []
    for number, pair in enumerate(evidence, 1):
        whole = isinstance(pair, list | tuple) and len(pair) == 2 and all(type(part) is int for part in pair)
        if not whole or pair[0] not in range(len(context)) or pair[1] not in range(len(context[pair[0]].sentences)):
            raise ValueError(
                f"{place}, evidence {number}: expected [passage, sentence], a sentence of the {len(context)} passages, got {str(pair)[:80]}"
            )
        if tuple(pair) in pairs:
            raise ValueError(f"{place}, evidence {number}: expected distinct evidence, got {str(pair)[:80]} twice")
        pairs.append(tuple(pair))
    if kind == "unanswerable" and pairs:
        raise ValueError(f"{place}: expected no evidence for an unanswerable question, got {str(evidence)[:80]}")
    return Answer(qasper.plain(text), kind, frozenset(pairs))
