"""Suggestions for misspelled names."""

import difflib


def printable(text: str) -> str:
    """A text on one line, without control characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))


def require_one_of(name: str, value, choices) -> None:
    """Raises: ValueError for a value that is none of the choices, with the nearest of them."""
    if value not in choices:
        raise ValueError(f"{name}: one of {', '.join(choices)} expected, got {value!r}{nearest(value, choices)}")


def nearest(word: str, known, cutoff: float = 0.6) -> str:
    """`; did you mean 'psd'?` or nothing; capitals do not count."""
    names = {str(name).lower(): str(name) for name in known}
    close = difflib.get_close_matches(str(word).lower(), names, 1, cutoff)
    return f"; did you mean {names[close[0]]!r}?" if close else ""
