"""The YAML of the papers, strictly read: what a file may say, where a fault is, and some printed cells typed from the papers."""

import re
from datetime import date
from pathlib import Path

import pytest
import yaml

from aslab import papers, plan, rundir
from asutil.data import answers

from ..experiments.made_up import stub
from ..made_up import read_from

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_every_paper_reads(paper):
    data = papers.read(paper, FOLDER)
    assert data["slug"] == paper
    assert data["title"]
    assert data["authors"]
    shown = {(row, dataset) for table in data["tables"].values() for row in table["rows"] for dataset in table["datasets"]}
    for name, row in data["rows"].items():
        for dataset in row["published"]:
            assert (name, dataset) in shown, f"{name} on {dataset} is in no table"


def published(paper, row, dataset, metric):
    return papers.read(paper, FOLDER)["rows"][row]["published"][dataset][metric]


def test_some_printed_cells():
    """Typed from the papers' pages, not from the file that the rows were made of."""
    assert published("sentence_objectives", "roberta_base", "wikiqa", "p@1") == [78.3, 2.8]
    assert published("sentence_objectives", "electra_all", "trecqa", "mrr") == [95.5, 1.0]
    assert published("sentence_objectives", "roberta_mlm_only_psd_data", "wqa", "p@1") == {"relative": -1.3}
    assert published("sentence_objectives", "albert_sop", "pretraining", "f1") == 94.7
    assert published("contextual_as2", "roberta_dpc", "wikiqa", "p@1") == [85.2, 0.4]
    assert published("joint_inference", "joint_mspp_ie_k_ft_ie_1", "fever_dev", "label_accuracy") == [81.21, 0.24]
    assert published("joint_inference", "joint_mspp_ae_k_top_5", "asnq", "p@1") == [64.3, 1.1]


def test_all_rows_of_the_first_paper():
    data = papers.read("sentence_objectives", FOLDER)
    rows = {"table_1": 12, "table_2": 7, "table_3": 8, "table_5": 7}
    rows |= {"more_questions": 9, "order": 10, "controls": 6, "released": 8, "fewer_labels": 21, "more_pydocs": 6}
    assert {name: len(table["rows"]) for name, table in data["tables"].items()} == rows
    assert all(row.get("stages") for row in data["rows"].values())
    assert set(data["budgets"]) == set(rundir.BUDGETS)
    printed = {name for table in ("table_1", "table_2", "table_3", "table_5") for name in data["tables"][table]["rows"]}
    for budget in ("laptop", "gpu", "paper"):
        assert printed <= set(data["budgets"][budget]["rows"])
    for name in data["tables"]["released"]["rows"]:
        origin = data["rows"][name.removeprefix("released_")]["published"]
        assert all(cells == origin[dataset] for dataset, cells in data["rows"][name]["published"].items())


# ------------------------------------------------------------------ what is refused


def write(folder, changes=None, text=None):
    """asbert.yml with two rows, one of them with a stage; `changes`: dotted path -> value, or ... for what is left out."""
    budget = {"backbones": {"roberta": "tiny"}, "corpus": "c", "datasets": ["own"], "seeds": [0], "rows": ["one"]}
    claim = {"id": "c", "where": "w", "claim": "x", "row_a": "one", "row_b": "two", "dataset": "wikiqa", "metric": "map", "sign": "+"}
    one = {"name": "One", "stages": [{"notebook": "finetune"}], "published": {"wikiqa": {"map": [50.0, 1.0]}}}
    rows = {"one": one, "two": {"name": "Two", "published": {"wikiqa": {"map": 40.0}}}}
    table = {"where": "w", "caption": "c", "datasets": ["wikiqa"], "metrics": ["map"], "rows": ["one", "two"]}
    data = {"slug": "asbert", "title": "T", "authors": ["A"], "unit": "percent", "budgets": {"laptop": budget}}
    data |= {"rows": rows, "tables": {"t": table}, "claims": [claim]}
    for path, value in (changes or {}).items():
        *above, last = path.split(".")
        part = data
        for key in above:
            part = part[int(key) if isinstance(part, list) else key]
        part.pop(last) if value is ... else part.update({last: value})
    (folder / "asbert.yml").write_text(text or yaml.safe_dump(data))


