"""The rows of asbert: what its section 4 prints, one stage a row, untrained encoders run once, and the dev side as columns of its own."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aslab import papers, parameters, publish, records, rundir
from aslab import plan as plans
from aslab.analysis import comparisons, examples, verdicts
from aslab.show import pca
from asutil import metrics
from asutil.data.data_sets import ANSWERS

from . import made_up
from .made_up import settings_of

PAPER = "asbert"
DATA = papers.read(PAPER)
ROWS = DATA["tables"]["table_3"]["rows"]
OWN = [name for name in DATA["rows"] if name not in ROWS]  # controls that the paper does not have
TRAINED = [name for name in DATA["rows"] if name.startswith(("siamese", "triplet"))]


plan, recorded, chain = (partial(of_a_paper, PAPER) for of_a_paper in (made_up.plan, made_up.recorded, made_up.chain))


# ------------------------------------------------------------------ what the paper prints


def test_some_printed_cells():
    """Typed from the paper's pages: dev MAP, test MAP, test MRR."""
    printed = {
        "glove": ((0.571, 0.598, 0.611), (0.579, 0.511, 0.602)),
        "use": ((0.614, 0.648, 0.655), (0.716, 0.707, 0.819)),
        "cls_bert": ((0.447, 0.474, 0.479), (0.534, 0.585, 0.671)),
        "mean_bert": ((0.343, 0.337, 0.341), (0.391, 0.363, 0.429)),
        "siamese_roberta": ((0.739, 0.685, 0.697), (0.634, 0.583, 0.635)),
        "triplet_bert": ((0.830, 0.795, 0.804), (0.674, 0.752, 0.835)),
        "triplet_xlnet": ((0.724, 0.665, 0.677), (0.551, 0.567, 0.645)),
    }
    for row, sides in printed.items():
        expected = {}
        for dataset, (dev, test, mrr) in zip(("wikiqa", "trecqa"), sides):
            expected |= {f"{dataset}_dev": {"map": dev}, dataset: {"map": test, "mrr": mrr}}
        assert DATA["rows"][row]["published"] == expected
    printed_tables = {name: table for name, table in DATA["tables"].items() if name not in ("nq_sentences", "selections", "warm_up")}
    assert len(printed_tables) == 2 and len(ROWS) == 13
    for table in printed_tables.values():
        assert table["rows"] == ROWS


def test_rows_with_the_same_figures_are_marked_and_no_others():
    cells = {name: json.dumps(DATA["rows"][name]["published"], sort_keys=True) for name in ROWS}
    alike = {name for name, printed in cells.items() if list(cells.values()).count(printed) > 1}
    assert alike == {name for name, row in DATA["rows"].items() if "doubtful" in row} == {"infersent", "cls_bert"}
    assert not any("infersent" in (claim["row_a"], claim["row_b"]) for claim in DATA["claims"])


def test_printed_counts_differ_from_ours_where_the_data_card_says_why():
    """A quotation mark read as a quote costs rows of WikiQA; one candidate of TREC-QA's test side is not counted."""
    ours = {dataset: ANSWERS[dataset].counts["asbert"] for dataset in DATA["counts"]}
    every = [(dataset, side, printed) for dataset, sides in DATA["counts"].items() for side, printed in sides.items()]
    less = {(dataset, side): tuple(np.subtract(ours[dataset][side], printed)) for dataset, side, printed in every}
    assert less.pop(("wikiqa", "train")) == (1, 6) and less.pop(("wikiqa", "test")) == (2, 33) and less.pop(("trecqa", "test")) == (0, 1)
    assert set(less.values()) == {(0, 0)} and len(less) == 3


def test_claims_name_the_table_of_their_data_set():
    assert all(claim["where"].endswith({"wikiqa": "Table 3", "trecqa": "Table 4"}[claim["dataset"]]) for claim in DATA["claims"])


def test_rows_of_our_own_select_triplets_and_print_nothing():
    every = settings_of(plan("laptop", ["triplet_roberta"], [0])[0])
    for selection in ("semi_hard", "hard"):
        (job,) = plan("laptop", [f"triplet_roberta_{selection}"], [0])
        assert settings_of(job) == every | {"selection": selection}
    assert OWN == ["triplet_roberta_semi_hard", "triplet_roberta_hard", "siamese_bert_one_pass", "triplet_bert_one_pass"]
    assert not any(cells for row in OWN for cells in DATA["rows"][row]["published"].values())


