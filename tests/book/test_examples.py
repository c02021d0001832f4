"""Two models on the same questions: fates and ranks against slow loops, chosen questions by hash alone, texts that cannot be markup."""

import random
import re

import numpy as np
import pandas as pd
import pytest
from pages import examples

from aslab import papers, records, runs
from aslab.analysis import comparisons
from aslab.analysis import examples as chosen
from aslab.show import plots
from aslab.show.lists import beside, compare_rankings, ranked_example
from asutil import draws, metrics
from asutil.data import answers
from asutil.data.answers import Candidate, Question
from asutil.io import disk, hub
from asutil.metrics import changes

from ..made_up import FOLDER, PAPER, cells, commit, record, recorded

PAYLOAD = "<script>alert('x')</script><img src=x onerror=alert(1)>"


def made_up_scores(seed, count=50):
    """Scores of one system on questions that every seed shares, some of them tied."""
    shape, draw = random.Random(7), random.Random(seed)
    rows = []
    for question in range(count):
        size = shape.randint(2, 12)
        labels = [1] + [int(shape.random() < 0.2) for _ in range(size - 1)]
        shape.shuffle(labels)
        rows += [(f"q{question}", f"q{question}-{i}", label, draw.choice([0.1, 0.2, draw.random()])) for i, label in enumerate(labels)]
    return pd.DataFrame(rows, columns=["question_id", "candidate_id", "label", "score"])


def slow_ranks(scores):
    """The rank of each question's first right candidate: how many wrong ones stand above it or beside it, plus one."""
    found = {}
    for row in scores.itertuples():
        if row.label:
            others = scores[(scores.question_id == row.question_id) & (scores.label == 0)]
            above = scores[(scores.question_id == row.question_id) & (scores.label == 1) & (scores.score > row.score)]
            rank = 1 + sum(others.score >= row.score) + len(above)
            found[row.question_id] = min(found.get(row.question_id, 999), rank)
    return found


BEFORE, AFTER = made_up_scores(1), made_up_scores(3)


# ------------------------------------------------------------------ which questions


def test_fates_equal_a_slow_loop():
    before, after = slow_ranks(BEFORE), slow_ranks(AFTER)
    words = {(False, True): "rescued", (True, False): "lost", (True, True): "right by both", (False, False): "wrong by both"}
    expected = {name: words[before[name] == 1, after[name] == 1] for name in before}
    assert changes.fates(BEFORE, AFTER.sample(frac=1, random_state=0)).to_dict() == expected
    chosen, counts = changes.rescued(BEFORE, AFTER, limit=4)
    assert counts == {word: list(expected.values()).count(word) for word in changes.FATES}
    assert min(counts.values()) > 1
    assert len(chosen) == len(set(chosen)) == 4
    assert {expected[name] for name in chosen} == {"rescued"}
    assert changes.rescued(AFTER, BEFORE)[1]["lost"] == counts["rescued"]
    assert len(changes.rescued(BEFORE, AFTER, limit=999)[0]) == counts["rescued"]


def test_fates_of_records_equal_those_of_scores():
    """What a committed record keeps, six digits of a reciprocal rank, is enough."""
    sides = [metrics.of(scores).per_question.round(6) for scores in (BEFORE, AFTER)]
    assert changes.fates(*sides).equals(changes.fates(BEFORE, AFTER))
    assert changes.rank_moves(*sides).equals(changes.rank_moves(BEFORE, AFTER))


def test_other_questions_are_refused():
    with pytest.raises(ValueError, match=r"do not have the same questions, each of them once \(50 and 49\)"):
        changes.fates(BEFORE, AFTER[AFTER.question_id != "q3"])


def test_a_choice_is_the_hash_s():
    names = [f"q{i}" for i in range(200)]
    chosen = draws.choose(names, 20)
    assert draws.choose(names[::-1], 20) == chosen  # the order has no say
    assert draws.choose(names, 20, seed=1) != chosen
    assert set(draws.choose([name for name in names if name != chosen[0]], 19)) == set(chosen[1:])  # nor have the others
    often = [sum(int(name[1:]) < 100 for name in draws.choose(names, 20, seed)) for seed in range(200)]
    assert 9 < np.mean(often) < 11  # no half of the ids is favoured


def test_best_of_puts_the_wrong_one_first_among_equals():
    table = pd.DataFrame(
        {"question_id": ["a"] * 3 + ["b"], "candidate_id": list("xyzw"), "label": [1, 0, 0, 1], "score": [0.5, 0.5, 0.9, 1]}
    )
    assert changes.best_of(table, "a", 2) == [["z", 0, 0.9, 1], ["y", 0, 0.5, 2]]


# ------------------------------------------------------------------ ranks


