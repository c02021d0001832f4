"""Tests whether finished runs read the question: their MAP and P@1, and both again after the texts of the questions are exchanged."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from asutil import draws, metrics, tasks
from asutil.data import answers, baselines
from asutil.data.questions import Question
from asutil.data.splits import same_text
from asutil.io import disk
from asutil.metrics import registry

from . import measured, records, rundir, stages
from .commands import argument, option

SHOWN = ("map", "p@1")


def record(folders: list[Path], own: str | None = None) -> dict:
    """One entry a run with a figure a readout, one of a bag of words for each data set and protocol.

    Each figure comes with the values of every question, and without any text.

    Args:
        own: the file or folder of the questions of runs on questions of their user's, whose records keep no path.
    Raises: ValueError for a folder without a finished run, a run that does not rank, or questions that have changed since.
    """
    entries, bags, titles = [], {}, registry.titles()
    finished = [rundir.finished(folder, "finetune", "embed") for folder in folders]
    for folder, run in finished:  # all are looked at before the first is scored
        if run["settings"].get("architecture") == "untrained":
            came = "its encoder was used as it was given"
            raise ValueError(f"{folder.name}: expected a run that trained a model, {came}")
    for folder, run in finished:
        about = measured.of_run(run, "dataset", "protocol", "model", "architecture")
        about["model"] = _pretrained(about["model"])
        splits = _splits(run, own)
        data = {name: about[name] for name in ("dataset", "protocol")} | measured.given(about, measured.LIMITS)
        if (key := tuple(data.items())) not in bags:
            bags[key] = data | _figures(bag_of_words(splits["train"], splits["test"]), "score")
        ranker = tasks.rankers.load_ranker(folder)
        scores = {"own": ranker.score(splits["test"]), "exchanged": ranker.score(exchanged(splits["test"]))}
        readouts = [name for name in tasks.nearest.RANK_BY if name in scores["own"]] or ["score"]
        figures = {name: {which: _figures(table, name) for which, table in scores.items()} for name in readouts}
        entries.append(about | {"readouts": figures})
        print(run["name"])
        for name, of in figures.items():
            shown = [f"{titles[key]} {of['own'][key]:.4f}, exchanged {of['exchanged'][key]:.4f}" for key in SHOWN]
            print(f"  {name}: {'; '.join(shown)} ({of['own']['questions']:,} test questions)")
    return {"runs": entries, "bag_of_words": list(bags.values())}


def committed() -> dict[str, list[dict]]:
    """`record` of all committed files together: a run, or a bag of words, that several of them have, once."""
    runs, bags = {}, {}
    for content in map(disk.read_json, measured.files("blind")):
        runs |= {run["name"]: run for run in content["runs"]}
        bags |= {(bag["dataset"], bag["protocol"], measured.words_of(bag)): bag for bag in content["bag_of_words"]}
    return {"runs": list(runs.values()), "bag_of_words": list(bags.values())}


def _pretrained(model: str) -> str:
    """A model as it is called in a table; a run of ours by its backbone and what it learnt: `owner/name + DPC`.

    A run that is not on this machine keeps its own name.
    """
    folder = rundir.find(model)
    if folder is None or not (folder / "record.json").is_file():
        return model
    settings = rundir.read_record(folder)["settings"]
    learnt = settings["objective"].upper() if "objective" in settings else settings["dataset"]
    shuffled = ", shuffled labels" * (settings.get("labels") == "shuffled")
    return f"{_pretrained(settings['model'])} + {learnt}{shuffled}"


def _splits(run: dict, own: str | None) -> dict:
    """The questions that a run was trained and tested on. Raises: ValueError where they have changed since."""
    settings = run["settings"]
    dataset = stages.same_data(run, own if settings["dataset"].startswith("own:") else None)
    context = settings.get("architecture") == "context"
    names = {name: name for name in ("train_questions", "train_limit", "test_limit")} | {"limit": "question_limit"}
    limits = {name: settings[own] for name, own in names.items() if settings.get(own) is not None}
    return answers.load_answers(dataset, settings["protocol"], context=context, **limits)


def _figures(scores: pd.DataFrame, by: str) -> dict:
    ranking = metrics.ranking(scores["question_id"], scores["label"], scores[by])
    each = records.rounded(ranking.per_question.set_index("question_id"))
    return {key: ranking.values[key] for key in SHOWN} | {"questions": ranking.questions, "per_question": each}


def exchanged(questions: Sequence[Question], seed: int = 0) -> list[Question]:
    """Each question with its own candidates and labels, and the text of another one.

    A ranker that reads the question falls to chance; what it keeps it knows from the candidates alone.
    Raises: ValueError for fewer than two questions.
    Example:
        >>> [question.text for question in exchanged([Question("1", "who?", ()), Question("2", "where?", ())])]
        ['where?', 'who?']
    """
    different = {same_text(question.text): question for question in reversed(questions)}
    text_of = {question.id: question.text for question in different.values()}
    if len(text_of) < 2:
        raise ValueError(f"two questions or more are needed to exchange their texts, got {len(text_of)}")
    order = [text_of[name] for name in draws.choose(list(text_of), len(text_of), seed)]
    next_of = dict(zip(map(same_text, order), [*order[1:], order[0]]))
    return [replace(question, text=next_of[same_text(question.text)]) for question in questions]


def bag_of_words(train: Sequence[Question], test: Sequence[Question]) -> pd.DataFrame:
    """Scores of a logistic regression on the words and pairs of words of a candidate, which sees no question.

    Words are those of `baselines.words` in a script without spaces.
    Features: 1 + log of counts times inverse document frequency, of those in two candidates or more; both labels weigh the same.
    Returns: question_id, label, score (float32), in the order of the test questions.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts, labels = zip(*((candidate.text, candidate.label) for question in train for candidate in question.candidates))
    if len(set(labels)) < 2:
        raise ValueError(f"expected training questions with right and wrong candidates, got label {labels[0]} alone")
    of_text = {"analyzer": baselines.words} if baselines.without_spaces(texts) else {"ngram_range": (1, 2)}
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, **of_text)
    model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(words.fit_transform(texts), labels)
    rows = [(question.id, candidate.label, candidate.text) for question in test for candidate in question.candidates]
    table = pd.DataFrame(rows, columns=["question_id", "label", "text"])
    return table.assign(score=model.decision_function(words.transform(table.pop("text"))).astype(np.float32))


command = measured.command(
    record,
    argument("folders", "finished runs of finetune or embed", type=Path, nargs=-1, metavar="RUN..."),
    option("--dataset own", "file or folder of the questions, for runs on your own (records keep no path)"),
    example="asutil blind runs/finetune-<hash> --dataset my_questions.tsv",
)
