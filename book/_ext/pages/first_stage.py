"""What a first stage keeps of the answers, from the record of `asutil first-stage`."""

from aslab import measured
from aslab.show.markup import NAMES
from pages import numbers, register, row, table


@register("first-stage", "first_stage", "What a first stage keeps: not run. asutil first-stage measures it.")
def first_stage_table() -> str:
    """Recall of each ranker by depth with its interval, a part a data set; "" without a record."""
    record = measured.read("first_stage")
    return "".join(map(_of_dataset, record["sets"])) if record else ""


def _of_dataset(part: dict) -> str:
    body = []
    for model, recall in part["recall"].items():
        cells = (
            "{:.0f} [{:.0f}, {:.0f}]".format(*(100 * value for value in (own["recall"], *own["interval"])))
            for own in recall.values()
        )
        body.append(row(NAMES.get(model, model.rsplit("/", 1)[-1]), *numbers(*cells)))
    depths = next(iter(part["recall"].values()))
    title = (
        f"{NAMES[part['dataset']]}, {part['questions']:,} questions and {part['sentences']:,} sentences: "
        "questions with a right sentence among the best, in % with 95 % intervals."
    )
    return table(title, ["First stage", *(f"of the best {depth}" for depth in depths)], body)
