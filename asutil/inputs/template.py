"""The special tokens that a tokenizer puts around texts, read from its own encodings."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Template:
    """The special tokens around the parts of an input: ids and token types before the first, between each two and after the last."""

    special: tuple[np.ndarray, ...]
    types: tuple[np.ndarray, ...]
    part_types: tuple[int, ...]
    has_types: bool
    pad: int
    mask: int
    vocabulary: np.ndarray  # ids that may replace a masked token: all but the special ones
    is_special: np.ndarray  # (V,) bool

    @classmethod
    def of(cls, tokenizer, parts=2) -> "Template":
        """Read the template from the tokenizer's own encoding of a pair, or for one part from that of a single text.

        A third part, the context, follows as the second follows the first; it always has token types, 0, 1 and 2, and a separator
        has the type of the part that it closes.
        Deviation: D-155, the separators before the context.
        """
        encoded = tokenizer(*["a", "b"][:parts], return_token_type_ids=True)
        ids, types = np.array(encoded["input_ids"]), np.array(encoded["token_type_ids"])
        spans = [np.flatnonzero(np.equal(encoded.sequence_ids(), part)) for part in range(min(parts, 2))]
        starts = [0, *(span[-1] + 1 for span in spans)]
        stops = [*(span[0] for span in spans), len(ids)]
        special = [ids[start:stop] for start, stop in zip(starts, stops)]
        special_types = [types[start:stop] for start, stop in zip(starts, stops)]
        part_types = [int(types[span[0]]) for span in spans]
        if parts == 3:
            special.insert(1, special[1])
            special_types = [np.full(len(ids), kind) for ids, kind in zip(special, (0, 0, 1, 2))]
            part_types = [0, 1, 2]
            has_types = True
        elif parts == 2:
            has_types = "token_type_ids" in tokenizer.model_input_names
        else:  # only XLNet has types other than 0 in a single text; a model takes 0 where it gets none
            has_types = any(map(any, special_types))
        is_special = np.zeros(len(tokenizer), bool)
        is_special[tokenizer.all_special_ids] = True
        return cls(
            special=tuple(special),
            types=tuple(special_types),
            part_types=tuple(part_types),
            has_types=has_types,
            pad=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            vocabulary=np.flatnonzero(~is_special),
            is_special=is_special,
        )

    @property
    def added(self) -> int:
        """The number of special tokens of an example."""
        return sum(map(len, self.special))
