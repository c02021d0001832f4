"""Metrics of answers and evidence against cases worked by hand from the official definitions, slow loops, torchmetrics and laws."""

import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asutil.data.qasper import FLOAT
from asutil.io import hub
from asutil.metrics import answers, significance

# ------------------------------------------------------------------ the definitions again, letter by letter and word by word


def slow_words(text):
    """Lower case, ASCII punctuation out, then runs of letters and digits that are articles become a space."""
    kept = [c for c in text.lower() if c not in string.punctuation]
    out, run = "", ""
    for c in [*kept, None]:
        if c is not None and (c.isalnum() or c == "_"):
            run += c
        else:
            out, run = out + (" " if run in ("a", "an", "the") else run) + (c or ""), ""
    return out.split()


def slow_overlap(predicted, right):
    """F1, precision, recall: every predicted item takes an equal one away."""
    left, shared = list(right), 0
    for item in predicted:
        if item in left:
            left.remove(item)
            shared += 1
    if not shared:
        return 0.0, 0.0, 0.0
    precision, recall = shared / len(predicted), shared / len(right)
    return 2 / (1 / precision + 1 / recall), precision, recall


def slow_f1(prediction, gold):
    ours, theirs = slow_words(prediction), slow_words(gold)
    for word in ("yes", "no", "noanswer"):
        if ([word] in (ours, theirs)) and ours != theirs:
            return 0.0, 0.0, 0.0
    return slow_overlap(ours, theirs)


def slow_hotpotqa(said, facts, golds):
    """HotpotQA's script on its two tables of predictions, answers and facts by question."""
    total = dict.fromkeys(answers.HOTPOTQA, 0.0)
    for question, (answer, gold_facts) in golds.items():
        one = {}
        if question in said:
            one["em"] = float(slow_words(said[question]) == slow_words(answer))
            one["f1"], one["prec"], one["recall"] = slow_f1(said[question], answer)
        if question in facts:
            hits = sum(fact in gold_facts for fact in facts[question])
            extra, lost = len(facts[question]) - hits, len(gold_facts) - hits
            p = one["sp_prec"] = hits / (hits + extra) if hits + extra else 0.0
            r = one["sp_recall"] = hits / (hits + lost) if hits + lost else 0.0
            one["sp_f1"] = 2 * p * r / (p + r) if p + r else 0.0
            one["sp_em"] = float(extra + lost == 0)
        if question in said and question in facts:
            one["joint_em"] = one["em"] * one["sp_em"]
            p, r = one["joint_prec"], one["joint_recall"] = one["prec"] * one["sp_prec"], one["recall"] * one["sp_recall"]
            one["joint_f1"] = 2 * p * r / (p + r) if p + r else 0.0
        for name, value in one.items():
            total[name] += value
    return {name: value / len(golds) for name, value in total.items()}


def slow_qasper(predictions, golds):
    """QASPER's evaluator: the best of the references, the earliest of equals gives the type."""
    of_answer, of_evidence, by_type = [], [], {"extractive": [], "abstractive": [], "boolean": [], "none": []}
    for question, references in golds.items():
        best, evidence = (-1.0, None), -1.0
        for text, kind, units in references:
            if question not in predictions:
                continue
            official = {"yes": ("Yes", "boolean"), "no": ("No", "boolean"), "unanswerable": ("Unanswerable", "none")}.get(
                kind, (text, kind)
            )
            units = [] if kind == "unanswerable" else units
            value = slow_overlap(slow_words(predictions[question][0]), slow_words(official[0]))[0]
            if value > best[0]:
                best = (value, official[1])
            chosen = predictions[question][1]
            evidence = max(evidence, slow_overlap(sorted(chosen), sorted(units))[0] if chosen or units else 1.0)
        of_answer.append(max(best[0], 0.0))
        of_evidence.append(max(evidence, 0.0))
        if best[1]:
            by_type[best[1]].append(best[0])
    named = {f"answer_f1_{kind}": sum(values) / len(values) if values else 0.0 for kind, values in by_type.items()}
    return {"answer_f1": sum(of_answer) / len(of_answer), "evidence_f1": sum(of_evidence) / len(of_evidence), **named}


