"""The rows of evidence_contrast: nothing printed, plans and searches, and the records, comparisons and tables of made-up runs."""

import itertools
import json
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from aslab import papers, parameters, publish, records, rundir
from aslab import plan as plans
from aslab.analysis import comparisons, verdicts
from aslab.show import pca
from asutil.data.long_questions import KINDS, Answer, LongQuestion, Passage
from asutil.io import disk
from asutil.metrics import registry, significance
from asutil.models.finder import contrast_of
from asutil.tasks import finding

from ..book.tables import results_table
from ..made_up import cells
from . import made_up
from .made_up import settings_of

PAPER = "evidence_contrast"
DATA = papers.read(PAPER)
ROWS = DATA["rows"]
CONTROLS = ["longformer_base_dot_light", "longformer_base_bilinear_light"]  # of our own
FORMS = ["longformer_base_log_sum", "longformer_base_other_evidence"]  # other readings of the loss
RUNNABLE = [name for name, row in ROWS.items() if row.get("stages") and name not in (*CONTROLS, *FORMS)]
ALONE = ["longformer_base", "longformer_large", "cdlm_base", "cdlm_large", "led_base"]  # without the loss
ABLATIONS = [name for name, row in ROWS.items() if row.get("baseline") == "longformer_base_contrast" and name not in FORMS]
GRID = [0.2, 0.4, 0.6, 0.8, 1.0]


recorded = partial(made_up.recorded, PAPER)


@cache
def plan(budget, row=None):
    return made_up.plan(PAPER, budget, row and [row])


def dataset_of(row):
    return "qasper" if row.startswith("led") else "hotpotqa"


# ------------------------------------------------------------------ what the paper prints


def test_every_printed_figure_is_lost():
    cells = [cell for row in ROWS.values() for of in row["published"].values() for cell in of.values()]
    assert set(cells) == {None} and len(cells) == 23
    for row, content in ROWS.items():
        assert list(content["published"]) == [dataset_of(row)]
    assert [name for name in ROWS if name not in RUNNABLE] == [*CONTROLS, *FORMS]
    assert {row for table in DATA["tables"].values() for row in table["rows"]} == set(ROWS)
    # nothing is compared with a number, and what our rows lack is what was lost
    for row in RUNNABLE:
        said = [word for word, _ in verdicts.of_cells(DATA, row, dataset_of(row), ["answer_f1"], records.records(PAPER, "none", "none"))]
        assert said == ["not testable here" if "small" in ROWS[row].get("not_testable", {}) else "not run"]


def test_claims_follow_from_the_rows():
    """The loss helps every model that has it, each ablation harms, and nearness grows with each projection."""
    known = {(claim["row_a"], claim["row_b"], claim["dataset"], claim["metric"]): claim["sign"] for claim in DATA["claims"]}
    assert len(known) == len(DATA["claims"]) == len({claim["id"] for claim in DATA["claims"]})
    expected = {}
    for row in RUNNABLE:
        dataset, baseline = dataset_of(row), ROWS[row].get("baseline")
        if row.endswith("_contrast"):
            expected |= {(row, baseline, dataset, metric): "+" for metric in ("answer_f1", "evidence_f1")}
        elif row in ABLATIONS:
            expected[row, baseline, dataset, "answer_f1"] = "-"
    for backbone in ("longformer_base", "led_base", "cdlm_large"):
        names = [backbone, f"{backbone}_shared", f"{backbone}_contrast"]
        expected |= {(b, a, dataset_of(backbone), "map_projected"): "+" for a, b in itertools.pairwise(names)}
        expected[names[2], names[0], dataset_of(backbone), "map_projected"] = "+"
    for form in ("cosine", "dot"):
        expected[f"longformer_base_{form}", "longformer_base", "hotpotqa", "answer_f1"] = "-"
    assert known == expected
    for a, b, dataset, _ in known:
        assert a in RUNNABLE and b in RUNNABLE and dataset in ROWS[a]["published"] and dataset in ROWS[b]["published"]


