"""Answer sentence selection data: questions, their candidates in order, protocols with their published counts, and baselines."""

import difflib
import hashlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..corpus import docstrings
from ..io import files, hub
from . import document_order, tables

SIDES = ("train", "dev", "test")
# data set -> hub id, protocol -> side -> (file, which questions stay). TREC-QA's files are filtered already.
HUB = {
    "wikiqa": (
        "microsoft/wiki_qa",
        {
            "clean": {"train": ("train", "all"), "dev": ("validation", "mixed"), "test": ("test", "mixed")},
            "asbert": {"train": ("train", "positive"), "dev": ("validation", "positive"), "test": ("test", "positive")},
        },
    ),
    "trecqa": (
        "lucadiliello/trecqa",
        {
            "clean": {"train": ("train", "all"), "dev": ("dev_clean", "mixed"), "test": ("test_clean", "mixed")},
            "asbert": {
                "train": ("train_manual", "positive"),
                "dev": ("dev_clean", "positive"),
                "test": ("test_clean", "positive"),
            },
        },
    ),
    "asnq": ("lucadiliello/asnq", {"clean": {side: (side, "all") for side in SIDES}}),
    "newsas2": (
        "lucadiliello/news_as2",
        {"clean": {"train": ("train", "all"), "dev": ("dev", "mixed"), "test": ("test", "mixed")}},
    ),
}
STREAMED = {
    "asnq": True,
    "newsas2": False,
}  # too large for memory; whether rows of one key are a question, or rows of one text
# (questions, candidates): sentence_objectives, table 4; contextual_as2, table 2; asbert, table 2, recounted without losing rows to quotes
# (data_cards/wikiqa.md). Those of streamed sets are of all rows.
COUNTS = {
    "wikiqa": {
        "clean": {"train": (2_118, 20_360), "dev": (122, 1_126), "test": (237, 2_341)},
        "asbert": {"train": (873, 8_672), "dev": (126, 1_130), "test": (243, 2_351)},
    },
    "trecqa": {
        "clean": {"train": (1_226, 53_417), "dev": (69, 1_343), "test": (68, 1_442)},
        "asbert": {"train": (89, 5_914), "dev": (69, 1_343), "test": (68, 1_442)},
    },
    "asnq": {"clean": {"train": (57_242, 20_377_568), "dev": (1_336, 463_914), "test": (1_336, 466_148)}},
    "newsas2": {"clean": {"train": (71_561, 1_840_533), "dev": (2_102, 51_844), "test": (2_083, 51_472)}},
}
# contextual_as2, appendix A.2, in per cent of "sentences per query"; as released likelier a question (data_cards/newsas2.md)
POSITIVES = {"newsas2": {"train": 1.69, "dev": 1.66, "test": 1.68}}
TRIPLETS = {
    ("wikiqa", "asbert"): 8_995,
    ("trecqa", "asbert"): 83_923,
}  # (data set, protocol) -> triplets of its whole training side
UNORDERED = {
    "trecqa": "a question's candidates come from many documents and the right ones stand first: the rows around one would tell its label"
}
NAMES = (*HUB, "pydocs")
PROTOCOLS = ("clean", "asbert")