# ------------------------------------------------------------------ one answer against one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Beatles", "beatles"),
        ("the", ""),
        ("A, an; the!", ""),
        ("", ""),
        ("?!...", ""),
        ("an-a", "ana"),  # punctuation goes first: no article is left
        ("The-end", "theend"),
        ("theatre, another bath", "theatre another bath"),
        ("U.S.A.", "usa"),
        ("$1,000.50", "100050"),
        ("a b a", "b"),
        ("  two\t\n words ", "two words"),
        ("two\u00a0words", "two words"),  # a space of any alphabet
        ("“The End”", "“ end”"),  # curly quotation marks stay, the article between one and a space goes
        ("x“a”y", "x“ ”y"),  # an article leaves a space behind
        ("Ärger_über", "ärgerüber"),
        ("Yes.", "yes"),
    ],
)
def test_normalised_by_hand(text, expected):
    assert answers.normalised(text) == expected
    assert slow_words(text) == expected.split()


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "expected", "of_words"),
    [
        # shared 2 of 3 predicted and of 2 right: P 2/3, R 1, F1 = 2 (2/3) / (5/3) = 4/5
        ("the red big house", "A big house!", False, (0.8, 2 / 3, 1.0), None),
        ("big house", "the red big house", False, (0.8, 1.0, 2 / 3), None),
        ("same", "Same.", True, (1.0, 1.0, 1.0), None),
        ("word word word", "word", False, (0.5, 1 / 3, 1.0), None),  # a word is shared as often as the text that has it less often
        ("word x word", "word word", False, (0.8, 2 / 3, 1.0), None),
        ("b a", "a b", True, (1.0, 1.0, 1.0), None),  # the article is gone
        ("two one", "one two", False, (1.0, 1.0, 1.0), None),  # the order matters to EM alone
        ("left", "right", False, (0.0, 0.0, 0.0), None),
        ("", "", True, (0.0, 0.0, 0.0), None),  # both empty: the same, but no word is shared
        ("the", "An", True, (0.0, 0.0, 0.0), None),
        ("", "house", False, (0.0, 0.0, 0.0), None),
        ("house", "the", False, (0.0, 0.0, 0.0), None),
        ("yes", "Yes!", True, (1.0, 1.0, 1.0), None),
        ("yes", "no", False, (0.0, 0.0, 0.0), None),
        ("No", "no one", False, (0.0, 0.0, 0.0), (2 / 3, 1.0, 0.5)),  # HotpotQA's rule, either way round
        ("no one", "No", False, (0.0, 0.0, 0.0), (2 / 3, 0.5, 1.0)),
        ("yes, they are", "yes", False, (0.0, 0.0, 0.0), (0.5, 1 / 3, 1.0)),
        ("noanswer", "noanswer given", False, (0.0, 0.0, 0.0), (2 / 3, 1.0, 0.5)),
        ("no answer", "noanswer", False, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ("", "yes", False, (0.0, 0.0, 0.0), None),
        ("yes no", "no yes", False, (1.0, 1.0, 1.0), None),  # neither is exactly one of the three
        ("The Yes", "yes", True, (1.0, 1.0, 1.0), None),
    ],
)
def test_one_answer_by_hand(prediction, gold, em, expected, of_words):
    assert answers.exact_match(prediction, gold) is em
    assert answers.f1(prediction, gold) == pytest.approx(expected)
    assert answers.token_f1(prediction, gold) == pytest.approx(of_words or expected)
    assert slow_f1(prediction, gold) == pytest.approx(expected)


def test_equals_torchmetrics():
    text = pytest.importorskip("torchmetrics.text")
    rng = np.random.default_rng(3)
    words = ["the", "Red", "red,", "house", "a", "U.S.", "yes", "no", "1990s", "an"]
    drawn = [" ".join(rng.choice(words, size=rng.integers(1, 6))) for _ in range(100)]
    agree = [
        t for t in drawn if answers.normalised(t) not in {"", *answers.INDIVISIBLE}
    ]  # it takes two empty answers as F1 1, and has no such rule
    golds = rng.permutation(agree)
    metric = text.SQuAD()
    for i, (prediction, gold) in enumerate(zip(agree, golds)):
        reference = [{"answers": {"answer_start": [0], "text": [str(gold)]}, "id": str(i)}]
        found = metric([{"prediction_text": prediction, "id": str(i)}], reference)
        em, f1 = answers.exact_match(prediction, gold), answers.f1(prediction, gold)[0]
        assert (float(found["exact_match"]), float(found["f1"])) == pytest.approx((100 * em, 100 * f1), abs=1e-4)
    whole = answers.hotpotqa({i: (p, set()) for i, p in enumerate(agree)}, {i: (str(g), set()) for i, g in enumerate(golds)})
    total = metric.compute()
    assert (whole.means["em"] * 100, whole.means["f1"] * 100) == pytest.approx([float(total[n]) for n in ("exact_match", "f1")], abs=1e-3)
    assert 0.02 < whole.means["f1"] < 0.98 and len(agree) > 70