# ------------------------------------------------------------------ the plan


@pytest.mark.slow
@pytest.mark.parametrize("budget", rundir.BUDGETS)
def test_what_a_budget_runs(budget):
    entry, jobs = DATA["budgets"][budget], plan(budget)
    runs_now = [row for row in entry["rows"] if budget != "paper" or row in ALONE]  # the others search first
    column = (lambda row: "pydocs_evidence") if budget == "laptop" else dataset_of
    wanted = [(row, column(row), seed) for row in runs_now for seed in entry["seeds"]]
    assert sorted((job.row, job.dataset, job.seed) for job in jobs if not job.search) == sorted(wanted)
    assert len(entry["seeds"]) == {"laptop": 3, "small": 3, "gpu": 5, "paper": 5}[budget]
    assert set(entry["rows"]) < {*RUNNABLE, *CONTROLS, *FORMS}
    assert budget != "paper" or set(RUNNABLE) < set(entry["rows"])
    ours = {"laptop": {*CONTROLS, *FORMS}, "gpu": {*CONTROLS, *FORMS}, "paper": {"longformer_base_log_sum"}}.get(budget, set())
    assert set(entry["rows"]) & {*CONTROLS, *FORMS} == ours
    assert len({job.folder for job in jobs}) == len(jobs)
    for job in jobs:
        assert job.notebook == "find_evidence" and not job.needs and job.parameters["dataset"] == job.dataset == column(job.row)
        assert job.parameters["model"] == entry["backbones"][ROWS[job.row]["backbone"]]
        assert plans.gpu_hours(job) == {"gpu": 1, "paper": 20}.get(budget, 0)
        parameters.check("find_evidence", job.parameters)
        names = ("projection", "similarity", "loss_weight", "temperatures", "projection_size", "projection_dropout")
        made = contrast_of(*(settings_of(job)[name] for name in names[:4]), KINDS[job.dataset], *(settings_of(job)[n] for n in names[4:]))
        assert len(made.temperatures) == len(KINDS[job.dataset])


@pytest.mark.parametrize("budget", rundir.BUDGETS)
def test_a_row_differs_from_the_full_method_where_its_name_says(budget):
    made = {job.row: settings_of(job) for job in reversed(plan(budget))}
    searched = {"loss_weight", "temperatures", "projection_size"} if budget == "paper" else set()
    found = {}
    for row in made:
        full = f"{ROWS[row]['backbone']}_contrast"
        names = {name for name, value in made[row].items() if value != made.get(full, made[row])[name]}
        found[row] = names - (set() if row in ALONE else searched)
    changed = {"dot": {"projection", "similarity"}, "cosine": {"projection", "similarity"}, "bilinear": {"similarity"}}
    changed |= {f"{form}_light": {*changed[form], "loss_weight"} for form in ("dot", "bilinear")}
    changed |= {"log_sum": {"reduction"}, "other_evidence": {"other_evidence"}}
    changed |= {"shared": {"projection"}, "right_type": {"wrong_type_negatives"}, "no_dropout": {"projection_dropout"}}
    for row, names in found.items():
        kind = row.removeprefix(ROWS[row]["backbone"]).strip("_")
        without = {"projection", "similarity", "loss_weight"}
        assert names - (searched - without) == without if row in ALONE else names == changed.get(kind, set()), row
        forms = {"dot": ("none", "dot"), "cosine": ("none", "cosine"), "bilinear": ("per_type", "bilinear"), "": ("none", "cosine")}
        expected = forms.get(kind.removesuffix("_light"), ("shared" if kind == "shared" else "per_type", "projected"))
        assert (made[row]["projection"], made[row]["similarity"]) == expected, row
        assert (made[row]["loss_weight"] == 0) == (row in ALONE)
        assert row not in CONTROLS or made[row]["loss_weight"] == made[f"{ROWS[row]['backbone']}_contrast"]["loss_weight"] / 10
        assert made[row]["wrong_type_negatives"] == (kind != "right_type")
        assert made[row]["projection_dropout"] == (0.0 if kind == "no_dropout" else 0.1)
        form = {"log_sum": ("log_sum", "exclude"), "other_evidence": ("mean", "include")}.get(kind, ("mean", "exclude"))
        assert (made[row]["reduction"], made[row]["other_evidence"]) == form


