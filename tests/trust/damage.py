"""How inputs are spoilt: in their bytes, in the values of their rows, in the footer of a parquet file, and in what stands at their path.

A mutator of bytes is (bytes, draw) -> bytes, one of values (content, draw) -> content, one of a place (path) -> None.
"""

import copy
import json
import random
import re
import struct
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LARGE = 100_000_000

# ------------------------------------------------------------------ bytes


def flipped(data: bytes, draw: random.Random) -> bytes:
    spoilt = bytearray(data)
    for _ in range(draw.choice((1, 1, 8)) if data else 0):
        spoilt[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(spoilt)


def deleted(data: bytes, draw: random.Random) -> bytes:
    start = draw.randint(0, len(data))
    return data[:start] + data[start + draw.choice((1, 10, 100)) :]


def repeated(data: bytes, draw: random.Random) -> bytes:
    start = draw.randint(0, len(data))
    stop = start + draw.choice((1, 10, 1000))
    return data[:stop] + data[start:]


def _inserted(data: bytes, draw: random.Random, piece: bytes) -> bytes:
    at = draw.randint(0, len(data))
    return data[:at] + piece + data[at:]


BYTES = {
    "bits flipped": flipped,
    "bytes deleted": deleted,
    "bytes repeated": repeated,
    "cut short": lambda data, draw: data[: draw.randint(0, len(data))],
    "random bytes": lambda data, draw: _inserted(data, draw, draw.randbytes(draw.choice((1, 4, 64)))),
    "empty": lambda data, draw: b"",
    "blank": lambda data, draw: draw.choice((b"\n", b" ", b"\r\n\r\n", b"\xef\xbb\xbf")),
    "a mark in front": lambda data, draw: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data, draw: data.decode("utf-8", "replace").encode("utf-16"),
    "Windows line ends": lambda data, draw: data.replace(b"\n", b"\r\n"),
    "Macintosh line ends": lambda data, draw: data.replace(b"\n", b"\r"),
    "no last line end": lambda data, draw: data.rstrip(b"\n"),
    "blank line": lambda data, draw: data.replace(b"\n", b"\n\n", draw.randint(1, 3)),
}
PIECES = {"NUL": b"\0", "bad UTF-8": b"\xff\xfe\xc3\x28", "half a character": b"\xed\xa0\x80", "mark inside": b"\xef\xbb\xbf"}
PIECES |= {"U+2028": "\u2028".encode(), "U+0085": "\x85".encode(), "form feed": b"\x0c\x0b\x1c", "CR": b"\r", "CRLF": b"\r\n"}
PIECES |= {"quote": b'"', "tab": b"\t", "bracket": b"{"}
BYTES |= {name: partial(_inserted, piece=piece) for name, piece in PIECES.items()}


# ------------------------------------------------------------------ a parquet file's own words


def footer_of(data: bytes) -> tuple[bytes, bytes]:
    """The pages of a parquet file with its first mark, and its footer without length and mark."""
    size = struct.unpack("<I", data[-8:-4])[0]
    return data[: -8 - size], data[-8 - size : -8]


def with_footer(pages: bytes, footer: bytes) -> bytes:
    return pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


def footer_flipped(data: bytes, draw: random.Random) -> bytes:
    pages, footer = footer_of(data)
    return with_footer(pages, flipped(footer, draw))


def rows_claimed(data: bytes, draw: random.Random) -> bytes:
    """Other counts of rows or values in the footer: field 3 or 5 of Thrift's compact form, 0x16 and a variable-length number."""
    rows = pq.ParquetFile(pa.BufferReader(data)).metadata.num_rows
    more = draw.choice((rows + 1, 2 * rows, 0, max(rows - 1, 0), 10**6, 2**31, 2**62))
    pages, footer = footer_of(data)
    before, after = (b"\x16" + _zigzag(number) for number in (rows, more))
    one_in = draw.choice((1, 1, 3))
    return with_footer(pages, re.sub(re.escape(before), lambda same: same[0] if draw.randrange(one_in) else after, footer))


def _zigzag(number: int) -> bytes:
    number, found = 2 * number, bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def pages_lost(data: bytes, draw: random.Random) -> bytes:
    """A whole footer, its pages cut short: the places that it names lie beyond their end, or inside of it."""
    pages, footer = footer_of(data)
    return with_footer(pages[: draw.randint(4, len(pages))], footer)


def footer_length(data: bytes, draw: random.Random) -> bytes:
    return data[:-8] + struct.pack("<I", draw.choice((0, 1, len(data), 2**31 - 1, 2**32 - 1))) + b"PAR1"


PARQUET = {"footer flipped": footer_flipped, "rows claimed": rows_claimed, "pages lost": pages_lost, "footer length": footer_length}


# ------------------------------------------------------------------ YAML's own words


def aliases(data: bytes, draw: random.Random) -> bytes:
    """A value of some 200 bytes that has 10^9 items once it is written out, put where a value was or as one more."""
    nested = "&a0 [x, x, x, x, x, x, x, x, x, x]"
    for depth in range(1, 9):
        nested = f"&a{depth} [{nested}, {', '.join([f'*a{depth - 1}'] * 9)}]"
    values = list(re.finditer(rb"(?<=: )[\w./-]+", data))
    where = draw.choice([*values, None])
    return data + f"\nmore: {nested}\n".encode() if where is None else data[: where.start()] + nested.encode() + data[where.end() :]


YAML = {"nested aliases": aliases}


# ------------------------------------------------------------------ values

RAW = "\ue000"  # before the name of something that JSON can spell and json.dumps cannot
UP = "../../up-0123456789ab"
VALUES = {
    "null": [None],
    "NaN": [float("nan"), float("inf"), "NaN", f"{RAW}1e999"],
    "huge number": [10**30, -(2**63), 1e308, f"{RAW}digits", "9" * 5000],
    "label": [2, "1.0", 1.0, -1, "yes", "", True],
    "wrong type": [[], {}, 7, "text", False, [[1]], {"a": {}}],
    "nested": [f"{RAW}deep {depth}" for depth in (100, 900, 940, 960, 970, 980, 990, 100_000)] + [f"{RAW}objects 980"],
    "blank": ["", " ", "\t", "\u2028", "\xa0"],
    "bad character": ["a\0b", "half \ud800", "\ufeffmark", "a\u2028b", "a\x85b", "a\rb", "a\r\nb", 'a "quote', "a\tb", "\x1b[31m"],
    "path": [UP, "/etc/passwd", "../../../etc/passwd", "~nobody-here/x", "a/" * 3000, "x" * 5000, ".", "..", "con\0", "-rf", "$HOME"],
    "long": [piece * (100_000 // len(piece)) for piece in (" ", "a", "LSB ", "<a", "=", "(", "&", "-", "#", "\n", ". ", "\u0300", "A)")]
    + [f"&#{'9' * 5000};", "ab " * 40_000, "LRB" + " " * 100_000 + "x"],
}
RAWS = {"digits": "9" * 5000, "1e999": "1e999"}


def _raw(name: str) -> str:
    kind, _, depth = name.partition(" ")
    opening, closing = {"deep": ("[", "]"), "objects": ('{"a":', "}")}.get(kind, ("", ""))
    return RAWS.get(name) or opening * int(depth) + "1" * (kind == "objects") + closing * int(depth)


def _spelt(value, ascii: bool) -> str:
    return re.sub(r'"(?:\\ue000|\ue000)(\w+(?: \d+)?)"', lambda mark: _raw(mark[1]), json.dumps(value, ensure_ascii=ascii))


def places(content) -> list[tuple]:
    """(container, key) of everything in a tree of lists and dicts."""
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [place for key, value in inside for place in [(content, key), *places(value)]]


def put(content, draw, values: list):
    container, key = draw.choice(places(content))
    container[key] = draw.choice(values)
    return content


def dropped(content, draw):
    container, key = draw.choice(places(content))
    del container[key]
    return content


def renamed(content, draw):
    container, key = draw.choice(places(content))
    if isinstance(container, dict):
        container[draw.choice((key.upper(), f" {key}", f"\ufeff{key}", "", "extra"))] = container.pop(key)
    return content


def wrapped(content, draw):
    container, key = draw.choice(places(content))
    container[key] = draw.choice(([container[key]], {"": container[key]}))
    return content


def doubled(content, draw):
    lists = [content, *(value for container, key in places(content) if isinstance(value := container[key], list))]
    chosen = draw.choice([found for found in lists if isinstance(found, list) and found] or [[0]])
    chosen.insert(draw.randint(0, len(chosen)), copy.deepcopy(draw.choice(chosen)))
    return content


def shuffled(content, draw):
    if isinstance(content, list):
        draw.shuffle(content)
        return [dict(draw.sample(sorted(row.items()), len(row))) if isinstance(row, dict) else row for row in content]
    return dict(draw.sample(sorted(content.items()), len(content)))


def column_changed(content, draw):
    """One key gone, with another name or with another value in every row."""
    rows = [row for row in content if isinstance(row, dict)] if isinstance(content, list) else [content]
    name, how = draw.choice(sorted(rows[0])), draw.choice(("gone", "renamed", "same", "number", "twice"))
    for row in rows:
        value = row.pop(name, None)
        if how != "gone":
            row[name + "s" * (how == "renamed")] = {"same": rows[0].get(name), "number": 7}.get(how, value)
        if how == "twice":
            row[f" {name}"] = value
    return content


def text_spoilt(content, draw):
    """Something put into a text, which then still holds the rest."""
    texts = [(container, key) for container, key in places(content) if isinstance(container[key], str)]
    if texts:
        container, key = draw.choice(texts)
        at = draw.randint(0, len(container[key]))
        piece = draw.choice([*VALUES["bad character"], *VALUES["long"]])
        container[key] = container[key][:at] + piece + container[key][at:]
    return content


ROWS = {f"value: {name}": partial(put, values=values) for name, values in VALUES.items()}
ROWS |= {"dropped": dropped, "renamed": renamed, "wrapped": wrapped, "row doubled": doubled, "shuffled": shuffled}
ROWS |= {
    "column changed": column_changed,
    "few rows": lambda content, draw: content[: draw.randint(0, 2)] if isinstance(content, list) else {},
    "text spoilt": text_spoilt,
}


# ------------------------------------------------------------------ places


def _put_aside(path: Path) -> Path:
    return path.rename(path.with_name(f"{path.name}.aside"))


PLACES = {
    "link": lambda path: path.symlink_to(_put_aside(path)),
    "link to itself": lambda path: _put_aside(path) and path.symlink_to(path.name),
    "dangling link": lambda path: _put_aside(path) and path.symlink_to("gone"),
    "folder in its place": lambda path: _put_aside(path) and path.mkdir(),
    "gone": _put_aside,
}


def lengthened(content):
    """The longest text has 100 MB more."""
    more = "One more word. " * (LARGE // 15)
    if isinstance(content, str):
        return content.replace("\n", f" {more}\n", 1)
    texts = [(container, key) for container, key in places(content) if isinstance(container[key], str)]
    container, key = max(texts, key=lambda place: len(place[0][place[1]]))
    container[key] += more
    return content


# ------------------------------------------------------------------ all of them


def mutators(content, suffix: str) -> list[tuple[str, str]]:
    """(kind, name) of all that can be done to an input of that content."""
    kinds = {"rows": ROWS if isinstance(content, list | dict) else {}, "bytes": BYTES}
    kinds |= {"parquet": PARQUET if suffix == ".parquet" else {}, "yaml": YAML if suffix == ".yml" else {}, "places": PLACES}
    return [(kind, name) for kind, some in kinds.items() for name in some]


def spoil(path: Path, content, kind: str, name: str, draw: random.Random) -> int | None:
    """Write the content to a path, spoilt by one mutator, and now and then by one of bytes as well.

    Returns: where exactly one row differs, the number of its line from 1, of a parquet file that of its row.
    """
    ascii, spoilt = draw.random() < 0.5, copy.deepcopy(content)
    if kind == "large":
        path.write_bytes(encoded(lengthened(spoilt), path.suffix))
        return None
    if kind == "rows":
        spoilt = ROWS[name](spoilt, draw)
    whole, data = (encoded(one, path.suffix, ascii) for one in (content, spoilt))
    if kind in ("bytes", "parquet", "yaml"):
        data = (BYTES | PARQUET | YAML)[name](data, draw)
    also = kind == "rows" and draw.random() < 0.1
    path.write_bytes(draw.choice([*BYTES.values()])(data, draw) if also else data)
    if kind == "places":
        PLACES[name](path)
    if path.suffix == ".parquet":
        types = [pq.read_schema(pa.BufferReader(one)) for one in (whole, data)] if kind == "rows" else [0, 1]
        return None if also or types[0] != types[1] else _only_change(content, spoilt)  # another type is no matter of one row
    return None if also else _only_change(whole.split(b"\n"), data.split(b"\n"))


def _only_change(before, after) -> int | None:
    differ = [number for number, (one, other) in enumerate(zip(before, after), 1) if one != other]
    return differ[0] if len(before) == len(after) and len(differ) == 1 else None


def encoded(content, suffix: str, ascii: bool = True) -> bytes:
    """Rows (a list of dicts), a tree, text or bytes in the form that the suffix says."""
    if isinstance(content, bytes | str):
        return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    if suffix == ".parquet":
        return _parquet(content)
    if suffix == ".tsv":
        rows = [row if isinstance(row, dict) else {"": row} for row in content]
        names = [*dict.fromkeys(name for row in rows for name in row)]
        cells = [names, *([row.get(name) for name in names] for row in rows)]
        text = "".join("\t".join("" if value is None else str(value) for value in line) + "\n" for line in cells)
    elif suffix in (".jsonl", ".jsonlines"):
        text = "".join(_spelt(row, ascii) + "\n" for row in content)
    else:
        text = _spelt(content, ascii)
    return text.encode("utf-8", "surrogatepass")


def _parquet(rows: list) -> bytes:
    rows = [row if isinstance(row, dict) else {"": row} for row in rows]
    names = dict.fromkeys(name for row in rows for name in row)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: _column([row.get(name) for row in rows]) for name in names}), sink, row_group_size=5)
    return sink.getvalue().to_pybytes()


def _column(values: list) -> pa.Array:
    """Half a character is written as bytes that say to be text; a column of several types, or of what the form cannot hold, as text."""
    try:
        column = pa.array(values)
        pq.write_table(pa.table({"": column}), pa.BufferOutputStream())  # it has no empty objects
        return column
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        texts = [value if value is None else str(value).encode("utf-8", "surrogatepass") for value in values]
        return pa.array(texts, pa.binary()).view(pa.string())
