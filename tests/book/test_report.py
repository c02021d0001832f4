"""Tables and verdicts from made-up records: verdicts by hand, a changed record changes its table alone, markup in texts is inert."""

import dataclasses
import re
from pathlib import Path

import pandas as pd
import pytest
from pages import differences, miniature, report

from aslab import gallery, papers, parameters, plan, records, rundir, runs
from aslab.analysis import comparisons, verdicts
from aslab.show import plots
from asutil.io import disk

from ..made_up import BACKBONE, FOLDER, PAPER, cells, commit, line, record, recorded, values
from .tables import REDUCED, caption_of, results_table, verdict_of


def exact(notebook, **given):
    """The settings of a run at the paper's own, where the paper leaves the batch size to a grid."""
    settings = parameters.settings(notebook, {"budget": "paper", "model": BACKBONE, **given})
    return settings | ({"batch_size": 16} if notebook == "finetune" else {})


RUN = "pretrain-ssp-0123456789ab"
EXACT = exact("finetune", dataset="wikiqa")


# ------------------------------------------------------------------ the rule


@pytest.mark.parametrize(
    ("published", "ours", "questions", "expected"),
    [
        # std 2.8, t = min(2, 5.6) = 2: 76.3 is 2.0 away, 76.2 is 2.1, 74.3 is 4.0, 74.2 is 4.1
        ((78.3, 2.8), [0.763] * 3, 237, "matches"),
        ((78.3, 2.8), [0.762] * 3, 237, "close"),
        ((78.3, 2.8), [0.743] * 3, 237, "close"),
        ((78.3, 2.8), [0.742] * 3, 237, "differs"),
        # std 0.1, 237 questions: t = max(0.2, 0.5, 0.42) = 0.5
        ((66.9, 0.1), [0.674, 0.674, 0.674], 237, "matches"),
        ((66.9, 0.1), [0.6745, 0.6745, 0.6745], 237, "close"),
        ((66.9, 0.1), [0.680, 0.680, 0.680], 237, "differs"),
        # 68 questions: t = 100/68 = 1.47
        ((90.0, 0.0), [0.914] * 3, 68, "matches"),
        ((90.0, 0.0), [0.916] * 3, 68, "close"),
        (90.0, [0.93] * 3, 68, "differs"),
        # 40 questions: 100/40 = 2.5, but never more than 2
        (90.0, [0.921] * 3, 40, "close"),
        # std 0.4: t = 0.8; it is the mean over seeds that counts
        ((60.0, 0.4), [0.58, 0.60, 0.636], 5000, "matches"),
        # two seeds never match, and never fall below close for that
        ((78.3, 2.8), [0.783, 0.783], 237, "close"),
        ((78.3, 2.8), [0.783], None, "close"),
        (None, [0.5] * 3, 237, "not published"),
    ],
)
def test_the_rule_at_the_papers_settings(published, ours, questions, expected):
    assert verdicts.verdict(published, ours, questions, at_paper_settings=True) == expected


def test_an_own_task_matches_with_the_one_seed_that_a_pre_training_has(monkeypatch):
    monkeypatch.setattr(verdicts.plan, "at_paper_settings", lambda *_: True)
    data, name = papers.read(PAPER, FOLDER), "pretraining"
    row = next(row for row, of in data["rows"].items() if of["published"].get(name, {}).get("accuracy"))
    theirs = verdicts.printed_points(data["rows"][row]["published"][name]["accuracy"], data["unit"])
    one = record(row, name, "paper", 0, 0.5) | {"notebook": "pretrain"}
    one["metrics"] = {"validation": {"accuracy": (theirs[0] if isinstance(theirs, tuple | list) else theirs) / 100}}
    line = pd.DataFrame([{"row": row, "dataset": name, "budget": "paper", "seed": 0, "record": one, "folder": None, "earlier": []}])
    assert verdicts.of_cells(data, row, name, ["accuracy"], line) == [("matches", "")]


def test_the_rule_elsewhere():
    assert verdicts.verdict((78.3, 2.8), [0.783] * 5, 237) == "reduced budget"  # however good it looks
    assert verdicts.verdict((78.3, 2.8), [], 237, at_paper_settings=True) == "not run"
    assert verdicts.verdict((78.3, 2.8), [0.783] * 5, 237, at_paper_settings=True, private=True) == "private data"


# ------------------------------------------------------------------ made-up records