# ------------------------------------------------------------------ the search


def tried(row):
    """What each try of a row's search is given, of the settings that are searched."""
    names = ("loss_weight", "temperatures", "projection_size")
    return [tuple(job.parameters[name] for name in names) for job in plan("paper", row) if job.search]


@pytest.mark.slow
def test_a_search_has_twenty_points_of_the_grid_for_each_row():
    points = {}
    for row in RUNNABLE:
        if row in ALONE:
            assert tried(row) == []
        elif row != "longformer_base_one_temperature":
            points[row] = tried(row)
            assert len(points[row]) == len(set(points[row])) == 20
            projected = not row.endswith(("dot", "cosine", "bilinear"))
            assert {size for _, _, size in points[row]} == ({None, 512, 256, 128} if projected else {None})
            for weight, temperatures, _ in points[row]:
                values = [float(part) for part in temperatures.split(",")]
                assert weight in GRID and set(values) <= set(GRID) and len(values) == (5 if row.startswith("led") else 3)
    assert len({frozenset(of) for of in points.values()}) == len(points) == 14  # each row draws for itself
    again = made_up.plan(PAPER, "paper", ["led_base_contrast", "cdlm_base_shared"])
    assert again == [*plan("paper", "led_base_contrast"), *plan("paper", "cdlm_base_shared")]
    assert not any(job.search for budget in ("laptop", "small", "gpu") for job in plan(budget))
    # a keyed hash picks with no regard to the values
    weights = [weight for of in points.values() for weight, _, _ in of]
    assert all(weights.count(value) > len(weights) / 10 for value in GRID)
    assert {job.search for job in plan("paper", "led_base_shared")} == {"evidence_contrast-paper-led_base_shared-qasper"}


def test_with_one_temperature_a_quarter_of_the_grid_is_tried():
    points = tried("longformer_base_one_temperature")
    assert len(points) == len(set(points)) == 25
    assert set(points) <= {(weight, str(one), size) for weight in GRID for one in GRID for size in (None, 512, 256, 128)}


def test_the_seeds_get_what_finds_evidence_best_on_dev(tmp_path):
    def planned():
        return made_up.plan(PAPER, "paper", ["longformer_base_contrast"], folder=tmp_path)

    tries = planned()
    reached = np.array([0.1] * 20)
    reached[[7, 12]] = 0.9
    best = tries[7]  # of equals the first
    for job, value in zip(tries, reached):
        if job is tries[-1]:
            assert planned() == tries  # not before the last try is done
        made_up.finish(job, metrics={"dev": {"evidence_f1": value, "answer_f1": 1 - value, "map_projected": 1 - value}})
    after = planned()
    seeds = [job for job in after if not job.search]
    assert [job.seed for job in seeds] == [0, 1, 2, 3, 4] and len(after) == 20 + 4 and best.folder == seeds[0].folder
    for job in seeds:
        assert job.parameters == best.parameters | {"seed": job.seed}
    assert plans.dev_figure(best) == reached.max()


# ------------------------------------------------------------------ the paper's settings


def test_given_steps_of_warm_up_take_the_place_of_a_share():
    completed = plans.completed("find_evidence", {"budget": "paper", "dataset": "qasper", "warmup_steps": 100})
    assert completed["warmup_share"] is None and completed["warmup_steps"] == 100


# ------------------------------------------------------------------ records of made-up runs


