"""The embedded `pydocs` source: the prose of docstrings of packages that this project installs anyway, read without importing them."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from itertools import islice
from typing import NamedTuple

from ..draws import text_hash
from . import files

PACKAGES = ("numpy", "scipy", "pandas", "sklearn", "matplotlib", "torch", "transformers")
NUMPYDOC = ("numpy", "scipy", "pandas", "sklearn")  # those whose docstrings have numpydoc sections
DISTRIBUTION = {"sklearn": "scikit-learn"}
SKIPPED = ("Examples", "Example", "References", "See Also", "See also")  # code, citations, lists of names


class Docstring(NamedTuple):
    package: str
    module: str
    qualname: str  # empty for a module's own docstring
    text: str


def read_docstrings(packages=PACKAGES, limit: int | None = None) -> Iterator[Docstring]:
    """Every distinct docstring of `packages`, ordered by module and name. Of identical ones, mostly inherited, only the first.

    Raises: FileNotFoundError for a package that is not installed.
    """
    seen = set()
    for package in packages:
        for module, qualname, text in files.of_package(package):
            if len(seen) == limit:
                return
            digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                yield Docstring(package, module, qualname, text)


@cache  # a plan of all rows asks some hundred times
def fingerprint_of_docstrings(packages=PACKAGES) -> str:
    """A hash of the packages' names and installed versions (a local part such as `+cpu` changes no docstring)."""
    versions = [f"{name}=={metadata.version(DISTRIBUTION.get(name, name)).split('+')[0]}" for name in packages]
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()


def documents(limit: int | None = None, packages=PACKAGES) -> Iterator[list[str]]:
    """One document a docstring: its paragraphs of prose. A docstring without prose gives none; the corpus filters by length."""
    return islice(filter(None, (prose(docstring.text) for docstring in read_docstrings(packages))), limit)


def sections(text: str) -> list[tuple[str, list[str]]]:
    """The numpydoc sections of a docstring as (title, lines); the part before the first underlined title has the title ''.

    Example:
        >>> sections("Mean.\\n\\nReturns\\n-------\\nm : float\\n    The mean.")
        [('', ['Mean.', '']), ('Returns', ['m : float', '    The mean.'])]
    """
    lines = text.split("\n")
    parts = []
    title = ""
    start = 0
    for i in range(len(lines) - 1):
        is_title = i >= start and lines[i] and not lines[i][0].isspace()
        if is_title and re.fullmatch(r"(-{3,}|={3,}|~{3,})\s*", lines[i + 1]):
            parts.append((title, lines[start:i]))
            title = lines[i].strip()
            start = i + 2
    return [*parts, (title, lines[start:])]


RETURNED = "What {be} {names}, returned by {owner}?"
WORDING = {
    "Parameters": "What {be} {names} in {owner}?",
    "Other Parameters": "What {be} {names} in {owner}?",
    "Attributes": "What {be} the attribute {names} of {owner}?",
    "Returns": RETURNED,
    "Yields": RETURNED,
}


class DocumentedQuestion(NamedTuple):
    id: str
    function: str  # its bare name: the hundred `fit` of scikit-learn share much, and all belong in one split
    text: str
    sentences: list[str]
    positive: set[int]  # the numbers of the sentences that answer it


def questions(packages=NUMPYDOC) -> Iterator[DocumentedQuestion]:
    """A question for every parameter, attribute and return value of a public class or function.

    The candidates are the sentences (>= 20 characters) of the whole docstring in order, the positives those that describe it.
    """
    unique = _unique_ids()
    for docstring, path in _public(packages):
        parts = docstring.module.split(".")
        public = parts[: next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))]
        owner = ".".join([*public, *path])  # numpy._core.fromnumeric.mean -> numpy.mean
        sentences, answers = _questions_of(docstring.text, owner)
        for (name, text), positive in answers.items():
            id = unique(f"{docstring.module}.{docstring.qualname}:{name}")
            yield DocumentedQuestion(id, path[-1], text, sentences, positive)


def _unique_ids() -> Callable[[str], str]:
    """A function that returns an id as it is the first time, with `#2` the second time and so on."""
    counts = Counter()

    def unique(id: str) -> str:
        counts[id] += 1
        return id if counts[id] == 1 else f"{id}#{counts[id]}"

    return unique


def _public(packages) -> Iterator[tuple[Docstring, list[str]]]:
    """The docstrings of public classes and functions, and the parts of their names."""
    for docstring in read_docstrings(packages):
        path = docstring.qualname.split(".")
        if docstring.qualname and not any(part.startswith("_") for part in path):
            yield docstring, path


