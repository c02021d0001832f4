"""Runs that were made twice, and questions about articles of the corpus: what is compared, and the tables, counted again."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aslab import repeats, rundir
from aslab.analysis import equal_runs, overlap
from asutil.io import disk
from asutil.metrics.significance import paired_bootstrap

from ..made_up import PAPER, commit, record

pytestmark = pytest.mark.slow

ROOT = rundir.root()


def made(seed, mean, day, row="roberta_ssp", drawn=0, **settings):
    """A committed record of 40 questions, which was made on a day."""
    given = {"seed": seed, "precision": "bf16", **settings}
    one = record(row, "wikiqa", "small", seed, mean, given, paper=PAPER, created=f"2026-01-{day:02}T00:00:00+00:00")
    return one | {"per_question": [[name, *np.roll(rest, drawn).tolist()] for name, *rest in one["per_question"]], "earlier": []}


def repeat(folder, *records):
    for one in records:
        path = repeats.path_of(one, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write_json(path, one)


def shown(folder):
    return [
        (pair.row, pair.seeds, [[line.record["created"][8:10] for line in side.itertuples()] for side in (pair.later, pair.before)])
        for pair in equal_runs.pairs(PAPER, folder)
    ]


@pytest.mark.parametrize(
    ("committed", "repeated", "expected"),
    [
        ([made(0, 0.5, 9)], [], []),
        ([made(0, 0.5, 9)], [made(0, 0.6, 1, precision="fp32", workers=3)], [([0], [["09"], ["01"]])]),
        ([made(0, 0.5, 9)], [made(0, 0.6, 12)], [([0], [["12"], ["09"]])]),  # published later, as a repeat
        ([made(0, 0.5, 9)], [made(0, 0.6, 1, epochs=9)], []),  # other settings
        ([made(0, 0.5, 9)], [made(0, 0.5, 9)], []),  # one run, twice in the folder
        ([made(0, 0.5, 9)], [made(1, 0.6, 1)], []),  # another seed
        ([made(0, 0.5, 9)], [made(0, 0.6, 1, row="roberta_sp")], []),  # another row
        (
            [made(0, 0.5, 9), made(1, 0.5, 8), made(2, 0.5, 7)],
            [made(0, 0.6, 3), made(1, 0.6, 2), made(0, 0.4, 1)],
            [([0, 1], [["09", "08"], ["03", "02"]]), ([0], [["03"], ["01"]])],
        ),
        (
            [made(0, 0.5, 9)],
            [made(0, 0.6, 5), made(0, 0.6, 2, epochs=9), made(0, 0.4, 1, epochs=9)],
            [([0], [["09"], ["05"]]), ([0], [["02"], ["01"]])],
        ),
    ],
)
def test_two_makings_with_equal_settings_are_a_pair(tmp_path, committed, repeated, expected):
    commit(tmp_path, *committed)
    repeat(tmp_path, *repeated)
    assert shown(tmp_path) == [("roberta_ssp", *pair) for pair in expected]


def test_a_record_without_a_time_comes_before_all_others(tmp_path):
    undated = made(0, 0.5, 9)
    del undated["created"]
    commit(tmp_path, undated)
    repeat(tmp_path, made(0, 0.6, 1))
    (pair,) = equal_runs.pairs(PAPER, tmp_path)
    assert [["created" in line.record for line in side.itertuples()] for side in (pair.later, pair.before)] == [[True], [False]]


def test_a_file_among_the_repeats_has_the_name_of_its_record(tmp_path):
    repeat(tmp_path, made(0, 0.5, 1))
    path = repeats.path_of(made(0, 0.5, 1), tmp_path)
    path.rename(path.with_name("wikiqa-small-seed1-20260101T000000.json"))
    with pytest.raises(ValueError, match=r"roberta_ssp/wikiqa-small-seed1-20260101T000000.json has the record of wikiqa-small-seed0-2026"):
        equal_runs.pairs(PAPER, tmp_path)


def test_one_seed_needs_rows_whose_seeds_vary(tmp_path):
    """The bootstrap of one seed knows nothing of seeds; the combined test takes what seeds add from other rows, or is not made."""
    commit(tmp_path, made(0, 0.8, 9))
    repeat(tmp_path, made(0, 0.5, 1))
    (pair,) = equal_runs.pairs(PAPER, tmp_path)
    both, alone = equal_runs.compare(pair, "p@1", tmp_path)
    values = [[line[1] for line in one["per_question"]] for one in (made(0, 0.8, 9), made(0, 0.5, 1))]
    assert both is None and alone == paired_bootstrap(*values) and alone.sign == 1
    commit(tmp_path, *(made(seed, mean, 9, "roberta_sp") for seed, mean in enumerate((0.2, 0.5, 0.8))))
    both, again = equal_runs.compare(pair, "p@1", tmp_path)
    assert again == alone and both.difference == pytest.approx(0.3) and both.sign == 0  # seeds differ by more


@pytest.fixture
def beside(mirror, monkeypatch, tmp_path):
    """Writes a corpus into a mirror that has the data sets, too."""

    def write(**columns):
        (tmp_path / "microsoft").symlink_to(Path(mirror) / "microsoft")
        (tmp_path / "local/some").mkdir(parents=True)
        for name in ("nq_sentences", "selqa"):
            (tmp_path / "local" / name).symlink_to(Path(mirror) / "local" / name)
        pd.DataFrame(columns).to_parquet(tmp_path / "local/some/train.parquet")
        monkeypatch.setenv("ASUTIL_MIRROR", str(tmp_path))

    return write


def test_questions_about_articles_of_a_corpus_are_those_with_its_titles(beside, mirror):
    """Of the real test sets, against a loop over their rows; a title counts in any case, and SelQA's without its section."""
    files = {"wikiqa": "microsoft/wiki_qa/test", "nq_sentences": "local/nq_sentences/test", "selqa": "local/selqa/test"}
    tables = {name: pd.read_parquet(Path(mirror) / f"{file}.parquet") for name, file in files.items()}
    titles = {title.split(" / ")[0] for table in tables.values() for title in sorted(table.document_title.unique())[::5]}
    beside(title=[title.upper() for title in sorted(titles)], text=["A text."] * len(titles))
    about = overlap.record("local/some")["datasets"]
    for name, table in tables.items():
        rows = table.groupby("question_id").agg({"document_title": "first", "label": ["sum", "size"]})
        rows.columns = ["title", "right", "all"]
        known = rows.title.str.split(" / ").str[0].isin(titles) & rows.right.gt(0) & rows.right.lt(rows["all"])
        assert set(about[name]["in_corpus"]) == set(rows.index[known]) and known.sum() > 20
    assert [of["questions"] for of in about.values()] == [237, 1_231, 1_003]


def test_a_corpus_without_titles_is_refused(beside):
    beside(text=["A text."])
    with pytest.raises(ValueError, match="local/some: expected a column title, got text"):
        overlap.record("local/some")
