"""Triplets and labelled pairs: against loops over the questions, batches against the tokenizer, learning, exact resume."""

import collections
import copy
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from asutil import losses, training
from asutil.data import answers as questions
from asutil.data.answers import Candidate, Question
from asutil.inputs import triplets
from asutil.io import checkpoints
from asutil.models import embedder
from asutil.tasks import nearest

from ..conftest import WORDS, of_whole_batch
from ..models.test_embedder import settings_of, small_backbone


def asked(labels_of_each, seed=0):
    """Questions with candidates of the given labels, texts of different lengths; some texts stand twice."""
    draw = np.random.default_rng(seed)
    text = lambda longest: " ".join(draw.choice(WORDS, draw.integers(1, longest)))
    known = [text(20) for _ in range(3)]
    made = []
    for n, labels in enumerate(labels_of_each):
        candidates = [
            Candidate(f"{n}-{m}", known[m % 3] if draw.random() < 0.2 else text(24), label, None, None) for m, label in enumerate(labels)
        ]
        made.append(Question(f"q{n}", text(9), tuple(candidates)))
    return made


def by_loops(asked):
    """All (question, right, wrong) by three loops, as rows of the split."""
    found, row = [], 0
    for question in asked:
        rows = range(row, row + len(question.candidates))
        right, wrong = ([r for r in rows if question.candidates[r - row].label == label] for label in (1, 0))
        found += [(r, w) for r, w in itertools.product(right, wrong)]
        row = rows.stop
    return found


some_labels = st.lists(st.lists(st.integers(0, 1), max_size=6), min_size=1, max_size=6)


@given(labels=some_labels)
def test_all_triplets_of_a_question_and_no_others(tokenizer, labels):
    made, expected = asked(labels), by_loops(asked(labels))
    if not expected:
        with pytest.raises(ValueError, match="a right and a wrong candidate, got none"):
            triplets.Triplets(tokenizer, made)
        return
    found = triplets.Triplets(tokenizer, made)
    assert list(map(tuple, found.candidates(np.arange(len(found))).tolist())) == expected and found.all == len(expected)
    assert found.labels(np.arange(len(found))).tolist() == [1] * len(expected), "the first candidate is the right one"


def test_a_limit_takes_some_of_them_whatever_the_order_asked(tokenizer):
    whole = {}
    for limit in (None, 40, 20, 72, 100):
        found = triplets.Triplets(tokenizer, asked([[1, 0, 0, 1, 0]] * 12), limit)
        whole[limit] = set(map(tuple, found.candidates(np.arange(len(found))).tolist()))
    assert [len(whole[limit]) for limit in (20, 40, 72, 100)] == [20, 40, 72, 72]
    assert whole[20] < whole[40] < whole[72] == whole[None]
    assert len({right for right, _ in whole[20]}) > 8, "not the first questions alone"


def by_ids(found, made):
    """Triplets as (question, right candidate, wrong candidate), by their ids."""
    rows = [(question.id, candidate.id) for question in made for candidate in question.candidates]
    return [(*rows[right], rows[wrong][1]) for right, wrong in found.candidates(np.arange(len(found)))]


def triplets_of(asked):
    """How many triplets each question has: right candidates times wrong ones."""
    labels = [[candidate.label for candidate in question.candidates] for question in asked]
    return [each.count(1) * each.count(0) for each in labels]


@given(labels=some_labels, most=st.integers(1, 9))
def test_a_question_has_no_more_triplets_than_its_cap(tokenizer, labels, most):
    made = asked(labels)
    each = triplets_of(made)
    if not sum(each):
        return
    capped = triplets.Triplets(tokenizer, made, per_question=most)
    found = by_ids(capped, made)
    counted = collections.Counter(question for question, *_ in found)
    assert [counted[f"q{n}"] for n in range(len(each))] == [min(most, count) for count in each]
    assert len(set(found)) == len(found) == len(capped) and capped.all == sum(each)
    assert set(found) <= set(by_ids(triplets.Triplets(tokenizer, made), made))
    assert by_ids(triplets.Triplets(tokenizer, made, per_question=most), made) == found, "the same in every run"


def test_the_cap_is_blind_to_the_order_of_questions_and_candidates(tokenizer):
    made = asked([[1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1, 1], [1, 0]] * 4)
    other = [Question(q.id, q.text, q.candidates[::-1]) for q in made][::-1]
    chosen = [set(by_ids(triplets.Triplets(tokenizer, one, per_question=4), one)) for one in (made, other)]
    assert chosen[0] == chosen[1] and len(chosen[0]) == 4 * (4 + 4 + 1)


