"""Principal components against an SVD by hand, laws of rotation and order, which texts are chosen, and what is drawn."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from aslab.show import pca
from asutil.data.answers import Candidate, Question


def made_up(asked=12, width=7, seed=0):
    """Vectors of questions, each with one positive that is near and one negative that is far, and what they are."""
    draw = np.random.default_rng(seed)
    questions = draw.normal(size=(asked, width)) * np.linspace(3, 0.5, width)
    sides = [questions, questions + 0.1 * draw.normal(size=(asked, width)), questions + draw.normal(size=(asked, width))]
    return np.stack(sides, 1).reshape(-1, width), ["question", "positive", "negative"] * asked, sorted([*range(asked)] * 3)


def by_hand(vectors):
    """Scores and shares of the variance by numpy's SVD, each direction with its largest entry positive."""
    centred = vectors - vectors.mean(0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    for row in directions:
        row *= 1 if max(row, key=abs) > 0 else -1
    return centred @ directions[:2].T, singular**2 / (singular**2).sum()


def panel_of(vectors, roles, numbers):
    found = pca.coordinates(vectors, None, roles, numbers)["before"]
    return np.column_stack([found["x"], found["y"]]), found


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 20), st.integers(2, 12), st.integers(0, 99))
def test_equal_to_an_svd_by_hand(asked, width, seed):
    vectors, roles, numbers = made_up(asked, width, seed)
    places, found = panel_of(vectors, roles, numbers)
    expected, shares = by_hand(vectors)
    np.testing.assert_allclose(places, expected, atol=1e-4)
    np.testing.assert_allclose(found["explained"], shares[:2], atol=1e-4)
    assert found["explained"][0] >= found["explained"][1] and sum(found["explained"]) <= 1.0001


def test_signs_follow_from_the_vectors_alone():
    vectors, roles, numbers = made_up()
    places, _ = panel_of(vectors, roles, numbers)
    assert np.array_equal(panel_of(vectors.astype(np.float32).astype(np.float64), roles, numbers)[0].round(2), places.round(2))
    np.testing.assert_allclose(panel_of(-vectors, roles, numbers)[0], -places, atol=1e-4)  # the directions stay as they are
    order = np.random.default_rng(1).permutation(len(vectors))
    moved, _ = panel_of(vectors[order], [roles[i] for i in order], [numbers[i] for i in order])
    np.testing.assert_allclose(moved, places[order], atol=1e-4)
    np.testing.assert_allclose(panel_of(vectors + 5, roles, numbers)[0], places, atol=1e-4)


def test_each_panel_is_fitted_on_its_own_vectors():
    vectors, roles, numbers = made_up()
    turned = np.roll(vectors, 3, axis=1) * 2
    both = pca.coordinates(vectors, turned, roles, numbers)
    for name, alone in (("before", vectors), ("after", turned)):
        assert both[name] == pca.coordinates(alone, None, roles, numbers)["before"]
    np.testing.assert_allclose(both["after"]["x"], 2 * np.array(both["before"]["x"]), atol=5e-4)
    other, _, _ = made_up(seed=1)
    assert pca.coordinates(vectors, other, roles, numbers)["before"] == both["before"]


def test_distances_by_a_loop():
    vectors, roles, numbers = made_up()
    order = np.random.default_rng(2).permutation(len(vectors))  # a question may stand anywhere
    vectors, roles, numbers = vectors[order], [roles[i] for i in order], [numbers[i] for i in order]
    found = {"positive": [], "negative": []}
    for i, role in enumerate(roles):
        for j in range(len(roles)):
            if role != "question" and roles[j] == "question" and numbers[i] == numbers[j]:
                found[role].append(sum((vectors[i] - vectors[j]) ** 2) ** 0.5)
    _, panel = panel_of(vectors, roles, numbers)
    assert panel["distance"] == {role: pytest.approx(np.mean(each), abs=1e-4) for role, each in found.items()}
    assert panel["distance"]["positive"] < panel["distance"]["negative"]


