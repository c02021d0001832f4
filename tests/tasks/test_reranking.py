"""Re-ranking: the k best and whole lists against slow loops and laws, what two runs must share, and the notebook with a made-up model."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aslab import identity, rundir, runs, stages
from aslab.show import lists
from asutil import metrics
from asutil.data import answers
from asutil.data.answers import Candidate, Question
from asutil.io import disk
from asutil.tasks import rankers, reranking

from ..conftest import run_cells
from ..made_up import cells

FEW = [0.0, -0.0, 0.5, 1.0, float(np.nextafter(np.float32(1), np.float32(2))), 1e-30, -3e8]  # scores that tie, or all but
FEWER = settings(max_examples=40)


@st.composite
def rankings(draw):
    """Scores of some questions by two stages, with ties, rows in any order; and k."""
    rows = []
    for question in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 7))
        labels = [1] + [draw(st.integers(0, 1)) for _ in range(size - 1)]
        rows += [(f"q{question}", f"q{question}-{i}", label, *(draw(st.sampled_from(FEW)) for _ in "ab")) for i, label in enumerate(labels)]
    rows = draw(st.permutations(rows))
    both = pd.DataFrame(rows, columns=["question_id", "candidate_id", "label", "score", "again"])
    return both.astype({"score": np.float32, "again": np.float32, "label": np.int8}), draw(st.integers(1, 8))


def second_of(both, k):
    """What a second stage says of the k best."""
    chosen = reranking.top_k(both, k)
    scored = both.drop(columns="score").rename(columns={"again": "score"}).merge(chosen[reranking.ROW])
    return chosen, reranking.joined(chosen, scored)


def made_up(questions=60, size=9, seed=0, positives=1):
    """Scores of one system, all different; the first rows of a question are right, as in TREC-QA."""
    draw = np.random.default_rng(seed)
    rows = [(f"q{q}", f"q{q}-{i}", int(i < positives)) for q in range(questions) for i in range(size)]
    return pd.DataFrame(rows, columns=reranking.ROW).assign(score=draw.permutation(len(rows)).astype(np.float32))


# ------------------------------------------------------------------ the k best


@pytest.mark.slow
@FEWER
@given(rankings())
def test_the_k_best_equal_a_slow_loop(given):
    both, k = given
    chosen = reranking.top_k(both, k)
    assert list(chosen) == [*reranking.ROW, "first_score", "first_rank"]
    for name, rows in both.groupby("question_id"):
        kept = chosen[chosen.question_id == name]
        assert kept.first_score.tolist() == sorted(rows.score, reverse=True)[:k]
        assert kept.first_rank.tolist() == list(range(1, len(kept) + 1))
        assert all(
            (row.candidate_id, row.label, row.first_score) in list(zip(rows.candidate_id, rows.label, rows.score))
            for row in kept.itertuples()
        )
        border = sorted(rows.score, reverse=True)[k - 1 : k + 1]
        assert (name in reranking.border_ties(both, k)) == (len(border) == 2 and border[0] == border[1])


@pytest.mark.slow
@FEWER
@given(rankings(), st.randoms())
def test_ties_know_neither_labels_nor_the_order_of_rows(given, draw):
    both, k = given

    def best(table):
        return reranking.top_k(table, k).drop(columns="label").sort_values(["question_id", "first_rank"]).reset_index(drop=True)

    for other in (both.assign(label=1 - both.label), both.iloc[draw.sample(range(len(both)), len(both))]):
        pd.testing.assert_frame_equal(best(other), best(both))


def test_of_equal_candidates_every_row_is_kept_as_often():
    """Right candidates stand first: a choice by row, or by an id with the row's number, would keep them all or none."""
    scores = made_up(400, 10, positives=2).assign(score=0.0)
    chosen = reranking.top_k(scores, 5)
    rows = chosen.candidate_id.str.split("-").str[1].value_counts()
    assert len(rows) == 10 and rows.min() > 160 and rows.max() < 240  # 200, plus and minus four deviations
    assert len(reranking.border_ties(scores, 5)) == 400
    assert reranking.top_k(scores, 5, seed=1).candidate_id.tolist() != chosen.candidate_id.tolist()
    assert reranking.top_k(made_up(), 5, seed=1).equals(reranking.top_k(made_up(), 5))  # no ties, nothing to draw


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: pd.concat([table, table[2:3]], ignore_index=True), "row 540: candidate 'q0-2' appears twice in question 'q0'"),
        (lambda table: table.assign(score=table.score.where(table.index != 7)), "row 7: a score is a finite number, got nan"),
    ],
)
def test_scores_that_rank_nothing_are_refused(change, message):
    for call in (lambda first: reranking.top_k(first, 5), lambda first: reranking.spliced(first, made_up())):
        with pytest.raises(ValueError, match=f"first stage, {message}"):
            call(change(made_up()))
    with pytest.raises(ValueError, match="k is at least 1 candidate, got 0"):
        reranking.top_k(made_up(), 0)