@pytest.mark.parametrize("row", ["siamese_bert", "triplet_bert"])
@pytest.mark.parametrize("budget", ["gpu", "paper"])
def test_rows_that_warm_up_over_a_tenth_of_one_pass_differ_in_that_alone(budget, row):
    on_wikiqa = lambda name: next(job for job in plan(budget, [name], [0]) if job.dataset == "wikiqa")
    usual, other = (settings_of(on_wikiqa(name)) for name in (row, f"{row}_one_pass"))
    assert {name for name in usual if usual[name] != other[name]} == {"warmup_share"}
    assert other["warmup_share"] * other["epochs"] == pytest.approx(0.1) == usual["warmup_share"]


def test_encoders_follow_the_names_of_rows():
    made = {row: chain(row, "wikiqa")[0]["settings"] for row in ROWS}
    kinds = {"glove": "word_vectors", "fasttext": "word_vectors", "infersent": "infersent", "use": "use"}
    kinds["sentence_bert"] = "sentence_transformer"
    for row, settings in made.items():
        assert settings["encoder"] == kinds.get(row, "transformer")
        assert settings["architecture"] == (row.split("_")[0] if row in TRAINED else "untrained")
        if row in TRAINED:
            assert row.rpartition("_")[2] in settings["model"].lower()
    assert (made["cls_bert"]["pooling"], made["mean_bert"]["pooling"]) == ("cls", "mean")
    assert made["cls_bert"]["model"] == made["mean_bert"]["model"] == made["triplet_bert"]["model"]


# ------------------------------------------------------------------ the plan


@pytest.mark.parametrize("budget", rundir.BUDGETS)
def test_untrained_encoders_run_once_and_trained_ones_with_every_seed(budget):
    entry, jobs = DATA["budgets"][budget], plan(budget)
    for row in entry["rows"]:
        seeds = entry["seeds"] if row in TRAINED else [0]
        wanted = [(dataset, seed) for dataset in papers.datasets(DATA, row, budget) for seed in seeds]
        assert [(job.dataset, job.seed) for job in jobs if job.row == row] == wanted
        assert papers.untrained(DATA, row) == (row not in TRAINED) and papers.seeds(DATA, row, budget) == seeds
    assert len({job.folder for job in jobs}) == len(jobs)
    for job in jobs:
        assert job.notebook == "embed" and not job.needs
        parameters.check("embed", job.parameters)
        assert plans.gpu_hours(job) == {"gpu": 1, "paper": 4}.get(budget, 0)


def test_seeds_that_are_asked_for_change_nothing_for_an_untrained_encoder():
    assert [job.seed for job in plan("small", ["use", "siamese_roberta"], [2])] == [0, 0, 2, 2]
    assert papers.seeds(DATA, "siamese_bert", "small", [2]) == [2] and papers.seeds(DATA, "use", "small", [2]) == [0]


def test_the_budgets_below_the_papers():
    laptop = plan("laptop")
    assert {job.dataset for job in laptop} == {"pydocs"} and {job.parameters["model"] for job in laptop} == {"pydocs_roberta"}
    assert {settings_of(job)["protocol"] for job in laptop} == {"clean"}
    for job in plan("small"):
        settings = settings_of(job)
        own = job.dataset == "pydocs"
        assert settings["protocol"] == ("asbert" if job.dataset in ("wikiqa", "trecqa") else "clean") and settings["dataset"] == job.dataset
        assert not own or job.row in ("mean_bert", "siamese_bert", "triplet_bert")
        capped = job.dataset in ("trecqa", "pydocs") and job.row.startswith("triplet")
        limits = (9000 if own and capped else None, 100 if capped else None)
        assert (settings["triplet_limit"], settings["triplets_per_question"]) == limits
        assert settings["rank_by"] == ("distance" if job.row in TRAINED else "cosine")
        assert settings["epochs"] in ((1, 2, 3) if job.row in TRAINED else (None,))


def test_committed_runs_are_those_of_todays_plan():
    """A record whose settings its row no longer has says nothing about the row."""
    jobs = [job for budget in ("laptop", "small") for job in plan(budget)]
    planned = {(job.budget, job.row, job.dataset, job.seed): settings_of(job) for job in jobs}
    committed = records.records(PAPER, runs_dir="no runs")
    assert len(committed) and set(committed.budget) == {"laptop", "small"}
    for one in committed.itertuples():
        wanted = planned[one.budget, one.row, one.dataset.rpartition(papers.TRANSFER)[2].removesuffix("_dev"), one.seed]
        settings = plans.completed("embed", one.record["settings"])
        assert plans.settings_key("embed", settings) == plans.settings_key("embed", wanted), one.name


