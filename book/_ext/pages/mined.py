"""What mined negatives change, from the record of `asutil mined`."""

import numpy as np

from aslab import measured
from aslab.show import markup
from asutil.metrics import significance
from pages import numbers, register, row, table

NAMES = {"bm25": "the best by BM25", "random": "random ones"}
PRECISION = 1  # the place of average precision in a row of per_question


@register("mined", "mined", "Mined negatives: not run. asutil mined measures it.")
def mined_table() -> str:
    """MAP of each data set, and its difference to no negatives and to random ones; "" without a record."""
    record = measured.read("mined")
    if record is None:
        return ""
    sets = record["sets"]
    values = [np.array([line[PRECISION] for line in one["per_question"]]) for one in sets]
    random = next((own for one, own in zip(sets, values) if one.get("model", {}).get("readout") == "random"), None)
    body = []
    for one, own in zip(sets, values):
        name = one["model"]["name"] if "model" in one else ""
        added = f"{one['counts']['negatives']:,}" if name else "–"
        title = NAMES.get(name, f"the best by {name.rsplit('/', 1)[-1]}") if name else "none"
        others = [None if other is own else other for other in (values[0], random)]
        tests = [None if other is None else significance.paired_bootstrap(own, other) for other in others]
        maps = markup.spread([run["map"] for run in one["runs"]])
        body.append(row(title, *numbers(added, str(len(one["runs"]))), maps, *numbers(*map(markup.points, tests))))
    heads = ["Negatives", "Added", "Seeds", "MAP", "Against none [95 %]", "Against random [95 %]"]
    settings = sets[0]["runs"][0]
    title = f"{settings['dataset']}, {len(values[0])} test questions; points, mean ± std over seeds, intervals over questions."
    return table(title, heads, body)
