"""The page of evidence_contrast: the loss drawn, how near questions come, what was read, which sentences are nearest, and its words."""

import inspect
import re
import shlex
import xml.etree.ElementTree as ET
from collections import Counter
from html import escape
from pathlib import Path

import pages
import pandas as pd
import pytest
import yaml
from matplotlib.textpath import TextPath
from pages import examples

from aslab import papers, parameters, records, runs
from aslab.analysis import examples as chosen
from asutil.data import long_questions
from asutil.data.data_sets import LONG
from asutil.data.long_questions import Answer, LongQuestion, Passage
from asutil.inputs import long
from asutil.io import disk, hub

from .. import made_up
from ..conftest import extension
from .tables import NS, drawn_inside

ROOT = Path(__file__).resolve().parents[2]
PAPER = "evidence_contrast"
DATA = papers.read(PAPER)
PAGES = [ROOT / "book" / "papers" / f"{PAPER}.md", *sorted((ROOT / "book" / "papers" / PAPER).glob("*.md"))]
TEXT = "\n".join(path.read_text("utf-8") for path in PAGES)
PAYLOAD = "<script>alert('x')</script>"


page = extension("as2_evidence")


# ------------------------------------------------------------------ the loss, drawn


FIGURE = ET.fromstring((ROOT / "book" / "figures" / "evidence_loss.svg").read_text("utf-8"))


def drawings():
    return list(FIGURE.iter(f"{NS}svg"))


def test_the_drawing_says_in_words_what_its_arrows_mean():
    caption = FIGURE.find("figcaption").text
    assert FIGURE.get("aria-label") == caption and "solid arrow" in caption and "dashed line" in caption


def test_the_task_names_its_markers_and_losses():
    task = " ".join(node.text for node in drawings()[0].iter(f"{NS}text"))
    assert set(re.findall(r"\[/?\w+\]", task)) == {*long.MARKERS} - {"[/doc]"}  # the line ends in the middle of a document
    assert all(words in task for words in ("evidence or not", "type of the question", "answer: start and end", "L(QA)", "L(c)"))


def test_each_question_type_has_a_subspace_and_evidence_attracts_in_its_own():
    spaces = drawings()[1]
    words = [node.text for node in spaces.iter(f"{NS}text")]
    types = [re.match(r"W\((\w+)\)", text)[1] for text in words if text.startswith("W(")]
    assert types == [*long_questions.KINDS["hotpotqa"]]
    assert ["negatives" in text for text in words if text.startswith("W(")] == [False, True, True]
    assert words.count("q") == words.count("s₁") == words.count("s₂") == words.count("s₃") == 3 and words.count("evidence") == 1
    lines = list(spaces.iter(f"{NS}path"))
    solid = [node for node in lines if not node.get("stroke-dasharray")]
    assert solid == lines[:1] and solid[0].get("d").startswith("M168 56L84 56M")  # one arrow, from s₁ to q of the first subspace
    gaps = sum(node.get("d").count("M") for node in lines if node.get("stroke-dasharray"))
    assert gaps == 2 + 3 + 3  # every other sentence repels


def test_nothing_is_drawn_outside_or_in_a_colour_of_its_own():
    for drawing in drawings():
        width, height = drawn_inside(drawing)
        for word in drawing.iter(f"{NS}text"):
            size = 11 if word.get("class") == "l" else 12
            half = TextPath((0, 0), " ".join(word.text.split()), size=size).get_extents().width / 2  # in a font with wide letters
            assert half <= float(word.get("x")) <= width - half and 0 < float(word.get("y")) <= height, word.text


# ------------------------------------------------------------------ made-up records


def a_record(seed, near, **more):
    """A record of which every figure is another one, all by how near questions are."""
    names = ("map_raw", "map_projected", "map_predicted_type", "map_evidence_head")
    record = {"notebook": "find_evidence", "metrics": {"dev": {name: near + 0.01 * n for n, name in enumerate(names)}}}
    record["baselines"] = {"before training": {"map_projected": near / 2}, "random": {"map": near / 4}, "document_order": {"map": near / 5}}
    record["baselines"] |= {"zero_shot": {"map": near / 8}, "all_sentences": {"evidence_f1": near / 10}}
    record["baselines"] |= {"most_frequent_answer": {"answer_f1": near / 20}}
    lost = {"distractors": 3_000, "evidence": 10 + seed, "others": 20}
    record["figures"] = {"read": {"train": 1_200, "dev": 99}, "left_out": {"train": lost, "dev": dict.fromkeys(lost, 7)}}
    return record | {"settings": {"max_tokens": 4_096}, **more}


def lines_of(row, nears, dataset="hotpotqa", budget="small", source=records.COMMITTED, **more):
    """Records of a row, a seed each, as `experiments.records` gives them."""
    keys = {"row": row, "dataset": dataset, "budget": budget, "seed": range(len(nears)), "source": source, "name": "run", "folder": None}
    return pd.DataFrame({**keys, "record": [a_record(n, near, **more) for n, near in enumerate(nears)], "earlier": [()] * len(nears)})


