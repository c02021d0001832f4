"""A matplotlib Figure that a notebook shows and saves as SVG, with words for those who do not see it."""

import importlib
import io
import re

import matplotlib
from matplotlib.figure import Figure

SVG = "image/svg+xml"
OWN_ID = re.compile(r' id="(?!(?:C\w+_|\w)?[0-9a-f]{10}")[^"]*"')  # names that two figures on a page would share

LONG_NUMBER = re.compile(r"(\d\.\d\d)\d+")
FONTS = re.compile(r"('DejaVu Sans'), [^;\"]*sans-serif")


class Later:
    """A module that is loaded when it is first used: seaborn takes a second, which a run spends at its first plot."""

    # torch asks every module of `sys.modules` for its file, which loads one of `importlib.util.LazyLoader`.

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, attribute: str):
        return getattr(importlib.import_module(self.name), attribute)


def svg(figure: Figure, salt: str, transparent: bool = False) -> str:
    """A figure as SVG whose texts are texts; the same figure and salt give the same bytes."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=transparent, metadata={"Date": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return OWN_ID.sub("", text)


class Picture(Figure):
    """A Figure with `words`: a sentence on what it shows, the alternative text of the saved picture."""

    def __init__(self, words: str, **options):
        super().__init__(layout="constrained", **options)
        self.words = words

    def _repr_mimebundle_(self, include=None, exclude=None):
        """SVG on white, because black text cannot be read on every page; places have two digits, to keep files small."""
        drawn = FONTS.sub(r"\1, sans-serif", LONG_NUMBER.sub(r"\1", svg(self, self.words)))
        return {SVG: drawn, "text/plain": self.words}, {SVG: {"alt": self.words}}
