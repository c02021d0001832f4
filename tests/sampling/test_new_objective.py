"""An objective that the project does not have: one class for its rule and one for its laws are all that it needs."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aslab import own, parameters
from asutil import sampling
from asutil.sampling import OBJECTIVES, Sampler
from asutil.sampling.formulas import span
from asutil.sampling.objective import Objective, register
from tests.sampling.objectives.psd import psd
from tests.trust import laws, must

ROOT = Path(__file__).resolve().parents[2]
NUMBER = max(rule.number for rule in OBJECTIVES.values()) + 1


class npp(Objective):
    """Next Paragraph Prediction: is the paragraph B the one after A?"""

    paragraphs = 2

    @staticmethod
    def anchors(corpus, paragraphs):
        last = corpus.documents[corpus.document_of[paragraphs] + 1] - 1
        return paragraphs < last

    @staticmethod
    def lengths(key):
        zeros = np.zeros(np.shape(key), np.int64)
        return zeros, zeros

    @staticmethod
    def needs(a, b):
        return a + 1, a + 1

    @staticmethod
    def positive(sampler, p, start, n, a, b, key):
        following = sampler.corpus.paragraphs[p + 2]
        return span(start, start + n), span(start + n, following), p + 1

    @staticmethod
    def other(start, n, a, b, key):
        return span(start, start + n)


class nppLaw(psd):
    hard = True

    def check(self, text, positive, example, before):
        anchor, other = positive.paragraph[0], example.paragraph[1]
        must((other == anchor + 1) == (example is positive), f"B of a positive is the next paragraph: {anchor}, {other}")
        return super().check(text, positive, example, before)

    def has_positive(self, text, paragraph):
        return paragraph != text.inside[text.of[paragraph]][-1]


@pytest.fixture
def restored():
    before = dict(OBJECTIVES)
    yield
    OBJECTIVES.clear()
    OBJECTIVES.update(before)


@pytest.fixture
def new(restored, monkeypatch):
    register(NUMBER)(npp)
    monkeypatch.setitem(laws.LAWS, "npp", nppLaw())


@pytest.mark.slow
def test_a_new_objective_keeps_the_general_laws(new, monkeypatch, corpus):
    monkeypatch.setattr(laws.sampling, "OBJECTIVES", ("npp",))
    monkeypatch.setattr(laws, "LAWS", {"npp": laws.LAWS["npp"]})
    assert laws.check(60, 3)["npp"] > 100
    assert laws.check_epoch(corpus, "npp") > 20
    assert {example.kind for group in laws.groups(Sampler(corpus, "npp"), "npp") for example in group[1:]} == {"hard", "easy"}


def test_a_new_objective_is_accepted_wherever_objectives_are_named(new, tmp_path):
    assert list(sampling.OBJECTIVES)[-1] == "npp"
    assert parameters.settings("pretrain", {"objective": "npp"})["max_tokens"]
    (tmp_path / "texts.jsonl").touch()
    texts = str(tmp_path / "texts.jsonl")
    made = own.chain({"objective": "npp", "corpus": texts, "questions": texts})
    assert made.pretraining.parameters["objective"] == "npp"


@pytest.mark.slow
def test_it_is_one_file_of_the_project(new, corpus, tmp_path):
    """A copy of the project that has one file more makes the same examples."""
    shutil.copytree(ROOT / "asutil", tmp_path / "asutil", ignore=shutil.ignore_patterns("__pycache__"))
    imports = "import numpy as np\n\nfrom ..formulas import span\nfrom ..objective import Objective, register\n\n\n"
    rule = f"{imports}@register({NUMBER})\n{inspect.getsource(npp)}"
    (tmp_path / "asutil" / "sampling" / "objectives" / "npp.py").write_text(rule, encoding="utf-8")
    made = "Sampler(Corpus.open(sys.argv[1]), 'npp', 3).spans(range(60)).ranges.tolist()"
    code = f"import sys; from asutil.corpus import Corpus; from asutil.sampling import Sampler; print({made})"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code, str(corpus.folder)]
    shown = subprocess.check_output(command, text=True, cwd=tmp_path, env=environment)
    assert shown == f"{Sampler(corpus, 'npp', 3).spans(range(60)).ranges.tolist()}\n"


def test_its_names_are_those_of_the_registry():
    with pytest.raises(ValueError, match="objective of pretrain is one of ssp, sp, .*, mspp, mlm; got 'npp'"):
        parameters.settings("pretrain", {"objective": "npp"})


def test_a_positive_that_leaves_the_document_is_refused(new, corpus, monkeypatch):
    monkeypatch.setattr(npp, "anchors", lambda corpus, paragraphs: paragraphs < len(corpus.paragraphs) - 2)
    sampler = Sampler(corpus, "npp")
    message = r"the rule of npp gives paragraph \d+ a positive, \d+, that is in another document: its `anchors`"
    with pytest.raises(ValueError, match=message):
        sampler.spans(np.arange(len(sampler)))


@pytest.mark.parametrize(("number", "name"), [(0, "npp"), (99, "ssp")])
def test_a_number_or_a_name_is_given_once(restored, number, name):
    message = "npp, number 0: ssp has this number" if number == 0 else "two objectives have the key 'ssp'"
    with pytest.raises(ValueError, match=message):
        register(number, name)(type("npp", (Objective,), {}))
    assert "npp" not in OBJECTIVES and OBJECTIVES["ssp"].__name__ == "ssp"
