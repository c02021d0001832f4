"""Indexes of real text."""

from functools import cache

import pytest

from asutil import corpus
from asutil.corpus import tokenizers


@pytest.fixture(scope="session")
def wikipedia(mirror, tmp_path_factory):
    """(options of `corpus.build`) -> an index of Wikipedia, built once for the same options."""
    tokenizer = tokenizers.load_tokenizer("ibm-granite/granite-embedding-30m-english")
    made = lambda **options: corpus.build(
        corpus.documents("local/wikipedia_small"), tokenizer, tmp_path_factory.mktemp("wikipedia") / "index", **options
    )
    return cache(made)