def test_the_cap_takes_every_triplet_of_a_question_equally_often(tokenizer):
    """1,200 questions with 12 triplets each give 3: each of the 12 is taken in a quarter of them, by a chi-square test."""
    made = asked([[1, 0, 0, 1, 1, 0, 0]] * 1200)
    found = by_ids(triplets.Triplets(tokenizer, made, per_question=3), made)
    counted = collections.Counter((right.split("-")[1], wrong.split("-")[1]) for _, right, wrong in found)
    assert len(counted) == 12 and sum(counted.values()) == 3600
    assert stats.chisquare(list(counted.values())).pvalue > 0.001


def test_no_cap_and_a_cap_that_nothing_reaches_change_nothing(tokenizer):
    made = asked([[1, 0, 0, 1, 0]] * 8)
    chosen = lambda *limits: by_ids(triplets.Triplets(tokenizer, made, *limits), made)
    assert chosen() == chosen(None, None) == chosen(None, 6) and chosen(20, None) == chosen(20, 6)
    assert len(chosen(10, 2)) == 10 and set(chosen(10, 2)) < set(chosen(None, 2))


@pytest.mark.mirror
def test_the_shares_of_trecqas_triplets(mirror, tokenizer):
    """What D-100 says of the 89 questions that people labelled."""
    split = questions.load_answers("trecqa", "asbert")["train"]
    each = sorted(triplets_of(split), reverse=True)
    assert len(each) == 89 and {q.id.split("-")[0] for q in split} == {"train_manual"}
    assert (sum(each), round(each[0] / sum(each), 2), round(sum(each[:10]) / sum(each), 2)) == (83_923, 0.44, 0.87)
    capped = triplets.Triplets(tokenizer, split, per_question=100)
    assert len(capped) == sum(min(100, count) for count in each) == 4_665 and sum(count > 100 for count in each) == 36
    assert round(9000 / 83_923, 2) == 0.11 and 100 / 4_665 < 0.0215
    assert sum(count > 100 for count in triplets_of(questions.load_answers("wikiqa", "asbert")["train"])) == 1


@pytest.mark.mirror
@pytest.mark.parametrize(("dataset", "protocol"), questions.TRIPLETS)
def test_the_number_of_triplets_of_the_papers_data(mirror, tokenizer, dataset, protocol):
    split = questions.load_answers(dataset, protocol)["train"]
    found = triplets.examples_for("triplet", tokenizer, split, expected=questions.TRIPLETS[dataset, protocol])
    assert len(found) == sum(triplets_of(split)) == questions.TRIPLETS[dataset, protocol]


def test_another_number_of_triplets_is_refused(tokenizer):
    with pytest.raises(ValueError, match=r"expected 8,995 triplets of a question, a right and a wrong candidate, got 2"):
        triplets.examples_for("triplet", tokenizer, asked([[1, 0, 0]]), expected=8995)
    with pytest.raises(ValueError, match="triplet_limit: only the triplet network"):
        triplets.examples_for("siamese", tokenizer, asked([[1, 0, 0]]), limit=3)
    with pytest.raises(ValueError, match="triplets_per_question: only the triplet network"):
        triplets.examples_for("siamese", tokenizer, asked([[1, 0, 0]]), per_question=3)


@pytest.mark.parametrize("kind", [triplets.LabelledPairs, triplets.Triplets])
@pytest.mark.parametrize("micro_tokens", [1, 100, 10_000])
def test_a_batch_is_what_the_tokenizer_gives(tokenizer, kind, micro_tokens):
    made = asked([[1, 0, 0], [0, 1, 1, 0], [0], [1, 0]])
    rows = [(question, candidate) for question in made for candidate in question.candidates]
    pairs, seen = kind(tokenizer, made), []
    batches = triplets.TripletBatches(pairs, 1, 4, 16, micro_tokens, seed=1)
    for step in range(len(batches)):
        batch, numbers = batches[step], list(batches.examples(step))
        assert batch["examples"] == len(numbers) == sum(len(micro["labels"]) for micro in batch["micro"])
        tokens = 0
        for micro in batch["micro"]:
            count, decoded = len(micro["labels"]), {}
            for part in ("questions", "candidates"):
                ids, mask = micro[part]["input_ids"], micro[part]["attention_mask"].bool()
                decoded[part] = [one[real].tolist() for one, real in zip(ids, mask)]
                tokens += int(mask.sum())
                assert (ids[~mask] == tokenizer.pad_token_id).all() and mask.any(0).all(), "no wider than its longest"
            seen += zip(decoded["questions"], *(decoded["candidates"][n : n + count] for n in range(0, len(decoded["candidates"]), count)))
        assert tokens == batch["tokens"]
    encode = lambda text: tokenizer(text, truncation=True, max_length=16)["input_ids"]
    expected = [
        [rows[candidates[0]][0].text, *(rows[c][1].text for c in candidates)] for candidates in pairs.candidates(np.arange(len(pairs)))
    ]
    assert sorted(map(list, seen)) == sorted([encode(text) for text in texts] for texts in expected), "every example once an epoch"


