"""What the page of ASBERT draws and counts: networks, triplets, counts, ranked lists and vectors, from made-up records."""

import csv
import inspect
import io
import re
import shlex
import xml.etree.ElementTree as ET
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from bs4 import BeautifulSoup

from aslab import papers, parameters, records, runs
from aslab.analysis import comparisons, examples
from aslab.show import pca
from asutil import losses
from asutil.data.answers import Candidate, Question
from asutil.data.data_sets import ANSWERS
from asutil.io import disk, hub

from .. import made_up
from ..conftest import extension
from .tables import NS, drawn_inside

ROOT = Path(__file__).resolve().parents[2]
PAYLOAD = "<script>alert('x')</script>"
FIGURES = Path(__file__).resolve().parents[2] / "book" / "figures"


page = extension("as2_vectors")


# ------------------------------------------------------------------ drawings


def test_both_networks_say_in_words_what_is_shared_and_what_is_learnt():
    figure = ET.fromstring((FIGURES / "networks.svg").read_text("utf-8"))
    drawings = list(figure.iter(f"{NS}svg"))
    words = [[text.text for text in drawing.iter(f"{NS}text")] for drawing in drawings]
    assert [one.count("language model") for one in words] == [one.count("mean over tokens") for one in words] == [2, 3]
    assert all(any("same weights" in text for text in one) for one in words)
    assert {"u", "v", "[ u ; v ; |u − v| ]"} <= set(words[0]) and {"p", "a", "n", "|a − p|²", "|a − n|²"} <= set(words[1])
    assert "linear layer" in " ".join(words[0]) and "linear" not in " ".join(words[1])
    margin = inspect.signature(losses.triplet).parameters["margin"].default
    assert f"max( |a − p|² − |a − n|² + {margin:g}, 0 )" in words[1]
    assert [rule["are"]["margin"] for rule in papers.read("asbert")["settings"] if "margin" in rule["are"]] == [margin]
    for drawing in drawings:
        drawn_inside(drawing)