@dataclass(frozen=True, slots=True)
class Candidate:
    id: str
    text: str
    label: int
    before: str | None  # the sentences around it in its document, None where the data do not say
    after: str | None


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, eq=False)
class Split(Sequence):
    """One side of a data set: a sequence whose questions are built on demand from an Arrow table or from parquet files.

    `ordered` says whether row order is document order; `report` counts what was read, kept and dropped, by reason.
    """

    name: str
    table: (
        pa.Table | tables.Parquet
    )  # question, answer, label, optional document_title; the rows of a question stand together
    ids: np.ndarray  # of the questions, as the next two: question i has the rows starts[i] to stops[i]
    starts: np.ndarray
    stops: np.ndarray
    ordered: bool
    report: dict

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._take(np.arange(len(self))[index])
        index = range(len(self))[index]
        start, stop = int(self.starts[index]), int(self.stops[index])
        rows = self.table.slice(start, stop - start)
        texts, labels = rows["answer"].to_pylist(), rows["label"].to_pylist()
        titles = (
            rows["document_title"].to_pylist() if "document_title" in rows.column_names else [self.name] * len(texts)
        )
        near = [self.ordered and one is not None and one == other for one, other in pairwise(titles)]
        before = [None, *(text if same else None for text, same in zip(texts, near))]
        after = [*(text if same else None for text, same in zip(texts[1:], near)), None]
        ids = [f"{self.ids[index]}-{i}" for i in range(len(texts))]
        return Question(
            self.ids[index], rows["question"][0].as_py(), tuple(map(Candidate, ids, texts, labels, before, after))
        )

    def rows(self) -> np.ndarray:
        """The table's row of every candidate, question after question."""
        sizes = self.stops - self.starts
        return np.arange(sizes.sum()) + np.repeat(self.starts - np.cumsum(sizes) + sizes, sizes)

    def frame(self) -> pd.DataFrame:
        """question_id, candidate_id and label of every candidate, without text."""
        sizes, rows = self.stops - self.starts, self.rows()
        numbers = rows - np.repeat(self.starts, sizes)
        ids = np.repeat(self.ids, sizes)
        labels = self.table["label"].to_numpy()[rows].astype(np.int8)
        candidates = [f"{question}-{number}" for question, number in zip(ids, numbers)]
        return pd.DataFrame(
            {
                "question_id": pd.Series(ids, dtype=str),
                "candidate_id": pd.Series(candidates, dtype=str),
                "label": labels,
            }
        )

    def positives(self) -> np.ndarray:
        """The number of positive candidates of each question."""
        total = np.concatenate([[0], np.cumsum(self.table["label"].to_numpy(), dtype=np.int64)])
        return total[self.stops] - total[self.starts]

    def _count(self) -> dict:
        return {"questions": len(self), "candidates": int((self.stops - self.starts).sum())}

    def _take(self, chosen) -> "Split":
        """The chosen questions as a split of their own, which reports on them alone."""
        part = replace(self, ids=self.ids[chosen], starts=self.starts[chosen], stops=self.stops[chosen])
        return replace(part, report={"read": part._count(), "kept": part._count(), "dropped": {}})

    def _keep(self, mask: np.ndarray, reason: str) -> "Split":
        """The questions under the mask; the report counts the others under `reason`."""
        kept = self._take(mask)
        dropped = self.report["dropped"] | ({} if mask.all() else {reason: self._take(~mask)._count()})
        return replace(kept, report={"read": self.report["read"], "kept": kept._count(), "dropped": dropped})


