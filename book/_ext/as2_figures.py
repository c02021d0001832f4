"""Figures of matplotlib in a page: its own colours and few bytes; training curves, intervals, ranks that moved."""

import functools

import as2_svg
import pages
from pages import register, report

from aslab import gallery, papers, plan
from aslab.analysis import difference_plots, examples, learning_curve
from aslab.show import picture, plots
from aslab.show.markup import Html


def drawn(figure, caption: str) -> Html:
    """A matplotlib Figure in the page's own text colour, with a caption that tells in words what it shows."""
    return pages.figure(as2_svg.in_page_colours(picture.svg(figure, caption, transparent=True)), caption)


def of_notebook(paper: str, up: str) -> str:
    """The training curves of a committed notebook of a paper, with a link to its page; "" without one.

    Args:
        up: the way from the page to the top of the book, as `../`.
    """
    for one in gallery.executed():
        for svg, words in one.pictures if one.data["slug"] == paper else ():
            if "training loss" in words:
                caption = "Training loss and validation metric by step, from an executed notebook: this machine has no such run."
                link = f'<a href="{up}gallery/{one.path.stem}.html">Read that notebook.</a>'
                return pages.figure(as2_svg.in_page_colours(svg), caption) + f"<p>{link}</p>"
    return ""


@register("curves", empty="No run of this paper has finished on this machine.", on_page=True, of_paper=True)
def curves(data: dict, runs, *rows: str, page) -> str:
    """Losses and validation metrics of this machine's laptop runs, of all rows or those named: one figure a stage."""
    papers.all_of(rows, data["rows"], data["slug"], "row")
    laptop = runs[(runs.budget == "laptop") & (runs.dataset != plan.TRANSFER)]
    lines = laptop[laptop.row.isin(rows or data["rows"])]
    ranked = lines.dataset != report.PRETRAINING
    html = ""
    for title, of_stage in (("Pre-training", lines[~ranked]), ("Fine-tuning", lines[ranked])):
        if logs := report.logs(of_stage, data):
            html += drawn(plots.training_curves(logs), f"{title}: loss and validation metric by step.")
    return html or of_notebook(data["slug"], page.up)


NO_MOVES = "Where ranks moved: not run, there is no data set on which both rows have results."


@register("rank-moves", empty=NO_MOVES, of_paper=True)
def rank_moves(data: dict, runs, before: str, after: str) -> str:
    """The rank of the first right candidate by two rows, a figure a data set."""
    return "".join(drawn(figure, words) for _, words, figure in examples.moves_of_rows(data, runs, before, after))


def interval_figure(name: str, plot, empty: str, of_paper: bool = False) -> None:
    """Registers a plot with intervals, whose words are its caption."""

    @register(name, empty=empty, of_paper=of_paper)
    @functools.wraps(plot)
    def show(*arguments) -> str:
        figure = plot(*arguments)
        return drawn(figure, figure.words) if figure else ""


interval_figure("overview", difference_plots.overview_plot, "Differences of claims: not run.")
interval_figure("claims-plot", difference_plots.claims_plot, "Differences of this paper's claims: not run.")
interval_figure("gains", difference_plots.gains_plot, "No row of this paper names a baseline.")
NOT_TESTED = "Both intervals: not run, no claim has results of both its rows."
interval_figure("own-gains", difference_plots.own_plot, NOT_TESTED, of_paper=True)
interval_figure("learning-curve", learning_curve.learning_curve, "Learning curve: not run.")
