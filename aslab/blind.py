"""Records whether finished runs read the question: MAP and P@1 for their own questions, and with the texts of the questions exchanged.

python -m aslab.blind RUN [RUN ...] [--out FILE]
"""

import argparse
from pathlib import Path

from asutil import metrics
from asutil.data import answers
from asutil.io import disk, rundir
from asutil.tasks import blind, nearest, rankers

from . import runs


def record(folders: list[Path]) -> dict:
    """One entry a run with a figure a readout, one of a bag of words for each data set and protocol, and the provenance.

    Raises: ValueError for a folder without a finished run, or a run that does not rank.
    """
    entries, words = [], {}
    for folder in folders:
        run = rundir.read_record(folder)
        if run["notebook"] not in ("finetune", "embed"):
            raise ValueError(f"{folder.name}: expected a run of finetune or embed, got one of {run['notebook']}")
        settings = run["settings"]
        context = settings.get("architecture") == "context"
        splits = answers.load_answers(settings["dataset"], settings["protocol"], context=context)
        own, ranker = splits["test"], rankers.load_ranker(folder)
        scores = [ranker.score(questions) for questions in (own, blind.exchanged(own))]
        by = [name for name in nearest.RANK_BY if name in scores[0]] or ["score"]
        figures = {
            name: {which: _figures(table, name) for which, table in zip(("own", "exchanged"), scores)} for name in by
        }
        about = {name: settings[name] for name in ("dataset", "protocol", "model", "architecture")}
        entries.append(
            {
                "name": run["name"],
                "seed": run["seed"],
                **about,
                "weights_sha256": run["weights_sha256"],
                "readouts": figures,
            }
        )
        key = settings["dataset"], settings["protocol"]
        words[key] = words.get(key) or _figures(blind.bag_of_words(splits["train"], own), "score")
        print(
            run["name"],
            *(
                f"{name}: MAP {of['own']['map']:.4f}, exchanged {of['exchanged']['map']:.4f}"
                for name, of in figures.items()
            ),
            sep="\n  ",
        )
    bags = [{"dataset": dataset, "protocol": protocol, **figures} for (dataset, protocol), figures in words.items()]
    origin = {name: runs.provenance()[name] for name in ("versions", "commit", "created")}
    return {"runs": entries, "bag_of_words": bags, **origin}


def _figures(scores, by: str) -> dict:
    found = metrics.ranking(scores["question_id"], scores["label"], scores[by])
    return {"map": found.map, "p@1": found.p_at_1, "questions": found.questions}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.blind", description=__doc__.splitlines()[0])
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="run", help="folders of finished runs of finetune or embed"
    )
    parser.add_argument("--out", type=Path, help="write a record of numbers into this file")
    options = parser.parse_args()
    content = record(options.runs)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        print(disk.write_json(options.out, content))


if __name__ == "__main__":
    main()
