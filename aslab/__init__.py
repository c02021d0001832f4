"""The lab around `asutil`: runs and their parameters, papermill and torchrun, the plans of the papers, records, and what notebooks show.

Nothing in `asutil` imports it.
"""

from asutil.lazy import names_of

__getattr__ = names_of(__name__)