# ------------------------------------------------------------------ their text


class Asked(list):
    """Questions that count how many were read."""

    def __iter__(self):
        for self.read, question in enumerate(super().__iter__(), 1):
            yield question


def asked_questions(scores):
    candidate = lambda row: Candidate(row.candidate_id, f"text of {row.candidate_id}", row.label, "before", None)
    each = ((name, tuple(map(candidate, rows.itertuples()))) for name, rows in scores.groupby("question_id", sort=False))
    return Asked(Question(name, f"what is {name}?", candidates) for name, candidates in each)


def test_questions_with_their_chosen_candidates_one_at_a_time():
    scores = made_up(6)
    chosen, asked = reranking.top_k(scores, 3), asked_questions(scores)
    found = reranking.only(asked, chosen)
    first = next(found)
    assert asked.read == 1 and first.text == "what is q0?" and first.candidates[0].before == "before"
    found = [first, *found]
    assert [question.id for question in found] == [f"q{n}" for n in range(6)]
    pairs = {(question.id, candidate.id, candidate.label) for question in found for candidate in question.candidates}
    assert pairs == set(chosen[reranking.ROW].itertuples(index=False, name=None)) and len(pairs) == 18
    assert [q.id for q in reranking.only(asked, chosen[chosen.question_id == "q4"])] == ["q4"]


def test_what_the_questions_lack_is_refused():
    scores = made_up(6)
    chosen = reranking.top_k(scores, 3)
    with pytest.raises(ValueError, match="question 'q2' has no candidate 'zz'"):
        list(reranking.only(asked_questions(scores), chosen.assign(candidate_id=chosen.candidate_id.where(chosen.index != 7, "zz"))))
    with pytest.raises(ValueError, match="2 chosen questions are not among those given, first 'q4'"):
        list(reranking.only(asked_questions(scores)[:4], chosen))


def test_both_stages_stand_side_by_side_whatever_the_order():
    scores = made_up(6)
    chosen = reranking.top_k(scores, 3)
    scored = chosen[reranking.ROW].assign(score=np.arange(18, dtype=np.float32)).sample(frac=1, random_state=0)
    found = reranking.joined(chosen, scored)
    assert list(found) == [*reranking.ROW, "score", "first_score", "first_rank"]
    assert found.score.tolist() == list(range(18)) and found.drop(columns="score").equals(chosen)
    with pytest.raises(ValueError, match=r"with label [01] is in the k best alone \(1 such rows\)"):
        reranking.joined(chosen, scored[1:])
    with pytest.raises(ValueError, match="is in the second stage alone"):
        reranking.joined(chosen[1:], scored)


# ------------------------------------------------------------------ whole lists


@pytest.mark.slow
@FEWER
@given(rankings())
def test_whole_lists_keep_every_candidate_and_both_orders(given):
    both, k = given
    chosen, top = second_of(both, k)
    whole = reranking.spliced(both, top)
    assert whole.score.dtype == np.float32 and whole.drop(columns="score").equals(both.drop(columns="score"))
    known = {row.candidate_id: row for row in both.itertuples()}
    again = set(chosen.candidate_id)
    for _, rows in whole.groupby("question_id"):
        for one in rows.itertuples():
            for other in rows.itertuples():
                a, b = one.candidate_id, other.candidate_id
                if (a in again) != (b in again):
                    expected = (a in again) - (b in again)
                elif a in again:
                    expected = np.sign(known[a].again - known[b].again)
                else:
                    expected = np.sign(known[a].score - known[b].score)
                assert np.sign(one.score - other.score) == expected
        assert sorted(set(rows.score), reverse=True) == [-place for place in range(1, rows.score.nunique() + 1)]