WORDS = ["a", "the", "An", "yes", "No", "noanswer", "red", "house", "red.", "U.S.", "-", "“the”", "ß"]
phrases = st.one_of(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), st.text(max_size=12))


@given(phrases, phrases)
def test_laws_of_one_answer(one, other):
    assert answers.normalised(one).split() == slow_words(one)
    assert answers.normalised(answers.normalised(one)) == answers.normalised(one)
    for measure in (answers.f1, answers.token_f1):
        (f1, precision, recall), swapped = measure(one, other), measure(other, one)
        assert swapped == pytest.approx((f1, recall, precision))
        assert 0 <= min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12 <= 1 + 1e-9 or f1 == precision == recall == 0
    assert answers.f1(one, other) == pytest.approx(slow_f1(one, other))
    assert answers.f1(one, other)[0] in (0.0, answers.token_f1(one, other)[0])
    same, empty = answers.exact_match(one, other), not answers.normalised(one)
    assert same == answers.exact_match(other, one)
    if same:
        assert answers.f1(one, other)[0] == (0.0 if empty else 1.0)
    assert answers.exact_match(one, one) and answers.exact_match(f"the {one}", one)


# ------------------------------------------------------------------ HotpotQA


def test_hotpotqa_by_hand():
    golds = {
        "all": ("the Nile", {(0, 1), (2, 0)}),
        "part": ("red house", {(0, 0), (0, 1), (1, 0)}),
        "type": ("no one", {(4, 4)}),
        "unsaid": ("", {(1, 1)}),  # a missing answer is not an empty one
        "no facts": ("yes", set()),  # nor are missing facts an empty set
        "nothing": ("no", {(1, 1)}),
        "without": ("", set()),
        "chose none": ("no", {(3, 3)}),
    }
    predictions = {
        "all": ("Nile", [[2, 0], [0, 1]]),  # lists, as JSON has them, in another order
        "part": ("house", {(0, 0), (5, 5)}),
        "type": ("no", {(4, 4)}),
        "unsaid": (None, {(1, 1)}),
        "no facts": ("Yes", None),
        "without": ("", set()),
        "chose none": ("no", []),
        "never asked": ("x", {(0, 0)}),
    }
    found = answers.hotpotqa(predictions, golds)
    zero, one = [0.0] * 4, [1.0] * 4
    expected = {
        "all": [*one, *one, *one],
        # answer: P 1, R 1/2, F1 2/3; facts: P 1/2, R 1/3, F1 2/5; joint: P 1/2, R 1/6, F1 = 2 (1/12) / (2/3) = 1/4
        "part": [0, 2 / 3, 1, 1 / 2, 0, 2 / 5, 1 / 2, 1 / 3, 0, 1 / 4, 1 / 2, 1 / 6],
        "type": [*zero, *one, *zero],
        "unsaid": [*zero, *one, *zero],
        "no facts": [*one, *zero, *zero],
        "nothing": [*zero, *zero, *zero],
        "without": [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],  # empty against empty: EM alone
        "chose none": [*one, *zero, *zero],
    }
    table = found.per_question.set_index("question_id")
    assert list(table.index) == list(golds) and tuple(table.columns) == answers.HOTPOTQA
    for question, values in expected.items():
        assert table.loc[question].tolist() == pytest.approx(values), question
    assert found.means == pytest.approx(dict(zip(answers.HOTPOTQA, np.mean(list(expected.values()), axis=0))))
    assert found.counts == {"questions": 8, "missing_answers": 2, "missing_facts": 2}
    assert found.record() == {**found.means, **found.counts}


