"""Made-up records of a paper's rows, the test over questions and seeds computed again, and tables read as text."""

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import yaml

from aslab import papers, plan, runs
from aslab import records as measured
from aslab.commands import asutil
from asutil.io import disk
from asutil.metrics.significance import Comparison

from .trust import recompute_claims

FOLDER = Path(__file__).resolve().parents[1] / "experiments"
PAPER = "sentence_objectives"
BACKBONE = "FacebookAI/roberta-base"
TAGS = {"body", "details", "summary", "p", "strong", "code", "table", "caption", "thead", "tbody", "tr", "th", "td"}
TAGS |= {"div", "span", "em", "small", "a", "u", "abbr"}


def values(mean, questions=40, seed=0):
    """Per-question P@1, AP and RR whose P@1 is near `mean`."""
    p = (np.random.default_rng(seed).permutation(questions) < mean * questions).astype(float)
    return [[f"q{i}", float(x), float(0.3 + 0.6 * x), float(0.4 + 0.6 * x)] for i, x in enumerate(p)]


def record(row, dataset, budget, seed, mean, settings=None, **more):
    each = values(mean, seed=seed)
    p, ap, rr = np.array([line[1:] for line in each]).mean(axis=0)
    test = {"p@1": p, "map": ap, "mrr": rr, "questions": len(each), "tied_questions": 0, "empty_questions": 0}
    made = {"notebook": "finetune", "name": f"finetune-{row}-{seed}", "row": row, "dataset": dataset, "budget": budget, "seed": seed}
    made |= {"settings": {"dataset": dataset, "model": BACKBONE, **(settings or {})}, "metrics": {"test": test}, "per_question": each}
    baselines = {"random": {"p@1": 0.123, "map": 0.234, "mrr": 0.345}, "document_order": None, "bm25": {"p@1": 0.456, "map": 0.5}}
    return made | {"baselines": baselines} | more


def finished(folder, record, **tables):
    """The folder of a finished run: tables by the name of their file, and the record with their hashes."""
    folder.mkdir(parents=True)
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    disk.write_json(folder / "record.json", {"name": folder.name, **record, **runs.hashes(folder)})
    return folder


def commit(folder, *records):
    for content in records:
        path = folder / PAPER / content["row"] / f"{content['dataset']}-{content['budget']}-seed{content['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write_json(path, content)
    return path


def compared(folder, ours=0.9, base=0.5, seeds=(0, 1, 2), budget="small", of_base=None, **more):
    """Records of SSP and of its baseline on WikiQA; `more` is in those of SSP, `of_base` in those of the baseline."""
    for seed in seeds:
        commit(folder, record("roberta_ssp", "wikiqa", budget, seed, ours, **more))
        commit(folder, record("roberta_base", "wikiqa", budget, seed, base, **(of_base or {})))
    return recorded(folder)


def ahead_and_behind(folder):
    """Records where SSP is far ahead of the baseline on WikiQA and PSD is the baseline; on pydocs SSP is behind."""
    for seed in (0, 1, 2):
        for row, mean in {"roberta_base": 0.4, "roberta_ssp": 0.9, "roberta_psd": 0.4}.items():
            commit(folder, record(row, "wikiqa", "small", seed, mean, weights_sha256={"model": f"{row} {seed}"}))
        for row, mean in {"roberta_base": 0.9, "roberta_ssp": 0.5}.items():
            commit(folder, record(row, "pydocs", "laptop", seed, mean))
    return folder


def declaring(folder, reasons):
    """experiments/ where the baseline declares why it cannot be tested."""
    shutil.copytree(FOLDER, folder / "experiments")
    path = folder / "experiments" / f"{PAPER}.yml"
    data = yaml.safe_load(path.read_text("utf-8"))
    data["rows"]["roberta_base"]["not_testable"] = reasons
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path.parent


def recorded(folder):
    return measured.records(PAPER, folder, folder / "no runs")


def read_from(folder, monkeypatch):
    """Papers are read from the files of another folder."""
    read = papers.read
    for module in (papers, plan):
        monkeypatch.setattr(module, "read", lambda paper, other=None: read(paper, other or folder))


def reader(lines):
    """What reads a paper's file, and gives these records for it."""
    return lambda paper: (papers.read(paper, FOLDER), lines)


def columns(table) -> dict[int, list[float]]:
    """Question -> the value of each seed, of a table of seeds x questions."""
    return dict(enumerate(np.transpose(table).tolist()))


def by_hand(ours, base, few=(), lent=()):
    """The Comparison over questions and seeds, of tables of seeds x questions, by a script that knows nothing of the project."""
    test = recompute_claims.over_both(columns(ours), columns(base), few, list(map(columns, lent)))
    difference, *interval = (test[name] / 100 for name in ("difference", "low", "high"))
    return Comparison(test["p"], difference, tuple(interval))


def in_a_cell(test):
    """A Comparison as `cells` shows it, in points."""
    return "{:+.1f}[{:+.1f}, {:+.1f}]".format(*(100 * x for x in (test.difference, *test.interval)))


def cells(html):
    """The table as text, without the names of models; an XML reader shows what is not well-formed, or is a tag that a text brought in."""
    root = ET.fromstring(f"<body>{html.replace('<br>', ' ')}</body>")
    assert {node.tag for node in root.iter()} <= TAGS
    for model in root.iterfind(".//small[@class='as2-model']"):
        model.text = ""
    return [[" ".join("".join(cell.itertext()).split()) for cell in line] for line in root.iter("tr")]


def line(html, *starts):
    """The first line that has these words among its cells, its cells from the one of `starts[0]` on."""
    return next(row for row in cells(html) if set(starts) <= set(row))


def refused(capsys, *words) -> str:
    """What the command `asutil` says where it refuses words."""
    with pytest.raises(SystemExit, match="2"):
        asutil.main([*map(str, words)])
    return capsys.readouterr().err
