"""Cards: the same headings everywhere, and the counts that the code asserts."""

import collections
import itertools
import json
import re
from pathlib import Path

import pytest
import yaml

from asutil.corpus import sources
from asutil.data.answers import load_answers
from asutil.data.claims import load_claims
from asutil.data.data_sets import ANSWERS, TITLES
from asutil.data.long_questions import load_evidence
from asutil.pydocs import documents as docstrings

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "data_cards"
CARDS = sorted(path for path in FOLDER.glob("*.md") if path.stem != "TEMPLATE")
HUB = {name: data.hub_id for name, data in ANSWERS.items() if data.hub_id}


def parts(path):
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body


def test_there_is_a_card_for_every_data_set():
    assert {path.stem for path in CARDS} >= {*TITLES, "wqa", "iqad"}
    assert {parts(path)[0]["hub_id"] for path in CARDS} >= {*sources.HUB_FORMS, *HUB.values()}


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.stem)
def test_headings_and_front_matter_follow_the_template(path):
    (wanted, template), (front, body) = parts(FOLDER / "TEMPLATE.md"), parts(path)
    assert re.findall(r"^## .*", body, re.M) == re.findall(r"^## .*", template, re.M)
    assert len(re.findall(r"^# ", body, re.M)) == 1
    assert wanted.keys() <= front.keys()
    assert all(front[key] for key in ("name", "licence", "language"))
    for section in re.split(r"^## .*", body, flags=re.M)[1:]:
        assert section.strip()


@pytest.mark.parametrize("name", HUB)
def test_counts_are_those_that_loading_asserts(name):
    front, _ = parts(FOLDER / f"{name}.md")
    assert front["hub_id"] == HUB[name]
    counts = {p: {side: tuple(count.values()) for side, count in sides.items()} for p, sides in front["counts"].items()}
    assert counts == ANSWERS[name].counts


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.stem)
def test_the_table_has_the_counts_of_the_front_matter(path):
    front, body = parts(path)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines() if line.startswith("| `")]
    table = {(protocol.strip("`"), side): (asked, candidates) for protocol, side, asked, candidates, _ in rows}
    assert table == {
        (protocol, side): (f"{count['questions']:,}", f"{count['candidates']:,}")
        for protocol, sides in front["counts"].items()
        for side, count in sides.items()
    }


@pytest.mark.usefixtures("_versions_of_the_cards")
@pytest.mark.parametrize(
    ("name", "load"),
    [("pydocs", load_answers), ("pydocs_more", load_answers), ("pydocs_claims", load_claims), ("pydocs_evidence", load_evidence)],
)
def test_counts_of_embedded_data_with_the_pinned_versions(name, load, entries, monkeypatch):
    monkeypatch.setattr(docstrings, "entries", lambda: entries)
    front, _ = parts(FOLDER / f"{name}.md")
    assert front["fingerprint"] == docstrings.fingerprint_of_docstrings(docstrings.NUMPYDOC)
    kept = {side: dict(zip(("questions", "candidates"), split.report["kept"].values())) for side, split in load(name).items()}
    assert front["counts"] == {"clean": kept}


def test_what_the_card_of_more_of_pydocs_says_of_questions_that_are_not_independent_is_in_the_records():
    """Standard errors of the mean of a difference with clusters as units; with both, their variances less that of single questions."""
    _, body = parts(FOLDER / "pydocs_more.md")
    rows, place = FOLDER.parent / "results" / "sentence_objectives", "pydocs_more-laptop-seed{}.json"
    read = lambda row, seed: json.loads((rows / row / place.format(seed)).read_text("utf-8"))["per_question"]
    gain = collections.Counter()
    for row, sign in (("roberta_sp", 1), ("roberta_base", -1)):
        for name, _, precision, _ in itertools.chain.from_iterable(read(row, seed) for seed in range(3)):
            gain[name] += sign * precision / 3
    mean, variances = sum(gain.values()) / len(gain), []
    for unit in (str, lambda name: name.rpartition(":")[0], lambda name: name.rpartition(":")[2].partition("#")[0]):
        sums = collections.Counter()
        for name, value in gain.items():
            sums[unit(name)] += value - mean
        variances.append(len(sums) / (len(sums) - 1) * sum(value**2 for value in sums.values()) / len(gain) ** 2)
    alone, docstrings, names, both = (100 * value**0.5 for value in (*variances, variances[1] + variances[2] - variances[0]))
    assert f"{len({name.rpartition(':')[0] for name in gain})} docstrings" in body and f"The {len(gain):,} questions" in body
    said = (
        f"{alone:.2f} points with single questions as units, {docstrings:.2f} with docstrings, {names:.2f} with names, and {both:.2f} with"
    )
    assert said in " ".join(body.split())


def test_what_the_card_of_wikiqa_says_of_orders_without_a_model_is_in_the_records():
    _, body = parts(FOLDER / "wikiqa.md")
    record = json.loads((FOLDER.parent / "results/sentence_objectives/roberta_base/wikiqa-small-seed0.json").read_text("utf-8"))
    of = lambda baseline: [f"{record['baselines'][baseline][metric]:.3f}".lstrip("0") for metric in ("map", "p@1")]
    in_order, bm25 = of("document_order"), of("bm25")
    assert f"MAP {in_order[0]} and P@1 {in_order[1]}, more than BM25 ({bm25[0]} and {bm25[1]})" in body
