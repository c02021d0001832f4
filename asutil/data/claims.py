"""Fact verification data: claims with their evidence sentences and verdicts, and the file of FEVER's leaderboard.

The form is KernelGAT's: a JSON object a line with id, claim, label and evidence = [[title, sentence number, sentence, score], ...].
"""

import hashlib
import heapq
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..corpus import cleaning, docstrings, sources
from ..io import disk, files, hub, spelling
from . import pydocs_claims

LABELS = ("SUPPORTS", "NOT ENOUGH INFO", "REFUTES")  # a label is a number: 0, 1, 2
SIDES = ("train", "dev", "test")
NAMES = ("fever", "climate_fever", "pydocs_claims")
MOST = 5  # pieces of evidence that a claim keeps, the first ones: what KernelGAT and the paper read
# (claims, evidence): joint_inference, table 6; data_cards/climate_fever.md
COUNTS = {
    "fever": {"train": (145_406, 722_473), "dev": (19_998, 98_915), "test": (19_998, 98_839)},
    "climate_fever": {"train": (981, 4_905), "dev": (200, 1_000)},
}
EXPECTED = {
    "fever": "bert_train.json, bert_dev.json and bert_test.json, from the data page of the KernelGAT repository (thunlp/KernelGAT, data/)",
    "climate_fever": "train.jsonl and dev.jsonl, Climate-FEVER in the same form (data_cards/climate_fever.md)",
}
FILES = ("{}.jsonl", "{}.json", "bert_{}.json", "bert_{}.jsonl")


@dataclass(frozen=True, slots=True)
class Evidence:
    title: str  # as the file has it, which is what the leaderboard wants back
    sentence: int
    text: str  # what a model reads: `title. sentence`


@dataclass(frozen=True, slots=True)
class Claim:
    id: str
    text: str
    label: int | None  # None in a blind test set
    evidence: tuple[Evidence, ...]


class Claims(list):
    """One side of a data set; `report` counts the claims and evidence that were read, kept and dropped, by reason."""

    def __init__(self, claims=(), dropped=None):
        super().__init__(claims)
        kept, dropped = _count(self), dropped or {}
        read = {what: kept[what] + sum(lost[what] for lost in dropped.values()) for what in kept}
        self.report = {"read": read, "kept": kept, "dropped": dropped}

    def limited(self, limit: int) -> "Claims":
        """At most that many claims, chosen by a hash of their ids, in the order they had."""
        ids = [
            (hashlib.blake2b(claim.id.encode(), digest_size=8, key=b"limit").digest(), i)
            for i, claim in enumerate(self)
        ]
        chosen = {i for _, i in heapq.nsmallest(limit, ids)}
        beyond = [claim for i, claim in enumerate(self) if i not in chosen]
        dropped = self.report["dropped"] | ({"beyond the limit": _count(beyond)} if beyond else {})
        return Claims([self[i] for i in sorted(chosen)], dropped)


def _count(claims) -> dict:
    return {"claims": len(claims), "evidence": sum(len(claim.evidence) for claim in claims)}


