"""Tables and verdicts from made-up records: verdicts by hand, a changed record changes its table alone, markup in texts is inert."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from asutil import experiments, report, runs

FOLDER = Path(__file__).resolve().parents[1] / "experiments"
PAPER = "sentence_objectives"
BACKBONE = "FacebookAI/roberta-base"


def exact(notebook, **given):
    """The settings of a run at the paper's own, where the paper leaves the batch size to a grid."""
    return runs.settings(notebook, {"rung": "paper", "model": BACKBONE, **given}) | ({"batch_size": 16} if notebook == "finetune" else {})


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
    assert report.verdict(published, ours, questions, at_paper_settings=True) == expected


def test_the_rule_elsewhere():
    assert report.verdict((78.3, 2.8), [0.783] * 5, 237) == "reduced budget"  # however good it looks
    assert report.verdict((78.3, 2.8), [], 237, at_paper_settings=True) == "not run"
    assert report.verdict((78.3, 2.8), [0.783] * 5, 237, at_paper_settings=True, private=True) == "private data"


# ------------------------------------------------------------------ made-up records


def values(mean, questions=40, seed=0):
    """Per-question P@1, AP and RR whose P@1 is near `mean`."""
    p = (np.random.default_rng(seed).permutation(questions) < mean * questions).astype(float)
    return [[f"q{i}", float(x), float(0.3 + 0.6 * x), float(0.4 + 0.6 * x)] for i, x in enumerate(p)]


def record(row, dataset, rung, seed, mean, settings=None, **more):
    each = values(mean, seed=seed)
    p, ap, rr = np.array([line[1:] for line in each]).mean(axis=0)
    test = {"p@1": p, "map": ap, "mrr": rr, "questions": len(each), "tied_questions": 0, "empty_questions": 0}
    return {
        "notebook": "finetune",
        "name": f"finetune-{row}-{seed}",
        "row": row,
        "dataset": dataset,
        "rung": rung,
        "seed": seed,
        "settings": {"dataset": dataset, "model": BACKBONE, **(settings or {})},
        "metrics": {"test": test},
        "baselines": {"random": {"p@1": 0.123, "map": 0.234, "mrr": 0.345}, "document_order": None, "bm25": {"p@1": 0.456, "map": 0.5}},
        "per_question": each,
        **more,
    }


def commit(folder, *records):
    for content in records:
        path = folder / PAPER / content["row"] / f"{content['dataset']}-{content['rung']}-seed{content['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return path


def found(folder):
    return experiments.records(PAPER, folder, folder / "no runs", FOLDER)


