"""Finds the test questions about articles that the pre-training corpus contains, and splits gains by them."""

from typing import NamedTuple

from asutil.corpus import sources
from asutil.data import answers
from asutil.data.data_sets import ANSWERS
from asutil.io import hub
from asutil.metrics.significance import Comparison

from .. import commands, measured, papers, records
from . import comparisons

DATASETS, PROTOCOL, BUDGET, METRIC = ("wikiqa", "nq_sentences", "selqa"), "clean", "small", "map"


def record(corpus: str) -> dict:
    """For each of `DATASETS` the ids of the test questions about an article with the title of a document of the corpus.

    Case is ignored; SelQA's titles end in the section, after a slash.
    Raises: ValueError for a corpus without a column `title`.
    """
    documents = hub.table(corpus, "train")
    if "title" not in documents.column_names:
        raise ValueError(f"{corpus}: expected a column title, got {', '.join(documents.column_names)}")
    titles = {title.casefold() for title in documents.column("title").to_pylist()}
    inputs, about = {"corpus": sources.fingerprint_of_source(corpus)}, {}
    for name in DATASETS:
        data, inputs[name] = ANSWERS[name], answers.fingerprint_of_answers(name)
        table = hub.table(data.hub_id, data.protocols[PROTOCOL]["test"].file)
        article = dict(zip(*(table.column(column).to_pylist() for column in ("question_id", "document_title"))))
        ids = [question.id for question in answers.load_answers(name, PROTOCOL)["test"]]
        read = [one for one in ids if article[one].partition(" / ")[0].casefold() in titles]
        about[name] = {"questions": len(ids), "in_corpus": read}
        print(f"{name}: {len(read)} of {len(ids):,} test questions are about an article of {corpus}")
    return {"protocol": PROTOCOL, "corpus": corpus, "inputs": inputs, "datasets": about}


class Split(NamedTuple):
    """Two rows of a claim: their difference over all test questions of a data set, and without those in the corpus."""

    row: str
    other: str
    dataset: str
    every: Comparison
    without: Comparison


def splits(paper: str, overlap: dict) -> list[Split]:
    """The claimed differences of rows that were pre-trained on the corpus, each with both sources of chance."""
    data, lines = papers.read(paper), records.committed(paper)
    compared = {}
    for claim in papers.claims(data):
        place = (claim["row_a"], claim["row_b"], claim["dataset"])
        ranked, _, own = claim["dataset"].rpartition(papers.TRANSFER)
        pair = next(comparisons.pairs(lines, *place, (BUDGET,)), None)
        if (ranked or own) not in overlap["datasets"] or place in compared or not pair or len(pair.seeds) < 2:
            continue
        read = overlap["datasets"][ranked or own]["in_corpus"]
        samples = (records.per_question, lambda line, read=read: records.per_question(line).drop(index=read))
        corpora = [[run["settings"].get("corpus") for run in earlier] for earlier in pair.of(place[0]).earlier]
        if all(overlap["corpus"] in each for each in corpora):
            tests = [comparisons.over_both(pair, *place[:2], METRIC, sample) for sample in samples]
            compared[place] = Split(*place, *tests)
    return list(compared.values())


command = measured.command(
    record,
    commands.argument("corpus", "the corpus of the pre-training runs, with titles"),
    example="asutil overlap local/wikipedia_large --out results/overlap.json",
)
