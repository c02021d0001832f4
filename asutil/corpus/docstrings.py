"""The embedded `pydocs` source: the prose of docstrings of packages that this project installs anyway, read without importing them."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from itertools import islice
from typing import NamedTuple

from . import docstring_files

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
    """Every distinct docstring of `packages`, ordered by module and name; of identical (mostly inherited) ones the first.

    Raises: FileNotFoundError for a package that is not installed.
    """
    seen = set()
    for package in packages:
        for found in docstring_files.of_package(package):
            if len(seen) == limit:
                return
            digest = hashlib.blake2b(found[-1].encode("utf-8", "replace"), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                yield Docstring(package, *found)


def fingerprint_of_docstrings(packages=PACKAGES) -> str:
    """A hash of the packages' names and installed versions (a local part such as `+cpu` changes no docstring)."""
    versions = [
        f"{package}=={metadata.version(DISTRIBUTION.get(package, package)).split('+')[0]}" for package in packages
    ]
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()


def documents(limit: int | None = None, packages=PACKAGES) -> Iterator[list[str]]:
    """One document a docstring: its paragraphs of prose; a docstring without prose gives none. Lengths are the corpus's to filter."""
    return islice(filter(None, (prose(docstring.text) for docstring in read_docstrings(packages))), limit)


def sections(text: str) -> list[tuple[str, list[str]]]:
    """The numpydoc sections of a docstring as (title, lines); what stands before the first underlined title has the title ''.

    Example:
        >>> sections("Mean.\\n\\nReturns\\n-------\\nm : float\\n    The mean.")
        [('', ['Mean.', '']), ('Returns', ['m : float', '    The mean.'])]
    """
    lines, found, title, start = text.split("\n"), [], "", 0
    for i in range(len(lines) - 1):
        if (
            i >= start
            and lines[i]
            and not lines[i][0].isspace()
            and re.fullmatch(r"(-{3,}|={3,}|~{3,})\s*", lines[i + 1])
        ):
            found.append((title, lines[start:i]))
            title, start = lines[i].strip(), i + 2
    return [*found, (title, lines[start:])]


RETURNED = "What {be} {names}, returned by {owner}?"
WORDING = {
    "Parameters": "What {be} {names} in {owner}?",
    "Other Parameters": "What {be} {names} in {owner}?",
    "Attributes": "What {be} the attribute {names} of {owner}?",
    "Returns": RETURNED,
    "Yields": RETURNED,
}


class Asked(NamedTuple):
    id: str
    function: str  # its bare name: what scikit-learn's hundred `fit` have in common should be on one side of a split
    question: str
    sentences: list[str]
    positive: set[int]


def questions(packages=NUMPYDOC) -> Iterator[Asked]:
    """A question for every parameter, attribute and return value of a public class or function.

    The candidates are the sentences (>= 20 characters) of the whole docstring in order, the positives those that describe it.
    """
    used = Counter()
    for docstring, path in _public(packages):
        parts = docstring.module.split(".")
        public = parts[: next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))]
        owner = ".".join([*public, *path])  # numpy._core.fromnumeric.mean -> numpy.mean
        sentences, asked = _asked(docstring.text, owner)
        for (name, question), positive in asked.items():
            used[id := f"{docstring.module}.{docstring.qualname}:{name}"] += 1
            yield Asked(id if used[id] == 1 else f"{id}#{used[id]}", path[-1], question, sentences, positive)


def _public(packages) -> Iterator[tuple[Docstring, list[str]]]:
    """The docstrings of public classes and functions, and the parts of their names."""
    for docstring in read_docstrings(packages):
        path = docstring.qualname.split(".")
        if docstring.qualname and not any(part.startswith("_") for part in path):
            yield docstring, path


def _asked(text: str, owner: str) -> tuple[list[str], dict[tuple[str, str], set[int]]]:
    """The sentences of a docstring, and (name, question) -> the numbers of those that answer it."""
    sentences, asked = [], {}

    def add(lines) -> set[int]:
        first = len(sentences)
        sentences.extend(_sentences(lines))
        return set(range(first, len(sentences)))

    for title, lines in sections(text):
        if title not in WORDING:
            add(lines if title not in SKIPPED else [])
            continue
        for head, below in _entries(lines):
            names, colon, _ = head.partition(" : ")
            positive, names = add(below), [name for name in re.split(r"\s*,\s*", names.strip()) if name]
            wording, key = WORDING[title], ", ".join(names)
            if wording is RETURNED and not colon:  # a type without a name
                wording, key = "What does {owner} return?", "returns"
            if colon or wording is not WORDING[title] or all(map(str.isidentifier, names)):
                listed = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
                question = wording.format(be="are" if len(names) > 1 else "is", names=listed, owner=owner)
                asked.setdefault((key, question), set()).update(positive)
    return sentences, asked


