"""Examples of different lengths: laid end to end without padding, and padded."""

from dataclasses import dataclass

import numpy as np

from ..corpus.tokenizing import gathered


@dataclass(frozen=True)
class Batch:
    """Padded examples: input_ids (B, T), lengths (B,), token_type_ids (B, T) or None, labels (B,)."""

    input_ids: np.ndarray
    lengths: np.ndarray
    token_type_ids: np.ndarray | None
    labels: np.ndarray


@dataclass(frozen=True)
class Ragged:
    """Examples of different lengths without padding: flat ids (N,), offsets (B + 1,), token types (N,) or None.

    Joint inputs also have positions (N,), counted from 0, and firsts (B, S): where in its example each slot begins, -1 for an empty slot.
    """

    ids: np.ndarray
    offsets: np.ndarray
    types: np.ndarray | None
    positions: np.ndarray | None = None
    firsts: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> "Ragged":
        """The examples of some rows, in their order."""
        lengths = self.lengths[rows]
        tokens = gathered(self.offsets[rows], lengths)
        types, positions = (None if each is None else each[tokens] for each in (self.types, self.positions))
        firsts = None if self.firsts is None else self.firsts[rows]
        return Ragged(self.ids[tokens], np.concatenate([[0], lengths.cumsum()]), types, positions, firsts)

    def targets(self, rows: np.ndarray, begins: np.ndarray, labels, masked=None, members=None) -> dict[str, np.ndarray]:
        """What a micro-batch of some rows has besides their tokens, which begin at `begins` in its flat ids.

        Args:
            masked: (places, targets) of masked tokens in the flat ids of all examples, in ascending order.
            members: the objective of each example of a union.
        Returns: labels and, where they apply, members (B,); firsts (B, S): where slots begin, -1 for an empty one; masked_positions and
            masked_targets (M,).
        """
        columns = {"labels": np.asarray(labels[rows], np.int64)}
        if self.firsts is not None:
            firsts = self.firsts[rows]
            columns["firsts"] = np.where(firsts < 0, -1, firsts + begins[:, None])
        if members is not None:
            columns["members"] = members[rows]
        if masked is not None:
            places, targets = masked
            first, stop = np.searchsorted(places, [self.offsets[rows], self.offsets[rows + 1]])
            here = gathered(first, stop - first)
            shift = np.repeat(begins - self.offsets[rows], stop - first)
            order = here.argsort()
            columns["masked_positions"] = (places[here] + shift)[order]
            columns["masked_targets"] = targets[here[order]]
        return columns

    def padded(self, pad: int, labels: np.ndarray) -> Batch:
        columns = self.columns(pad)
        return Batch(columns["input_ids"], self.lengths, columns.get("token_type_ids"), labels)

    def slotted(self, pad: int, labels: np.ndarray, slot_tokens: int) -> Batch:
        """Joint examples with every slot padded to `slot_tokens`. Shapes: input_ids, token_type_ids (B, S*L), lengths (B, S)."""
        count, slots = self.firsts.shape
        input_ids = np.full((count, slots * slot_tokens), pad, np.int64)
        row = np.repeat(np.arange(count), self.lengths)
        input_ids[row, self.positions] = self.ids
        lengths = np.zeros((count, slots), np.int64)
        np.add.at(lengths, (row, self.types), 1)
        types = np.tile(np.arange(slots).repeat(slot_tokens), (count, 1))
        return Batch(input_ids, lengths, types, labels)

    def columns(self, pad: int) -> dict[str, np.ndarray]:
        """input_ids and attention_mask, and those of token_type_ids and position_ids that there are: (B, T), padded to the longest."""
        lengths = self.lengths
        real = np.arange(lengths.max(initial=0)) < lengths[:, None]
        columns = {"attention_mask": real.astype(np.int64)}
        flat = {"input_ids": self.ids, "token_type_ids": self.types, "position_ids": self.positions}
        for name, values in flat.items():
            if values is not None:
                columns[name] = np.full(real.shape, pad if name == "input_ids" else 0, np.int64)
                columns[name][real] = values
        return columns


def concatenated(pieces: list[Ragged]) -> Ragged:
    """Several ragged batches as one."""
    starts = np.cumsum([0] + [len(piece.ids) for piece in pieces[:-1]])
    offsets = np.concatenate([[0]] + [piece.offsets[1:] + start for piece, start in zip(pieces, starts)])
    others = ([getattr(piece, name) for piece in pieces] for name in ("types", "positions", "firsts"))
    others = (None if arrays[0] is None else np.concatenate(arrays) for arrays in others)
    return Ragged(np.concatenate([piece.ids for piece in pieces]), offsets, *others)
