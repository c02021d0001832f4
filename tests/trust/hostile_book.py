"""A copy of the book into which texts are planted that would run, if a page took them for markup: in data, records and runs."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from itertools import cycle
from pathlib import Path

import nbformat
import pandas as pd
from docutils.core import publish_parts
from IPython.core.formatters import DisplayFormatter
from IPython.display import HTML
from myst_parser.parsers.docutils_ import Parser

from aslab import runs
from aslab.show import lists
from aslab.show.lists import beside
from asutil.data.claims import Claim, Evidence
from asutil.io import disk
from asutil.metrics.verdicts import CLASSES
from tests.trust import must
from tests.trust.payloads import PAYLOADS

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("asutil", "aslab", "experiments", "notebooks", "data_cards", "results", "book")
MADE = shutil.ignore_patterns("_build", "runs", "notebooks", "data_cards", "__pycache__", ".ipynb_checkpoints")
PAPER, BASE, AFTER = "sentence_objectives", "roberta_base", ("roberta_ssp", "roberta_sp", "roberta_psd")
RUN = "finetune-planted-0123456789ab"
UNNAMEABLE = "<img src=pwn90 onerror=document.documentElement.setAttribute('data-pwn90',1)>-0123456789ab"  # as a folder in runs/
LINKED = "finetune-linked-0123456789ab"
SHORT = """\
format: jb-book
root: index
chapters:
  - {file: examples, sections: [file: papers/sentence_objectives]}
  - {file: runs, sections: [glob: runs/*]}
"""
# questions and candidates of made-up sides that have as many as WikiQA's own: mixed labels, right ones alone, wrong ones alone
SIDES = {
    "train": [(873, 8_672), (0, 0), (1_245, 11_688)],
    "validation": [(122, 1_126), (4, 4), (0, 0)],
    "test": [(228, 2_296), (6, 10), (0, 0)],
}


def copied(root: Path) -> Path:
    """A copy of the project without what was built or run."""
    for name in PARTS:
        shutil.copytree(ROOT / name, root / name, ignore=MADE if name == "book" else shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CITATION.cff", root)
    without_figures(root / "book")
    return root


def without_figures(book: Path) -> None:
    """Leaves the figures in the text of a copied book as words: they are checked against results that the copy does not have."""
    for page in book.rglob("*.md"):
        page.write_text(re.sub(r"\{as2-figure\}`([^:`]+):[^`]+`", r"\1", page.read_text("utf-8")), encoding="utf-8")


def plant(root: Path, mirror: Path) -> None:
    """Payloads as questions, answers, titles and ids of committed results, of a mirrored data set and of a run's outputs."""
    slots = cycle(PAYLOADS)
    at_hand = [(f"made-{n}", next(slots), [(f"made-{n}-{i}", next(slots)) for i in range(5)]) for n in range(9)]
    by_id = [(f"{n} {next(slots)}", "", [(f"{i} {next(slots)}", "") for i in range(5)]) for n in range(9)]
    _mirrored(mirror, at_hand, slots)
    shutil.rmtree(root / "results" / PAPER)
    for dataset, asked in {"wikiqa": at_hand, "trecqa": by_id}.items():
        for row in (BASE, *AFTER):
            _committed(root, dataset, row, asked, slots)
    _run(root / "runs" / RUN)
    _run(root / "runs" / UNNAMEABLE)
    _run(root / "outside" / LINKED)
    (root / "runs" / LINKED).symlink_to(root / "outside" / LINKED)


def build(root: Path, environment: dict, full: bool) -> Path:
    """The folder of the built pages: of all, or of those into which something was planted."""
    if not full:
        (root / "book" / "_toc.yml").write_text(SHORT, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "book/"]
    environment = environment | {"AS2_EXECUTE": "off"}  # nothing can be planted into them
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=900)
    must(done.returncode == 0, f"the book with payloads in its data should be built: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return root / "book" / "_build" / "html"


def control(path: Path) -> None:
    """A page that takes every payload for what it is not, as HTML and as Markdown: a frame each, and every link clicked."""
    frames = [f'<iframe srcdoc="{escape(html)}"></iframe>' for payload in PAYLOADS for html in (payload, _as_markdown(payload))]
    click = "for (const f of document.querySelectorAll('iframe')) f.contentDocument?.querySelectorAll('a').forEach(a => a.click())"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'<!doctype html><body onload="{click}">{"".join(frames)}', encoding="utf-8")


def _as_markdown(text: str) -> str:
    quiet = {"report_level": 5, "halt_level": 5, "_disable_config": True, "output_encoding": "unicode"}
    return publish_parts(text, parser=Parser(), writer_name="html5", settings_overrides=quiet)["body"]


# ------------------------------------------------------------------ data and records


def _mirrored(mirror: Path, asked: list, slots: Iterator[str]) -> None:
    """A data set of WikiQA's form and counts whose test side has these questions."""
    folder = mirror / "microsoft" / "wiki_qa"
    folder.mkdir(parents=True)
    for side, groups in SIDES.items():
        rows = [
            (name, text, next(slots), answer, int(not i)) for name, text, of in asked for i, (_, answer) in enumerate(of) if side == "test"
        ]
        for kind, (questions, candidates) in enumerate(groups):
            for n in range(candidates):
                label = (int(n < questions), 1, 0)[kind]
                rows.append((f"{side}-{kind}-{n % questions}", "Which?", "A title", f"answer {n}", label))
        columns = ["question_id", "question", "document_title", "answer", "label"]
        pd.DataFrame(rows, columns=columns).to_parquet(folder / f"{side}.parquet", index=False)


def _committed(root: Path, dataset: str, row: str, asked: list, slots: Iterator[str]) -> None:
    """A record of results: of three questions that each row shares with the baseline it rescues two and loses one."""
    shared = asked if row == BASE else asked[3 * AFTER.index(row) :][:3]
    right = {name: (n % 3 == 2) == (row == BASE) for n, (name, *_) in enumerate(asked)}
    chosen = []
    for name, _, candidates in shared:
        ranked = candidates if right[name] else candidates[::-1]
        entries = [[one, int(one == candidates[0][0]), 0.9 - 0.1 * place, place + 1] for place, (one, _) in enumerate(ranked)]
        chosen.append({"question_id": name, "candidates": entries})
    values = dict.fromkeys(("p@1", "map", "mrr"), 0.5) | {"questions": len(asked), "tied_questions": 0, "empty_questions": 0}
    record = {"paper": PAPER, "row": row, "dataset": dataset, "budget": "small", "seed": 0, "notebook": "finetune", "name": next(slots)}
    record |= {"settings": {"dataset": dataset, "corpus": next(slots)}, "given": {"dataset": next(slots)}, "metrics": {"test": values}}
    record |= {"per_question": [[name, *[1.0 if right[name] else 0.2] * 3] for name, *_ in asked], "chosen": chosen}
    path = root / "results" / PAPER / row / f"{dataset}-small-seed0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write_json(path, record)


def _run(folder: Path) -> None:
    """A finished run whose cells have shown every payload, in the forms in which notebooks show texts."""
    folder.mkdir(parents=True)
    cells = [nbformat.v4.new_markdown_cell("# Fine-tuning")]
    for shown in _shown():
        if isinstance(shown, str):
            output = nbformat.v4.new_output("stream", text=shown)
        else:
            data, metadata = DisplayFormatter().format(shown)
            output = nbformat.v4.new_output("execute_result", data, metadata=metadata, execution_count=1)
        cells.append(nbformat.v4.new_code_cell("shown", outputs=[output]))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "notebook.ipynb")
    record = {"notebook": "finetune", "name": folder.name, "budget": PAYLOADS[0], "seed": PAYLOADS[4], "settings": {}}
    disk.write_json(folder / "record.json", record | {"metrics": {"test": {PAYLOADS[5]: 0.5, "map": 0.5}}} | runs.hashes(folder))


def _shown() -> Iterator:
    """What cells of the notebooks show of questions: lines, tables, and ranked lists."""
    yield "".join(f"{number} {text}\n" for number, text in enumerate(PAYLOADS))
    yield pd.DataFrame([{"title": text, "evidence": text} for text in PAYLOADS])
    yield pd.Series({text: text for text in PAYLOADS}, name=PAYLOADS[0]).to_frame()
    scores, labels = [1 / (1 + n) for n in range(len(PAYLOADS))], [n % 2 for n in range(len(PAYLOADS))]
    yield HTML(lists.ranked_example(PAYLOADS[0], PAYLOADS, scores, labels, top=len(PAYLOADS)))
    yield HTML(lists.compare_rankings(PAYLOADS[1], PAYLOADS, labels, dict.fromkeys(PAYLOADS[:3], scores), top=5))
    for n, text in enumerate(PAYLOADS):
        best = [[str(n), 1, 0.9, 1], [text, 0, 0.1, 2]]
        yield HTML(beside(text, {PAYLOADS[n - 1]: best, "other": best}, {str(n): text}, text))
    evidence = tuple(Evidence(text, 0, text) for text in PAYLOADS[:5])
    claims = [Claim(str(n), text, n % 3, evidence) for n, text in enumerate(PAYLOADS[:6])]
    verdicts = pd.DataFrame([{"claim_id": claim.id, "label": claim.label} | dict.fromkeys(CLASSES, -1.0) for claim in claims])
    yield HTML(lists.verdicts(claims, verdicts, len(claims)))


def environment(root: Path, mirror: Path, **more: str) -> dict:
    """What a process in the copy is told: its project, its mirror, one thread."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("ASUTIL_")}
    return {**others, "ASUTIL_PROJECT": str(root), "ASUTIL_MIRROR": str(mirror), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root), **more}