@pytest.fixture
def results(tmp_path):
    commit(
        tmp_path,
        *[record("roberta_base", "wikiqa", "small", seed, 0.5) for seed in (0, 1, 2)],
        *[record("roberta_ssp", "wikiqa", "small", seed, 0.7) for seed in (0, 1, 2)],
        record("roberta_ssp", "wikiqa", "gpu", 0, 0.75),
        record("roberta_base", "trecqa", "laptop", 0, 0.9),
    )
    return tmp_path


# ------------------------------------------------------------------ the paper's tables


@pytest.mark.slow
def test_results_table(results):
    html = results_table(PAPER, "table_1", recorded(results), folder=FOLDER)
    assert html.count("<table") == 5  # four data sets, and the rows of WikiQA that have no runs
    wikiqa = results_table(PAPER, "table_1", recorded(results), "wikiqa", folder=FOLDER)
    assert wikiqa in html
    table = cells(wikiqa)
    assert table[0] == ["Row", "From", "P@1", "MAP", "MRR", "Seeds", "Budget"]
    assert table[1] == ["random order", "no training", "12.3", "23.4", "34.5", "–", "–"]
    assert table[2] == ["BM25", "no training", "45.6", "50.0", "–", "–", "–"]  # document order means nothing here
    assert table[3] == ["RoBERTa-Base", "paper", "78.3 ± 2.8", "85.8 ± 1.3", "87.2 ± 1.3", "5", "paper"]
    assert table[4] == ["ours", "50.0 ± 0.0", "60.0 ± 0.0", "70.0 ± 0.0", "3", "small"]
    assert table[6] == ["ours", "75.0", "75.0", "85.0", "1", "gpu"]  # the largest budget, one seed: no spread
    assert verdict_of(wikiqa, "ours", "small") == "reduced budget"
    assert caption_of(wikiqa).endswith(f" Our runs began with roberta-base. {REDUCED}") and "as2-model" not in wikiqa
    assert html.count(REDUCED.replace("'", "&#x27;")) == html.count("Our runs began with") == 1, "in no table without runs"
    folded = line(wikiqa, "RoBERTa + SP")
    assert folded[:3] + folded[-1:] == ["RoBERTa + SP", "paper", "81.0 ± 0.8", "not run"]
    assert "<summary>WikiQA: 10 of 12 rows without runs of ours</summary>" in wikiqa and wikiqa.count("<details") == 1
    assert len(table) == 3 + 12 + 2 + 1  # every printed row stays, run or not, below two lines of column names
    panels = report.results_panels(papers.read(PAPER, FOLDER), recorded(results), "table_1")
    assert [name for name, _ in panels] == ["WikiQA", "Not run"] and panels[1][1].count("<details") == 3


def test_our_rows_name_the_model_that_ran(results):
    pre = {"notebook": "pretrain", "name": RUN, "budget": "small", "seed": 0, "settings": {"model": "owner/small <model>"}}
    commit(results, record("roberta_sp", "wikiqa", "small", 0, 0.5, {"model": RUN}, earlier=[pre]))
    html = results_table(PAPER, "table_1", recorded(results), "wikiqa", folder=FOLDER)
    assert '>ours<small class="as2-model">small &lt;model&gt;</small></td>' in html
    assert html.count('>ours<small class="as2-model">roberta-base</small></td>') == 2 and "Our runs began with" not in html


def test_verdicts_that_differ_are_a_column(results):
    """Of two rows one has a model whose slots are one vector: each line has its own verdict, and the caption has none."""
    slots = {"slot_cosines": {"first": [0.5, 0.9995], "mean": [0.2, 0.7], "pooling": "first"}}
    commit(results, record("roberta_sp", "wikiqa", "small", 0, 0.5, figures=slots))
    html = results_table(PAPER, "table_1", recorded(results), "wikiqa", folder=FOLDER)
    table = cells(html)
    assert table[0] == ["Row", "From", "P@1", "MAP", "MRR", "Seeds", "Budget", "Verdict"]
    assert table[1] == ["random order", "no training", "12.3", "23.4", "34.5", "–", "–", "–"]
    assert line(html, "RoBERTa-Base", "paper")[-2:] == ["paper", ""]
    assert table[4][-2:] == ["small", "reduced budget"] and verdict_of(html, "ours", "gpu") == "reduced budget"
    assert [row[-1] for row in table if row[0] == "ours"].count("not testable herethe slots of its joint model are one vector") == 1
    assert caption_of(html).endswith(" Our runs began with roberta-base.") and REDUCED not in caption_of(html)


