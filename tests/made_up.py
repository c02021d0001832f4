"""Made-up records of a paper's rows, and tables read as text."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from aslab import records as measured
from asutil.io import disk

FOLDER = Path(__file__).resolve().parents[1] / "experiments"
PAPER = "sentence_objectives"
BACKBONE = "FacebookAI/roberta-base"
TAGS = {"body", "details", "summary", "p", "strong", "code", "table", "caption", "thead", "tbody", "tr", "th", "td"}
TAGS |= {"span", "em", "small", "a", "u", "abbr"}


def values(mean, questions=40, seed=0):
    """Per-question P@1, AP and RR whose P@1 is near `mean`."""
    p = (np.random.default_rng(seed).permutation(questions) < mean * questions).astype(float)
    return [[f"q{i}", float(x), float(0.3 + 0.6 * x), float(0.4 + 0.6 * x)] for i, x in enumerate(p)]


def record(row, dataset, budget, seed, mean, settings=None, **more):
    each = values(mean, seed=seed)
    p, ap, rr = np.array([line[1:] for line in each]).mean(axis=0)
    test = {"p@1": p, "map": ap, "mrr": rr, "questions": len(each), "tied_questions": 0, "empty_questions": 0}
    return {
        "notebook": "finetune",
        "name": f"finetune-{row}-{seed}",
        "row": row,
        "dataset": dataset,
        "budget": budget,
        "seed": seed,
        "settings": {"dataset": dataset, "model": BACKBONE, **(settings or {})},
        "metrics": {"test": test},
        "baselines": {"random": {"p@1": 0.123, "map": 0.234, "mrr": 0.345}, "document_order": None, "bm25": {"p@1": 0.456, "map": 0.5}},
        "per_question": each,
        **more,
    }


def commit(folder, *records):
    for content in records:
        path = folder / PAPER / content["row"] / f"{content['dataset']}-{content['budget']}-seed{content['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write_json(path, content)
    return path


def found(folder):
    return measured.records(PAPER, folder, folder / "no runs", FOLDER)


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