def cells(html):
    """The table as text, parsed by an XML reader: what is not well-formed, or is a tag that a text brought in, shows."""
    root = ET.fromstring(f"<body>{html.replace('<br>', ' ')}</body>")
    assert {node.tag for node in root.iter()} <= {"body", "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "small", "a"}
    return [[" ".join("".join(cell.itertext()).split()) for cell in line] for line in root.iter("tr")]


def line(html, *starts):
    """The first line that has these words among its cells, its cells from the one of `starts[0]` on."""
    return next(row for row in cells(html) if set(starts) <= set(row))


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


def test_results_table(results):
    html = report.results_table(PAPER, "table_1", found(results), folder=FOLDER)
    assert html.count("<table") == 4
    wikiqa = report.results_table(PAPER, "table_1", found(results), "wikiqa", folder=FOLDER)
    assert wikiqa in html
    table = cells(wikiqa)
    assert table[0] == ["Row", "From", "P@1", "MAP", "MRR", "Seeds", "Budget", "Verdict"]
    assert table[1] == ["random order", "no training", "12.3", "23.4", "34.5", "–", "–", "–"]
    assert table[2] == ["BM25", "no training", "45.6", "50.0", "–", "–", "–", "–"]  # document order means nothing here
    assert table[3] == ["RoBERTa-Base", "paper", "78.3 ± 2.8", "85.8 ± 1.3", "87.2 ± 1.3", "5", "paper", ""]
    assert table[4] == ["ours", "50.0 ± 0.0", "60.0 ± 0.0", "70.0 ± 0.0", "3", "small", "reduced budget"]
    assert table[6] == ["ours", "75.0", "75.0", "85.0", "1", "gpu", "reduced budget"]  # the largest rung, one seed: no spread
    assert table[7][:3] + table[7][-1:] == ["RoBERTa + SP", "paper", "81.0 ± 0.8", "not run"]
    assert len(table) == 3 + 12 + 2  # every printed row stays, run or not


def test_laptop_runs_never_stand_beside_the_paper(results):
    trecqa = report.results_table(PAPER, "table_1", found(results), "trecqa", folder=FOLDER)
    assert line(trecqa, "RoBERTa-Base", "paper")[-1] == "not run"
    assert "laptop" not in trecqa
    assert "BM25" not in trecqa


def test_private_relative_and_missing_cells(results):
    wqa = report.results_table(PAPER, "table_1", found(results), "wqa", folder=FOLDER)
    assert line(wqa, "RoBERTa-Base")[2:] == ["baseline", "baseline", "baseline", "5", "paper", "private data"]
    assert line(wqa, "RoBERTa + SSP")[2:5] == ["+0.2 %", "+0.6 %", "+0.3 %"]
    asnq = report.results_table(PAPER, "table_1", found(results), "asnq", folder=FOLDER)
    assert "TANDA" not in asnq  # printed as a dash: there is nothing to compare with
    lost = report.results_table("evidence_contrast", "table_2", found(results), folder=FOLDER)
    assert line(lost, "LED-base")[2:] == ["lost", "lost", "–", "paper", "not run"]
    asbert = report.results_table("asbert", "table_3", found(results).iloc[:0], "wikiqa", folder=FOLDER)
    assert line(asbert, "Triplet-BERT")[2:4] == ["79.5", "80.4"]  # printed as fractions, shown in points
    fever = report.results_table("joint_inference", "table_3", found(results), "fever_dev", folder=FOLDER)
    assert line(fever, "Joint Pre IEk + FT IE1")[2] == "81.21 ± 0.24"


def test_verdicts_at_the_papers_settings(tmp_path):
    for seed in range(3):  # 31 of 40 questions: P@1 77.5, MAP 76.5, MRR 86.5; printed 78.3 (2.8), 85.8 (1.3), 87.2 (1.3)
        commit(tmp_path, record("roberta_base", "wikiqa", "paper", seed, 0.775, EXACT))
    html = report.results_table(PAPER, "table_1", found(tmp_path), "wikiqa", folder=FOLDER)
    assert line(html, "ours", "paper")[-1] == "P@1 matches MAP differs MRR matches"
    verdicts = report.line_verdicts(experiments.read(PAPER, FOLDER), found(tmp_path))
    assert verdicts["roberta_base", "wikiqa"] == "differs"  # the worst of the line
    # one seed with another batch size: nothing is compared any more
    commit(tmp_path, record("roberta_base", "wikiqa", "paper", 1, 0.775, EXACT | {"batch_size": 8}))
    html = report.results_table(PAPER, "table_1", found(tmp_path), "wikiqa", folder=FOLDER)
    assert line(html, "ours", "paper")[-1] == "reduced budget"


def test_a_chain_is_exact_only_as_a_whole(tmp_path):
    """A fine-tuning run at the paper's settings counts only with the record of a pre-training run at the paper's settings."""
    pre = exact("pretrain", objective="ssp", corpus=experiments.read(PAPER, FOLDER)["rungs"]["paper"]["corpus"])
    for changed, expected in (({}, "matches"), ({"steps": 4000}, "reduced budget"), (None, "reduced budget")):
        earlier = [] if changed is None else [{"notebook": "pretrain", "name": RUN, "rung": "paper", "seed": 0, "settings": pre | changed}]
        own = EXACT | {"model": RUN}
        for seed in range(3):
            commit(tmp_path, record("roberta_ssp", "wikiqa", "paper", seed, 0.825, own, earlier=earlier))
        html = report.results_table(PAPER, "table_2", found(tmp_path), "wikiqa", folder=FOLDER)
        assert line(html, "ours", "paper")[-1] == expected
    for seed in range(3):  # fine-tuned from the released backbone: that is another row
        commit(tmp_path, record("roberta_ssp", "wikiqa", "paper", seed, 0.825, EXACT))
    html = report.results_table(PAPER, "table_2", found(tmp_path), "wikiqa", folder=FOLDER)
    assert line(html, "ours", "paper")[-1] == "reduced budget"


def test_pretraining_accuracy(tmp_path):
    validation = {"accuracy": 0.8, "f1": 0.4, "majority": 0.79}
    shown = record("roberta_ssp", "pretraining", "small", 0, 0.5) | {"notebook": "pretrain", "metrics": {"validation": validation}}
    commit(tmp_path, shown)
    html = report.results_table(PAPER, "table_3", found(tmp_path), folder=FOLDER)
    assert line(html, "RoBERTa + SSP", "paper")[2:4] == ["91.8", "83.1"]
    assert line(html, "ours", "small")[1:3] == ["80.0", "40.0"]


def test_a_changed_record_changes_its_table_alone(results):
    before = {name: report.results_table(PAPER, name, found(results), folder=FOLDER) for name in ("table_1", "table_3")}
    again = {name: report.results_table(PAPER, name, found(results), folder=FOLDER) for name in ("table_1", "table_3")}
    assert before == again
    path = commit(results, record("roberta_base", "wikiqa", "small", 1, 0.6))
    after = {name: report.results_table(PAPER, name, found(results), folder=FOLDER) for name in ("table_1", "table_3")}
    assert after["table_3"] == before["table_3"]
    assert line(after["table_1"], "ours", "small")[1] == "53.3 ± 5.8"
    assert path in report.sources(PAPER, results, results / "no runs", FOLDER)
    assert path not in report.sources("asbert", results, results / "no runs", FOLDER)
    path.unlink()
    assert line(report.results_table(PAPER, "table_1", found(results), folder=FOLDER), "ours", "small")[-3] == "2"


def test_unknown_tables_are_refused(results):
    with pytest.raises(ValueError, match=r"has no table 'tabel_1'; did you mean 'table_1'"):
        report.results_table(PAPER, "tabel_1", found(results), folder=FOLDER)
    with pytest.raises(ValueError, match="table_3 has no data set 'wikiqa'"):
        report.results_table(PAPER, "table_3", found(results), "wikiqa", folder=FOLDER)


def test_verdict_table(results):
    frames = {paper: found(results) if paper == PAPER else found(results).iloc[:0] for paper in experiments.papers()}
    html = report.verdict_table(frames, folder=FOLDER)
    table = cells(html)
    assert table[0] == ["Paper", "Lines", "differs", "close", "matches", "reduced budget", "private data", "not run"]
    assert len(table) == 6
    first = table[1]
    assert first[0].startswith("Pre-training Transformer Models")
    numbers = [0 if text == "–" else int(text) for text in first[1:]]
    assert numbers[0] == sum(numbers[1:])
    assert (numbers[4], numbers[5]) == (2, 15)  # two lines of WikiQA; 15 rows have a WQA cell
    assert 'href="papers/sentence_objectives.html"' in html
    assert all(row[-1] != "–" for row in table[1:])


# ------------------------------------------------------------------ claims


def test_claims(results):
    html = report.claims_table(PAPER, found(results), draws=500, folder=FOLDER)
    row = next(r for r in cells(html) if r[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))
    assert row[1:4] == ["RoBERTa + SSP − RoBERTa-Base, WikiQA, P@1", "+", "+4.6"]
    difference, low, high = map(float, re.match(r"(\S+) \[(\S+), (\S+)\]", row[4]).groups())
    assert difference == 20.0  # 70 - 50
    assert low < 20 < high
    assert row[5:] == ["3", "small", "shows" if low > 0 else "unclear"]
    electra = next(r for r in cells(html) if "ELECTRA too" in r[0])
    assert electra[3:] == ["+5.4", "–", "–", "–", "not run"]


@pytest.mark.parametrize(("ours", "word"), [(1.0, "shows"), (0.1, "opposite"), (0.5, "unclear")])
def test_directions(tmp_path, ours, word):
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5), record("roberta_ssp", "wikiqa", "small", 0, ours))
    html = report.claims_table(PAPER, found(tmp_path), draws=500, folder=FOLDER)
    assert next(r for r in cells(html) if r[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))[-1] == word


