"""Documents -> clean paragraphs -> sentences -> a token index on disk, in one folder or in shards, and the tokenizers that fit it.

The embedded corpus, the docstrings of installed packages, is read here too.
"""

from ..lazy import names_of

__getattr__ = names_of(
    __name__,
    {
        "sources": ("documents", "read_titles"),
        "index": ("Corpus", "EmptyCorpus", "build", "prepare", "tokenizer_hash"),
        "tokenizers": ("load_tokenizer", "tokenizer_for", "train_tokenizer"),
    },
)