def test_rank_moves_equal_a_slow_loop():
    before, after = slow_ranks(BEFORE), slow_ranks(AFTER)
    moves = changes.rank_moves(BEFORE, AFTER)
    assert moves.before.to_dict() == before
    assert moves.after.to_dict() == after
    counts = changes.move_counts(moves)
    assert counts["higher"] == sum(after[name] < before[name] for name in before)
    assert counts["lower"] == sum(after[name] > before[name] for name in before)
    assert sum(counts.values()) == 50 and counts["higher"] != counts["lower"]


def test_a_question_without_a_right_candidate_has_no_rank():
    values = pd.DataFrame({"question_id": ["a", "b"], "reciprocal_rank": [0.5, 0.0]})
    assert changes.rank_moves(values, values.assign(reciprocal_rank=[1.0, 0.0])).index.tolist() == ["a"]


def test_the_plot_shows_counts_by_hand():
    moves = pd.DataFrame({"before": [1, 1, 2, 7, 7, 40, 5], "after": [1, 2, 1, 6, 1, 11, 6]})
    figure = plots.moves_plot(moves, "base <b>", "psd")
    (grid,) = figure.axes
    size = len(plots.PLACES)
    texts = np.array([text.get_text() for text in grid.texts]).reshape(size, size)
    expected = {(0, 0): "1", (0, 1): "1", (1, 0): "1", (5, 5): "1", (5, 0): "1", (6, 6): "1", (4, 5): "1"}
    assert {(row, column): texts[row, column] for row in range(size) for column in range(size) if texts[row, column]} == expected
    assert grid.get_title() == "4 higher, 1 as before (outlined), 2 lower"
    assert (grid.get_xlabel(), grid.get_ylabel()) == ("rank by psd", "rank by base <b>")


# ------------------------------------------------------------------ lists


def test_markup_in_texts_is_inert():
    bad = "<script>alert(1)</script><img src=x onerror=y> & \"'"
    html = compare_rankings(bad, [bad, "fine"], [1, 0], {bad: [0.9, 0.1], "b": [0.2, 0.3]})
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("&lt;script&gt;") == 3
    assert cells(html)[1] == ["1 (0.900)", "2 (0.200)", "✓ answers", bad]
    assert cells(ranked_example("q", ['<td class="x">no</td>', "b"], [1.0, 0.5], [0, 1]))[1][-1] == '<td class="x">no</td>'


def test_ranked_example():
    html = ranked_example("Why?", list("abcdefg"), [0.1, 0.9, 0.9, 0.2, 0.3, 0.4, 0.0], [0, 1, 0, 0, 0, 0, 1])
    table = cells(html)
    assert table[0] == ["Rank (score)", "Label", "Candidate"]
    assert [row[-1] for row in table[1:]] == ["c", "b", "f", "e", "d"]  # at one score the wrong one first
    assert [row[1] for row in table[1:3]] == ["✗ does not", "✓ answers"]
    assert "Why? (2 more candidates)" in html
    with pytest.raises(ValueError, match="got 1 of labels for 2 candidates"):
        ranked_example("q", ["a", "b"], [1, 2], [1])


def test_compare_rankings():
    html = compare_rankings("Why?", ["a", "b", "c"], [0, 1, 0], {"base": [3.0, 2.0, 1.0], "psd": [1.0, 3.0, 2.0]}, top=1)
    assert cells(html) == [
        ["Rank by base (score)", "Rank by psd (score)", "Label", "Candidate"],
        ["1 (3.000)", "3 (1.000)", "✗ does not", "a"],
        ["2 (2.000)", "1 (3.000)", "✓ answers", "b"],
    ]


def test_side_by_side():
    lists = {"base <b>": [["x", 0, 0.9, 1], ["y", 1, 0.5, 2]], "psd": [["y", 1, 0.7, 1]]}
    html = beside(f"Why? {PAYLOAD}", lists, {"x": PAYLOAD}, f"Because {PAYLOAD}")
    assert "<script" not in html and "<img" not in html
    assert cells(html) == [["Rank", "base <b>", "psd"], ["1", f"✗ {PAYLOAD} score 0.900", "✓ y score 0.700"], ["2", "✓ y score 0.500", ""]]
    assert html.count('class="as2-right"') == 2 and html.count('class="as2-wrong"') == 1
    assert '<abbr title="does not answer">✗' in html  # the sign has words


# ------------------------------------------------------------------ two rows of a paper


