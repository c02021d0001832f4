"""The page on costs: those of the papers' settings, those that the papers print, and those that were measured here."""

from pathlib import Path

import as2_benchmarks
import yaml
from pages import benchmarks, numbers, register, row, table

from aslab import papers, parameters, rundir
from aslab.analysis import costs
from aslab.show import markup

STATED = Path(__file__).with_name("stated_costs.yml")
RAW_GB = {"Wikipedia": 10, "BookCorpus": 5, "OpenWebText": 34, "CC-News": 360}  # sentence_objectives, appendix A.1


@register("costs", "costs", files=["book/_ext/stated_costs.yml"])
def show(name: str) -> str:
    """One of the page's tables: budgets, full, stated, corpora, examples or measured."""
    papers.one_of(name, TABLES, "costs", "table")
    return TABLES[name]()


def big(value: float) -> str:
    """Two or three significant digits, with a word for millions and more."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{value / size:,.3g} {word}" if value < 1000 * size else f"{value / size:,.0f} {word}"
    return f"{value:,.0f}"


def size(value: float) -> str:
    return f"{value / 1e12:,.2g} TB" if value >= 1e12 else f"{value / 1e9:,.3g} GB" if value else "–"


def hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def budgets() -> str:
    """Runs and GPU-hours of each paper at each budget."""
    frame = costs.budgets().pivot(index="paper", columns="budget", values=["runs", "gpu_hours"])
    columns = [("runs", budget) for budget in rundir.BUDGETS] + [("gpu_hours", "gpu"), ("gpu_hours", "paper")]
    text = lambda value: "–" if value != value else f"{value:,.0f}"
    body = [row(paper, *numbers(*map(text, frame.loc[paper].reindex(columns)))) for paper in papers.PAPERS]
    heads = ["", *(f"Runs: {budget}" for budget in rundir.BUDGETS), "GPU-hours: gpu", "GPU-hours: paper"]
    caption = (
        "Notebook runs of every row with every seed, tries of a search included; "
        "GPU-hours as expected in each paper's file, of an H200."
    )
    return table(caption, heads, body)


def full() -> str:
    """Budget paper: steps, tokens and hours of each paper by notebook, and their sum."""
    body = []
    for paper in papers.PAPERS:
        by_notebook = costs.by_notebook(paper)
        body += [row(paper, notebook, *_full(line)) for notebook, line in by_notebook.iterrows()]
        body.append(row(f"{paper}, in all", "", *_full(by_notebook.sum()), kind="as2-from-baseline"))
    caption = "Budget paper, every row and seed, tries included. Notebooks that only score have no steps, only hours."
    return table(caption, ["", "Notebook", "Runs", "Steps", "Tokens, at most", "Expected GPU-hours"], body)


def _full(line) -> map:
    return numbers(f"{line.runs:,.0f}", big(line.steps), big(line.tokens), hours(line.gpu_hours))


def stated() -> str:
    """The costs that the papers print, and the GPU-hours that one such run is expected to take here."""
    body = []
    for line in yaml.safe_load(STATED.read_text("utf-8")):
        planned = papers.read(line["paper"])["budgets"]["paper"]["gpu_hours"]
        each = (line.get("gpu_hours"), planned.get(line.get("notebook")))
        figures = [f"{value:,}" if value else "–" for value in each]
        body.append(row(*(line[name] for name in ("paper", "what", "printed", "where")), *numbers(*figures)))
    heads = ["", "What", "As printed", "Where", "GPU-hours a run: theirs", "ours, expected"]
    caption = (
        "Theirs: GPUs times hours, where both are printed, on their GPU, the upper end of a range. "
        "Ours: of an H200, for that notebook."
    )
    return table(caption, heads, body)


def corpora() -> str:
    """The corpora's raw text as printed; tokens, size of the index and time to build it at the measured rates."""
    index = benchmarks("index").get("index")
    if index is None:
        return table("The index benchmark was not run.", ["", "Raw text"], [])
    built, body = index["large_build"], []
    for name, raw in [*RAW_GB.items(), ("All four", sum(RAW_GB.values()))]:
        tokens = raw * 1e9 * built["tokens"] / built["characters"]
        figures = [big(tokens), size(tokens * built["bytes_a_token"])]
        figures.append(hours(raw * 1e9 / built["characters_a_second"] / 3600))
        body.append(row(name, *numbers(f"{raw} GB", *figures)))
    caption = (
        f"Raw text as sentence_objectives prints it (appendix A.1), a byte a character. Measured on {big(built['tokens'])} tokens of "
        f"Wikipedia: {built['tokens'] / built['characters']:.2f} tokens a character, {built['bytes_a_token']:.1f} bytes a token, "
        f"{big(built['characters_a_second'])} characters a second by one process on {as2_benchmarks.machine(index['machine'])}."
    )
    return table(caption, ["", "Raw text", "Tokens", "Index", "Hours to build it"], body)


def examples() -> str:
    """The hours that one core takes to draw all pre-training examples of budget paper, at the measured rates."""
    sampling, body = benchmarks("sampling").get("sampling"), []
    jobs = [job for paper in papers.PAPERS for job in costs.planned(paper) if job.notebook == "pretrain"]
    each = [parameters.settings(job.notebook, job.parameters) for job in jobs]
    drawn = [(own["data"] or own["objective"], own["steps"] * own["batch_size"]) for own in each]
    for name, count in dict.fromkeys(drawn):
        rate = ((sampling or {}).get("objectives", {}).get(name) or {}).get("examples_a_second", {}).get("median")
        figures = (big(rate), hours(count / rate / 3600)) if rate else ("not run", "not run")
        body.append(row(name, *numbers(big(count), *figures)))
    where = f" on {as2_benchmarks.machine(sampling['machine'])}" if sampling else ""
    caption = f"Drawn, put together and masked while the model trains; nothing is written to disk. One core{where}."
    return table(caption, ["Objective", "Examples of one pre-training", "Measured a second", "Hours of one core"], body)


def trained() -> str:
    """Committed runs that trained: the length of their examples, and their speed."""
    body = []
    for line in costs.trained().itertuples():
        one_input = line.notebook in ("pretrain", "finetune") and line.kind != "joint"
        share = f"{line.tokens / line.longest:.0%}" if one_input else "–"
        figures = [line.runs, line.longest, f"{line.tokens:.0f}", share, f"{line.speed:,.0f}", f"{line.hours:.2f}"]
        data = markup.NAMES.get(line.dataset, line.dataset)
        body.append(row(line.notebook, line.kind, data, line.budget, *numbers(*map(str, figures))))
    heads = ["Notebook", "Learns", "Data", "Budget", "Runs", "Longest", "Tokens an example", "of the longest"]
    heads += ["Tokens a second", "Hours a run"]
    caption = (
        "Committed runs on two CPU cores: the median of each kind. An example of joint is a candidate, not a group."
    )
    return table(caption, heads, body)


TABLES = {"budgets": budgets, "full": full, "stated": stated, "corpora": corpora}
TABLES |= {"examples": examples, "measured": trained}
