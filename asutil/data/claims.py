"""Fact verification data: claims with their evidence sentences and verdicts, and the file of FEVER's leaderboard.

The form is KernelGAT's: a JSON object a line with id, claim, label and evidence = [[title, sentence number, sentence, score], ...].
"""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import plugins
from ..corpus import cleaning, sources
from ..io import disk, files, hub, remote, spelling
from . import splits
from .data_sets import CLAIMS, SPLITS
from .splits import Examples

LABELS = ("SUPPORTS", "NOT ENOUGH INFO", "REFUTES")  # a label is a number: 0, 1, 2
MOST = 5  # pieces of evidence that a claim keeps, the first ones: what KernelGAT and the paper read
FILES = ("{}.jsonl", "{}.json", "bert_{}.json", "bert_{}.jsonl")
log = logging.getLogger(__name__)


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


class Claims(Examples):
    """One split of a data set; `report` counts the claims and evidence that were read, kept and dropped, by reason."""

    UNIT = "claims"

    @staticmethod
    def evidence_of(claim: Claim) -> int:
        return len(claim.evidence)


def load_claims(
    name, limit: int | None = None, train_limit: int | None = None, test_limit: int | None = None
) -> dict[str, Claims]:
    """The splits of a fact verification data set. Where test is empty, results are reported on dev.

    Paper: joint_inference, section 4.1 and appendix A.2.
    Args:
        name: `fever`, `climate_fever` (folders `local/<name>` of the mirror, their counts are checked), `pydocs_claims` (embedded), or a
            folder with train, dev and, if there is one, test as .jsonl or .json, or as bert_train.json and so on. A test set may be
            without labels; FEVER's are not public, so none is read there. Titles may have underscores for spaces; other text stays.
        limit: at most that many claims a split, chosen by a hash of their ids.
        train_limit, test_limit: the same for train alone, and for dev and test, each; for these splits they go before `limit`.
    Returns: {"train", "dev", "test"}: lists of `Claim`s, with a `report`. A claim has the first five pieces of its evidence, or fewer.
    Raises: FileNotFoundError, or ValueError that names file and row, what was expected and what came.
    """
    limits = splits.limits_of(limit, train_limit, test_limit, "claim")
    loaded = {}
    if name == "pydocs_claims":
        for split, rows in plugins.pydocs("claims").rows(MOST).items():
            loaded[split] = Claims(
                Claim(id, text, label, tuple(Evidence(*piece) for piece in pieces)) for id, text, label, pieces in rows
            )
    else:
        paths = _paths(name)
        for split, path in paths.items():
            blind = (name, split) == ("fever", "test")
            loaded[split] = _read(path, blind, marks=name in CLAIMS) if path else Claims()
        for split, expected in CLAIMS[name].counts.items() if name in CLAIMS else ():
            _check_counts(loaded[split].report, expected, f"{name}, {split} ({paths[split].name})")
        if name not in CLAIMS:
            splits.warn_of_shared(loaded, lambda claim: [claim.text], name)
            _warn_of_evidence_that_tells(loaded["train"], name)
    return {split: claims.limited(limits[split]) for split, claims in loaded.items()}


def _warn_of_evidence_that_tells(claims: Claims, name) -> None:
    """Say where the claims of one label have evidence and those of another have none: a model needs to read neither then."""
    shares = {}
    for number, label in enumerate(LABELS):
        if known := [bool(claim.evidence) for claim in claims if claim.label == number]:
            shares[label] = sum(known) / len(known)
    least, most = (pick(shares, key=shares.get, default=None) for pick in (min, max))
    if shares and shares[least] < 0.1 and shares[most] > 0.9:
        log.warning(
            "%s: claims labelled %s have no evidence, those labelled %s have: its absence tells the label; give all of them some",
            *(name, least, most),
        )


def fingerprint_of_claims(name) -> str:
    """`splits.fingerprint`; for a data set that is not in the mirror its name: its runs can be planned."""
    hub_ids = {other: data.hub_id for other, data in CLAIMS.items() if not (data.hub_id and hub.mirror(data.hub_id))}
    return splits.fingerprint(name, hub_ids, lambda: _paths(name))


def leaderboard(claims: Sequence[Claim], predictions: Sequence[int], path: str | Path) -> Path:
    """Write predictions for FEVER's leaderboard: a JSON object a claim, in the order of the claims.

    {"id": 7, "predicted_label": "SUPPORTS", "predicted_evidence": [[title, sentence number], ...]}, the claim's evidence, five at most.
    Args: predictions: a class number of `LABELS` for every claim.
    Raises: ValueError for another number of predictions, or naming the claim for an id that is no whole number or another class.
    """
    if len(claims) != len(predictions):
        raise ValueError(f"expected a prediction for every claim: got {len(predictions)} for {len(claims)} claims")
    lines = []
    for claim, predicted in zip(claims, predictions):
        if not re.fullmatch(r"0|[1-9]\d*", claim.id) or predicted not in range(len(LABELS)):
            expected = "a whole number without leading zeros as id and a class of 0, 1, 2"
            raise ValueError(f"claim {claim.id!r}: expected {expected}; got class {predicted!r}")
        evidence = [[piece.title, piece.sentence] for piece in claim.evidence[:MOST]]
        line = {"id": int(claim.id), "predicted_label": LABELS[int(predicted)], "predicted_evidence": evidence}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return disk.atomically(Path(path), lambda part: part.write_text("".join(lines), encoding="utf-8"))


