"""Hard negatives for fine-tuning: sentences that a model ranks high for a training question and that do not answer it.

python -m asutil.tasks.mine wikiqa sentences.txt --model sentence-transformers/all-MiniLM-L6-v2 --to mined
papermill notebooks/finetune.ipynb -p dataset mined
"""

import argparse
import importlib.metadata
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from .. import tasks
from ..corpus import cleaning, sources
from ..data import answers
from ..data.data_sets import TEST_ONLY
from ..data.questions import Split
from ..data.splits import require_limit
from ..draws import choose
from ..io import disk, hub
from . import vectors
from .ranked_sentences import RANKED, Asked, Neighbours, key_of

CANDIDATES = "candidates"  # in place of a file: the candidates of all training questions
TOGETHER = 1 << 10  # questions that are ranked together, and written together
COLUMNS = ("sentence", "text")
EXAMPLES = 3  # questions that are printed
VERSIONS = ("asutil", "bm25s", "numpy", "sentence-transformers", "torch", "transformers")


class Rule(NamedTuple):
    """Which ranked sentences become negatives of a question: the best of those that score lower than all its right candidates.

    s is kept if s <= r - margin |r|, where r is the lowest score of a right candidate. Of these, the first `skip` are left out and
    the next `negatives` taken. |r| makes the margin move away from r where scores are negative too (distances, some cosines).
    """

    negatives: int = 5
    skip: int = 0
    margin: float | None = 0.05  # None: every sentence is kept
    depth: int = 1000  # ranks that are looked at, the question's own candidates not counted

    def taken(self, scores: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, int]:
        """The positions of the negatives, and how many sentences the margin excludes.

        Shapes: scores of ranked sentences (n,), best first; of right candidates (P,) -> (at most `negatives`,)

        Example:
            >>> positions, excluded = Rule(2, margin=0.1).taken(np.array([9.5, 9.2, 9, 7, 6]), np.array([12.0, 10.0]))
            >>> positions.tolist(), excluded
            ([2, 3], 2)
        """
        lowest = float(right.min())
        highest = np.inf if self.margin is None else lowest - self.margin * abs(lowest)
        kept = np.flatnonzero(scores <= highest)
        return kept[self.skip : self.skip + self.negatives], len(scores) - len(kept)


USUAL = Rule()


def _distinct(texts: Iterable[str], numbers: dict[bytes, int]) -> Iterator[str]:
    """The texts that differ in more than white space and case, each as it is first; `numbers` gets their keys."""
    for text in texts:
        key = key_of(text)
        if key not in numbers:
            numbers[key] = len(numbers)
            yield text


def _asked(train: Split, whole: Split, numbers: dict[bytes, int]) -> list[Asked]:
    """The texts of the questions of `train` that have a right candidate, each once.

    Their candidates are those of all questions of `whole` with that text.
    """
    asked = {q.text: Asked(q.text, [], []) for q in train if any(candidate.label for candidate in q.candidates)}
    for question in whole:
        for candidate in question.candidates if question.text in asked else ():
            number = numbers.get(key_of(candidate.text))
            if number is not None:
                asked[question.text].own.append(number)
                asked[question.text].right.extend([number] * candidate.label)
    return list(asked.values())


# ------------------------------------------------------------------ the data set


