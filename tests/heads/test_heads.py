"""Heads on pooled pairs, the question-evidence loss and its projections: against loops, by hand, finite differences, laws."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asutil import losses
from asutil.heads import POOLED, QuestionTypeProjection, Siamese
from asutil.heads.base import head
from tests.trust import gradients


def made_up(seed, types=3, count=6, size=4, evidence=2):
    generator = torch.Generator().manual_seed(seed)
    vectors = [torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((types, size), (types, count, size))]
    mask = torch.zeros(count, dtype=torch.bool)
    mask[torch.randperm(count, generator=generator)[:evidence]] = True
    return *vectors, mask, torch.rand(types, generator=generator, dtype=torch.float64) + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", gradients.HEADS)
def test_value_and_gradient_are_those_of_a_slow_loop_and_of_finite_differences(name):
    assert gradients.check_one(name)


@given(seed=st.integers(0, 10_000), kind=st.integers(0, 2))
def test_wrong_types_never_lower_the_loss(seed, kind):
    questions, sentences, evidence, temperatures = made_up(seed)
    of = lambda wrong: losses.question_evidence(questions, sentences, evidence, kind, temperatures, wrong_types=wrong)
    assert of(True) > of(False) >= 0


@given(seed=st.integers(0, 10_000))
def test_the_order_of_sentences_and_of_other_types_does_not_matter(seed):
    questions, sentences, evidence, temperatures = made_up(seed)
    whole = losses.question_evidence(questions, sentences, evidence, 0, temperatures)
    order, types = torch.randperm(6, generator=torch.Generator().manual_seed(seed)), torch.tensor([0, 2, 1])
    again = losses.question_evidence(questions[types], sentences[types][:, order], evidence[order], 0, temperatures[types])
    torch.testing.assert_close(again, whole)


def test_one_evidence_sentence_alone_costs_nothing():
    one = torch.ones(1, 1, 3)
    assert losses.question_evidence(one[0], one, torch.tensor([True]), 0, torch.ones(1)) == 0


def test_it_is_summed_in_float32():
    questions, sentences, evidence, temperatures = made_up(3)
    loss = losses.question_evidence(questions.bfloat16(), sentences.bfloat16(), evidence, 0, temperatures.float() * 0.01)
    assert loss.dtype == torch.float32 and loss.isfinite()
    assert losses.question_evidence(questions.float(), sentences.float(), evidence, 0, temperatures.double()).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"evidence": torch.zeros(6, dtype=torch.bool)}, "questions without evidence have no contrastive loss"),
        ({"evidence": torch.ones(5, dtype=torch.bool)}, r"expected, got \(3, 4\), \(3, 6, 4\), \(5,\)"),
        ({"kind": 3}, "kind: 0 to 2 expected, got 3"),
        ({"temperatures": torch.tensor([1.0, 0.0, 1.0])}, "a temperature above 0 for each of the 3 question types"),
        ({"similarity": "norm"}, "similarity: one of cosine, dot expected, got 'norm'"),
        ({"reduction": "sum"}, "reduction: one of mean, log_sum expected"),
        ({"reduction": "log_sum", "other_evidence": "include"}, "other_evidence: one of exclude expected, got 'include'"),
        ({"other_evidence": "drop"}, "other_evidence: one of exclude, include expected"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    questions, sentences, evidence, temperatures = made_up(0)
    given = {"questions": questions, "sentences": sentences, "evidence": evidence, "kind": 0, "temperatures": temperatures} | change
    with pytest.raises(ValueError, match=message):
        losses.question_evidence(**given)


# ------------------------------------------------------------------ projections


@torch.no_grad()
def test_heads_on_vectors_are_float32_under_autocast():
    projection, siamese = QuestionTypeProjection(5).eval(), Siamese(5)
    with torch.autocast("cpu", torch.bfloat16):
        made = *projection(torch.ones(5), torch.ones(4, 5)), siamese(torch.ones(4, 5), torch.ones(4, 5))
    assert {vectors.dtype for vectors in made} == {torch.float32}


def test_dropout_is_on_the_projections():
    projection, given = QuestionTypeProjection(50, classes=2, dropout=0.5), (torch.ones(50), torch.ones(3, 50))
    questions, sentences = projection(*given)
    assert (questions == 0).any() and (sentences == 0).any()
    assert not (projection.eval()(*given)[0] == 0).any()


def test_forms_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match="needs a square W of 8, got 4"):
        QuestionTypeProjection(8, size=4, form="bilinear")
    with pytest.raises(ValueError, match="form: one of projected, bilinear expected"):
        QuestionTypeProjection(8, form="linear")


def test_the_weights_of_a_weighted_sum_begin_near_zero():
    torch.manual_seed(0)
    assert POOLED["pair_weighted"](hidden_size=4096).weigh.weight.std().item() == pytest.approx(0.02, rel=0.1)


def test_a_key_belongs_to_one_head():
    with pytest.raises(ValueError, match="two heads have the key 'pair_max'"):
        head("pair_max", reads="pairs")(Siamese)