def test_facts_may_be_named_by_titles_and_repeated():
    gold = {"q": ("x", [("Nile", 0), ("Nile", 3)])}
    found = answers.hotpotqa({"q": ("x", [["Nile", 0], ["Nile", 0], ["nile", 3]])}, gold)  # a set of two, one right
    assert (found.means["sp_prec"], found.means["sp_recall"], found.means["sp_em"]) == (0.5, 0.5, 0.0)


facts = st.frozensets(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=4)
names = st.sampled_from("abcdef")


@settings(max_examples=40)
@given(st.dictionaries(names, st.tuples(phrases, facts), min_size=1), st.dictionaries(names, phrases), st.dictionaries(names, facts))
def test_hotpotqa_equals_a_slow_loop_and_its_laws(golds, said, chosen):
    predictions = {q: (said.get(q), chosen.get(q)) for q in {*said, *chosen}}
    found = answers.hotpotqa(predictions, golds)
    assert found.means == pytest.approx(slow_hotpotqa(said, chosen, golds))
    assert found.counts["missing_answers"] == len(set(golds) - set(said))
    assert found.counts["missing_facts"] == len(set(golds) - set(chosen))
    table = found.per_question
    assert table[list(answers.HOTPOTQA)].min(axis=None) >= 0 and table[list(answers.HOTPOTQA)].max(axis=None) <= 1
    for name in ("em", "prec", "recall", "f1"):
        assert (table[f"joint_{name}"] <= table[[name, f"sp_{name}"]].min(axis=1) + 1e-12).all()
    backwards = answers.hotpotqa(dict(reversed(predictions.items())), dict(reversed(golds.items())))
    assert backwards.means == pytest.approx(found.means)
    assert list(backwards.per_question.question_id) == list(golds)[::-1]
    perfect = answers.hotpotqa(golds, golds).per_question
    assert (perfect.em == 1).all() and (perfect.sp_em == 1).all() and (perfect.joint_em == 1).all()


# ------------------------------------------------------------------ QASPER


def test_paragraphs_by_hand():
    assert answers.paragraph_f1([], set()) == 1.0
    assert answers.paragraph_f1(["p"], []) == answers.paragraph_f1([], ["p"]) == answers.paragraph_f1(["p"], ["q"]) == 0.0
    assert answers.paragraph_f1({"p", "q"}, ["q", "r", "s"]) == pytest.approx(0.4)  # P 1/2, R 1/3
    assert answers.paragraph_f1(["p", "p"], ["p"]) == pytest.approx(2 / 3)  # the list's length: P 1/2, R 1
    assert answers.paragraph_f1({(0, 1)}, {(0, 1)}) == answers.paragraph_f1(np.array(["p"]), np.array(["p"])) == 1.0


QASPER = {
    "two": [("red house", "extractive", ["p1", "p2"]), ("a small red boat", "abstractive", ["p3"])],
    "yes": [("", "yes", ["p1"]), ("", "unanswerable", ["p9"])],
    "none": [("", "unanswerable", []), ("", "no", ["p1"])],
    "tie": [("green", "abstractive", ["p1"]), ("green", "extractive", ["p1"])],
    "nothing": [("green", "abstractive", ["p1"])],
    "float": [("42", "extractive", ["FLOAT SELECTED: Table 1", "p1"]), ("7", "extractive", ["p4"])],
    "empty": [("The", "extractive", ["p1"])],
}
SAID = {
    # extractive: P 1/3, R 1/2, F1 2/5; abstractive: P 2/3, R 2/3, F1 2/3; evidence: the first with P 1, R 1/2, F1 2/3
    "two": ("small red car", ["p1"]),
    "yes": ("Yes, it is", []),  # against Yes: P 1/3, R 1, F1 1/2: no rule of yes and no here; evidence: none against the second's none
    "none": ("unanswerable", ["p1"]),
    "tie": ("Green!", ["p2"]),  # both 1: the first is the type
    "float": ("42", ["p1"]),
    "empty": ("", ["p1"]),  # no words in either text: 0
    "never asked": ("x", []),
}


