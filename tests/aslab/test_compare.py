"""Rankings of any program compared: trec_eval's own values, a randomisation test against scipy and a loop, refusals, the command."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import ndcg_score

from aslab import compare
from aslab.commands import asutil
from asutil.io import disk
from asutil.metrics import significance, trec

from ..made_up import finished, refused

MEASURES = {"p_at_1": "P_1", "average_precision": "map", "reciprocal_rank": "recip_rank"}


# ------------------------------------------------------------------ TREC files


@st.composite
def judged_runs(draw):
    """Labels and scores of a few candidates: some not retrieved, some not judged, many ties."""
    ids = [f"d{n}" for n in draw(st.permutations(range(12)))]
    qrels, run = {}, {}
    for question in ("q1", "q2", "q10"):
        qrels[question] = {name: draw(st.integers(0, 1)) for name in ids[: draw(st.integers(1, 9))]}
        run[question] = {name: float(draw(st.integers(0, 3))) for name in draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))}
    return qrels, run


def frames(qrels, run):
    right = [(question, name, label) for question, own in qrels.items() for name, label in own.items()]
    scores = [(question, name, score) for question, own in run.items() for name, score in own.items()]
    return pd.DataFrame(scores, columns=["question_id", "candidate_id", "score"]), pd.DataFrame(
        right, columns=["question_id", "candidate_id", "label"]
    )


@pytest.mark.slow
@settings(max_examples=150)
@given(judged_runs())
def test_values_are_those_of_trec_eval(made):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = made
    ours = trec.by_trec_eval(*frames(qrels, run))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values())).evaluate(run)
    assert set(ours.index) == {question for question, own in qrels.items() if any(own.values())}
    for question, values in ours.iterrows():
        assert values[list(MEASURES)].tolist() == pytest.approx([theirs[question][name] for name in MEASURES.values()], abs=1e-6)


@pytest.mark.slow
@settings(max_examples=100)
@given(judged_runs())
def test_named_measures_are_those_of_trec_eval(made):
    pytrec_eval, _ = pytest.importorskip("pytrec_eval"), pytest.importorskip("ir_measures")
    qrels = {question: {name: label * (1 + int(name[1:]) % 3) for name, label in own.items()} for question, own in made[0].items()}
    run = made[1]
    scores, judged = frames(qrels, run)
    judged = judged.rename(columns={"label": "relevance"})
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10", "ndcg_cut_3", "recall_5", "recip_rank"}).evaluate(run)
    # RR with a cut comes from another provider of ir_measures, which breaks ties otherwise.
    peers = {"nDCG@10": "ndcg_cut_10", "nDCG@3": "ndcg_cut_3", "R@5": "recall_5", "RR@1000": "recip_rank"}
    for name, peer in peers.items():
        ours = trec.by_measure(scores, judged, name)
        assert ours.to_dict() == pytest.approx({question: values[peer] for question, values in theirs.items()})


def test_runs_have_ndcg_with_the_wrong_candidate_first_at_one_score(tmp_path):
    pytest.importorskip("ir_measures")
    draw, orders = np.random.default_rng(0), {}
    for name in ("finetune-aaaaaaaaaaaa", "finetune-bbbbbbbbbbbb"):
        table = pd.DataFrame({"question_id": np.repeat([f"q{n}" for n in range(8)], 6), "label": ([0, 1, 0] * 2) * 8})
        table["candidate_id"] = [f"{question}-{n % 6}" for n, question in enumerate(table.question_id)]
        table["score"] = draw.integers(0, 3, len(table)).astype(np.float32)
        finished(tmp_path / name, {"notebook": "finetune", "settings": {"dataset": "mine"}}, scores=table)
        ordered = table.sort_values(["score", "label"], ascending=[False, True])
        orders[name] = {question: own.label.tolist() for question, own in ordered.groupby("question_id")}
    folders = [str(tmp_path / name) for name in orders]
    values = compare.read(folders, metric="nDCG@3")
    for name, own in orders.items():
        expected = {question: ndcg_score([labels], [range(6, 0, -1)], k=3) for question, labels in own.items()}
        assert values[name]["nDCG@3"].to_dict() == pytest.approx(expected)
    assert "nDCG@3" in compare.means(values) and "nDCG@3, A - B" in compare.pairs(values, "nDCG@3")
    with pytest.raises(ValueError, match="nDGC@3: expected a measure of ir_measures, such as nDCG@10"):
        compare.read(folders, metric="nDGC@3")


def test_files_are_read_as_they_are_written(tmp_path):
    scores = pd.DataFrame({"question_id": list("aab"), "candidate_id": ["1", "2", "1"], "label": [0, 1, 1], "score": [0.1, -3.5, 1e-7]})
    trec.write_trec(scores, tmp_path / "run.txt", tmp_path / "qrels.txt")
    run, qrels = trec.read_run(tmp_path / "run.txt"), trec.read_qrels(tmp_path / "qrels.txt")
    both = run.merge(qrels, on=["question_id", "candidate_id"]).sort_values(["question_id", "candidate_id"], ignore_index=True)
    pd.testing.assert_frame_equal(both[scores.columns], scores.astype({"score": np.float32}), check_dtype=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q Q0 a 1 0.5 x\nq Q0 b 2\n", "mine.run, line 2: expected question_id q0 candidate_id rank score tag, got 'q Q0 b 2'"),
        ("q Q0 a 1 high x\n", "mine.run, line 1: score is a number, got 'high'"),
        ("q Q0 a 1 nan x\n", "mine.run, line 1: score is a finite number, got nan"),
        ("q Q0 a 1 0.5 x\n\nq Q0 a 2 0.4 x\n", "mine.run, line 3: candidate 'a' appears twice in question 'q'"),
        ("\n", "mine.run: no lines"),
    ],
)
def test_a_broken_run_file_is_named_with_its_line(tmp_path, text, said):
    (tmp_path / "mine.run").write_text(text)
    with pytest.raises(ValueError, match=f"^{said}"):
        trec.read_run(tmp_path / "mine.run")


# ------------------------------------------------------------------ randomisation


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_randomisation_equals_a_loop_over_all_swaps(pairs):
    ours, other = (np.array(values) / 4 for values in zip(*pairs))
    deltas = ours - other
    swapped = [abs(sum(s * d for s, d in zip(signs, deltas))) for signs in itertools.product((-1, 1), repeat=len(deltas))]
    expected = np.mean([value >= abs(deltas.sum()) - 1e-9 for value in swapped])
    assert significance.randomisation(ours, other) == pytest.approx(expected)


def test_randomisation_equals_scipys_permutation_test():
    draw = np.random.default_rng(0)
    ours, other = draw.random(200), draw.random(200) * 0.9
    expected = stats.permutation_test((ours - other,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1).pvalue
    assert significance.randomisation(ours, other) == pytest.approx(expected, abs=0.015)
    assert significance.randomisation(ours, ours) == 1


# ------------------------------------------------------------------ the command


@pytest.fixture
def files(tmp_path):
    """Twenty questions of three candidates: `good` is right but for one, `bad` for none but one, `short` lacks two questions."""
    lines = {"good": [], "bad": [], "short": []}
    qrels = []
    for n in range(20):
        for candidate, label in (("a", 1), ("b", 0), ("c", 0)):
            qrels.append(f"q{n} 0 {candidate} {label}")
            best = {"good": "a" if n else "b", "bad": "b" if n else "a"}
            for name, first in best.items():
                lines[name].append(f"q{n} Q0 {candidate} 1 {2.0 if candidate == first else 1.0 if candidate == 'a' else 0.5} {name}")
            if n > 1:
                lines["short"].append(lines["good"][-1])
    for name, text in lines.items():
        (tmp_path / f"{name}.run").write_text("\n".join(text) + "\n")
    (tmp_path / "qrels").write_text("\n".join(qrels) + "\n")
    return tmp_path


def called(capsys, *words) -> str:
    asutil.main(["compare", *map(str, words)])
    return capsys.readouterr().out


def test_two_files_of_other_programs(files, capsys):
    shown = called(capsys, files / "good.run", files / "bad.run", "--qrels", files / "qrels")
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith(("good", "bad"))}
    assert "over 20 questions" in shown and "97.5" in shown and "52.5" in shown  # 19 of 1 and one of 1/2, and the reverse
    assert "95.0 [85.0, 100.0]*" in shown and "5.0 [0.0, 15.0]" in shown
    assert "+45.0 [" in lines["good.run"] and " 0.0" in lines["good.run"]
    moved = [line.split() for line in shown.partition("Questions that moved")[2].splitlines()[3:] if line]
    assert moved[0] == ["bad.run", "rescued", "1", "q0"] and moved[1][:3] == ["bad.run", "lost", "19"]
    assert [len(line) for line in moved[1:]] == [4, 1, 1, 1, 1]  # five of the 19, each on a line of its own
    markdown = called(capsys, files / "good.run", files / "bad.run", "--qrels", files / "qrels", "--form", "markdown")
    assert "### Every pair" in markdown and "| good.run" in markdown
    html = called(capsys, files / "good.run", files / "bad.run", "--qrels", files / "qrels", "--form", "html")
    assert html.count("<table") == 3


def test_questions_that_a_run_lacks(files, capsys):
    words = (files / "good.run", files / "short.run", "--qrels", files / "qrels")
    assert "short.run lacks 2 of 20 questions (q0, q1...): --missing drop" in refused(capsys, "compare", *words)
    assert "over 18 questions" in called(capsys, *words, "--missing", "drop")
    zero = called(capsys, *words, "--missing", "zero")
    assert "over 20 questions" in zero and "counted as zero" in zero and "90.0 [" in zero


def test_a_question_that_all_runs_lack_is_known_from_the_qrels(files, capsys):
    words = (files / "short.run", files / "other.run", "--qrels", files / "qrels")
    (files / "other.run").write_text((files / "short.run").read_text())
    assert "short.run lacks 2 of 20 questions" in refused(capsys, "compare", *words)
    assert "over 18 questions" in called(capsys, *words, "--missing", "drop")
    assert "over 20 questions" in called(capsys, *words, "--missing", "zero")
    (files / "qrels").write_text("q0 0 a 0\n")
    assert "qrels: expected a relevance of 1 or more, got none" in refused(capsys, "compare", *words)


def test_runs_that_were_measured_on_other_labels_or_candidates_are_refused(tmp_path, monkeypatch):
    tables = {}
    for name, right in (("finetune-mine-0123456789ab", 0), ("finetune-mine-ba9876543210", 1)):
        labels = [int(n == right) for n in range(3)]
        tables[name] = pd.DataFrame({"question_id": "q", "candidate_id": list("abc"), "label": labels, "score": [0.3, 0.2, 0.1]})
        (tmp_path / "runs" / name).mkdir(parents=True)
    monkeypatch.setattr(compare.rundir, "find", lambda name: tmp_path / "runs" / name)
    monkeypatch.setattr(compare.rundir, "read_record", lambda run: {"name": run.name, "settings": {}})
    monkeypatch.setattr(compare.rundir, "read_table", lambda run, name, numbers: tables[run.name])
    with pytest.raises(ValueError, match=r"different labels: candidate 'a' of question 'q' has 1 and 0 \(2 such\)"):
        compare.read(list(tables))
    first = tables["finetune-mine-0123456789ab"]
    more = pd.DataFrame({"question_id": ["q"], "candidate_id": ["d"], "label": [0], "score": [0.9]})
    for longer in list(tables):
        tables.update(dict.fromkeys(tables, first))
        tables[longer] = pd.concat([first, more])
        with pytest.raises(ValueError, match=rf"candidate 'd' of question 'q' is in {longer} alone \(1 such\)"):
            compare.read(list(tables))
    other = dict(zip("xy", tables)) | {"z": "finetune-mine-00000000000f"}  # the first of the three has none of the questions
    three = {name: first.assign(question_id="p") if name == other["x"] else first for name in other.values()}
    three[other["z"]] = first.assign(label=1 - first.label)
    with pytest.raises(ValueError, match=rf"{other['y']} and {other['z']} were measured on different labels"):
        compare._require_same_candidates(three)
    tables[longer] = first.iloc[::-1]
    assert len(compare.read(list(tables))) == 2, "the order of candidates does not matter"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["good.run", "--qrels", "qrels"], "two runs or more are needed"),
        (["good.run", "bad.run"], "--qrels is needed with it"),
        (["good.run", "nowhere.run", "--qrels", "qrels"], "expected the name or folder of a finished run, or a TREC run file"),
        (["good.run", "good.run", "--qrels", "qrels"], "two runs are called good.run"),
    ],
)
def test_refusals_say_what_is_expected(files, monkeypatch, capsys, words, said):
    monkeypatch.chdir(files)
    assert said in refused(capsys, "compare", *words)


def test_finished_runs_with_the_settings_that_differ(tmp_path, capsys):
    names = []
    for seed in (0, 1):
        draw = np.random.default_rng(seed)
        table = {"question_id": np.repeat([f"q{n}" for n in range(30)], 4), "candidate_id": [f"c{n}" for n in range(120)]}
        scores = pd.DataFrame(table).assign(label=np.tile([1, 0, 0, 0], 30).astype(np.int8), score=draw.random(120).astype(np.float32))
        settings = {"dataset": "mine", "seed": seed, "peak_lr": 0.1 * (seed + 1)}
        folder = tmp_path / f"finetune-mine-seed{seed}-{seed:012x}"
        names.append(str(finished(folder, {"notebook": "finetune", "settings": settings}, scores=scores)))
    shown = called(capsys, *names)
    assert "peak_lr" in shown and "seed " in shown and "dataset" not in shown and "over 30 questions" in shown


def test_a_data_set_is_compared_that_one_run_learnt_and_another_also_ranked(tmp_path, capsys):
    """The files differ in one candidate, so that the wrong one would show."""
    names, right = [], {"scores": [0, 1], "scores_mine": [1, 0]}
    table = lambda scores: pd.DataFrame({"question_id": "q", "candidate_id": ["c", "d"], "label": [1, 0], "score": scores})
    for name, dataset, others in (("finetune-a-000000000000", "mine", {}), ("finetune-b-000000000000", "other", {"mine": {}})):
        made = {"notebook": "finetune", "settings": {"dataset": dataset}, "transfer": others}
        tables = {file: table(scores) for file, scores in right.items()}
        names.append(str(finished(tmp_path / name, made, **tables)))
    values = compare.read(names, dataset="mine")
    assert [table.average_precision["q"] for table in values.values()] == [0.5, 1.0]
    assert "over 1 questions" in called(capsys, *names, "--dataset", "mine")
    assert "--dataset selqa: finetune-a-000000000000 ranked mine; also_rank" in refused(capsys, "compare", *names, "--dataset", "selqa")


def test_a_run_of_rank_is_not_compared_on_a_data_set_that_it_did_not_rank(tmp_path):
    run = finished(tmp_path / "rank-a-000000000000", {"notebook": "rank", "settings": {"dataset": "mine"}})
    with pytest.raises(ValueError, match="--dataset selqa: rank-a-000000000000 ranked mine"):
        compare.read([str(run)], dataset="selqa")


def on_own_files(folder, *fingerprints, also=False):
    """A finished run for each sha256 of its data, with the same ids and labels; `also`: it also ranked these data."""
    names = []
    for number, sha256 in enumerate(fingerprints):
        scores = pd.DataFrame({"question_id": ["test-0", "test-0"], "candidate_id": ["a", "b"], "label": [1, 0], "score": [number, 0.5]})
        record = {"settings": {"dataset": "own:data"}, "inputs": {"dataset": sha256}}
        if also:
            record = {"settings": {"dataset": "pydocs"}, "transfer": {"own:data": {"fingerprint": sha256}}}
        tables = {"scores_own-data" if also else "scores": scores}
        names.append(finished(folder / f"finetune-{number:012d}", {"notebook": "finetune", **record}, **tables))
    return names


@pytest.mark.parametrize("also", [False, True])
def test_runs_on_different_files_of_one_name_are_told_apart(tmp_path, capsys, also):
    words, told = ["--dataset", "own:data"] * also, "were measured on different files"
    shown = called(capsys, *on_own_files(tmp_path / "a", "48007301ab", "2d6e22dbff", also=also), *words)
    names = [f"finetune-{n:012d}" for n in range(3)]
    assert shown.startswith(f"{names[0]} and {names[1]} {told} (own:data 48007301, own:data 2d6e22db)\n\n")
    assert told not in called(capsys, *on_own_files(tmp_path / "b", "48007301ab", "48007301ab", also=also), *words)
    three = on_own_files(tmp_path / "c", "48007301ab", "48007301ab", "2d6e22dbff", also=also)
    sentence = f"{' and '.join(names)} {told} (own:data 48007301, own:data 48007301, own:data 2d6e22db)"
    assert compare.different_files(list(map(str, three)), "own:data" if also else None) == [sentence]


def test_runs_on_files_of_different_names_are_told_apart(tmp_path, capsys):
    """Two folders without ids have the same ones, `test-0` first."""
    names = on_own_files(tmp_path, "48007301ab", "2d6e22dbff")
    record = disk.read_json(names[1] / "record.json")
    disk.write_json(names[1] / "record.json", record | {"settings": {"dataset": "own:more"}})
    assert " were measured on different files (own:data 48007301, own:more 2d6e22db)\n" in called(capsys, *names)


def ranked(folder, right="c1", data="same"):
    """A finished run of rank: candidate c1 of q0, q1, q2 is first, second, fourth for BM25, and first, first, second for a model."""
    scores = [
        (ranker, f"q{n}", f"c{c}", int(f"c{c}" == right), 1 - c if c > 1 else 0.5 - rank)
        for ranker, ranks in {"bm25": [1, 2, 4], "own:model": [1, 1, 2]}.items()
        for n, rank in enumerate(ranks)
        for c in range(1, 9)
    ]
    table = pd.DataFrame(scores, columns=["ranker", "question_id", "candidate_id", "label", "score"])
    record = {"notebook": "rank", "settings": {"dataset": "wikiqa", "models": "bm25,own:model"}, "inputs": {"dataset": data}}
    return finished(folder, record, scores_of_rankers=table)


def test_runs_of_rank_have_a_line_for_each_ranker(tmp_path, capsys):
    """Against MAP and nDCG by hand; long names have a letter and a line that explains it."""
    folders = [ranked(tmp_path / f"rank-wikiqa-laptop-bm25-and-one-more-{n:012d}") for n in range(2)]
    shown = called(capsys, folders[0])
    assert "58.3 [" in shown and "83.3 [" in shown and f"A = {folders[0].name}" in shown
    assert "A:bm25" in shown and "A:own:model" in shown and max(map(len, shown.splitlines())) < 120
    both = called(capsys, *folders)
    assert "B:bm25" in both and f"B = {folders[1].name}" in both
    other = ranked(tmp_path / "rank-b-000000000000", data="other")
    assert "runs on the same data expected, got" in refused(capsys, "compare", folders[0], other)
    also = {"notebook": "finetune", "settings": {"dataset": "other"}, "inputs": {"dataset": "x"}}
    also |= {"transfer": {"wikiqa": {"fingerprint": "same"}}}
    scores = pd.read_parquet(folders[0] / "scores_of_rankers.parquet").query("ranker == 'bm25'")
    tuned = finished(tmp_path / "finetune-c-000000000000", also, scores=scores, scores_wikiqa=scores)
    assert len(compare.read([str(folders[0]), str(tuned)], dataset="wikiqa")) == 3
    reranked = {"notebook": "rerank", "settings": {"dataset": None}}  # it has the data of the run that it starts from
    last = finished(tmp_path / "rerank-c-000000000000", reranked, scores=scores)
    assert len(compare.read([str(folders[0]), str(last)])) == 3
    values = compare.read([str(folders[0])], metric="nDCG@10")
    assert values[f"{folders[0].name}:bm25"]["nDCG@10"].tolist() == pytest.approx([1, 1 / np.log2(3), 1 / np.log2(5)])


@pytest.mark.parametrize("questions", [1, 5, 6])
def test_few_questions_tell_no_runs_apart(questions):
    values = {
        name: pd.DataFrame({column: questions * [value] for column in compare.METRICS.values()}) for name, value in (("a", 1.0), ("b", 0.5))
    }
    assert all(text.endswith("*") == (questions < 6) for text in compare.means(values).loc["b"])


def test_a_run_of_rank_is_measured_by_qrels_and_refused_with_other_labels(tmp_path):
    """By the qrels only the last candidate is right."""
    run = ranked(tmp_path / "rank-a-000000000000")
    (tmp_path / "qrels").write_text("".join(f"q{n} 0 c8 1\n" for n in range(3)))
    values = compare.read([str(run)], tmp_path / "qrels")
    assert [table.average_precision.mean() for table in values.values()] == [0.125, 0.125]
    with pytest.raises(ValueError, match="measured on different labels"):
        compare.read([str(run), str(ranked(tmp_path / "rank-b-000000000000", right="c2"))])


def test_runs_without_a_common_question_are_told_so(tmp_path, capsys):
    """Not that their labels differ."""
    runs = []
    for name in "ab":
        scores = {"question_id": [name, name], "candidate_id": ["1", "2"], "label": [1, 0], "score": [0.5, 0.25]}
        record = {"notebook": "finetune", "settings": {"dataset": f"own:{name}"}}
        runs.append(finished(tmp_path / f"finetune-{name}-000000000000", record, scores=pd.DataFrame(scores)))
    for words in ((), ("--missing", "drop")):
        assert "finetune-b-000000000000 lacks 1 of 2 questions (a...)" in refused(capsys, "compare", *runs, *words)


def test_graded_qrels_count_from_the_level_that_is_asked_for(tmp_path, capsys):
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 2\nr 0 a 2\n")
    (tmp_path / "one").write_text("q Q0 a 1 2 x\nq Q0 b 2 1 x\nr Q0 a 1 1 x\n")
    (tmp_path / "two").write_text("q Q0 b 1 2 x\nq Q0 a 2 1 x\nr Q0 a 1 1 x\n")
    maps = {1: {"one": 1.0, "two": 1.0}, 2: {"one": 0.75, "two": 1.0}}
    for level, expected in maps.items():
        values = compare.read([str(tmp_path / "one"), str(tmp_path / "two")], tmp_path / "qrels", level)
        assert {name: table.average_precision.mean() for name, table in values.items()} == expected
        values = compare.read([str(tmp_path / "one")], tmp_path / "qrels", level, metric="R@1")
        assert values["one"]["R@1"].to_dict() == {"q": {1: 0.5, 2: 0.0}[level], "r": 1.0}
    words = (tmp_path / "one", tmp_path / "two", "--qrels", tmp_path / "qrels", "--relevant-from", 3)
    assert "expected a relevance of 3 or more, got none" in refused(capsys, "compare", *words)
    with pytest.raises(ValueError, match="--relevant-from 2 goes with --qrels"):
        compare.read([str(tmp_path / "one")], None, 2)