def _questions_of(text: str, owner: str) -> tuple[list[str], dict[tuple[str, str], set[int]]]:
    """The sentences of a docstring, and (name, question) -> the numbers of the sentences that answer it."""
    sentences, listed = _listed(text)
    answers = {}
    for title, head, own in listed:
        names, colon, _ = head.partition(" : ")
        names = [name for name in re.split(r"\s*,\s*", names.strip()) if name]
        wording = WORDING[title]
        key = ", ".join(names)
        type_alone = wording is RETURNED and not colon
        if type_alone:
            wording = "What does {owner} return?"
            key = "returns"
        if colon or type_alone or all(map(str.isidentifier, names)):
            all_names = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
            question = wording.format(be="are" if len(names) > 1 else "is", names=all_names, owner=owner)
            answers.setdefault((key, question), set()).update(own)
    return sentences, answers


def _listed(text: str, with_heads: bool = False) -> tuple[list[str], list[tuple[str, str, range]]]:
    """The sentences of a docstring, and (section, head, numbers of its sentences) of all that its sections list.

    A section lists lines that are not indented, the heads, each with the lines below it. Heads have no markup.
    Args:
        with_heads: heads are sentences, too.
    """
    sentences, listed = [], []
    for title, lines in sections(text):
        if title not in WORDING:
            sentences += _sentences(lines) if title not in SKIPPED else []
            continue
        heads = [i for i, line in enumerate(lines) if line and not line[0].isspace()]
        for start, stop in zip(heads, [*heads[1:], len(lines)]):
            head = re.sub(r"[`*\\]", "", lines[start])
            first = len(sentences)
            sentences += [" ".join(head.split())] if with_heads and head else []
            sentences += _sentences(lines[start + 1 : stop])
            listed.append((title, head, range(first, len(sentences))))
    return sentences, listed


class Entry(NamedTuple):
    id: str
    split: str
    title: str  # the function's or class's name in its module
    section: str
    name: str
    signature: str  # what follows the name: type, default
    sentences: list[str]  # of the whole docstring in order; an entry's head is one of them
    own: range  # the numbers of the entry's sentences, its head first


def entries(packages=NUMPYDOC) -> Iterator[Entry]:
    """Every single parameter, attribute and named return value of a public class or function whose type is documented."""
    unique = _unique_ids()
    for docstring, path in _public(packages):
        sentences, listed = _listed(docstring.text, with_heads=True)
        for section, head, own in listed:
            name, colon, signature = (part.strip() for part in head.partition(" : "))
            if colon and name.isidentifier():
                id = unique(f"{docstring.module}.{docstring.qualname}:{name}")
                signature = " ".join(signature.split())
                yield Entry(id, split_of(path[-1]), docstring.qualname, section, name, signature, sentences, own)


def split_of(function: str) -> str:
    """The split of a function's bare name: eight tenths of the names are in train, one in dev, one in test."""
    tenth = text_hash(function, "pydocs") % 10
    return {0: "test", 1: "dev"}.get(tenth, "train")


def _sentences(lines: list[str]) -> list[str]:
    """The sentences of at least 20 characters of their prose."""
    from livekit.blingfire import text_to_sentences

    paragraphs = (text_to_sentences(paragraph).split("\n") for paragraph in prose("\n".join(lines)))
    return [sentence for sentences in paragraphs for sentence in sentences if len(sentence) >= 20]


def prose(text: str) -> list[str]:
    """The paragraphs of a docstring as plain text: no code, doctests, literal blocks, directives, tables, headings or list terms.

    Example:
        >>> prose("Add ``a`` to :func:`~x.y`.\\n\\nArgs:\\n    a (int): The addend.\\n\\n>>> add(1)\\n2")
        ['Add a to y.', 'The addend.']
    """
    read = [lines for title, lines in sections(text) if title not in SKIPPED]
    paragraphs = (plain(paragraph) for lines in read for paragraph in _paragraphs(_without_blocks(lines)))
    template = re.compile(r"%\(\S+\)s")
    return [text for text in paragraphs if re.search(r"[^\W\d_]{2}", text) and not template.search(text)]


