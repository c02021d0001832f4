"""How far scores can be believed: calibration error before and after a fit on dev, from the record of `asutil calibration`."""

from aslab import measured
from aslab.show import markup
from aslab.show.markup import NAMES
from pages import numbers, register, row, table

COLUMNS = {
    "error_before": "Error",
    "error": "Error, fitted",
    "answer_rate": "Answered",
    "precision": "Of these rightly",
}


@register("calibration", "calibration", "Calibration: not run. asutil calibration measures it.")
def calibration_table() -> str:
    """Figures on test of each kind of run, mean and std over seeds; "" without a record."""
    record = measured.read("calibration")
    if record is None:
        return ""
    groups = {}
    for run in record["runs"]:
        model = run["model"].rsplit("/", 1)[-1]
        kind = f"{run['architecture']} {run['head'] or ''}".strip() + measured.words_of(run)
        groups.setdefault((NAMES.get(run["dataset"], run["dataset"]), run["protocol"], kind, model), []).append(run)
    body = []
    for (dataset, protocol, kind, model), seeds in groups.items():
        fitted = [run["test"] for run in seeds if run["fitted"]]
        cells = [markup.spread([figures[name] for figures in fitted if figures[name] is not None]) for name in COLUMNS]
        body.append(row(f"{dataset}, {protocol}: {kind}, {model}", *numbers(str(len(fitted))), *cells))
    heads = ["Data and model", "Seeds", *COLUMNS.values()]
    title = "Test questions, points, mean ± std over seeds. Error: expected calibration error, before and after the fit on dev."
    return table(title, heads, body)