@pytest.mark.slow
@FEWER
@given(rankings())
def test_a_second_stage_equal_to_the_first_changes_no_metric(given):
    both, k = given
    _, top = second_of(both.assign(again=both.score), k)
    before, after = metrics.of(both).per_question, metrics.of(reranking.spliced(both, top)).per_question
    cut = before.question_id.isin(reranking.border_ties(both, k))  # a tie that the border parts is one no more
    pd.testing.assert_frame_equal(before[~cut], after[~cut])


@pytest.mark.slow
@FEWER
@given(rankings())
def test_nothing_passes_the_ceiling_and_the_k_alone_decide_the_first_place(given):
    both, k = given
    chosen, top = second_of(both, k)
    found = reranking.measured(both, top, reranking.spliced(both, top))
    right = chosen.groupby("question_id").label.max()
    assert found["ceiling"].p_at_1 == pytest.approx(right.mean())
    assert found["top_k"].empty_questions == found["first_top_k"].empty_questions == (right == 0).sum()
    assert found["test"].p_at_1 == found["top_k"].p_at_1
    assert found["test"].mrr >= found["top_k"].mrr
    for value in ("p_at_1", "map", "mrr"):
        assert getattr(found["test"], value) <= getattr(found["ceiling"], value) + 1e-12


def test_metrics_by_hand():
    """a: ranked x, y | z, right ones y and z. b: right one w below the k."""
    rows = [("a", "x", 0, 3.0), ("a", "y", 1, 2.0), ("a", "z", 1, 1.0), ("b", "u", 0, 3.0), ("b", "v", 0, 2.0), ("b", "w", 1, 1.0)]
    first = pd.DataFrame(rows, columns=[*reranking.ROW, "score"])
    chosen = reranking.top_k(first, 2)
    top = reranking.joined(chosen, chosen[reranking.ROW].assign(score=[-9.0, -8.0, 0.0, 1.0]))  # y before x, v before u
    whole = reranking.spliced(first, top)
    assert whole.score.tolist() == [-2, -1, -3, -2, -1, -3]
    found = {name: one.record() for name, one in reranking.measured(first, top, whole).items()}
    values = {name: [one["p@1"], one["map"], one["mrr"], one["empty_questions"]] for name, one in found.items()}
    third = 1 / 3
    assert values["first"] == pytest.approx([0, ((1 / 2 + 2 / 3) / 2 + third) / 2, (1 / 2 + third) / 2, 0])
    assert values["test"] == pytest.approx([1 / 2, ((1 + 2 / 3) / 2 + third) / 2, (1 + third) / 2, 0])
    assert values["first_top_k"] == pytest.approx([0, 1 / 4, 1 / 4, 1])
    assert values["top_k"] == pytest.approx([1 / 2, 1 / 2, 1 / 2, 1])
    assert values["ceiling"] == values["test"]
    table = reranking.table(reranking.measured(first, top, whole))
    assert table.index.tolist() == list(reranking.NAMES.values())
    assert table.loc["after re-ranking, the k alone"].tolist() == [50, 50, 50, 2, 0, 1]


def test_rows_that_the_first_stage_lacks_are_refused():
    scores = made_up(3)
    with pytest.raises(ValueError, match=r"'q3-0' of question 'q3' with label 1 is in second stage alone \(9 such rows\)"):
        reranking.spliced(scores, made_up(4))
    with pytest.raises(ValueError, match=r"'q0-0' of question 'q0' with label 0 is in second stage alone \(27 such rows\)"):
        reranking.spliced(scores, scores.assign(label=1 - scores.label))
    nothing = reranking.spliced(scores, scores[:0]).score  # then all is as it was
    assert nothing.groupby(scores.question_id).rank().equals(scores.score.groupby(scores.question_id).rank())


# ------------------------------------------------------------------ two runs and the notebook


