"""Drawings in few bytes: the same marks, lines and words at the same places in the same style."""

import io
import re
from pathlib import Path

import as2_svg
import matplotlib
import numpy as np
import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]


def drawing() -> str:
    """Cells of a heat map with words, marks of two sizes, and lines, some of them dashed."""
    random = np.random.default_rng(5)
    figure = Figure(figsize=(8, 4))
    cells, marks = figure.subplots(1, 2)
    counts = random.integers(0, 60, (6, 6))
    cells.pcolormesh(counts, edgecolor="#888888", linewidth=0.5)
    for (row, column), count in np.ndenumerate(counts):
        cells.text(column + 0.5, row + 0.5, count, ha="center")
    cells.set_ylabel("rank", color="#777777", fontsize=7)
    marks.scatter(*random.normal(size=(2, 40)), c=random.choice(["C0", "C1"], 40), s=random.choice([10, 30], 40))
    marks.vlines(np.arange(12) / 10, 0, 1, colors="C2", linestyles=["--", "--", "-"])
    saved = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "test"}):
        figure.savefig(saved, format="svg")
    svg = saved.getvalue()[saved.getvalue().index("<svg") :]
    return svg.replace("#000000", "currentColor").replace("#ffffff", "var(--pst-color-background)")


def declared(style: str) -> dict:
    return dict(re.findall(r"([\w-]+): ([^;]+)", style))


def drawn(svg: str) -> list:
    """Of everything with a clip path: its corners on the page and its style, with what it inherits."""
    soup, found = BeautifulSoup(svg, "html.parser"), []
    for tag in soup.find_all(["path", "use"]):
        around = [tag, *tag.find_parents("g")]
        if not any(one.get("clip-path") for one in around) or tag.find_parent("defs"):
            continue
        shape = soup.find("path", id=tag["xlink:href"][1:]) if tag.name == "use" else tag
        style = declared("; ".join(one.get("style", "") for one in reversed((shape, *around))))
        corners = np.array(re.findall(r"-?[\d.]+(?:e-\d+)?", shape["d"]), float).reshape(-1, 2)
        found.append((corners + [float(tag.get(way, 0)) for way in "xy"], style))
    return found


def test_a_drawing_of_fewer_bytes_shows_the_same():
    svg = drawing()
    less = as2_svg.in_page_colours(svg)
    assert len(less) < 0.5 * len(svg) and less.count("<use") > 60
    assert len(drawn(svg)) == len(drawn(less)) > 80
    for (before, style), (after, same) in zip(drawn(svg), drawn(less)):
        assert style == same and after == pytest.approx(before, abs=0.002)


def test_no_rule_of_a_page_is_stronger_than_the_style_that_words_share():
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", (ROOT / "book" / "_static" / "as2.css").read_text("utf-8"))
    of_words = [(selector.strip(), rule) for selector, rule in rules if re.search(r"\btext\s*$", selector)]
    assert len(of_words) > 1
    soup = BeautifulSoup(as2_svg.in_page_colours(drawing().replace('<text style="', '<text style="fill: #888888; ')), "html.parser")
    assert soup.svg["font-family"] and "fill: #888888" in soup.find("text")["style"]
    for selector, rule in of_words:
        assert ":not([font-family])" in selector or not declared(rule).keys() & declared(soup.svg["style"]).keys(), selector


def test_words_keep_place_turn_and_size():
    texts, places = [], []
    for svg in (drawing(), as2_svg.in_page_colours(drawing())):
        soup = BeautifulSoup(svg, "html.parser")
        texts.append([])
        for text in soup.find_all("text"):
            style = {"text-anchor": "start"} | declared(f"{soup.svg.get('style', '')}; {text.get('style', '')}")
            assert (style.pop("font-family", None) or soup.svg["font-family"]).startswith("'DejaVu Sans'")
            places.append([float(text["x"]), float(text["y"])])
            texts[-1].append((text.get_text(), style, text.get("transform", "rotate(-0 ").split()[0]))
    assert texts[0] == texts[1] and "rotate(-90" in {turn for *_, turn in texts[1]}
    assert np.allclose(*np.split(np.array(places), 2), atol=0.001)