def test_numbers_go_through_json_and_are_short():
    vectors, roles, numbers = made_up()
    found = pca.coordinates(vectors.astype(np.float32), vectors.astype(np.float32) * 3, roles, np.array(numbers))
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found and "-0.0," not in text
    assert set(found) == {"roles", "questions", "before", "after"}
    for panel in ("before", "after"):
        assert all(round(value, 4) == value for name in ("x", "y", "explained") for value in found[panel][name])
    assert "after" not in pca.coordinates(vectors, None, roles, numbers)


def test_vectors_that_are_all_the_same():
    found = pca.coordinates(np.ones((6, 4)), None, ["question", "positive", "negative"] * 2, [0, 0, 0, 1, 1, 1])["before"]
    assert (
        found["explained"] == [0, 0] and set(found["x"]) == set(found["y"]) == {0} and found["distance"] == {"positive": 0, "negative": 0}
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"roles": ["question", "positive"]}, r"one vector, role and question a text expected, got \(3, 2\) .* 2 roles, 3 numbers"),
        ({"after": np.ones((2, 2))}, r"got \(2, 2\) of vectors after training"),
        ({"before": np.ones(3)}, r"got \(3,\) of vectors before training"),
        ({"before": np.ones((3, 1))}, r"two texts and two dimensions at least, got \(3, 1\) before training"),
        ({"before": np.array([[1, 2], [3, np.nan], [4, 5]])}, "got nan or infinity before training in row 1"),
    ],
)
def test_what_is_refused(change, said):
    given = {"before": np.eye(3, 2), "after": None, "roles": ["question", "positive", "negative"], "questions": [0, 0, 0]} | change
    with pytest.raises(ValueError, match=said):
        pca.coordinates(**given)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_a_question_type_for_each_text(count):
    given = {"before": np.eye(3), "after": None, "roles": ["question", "positive", "negative"], "questions": [0, 0, 0]}
    with pytest.raises(ValueError, match=f"one question type a text expected, got {count} for 3 texts"):
        pca.coordinates(**given, kinds=["span"] * count)


def test_types_are_kept_and_change_nothing_else():
    vectors, roles, numbers = made_up()
    kinds = [("span", "yes", "no")[number % 3] for number in numbers]
    found = pca.coordinates(vectors, 2 * vectors, roles, numbers, kinds)
    assert found.pop("kinds") == kinds and found == pca.coordinates(vectors, 2 * vectors, roles, numbers)
    text = json.dumps(pca.coordinates(vectors, None, roles, numbers, tuple(kinds)))
    assert json.loads(text)["kinds"] == kinds


# ------------------------------------------------------------------ which texts


def question(number, labels):
    candidates = (Candidate(f"q{number}-{n}", f"{number}, {n}", label, None, None) for n, label in enumerate(labels))
    return Question(f"q{number}", f"question {number}", tuple(candidates))


def test_texts_are_chosen_by_the_hash_of_their_ids():
    asked = [question(n, labels) for n, labels in enumerate([[1, 0, 0, 1], [0, 0], [1], [0, 1], [0, 1, 0, 0, 0]] * 10)]
    found = pca.chosen(asked, 12)
    assert len(found) == 12 and len(set(found)) == 12
    known = {one.text: one for one in asked}
    for text, positive, negative in found:
        labels = {candidate.text: candidate.label for candidate in known[text].candidates}
        assert labels[positive] == 1 and labels[negative] == 0
    assert pca.chosen(asked[::-1], 12) == found  # the order of the questions has no say
    assert pca.chosen(asked, 12, seed=1) != found
    assert pca.chosen(asked, 5) == found[:5]
    assert len(pca.chosen(asked, 99)) == 30  # those without a candidate of both kinds are never shown
    places = {int(positive.rpartition(" ")[2]) for text, positive, _ in pca.chosen(asked, 99) if len(known[text].candidates) == 4}
    assert places == {0, 3}  # not always the first
    assert pca.chosen([question(0, [0])]) == []


# ------------------------------------------------------------------ the figure