@pytest.fixture(scope="module")
def separable():
    """A question is answered by the candidates that have its word; the others have another one's."""
    draw = np.random.default_rng(0)
    made = []
    for n in range(60):
        word, *others = draw.choice(WORDS, 4, replace=False)
        texts = [(f"{word} {draw.choice(WORDS)} was", 1), *((f"{other} {draw.choice(WORDS)} was", 0) for other in others)]
        made.append(Question(str(n), f"which {word}", tuple(Candidate(f"{n}-{m}", *one, None, None) for m, one in enumerate(texts))))
    return made[:40], made[40:]


def trained(tokenizer, architecture, made, folder):
    with checkpoints.seeded(0):
        model = embedder.Embedder(small_backbone(tokenizer), tokenizer, settings_of(architecture, max_tokens=16))
    batches = triplets.TripletBatches(triplets.examples_for(architecture, tokenizer, made), 60, 32, 16, 4096, seed=0)
    start = copy.deepcopy(model)
    usual = {"peak_lr": 2e-3, "warmup_steps": 2, "weight_decay": 0.0, "seed": 3, "save_every": 10_000, "log_every": 50}
    training.train(model, batches, folder, **usual, progress=False)
    return start, model


def apart(model, tokenizer, made):
    """How far the right and the wrong candidate of every triplet are from the question."""
    texts = [(question.text, candidate.text) for question in made for candidate in question.candidates]
    right, wrong = triplets.Triplets(tokenizer, made).candidates(np.arange(triplets.Triplets(tokenizer, made).all)).T
    asked, answers = (torch.from_numpy(model.encode(list(side))) for side in zip(*texts))
    return losses.distance(asked[right], answers[right]), losses.distance(asked[wrong], answers[wrong])


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["siamese", "triplet"])
def test_training_brings_right_candidates_nearer_than_wrong_ones(tokenizer, separable, tmp_path, architecture):
    train, test = separable
    start, model = trained(tokenizer, architecture, train, tmp_path)

    def share(model):
        scores = nearest.Nearest(model).score(test, progress=False)
        best = scores.loc[scores.groupby("question_id")["score"].idxmax()]
        return best["label"].mean()

    assert share(model) >= 0.8 > 0.6 > share(start), "chance: 0.25"
    if architecture == "triplet":
        kinds = [[int(kind.sum()) for kind in losses.triplet_kinds(*apart(one, tokenizer, test)).values()] for one in (start, model)]
        (easy, _, hard), (easy_after, _, hard_after) = kinds
        assert easy_after > easy and hard_after < hard


@pytest.mark.parametrize("chosen", [{"selection": "hard"}, {"distance": "plain"}, {"margin": 0.5}, {"selection": "semi_hard"}])
def test_every_choice_of_the_triplet_network_changes_what_is_learnt(tokenizer, separable, chosen):
    batch = triplets.TripletBatches(triplets.Triplets(tokenizer, separable[0]), 1, 32, 16, 10_000)[0]
    gradients = []
    for settings in (settings_of("triplet", max_tokens=16), settings_of("triplet", max_tokens=16, **chosen)):
        with checkpoints.seeded(0):
            model = embedder.Embedder(small_backbone(tokenizer), tokenizer, settings).eval()
        gradients.append(of_whole_batch(model, batch)[1])
    assert any((gradients[0][name] != other).any() for name, other in gradients[1].items())


@pytest.mark.parametrize("architecture", ["siamese", "triplet"])
def test_micro_batches_sum_to_the_loss_and_gradient_of_the_whole_batch(tokenizer, architecture):
    made = asked([[1, 0, 0, 1], [0, 1, 0], [1, 0, 0]])
    pairs = triplets.examples_for(architecture, tokenizer, made)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = embedder.Embedder(small_backbone(tokenizer), tokenizer, settings_of(architecture, max_tokens=24)).double().eval()
    (one, apart, several), (other, whole, single) = (
        of_whole_batch(model, triplets.TripletBatches(pairs, 1, 9, 24, micro_tokens, seed=0)[0]) for micro_tokens in (1, 100_000)
    )
    assert (several, single) == (min(9, len(pairs)), 1) and one == pytest.approx(other, rel=1e-6)
    torch.testing.assert_close(apart, whole, rtol=1e-5, atol=1e-6)
