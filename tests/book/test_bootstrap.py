"""Twenty test sets and their intervals: what the page shows before, and what its script makes of it in a browser."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from asutil import metrics
from asutil.metrics.significance import smallest_gain

from ..conftest import extension
from .scripts import computed, needs_chromium

ROOT = Path(__file__).resolve().parents[2]
SHOWN = """
const box = document.querySelector(".as2-bootstrap");
const shown = () => ({
  outputs: [...box.querySelectorAll("output")].map((output) => output.textContent),
  spoken: [...box.querySelectorAll("input")].map((input) => input.getAttribute("aria-valuetext")),
  told: box.querySelector("figcaption").textContent,
  lines: [...box.querySelectorAll(".as2-interval")].map((line) => ["x1", "x2"].map((end) => Number(line.getAttribute(end)))),
  thick: [...box.querySelectorAll(".as2-interval")].map((line) => line.classList.contains("as2-significant")),
  gain: box.querySelector(".as2-true").getAttribute("x1"),
});
const slide = (name, value) => {
  const input = box.querySelector(`[data-of=${name}]`);
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};
"""


bootstrap = extension("as2_bootstrap")


@pytest.mark.parametrize(("questions", "lost"), [(68, 0), (68, 3), (237, 10), (237, 25), (1000, 80)])
def test_the_smallest_gain_is_that_of_the_exact_bootstrap(questions, lost, bootstrap):
    assert abs(bootstrap.smallest(questions, lost) - lost - smallest_gain(questions, lost)) <= 1


@pytest.mark.parametrize(("questions", "gain"), [(100, 0.0), (237, 0.05), (1000, 0.02)])
def test_power_is_the_share_of_made_up_test_sets_whose_bootstrap_leaves_out_zero(questions, gain, bootstrap):
    draw, lost, sets = np.random.default_rng(0), bootstrap.LOST, 400
    signs = []
    for gained, fewer, _ in draw.multinomial(questions, [lost + gain, lost, 1 - 2 * lost - gain], size=sets):
        deltas = np.repeat([1, -1, 0], [gained, fewer, questions - gained - fewer])
        signs.append(metrics.paired_bootstrap(deltas, np.zeros(questions), draws=400).sign)
    assert bootstrap.power(questions, gain) == pytest.approx(np.mean(np.array(signs) != 0), abs=0.07)


@pytest.mark.slow
@needs_chromium
def test_the_script_computes_what_the_extension_and_the_package_compute(tmp_path, bootstrap):
    settings = [(questions, gain) for questions in bootstrap.QUESTIONS[:9] for gain in (0, 0.015, 0.05, 0.1)]
    sets = [(68, 9, 4), (237, 30, 20), (1000, 100, 80)]
    expression = f"""
    const seen = {{
      powers: {json.dumps(settings)}.map(([questions, gain]) => powerOf(questions, gain, {bootstrap.LOST})),
      intervals: {json.dumps(sets)}.map(([n, gained, lost]) => bootstrapInterval(n, gained / n, lost / n, 4000, randomFrom(7))),
    }}"""
    made = computed("bootstrap.js", tmp_path, "", expression)
    assert made["powers"] == pytest.approx([bootstrap.power(*setting) for setting in settings], abs=1e-6)
    for (questions, gained, lost), interval in zip(sets, made["intervals"]):
        deltas = np.repeat([1, -1, 0], [gained, lost, questions - gained - lost])
        expected = metrics.paired_bootstrap(deltas, np.zeros(questions)).interval
        assert interval == pytest.approx(100 * np.array(expected), abs=100 / questions + 0.1)


@pytest.mark.slow
@needs_chromium
def test_sliders_and_the_button_draw_other_test_sets(tmp_path, bootstrap):
    steps = """
    const seen = [shown()];
    slide("gain", 8); seen.push(shown());
    slide("questions", 9); seen.push(shown());
    box.querySelector("button").click(); seen.push(shown());
    slide("gain", 0); seen.push(shown());
    """
    first, more, many, other, none = computed("bootstrap.js", tmp_path, bootstrap.figure(), SHOWN + steps)
    assert first["outputs"] == ["237", "2"] and first["gain"] == "2"
    assert more["outputs"] == ["237", "8"] and more["gain"] == "8" and more["spoken"] == ["237 questions", "8 points"]
    assert many["outputs"] == ["2000", "8"] and all(many["thick"]) and "In the long run 100 %" in many["told"]
    assert many["lines"] != other["lines"] and many["told"] == other["told"]
    for state in (first, more, many, other, none):
        assert state["thick"] == [low > 0 or high < 0 for low, high in state["lines"]]
        assert state["told"].startswith(f"{sum(state['thick'])} of 20 test sets of {state['outputs'][0]} questions")
    width = lambda state: np.mean([high - low for low, high in state["lines"]])
    assert 2 < width(more) / width(many) < 4  # 237 and 2,000 questions
    assert np.mean(none["lines"]) == pytest.approx(0, abs=1)


def test_the_page_has_a_figure_and_a_table_without_the_script(bootstrap):
    html = bootstrap.figure()
    ends = re.findall(r'as2-interval( as2-significant)?" x1="([-\d.]+)" x2="([-\d.]+)"', html)
    assert len(ends) == bootstrap.SETS
    assert [bool(mark) for mark, _, _ in ends] == [float(low) > 0 or float(high) < 0 for _, low, high in ends]
    assert f"{sum(bool(mark) for mark, _, _ in ends)} of 20 test sets of 237 questions" in html
    share = f"{100 * bootstrap.power(237, 0.02):.0f}"
    assert f'<b class="as2-share">{share} %</b>' in html and f'<td class="as2-number">{share}</td>' in html.split(">237</th>")[1]
    assert "http" not in html
