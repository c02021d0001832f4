"""All that reads a file which a user may give, each with a small sound input and what becomes of its rows.

`load(path)` reads the file at `path`; where it is accepted, every row of the file must be kept, or be counted as left out, and the texts
that are kept must be those that the file holds. Names of files, runs and data sets are inputs as well.

Not here: files that the project brings itself (its notebooks, `budgets.yml`, installed packages' docstrings, its own sources).
"""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from aslab import pipeline
from asutil import corpus
from asutil.corpus import cleaning, sources, tokenizers
from asutil.data import answers, claims, document_order, hotpotqa, long_questions, newsas2, nq_sentences, qasper, questions, selqa, tables
from asutil.io import files, hub
from asutil.models import elsewhere
from asutil.tasks import vectors

from . import must


@dataclass(frozen=True)
class Loader:
    """What reads a file: its name, the file, its sound content, the reading with its account, how it names a row, other files beside."""

    name: str
    file: str
    content: object
    load: Callable[[Path], None]
    row: str = ""
    beside: dict = field(default_factory=dict)
    named: str = ""  # what a message names, where it is not the file
    prepared: str = ""  # a folder of `prepare`, laid around the file; the content is then the file's own there

    def __str__(self) -> str:
        return f"{self.name} {Path(self.file).name}"