ASKED, WITHOUT = 12, 2  # questions of a side; the last ones have no evidence
PASSAGES = (Passage("title", ("one", "two", "three", "four")),)
BEFORE = {"before training": {"map_raw": 0.111, "map_projected": 0.222, "evidence_f1": 0.333, "questions": ASKED}}


def is_right(level, seed, side):
    """So many questions are answered; a higher level answers those of a lower one, and more."""
    return np.random.default_rng([seed, len(side)]).permutation(ASKED) < level * ASKED


def said(dataset, level, seed, side):
    """What a model says of some questions, as `finding.predict` has it, and the questions.

    Where it is right, so are answer and evidence, and the evidence stands first by the loss's similarity and last by raw vectors; else the
    other way round.
    """
    kind, asked, lines, spoken = KINDS[dataset][0], [], [], []
    for number, good in enumerate(is_right(level, seed, side)):
        evidence = frozenset({(0, number % 4)} if number < ASKED - WITHOUT else ())
        asked.append(LongQuestion(f"{side}{number}", "What?", PASSAGES, (Answer("one", kind, evidence),)))
        spoken.append((f"{side}{number}", kind, kind, "one" if good else "other"))
        for sentence in range(4):
            gold = (0, sentence) in evidence
            near = (0.9 if good else -0.9) if gold else 0.01 * sentence
            lines.append((f"{side}{number}", f"0-{sentence}", int(gold), 1.0 if gold == good else -1.0, -near, near, near / 2))
    sentences = pd.DataFrame(lines, columns=["question_id", "candidate_id", "label", "score", "raw", "gold", "predicted"])
    questions = pd.DataFrame(spoken, columns=["question_id", "kind", "predicted_kind", "answer"])
    return sentences, questions, SimpleNamespace(questions=asked, kinds=KINDS[dataset])


def ended(job, level):
    """The folder of a finished run, with the files that the notebook writes: about test where there is such a side, else about dev."""
    job.folder.mkdir(parents=True, exist_ok=True)
    measured = {}
    for side in ("dev", "test") if job.dataset == "pydocs_evidence" else ("dev",):
        tables = said(job.dataset, level, job.seed, side)
        measured[side] = finding.measure(*tables)
    tables[0].to_parquet(job.folder / "scores.parquet")
    tables[1].to_parquet(job.folder / "answers.parquet")
    measured[side].per_question.to_parquet(job.folder / "per_question.parquet")
    lost = {"questions": 1, "evidence": 2, "distractors": 3_456}
    figures = {"read": {"train": 1_234, "dev": ASKED}, "left_out": {"train": lost, "dev": dict.fromkeys(lost, 0)}}
    vectors = pca.coordinates(np.eye(3), None, ["question", "positive", "negative"], [0] * 3, [KINDS[job.dataset][0]] * 3)
    metrics = {name: one.record() for name, one in measured.items()}
    made_up.finish(job, baselines=BEFORE, metrics=metrics, figures=figures, pca=vectors)


def made(tmp_path, budget, levels, seeds):
    for row, level in levels.items():
        for job in made_up.plan(PAPER, budget, [row], seeds, tmp_path / "runs"):
            ended(job, level)


def answered(level, seeds, side="dev"):
    """Share of right answers, a seed."""
    return [is_right(level, seed, side).mean() for seed in seeds]


def precision(level, seed, side="dev"):
    """Average precision of each question that has evidence: one sentence of four, first or last."""
    return np.where(is_right(level, seed, side), 1, 1 / 4)[:-WITHOUT]


