"""Exported files against trec_eval's own reader, with ties, and against this project's metrics."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aslab import runs
from aslab.trec import export
from asutil import metrics
from asutil.io import disk
from asutil.metrics import trec

pytrec_eval = pytest.importorskip("pytrec_eval")
NAMES = {"p_at_1": "P_1", "average_precision": "map", "reciprocal_rank": "recip_rank"}


def run_of(folder, table=None, record=True):
    folder.mkdir(exist_ok=True)
    if table is not None:
        table.to_parquet(folder / "scores.parquet", index=False)
    if record:
        disk.write_json(folder / "record.json", {"name": folder.name} | runs.hashes(folder))
    return folder


def random_scores(seed, steps, questions=20):
    """Scores of which only `steps` are different, in no order of ids; every question has a right candidate."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 15, questions)
    ids = np.repeat([f"q{n}" for n in draw.permutation(questions)], sizes)
    labels = (draw.random(len(ids)) < 0.3).astype(np.int8)
    labels[np.cumsum(sizes) - 1] = 1
    scores = draw.choice(draw.standard_normal(steps).astype(np.float32), len(ids))
    candidates = [f"c{n}" for n in draw.permutation(len(ids))]
    return pd.DataFrame({"question_id": ids, "candidate_id": candidates, "label": labels, "score": scores})


def measured(run, qrels):
    """P@1, average precision and reciprocal rank of each question by trec_eval, from the files alone."""
    with run.open() as ranked, qrels.open() as judged:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judged), set(NAMES.values()))
        return evaluator.evaluate(pytrec_eval.parse_run(ranked))