def stages(*each, row="one"):
    """The stages of a row: a notebook, or with more a mapping."""
    return {f"rows.{row}.stages": [{"notebook": stage} if isinstance(stage, str) else stage for stage in each]}


EMBED = {"notebook": "embed"}
RERANK = {"notebook": "rerank", "first": "one"}
CHAIN = "row two: rerank is the last stage, after finetune, and has first: <row>; got"
REFUSED = [
    ({"sedings": 1}, "the file: unknown key 'sedings'"),
    ({"slug": "other"}, "slug: unknown value 'other'"),
    ({"unit": "points"}, "unit: unknown value 'points'"),
    ({"private": ["wqa"]}, "private: unknown value 'wqa'"),
    ({"headline": ["c", "d"]}, "headline: unknown claim 'd'"),
    ({"questions": {"wikiqua": ["Q1"]}}, "questions: unknown value 'wikiqua'; did you mean 'wikiqa'"),
    ({"counts": {"wikqa": {"train": [1, 2]}}}, "counts: unknown value 'wikqa'; did you mean 'wikiqa'"),
    ({"counts": {"wikiqa": {"trian": [1, 2]}}}, "counts, wikiqa: unknown value 'trian'; did you mean 'train'"),
    ({"counts": {"wikiqa": {"train": [1]}}}, r"counts, wikiqa, train: expected \[questions, candidates\], got \[1\]"),
    ({"counts": {"wikiqa": {"train": [1, 2.5]}}}, "counts, wikiqa, train: expected"),
    # rows
    ({"rows": ["one"]}, "rows: a mapping is expected"),
    ({"rows.one.publishd": {}}, r"row one: unknown key 'publishd'; did you mean 'published'\?"),
    ({"rows.one.baseline": "tow"}, "row one: baseline: unknown value 'tow'; did you mean 'two'"),
    ({"rows.one.backbone": "bert"}, "budget laptop: backbones: unknown value 'bert'"),
    ({"rows.one.published": {"wikqa": {"map": 1}}}, "row one: unknown value 'wikqa'; did you mean 'wikiqa'"),
    ({"rows.one.published": {"wikiqa": {"mapp": 1}}}, "row one, wikiqa: unknown value 'mapp'"),
    ({"rows.one.published": {"wikiqa": {"map": [1, 2, 3]}}}, r"row one, wikiqa, map: expected \[mean, std\]"),
    ({"rows.one.published": {"wikiqa": {"map": "50.0"}}}, "row one, wikiqa, map: expected .* got '50.0'"),
    ({"rows.one.published": {"wikiqa": {"map": {"relative": "x"}}}}, "row one, wikiqa, map: expected"),
    ({"rows.one.published": {"wikiqa": {"map": {"relative": 1, "mean": 2}}}}, "row one, wikiqa, map: expected"),
    ({"rows.one.doubtful": ""}, "row one: doubtful says in words why its printed figures are; got ''"),
    ({"rows.one.doubtful": True}, "row one: doubtful says in words why its printed figures are; got True"),
    ({"tables.t.rows": ["one", "tow"]}, "t: unknown value 'tow'; did you mean 'two'"),
    # stages
    (stages({"notebook": "finetune", "steps": 3}), "a stage of row one: unknown key 'steps'"),
    (stages({"notebook": "finetune", "epochs": {"smal": 1}}), "a stage of row one: unknown budget 'smal'"),
    (stages({"notebook": "finetune", "budgets": ["smal"]}), "a stage of row one: unknown budget 'smal'"),
    ({"rows.one.stages": ["finetune"]}, "a stage of row one: a mapping with a notebook is expected, got 'finetune'"),
    (stages("finetun"), "a stage of row one: unknown value 'finetun'; did you mean 'finetune'"),
    (stages(EMBED | {"k": 5}), "a stage of row one: unknown key 'k'"),
    (stages("pretrain", EMBED), "row one: embed is a row's only stage; got pretrain, embed"),
    (stages(EMBED, "finetune"), "row one: embed is a row's only stage; got embed, finetune"),
    (stages(RERANK, row="two"), f"{CHAIN} rerank"),
    (stages("finetune", RERANK, "finetune", row="two"), f"{CHAIN} finetune, rerank, finetune"),
    (stages("pretrain", RERANK, row="two"), f"{CHAIN} pretrain, rerank"),
    (stages("finetune", "rerank", row="two"), f"{CHAIN} finetune, rerank"),
    (stages("finetune", RERANK | {"first": "onne"}, row="two"), r"row two: first: unknown row .* 'onne'; did you mean 'one'\?"),
    (stages("finetune", RERANK | {"first": "two"}, row="two"), "row two: first: unknown row that ends with finetune 'two'"),
    (stages({"notebook": "finetune", "first": "one"}, row="two"), "a stage of row two: unknown key 'first'"),
    # budgets
    ({"budgets.labtop": {}}, "budgets: unknown value 'labtop'; did you mean 'laptop'"),
    ({"budgets.laptop": {"backbones": {}}}, "budget laptop lacks datasets, seeds, rows"),
    ({"budgets.laptop.rows": ["two"]}, "budget laptop: rows with stages: unknown value 'two'"),
    ({"budgets.laptop.search": {"epochs": [1], "datasets": ["asnq"]}}, "budget laptop: search: unknown value 'asnq'"),
    ({"budgets.laptop.pretrain_each": ["wikqa"]}, "budget laptop: pretrain_each: unknown data set of the budget 'wikqa'"),
    ({"budgets.laptop.also_rank": {"wikqa": []}}, "budget laptop: also_rank: unknown data set of the budget 'wikqa'"),
    ({"budgets.laptop.also_rank": {"own": ["selqa"]}}, "budget laptop: also_rank of own: unknown data set that a table has"),
    (stages("pretrain") | {"budgets.laptop.corpus": ...}, "budget laptop: row one reads a corpus, but the budget has none"),
    (stages("verify_claims"), "budget laptop: row one verifies claims, but the budget has no claims"),
    # claims and settings
    ({"claims.0.sign": "up"}, "claim c: unknown value 'up'"),
    ({"claims.0.row_b": "tow"}, "claim c: unknown value 'tow'"),
    ({"claims.0.metric": "accuracy"}, "claim c: unknown value 'accuracy'"),
    *[
        ({"claims.0.stated": day}, f"claim c: stated: expected a day in quotes, as '2026-11-27', got {re.escape(repr(day))}")
        for day in ("27 November", date(2026, 11, 27), 2026)
    ],
    ({"settings": [{"notebook": "pretrain", "is": {}}]}, "a rule of settings lacks are"),
    ({"settings": [{"notebook": "embed", "are": {"epoch": 3}}]}, "a rule of settings: unknown parameter 'epoch'"),
    (
        {"settings": [{"notebook": "embed", "when": {"row": ["thre"]}, "are": {"epochs": "any"}}]},
        "a rule of settings: when: unknown row 'thre'",
    ),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_what_is_refused(tmp_path, changes, said):
    write(tmp_path, changes)
    with pytest.raises(ValueError, match=f"asbert.yml: {said}"):
        papers.read("asbert", tmp_path)


@pytest.mark.parametrize(
    ("changes", "planned"),
    [
        ({"rows.one.doubtful": "a copy", "counts": {"wikiqa": {"train": [1, 2]}}}, ["own finetune 0", "own finetune 1"]),
        (stages(EMBED | {"architecture": "untrained"}), ["own embed 0"]),
        (
            stages({"notebook": "finetune", "architecture": "joint"}, RERANK, row="two") | {"budgets.laptop.rows": ["one", "two"]},
            ["own finetune 0", "own finetune 1", "transfer finetune 0", "own rerank 0", "transfer finetune 1", "own rerank 1"],
        ),
        (stages("verify_claims") | {"budgets.laptop.claims": ["mine"]}, ["mine verify_claims 0", "mine verify_claims 1"]),
    ],
)
def test_what_is_taken(tmp_path, monkeypatch, changes, planned):
    read_from(tmp_path, monkeypatch)
    write(tmp_path, {"budgets.laptop.seeds": [0, 1]} | changes)
    jobs = plan.jobs("asbert", "laptop", folder_for=stub)
    assert [f"{job.dataset} {job.notebook} {job.seed}" for job in jobs] == planned


def test_broken_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"asbert.yml is not in .*papers: sentence_objectives"):
        papers.read("asbert", tmp_path)
    write(tmp_path, text="slug: [")
    with pytest.raises(ValueError, match=r"(?s)asbert.yml: .*line 1"):
        papers.read("asbert", tmp_path)
    write(tmp_path, text="slug: asbert\nrows: {one: {name: a}, one: {name: b}}\n")
    with pytest.raises(ValueError, match=r"asbert.yml: key 'one' appears twice"):
        papers.read("asbert", tmp_path)
    write(tmp_path, text="just words")
    with pytest.raises(ValueError, match=r"asbert.yml: the file: a mapping is expected, got 'just words'"):
        papers.read("asbert", tmp_path)


