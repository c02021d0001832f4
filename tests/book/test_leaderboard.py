"""The leaderboard by hand: one set of questions for all rows, the same runs once, and what is tied for best."""

from collections import Counter

import numpy as np
import pytest
from bs4 import BeautifulSoup
from pages import blind, leaderboard

from aslab import measured, papers, rundir
from aslab.blind import committed
from asutil.io import disk
from asutil.metrics import paired_bootstrap
from tests.trust import pages

from ..made_up import FOLDER, PAPER, cells, commit, record, recorded


def board(folder, draws=500):
    """Of made-up records of one paper, which another paper has too under another row."""
    found = recorded(folder)
    again = found[found.row == "roberta_base"].assign(row="pairwise_roberta_base")
    runs = dict.fromkeys(papers.PAPERS, found.iloc[:0]) | {PAPER: found, "joint_inference": again}
    return leaderboard.leaderboard("wikiqa", lambda paper: (papers.read(paper, FOLDER), runs[paper]), draws)


@pytest.fixture
def results(tmp_path):
    for seed in (0, 1):
        commit(tmp_path, record("roberta_base", "wikiqa", "small", seed, 0.4), record("roberta_psd", "wikiqa", "small", seed, 0.4))
        commit(tmp_path, record("roberta_ssp", "wikiqa", "small", seed, 0.9), record("roberta_base", "pydocs", "laptop", seed, 1.0))
    return tmp_path


def test_rows_are_in_order_with_intervals_and_the_same_runs_appear_once(results):
    table = cells(board(results))
    names = ("RoBERTa-Basemodel, budget smallsentence_objectives, joint_inference", "RoBERTa + PSDmodel, budget smallsentence_objectives")
    assert {line[0][3:] for line in table[2:]} == {*names} and [line[0][:3] for line in table[2:]] == ["2. ", "3. "]
    best = table[1]
    assert best[:3] == ["1. RoBERTa + SSPmodel, budget smallsentence_objectives", "roberta-base", "2"] and best[5:] == ["94.0", "not known"]
    assert best[3].startswith("84.0 [") and best[4].startswith("90.0 [")


def test_only_what_is_not_told_from_the_best_is_bold(results):
    lines = [line for line in board(results).split("\n") if "as2-best" in line]
    assert len(lines) == 1 and "RoBERTa + SSP" in lines[0]
    commit(results, *[record("roberta_ssp", "wikiqa", "small", seed, 0.4) for seed in (0, 1)])
    assert board(results).count("as2-best") == 3


def test_questions_that_a_row_lacks_count_for_none(results):
    short = record("roberta_sp", "wikiqa", "small", 0, 0.9)
    commit(results, short | {"per_question": short["per_question"][:25]})
    html = board(results)
    assert "WikiQA, 25 test questions that all rows have" in html
    base = next(line for line in cells(html) if "RoBERTa-Base" in line[0])
    right = [sum(one[1] for one in record("", "wikiqa", "small", seed, 0.4)["per_question"][:25]) / 25 for seed in (0, 1)]
    assert base[4].startswith(f"{100 * sum(right) / 2:.1f} [")


def test_nothing_has_run(tmp_path):
    assert "WikiQA: not run." in board(tmp_path)


def test_what_is_lost_without_the_question_has_an_interval_where_every_seed_has_values(tmp_path, monkeypatch):
    """Counted again as on the page; one record without values is enough for no interval, and a run in two records counts once."""
    monkeypatch.setattr(rundir, "root", lambda: tmp_path)
    assert blind.blind_table() == ""
    (tmp_path / "results").mkdir()
    values = np.random.default_rng(0).uniform(size=(2, 2, 30)).round(6)  # seeds, own and exchanged, questions
    figures = lambda each: {"map": each.mean(), "p@1": 0.5, "per_question": [[f"q{n}", 1, x, 1] for n, x in enumerate(each)]}
    about = {"dataset": "wikiqa", "protocol": "clean", "model": "a/mini", "architecture": "pair"}
    readouts = [{"score": dict(zip(("own", "exchanged"), map(figures, seed)))} for seed in values]
    runs = [about | {"name": f"seed {number}", "readouts": one} for number, one in enumerate(readouts)]
    for has_interval in (True, False):
        for name in ("blind", "blind-later"):
            disk.write_json(tmp_path / f"results/{name}.json", {"runs": runs, "bag_of_words": []})
        html = blind.blind_table()
        assert pages.traced_block(tmp_path, "page", BeautifulSoup(f'<div data-as2="blind">{html}</div>', "html.parser").div) > 5
        assert ("95 % interval" in html) == has_interval and blind.blind_table("asbert") == ""
        readouts[1]["score"]["own"].pop("per_question", None)


