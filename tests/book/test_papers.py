"""The five pages of a paper: tabs, what differs, figures to download, chains of commands that start from nothing."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from aslab import identity, papers, plan, records
from aslab.show import markup

from ..conftest import extension
from ..made_up import FOLDER, PAPER, cells, commit, record, recorded

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("method", "results", "examples", "run")


page = extension("as2_papers")


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_a_paper_is_five_pages_and_an_executed_report(paper):
    summary = (ROOT / "book" / "papers" / f"{paper}.md").read_text("utf-8")
    assert [f":link: {paper}/{name}\n" in summary for name in PAGES] == [True] * 4
    parts = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))["parts"]
    chapters = [chapter for part in parts for chapter in part["chapters"]]
    sections = next(chapter["sections"] for chapter in chapters if chapter["file"] == f"papers/{paper}")
    files = [section["file"] for section in sections]
    usual = [*(f"papers/{paper}/{name}" for name in PAGES), f"reports/{paper}"]
    assert [file for file in files if file != f"papers/{paper}/more_questions"] == usual


def test_tabs():
    html = markup.tabs("a", [("One <b>", "<p>1</p>"), ("Two", "<p>2</p>")])
    assert html.count("<input checked") == 1 and html.index("checked") < html.index("One &lt;b&gt;")
    names = re.findall(r' id="([^"]+)"', html)
    assert names == re.findall(r' for="([^"]+)"', html) and len(set(names)) == 2
    assert markup.tabs("a", [("One", "<p>1</p>")]) == "<p>1</p>"


def test_runs_of_this_machine_are_no_budget_that_ran(page, tmp_path):
    """What the table says of committed runs is counted again in `tests/trust/test_pages.py`."""
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5))
    lines, data = recorded(tmp_path), papers.read(PAPER, FOLDER)
    heads = [cells(page.budgets_table(data, some))[0] for some in (lines, lines.assign(source=records.HERE))]
    assert [len(head) for head in heads] == [3, 2], "the paper, and the one budget of which a row has run"


def test_every_committed_figure_can_be_downloaded(page, tmp_path):
    commit(tmp_path, record("roberta_base", "wikiqa", "small", 0, 0.5), record("roberta_base", "wikiqa", "small", 1, 0.25))
    lines = [dict(zip(page.COLUMNS, line)) for line in page.figure_lines(papers.read(PAPER, FOLDER), recorded(tmp_path))]
    chosen = [(line["seed"], line["value"]) for line in lines if (line["split"], line["metric"]) == ("test", "p@1")]
    assert chosen == [(0, 0.5), (1, 0.25)]
    assert {line["row"] for line in lines} == {"roberta_base"}
    of_dev = recorded(tmp_path).assign(dataset="wikiqa_dev")
    of_dev["record"] = [one | {"metrics": {"dev": {"map": 0.1}, "test": {"map": 0.2}}} for one in of_dev.record]
    assert [line[5:8] for line in page.figure_lines(papers.read(PAPER, FOLDER), of_dev)] == [("dev", "map", 0.1)] * 2


def missing_runs(chain: str) -> list[str]:
    """The runs that a command starts from and no command above it makes. Every command makes a run of its own."""
    made, missing = set(), []
    commands = re.sub(r" \\\n *", " ", chain).split("\n")[1:]
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "papermill" and (ROOT / words[1]).is_file()
        given = {name: yaml.safe_load(value) for name, value in zip(words[3::3], words[4::3])}
        missing += [value for value in map(str, given.values()) if value.startswith("runs/") and value not in made]
        folder = identity.folder_for(Path(words[1]).stem, given, must_exist=False)
        made.add(folder.relative_to(ROOT).as_posix() if folder.is_relative_to(ROOT) else str(folder))
    assert len(made) == len(commands)
    return missing


@pytest.mark.slow
@pytest.mark.parametrize("paper", papers.PAPERS)
def test_the_commands_of_committed_rows_start_from_nothing(page, paper):
    """A run that a command starts from is made by a command above it; the run of the last command is the row's."""
    data, lines = papers.read(paper), records.records(paper)
    lines = lines[lines.source == records.COMMITTED]
    for budget in set(lines.budget):
        own = lines[lines.budget == budget]
        whole, *chains = page.chains(data, budget, own)
        assert whole.endswith(f"snakemake -c2 {paper}_{budget}") and len(chains) == own.row.nunique()
        # How wide a command may be: `clipped code` of tests/book/check_pages.py, which sees it in a browser.
        for chain in chains:
            assert missing_runs(chain) == []


def test_a_chain_without_its_first_run_is_noticed(page):
    """The check above, on a chain that lacks its pre-training."""
    jobs = plan.jobs(PAPER, "laptop", rows=["roberta_ssp"], seeds=[0], data_sets=["pydocs"])
    chain = "\n".join(["# SSP", *(job.command for job in jobs)])
    assert jobs[0].notebook == "pretrain" and missing_runs(chain) == []
    without = chain.replace(jobs[0].command + "\n", "")
    assert missing_runs(without) == [jobs[0].folder.relative_to(ROOT).as_posix()]