def test_claims_pair_seeds(tmp_path):
    """Only seeds that both rows have are compared, whatever order the questions have."""
    shuffled = record("roberta_ssp", "wikiqa", "small", 0, 0.5)
    shuffled["per_question"] = shuffled["per_question"][::-1]
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5), record("roberta_base", "wikiqa", "small", 1, 0.9), shuffled)
    html = report.claims_table(PAPER, found(tmp_path), draws=200, folder=FOLDER)
    row = next(r for r in cells(html) if r[0].startswith("On WikiQA the SSP objective lifts RoBERTa."))
    assert row[4:] == ["+0.0 [+0.0, +0.0]", "1", "small", "unclear"]


def test_a_paper_without_claims(results):
    assert "nothing to show yet" in report.claims_table("asbert", found(results), folder=FOLDER)


# ------------------------------------------------------------------ this machine


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Finished laptop runs of two rows, in their folders."""
    monkeypatch.setattr(runs, "settings", lambda notebook, given: given)

    def make(name, notebook, settings, mean=None):
        folder = tmp_path / name
        folder.mkdir()
        content = {"notebook": notebook, "name": name, "rung": "laptop", "seed": settings["seed"], "settings": settings}
        if mean is None:
            content["metrics"] = {"validation": {"accuracy": 0.81, "f1": 0.2}}
        else:
            content |= {key: record("x", "pydocs", "laptop", settings["seed"], mean)[key] for key in ("metrics", "baselines")}
            names = ["question_id", *report.PER_QUESTION.values()]
            pd.DataFrame(values(mean, seed=settings["seed"]), columns=names).to_parquet(folder / "per_question.parquet")
        (folder / "log.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n{"step": 2, "eval_map": 0.4}\n')
        (folder / "record.json").write_text(json.dumps(content))

    pre, one, base = ("pretrain-psd-aaaaaaaaaaaa", "finetune-psd-bbbbbbbbbbbb", "finetune-base-cccccccccccc")
    make(pre, "pretrain", {"rung": "laptop", "objective": "psd", "model": "tiny", "corpus": "pydocs", "seed": 0})
    make(one, "finetune", {"rung": "laptop", "dataset": "pydocs", "model": pre, "seed": 0}, 0.7)
    make(base, "finetune", {"rung": "laptop", "dataset": "pydocs", "model": "tiny", "seed": 0}, 0.5)
    return tmp_path


def test_laptop_table(machine):
    local = experiments.records(PAPER, machine / "none", machine, FOLDER)
    html = report.laptop_table(PAPER, local, links={"finetune-psd-bbbbbbbbbbbb": 'runs/x.html?a="b'}, folder=FOLDER)
    table = cells(html)
    assert table[1][:3] == ["random order", "no training", "12.3"]
    assert table[3][:6] == ["RoBERTa-Base", "model", "50.0", "60.0", "70.0", "–"]
    assert line(html, "RoBERTa + SSP") == ["RoBERTa + SSP", "not run", "–", "–", "–", "–", "–", "laptop", "–"]
    psd = line(html, "RoBERTa + PSD")
    assert psd[:8] == ["RoBERTa + PSD", "model (seed 0)", "70.0", "72.0", "82.0", "81.0", "1", "laptop"]
    assert psd[8].startswith("+12.0 [")
    assert 'href="runs/x.html?a=&quot;b"' in html
    assert "40 test questions" in html
    empty = report.laptop_table(PAPER, local.iloc[:0], folder=FOLDER)
    assert [row[1] for row in cells(empty)[1:]] == ["not run"] * 4


def test_local_runs_are_marked_and_are_sources(machine):
    local = experiments.records(PAPER, machine / "none", machine, FOLDER)
    local["rung"] = "small"
    local["dataset"] = local["dataset"].replace("pydocs", "wikiqa")
    html = report.results_table(PAPER, "table_1", local, "wikiqa", folder=FOLDER)
    assert line(html, "ours, this machine", "70.0")[-1] == "reduced budget"
    assert line(report.claims_table(PAPER, local, draws=200, folder=FOLDER), "small, this machine")
    assert set(report.line_verdicts(experiments.read(PAPER, FOLDER), local).values()) == {"not run", "private data"}
    files = report.sources(PAPER, machine / "none", machine, FOLDER)
    assert files[0] == FOLDER / "sentence_objectives.yml"
    assert {path.parent.name for path in files[1:]} == {path.parent.name for path in machine.glob("*/record.json")}
    assert len(report.logs(local)) == 3


# ------------------------------------------------------------------ markup, curves, examples


def test_markup_in_texts_is_inert():
    bad = "<script>alert(1)</script><img src=x onerror=y> & \"'"
    html = report.compare_rankings(bad, [bad, "fine"], [1, 0], {bad: [0.9, 0.1], "b": [0.2, 0.3]})
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("&lt;script&gt;") == 3
    assert cells(html)[1] == ["1 (0.900)", "2 (0.200)", "✓ answers", bad]
    assert cells(report.ranked_example("q", ['<td class="x">no</td>', "b"], [1.0, 0.5], [0, 1]))[1][-1] == '<td class="x">no</td>'


def test_markup_in_the_rows_of_a_paper_is_inert(tmp_path):
    text = (FOLDER / "asbert.yml").read_text().replace("name: GloVe", "name: '<b>GloVe</b>'").replace("title: '", "title: '<i>")
    (tmp_path / "asbert.yml").write_text(text)
    empty = pd.DataFrame(columns=["row", "dataset", "rung", "seed", "source", "name", "folder", "record", "earlier"])
    html = report.results_table("asbert", "table_3", empty, folder=tmp_path)
    assert "<b>" not in html
    assert "&lt;b&gt;GloVe" in html


def test_ranked_example():
    html = report.ranked_example("Why?", list("abcdefg"), [0.1, 0.9, 0.9, 0.2, 0.3, 0.4, 0.0], [0, 1, 0, 0, 0, 0, 1])
    table = cells(html)
    assert table[0] == ["Rank (score)", "Label", "Candidate"]
    assert [row[-1] for row in table[1:]] == ["c", "b", "f", "e", "d"]  # at one score the wrong one first
    assert [row[1] for row in table[1:3]] == ["✗ does not", "✓ answers"]
    assert "Why? (2 more candidates)" in html
    with pytest.raises(ValueError, match="got 1 of labels for 2 candidates"):
        report.ranked_example("q", ["a", "b"], [1, 2], [1])


def test_compare_rankings():
    html = report.compare_rankings("Why?", ["a", "b", "c"], [0, 1, 0], {"base": [3.0, 2.0, 1.0], "psd": [1.0, 3.0, 2.0]}, top=1)
    assert cells(html) == [
        ["Rank by base (score)", "Rank by psd (score)", "Label", "Candidate"],
        ["1 (3.000)", "3 (1.000)", "✗ does not", "a"],
        ["2 (2.000)", "1 (3.000)", "✓ answers", "b"],
    ]


def test_training_curves(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n{"step": 3, "loss": 1.5}\n{"step": 3, "eval_accuracy": 0.25, "eval_map": 0.5}\n')
    figure = report.training_curves({"from a file": log, "from lines": [{"step": 2, "loss": 0.5}, {"step": 2, "eval_accuracy": 0.75}]})
    loss, valid = figure.axes
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in loss.lines] == [([1, 3], [2.0, 1.5]), ([2], [0.5])]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in valid.lines] == [([3], [50.0]), ([2], [75.0])]
    assert (loss.get_xlabel(), loss.get_ylabel()) == ("optimiser step", "training loss")
    assert valid.get_ylabel() == "validation Accuracy or MAP, points"
    assert len({line.get_linestyle() for line in loss.lines}) == 2  # colour is not the only sign
    figure.savefig(tmp_path / "curves.png")
    report.training_curves({}).savefig(tmp_path / "empty.png")
    log.write_text('{"step": 1, "loss": 2.0}\n{"step"\n')
    with pytest.raises(ValueError, match=r"log.jsonl, line 2: not a JSON object"):
        report.training_curves({"a": log})