def written(path: Path) -> list[dict]:
    """The rows that a file holds, read without the project."""
    if path.suffix == ".parquet":
        table = pq.read_table(path, partitioning=None)
        must(len(table) == pq.ParquetFile(path).metadata.num_rows, f"{path.name} claims more rows than it holds and was accepted")
        return table.to_pylist()
    lines = path.read_bytes().split(b"\n")
    lines = [line.decode("utf-8-sig").removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
    if path.suffix in (".jsonl", ".jsonlines", ".tsv"):
        lines = [line for line in lines if line.strip()]
    if path.suffix in (".jsonl", ".jsonlines"):
        return [json.loads(line) for line in lines]
    if path.suffix == ".tsv":
        return [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]
    return [{"line": line} for line in lines]


def same(came, expected, what: str) -> None:
    must(came == expected, f"{what}: {str(expected)[:200]} expected, got {str(came)[:200]}")


# ------------------------------------------------------------------ documents and indexes

PROSE = "The harbour lies behind the old “bridge”, where 3 lanterns burn; nobody knows why they do so all winter long. "
DOCUMENTS = [{"title": f"Document {n}", "text": f"{PROSE * 2}\n\nSecond: {n}. {PROSE * 2}"} for n in range(6)]
OUT = "Document 3"


def documents_in(path: Path) -> list[dict]:
    """The rows of a file of documents; a NUL in a file of parquet, as some hub data sets have it, is a space."""
    rows = written(path)
    return [{**row, "text": row["text"].replace("\0", " ")} for row in rows] if path.suffix == ".parquet" else rows


def documents(path: Path) -> None:
    came = list(sources.documents(path, exclude_titles=(OUT,)))
    if path.suffix == ".txt":
        return same(came, [path.read_bytes().decode("utf-8-sig")], "documents")
    same(came, [row["text"] for row in documents_in(path) if row.get("title") != OUT], "documents")


def paragraphs(path: Path) -> None:
    came = list(sources.documents(path, text_column="text", paragraph_separator="\n"))
    same(came, [row["text"].split("\n") for row in documents_in(path)], "documents")


def folder_of_documents(path: Path) -> None:
    came = list(sources.documents(path.parent))
    there = [path] if path.is_file() else []
    expected = [row["text"] for other in [path.with_name("a.jsonl"), *there] for row in documents_in(other)]
    same(came, expected, "documents of a folder")


def titles(path: Path) -> None:
    came = sources.read_titles(str(path))
    lines = [line.decode("utf-8-sig").strip() for line in path.read_bytes().split(b"\n")]
    same(came, tuple(filter(None, lines)), "titles")


def built(path: Path) -> None:
    """The index counts the documents that it read, and keeps the characters of every paragraph that was kept.

    But for U+FEFF, which blingfire drops: inside a text it is a space of no width.
    """
    made = list(sources.documents(path))
    index = corpus.prepare(path, tokenizers.load_tokenizer(path.parent / "tokenizer"), path.parent / "indexes")
    kept = [found for found in map(cleaning.clean, made) if found]
    same(index.info["documents_read"], len(made), "documents read")
    same(len(index.documents) - 1, len(kept), "documents kept")
    texts = "".join(index.text(range(len(index.sentences) - 1)).split()).replace("\ufeff", "")
    expected = "".join("".join(paragraph for document in kept for paragraph in document).split()).replace("\ufeff", "")
    same(texts, expected, "text of the index")


def opened(path: Path) -> None:
    folder = path.parent.parent if path.parent.name in ("tokenizer", "shard-00000") else path.parent
    index = corpus.Corpus.open(folder)
    expected = {"documents": 6, "paragraphs": 12, "sentences": len(index.sentences) - 1, "tokens": len(index.tokens)}
    counted = [int(array[-1]) for array in (index.paragraphs, index.sentences)]
    same([len(index.documents) - 1, int(index.documents[-1])], [6, 12], "the index that was built")
    same(counted, [len(index.sentences) - 1, len(index.tokens)], "offsets")
    same({name: index.info[name] for name in expected}, expected, "counts of corpus.json")
    must("lanterns burn" in index.text(0), f"text of the index: {index.text(0)!r}")
    repr(index)


def planned(path: Path) -> None:
    made = pipeline.plan(path, tokenizers.load_tokenizer(path.parent / "tokenizer"), 2)
    same(made["total"], len(written(path)), "documents to share out")


def joined(path: Path) -> None:
    folder = path.parents[1] if path.parent.name.startswith("shard-") else path.parent
    pipeline._check(folder, pipeline.plan(folder / "documents.jsonl", tokenizers.load_tokenizer(folder / "tokenizer"), 2))
    pipeline.join(folder)
    same(len(corpus.Corpus.open(folder).documents) - 1, len(DOCUMENTS), "documents of two shards")


# ------------------------------------------------------------------ questions

RIVERS = [{"question_id": f"q{n}", "question": f"Where does river {n} rise?", "document_title": f"River {n}"} for n in range(8)]
TOLD = ("It is long.", "It “rises” in the {}th hills.", "Nobody knows.")
ASKED = [river | {"answer": text.format(n), "label": int(k == 1)} for n, river in enumerate(RIVERS) for k, text in enumerate(TOLD)]
PLAIN = [{name: row[name] for name in ("question", "answer", "label")} for row in ASKED]


def label_of(row: dict) -> int:
    spelt = str(row["label"]).strip().lower()
    return {"true": 1, "yes": 1, "false": 0, "no": 0}[spelt] if spelt.isalpha() else int(float(spelt))


def triples(rows) -> Counter:
    return Counter((row["question"], row["answer"], label_of(row)) for row in rows)


def without_positive(rows) -> Counter:
    """The rows that may be left out of dev and test, and have to be counted: blank candidates, and questions without a right one."""
    right = {row.get("question_id", row["question"]) for row in rows if label_of(row)}
    return triples(row for row in rows if not row["answer"].strip() or row.get("question_id", row["question"]) not in right)


def asked(path: Path, protocol="clean", context=False) -> None:
    splits = answers.load_answers(path, protocol, context=context)
    trimmed = ("question_id", "question")
    rows = [row | {name: str(row[name]).strip() for name in trimmed if name in row} for row in written(path)]
    expected = triples(rows)
    came = Counter((q.text, c.text, c.label) for split in splits.values() for q in split for c in q.candidates)
    reports = [split.report for split in splits.values()]
    counted = [
        sum(one["kept"]["candidates"] + sum(lost["candidates"] for lost in one["dropped"].values()) for one in reports),
        sum(one["read"]["candidates"] for one in reports),
    ]
    same(counted, [expected.total()] * 2, "rows kept and reported, and rows read")
    same(sum(one["kept"]["candidates"] for one in reports), came.total(), "rows kept")
    must(came <= expected, f"rows that the file does not have: {[*(came - expected)][:2]}")
    lost = expected - came
    must(protocol != "clean" or lost <= without_positive(rows), f"rows that are lost: {[*(lost - without_positive(rows))][:2]}")


def asked_in_a_folder(path: Path) -> None:
    splits = answers.load_answers(path.parent)
    came = Counter((q.text, c.text, c.label) for q in splits["dev"] for c in q.candidates)
    rows = written(path)
    same([splits["dev"].report["kept"]["candidates"], splits["dev"].report["read"]["candidates"]], [came.total(), len(rows)], "rows of dev")
    must(came <= triples(rows) and triples(rows) - came <= without_positive(rows), "rows of dev are those of the file")


def streamed(path: Path) -> None:
    """A file of a data set that is too large for memory, and whether its order can be that of documents."""
    table = tables.open_parquet([path])
    split = questions.grouped("train", table, path.stem, path.name, ordered=False)
    same(Counter((q.text, c.text, c.label) for q in split for c in q.candidates), triples(written(path)), "rows")
    document_order.check(split, path.name)


def from_the_mirror(path: Path) -> None:
    *_, owner, name = path.parent.parts
    os.environ[hub.MIRROR] = str(path.parents[2])
    table = tables.checked(hub.table(f"{owner}/{name}", path.stem), path.name)
    same(triples(table.to_pylist()), triples(written(path)), "rows")


NEWS = [
    {
        "storyId": f"./cnn/{n}.story",
        "type": ("train", "train", "dev", "test")[n],
        "text": "The match was close.  Ann won it! Nobody saw “her” go.\n\nShe came back in 1998.",
        "questions": [
            {"q": "Who won?", "consensus": {"s": 22, "e": 25}, "answers": [{"sourcerAnswers": [{"s": 22, "e": 25}, {"noAnswer": True}]}]},
            {"q": "Why?", "consensus": {"noAnswer": True}, "answers": [{"sourcerAnswers": [{"noAnswer": True}]}]},
        ],
    }
    for n in range(4)
]


def constructed(path: Path) -> None:
    record = newsas2.build(path, path.parent / "news", splitter="blingfire")
    counts, left_out = record["counts"], sum(sum(reasons.values()) for reasons in record["left_out"].values())
    read = [question for story in json.loads(path.read_bytes())["data"] for question in story["questions"]]
    same(sum(questions for questions, _ in counts.values()) + left_out, len(read), "questions kept and left out")
    for split, (_, candidates) in counts.items():
        table = pq.read_table(path.parent / "news" / f"{split}.parquet")
        same(candidates, len(table), f"rows of {split}")


QED = [
    {
        "example_id": n,
        "title_text": f"Page {n}",
        "question_text": f"who won number {n}",
        "paragraph_text": "It was close . Ann won “it” . Ben lost .",
        "sentence_starts": [0, 15, 30],
        "original_nq_answers": [[{"start": 15, "end": 18, "string": "Ann"}], [{"start": 15, "end": 22, "string": "Ann won"}]],
        "annotation": {"explanation_type": "none"},
    }
    for n in range(24)
]
SELQA = [
    {
        "question": f"Who won number {n}?",
        "article": f"Page {n}",
        "section": "Life",
        "candidates": ["", "It was close.", "Ann won “it”.", "Ben lost."],
        "answers": [2],
        "is_paraphrase": False,
    }
    for n in range(24)
]


def built_by(builder, rows: Callable[[Path], list], path: Path) -> None:
    """Answer sentences made of a release whose train side is the file."""
    record = builder.build(path.parent, path.parent / "made")
    kept = record["counts"]["train"][0] + record["counts"]["dev"][0]
    same(kept + sum(record["left_out"][path.name].values()), len(rows(path)), "questions kept and left out")
    answers.load_answers(path.parent / "made", context=True)


def parsed(path: Path):
    return json.loads(path.read_bytes().decode("utf-8-sig"))


# ------------------------------------------------------------------ claims and evidence

floes = lambda n: [[f"Penguin_-LRB-{n}-RRB-", k, f"It “breeds” on the {k}th floe.", 0.5] for k in range(n)]
CLAIMS = [{"id": n, "claim": f"Penguin {n} breeds on ice.", "label": claims.LABELS[n % 3], "evidence": floes(n)} for n in range(7)]


def claimed(path: Path) -> None:
    split, rows = claims.load_claims(path.parent)["train"], written(path)
    same([(claim.id, claim.text) for claim in split], [(str(row["id"]), row["claim"]) for row in rows], "claims")
    same(split.report["read"]["evidence"], sum(len(row["evidence"]) for row in rows), "evidence read")
    dropped = sum(lost["evidence"] for lost in split.report["dropped"].values())
    same(split.report["kept"]["evidence"] + dropped, split.report["read"]["evidence"], "evidence kept and reported")
    same(sum(len(claim.evidence) for claim in split), split.report["kept"]["evidence"], "evidence kept")


PASSAGES = [{"title": "Ann", "sentences": ["Ann won in 1998.", "She was 20."]}, {"title": "Bob", "sentences": ["He “lost”.", ""]}]
LONG = [
    {"id": n, "question": f"When did Ann win {n}?", "passages": PASSAGES, "answer": "1998", "kind": "span", "evidence": [[0, 0], [1, 0]]}
    for n in range(5)
]
QA = {"answers": [{"answer": {"unanswerable": False, "extractive_spans": ["in ice"], "free_form_answer": "", "yes_no": None,
                              "evidence": ["They breed in ice.", "FLOAT SELECTED: Table 1"]}}]}  # fmt: skip
PAPERS = {
    f"1{n}.0": {
        "title": f"Paper {n}",
        "full_text": [{"section_name": "Intro", "paragraphs": ["They breed in ice.", "No “more”."]}],
        "qas": [{"question": "Where?", "question_id": f"{n}-{k}", **QA} for k in range(2)],
    }
    for n in range(4)
}
FACTS = {"title": ["Ann", "Bob", "Eve"], "sent_id": [0, 5, 0]}
CONTEXT = {"title": ["Ann", "Bob"], "sentences": [["Ann won.", " She was 20."], ["Bob lost."]]}
RELEASED = [
    {"_id": f"h{n}", "question": "When?", "answer": "20", "supporting_facts": [["Ann", 0], ["Eve", 0]], "context": [["Ann", ["Ann won."]]]}
    for n in range(7)
]
HOTPOT = [{"id": f"h{n}", "question": "When?", "answer": "20", "supporting_facts": FACTS, "context": CONTEXT} for n in range(7)]


def accounted(split, asked: list[str], evidence: int | None = None) -> None:
    """A split has the questions that were asked, and an account of all that was read."""
    read, kept, dropped = (split.report[name] for name in ("read", "kept", "dropped"))
    for what in read:
        same(kept[what] + sum(lost[what] for lost in dropped.values()), read[what], f"{what} kept and reported")
    same(kept["questions"], len(split), "questions kept")
    same([one.text for one in split], list(map(qasper.plain, asked)), "questions")
    must(evidence in (None, read["evidence"]), f"evidence read: {evidence} expected, got {read['evidence']}")


def own_evidence(path: Path) -> None:
    split, rows = long_questions.load_evidence(path.parent)["train"], written(path)
    accounted(split, [row["question"] for row in rows], sum(len(one["evidence"]) for row in rows for one in row.get("answers", [row])))
    same([one.id for one in split], [str(row["id"]) for row in rows], "ids")


def asked_of(form, rows) -> long_questions.LongQuestions:
    return long_questions.questions_of(question for place, row in rows for question in form.rows(place, row))


def release(path: Path) -> None:
    accounted(asked_of(qasper, qasper.release(path)), [one["question"] for paper in parsed(path).values() for one in paper["qas"]])


def hotpot(path: Path) -> None:
    split = asked_of(hotpotqa, long_questions.parquet_rows([(path.name, files.table(path))], hotpotqa.COLUMNS))
    rows = written(path)
    accounted(split, [row["question"] for row in rows], sum(len(row["supporting_facts"]["title"]) for row in rows))


def hotpot_release(path: Path) -> None:
    split, rows = asked_of(hotpotqa, hotpotqa.release(path)), parsed(path)
    # one title may name two paragraphs
    named = [sum(title == fact for title, _ in row["context"]) for row in rows for fact, _ in row["supporting_facts"]]
    accounted(split, [row["question"] for row in rows], sum(max(1, paragraphs) for paragraphs in named))


# ------------------------------------------------------------------ texts and vectors

TEXTS = [{"id": f"t{n}", "answer": f"Text {n} about “rivers” and 3.5 hills."} for n in range(9)]
WORDS = "".join(f"word{n} {' '.join(str((n * k) % 7 / 8) for k in range(1, 5))}\n" for n in range(12))


def texts(path: Path) -> None:
    came, rows = list(vectors.read(path, ("answer", "text"))), written(path)
    names = ["line"] if path.suffix == ".txt" else ["answer", "text"]
    expected = [next(row[name] for name in names if name in row) for row in rows]
    same([text for _, text in came], expected, "texts")
    same([name for name, _ in came], [None if row.get("id") is None else str(row["id"]) for row in rows], "ids")


def vectors_opened(path: Path) -> None:
    found = vectors.Vectors.open(path.parent, verify=path.name != vectors.INFO)
    same(len(found), 9, "vectors")
    same(found.texts(range(9)), [row["answer"] for row in TEXTS], "texts")
    scores, numbers = found.search(np.ones((1, 4), np.float32), 9, "dot")
    same([np.isfinite(scores).all(), sorted(numbers[0].tolist())], [True, [*range(9)]], "numbers found")
    found.texts(range(9), "id")


def word_vectors(path: Path) -> None:
    found = elsewhere.WordVectors(path, path.parent / "cache")
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    header = len(lines[0].split()) == 2 and lines[0].rstrip(b" \r").replace(b" ", b"").isdigit()
    same(len(found.vectors), len(lines) - header, "word vectors")
    must(bool(np.isfinite(found.encode(["word1 word2"])).all()), "numbers that are not finite")


TABLES = (".tsv", ".jsonl", ".parquet")
LOADERS = [
    *(
        Loader("sources.documents", f"documents{suffix}", DOCUMENTS, documents, row)
        for suffix, row in ((".jsonl", "line {}"), (".parquet", "row {}"))
    ),
    Loader("sources.documents", "document.txt", PROSE * 9, documents),
    Loader("sources.documents", "paragraphs.jsonl", DOCUMENTS, paragraphs, "line {}"),
    Loader("sources.documents", "folder/b.jsonl", DOCUMENTS, folder_of_documents, "line {}", {"folder/a.jsonl": DOCUMENTS}),
    Loader("sources.read_titles", "titles.txt", "Document 1\n  Größe “2”  \n\n", titles),
    *(Loader("corpus.build", f"documents{suffix}", DOCUMENTS, built, prepared="tokenizer") for suffix in (".jsonl", ".parquet")),
    Loader("corpus.build", "document.txt", PROSE * 9, built, prepared="tokenizer"),
    *(
        Loader("corpus.Corpus.open", f"index/{name}", None, opened, prepared="index", named="index")
        for name in ("corpus.json", "tokens.npy", "documents.npy", "tokenizer/tokenizer.json")
    ),
    Loader("pipeline.plan", "documents.jsonl", DOCUMENTS, planned, "line {}", prepared="tokenizer"),
    *(
        Loader("pipeline.join", f"shards/{name}", None, joined, prepared="shards", named="shards")
        for name in ("plan.json", "shard-00000/corpus.json")
    ),
    *(Loader("answers.load_answers", f"asked{suffix}", ASKED, asked, "row {}") for suffix in TABLES),
    *(Loader("answers.load_answers", f"plain{suffix}", PLAIN, partial(asked, protocol="asbert"), "row {}") for suffix in TABLES),
    Loader("answers.load_answers in context", "asked.tsv", ASKED, partial(asked, context=True), "row {}"),
    Loader(
        "answers.load_answers",
        "folder/dev.jsonl",
        ASKED,
        asked_in_a_folder,
        "row {}",
        {"folder/train.tsv": ASKED, "folder/test.parquet": PLAIN},
        named="folder, dev",
    ),
    Loader("tables.open_parquet", "train.parquet", [{**row, "key": n // 3} for n, row in enumerate(PLAIN)], streamed, "row {}"),
    Loader("hub.table", "mirror/owner/name/train.parquet", PLAIN, from_the_mirror, "row {}"),
    Loader("newsas2.build", "combined.json", {"data": NEWS}, constructed),
    Loader(
        "nq_sentences.build",
        "qed-train.jsonlines",
        QED,
        partial(built_by, nq_sentences, written),
        "line {}",
        {"qed-dev.jsonlines": [QED[0] | {"question_text": "x"}]},
    ),
    Loader("selqa.build", "selqa-ass-dev.json", SELQA, partial(built_by, selqa, parsed), beside={"selqa-ass-test.json": SELQA}),
    Loader("claims.load_claims", "claims/train.jsonl", CLAIMS, claimed, "line {}", {"claims/dev.jsonl": CLAIMS}),
    Loader("evidence.load_evidence", "own/train.jsonl", LONG, own_evidence, "line {}", {"own/dev.jsonl": LONG}),
    Loader("qasper.release", "qasper-train-v0.3.json", PAPERS, release),
    Loader("evidence of HotpotQA", "train.parquet", HOTPOT, hotpot, "row {}"),
    Loader("hotpotqa.release", "hotpot_train_v1.1.json", RELEASED, hotpot_release),
    *(
        Loader("vectors.read", f"texts{suffix}", TEXTS, texts, row)
        for suffix, row in ((".jsonl", "line {}"), (".tsv", "row {}"), (".parquet", "row {}"))
    ),
    Loader("vectors.read", "texts.txt", "".join(row["answer"] + "\n" for row in TEXTS), texts, "line {}"),
    *(
        Loader("vectors.Vectors.open", f"vectors/{name}", None, vectors_opened, named="vectors", prepared="vectors")
        for name in (vectors.INFO, vectors.TEXTS, vectors.VECTORS)
    ),
    Loader("sentence_encoders.WordVectors", "words.txt", WORDS, word_vectors, "line {}"),
    Loader("sentence_encoders.WordVectors", "words.vec", f"12 4\n{WORDS}", word_vectors),
]
