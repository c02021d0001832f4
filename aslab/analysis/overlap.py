"""Finds the questions of WikiQA about articles that the pre-training corpus contains, and splits gains by them."""

from typing import NamedTuple

from asutil.corpus import sources
from asutil.data import answers
from asutil.data.data_sets import ANSWERS
from asutil.io import hub
from asutil.metrics.significance import Comparison

from .. import commands, measured, papers, records
from . import comparisons

DATASET, PROTOCOL, BUDGET, METRIC = "wikiqa", "clean", "small", "map"


def record(corpus: str) -> dict:
    """The ids of the dev and test questions about an article with the title of a document of the corpus, case ignored.

    Raises: ValueError for a corpus without a column `title`.
    """
    documents = hub.table(corpus, "train")
    if "title" not in documents.column_names:
        raise ValueError(f"{corpus}: expected a column title, got {', '.join(documents.column_names)}")
    titles = {title.casefold() for title in documents.column("title").to_pylist()}
    data = ANSWERS[DATASET]
    splits, about = answers.load_answers(DATASET, PROTOCOL), {}
    for split in ("dev", "test"):
        table = hub.table(data.hub_id, data.protocols[PROTOCOL][split].file)
        article = dict(zip(*(table.column(name).to_pylist() for name in ("question_id", "document_title"))))
        ids = [question.id for question in splits[split]]
        in_corpus = [name for name in ids if article[name].casefold() in titles]
        about[split] = {"questions": len(ids), "in_corpus": in_corpus}
        print(f"{split}: {len(in_corpus)} of {len(ids)} questions are about an article of {corpus}")
    inputs = {"dataset": answers.fingerprint_of_answers(DATASET), "corpus": sources.fingerprint_of_source(corpus)}
    return {"dataset": DATASET, "protocol": PROTOCOL, "corpus": corpus, "inputs": inputs, "splits": about}


class Split(NamedTuple):
    """Two rows of a claim on WikiQA: their difference over all test questions, and without those in the corpus."""

    row: str
    other: str
    every: Comparison
    without: Comparison


def splits(paper: str, overlap: dict) -> list[Split]:
    """The claimed differences of rows that were pre-trained on the corpus, each with both sources of chance."""
    data, lines = papers.read(paper), records.committed(paper)
    lines = lines[(lines.dataset == overlap["dataset"]) & (lines.budget == BUDGET)]
    read = overlap["splits"]["test"]["in_corpus"]
    samples = (records.per_question, lambda line: records.per_question(line).drop(index=read))
    compared = {}
    for claim in papers.claims(data):
        rows = (claim["row_a"], claim["row_b"])
        if claim["dataset"] != overlap["dataset"] or rows in compared:
            continue
        pair = next(comparisons.pairs(lines, *rows, claim["dataset"], (BUDGET,)), None)
        if pair and len(pair.seeds) > 1:
            corpora = [[run["settings"].get("corpus") for run in earlier] for earlier in pair.of(rows[0]).earlier]
            if all(overlap["corpus"] in each for each in corpora):
                tests = [comparisons.over_both(pair, *rows, METRIC, sample) for sample in samples]
                compared[rows] = Split(*rows, *tests)
    return list(compared.values())


command = measured.command(
    record,
    commands.argument("corpus", "the corpus of the pre-training runs, with titles"),
    example="asutil overlap local/wikipedia_large --out results/overlap.json",
)
