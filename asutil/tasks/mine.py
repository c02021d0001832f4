"""Hard negatives for fine-tuning: sentences that a model ranks high for a training question and that do not answer it."""

import importlib.metadata
import runpy
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
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
from ..data.splits import require_limit, same_text
from ..draws import choose
from ..io import disk, hub
from ..io.spelling import printable
from . import vectors
from .ranked_sentences import RANKED, Judged, MiningQuestion, Neighbours, key_of

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

    def require_possible(self) -> None:
        """Raises: ValueError naming a value that is too small."""
        for name, least in {"negatives": 1, "skip": 0, "margin": 0, "depth": self.skip + self.negatives}.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"{name}: at least {least} expected, got {value}")

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


def _key(text: str) -> bytes:
    """A hash of what a text and its copies have in common: a right answer is none the less right with a full stop."""
    return key_of(same_text(text))


def _distinct(texts: Iterable[str], numbers: dict[bytes, int], left_out: dict[bytes, bool]) -> Iterator[str]:
    """The texts that are not the `same_text`, each as it is first; `numbers` gets their keys.

    Those whose keys `left_out` has are left out; it gets True for each that came.
    """
    for text in texts:
        key = _key(text)
        if key in left_out:
            left_out[key] = True
        elif key not in numbers:
            numbers[key] = len(numbers)
            yield text


def _questions(train: Split, whole: Split, numbers: dict[bytes, int]) -> list[MiningQuestion]:
    """The texts of the questions of `train` that have a right candidate, each once.

    Their candidates are those of all questions of `whole` that are the `same_text`.
    """
    texts = dict.fromkeys(q.text for q in train if any(candidate.label for candidate in q.candidates))
    made = {same_text(text): MiningQuestion(text, [], []) for text in texts}
    for question in whole:
        known = made.get(same_text(question.text))
        for candidate in question.candidates if known else ():
            number = numbers.get(_key(candidate.text))
            if number is not None:
                known.own.append(number)
                known.right.extend([number] * candidate.label)
    return [made[same_text(text)]._replace(text=text) for text in texts]


def mine(
    dataset: str | Path,
    sentences: str | Path,
    model: str | Path,
    folder: str | Path,
    rule: Rule = USUAL,
    protocol: str = "clean",
    limit: int | None = None,
    judge: str | Path | None = None,
) -> dict:
    """Write a data set with mined negatives in its train split; dev and test are written as they are.

    What is ranked for a training question: the right candidates of all training questions, and the sentences. The question's own
    candidates never become negatives, nor do those of a question with the same text; white space, case and marks at the end do not
    count. Sentences that are candidates of dev or test questions are left out, unless they are right candidates of training questions.

    Args:
        dataset: as `load_answers` reads it under the protocol, with at most `limit` questions a split.
        sentences: a .txt with one sentence a line; a .tsv, .csv, .jsonl or .parquet with a column sentence or text; a folder of
            documents, as a corpus is read and split; or `candidates`, those of all training questions, whatever the limit.
        model: `bm25`; `random`, a control; or what `rankers.load_encoder` reads, whose readout `nearest.usual` chooses.
        folder: gets train, dev and test as .parquet and the record mined.json.
        judge: a ranker as `load_ranker` reads it, as a cross-encoder: it scores the model's `depth` best sentences and the right
            candidates again, and the rule goes by its scores; fewer negatives are then right answers that nobody labelled.
    Returns: the record.
    Raises: FileExistsError for a folder that exists; ValueError or OSError for what cannot be read or written.
    """
    folder = Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} exists: expected a new folder; delete this one or take another name")
    require_limit(limit, "question")
    rule.require_possible()
    if dataset in TEST_ONLY:
        raise ValueError(f"{dataset}: expected a data set with training questions, got one that is a test alone")
    whole = answers.load_answers(dataset, protocol)
    splits = {name: split.limited(limit) for name, split in whole.items()}
    mined = Path(dataset) / disk.MINED  # its record names the data set that it was mined from
    name = disk.read_json(mined)["dataset"]["name"] if mined.is_file() else _name(dataset)
    made_from = {"name": name, "fingerprint": answers.fingerprint_of_answers(dataset)}
    record = {"dataset": made_from | {"protocol": protocol, "limit": limit}, "model": {"name": _name(model)}}
    # The candidates have the hash of their data set.
    sha256 = None if sentences == CANDIDATES else hub.sha256(Path(sentences))
    record["sentences"] = {"name": _name(sentences), "sha256": sha256}
    encoder = None if model in RANKED else tasks.rankers.load_encoder(model)
    judging = judge and tasks.rankers.load_ranker(judge)
    right = [candidate.text for question in splits["train"] for candidate in question.candidates if candidate.label]
    numbers, left_out = {}, {}
    if sentences != CANDIDATES:
        # Wrong ones, too: else the labels of dev and test would decide which sentences are trained as wrong.
        others = (c.text for name in whole.keys() - {"train"} for question in whole[name] for c in question.candidates)
        left_out = dict.fromkeys(set(map(_key, others)).difference(map(_key, right)), False)
    given = _sentences(sentences, whole["train"])
    if (first := next(given, None)) is None:
        least = f"{cleaning.MIN_DOCUMENT} characters in paragraphs of {cleaning.MIN_PARAGRAPH} or more"
        advice = f": its documents need {least}; a .txt with one sentence a line needs none" * Path(sentences).is_dir()
        raise ValueError(f"{sentences}: expected sentences to mine from, got none{advice}")
    texts = _distinct(chain(right, [first], given), numbers, left_out)
    with disk.whole_folder(folder) as part:
        with tempfile.TemporaryDirectory(dir=part) as temporary:
            ranker = Neighbours(texts, encoder, Path(temporary) / "vectors") if encoder else RANKED[model](texts)
            if judging:
                ranker = Judged(ranker, judging)
                record["judge"] = {"name": _name(judge), "identity": judging._identity()}
            questions = _questions(splits["train"], whole["train"], numbers)
            negatives, counts = _negatives(splits["train"], questions, ranker, rule)
        for name, split in splits.items():
            _write(split, negatives if name == "train" else {}, part / f"{name}.parquet")
        answers.load_answers(part, protocol)  # what a training refuses is refused here
        record["sentences"]["distinct"] = len(ranker)
        if sentences != CANDIDATES:
            record["sentences"]["left_out"] = sum(left_out.values())
        record["model"] |= ranker.identity
        record |= {"rule": rule._asdict(), "counts": counts}
        record["fingerprint"] = answers.fingerprint_of_answers(part)  # the input `dataset` in the record of a training
        record["files_sha256"] = disk.hashes(part)
        record["versions"] = {name: importlib.metadata.version(name) for name in VERSIONS}
        disk.write_json(part / disk.MINED, record)
    return record


