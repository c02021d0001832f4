"""The figures on the page of deviations are measured again, from the slice of Wikipedia that it names."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from asutil import corpus as c
from asutil.corpus import tokenizers
from asutil.sampling import Sampler, objectives
from asutil.sampling.spans import HARD

PAGE = (Path(__file__).resolve().parents[2] / "book" / "deviations.md").read_text("utf-8")
pytestmark = pytest.mark.mirror
AS_MANY = 100_000  # examples of each


def printed(number: str):
    """The measured figures of one entry, in its order."""
    entry = re.search(rf"^\*\*{number} ·.*?(?=^\(D-|^## )", PAGE, re.MULTILINE | re.DOTALL)[0]
    figures = re.findall(r"(?<![\d.])\.\d\d(?! is nothing)", entry)
    return pytest.approx([float(figure) for figure in figures], abs=0.01)


@pytest.fixture(scope="module")
def wikipedia(mirror, tmp_path_factory):
    tokenizer = tokenizers.load_tokenizer("ibm-granite/granite-embedding-30m-english")
    return c.build(c.documents("local/wikipedia_small"), tokenizer, tmp_path_factory.mktemp("wikipedia") / "index")


def test_shares_of_all(wikipedia):
    union, shares = Sampler(wikipedia, "all"), {}
    for name, members in objectives.UNIONS.items():
        anchors = np.array([len(Sampler(wikipedia, member).anchors) for member in members])
        shares[name] = anchors / anchors.sum()
    made = union.spans(np.arange(len(union)))
    in_ssp = Sampler(wikipedia, "ssp").spans(np.arange(20_000)).kinds == HARD
    hard = [(made.kinds == HARD)[made.members == member].mean() for member in range(3)]
    by_anchors = (shares["all"] * hard).sum()
    found = [*shares["all"], *shares["context_all"], (made.kinds == HARD).mean(), by_anchors, in_ssp.mean()]
    assert found == printed("D-120")


def test_share_of_truncated_examples(wikipedia):
    union = Sampler(wikipedia, "all", max_tokens=100_000)
    made = union.spans(np.arange(len(union)))
    longer = union.joined(made).lengths > 128
    found = [longer.mean(), *(longer[made.members == member].mean() for member in range(3))]
    assert found == printed("D-06")


def test_spans_that_are_longer_and_shorter(wikipedia):
    sampler = Sampler(wikipedia, "ssp")
    a, b = np.diff(sampler.spans(np.arange(0, len(sampler), 5)).ranges).sum((2, 3)).T
    assert [(b > a).mean(), (b < a).mean()] == printed("D-130")


def test_what_openings_tell(wikipedia):
    apart, of_negatives = {}, {}
    for name in ("nsp", "sop", "ssp", "sdc", "dpc", "dslc"):
        sampler = Sampler(wikipedia, name)
        made = sampler.spans(np.arange(min(len(sampler), AS_MANY)))
        opens = np.isin(made.ranges[:, 1, 0, 0], wikipedia.paragraphs)
        apart[name], of_negatives[name] = roc_auc_score(made.labels, ~opens), opens[made.labels == 0].mean()
        assert opens[made.labels == 1].any() == (name not in ("nsp", "sop"))
    assert [of_negatives["nsp"], of_negatives["sop"], *apart.values()] == printed("D-121")
