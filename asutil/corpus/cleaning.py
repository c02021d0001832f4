"""Raw documents -> paragraphs of prose -> sentences."""

import html
import re

MIN_PARAGRAPH = 60  # characters, of a language with an alphabet (sentence_objectives, appendix A.1)
MIN_DOCUMENT = 200
LIMITS = {"min_paragraph_chars": MIN_PARAGRAPH, "min_document_chars": MIN_DOCUMENT}  # arguments of `clean`

_BLOCKS = [(re.compile(rf"<{tag}\b", re.I), re.compile(rf"</{tag}\s*>", re.I)) for tag in ("script", "style", "table")]
_BLOCKS.append((re.compile("<!--"), re.compile("-->")))
BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
# Within a paragraph: the < of x<y has a > pages later, if any.
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*(?:\n(?![^\S\n]*\n)[^<>\n]*)*>")
# A reference with more digits than Python reads as a number; U+FFFD, as for all that are too large.
_ENDLESS = re.compile(r"&#\d{4300,};?")
_NO_PROSE = re.compile(r"=+[^=].*=|#{1,6}\s.*|\|.*|\{\|.*|.*\||[-=~^*_+]{4,}")  # a heading, a row of a table, a ruler


def clean(document, min_paragraph_chars=MIN_PARAGRAPH, min_document_chars=MIN_DOCUMENT) -> list[list[str]] | list[str]:
    """Paragraphs of prose of one document: markup, headings, tables and short paragraphs removed, white space normalised.

    Paper: sentence_objectives, appendix A.1 (paragraphs of >= 60 characters, documents of >= 200).
    Args:
        document: a string (blank lines between paragraphs), a list of paragraphs, or a list of lists of sentences.
        min_paragraph_chars, min_document_chars: a shorter paragraph is left out, and a document with fewer characters in the others.
    Returns: the paragraphs that are long enough, as strings or, for sentences, as lists of sentences; empty for a short document.

    Example:
        >>> clean("== Title ==\\n\\n" + "A <b>short</b> sentence about  nothing in particular. " * 5)
        ['A short sentence about nothing in particular. A short sentence about ... nothing in particular.']
    """
    if isinstance(document, str):
        document = BLANK_LINE.split(without_markup(document.replace("\r\n", "\n")))
    paragraphs = [_prose(paragraph) if isinstance(paragraph, str) else _sentences(paragraph) for paragraph in document]
    sizes = [len(p) if isinstance(p, str) else len(" ".join(p)) for p in paragraphs]
    if sum(size for size in sizes if size >= min_paragraph_chars) < min_document_chars:
        return []
    return [paragraph for paragraph, size in zip(paragraphs, sizes) if size >= min_paragraph_chars]


def without_markup(text: str) -> str:
    """A text without tags, and without what stands between those of scripts, styles, tables and comments."""
    return _TAG.sub(" ", without_blocks(text)) if "<" in text else text


def without_blocks(text: str) -> str:
    """A text without scripts, styles, tables and comments; other tags stay."""
    for opening, closing in _BLOCKS:
        text = " ".join(outside(text, opening, closing))
    return text


def outside(text: str, opening: re.Pattern, closing: re.Pattern) -> list[str]:
    """The parts of a text outside of marks. The search only goes forwards, so that a thousand open marks cost no more than one."""
    parts = []
    position = 0
    while (start := opening.search(text, position)) and (end := closing.search(text, start.end())):
        parts.append(text[position : start.start()])
        position = end.end()
    return [*parts, text[position:]]


def _prose(paragraph: str) -> str:
    lines = (line.strip() for line in without_markup(paragraph).split("\n"))
    prose = "\n".join(line for line in lines if not _NO_PROSE.fullmatch(line))
    return " ".join(html.unescape(_ENDLESS.sub("\ufffd", prose)).split())


def _sentences(paragraph) -> list[str]:
    return [text for text in (" ".join(sentence.split()) for sentence in paragraph) if text]


def splitter_function(name: str):
    """`blingfire` (sentence_objectives) or `nltk` (contextual_as2; D-09): paragraph -> list of sentences.

    Raises: ValueError for another name; LookupError where NLTK's data is not installed, with the command that installs it.
    """
    if name == "blingfire":
        from livekit.blingfire import text_to_sentences

        return lambda paragraph: text_to_sentences(paragraph).split("\n")
    if name == "nltk":
        from nltk.tokenize import PunktTokenizer

        try:
            return PunktTokenizer("english").tokenize
        except LookupError:
            raise LookupError(
                "splitter nltk needs its data: python -m nltk.downloader punkt_tab (or take splitter blingfire)"
            ) from None
    raise ValueError(f"splitter is blingfire or nltk, got {name!r}")