def test_the_hours_of_the_small_budget_are_those_of_its_settings():
    """Tokens of an epoch (MiniLM and granite, from finished runs and the tokenizers) make the hours that the YAML file states."""
    tokens = {
        "siamese": {"wikiqa": (341_673, 345_113), "trecqa": (321_588, 316_384), "pydocs": (225_317,)},
        "triplet": {"wikiqa": (669_698, 673_522), "trecqa": (435_264, 427_583), "pydocs": (463_540,), "nq_sentences": (0, 1_797_323)},
    }
    total = 0
    for job in (job for job in plan("small") if job.row in TRAINED):
        each = tokens[job.row.split("_")[0]][job.dataset]
        total += settings_of(job)["epochs"] * each[job.row.endswith("roberta")]
    assert round(total / 1e6, 1) == 25.3 and round(total / 1300 / 3600, 1) == 5.4
    for budget in ("small", "gpu"):
        assert not {"fasttext", "infersent", "siamese_xlnet", "triplet_xlnet"} & {job.row for job in plan(budget)}


# ------------------------------------------------------------------ records of made-up runs


QUESTIONS = 30
SIDES = {"dev": 0.2, "test": 0.0}  # how much higher P@1 is


def ranked(level, seed, side):
    """Scores of questions with two candidates each, about `level` of them with the right one first."""
    right = np.random.default_rng([seed, len(side)]).permutation(QUESTIONS) < round((level + SIDES[side]) * QUESTIONS)
    return made_up.two_candidates(right, side)


def made(tmp_path, budget, reached, seeds=None):
    """Finished runs of rows with a P@1 each on the test side."""
    vectors = pca.coordinates(np.eye(3), None, ["question", "positive", "negative"], [0] * 3)
    for row, level in reached.items():
        for job in plan(budget, [row], seeds, tmp_path / "runs"):
            job.folder.mkdir(parents=True)
            sides = {"dev": "_dev", "test": ""}
            measured = {side: made_up.write_scores(job.folder, ranked(level, job.seed, side), sides[side]) for side in sides}
            made_up.finish(job, pca=vectors, baselines={"bm25": {"map": 0.123, "mrr": 0.1}}, metrics=measured)


def map_of(level, seeds, side):
    return [metrics.of(ranked(level, seed, side)).record()["map"] for seed in seeds]


def test_a_run_is_a_line_for_each_side(tmp_path):
    made(tmp_path, "small", {"mean_bert": 0.4, "triplet_bert": 0.6})
    lines = recorded(tmp_path)
    keys = sorted(lines[["row", "dataset", "seed"]].to_numpy().tolist())
    columns = ("wikiqa_dev", "wikiqa", "trecqa_dev", "trecqa", "pydocs")
    seeds = {"mean_bert": 1, "triplet_bert": 3}
    assert keys == sorted([row, column, seed] for row in seeds for column in columns for seed in range(seeds[row]))
    for column in columns:
        side = "dev" if column.endswith("_dev") else "test"
        of = lines[(lines.row == "triplet_bert") & (lines.dataset == column)]
        assert records.values(of, "map") == pytest.approx(map_of(0.6, range(3), side))
        for one in of.itertuples():
            assert set(records.per_question(one).index) == {f"{side}{i}" for i in range(QUESTIONS)}
    made(tmp_path / "other", "laptop", {"mean_bert": 0.4})
    assert set(recorded(tmp_path / "other").dataset) == {"pydocs"}  # no column of the paper


def test_an_untrained_encoder_matches_with_one_run(tmp_path):
    made(tmp_path, "paper", {"mean_bert": 0.5, "siamese_bert": 0.4, "use": 0.4}, [0])
    lines = recorded(tmp_path)
    data = json.loads(json.dumps(DATA))
    for row, level in (("mean_bert", 0.5), ("siamese_bert", 0.4), ("use", 0.4)):
        data["rows"][row]["published"]["wikiqa"] = {"map": map_of(level, [0], "test")[0]}
    lines = lines[lines.dataset == "wikiqa"]
    said = {row: verdicts.of_cells(data, row, "wikiqa", ["map"], own) for row, own in lines.groupby("row")}
    assert said == {"mean_bert": [("matches", "")], "siamese_bert": [("close", "")], "use": [("reduced budget", "")]}