def test_the_kinds_of_triplets_are_drawn_where_the_loss_has_them():
    """The right candidate is drawn at a distance of 6; of each wrong one the loss is read off the line."""
    margin = inspect.signature(losses.triplet).parameters["margin"].default
    text = (FIGURES / "triplet_kinds.svg").read_text("utf-8")
    words = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert [word for word in words if word in ("hard", "semi-hard", "easy")] == ["hard", "semi-hard", "easy"]
    assert f"|a − p|² + {margin:g}" in words
    paths = [np.array(re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", path), float) for path in re.findall(r'\bd="([^"]*)"', text)]
    (line,) = (path for path in paths if len(path) == 3 and path[1, 1] == path[2, 1])
    ends = sorted(path[0, 0] for path in paths if len(path) == 2 and path[0, 0] == path[1, 0] and line[0, 0] < path[0, 0] <= line[1, 0])[
        -2:
    ]
    unit = (line[2, 0] - line[0, 0]) / 17.0
    assert [(end - line[0, 0]) / unit for end in ends] == pytest.approx([6.0, 6.0 + margin], abs=1e-3)
    hatched = re.findall(r'd="M (\S+) \S+\nL (\S+) [^"]*" clip-path[^>]* style="fill: ([^";]*)"', text)
    assert len({hatch for *_, hatch in hatched}) == 3 == len(hatched)
    away = torch.linspace(0.1, 16.9, 60)
    kinds = losses.triplet_kinds(torch.full_like(away, 6.0), away, margin)
    for kind, (left, right, _) in zip(("hard", "semi_hard", "easy"), hatched, strict=True):
        start, stop = ((float(x) - line[0, 0]) / unit for x in (left, right))
        assert torch.equal(kinds[kind], (away > start) & (away < stop)), kind
    sides = [values.sqrt()[:, None] for values in (torch.full_like(away, 6.0), away)]  # on a line, from an anchor at 0
    expected = [losses.triplet(torch.zeros(1, 1), near[None], far[None], margin=margin) for near, far in zip(*sides)]
    drawn = np.interp(line[0, 0] + unit * away.numpy(), line[:, 0], (line[1, 1] - line[:, 1]) / (line[1, 1] - line[0, 1]) * (6.0 + margin))
    np.testing.assert_allclose(drawn, expected, atol=1e-3)


# ------------------------------------------------------------------ counts


def test_triplets_stand_beside_the_pairs_that_make_them(page):
    cells = made_up.cells(page.triplet_counts("asbert"))
    assert cells[1:] == [["WikiQA", "8,672", "8,995", "1.04"], ["TREC-QA", "5,914", "83,923", "14.19"]]


def test_counts_beside_the_data(page):
    cells = [line[-4:] for line in made_up.cells(page.count_table(papers.read("asbert"), None, "asbert"))[1:]]
    assert cells[0] == ["train", "872 / 8,666", "873 / 8,672", "−1 / −6"]
    assert [line[3] for line in cells[1:]] == ["same", "−2 / −33", "same", "same", "0 / −1"]


def read_with_quotes(lines):
    """Questions with a right candidate, and their candidates, of tab-separated lines that are read with quoting."""
    rows = [line for line in csv.reader(io.StringIO("\n".join(lines)), delimiter="\t") if line]
    answered = {line[0] for line in rows if line[-1] == "1"}
    return [len(answered), sum(line[0] in answered for line in rows)]


@pytest.mark.mirror
def test_the_data_read_with_quotes_give_the_printed_counts(mirror):
    data, names = ANSWERS["wikiqa"], ("question_id", "question", "document_title", "answer", "label")
    for split, printed in papers.read("asbert")["counts"]["wikiqa"].items():
        released = hub.table(data.hub_id, data.protocols["asbert"][split].file)
        columns = (released[name].to_pylist() for name in names)
        assert read_with_quotes("\t".join(map(str, line)) for line in zip(*columns)) == printed, split


# ------------------------------------------------------------------ readouts


def test_the_readout_that_ranks_is_underlined(page):
    """The figures are counted again in `tests/trust/test_pages.py`."""
    titles = {"siamese": "Distance", "triplet": "Distance"}
    tables = BeautifulSoup(page.readout_table(*comparisons.rows_and_runs("asbert")), "html.parser").find_all("table")
    for line in [line for table in tables for line in table.select("tbody tr") if "not run" not in line.text]:
        heads = [cell.text for cell in line.find_parent("table").select("thead th")]
        underlined = [head for head, cell in zip(heads, line.find_all(["th", "td"]), strict=True) if cell.u]
        assert underlined == [titles.get(line.th.text.lower().split("-")[0], "Cosine")], line.text


# ------------------------------------------------------------------ records


def records_of(means: dict, dataset="wikiqa", budget="small", seeds=(0,), **more):
    """Made-up committed lines of some rows, as `experiments.records` gives them."""
    each = [(row, mean, seed) for row, mean in means.items() for seed in seeds]
    made = [made_up.record(row, dataset, budget, seed, mean, **more) for row, mean, seed in each]
    columns = {"row": [row for row, *_ in each], "dataset": dataset, "budget": budget, "seed": [seed for *_, seed in each]}
    rest = {"source": records.COMMITTED, "name": "run", "folder": None, "record": made, "earlier": [[] for _ in made]}
    return pd.DataFrame(columns | rest)


# ------------------------------------------------------------------ the paper's own questions


def test_ranked_lists_of_the_questions_that_the_paper_prints(page, monkeypatch):
    monkeypatch.delenv(hub.MIRROR, raising=False)
    best = {"siamese_bert": [["Q7-1", 0, 0.9, 1], [f"Q7-0 {PAYLOAD}", 1, 0.5, 2]], "triplet_bert": [[f"Q7-0 {PAYLOAD}", 1, -0.2, 1]]}
    found = records_of(dict.fromkeys(best, 0.5))
    for record in found.record:
        record["chosen"] = [{"question_id": "Q7", "candidates": best[record["row"]]}]
    data = papers.read("asbert") | {"questions": {"wikiqa": ["Q7", "Q8"]}}
    html = page.asked(data, found, "siamese_bert", "triplet_bert")
    assert html == ""  # no text, and no ranks in these records
    asked = Question("Q7", PAYLOAD, (Candidate("Q7-1", "no", 0, None, None), Candidate(f"Q7-0 {PAYLOAD}", f"yes {PAYLOAD}", 1, None, None)))
    monkeypatch.setattr(examples, "at_hand", lambda record, dataset, names: {"Q7": asked})
    html = page.asked(data, found, "siamese_bert", "triplet_bert")
    assert made_up.cells(html)[0] == ["Rank", "Siamese-BERT", "Triplet-BERT"]
    assert "script>" not in html and escape(f"yes {PAYLOAD}") in html and "Q8" not in html
    assert html.count("✗") == 1 and html.count("✓") == 2
    assert page.asked(data, found.iloc[:1], "siamese_bert", "triplet_bert") == ""  # one side alone
    for record, rank in zip(found.record, (3, 1)):  # as records are that were committed before a question was asked for
        record["per_question"] = [["Q8", 0.0, 0.5, round(1 / rank, 6)]]
    html = page.asked(data, found, "siamese_bert", "triplet_bert")
    assert "Q8: the first right candidate has rank 3 by Siamese-BERT and rank 1 by Triplet-BERT." in html
    assert page.asked(data | {"questions": {}}, found, "siamese_bert", "triplet_bert") == ""


def test_a_run_of_this_machine_has_every_question(page, tmp_path):
    scores = pd.DataFrame(
        {"question_id": ["Q1", "Q1", "Q2"], "candidate_id": ["Q1-0", "Q1-1", "Q2-0"], "label": [0, 1, 1], "score": [1.0, 2, 3]}
    )
    scores.to_parquet(tmp_path / "scores.parquet")
    disk.write_json(tmp_path / "record.json", runs.hashes(tmp_path))
    side = next(records_of({"triplet_bert": 0.5}).assign(folder=[tmp_path]).itertuples())
    assert page.ranked(side, "Q1") == [["Q1-1", 1, 2.0, 1], ["Q1-0", 0, 1.0, 2]] and page.ranked(side, "Q9") == []


# ------------------------------------------------------------------ vectors before and after


def shown(near, far=2.0, trained=True):
    """Coordinates of two questions whose candidates are so far away after training."""
    asked = np.array([[0.0, 0.0, 0.0], [9.0, 1.0, 4.0]])
    made = lambda *away: np.stack([asked, asked + away[0] * np.eye(3)[0], asked + away[1] * np.eye(3)[1]], 1).reshape(-1, 3)
    roles = ["question", "positive", "negative"] * 2
    return pca.coordinates(made(1.0, 1.5), made(near, far) if trained else None, roles, [0, 0, 0, 1, 1, 1])


def test_the_committed_run_of_the_largest_budget_is_drawn(page):
    lines = [records_of({"triplet_bert": 0.5}, budget=budget, pca=shown(near)) for budget, near in (("small", 0.5), ("gpu", 0.25))]
    lines += [
        lines[1].assign(seed=1),
        lines[1].assign(budget="paper", source=records.HERE),
        records_of({"triplet_bert": 0.5}, budget="paper"),
    ]
    one = page.drawable(pd.concat(lines[::-1]), "triplet_bert", "wikiqa")
    assert (one.budget, one.seed, one.source) == ("gpu", 0, records.COMMITTED)  # the last one has no coordinates
    assert page.drawable(lines[3], "triplet_bert", "wikiqa").source == records.HERE
    assert page.drawable(lines[0], "triplet_bert", "trecqa") is None


def test_a_caption_says_nothing_of_training_without_it_nor_of_a_distance_of_zero(page):
    data = papers.read("asbert")
    lone = page.words_of(page.drawable(records_of({"glove": 0.5}, pca=shown(0.0, trained=False)), "glove", "wikiqa"), data)
    assert "Untrained, a question" in lone and "training" not in lone
    zero = page.words_of(page.drawable(records_of({"triplet_bert": 0.5}, pca=shown(0.0)), "triplet_bert", "wikiqa"), data)
    assert zero.count("times as far") == 1  # nothing is so many times nothing


# ------------------------------------------------------------------ commands


@pytest.mark.parametrize("name", ["papers/asbert/run.md", "reproduce.md"])
def test_commands_of_the_page_are_understood(name, tmp_path, monkeypatch, capsys):
    text = (ROOT / "book" / name).read_text("utf-8").replace("\\\n", "")
    commands = re.findall(r"^\$ asutil (vectors .*)$", text, re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["embed", "search"]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        words = made_up.refused(capsys, *shlex.split(command))
        assert re.search("candidates.txt does not exist|embed-<hash>|no finished vectors", words)  # it looked for what is not there
    for one in re.findall(r"papermill notebooks/embed\.ipynb(.*)$", text, re.MULTILINE):
        given = dict(re.findall(r"-p (\w+) ([\w.]+)", one))
        assert parameters.settings("embed", given) and given
