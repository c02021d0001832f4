"""Directives of the page on costs: those of the papers' settings, those that the papers print, and those that were
measured here.
"""

from typing import NamedTuple

import as2_benchmarks
from as2_pages import ROOT, SOURCES, Shown, boxed
from pages import costs

from aslab import papers, rundir, runs
from aslab.show import markup

FILES = ("experiments/*.yml", "aslab/budgets.yml", "aslab/hours.py", "book/_ext/pages/costs.py", "results/**/*.json")
SOURCES["costs"] = lambda _: sorted(path for files in FILES for path in ROOT.glob(files))


class Stated(NamedTuple):
    """A cost as a paper prints it; our notebook for the same step, and the GPU-hours a run that follow from the
    printed figures.
    """

    paper: str
    what: str
    printed: str
    where: str
    notebook: str | None = None
    gpu_hours: float | None = None


TOKENS = "about 210 billion tokens"
STATED = (
    Stated("sentence_objectives", "A pre-training", TOKENS, "Section 5.2; Appendix B", "pretrain"),
    Stated("sentence_objectives", "All pre-training", "A100 GPUs for days; neither number is printed", "Limitations"),
    Stated(
        *("contextual_as2", "A pre-training", "8 A100 of 40 GB, around 3.5 days", "Appendices B and C"),
        notebook="pretrain",
        gpu_hours=8 * 3.5 * 24,
    ),
    Stated("contextual_as2", "A pre-training", TOKENS, "Appendix C", "pretrain"),
    Stated("contextual_as2", "Preparing the data", "10 hours on 64 CPU cores", "Appendix C"),
    Stated("contextual_as2", "A fine-tuning on ASNQ", "6 hours", "Appendix D", "finetune"),
    Stated("contextual_as2", "A fine-tuning elsewhere", "one GPU, less than 2 hours", "Appendix D", "finetune", 2),
    Stated("asbert", "The whole paper", "nothing is printed", "–", "embed"),
    Stated("joint_inference", "A pre-training", "nothing is printed", "–", "pretrain"),
    Stated("joint_inference", "WikiQA on one A100", "71 s, joint 81 s", "Section 4.3; Appendix C.3", "finetune"),
    Stated(
        *("evidence_contrast", "A run on QASPER", "one RTX 8000, 30 to 60 minutes an epoch", "Appendix B.1"),
        notebook="find_evidence",
        gpu_hours=10,
    ),
    Stated(
        *("evidence_contrast", "A run on HotpotQA", "four RTX 8000 of 48 GB, 6 hours an epoch", "Appendix B.2"),
        notebook="find_evidence",
        gpu_hours=4 * 6 * 5,
    ),
)
RAW_GB = {"Wikipedia": 10, "BookCorpus": 5, "OpenWebText": 34, "CC-News": 360}  # sentence_objectives, appendix A.1
YEAR = 365.25 * 24  # hours


class Costs(Shown):
    """One of the page's tables: budgets, full, stated, corpora, examples, measured or assumed."""

    kind = "costs"

    def show(self, name):
        if name not in TABLES:
            raise ValueError(f"costs: expected one of {', '.join(TABLES)}, got {name!r}")
        return boxed(TABLES[name]())


def measured(name: str) -> dict | None:
    """A committed benchmark, None where it was not run."""
    return as2_benchmarks.committed(name).get(name)


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


# ------------------------------------------------------------------ the tables


def budgets() -> str:
    """Runs and GPU-hours of each paper at each budget."""
    known = {(line.paper, line.budget): line for line in costs.budgets().itertuples()}
    body = []
    for paper in costs.papers():
        lines = [known.get((paper, budget)) for budget in rundir.BUDGETS]
        numbers = [f"{line.runs:,}" if line else "–" for line in lines]
        numbers += [f"{line.gpu_hours:,}" if line else "–" for line in lines[2:]]
        body.append(markup.line([markup.cell(paper, "th", scope="row"), *map(markup.number, numbers)]))
    heads = ["", *(f"Runs: {budget}" for budget in rundir.BUDGETS), "GPU-hours: gpu", "GPU-hours: paper"]
    caption = (
        "Notebook runs of every row with every seed, tries of a search included; "
        "GPU-hours as expected in each paper's file, of an H200."
    )
    return markup.table(caption, heads, body)


