"""What a notebook shows: plots, ranked lists and verdicts as HTML tables, principal components."""

from asutil.lazy import names_of

__getattr__ = names_of(__name__)
