"""The page of deviations: its entries, severities and tables; its figures are measured again, from the slice of Wikipedia that it names."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from aslab import papers, records
from asutil import corpus as c
from asutil.corpus import tokenizers
from asutil.inputs import join_spans
from asutil.sampling import OBJECTIVES, Sampler
from asutil.sampling.spans import HARD

from .. import made_up
from ..conftest import extension

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "deviations.md").read_text("utf-8")
AS_MANY = 100_000  # examples of each


NUMBERED = re.findall(r"^\*\*(D-\d+) ·", PAGE, re.MULTILINE) + re.findall(r"^\| \[(D-\d+)\]\{#", PAGE, re.MULTILINE)


page = extension("as2_deviations")


# ------------------------------------------------------------------ entries


def test_deviations_are_numbered_and_found():
    entries = re.findall(r"^\*\*(D-\d+) ·", PAGE, re.MULTILINE)
    assert len(set(NUMBERED)) == len(NUMBERED) >= 127  # each once; they stand where they belong by subject
    assert re.findall(r"^\((D-\d+)\)=\n\*\*(D-\d+) ·", PAGE, re.MULTILINE) == [(name, name) for name in entries]
    assert set(re.findall(r"\(#(D-\d+)\)", PAGE)) <= set(NUMBERED)
    # wherever something depends on one of them
    folders = "asutil/**/*.py aslab/**/*.py aslab/*.yml book/papers/**/*.md book/_ext/**/*.py data_cards/*.md notebooks/*.ipynb"
    folders += " experiments/*.yml tests/trust/*.py"
    sources = [path for folder in folders.split() for path in ROOT.glob(folder) if path.is_file()]
    named = {(path.name, name) for path in sources for name in re.findall(r"\bD-\d\d+", path.read_text("utf-8"))}
    assert len(named) > 50 and not [(path, name) for path, name in named if name not in NUMBERED]
    # the older ones are choices that some code makes by being as it is; a newer one is named by what depends on it
    assert not [name for name in entries if int(name[2:]) > 92 and name not in {name for _, name in named}]


def test_every_deviation_has_a_severity_and_its_papers(page):
    found = page.deviations(PAGE)
    assert sorted(one.number for one in found) == sorted(NUMBERED)
    assert {one.rating.severity for one in found} == set(page.SEVERITIES)
    for one in found:
        entry = re.search(rf"^(?:\*\*{one.number} ·|\| \[{one.number}\]).*?(?=^\(D-|^## |^\| |\Z)", PAGE, re.MULTILINE | re.DOTALL)[0]
        named = {slug for slug in papers.PAPERS if f"*{slug}*" in entry}
        assert named <= {*one.rating.papers} or one.number in MENTIONED, (one.number, named)


MENTIONED = ("D-14", "D-142", "D-152")  # compare with a paper that they are not about


@pytest.mark.parametrize("text", ["grave: asbert", "result: nobody", "result", "result: asbert, asbert", "result: "])
def test_an_unknown_severity_or_paper_is_refused(page, text):
    with pytest.raises(ValueError, match="a severity is expected as one of result, settings, report, words"):
        page.rating(text)


def test_the_values_that_count_as_the_papers_own_are_those_of_its_settings(page):
    told = page.accepted("finetune.patience: sentence_objectives, joint_inference")
    assert "<code>patience</code> of finetune: 5, 6 (sentence_objectives); any value (joint_inference)." in told
    for text in ("finetune.patience: contextual_as2", "finetune.patience: nobody", "finetune.patience", "finetune.epochs: joint_inference"):
        with pytest.raises(ValueError, match="a setting with several values and papers that have it are expected"):
            page.accepted(text)


def test_the_ten_that_matter_most_can_change_a_result(page):
    rated = {one.number: one.rating for one in page.deviations(PAGE)}
    top = PAGE[PAGE.index("## The ten") : PAGE.index("## By paper")]
    items = re.findall(r"^\d+\. \*\*\[.*?\]\(#(D-\d+)\)\*\* \(.*?\)\. (.*?)(?=^\d+\. |\Z)", top, re.MULTILINE | re.DOTALL)
    assert len({number for number, _ in items}) == 10
    for number, text in items:
        assert rated[number].severity == "result" and text.count("Evidence:") == 1, number
        for path in re.findall(r"`(tests/[\w/]+\.py)`", text):
            assert (ROOT / path).is_file()


def test_the_table_of_a_paper_has_its_deviations_by_severity(page):
    known = page.deviations(PAGE)
    for slug in papers.PAPERS:
        html = page.deviations_of(slug)
        _, *body = made_up.cells(html[html.index("<table") : html.index("</table>") + len("</table>")])
        order = list(page.SEVERITIES.values())
        assert [row[0] for row in body] and {row[0] for row in body} == {one.number for one in known if slug in one.rating.papers}
        severities = [order.index(row[2]) for row in body]
        assert severities == sorted(severities)
        assert (
            f"### {(ROOT / 'book' / 'papers' / f'{slug}.md').read_text('utf-8').splitlines()[0][2:]}\n\n```{{as2-show}} deviations {slug}"
            in PAGE
        )


# ------------------------------------------------------------------ figures


def printed(number: str):
    """The measured figures of one entry, in its order."""
    entry = re.search(rf"^\*\*{number} ·.*?(?=^\(D-|^## )", PAGE, re.MULTILINE | re.DOTALL)[0]
    figures = re.findall(r"(?<![\d.])\.\d\d(?! is chance)", entry)
    return pytest.approx([float(figure) for figure in figures], abs=0.01)


@pytest.fixture(scope="module")
def wikipedia(mirror, tmp_path_factory):
    tokenizer = tokenizers.load_tokenizer("ibm-granite/granite-embedding-30m-english")
    return c.build(c.documents("local/wikipedia_small"), tokenizer, tmp_path_factory.mktemp("wikipedia") / "index")


@pytest.mark.mirror
def test_shares_of_all(wikipedia):
    union, shares = Sampler(wikipedia, "all"), {}
    for name in ("all", "context_all"):
        anchors = np.array([len(Sampler(wikipedia, member).anchors) for member in OBJECTIVES[name].members])
        shares[name] = anchors / anchors.sum()
    made = union.spans(np.arange(len(union)))
    in_ssp = Sampler(wikipedia, "ssp").spans(np.arange(20_000)).kinds == HARD
    hard = [(made.kinds == HARD)[made.members == member].mean() for member in range(3)]
    by_anchors = (shares["all"] * hard).sum()
    found = [*shares["all"], *shares["context_all"], (made.kinds == HARD).mean(), by_anchors, in_ssp.mean()]
    assert found == printed("D-120")


@pytest.mark.mirror
def test_share_of_truncated_examples(wikipedia):
    union = Sampler(wikipedia, "all", max_tokens=100_000)
    made = union.spans(np.arange(len(union)))
    longer = join_spans(union, made).lengths > 128
    found = [longer.mean(), *(longer[made.members == member].mean() for member in range(3))]
    assert found == printed("D-06")


@pytest.mark.mirror
def test_spans_that_are_longer_and_shorter(wikipedia):
    shares = []
    for lengths in (None, "even"):
        sampler = Sampler(wikipedia, "ssp", lengths=lengths)
        a, b = np.diff(sampler.spans(np.arange(0, len(sampler), 5)).ranges).sum((2, 3)).T
        shares += [(b > a).mean(), (b < a).mean()]
    assert shares == printed("D-130")


@pytest.mark.mirror
def test_groups_with_the_same_negative_twice(wikipedia):
    """D-154: fewer than one in 1,000."""
    sampler = Sampler(wikipedia, "ssp")
    made = sampler.spans(np.arange(len(sampler)))
    negatives = made.ranges[made.labels == 0].reshape(len(sampler) // 5, 4, -1)
    assert sum(len(np.unique(group, axis=0)) < 4 for group in negatives) < len(negatives) / 1000


def test_what_is_said_of_re_ranking_on_wikiqa_is_so():
    """D-65: of the printed means of whole lists (table 1) and of re-ranked ones (table 7)."""
    rows = papers.read("joint_inference")["rows"]
    alike = {}
    for head in ("ie_k", "ae_k"):
        whole, best = (rows[f"joint_mspp_{head}{end}"]["published"]["wikiqa"] for end in ("", "_top_5"))
        mean = lambda cell: cell[0] if isinstance(cell, list) else cell
        alike[head] = {metric for metric in whole if mean(whole[metric]) == mean(best[metric])}
    assert alike == {"ie_k": {"p@1", "map", "mrr"}, "ae_k": {"map"}}
    assert "IEk has the same three means in both, and AEk the same MAP" in re.search(r"^\| \[D-65\].*", PAGE, re.MULTILINE)[0]


def test_the_records_with_all_scores_are_those_that_the_page_names():
    """D-27: all of trained networks; of untrained encoders at budget small the fewest."""
    lines = records.records("asbert", runs_dir="no runs")
    untrained = np.array([record["settings"]["architecture"] == "untrained" for record in lines.record])
    has_all = np.array(["distance" in record.get("readouts", {}) for record in lines.record])
    assert has_all[~untrained].all() and 0 < has_all[untrained & (lines.budget == "small")].mean() < 0.5


@pytest.mark.mirror
def test_what_openings_tell(wikipedia):
    apart, of_negatives = {}, {}
    for name in ("nsp", "sop", "ssp", "sdc", "dpc", "dslc"):
        sampler = Sampler(wikipedia, name)
        made = sampler.spans(np.arange(min(len(sampler), AS_MANY)))
        opens = np.isin(made.ranges[:, 1, 0, 0], wikipedia.paragraphs)
        apart[name], of_negatives[name] = roc_auc_score(made.labels, ~opens), opens[made.labels == 0].mean()
        assert opens[made.labels == 1].any() == (name not in ("nsp", "sop"))
    assert [of_negatives["nsp"], of_negatives["sop"], *apart.values()] == printed("D-121")
