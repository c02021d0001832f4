"""What plots of measured points must draw, counted again as in `traced`: of each panel its words, and the name and place of each point.

A plot's points are compared in the order of the record.
"""

from pathlib import Path

from .plots import Drawn
from .traced import Paper, bootstrap, by_question
from .traced_benchmarks import benchmark, cosines, slotted

WAYS = {"pair": "pair model", "joint": "joint model", "pair_padded": "pair model, padded", "joint_padded": "joint model, padded"}
FORMULA = {"attention": "formula, attention: (k + 1)² / 4k", "linear": "formula, linear: (k + 1) / 2k"}
SETTINGS = {"together": "all questions in batches", "alone": "one question at a time"}
RATE = ("tokens_a_second", "training, tokens a second")
WITHOUT = {"document_order": "document order", "zero_shot": "zero-shot cosine", "bm25": "BM25"}
TRAINING_QUESTIONS = {"nq_sentences": 5_668}
GROWING = {
    "corpus": ("megabytes", "corpus, MB of text", "build_seconds", "seconds to build the index"),
    "candidates": ("candidates", "candidates of a question", "milliseconds_a_question", "milliseconds a question"),
    "lengths": ("length", "tokens of an input", *RATE),
    "vectors": ("millions", "vectors on disk, millions", "search_seconds", "seconds to search for 64 questions"),
}


def components(root: Path, name: str, row: str, dataset: str) -> Drawn:
    """Each text of the drawn questions in two dimensions, named by its role and its question's type; a line to each right candidate."""
    for record in Paper(root, name).drawable(row, dataset):
        shown = record["pca"]
        names = [", ".join(sorted(words)) for words in zip(*(shown[what] for what in ("roles", "kinds") if what in shown))]
        panels = {panel: shown[panel] for panel in ("before", "after") if panel in shown}
        for when, panel in panels.items():
            shares = [f"component {n} ({100 * share:.0f} % of the variance)" for n, share in enumerate(panel["explained"], 1)]
            near, far = (panel["distance"][role] for role in ("positive", "negative"))
            title = f"{when} training" if len(panels) > 1 else "untrained"
            places = list(zip(panel["x"], panel["y"]))
            # Letters mark the first two questions, which a reader can follow.
            asked = {number: place for number, role, place in zip(shown["questions"], shown["roles"], places) if role == "question"}
            right = zip(shown["questions"], shown["roles"], places)
            drawn = [("line", (asked[number], place)) for number, role, place in right if role == "positive"]
            yield (
                [*shares, *"AB"[: len(asked)], title, f"mean distance: positive {near:.2f}, negative {far:.2f}"],
                [*drawn, *zip(names, places)],
            )


def curves_of(root: Path, name: str, dataset: str, budget: str, *rows: str) -> tuple[dict[str, dict], dict[str, float]]:
    """Pre-training -> training questions -> the seeds, and the mean MAP and its interval over test questions; rankers without training."""
    paper, measured, without = Paper(root, name), {}, {}
    for row in rows:
        if records := paper.of(row, dataset, (budget,)):
            first = paper.rows[row]["stages"][0]
            questions = records[0]["settings"].get("train_limit") or TRAINING_QUESTIONS[dataset]
            mean, low, high, _ = bootstrap(tuple(by_question(records, "map").values()))
            curve = measured.setdefault(first["objective"] if first["notebook"] == "pretrain" else "", {})
            curve[questions] = len(records), 100 * mean, 100 * low, 100 * high
            without = {word: 100 * records[0]["baselines"][key]["map"] for key, word in WITHOUT.items() if key in records[0]["baselines"]}
    return {before: dict(sorted(curve.items())) for before, curve in sorted(measured.items())}, without


def learning_curve(root: Path, name: str, dataset: str, budget: str, *rows: str) -> Drawn:
    """An interval for each number of training questions, the line through their means, and a line for each ranker without training."""
    curves, without = curves_of(root, name, dataset, budget, *rows)
    if len(plain := curves.get("", {})) > 1:
        drawn = []
        for number, (before, curve) in enumerate(curves.items()):
            word = f"pre-trained with {before.upper()}, then fine-tuned" if before else "fine-tuned"
            at = {questions * 1.08**number: values for questions, values in curve.items()}  # one curve beside the other
            drawn += [(word, [(place, low), (place, high)]) for place, (_, _, low, high) in at.items()]
            drawn += [(word, [(place, mean) for place, (_, mean, _, _) in at.items()])]
        drawn += [(word, [(end, value) for end in (min(plain), max(plain))]) for word, value in without.items()]
        behind = [questions for questions, (_, _, low, _) in plain.items() if low <= max(without.values())]
        first = next((questions for questions in plain if questions > max(behind, default=0)), None)
        title = [f"From {first:,} training questions on, fine-tuning is above every ranker without training"] if first else []
        yield ["training questions", "MAP, points", *title], drawn


def latency(root: Path) -> Drawn:
    """Milliseconds a question by k, a line a way; what the formula gives from the time of padded pairs."""
    for one in filter(None, (benchmark(root, name) for name in ("latency", "latency-gpu"))):
        for setting, title in SETTINGS.items():
            by_k = {int(k): at for k, at in one["by_k"].items()}
            took = {way: [(k, at["milliseconds_a_question"][way][setting]["median"]) for k, at in by_k.items()] for way in WAYS}
            drawn = [(WAYS[way], points) for way, points in took.items()]
            for part, word in FORMULA.items():
                drawn.append((word, [(k, time * by_k[k]["formula"][part]) for k, time in took["pair_padded"]]))
            yield ["candidates, k", "milliseconds a question", title], drawn


def slot_cosines(root: Path) -> Drawn:
    """Cosine by layer, a line a model; a panel for each way to read a slot."""
    for one in filter(None, [cosines(root)]):
        for pooling, title in (("first", "first token of each slot"), ("mean", "mean of each slot's tokens")):
            drawn = [(slotted(model), list(enumerate(model[pooling]))) for model in one["models"]]
            yield ["layer", "mean cosine between slots", title], drawn


def growth(root: Path) -> Drawn:
    """Time by size, a panel each, and what growth in proportion from the first time on would be."""
    for one in filter(None, (benchmark(root, name) for name in ("growth", "growth-gpu"))):
        for name, (size, label, figure, title) in GROWING.items():
            points = [(at[size], at[figure]) for at in one.get(name, ()) if at[figure] is not None]
            if points:
                (first, begun), *_ = points
                straight = [("", [(at, begun * at / first) for at, _ in points])] if figure != RATE[0] else []
                yield [label, title], [("", points), *straight]