def _entries(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """What a section lists: each line that is not indented, without markup, and the lines below it."""
    heads = [i for i, line in enumerate(lines) if line and not line[0].isspace()]
    for start, stop in zip(heads, [*heads[1:], len(lines)]):
        yield re.sub(r"[`*\\]", "", lines[start]), lines[start + 1 : stop]


class Entry(NamedTuple):
    id: str
    side: str
    title: str  # the function's or class's name in its module
    section: str
    name: str
    said: str  # what stands behind the name: type, default
    sentences: list[str]  # of the whole docstring in order; an entry's head is one of them
    own: range  # the numbers of the entry's sentences, its head first


def entries(packages=NUMPYDOC) -> Iterator[Entry]:
    """Every single parameter, attribute and named return value of a public class or function whose type is documented."""
    used = Counter()
    for docstring, path in _public(packages):
        sentences, found = [], []
        for title, lines in sections(docstring.text):
            for head, below in _entries(lines) if title in WORDING else [("", lines if title not in SKIPPED else [])]:
                first, (name, colon, said) = len(sentences), (part.strip() for part in head.partition(" : "))
                sentences += [" ".join(head.split())] * bool(head) + _sentences(below)
                if colon and name.isidentifier():
                    found.append((title, name, " ".join(said.split()), range(first, len(sentences))))
        for section, name, said, own in found:
            used[id := f"{docstring.module}.{docstring.qualname}:{name}"] += 1
            id = id if used[id] == 1 else f"{id}#{used[id]}"
            yield Entry(id, side(path[-1]), docstring.qualname, section, name, said, sentences, own)


def side(function: str) -> str:
    """Where a function's bare name is: eight tenths of them in train, one in dev, one in test."""
    part = int.from_bytes(hashlib.blake2b(function.encode(), digest_size=7, key=b"pydocs").digest()) % 10
    return "test" if part == 0 else "dev" if part == 1 else "train"


def _sentences(lines: list[str]) -> list[str]:
    """The sentences of at least 20 characters of their prose."""
    from blingfire import text_to_sentences

    split = (text_to_sentences(paragraph).split("\n") for paragraph in prose("\n".join(lines)))
    return [sentence for sentences in split for sentence in sentences if len(sentence) >= 20]


def prose(text: str) -> list[str]:
    """The paragraphs of a docstring as plain text: no code, doctests, literal blocks, directives, tables, headings or list terms.

    Example:
        >>> prose("Add ``a`` to :func:`~x.y`.\\n\\nArgs:\\n    a (int): The addend.\\n\\n>>> add(1)\\n2")
        ['Add a to y.', 'The addend.']
    """
    kept = [lines for title, lines in sections(text) if title not in SKIPPED]
    found = (plain(paragraph) for lines in kept for paragraph in _paragraphs(_without_blocks(lines)))
    return [
        paragraph
        for paragraph in found
        if re.search(r"[^\W\d_]{2}", paragraph) and not re.search(r"%\(\S+\)s", paragraph)
    ]


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
    kept, i = [], 0

    def first(wanted):
        return next((j for j in range(i, len(lines)) if wanted(lines[j].strip(), lines[j])), len(lines))

    while i < len(lines):
        line, text, i = lines[i], lines[i].strip(), i + 1
        depth, directive = _depth(line), DIRECTIVE.fullmatch(text)
        if directive and directive[1] in PROSE_DIRECTIVES:
            line = " " * depth + directive[2]
        elif directive or text.endswith("::"):  # until the first line that is no deeper
            i = first(lambda text, line, depth=depth: text and _depth(line) <= depth)
            kept += [] if directive or text == "::" else [line.rstrip()[:-1]]
            line = ""
        elif text.startswith("```"):
            i, line = first(lambda text, _: text.startswith("```")) + 1, ""
        elif UNTIL_BLANK.fullmatch(text):
            i, line = first(lambda text, _: not text), ""
        elif UNDERLINE.fullmatch(text):
            kept[-1:], line = [""], ""
        kept.append("" if MARKUP_LINE.fullmatch(text) else line)
    return kept


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Paragraphs end at a blank line, a list marker, a term, and where the indentation goes back."""
    buffer, previous = [], 0
    for line, following in zip(lines, [*lines[1:], ""]):
        text, depth = line.strip(), _depth(line)
        unmarked = MARKER.sub("", text)
        if buffer and (not text or depth < previous or unmarked != text or TERM.match(text)):
            yield " ".join(buffer)
            buffer = []
        previous = depth
        heads = text and not buffer and unmarked == text and following.strip() and _depth(following) > depth
        if HEADING.fullmatch(text) or (
            heads and (" : " in text or not (TERM.match(text) or len(text) > 99 or text[-1] in ".,;!?"))
        ):
            continue  # a heading, or the term that a deeper description follows
        buffer += TERM.sub("", unmarked).split()
    if buffer:
        yield " ".join(buffer)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


MARKUP = [
    ("~", re.compile(r"`[~!]\.?(?:\w+\.)*(\w+(?:\(\))?)`"), r"`\1`"),  # only the last part of a dotted name
    (":", re.compile(r"(?::[A-Za-z][\w.+-]*)+:`([^`<]*?)(?:\s*<[^`>]*>)?`"), r"\1"),  # roles
    ("<", re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),  # links
    (
        "[",
        re.compile(r"\[`([^`\]]+)`\](?:\([^)]*\))?|\[([^\]\[]+)\]\((?:https?:|\.|/|#)[^)]*\)"),
        r"\1\2",
    ),  # markdown links
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
