"""The cost of the papers' rows before anything is run: steps, tokens, operations, hours and disk, from `experiments/`
and `budgets.yml`.

Tokens are an upper bound, as in the papers' own counts: every example has its greatest length, and every epoch is done.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from aslab import plan, rundir, runs
from aslab.hours import work
from aslab.papers import papers, read
from asutil.io.disk import read_json

# Assumptions; the page of the book shows each.
PEAK = 989e12  # operations a second of an H200 in bf16, dense, by its data sheet
USED = 0.3  # share of the peak that training reaches, where no benchmark has measured it
MASKED = 0.15  # tokens that the language-model head sees
KEPT = 2  # checkpoints of a run, besides the best one
NUMBERS = 3  # for each parameter in a checkpoint: itself and AdamW's two moments
BYTES = 4  # a number


@dataclass(frozen=True)
class Backbone:
    """An encoder's sizes. `parameters`: all; `head`: those that only a masked token meets; `window`: tokens that
    a token attends to.
    """

    layers: int
    hidden: int
    inner: int
    parameters: int
    head: int = 0
    window: int | None = None
    generator: "Backbone | None" = None

    @property
    def read(self) -> int:
        """Parameters that every token meets, those of the layers without embeddings:

        L (4 H^2 + 4 H + 2 H F + F + H + 4 H)
        """
        return self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.inner + 9 * self.hidden + self.inner)

    @property
    def kept(self) -> int:
        """Parameters that a checkpoint holds."""
        return self.parameters + (self.generator.parameters if self.generator else 0)


ROBERTA = Backbone(12, 768, 3072, 124_055_040, head=768**2 + 768 * 50_265)
BERT = Backbone(12, 768, 3072, 108_891_648, head=768**2 + 768 * 30_522)
GENERATOR = Backbone(
    12, 256, 1024, 9_904_954, head=256 * 768 + 768 * 30_522
)  # without embeddings, which ELECTRA shares
ELECTRA = Backbone(12, 768, 3072, 108_891_648, generator=GENERATOR)
LONGFORMER = Backbone(12, 768, 3072, 148_068_864, window=512)
BACKBONES = {  # by how a model's name starts
    "FacebookAI/roberta-base": ROBERTA,
    "released/roberta-base": ROBERTA,
    "released/tanda-roberta-base": ROBERTA,
    "google/electra-base": ELECTRA,
    "released/electra-base": ELECTRA,
    "released/tanda-electra-base": ELECTRA,
    "google-bert/bert-base": BERT,
    "xlnet/xlnet-base": Backbone(12, 768, 3072, 116_718_336),
    "allenai/longformer-base": LONGFORMER,
    "biu-nlp/cdlm": LONGFORMER,
    "allenai/longformer-large": Backbone(24, 1024, 4096, 433_551_360, window=512),
    "local/cdlm-large": Backbone(24, 1024, 4096, 433_551_360, window=512),  # a Longformer of that size
    # Without the decoder's layers, which read only an answer.
    "allenai/led-base": Backbone(6, 768, 3072, 161_844_480, window=1024),
}


def operations(backbone: Backbone, length: int, masked: float = 0.0) -> float:
    """Operations of training on one token: two for each product, three times over for the forward and the backward
    pass.

    6 (N + m N_head) + 12 L H min(T, window), and the same for ELECTRA's generator

    Args:
        length: T, tokens that are read together. masked: m, the share of tokens that the language-model head sees.

    Example:
        >>> operations(Backbone(layers=1, hidden=2, inner=4, parameters=0), length=10)
        564.0
    """
    seen = min(length, backbone.window or length)
    own = 6 * (backbone.read + masked * backbone.head) + 12 * backbone.layers * backbone.hidden * seen
    return float(own + (operations(backbone.generator, length, masked) if backbone.generator else 0))


# ------------------------------------------------------------------ the runs of a paper


def planned(paper: str, budget: str = "paper", folder=None) -> list:
    """Every run of a paper's budget: the tries of its searches, and the seeds that follow them. No data or model
    is needed.
    """
    jobs, searches = plan.jobs_and_searches(paper, budget, folder, folder_for=planned_folder)
    return jobs + [job for tries in searches.values() for job in plan.after(tries)]


def planned_folder(notebook: str, parameters: dict) -> Path:
    """A folder name for a run that will not be run; unlike a run's own, it needs no fingerprint of any file."""
    digest = hashlib.sha256(json.dumps([notebook, parameters], sort_keys=True, default=str).encode()).hexdigest()
    return Path("runs") / f"{notebook}-{digest[:12]}"