def test_a_changed_file_is_read_again(tmp_path):
    write(tmp_path)
    assert papers.read("asbert", tmp_path)["rows"]["two"]["published"]["wikiqa"]["map"] == 40
    write(tmp_path, {"rows.two.published": {"wikiqa": {"map": 41.5}}})
    assert papers.read("asbert", tmp_path)["rows"]["two"]["published"]["wikiqa"]["map"] == 41.5


def test_a_data_set_that_no_row_of_a_table_prints_is_refused(tmp_path):
    data = yaml.safe_load((FOLDER / "asbert.yml").read_text("utf-8"))
    data["tables"]["table_3"]["datasets"].append("wikiqa_dev")
    for row in data["tables"]["table_3"]["rows"]:
        data["rows"][row]["published"].pop("wikiqa_dev", None)
    (tmp_path / "asbert.yml").write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(ValueError, match=r"table_3: data sets that a row of the table has under .published.: unknown value 'wikiqa_dev'"):
        papers.read("asbert", tmp_path)


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_every_table_of_a_paper_is_on_its_pages_or_part_of_one_that_is(paper):
    page = "".join(path.read_text("utf-8") for path in (FOLDER.parent / "book" / "papers" / paper).glob("*.md"))
    shown = set(re.findall(rf"{{as2-show}} results {paper} (\w+)", page))
    tables = papers.read(paper, FOLDER)["tables"]
    assert shown <= set(tables)
    for name in set(tables) - shown:
        parts = ("rows", "datasets", "metrics")
        assert any(all(set(tables[name][part]) <= set(tables[other][part]) for part in parts) for other in shown), name


