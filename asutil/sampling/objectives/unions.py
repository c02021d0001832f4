"""Several objectives under one head, by the settings of the first."""

from ..objective import register
from ..union import UnionSampler
from .sdc import sdc
from .ssp import ssp


@register(5, "all")
class All(ssp):
    """ssp, sp and psd together.

    Paper: sentence_objectives, section 5.2.
    """

    sampler = UnionSampler
    members = ("ssp", "sp", "psd")


@register(9, "context_all")
class ContextAll(sdc):
    """sdc, dpc and dslc together.

    Paper: contextual_as2, section 6.
    """

    sampler = UnionSampler
    members = ("sdc", "dpc", "dslc")