def table(paper: str, budget: str = "paper", folder=None) -> pd.DataFrame:
    """One line a run: notebook, row, dataset, seed, steps, tokens, operations, gpu_hours (of the paper's file), disk
    and model (bytes).

    Args:
        budget: one whose models are in `BACKBONES`.
        folder: where the YAML files are; the project's experiments/ by default.
    Raises: ValueError for a model or a data set whose size is not known.
    """
    jobs = planned(paper, budget, folder)
    models = {job.folder: job.parameters.get("model", "") for job in jobs}
    lines = []
    for job in jobs:
        model = job.parameters.get("model", "")
        while Path(model) in models:  # where the chain starts
            model = models[Path(model)]
        settings = runs.settings(job.notebook, job.parameters)
        steps, tokens, length = work(job.notebook, settings)
        backbone = backbone_of(model) if steps else None
        each = operations(backbone, length, MASKED if job.notebook == "pretrain" else 0.0) if steps else 0.0
        hours = read(paper, folder)["budgets"][budget].get("gpu_hours", {}).get(job.notebook, 0)
        line = {"paper": paper, "notebook": job.notebook, "row": job.row, "dataset": job.dataset, "seed": job.seed}
        line |= {"steps": steps, "tokens": tokens, "operations": tokens * each, "gpu_hours": hours}
        line["disk"] = disk(backbone, settings.get("patience") is not None) if steps else 0
        line["model"] = BYTES * backbone.kept if steps else 0
        lines.append(line)
    return pd.DataFrame(lines)


def backbone_of(model: str) -> Backbone:
    """The sizes of a model by its name."""
    for name, backbone in BACKBONES.items():
        if model.startswith(name):
            return backbone
    raise ValueError(f"sizes of {model!r} are not known (known: {', '.join(BACKBONES)})")


def disk(backbone: Backbone, patient: bool) -> int:
    """Bytes of a finished run's weights: its checkpoints, the best one where a run may stop early, and the model."""
    return BYTES * backbone.kept * (KEPT * NUMBERS + patient + 1)


def by_notebook(paper: str, budget: str = "paper") -> pd.DataFrame:
    """`table`, summed by notebook: runs, steps, tokens, operations, gpu_hours, disk, model."""
    lines = table(paper, budget)
    by = lines.groupby("notebook", sort=False)
    summed = by[["steps", "tokens", "operations", "gpu_hours", "disk", "model"]].sum()
    summed.insert(0, "runs", by.size())
    return summed


def gpu_speed(result: dict | None) -> float:
    """Operations a second of one GPU: those of a committed `benchmarks/training_step.py` on a GPU, else peak x USED."""
    return reached(result) if result else PEAK * USED


def budgets() -> pd.DataFrame:
    """One line a paper and budget: the number of runs and the GPU-hours that the paper's file expects of them."""
    lines = []
    for paper in papers():
        for budget in read(paper).get("budgets", {}):
            jobs = planned(paper, budget)
            hours = sum(map(plan.gpu_hours, jobs))
            lines.append({"paper": paper, "budget": budget, "runs": len(jobs), "gpu_hours": hours})
    return pd.DataFrame(lines)


# ------------------------------------------------------------------ what was measured


def reached(result: dict) -> float:
    """Operations a second of a committed `benchmarks/training_step.py`: its tokens a second times what each of
    them takes.
    """
    model = result["model"]
    layers, hidden = model["layers"], model["hidden"]
    backbone = Backbone(layers, hidden, 4 * hidden, 0, head=hidden**2 + hidden * model["vocabulary"])
    return result["tokens_a_second"]["ours"] * operations(backbone, round(result["tokens_a_pair"]), MASKED)


def trained(folder: str | Path = "results") -> pd.DataFrame:
    """Committed runs that trained on CPUs, one line a kind and budget, with the median of their figures.

    Columns: notebook, kind, dataset, budget, longest (input, in tokens), tokens (an example), speed (tokens a
    second), hours (of a whole run), runs (how many).
    """
    measured = {}
    for path in sorted((rundir.root() / folder).glob("*/*/*.json")):
        record = read_json(path)
        if record.get("figures", {}).get("examples") and not record.get("hardware", {}).get("gpu"):
            try:
                measured[record["name"]] = _measured(record)
            except (KeyError, TypeError, ArithmeticError) as error:
                name = f"{path.parent.name}/{path.name}"
                raise ValueError(f"{name} is damaged: {type(error).__name__}: {error}") from error
    kinds, figures = ["notebook", "kind", "dataset", "budget", "longest"], ["tokens", "speed", "hours"]
    by = pd.DataFrame(list(measured.values()), columns=[*kinds, *figures]).groupby(kinds)
    return by[figures].median().assign(runs=by.size()).reset_index()


def _measured(record: dict) -> dict:
    settings, figures = record["settings"], record["figures"]
    kind = next((settings[name] for name in ("objective", "architecture", "head") if settings.get(name)), "pair")
    return {
        "notebook": record["notebook"],
        "kind": f"{kind}, pairs of {settings['data']}" if settings.get("data") else kind,
        "dataset": settings.get("dataset") or settings.get("corpus"),
        "budget": record["budget"],
        "longest": settings["max_tokens"],
        "tokens": figures["tokens"] / figures["examples"],
        "speed": figures["tokens"] / figures["training_seconds"],
        "hours": record["seconds"] / 3600,
    }