def mine(
    dataset: str | Path,
    sentences: str | Path,
    model: str | Path,
    folder: str | Path,
    rule: Rule = USUAL,
    protocol: str = "clean",
    limit: int | None = None,
) -> dict:
    """Write a data set with mined negatives in its train split; dev and test are written as they are.

    What is ranked for a training question: the right candidates of all training questions, and the sentences. The question's own
    candidates never become negatives, nor do those of a question with the same text; white space and case do not count.

    Args:
        dataset: as `load_answers` reads it under the protocol, with at most `limit` questions a split.
        sentences: a .txt with one sentence a line; a .tsv, .jsonl or .parquet with a column sentence or text; a folder of
            documents, as a corpus is read and split; or `candidates`, those of all training questions, whatever the limit.
        model: `bm25`; `random`, a control; or what `rankers.load_encoder` reads, whose readout `nearest.usual` chooses.
        folder: gets train, dev and test as .parquet and the record mined.json.
    Returns: the record.
    Raises: FileExistsError for a folder that exists; ValueError or OSError for what cannot be read or written.
    """
    folder = Path(folder)
    _require_possible(folder, rule, limit)
    if dataset in TEST_ONLY:
        raise ValueError(f"{dataset}: expected a data set with training questions, got one that is a test alone")
    whole = answers.load_answers(dataset, protocol)
    splits = {name: split.limited(limit) for name, split in whole.items()}
    made_from = {"name": _name(dataset), "fingerprint": answers.fingerprint_of_answers(dataset)}
    record = {"dataset": made_from | {"protocol": protocol, "limit": limit}}
    record["sentences"] = {"name": _name(sentences), "sha256": _sha256(sentences)}
    record["model"] = {"name": _name(model)}
    encoder = None if model in RANKED else tasks.rankers.load_encoder(model)
    right = (candidate.text for question in splits["train"] for candidate in question.candidates if candidate.label)
    numbers = {}
    given = _sentences(sentences, whole["train"])
    if (first := next(given, None)) is None:
        least = f"{cleaning.MIN_DOCUMENT} characters in paragraphs of {cleaning.MIN_PARAGRAPH} or more"
        advice = f": its documents need {least}; a .txt with one sentence a line needs none" * Path(sentences).is_dir()
        raise ValueError(f"{sentences}: expected sentences to mine from, got none{advice}")
    texts = _distinct(chain(right, [first], given), numbers)
    with disk.whole_folder(folder) as part:
        with tempfile.TemporaryDirectory(dir=part) as temporary:
            ranker = Neighbours(texts, encoder, Path(temporary) / "vectors") if encoder else RANKED[model](texts)
            asked = _asked(splits["train"], whole["train"], numbers)
            negatives, counts = _negatives(splits["train"], asked, ranker, rule)
        for name, split in splits.items():
            _write(split, negatives if name == "train" else {}, part / f"{name}.parquet")
        answers.load_answers(part, protocol)  # what a training refuses is refused here
        record["sentences"]["distinct"] = len(ranker)
        record["model"] |= ranker.identity
        record |= {"rule": rule._asdict(), "counts": counts}
        record["fingerprint"] = answers.fingerprint_of_answers(part)  # the input `dataset` in the record of a training
        record["files_sha256"] = disk.hashes(part)
        record["versions"] = {name: importlib.metadata.version(name) for name in VERSIONS}
        disk.write_json(part / disk.MINED, record)
    return record


def _sentences(source: str | Path, train: Split) -> Iterator[str]:
    if source == CANDIDATES:
        return (candidate.text for question in train for candidate in question.candidates)
    if Path(source).is_dir():
        return _of_documents(Path(source))
    return (text for _, text in vectors.read(source, COLUMNS))


def _of_documents(folder: Path) -> Iterator[str]:
    """The sentences that an index of the folder has."""
    split = cleaning.splitter_function("blingfire")
    for document in sources.documents(folder):
        for paragraph in cleaning.clean(document):
            yield from split(paragraph)


def _negatives(train: Split, asked: list[Asked], ranker, rule: Rule) -> tuple[dict[str, list[str]], dict]:
    """The mined negatives by question text, and counts of the train questions."""
    negatives, excluded, unranked = {}, {}, {}
    with tqdm(total=len(asked), desc="mining", unit=" questions", dynamic_ncols=True) as bar:
        for start in range(0, len(asked), TOGETHER):
            window = asked[start : start + TOGETHER]
            for question, (numbers, scores, right) in zip(window, ranker.ranked(window, rule.depth)):
                positions, excluded[question.text] = rule.taken(scores, right)
                negatives[question.text] = ranker.texts(numbers[positions])
                unranked[question.text] = len(numbers) < min(rule.depth, len(ranker) - len(set(question.own)))
                bar.update()
    counts = {"questions": len(train), "negatives": 0, "excluded_by_margin": 0}
    fewer = Counter()
    for question in train:
        mined = len(negatives.get(question.text, ()))
        counts["negatives"] += mined
        counts["excluded_by_margin"] += excluded.get(question.text, 0)
        if question.text not in negatives:
            fewer["no right candidate"] += 1
        elif mined < rule.negatives:
            few = "too few share a word with it" if unranked[question.text] else "too few sentences"
            fewer["margin" if excluded[question.text] else few] += 1
    return negatives, counts | {"fewer": dict(fewer)}


def _write(split: Split, negatives: dict[str, list[str]], path: Path) -> None:
    """Write the questions with their candidates, mined negatives last; these have no place in a document."""
    kinds = {"question_id": pa.string(), "question": pa.string(), "answer": pa.string(), "label": pa.int8()}
    kinds |= {"document_title": pa.string()} if split.ordered else {}
    schema = pa.schema({**kinds, "mined": pa.bool_()})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(split), TOGETHER):
            rows = []
            for number in range(start, min(start + TOGETHER, len(split))):
                rows += _rows(split, number, negatives)
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _rows(split: Split, number: int, negatives: dict[str, list[str]]) -> list[dict]:
    """The rows of a question; where the data set has no titles, its candidates are of one document."""
    start, stop = int(split.starts[number]), int(split.stops[number])
    id, rows = split.ids[number], split.table.slice(start, stop - start).to_pylist()
    question = {"question_id": id, "question": rows[0]["question"]}
    known = [question | {"document_title": id} | row | {"mined": False} for row in rows]
    mined = [question | {"answer": text, "label": 0, "mined": True} for text in negatives.get(question["question"], ())]
    return known + mined