@pytest.mark.mirror
@pytest.mark.parametrize(
    ("paper", "dataset", "words"),
    [
        ("sentence_objectives", "wikiqa", "antibodies"),  # table 6
        ("sentence_objectives", "trecqa", "wiggles"),
        ("joint_inference", "wikiqa", "erb"),  # table 4
        ("joint_inference", "trecqa", "khmer rouge"),
        ("asbert", "wikiqa", ""),
    ],
)
def test_the_questions_that_a_paper_prints_are_test_questions(mirror, paper, dataset, words):
    asked = papers.read(paper, FOLDER)["questions"][dataset]
    texts = {question.id: question.text.lower() for question in answers.load_answers(dataset)["test"]}
    assert asked and all(words in texts[name] for name in asked)


def test_each_objective_and_configuration_has_its_claims():
    """The statements of section 5.3 and section 7 on their tables, and the four rows of FEVER on dev and test (table 3)."""
    every = [claim for paper in papers.PAPERS for claim in papers.read(paper)["claims"]]
    signs = {(claim["row_a"], claim["row_b"], claim["dataset"]): claim["sign"] for claim in every}
    models, objectives, contexts = ("roberta", "electra"), ("ssp", "sp", "psd"), ("sdc", "dpc", "dslc", "all")
    wanted = [(f"{m}_{o}", f"{m}_base", dataset) for m in models for o in (*objectives, "all") for dataset in ("asnq", "wikiqa")]
    wanted += [(f"{m}_sp", f"{m}_base", "trecqa") for m in models]
    wanted += [(f"roberta_{o}", f"roberta_mlm_only_{o}_data", d) for o in objectives for d in ("asnq", "wikiqa", "trecqa")]
    wanted += [(f"{m}_{o}", f"{m}_base_context", dataset) for m in models for o in contexts for dataset in ("asnq", "newsas2")]
    wanted += [(f"{m}_{o}", f"{m}_base", "newsas2") for m in models for o in contexts if (m, o) != ("roberta", "dpc")]
    mspp = [f"joint_mspp_{pre}_ft_{head}" for pre in ("ie_k", "ae_k") for head in ("ie_1", "ae_1")]
    wanted += [(row, "joint_roberta_base_ie_1", f"fever_{split}") for row in mspp for split in ("dev", "test")]
    below = ("roberta_dpc", "roberta_base_context", "newsas2")
    assert {rows: signs[rows] for rows in wanted} == dict.fromkeys(wanted, "+") | {below: "-"}