@pytest.mark.parametrize("steps", [2, 5, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_trec_eval_finds_our_metrics_in_the_files(tmp_path, seed, steps):
    table = random_scores(seed, steps)
    theirs = measured(*export(run_of(tmp_path / "run", table), tmp_path / "out"))
    ours = metrics.of(table, ties="trec_eval", candidate_ids=table.candidate_id)
    assert (metrics.of(table).tied_questions > 0) == (steps < 100)
    assert set(theirs) == set(table.question_id)
    for row in ours.per_question.to_dict("records"):
        assert {name: row[name] for name in NAMES} == pytest.approx(
            {name: theirs[row["question_id"]][other] for name, other in NAMES.items()}, abs=1e-6
        )


@pytest.mark.parametrize("steps", [2, 5, 10_000])
def test_ranks_are_those_of_the_projects_own_rule_for_ties(tmp_path, steps):
    table = random_scores(5, steps)
    run, qrels = export(run_of(tmp_path / "run", table), tmp_path / "out")
    ranked = pd.read_csv(run, sep=" ", names=["question_id", "q0", "candidate_id", "rank", "score", "tag"])
    labels = pd.read_csv(qrels, sep=" ", names=["question_id", "zero", "candidate_id", "label"])
    assert set(ranked.q0) == {"Q0"} and set(ranked.tag) == {"run"} and set(labels.zero) == {0}
    assert len(ranked) == len(labels) == len(table)
    found = ranked.merge(labels).sort_values(["question_id", "rank"])
    values = {}
    for question, rows in found.groupby("question_id"):
        assert rows["rank"].tolist() == list(range(1, len(rows) + 1)) and rows["score"].is_monotonic_decreasing
        right = rows["rank"][rows.label == 1].tolist()
        values[question] = [right[0] == 1, np.mean([(n + 1) / rank for n, rank in enumerate(right)]), 1 / right[0]]
    ours = metrics.of(table).per_question.set_index("question_id")
    assert {q: pytest.approx(list(map(float, v))) for q, v in values.items()} == {q: ours.loc[q].tolist() for q in ours.index}


@pytest.mark.slow
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_scores_are_read_back_as_the_same_floats(tmp_path_factory, scores):
    folder = tmp_path_factory.mktemp("run")
    near = np.array(scores, np.float32)
    near = np.concatenate([near, np.nextafter(near, np.float32(0))])
    ids = [f"c{n}" for n in range(len(near))]
    table = pd.DataFrame({"question_id": "q", "candidate_id": ids, "label": 1, "score": near})
    run, _ = export(run_of(folder, table), folder)
    read = {line.split()[2]: np.float32(line.split()[4]) for line in run.read_text().splitlines()}
    assert [read[name] for name in ids] == near.tolist()


def test_ids_keep_their_quotation_marks(tmp_path):
    ids = ['what"s', '"', "it's", "a,b\\"]
    table = pd.DataFrame({"question_id": ids, "candidate_id": ids[::-1], "label": 1, "score": np.float32(0.5)})
    run, qrels = trec.write_trec(table, tmp_path / "run.txt", tmp_path / "qrels.txt")
    assert [line.split(" ")[::2][:2] for line in run.read_text().splitlines()] == [list(pair) for pair in zip(ids, ids[::-1])]
    assert {line.split(" ")[5] for line in run.read_text().splitlines()} == {"asutil"}
    assert [line.split(" ")[::2] for line in qrels.read_text().splitlines()] == [list(pair) for pair in zip(ids, ids[::-1])]


def test_refusals_leave_the_files_as_they_were(tmp_path, monkeypatch):
    good, bad = random_scores(0, 9), random_scores(0, 9).assign(candidate_id=lambda table: table.candidate_id + " x")
    paths = export(run_of(tmp_path / "good", good), tmp_path / "out")
    before = [path.read_bytes() for path in paths]
    with pytest.raises(ValueError, match=r"row 0: .*white space, so candidate_id 'c\d+ x' cannot be one; give .* ids without white space"):
        trec.write_trec(bad, *paths)
    for path, other in (paths, paths[::-1]):
        other.rename(tmp_path / "hidden")
        with pytest.raises(FileExistsError, match=f"out/{path.name} exists: give another folder"):
            export(tmp_path / "good", tmp_path / "out")
        (tmp_path / "hidden").rename(other)
    to_csv, made = pd.DataFrame.to_csv, []

    def second_fails(*given, **options):
        made.append(1)
        if len(made) == 2:
            raise OSError("disk full")
        return to_csv(*given, **options)

    monkeypatch.setattr(pd.DataFrame, "to_csv", second_fails)
    with pytest.raises(OSError, match="disk full"):  # one text is made, the other is not
        trec.write_trec(random_scores(1, 9), *paths)
    assert [path.read_bytes() for path in paths] == before and len(list((tmp_path / "out").iterdir())) == 2


def test_only_a_finished_run_with_scores_is_exported(tmp_path):
    with pytest.raises(ValueError, match="stopped is not a finished run"):
        export(run_of(tmp_path / "stopped", random_scores(0, 9), record=False), tmp_path / "out")
    with pytest.raises(ValueError, match=r"pretrained has no scores\.parquet"):
        export(run_of(tmp_path / "pretrained"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command(tmp_path):
    def command(*given):
        return subprocess.run([sys.executable, "-m", "asutil", "trec", *map(str, given)], capture_output=True, text=True, check=False)

    run_of(tmp_path / "my run", random_scores(0, 9))
    done = command(tmp_path / "my run", "--out", tmp_path / "deep" / "out")
    assert done.returncode == 0 and (tmp_path / "deep" / "out" / "run.txt").read_text().splitlines()[0].endswith(" my_run")
    failed = command(tmp_path / "none", "--out", tmp_path / "other")
    assert failed.returncode == 2 and "none is not a finished run" in failed.stderr and not (tmp_path / "other").exists()
    assert "scores.parquet" in command("--help").stdout


def test_damaged_scores_are_refused_by_name(tmp_path):
    table = random_scores(0, 5)
    for wrong, said in [
        (table.drop(columns="score"), "expected a column 'score'"),
        (table.assign(score="NaN"), "expected numbers in the column 'score'"),
        (table.assign(candidate_id="a b"), "row 0: "),
    ]:
        run = run_of(tmp_path / "finetune-0123456789ab", wrong)
        with pytest.raises(ValueError, match=rf"finetune-0123456789ab/scores\.parquet.*{said}"):
            export(run, tmp_path / "out")


def test_graded_relevances_are_right_from_a_level_on_as_in_trec_eval(tmp_path):
    draw = np.random.default_rng(3)
    qrels = {f"q{q}": {f"d{d}": int(draw.integers(0, 4)) for d in range(9)} for q in range(20)}
    run = {question: {candidate: float(draw.normal()) for candidate in own} for question, own in qrels.items()}
    lines = [f"{question} 0 {candidate} {label}\n" for question, own in qrels.items() for candidate, label in own.items()]
    (tmp_path / "qrels").write_text("".join(lines))
    scores = pd.DataFrame([(q, c, s) for q, own in run.items() for c, s in own.items()], columns=["question_id", "candidate_id", "score"])
    with pytest.raises(ValueError, match="relevant_from is 1 or more"):
        trec.read_qrels(tmp_path / "qrels", 0)
    for level in (1, 2, 3):
        ours = trec.by_trec_eval(scores, trec.read_qrels(tmp_path / "qrels", level)).average_precision
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map"}, relevance_level=level).evaluate(run)
        assert len(ours) > 10
        assert ours.tolist() == pytest.approx([theirs[question]["map"] for question in ours.index])


def test_a_run_whose_candidates_are_not_in_the_qrels_is_refused():
    """Ids of another making: every candidate would count as wrong."""
    qrels = pd.DataFrame([("q1", "d1", 1), ("q1", "d2", 0)], columns=["question_id", "candidate_id", "label"])
    run = pd.DataFrame([("q1", "q1-0", 2.0), ("q1", "q1-1", 1.0)], columns=["question_id", "candidate_id", "score"])
    with pytest.raises(ValueError, match="mine: .* expected ids such as 'd1' of question 'q1', got 'q1-0' of question 'q1'"):
        trec.require_judged("mine", run, qrels)
    trec.require_judged("mine", run.assign(candidate_id=["d2", "q1-1"]), qrels)


def test_files_of_other_programs_are_read_as_trec_eval_reads_them(tmp_path):
    text = "q Q0 a 1 0.5 my tag of 3 words\nq Q0 b 2 0.25 x\n"
    (tmp_path / "plain.run").write_text(text)
    with gzip.open(tmp_path / "packed.run.gz", "wt") as packed:
        packed.write(text)
    for name in ("plain.run", "packed.run.gz"):
        assert trec.read_run(tmp_path / name).to_dict("list") == {
            "question_id": ["q", "q"],
            "candidate_id": ["a", "b"],
            "score": [0.5, 0.25],
        }
    for letter in (b"\xe8", b"\xe9"):  # an id in another encoding stays another id
        (tmp_path / "latin.run").write_bytes(b"q Q0 caf" + letter + b" 1 0.5 x\n")
        assert trec.read_run(tmp_path / "latin.run").candidate_id.tolist() == [f"caf\\x{letter.hex()}"]
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 0.5\n")
    with pytest.raises(ValueError, match=r"qrels, line 2: a relevance is a whole number, got 0\.5"):
        trec.read_qrels(tmp_path / "qrels")
    (tmp_path / "qrels").write_text("q 0 a 1 more\n")
    with pytest.raises(ValueError, match="qrels, line 1: expected question_id iteration candidate_id label"):
        trec.read_qrels(tmp_path / "qrels")
