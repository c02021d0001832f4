"""The embedded data: documents, questions, claims and evidence from docstrings of installed packages, and a backbone trained on them.

Rooms above ask for it by entry points (`asutil.plugins`, group `asutil.pydocs`), as they would for another package.
"""

from ..lazy import names_of

__getattr__ = names_of(__name__)
