"""The embedded source: against an invented package, against what Python itself says of numpy, and by laws."""

import inspect
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asutil.pydocs import documents as docstrings

FUNCTION = '''
def area(width, height, *args, unit="m"):
    """Area of a rectangle with straight sides.

    The sides are multiplied, see `volume` and [1]_.

    Parameters
    ----------
    width, height : float
        Lengths of the two sides. Both have to be positive numbers.
    *args
        More lengths, one for each further axis.
    unit : {'m', 'cm'}, optional
        Unit of the given lengths.

        .. versionadded:: 1.2

    Returns
    -------
    float
        Product of all the lengths in square units.

    Raises
    ------
    ValueError
        Where a length is below zero and nothing can be said.

    Examples
    --------
    This sentence stands beside an example and is no prose.

    >>> area(2, 3)
    6
    """
'''
ASKED = [
    "Area of a rectangle with straight sides.",
    "The sides are multiplied, see volume and.",
    "Lengths of the two sides.",
    "Both have to be positive numbers.",
    "More lengths, one for each further axis.",
    "Unit of the given lengths.",
    "Product of all the lengths in square units.",
    "Where a length is below zero and nothing can be said.",
]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that must not be imported, with what a reader meets in the real ones."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "invented"
    for folder in ("_core", "tests", "testing"):
        (root / folder).mkdir(parents=True)
    (root / "__init__.py").write_text('"""The package."""\nraise SystemExit("imported")\n')
    (root / "_core" / "shapes.py").write_text(
        '"""Shapes — in UTF-8."""\n' + FUNCTION + FUNCTION.replace("area", "_hidden").replace("Area", "Edge")
    )
    (root / "b.py").write_text('class Z:\n    """Z."""\n    def m(self):\n        """Inherited."""\n')
    (root / "a.py").write_text(
        'class A:\n    """A."""\n    def m(self):\n        """Inherited."""\n    async def n(self):\n        """N."""\n'
    )
    (root / "newer.py").write_text('"""Lost."""\nthis is no python\n')
    (root / "tests" / "x.py").write_text('"""A test."""\n')
    (root / "testing" / "x.py").write_text('"""A test too."""\n')
    (root / "test_y.py").write_text('"""And this."""\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    return ("invented",)


def test_read_orders_by_name_and_keeps_the_first_of_identical_docstrings(package, caplog):
    caplog.set_level("INFO")
    found = [f"{one.module}:{one.qualname}" for one in docstrings.read_docstrings(package)]
    shapes = [f"invented._core.shapes:{name}" for name in ("", "_hidden", "area")]
    assert found == ["invented:", *shapes, "invented.a:A", "invented.a:A.m", "invented.a:A.n", "invented.b:Z"]
    assert "newer.py, line 2" in caplog.text
    assert [one.text for one in docstrings.read_docstrings(package, limit=2)] == ["The package.", "Shapes — in UTF-8."]
    assert "invented" not in sys.modules


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(FileNotFoundError, match="no_such_package"):
        list(docstrings.read_docstrings(("no_such_package",)))


def test_docstrings_equal_what_python_says_of_numpy():
    import numpy as np

    ours = {one.qualname: one.text for one in docstrings.read_docstrings(("numpy",)) if one.module == "numpy.linalg._linalg"}
    assert ours["eigh"] == inspect.getdoc(np.linalg.eigh)
    assert ours["LinAlgError"] == inspect.getdoc(np.linalg.LinAlgError)


def test_documents_are_one_a_docstring(package):
    documents = list(docstrings.documents(packages=package))
    assert documents[0] == ["The package."]
    assert documents[3][:2] == ASKED[:2]
    assert "This sentence stands" not in str(documents)
    assert list(docstrings.documents(limit=2, packages=package)) == documents[:2]


def test_questions_by_hand(package):
    asked = {one.text: one for one in docstrings.questions(package)}
    assert {question: sorted(one.positive) for question, one in asked.items()} == {
        "What are width and height in invented.area?": [2, 3],
        "What is args in invented.area?": [4],
        "What is unit in invented.area?": [5],
        "What does invented.area return?": [6],
    }
    for one in asked.values():
        assert one.sentences == ASKED
        assert one.function == "area"
    assert asked["What is unit in invented.area?"].id == "invented._core.shapes.area:unit"


def test_wording_of_named_returns_and_attributes_and_ids_stay_unique(package, tmp_path):
    text = "Parameters\n----------\na : int\n    The first of two numbers.\n\n"
    text += "Returns\n-------\na : int\n    What comes out of it in the end.\n\n"
    text += "Attributes\n----------\nb_ : int\n    What remains of the second number.\n"
    indented = text.replace("\n", "\n    ")
    (tmp_path / "invented" / "c.py").write_text(f'def f(a):\n    """Sum.\n\n    {indented}"""\n')
    asked = [(one.id.rpartition(".")[2], one.text) for one in docstrings.questions(package) if ".f:" in one.id]
    assert asked == [
        ("f:a", "What is a in invented.c.f?"),
        ("f:a#2", "What is a, returned by invented.c.f?"),
        ("f:b_", "What is the attribute b_ of invented.c.f?"),
    ]


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("One line\nof prose.\n\nAnother.", ["One line of prose.", "Another."]),
        ("Before.\n\n>>> f(1)\n2\n\nAfter.", ["Before.", "After."]),
        ("Such as this, or that::\n\n    x = 1\n\n    y = 2\n\nAfter.", ["Such as this, or that:", "After."]),
        ("Text.\n\n::\n\n    code here\n", ["Text."]),
        ("Text.\n\n```python\nx = 1\n\ny = 2\n```\nAfter.", ["Text.", "After."]),
        ("Text.\n\n.. math::\n\n    a = b\n\nAfter.", ["Text.", "After."]),
        ("Text.\n\n.. note::\n    Mind the\n    gap.\n\nAfter.", ["Text.", "Mind the gap.", "After."]),
        ("Text.\n\n.. versionadded:: 1.0\n   Not this.", ["Text."]),
        ("Title\n=====\n\nText.\n\n    Deeper title\n    ------------\n    More.", ["Text.", "More."]),
        ("Text.\n\n=====  =====\nname   size\n=====  =====\none    two\n=====  =====\n\nAfter.", ["Text.", "After."]),
        ("Text.\n\n+---+---+\n| a | b |\n+---+---+\n", ["Text."]),
        (
            "Args:\n    x (int, *optional*): First\n        word.\n    y: Second.\n\nReturns:\n    Third.",
            ["First word.", "Second.", "Third."],
        ),
        ("Parameters\n----------\nx : int\n    First.\ny : str\n    Second.", ["First.", "Second."]),
        ("Items:\n\n- first of\n  them\n- second one\n1. third one", ["first of them", "second one", "third one"]),
        ("Returns:\n    The sum.\nBack again.", ["The sum.", "Back again."]),
        (":param x: The first.\n:return: The second.", ["The first.", "The second."]),
        ("Uses %(scale)s here.\n\nText.\n\n42 + 1", ["Text."]),
        ("See Also\n--------\nother : Another function.\n\nNotes\n-----\nKept.", ["Kept."]),
        ("<Tip warning={true}>\n\nKept.\n\n</Tip>", ["Kept."]),
        ("", []),
    ],
)
def test_prose_leaves_out_what_is_none(text, paragraphs):
    assert docstrings.prose(text) == paragraphs


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (":func:`numpy.mean` and :py:meth:`~a.b.c`", "numpy.mean and c"),
        (":ref:`the guide <user_guide>`", "the guide"),
        ("``a * b`` and `c` times *d* or **e f**", "a * b and c times d or e f"),
        ("a * b * c ** d", "a * b * c ** d"),
        ("[`~models.Bert`] and [here](https://a.b/c)", "Bert and here"),
        ("x[0] and f(x) [2]_, \\*args", "x[0] and f(x), *args"),
    ],
)
def test_plain(markup, text):
    assert docstrings.plain(markup) == text


