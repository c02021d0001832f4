"""Counter-based random numbers: a draw is a function of its key alone, so any example can be made again alone, in any order.

`keyed` makes a key from (seed, epoch, group, draw ...); there is no state and no order. The mixer is that of splitmix64.
"""

import hashlib

import numpy as np

_GAMMA = 0x9E3779B97F4A7C15
_FACTOR_1 = 0xBF58476D1CE4E5B9
_FACTOR_2 = 0x94D049BB133111EB


def mix(x: np.ndarray) -> np.ndarray:
    """A bijection of 64-bit integers whose output bits each depend on every input bit (splitmix64).

    Example:
        >>> mix(np.array([1, 2], np.uint64))
        array([ 6238072747940578789, 15839785061582574730], dtype=uint64)
    """
    x = np.array(x, np.uint64)
    x ^= x >> 30
    x *= _FACTOR_1
    x ^= x >> 27
    x *= _FACTOR_2
    x ^= x >> 31
    return x


def keyed(*words) -> np.ndarray:
    """One 64-bit key from integers or integer arrays that broadcast together; order matters. Shapes: (...,) each -> (...,)"""
    key = np.zeros((), np.uint64)
    with np.errstate(over="ignore"):  # single words warn, arrays do not
        for word in words:
            key = mix((key + np.asarray(word).astype(np.uint64)) * _GAMMA + _GAMMA)
    return key


def below(key: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """An integer in [0, limit) from each key, limit < 2^32: the upper 32 bits, scaled.

    Example:
        >>> bool((below(keyed(0, np.arange(1000)), 7) < 7).all())
        True
    """
    high = np.asarray(key) >> np.uint64(32)
    return ((high * np.asarray(limit).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def permuted(numbers: np.ndarray, size: int, key) -> np.ndarray:
    """A keyed permutation of [0, size), evaluated at `numbers`: a Feistel network that walks until it is back in range.

    Nothing is stored: position n of the shuffled order is computed without the others.

    Example:
        >>> sorted(permuted(np.arange(10), 10, keyed(3)).tolist())
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    half = np.uint64(max(1, (max(size - 1, 1).bit_length() + 1) // 2))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = [keyed(key, turn) for turn in range(4)]
    positions = np.asarray(numbers).astype(np.uint64)
    outside = np.arange(positions.size)
    while outside.size:
        left, right = positions[outside] >> half, positions[outside] & mask
        for turn in keys:
            left, right = right, left ^ (mix(right + turn) & mask)
        positions[outside] = (left << half) | right
        outside = outside[positions[outside] >= size]
    return positions.astype(np.int64)


def choose(question_ids, limit: int, seed: int = 0) -> list[str]:
    """At most `limit` of the ids: those with the lowest hashes, keyed by the seed. The order of the ids does not matter."""
    return sorted(map(str, question_ids), key=lambda name: text_hash(f"{seed} {name}", size=8))[:limit]


def text_hash(text: str, purpose: str = "", size: int = 7) -> int:
    """A hash of a text as an integer of `size` bytes, another one for every purpose (BLAKE2b with the purpose as its key).

    Example:
        >>> text_hash("a question", "limit") == text_hash("a question", "split")
        False
    """
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size, key=purpose.encode()).digest())
