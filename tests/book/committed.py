"""Committed records and claims, as the tests of the words on pages read them."""

import json
import re
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
EVERY = pd.read_csv(ROOT / "results" / "claims.csv")


def committed(paper: str, row: str, dataset: str, budget: str = "small") -> list[dict]:
    """The records of a row's seeds."""
    paths = sorted((ROOT / "results" / paper / row).glob(f"{dataset}-{budget}-seed*.json"))
    assert paths
    return [json.loads(path.read_text("utf-8")) for path in paths]


def precisions(paper: str, row: str, dataset: str) -> pd.DataFrame:
    """Average precision: test questions x seeds."""
    return pd.concat([pd.DataFrame(one["per_question"]).set_index(0)[2] for one in committed(paper, row, dataset)], axis=1)


def as_read(text: str) -> str:
    """A page without directives and targets of links, roles by what they show."""
    text = re.sub(r"^(`{3,4})\{.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\([\w-]+\)=\n|\]\([^)]*\)", "", text, flags=re.MULTILINE)
    return re.sub(r"\{as2-figure\}`([^:`]+)[^`]*`", r"\1", text)
