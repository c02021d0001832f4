"""Which ranker for how many candidates: accuracy and time of each, from the records that measured them."""

import pandas as pd

from aslab import rankers, records
from aslab.show.markup import NAMES
from pages import benchmarks, numbers, register, row, table

VECTORS, TOGETHER = "two vectors", "both texts together"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
RANKERS = {"bm25": ("BM25", "words in common"), MINILM: ("MiniLM, as released", VECTORS)}
TRAINED = ("MiniLM, after triplets", VECTORS)
BACKENDS = {
    "torch": ("Granite, fine-tuned as a pair model", TOGETHER),
    "onnx": ("Granite pair model, ONNX", TOGETHER),
    "onnx_int8": ("Granite pair model, ONNX in 8 bits", TOGETHER),
}
MANY = 1_000  # candidates of a question
EMPTY = "Accuracy and time side by side: not run. snakemake rankers_small and benchmarks/backends.py measure them."


@register("choices", "choices", EMPTY)
def choices() -> str:
    record, backends = rankers.committed("results").get("wikiqa"), benchmarks("backends").get("backends")
    if not record or not backends:
        return ""
    runs = records.committed("asbert").query("row == 'triplet_bert' and dataset == 'wikiqa' and budget == 'small'")
    each = [records.per_question(line)["average_precision"] for line in runs.itertuples()]
    return choices_table(record, backends, pd.concat(each, axis=1).mean(axis=1) if each else None)


def choices_table(record: dict, backends: dict, triplets: pd.Series | None = None) -> str:
    """A line a ranker: what it compares, MAP, and the seconds that many new candidates of a question take.

    Args:
        record: of the notebook `rank`. backends: of `benchmarks/backends.py`, on the same questions.
        triplets: the average precision of a triplet network of MiniLM, by question; these and others. Its time is that of MiniLM.
    Raises: ValueError for records of different questions.
    """
    asked = (record["settings"]["dataset"], next(iter(record["metrics"].values()))["test"]["questions"])
    if asked != (backends["dataset"], backends["questions"]):
        came = f"{backends['dataset']}, {backends['questions']}"
        raise ValueError(f"expected figures of {asked}, benchmarks/backends.py has {came}")
    candidates = backends["pairs"] / backends["questions"]
    body = []
    for name, words in RANKERS.items():
        seconds = record["figures"].get(name, {}).get("seconds_a_question")
        if seconds is not None:
            body.append(_line(words, record["metrics"][name]["test"]["map"], seconds * MANY / candidates))
            if name == MINILM and triplets is not None:
                same = triplets.loc[[question for question, *_ in record["per_question"][name]]]
                body.append(_line(TRAINED, same.mean(), seconds * MANY / candidates))
    for name, words in BACKENDS.items():
        one = backends[name]
        body.append(_line(words, one["map"], MANY / one["pairs_a_second"]["median"]))
    heads = ["Ranker", "Compares", "MAP", f"Seconds for {MANY:,} candidates"]
    title = (
        f"{NAMES[asked[0]]}, {asked[1]} test questions; MAP in points. Time: {backends['threads']} CPU cores, from the mean time of a "
        "candidate. With candidates embedded beforehand a question takes milliseconds."
        + " MiniLM after triplets has the time of MiniLM, since it computes the same."
        * (triplets is not None)
    )
    return table(title, heads, body)


def _line(words: tuple[str, str], average_precision: float, seconds: float) -> str:
    name, compares = words
    time = f"{seconds:.1f}" if seconds >= 0.1 else f"{seconds:.2f}"
    return row(name, compares, *numbers(f"{100 * average_precision:.1f}", time))
