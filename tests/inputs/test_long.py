"""Long inputs: markers and sentences against the tokenizer, what is kept and what is counted, where answers stand."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asutil.data import long_questions
from asutil.data.long_questions import Answer, LongQuestion, Passage, an_answer_each
from asutil.inputs import long as long_inputs
from asutil.inputs.long import Contexts, add_markers

from ..conftest import WORDS

KINDS, QASPER = long_questions.KINDS["hotpotqa"], long_questions.KINDS["qasper"]


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


def of_other_evidence(question):
    """The same question, of which other sentences are evidence, and nothing else."""
    units = [(p, s) for p, passage in enumerate(question.passages) for s in range(len(passage.sentences))]
    others = frozenset(set(units) - question.answers[0].evidence)
    return replace(question, answers=(replace(question.answers[0], evidence=others),))


@given(seed=st.integers(0, 500), room=st.integers(20, 200))
def test_a_context_that_is_too_long_is_cut_at_its_end_wherever_its_evidence_is(marked, seed, room):
    question = made_up(seed, passages=7)
    units = [(p, s) for p, passage in enumerate(question.passages) for s in range(len(passage.sentences))]
    whole = written_out(marked, question, units)
    expected = whole if len(whole) <= room else [*whole[: room - 1], marked.sep_token_id]
    starts = [place for place in np.flatnonzero(np.array(whole) == marked.convert_tokens_to_ids("[s]")) if place < len(expected) - 2]
    contexts, other = (Contexts(marked, [one], KINDS, room) for one in (question, of_other_evidence(question)))
    (read,), evidence = contexts.read, question.answers[0].evidence
    assert read.ids.tolist() == expected == other.read[0].ids.tolist(), "gold decides nothing"
    assert read.sentences.tolist() == starts and list(map(tuple, read.units.tolist())) == units[: len(starts)]
    assert read.evidence.tolist() == [unit in evidence for unit in units[: len(starts)]] == (~other.read[0].evidence).tolist()
    lost = units[len(starts) :]
    assert contexts.dropped == {"distractors": 0, "evidence": len(evidence & set(lost)), "others": len(set(lost) - evidence)}
    assert not read.starts[len(expected) - 1] and (read.ends.sum() <= read.starts.sum())
    for start, end in zip(np.flatnonzero(read.starts), np.flatnonzero(read.ends)):
        assert read.text(int(start), int(end), contexts.encode) == question.answers[0].text, "an answer that is cut is none"


@given(seed=st.integers(0, 500), count=st.integers(0, 6))
def test_distractors_are_chosen_without_a_look_at_what_they_say(marked, seed, count):
    question = made_up(seed, passages=7)
    gold = {p for p, _ in question.answers[0].evidence}
    contexts = Contexts(marked, [question], KINDS, 10_000, distractors=count)
    (read,) = contexts.read
    units, passages = list(map(tuple, read.units.tolist())), {p for p, _ in read.units.tolist()}
    assert read.ids.tolist() == written_out(marked, question, units) and units == sorted(units), "in the order of the data"
    assert gold <= passages and len(passages) == min(7, len(gold) + count)
    assert units == [(p, s) for p in sorted(passages) for s in range(len(question.passages[p].sentences))], "whole passages"
    rest = sum(len(passage.sentences) for p, passage in enumerate(question.passages) if p not in passages)
    assert contexts.dropped == {"distractors": rest, "evidence": 0, "others": 0}
    fewer = Contexts(marked, [question], KINDS, 10_000, distractors=max(count - 1, 0)).read[0]
    assert set(map(tuple, fewer.units.tolist())) <= set(units), "one more is added to those before"


def test_distractors_differ_from_question_to_question(marked):
    question = made_up(3, passages=7)
    gold = {p for p, _ in question.answers[0].evidence}
    found = set()
    for n in range(40):
        (read,) = Contexts(marked, [replace(question, id=f"q{n}")], KINDS, 10_000, distractors=1).read
        found |= {p for p, _ in read.units.tolist()} - gold
    assert found == set(range(7)) - gold


def test_distractors_of_qasper_are_paragraphs_beside_the_evidence_of_every_annotator(tokenizer):
    passage = Passage("Intro", tuple(f"{word} and {word}" for word in WORDS[:9]))
    first, second = Answer("river", "extractive", frozenset({(0, 3)})), Answer("yes", "yes", frozenset({(0, 7)}))
    question = LongQuestion("q", "what?", (passage,), (first, second))
    contexts = Contexts(tokenizer, [question], QASPER, 500, "separated", distractors=2)
    units = set(map(tuple, contexts.read[0].units.tolist()))
    assert {(0, 3), (0, 7)} < units and len(units) == 4 and contexts.dropped["distractors"] == 5
    one_by_one = Contexts(tokenizer, an_answer_each([question]), QASPER, 500, "separated", distractors=2)  # as in training
    assert [set(map(tuple, read.units.tolist())) for read in one_by_one.read] == [units, units]
    assert [int(read.evidence.sum()) for read in one_by_one.read] == [1, 1]


def test_what_stays_does_not_depend_on_the_other_questions(marked):
    questions = [made_up(seed, passages=7) for seed in range(12)]
    together = Contexts(marked, questions, KINDS, 150, distractors=3)
    for read, question in zip(together.read, questions, strict=True):
        assert (Contexts(marked, [question], KINDS, 150, distractors=3).read[0].ids == read.ids).all()
    assert together.questions == questions and min(together.dropped.values()) > 0


def test_a_question_that_fills_its_input_has_no_sentence(marked):
    long = replace(made_up(1), text=" ".join(WORDS * 4))
    contexts = Contexts(marked, [long, made_up(2)], KINDS, 60)
    assert len(contexts.read[0].ids) == 60 and not len(contexts.read[0].sentences)
    with pytest.raises(ValueError, match="no sentence fits with its question into 60 tokens, of 1 questions"):
        Contexts(marked, [long], KINDS, 60)


def test_a_tokenizer_with_separators_of_documents_marks_with_them(tokenizer):
    """CDLM was pre-trained with <doc-s> and </doc-s>: nothing is put in their place."""
    own = copy.deepcopy(tokenizer)
    own.add_special_tokens({"additional_special_tokens": ["<doc-s>", "</doc-s>"]})
    known = own.convert_tokens_to_ids(["<doc-s>", "</doc-s>"])
    assert add_markers(own) == len(long_inputs.MARKERS) - 2 == 6 and add_markers(own) == 0
    assert not {"[doc]", "[/doc]"} & set(own.get_vocab()) and own.convert_tokens_to_ids(["<doc-s>", "</doc-s>"]) == known
    plain, question = copy.deepcopy(tokenizer), made_up(5)
    add_markers(plain)
    (read,), (other,) = (Contexts(one, [question], KINDS, 1000).read for one in (own, plain))
    assert [int((read.ids == marker).sum()) for marker in known] == [4, 4] and len(read.ids) == len(other.ids)
    names = [own.convert_ids_to_tokens(read.ids.tolist()), plain.convert_ids_to_tokens(other.ids.tolist())]
    named = {"<doc-s>": "[doc]", "</doc-s>": "[/doc]"}
    assert [named.get(name, name) for name in names[0]] == names[1]


def test_the_separated_form_has_a_separator_before_each_paragraph(tokenizer):
    question = made_up(3, kind="yes")
    (read,) = Contexts(tokenizer, [question], QASPER, 10_000, "separated").read
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


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("東京", "首都は東京です。東京", [(3, 4), (8, 9)]),
        ("3", "第3章、13頁と3", [(1, 1), (8, 8)]),
        ("ขา", "ขาว", [(0, 1)]),
        ("NHK", "日本のNHKとNHKs", [(3, 5)]),
        ("नद", "नदी नद", [(4, 5)]),
        ("10", "10⁶, 10", [(5, 6)]),
    ],
)
def test_scripts_without_spaces_have_answers_between_any_two_characters(answer, text, expected):
    """Counted by hand, a token a character."""
    assert long_inputs.occurrences(answer, text, lambda text: [(n, n + 1) for n in range(len(text))]) == expected


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
    from asutil.corpus import tokenizers

    tokenizer = tokenizers.load_tokenizer("ibm-granite/granite-embedding-30m-english")
    add_markers(tokenizer)
    sides, seen = long_questions.load_evidence("hotpotqa"), 0
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