def load_claims(name, limit: int | None = None) -> dict[str, Claims]:
    """The sides of a fact verification data set. Where test is empty, dev is the side that is reported.

    Paper: joint_inference, section 4.1 and appendix A.2.
    Args:
        name: `fever`, `climate_fever` (folders `local/<name>` of the mirror, their counts are checked), `pydocs_claims` (embedded), or a
            folder with train, dev and, if there is one, test as .jsonl or .json, or as bert_train.json and so on. A test set may be
            without labels; FEVER's are not public, so none is read there. Titles may have underscores for spaces.
        limit: at most that many claims a side, chosen by a hash of their ids.
    Returns: {"train", "dev", "test"}: lists of `Claim`s, with a `report`. A claim has the first five pieces of its evidence, or fewer.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1 claim, got {limit}")
    if name == "pydocs_claims":
        sides = {side: Claims(_pydocs_claim(*row) for row in made) for side, made in pydocs_claims.rows(MOST).items()}
    else:
        paths = _paths(name)
        sides = {
            side: _read(path, blind=(name, side) == ("fever", "test")) if path else Claims()
            for side, path in paths.items()
        }
        for side, expected in COUNTS.get(name, {}).items():
            _check_counts(sides[side].report, expected, f"{name}, {side} ({paths[side].name})")
    return {side: claims.limited(limit) if limit else claims for side, claims in sides.items()}


def _pydocs_claim(id: str, text: str, label: int, pieces: tuple) -> Claim:
    return Claim(id, text, label, tuple(Evidence(*piece) for piece in pieces))


def fingerprint_of_claims(name) -> str:
    """What identifies a data set's content: a hash of its files, or of the package versions behind pydocs_claims.

    Of a data set that is not at hand its name: its runs can be planned, and loading asserts its counts.
    """
    if name == "pydocs_claims":
        return docstrings.fingerprint_of_docstrings(docstrings.NUMPYDOC)
    if name in COUNTS and hub.mirror(f"local/{name}") is None:
        return f"local/{name}"
    hashes = [f"{side} {hub.sha256(path)}" for side, path in _paths(name).items() if path]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def leaderboard(claims: Sequence[Claim], predictions: Sequence[int], path: str | Path) -> Path:
    """Write predictions as FEVER's leaderboard takes them: a JSON object a claim, in the order of the claims.

    {"id": 7, "predicted_label": "SUPPORTS", "predicted_evidence": [[title, sentence number], ...]}, the claim's evidence, five at most.
    Args: predictions: a class number of `LABELS` for every claim.
    Raises: ValueError for another number of predictions, or naming the claim for an id that is no whole number or another class.
    """
    if len(claims) != len(predictions):
        raise ValueError(f"expected a prediction for every claim: got {len(predictions)} for {len(claims)} claims")
    lines = []
    for claim, predicted in zip(claims, predictions):
        if not re.fullmatch(r"\d+", claim.id) or predicted not in range(len(LABELS)):
            raise ValueError(
                f"claim {claim.id!r}: expected a whole number as id and a class of 0, 1, 2; got class {predicted!r}"
            )
        evidence = [[piece.title, piece.sentence] for piece in claim.evidence[:MOST]]
        line = {"id": int(claim.id), "predicted_label": LABELS[int(predicted)], "predicted_evidence": evidence}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return disk.atomically(Path(path), lambda part: part.write_text("".join(lines), encoding="utf-8"))


# ------------------------------------------------------------------------------------------------------------ the files


def _paths(name) -> dict[str, Path | None]:
    """The file of each side; None for a test set that is not there."""
    if name in COUNTS:
        folder, needed = hub.mirror(f"local/{name}"), COUNTS[name]
        if folder is None:
            raise FileNotFoundError(
                f"{hub.unreachable(f'local/{name}', LookupError())} Expected in it: {EXPECTED[name]}"
            )
    else:
        folder, needed = files.expanded(name), ("train", "dev")
        if not folder.is_dir():
            known = ", ".join(NAMES)
            raise FileNotFoundError(
                f"{name}: expected one of {known} or a folder with claims{spelling.nearest(name, NAMES)}"
            )
    paths = {}
    for side in SIDES:
        found = [path for form in FILES if (path := folder / form.format(side)).is_file()]
        if len(found) > 1:
            raise ValueError(f"{folder}: expected one file for {side}, got {', '.join(path.name for path in found)}")
        if not found and side in needed:
            forms, held = (
                ", ".join(form.format(side) for form in FILES),
                sorted(path.name for path in folder.iterdir())[:10],
            )
            raise FileNotFoundError(
                f"{folder}: expected one of {forms}; it holds {', '.join(held) or 'nothing'}"
                + (f". Expected for {name}: {EXPECTED[name]}" if name in EXPECTED else "")
            )
        paths[side] = found[0] if found else None
    return paths


def _check_counts(report: dict, expected: tuple[int, int], where: str) -> None:
    """Table 6 does not say whether its evidence was counted before or after the cut to five."""
    read, kept = report["read"], report["kept"]
    if (kept["claims"], kept["evidence"]) != expected and (read["claims"], read["evidence"]) != expected:
        raise ValueError(
            f"{where}: expected {expected[0]:,} claims and {expected[1]:,} pieces of evidence, got {read['claims']:,} and "
            f"{read['evidence']:,} ({kept['evidence']:,} of them among the first {MOST} of a claim)"
        )


def _read(path: Path, blind: bool) -> Claims:
    found, places, beyond = [], {}, 0
    for place, row in sources.read_rows(path, "claim"):
        claim = _claim(row, place, blind)
        if claim.id in places:
            raise ValueError(f"{place}: expected distinct ids, got {claim.id!r} as in {places[claim.id]}")
        if found and (found[0].label is None) != (claim.label is None):
            came, first = ("none", "one") if claim.label is None else (repr(row["label"]), "none")
            where = places[found[0].id]
            raise ValueError(
                f"{place}: expected a label in every row of a file or in none, got {came}, and {where} has {first}"
            )
        places[claim.id] = place
        found.append(claim)
        beyond += len(row["evidence"]) - len(claim.evidence)
    if not found:
        raise ValueError(f"{path.name} is empty: expected at least one claim")
    if found[0].label is None and not path.stem.endswith("test"):
        raise ValueError(
            f"{places[found[0].id]}: expected a label of {', '.join(LABELS)}, got none; only a test set may be without"
        )
    return Claims(found, {f"evidence beyond the first {MOST}": {"claims": 0, "evidence": beyond}} if beyond else {})


def _claim(row: dict, place: str, blind: bool) -> Claim:
    if missing := [name for name in ("id", "claim", "evidence") if name not in row]:
        raise ValueError(
            f"{place}: expected id, claim, label and evidence, lacks {', '.join(missing)}; got {', '.join(row) or 'nothing'}"
        )
    id, text, label, evidence = row["id"], row["claim"], None if blind else row.get("label"), row["evidence"]
    if isinstance(id, bool) or not isinstance(id, int | str) or not str(id).strip():
        raise ValueError(f"{place}: expected an id, a number or text, got {id!r}")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{place}: expected text in 'claim', got {text!r}")
    if label is not None and label not in LABELS:
        raise ValueError(f"{place}: expected a label of {', '.join(LABELS)}, got {label!r}")
    if not isinstance(evidence, list):
        raise ValueError(f"{place}: expected a list of evidence, got {type(evidence).__name__}")
    pieces = tuple(_evidence(piece, f"{place}, evidence {number}") for number, piece in enumerate(evidence, 1))
    _sound(" ".join([str(id), text]), place)
    return Claim(str(id), text, None if label is None else LABELS.index(label), pieces[:MOST])


def _evidence(piece, place: str) -> Evidence:
    wanted = ((str,), (int,), (str,), (int, float))
    sound = (
        isinstance(piece, list)
        and len(piece) in (3, 4)
        and all(type(value) in types for value, types in zip(piece, wanted))
    )
    text = ". ".join(filter(None, map(readable, (piece[0].replace("_", " "), piece[2])))) if sound else ""
    if not text:
        raise ValueError(
            f"{place}: expected [title, sentence number, sentence] and maybe a score, with some text, got {str(piece)[:80]}"
        )
    _sound(text + piece[0], place)
    return Evidence(piece[0], piece[1], text)


def _sound(text: str, place: str) -> None:
    """JSON can spell NUL and half a character, which no tokenizer takes."""
    if bad := re.search("[\0\ud800-\udfff]", text):
        raise ValueError(f"{place}: expected text without NUL and half characters, got {bad[0]!r} at {bad.start()}")


MARKS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}", "COLON": ":"}
MARK = re.compile(rf"-?(?<![A-Z])({'|'.join(MARKS)})(?![A-Z])-?")
SPACES = [(re.compile(r"\(\s+"), "("), (re.compile(r"\s+\)"), ")"), (re.compile(r"\s*\(\)"), "")]
PRONOUNCED = re.compile(r"\s?-?(?<![A-Z])LSB(?![A-Z])"), re.compile(r"(?<![A-Z])RSB(?![A-Z])-?")


def readable(text: str) -> str:
    """FEVER's Wikipedia as ordinary text: brackets and quotes for their marks, without what stands in square brackets.

    Its square brackets hold pronunciations and numbers of footnotes; KernelGAT drops them too. Both `-LRB-` and `LRB` are in its files.

    Example:
        >>> readable("Fight Club -LRB-film-RRB-"), readable("Ann LRB LSB ` an RSB ; born 1964 RRB was `` here ''")
        ('Fight Club (film)', 'Ann (; born 1964) was " here "')
    """
    if MARK.search(text):
        text = "".join(cleaning.outside(" ".join(text.split()), *PRONOUNCED))  # single spaces: patterns are then linear
        text = MARK.sub(lambda mark: MARKS[mark[1]], text)
        for pattern, replacement in SPACES:
            text = pattern.sub(replacement, text)
    return " ".join(text.replace("``", '"').replace("''", '"').split())