# ------------------------------------------------------------------ how near


def test_the_largest_budget_is_shown_and_committed_records_first(page):
    here = {"source": records.HERE}
    parts = [lines_of("led_base", [0.1], budget="laptop"), lines_of("led_base", [0.2] * 2), lines_of("led_base", [0.3], **here)]
    shown = page.best(pd.concat(parts), "led_base", "hotpotqa")
    assert records.values(shown, "map_raw") == [0.2, 0.2]
    parts.append(lines_of("led_base", [0.4], budget="gpu", **here))
    line = made_up.cells(page.near_table(DATA, pd.concat(parts), "hotpotqa", "led_base"))[1]
    assert line[2] == "40.0" and line[-2:] == ["1", "gpu, this machine"]
    assert page.best(pd.concat(parts), "led_base", "qasper").empty


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("near_table", ["hotpotqa", "longformer_base", "longformer_bse"]),
        ("left_out_table", ["longformer_bse", "hotpotqa"]),
        ("chance_table", ["longformer_bse", "hotpotqa"]),
    ],
)
def test_rows_that_the_paper_lacks_are_refused(page, name, given):
    known = r"\((expected|it has): led_base, led_base_shared, .*\)"
    with pytest.raises(ValueError, match=rf"evidence_contrast.* row 'longformer_bse'.* {known}"):
        getattr(page, name)(DATA, lines_of("longformer_base", [0.5]), *given)


# ------------------------------------------------------------------ which sentences


PASSAGES = (Passage("A", ("First.", f"Second {PAYLOAD}.")), Passage("B", ("x" * 400,)))
QUESTION = LongQuestion("q1", f"Which {PAYLOAD}?", PASSAGES, (Answer("First", "span", frozenset({(0, 0)})),))
BEFORE = [["0-1", 0, 0.8, 1], ["0-0", 1, 0.25, 2]]
AFTER = [["0-0", 1, 0.9, 1], [f"1-0{PAYLOAD}", 0, 0.1, 2]]


def two_rows(first=("q1", "q2"), last=("q1", "q3")):
    sides = {"longformer_base": (first, BEFORE), "longformer_base_contrast": (last, AFTER)}
    chosen = {row: [{"question_id": name, "candidates": best} for name in names] for row, (names, best) in sides.items()}
    return pd.concat([lines_of(row, [0.5], chosen=chosen[row]) for row in sides])


def shown(html):
    return made_up.cells(f"<p>{html}</p>")


def nearest(runs) -> str:
    return examples.examples_table(papers.read("evidence_contrast"), runs, "longformer_base", "longformer_base_contrast")


def test_contexts_without_texts_have_no_lists(monkeypatch):
    monkeypatch.delenv(hub.MIRROR, raising=False)
    html = nearest(two_rows())
    assert "HotpotQA, budget small, seed 0." in html and "texts of its questions are not available here." in html and "<table" not in html
    assert "keep no list of the same question" in nearest(two_rows(last=("q3",)))
    assert nearest(two_rows().iloc[:1]) == ""


def test_texts_that_are_at_hand_are_escaped(tmp_path, monkeypatch):
    (tmp_path / LONG["hotpotqa"].hub_id).mkdir(parents=True)
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    monkeypatch.setattr(long_questions, "load_evidence", lambda name: {"train": [], "dev": [QUESTION], "test": []})
    html = nearest(two_rows())
    table = shown(html)
    assert table[0] == ["Rank", "Longformer-base", "Longformer-base + contrastive loss"] and "<q2" not in html  # the question of both
    assert table[1][1:] == [f"✗ Second {PAYLOAD}. score 0.800", "✓ First. score 0.900"]
    assert (
        f"<caption>Nearest sentences: {escape(QUESTION.text)}<small>First right candidate: rank 2 on the left, 1 on the right." in html
        and "<script" not in html
        and "not available here" not in html
    )
    assert chosen._numbered(QUESTION) == {"0-0": "First.", "0-1": f"Second {PAYLOAD}.", "1-0": "x" * 299 + "…"}
    assert "Text: CC BY-SA 4.0, as its makers state." in html


def test_runs_of_this_machine_are_ranked_by_what_the_loss_compares(tmp_path, monkeypatch):
    monkeypatch.delenv(hub.MIRROR, raising=False)
    ids = [f"q{n}" for n in range(9) for _ in range(2)]
    table = {"question_id": ids, "candidate_id": ["0-0", "0-1"] * 9, "label": [1, 0] * 9, "score": [-5.0, 5.0] * 9, "gold": [0.5, 0.25] * 9}
    pd.DataFrame(table).to_parquet(tmp_path / "scores.parquet")
    disk.write_json(tmp_path / "record.json", runs.hashes(tmp_path))
    found = two_rows().assign(folder=tmp_path, source=records.HERE)
    rows = ("longformer_base", "longformer_base_contrast")
    (pair,) = chosen.best_pairs(DATA, found, *rows)
    held = [own for one in chosen.of_pair(DATA, pair, rows) for own in one.ranked.values()]
    assert held == [[["0-0", 1, 0.5, 1], ["0-1", 0, 0.25, 2]]] * 6