def test_qasper_by_hand():
    found = answers.qasper(SAID, QASPER)
    expected = {
        "two": (2 / 3, 2 / 3, "abstractive"),
        "yes": (0.5, 1.0, "boolean"),
        "none": (1.0, 1.0, "none"),
        "tie": (1.0, 0.0, "abstractive"),
        "nothing": (0.0, 0.0, None),
        "float": (1.0, 2 / 3, "extractive"),  # P 1, R 1/2
        "empty": (0.0, 1.0, "extractive"),
    }
    table = found.per_question.set_index("question_id")
    assert list(table.index) == list(QASPER)
    for question, (of_answer, of_evidence, kind) in expected.items():
        row = table.loc[question]
        assert (row.answer_f1, row.evidence_f1) == pytest.approx((of_answer, of_evidence)) and (
            row.type == kind or (kind is None and pd.isna(row.type))
        ), question
    assert found.means == pytest.approx(
        {
            "answer_f1": (2 / 3 + 0.5 + 1 + 1 + 0 + 1 + 0) / 7,
            "evidence_f1": (2 / 3 + 1 + 1 + 0 + 0 + 2 / 3 + 1) / 7,
            "answer_f1_extractive": 0.5,
            "answer_f1_abstractive": (2 / 3 + 1) / 2,  # the missing one is of no type
            "answer_f1_boolean": 0.5,
            "answer_f1_none": 1.0,
        }
    )
    of_types = {"questions_extractive": 2, "questions_abstractive": 2, "questions_boolean": 1, "questions_none": 1}
    assert found.counts == {"questions": 7, "missing": 1, **of_types}
    assert found.record() == {**found.means, **found.counts}


def test_tables_and_figures_count_as_evidence():
    per_question = answers.qasper(SAID, QASPER).per_question.set_index("question_id")
    assert per_question.evidence_f1["float"] == pytest.approx(2 / 3)
    table_alone = {"q": [("42", "extractive", ["the FLOAT SELECTED: Table 1"])]}
    assert answers.qasper({"q": ("42", [])}, table_alone).means["evidence_f1"] == 0.0
    numbers = {"q": [("42", "extractive", {(0, 1), (2, 2)})]}
    assert answers.qasper({"q": ("42", {(0, 1)})}, numbers).means["evidence_f1"] == pytest.approx(2 / 3)


def test_a_type_without_questions_counts_0():
    found = answers.qasper({"q": ("no", [])}, {"q": [("", "no", [])]})
    assert found.means["answer_f1_none"] == 0.0 and found.counts["questions_none"] == 0 and found.means["answer_f1_boolean"] == 1.0


units = st.lists(st.sampled_from("pqrs"), max_size=3, unique=True)
kinds = st.sampled_from(list(answers.TYPES))
references = st.lists(st.tuples(phrases, kinds, units), min_size=1, max_size=3)


@settings(max_examples=40)
@given(st.dictionaries(names, references, min_size=1), st.dictionaries(names, st.tuples(st.one_of(phrases, st.just("Yes")), units)))
def test_qasper_equals_a_slow_loop_and_its_laws(golds, predictions):
    found = answers.qasper(predictions, golds)
    assert found.means == pytest.approx(slow_qasper(predictions, golds))
    assert found.counts["missing"] == len(set(golds) - set(predictions)) == int(found.per_question.type.isna().sum())
    shuffled = answers.qasper(predictions, {q: golds[q][::-1] for q in reversed(golds)})
    fewer = answers.qasper(predictions, {q: golds[q][:1] for q in golds})
    for name in ("answer_f1", "evidence_f1"):  # the order of references says nothing, and another one never hurts
        assert shuffled.means[name] == pytest.approx(found.means[name])
        assert 0 <= fewer.means[name] <= found.means[name] + 1e-12 <= 1 + 1e-11


