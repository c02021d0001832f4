"""P@1, MAP and MRR of 57,000 questions with 356 candidates each, against torchmetrics and against trec_eval called from Python.

All start from the same table of scores (question_id, candidate_id, label, score). torchmetrics is given its numbers for free: question
numbers and tensors made before the clock starts, against this project on the same numbers. trec_eval is given its dictionaries inside
the clock, as it takes nothing else, 1,000 questions at a time, against this project on the table itself, with question ids as text. All
sides use one thread; ratios go by the processor's clock, so that what else runs on the machine does not count.

    python benchmarks/metrics.py [--quick]        # --quick: 2,000 questions
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytrec_eval
import side_by_side
import torch
from torchmetrics import MetricCollection

from asutil import metrics
from asutil.metrics import peers, registry

GOAL, QUESTIONS, CANDIDATES, POSITIVE = 2, 57_000, 356, 0.0035  # ASNQ's train split has these sizes
MEASURES = {measure.key: measure.trec_eval for measure in registry.measures("question") if measure.trec_eval}


def made_up(questions: int, seed=0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of scores and its question numbers; no two candidates of a question have one score, as each side breaks ties its own way."""
    draw = np.random.default_rng(seed)
    labels = (draw.random((questions, CANDIDATES)) < POSITIVE).astype(np.int8)
    labels[np.arange(questions), draw.integers(0, CANDIDATES, questions)] = 1
    places = np.tile(np.arange(1, CANDIDATES + 1, dtype=np.float32), (questions, 1))
    scores = draw.permuted(places, axis=1) / np.float32(
        CANDIDATES + 1
    )  # between 0 and 1: torchmetrics drops scores of 0 and less
    numbers = np.repeat(np.arange(questions), CANDIDATES)
    names = pc.cast(pa.array(numbers), pa.string())
    candidates = pc.cast(pa.array(np.tile(np.arange(CANDIDATES), questions)), pa.string())
    table = pa.table(
        {
            "question_id": names,
            "candidate_id": pc.binary_join_element_wise(names, candidates, "-"),
            "label": labels.ravel(),
            "score": scores.ravel(),
        }
    )
    return table.to_pandas(), numbers


def by_torchmetrics(scores, labels, numbers) -> dict:
    together = MetricCollection(peers.torchmetrics_classes())
    together.update(scores, labels, indexes=numbers)
    return {name: float(value) for name, value in together.compute().items()}


def by_trec_eval(table: pd.DataFrame, questions=1000) -> dict:
    totals, asked = dict.fromkeys(MEASURES, 0.0), 0
    for start in range(0, len(table), questions * CANDIDATES):
        part = table.iloc[start : start + questions * CANDIDATES]
        names, candidates, labels, scores = (
            part[name].tolist() for name in ("question_id", "candidate_id", "label", "score")
        )
        judged, run = {}, {}
        for first in range(0, len(part), CANDIDATES):
            rows = slice(first, first + CANDIDATES)
            judged[names[first]] = dict(zip(candidates[rows], labels[rows]))
            run[names[first]] = dict(zip(candidates[rows], scores[rows]))
        found = pytrec_eval.RelevanceEvaluator(judged, set(MEASURES.values())).evaluate(run)
        for name, measure in MEASURES.items():
            totals[name] += sum(values[measure] for values in found.values())
        asked += len(found)
    return {name: total / asked for name, total in totals.items()}


def main():
    given = side_by_side.arguments(__doc__).parse_args()
    torch.set_num_threads(1)  # as the other sides
    questions, rounds = (2000, given.rounds or 3) if given.quick else (QUESTIONS, given.rounds or 3)
    table, numbers = made_up(questions)
    columns = numbers, table["label"].to_numpy(), table["score"].to_numpy()
    tensors = torch.tensor(columns[2]), torch.tensor(columns[1], dtype=torch.int64), torch.tensor(numbers)
    values = {}
    sides = {
        "ours": lambda: values.update(ours=metrics.of(table).record()),
        "ours_on_numbers": lambda: values.update(ours_on_numbers=metrics.ranking(*columns).record()),
        "torchmetrics": lambda: values.update(torchmetrics=by_torchmetrics(*tensors)),
        "trec_eval": lambda: values.update(trec_eval=by_trec_eval(table)),
    }
    metrics.of(table)  # the first call of a process asks the system for its memory
    wall, processor = side_by_side.seconds(sides, rounds)
    compared = {
        "torchmetrics": side_by_side.ratios(processor["ours_on_numbers"], processor["torchmetrics"]),
        "trec_eval": side_by_side.ratios(processor["ours"], processor["trec_eval"]),
    }
    apart = {name: max(abs(values[name][key] - values["ours"][key]) for key in MEASURES) for name in values}
    measured = {
        "questions": questions,
        "pairs": len(table),
        **{f"against_{name}": value for name, value in compared.items()},
        "seconds": {name: side_by_side.spread(taken) for name, taken in wall.items()},
        "processor_seconds": {name: side_by_side.spread(taken) for name, taken in processor.items()},
        "largest_difference": {name: float(f"{value:.2g}") for name, value in apart.items()},
        "equal_to_1e-6": max(apart.values()) < 1e-6,
        "rounds": rounds,
        "quick": given.quick,
    }
    side_by_side.show(side_by_side.headline("metrics", GOAL, compared, **measured))


if __name__ == "__main__":
    main()