def _sentences(source: str | Path, train: Split) -> Iterator[str]:
    """The sentences to mine from; those of a folder of documents are the ones that an index of it has."""
    if source == CANDIDATES:
        yield from (candidate.text for question in train for candidate in question.candidates)
    elif Path(source).is_dir():
        split = cleaning.splitter_function("blingfire")
        for document in sources.documents(Path(source)):
            for paragraph in cleaning.clean(document):
                yield from split(paragraph)
    else:
        for number, (_, text) in enumerate(vectors.read(source, COLUMNS), 1):
            if cleaning.BLANK_LINE.search(text.strip()):
                advice = "documents are split into sentences where they stand in a folder, as .jsonl, .parquet or .txt"
                raise ValueError(f"{source}, text {number}: one sentence expected, got paragraphs; {advice}")
            yield text


def _negatives(train: Split, questions: list[MiningQuestion], ranker, rule: Rule) -> tuple[dict[str, list[str]], dict]:
    """The mined negatives by question text, and counts of the train questions."""
    negatives, excluded, unranked = {}, {}, {}
    with tqdm(total=len(questions), desc="mining", unit=" questions", dynamic_ncols=True) as bar:
        for start in range(0, len(questions), TOGETHER):
            window = questions[start : start + TOGETHER]
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
    """Write the questions with their candidates, mined negatives last; these have no place in a document.

    Where the data set has no titles, the candidates of a question are of one document.
    """
    kinds = {"question_id": pa.string(), "question": pa.string(), "answer": pa.string(), "label": pa.int8()}
    kinds |= {"document_title": pa.string()} if split.ordered else {}
    schema = pa.schema({**kinds, "mined": pa.bool_()})
    with pq.ParquetWriter(path, schema) as writer:
        questions = zip(split.ids, split.starts.tolist(), split.stops.tolist())
        while some := list(islice(questions, TOGETHER)):
            rows = []
            for id, start, stop in some:
                known = split.table.slice(start, stop - start).to_pylist()
                question = {"question_id": id, "question": known[0]["question"]}
                rows += [question | {"document_title": id} | row | {"mined": False} for row in known]
                mined = negatives.get(question["question"], ())
                rows += [question | {"answer": text, "label": 0, "mined": True} for text in mined]
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _name(source: str | Path) -> str:
    """A name without the folders of this machine."""
    return Path(source).name if Path(source).exists() else str(source)


def summary(record: dict, folder: Path) -> str:
    """What was mined, in words, and some questions with what they got."""
    counts, rule = record["counts"], record["rule"]
    fewer = ", ".join(f"{count:,} ({reason})" for reason, count in counts["fewer"].items()) or "none"
    lines = [
        f"{counts['questions']:,} training questions, {counts['negatives']:,} negatives added",
        f"questions with fewer than {rule['negatives']}: {fewer}",
        f"sentences that are candidates of dev or test questions, left out: {record['sentences'].get('left_out', 0):,}",
        f"ranked sentences that score too high for the margin, possible answers: {counts['excluded_by_margin']:,}",
    ]
    rows = pq.read_table(folder / "train.parquet", columns=["question", "answer", "mined"])
    mined = rows.filter(rows["mined"]).to_pandas()
    for question in choose(set(mined["question"]), EXAMPLES):
        texts = mined.loc[mined["question"] == question, "answer"].unique()
        lines += ["", printable(question), *(f"  not {printable(text)}" for text in texts)]
    return "\n".join(lines)


if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "mine"})