def finished(folder, name, scores=None, **settings):
    """A made-up finished run."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    inputs = {"dataset": answers.fingerprint_of_answers(settings["path"])}
    known = {"architecture": "pair", "dataset": f"own:{settings.pop('path').name}", "protocol": "clean", "question_limit": None, **settings}
    record = {"notebook": "finetune", "name": name, "budget": known.pop("budget", "laptop"), "seed": 0, "settings": known, "inputs": inputs}
    record["baselines"] = {"random": {"p@1": 0.25, "map": 0.5, "mrr": 0.5}}
    if scores is not None:
        scores.to_parquet(folder / name / "scores.parquet", index=False)
    disk.write_json(folder / name / "record.json", record | runs.hashes(folder / name))
    return folder / name


@pytest.fixture
def two(tmp_path):
    """The user's own questions in three files, and two finished runs that ranked them."""
    (tmp_path / "mine").mkdir()
    for split in answers.SPLITS:
        lines = [f"{split} {q}?\tthe <b>{split}</b> candidate {i} of {q}\t{int(i == q % 8)}" for q in range(20) for i in range(8)]
        (tmp_path / "mine" / f"{split}.tsv").write_text("\n".join(["question\tanswer\tlabel", *lines]) + "\n")
    frame, draw = answers.load_answers(tmp_path / "mine")["test"].frame(), np.random.default_rng(0)
    scores = frame.assign(score=(frame.label + draw.normal(0, 1, len(frame))).astype(np.float32))
    folder = tmp_path / "runs"
    first = finished(folder, "finetune-mine-0123456789ab", scores, path=tmp_path / "mine")
    shuffled = scores.assign(score=-scores.score).sample(frac=1, random_state=0)
    joint = finished(folder, "finetune-mine-joint-ba9876543210", shuffled, path=tmp_path / "mine", architecture="joint", k=5)
    return SimpleNamespace(folder=folder, data=tmp_path / "mine", first=first, joint=joint, scores=scores)


def test_two_runs_on_the_same_questions(two):
    first, joint = stages.records(two.first, two.joint, "laptop")
    assert (first["name"], joint["name"]) == (two.first.name, two.joint.name)
    scores = stages.first_scores(two.first, two.joint)
    assert scores.equals(two.scores)
    assert len(stages.load_questions(first, scores, str(two.data))) == 20
    with pytest.raises(ValueError, match="a record keeps no path, name the file or folder of own:mine again"):
        stages.load_questions(first, scores)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"architecture": "context"}, "architecture joint expected, finetune-mine-joint-ba9876543210 has context"),
        ({"protocol": "asbert"}, "the same questions: protocol is clean in .*-0123456789ab, asbert in .*-ba9876543210"),
        ({"question_limit": 7}, "the same questions: question_limit is None in .*, 7 in"),
        ({"dataset": "wikiqa"}, "the same questions: dataset is own:mine in .*, wikiqa in"),
        ({"budget": "gpu"}, None),
    ],
)
def test_other_runs_are_refused(two, changed, message):
    finished(two.folder, two.joint.name, path=two.data, **{"architecture": "joint", "k": 5, **changed})
    if message is None:  # the lower budget of the two
        stages.records(two.first, two.joint, "laptop")
        changed, message = {}, "budget: laptop expected, the lower one of laptop and gpu .*; got small"
    with pytest.raises(ValueError, match=message):
        stages.records(two.first, two.joint, "small")


def test_other_data_are_refused(two):
    first, _ = stages.records(two.first, two.joint, "laptop")
    lines = (two.data / "test.tsv").read_text().splitlines()
    (two.data / "test.tsv").write_text("\n".join([*lines[:3], lines[3].replace("candidate", "sentence"), *lines[4:]]) + "\n")
    with pytest.raises(ValueError, match="is not what finetune-mine-0123456789ab was made from: fingerprint [0-9a-f]{64} expected, got"):
        stages.load_questions(first, two.scores, str(two.data))
    other = {"path": two.data, "architecture": "joint", "k": 5}
    finished(two.folder, two.joint.name, **other)
    with pytest.raises(ValueError, match="the same questions: fingerprint is"):
        stages.records(two.first, two.joint, "laptop")
    finished(two.folder, two.joint.name, two.scores[two.scores.question_id != "test-3"], **other)
    with pytest.raises(ValueError, match=r"'test-3-0' of question 'test-3' with label 0 is in finetune-mine-0123456789ab alone \(8 such"):
        stages.first_scores(two.first, two.joint)
    (two.joint / "scores.parquet").unlink()
    finished(two.folder, two.joint.name, **other)
    with pytest.raises(ValueError, match=r"finetune-mine-joint-ba9876543210 has no scores.parquet"):
        stages.first_scores(two.first, two.joint)


