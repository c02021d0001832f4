"""Candidates that a reader puts in order: what the page shows before, and what its script makes of it in a browser."""

import json
import random
import re
from pathlib import Path

import pytest
from markupsafe import escape

from asutil import metrics

from ..conftest import extension
from .scripts import computed, needs_chromium

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Where is the <b>harbour</b>?"
LINES = ["- no: The harbour is <old>.", "- yes: North of it.", "", f"- no: {QUESTION}", "- yes: In the west.", "- no: Nowhere."]
NAMES = ("p_at_1", "reciprocal_rank", "average_precision")

SHOWN = """
const box = document.querySelector(".as2-reorder");
const rows = [...box.querySelectorAll("li")], handle = (n) => rows[n].querySelector(".as2-handle");
const shown = () => ({
  labels: [...box.querySelectorAll("li")].map((item) => Number(item.dataset.label)),
  order: [...box.querySelectorAll("li")].map((item) => rows.indexOf(item)),
  cells: [...box.querySelectorAll("[data-metric]")].map((row) => [row.cells[1].textContent, row.querySelector("span").textContent]),
  before: [...box.querySelectorAll("[data-metric] small")].map((text) => text.textContent),
  shares: [...box.querySelectorAll("li small span")].map((text) => text.textContent),
  told: box.querySelector("[role=status]").textContent,
  focus: rows.findIndex((item) => item.contains(document.activeElement)),
});
const press = (n, key) => { handle(n).focus(); handle(n).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); };
const point = (target, kind, y) => target.dispatchEvent(new PointerEvent(kind, { clientY: y, bubbles: true, pointerType: "touch" }));
const bottom = (item) => item.getBoundingClientRect().bottom;
"""


reorder = extension("as2_reorder")


def of(labels) -> list[float]:
    """The metrics of candidates in this order, computed by the package."""
    return metrics.ranking([0] * len(labels), labels, [-rank for rank in range(len(labels))]).per_question.iloc[0][list(NAMES)].to_list()


@pytest.mark.slow
@needs_chromium
def test_the_script_computes_what_the_package_computes(tmp_path):
    draw = random.Random(0)
    orders = [[draw.randint(0, 1) for _ in range(draw.randint(1, 15))] for _ in range(300)]
    orders = [labels for labels in orders if any(labels)]
    made = computed("reorder.js", tmp_path, "", f"const seen = {json.dumps(orders)}.map(metricsOf)")
    assert len(made) > 200
    for labels, found in zip(orders, made):
        assert [found[name] for name in NAMES] == pytest.approx(of(labels), abs=1e-12)


@needs_chromium
def test_candidates_move_by_buttons_keys_and_dragging(tmp_path, reorder):
    body = reorder.figure(QUESTION, reorder.read(LINES))
    steps = """
    const seen = [shown()];
    const act = (what) => { what(); seen.push(shown()); };
    act(() => rows[2].querySelector("[data-step='-1']").click());
    act(() => rows[0].querySelector("[data-step='-1']").click());
    act(() => press(4, "ArrowUp"));
    act(() => press(4, "Home"));
    act(() => { point(handle(4), "pointerdown", 0); point(document, "pointermove", bottom(rows[1])); });
    act(() => point(document, "pointerup", 0));
    act(() => point(document, "pointermove", 0));
    act(() => { point(rows[0].querySelector("p"), "pointerdown", 0); point(document, "pointermove", 9999); });
    for (const order of ["best", "worst", "bm25", "shuffled"]) act(() => box.querySelector(`[data-order=${order}]`).click());
    """
    seen = computed("reorder.js", tmp_path, body, SHOWN + steps)
    first, up, top, key, home, dragged, dropped, after, scrolled, best, worst, bm25, shuffled = seen
    for state in seen:
        assert [value for _, value in state["cells"]] == [f"{value:.3f}" for value in of(state["labels"])]
        assert [formula for formula, _ in state["cells"]] == list(reorder.formulas(state["labels"]).values())
        assert state["shares"] == [reorder.precisions(state["labels"]).get(rank, "") for rank in range(1, 6)]
    assert first["order"] == [0, 1, 2, 3, 4] and first["told"] == "" and set(first["before"]) == {""}
    assert up["order"] == top["order"] == [0, 2, 1, 3, 4]  # the first one stays
    assert "is at rank 2 of 5. P@1" in up["told"] and "is at rank 1 of 5. P@1" in top["told"]
    assert key["order"] == [0, 2, 1, 4, 3] and key["focus"] == 4
    assert home["order"] == [4, 0, 2, 1, 3] and home["focus"] == 4
    assert dragged["order"] == [0, 2, 1, 4, 3] and dragged["told"] == home["told"]  # told once it is dropped
    assert dropped["order"] == dragged["order"] and dropped["told"] != home["told"]
    assert after["order"] == scrolled["order"] == dropped["order"]  # no longer held; a finger on the text scrolls the page
    assert best["labels"] == [1, 1, 0, 0, 0] and worst["labels"] == [0, 0, 0, 1, 1]
    assert bm25["order"] == first["order"] and sorted(shuffled["order"]) == first["order"]
    changes = [re.sub(r"as before|. from ", "", text) for text in best["before"]]
    assert [float(text or now) for text, (_, now) in zip(changes, best["cells"])] == pytest.approx(of(dropped["labels"]), abs=5e-4)


def test_the_page_has_the_order_of_bm25_and_its_metrics_without_the_script(reorder):
    candidates = reorder.read(LINES)
    html = reorder.figure(QUESTION, candidates)
    labels = [int(label) for label in re.findall(r'data-label="(\d)"', html)]
    assert escape(QUESTION) in html.split("<li")[1]  # it has all words of the question
    assert re.findall(r"<span>([\d.]+)</span> <small>", html) == [f"{value:.3f}" for value in of(labels)]
    right = [rank for rank, label in enumerate(labels, 1) if label]
    average = re.search(r"<td>\((.*?)\) / 2</td>", html)[1]
    assert average == " + ".join(f"{n}/{rank}" for n, rank in enumerate(right, 1))
    assert "&lt;old&gt;" in html and "<old>" not in html and "<b>" not in html


@pytest.mark.parametrize(
    ("lines", "message"),
    [(["- yes: A.", "- maybe: B."], "'- maybe: B.'"), (["- no: A."], "at least one right"), ([], "at least one right")],
)
def test_candidates_are_lines_with_labels(reorder, lines, message):
    with pytest.raises(ValueError, match=message):
        reorder.read(lines)
