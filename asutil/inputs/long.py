"""Long contexts as token ids: a question, its passages and their sentences with a marker each, and the positions of the answer."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import regex

from ..corpus.tokenizing import tokenized
from ..data.baselines import WITHOUT_SPACES
from ..data.long_questions import KINDS, LongQuestion
from ..draws import text_hash
from ..io.spelling import require_one_of
from .batches import tensors
from .pairs import IGNORED
from .template import Template

MARKERS = ("[q]", "[/q]", "[doc]", "[/doc]", "[t]", "[/t]", "[s]", "[/s]")
FORMS = ("marked", "separated")
OWN = {"[doc]": "<doc-s>", "[/doc]": "</doc-s>"}  # the separators that CDLM was pre-trained with
DROPPED = ("distractors", "evidence", "others")
LETTER = rf"[[\w\p{{No}}]--[{WITHOUT_SPACES}]]"  # of a script whose words have spaces between them


def markers_of(tokenizer) -> dict[str, str]:
    """The tokens of a tokenizer for `MARKERS`; CDLM's tokenizer has separators of documents of its own.

    Paper: evidence_contrast, appendix B.2.
    Deviation: D-89, sentences are marked [s] and [/s]: <s> and </s> begin and end every input of RoBERTa and its successors.
    """
    vocabulary = tokenizer.get_vocab()
    return {name: OWN[name] if OWN.get(name) in vocabulary else name for name in MARKERS}


def add_markers(tokenizer) -> int:
    """Add the markers of a long input to a tokenizer's vocabulary. Returns: how many are new."""
    return tokenizer.add_special_tokens({"additional_special_tokens": list(markers_of(tokenizer).values())})


