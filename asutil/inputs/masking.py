"""Masked language modelling: the choice of masked tokens and their replacements."""

import numpy as np

from ..draws import below, mix
from .template import Template

MASKING = np.uint64(0x9E3779B97F4A7C15)  # the step from one token's draw to the next
OTHER = 8  # of 10: a chosen token becomes <mask> below it, another token at it, and stays above it
SHARE = 0.15  # of the tokens: Devlin et al. 2019, section 3.1, and the papers


def share_to_mask(share: float | None, mlm_weight: float) -> float:
    """The share of the tokens that a run masks: `share`, by default 0.15; 0 where the MLM loss has no weight.

    Raises: ValueError for a share that no loss reads.

    >>> share_to_mask(None, mlm_weight=1.0), share_to_mask(None, mlm_weight=0.0)
    (0.15, 0.0)
    """
    if mlm_weight:
        return SHARE if share is None else share
    if share:
        raise ValueError(f"mlm_share: {share} came, but mlm_weight is 0, so nothing is masked; set mlm_weight too")
    return 0.0


def mask(
    ragged, template: Template, key: np.ndarray, share: float = SHARE
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose `share` of the tokens; 80 % of these become <mask>, 10 % become another token, 10 % stay.

    Special tokens are never chosen. The draw of a token is a function of its example's key and its position in the example.
    Shapes: key (B,) -> ids (N,) with masks, places (M,) in the flat ids, targets (M,)
    """
    # draw = mix(key + (position in the example + 1) * MASKING)
    first = key - ragged.offsets[:-1].astype(np.uint64) * MASKING
    draw = mix(np.arange(1, len(ragged.ids) + 1, dtype=np.uint64) * MASKING + np.repeat(first, ragged.lengths))
    places = np.flatnonzero(draw < int(share * 2**32) << 32)
    places = places[~template.is_special[ragged.ids[places]]]
    draw, targets = draw[places], ragged.ids[places].astype(np.int64)
    fate = below(mix(draw), 10)
    other = np.flatnonzero(fate == OTHER)
    ids = ragged.ids.copy()
    ids[places[np.flatnonzero(fate < OTHER)]] = template.mask
    ids[places[other]] = template.vocabulary[below(mix(draw[other] ^ np.uint64(0xA5A5A5A5)), len(template.vocabulary))]
    return ids, places, targets