def test_laptop_runs_never_stand_beside_the_paper(results):
    trecqa = results_table(PAPER, "table_1", recorded(results), "trecqa", folder=FOLDER)
    assert line(trecqa, "RoBERTa-Base", "paper")[-1] == "not run"
    assert "laptop" not in trecqa
    assert "BM25" not in trecqa


def test_verdicts_at_the_papers_settings(tmp_path):
    for seed in range(3):  # 31 of 40 questions: P@1 77.5, MAP 76.5, MRR 86.5; printed 78.3 (2.8), 85.8 (1.3), 87.2 (1.3)
        commit(tmp_path, record("roberta_base", "wikiqa", "paper", seed, 0.775, EXACT))
    html = results_table(PAPER, "table_1", recorded(tmp_path), "wikiqa", folder=FOLDER)
    assert line(html, "ours", "paper")[-1] == "matchesP@1; MRRdiffersMAP"
    words = verdicts.of_cells(papers.read(PAPER, FOLDER), "roberta_base", "wikiqa", ("p@1", "map", "mrr"), recorded(tmp_path))
    assert words == [("matches", ""), ("differs", ""), ("matches", "")]
    # one seed with another batch size: nothing is compared any more
    commit(tmp_path, record("roberta_base", "wikiqa", "paper", 1, 0.775, EXACT | {"batch_size": 8}))
    html = results_table(PAPER, "table_1", recorded(tmp_path), "wikiqa", folder=FOLDER)
    assert verdict_of(html, "ours", "paper") == "reduced budget"


def test_a_chain_is_exact_only_as_a_whole(tmp_path):
    """A fine-tuning run at the paper's settings counts only with the record of a pre-training run at the paper's settings."""
    pre = exact("pretrain", objective="ssp", corpus=papers.read(PAPER, FOLDER)["budgets"]["paper"]["corpus"])
    for changed, expected in (({}, "matches"), ({"steps": 4000}, "reduced budget"), (None, "reduced budget")):
        earlier = (
            [] if changed is None else [{"notebook": "pretrain", "name": RUN, "budget": "paper", "seed": 0, "settings": pre | changed}]
        )
        own = EXACT | {"model": RUN}
        for seed in range(3):
            commit(tmp_path, record("roberta_ssp", "wikiqa", "paper", seed, 0.825, own, earlier=earlier))
        html = results_table(PAPER, "table_2", recorded(tmp_path), "wikiqa", folder=FOLDER)
        assert verdict_of(html, "ours", "paper") == expected
    for seed in range(3):  # fine-tuned from the released backbone: that is another row
        commit(tmp_path, record("roberta_ssp", "wikiqa", "paper", seed, 0.825, EXACT))
    html = results_table(PAPER, "table_2", recorded(tmp_path), "wikiqa", folder=FOLDER)
    assert verdict_of(html, "ours", "paper") == "reduced budget"


# ------------------------------------------------------------------ marks


def test_the_papers_gains_by_hand(results):
    html = results_table(PAPER, "table_1", recorded(results), "wikiqa", folder=FOLDER)
    # 82.9 (0.7) against 78.3 (2.8): t = 4.6 / sqrt((0.49 + 7.84) / 5) = 3.56 > 2.31; 81.0 (0.8): t = 2.07
    assert line(html, "RoBERTa + SSP", "paper")[2] == "82.9 ± 0.7† p = 0.007"
    assert line(html, "RoBERTa + SP", "paper")[2] == "81.0 ± 0.8"
    assert (
        '<u>82.9 ± 0.7</u><abbr class="as2-mark" title="better than RoBERTa-Base over seeds, Student&#x27;s t">† p = 0.007</abbr>' in html
    )
    assert "<u>81.0" not in html
    assert "† better than the baseline row" in html  # the legend, where there is something to explain
    assert "†" not in results_table(PAPER, "table_3", recorded(results), folder=FOLDER)
    trecqa = results_table(PAPER, "table_1", recorded(results), "trecqa", folder=FOLDER)
    worse = line(trecqa, "ELECTRA + PSD", "paper")[2]
    assert worse == "85.9 ± 2.2†↓ p = 0.008" and f"<u>{worse[:4]}" not in trecqa


def test_unknown_tables_are_refused(results):
    with pytest.raises(ValueError, match=r"unknown table 'tabel_1'; did you mean 'table_1'"):
        results_table(PAPER, "tabel_1", recorded(results), folder=FOLDER)