LINES = st.lists(
    st.sampled_from(
        ["", "Text here.", "    deeper", "-----", "=====", "Notes", ">>> x", "::", "a : int", ".. note:: b", "```", "- c", "\t* d"]
    )
)


@given(LINES.map("\n".join) | st.text())
def test_prose_never_fails_and_is_normalised(text):
    for paragraph in docstrings.prose(text):
        assert paragraph == " ".join(paragraph.split())
        assert any(character.isalpha() for character in paragraph)


@given(LINES.map("\n".join))
def test_sections_lose_no_line(text):
    found = docstrings.sections(text)
    assert found[0][0] == ""
    assert sum(len(lines) for _, lines in found) + 2 * (len(found) - 1) == len(text.split("\n"))


def test_fingerprint_follows_versions_but_not_the_local_part(monkeypatch):
    versions = {"numpy": "2.0", "scikit-learn": "1.5"}
    monkeypatch.setattr(docstrings, "metadata", SimpleNamespace(version=versions.__getitem__))
    first = docstrings.fingerprint_of_docstrings.__wrapped__(("numpy", "sklearn"))
    versions["numpy"] = "2.0+cu130"
    assert docstrings.fingerprint_of_docstrings.__wrapped__(("numpy", "sklearn")) == first
    versions["numpy"] = "2.1"
    assert docstrings.fingerprint_of_docstrings.__wrapped__(("numpy", "sklearn")) != first