def test_stages_decide_the_hash_through_their_runs_and_are_shown_by_name(two):
    where = {"runs_dir": str(two.folder)}
    who = identity.of_run("rerank", {"first_run": str(two.first), "joint_run": two.joint.name, **where})
    assert who["inputs"] == {"first_run": "0123456789ab", "joint_run": "ba9876543210"}
    assert (who["settings"]["first_run"], who["settings"]["joint_run"]) == (two.first.name, two.joint.name)
    assert str(two.folder) not in json.dumps(who) and who["name"].startswith("rerank-finetune-mine-finetune-mine-joint-")
    assert identity.of_run("rerank", {"first_run": two.first.name, "joint_run": str(two.joint), **where}) == who
    given = {"first_run": str(two.first), "joint_run": two.joint.name, **where}
    swapped = {"first_run": two.joint.name, "joint_run": two.first.name}
    changes = ({}, swapped, {"k": 3}, {"seed": 1}, {"dataset": str(two.data)})
    assert len({identity.of_run("rerank", given | change)["hash"] for change in changes}) == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "first_run: a finished run's name or folder is expected, got None"),
        ({"joint_run": None}, "joint_run: a finished run's name or folder is expected, got None"),
        ({"joint_run": "FacebookAI/roberta-base"}, "joint_run: a finished run's name or folder is expected, got 'FacebookAI/roberta-base'"),
        ({"joint_run": "finetune-mine-aaaaaaaaaaaa"}, "joint_run: finetune-mine-aaaaaaaaaaaa is not a finished run"),
        ({"k": 0}, "k of rerank is at least 1, got 0"),
    ],
)
def test_a_stage_that_is_no_finished_run_is_refused(two, given, message):
    given = {"first_run": str(two.first), "joint_run": str(two.joint), "runs_dir": str(two.folder), **given} if given else {}
    with pytest.raises(ValueError, match=message):
        identity.of_run("rerank", given)
    if "aaaaaaaaaaaa" in message:  # a plan may name a run that is to come
        assert identity.of_run("rerank", given, must_exist=False)["inputs"]["joint_run"] == "aaaaaaaaaaaa"


class Knowing:
    """In the place of a joint model: the right candidate has the highest score, the others the number of their letters t."""

    joint_k, max_tokens = 5, 192
    model = torch.nn.Linear(3, 2)

    def score(self, asked, folder=None):
        self.seen = list(asked)
        rows = [(q.id, c.id, c.label, 99.0 if c.label else c.text.count("t")) for q in self.seen for c in q.candidates]
        return pd.DataFrame(rows, columns=[*reranking.ROW, "score"]).astype({"label": np.int8, "score": np.float32})


