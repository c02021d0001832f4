"""HotpotQA's questions, from the hub's parquet files or from the JSON files of its release, as rows of questions about their paragraphs."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

COLUMNS = ("id", "question", "answer", "supporting_facts", "context")
FORM = "context and supporting_facts as HotpotQA has them"
UNNAMED = "unnamed-"  # and a hash of the question, for copies that lack some ids


def release(path: Path) -> Iterator[tuple[str, dict]]:
    """(place, row in the hub's form) of a file of the release, one JSON list of questions.

    Raises: ValueError that names file and question.
    """
    try:
        questions = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: expected a JSON list of questions, not JSON ({error})") from None
    if not isinstance(questions, list) or not questions:
        raise ValueError(
            f"{path.name}: expected a JSON list of questions, got {type(questions).__name__} of {len(questions or ())}"
        )
    for number, question in enumerate(questions, 1):
        place = f"{path.name}, question {number}"
        try:
            context, facts = (
                [(first, second) for first, second in question[name]] for name in ("context", "supporting_facts")
            )
            yield (
                place,
                {
                    "id": question["_id"],
                    "question": question["question"],
                    "answer": question["answer"],
                    "context": {
                        "title": [title for title, _ in context],
                        "sentences": [sentences for _, sentences in context],
                    },
                    "supporting_facts": {
                        "title": [title for title, _ in facts],
                        "sent_id": [sentence for _, sentence in facts],
                    },
                },
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{place}: expected {FORM}, got {type(error).__name__}: {error}") from None


def row(place: str, row: dict) -> tuple[str, dict, Counter]:
    """(place, row, evidence that is lost, by reason) of a question in the hub's form.

    A title names its paragraph, both if two have it; a number beyond the paragraph's end names nothing.
    Raises: ValueError that names the place.
    """
    try:
        passages = [
            {"title": title, "sentences": sentences}
            for title, sentences in zip(row["context"]["title"], row["context"]["sentences"], strict=True)
        ]
        facts = list(zip(row["supporting_facts"]["title"], row["supporting_facts"]["sent_id"], strict=True))
        numbers, evidence, lost = defaultdict(list), [], Counter()
        for number, passage in enumerate(passages):
            numbers[passage["title"]].append((number, len(passage["sentences"])))
        for title, sentence in facts:
            found = [(number, sentence) for number, length in numbers[title] if sentence in range(length)]
            new = [pair for pair in found if pair not in evidence]
            evidence += new
            if not new:
                lost[
                    "named twice"
                    if found
                    else "beyond the end of its paragraph"
                    if numbers[title]
                    else "in no paragraph"
                ] += 1
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: expected {FORM}, got {type(error).__name__}: {error}") from None
    answer = row["answer"]
    made = {"answer": answer, "kind": answer if answer in ("yes", "no") else "span", "evidence": evidence}
    id = (
        row["id"]
        if row["id"] is not None
        else UNNAMED + hashlib.blake2b(str(row["question"]).encode(), digest_size=8).hexdigest()
    )
    return place, {"id": id, "question": row["question"], "passages": passages, **made}, lost