@pytest.mark.slow
def test_an_untrained_encoder_is_compared_with_every_seed(tmp_path):
    made(tmp_path, "small", {"mean_bert": 0.4, "use": 0.5, "triplet_bert": 0.7, "siamese_bert": 0.6})
    lines = recorded(tmp_path)
    (pair,) = comparisons.pairs(lines, "triplet_bert", "use", "wikiqa")
    assert pair.seeds == [0, 1, 2] and pair.shown_budget == "small, this machine"
    test = comparisons.over_questions(pair, "triplet_bert", "use", "map", draws=2000)
    ours, theirs = ([metrics.of(ranked(level, s, "test")).per_question.average_precision for s in range(3)] for level in (0.7, 0.5))
    gain = np.mean(ours, axis=0) - theirs[0]
    assert test.difference == pytest.approx(gain.mean())
    scipys = stats.bootstrap((gain,), np.mean, n_resamples=4999, method="percentile", rng=np.random.default_rng(1))
    assert test.interval == pytest.approx(scipys.confidence_interval, abs=0.02)
    seeds = comparisons.over_seeds(pair, "triplet_bert", "use", "map")  # one side has no seeds: it is a number
    assert seeds.p_value < 0.001 and seeds.difference == pytest.approx(0.1, abs=0.01)
    assert seeds.difference == -comparisons.over_seeds(pair, "use", "triplet_bert", "map").difference > 0
    (trained,) = comparisons.pairs(lines, "triplet_bert", "siamese_bert", "wikiqa")
    assert comparisons.over_seeds(trained, "triplet_bert", "siamese_bert", "map") is not None
    fewer = lines[~((lines.row == "siamese_bert") & (lines.seed == 2))]
    (common,) = comparisons.pairs(fewer, "triplet_bert", "siamese_bert", "wikiqa")
    ours, theirs = ([metrics.of(ranked(level, seed, "test")).map for seed in (0, 1)] for level in (0.7, 0.6))
    assert comparisons.over_seeds(common, "triplet_bert", "siamese_bert", "map").p_value == pytest.approx(
        stats.ttest_ind(ours, theirs).pvalue
    )
    (both,) = comparisons.pairs(lines, "use", "mean_bert", "trecqa")
    assert both.seeds == [0] and comparisons.over_seeds(both, "use", "mean_bert", "map") is None
    known = examples.best_pairs(DATA, lines, "mean_bert", "siamese_bert")
    assert [pair.dataset for pair in known] == ["wikiqa", "trecqa", "pydocs"]  # test questions alone
    sides = known[0].records_of(("mean_bert", "siamese_bert"), 2)
    assert [(one.row, one.seed) for one in sides] == [("mean_bert", 0), ("siamese_bert", 2)]


@pytest.mark.slow
def test_what_is_published(tmp_path):
    made(tmp_path, "small", {"mean_bert": 0.4, "siamese_bert": 0.6, "triplet_bert": 0.7})
    _, after, held = made_up.published(PAPER, tmp_path, atol=1e-5)
    assert len(after) == (1 + 3 + 3) * 5
    assert {name for name, record in held.items() if "pca" in record} == {
        f"{row}/{dataset}-small-seed0"
        for row in ("mean_bert", "siamese_bert", "triplet_bert")
        for dataset in ("wikiqa", "trecqa", "pydocs")
    }
    for name, record in held.items():
        side = "dev" if "_dev-" in name else "test"
        assert {line[0] for line in record["per_question"]} == {f"{side}{i}" for i in range(QUESTIONS)}
        assert ("chosen" in record) == (side == "test")
        values = np.mean([line[2] for line in record["per_question"]])
        assert values == pytest.approx(record["metrics"][side]["map"], abs=1e-5)
    # what the siamese network rescues is shown beside the one run of the untrained encoder, whatever its own seed
    chosen = {name: one["chosen"] for name, one in held.items() if "chosen" in one}
    beside = {name: {entry["baseline"]["row"] for entry in entries if "baseline" in entry} for name, entries in chosen.items()}
    for seed in range(3):
        assert beside[f"siamese_bert/wikiqa-small-seed{seed}"] == {"mean_bert"}
        assert beside[f"triplet_bert/trecqa-small-seed{seed}"] == {"siamese_bert"}
    assert beside["mean_bert/wikiqa-small-seed0"] == set()
    scores = pd.read_parquet(next((tmp_path / "runs").glob("*/scores.parquet")))
    usual, printed = (publish._chosen(scores, None, asked) for asked in ((), ("test7", "of another data set")))
    names = [entry["question_id"] for entry in usual]
    assert [entry["question_id"] for entry in printed] == ["test7", *(name for name in names if name != "test7")]
    shown = [
        one
        for pair in examples.best_pairs(DATA, after, "mean_bert", "siamese_bert")
        for one in examples.of_pair(DATA, pair, ("mean_bert", "siamese_bert"))
    ]
    assert ("rescued", "test") in {(one.fate, one.question.rstrip("0123456789")) for one in shown}
    assert not any("dev" in one.question for one in shown)