PROSE_DIRECTIVES = {"note", "warning", "tip", "important", "caution", "attention", "hint"}
DIRECTIVE = re.compile(r"\.\.(?:\s+(?:([\w-]+)::)?\s*(.*))?")
UNTIL_BLANK = re.compile(r">>>.*|In \[.*|=+( +=+)+")  # doctests, simple tables
UNDERLINE = re.compile(r"([=\-~^*+#\"'`_.:])\1{2,}")
MARKUP_LINE = re.compile(r"\+[-=+]+\+|\|.*\||</?\w[^>]*>|<!--.*")  # tables, a line that is one tag
HEADING = re.compile(r"[A-Z][A-Za-z ]{0,30}:|#+ .*")
MARKER = re.compile(r"^(?:[-*+•]|\d+[.)])\s+")
TERM = re.compile(
    r"^(?:\*{0,2}`*[A-Za-z_][\w.*]*`*(?: ?\((?:[^()]|\([^()]*\))*\))?\s*:\s+(?=\S)|:[a-z]+(?: [^:`]*)?:\s+)"
)


def _without_blocks(lines: list[str]) -> list[str]:
    """The lines, where code, doctests, literal blocks, directives, tables and underlined headings are blank."""
    kept = []
    i = 0

    def next_line(wanted: Callable[[str, str], object]) -> int:
        """The number of the next line whose text and whole line are wanted."""
        return next((j for j in range(i, len(lines)) if wanted(lines[j].strip(), lines[j])), len(lines))

    while i < len(lines):
        line = lines[i]
        text = line.strip()
        depth = _depth(line)
        i += 1
        directive = DIRECTIVE.fullmatch(text)
        if directive and directive[1] in PROSE_DIRECTIVES:
            line = " " * depth + directive[2]
        elif directive or text.endswith("::"):  # until the first line that is no deeper
            i = next_line(lambda text, line, depth=depth: text and _depth(line) <= depth)
            kept += [] if directive or text == "::" else [line.rstrip()[:-1]]
            line = ""
        elif text.startswith("```"):
            i = next_line(lambda text, _: text.startswith("```")) + 1
            line = ""
        elif UNTIL_BLANK.fullmatch(text):
            i = next_line(lambda text, _: not text)
            line = ""
        elif UNDERLINE.fullmatch(text):
            kept[-1:] = [""]
            line = ""
        kept.append("" if MARKUP_LINE.fullmatch(text) else line)
    return kept


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Paragraphs end at a blank line, a list marker, a term, and where the indentation goes back."""
    words = []
    previous = 0
    for line, following in zip(lines, [*lines[1:], ""]):
        text = line.strip()
        depth = _depth(line)
        unmarked = MARKER.sub("", text)
        if words and (not text or depth < previous or unmarked != text or TERM.match(text)):
            yield " ".join(words)
            words = []
        previous = depth
        is_deeper_below = following.strip() and _depth(following) > depth
        if HEADING.fullmatch(text):
            continue
        if text and not words and unmarked == text and is_deeper_below:
            is_sentence = TERM.match(text) or len(text) > 99 or text[-1] in ".,;!?"
            if " : " in text or not is_sentence:  # the term that the deeper description belongs to
                continue
        words += TERM.sub("", unmarked).split()
    if words:
        yield " ".join(words)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


MARKUP = [
    ("~", re.compile(r"`[~!]\.?(?:\w+\.)*(\w+(?:\(\))?)`"), r"`\1`"),  # only the last part of a dotted name
    (":", re.compile(r"(?::[A-Za-z][\w.+-]*)+:`([^`<]*?)(?:\s*<[^`>]*>)?`"), r"\1"),  # roles
    ("<", re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),  # links
    # markdown links
    ("[", re.compile(r"\[`([^`\]]+)`\](?:\([^)]*\))?|\[([^\]\[]+)\]\((?:https?:|\.|/|#)[^)]*\)"), r"\1\2"),
    ("]_", re.compile(r"\s*\[[#\w*]+\]_"), ""),  # citations
    ("`", re.compile(r"``(.+?)``|`([^`]+)`_{0,2}"), r"\1\2"),
    ("*", re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*]*[^\s*])\*(?![\w*])"), r"\1\2"),
    ("\\", re.compile(r"\\([*_`|\\ ])"), r"\1"),
]


def plain(text: str) -> str:
    """Markup turned to plain text: roles, links, backticks, emphasis, citations.

    Example:
        >>> plain("See :class:`~torch.Tensor`, ``x`` and **all** of `the guide <https://a.b>`_ [1]_.")
        'See Tensor, x and all of the guide.'
    """
    for sign, pattern, replacement in MARKUP:
        text = pattern.sub(replacement, text) if sign in text else text
    return " ".join(text.split())