# What a text says against figures of its own tables: the claim, and its metrics.
OTHERWISE = {"psd_not_the_data_asnq": ["p@1"], "all_best_trecqa_roberta": ["p@1", "map"], "all_near_best_asnq_electra": ["p@1"]}
OTHERWISE |= {"dslc_sdc_wikiqa": ["p@1", "map"]}  # the advice of section 7 against table 1
USE = ("siamese", "siamese_roberta", "siamese_xlnet", "triplet_xlnet")
OTHERWISE |= {f"{name}_trecqa": ["map"] for name in ("triplet_siamese_xlnet", *(f"{row}_use" for row in USE))}
UNPRINTED = {  # claims on rows and data sets of our own, on words without figures, and on figures that are lost
    "sentence_objectives": r"ssp_(\d+|500_all)_wikiqa",
    "contextual_as2": "separate_heads_wikiqa",
    "asbert": "",
    "joint_inference": r"fails_[ai]e_k_(1e_5|5e_6)_(wikiqa|trecqa)|mspp_for_pairs_(asnq|wikiqa|trecqa)|\w+_climate_fever",
    "evidence_contrast": r"\w+",
}


def test_claims_have_the_printed_sign():
    against = {}
    for paper in papers.PAPERS:
        data = papers.read(paper)
        for claim in (claim for claim in papers.claims(data) if "stated" not in claim):
            cells = [data["rows"][claim[row]]["published"][claim["dataset"]].get(claim["metric"]) for row in ("row_a", "row_b")]
            assert (None in cells) == bool(re.fullmatch(UNPRINTED[paper], claim["id"])), claim["id"]
            if None not in cells and (first(cells[0]) > first(cells[1])) != (claim["sign"] == "+"):
                against.setdefault(claim["id"], []).append(claim["metric"])
        said = {claim["id"] for claim in data["claims"] if re.search("says? the opposite", claim["claim"])}
        assert said <= against.keys() and len({claim["id"] for claim in data["claims"]}) == len(data["claims"])
    assert against == OTHERWISE


def first(cell) -> float:
    """The mean of a printed cell."""
    return cell[0] if isinstance(cell, list) else cell
