"""What a notebook shows as tables: metrics in points, the log of a training, the shapes of its input."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from asutil.metrics import registry

from .markup import NAMES

LINES = 20  # of a log, besides those with an evaluation
COUNTS = ("questions", "claims", "examples")
METRIC_NAMES = registry.titles()


def in_points(rows: dict[str, dict], split: str, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Metrics from 0 to 1 as points (times 100) with one digit, as the pages of the papers have them.

    Counts of questions, claims or examples stay as they are; they are left out where a row has none.

    Args:
        rows: name of a ranker or model -> its metrics by the names that records use.
        split: the split that the metrics are about.
        metrics: these only; by default all that some row has.
    Example:
        >>> in_points({"bm25": {"p@1": 0.5, "map": 0.6}, "this run": {"p@1": 1.0}}, "test")
        test, points    P@1   MAP
        BM25           50.0  60.0
        this run      100.0     –
    """
    measured = dict.fromkeys(metrics or (name for row in rows.values() for name in row))
    columns = {name: METRIC_NAMES[name] for name in measured if name in METRIC_NAMES}
    columns |= {name: name for name in COUNTS if name in measured and all(name in row for row in rows.values())}
    shown = {}
    for name, row in rows.items():
        forms = {key: ("{:,.0f}", 1) if key in COUNTS else ("{:.1f}", 100) for key in columns}
        shown[NAMES.get(name, name)] = {columns[key]: _or_dash(row.get(key), *form) for key, form in forms.items()}
    return pd.DataFrame(shown).T.rename_axis(columns=f"{split}, points")


def counted(splits: dict) -> pd.DataFrame:
    """What was read, kept and left out of each split: one row a split."""
    rows = {}
    for name, split in splits.items():
        report = split.report
        row = {f"{what}, {state}": f"{n:,}" for state in ("read", "kept") for what, n in report[state].items()}
        for reason, counts in report["dropped"].items():
            row[f"left out: {reason}"] = ", ".join(f"{n:,} {what}" for what, n in counts.items())
        rows[name] = row | ({"note": report["note"]} if report.get("note") else {})
    return pd.DataFrame(rows).T.fillna("–").rename_axis(columns="split")


def training_log(rows: Sequence[dict]) -> pd.DataFrame | None:
    """The log of a training in about 20 lines, and one for each evaluation on dev.

    Args:
        rows: `log` of what `training.train` returns.
    Returns: a line a step: share of all steps, losses (means since the line above), learning rate, tokens a second,
        minutes, and the metrics of dev in points. None where nothing was trained.
    """
    if not rows:
        return None
    log = pd.DataFrame(rows).groupby("step").first()  # an evaluation is a row of its own
    log["steps"] = log.index.to_series().where(log["loss"].notna()).diff().fillna(log.index[0])
    logged = [f"eval_{measure.key}" for measure in registry.measures() if measure.log]
    evaluated = [name for name in logged if name in log]
    ends = log.index[-1] * np.arange(1, LINES + 1) / LINES
    last_of_part = log.index[np.minimum(log.index.searchsorted(ends), len(log) - 1)]
    shown = last_of_part.union(log.index[log[evaluated].notna().any(axis=1)]).unique()
    losses = [name for name in log if name == "loss" or (name.endswith("_loss") and log[name].any())]
    losses = losses if len(losses) > 2 else losses[:1]  # one part is the loss itself
    line = shown.searchsorted(log.index)  # of each row, the line that it is part of
    weighted = log[losses].mul(log["steps"], axis=0).groupby(line).sum(min_count=1)
    means = weighted.div(log["steps"].where(log["loss"].notna()).groupby(line).sum(), axis=0)
    at = log.ffill().loc[shown]
    speed = at["tokens"].diff().fillna(at["tokens"]) / at["seconds"].diff().fillna(at["seconds"])
    table = pd.DataFrame(index=pd.Index([f"{step:,}" for step in shown], name="step"))
    table["done"] = [f"{100 * step / shown[-1]:.0f} %" for step in shown]
    for name in losses:
        title = name if name == "loss" else name.replace("_", " ")
        table[title] = [_or_dash(value, "{:.3f}") for value in means[name]]
    for name in evaluated:
        title = f"dev {METRIC_NAMES[name.removeprefix('eval_')]}, points"
        table[title] = [_or_dash(value, "{:.1f}", 100) for value in log.loc[shown, name]]
    table["learning rate"] = [f"{rate:.1e}" for rate in at["learning_rate"]]
    table["tokens/s"] = [_or_dash(value, "{:,.0f}") for value in speed.replace(np.inf, np.nan)]
    table["min:s"] = [f"{int(seconds) // 60}:{int(seconds) % 60:02}" for seconds in at["seconds"]]
    return table


def _or_dash(value: float | None, form: str, times: int = 1) -> str:
    return "–" if pd.isna(value) else form.format(times * value)


def shapes(batch: dict) -> str:
    """The shapes of the tensors of an optimiser batch's first micro-batch, in words.

    Example:
        >>> shapes({"micro": [{"input_ids": np.zeros((2, 8)), "labels": np.zeros(2)}] * 3})
        'one of 3 micro-batches: input_ids (2, 8), labels (2,)'
    """
    first = batch["micro"][0]
    of = f"one of {len(batch['micro'])} micro-batches" if len(batch["micro"]) > 1 else "a batch"
    return f"{of}: " + ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in first.items())
