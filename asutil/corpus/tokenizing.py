"""Many texts -> token ids, the same as the tokenizer's own, without tokenising a word twice; and the lengths that truncation leaves."""

import itertools

import numpy as np

BLOCK = 1 << 15  # texts whose different words are tokenised together
CHUNK = 1 << 10  # words that are tokenised as one sequence


def gathered(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Indices of many ranges, one after the other.

    Example:
        >>> gathered(np.array([5, 0]), np.array([2, 3]))
        array([5, 6, 0, 1, 2])
    """
    indices = np.repeat(starts - lengths.cumsum() + lengths, lengths)
    indices += np.arange(len(indices))
    return indices


def tokenized(backend, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of all texts, one text after the other and without special tokens, and how many each has.

    Where no token crosses a space, the different words are tokenised once and their ids put together.
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
    """Whether the ids of a text are the joined ids of its words, judged by the tokenizer's normalizer and pre-tokenizer."""
    from tokenizers import normalizers, pre_tokenizers

    words = backend.pre_tokenizer
    byte_level = isinstance(words, pre_tokenizers.ByteLevel) and words.add_prefix_space and words.use_regex
    by_character = backend.normalizer is None or isinstance(backend.normalizer, normalizers.BertNormalizer)
    added = backend.get_added_tokens_decoder().values()
    as_text = backend.encode_special_tokens and all(token.special for token in added)
    return by_character and as_text and (byte_level or isinstance(words, pre_tokenizers.BertPreTokenizer))


def _whole(backend, texts):
    encoded = [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]
    return np.fromiter(itertools.chain.from_iterable(encoded), np.int32), np.fromiter(map(len, encoded), np.int64)


def _by_words(backend, texts):
    # An empty word is a space that is not between two words: such a text is one word.
    parts = [[text] if "" in words else words for text, words in ((text, text.split(" ")) for text in texts)]
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

    The longer part is cut until both are equal; then each has half, and the one that was longer has the odd token.
    Shapes: (B,), (B,) -> (B,), (B,)

    Example:
        >>> [lengths.tolist() for lengths in longest_first(np.array([3, 9, 9]), np.array([3, 3, 8]), 7)]
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
    """Lengths of a question, a candidate and a context cut to `room` tokens in all: the context is cut first, then the candidate.

    Shapes: (B, P) -> (B, P)

    Example:
        >>> last_first(np.array([[3, 4, 5], [3, 9, 5], [9, 9, 9]]), 8).tolist()
        [[3, 4, 1], [3, 5, 0], [8, 0, 0]]
    """
    return np.diff(np.minimum(lengths.cumsum(-1), room), axis=-1, prepend=0)
