"""Directives that draw from results: training curves, intervals, ranks that moved, and questions as two models rank
them.
"""

import as2_svg
from as2_pages import Shown, boxed, note
from pages import examples, intervals, report

from aslab import gallery, plan
from aslab.analysis import comparisons
from aslab.show import picture, plots

PAGE_COLOURS = {  # matplotlib's -> the page's; seaborn's legends are #333333
    "#000000": "currentColor",
    "#333333": "currentColor",
    "#ffffff": "var(--pst-color-background)",
}


def in_page_colours(svg: str) -> str:
    """A figure's SVG in the page's own colours of text and background, and in fewer bytes."""
    for colour, of_page in PAGE_COLOURS.items():
        svg = svg.replace(colour, of_page)
    return as2_svg.compact(svg)


def inline_svg(figure, salt: str) -> str:
    """A figure as SVG in the page's own text colour; the same figure gives the same bytes."""
    return in_page_colours(picture.svg(figure, salt, transparent=True))


def drawn(figure, caption: str) -> str:
    """A matplotlib Figure with a caption that tells in words what it shows; a narrow one stays narrow, for phones."""
    svg = inline_svg(figure, caption)
    if figure.get_figwidth() <= intervals.NARROW:
        svg = svg.replace("<svg ", '<svg class="as2-narrow" ', 1)
    return as2_svg.figure(svg, caption)


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
                return as2_svg.figure(in_page_colours(svg), caption) + f"<p>{link}</p>"
    return ""


class Curves(Shown):
    """Losses and validation metrics of this machine's laptop runs, of all rows or of those named: one figure a
    stage.
    """

    optional_arguments = 99

    def show(self, paper, *rows):
        data, runs = comparisons.rows_and_runs(paper)
        laptop = runs[(runs.budget == "laptop") & (runs.dataset != plan.TRANSFER)]
        lines = laptop[laptop.row.isin(rows or data["rows"])]
        ranked = lines.dataset != report.PRETRAINING
        html = ""
        for title, of_stage in (("Pre-training", lines[~ranked]), ("Fine-tuning", lines[ranked])):
            if logs := report.logs(of_stage, data):
                html += drawn(plots.training_curves(logs), f"{title}: loss and validation metric by step.")
        up = "../" * self.env.docname.count("/")
        return html or of_notebook(paper, up) or note("No run of this paper has finished on this machine.")


class Examples(Shown):
    """Questions of two rows, before and after, both ranked lists side by side; of one data set a rescued and a lost one."""

    required_arguments = 3
    optional_arguments = 1

    def show(self, paper, before, after, dataset=None):
        return boxed(examples.examples_table(paper, before, after, limit=1 if dataset else 2, dataset=dataset))


class RankMoves(Shown):
    """The rank of the first right candidate by two rows, before and after, a figure a data set."""

    required_arguments = 3

    def show(self, paper, before, after):
        moves = examples.moves_of_rows(paper, before, after)
        return "".join(drawn(figure, words) for _, words, figure in moves) or note(
            "Where ranks moved: not run, there is no data set on which both rows have results."
        )


class Gains(Shown):
    """The printed gains with their intervals over seeds, and what the test sets can show."""

    def show(self, paper):
        caption = (
            "Each printed gain in P@1 over its backbone, with its 95 % interval over seeds. "
            "A triangle marks a gain or loss that the t test calls significant. "
            "The dashed line is the smallest gain that a paired bootstrap over this many questions can see."
        )
        figure = intervals.gains_plot(paper)
        return drawn(figure, caption) if figure else note("No row of this paper names a baseline.")


class OwnGains(Shown):
    """Our differences with both intervals, claim by claim."""

    def show(self, paper):
        figure = intervals.own_plot(paper)
        if figure is None:
            return note("Both intervals: not run, no claim has results of both its rows.")
        caption = "Our differences between the two rows of each claim, with the 95 % interval over seeds and the one over questions."
        return drawn(figure, caption)


DIRECTIVES = {
    "curves": Curves,
    "examples": Examples,
    "gains": Gains,
    "own-gains": OwnGains,
    "rank-moves": RankMoves,
}