@pytest.mark.slow
def test_a_run_is_a_line_of_its_row(tmp_path):
    levels = {"longformer_base": 0.25, "longformer_base_contrast": 0.75, "longformer_base_cosine": 0.5, "led_base": 0.25}
    made(tmp_path, "small", levels | {"led_base_contrast": 0.5}, [0, 2])
    made(tmp_path, "laptop", {"led_base_contrast": 0.5}, [0])
    lines = recorded(tmp_path)
    keys = [[row, dataset_of(row), "small", seed] for row in (*levels, "led_base_contrast") for seed in (0, 2)]
    keys.append(["led_base_contrast", "pydocs_evidence", "laptop", 0])
    assert sorted(lines[["row", "dataset", "budget", "seed"]].to_numpy().tolist()) == sorted(keys)
    for (row, budget), own in lines.groupby(["row", "budget"]):
        side, level = "test" if budget == "laptop" else "dev", levels.get(row, 0.5)
        assert records.values(own, "answer_f1") == pytest.approx(answered(level, own.seed, side))
        expected = [precision(level, seed, side).mean() for seed in own.seed]
        assert records.values(own, "map_projected") == records.values(own, "map_predicted_type") == pytest.approx(expected)
        assert records.values(own, "map_raw") == pytest.approx([1.25 - one for one in expected])
        for one in own.itertuples():
            assert records.split(one) == side and registry.columns(records.kind(one.record)) == records.PER_CONTEXT
            table = records.per_question(one)
            assert table.index.tolist() == [f"{side}{n}" for n in range(ASKED)]
            np.testing.assert_array_equal(table.map_projected, [*precision(level, one.seed, side), *[np.nan] * WITHOUT])


def test_nothing_else_is_a_line(tmp_path):
    (job,) = made_up.plan(PAPER, "small", ["led_base"], [0], tmp_path / "runs")
    ended(job, 0.5)
    path = job.folder / "record.json"
    whole = json.loads(path.read_text())
    for change, count in (({"micro_tokens": 99}, 1), ({"epochs": 4}, 0), ({"question_limit": 12}, 0), ({"temperatures": "0.4"}, 0)):
        disk.write_json(path, whole | {"settings": whole["settings"] | change})
        assert len(recorded(tmp_path)) == count, change
    path.unlink()
    assert len(recorded(tmp_path)) == 0


@pytest.mark.slow
def test_a_searched_row_at_the_papers_settings_is_not_published(tmp_path):
    """Tries are no lines but the best one, which is the run of seed 0; nothing that was printed can be compared with."""
    planned = lambda: made_up.plan(PAPER, "paper", ["longformer_base_contrast"], folder=tmp_path / "runs")
    tries = planned()
    for job in tries:
        ended(job, 0.5 if job is tries[7] else 0.25)
    (seed_0, *rest) = [job for job in planned() if not job.search]
    for job in rest[:2]:
        ended(job, 0.5)
    lines = recorded(tmp_path)
    assert sorted(zip(lines.row, lines.seed)) == [("longformer_base_contrast", seed) for seed in (0, 1, 2)]
    assert seed_0.folder == tries[7].folder == lines.folder[list(lines.seed).index(0)]
    ours = [row for row in cells(results_table(PAPER, "table_3", lines)) if row[0].startswith("ours, this")]
    assert [row[-3:] for row in ours] == [["3", "paper", "not published"]]
    lines.record.iloc[1]["settings"]["loss_weight"] = 0.5
    assert verdicts.of_cells(DATA, "longformer_base_contrast", "hotpotqa", ["answer_f1"], lines) == [("reduced budget", "")]


# ------------------------------------------------------------------ comparisons


def test_questions_without_evidence_are_left_out_of_nearness_alone(tmp_path):
    made(tmp_path, "gpu", {"longformer_base_shared": 0.75, "longformer_base": 0.25}, [0, 1])
    (pair,) = comparisons.pairs(recorded(tmp_path), "longformer_base_shared", "longformer_base", "hotpotqa")
    assert pair.seeds == [0, 1] and pair.shown_budget == "gpu, this machine"
    rows = ("longformer_base_shared", "longformer_base")
    test = comparisons.over_questions(pair, *rows, "map_projected", draws=999)
    ours, theirs = (np.mean([precision(level, seed) for seed in (0, 1)], axis=0) for level in (0.75, 0.25))
    assert len(ours) == ASKED - WITHOUT and test == significance.paired_bootstrap(ours, theirs, draws=999)
    assert test.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    whole = comparisons.over_questions(pair, *rows, "answer_f1", draws=999)
    answers = [np.mean([is_right(level, seed, "dev") for seed in (0, 1)], axis=0) for level in (0.75, 0.25)]
    assert len(answers[0]) == ASKED and whole == significance.paired_bootstrap(*answers, draws=999)
    assert comparisons.over_questions(pair, *rows, "accuracy") is None


