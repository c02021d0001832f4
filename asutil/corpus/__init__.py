"""Documents -> clean paragraphs -> sentences -> a token index on disk, in one folder or in shards, and the tokenizers that fit it.

The embedded corpus, the docstrings of installed packages, is read here too.
"""

from ..lazy import names_of

__getattr__ = names_of(__name__)
