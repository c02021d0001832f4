"""Labelled data: questions with candidate answers, claims with evidence, questions about long contexts with evidence.

Every loader checks the published counts and names the file and the row of what it refuses.
"""

from ..lazy import names_of

__getattr__ = names_of(__name__)
