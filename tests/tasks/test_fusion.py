"""Reciprocal rank fusion against a slow loop over questions, rankers and candidates."""

import numpy as np
import pandas as pd
import pytest

from aslab import identity, rundir
from asutil.data.candidates import Candidate, Question
from asutil.tasks import base, rankers


class Fixed(base.BaseRanker):
    """A ranker whose scores are written in the candidates' texts: the number at one place."""

    def __init__(self, at):
        self.at = at

    def _window(self, questions, bar):
        pairs = base.pairs_of(questions)
        return base.rows_of(pairs).assign(score=[np.float32(candidate.text.split()[self.at]) for _, candidate in pairs])

    def _identity(self):
        return f"fixed-{self.at}"


def questions(seed=0, count=9):
    """Questions with some candidates; few different scores, so that many tie."""
    draw, made = np.random.default_rng(seed), []
    for n in range(count):
        texts = [" ".join(map(str, draw.integers(0, 4, 3))) for _ in range(draw.integers(1, 8))]
        made.append(Question(f"q{n}", f"{n} 1 2", tuple(Candidate(f"q{n}-{i}", text, i % 2, None, None) for i, text in enumerate(texts))))
    return made


def slow(given, columns):
    """1 / (60 + rank), where a candidate's rank is 1 + those above it + half of the others at its score."""
    scores = []
    for question in given:
        values = [[float(candidate.text.split()[at]) for candidate in question.candidates] for at in columns]
        for number in range(len(question.candidates)):
            parts = [(sum(v > own[number] for v in own), sum(v == own[number] for v in own) - 1) for own in values]
            scores.append(sum(1 / (60 + 1 + above + equal / 2) for above, equal in parts))
    return scores


@pytest.mark.parametrize("columns", [(0, 1), (0, 1, 2), (2,)])
def test_scores_are_the_sums_of_reciprocal_ranks(columns, tmp_path):
    given = questions()
    fused = rankers.Fusion([Fixed(at) for at in columns])
    table = fused.score(given, progress=False)
    assert table["score"].tolist() == pytest.approx(slow(given, columns), rel=1e-6)
    assert list(table) == ["question_id", "candidate_id", "label", "score"] and table["score"].dtype == np.float32
    pd.testing.assert_frame_equal(fused.score(given, progress=False, folder=tmp_path), table)
    texts = [candidate.text for candidate in given[3].candidates]
    expected = sorted(enumerate(slow(given[3:4], columns)), key=lambda pair: (-pair[1], pair[0]))
    assert [number for number, _ in fused.rank(given[3].text, texts)] == [number for number, _ in expected]


def test_rankers_are_fused_by_their_names_and_bm25_counts_words_as_it_does_alone():
    given = questions(1)
    table = rankers.load_ranker("bm25+bm25").score(given, progress=False)
    alone = rankers.load_ranker("bm25").score(given, progress=False)
    for _, own in table.assign(alone=alone["score"]).groupby("question_id"):
        order = own["alone"].rank(ascending=False)
        assert own["score"].tolist() == pytest.approx((2 / (60 + order)).tolist(), rel=1e-6)
    several = rankers.load_ranker("bm25+bm25")
    asked, texts = [q.text for q in given], [[c.text for c in q.candidates] for q in given]
    assert several.rank(asked, texts) == [several.rank(*pair) for pair in zip(asked, texts)]


def test_a_run_or_folder_may_have_a_plus_sign(tmp_path, monkeypatch):
    monkeypatch.setattr(rundir, "root", lambda: tmp_path)
    name = "finetune-a+b-0123456789ab"
    (tmp_path / "runs" / name).mkdir(parents=True)
    with pytest.raises(ValueError, match=rf"{name.replace('+', '.')} is not a finished run"):
        rankers.load_ranker(name)
    assert identity.fused(name) == [name] and identity.fused(f"bm25+{tmp_path}") == ["bm25", str(tmp_path)]
    assert identity.fused("bm25+owner/name") == ["bm25", "owner/name"] and identity.ranker_shown(name) == name


def test_a_run_may_be_a_part_of_a_fusion_by_its_name_or_its_path(tmp_path, monkeypatch):
    monkeypatch.setattr(rundir, "root", lambda: tmp_path)
    first, second = "finetune-a-0123456789ab", "finetune-b-0123456789ab"
    for name in (first, second):
        (tmp_path / "runs" / name).mkdir(parents=True)
    loaded = []
    monkeypatch.setattr(rankers, "load_ranker", lambda name, device: loaded.append(name) or rankers.Bm25())
    of_paths = [["bm25", f"runs/{first}"], [f"runs/{first}", "bm25"], [f"runs/{first}", f"runs/{second}"]]
    for parts in (["bm25", first], [first, second], *of_paths):
        loaded.clear()
        assert len(rankers._loaded("+".join(parts), None, None).rankers) == 2
        assert loaded == parts == identity.fused("+".join(parts))


def test_a_part_that_is_no_ranker_and_prompts_are_refused():
    with pytest.raises(ValueError, match=r"bm52: no such ranker.*did you mean 'bm25'"):
        rankers.load_ranker("bm25+bm52")
    with pytest.raises(ValueError, match="only an encoder of sentence-transformers takes prompts"):
        rankers.load_ranker("bm25+bm25", prompts={"query": "q: "})
    with pytest.raises(ValueError, match="takes no contexts"):
        rankers.load_ranker("bm25+bm25").rank("where", ["a", "b"], contexts=[(None, None)] * 2)
