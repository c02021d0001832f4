"""Texts or sentence ranges -> ragged batches of token ids: pairs and contexts, slots, triplets, long inputs; masking and packing.

A batch is addressed by its step, so that any step can be made again alone.
"""

from ..lazy import names_of

__getattr__ = names_of(
    __name__,
    {
        "template": ("Template",),
        "pairs": ("IGNORED", "Pairs", "as_slots", "join_spans", "join_texts"),
        "masking": ("share_to_mask",),
        "batches": ("FinetuningBatches", "LongBatches", "PretrainingBatches", "laid_out", "micro_batches"),
        "groups": ("Groups",),
        "ragged": ("Batch", "Ragged"),
    },
)