def _paths(name) -> dict[str, Path | None]:
    """The file of each split; None for a test set that is not there."""
    required, hint = ("train", "dev"), ""
    if name in CLAIMS:
        required, hint = CLAIMS[name].counts, f". Expected for {name}: {CLAIMS[name].files}"
        folder = hub.mirror(CLAIMS[name].hub_id)
        if folder is None:
            raise FileNotFoundError(
                f"{hub.unreachable(CLAIMS[name].hub_id, LookupError())} Expected in it: {CLAIMS[name].files}"
            )
    else:
        folder = remote.path_of(name)
        if not folder.is_dir():
            came = " that holds train.jsonl, dev.jsonl and maybe test.jsonl, got a file" * folder.is_file()
            came = came or spelling.nearest(name, tuple(CLAIMS))
            raise FileNotFoundError(f"{name}: expected one of {', '.join(CLAIMS)} or a folder with claims{came}")
    return {split: splits.file_of_split(folder, split, FILES, split not in required, hint) for split in SPLITS}


def _check_counts(report: dict, expected: tuple[int, int], where: str) -> None:
    """Compare with table 6, which does not say whether evidence was counted before or after the cut to five."""
    read = report["read"]
    kept = report["kept"]
    if (kept["claims"], kept["evidence"]) != expected and (read["claims"], read["evidence"]) != expected:
        raise ValueError(
            f"{where}: expected {expected[0]:,} claims and {expected[1]:,} pieces of evidence, got {read['claims']:,} and "
            f"{read['evidence']:,} ({kept['evidence']:,} of them among the first {MOST} of a claim)"
        )


def _read(path: Path, blind: bool, marks: bool) -> Claims:
    """The claims of a file; of a blind one without labels. With `marks`, those of FEVER's Wikipedia are made `readable`."""
    claims = []
    locations = {}  # id -> location
    beyond = 0
    for location, row in sources.read_rows(path, "claim"):
        claim = _claim(row, location, blind, marks)
        if claim.id in locations:
            raise ValueError(f"{location}: expected distinct ids, got {claim.id!r} as in {locations[claim.id]}")
        if claims and (claims[0].label is None) != (claim.label is None):
            came, first = ("none", "one") if claim.label is None else (repr(row["label"]), "none")
            raise ValueError(
                f"{location}: expected a label in every row of a file or in none, got {came}, and {locations[claims[0].id]} has {first}"
            )
        locations[claim.id] = location
        claims.append(claim)
        beyond += len(row["evidence"]) - len(claim.evidence)
    if not claims:
        raise ValueError(f"{path.name} is empty: expected at least one claim")
    if claims[0].label is None and not path.stem.endswith("test"):
        raise ValueError(
            f"{locations[claims[0].id]}: expected a label of {', '.join(LABELS)}, got none; only a test set may be without"
        )
    return Claims(claims, {f"evidence beyond the first {MOST}": {"claims": 0, "evidence": beyond}} if beyond else {})


def _claim(row: dict, location: str, blind: bool, marks: bool) -> Claim:
    splits.require_fields(row, ("id", "claim", "evidence"), "id, claim, label and evidence", location)
    id = splits.require_id(row["id"], location)
    text = splits.require_text(row, "claim", location)
    label = None if blind else row.get("label")
    splits.require(label is None or label in LABELS, location, f"a label of {', '.join(LABELS)}", label)
    evidence = enumerate(splits.require_list(row, "evidence", location), 1)
    pieces = tuple(_evidence(piece, f"{location}, evidence {number}", marks) for number, piece in evidence)
    return Claim(id, text, None if label is None else LABELS.index(label), pieces[:MOST])


def _evidence(piece, location: str, marks: bool) -> Evidence:
    forms = ((str,), (int,), (str,), (int, float))
    is_list = isinstance(piece, list) and len(piece) in (3, 4)
    is_piece = is_list and all(type(value) in types for value, types in zip(piece, forms))
    parts = (piece[0].replace("_", " "), piece[2]) if is_piece else ()
    text = ". ".join(filter(None, (readable(part) if marks else " ".join(part.split()) for part in parts)))
    splits.require(text, location, "[title, sentence number, sentence] and maybe a score, with some text", piece)
    title, number, *_ = piece
    files.require_encodable(text + title, location)
    return Evidence(title, number, text)


MARKS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}", "COLON": ":"}
MARK = re.compile(rf"-?(?<![A-Z])({'|'.join(MARKS)})(?![A-Z])-?")
SPACES = [(re.compile(r"\(\s+"), "("), (re.compile(r"\s+\)"), ")"), (re.compile(r"\s*\(\)"), "")]
PRONOUNCED = re.compile(r"\s?-?(?<![A-Z])LSB(?![A-Z])"), re.compile(r"(?<![A-Z])RSB(?![A-Z])-?")


def readable(text: str) -> str:
    """FEVER's Wikipedia as ordinary text: brackets and quotes for their marks, without the text in square brackets.

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
