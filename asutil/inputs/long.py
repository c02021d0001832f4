"""Long contexts as token ids: a question, its passages and their sentences with a marker each, and where the answer stands."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..corpus.tokenizing import tokenized
from ..data.long_questions import KINDS, LongQuestion
from .template import Template

MARKERS = ("[q]", "[/q]", "[doc]", "[/doc]", "[t]", "[/t]", "[s]", "[/s]")
FORMS = ("marked", "separated")
OWN = {"[doc]": "<doc-s>", "[/doc]": "</doc-s>"}  # what CDLM was pre-trained with
DROPPED = ("distractors", "evidence", "others")


def markers_of(tokenizer) -> dict[str, str]:
    """The token that each of `MARKERS` is for a tokenizer: where it has CDLM's separators of documents, those.

    Paper: evidence_contrast, appendix B.2.
    Deviation: D-89, sentences are marked [s] and [/s]: <s> and </s> begin and end every input of RoBERTa and of what follows it.
    """
    known = tokenizer.get_vocab()
    return {name: OWN[name] if OWN.get(name) in known else name for name in MARKERS}


def add_markers(tokenizer) -> int:
    """Put the markers of a long input into a tokenizer's vocabulary; how many are new."""
    return tokenizer.add_special_tokens({"additional_special_tokens": list(markers_of(tokenizer).values())})


@dataclass
class Read:
    """One question with as much of its context as fits, as token ids.

    Shapes: ids, is_global (T,); sentences (N,) places of the markers, evidence (N,) bool, units (N, 2) passage and sentence number; starts,
        ends (T,) bool: where an occurrence of the answer begins and where it ends; pieces (T,): which text a token is of, -1 for none
    """

    ids: np.ndarray
    is_global: np.ndarray
    question: int
    sentences: np.ndarray
    evidence: np.ndarray
    units: np.ndarray
    kind: int
    starts: np.ndarray
    ends: np.ndarray
    pieces: np.ndarray
    texts: list[str] = field(default_factory=list)

    def text(self, start: int, end: int, encode) -> str:
        """The text from token `start` to token `end`, both of one piece, as it stands there.

        Args:
            encode: text -> (start, end) of each of its tokens.
        """
        piece = int(self.pieces[start])
        offsets, first = encode(self.texts[piece]), int(np.argmax(self.pieces == piece))
        return self.texts[piece][offsets[start - first][0] : offsets[end - first][1]].strip()