def _name(source: str | Path) -> str:
    """A name without the folders of this machine."""
    return Path(source).name if Path(source).exists() else str(source)


def _sha256(sentences: str | Path) -> str | None:
    """The hash of the file; the candidates have that of their data set."""
    return None if sentences == CANDIDATES else hub.sha256(Path(sentences))


def _require_possible(folder: Path, rule: Rule, limit: int | None) -> None:
    if folder.exists():
        raise FileExistsError(f"{folder} exists: expected a new folder; delete this one or take another name")
    require_limit(limit, "question")
    least = {"negatives": 1, "skip": 0, "margin": 0, "depth": rule.skip + rule.negatives}
    for name, bound in least.items():
        value = getattr(rule, name)
        if value is not None and not value >= bound:
            raise ValueError(f"{name}: at least {bound} expected, got {value}")


# ------------------------------------------------------------------ the command line


def summary(record: dict, folder: Path) -> str:
    """What was mined, in words, and some questions with what they got."""
    counts, rule = record["counts"], record["rule"]
    fewer = ", ".join(f"{count:,} ({reason})" for reason, count in counts["fewer"].items()) or "none"
    lines = [
        f"{counts['questions']:,} training questions, {counts['negatives']:,} negatives added",
        f"questions with fewer than {rule['negatives']}: {fewer}",
        f"ranked sentences that score too high for the margin, possible answers: {counts['excluded_by_margin']:,}",
    ]
    rows = pq.read_table(folder / "train.parquet", columns=["question", "answer", "mined"])
    mined = rows.filter(rows["mined"]).to_pandas()
    for question in choose(set(mined["question"]), EXAMPLES):
        texts = mined.loc[mined["question"] == question, "answer"].unique()
        lines += ["", vectors.printable(question), *(f"  not {vectors.printable(text)}" for text in texts)]
    return "\n".join(lines)


def main() -> None:
    options = _parser().parse_args()
    rule = Rule(options.negatives, options.skip, options.margin, options.depth)
    try:
        record = mine(
            options.questions, options.sentences, options.model, options.to, rule, options.protocol, options.limit
        )
    except (ValueError, OSError) as error:
        _parser().error(str(error))
    print(summary(record, options.to), options.to, sep="\n\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m asutil.tasks.mine", description=__doc__.splitlines()[0])
    default = "(default: %(default)s)"
    parser.add_argument("questions", help="a data set, or a file or folder of your own, as in notebooks/finetune.ipynb")
    forms = (
        ".txt with one sentence a line; .tsv, .jsonl, .parquet with a column sentence or text; a folder of documents"
    )
    parser.add_argument(
        "sentences", help=f"{forms}; or the word {CANDIDATES}: the candidates of all training questions"
    )
    encoders = "a run of notebooks/embed.ipynb, a model of sentence-transformers, a backbone (mean of its last layer)"
    parser.add_argument(
        "--model",
        required=True,
        help=f"what ranks the sentences: bm25; random, as a control; or an encoder: {encoders}",
    )
    parser.add_argument("--to", type=Path, required=True, help="the folder to write, which must not exist")
    parser.add_argument(
        "--protocol", default="clean", help=f"protocol of the data set: which questions are used {default}"
    )
    parser.add_argument(
        "--limit", type=int, help="use at most so many questions of each split, as question_limit in the notebook"
    )
    most = f"largest number of negatives for a question {default}"
    parser.add_argument("--negatives", type=int, default=USUAL.negatives, help=most)
    skips = f"number of best sentences below the margin to leave out first {default}"
    parser.add_argument("--skip", type=int, default=USUAL.skip, help=skips)
    margin = (
        f"a negative must score lower than each right candidate by this share of its score; none: no margin {default}"
    )
    parser.add_argument("--margin", type=_margin, default=USUAL.margin, help=margin)
    depth = f"number of best sentences to look at, without the question's own candidates {default}"
    parser.add_argument("--depth", type=int, default=USUAL.depth, help=depth)
    return parser


def _margin(text: str) -> float | None:
    return None if text == "none" else float(text)


if __name__ == "__main__":
    main()