def full() -> str:
    """Budget paper: steps, tokens, operations, hours and disk of each paper by notebook, and their sum."""
    speeds, body = (measured("training_step"), measured("training_step-gpu")), []
    for paper in costs.papers():
        by_notebook = costs.by_notebook(paper)
        for notebook, line in by_notebook.iterrows():
            cells = [markup.cell(paper, "th", scope="row"), notebook, *_full(line, *speeds)]
            body.append(markup.line(cells))
        head = markup.cell(f"{paper}, in all", "th", scope="row")
        body.append(markup.line([head, "", *_full(by_notebook.sum(), *speeds)], "as2-from-baseline"))
    heads = ["", "Notebook", "Runs", "Steps", "Tokens, at most", "Operations", "GPU-hours: expected"]
    heads += ["GPU-hours: by operations", "Years on 2 CPU cores", "Disk", "Models alone"]
    caption = (
        "Budget paper, every row and seed, tries included. Notebooks that only score have no steps; "
        "their hours are in the expected ones alone."
    )
    return markup.table(caption, heads, body)


def _full(line, cpu: dict | None, gpu: dict | None) -> list:
    """The figures of a line of `full`, by two benchmarks: years of two CPU cores where measured, hours of a GPU also by assumption."""
    years = hours(line.operations / costs.reached(cpu) / 3600 / YEAR) if cpu else "not run"
    by_operations = hours(line.operations / costs.gpu_speed(gpu) / 3600)
    numbers = [f"{line.runs:,.0f}", big(line.steps), big(line.tokens), f"{line.operations:.1e}", hours(line.gpu_hours)]
    numbers += [by_operations, years, size(line.disk), size(line.model)]
    return [markup.number(text) for text in numbers]


def stated() -> str:
    """The costs that the papers print, and the GPU-hours that one such run is expected to take here."""
    body = []
    for line in STATED:
        budget = papers.read(line.paper)["budgets"]["paper"]
        expected = budget["gpu_hours"].get(line.notebook, 0) if line.notebook else None
        numbers = [f"{line.gpu_hours:,.0f}" if line.gpu_hours else "–", f"{expected:,}" if expected else "–"]
        words = [markup.cell(line.paper, "th", scope="row"), line.what, line.printed, line.where]
        body.append(markup.line([*words, *map(markup.number, numbers)]))
    heads = ["", "What", "As printed", "Where", "GPU-hours a run: theirs", "ours, expected"]
    caption = (
        "Theirs: GPUs times hours, where both are printed, on their GPU, the upper end of a range. "
        "Ours: of an H200, for that notebook."
    )
    return markup.table(caption, heads, body)


def corpora() -> str:
    """The corpora's raw text as printed; tokens, size of the index and time to build it at the measured rates."""
    index = measured("index")
    if index is None:
        return markup.table("The index benchmark was not run.", ["", "Raw text"], [])
    built, body = index["large_build"], []
    for name, raw in [*RAW_GB.items(), ("All four", sum(RAW_GB.values()))]:
        tokens = raw * 1e9 * built["tokens"] / built["characters"]
        building = raw * 1e9 / built["characters_a_second"] / 3600
        numbers = [f"{raw} GB", big(tokens), size(tokens * built["bytes_a_token"]), hours(building)]
        body.append(markup.line([markup.cell(name, "th", scope="row"), *map(markup.number, numbers)]))
    caption = (
        f"Raw text as sentence_objectives prints it (appendix A.1), a byte a character. Measured on {big(built['tokens'])} tokens of "
        f"Wikipedia: {built['tokens'] / built['characters']:.2f} tokens a character, {built['bytes_a_token']:.1f} bytes a token, "
        f"{big(built['characters_a_second'])} characters a second by one process on {as2_benchmarks.machine(index['machine'])}."
    )
    return markup.table(caption, ["", "Raw text", "Tokens", "Index", "Hours to build it"], body)