def local(tmp_path, budget="laptop", dataset="pydocs"):
    """Records of finished runs on this machine, as `experiments.records` gives them."""
    lines = []
    for row, scores in (("roberta_base", BEFORE), ("roberta_psd", AFTER)):
        folder = tmp_path / row
        folder.mkdir()
        scores.to_parquet(folder / "scores.parquet")
        metrics.of(scores).per_question.to_parquet(folder / "per_question.parquet")
        disk.write_json(folder / "record.json", runs.hashes(folder))
        content = {"notebook": "finetune", "settings": {}, "given": {"dataset": dataset, "model": f"own & {row}"}}
        lines.append((row, dataset, budget, 0, records.HERE, row, folder, content, []))
    return pd.DataFrame(lines, columns=["row", "dataset", "budget", "seed", "source", "name", "folder", "record", "earlier"])


class Asked(list):
    """Questions as a split: with their ids."""

    @property
    def ids(self):
        return [question.id for question in self]


@pytest.fixture(autouse=True)
def _nothing_read_before_or_left():
    chosen._test_questions.cache_clear()
    yield
    chosen._test_questions.cache_clear()


def asked(monkeypatch, change=None):
    """A data set with the texts of the made-up questions."""
    made = []
    for name, rows in BEFORE.groupby("question_id", sort=False):
        labels = [1 - label if change == name else label for label in rows.label]
        texts = [Candidate(one, f"text of {one} {PAYLOAD}", label, None, None) for one, label in zip(rows.candidate_id, labels)]
        made.append(Question(name, f"asked {name}? {PAYLOAD}", tuple(texts)))
    monkeypatch.setattr(answers, "load_answers", lambda name, protocol: {"test": Asked(made)})


def test_examples_of_two_rows(tmp_path, monkeypatch):
    asked(monkeypatch)
    html = examples.examples_table(papers.read(PAPER, FOLDER), local(tmp_path), "roberta_base", "roberta_psd")
    ids, counts = changes.rescued(BEFORE, AFTER, limit=2)
    fate = changes.fates(BEFORE, AFTER)
    lost = draws.choose(fate.index[fate == "lost"], 1)
    assert "<script" not in html
    asked_ = re.findall(r"<caption>(\w+): asked (q\d+)\?", html)
    assert asked_ == [("Rescued", ids[0]), ("Rescued", ids[1]), ("Lost", lost[0])]
    assert f"Of 50 questions: {counts['rescued']} rescued, {counts['lost']} lost" in html
    assert "budget laptop, this machine, seed 0" in html
    first = [line for line in cells(html) if line[0] == "1"]
    assert [(line[1][0], line[2][0]) for line in first] == [("✗", "✓"), ("✗", "✓"), ("✓", "✗")]
    top = AFTER[AFTER.question_id == ids[0]].sort_values("score").candidate_id.iloc[-1]
    assert first[0][2].startswith(f"✓ text of {top} <script>")


def test_a_question_that_the_data_hold_otherwise_is_left_out(tmp_path, monkeypatch):
    name = changes.rescued(BEFORE, AFTER)[0][0]
    asked(monkeypatch, change=name)
    html = examples.examples_table(papers.read(PAPER, FOLDER), local(tmp_path), "roberta_base", "roberta_psd")
    assert name not in re.findall(r"q\d+", html)
    assert "asked q" in html  # the others are as they were


def test_no_list_of_ids_where_the_text_is_not_at_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "mirror", lambda name: None)
    monkeypatch.setattr(answers, "load_answers", lambda *_: pytest.fail("the hub was asked"))
    html = examples.examples_table(papers.read(PAPER, FOLDER), local(tmp_path, "small", "wikiqa"), "roberta_base", "roberta_psd")
    assert "The texts of its questions are not available here." in html and "<table" not in html
    assert "Of 50 questions:" in html


def test_a_site_for_others_has_no_text_that_may_not_be_passed_on(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "mirror", lambda name: tmp_path)
    monkeypatch.setattr(answers, "fingerprint_of_answers", lambda name: "x")
    asked(monkeypatch)
    lines = local(tmp_path, "small", "wikiqa")
    assert "asked q" in examples.examples_table(papers.read(PAPER, FOLDER), lines, "roberta_base", "roberta_psd")
    monkeypatch.setenv(chosen.SITE, "https://example.org/")
    assert "asked q" not in examples.examples_table(papers.read(PAPER, FOLDER), lines, "roberta_base", "roberta_psd")


def test_what_is_short_enough_to_read_comes_first():
    """By the slow way: of the rescued and of the lost ones the short, in the hash's order; all where none is short."""
    fate = changes.fates(BEFORE, AFTER)
    rescued, lost = (list(fate.index[fate == word]) for word in ("rescued", "lost"))
    short = {*rescued[1::2], "q999"}
    expected = [*draws.choose([name for name in rescued if name in short], 2), *draws.choose(lost, 1)]
    assert chosen._chosen(fate, fate.index, 2, short) == expected
    assert chosen._chosen(fate, fate.index, 2, set()) == [*draws.choose(rescued, 2), *draws.choose(lost, 1)]


