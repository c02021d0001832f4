"""Many texts -> token ids: the same ids as the tokenizer's own, without tokenising the same word twice; and what a cut leaves of them."""

import itertools

import numpy as np

BLOCK, CHUNK = 1 << 15, 1 << 10  # texts whose words are told apart together; words that are handed over as one sequence


def gathered(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Indices of many ranges, one after the other.

    Example:
        >>> gathered(np.array([5, 0]), np.array([2, 3]))
        array([5, 6, 0, 1, 2])
    """
    found = np.repeat(starts - lengths.cumsum() + lengths, lengths)
    found += np.arange(len(found))
    return found


def tokenized(backend, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of all texts, one text after the other and without special tokens, and how many each has.

    Where a tokenizer never joins what a space parts, the different words are tokenised once and their ids put together.
    Args:
        backend: a `tokenizers.Tokenizer`; its truncation and padding are switched off.
    Shapes: N texts -> (T,) int32, (N,) int64
    """
    backend.no_truncation()
    backend.no_padding()
    tokenize = _by_words if _parts_at_spaces(backend) else _whole
    pieces = [tokenize(backend, texts[start : start + BLOCK]) for start in range(0, len(texts), BLOCK)]
    ids, sizes = zip(*pieces) if pieces else ((), ())
    return np.concatenate([np.zeros(0, np.int32), *ids]), np.concatenate([np.zeros(0, np.int64), *sizes])


def _parts_at_spaces(backend) -> bool:
    """Whether the ids of a text are the ids of its words, joined: by what the tokenizer's own steps do at a space."""
    from tokenizers import normalizers, pre_tokenizers

    first, added = backend.pre_tokenizer, backend.get_added_tokens_decoder().values()
    byte_level = isinstance(first, pre_tokenizers.ByteLevel) and first.add_prefix_space and first.use_regex
    known = backend.normalizer is None or isinstance(backend.normalizer, normalizers.BertNormalizer)
    as_text = backend.encode_special_tokens and all(token.special for token in added)
    return known and as_text and (byte_level or isinstance(first, pre_tokenizers.BertPreTokenizer))


def _whole(backend, texts):
    encoded = [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]
    return np.fromiter(itertools.chain.from_iterable(encoded), np.int32), np.fromiter(map(len, encoded), np.int64)


def _by_words(backend, texts):
    split = (text.split(" ") for text in texts)
    parts = [
        [text] if "" in words else words for text, words in zip(texts, split)
    ]  # "": spaces that are not between two words
    row_of = {}
    rows = np.array([row_of.setdefault(word, len(row_of)) for words in parts for word in words], np.int64)
    words = list(row_of)
    chunks = [words[start : start + CHUNK] for start in range(0, len(words), CHUNK)]
    encoded = backend.encode_batch(chunks, is_pretokenized=True, add_special_tokens=False)
    ids = np.concatenate([np.array(encoding.ids, np.int32) for encoding in encoded])
    owners = [np.array(encoding.word_ids, np.int64) for encoding in encoded]
    sizes = np.concatenate([np.bincount(owner, minlength=len(chunk)) for owner, chunk in zip(owners, chunks)])
    ends = np.concatenate([[0], sizes[rows].cumsum()])[np.cumsum([0, *map(len, parts)])]
    return ids[gathered((sizes.cumsum() - sizes)[rows], sizes[rows])], np.diff(ends)


def longest_first(first: np.ndarray, second: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of two parts after `truncation="longest_first"` to `room` tokens in all, as the tokenizers library does it.

    The longer part gives way until both are equal; then each has half, the odd token going to the one that was longer.
    Shapes: (B,), (B,) -> (B,), (B,)

    Example:
        >>> [kept.tolist() for kept in longest_first(np.array([3, 9, 9]), np.array([3, 3, 8]), 7)]
        [[3, 4, 4], [3, 3, 3]]
    """
    short, long = np.minimum(first, second), np.maximum(first, second)
    over = first + second > room
    half = room // 2
    kept_short = np.where(over & (short > half), half, short)
    kept_long = np.where(over, room - kept_short, long)
    first_is_long = first > second
    return np.where(first_is_long, kept_long, kept_short), np.where(first_is_long, kept_short, kept_long)


def last_first(lengths: np.ndarray, room: int) -> np.ndarray:
    """Lengths of a question, a candidate and a context cut to `room` tokens in all: the context gives way first, then the candidate.

    Shapes: (B, P) -> (B, P)

    Example:
        >>> last_first(np.array([[3, 4, 5], [3, 9, 5], [9, 9, 9]]), 8).tolist()
        [[3, 4, 1], [3, 5, 0], [8, 0, 0]]
    """
    return np.diff(np.minimum(lengths.cumsum(-1), room), axis=-1, prepend=0)