@dataclass
class TokenisedContext:
    """One question with as much of its context as fits, as token ids.

    Shapes: ids, is_global (T,); sentences (N,): positions of the markers; evidence (N,) bool; units (N, 2): passage and sentence number;
        starts, ends (T,) bool: where an occurrence of the answer begins and ends; pieces (T,): the text of each token, -1 for none
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

    @property
    def shortest_answer(self) -> int:
        """The tokens of the shortest occurrence of the answer; 0 where there is none."""
        starts, ends = np.flatnonzero(self.starts), np.flatnonzero(self.ends)
        return int((ends[np.searchsorted(ends, starts)] - starts + 1).min()) if len(starts) else 0

    def text(self, start: int, end: int, encode) -> str:
        """The original text from token `start` to token `end`, both of one piece; `encode` gives (start, end) of each token."""
        piece = int(self.pieces[start])
        first = int(np.argmax(self.pieces == piece))
        offsets = encode(self.texts[piece])
        begin, _ = offsets[start - first]
        _, stop = offsets[end - first]
        return self.texts[piece][begin:stop].strip()


class Segment(NamedTuple):
    """Tokens of an input that come one after the other."""

    tokens: Sequence[int]
    piece: int = -1  # the text that they are of, -1 for none
    is_global: bool = False
    unit: tuple[int, int] | None = None  # of the marker of a sentence: its passage and number


class Contexts:
    """Long questions as token ids, each of at most `max_tokens`.

    marked:     [CLS] [q] question [/q] [doc] [t] title [/t] [s] sentence [/s] [s] sentence [/s] ... [/doc] ... [SEP]
    separated:  [CLS] question [SEP] [SEP] paragraph [SEP] paragraph ... [SEP]; the separator before a paragraph is its marker
    A context that is too long is cut at its end, even if evidence is there. `dropped` counts the sentences that are not read: `distractors`
    that were not chosen, and sentences that were cut, `evidence` and `others`.
    Paper: evidence_contrast, section 2 and appendices B.1 and B.2.
    Args:
        form: "marked" (HotpotQA), or "separated" (QASPER).
        kinds: names of the question types, in the order of their numbers.
        distractors: passages (separated: paragraphs) without evidence that are read with those that have some annotator's evidence, chosen
            by a keyed hash of question and number, in the order of the data; None: all.
    Raises: ValueError where no sentence of any question fits.
    Deviation: D-89, D-91, D-96; D-156, the separated form.
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
        require_one_of("form", form, FORMS)
        self.tokenizer = tokenizer
        self.form = form
        self.kinds = tuple(kinds)
        self.max_tokens = max_tokens
        self.distractors = distractors
        self.questions = list(questions)
        self._template = Template.of(tokenizer, 1)
        ids = {name: [tokenizer.convert_tokens_to_ids(token)] for name, token in markers_of(tokenizer).items()}
        self._marker = ids if form == "marked" else {}
        self.dropped = Counter(dict.fromkeys(DROPPED, 0))
        # Of all annotators of a question, who come one by one in training.
        self._evidence = {question.id: set() for question in self.questions}
        for question in self.questions:
            self._evidence[question.id].update(*(answer.evidence for answer in question.answers))
        self.read = [self._read(question) for question in self.questions]
        if not any(len(read.sentences) for read in self.read):
            raise ValueError(
                f"no sentence fits with its question into {max_tokens} tokens, of {len(self.read)} questions"
            )

    def __len__(self):
        return len(self.read)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each question. Shapes: (B,)"""
        return np.array([len(read.ids) for read in self.read])

    def padded(self, numbers: Sequence[int], with_answers: bool = False) -> dict:
        """Some questions as tensors, padded to the longest.

        Returns: input_ids, attention_mask, is_global, in_context, starts, ends (B, T); sentences (B, N): positions, -1 for none; evidence
            (B, N); question, kinds (B,); contrasted (B,): whether the question has an answer and evidence; with `with_answers` the answer's
            ids (B, A), -100 where there is none.
        """
        tokenizer = self.tokenizer
        rows = [self.read[n] for n in numbers]
        width = max(len(row.ids) for row in rows)
        count = max(1, *(len(row.sentences) for row in rows))
        table = {
            "input_ids": stacked([row.ids for row in rows], width, tokenizer.pad_token_id),
            "attention_mask": stacked([np.ones(len(row.ids)) for row in rows], width, 0),
            "is_global": stacked([row.is_global for row in rows], width, 0),
            "in_context": stacked([row.pieces > 0 for row in rows], width, 0).astype(bool),
            "starts": stacked([row.starts for row in rows], width, 0).astype(bool),
            "ends": stacked([row.ends for row in rows], width, 0).astype(bool),
            "sentences": stacked([row.sentences for row in rows], count, -1),
            "evidence": stacked([row.evidence for row in rows], count, 0).astype(bool),
            "question": np.array([row.question for row in rows]),
            "kinds": np.array([row.kind for row in rows]),
            "contrasted": np.array([row.evidence.any() and self.kinds[row.kind] != "unanswerable" for row in rows]),
        }
        if with_answers:
            ids = [np.array(tokenizer(self.questions[n].answers[0].text)["input_ids"]) for n in numbers]
            table["answers"] = stacked(ids, max(map(len, ids)), IGNORED)
        return tensors(table)

    def encode(self, text: str) -> list[tuple[int, int]]:
        """The beginning and the end of each token in a text, in characters."""
        return self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets

    def _read(self, question: LongQuestion) -> TokenisedContext:
        units = [(p, s) for p, passage in enumerate(question.passages) for s in range(len(passage.sentences))]
        texts = [question.text, *(passage.title for passage in question.passages)]
        texts += [question.passages[p].sentences[s] for p, s in units]
        tokens, lengths = tokenized(self.tokenizer.backend_tokenizer, texts)
        pieces = np.split(tokens, lengths.cumsum()[:-1])
        piece_of = {unit: 1 + len(question.passages) + n for n, unit in enumerate(units)}
        chosen = self._chosen(question, units)
        count = len(question.passages)
        by_passage = [[unit for unit in units if unit[0] == p and unit in chosen] for p in range(count)]
        lay_out = self._marked if self.form == "marked" else self._separated
        read = self._joined(lay_out(by_passage, piece_of, pieces), question.answers[0], texts)
        missed = len(question.answers[0].evidence) - int(read.evidence.sum())
        others = len(chosen) - len(read.units) - missed
        self.dropped.update(distractors=len(units) - len(chosen), evidence=missed, others=others)
        return read

    def _chosen(self, question: LongQuestion, units: list) -> set:
        """The units that are read if there is room: those of the groups with evidence, and of some others."""
        # A group is a whole passage, or a single paragraph.
        group_of = {unit: unit[:1] if self.form == "marked" else unit for unit in units}
        gold = {group_of[unit] for unit in self._evidence[question.id]}
        draw = lambda group: text_hash(f"{question.id} {group}", "distractors", size=8)
        others = sorted(set(group_of.values()) - gold, key=draw)
        chosen = gold | set(others[: self.distractors])
        return {unit for unit in units if group_of[unit] in chosen}

    def _marked(self, by_passage: list[list], piece_of: dict, pieces: list) -> list[Segment]:
        marker = self._marker
        segments = [Segment(self._template.special[0], is_global=True), Segment(marker["[q]"], is_global=True)]
        segments += [Segment(pieces[0], 0, is_global=True), Segment(marker["[/q]"], is_global=True)]
        for passage, units in enumerate(by_passage):
            if not units:
                continue
            segments += [Segment(marker["[doc]"]), Segment(marker["[t]"], is_global=True)]
            segments += [Segment(pieces[1 + passage], 1 + passage), Segment(marker["[/t]"])]
            for unit in units:
                segments.append(Segment(marker["[s]"], is_global=True, unit=unit))
                segments += [Segment(pieces[piece_of[unit]], piece_of[unit]), Segment(marker["[/s]"])]
            segments.append(Segment(marker["[/doc]"]))
        return segments

    def _separated(self, by_passage: list[list], piece_of: dict, pieces: list) -> list[Segment]:
        before, after = self._template.special
        segments = [Segment(before, is_global=True), Segment(pieces[0], 0, True), Segment(after, is_global=True)]
        for unit in itertools.chain.from_iterable(by_passage):
            segments.append(Segment(after[:1], is_global=True, unit=unit))
            segments.append(Segment(pieces[piece_of[unit]], piece_of[unit]))
        return segments

    def _joined(self, segments: list[Segment], answer, texts: list[str]) -> TokenisedContext:
        """One input, cut so that the last special tokens fit; a marker with nothing after it marks no sentence."""
        after = self._template.special[1]
        room = self.max_tokens - len(after)
        tokens, pieces, is_global, units = zip(*segments)
        sizes = list(map(len, tokens))
        begins = np.cumsum([0, *sizes]).tolist()
        sentences = {begin: unit for begin, unit in zip(begins, units) if unit and begin < room - 1}
        pieces = np.append(np.repeat(pieces, sizes)[:room], [-1] * len(after))
        starts, ends = np.zeros(len(pieces), bool), np.zeros(len(pieces), bool)
        if answer.kind in ("span", "extractive"):
            for piece in np.unique(pieces[pieces > 0]):
                first, count = int(np.argmax(pieces == piece)), int((pieces == piece).sum())
                for begin, end in occurrences(answer.text, texts[piece], self.encode):
                    if end < count:  # the last text may be cut
                        starts[first + begin] = ends[first + end] = True
        return TokenisedContext(
            ids=np.append(np.concatenate(tokens)[:room], after).astype(np.int64),
            is_global=np.append(np.repeat(is_global, sizes)[:room], [False] * len(after)),
            question=begins[1] if self.form == "marked" else 0,
            sentences=np.array(list(sentences), np.int64),
            evidence=np.array([unit in answer.evidence for unit in sentences.values()], bool),
            units=np.array(list(sentences.values()), np.int64).reshape(-1, 2),
            kind=self.kinds.index(answer.kind),
            starts=starts,
            ends=ends,
            pieces=pieces,
            texts=texts,
        )


def stacked(rows: list[np.ndarray], width: int, filler: int) -> np.ndarray:
    """Rows of different lengths as one table, filled on the right."""
    table = np.full((len(rows), width), filler, np.int64)
    for row, values in zip(table, rows):
        row[: len(values)] = values
    return table


def occurrences(answer: str, text: str, encode) -> list[tuple[int, int]]:
    """First and last token of every occurrence of an answer in a text as whole words, where its script has spaces between words.

    Args:
        encode: text -> (start, end) of each of its tokens.

    Example:
        >>> occurrences("the sea", "By the sea, the seal.", lambda text: [m.span() for m in regex.finditer(r"\\w+|\\W", text)])
        [(2, 4)]
    """
    if not answer or answer not in text:
        return []
    begins, ends = np.array(encode(text)).reshape(-1, 2).T
    before = rf"(?<!{LETTER})" if regex.match(LETTER, answer[0], regex.V1) else ""
    after = rf"(?!{LETTER})" if regex.match(LETTER, answer[-1], regex.V1) else ""
    spans = []
    for match in regex.finditer(before + regex.escape(answer) + after, text, regex.V1):
        covered = np.flatnonzero((ends > match.start()) & (begins < match.end()))
        if len(covered):
            spans.append((int(covered[0]), int(covered[-1])))
    return spans


def form_of(kinds: Sequence[str]) -> str:
    """The form of a data set's contexts: "separated" for QASPER, else "marked"."""
    return "separated" if tuple(kinds) == KINDS["qasper"] else "marked"
