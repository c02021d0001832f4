"""Long inputs: markers and sentences against the tokenizer, what is kept and what is counted, where answers stand."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asutil import evidence, long_inputs
from asutil.evidence import Answer, LongQuestion, Passage
from asutil.long_inputs import Contexts, add_markers

from .conftest import WORDS

KINDS = ("span", "yes", "no")


@pytest.fixture(scope="module")
def marked(tokenizer):
    tokenizer = copy.deepcopy(tokenizer)
    assert add_markers(tokenizer) == len(long_inputs.MARKERS) and add_markers(tokenizer) == 0
    return tokenizer


def made_up(seed=0, passages=4, kind="span", name="q"):
    """A question whose answer is a word of its evidence; sentences of different lengths."""
    draw = np.random.default_rng(seed)
    text = lambda most: " ".join(draw.choice(WORDS, draw.integers(2, most)))
    made = tuple(Passage(text(4), tuple(text(14) for _ in range(draw.integers(1, 5)))) for _ in range(passages))
    units = [(p, s) for p, passage in enumerate(made) for s in range(len(passage.sentences))]
    chosen = frozenset(units[n] for n in draw.choice(len(units), min(2, len(units)), replace=False))
    p, s = min(chosen)
    answer = made[p].sentences[s].split()[0] if kind == "span" else kind
    return LongQuestion(f"{name}{seed}", text(8) + "?", made, (Answer(answer, kind, chosen),))


def ids_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def written_out(tokenizer, question, kept):
    """The marked form as the paper's appendix writes it, a piece at a time."""
    marker = dict(zip(long_inputs.MARKERS, tokenizer.convert_tokens_to_ids(list(long_inputs.MARKERS))))
    found = [tokenizer.cls_token_id, marker["[q]"], *ids_of(tokenizer, question.text), marker["[/q]"]]
    for p, passage in enumerate(question.passages):
        if not any(unit[0] == p for unit in kept):
            continue
        found += [marker["[doc]"], marker["[t]"], *ids_of(tokenizer, passage.title), marker["[/t]"]]
        for sentence in passage.sentences:
            found += [marker["[s]"], *ids_of(tokenizer, sentence), marker["[/s]"]]
        found.append(marker["[/doc]"])
    return [*found, tokenizer.sep_token_id]


@given(seed=st.integers(0, 500))
def test_a_whole_context_is_as_the_appendix_writes_it(marked, seed):
    question = made_up(seed)
    contexts = Contexts(marked, [question], KINDS, 10_000)
    (read,) = contexts.read
    units = [(p, s) for p, passage in enumerate(question.passages) for s in range(len(passage.sentences))]
    assert read.ids.tolist() == written_out(marked, question, units) and contexts.dropped.total() == 0
    assert list(map(tuple, read.units.tolist())) == units
    assert [units[n] in question.answers[0].evidence for n in range(len(units))] == read.evidence.tolist()
    asked, title, sentence = marked.convert_tokens_to_ids(["[q]", "[t]", "[s]"])
    assert read.ids[read.question] == asked and (read.ids[read.sentences] == sentence).all()
    end = read.ids.tolist().index(marked.convert_tokens_to_ids("[/q]"))
    expected = {*range(end + 1), *np.flatnonzero(np.isin(read.ids, [title, sentence]))}
    assert set(np.flatnonzero(read.is_global)) == expected, "the question, titles and sentences see everything"


@given(seed=st.integers(0, 500), room=st.integers(60, 200))
def test_a_context_that_is_too_long_keeps_its_evidence_and_whole_passages(marked, seed, room):
    question = made_up(seed, passages=7)
    units = [(p, s) for p, passage in enumerate(question.passages) for s in range(len(passage.sentences))]
    gold = {p for p, _ in question.answers[0].evidence}
    alone = len(written_out(marked, question, [unit for unit in units if unit[0] in gold]))
    if alone > room:
        with pytest.raises(ValueError, match=f"no question's evidence fits into {room} tokens, of 1 questions"):
            Contexts(marked, [question], KINDS, room)
        return
    contexts = Contexts(marked, [question], KINDS, room)
    (read,), kept = contexts.read, list(map(tuple, contexts.read[0].units.tolist()))
    assert len(read.ids) <= room and read.ids.tolist() == written_out(marked, question, kept)
    assert question.answers[0].evidence <= set(kept) and kept == sorted(kept), "in the order of the data"
    assert contexts.dropped["distractors"] == len(units) - len(kept) and contexts.dropped["evidence"] == 0
    passages = {p for p, _ in kept}
    left = [p for p in range(7) if p not in passages]
    assert all(len(written_out(marked, question, [*kept, *[u for u in units if u[0] == p]])) > room for p in left), "as many as fit"


