"""Texts or sentence ranges -> ragged batches of token ids: pairs and contexts, slots, triplets, long inputs; masking and packing.

A batch is addressed by its step, so that any step can be made again alone.
"""

from ..lazy import names_of

__getattr__ = names_of(__name__)
