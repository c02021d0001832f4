"""HotpotQA's questions, from the hub's parquet files or from the JSON files of its release, as rows of questions about their paragraphs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..draws import text_hash
from ..io import files
from . import splits

FORM = ": expected context and supporting_facts as HotpotQA has them"

COLUMNS = ("id", "question", "answer", "supporting_facts", "context")
UNNAMED = "unnamed-"  # and a hash of the question, for copies that lack some ids


def release(path: Path) -> Iterator[tuple[str, dict]]:
    """(location, row) of a file of the release, one JSON list of questions. Raises: ValueError that names file and question."""
    for number, question in enumerate(files.published_json(path, list, "questions"), 1):
        location = f"{path.name}, question {number}"
        with splits.naming(location + FORM):
            row = {"id": question["_id"], **{name: question[name] for name in COLUMNS[1:]}}
        yield location, row


def rows(location: str, row: dict) -> Iterator[tuple[str, dict, Counter]]:
    """(location, row, lost evidence by reason) of the one question in a row of the hub or of a release.

    A title names its paragraph, or both paragraphs that have it; a number beyond the paragraph's end names nothing.
    Raises: ValueError that names the location.
    """
    evidence = []
    lost = Counter()
    with splits.naming(location + FORM):
        passages = [{"title": title, "sentences": texts} for title, texts in _pairs(row["context"], "sentences")]
        lengths = defaultdict(list)  # title -> (number of a passage, its length)
        for number, passage in enumerate(passages):
            lengths[passage["title"]].append((number, len(passage["sentences"])))
        for title, sentence in _pairs(row["supporting_facts"], "sent_id"):
            pairs = [(number, sentence) for number, length in lengths[title] if sentence in range(length)]
            new = [pair for pair in pairs if pair not in evidence]
            evidence += new
            if new:
                continue
            if pairs:
                lost["named twice"] += 1
            elif lengths[title]:
                lost["beyond the end of its paragraph"] += 1
            else:
                lost["in no paragraph"] += 1
    id = row["id"]
    if id is None:
        id = f"{UNNAMED}{text_hash(str(row['question']), size=8):016x}"
    kind = row["answer"] if row["answer"] in ("yes", "no") else "span"
    answer = {"answer": row["answer"], "kind": kind, "evidence": evidence}
    yield location, {"id": id, "question": row["question"], "passages": passages, **answer}, lost


def _pairs(field, name: str) -> Iterable[tuple]:
    """(title, value) of a field: the release has a list of pairs, the hub a list of titles and one of values."""
    return zip(field["title"], field[name], strict=True) if isinstance(field, dict) else field
