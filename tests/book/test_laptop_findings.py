"""The sentences on what came out at budget laptop follow from the committed records."""

import json
from pathlib import Path

import pandas as pd
import pytest

from asutil import metrics

RESULTS = Path(__file__).resolve().parents[2] / "results" / "sentence_objectives"


def average_precision(row: str, seeds: set[int]) -> pd.Series:
    """The mean over seeds of each question's average precision."""
    records = [json.loads((RESULTS / row / f"pydocs-laptop-seed{seed}.json").read_text("utf-8")) for seed in sorted(seeds)]
    return pd.concat([pd.DataFrame(record["per_question"]).set_index(0)[2] for record in records], axis=1).mean(axis=1)


def seeds_of(row: str) -> set[int]:
    return {int(path.stem[-1]) for path in (RESULTS / row).glob("pydocs-laptop-seed?.json")}


@pytest.mark.parametrize(
    ("row", "other", "shown"),
    [
        ("roberta_sp", "roberta_base", True),
        ("roberta_sp", "roberta_mlm_only_sp_data", True),
        ("roberta_ssp", "roberta_base", True),
        ("roberta_ssp_shuffled", "roberta_base", True),
        ("roberta_ssp", "roberta_ssp_shuffled", False),
        ("roberta_psd", "roberta_base", False),
    ],
)
def test_which_gains_are_shown(row, other, shown):
    """The sentences below *The same claims in minutes* on the page of sentence_objectives."""
    seeds = seeds_of(row) & seeds_of(other)
    assert len(seeds) >= 3
    ours, baseline = average_precision(row, seeds), average_precision(other, seeds)
    low, high = metrics.paired_bootstrap(ours, baseline.loc[ours.index], draws=10_000, seed=0).interval
    assert (low > 0) if shown else (low <= 0 <= high)


def test_sp_improves_map_most():
    rows = ("roberta_base", "roberta_ssp", "roberta_sp", "roberta_psd", "roberta_all")
    assert max(rows, key=lambda row: average_precision(row, seeds_of(row)).mean()) == "roberta_sp"