def test_what_stays_does_not_depend_on_the_other_questions(marked):
    questions = [made_up(seed, passages=7) for seed in range(12)]
    together = Contexts(marked, questions, KINDS, 150)
    for read, question in zip(together.read, together.questions):
        assert (Contexts(marked, [question], KINDS, 150).read[0].ids == read.ids).all()
    assert together.dropped["questions"] == 12 - len(together) and together.dropped["distractors"] > 0


def test_the_separated_form_has_a_separator_before_each_paragraph(tokenizer):
    question = made_up(3, kind="yes")
    (read,) = Contexts(tokenizer, [question], ("extractive", "abstractive", "yes", "no", "unanswerable"), 10_000, "separated").read
    sep, expected = tokenizer.sep_token_id, [tokenizer.cls_token_id, *ids_of(tokenizer, question.text), tokenizer.sep_token_id]
    for passage in question.passages:
        for paragraph in passage.sentences:
            expected += [sep, *ids_of(tokenizer, paragraph)]
    assert read.ids.tolist() == [*expected, sep]
    assert read.question == 0 and (read.ids[read.sentences] == sep).all()
    assert not read.starts.any(), "yes stands nowhere"


@given(seed=st.integers(0, 300))
def test_every_place_of_the_answer_is_found_and_reads_as_the_answer(marked, seed):
    question = made_up(seed)
    contexts = Contexts(marked, [question], KINDS, 10_000)
    (read,), answer = contexts.read, question.answers[0].text
    texts = [passage.title for passage in question.passages] + [text for passage in question.passages for text in passage.sentences]
    assert read.starts.sum() == read.ends.sum() == sum(text.split().count(answer) for text in texts) > 0
    for start, end in zip(np.flatnonzero(read.starts), np.flatnonzero(read.ends)):
        assert read.text(int(start), int(end), contexts.encode) == answer


def test_an_answer_within_a_word_is_no_answer(marked):
    passage = Passage("a title", ("forestry is no forest, and forest-like", "the FOREST"))
    question = LongQuestion("q", "which?", (passage,), (Answer("forest", "span", frozenset({(0, 0)})),))
    contexts = Contexts(marked, [question], KINDS, 500)
    (read,) = contexts.read
    assert read.starts.sum() == 2
    found = [read.text(int(a), int(b), contexts.encode) for a, b in zip(np.flatnonzero(read.starts), np.flatnonzero(read.ends))]
    assert found == ["forest", "forest"]


def test_text_that_spells_a_marker_is_text(marked):
    passage = Passage("t", ("a sentence with [/s] [s] in it",))
    question = LongQuestion("q", "[q] what?", (passage,), (Answer("yes", "yes", frozenset({(0, 0)})),))
    (read,) = Contexts(marked, [question], KINDS, 500).read
    markers = marked.convert_tokens_to_ids(["[q]", "[s]", "[/s]"])
    assert [int((read.ids == marker).sum()) for marker in markers] == [1, 1, 1]


def test_unknown_forms_are_refused(tokenizer):
    with pytest.raises(ValueError, match="form: one of marked, separated expected, got 'plain'"):
        Contexts(tokenizer, [made_up()], KINDS, 500, "plain")


@pytest.mark.mirror
def test_every_supporting_fact_of_the_mirrored_examples_survives(mirror):
    from asutil import encoders

    tokenizer = encoders.load_tokenizer("ibm-granite/granite-embedding-30m-english")
    add_markers(tokenizer)
    sides, seen = evidence.load_evidence("hotpotqa"), 0
    for questions in (sides["train"], sides["dev"]):
        contexts = Contexts(tokenizer, questions, KINDS, 100_000)
        assert len(contexts) == len(questions) and contexts.dropped.total() == 0
        for question, read in zip(contexts.questions, contexts.read):
            assert set(map(tuple, read.units[read.evidence].tolist())) == question.answers[0].evidence
            ends = np.flatnonzero(read.ids == tokenizer.convert_tokens_to_ids("[/s]"))
            for place, (p, s) in zip(read.sentences[read.evidence], read.units[read.evidence]):
                inside = read.ids[place + 1 : ends[ends > place][0]].tolist()
                assert tokenizer.decode(inside).strip() == question.passages[p].sentences[s].strip()
                seen += 1
    assert seen > 800
