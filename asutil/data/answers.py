"""Answer sentence selection data: questions, their candidates in order, and protocols with their published counts."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from .. import plugins
from ..io import disk, files, hub
from . import document_order, own_answers, table_files, tables
from .own_answers import ALL_RIGHT
from .questions import Candidate, Question, Split, grouped
from .splits import SPLITS, limits_of, require_one_of

__all__ = ["ALL_RIGHT", "SPLITS", "Candidate", "Question", "Split", "fingerprint_of_answers", "load_answers"]

# Data set -> hub id, and protocol -> split -> (file, which questions stay). TREC-QA's files are filtered already.
HUB = {
    "wikiqa": (
        "microsoft/wiki_qa",
        {
            "clean": {"train": ("train", "all"), "dev": ("validation", "mixed"), "test": ("test", "mixed")},
            "asbert": {"train": ("train", "positive"), "dev": ("validation", "positive"), "test": ("test", "positive")},
        },
    ),
    "trecqa": (
        "lucadiliello/trecqa",
        {
            "clean": {"train": ("train", "all"), "dev": ("dev_clean", "mixed"), "test": ("test_clean", "mixed")},
            "asbert": {
                "train": ("train_manual", "positive"),
                "dev": ("dev_clean", "positive"),
                "test": ("test_clean", "positive"),
            },
        },
    ),
    "trecqa_transfer": ("lucadiliello/trecqa", {"clean": {"test": ("train", "mixed")}}),
    "asnq": ("lucadiliello/asnq", {"clean": {split: (split, "all") for split in SPLITS}}),
    "newsas2": (
        "lucadiliello/news_as2",
        {"clean": {"train": ("train", "all"), "dev": ("dev", "mixed"), "test": ("test", "mixed")}},
    ),
    "nq_sentences": ("local/nq_sentences", {"clean": {split: (split, "mixed") for split in SPLITS}}),
    "selqa": ("local/selqa", {"clean": {split: (split, "mixed") for split in SPLITS}}),
}
# On no hub: folders of the mirror, each built by the module of its name.
BUILT = ("nq_sentences", "selqa")
# Data sets that are too large for memory -> whether the rows of one key are a question; else the rows of one text are.
STREAMED = {"asnq": True, "newsas2": False}
ORDERED = {"wikiqa", *BUILT}  # data sets whose rows stand in document order, as its check found
# (questions, candidates). sentence_objectives, table 4; contextual_as2, table 2; asbert, table 2, counted again without losing rows to
# quotes (data_cards/wikiqa.md). The counts of streamed data sets are of all rows.
COUNTS = {
    "wikiqa": {
        "clean": {"train": (2_118, 20_360), "dev": (122, 1_126), "test": (237, 2_341)},
        "asbert": {"train": (873, 8_672), "dev": (126, 1_130), "test": (243, 2_351)},
    },
    "trecqa": {
        "clean": {"train": (1_226, 53_417), "dev": (69, 1_343), "test": (68, 1_442)},
        "asbert": {"train": (89, 5_914), "dev": (69, 1_343), "test": (68, 1_442)},
    },
    "trecqa_transfer": {"clean": {"test": (1_158, 53_310)}},
    "asnq": {"clean": {"train": (57_242, 20_377_568), "dev": (1_336, 463_914), "test": (1_336, 466_148)}},
    "newsas2": {"clean": {"train": (71_561, 1_840_533), "dev": (2_102, 51_844), "test": (2_083, 51_472)}},
    # Of the copies that the committed results come from; a copy that was built from other files has its counts in its built.json.
    "nq_sentences": {"clean": {"train": (5_668, 27_930), "dev": (670, 3_158), "test": (1_231, 5_519)}},
    "selqa": {"clean": {"train": (646, 7_660), "dev": (139, 1_717), "test": (1_003, 12_107)}},
}
# contextual_as2, appendix A.2, in per cent of "sentences per query"; in the release probably positives a question (data_cards/newsas2.md).
POSITIVES = {"newsas2": {"train": 1.69, "dev": 1.66, "test": 1.68}}
# (Data set, protocol) -> triplets of its whole train split.
TRIPLETS = {("wikiqa", "asbert"): 8_995, ("trecqa", "asbert"): 83_923}
OF_TRECQA = "a question's candidates come from many documents and the right ones come first: the rows around one would tell its label"
UNORDERED = {"trecqa": OF_TRECQA, "trecqa_transfer": OF_TRECQA}
# Data sets without train and dev -> the data set whose training questions they are.
TEST_ONLY = {"trecqa_transfer": "trecqa"}
NAMES = (*HUB, "pydocs")
PROTOCOLS = ("clean", "asbert")


def load_answers(
    name,
    protocol="clean",
    train_questions="all",
    limit: int | None = None,
    context: bool = False,
    train_limit: int | None = None,
    test_limit: int | None = None,
) -> dict[str, Split]:
    """The splits of an answer sentence selection data set under a protocol.

    Args:
        name: `wikiqa`, `trecqa`, `trecqa_transfer` (TREC-QA's training questions as a test), `asnq`, `newsas2`, `nq_sentences`,
            `selqa`, `pydocs`, a folder with train, dev (or validation) and test as .tsv, .csv, .jsonl (all three also as .gz),
            .json or .parquet, or one such file, whose questions are then divided 8 : 1 : 1 by a hash of their texts.
            Columns question, answer, label; optional question_id and document_title (rows of a question are then in document
            order). A .tsv has a header line and no quoting; one that was written with quoting is recognised, with a warning.
        protocol: `clean` (wikiqa: dev and test questions with both labels; a user's data: those with a positive, and a warning of
            others) or `asbert` (questions with a positive, in every split; for wikiqa, trecqa and a user's data).
        train_questions: `all`, or `with_positive` for those alone.
        limit: at most that many questions a split, chosen by a hash of their ids.
        train_limit, test_limit: the same for train alone, and for dev and test, each; for these splits they go before `limit`.
        context: every candidate has the sentences before and after it. Where only the order of rows shows which these are (asnq,
            newsas2), that order is checked first (`document_order.check`); a data set that cannot give them is refused.
    Returns: {"train", "dev", "test"}, each a lazy `Split` of `Question`s; of `trecqa_transfer` {"test"}.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    require_one_of("protocol", protocol, COUNTS.get(name, ("clean",) if name == "pydocs" else PROTOCOLS))
    require_one_of("train_questions", train_questions, ("all", "with_positive"))
    limits = limits_of(limit, train_limit, test_limit, "question")
    if name in HUB:
        splits = _published(name, protocol, context)
    elif name == "pydocs":
        splits = _pydocs()
    else:
        splits = own_answers.load(_path(name), protocol)
    if context and (unordered := [split for split, questions in splits.items() if not questions.ordered]):
        advice = "a file needs a column document_title, and the rows of a question in the document's order"
        raise ValueError(
            f"{name}, {unordered[0]}: no sentences before and after a candidate are known, so that only pairs of question and "
            f"candidate can be made; {UNORDERED.get(name, advice)}"
        )
    if train_questions == "with_positive" and "train" in splits:
        splits["train"] = splits["train"].under("positive")
    splits = {split: questions.limited(limits[split]) for split, questions in splits.items()}
    for split, questions in splits.items():
        if not len(questions):
            read, dropped = questions.report["read"], questions.report["dropped"]
            reasons = "; ".join(f"{reason}: {_counted(counts)}" for reason, counts in dropped.items())
            raise ValueError(f"{name}, {split}: no question is left, of {_counted(read)}: {reasons}")
    return splits


def fingerprint_of_answers(name) -> str:
    """What identifies a data set: a hash of its files, of pydocs' package versions, or the hub id (its counts are asserted).

    The name of a file counts, too: the ids of questions without one follow from it. So does the way in which a file is divided: a run
    that began with another division must not continue with this one.
    """
    if name == "pydocs":
        documents = plugins.load("pydocs", "documents")
        return documents.fingerprint_of_docstrings(documents.NUMPYDOC)
    if name in HUB:
        hub_id, _ = HUB[name]
        folder = hub.mirror(hub_id)
        return hub.sha256(folder) if folder else hub_id
    path = _path(name)
    if path.is_file():
        hashes = [own_answers.DIVISION, path.stem, hub.sha256(path)]
    else:
        hashes = [hub.sha256(own_answers.split_file(path, split)) for split in SPLITS]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def of_one_source(name, fingerprint: str, other: str) -> bool:
    """Whether two fingerprints are of one published data set, read from a mirror and from the hub."""
    return name in HUB and HUB[name][0] in (fingerprint, other)


def _counted(counts: dict[str, int]) -> str:
    return " and ".join(f"{count:,} {what}" for what, count in counts.items())


# ---------------------------------------------------------------------------------------------------------- the sources


def _published(name: str, protocol: str, context: bool) -> dict[str, Split]:
    """The splits of a data set of the hub, whose counts are asserted."""
    hub_id, protocols = HUB[name]
    counts = _expected_counts(name, protocol)
    splits = {}
    for split, (stem, rule) in protocols[protocol].items():
        where = f"{hub_id}/{stem}"
        if name in STREAMED:
            table = tables.open_parquet(hub.parquet_files(hub_id, stem), keyed=STREAMED[name])
        else:
            table = tables.checked(hub.table(hub_id, stem), where)
        whole = grouped(split, table, stem, where, ordered=name in ORDERED)
        questions = whole.under(rule)
        counted = whole if name in STREAMED else questions
        came, expected = tuple(counted.report["kept"].values()), counts[split]
        if came != expected:
            raise ValueError(
                f"{name}, protocol {protocol}, {split}: expected {expected[0]:,} questions and {expected[1]:,} candidates, "
                f"got {came[0]:,} and {came[1]:,} (from {where})"
            )
        if name in POSITIVES:
            _check_positives(counted, POSITIVES[name][split], where)
        if context and name in STREAMED:
            document_order.check(whole, where)
            questions = replace(questions, ordered=True)
        splits[split] = questions
    return splits


def _expected_counts(name: str, protocol: str) -> dict[str, tuple[int, int]]:
    """The published counts, or those of the copy that was built on this machine, whose files are then checked by their hashes."""
    if name not in BUILT:
        return COUNTS[name][protocol]
    hub_id, _ = HUB[name]
    folder = hub.mirror(hub_id)
    if folder is None:
        command = f"python -m asutil.data.{name} RELEASE --to ${hub.MIRROR}/{hub_id}"
        raise FileNotFoundError(f"{hub.unreachable(hub_id)} Build it: {command} (data_cards/{name}.md)")
    if not (folder / disk.BUILT).is_file():
        return COUNTS[name][protocol]
    disk.check_made(folder)
    return {split: tuple(count) for split, count in disk.read_json(folder / disk.BUILT)["counts"].items()}


def _check_positives(questions: Split, published: float, where: str) -> None:
    """The published share of positives, as per cent of the candidates or as positives a question."""
    positives = int(questions.positives().sum())
    came = [100 * positives / questions.report["kept"]["candidates"], positives / len(questions)]
    if all(abs(value - published) > 0.01 for value in came):
        raise ValueError(
            f"{where}: expected {published} positives in 100 candidates or a question, got {came[0]:.2f} and {came[1]:.2f}"
        )


def _pydocs() -> dict[str, Split]:
    columns = {split: {"question_id": [], "question": [], "answer": [], "label": []} for split in SPLITS}
    documents = plugins.load("pydocs", "documents")
    for question in documents.questions():
        column = columns[documents.split_of(question.function)]
        size = len(question.sentences)
        column["question_id"] += [question.id] * size
        column["question"] += [question.text] * size
        column["answer"] += question.sentences
        column["label"] += [int(i in question.positive) for i in range(size)]
    splits = {}
    for split, column in columns.items():
        table = tables.checked(pa.table(column), "pydocs")
        splits[split] = grouped(split, table, "pydocs", "pydocs", ordered=True).under("mixed")
    return splits


def _path(name) -> Path:
    path = files.expanded(name)
    if not path.exists():
        if isinstance(name, Path) or len(path.parts) > 1 or table_files.ending_of(path):
            raise FileNotFoundError(
                f"{path} does not exist: expected a folder, or a file that ends in {', '.join(tables.SUFFIXES)}"
            )
        require_one_of("data set (and no such file or folder)", str(name), NAMES)
    return path