def examples() -> str:
    """The hours that one core takes to draw all pre-training examples of budget paper, at the measured rates."""
    sampling, body = measured("sampling"), []
    jobs = [job for paper in costs.papers() for job in costs.planned(paper) if job.notebook == "pretrain"]
    each = [runs.settings(job.notebook, job.parameters) for job in jobs]
    drawn = [
        (settings["data"] or settings["objective"], settings["steps"] * settings["batch_size"]) for settings in each
    ]
    for name, count in dict.fromkeys(drawn):
        rate = ((sampling or {}).get("objectives", {}).get(name) or {}).get("examples_a_second", {}).get("median")
        numbers = [big(count), *((big(rate), hours(count / rate / 3600)) if rate else ("not run", "not run"))]
        body.append(markup.line([markup.cell(name, "th", scope="row"), *map(markup.number, numbers)]))
    where = f" on {as2_benchmarks.machine(sampling['machine'])}" if sampling else ""
    caption = f"Drawn, put together and masked while the model trains; nothing is written to disk. One core{where}."
    heads = ["Objective", "Examples of one pre-training", "Measured a second", "Hours of one core"]
    return markup.table(caption, heads, body)


def trained() -> str:
    """Committed runs that trained: the length of their examples, and their speed."""
    body = []
    for line in costs.trained().itertuples():
        one_input = line.notebook in ("pretrain", "finetune") and line.kind != "joint"
        share = f"{line.tokens / line.longest:.0%}" if one_input else "–"
        numbers = [line.runs, line.longest, f"{line.tokens:.0f}", share, f"{line.speed:,.0f}", f"{line.hours:.2f}"]
        data = markup.NAMES.get(line.dataset, line.dataset)
        cells = [markup.cell(line.notebook, "th", scope="row"), line.kind, data, line.budget]
        body.append(markup.line([*cells, *(markup.number(str(number)) for number in numbers)]))
    heads = ["Notebook", "Learns", "Data", "Budget", "Runs", "Longest", "Tokens an example", "of the longest"]
    heads += ["Tokens a second", "Hours a run"]
    caption = (
        "Committed runs on two CPU cores: the median of each kind. An example of joint is a candidate, not a group."
    )
    return markup.table(caption, heads, body)


def assumed() -> str:
    """Every assumption with its value, and the measurement that would replace it."""
    numbers = f"{costs.NUMBERS} numbers a parameter, {costs.BYTES} bytes each"
    gpu = measured("training_step-gpu")
    share = f"{costs.gpu_speed(gpu) / costs.PEAK:.0%}"
    lines = [
        ("Peak of the GPU", f"{costs.PEAK / 1e12:,.0f} TFLOP/s", "an H200's data sheet: bf16, dense"),
        (
            "Share of the peak that training reaches",
            share,
            share_reached(gpu) if gpu else "assumed: measured on no GPU",
        ),
        ("Tokens that meet the language-model head", f"{costs.MASKED:.0%}", "the share that is masked"),
        ("Checkpoints that a run keeps", f"{costs.KEPT}, and the best", numbers),
    ]
    if most := (gpu or {}).get("largest_micro_batch", {}).get("tokens"):
        memory = f"{gpu['largest_micro_batch']['peak_memory_gib']:.0f} GiB"
        what = f"measured there: {most:,} tokens, doubled until memory ended; a model of base size forward and backward, not compiled"
        lines.append(("Memory of the largest micro-batch", memory, what))
    if speed := measured("training_step"):
        rate = f"{costs.reached(speed) / 1e9:,.0f} GFLOP/s"
        where = f"measured by training_step, fp32, on {as2_benchmarks.machine(speed['machine'])}"
        lines.append(("Two CPU cores", rate, where))
    head = lambda name: markup.cell(name, "th", scope="row")
    body = [markup.line([head(name), markup.number(value), source]) for name, value, source in lines]
    return markup.table("The basis of the hours and the disk.", ["", "Value", "From"], body)


def share_reached(result: dict) -> str:
    """Where the share of the peak was measured, in words."""
    rate, machine = costs.reached(result), as2_benchmarks.machine(result["machine"])
    source = f"{rate / 1e12:,.0f} TFLOP/s, measured by training_step on {machine}, torch {result['machine']['versions']['torch']}"
    if own := result.get("share_of_989_tflops"):
        source += f"; it counts {own['median']:.0%} itself, without what the last layer leaves out"
    return source


TABLES = {
    "budgets": budgets,
    "full": full,
    "stated": stated,
    "corpora": corpora,
    "examples": examples,
    "measured": trained,
    "assumed": assumed,
}
DIRECTIVES = {"costs": Costs}
