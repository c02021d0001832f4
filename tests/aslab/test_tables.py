"""Tables of notebooks: the log of a training against a slow loop, metrics in points, and a plot with its words."""

import inspect
import json
import random
import re
import sys
from types import SimpleNamespace

import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter

from aslab.show import picture, plots, tables


def log_of(steps, every, evaluated):
    """Rows as `training.train` writes them: losses every so many steps, and evaluations as rows of their own."""
    draw, rows = random.Random(0), []
    for step in range(1, steps + 1):
        if step % every == 0 or step == steps:
            parts = {"mlm_loss": draw.random(), "objective_loss": draw.random()}
            rows.append(
                {"step": step, "loss": sum(parts.values()), **parts, "learning_rate": 1e-4, "tokens": 100 * step, "seconds": step / 2}
            )
        if step % evaluated == 0 or step == steps:
            rows.append({"step": step, "eval_map": draw.random(), "eval_questions": 7.0})
    return rows


@pytest.mark.parametrize(("steps", "every", "evaluated"), [(600, 12, 200), (45, 1, 15), (250, 5, 97), (7, 3, 7), (1, 1, 1)])
def test_a_log_has_few_lines_and_the_means_of_all_steps(steps, every, evaluated):
    rows = log_of(steps, every, evaluated)
    table = tables.training_log(rows)
    assert len(table) <= tables.LINES + -(-steps // evaluated) and list(table["done"])[-1] == "100 %"
    assert list(table.columns) == ["done", "loss", "mlm loss", "objective loss", "dev MAP, points", "learning rate", "tokens/s", "min:s"]
    ends = [int(text.replace(",", "")) for text in table.index]
    assert ends == sorted(set(ends)) and ends[-1] == steps
    before = 0
    for line, end in zip(table.itertuples(), ends):
        total = count = previous = 0
        for row in rows:
            if "loss" in row:
                if before < row["step"] <= end:
                    total, count = total + row["loss"] * (row["step"] - previous), count + row["step"] - previous
                previous = row["step"]
        assert line.loss == (f"{total / count:.3f}" if count else "–")
        (reached,) = [row["eval_map"] for row in rows if row["step"] == end and "eval_map" in row] or [None]
        assert line._5 == ("–" if reached is None else f"{100 * reached:.1f}")
        before = end
    shown = {row["step"] for row in rows if "eval_map" in row}
    assert shown <= set(ends)
    assert set(table["tokens/s"]) <= {"200", "–"} and table["min:s"].iloc[-1] == f"{int(steps / 2) // 60}:{int(steps / 2) % 60:02}"


def test_one_part_of_a_loss_is_the_loss():
    rows = [
        {"step": n, "loss": 0.5, "objective_loss": 0.5, "mlm_loss": 0.0, "learning_rate": 1e-4, "tokens": n, "seconds": n} for n in (1, 2)
    ]
    assert list(tables.training_log(rows)) == ["done", "loss", "learning rate", "tokens/s", "min:s"]
    assert tables.training_log([]) is None


def test_metrics_are_in_points_and_counts_stand_where_all_rows_have_them():
    ours = {"p@1": 0.12345, "map": 1.0, "questions": 1234, "tied_questions": 3}
    table = tables.in_points({"bm25": {"p@1": 0.0, "questions": 4}, "this run": ours}, "dev")
    assert table.columns.name == "dev, points" and list(table.index) == ["BM25", "this run"]
    assert table.to_dict("list") == {"P@1": ["0.0", "12.3"], "MAP": ["–", "100.0"], "questions": ["4", "1,234"]}
    assert list(tables.in_points({"a": {"p@1": 0.5}, "b": {"map": 0.5, "questions": 4}}, "dev", ("map",))) == ["MAP"]


def test_what_was_read_is_counted():
    report = {"read": {"questions": 1200}, "kept": {"questions": 7}, "dropped": {"no positive": {"questions": 1193}}}
    (line,) = tables.counted({"dev": SimpleNamespace(report=report)}).itertuples()
    assert tuple(line) == ("dev", "1,200", "7", "1,193 questions")


def test_a_plot_is_saved_with_words_and_its_texts_are_texts():
    rows = [{"step": step, "loss": 1 / step, "eval_map": 0.5} for step in range(1, 9)]
    figure, again = (plots.training_curves({"a <b>": rows}) for _ in range(2))
    data, metadata = DisplayFormatter().format(figure)
    svg = data[picture.SVG]
    assert metadata[picture.SVG]["alt"] == data["text/plain"] == figure.words and "training loss and validation MAP" in figure.words
    assert svg.startswith("<svg") and "optimiser step</text>" in svg and "a &lt;b&gt;" in svg and "#ffffff" in svg
    assert not re.search(r"\d\.\d{3}", svg) and data == DisplayFormatter().format(again)[0]
    assert len(json.dumps(svg)) < 40_000


def test_shares_of_a_confusion_are_seen_on_a_dark_page():
    scores = pd.DataFrame({"label": [0, 1, 2], "supports": [0.0, -9, -9], "not_enough_info": [-9.0, 0, -9], "refutes": [-9.0, -9, 0]})
    svg = picture.svg(plots.confusion_plot(scores), "salt", transparent=True)
    fills = re.findall(r"fill: (#\w+); fill-opacity: ([\d.]+)", svg)
    assert fills and max(float(opacity) for _, opacity in fills) < 0.7


def test_a_module_is_loaded_at_its_first_use_and_not_where_all_modules_are_looked_at(monkeypatch):
    """As torch does while it is imported, by `inspect.getmodule`: a run would wait a second for seaborn."""
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    wave = picture.Later("wave")
    inspect.getmodule(inspect.currentframe())
    assert "wave" not in sys.modules
    assert callable(wave.open) and "wave" in sys.modules
