"""Writes the model of a finished run for other libraries, with a model card made from its record.

A run of finetune on pairs becomes a folder for sentence_transformers.CrossEncoder, a run of embed one for SentenceTransformer.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import EvalResult, HfApi, ModelCard, ModelCardData

from asutil import metrics, models, tasks
from asutil.data.data_sets import ANSWERS
from asutil.io import disk
from asutil.metrics import significance

from . import chains, commands, identity, rundir
from .cards import licence_of
from .records import PER_QUESTION

USE = {
    "finetune": """```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("{place}")
model.rank("a question", ["a candidate", "another"])
```""",
    "embed": """```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{place}")
vectors = model.encode(["a question", "a candidate"])
```
Candidates were ranked by {rank_by}.""",
}


def export(run: str | Path, to: str | Path, replace: bool = False) -> Path:
    """Write a run's model, its card and the hashes of its files into a folder.

    Args:
        replace: a folder that exists is replaced once the new one is whole.
    Raises: ValueError for a run that is not finished, has no model, or is of another notebook; FileExistsError for a folder that is there.
    """
    folder, record = rundir.finished(run, *USE)
    to = Path(to)
    if not (folder / "model").is_dir():
        raise ValueError(f"{folder.name} has no model of its own: nothing was trained")
    if to.exists() and not replace:
        raise FileExistsError(f"{to} exists: give a folder that does not")
    with disk.whole_folder(to) as part:
        if record["notebook"] == "embed":
            models.embedder.load(folder)  # what cannot be read is not handed on
            shutil.copytree(folder / "model", part, dirs_exist_ok=True)
            config = json.loads((part / "config.json").read_text("utf-8"))
            rank_by = record["settings"]["rank_by"]
            names = {ours: name for name, ours in models.elsewhere.SIMILARITIES.items()}
            # sentence-transformers has no siamese head: the distance in place of its probability
            similarity = {"similarity_fn_name": names.get(rank_by, names["distance"])}
            disk.write_json(part / "config_sentence_transformers.json", similarity)
            if rank_by != tasks.nearest.USUAL[config["embedding"]["architecture"]]:
                config["embedding"]["rank_by"] = rank_by
                (part / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        else:
            tasks.cross_encoder.save(models.loading.load(folder), part, record["settings"]["max_tokens"])
        disk.write_json(part / disk.LIST, {"files": disk.hashes(part, "**/*")})
        scores = rundir.read_table(folder, numbers=("label", "score"))
        backbone = chains.started_from(record["settings"]["model"], folder.parent)
        card(record, scores, to.name, backbone).save(part / disk.CARD)
    return to


def hub_id_of(dataset: str) -> str | None:
    """The hub id of a data set as records name it; None for a user's own and for one that no hub has."""
    name = ANSWERS[dataset].hub_id if dataset in ANSWERS else dataset.partition(":")[0]
    return name if name and "/" in name and not name.startswith("local/") else None


def card(record: dict, scores, place: str, backbone: str | None) -> ModelCard:
    """A model card: data, budget, seed, metrics on test questions with 95 % intervals, what it was made from and how.

    Args: backbone: what the run, or the pre-training that it began with, started from.
    """
    backbone = identity.shown({"model": backbone})["model"]
    settings, ranking = record["settings"], metrics.of(scores, empty="skip")
    hub_id = hub_id_of(settings["dataset"])
    results = []
    lines = [f"| {len(ranking.per_question)} test questions | points | 95 % interval over questions |", "|---|---|---|"]
    for name, column in PER_QUESTION.items():
        values = ranking.per_question[column]
        low, high = (100 * edge for edge in significance.mean_interval(values))
        lines.append(f"| {name} | {100 * values.mean():.1f} | {low:.1f} to {high:.1f} |")
        about = {"task_type": "text-ranking", "dataset_split": "test", "metric_type": name}
        about |= {"dataset_type": hub_id or settings["dataset"], "dataset_name": settings["dataset"]}
        results.append(EvalResult(metric_value=round(float(values.mean()), 4), **about))
    data = ModelCardData(
        model_name=place,
        base_model=backbone if "/" in str(backbone) else None,
        datasets=[hub_id] if hub_id else None,
        license="other",
        eval_results=results,
        library_name="sentence-transformers",
        pipeline_tag="text-ranking" if record["notebook"] == "finetune" else "sentence-similarity",
        tags=["answer-sentence-selection"],
    )
    made = {"run": record["name"], "begins with": settings["model"], "backbone": backbone}
    made |= {"loss": settings.get("loss"), "teacher": settings.get("teacher")}
    made |= {"data set": settings["dataset"], "protocol": settings.get("protocol")}
    made |= {"budget": record["budget"], "seed": record["seed"], "commit": record.get("commit")}
    made |= {"weights": record.get("weights_sha256"), "licence of the data": licence_of(settings["dataset"])}
    rows = "\n".join(f"| {name} | `{value}` |" for name, value in made.items() if value is not None)
    text = [
        f"---\n{data.to_yaml()}\n---",
        f"# {place}",
        "Ranks the sentences that may answer a question (answer sentence selection). Made with asutil; one run, one seed.",
        USE[record["notebook"]].format(place=place, rank_by=settings.get("rank_by")),
        "\n".join(lines),
        f"| made from | |\n|---|---|\n{rows}",
        "The licences of the model that it begins with and of the data hold for it, too.",
    ]
    return ModelCard("\n\n".join(text) + "\n")


def export_and_push(run: str, to: Path, push: str | None) -> Iterator[Path | str]:
    yield export(run, to)
    if push:
        api = HfApi()
        api.create_repo(push, exist_ok=True)
        yield api.upload_folder(repo_id=push, folder_path=to)


command = commands.command(
    export_and_push,
    commands.argument("run", "a finished run of finetune or embed"),
    commands.option("--to", "the folder to write, which must not exist", type=Path, required=True),
    commands.option("--push", "also upload the folder to this model repository of the hub", metavar="OWNER/NAME"),
    example="asutil export runs/finetune-<hash> --to exported",
)