def contrast(one, other):
    """The ratio of two colours' luminance as WCAG has it."""

    def luminance(colour):
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return np.dot(linear, [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("trained", [True, False])
def test_plot(trained):
    vectors, roles, numbers = made_up()
    found = json.loads(json.dumps(pca.coordinates(vectors, 4 * vectors[:, ::-1] if trained else None, roles, numbers)))
    figure = pca.plot(found)
    figure.canvas.draw()
    for axis in figure.axes:  # what is drawn where is read off the committed plots, in trust/traced_blocks.py
        lines, points = axis.collections
        kinds = {(tuple(colour[:3]), tuple(map(tuple, path.vertices))) for colour, path in zip(points.get_facecolors(), points.get_paths())}
        assert len(kinds) == len({colour for colour, _ in kinds}) == len({mark for _, mark in kinds}) == 3
        assert all(contrast(colour[:3], page) > 2 for colour, _ in kinds for page in ("white", "#14181e"))
        assert points.get_alpha().tolist() == [1.0] * 6 + [pca.PALE] * 30 and set(lines.get_linewidths()[:2]) != set(
            lines.get_linewidths()[2:]
        )
        assert axis.get_legend() is None
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == ["question", "positive", "negative"]
    each = {"before": vectors, "after": 4 * vectors[:, ::-1]} if trained else {"before": vectors}
    nearer = [sum(np.linalg.norm(q - p) < np.linalg.norm(q - n) for q, p, n in of.reshape(12, 3, -1)) for of in each.values()]
    whose = zip(nearer, ("before training", "after training") if trained else ("untrained",))
    (histogram,) = pca.farther_plot(found).axes
    assert histogram.get_title().endswith(": " + ", ".join(f"{count} of 12 {when}" for count, when in whose))


def test_farther_is_the_difference_of_mean_distances_in_all_dimensions():
    vectors = np.array([[0.0, 0, 0], [3, 4, 0], [0, 0, 2], [0, 0, 6], [1, 1, 1], [1, 1, 2]])
    roles = ["question", "positive", "negative", "negative", "question", "positive"]
    found = pca.coordinates(vectors, None, roles, [7, 7, 7, 7, 8, 8])
    assert found["before"]["away"] == [0, 5, 2, 6, 0, 1]
    assert pca.farther(found, "before").to_dict() == {7: (2 + 6) / 2 - 5}  # the other question has no wrong candidate


def test_a_record_without_each_distance_has_no_histogram():
    vectors, roles, numbers = made_up()
    found = pca.coordinates(vectors, vectors, roles, numbers)
    for name in pca.PANELS:
        del found[name]["away"]
    assert pca.farther_plot(found) is None


@pytest.mark.parametrize("types", [("span",), ("no", "span", "yes"), ("extractive", "abstractive", "yes", "no", "unanswerable")])
def test_a_colour_a_type_and_a_mark_a_role(types):
    vectors, roles, numbers = made_up()
    kinds = [types[number % len(types)] for number in numbers]
    found = json.loads(json.dumps(pca.coordinates(vectors, 4 * vectors[:, ::-1], roles, numbers, kinds)))
    figure = pca.plot(found)
    figure.canvas.draw()
    colours, marks = {}, {}
    for axis in figure.axes:
        _, points = axis.collections
        for kind, role, colour, path in zip(kinds, roles, points.get_facecolors(), points.get_paths(), strict=True):
            colours.setdefault(kind, set()).add(tuple(colour[:3]))
            marks.setdefault(role, set()).add(tuple(map(tuple, path.vertices)))
    for looks, count in ((colours, len(types)), (marks, 3)):
        assert len(looks) == count == len(set.union(*looks.values())) and {len(one) for one in looks.values()} == {1}
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.texts]  # column by column: a line of types above a line of roles
    lines = [[name for name in names[place::2] if name] for place in (0, 1)]
    assert lines == [list(dict.fromkeys(kinds)), ["question", "positive", "negative"]]
    for handle, text in zip(legend.legend_handles, legend.texts):
        if text.get_text() in types:
            assert {to_rgb(handle.get_color())} == {to_rgb(colour[:3]) for colour in colours[text.get_text()]}
    assert all(axis.get_legend() is None for axis in figure.axes)