# ------------------------------------------------------------------ what comes in wrong, and what goes on


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: answers.hotpotqa({}, {}), "golds: at least one question expected"),
        (lambda: answers.qasper({}, {}), "golds: at least one question expected"),
        (lambda: answers.hotpotqa({"q": (3, set())}, {"q": ("x", set())}), "question 'q': an answer is text, got 3"),
        (lambda: answers.hotpotqa({"q": ("x", set())}, {"q": (None, set())}), "question 'q': an answer is text, got None"),
        (lambda: answers.hotpotqa({"q": ("x", {4})}, {"q": ("x", set())}), "question 'q': a supporting fact is a pair .* got 4"),
        (lambda: answers.hotpotqa({"q": ("x", ["ab"])}, {"q": ("x", set())}), "pair .* got 'ab'"),
        (lambda: answers.hotpotqa({"q": ("x", [(1, 2, 3)])}, {"q": ("x", set())}), r"pair .* got \(1, 2, 3\)"),
        (lambda: answers.hotpotqa({"q": ("x", set())}, {"q": ("x", 7)}), "question 'q': evidence is a list or a set, got 7"),
        (lambda: answers.qasper({"q": ("x", "p1")}, {"q": [("x", "yes", [])]}), "question 'q': evidence is a list or a set, got 'p1'"),
        (lambda: answers.qasper({"q": ("x", [])}, {"q": [("x", "extractive", "p1")]}), "question 'q': evidence is a list or a set"),
        (lambda: answers.qasper({"q": (None, [])}, {"q": [("x", "extractive", [])]}), "question 'q': an answer is text, got None"),
        (lambda: answers.qasper({}, {"q": []}), "question 'q': at least one reference expected"),
        (lambda: answers.qasper({}, {"q": [("x", "span", [])]}), "question 'q': kind is one of extractive, .*; got 'span'"),
    ],
)
def test_errors_say_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_row_a_question_goes_into_the_bootstrap():
    golds = {f"q{i}": (f"word{i}", {(0, i)}) for i in range(40)}
    ours, theirs = ({q: (a, f) if int(q[1:]) % step else ("x", set()) for q, (a, f) in golds.items()} for step in (10, 2))
    values = [answers.hotpotqa(system, golds).per_question.set_index("question_id").joint_f1 for system in (ours, theirs)]
    found = significance.paired_bootstrap(*values, draws=500)
    assert found.difference == pytest.approx(36 / 40 - 20 / 40) and found.sign == 1


def test_facts_may_be_a_zip_of_titles_and_sentences():
    zipped = lambda: zip(["mill", "sea"], [0, 2])
    found = (
        answers.hotpotqa({"q": ("x", zipped())}, {"q": ("x", zipped())}),
        answers.hotpotqa({"q": ("x", [("mill", 1)])}, {"q": ("x", zipped())}),
    )
    assert [one.means["sp_f1"] for one in found] == [1, 0]


@pytest.mark.mirror
def test_gold_against_itself_on_real_data(mirror):
    table = pd.read_parquet(hub.mirror("hotpotqa/hotpot_qa") / "validation.parquet")
    facts = [set(zip(one["title"], one["sent_id"])) for one in table.supporting_facts]
    golds = dict(enumerate(zip(table.answer, facts)))
    assert set(answers.hotpotqa(golds, golds).per_question.drop(columns="question_id").stack()) == {1.0}
    guessed = answers.hotpotqa({i: ("yes", chosen) for i, (_, chosen) in golds.items()}, golds).means  # yes is right or worth nothing
    assert guessed["em"] == guessed["f1"] == guessed["joint_f1"] == (table.answer == "yes").mean()
    papers = pd.read_parquet(hub.mirror("allenai/qasper") / "validation.parquet").qas
    golds = {}
    for paper in papers:
        for i, given_ in zip(paper["question_id"], paper["answers"]):
            golds[i] = [_reference(one) for one in given_["answer"]]
    first = {
        i: (answers.FIXED_TEXTS.get(kind, text), [unit for unit in units if FLOAT not in unit])
        for i, ((text, kind, units), *_) in golds.items()
    }
    exact = answers.qasper(first, golds)
    assert (exact.per_question.evidence_f1 < 1).sum() == sum(any(FLOAT in u for u in one[0][2]) for one in golds.values()) > 0
    assert set(exact.per_question.answer_f1[[bool(slow_words(first[i][0])) for i in golds]]) == {1.0}


def _reference(one):
    """What the official evaluator reads of one annotator's answer."""
    if one["unanswerable"]:
        return "", "unanswerable", []
    units = list(one["evidence"])
    if len(one["extractive_spans"]):
        return ", ".join(one["extractive_spans"]), "extractive", units
    if one["free_form_answer"]:
        return one["free_form_answer"], "abstractive", units
    return "", "yes" if one["yes_no"] else "no", units
