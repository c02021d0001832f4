"""Questions with candidate answers: a lazy split of them over a table, and how the rows of a table become one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa

from ..corpus.tokenizing import gathered
from . import tables
from .candidates import Candidate as Candidate
from .candidates import Question as Question
from .splits import BEYOND, lowest_hashes


@dataclass(frozen=True, eq=False)
class Split(Sequence):
    """One split of a data set: a sequence whose questions are built on demand from an Arrow table or from parquet files.

    `ordered`: whether row order is document order. `report` counts what was read, kept and dropped, by reason.
    """

    name: str
    table: pa.Table | tables.Parquet  # question, answer, label, maybe document_title; a question's rows are adjacent
    ids: np.ndarray  # of the questions; question i has the rows starts[i] to stops[i]
    starts: np.ndarray
    stops: np.ndarray
    ordered: bool
    report: dict

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._take(np.arange(len(self))[index])
        index = range(len(self))[index]
        start, stop = int(self.starts[index]), int(self.stops[index])
        rows = self.table.slice(start, stop - start)
        texts = rows["answer"].to_pylist()
        titles = [self.name] * len(texts)
        if "document_title" in rows.column_names:
            titles = rows["document_title"].to_pylist()
        adjacent = [self.ordered and title is not None and title == following for title, following in pairwise(titles)]
        before = [None, *(text if same else None for text, same in zip(texts, adjacent))]
        after = [*(text if same else None for text, same in zip(texts[1:], adjacent)), None]
        ids = [f"{self.ids[index]}-{i}" for i in range(len(texts))]
        candidates = tuple(map(Candidate, ids, texts, rows["label"].to_pylist(), before, after))
        return Question(self.ids[index], rows["question"][0].as_py(), candidates)

    def texts(self) -> list[str]:
        """The text of each question, without its candidates."""
        return self.table["question"].take(pa.array(self.starts)).to_pylist()

    def rows(self) -> np.ndarray:
        """The table's row of every candidate, question after question."""
        return gathered(self.starts, self.stops - self.starts)

    def frame(self) -> pd.DataFrame:
        """question_id, candidate_id and label of every candidate, without text."""
        sizes = self.stops - self.starts
        rows = self.rows()
        numbers = rows - np.repeat(self.starts, sizes)
        ids = np.repeat(self.ids, sizes)
        candidates = [f"{question}-{number}" for question, number in zip(ids, numbers)]
        columns = {
            "question_id": pd.Series(ids, dtype=str),
            "candidate_id": pd.Series(candidates, dtype=str),
            "label": self.table["label"].to_numpy()[rows].astype(np.int8),
        }
        return pd.DataFrame(columns)

    def to_dataset(self):
        """The candidates as a `datasets.Dataset`: question_id, question, answer, label and, where they are known, document_title."""
        from datasets import Dataset

        numbers = pa.array(self.rows())
        columns = [name for name in tables.COLUMNS[1:] if name in self.table.column_names]
        rows = self.table.take(numbers).slice(0, len(numbers)).select(columns)
        ids = pa.array(np.repeat(self.ids, self.stops - self.starts), pa.string())
        return Dataset(rows.add_column(0, "question_id", [ids]))

    def positives(self) -> np.ndarray:
        """The number of positive candidates of each question."""
        total = np.concatenate([[0], np.cumsum(self.table["label"].to_numpy(), dtype=np.int64)])
        return total[self.stops] - total[self.starts]

    def _count(self) -> dict:
        return {"questions": len(self), "candidates": int((self.stops - self.starts).sum())}

    def _take(self, chosen) -> "Split":
        """The chosen questions as a split of their own, which reports on them alone."""
        part = replace(self, ids=self.ids[chosen], starts=self.starts[chosen], stops=self.stops[chosen])
        return replace(part, report={"read": part._count(), "kept": part._count(), "dropped": {}})

    def _keep(self, mask: np.ndarray, reason: str) -> "Split":
        """The questions under the mask; the report counts the others under `reason`."""
        if mask.all():
            return self
        kept = self._take(mask)
        dropped = self.report["dropped"] | {reason: self._take(~mask)._count()}
        return replace(kept, report={"read": self.report["read"], "kept": kept._count(), "dropped": dropped})

    def under(self, rule: str) -> "Split":
        """The questions with a positive candidate (`positive`), with both labels (`mixed`), or all of them (`all`)."""
        split = self
        if rule in ("positive", "mixed"):
            split = split._keep(split.positives() > 0, "no positive")
        if rule == "mixed":
            split = split._keep(split.positives() < split.stops - split.starts, "only positives")
        return split

    def without_blank(self) -> "Split":
        """The candidates that have text; the report counts the others, and the questions that have no other candidates, as blank."""
        has_text = ~tables.is_blank(self.table["answer"]).to_numpy()
        if has_text[self.rows()].all():
            return self
        total = np.concatenate([[0], np.cumsum(has_text)])
        table = self.table.filter(pa.array(has_text))
        part = replace(self, table=table, starts=total[self.starts], stops=total[self.stops])
        kept = part._take(part.stops > part.starts)
        before, after = self._count(), kept._count()
        dropped = self.report["dropped"] | {"blank": {name: before[name] - after[name] for name in before}}
        return replace(kept, report={"read": self.report["read"], "kept": after, "dropped": dropped})

    def limited(self, limit: int | None) -> "Split":
        """At most `limit` questions, chosen by a hash of their ids, in the order they had; all of them for None."""
        return self if limit is None else self._keep(lowest_hashes(self.ids, limit, hash_size=7), BEYOND)


def grouped(split: str, table: pa.Table | tables.Parquet, stem: str, where, ordered: bool, rows=None) -> Split:
    """The rows of a table as a split; the rows of a question are brought together.

    Args:
        stem: begins the ids of questions that have none.
        where, rows: what an error message calls the table and its rows; None: they are counted from 1.
    """
    by, order, starts = tables.question_order(table, where, rows)
    if (np.diff(order) != 1).any():
        table = table.take(pa.array(order))
    if by == "question":
        ids = [f"{stem}-{number}" for number in range(len(starts))]
    else:
        ids = table[by].take(pa.array(starts)).to_pylist()
    if by == "key":
        ids = [f"{stem}-{key}" for key in ids]
    stops = np.append(starts[1:], len(table))
    return Split(split, table, np.array(ids, dtype=object), starts, stops, ordered, {})._take(slice(None))