def test_the_reason_counts_ranks_and_shared_words():
    ranked = {"a": [["x", 0, 0.9, 1], ["y", 1, 0.5, 2]], "b": [["z", 0, 0.7, 1]]}
    texts = {"x": "Why the sky is blue", "y": "Light", "z": "BLUE!"}
    told = (
        "First right candidate: rank 2 on the left, below 1 on the right. Words that the best candidate shares with the question: 3 and 1."
    )
    assert chosen.Example("lost", "Why is it blue?", ranked, texts).reason == told


@pytest.mark.slow
def test_what_can_be_read_comes_first(monkeypatch):
    """Of the committed records, with the text of our own questions alone."""
    monkeypatch.delenv(hub.MIRROR, raising=False)
    html = examples.examples_table(*comparisons.rows_and_runs("asbert"), "siamese_bert", "triplet_bert")
    places = re.findall(r"<strong>([^,<]+), budget small", html)
    assert places == ["pydocs", "WikiQA", "TREC-QA"] and html.count("The texts of its questions are not available here.") == 2
    assert "Rescued: What is" in html.partition("WikiQA")[0]


def test_examples_from_committed_records(tmp_path, monkeypatch):
    """Both lists come from what the records hold: shared questions, and those with the baseline's list beside them."""
    monkeypatch.setattr(hub, "mirror", lambda name: None)
    lists = {name: [[f"{name}-0", int(label), 0.5, 1]] for name in ("q0", "q1", "q2") for label in (1,)}
    base = record("roberta_base", "wikiqa", "small", 0, 0.5)
    psd = record("roberta_psd", "wikiqa", "small", 0, 0.7)
    right = {row["row"]: {name: value == 1 for name, value, *_ in row["per_question"]} for row in (base, psd)}
    won = next(name for name, ok in right["roberta_psd"].items() if ok and not right["roberta_base"][name])
    base["chosen"] = [{"question_id": "q0", "candidates": lists["q0"]}]
    psd["chosen"] = [{"question_id": name, "candidates": lists[name]} for name in ("q0", "q1")]
    commit(tmp_path, base, psd)
    rows, data = ("roberta_base", "roberta_psd"), papers.read(PAPER, FOLDER)

    def held():
        (pair,) = chosen.best_pairs(data, recorded(tmp_path), *rows)
        return [(one.fate, one.question, *one.ranked.values()) for one in chosen.of_pair(data, pair, rows)]

    assert [question for _, question, *_ in held()] == ["q0"]  # what both hold
    beside = {"row": "roberta_base", "candidates": [[f"{won}-9", 0, 0.7, 1]]}
    psd["chosen"].append({"question_id": won, "candidates": [[f"{won}-1", 1, 0.9, 1]], "baseline": beside})
    commit(tmp_path, psd)
    assert held() == [("rescued", won, beside["candidates"], [[f"{won}-1", 1, 0.9, 1]])]
    psd["chosen"] = []
    commit(tmp_path, psd)
    html = examples.examples_table(papers.read(PAPER, FOLDER), recorded(tmp_path), *rows)
    assert "keep no list of the same question" in html


def test_rows_that_have_not_run(tmp_path):
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5))
    assert chosen.moves_of_rows(papers.read(PAPER, FOLDER), recorded(tmp_path), "roberta_base", "roberta_psd") == []
    assert examples.examples_table(papers.read(PAPER, FOLDER), recorded(tmp_path), "roberta_base", "roberta_psd") == ""
    with pytest.raises(ValueError, match="unknown row 'roberta_pds'; did you mean 'roberta_psd'"):
        chosen.moves_of_rows(papers.read(PAPER, FOLDER), recorded(tmp_path), "roberta_base", "roberta_pds")


@pytest.mark.mirror
def test_texts_of_real_questions(mirror):
    split = answers.load_answers("wikiqa")["test"]
    known = chosen.at_hand({"settings": {"protocol": "clean"}}, "wikiqa", [split.ids[5], "no such question"])
    assert known == {split.ids[5]: split[5]}
    assert chosen.at_hand({}, "wqa", ["x"]) == {}


def test_pydocs_of_other_packages_has_other_texts(monkeypatch):
    assert chosen.at_hand({"inputs": {"dataset": "another fingerprint"}}, "pydocs", ["a"]) == {}
    monkeypatch.setattr(answers, "load_answers", lambda name, protocol: {"test": Asked([Question("a", "?", ()), Question("b", "?", ())])})
    assert list(chosen.at_hand({"inputs": {"dataset": answers.fingerprint_of_answers("pydocs")}}, "pydocs", ["a"])) == ["a"]