@pytest.mark.slow
@pytest.mark.parametrize("k", [None, 3])
def test_the_notebook_from_two_runs_to_a_record(two, monkeypatch, k):
    monkeypatch.setattr(rankers, "load_ranker", lambda name: Knowing())
    given = {"first_run": str(two.first), "joint_run": two.joint.name, "k": k, "dataset": str(two.data), "runs_dir": str(two.folder)}
    names = run_cells("rerank", given)
    run, k = names["run"].folder, k or 5
    record = rundir.read_record(run)
    assert [len(question.candidates) for question in names["ranker"].seen] == [k] * 20
    tables = [pd.read_parquet(run / name) for name in ("scores.parquet", "scores_top_k.parquet")]
    assert list(tables[0]) == [*reranking.ROW, "score"] and list(tables[1]) == [*reranking.ROW, "score", "first_score", "first_rank"]
    assert tables[0].score.dtype == tables[1].score.dtype == np.float32 and len(tables[1]) == 20 * k
    assert {name: one["questions"] for name, one in record["metrics"].items()} == dict.fromkeys(names["measured"], 20)
    assert next(iter(record["metrics"])) == "test" and record["metrics"]["test"] == metrics.of(tables[0]).record()
    assert record["metrics"]["first"] == metrics.of(two.scores).record()
    reachable = two.scores[two.scores.score.groupby(two.scores.question_id).rank(ascending=False) <= k].groupby("question_id").label.max()
    assert record["metrics"]["test"]["p@1"] == record["metrics"]["ceiling"]["p@1"] == pytest.approx(reachable.mean())
    assert record["metrics"]["first"]["p@1"] < record["metrics"]["test"]["p@1"] < 1
    assert record["metrics"]["top_k"]["empty_questions"] == (reachable == 0).sum() > 0
    assert record["baselines"] == {"random": {"p@1": 0.25, "map": 0.5, "mrr": 0.5}}
    assert record["asked"] == {"dataset": "own:mine", "protocol": "clean", "question_limit": None}
    assert record["figures"]["k"] == k and record["figures"]["reranked"] == 20 * k and record["figures"]["parameters"] == 8
    assert str(two.folder) not in (run / "record.json").read_text() and (run / "per_question.parquet").is_file()
    assert len(names["rescued"]) == 2 and names["fates"]["rescued"] > 2


def test_questions_side_by_side(two):
    chosen = reranking.top_k(two.scores, 3)
    top = reranking.joined(chosen, chosen[reranking.ROW].assign(score=[0.25, 0.5, 0.75] * 20))
    split = answers.load_answers(two.data)["test"]
    shown = lists.side_by_side(split, top, {"Rescued": [split.ids[4], split.ids[2]], "Lost": [split.ids[7]]})
    assert re.findall("<caption>(.*)</caption>", shown) == ["Rescued: test 4?", "Rescued: test 2?", "Lost: test 7?"]
    found, rows = cells(shown)[:4], list(chosen[chosen.question_id == split.ids[4]].itertuples())
    assert found[0][:2] == ["Rank by the joint model (score)", "Rank by the first stage (score)"]
    for place, (line, row) in enumerate(zip(found[1:], rows[::-1])):
        label, text = ["✗ does not", "✓ answers"][row.label], f"the <b>test</b> candidate {row.candidate_id[-1]} of 4"
        assert line == [f"{place + 1} ({0.75 - place / 4:.3f})", f"{3 - place} ({row.first_score:.3f})", label, text]


def test_a_renamed_file_is_other_data_and_a_mirror_and_the_hub_have_the_same(tmp_path, monkeypatch):
    """Ids without a column of their own, and so the division, follow from a file's name."""
    rows = "".join(f"q{n}\tan answer\t1\nq{n}\tanother\t0\n" for n in range(12))
    for name in ("mine.tsv", "renamed.tsv"):
        (tmp_path / name).write_text(f"question\tanswer\tlabel\n{rows}")
    first, second = (str(tmp_path / name) for name in ("mine.tsv", "renamed.tsv"))
    assert [question.id for question in answers.load_answers(first)["test"]] != [q.id for q in answers.load_answers(second)["test"]]
    inputs = {"dataset": answers.fingerprint_of_answers(first)}
    record = {"name": "finetune-mine", "settings": {"dataset": "own:mine.tsv"}, "inputs": inputs}
    assert stages.same_data(record, first) == first
    with pytest.raises(ValueError, match="expected, got [0-9a-f]{64} \\(of a file, its name counts, too\\)"):
        stages.same_data(record, second)
    of_the_hub = {"name": "finetune-wikiqa", "settings": {"dataset": "wikiqa"}, "inputs": {"dataset": "microsoft/wiki_qa"}}
    monkeypatch.setattr(answers, "fingerprint_of_answers", lambda name: "a hash of the mirror")
    assert stages.same_data(of_the_hub) == "wikiqa"
    with pytest.raises(ValueError, match="fingerprint another hash expected, got a hash of the mirror"):
        stages.same_data(of_the_hub | {"inputs": {"dataset": "another hash"}})
    monkeypatch.setattr(answers, "fingerprint_of_answers", lambda name: "microsoft/wiki_qa")
    with pytest.raises(ValueError, match="wikiqa is not what finetune-mine was made from"):
        stages.same_data(record, "wikiqa")
