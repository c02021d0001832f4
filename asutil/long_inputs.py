"""Long contexts as token ids: a question, its passages and their sentences with a marker each, and where the answer stands."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .evidence import KINDS, LongQuestion
from .template import Template
from .tokenizing import tokenized

MARKERS = ("[q]", "[/q]", "[doc]", "[/doc]", "[t]", "[/t]", "[s]", "[/s]")
FORMS = ("marked", "separated")
DROPPED = ("distractors", "evidence", "questions")


def add_markers(tokenizer) -> int:
    """Put the markers of a long input into a tokenizer's vocabulary; how many are new.

    Paper: evidence_contrast, appendix B.2.
    Deviation: D-89, sentences are marked [s] and [/s]: <s> and </s> begin and end every input of RoBERTa and of what follows it.
    """
    return tokenizer.add_special_tokens({"additional_special_tokens": list(MARKERS)})


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
    """Long questions as token ids, each cut to `max_tokens` as a whole.

    marked:     [CLS] [q] question [/q] [doc] [t] title [/t] [s] sentence [/s] [s] sentence [/s] ... [/doc] ... [SEP]
    separated:  [CLS] question [SEP] [SEP] paragraph [SEP] paragraph ... [SEP]; the separator before a paragraph is its marker
    A context that is too long keeps all its evidence and as many of the other passages (separated: paragraphs) as fit, in an order of their
    own that a keyed hash gives; what stays is read in the order of the data. `dropped` counts what does not: `distractors`; of `evidence`
    whatever the data lost before; and `questions` whose evidence alone is too long, which are left out.
    Paper: evidence_contrast, section 2 and appendices B.1 and B.2.
    Args:
        form: "marked" (HotpotQA), or "separated" (QASPER).
        kinds: names of the question types, in the order of their numbers.
    Raises: ValueError where no question is left.
    Deviation: D-89, D-91.
    """

    def __init__(self, tokenizer, questions: Sequence[LongQuestion], kinds: Sequence[str], max_tokens: int, form: str = "marked"):
        if form not in FORMS:
            raise ValueError(f"form: one of {', '.join(FORMS)} expected, got {form!r}")
        self.tokenizer, self.form, self.kinds, self.max_tokens = tokenizer, form, tuple(kinds), max_tokens
        self._template = Template.of(tokenizer, 1)
        self._marker = {name: tokenizer.convert_tokens_to_ids(name) for name in MARKERS} if form == "marked" else {}
        self.dropped, self.questions, self.read = Counter(dict.fromkeys(DROPPED, 0)), [], []
        for question in questions:
            made = self._read(question)
            if made is None:
                self.dropped["questions"] += 1
            else:
                self.questions.append(question)
                self.read.append(made)
        if not self.read:
            raise ValueError(f"no question's evidence fits into {max_tokens} tokens, of {self.dropped['questions']} questions")

    def __len__(self):
        return len(self.read)

    def encode(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text begins and ends in it."""
        return self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets

    # -------------------------------------------------------------- one question

    def _read(self, question: LongQuestion) -> Read | None:
        answer = question.answers[0]
        units = [(p, s) for p, passage in enumerate(question.passages) for s in range(len(passage.sentences))]
        texts = [question.text, *(passage.title for passage in question.passages)]
        texts += [question.passages[p].sentences[s] for p, s in units]
        tokens, lengths = tokenized(self.tokenizer.backend_tokenizer, texts)
        pieces = np.split(tokens, lengths.cumsum()[:-1])
        unit_piece = {unit: 1 + len(question.passages) + n for n, unit in enumerate(units)}
        kept = self._kept(question, lengths, unit_piece, answer.evidence)
        if kept is None:
            return None
        self.dropped["distractors"] += len(units) - len(kept)
        laid = self._laid_out(question, kept, unit_piece, pieces)
        return self._with_answer(question, answer, laid, texts)

    def _kept(self, question, lengths, unit_piece, evidence) -> set | None:
        """The units that are read: all with evidence, others while they fit; None where the evidence alone is too long."""
        marks = 2 if self.form == "marked" else 1  # around the question, and around each unit
        room = self.max_tokens - self._template.added - int(lengths[0]) - marks
        cost = {unit: int(lengths[piece]) + marks for unit, piece in unit_piece.items()}
        if self.form == "marked":  # whole passages, with their title and four markers
            groups = {p: [unit for unit in unit_piece if unit[0] == p] for p in range(len(question.passages))}
            costs = {p: sum(cost[unit] for unit in groups[p]) + int(lengths[1 + p]) + 4 for p in groups}
        else:
            groups, costs = {unit: [unit] for unit in unit_piece}, cost
        gold = {group for group, members in groups.items() if any(unit in evidence for unit in members)}
        room -= sum(costs[group] for group in gold)
        if room < 0:
            return None
        kept = set(gold)
        for group in sorted(groups, key=lambda group: hashlib.blake2b(f"{question.id} {group}".encode(), digest_size=8).digest()):
            if group not in kept and costs[group] <= room:
                kept.add(group)
                room -= costs[group]
        return {unit for group in kept for unit in groups[group]}

    def _laid_out(self, question, kept, unit_piece, pieces) -> tuple:
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
            members = [unit for unit in unit_piece if unit[0] == p and unit in kept]
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
        put(after)
        return ids, owners, is_global, asked, sentences, shown

    def _with_answer(self, question, answer, laid, texts) -> Read:
        ids, owners, is_global, asked, sentences, shown = laid
        owners, count = np.array(owners), len(ids)
        starts, ends = np.zeros(count, bool), np.zeros(count, bool)
        if answer.kind in ("span", "extractive"):
            for piece in np.unique(owners[owners > 0]):
                first = int(np.argmax(owners == piece))
                for begin, end in occurrences(answer.text, texts[piece], self.encode):
                    starts[first + begin] = ends[first + end] = True
        evidence = np.array([unit in answer.evidence for unit in shown], bool)
        self.dropped["evidence"] += len(answer.evidence) - int(evidence.sum())
        kind = self.kinds.index(answer.kind)
        where = np.array(sentences, np.int64)
        units = np.array(shown, np.int64).reshape(-1, 2)
        return Read(np.array(ids, np.int64), np.array(is_global), asked, where, evidence, units, kind, starts, ends, owners, texts)


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
