"""Parts under a budget of tokens: every row once, of like lengths, no part over the budget."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asutil.inputs.cut import cut, cut_evenly

ROWS = st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 6)), max_size=60)


@given(ROWS, st.integers(1, 10_000))
def test_parts_are_of_like_length_and_bounded(rows, budget):
    lengths, texts = ([row[n] for row in rows] for n in (0, 1))
    for each in (1, 3, texts):
        counts = np.broadcast_to(each, len(rows))
        parts = cut(lengths, budget, each)
        order = [n for part in parts for n in part]
        assert order == sorted(range(len(rows)), key=lambda n: -lengths[n])
        assert all(len(part) == 1 or counts[part].sum() * lengths[part[0]] <= budget for part in parts)
        for part, following in itertools.pairwise(parts):
            assert (counts[part].sum() + counts[following[0]]) * lengths[part[0]] > budget, "one row more would not have fit"


@given(ROWS.filter(len), st.integers(1, 10_000))
def test_even_parts_have_about_the_same_numbers_of_tokens(rows, budget):
    lengths = np.array([length for length, _ in rows])
    parts = cut_evenly(lengths, budget)
    assert np.concatenate(parts).tolist() == sorted(range(len(rows)), key=lambda n: -lengths[n])
    aim = lengths.sum() / -(-lengths.sum() // budget)
    assert all(lengths[part].sum() < aim + lengths.max() for part in parts)
