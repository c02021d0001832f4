"""Masked language modelling: which tokens are masked, and by what."""

import numpy as np

from ..draws import below, mix
from .template import Template

MASKING = np.uint64(0x9E3779B97F4A7C15)  # the step from one token's draw to the next


def mask(ragged, template: Template, key: np.ndarray, share: float = 0.15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masked language modelling: choose `share` of the tokens; of these 80 % become <mask>, 10 % another token, 10 % stay.

    Special tokens are never chosen. The draw of a token is a function of its example's key and its place in the example.
    Shapes: key (B,) -> ids (N,) with the masks put in, places (M,) in the flat ids, targets (M,)
    """
    # draw = mix(key + (place in its example + 1) * MASKING), with the example's own terms taken out of the brackets
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
