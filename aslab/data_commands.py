"""Commands for corpora and data sets; what they call is in `asutil`."""

import itertools
from pathlib import Path

from asutil.corpus import index, sources
from asutil.data import built
from asutil.data import nq_sentences as nq
from asutil.data import selqa as sq
from asutil.data.data_sets import ANSWERS
from asutil.io import disk, hub
from asutil.tasks import mine as mining

from .commands import argument, command, option


def _fetch(source: str, split: str, limit: int, out: Path) -> str:
    import pyarrow
    import pyarrow.parquet
    from tqdm.auto import tqdm

    hub_id, _, config = source.partition(":")
    stream = hub.stream(hub_id, split, config or sources.HUB_FORMS.get(hub_id, sources.Form()).config)
    rows = tqdm(itertools.islice(stream, limit), total=limit, unit=" rows")
    table = pyarrow.Table.from_pylist(list(rows))
    disk.atomically(out, lambda path: pyarrow.parquet.write_table(table, path))
    return f"{table.num_rows:,} rows, {', '.join(table.column_names)}: {out}"


fetch = command(
    _fetch,
    argument("source", "data set of the hub: owner/name or owner/name:config"),
    option("--split", "split of the data set", default="train"),
    option("--limit", "number of rows to keep", type=int, required=True),
    option("--out", "the .parquet file to write", type=Path, required=True),
    example="asutil fetch wikimedia/wikipedia:20231101.en --limit 626 --out wikipedia.parquet",
    details="Keeps all columns, for machines without a network.",
)
verify = command(
    lambda folder: f"{index.verify(folder)}: nothing is damaged",
    argument("folder", "a folder with corpus.json", type=Path),
    example="asutil index verify wikipedia/",
    details="Takes a second for every 1 to 2 GB. Opening an index hashes only arrays of up to 2 GiB.",
)


def _builder(name: str, build, release: str, rule: str):
    place = f"${hub.MIRROR}/{ANSWERS[name].hub_id}"
    return command(
        lambda release, to: built.summary(build(release, to), to),
        argument("release", release, type=Path),
        option("--to", "the folder to write, which must not exist", type=Path, required=True),
        example=f"asutil build {name} RELEASE --to {place}",
        details=f"{rule} With --to {place}, load_answers({name!r}) reads it; any other folder is loaded by its path.",
    )


nq_sentences = _builder(
    "nq_sentences",
    nq.build,
    "a folder with qed-train.jsonlines and qed-dev.jsonlines of github.com/google-research-datasets/QED",
    "A sentence is right where it overlaps a short answer; questions without both labels are left out.",
)
selqa = _builder(
    "selqa",
    sq.build,
    "a folder with the files selqa-ass-*.json of github.com/emorynlp/selqa, or its repository",
    "Without the file of train, the dev questions are divided as train and dev by article.",
)


def _mine(questions, sentences, model, to: Path, protocol, limit, judge, depth, **rule) -> list:
    if depth is None:
        depth = JUDGED if judge else mining.USUAL.depth
    record = mining.mine(questions, sentences, model, to, mining.Rule(**rule, depth=depth), protocol, limit, judge)
    return [mining.summary(record, to), "", to]


def margin(text: str) -> float | None:
    return None if text == "none" else float(text)


SENTENCES = (
    ".txt, a sentence a line; .tsv, .csv, .jsonl, .parquet with a column sentence or text; a folder of documents"
)
ENCODER = "a run of notebooks/embed.ipynb, a model of sentence-transformers, a backbone (mean of its last layer)"
JUDGED = 50  # sentences of a question that a judge scores, by default
JUDGE = "a cross-encoder, or any other ranker, that scores the best sentences again; the margin goes by its scores"
DEPTH = f"best sentences to look at, without the question's own candidates; default: {mining.USUAL.depth}, {JUDGED} with --judge"
MARGIN = "a negative must score lower than each right candidate by this share of its score; none: no margin"
mine = command(
    _mine,
    argument("questions", "a data set, or a file or folder of your own, as in notebooks/finetune.ipynb"),
    argument("sentences", f"{SENTENCES}; or the word {mining.CANDIDATES}: those of all training questions"),
    option("--model", f"what ranks the sentences: bm25; random, as a control; or an encoder: {ENCODER}", required=True),
    option("--to", "the folder to write, which must not exist", type=Path, required=True),
    option("--protocol", "protocol of the data set: which questions are used", default="clean"),
    option("--limit", "at most so many questions of each split, as question_limit in the notebook", type=int),
    option("--negatives", "largest number of negatives for a question", default=mining.USUAL.negatives),
    option("--skip", "best sentences below the margin to leave out first", default=mining.USUAL.skip),
    option("--margin", MARGIN, type=margin, metavar="SHARE", default=mining.USUAL.margin),
    option("--depth", DEPTH, type=int),
    option("--judge", JUDGE),
    example="asutil mine wikiqa sentences.txt --model sentence-transformers/all-MiniLM-L6-v2 --to mined",
)
