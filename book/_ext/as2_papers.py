"""A paper's summary and its page of commands: citation, what differs, figures to download, chains of commands."""

from html import escape
from pathlib import Path

import pandas as pd
from as2_costs import big
from as2_pages import PLANNED
from pages import register, render, row, table

from aslab import papers, parameters, plan, records
from aslab.analysis import comparisons
from aslab.papers import NOTEBOOKS
from aslab.records import COMMITTED, no_spread
from aslab.show import markup
from aslab.show.markup import NAMES, Html

COLUMNS = ("row", "name", "dataset", "budget", "seed", "split", "metric", "value", "run")
DOWNLOADS = "figures"  # a folder of the built book
BUDGET_TITLES = {"laptop": "pydocs", "small": "Small models, real data", "gpu": "One GPU", "paper": "The paper"}


@register("citation")
def citation(paper: str) -> str:
    """Authors, title and place of a paper, with a link to it."""
    data = papers.read(paper)
    return render("citation.html", **{"venue": "", "arxiv": ""} | data | {"authors": ", ".join(data["authors"])})


@register("budgets", files=PLANNED, of_paper=True)
def budgets_table(data: dict, runs) -> str:
    """A column for the paper's settings and one for each smaller budget of which some rows are committed."""
    committed = runs[runs.source == COMMITTED]
    ours = [name for name in reversed(papers.BUDGETS) if name != "paper" and (committed.budget == name).any()]
    shown = [name for name in ("paper", *ours) if name in data["budgets"]]
    lines = {
        "Models": lambda name: _listed(data["budgets"][name]["backbones"].values()),
        "Text to pre-train on": lambda name: _listed(data["budgets"][name].get("corpus", "").split(",")),
        "Pre-training of a row": lambda name: Html("<br>".join(_volumes(data, name))),
        "Questions": lambda name: _questions(data, committed, name),
        "Seeds of a row": lambda name: _seeds(data, committed, name),
        "Rows with runs, of those planned": lambda name: _run(data, committed, name),
    }
    body = []
    for title, told in lines.items():
        each = [told(name) for name in shown]
        if any(each):
            body.append(row(title, *(text or "–" for text in each)))
    heads = ["", *(Html(f"{escape(BUDGET_TITLES[name])}<small>budget {name}</small>") for name in shown)]
    return table("What the paper has, and what our committed runs have.", heads, body)


def _listed(names) -> Html:
    return Html("<br>".join(f"<code>{escape(name)}</code>" for name in dict.fromkeys(filter(None, names))))


def _volumes(data: dict, budget: str) -> list[str]:
    """Examples and tokens of the budget's pre-training runs, each volume once, the largest number of examples first."""
    volumes = set()
    for name in data["budgets"][budget]["rows"]:
        for stage in papers.stages(data, name, budget):
            if stage["notebook"] == "pretrain":
                given = plan.stage_parameters(data, name, stage, budget, data["budgets"][budget]["datasets"][0], 0)
                settings = parameters.settings("pretrain", given)
                volumes.add((settings["steps"] * settings["batch_size"], settings["max_tokens"]))
    return [
        f"{big(examples)} examples of {length} tokens or fewer, {big(examples * length)} tokens at most"
        for examples, length in sorted(volumes, reverse=True)
    ]


def _questions(data: dict, committed, budget: str) -> str:
    """The data sets with records, those of a few rows last; all of the paper."""
    entry = data["budgets"][budget]
    every = [name for one in entry["rows"] for name in papers.datasets(data, one, budget)]
    few = {name for names in entry.get("more_datasets", {}).values() for name in names}
    ran = committed.dataset[committed.budget == budget].tolist()
    names = [name for name in sorted(every, key=few.__contains__) if budget == "paper" or name in ran]
    return _listed(NAMES.get(name, name) for name in names)


def _seeds(data: dict, committed, budget: str) -> str:
    """How many the trained rows have on a data set, least and most: `2 to 5`; without runs those that are planned."""
    lines = committed[(committed.budget == budget) & (committed.dataset != NOTEBOOKS["pretrain"])]
    groups = [own for _, own in lines.groupby(["row", "dataset"]) if not no_spread(own)]
    counts = {len(own) for own in groups} or {len(data["budgets"][budget]["seeds"])}
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)


def _run(data: dict, committed, budget: str) -> str:
    """How many of a budget's rows have a record on some data set: `7 of 11`."""
    rows = data["budgets"][budget]["rows"]
    ran = set(committed[committed.budget == budget].row)
    return f"{sum(row in ran for row in rows)} of {len(rows)}"


@register("download", on_page=True)
def download(paper: str, page) -> str:
    """The committed figures of a paper as a file."""
    return f'<p><a href="{page.up}{DOWNLOADS}/{paper}.csv" download>All committed figures of this paper (CSV)</a></p>'


def write_figures(app, exception) -> None:
    """`figures/<paper>.csv` of the built book: one line for each figure of each committed record, values from 0 to 1."""
    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir) / DOWNLOADS
        folder.mkdir(exist_ok=True)
        for paper in papers.PAPERS:
            data, runs = comparisons.rows_and_runs(paper)
            lines = figure_lines(data, runs[runs.source == COMMITTED])
            pd.DataFrame(lines, columns=COLUMNS, dtype=object).to_csv(folder / f"{paper}.csv", index=False)


def figure_lines(data: dict, runs):
    """Row, its name, data set, budget, seed, split, metric, value and run of every figure of some records."""
    for line in runs.itertuples():
        head = (line.row, data["rows"][line.row]["name"], line.dataset, line.budget, line.seed)
        for split, figures in line.record["metrics"].items():
            if line.dataset in papers.SPLITS and split != records.split(line):
                continue  # a column of one split: the other has a line of its own
            for metric, value in (figures or {}).items():
                if isinstance(value, int | float):
                    yield (*head, split, metric, value, line.name)


@register("commands", files=PLANNED, of_paper=True)
def commands(data: dict, runs) -> str:
    """The whole chain of commands of each row that has committed results, a tab a budget; seed 0 is shown for all seeds."""
    panels = []
    for budget in papers.BUDGETS:
        committed = runs[(runs.source == COMMITTED) & (runs.budget == budget)]
        if len(committed):
            text = "\n\n".join(chains(data, budget, committed))
            panels.append((f"Budget {budget}", render("commands.html", text=text)))
    return markup.tabs(f"as2-{data['slug']}-commands", panels)


def chains(data: dict, budget: str, committed):
    """The command of all rows and seeds; then for each row with records those of the runs that its first seed needs."""
    yield f"# all rows and seeds, on two cores\nsnakemake -c2 {data['slug']}_{budget}"
    for name in [name for name in data["budgets"][budget]["rows"] if (committed.row == name).any()]:
        own = committed[committed.row == name]
        given = own.iloc[0].record
        more = {"precision": given["settings"]["precision"]} if "precision" in given.get("given", ()) else {}
        jobs = plan.jobs(data["slug"], budget, [name], papers.seeds(data, name, budget)[:1], more=more)
        wanted = set()
        for job in reversed(jobs):
            if job.dataset in set(own.dataset) or job.folder in wanted:
                wanted |= {job.folder, *job.needs}
        commands = (job.command for job in jobs if job.folder in wanted)
        yield "\n".join([f"# {data['rows'][name]['name']}", *commands])