class Contexts:
    """Long questions as token ids, each of at most `max_tokens`.

    marked:     [CLS] [q] question [/q] [doc] [t] title [/t] [s] sentence [/s] [s] sentence [/s] ... [/doc] ... [SEP]
    separated:  [CLS] question [SEP] [SEP] paragraph [SEP] paragraph ... [SEP]; the separator before a paragraph is its marker
    A context that is too long is cut at its end, wherever its evidence is. `dropped` counts sentences that are not read: `distractors` that
    were not chosen, and what was cut, of the `evidence` and of `others`.
    Paper: evidence_contrast, section 2 and appendices B.1 and B.2.
    Args:
        form: "marked" (HotpotQA), or "separated" (QASPER).
        kinds: names of the question types, in the order of their numbers.
        distractors: passages (separated: paragraphs) without evidence that are read beside those with some annotator's evidence, chosen by
            a keyed hash of question and place, in the order of the data; None: all.
    Raises: ValueError where no sentence of any question fits.
    Deviation: D-89, D-91, D-96.
    """

    def __init__(
        self,
        tokenizer,
        questions: Sequence[LongQuestion],
        kinds: Sequence[str],
        max_tokens: int,
        form: str = "marked",
        distractors: int | None = None,
    ):
        if form not in FORMS:
            raise ValueError(f"form: one of {', '.join(FORMS)} expected, got {form!r}")
        self.tokenizer, self.form, self.kinds, self.max_tokens = tokenizer, form, tuple(kinds), max_tokens
        self.distractors, self.questions = distractors, list(questions)
        self._template = Template.of(tokenizer, 1)
        ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in markers_of(tokenizer).items()}
        self._marker = ids if form == "marked" else {}
        self.dropped = Counter(dict.fromkeys(DROPPED, 0))
        self.read = [self._read(question) for question in self.questions]
        if not any(len(read.sentences) for read in self.read):
            raise ValueError(
                f"no sentence fits beside its question into {max_tokens} tokens, of {len(self.read)} questions"
            )

    def __len__(self):
        return len(self.read)

    def encode(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text begins and ends in it."""
        return self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets

    # -------------------------------------------------------------- one question

    def _read(self, question: LongQuestion) -> Read:
        answer = question.answers[0]
        units = [(p, s) for p, passage in enumerate(question.passages) for s in range(len(passage.sentences))]
        texts = [question.text, *(passage.title for passage in question.passages)]
        texts += [question.passages[p].sentences[s] for p, s in units]
        tokens, lengths = tokenized(self.tokenizer.backend_tokenizer, texts)
        pieces = np.split(tokens, lengths.cumsum()[:-1])
        unit_piece = {unit: 1 + len(question.passages) + n for n, unit in enumerate(units)}
        chosen = self._chosen(question, units)
        laid = self._laid_out(question, chosen, unit_piece, pieces)
        read = self._with_answer(answer, laid, texts)
        missed = len(answer.evidence) - int(read.evidence.sum())
        self.dropped.update(
            distractors=len(units) - len(chosen), evidence=missed, others=len(chosen) - len(read.units) - missed
        )
        return read

    def _chosen(self, question: LongQuestion, units: list) -> set:
        """The units that would be read if there were room: those of the groups with evidence, and of some others."""
        group_of = {
            unit: unit[:1] if self.form == "marked" else unit for unit in units
        }  # whole passages, or single paragraphs
        gold = {group_of[unit] for answer in question.answers for unit in answer.evidence}
        others = sorted(set(group_of.values()) - gold, key=lambda group: _drawn(question.id, group))
        chosen = gold | set(others[: self.distractors])
        return {unit for unit in units if group_of[unit] in chosen}

    def _laid_out(self, question, chosen, unit_piece, pieces) -> tuple:
        ids, owners, is_global, sentences, shown = [], [], [], [], []

        def put(tokens, piece=-1, seen=False):
            ids.extend(int(token) for token in tokens)
            owners.extend([piece] * len(tokens))
            is_global.extend([seen] * len(tokens))

        def mark(name, seen=False):
            put([self._marker[name]], seen=seen)

        before, after = self._template.special
        marked = self.form == "marked"
        put(before, seen=True)
        asked = len(ids) if marked else 0
        if marked:
            mark("[q]", True)
        put(pieces[0], 0, True)
        if marked:
            mark("[/q]", True)
        else:
            put(after, seen=True)
        for p in range(len(question.passages)):
            members = [unit for unit in unit_piece if unit[0] == p and unit in chosen]
            if not members:
                continue
            if marked:
                mark("[doc]")
                mark("[t]", True)
                put(pieces[1 + p], 1 + p)
                mark("[/t]")
            for unit in members:
                sentences.append(len(ids))
                shown.append(unit)
                if marked:
                    mark("[s]", True)
                else:
                    put(after[:1], seen=True)
                put(pieces[unit_piece[unit]], unit_piece[unit])
                if marked:
                    mark("[/s]")
            if marked:
                mark("[/doc]")
        room = self.max_tokens - len(after)
        for column in (ids, owners, is_global):
            del column[room:]
        fit = sum(place < room - 1 for place in sentences)  # with something after the marker
        put(after)
        return ids, owners, is_global, asked, sentences[:fit], shown[:fit]

    def _with_answer(self, answer, laid, texts) -> Read:
        ids, owners, is_global, asked, sentences, shown = laid
        owners, count = np.array(owners), len(ids)
        starts, ends = np.zeros(count, bool), np.zeros(count, bool)
        if answer.kind in ("span", "extractive"):
            for piece in np.unique(owners[owners > 0]):
                first, held = int(np.argmax(owners == piece)), int((owners == piece).sum())
                for begin, end in occurrences(answer.text, texts[piece], self.encode):
                    if end < held:  # the last text may be cut
                        starts[first + begin] = ends[first + end] = True
        evidence = np.array([unit in answer.evidence for unit in shown], bool)
        kind = self.kinds.index(answer.kind)
        where = np.array(sentences, np.int64)
        units = np.array(shown, np.int64).reshape(-1, 2)
        return Read(
            np.array(ids, np.int64),
            np.array(is_global),
            asked,
            where,
            evidence,
            units,
            kind,
            starts,
            ends,
            owners,
            texts,
        )


def _drawn(question_id: str, group: tuple) -> bytes:
    return hashlib.blake2b(f"{question_id} {group}".encode(), digest_size=8, key=b"distractors").digest()


def occurrences(answer: str, text: str, encode) -> list[tuple[int, int]]:
    """First and last token of every place where an answer stands in a text as words of its own.

    Args:
        encode: text -> (start, end) of each of its tokens.

    Example:
        >>> occurrences("the sea", "By the sea, the seal.", lambda text: [m.span() for m in re.finditer(r"\\w+|\\W", text)])
        [(2, 4)]
    """
    if not answer or answer not in text:
        return []
    offsets, found = np.array(encode(text)).reshape(-1, 2), []
    before, after = (r"(?<!\w)" if answer[0].isalnum() else "", r"(?!\w)" if answer[-1].isalnum() else "")
    for match in re.finditer(before + re.escape(answer) + after, text):
        covered = np.flatnonzero((offsets[:, 1] > match.start()) & (offsets[:, 0] < match.end()))
        if len(covered):
            found.append((int(covered[0]), int(covered[-1])))
    return found


def form_of(kinds: Sequence[str]) -> str:
    """How the contexts of a data set are laid out: QASPER's by separators, others with markers."""
    return "separated" if tuple(kinds) == KINDS["qasper"] else "marked"
