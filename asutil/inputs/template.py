"""What a tokenizer puts around texts, read off its own encoding of them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Template:
    """What a tokenizer puts around the parts: ids and token types before the first, between each two and after the last."""

    special: tuple[np.ndarray, ...]
    types: tuple[np.ndarray, ...]
    part_types: tuple[int, ...]
    has_types: bool
    pad: int
    mask: int
    vocabulary: np.ndarray  # ids that a masked token may be replaced by: all but the special ones
    is_special: np.ndarray  # (V,) bool

    @classmethod
    def of(cls, tokenizer, parts=2) -> "Template":
        """Read the template off the tokenizer's own encoding of a pair, or for one part off that of a single text.

        A third part, the context, follows as the second follows the first; then types are always there, 0, 1 and 2, and a separator
        has the type of the part that it closes.
        """
        both = tokenizer("a", "b", return_special_tokens_mask=True, return_token_type_ids=True)
        part = both.sequence_ids()
        ids, types = np.array(both["input_ids"]), np.array(both["token_type_ids"])
        first, second = np.flatnonzero(np.equal(part, 0)), np.flatnonzero(np.equal(part, 1))
        cuts = (slice(0, first[0]), slice(first[-1] + 1, second[0]), slice(second[-1] + 1, None))
        special = np.zeros(len(tokenizer), bool)
        special[tokenizer.all_special_ids] = True
        around, kinds, part_types = (
            [ids[cut] for cut in cuts],
            [types[cut] for cut in cuts],
            types[[first[0], second[0]]],
        )
        if parts == 1:
            alone = tokenizer("a", return_special_tokens_mask=True, return_token_type_ids=True)
            inside = np.flatnonzero(np.equal(alone.sequence_ids(), 0))
            cuts = (slice(0, inside[0]), slice(inside[-1] + 1, None))
            ids, types = np.array(alone["input_ids"]), np.array(alone["token_type_ids"])
            around, kinds, part_types = [ids[cut] for cut in cuts], [types[cut] for cut in cuts], types[inside[:1]]
        if parts == 3:
            around.insert(1, around[1])
            kinds, part_types = [np.full(len(ids), kind) for ids, kind in zip(around, (0, 0, 1, 2))], range(3)
        return cls(
            special=tuple(around),
            types=tuple(kinds),
            part_types=tuple(map(int, part_types)),
            # XLNet alone has types of its own in a single text; elsewhere they are 0, which is what a model takes where it is given none
            has_types=parts == 3
            or (parts == 2 and "token_type_ids" in tokenizer.model_input_names)
            or (parts == 1 and any(map(any, kinds))),
            pad=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            vocabulary=np.flatnonzero(~special),
            is_special=special,
        )

    @property
    def added(self) -> int:
        return sum(map(len, self.special))