# ------------------------------------------------------------------ the page itself


def test_every_directive_is_known_and_names_what_is_there(directives):
    directives("as2")
    asked = re.findall(r"^```\{as2-show\} ([\w-]+) ?(.*)$", TEXT, re.MULTILINE)
    datasets = {name for budget in DATA["budgets"].values() for name in budget["datasets"]}
    for name, given in asked:
        arguments, entry = given.split(), pages.REGISTRY[name]
        inspect.signature(entry.function).bind(*arguments, **({"page": None} if entry.on_page else {}))
        if arguments:
            assert arguments[0] == PAPER
            assert set(arguments[1:]) <= {*DATA["rows"], *DATA["tables"], *datasets, "laptop"}, name
    excerpts = re.findall(r"^```\{as2-excerpt\} (\S+)$", TEXT, re.MULTILINE)
    assert excerpts == ["asutil.losses.or_softmax", "asutil.losses.question_evidence"]
    for name in excerpts:
        directives("as2_code").find_definition(name)
    assert {name for name, _ in asked if name.startswith("evidence-")} == {name for name in pages.REGISTRY if name.startswith("evidence-")}
    given = {name: [line.split()[1:] for one, line in asked if one == name] for name, _ in asked}
    assert [table for table, *_ in given["results"]] == list(DATA["tables"])
    laptop = set(DATA["budgets"]["laptop"]["rows"])
    of_laptop = [table for table, *last in given["results"] if last]
    assert set.union(*(laptop & {*DATA["tables"][table]["rows"]} for table in of_laptop)) == laptop
    assert set(given["curves"][0]) <= laptop
    ran = {(row, dataset) for row in DATA["rows"] for dataset in DATA["rows"][row]["published"]}
    ran |= {(row, dataset) for row in laptop for dataset in DATA["budgets"]["laptop"]["datasets"]}
    assert {(row, dataset) for dataset, *of in given["evidence-near"] for row in of} <= ran
    asked = {(row, dataset) for row, *of in [*given["evidence-left-out"], *given["evidence-chance"]] for dataset in of}
    assert asked | {tuple(one) for one in given["pca"]} <= ran


def prose(text):
    """The page without code, directives, formulas of their own, places in the paper and names of deviations."""
    text = re.sub(r"````.*?````|```.*?```|\$\$.*?\$\$", " ", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`|\{cite\}|\]\([^)]*\)|D-\d+", " ", text)
    place = r"(?:[A-Z]\.)?\d(?:\.\d)?|[A-Z]"
    kind = r"(?i:sections?|appendix|appendices|tables?|figure|equations?)"
    return re.sub(rf"\b{kind} (?:{place})(?: and (?:{place}))?(?![\w.]\d)", " ", text)


def test_no_figure_of_the_paper_is_in_a_sentence():
    """What is left are settings, the paper's level of significance, a weight that its formula allows, and counts of our data."""
    small = parameters.settings("find_evidence", {"budget": "small"})
    millions = re.search(r"(\d+)m-", small["model"])[1]
    settings = {str(small["max_tokens"]), millions, "0.01", "1"}
    counts = {"300", "150", "100", "5", "9", "3", "4", "20", "443", "450"}
    assert set(re.findall(r"(?<![\w.])\d[\d.,]*(?<![.,])", prose(TEXT))) == settings | counts
    of_ours = r":::\{admonition\} What we found.*?\n:::\n|## What (?:was found|limits it).*?\n(?=## )"
    of_the_paper = prose(re.sub(of_ours, "", TEXT, flags=re.DOTALL))
    assert "%" not in of_the_paper and "points" not in of_the_paper


@pytest.mark.mirror
def test_counts_in_the_sentences_are_those_of_the_data(mirror):
    sides = long_questions.load_evidence("hotpotqa")
    train, dev = (Counter(question.answers[0].kind for question in sides[side]) for side in ("train", "dev"))
    trained = f"trains on {len(sides['train'])} questions of HotpotQA; {train['yes']} have the answer yes and {train['no']} no."
    ranked = f"It ranks {len(sides['dev'])}, of which {dev['yes']} have the answer yes and {dev['no']} no."
    assert f"{trained} {ranked}" in TEXT
    limit = parameters.settings("find_evidence", {"budget": "small", "dataset": "qasper"})["question_limit"]
    asked = long_questions.load_evidence("qasper", limit)["dev"]
    assert {answer.kind for question in asked for answer in question.answers} == {"extractive"}


def test_commands_of_the_page_are_understood():
    commands = re.findall(r"^\$ papermill notebooks/find_evidence\.ipynb (.*)$", TEXT, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        words = shlex.split(command)
        assert words[::3] == ["-p"] * (len(words) // 3)
        given = {name: yaml.safe_load(value) for name, value in zip(words[1::3], words[2::3])}
        made = parameters.settings("find_evidence", given)
        assert len(made["temperatures"].split(",")) in (1, len(long_questions.KINDS["pydocs_evidence"]))
        assert made["similarity"] == ("cosine" if made["projection"] == "none" else "projected")
