"""The table of a paper's claims on figures without values of questions, and on more than two rows."""

from html import escape

from aslab import papers
from aslab.analysis import figure_claims
from aslab.show import markup
from aslab.show.markup import NAMES, Html
from pages import numbers, register, table

CAPTION = (
    "Claims on figures that have no values of questions, or on more than two rows: differences in points, printed and ours, with 95 % "
    "intervals by Student's t over training seeds alone, and the verdict after Holm's adjustment over this table."
)


@register("figure-claims", empty="No such claim.", of_paper=True)
def figure_claims_table(data: dict, runs) -> str:
    """A line a claim and metric; "" for a paper without such claims."""
    every = figure_claims.figure_claims(data, runs)
    body = [markup.line(_cells(data, one)) for one in every]
    return table(CAPTION, ["Claim", "Compared", "Printed", "Ours", "Verdict"], body) if body else ""


def _cells(data: dict, one: figure_claims.FigureClaim) -> list:
    claim = one.claim
    metrics = [other["metric"] for other in papers.claims(data, "figure_claims") if other["id"] == claim["id"]]
    words = Html(f"{escape(claim['claim'])} <small>{escape(claim['where'])}</small>")
    head = [markup.cell(words, rowspan=str(len(metrics)))] if claim["metric"] == metrics[0] else []
    plus, minus = (" and ".join(data["rows"][row]["name"] for row in claim[side]) for side in ("plus", "minus"))
    minus = f"({minus})" if len(claim["minus"]) > 1 else minus
    compared = f"{plus} − {minus}, {NAMES.get(claim['dataset'], claim['dataset'])}, {NAMES[claim['metric']]}"
    printed = "–" if one.printed is None else f"{100 * one.printed:+.1f}"
    ours = "–"
    if one.ours is not None:
        gain = f"{100 * one.ours.difference:+z.1f}"
        interval = markup.points(one.ours).removeprefix(f"{gain} ") if one.is_tested else ""
        origin = f"{one.seeds} seed{'s' * (one.seeds > 1)}, {one.budget}"
        ours = Html(f"{gain}<small>{escape(' '.join(filter(None, [interval, origin])))}</small>")
    claimed = Html(f"{printed}<small>claimed {claim['sign']}</small>")
    return [*head, compared, *numbers(claimed, ours), markup.said(one.word, one.reason)]
