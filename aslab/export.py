"""Writes the model of a finished run for other libraries, with a model card made from its record.

python -m aslab.export RUN --to FOLDER [--push OWNER/NAME]

A run of finetune on pairs becomes a folder for sentence_transformers.CrossEncoder, a run of embed one for SentenceTransformer.
"""

import argparse
import shutil
from pathlib import Path

import yaml
from huggingface_hub import EvalResult, HfApi, ModelCard, ModelCardData

from asutil import metrics, models, tasks
from asutil.io import disk
from asutil.metrics import significance

from . import rundir
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
    folder, to = rundir.find(str(run)) or Path(run), Path(to)
    record = rundir.read_record(folder)
    notebook = record["notebook"]
    if notebook not in USE:
        raise ValueError(f"{folder.name}: expected a run of finetune or embed, got one of {notebook}")
    if not (folder / "model").is_dir():
        raise ValueError(f"{folder.name} has no model of its own: nothing was trained")
    if to.exists() and not replace:
        raise FileExistsError(f"{to} exists: give a folder that does not")
    with disk.whole_folder(to) as part:
        if notebook == "embed":
            models.embedder.load(folder)  # what cannot be read is not handed on
            shutil.copytree(folder / "model", part, dirs_exist_ok=True)
        else:
            tasks.cross_encoder.save(models.loading.load(folder), part, record["settings"]["max_tokens"])
        disk.write_json(part / disk.LIST, {"files": disk.hashes(part, "**/*")})
        card(record, rundir.read_table(folder, numbers=("label", "score")), to.name).save(part / disk.CARD)
    return to


def card(record: dict, scores, place: str) -> ModelCard:
    """A model card: data, budget, seed, metrics on test questions with 95 % intervals, what it was made from and how."""
    settings, ranking = record["settings"], metrics.of(scores, empty="skip")
    results, lines = [], []
    for name, column in PER_QUESTION.items():
        values = ranking.per_question[column]
        low, high = (100 * edge for edge in significance.mean_interval(values))
        lines.append(f"| {name} | {100 * values.mean():.1f} | {low:.1f} to {high:.1f} |")
        about = {
            "task_type": "text-ranking",
            "dataset_type": settings["dataset"],
            "dataset_name": settings["dataset"],
            "dataset_split": "test",
        }
        results.append(EvalResult(metric_type=name, metric_value=round(float(values.mean()), 4), **about))
    data = ModelCardData(
        model_name=place,
        base_model=settings["model"] if "/" in str(settings["model"]) else None,
        datasets=[settings["dataset"]],
        eval_results=results,
        library_name="sentence-transformers",
        pipeline_tag="text-ranking" if record["notebook"] == "finetune" else "sentence-similarity",
        tags=["answer-sentence-selection"],
    )
    made = {
        "run": record["name"],
        "begins with": settings["model"],
        "data set": settings["dataset"],
        "protocol": settings.get("protocol"),
    }
    made |= {
        "budget": record["budget"],
        "seed": record["seed"],
        "commit": record.get("commit"),
        "weights": record.get("weights_sha256"),
        "licence of the data": licence_of(settings["dataset"]),
    }
    rows = "\n".join(f"| {name} | `{value}` |" for name, value in made.items())
    text = [
        f"---\n{data.to_yaml()}\n---",
        f"# {place}",
        "Ranks the sentences that may answer a question (answer sentence selection). Made with asutil; one run, one seed.",
        USE[record["notebook"]].format(place=place, rank_by=settings.get("rank_by")),
        f"| {len(ranking.per_question)} test questions | points | 95 % interval over questions |\n|---|---|---|\n"
        + "\n".join(lines),
        f"| made from | |\n|---|---|\n{rows}",
        "The licences of the model that it begins with and of the data hold for it, too.",
    ]
    return ModelCard("\n\n".join(text) + "\n")


def licence_of(dataset: str) -> str:
    """The licence in a data set's card; for data of the user, that it is theirs to say."""
    path = rundir.root() / "data_cards" / f"{dataset}.md"
    if not path.is_file():
        return "not known: it has no data card"
    return yaml.safe_load(path.read_text("utf-8").split("---")[1])["licence"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.export", description=__doc__.splitlines()[0])
    parser.add_argument("run", help="name or folder of a finished run of finetune or embed")
    parser.add_argument("--to", type=Path, required=True, help="the folder to write, which must not exist")
    parser.add_argument(
        "--push", metavar="owner/name", help="also upload the folder to this model repository of the hub"
    )
    options = parser.parse_args()
    try:
        print(export(options.run, options.to))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if options.push:
        api = HfApi()
        api.create_repo(options.push, exist_ok=True)
        print(api.upload_folder(repo_id=options.push, folder_path=options.to))


if __name__ == "__main__":
    main()
