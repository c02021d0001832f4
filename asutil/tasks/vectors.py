"""Texts embedded once and kept on disk, and those nearest to a question: `embed`, `Vectors`, and their command line.

python -m asutil.tasks.vectors embed answers.jsonl --model RUN --out answers
python -m asutil.tasks.vectors search answers --model RUN --question "Where does the river rise?"
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

from ..corpus import sources
from ..io import files
from ..io.spelling import printable
from .embedding import embed, encoded
from .vector_search import BY, INFO, TEXTS, VECTORS, Vectors

__all__ = ["BY", "INFO", "TEXTS", "VECTORS", "Vectors", "embed", "main", "read"]
ENCODERS = ("transformer", "sentence_transformer", "word_vectors", "infersent", "use")
QUESTIONS, ANSWERS = ("question", "text"), ("answer", "text")  # columns of texts, the first that is there
SUFFIXES = (".txt", ".tsv", ".jsonl", ".parquet")
TOGETHER = 1 << 12  # rows of a file, or questions of a file, that are read at a time


# ------------------------------------------------------------------ files of texts


def read(path: str | Path, columns: tuple[str, ...]) -> Iterator[tuple[str | None, str]]:
    """(id, text) of every row of a .txt (one text per line), .tsv, .jsonl or .parquet file.

    Ids are in a column `id`, if there is one.

    Args:
        columns: possible names of the text's column; the first that a row has is read.
    Raises: ValueError naming file and row.
    """
    path = Path(path)
    if path.suffix == ".txt":
        rows = ((place, {"line": line}) for place, line in files.lines(path))
    elif path.suffix == ".parquet":
        rows = files.rows(files.batches(files.opened(path), path, TOGETHER), path)
    elif path.suffix in SUFFIXES:
        rows = sources.read_rows(path, columns[0])
    else:
        raise ValueError(
            f"{path}: expected a file that ends in {', '.join(SUFFIXES)}, got {path.suffix or 'no ending'}"
        )
    for place, row in rows:
        column = next((column for column in ("line", *columns) if column in row), None)
        text = row.get(column)
        if not isinstance(text, str) or not text.strip():
            came = f"the columns {', '.join(row)}" if column is None else f"{text!r:.80}"
            raise ValueError(f"{place}: expected text in {column or ' or '.join(columns)}, got {came}")
        yield None if row.get("id") is None else str(row["id"]), text


# ------------------------------------------------------------------ the command line


def load_encoder(arguments):
    """The encoder that the command line names; torch is imported here, not with the module."""
    from ..models import elsewhere
    from . import rankers

    prompts = {"query": arguments.query_prompt, "document": arguments.prompt}
    prompts = {role: prompt for role, prompt in prompts.items() if prompt is not None}
    if arguments.encoder == "transformer":
        return rankers.load_encoder(arguments.model, prompts)
    if prompts and arguments.encoder != "sentence_transformer":
        raise ValueError(
            f"--prompt, --query-prompt: a model of sentence-transformers takes them, {arguments.encoder} does not"
        )
    own = {"prompts": prompts} if prompts else {}
    return elsewhere.load(arguments.encoder, arguments.model, **own)


def require_texts(path: str | Path, columns: tuple[str, ...]) -> None:
    """Read a file of texts to its end, before a model is loaded. Raises: as `read`, and for a file that is not there or empty."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist: a file of texts is expected")
    if not sum(1 for _ in read(path, columns)):
        raise ValueError(f"{path}: at least one text expected, got none")


def _search(arguments) -> None:
    """Print the nearest texts of each question."""
    from . import nearest

    vectors = Vectors.open(arguments.folder, arguments.verify)
    if arguments.questions:
        require_texts(arguments.questions, QUESTIONS)
    encoder = load_encoder(arguments)
    vectors.must_be_of(encoder)
    by = arguments.by or nearest.usual(encoder)
    together = TOGETHER
    if arguments.question:
        questions = iter(arguments.question)
    elif arguments.questions:
        questions = (text for _, text in read(arguments.questions, QUESTIONS))
    else:
        questions = (line.strip() for line in sys.stdin if line.strip())
        together = 1 if sys.stdin.isatty() else TOGETHER
    alone = len(arguments.question or ()) == 1
    while some := list(itertools.islice(questions, together)):
        for question, scores, numbers in zip(some, *vectors.search(encoded(encoder, some, "query"), arguments.k, by)):
            if not alone:
                print(f"\n{printable(question)}")
            rows = zip(scores, numbers, vectors.texts(numbers, "id"), vectors.texts(numbers))
            for rank, (score, number, name, text) in enumerate(rows, 1):
                label = number if name is None else printable(name)
                print(rank, f"{score:.4f}", label, printable(text), sep="\t", flush=True)


def main() -> None:
    arguments = _parser().parse_args()
    try:
        if arguments.command == "search":
            _search(arguments)
        else:
            require_texts(arguments.file, ANSWERS)
            print(embed(load_encoder(arguments), read(arguments.file, ANSWERS), arguments.out))
    except (ValueError, OSError) as error:
        _parser().error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m asutil.tasks.vectors", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    model = argparse.ArgumentParser(add_help=False)
    model.add_argument("--model", required=True, help="a run of notebooks/embed.ipynb, a folder or a hub id")
    encoder = (
        "what the model is (default: transformer, a model trained here, one of sentence-transformers, or a backbone)"
    )
    model.add_argument("--encoder", default=ENCODERS[0], choices=ENCODERS, help=encoder)
    whose = "of a model of sentence-transformers (default: the model's own); the same for embed and search"
    model.add_argument("--prompt", help=f"put before each text, such as 'passage: ', {whose}")
    model.add_argument("--query-prompt", help=f"put before each question, such as 'query: ', {whose}")

    does = "embed the texts of a file; the same command continues after a stop"
    embeds = commands.add_parser("embed", parents=[model], help=does)
    forms = ".txt with one text per line, or .tsv, .jsonl, .parquet with a column answer or text, and id if any"
    embeds.add_argument("file", help=forms)
    embeds.add_argument("--out", type=Path, required=True, help="the folder to write vectors and texts into")

    does = "the nearest texts of questions: rank, score, id or number from 0, text"
    finds = commands.add_parser("search", parents=[model], help=does)
    finds.add_argument("folder", help="what embed wrote, with the same model")
    questions = finds.add_mutually_exclusive_group()
    several = "a question; repeat the option for more; without it, each line of standard input is a question"
    questions.add_argument("--question", action="append", help=several)
    questions.add_argument("--questions", help="a file of questions, as embed takes; its column is question or text")
    finds.add_argument("--k", type=int, default=10, help="how many texts per question (default: %(default)s)")
    finds.add_argument(
        "--by",
        choices=BY,
        help="similarity (default: the model's own; distance for a siamese or triplet network, else cosine)",
    )
    checks = "check the hashes of the folder's files first, a second for every 1 to 2 GB (default: %(default)s)"
    finds.add_argument("--verify", action=argparse.BooleanOptionalAction, default=True, help=checks)
    return parser


if __name__ == "__main__":
    main()
