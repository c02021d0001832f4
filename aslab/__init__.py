"""The lab around `asutil`: runs and their parameters, papermill, torchrun, plans of the papers, records, plots.

Nothing in `asutil` imports it.
"""

from asutil.lazy import names_of

__getattr__ = names_of(__name__)
