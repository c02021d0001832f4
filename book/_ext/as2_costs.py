"""Directives of the page on costs: what the papers' settings take, what the papers say they took, and what was measured here."""

import json

import as2_benchmarks
from as2_pages import ROOT, SOURCES, Shown, boxed
from pages import costs

from aslab import papers, runs
from aslab.show import markup
from asutil.io import rundir

FOLDER = ROOT / "results" / "benchmarks"
SOURCES["costs"] = lambda _: sorted(
    path
    for where in (
        "experiments/*.yml",
        "aslab/budgets.yml",
        "book/_ext/pages/costs.py",
        "aslab/hours.py",
        "results/*/*.json",
        "results/*/*/*.json",
    )
    for path in ROOT.glob(where)
)
# (paper, what it is about, in figures as printed, where, notebook of ours, GPU-hours a run that follow from it)
STATED = (
    ("sentence_objectives", "A pre-training", "about 210 billion tokens", "Section 5.2; Appendix B", "pretrain", None),
    (
        "sentence_objectives",
        "All pre-training",
        "A100 GPUs for days; neither number is printed",
        "Limitations",
        None,
        None,
    ),
    (
        "contextual_as2",
        "A pre-training",
        "8 A100 of 40 GB, around 3.5 days",
        "Appendices B and C",
        "pretrain",
        8 * 3.5 * 24,
    ),
    ("contextual_as2", "A pre-training", "about 210 billion tokens", "Appendix C", "pretrain", None),
    ("contextual_as2", "Preparing the data", "10 hours on 64 CPU cores", "Appendix C", None, None),
    ("contextual_as2", "A fine-tuning on ASNQ", "6 hours", "Appendix D", "finetune", None),
    ("contextual_as2", "A fine-tuning elsewhere", "one GPU, less than 2 hours", "Appendix D", "finetune", 2),
    ("asbert", "The whole paper", "nothing is printed", "–", "embed", None),
    ("joint_inference", "A pre-training", "nothing is printed", "–", "pretrain", None),
    ("joint_inference", "WikiQA on one A100", "71 s, joint 81 s", "Section 4.3; Appendix C.3", "finetune", None),
    (
        "evidence_contrast",
        "A run on QASPER",
        "one RTX 8000, 30 to 60 minutes an epoch",
        "Appendix B.1",
        "find_evidence",
        10,
    ),
    (
        "evidence_contrast",
        "A run on HotpotQA",
        "four RTX 8000 of 48 GB, 6 hours an epoch",
        "Appendix B.2",
        "find_evidence",
        4 * 6 * 5,
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
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def big(value: float) -> str:
    """Two or three digits that count, with a word for millions and more."""
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
    caption = "Notebook runs of every row with every seed, tries of a search included; GPU-hours as expected in each paper's file, of an H200."  # noqa: E501
    return markup.table(caption, heads, body)


def full() -> str:
    """Budget paper: steps, tokens, operations, hours and disk of each paper by notebook, and their sum."""
    speed, body = measured("training_step"), []
    for paper in costs.papers():
        found = costs.by_notebook(paper)
        for notebook, line in [*found.iterrows(), ("in all", found.sum())]:
            years = line.operations / costs.reached(speed) / 3600 / YEAR if speed else None
            numbers = [
                f"{line.runs:,.0f}",
                big(line.steps),
                big(line.tokens),
                f"{line.operations:.1e}",
                hours(line.gpu_hours),
            ]
            numbers += [hours(line.reckoned), hours(years) if speed else "not run", size(line.disk), size(line.model)]
            named = (
                [markup.cell(paper, "th", scope="row")]
                if notebook != "in all"
                else [markup.cell(f"{paper}, in all", "th", scope="row")]
            )
            cells = [*named, "" if notebook == "in all" else notebook, *map(markup.number, numbers)]
            body.append(markup.line(cells, "as2-from-baseline" if notebook == "in all" else ""))
    heads = [
        "",
        "Notebook",
        "Runs",
        "Steps",
        "Tokens, at most",
        "Operations",
        "GPU-hours: expected",
        "GPU-hours: by operations",
    ]
    heads += ["Years on 2 CPU cores", "Disk", "Models alone"]
    caption = "Budget paper, every row and seed, tries included. What only scores has no steps; its hours are in the expected ones alone."
    return markup.table(caption, heads, body)


def stated() -> str:
    """What the papers say of their own cost, beside what is expected here of one such run."""
    body = []
    for paper, what, said, where, notebook, theirs in STATED:
        expected = papers.read(paper)["budgets"]["paper"]["gpu_hours"].get(notebook, 0) if notebook else None
        numbers = [f"{theirs:,.0f}" if theirs else "–", f"{expected:,}" if expected else "–"]
        body.append(
            markup.line([markup.cell(paper, "th", scope="row"), what, said, where, *map(markup.number, numbers)])
        )
    heads = ["", "What", "As printed", "Where", "GPU-hours a run: theirs", "ours, expected"]
    caption = "Theirs: GPUs times hours, where both are printed, on their GPU, the upper end of a range. Ours: of an H200, for that notebook."  # noqa: E501
    return markup.table(caption, heads, body)


def corpora() -> str:
    """The corpora's raw text as printed, and tokens, index and time to build it at the measured rates."""
    index = measured("index")
    if index is None:
        return markup.table("The index benchmark was not run.", ["", "Raw text"], [])
    built, body = index["large_build"], []
    for name, raw in [*RAW_GB.items(), ("All four", sum(RAW_GB.values()))]:
        tokens = raw * 1e9 * built["tokens"] / built["characters"]
        numbers = [
            f"{raw} GB",
            big(tokens),
            size(tokens * built["bytes_a_token"]),
            hours(raw * 1e9 / built["characters_a_second"] / 3600),
        ]
        body.append(markup.line([markup.cell(name, "th", scope="row"), *map(markup.number, numbers)]))
    caption = (
        f"Raw text as sentence_objectives prints it (appendix A.1), a byte a character. Measured on {big(built['tokens'])} tokens of "
        f"Wikipedia: {built['tokens'] / built['characters']:.2f} tokens a character, {built['bytes_a_token']:.1f} bytes a token, "
        f"{big(built['characters_a_second'])} characters a second by one process on {as2_benchmarks.machine(index['machine'])}."
    )
    return markup.table(caption, ["", "Raw text", "Tokens", "Index", "Hours to build it"], body)


def examples() -> str:
    """How long drawing all pre-training examples of budget paper takes one core, at the measured rates."""
    sampling, body, seen = measured("sampling"), [], set()
    for job in (job for paper in costs.papers() for job in costs.planned(paper) if job.notebook == "pretrain"):
        settings = runs.settings(job.notebook, job.parameters)
        name, drawn = settings["data"] or settings["objective"], settings["steps"] * settings["batch_size"]
        rate = ((sampling or {}).get("objectives", {}).get(name) or {}).get("examples_a_second", {}).get("median")
        if (name, drawn) not in seen:
            numbers = [big(drawn), big(rate) if rate else "not run", hours(drawn / rate / 3600) if rate else "not run"]
            body.append(markup.line([markup.cell(name, "th", scope="row"), *map(markup.number, numbers)]))
        seen.add((name, drawn))
    where = f" on {as2_benchmarks.machine(sampling['machine'])}" if sampling else ""
    caption = f"Drawn, put together and masked while the model trains; nothing is written to disk. One core{where}."
    return markup.table(
        caption, ["Objective", "Examples of one pre-training", "Measured a second", "Hours of one core"], body
    )


def trained() -> str:
    """Committed runs that trained: how long their examples are, and how fast they were."""
    body = []
    for line in costs.trained().itertuples():
        share = (
            f"{line.tokens / line.longest:.0%}"
            if line.notebook in ("pretrain", "finetune") and line.kind != "joint"
            else "–"
        )
        numbers = [line.runs, line.longest, f"{line.tokens:.0f}", share, f"{line.speed:,.0f}", f"{line.hours:.2f}"]
        data = markup.NAMES.get(line.dataset, line.dataset)
        cells = [markup.cell(line.notebook, "th", scope="row"), line.kind, data, line.budget]
        body.append(markup.line([*cells, *(markup.number(str(number)) for number in numbers)]))
    heads = ["Notebook", "Learns", "Data", "Budget", "Runs", "Longest", "Tokens an example", "of the longest"]
    heads += ["Tokens a second", "Hours a run"]
    caption = (
        "Committed runs on two CPU cores: the median of each kind. Of joint an example is a candidate, not a group."
    )
    return markup.table(caption, heads, body)


def assumed() -> str:
    """Every assumption with its value, and the measurement that would replace it."""
    lines = [
        ("Peak of the GPU", f"{costs.PEAK / 1e12:,.0f} TFLOP/s", "an H200's data sheet: bf16, dense"),
        (
            "Share of the peak that training reaches",
            f"{costs.USED:.0%}",
            f"assumed; measured on a GPU: {share_reached()}",
        ),
        ("Tokens that meet the language-model head", f"{costs.MASKED:.0%}", "the share that is masked"),
        (
            "Checkpoints that a run keeps",
            f"{costs.KEPT}, and the best",
            f"{costs.NUMBERS} numbers a parameter, {costs.BYTES} bytes each",
        ),
    ]
    speed = measured("training_step")
    if speed:
        rate = f"{costs.reached(speed) / 1e9:,.0f} GFLOP/s"
        lines.append(
            ("Two CPU cores", rate, f"measured by training_step, fp32, on {as2_benchmarks.machine(speed['machine'])}")
        )
    body = [
        markup.line([markup.cell(name, "th", scope="row"), markup.number(value), why]) for name, value, why in lines
    ]
    return markup.table("What the hours and the disk rest on.", ["", "Value", "From"], body)


def share_reached() -> str:
    """The share of the assumed peak that the training benchmark reached on a GPU, in words."""
    result = measured("training_step-gpu")
    if result is None:
        return "not measured"
    rate = costs.reached(result)
    return f"{rate / 1e12:,.0f} TFLOP/s, {rate / costs.PEAK:.0%} of that peak, by training_step on {as2_benchmarks.machine(result['machine'])}"  # noqa: E501


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