def test_several_records_are_refused_where_they_are_no_sum(tmp_path, monkeypatch):
    monkeypatch.setattr(rundir, "root", lambda: tmp_path)
    assert measured.read("mined") is None
    (tmp_path / "results").mkdir()
    for name in ("mined", "mined-trecqa"):
        disk.write_json(tmp_path / "results" / f"{name}.json", {"sets": []})
    with pytest.raises(ValueError, match=r"one record of mined is expected, got mined\.json, mined-trecqa\.json"):
        measured.read("mined")


@pytest.mark.slow
def test_the_committed_figures_without_exchange_are_those_of_the_runs():
    records = {}
    for path in (rundir.root() / "results").glob("*/*/*-small-seed*.json"):
        record = disk.read_json(path)
        records[record["name"]] = record
    compared = Counter()
    for run in committed()["runs"]:
        record = records[run["name"]]
        for readout, figures in run["readouts"].items():
            expected = record["readouts"][readout]["test"] if "readouts" in record else record["metrics"]["test"]
            assert [figures["own"][name] for name in ("map", "p@1")] == pytest.approx(
                [expected[name] for name in ("map", "p@1")], abs=0.003
            )
            compared[run["dataset"]] += 1
    assert compared["wikiqa"] > 40 and compared["trecqa"] >= 7 and compared["pydocs"] == 9


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["wikiqa", "trecqa"])
def test_what_the_page_of_rankers_says_of_triplets(dataset):
    every = leaderboard.entries(dataset)
    common = sorted(set.intersection(*(set(entry.questions.index) for entry in every)))
    of = lambda name, model: next(
        entry.questions.loc[common, "average_precision"] for entry in every if entry.name.startswith(name) and model in entry.backbone
    )
    assert paired_bootstrap(of("Triplet-BERT", "MiniLM"), of("Pairwise RoBERTa-Base", "MiniLM")).sign == 1
    assert of("Triplet-BERT", "MiniLM").mean() > of("Joint MSPP IEk → FT IEk, top 5", "MiniLM").mean()
    assert of("Triplet-BERT", "MiniLM").mean() == max(entry.questions.loc[common, "average_precision"].mean() for entry in every)
    assert paired_bootstrap(of("Triplet-RoBERTa", "granite"), of("RoBERTa-Base", "granite")).sign == 0


def test_our_own_questions_are_needed():
    """The words of the page findings: about a tenth of the triplet network's gain is left, what a bag of words has."""
    (bag,) = [one["map"] for one in committed()["bag_of_words"] if one["dataset"] == "pydocs"]
    runs = [run for run in committed()["runs"] if run["dataset"] == "pydocs"]
    own, exchanged = (np.mean([run["readouts"]["distance"][which]["map"] for run in runs]) for which in ("own", "exchanged"))
    (chance,) = {
        disk.read_json(path)["baselines"]["random"]["map"] for path in (rundir.root() / "results/asbert/triplet_bert").glob("pydocs-*")
    }
    assert len(runs) == 3 and {run["architecture"] for run in runs} == {"triplet"}
    assert abs((exchanged - chance) / (own - chance) - 0.1) < 0.02 and abs(exchanged - bag) < 0.01


def rankers_record(**seconds):
    """A record of `rank` in which the first ranker is right at 20 of 40 questions, the second at 36."""
    rows = {name: [[f"q{n}", *[1.0 if n < right else 0.5] * 3] for n in range(40)] for name, right in {"bm25": 20, "a/model": 36}.items()}
    figures = {
        name: {"parameters": size, "seconds_a_question": seconds.get(name), "pairs_before": "no"}
        for name, size in {"bm25": 0, "a/model": 2_500_000}.items()
    }
    return {"per_question": rows, "figures": figures, "settings": {"protocol": "clean"}, "hardware": {"cpu_cores": 2}}


def test_rankers_of_others_stand_in_the_order_of_their_map(tmp_path):
    assert "Rankers of others on WikiQA: not run." in leaderboard.of_rankers("wikiqa", str(tmp_path))
    for budget, content in {"small": {"per_question": {}}, "paper": rankers_record(bm25=0.0021)}.items():
        path = tmp_path / "rankers" / f"wikiqa-{budget}.json"
        path.parent.mkdir(exist_ok=True)
        disk.write_json(path, content)
    html = leaderboard.of_rankers("wikiqa", str(tmp_path), draws=500)
    first, second = cells(html)[1:]
    assert first[0] == "a/model" and first[3:] == ["95.0", "2.5 M", "–", "no"] and first[1].startswith("95.0 [")
    assert second[0] == "bm25" and second[3:] == ["75.0", "–", "2.1", "no"]
    assert "WikiQA, 40 test questions, protocol clean; points; on 2 CPU cores." in html and html.count("as2-best") == 1


def test_a_damaged_record_of_rankers_is_named(tmp_path):
    path = tmp_path / "rankers" / "wikiqa-small.json"
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(ValueError, match="wikiqa-small.json"):
        leaderboard.of_rankers("wikiqa", str(tmp_path))
