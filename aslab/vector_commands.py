"""Commands that embed texts once and find those nearest to questions; `asutil.tasks.vectors` is what they call."""

import itertools
import sys
from pathlib import Path

from click import Choice

from asutil.io.spelling import printable
from asutil.tasks import vectors
from asutil.tasks.embedding import encoded

from .commands import argument, command, option

ENCODERS = ("transformer", "sentence_transformer", "word_vectors", "infersent", "use")
# Columns of texts, the first that is there.
QUESTIONS, ANSWERS = ("question", "text"), ("answer", "text")


def load_encoder(model: str, encoder: str, prompt: str | None, query_prompt: str | None):
    """The encoder that the options name; torch is imported here, not with the module."""
    from asutil.models import elsewhere
    from asutil.tasks import rankers

    prompts = {role: text for role, text in {"query": query_prompt, "document": prompt}.items() if text is not None}
    if encoder == "transformer":
        return rankers.load_encoder(model, prompts)
    if encoder == "sentence_transformer":
        return elsewhere.SentenceTransformerEncoder(model, None, prompts=prompts)
    if prompts:
        raise ValueError(f"--prompt, --query-prompt: a model of sentence-transformers takes them, {encoder} does not")
    return elsewhere.load(encoder, model)


def require_texts(path: str | Path, columns: tuple[str, ...]) -> None:
    """Read a file of texts to its end, before a model is loaded. Raises: as `read`, and for a file that is not there or empty."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist: a file of texts is expected")
    if not sum(1 for _ in vectors.read(path, columns)):
        raise ValueError(f"{path}: at least one text expected, got none")


def _embed(file: str, out: Path, **of_model) -> vectors.Vectors:
    require_texts(file, ANSWERS)
    return vectors.embed(load_encoder(**of_model), vectors.read(file, ANSWERS), out)


def _search(folder: str, question: list, questions: str | None, k: int, by: str | None, verify: bool, **of_model):
    """Print the nearest texts of each question."""
    from asutil.tasks import nearest

    if question and questions:
        raise ValueError("--question, --questions: one of the two is expected, got both")
    opened = vectors.Vectors.open(folder, verify)
    if questions:
        require_texts(questions, QUESTIONS)
    encoder = load_encoder(**of_model)
    opened.must_be_of(encoder)
    by = by or nearest.usual_of_vectors(encoder)
    together = vectors.TOGETHER
    if question:
        asked = iter(question)
    elif questions:
        asked = (text for _, text in vectors.read(questions, QUESTIONS))
    else:
        asked = (line.strip() for line in sys.stdin if line.strip())
        together = 1 if sys.stdin.isatty() else together
    while some := list(itertools.islice(asked, together)):
        for text, scores, numbers in zip(some, *opened.search(encoded(encoder, some, "query"), k, by)):
            if len(question) != 1:
                print(f"\n{printable(text)}")
            rows = zip(scores, numbers, opened.texts(numbers, "id"), opened.texts(numbers))
            for rank, (score, number, name, nearby) in enumerate(rows, 1):
                label = number if name is None else printable(name)
                print(rank, f"{score:.4f}", label, printable(nearby), sep="\t", flush=True)


READS = "transformer reads models trained here, models of sentence-transformers, and backbones"
USUAL = "default: the model's own; distance for a siamese or triplet network, else cosine"
WHOSE = "of a model of sentence-transformers; default: the model's own; the same for embed and search"
OF_MODEL = (
    option("--model", "a run of notebooks/embed.ipynb, a folder or a hub id", required=True),
    option("--encoder", READS, type=Choice(ENCODERS), default=ENCODERS[0]),
    option("--prompt", f"put before each text, such as 'passage: ', {WHOSE}"),
    option("--query-prompt", f"put before each question, such as 'query: ', {WHOSE}"),
)
embed = command(
    _embed,
    argument("file", ".txt, a text a line; .tsv, .csv, .jsonl, .parquet with a column answer or text, and id if any"),
    *OF_MODEL,
    option("--out", "the folder to write vectors and texts into", type=Path, required=True),
    example="asutil vectors embed answers.jsonl --model embed-<hash> --out answers",
    details="The same command continues after a stop.",
)
search = command(
    _search,
    argument("folder", "what embed wrote, with the same model"),
    *OF_MODEL,
    option("--question", "a question, may be repeated; without it, each line of standard input", multiple=True),
    option("--questions", "a file of questions, as embed takes; its column is question or text"),
    option("--k", "how many texts per question", default=10),
    option("--by", f"similarity; {USUAL}", type=Choice(vectors.BY)),
    option("--verify/--no-verify", "check the hashes of the folder's files first (1 to 2 GB a second)", default=True),
    example='asutil vectors search answers --model embed-<hash> --question "Where does the river rise?"',
    details="A line has rank, score, id or number from 0, and text.",
)
