"""Runs that were made twice: which two are compared, and the table of them, counted again."""

import re

import numpy as np
import pytest
from bs4 import BeautifulSoup
from pages import repeats as page

from aslab import repeats
from asutil.io import disk, rundir
from asutil.metrics.significance import paired_bootstrap
from tests.trust import pages

from ..made_up import PAPER, commit, record

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
        for pair in repeats.pairs(PAPER, folder)
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


def test_a_file_among_the_repeats_has_the_name_of_its_record(tmp_path):
    repeat(tmp_path, made(0, 0.5, 1))
    path = repeats.path_of(made(0, 0.5, 1), tmp_path)
    path.rename(path.with_name("wikiqa-small-seed1-20260101T000000.json"))
    with pytest.raises(ValueError, match=r"roberta_ssp/wikiqa-small-seed1-20260101T000000.json has the record of wikiqa-small-seed0-2026"):
        repeats.pairs(PAPER, tmp_path)


def test_one_seed_needs_rows_whose_seeds_vary(tmp_path):
    """The bootstrap of one seed knows nothing of seeds; the combined test takes what seeds add from other rows, or is not made."""
    commit(tmp_path, made(0, 0.8, 9))
    repeat(tmp_path, made(0, 0.5, 1))
    (pair,) = repeats.pairs(PAPER, tmp_path)
    both, alone = repeats.compare(pair, "p@1", tmp_path)
    values = [[line[1] for line in one["per_question"]] for one in (made(0, 0.8, 9), made(0, 0.5, 1))]
    assert both is None and alone == paired_bootstrap(*values) and alone.sign == 1
    commit(tmp_path, *(made(seed, mean, 9, "roberta_sp") for seed, mean in enumerate((0.2, 0.5, 0.8))))
    both, again = repeats.compare(pair, "p@1", tmp_path)
    assert again == alone and both.difference == pytest.approx(0.3) and both.sign == 0  # seeds differ by more


def test_the_table_says_what_the_records_give_and_a_changed_digit_is_noticed():
    """Every pair of the committed records, found and tested again without `aslab` and `asutil`."""
    html = page.repeats_table()
    block = lambda html: BeautifulSoup(f'<div data-as2="repeats">{html}</div>', "html.parser").div
    assert pages.traced_block(ROOT, "page", block(html)) > 200
    in_cells = [match.start() for match in re.finditer(r"(?<=\d\.)\d", html)]
    counts = [match.start() for match in re.finditer(r"\d(?= of \d)", html)]
    assert len(counts) == 2
    for place in [*in_cells[::29], *counts]:
        other = html[:place] + str((int(html[place]) + 1) % 10) + html[place + 1 :]
        with pytest.raises(pages.Broken, match="the page says"):
            pages.traced_block(ROOT, "page", block(other))