# ------------------------------------------------------------------ this machine


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Finished laptop runs of two rows, in their folders."""
    monkeypatch.setattr(parameters, "settings", lambda notebook, given: given)

    def make(name, notebook, settings, mean=None):
        folder = tmp_path / name
        folder.mkdir()
        settings = settings | {"model": Path(settings["model"]).name}  # a record names a run without its path
        content = {"notebook": notebook, "name": name, "budget": "laptop", "seed": settings["seed"], "settings": settings}
        if mean is None:
            content["metrics"] = {"validation": {"accuracy": 0.81, "f1": 0.2}}
        else:
            content |= {key: record("x", "pydocs", "laptop", settings["seed"], mean)[key] for key in ("metrics", "baselines")}
            names = ["question_id", *records.PER_QUESTION.values()]
            pd.DataFrame(values(mean, seed=settings["seed"]), columns=names).to_parquet(folder / "per_question.parquet")
        (folder / "log.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n{"step": 2, "eval_map": 0.4}\n')
        disk.write_json(folder / "record.json", content | runs.hashes(folder))

    names = {("pretrain", "psd"): "pretrain-psd-aaaaaaaaaaaa", ("finetune", "psd"): "finetune-psd-bbbbbbbbbbbb"}

    def folder_for(notebook, given):
        of_psd = "psd" in (given.get("objective"), *str(given["model"]).split("-"))
        return tmp_path / names.get((notebook, "psd" if of_psd else None), "finetune-base-cccccccccccc")

    for job in plan.jobs(PAPER, "laptop", ["roberta_base", "roberta_psd"], [0], folder_for):
        mean = {"roberta_base": 0.5, "roberta_psd": 0.7}[job.row] if job.notebook == "finetune" else None
        make(job.folder.name, job.notebook, job.parameters, mean)
    return tmp_path


def test_laptop_table(machine):
    local = records.records(PAPER, machine / "none", machine)
    html = miniature.laptop_table(papers.read(PAPER, FOLDER), local, "table_1", links={"finetune-psd-bbbbbbbbbbbb": 'runs/x.html?a="b'})
    table = cells(html)
    assert table[1][:3] == ["random order", "no training", "12.3"]
    assert table[3] == ["RoBERTa-Base", "ours, this machine", "50.0", "60.0", "70.0", "1", "–"]
    assert line(html, "RoBERTa + SSP") == ["RoBERTa + SSP", "not run", *["–"] * 5]
    assert table[0] == ["Row", "From", "P@1", "MAP", "MRR", "Seeds", "MAP against its baseline [95 %]"] and "reduced budget" not in html
    psd = line(html, "RoBERTa + PSD")
    assert [text.rstrip("†‡") for text in psd[:6]] == ["RoBERTa + PSD", "ours, this machine (seed 0)", "70.0", "72.0", "82.0", "1"]
    assert psd[6].startswith("+12.0 [") and len(psd) == 7
    assert 'href="runs/x.html?a=&quot;b"' in html
    assert "40 test questions" in html
    data = papers.read(PAPER, FOLDER)
    of_questions = [name for name, table in data["tables"].items() if table["datasets"] != ["pretraining"]]
    empty = [cells(miniature.laptop_table(data, local.iloc[:0], name))[1:] for name in of_questions]
    void = [row["name"] for row in data["rows"].values() if "laptop" in row.get("not_testable", {})]
    said = {row[0]: row[1] for table in empty for row in table if row != ["nothing to show yet"]}
    rows = {row for name in of_questions for row in data["tables"][name]["rows"]} & set(data["budgets"]["laptop"]["rows"])
    assert set(said) == {data["rows"][row]["name"] for row in rows} and len(rows) > 15 and void
    assert all(words.startswith("not testable here" if name in void else "not run") for name, words in said.items())


def test_committed_laptop_runs_stand_above_those_of_this_machine(machine, tmp_path):
    commit(tmp_path / "kept", *[record("roberta_base", "pydocs", "laptop", seed, 0.2) for seed in (0, 1, 2)])
    commit(
        tmp_path / "kept",
        record("roberta_psd", "pydocs", "laptop", 0, 0.1, hardware={"cpu_cores": 2, "architecture": "x86_64", "system": "Linux"}),
    )
    html = miniature.laptop_table(papers.read(PAPER, FOLDER), records.records(PAPER, tmp_path / "kept", machine), "table_1")
    table = cells(html)
    place = next(number for number, row in enumerate(table) if row[0] == "RoBERTa-Base")
    assert table[place][1:3] == ["ours", "20.0 ± 0.0"] and table[place][5:] == ["3", "–"]
    assert table[place + 1][:2] == ["ours, this machine", "50.0"]
    place = next(number for number, row in enumerate(table) if row[0] == "RoBERTa + PSD")
    assert table[place][6].startswith("-6.0 [") and table[place + 1][5].startswith("+12.0 [")  # each against its own kind
    assert "Ours: 2 x86_64 cores, Linux." in html


def test_the_demonstration_shows_what_this_machine_made_alone(machine, tmp_path):
    commit(tmp_path / "kept", record("roberta_ssp", "pydocs", "laptop", 0, 0.9))
    both = records.records(PAPER, tmp_path / "kept", machine)
    table = cells(miniature.demo_table(papers.read(PAPER, FOLDER), both))
    assert table[1:3] == [["random order", "no training", "23.4", "–"], ["BM25", "no training", "50.0", "–"]]
    assert table[3] == ["RoBERTa-Base", "–", "60.0", "–"] and table[5] == ["RoBERTa + SSP", "–", "–", "–"]
    assert table[4][0] == "RoBERTa + PSD" and table[4][2].rstrip("†‡") == "72.0" and table[4][3].startswith("+12.0 [")
    assert miniature.demo_table(papers.read(PAPER, FOLDER), both[both.source != records.HERE]) == ""


def test_without_a_validation_there_is_no_empty_plot_of_it():
    losses = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5}]
    assert [axis.get_ylabel() for axis in plots.training_curves({"a": losses}).axes] == ["training loss"]
    both = plots.training_curves({"a": [*losses, {"step": 2, "eval_map": 0.5}]}).axes
    assert [axis.get_ylabel() for axis in both] == ["training loss", "validation MAP, points"]


def test_accuracy_bars_show_each_model_beside_its_majority_class():
    table = pd.DataFrame({"accuracy": [0.9, 0.55], "majority": [0.8, 0.5], "f1": [0.7, 0.5]}, index=["one, ssp", "two, nsp"])
    axis = plots.accuracy_bars(table).axes[0]
    assert [round(bar.get_width(), 6) for bar in axis.patches] == [90, 55]
    assert [line.get_xdata()[0] for line in axis.lines if len(line.get_xdata())] == [80, 50]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["one, ssp", "two, nsp"]


@pytest.mark.slow
def test_local_runs_are_marked_and_are_sources(machine):
    local = records.records(PAPER, machine / "none", machine)
    local["budget"] = "small"
    local["dataset"] = local["dataset"].replace("pydocs", "wikiqa")
    html = results_table(PAPER, "table_1", local, "wikiqa", folder=FOLDER)
    assert verdict_of(html, "ours, this machine", "70.0") == "reduced budget"
    assert "seed, small, this machine<" in differences.claims_table(papers.read(PAPER, FOLDER), local)
    data = papers.read(PAPER, FOLDER)
    published = [(row, name, cells) for row, content in data["rows"].items() for name, cells in content["published"].items() if cells]
    words = {word for row, name, cells in published for word, _ in verdicts.of_cells(data, row, name, cells, local.iloc[:0])}
    assert words == {"not run", "private data", "not testable here"}
    assert len(report.logs(local[local.dataset == "pretraining"], papers.read(PAPER, FOLDER))) == 1


# ------------------------------------------------------------------ markup, curves


def test_markup_in_the_rows_of_a_paper_is_inert(tmp_path):
    text = (FOLDER / "asbert.yml").read_text().replace("name: GloVe", "name: '<b>GloVe</b>'").replace("title: '", "title: '<i>")
    (tmp_path / "asbert.yml").write_text(text)
    html = results_table("asbert", "table_3", recorded(tmp_path), folder=tmp_path)
    assert "<b>" not in html
    assert "&lt;b&gt;GloVe" in html


def test_training_curves(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n{"step": 3, "loss": 1.5}\n{"step": 3, "eval_accuracy": 0.25, "eval_map": 0.5}\n')
    lines = [{"step": 2, "loss": 0.5}, {"step": 4, "loss": 0.25}, {"step": 2, "eval_accuracy": 0.75}]
    figure = plots.training_curves({("from <a> file", 0): log, ("from <a> file", 3): log, "from lines": lines})
    loss, valid = figure.axes
    drawn = [[(list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines if len(line.get_xdata())] for axis in figure.axes]
    assert drawn[0] == [([1, 3], [2.0, 1.5])] * 2 + [([2, 4], [0.5, 0.25])]
    assert drawn[1] == [([3], [50.0])] * 2 + [([2], [75.0])]
    assert (loss.get_xlabel(), loss.get_ylabel()) == ("optimiser step", "training loss")
    assert valid.get_ylabel() == "validation Accuracy or MAP, points"
    assert [text.get_text() for text in loss.get_legend().texts] == ["from <a> file, seeds 0, 3", "from lines"]
    looks = [(line.get_color(), line._dash_pattern) for line in loss.lines if len(line.get_xdata())]
    assert looks[0] == looks[1]
    assert looks[0][0] != looks[2][0] and looks[0][1] != looks[2][1]  # colour is not the only sign
    figure.savefig(tmp_path / "curves.png")
    plots.training_curves({}).savefig(tmp_path / "empty.png")
    for wrong in ('{"step"', '{"loss": 1}', '{"step": "a"}', '{"step": 1e30}', '{"step": 1, "eval_map": []}', "[" * 100_000):
        log.write_text(f'{{"step": 1, "loss": 2.0, "note": "a\u2028b"}}\n{wrong}\n')
        with pytest.raises(ValueError, match=r"log.jsonl, line 2: not a JSON object"):
            plots.training_curves({"a": log})


def test_a_page_is_made_of_its_rows_its_results_and_the_runs_of_this_machine(machine, results, monkeypatch):
    path = commit(results / "results", record("roberta_base", "wikiqa", "small", 1, 0.6))
    local = records.records(PAPER, machine / "none", machine)
    monkeypatch.setattr(report.rundir, "root", lambda: results)
    monkeypatch.setattr(report, "rows_and_runs", lambda paper: ({}, local if paper == PAPER else local.iloc[:0]))
    rows, first, *others = report.sources(PAPER)
    assert (rows, first) == (results / "experiments" / "sentence_objectives.yml", path)
    assert others == sorted(machine.glob("*/record.json")) and len(others) == 3
    assert report.sources("asbert") == [results / "experiments" / "asbert.yml"]


def test_logs_have_readable_names(machine):
    local = records.records(PAPER, machine / "none", machine)
    names = report.logs(local[local.dataset == "pydocs"], papers.read(PAPER, FOLDER))
    assert sorted(names) == [("RoBERTa + PSD", 0), ("RoBERTa-Base", 0)]


def test_a_table_of_results_knows_one_word_only():
    with pytest.raises(ValueError, match="the word laptop is expected, or nothing: got 'labtop'"):
        miniature.results({}, None, "table_2", "labtop", page=None)


def test_a_committed_row_links_to_its_executed_notebook(directives):
    """Of all records of a row those with a committed notebook, by their name; a run of this machine has its own page."""
    (name,) = [path.stem for path in (rundir.root() / "results" / "notebooks").glob("embed-wikiqa-small-untrained-sentence-*.ipynb")]
    _, runs = comparisons.rows_and_runs("asbert")
    lines = runs[runs.name == name]
    links = directives("as2_pages").Page("papers/asbert/results").links
    origins = report.Origins(links, ["one", "another"])
    html = origins.cell("committed", lines[:1])
    assert re.search(r'href="([^"]*)" aria-label="([^"]*)"', html).groups() == (f"../../gallery/{name}.html", "Executed notebook, seed 0")

    assert "as2-notebook" not in origins.cell("committed", runs[runs.name != name][:1])


def test_a_row_links_to_the_notebook_of_a_repeat_where_its_own_run_has_none(directives, monkeypatch):
    pages = directives("as2_pages")
    again, own = (next(one for one in gallery.executed() if one.line.dataset == name) for name in ("nq_sentences", "pydocs"))
    table = again.line._replace(name="run-of-the-tables", record=again.line.record | {"metrics": {"test": {"p@1": 0.25, "map": 0.5}}})
    repeat = dataclasses.replace(again, repeated=table)
    monkeypatch.setattr(pages, "executed", lambda: [repeat, own])
    monkeypatch.setattr(pages, "run_files", lambda: [])
    addresses = {
        name: f"gallery/{one.path.stem}.html" for name, one in [(table.name, again), (again.path.stem, again), (own.path.stem, own)]
    }
    assert pages.Page("index").links == addresses
    of_repeat, of_own = ("".join(directives("as2_gallery").gallery_page(one)["cells"][0]["source"]) for one in (repeat, own))
    assert "| repeats | the run in the tables, with equal settings but for machine, precision or version: P@1 25.0, MAP 50.0" in of_repeat
    assert "| repeats |" not in of_own
