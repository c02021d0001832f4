import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asutil.draws import below, keyed, mix, permuted


def slow_mix(x):
    """splitmix64's finaliser with Python's own integers."""
    whole = (1 << 64) - 1
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & whole
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & whole
    return x ^ x >> 31


@given(st.integers(1, 3000), st.integers(0, 2**32))
def test_permuted_is_a_permutation_of_any_size(size, seed):
    assert sorted(permuted(np.arange(size), size, keyed(seed)).tolist()) == list(range(size))


@given(st.integers(2, 500), st.integers(0, 1000))
def test_permuted_one_number_at_a_time(size, seed):
    whole = permuted(np.arange(size), size, keyed(seed))
    assert [int(permuted(np.array([n]), size, keyed(seed))[0]) for n in range(0, size, 37)] == whole[::37].tolist()


def test_below_is_uniform():
    counts = np.bincount(below(keyed(0, np.arange(70_000)), 7), minlength=7)
    expected = 10_000
    assert ((counts - expected) ** 2 / expected).sum() < 22.5  # chi square, 6 degrees of freedom, p = .001


def test_permutation_shuffles_neighbours():
    order = permuted(np.arange(10_000), 10_000, keyed(5))
    assert abs(np.corrcoef(np.arange(10_000), order)[0, 1]) < 0.05
    assert np.abs(np.diff(order)).mean() > 3000  # a third of the size in a random order


def slow_keyed(*words):
    """`keyed` of plain integers with Python's own integers."""
    whole, key = (1 << 64) - 1, 0
    for word in words:
        key = slow_mix((key + word + 1) * 0x9E3779B97F4A7C15 & whole)
    return key


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=4), st.integers(0, 2**63 - 1))
def test_keys_equal_python_integers_whether_words_are_scalars_or_arrays(words, last):
    expected = slow_keyed(*words, last)
    assert int(keyed(*words, last)) == expected
    assert keyed(*words, np.array([last, last])).tolist() == [expected, expected]
    assert keyed(np.array(words[:1]), *words[1:], last).tolist() == [expected]


def test_mix_of_a_large_array_is_that_of_each_number():
    many = np.arange(100_000, dtype=np.uint64)
    assert mix(many)[[0, 32_767, 32_768, 99_999]].tolist() == [slow_mix(n) for n in (0, 32_767, 32_768, 99_999)]
