"""The rows of contextual_as2 ask for what its appendix D prints, and its runs come in the order that its tables need."""

import pytest

from aslab import papers, plan

from . import made_up

PAPER = "contextual_as2"
DATA = papers.read(PAPER)


@pytest.mark.parametrize("row", DATA["budgets"]["paper"]["rows"])
def test_every_row_is_made_as_its_name_says(row):
    """The printed settings themselves are in test_printed_settings.py."""
    for dataset in ("asnq", "wikiqa", "newsas2"):
        *before, last = made_up.chain(PAPER, row, dataset)
        assert last["settings"]["architecture"] == ("pair" if row.endswith("_base") else "context")
        heads = "per_objective" if row.endswith("separate_heads") else "shared"
        assert [one["settings"]["heads"] for one in before] == ([] if "base" in row else [heads])


def test_runs_come_baselines_first_and_private_data_never():
    for budget in ("small", "gpu"):
        rows = list(dict.fromkeys(job.row for job in plan.jobs(PAPER, budget)))
        assert rows[:5] == ["roberta_base", "roberta_base_context", "roberta_dpc", "roberta_dslc", "roberta_sdc"]
    for budget in DATA["budgets"]:
        assert not any(job.dataset.startswith("iqad") for job in plan.jobs(PAPER, budget))
    assert set(DATA["private"]) == {"iqad_bench_1", "iqad_bench_2"}


def test_claims_are_about_both_metrics_and_one_has_no_figures():
    assert {tuple(claim["metric"]) for claim in DATA["claims"]} == {("p@1", "map")}
    assert not any(DATA["rows"]["roberta_all_separate_heads"]["published"].values())  # section 7 has words about it