def load_answers(
    name, protocol="clean", train_questions="all", limit: int | None = None, context: bool = False
) -> dict[str, Split]:
    """The sides of an answer sentence selection data set under a protocol.

    Args:
        name: `wikiqa`, `trecqa`, `asnq`, `newsas2`, `pydocs`, a folder with train, dev and test as .tsv, .jsonl or .parquet, or one such
            file, whose questions are then shared out 8 : 1 : 1 by a hash. Columns question, answer, label; optional question_id and
            document_title (rows of a question are then in document order). TSV has a header line and no quoting.
        protocol: `clean` (wikiqa: dev and test questions with both labels; a user's file: a dev or test question without a positive
            is an error) or `asbert` (questions with a positive, on every side; not for asnq, newsas2 and pydocs).
        train_questions: `all`, or `with_positive` for those alone.
        limit: at most that many questions a side, chosen by a hash of their ids.
        context: every candidate has the sentences before and after it. Where nothing but the order of rows says which these are (asnq,
            newsas2), that order is checked first (`document_order.check`); a data set that cannot give them is refused.
    Returns: {"train", "dev", "test"}, each a lazy `Split` of `Question`s.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    _one_of("protocol", protocol, COUNTS.get(name, ("clean",) if name == "pydocs" else PROTOCOLS))
    _one_of("train_questions", train_questions, ("all", "with_positive"))
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1 question, got {limit}")
    if name in HUB:
        splits = _from_hub(name, protocol, context)
    else:
        splits = _pydocs() if name == "pydocs" else _users(_path(name), protocol)
    if context and (unordered := [side for side, split in splits.items() if not split.ordered]):
        raise ValueError(
            f"{name}, {unordered[0]}: no sentences before and after a candidate are known, so that only pairs of question and candidate "
            "can be made; "
            + UNORDERED.get(
                name, "a file needs a column document_title, and the rows of a question in the document's order"
            )
        )
    if train_questions == "with_positive":
        splits["train"] = _rule(splits["train"], "positive")
    if limit:
        splits = {side: _limited(split, limit) for side, split in splits.items()}
    for side, split in splits.items():
        if len(split) == 0:
            raise ValueError(
                f"{name}, {side}: no question is left, of {split.report['read']}: {split.report['dropped']}"
            )
    return splits


def fingerprint(name) -> str:
    """What identifies a data set's content: a hash of its files, of pydocs' package versions, or the hub id (its counts are asserted)."""
    if name == "pydocs":
        return docstrings.fingerprint(docstrings.NUMPYDOC)
    if name not in HUB:
        path = _path(name)
        hashes = [hub.sha256(path)] if path.is_file() else [hub.sha256(_side_file(path, side)) for side in SIDES]
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()
    hub_id = HUB[name][0]
    folder = hub.mirror(hub_id)
    return hub.sha256(folder) if folder else hub_id


# ---------------------------------------------------------------------------------------------------------- the sources


def _from_hub(name: str, protocol: str, context: bool) -> dict[str, Split]:
    hub_id, protocols = HUB[name]
    splits = {}
    for side, (stem, rule) in protocols[protocol].items():
        where = f"{hub_id}/{stem}"
        if name in STREAMED:
            table = tables.opened(tables.parquet_files(hub_id, stem), keyed=STREAMED[name])
        else:
            table = tables.checked(hub.table(hub_id, stem), where, first_row=1)
        whole = _grouped(side, table, stem, where, first_row=1, ordered=name == "wikiqa")
        split = _rule(whole, rule)
        counted = whole if name in STREAMED else split
        came, expected = tuple(counted.report["kept"].values()), COUNTS[name][protocol][side]
        if came != expected:
            raise ValueError(
                f"{name}, protocol {protocol}, {side}: expected {expected[0]:,} questions and {expected[1]:,} candidates, "
                f"got {came[0]:,} and {came[1]:,} (from {where})"
            )
        if name in POSITIVES:
            _check_positives(counted, POSITIVES[name][side], where)
        if context and name in STREAMED:
            document_order.check(whole, where)
            split = replace(split, ordered=True)
        splits[side] = split
    return splits


def _check_positives(split: Split, printed: float, where: str) -> None:
    """The printed share of positives, as per cent of the candidates or as positives a question."""
    positives = int(split.positives().sum())
    came = [100 * positives / split.report["kept"]["candidates"], positives / len(split)]
    if all(abs(value - printed) > 0.01 for value in came):
        raise ValueError(
            f"{where}: expected {printed} positives in 100 candidates or a question, got {came[0]:.2f} and {came[1]:.2f}"
        )


def _users(path: Path, protocol: str) -> dict[str, Split]:
    if path.is_dir():
        splits = {side: _users_file(_side_file(path, side), side) for side in SIDES}
    else:
        whole = _users_file(path, "all")
        if len(whole) < 3:
            raise ValueError(
                f"{path}: expected at least 3 questions to share out as train, dev and test, got {len(whole)}"
            )
        order, few = np.argsort([_hash("side", id) for id in whole.ids]), max(1, len(whole) // 10)
        sides = {"test": order[:few], "dev": order[few : 2 * few], "train": order[2 * few :]}
        splits = {side: replace(whole._take(np.sort(sides[side])), name=side) for side in SIDES}
    if protocol == "asbert":
        return {side: _rule(split, "positive") for side, split in splits.items()}
    for side in ("dev", "test"):
        if len(empty := np.flatnonzero(splits[side].positives() == 0)):
            where = path if path.is_file() else _side_file(path, side)
            row = splits[side].table["row"][int(splits[side].starts[empty[0]])].as_py()
            raise ValueError(
                f"{where}, row {row}: protocol clean expects a candidate with label 1 for every {side} question, got none for "
                f"question {splits[side].ids[empty[0]]!r} ({len(empty)} such); protocol asbert leaves such questions out"
            )
    return splits


def _users_file(path: Path, side: str) -> Split:
    table = tables.read(path)
    titled = "document_title" in table.column_names and table["document_title"].null_count < len(table)
    return _grouped(side, table, path.stem, path, table["row"][0].as_py(), ordered=titled)


def _pydocs() -> dict[str, Split]:
    columns = {side: {"question_id": [], "question": [], "answer": [], "label": []} for side in SIDES}
    for asked in docstrings.questions():
        column = columns[docstrings.side(asked.function)]
        column["question_id"] += [asked.id] * len(asked.sentences)
        column["question"] += [asked.question] * len(asked.sentences)
        column["answer"] += asked.sentences
        column["label"] += [int(i in asked.positive) for i in range(len(asked.sentences))]
    checked = {side: tables.checked(pa.table(column), "pydocs", 1) for side, column in columns.items()}
    return {
        side: _rule(_grouped(side, table, "pydocs", "pydocs", 1, ordered=True), "mixed")
        for side, table in checked.items()
    }


# ----------------------------------------------------------------------------------------------------- grouping and rules


def _grouped(side: str, table: pa.Table | tables.Parquet, stem: str, where, first_row: int, ordered: bool) -> Split:
    """Rows of one key, of one question_id, else of one question text, brought together in order of first appearance."""

    def codes(name):
        return pc.dictionary_encode(table[name].combine_chunks()).indices.to_numpy()

    by = next(name for name in ("key", "question_id", "question") if name in table.column_names)
    groups = codes(by)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    if by == "question_id":
        texts, first = codes("question"), order[starts][groups]
        if len(other := np.flatnonzero(texts != texts[first])):
            row = int(other[0])
            raise ValueError(
                f"{where}, row {row + first_row}: question_id {table['question_id'][row].as_py()!r} belongs to "
                f"{table['question'][int(first[row])].as_py()[:80]!r} in row {first[row] + first_row}, got "
                f"{table['question'][row].as_py()[:80]!r}"
            )
    if (np.diff(order) != 1).any():
        table = table.take(pa.array(order))
    ids = range(len(starts)) if by == "question" else table[by].take(pa.array(starts)).to_pylist()
    ids = ids if by == "question_id" else [f"{stem}-{id}" for id in ids]
    split = Split(side, table, np.array(ids, dtype=object), starts, np.append(starts[1:], len(table)), ordered, {})
    return split._take(slice(None))


def _rule(split: Split, rule: str) -> Split:
    positives, sizes = split.positives(), split.stops - split.starts
    if rule in ("positive", "mixed"):
        split = split._keep(positives > 0, "no positive")
    if rule == "mixed":
        split = split._keep((positives < sizes)[positives > 0], "only positives")
    return split


def _limited(split: Split, limit: int) -> Split:
    order = np.argsort([_hash("limit", id) for id in split.ids])
    mask = np.zeros(len(split), bool)
    mask[order[:limit]] = True
    return split._keep(mask, "beyond the limit")


def _hash(purpose: str, text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7, key=purpose.encode()).digest())


def _one_of(what: str, value, known) -> None:
    if value not in known:
        near = difflib.get_close_matches(str(value), known, n=1)
        raise ValueError(
            f"unknown {what} {value!r}"
            + (f", did you mean {near[0]!r}?" if near else "")
            + f" Known: {', '.join(known)}"
        )


def _path(name) -> Path:
    path = files.expanded(name)
    if not path.exists():
        if isinstance(name, Path) or len(path.parts) > 1 or path.suffix in tables.SUFFIXES:
            raise FileNotFoundError(
                f"{path} does not exist: expected a folder, or a file that ends in {', '.join(tables.SUFFIXES)}"
            )
        _one_of("data set (and no such file or folder)", str(name), NAMES)
    return path


def _side_file(folder: Path, side: str) -> Path:
    expected = [folder / f"{side}{suffix}" for suffix in tables.SUFFIXES]
    found = [path for path in expected if path.is_file()]
    if not found:
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
        raise FileNotFoundError(
            f"{folder}: expected one of {', '.join(path.name for path in expected)}; it holds {held}"
        )
    if len(found) > 1:
        raise ValueError(f"{folder}: expected one file for {side}, got {', '.join(path.name for path in found)}")
    return found[0]


# ------------------------------------------------------------------------------------------------------------- baselines


def baseline_scores(split: Split, baseline: str, seed: int = 0) -> pd.DataFrame:
    """Scores of a ranker that has learnt nothing: question_id, candidate_id, label, score.

    Args:
        baseline: `random`, `document_order` (the first sentence first) or `bm25` (k1 1.5, b .75, document frequencies over all
            candidates of the split, lower-cased words).
    Raises: ValueError for document order where row order is not document order.
    """
    _one_of("baseline", baseline, ("random", "document_order", "bm25"))
    frame, sizes = split.frame(), split.stops - split.starts
    if baseline == "random":
        scores = np.random.default_rng(seed).random(len(frame))
    elif baseline == "document_order":
        if not split.ordered:
            raise ValueError(
                f"{split.name}: the rows of a question are not in document order, so the order says nothing"
            )
        scores = -(split.rows() - np.repeat(split.starts, sizes))
    else:
        questions = split.table["question"].take(pa.array(split.starts)).to_pylist()
        scores = bm25(questions, split.table["answer"].take(pa.array(split.rows())).to_pylist(), sizes)
    return frame.assign(score=np.asarray(scores, np.float32))


def bm25(questions: Sequence[str], candidates: Sequence[str], sizes: Sequence[int]) -> np.ndarray:
    """BM25 (k1 1.5, b .75) of lower-cased words, document frequencies over all candidates.

    Args:
        candidates: of all questions, question after question. sizes: how many each question has.
    Shapes: Q questions, N candidates -> (N,)
    """
    import bm25s

    def words(text):  # interned: half a million candidates share their words
        return [sys.intern(word) for word in re.findall(r"\w+", text.lower())]

    documents = [words(text) for text in candidates]
    if not any(documents):  # bm25s refuses an index without words, and a query of unknown words alone
        return np.zeros(len(documents))
    index, scores = bm25s.BM25(k1=1.5, b=0.75), []
    index.index(documents, show_progress=False)
    for question, size, end in zip(questions, sizes, np.cumsum(sizes)):
        known = [word for word in words(question) if word in index.vocab_dict]
        scores.append(index.get_scores(known)[end - size : end] if known else np.zeros(size))
    return np.concatenate(scores)
