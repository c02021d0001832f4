"""The inputs of `aslab.own`, read before anything runs: the documents, of which pre-training makes examples, and the questions."""

from array import array
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from asutil.corpus import index, shards, sources
from asutil.data import answers
from asutil.draws import text_hash
from asutil.sampling import Sampler

from . import closing, parameters
from .closing import FEWEST, TOO_FEW

USAGE = """expected: snakemake -c2 own --config corpus=my_texts questions=my_questions.tsv
  corpus     a folder of .txt files, one document a file, with a blank line between paragraphs;
             or .jsonl or .parquet, one document a row, with its text in a column text
  questions  a .tsv, .csv, .jsonl, .json or .parquet, one candidate a row, with the columns question, answer and label (1 right, 0 wrong)"""
SAMPLED = "hard_negatives negatives max_tokens same_paragraph_before positives max_sentences lengths".split()


def require_readable(made) -> str:
    """Read the corpus and the questions of an `own.Chain`, as its runs will.

    Returns: a sentence on the documents, and one on the questions and on those that a limit leaves out.
    Raises: ValueError, OSError that name the file and the row of what cannot be read, or what pre-training lacks.
    """
    corpus = _documents(parameters.settings("pretrain", made.pretraining.parameters))
    settings = parameters.settings("finetune", made.plain[0].parameters)
    limits = [settings[name] for name in ("train_questions", "question_limit")]
    special = {name: settings[name] for name in ("train_limit", "test_limit")}
    loaded = answers.load_answers(settings["dataset"], settings["protocol"], *limits, **special)
    if all((split.positives() == split.stops - split.starts).all() for split in loaded.values()):
        raise ValueError(f"questions {settings['dataset']}: every candidate has label 1: {answers.ALL_RIGHT}\n{USAGE}")
    sentence = ", ".join(f"{len(split):,} {name}" for name, split in loaded.items())
    sentence += f". {TOO_FEW}" * (len(loaded["test"]) < FEWEST)
    lines = [corpus, f"questions: {sentence}", *closing.left_out(loaded, settings)]
    return "\n".join(lines)


def _documents(settings: dict) -> str:
    """A sentence on the documents of a pre-training, and on the files of a folder that are not read.

    Raises: ValueError where no document is long enough, or where sampling would refuse the corpus; as `sources.documents`.
    """
    corpus = settings["corpus"]
    form = {name: settings[name] for name in ("text_column", "paragraph_separator")}
    texts = sources.documents(corpus, **form, exclude_titles=sources.read_titles(settings["exclude_titles"]))
    read, layout = 0, _Layout(settings)
    for text in tqdm(texts, "reading the corpus", unit=" documents", delay=5):
        shards.characters(read, text)  # refuses what cannot be written
        read += 1
        layout.add(text)
    if not layout.documents:
        lengths = {name: value for name, value in layout.limits.items() if name != "min_sentence_chars"}
        raise ValueError(f"{index.EmptyCorpus(read, corpus, **lengths)}\n{USAGE}")
    options = {name: settings[name] for name in SAMPLED}
    for split in ("train", "validation"):
        try:
            Sampler(layout.corpus(), settings["objective"], settings["seed"], split=split, **options)
        except ValueError as error:
            raise ValueError(f"corpus {corpus}: {error}\n{USAGE}") from None
    counts = f"corpus: {read:,} documents, {len(layout.documents):,} of them long enough"
    unparted = index.UNPARTED * (len(layout.paragraphs) == len(layout.documents))
    return "; ".join(filter(None, [counts, unparted, sources.not_read(corpus)]))


class _Layout:
    """The index of a corpus without its tokens, document by document: all that a sampler needs to choose its anchors."""

    def __init__(self, settings: dict):
        self.splitter = settings["splitter"]
        self.limits = {name: settings[name] for name in shards.LIMITS if settings[name] is not None}
        self.paragraphs, self.documents = array("q"), array("q")  # sentences of each, paragraphs of each
        self.hashes, self.document_hashes = array("Q"), array("Q")

    def add(self, text) -> None:
        sentences, arrays = shards.laid_out([text], self.splitter, **self.limits)
        self.paragraphs.extend(np.diff(arrays["paragraphs"]).tolist())
        self.documents.extend(np.diff(arrays["documents"]).tolist())
        self.hashes.extend(map(text_hash, sentences))
        self.document_hashes.extend(arrays["document_hashes"].tolist())

    def corpus(self) -> index.Corpus:
        offsets = {name: np.cumsum([0, *getattr(self, name)]) for name in ("paragraphs", "documents")}
        hashes = {name: np.array(getattr(self, name), np.uint64) for name in ("hashes", "document_hashes")}
        no_tokens = {"tokens": np.zeros(0, np.uint16), "sentences": np.zeros(1, np.int64)}
        return index.Corpus(Path(), {}, offsets | hashes | no_tokens)
