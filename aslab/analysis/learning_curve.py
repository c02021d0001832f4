"""MAP by the number of training questions, beside rankers that need none."""

import pandas as pd
import seaborn

from asutil.data.data_sets import ANSWERS
from asutil.metrics import significance

from .. import papers, records
from ..records import COMMITTED
from ..show.markup import NAMES
from ..show.picture import Picture
from .comparisons import rows_and_runs

WITHOUT = ("document_order", "zero_shot", "bm25")
LINES = ("--", "-.", ":")
ASIDE = 1.08  # times the place of the curve before, so that intervals stand beside each other


def points(paper: str, dataset: str, budget: str, rows: tuple[str, ...]) -> tuple[pd.DataFrame, dict[str, float]]:
    """The MAP of rows that differ in their training questions, and of rankers without training on the same test questions, in points.

    Returns: one line a row with committed records, by `objective` of its pre-training (empty without one) and `questions`: map, its 95 %
        interval over questions as low and high, and how many seeds; and {ranker: MAP}.
    """
    data, runs = rows_and_runs(paper)
    papers.all_of(rows, data["rows"], paper, "row")
    lines = runs[(runs.source == COMMITTED) & (runs.dataset == dataset) & (runs.budget == budget) & runs.row.isin(rows)]
    measured, baselines = [], {}
    for row, own in lines.groupby("row", sort=False):
        record = own.record.iloc[0]
        settings, baselines = record["settings"], record["baselines"]
        objective = next((stage["objective"] for stage in data["rows"][row]["stages"] if "objective" in stage), "")
        questions = settings.get("train_limit") or ANSWERS[dataset].counts[settings["protocol"]]["train"][0]
        values = pd.concat([records.per_question(line)["average_precision"] for line in own.itertuples()])
        mean = values.groupby(level=0, sort=False).mean()
        low, high = significance.mean_interval(mean)
        measured.append((objective, questions, 100 * mean.mean(), 100 * low, 100 * high, len(own)))
    table = pd.DataFrame(measured, columns=["objective", "questions", "map", "low", "high", "seeds"])
    without = {name: 100 * baselines[name]["map"] for name in WITHOUT if name in baselines}
    return table.sort_values(["objective", "questions"]), without


def learning_curve(paper: str, dataset: str, budget: str, *rows: str):
    """`points` as a matplotlib Figure; None with fewer than two numbers of training questions."""
    table, without = points(paper, dataset, budget, rows)
    plain = table[table.objective == ""]
    if len(plain) < 2:
        return None
    behind = plain.questions[plain.low <= max(without.values())].max()  # NaN where no interval reaches down to them
    ahead = plain.questions[~(plain.questions <= behind)]
    message = ""
    if len(ahead):
        message = f"From {ahead.iloc[0]:,} training questions on, fine-tuning is above every ranker without training"
    seeds = " to ".join(map(str, sorted({table.seeds.min(), table.seeds.max()})))
    words = (
        f"MAP on the test questions of {NAMES[dataset]} by the number of training questions: the mean over seeds, "
        f"{seeds} a point, with its 95 % interval over test questions, and rankers without training."
    )
    figure = Picture(words, figsize=(8, 3.8))
    axis = figure.subplots()
    for number, (objective, curve) in enumerate(table.groupby("objective")):
        looks, places = {"color": seaborn.color_palette("colorblind")[number]}, curve.questions * ASIDE**number
        axis.vlines(places, curve.low, curve.high, **looks)
        label = f"pre-trained with {objective.upper()}, then fine-tuned" if objective else "fine-tuned"
        axis.plot(places, curve["map"], marker="os^D"[number % 4], label=label, **looks)
    for (name, value), dashes in zip(without.items(), LINES):
        ends = plain.questions.iloc[[0, -1]]
        axis.plot(ends, [value, value], color="black", linestyle=dashes, linewidth=1, label=NAMES[name])
    axis.set_xscale("log")
    axis.minorticks_off()
    axis.set(xlabel="training questions", ylabel="MAP, points", xticks=plain.questions, title=message)
    axis.grid(alpha=0.3)
    axis.xaxis.set_major_formatter("{x:,.10g}")
    figure.legend(loc="outside lower center", ncols=4, fontsize="small", frameon=False)
    return figure
