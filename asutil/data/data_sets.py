"""The data sets that are loaded by name: a new one is an entry here and a card in data_cards/."""

from dataclasses import dataclass, field
from typing import NamedTuple

SPLITS = ("train", "dev", "test")


class Part(NamedTuple):
    """One split under a protocol: its file, which of its questions stay (`Split.under`), and the counts."""

    file: str
    rule: str
    questions: int
    candidates: int


@dataclass(frozen=True)
class AnswerData:
    """A data set of questions with candidates.

    protocols: protocol -> split -> Part. The counts of a streamed data set are of all rows.
    hub_id: also the folder of the mirror; None: made of the installed packages.
    ordered: rows are in document order, as the data set's own check shows.
    streamed: too large for memory. keyed: of a streamed one, the rows of one key are a question; else the rows of one text are.
    built: on no hub; the module of its name builds it in the mirror. Counts are those of the copies behind the committed results.
    positives: split -> positives in per cent of the candidates, or a question.
    triplets: protocol -> triplets of a question, a right and a wrong candidate in the whole train split.
    no_context: why candidates have no sentences around them.
    training_of: of a data set that is a test alone, the data set whose training questions it has.
    dev_of: of a data set whose dev questions are another's, that other: its dev questions are not counted again.
    """

    title: str
    hub_id: str | None
    protocols: dict[str, dict[str, Part]]
    ordered: bool = False
    streamed: bool = False
    keyed: bool = True
    built: bool = False
    positives: dict[str, float] = field(default_factory=dict)
    triplets: dict[str, int] = field(default_factory=dict)
    no_context: str | None = None
    training_of: str | None = None
    dev_of: str | None = None

    @property
    def counts(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Protocol -> split -> (questions, candidates)."""
        return {
            protocol: {split: (part.questions, part.candidates) for split, part in parts.items()}
            for protocol, parts in self.protocols.items()
        }


OF_TRECQA = "a question's candidates come from many documents and the right ones come first: the rows around one would tell its label"


def _parts(*parts: tuple[str, str, int, int]) -> dict[str, Part]:
    return {split: Part(*part) for split, part in zip(SPLITS, parts)}


# Counts: sentence_objectives, table 4; contextual_as2, table 2; asbert, table 2, counted again without losing rows to quotes
# (data_cards/wikiqa.md). TREC-QA's files are filtered already. Positives: contextual_as2, appendix A.2, "sentences per query"; in the
# release probably positives a question (data_cards/newsas2.md).
# fmt: off
ANSWERS = {
    "wikiqa": AnswerData("WikiQA", "microsoft/wiki_qa", {
        "clean": _parts(("train", "all", 2_118, 20_360), ("validation", "mixed", 122, 1_126), ("test", "mixed", 237, 2_341)),
        "asbert": _parts(("train", "positive", 873, 8_672), ("validation", "positive", 126, 1_130), ("test", "positive", 243, 2_351)),
    }, ordered=True, triplets={"asbert": 8_995}),
    "trecqa": AnswerData("TREC-QA", "lucadiliello/trecqa", {
        "clean": _parts(("train", "all", 1_226, 53_417), ("dev_clean", "mixed", 69, 1_343), ("test_clean", "mixed", 68, 1_442)),
        "asbert": _parts(
            ("train_manual", "positive", 89, 5_914), ("dev_clean", "positive", 69, 1_343), ("test_clean", "positive", 68, 1_442)
        ),
    }, triplets={"asbert": 83_923}, no_context=OF_TRECQA),
    "trecqa_transfer": AnswerData("TREC-QA, transfer", "lucadiliello/trecqa", {
        "clean": {"test": Part("train", "mixed", 1_158, 53_310)},
    }, no_context=OF_TRECQA, training_of="trecqa"),
    "asnq": AnswerData("ASNQ", "lucadiliello/asnq", {
        "clean": _parts(("train", "all", 57_242, 20_377_568), ("dev", "all", 1_336, 463_914), ("test", "all", 1_336, 466_148)),
    }, streamed=True),
    "newsas2": AnswerData("NewsAS2", "lucadiliello/news_as2", {
        "clean": _parts(("train", "all", 71_561, 1_840_533), ("dev", "mixed", 2_102, 51_844), ("test", "mixed", 2_083, 51_472)),
    }, streamed=True, keyed=False, positives={"train": 1.69, "dev": 1.66, "test": 1.68}),
    "nq_sentences": AnswerData("NQ sentences", "local/nq_sentences", {
        "clean": _parts(("train", "mixed", 5_668, 27_930), ("dev", "mixed", 670, 3_158), ("test", "mixed", 1_231, 5_519)),
    }, ordered=True, built=True),
    "selqa": AnswerData("SelQA", "local/selqa", {
        "clean": _parts(("train", "mixed", 646, 7_660), ("dev", "mixed", 139, 1_717), ("test", "mixed", 1_003, 12_107)),
    }, ordered=True, built=True),
    "pydocs": AnswerData("pydocs", None, {"clean": {}}),
    "pydocs_more": AnswerData("more of pydocs", None, {"clean": {}}, dev_of="pydocs"),
}
# fmt: on


@dataclass(frozen=True)
class ClaimData:
    """A data set of claims with evidence.

    counts: split -> (claims, pieces of evidence). files: what the folder holds, for an error message.
    hub_id: its folder of the mirror; None: made of the installed packages.
    """

    title: str
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    files: str | None = None
    hub_id: str | None = None


# Counts: joint_inference, table 6; data_cards/climate_fever.md
CLAIMS = {
    "fever": ClaimData(
        "fever",
        {"train": (145_406, 722_473), "dev": (19_998, 98_915), "test": (19_998, 98_839)},
        "bert_train.json, bert_dev.json and bert_test.json, from the data page of the KernelGAT repository (thunlp/KernelGAT, data/)",
        "local/fever",
    ),
    "climate_fever": ClaimData(
        "Climate-FEVER",
        {"train": (981, 4_905), "dev": (200, 1_000)},
        "train.jsonl and dev.jsonl, Climate-FEVER in the same form (data_cards/climate_fever.md)",
        "local/climate_fever",
    ),
    "pydocs_claims": ClaimData("pydocs claims"),
}


@dataclass(frozen=True)
class LongData:
    """A data set of questions about long contexts with evidence.

    kinds: question types, each with its number by position; `yes` and `no` are in all data sets.
    hub_id: also the folder of the mirror; None: made of the installed packages.
    stems: split -> file on the hub, read with the options. release: split -> pattern of a file of the release, where it has labels.
    counts: split -> what is counted -> how many, of the whole published data.
    """

    title: str
    kinds: tuple[str, ...]
    hub_id: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    stems: dict[str, str] = field(default_factory=dict)
    release: dict[str, str] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


# Counts: data_cards/hotpotqa.md and data_cards/qasper.md. QASPER's repository is a loading script, which nothing here runs: the hub keeps
# its parquet files on a branch.
# fmt: off
LONG = {
    "hotpotqa": LongData(
        "HotpotQA", ("span", "yes", "no"), "hotpotqa/hotpot_qa", {"config": "distractor"}, {"train": "train", "dev": "validation"},
        {"train": "hotpot_train_v*.json", "dev": "hotpot_dev_distractor_v*.json"},
        {"train": {"questions": 90_447}, "dev": {"questions": 7_405}},
    ),
    "qasper": LongData(
        "QASPER", ("extractive", "abstractive", "yes", "no", "unanswerable"),
        "allenai/qasper", {"config": "qasper", "revision": "refs/convert/parquet"},
        {"train": "train", "dev": "validation", "test": "test"}, {split: f"qasper-{split}-v*.json" for split in SPLITS},
        {split: {"questions": n, "papers": m} for split, n, m in zip(SPLITS, (2_593, 1_005, 1_451), (888, 281, 416))},
    ),
    "pydocs_evidence": LongData("pydocs evidence", ("span", "yes", "no")),
}
# fmt: on

TITLES = {name: data.title for data_sets in (ANSWERS, CLAIMS, LONG) for name, data in data_sets.items()}
# Data sets without train and dev -> the data set whose training questions they are.
TEST_ONLY = {name: data.training_of for name, data in ANSWERS.items() if data.training_of}
