"""Masked language modelling: the choice of masked tokens and their replacements."""

import numpy as np

from ..draws import below, mix
from .template import Template

MASKING = np.uint64(0x9E3779B97F4A7C15)  # the step from one token's draw to the next


def mask(ragged, template: Template, key: np.ndarray, share: float = 0.15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose `share` of the tokens; 80 % of these become <mask>, 10 % become another token, 10 % stay.

    Special tokens are never chosen. The draw of a token is a function of its example's key and its position in the example.
    Shapes: key (B,) -> ids (N,) with masks, places (M,) in the flat ids, targets (M,)
    """
    # draw = mix(key + (position in the example + 1) * MASKING); the example's own terms are added once an example
    draw = np.arange(1, len(ragged.ids) + 1, dtype=np.uint64)
    draw *= MASKING
    draw += np.repeat(key - ragged.offsets[:-1].astype(np.uint64) * MASKING, ragged.lengths)
    draw = mix(draw)
    places = np.flatnonzero(draw < int(share * 2**32) << 32)
    places = places[~template.is_special[ragged.ids[places]]]
    targets = ragged.ids[places].astype(np.int64)
    fate = below(mix(draw[places]), 10)
    other = template.vocabulary[below(mix(draw[places] ^ np.uint64(0xA5A5A5A5)), len(template.vocabulary))]
    ids = ragged.ids.copy()
    ids[places] = np.where(fate < 8, template.mask, np.where(fate == 8, other, targets))
    return ids, places, targets
