"""What runs are expected to cost: sums by hand, laws, sizes by transformers, and the page's tables."""

import shutil
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from aslab import hours, papers, plan
from aslab.analysis import costs
from asutil.io import disk

from ..conftest import extension
from ..made_up import read_from

ROOT = Path(__file__).resolve().parents[2]
PAYLOAD = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def tables():
    return {paper: costs.table(paper) for paper in papers.PAPERS}


def test_a_pretraining_by_hand(tables):
    lines = tables["sentence_objectives"]
    (line,) = lines[(lines.notebook == "pretrain") & (lines.row == "roberta_ssp")].itertuples()
    tokens = 400_000 * 4096 * 128
    assert (line.steps, line.tokens, line.gpu_hours) == (400_000, tokens, 120)


def test_a_fine_tuning_by_hand(tables):
    lines = tables["contextual_as2"]
    (line,) = lines[(lines.row == "roberta_base") & (lines.dataset == "wikiqa") & (lines.seed == 3)].itertuples()
    assert line.steps == 30 * 637  # 30 epochs of 20,360 pairs in batches of 32
    assert line.tokens == 30 * 20_360 * 256 and line.gpu_hours == 20


def test_examples_are_counted_as_each_notebook_reads_them():
    pairs = {"dataset": "wikiqa", "protocol": "asbert", "epochs": 2, "batch_size": 32, "max_tokens": 128}
    assert hours.work("embed", pairs | {"architecture": "siamese"}) == (2 * 271, 2 * 8_672 * 2 * 128, 128)
    assert hours.work("embed", pairs | {"architecture": "triplet"}) == (2 * 282, 2 * 8_995 * 3 * 128, 128)
    assert hours.work("embed", pairs | {"architecture": "untrained"})[:2] == (0, 0)
    joint = pairs | {"protocol": "clean", "architecture": "joint", "k": 5, "max_tokens": 384}
    groups = round((20_360 + 2_118 * 2) / 5)
    assert hours.work("finetune", joint) == (2 * -(-groups // 32), 2 * groups * 384, 384)
    claims = {"dataset": "fever", "k": 5, "epochs": 1, "batch_size": 64}
    assert hours.work("verify_claims", claims | {"head": "ie_1", "max_tokens": 384})[1] == 145_406 * 384
    assert hours.work("verify_claims", claims | {"head": "pair_max", "max_tokens": 128})[1] == 145_406 * 5 * 128


def test_what_is_not_known_is_refused_by_name():
    with pytest.raises(ValueError, match="finetune: how many examples 'mine.tsv'"):
        hours.work("finetune", {"dataset": "mine.tsv", "protocol": "clean", "architecture": "pair"})


@given(st.integers(1, 10**6), st.integers(1, 5000), st.integers(8, 16384))
def test_twice_the_steps_are_twice_the_tokens(steps, batch, length):
    settings = {"steps": steps, "batch_size": batch, "max_tokens": length}
    once, twice = hours.work("pretrain", settings), hours.work("pretrain", settings | {"steps": 2 * steps})
    assert twice[:2] == (2 * once[0], 2 * once[1])


@pytest.mark.slow
def test_every_paper_is_counted_and_searches_with_their_seeds(tables):
    for paper, lines in tables.items():
        planned = plan.jobs(paper, "paper", folder_for=costs.planned_folder)
        searches = {job.search for job in planned if job.search}
        data = papers.read(paper)
        follow = sum(len(papers.seeds(data, name.split("-")[2], "paper")) - 1 for name in searches)
        assert len(lines) == len(planned) + follow and (lines.gpu_hours > 0).all()
        assert costs.by_notebook(paper)["runs"].sum() == len(lines)
    assert set(tables["asbert"].steps[tables["asbert"].row == "glove"]) == {0}


def test_hours_and_batches_of_another_file_are_followed(tmp_path, monkeypatch):
    read_from(tmp_path / "experiments", monkeypatch)
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    path = tmp_path / "experiments" / "asbert.yml"
    data = yaml.safe_load(path.read_text("utf-8"))
    data["budgets"]["paper"] |= {"rows": ["siamese_bert"], "seeds": [0], "datasets": ["wikiqa"], "gpu_hours": {"embed": 7}}
    data["rows"]["siamese_bert"]["stages"][0]["epochs"] = 3
    path.write_text(yaml.safe_dump(data))
    (line,) = costs.table("asbert").itertuples()
    assert (line.gpu_hours, line.steps, line.tokens) == (7, 3 * 271, 3 * 8_672 * 2 * 128)


# ------------------------------------------------------------------ the page


page = extension("as2_costs")


@pytest.mark.slow
def test_every_table_is_shown_and_every_paper_has_a_line(page):
    for name, table in page.TABLES.items():
        shown = table()
        (made,) = BeautifulSoup(shown, "html.parser").find_all("table")
        lines = [[cell.text for cell in line.find_all(["th", "td"])] for line in made.find_all("tr")]
        assert len(lines) > 1 and {len(line) for line in lines} == {len(lines[0])} and "nan" not in shown, name
        if name in ("budgets", "full", "stated"):
            assert all(f">{paper}" in shown for paper in papers.PAPERS), name
    text = (ROOT / "book" / "costs.md").read_text("utf-8")
    assert all(f"```{{as2-show}} costs {name}\n" in text for name in page.TABLES)


@pytest.mark.slow
def test_numbers_of_the_page_follow_the_files(page, monkeypatch):
    assert f">{page.big(costs.by_notebook('asbert')['tokens'].sum())}<" in page.full()
    monkeypatch.setattr(page, "benchmarks", lambda name: {})
    assert "not run" in page.corpora() and "not run" in page.examples()
    machine = {"gpu": PAYLOAD, "system": "Linux", "python": "3", "cores": 1, "processor": PAYLOAD, "versions": {"torch": "2"}}
    rates = {"ssp": {"examples_a_second": {"median": 1000.0}}}
    built = {"tokens": 250, "characters": 1000, "characters_a_second": 1e6, "bytes_a_token": 4}
    results = {"sampling": {"objectives": rates, "machine": machine}, "index": {"large_build": built, "machine": machine}}
    monkeypatch.setattr(page, "benchmarks", lambda name: results)
    hours = page.hours(400_000 * 4096 / 1000 / 3600)
    assert f">{hours}<" in page.examples() and ">2.5 billion<" in page.corpora()
    assert all(PAYLOAD not in html and "&lt;script&gt;" in html for html in (page.examples(), page.corpora()))


def test_big_numbers_are_said_in_words(page):
    words = ["999", "210 billion", "1.5 trillion", "2.31 trillion"]
    assert [page.big(n) for n in (999, 209_715_200_000, 1.5e12, 2_306_867_200_000)] == words
    assert [page.size(n) for n in (0, 4e9, 3.2e12)] == ["–", "4 GB", "3.2 TB"]


def test_a_run_on_a_gpu_says_nothing_of_cpus(tmp_path):
    place = tmp_path / "paper" / "row"
    place.mkdir(parents=True)
    ran = {"notebook": "finetune", "budget": "small", "seconds": 3600, "settings": {"dataset": "wikiqa", "max_tokens": 128}}
    for seed, gpu in enumerate((None, "one", None)):
        figures = {"examples": 10, "tokens": 640, "training_seconds": 4 if gpu else 64}
        one = ran | {"name": f"run {seed}", "figures": figures, "hardware": {"cpu_cores": 2, "gpu": gpu}}
        disk.write_json(place / f"wikiqa-small-seed{seed}.json", one)
    (line,) = costs.trained(tmp_path).itertuples()
    assert (line.runs, line.speed, line.tokens, line.hours) == (2, 10, 64, 1)
    few = one | {"name": "few", "settings": one["settings"] | {"train_limit": 50}, "seconds": 60}
    few["figures"] = one["figures"] | {"training_seconds": 7200}  # it was stopped, and its last process took a minute
    disk.write_json(place / "wikiqa-small-seed3.json", few)
    lines = {line.kind: (line.runs, line.hours) for line in costs.trained(tmp_path).itertuples()}
    assert lines == {"pair": (2, 1), "pair, 50 questions": (1, 2)}


def test_a_damaged_record_is_named(tmp_path):
    place = tmp_path / "paper" / "row"
    place.mkdir(parents=True)
    for content in ("{", '{"name": "a", "figures": {"examples": 1}}'):
        (place / "wikiqa-small-seed0.json").write_text(content)
        with pytest.raises(ValueError, match=r"row/wikiqa-small-seed0\.json is damaged"):
            costs.trained(tmp_path)
