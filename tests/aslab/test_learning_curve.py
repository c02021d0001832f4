"""What a learning curve says: from which number of training questions on a model is ahead of all that needs none."""

import pandas as pd
import pytest

from aslab.analysis import learning_curve as curves

ROWS = ("roberta_base_50", "roberta_base_500", "roberta_base")


@pytest.mark.parametrize(
    ("lows", "first"),
    [
        ((60, 72, 80), "500"),
        ((60, 69, 80), "5,000"),
        ((75, 69, 80), "5,000"),  # with 50 by chance: not from there on
        ((71, 72, 80), "50"),
        ((60, 65, 69), None),
        ((75, 72, 69), None),
    ],
)
def test_the_title_says_from_where_on_the_whole_interval_is_above_the_best_ranker(monkeypatch, lows, first):
    table = pd.DataFrame({"questions": [50, 500, 5000], "map": [low + 2 for low in lows], "low": lows, "high": [low + 4 for low in lows]})
    table["seeds"], table["objective"] = [1, 2, 1], ""
    table.loc[3] = {"questions": 50, "map": 90, "low": 89, "high": 91, "seeds": 1, "objective": "sp"}  # says nothing in the title
    monkeypatch.setattr(curves, "points", lambda *_: (table, {"bm25": 66.0, "document_order": 70.0}))
    figure = curves.learning_curve("sentence_objectives", "nq_sentences", "small")
    axis = figure.axes[0]
    message = f"From {first} training questions on, fine-tuning is above every ranker without training"
    assert axis.get_title() == (message if first else "") and "1 to 2 a point" in figure.words
    lines = {line.get_label(): line.get_ydata().tolist() for line in axis.get_lines()}
    assert lines.pop("pre-trained with SP, then fine-tuned") == [90]
    assert lines == {"fine-tuned": table["map"].tolist()[:3], "BM25": [66.0, 66.0], "document order": [70.0, 70.0]}


def test_one_number_of_training_questions_is_no_curve():
    assert curves.learning_curve("sentence_objectives", "nq_sentences", "small", *ROWS[:1]) is None
    assert curves.learning_curve("sentence_objectives", "nq_sentences", "gpu", *ROWS) is None
    with pytest.raises(ValueError, match="unknown row 'roberta_bas'; did you mean 'roberta_base'"):
        curves.learning_curve("sentence_objectives", "nq_sentences", "small", "roberta_bas")
