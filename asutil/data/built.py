"""Data sets that are built from a release: written whole, with a record of counts and hashes that loading checks."""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..io import disk, hub
from .data_sets import ANSWERS, SPLITS

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("question", "answer", "question_id", "document_title")] + [("label", pa.int8())]
)


def rows_of(id: str, question: str, title: str, sentences: list[tuple[str, int]]) -> list[dict]:
    """The rows of a question, one for each sentence with text.

    Args:
        sentences: text and label of each, in document order.
    Example:
        >>> [row["answer"] for row in rows_of("1", "who?", "Ann", [("She.", 1), (" ", 0)])]
        ['She.']
    """
    texts = ((text.strip(), label) for text, label in sentences)
    shared = {"question": question.strip(), "question_id": id, "document_title": title}
    return [shared | {"answer": text, "label": label} for text, label in texts if text]


def split_of(title: str, tenths: int) -> str:
    """dev for so many tenths of the titles, by a hash, else train.

    Example:
        >>> split_of("Pure Michigan", 1), split_of("Webbed toes", 1)
        ('dev', 'train')
    """
    return "dev" if int(hashlib.sha256(title.encode()).hexdigest(), 16) % 10 < tenths else "train"


def write(
    folder: str | Path,
    name: str,
    sources: Sequence[Path],
    questions: Iterable[tuple[str, str, list[dict] | None, str | None]],
    splits_of_one_label: Container[str] = (),
) -> dict:
    """Write the questions of a release as a folder for `load_answers`, complete or not at all.

    Args:
        sources: the files that are read.
        questions: (where it is from, split, rows of a question, why it is left out or None).
        splits_of_one_label: where questions stay without both labels, which are left out elsewhere.
    Returns: the record in built.json: counts of each split, and how many questions were left out by where they are from and reason.
    Raises: FileExistsError for a folder that exists; ValueError for a split without questions.
    """
    splits = {split: [] for split in SPLITS}
    left_out = {}
    for place, split, rows, reason in questions:
        reasons = left_out.setdefault(place, Counter())
        if reason is None and split not in splits_of_one_label and {row["label"] for row in rows} != {0, 1}:
            reason = "without both labels"
        if reason:
            reasons[reason] += 1
        else:
            splits[split].append(rows)
    left_out = {place: dict(reasons) for place, reasons in left_out.items()}
    if Path(folder).exists():
        raise FileExistsError(f"{folder} exists already: delete it to build again")
    if empty := [split for split, kept in splits.items() if not kept]:
        names = ", ".join(path.name for path in sources)
        raise ValueError(f"{empty[0]}: no question is left to write of {names}; left out: {left_out}")
    counts = {split: [len(kept), sum(map(len, kept))] for split, kept in splits.items()}
    with disk.whole_folder(folder) as part:
        for split, kept in splits.items():
            pq.write_table(pa.Table.from_pylist(list(chain(*kept)), SCHEMA), part / f"{split}.parquet")
        sources_sha256 = {path.name: hub.sha256(path) for path in sources}
        record = {"name": name, "counts": counts, "left_out": left_out, "sources_sha256": sources_sha256}
        record["files_sha256"] = disk.hashes(part)
        disk.write_json(part / disk.BUILT, record)
    return record


def summary(record: dict, folder: Path) -> str:
    """What was built, in words, and how it is loaded."""
    name, counts = record["name"], record["counts"]
    lines = [f"{split}: {count:,} questions, {size:,} candidates" for split, (count, size) in counts.items()]
    for place, reasons in record["left_out"].items():
        lines += [f"{place}: left out {count:,} questions, {reason}" for reason, count in reasons.items()]
    known = ANSWERS[name].counts["clean"]
    other = [split for split in known if tuple(counts[split]) != known[split]]
    if other:
        lines.append(f"other counts than those of the committed results: {', '.join(other)} (data_cards/{name}.md)")
    place = f"{hub.MIRROR}/{ANSWERS[name].hub_id}"
    return "\n".join([*lines, f"load_answers({str(folder)!r}) reads it; as ${place}, load_answers({name!r}) does, too"])