@pytest.mark.slow
def test_published_runs_are_read_back(tmp_path):
    levels = {"longformer_base": 0.25, "longformer_base_contrast": 0.75, "led_base": 0.5}
    made(tmp_path, "small", levels, [0, 1])
    made(tmp_path, "laptop", {"longformer_base": 0.5}, [0])  # published where that is asked for
    small, after, held = made_up.published(PAPER, tmp_path, atol=1e-5)
    assert sorted(held) == sorted(f"{row}/{dataset_of(row)}-small-seed{seed}" for row in levels for seed in (0, 1))
    (asked,) = publish.publish(PAPER, tmp_path / "other", tmp_path / "runs", laptop=True)
    assert f"{asked.parent.name}/{asked.name}" == "longformer_base/pydocs_evidence-laptop-seed0.json"
    for name, record in held.items():
        row, seed = name.split("/")[0], record["seed"]
        near = [line[1 + list(records.PER_CONTEXT).index("map_projected")] for line in record["per_question"]]
        assert near == [*precision(levels[row], seed).tolist(), *[None] * WITHOUT]
        assert ("pca" in record) == (seed == 0)  # one seed is enough to look at
        (tables,) = [said(record["dataset"], levels[row], seed, "dev")[0]]
        shared = [entry for entry in record["chosen"] if "baseline" not in entry]
        assert len(shared) == publish.SHARED
        for entry in shared:
            own = tables[tables.question_id == entry["question_id"]].sort_values("gold", ascending=False)
            expected = zip(own.candidate_id, own.label, own.gold, range(1, 5))
            assert entry["candidates"] == [[unit, label, pytest.approx(score), rank] for unit, label, score, rank in expected]
    assert {tuple(records.per_question(one)) for one in after.itertuples()} == {tuple(records.PER_CONTEXT)}
    rows = ("longformer_base_contrast", "longformer_base")
    for metric in records.PER_CONTEXT:
        both = [next(comparisons.pairs(lines, *rows, "hotpotqa")) for lines in (small, after)]
        first, second = (comparisons.over_questions(pair, *rows, metric, draws=500) for pair in both)
        assert first.sign == second.sign and first.difference == pytest.approx(second.difference, abs=1e-5)
        assert first.interval == pytest.approx(second.interval, abs=1e-5)


def test_what_the_loss_rescues_is_shown_beside_the_model_without_it(tmp_path):
    made(tmp_path, "small", {"longformer_base": 0.25, "longformer_base_contrast": 0.75}, [0])
    list(publish.publish(PAPER, tmp_path / "results", tmp_path / "runs"))
    (record,) = [json.loads(path.read_text()) for path in tmp_path.glob("results/*/longformer_base_contrast/*.json")]
    rescued = [entry for entry in record["chosen"] if "baseline" in entry]
    rise = {f"dev{n}" for n in range(ASKED - WITHOUT) if is_right(0.75, 0, "dev")[n] and not is_right(0.25, 0, "dev")[n]}
    assert len(rescued) == min(3, len(rise)) > 0 and {entry["question_id"] for entry in rescued} <= rise
    for entry in rescued:
        assert entry["baseline"]["row"] == "longformer_base"
        assert entry["candidates"][0][1] == 1 and [line[1] for line in entry["baseline"]["candidates"]] == [0, 0, 0, 1]
