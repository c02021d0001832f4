"""Directives that draw: training curves, intervals, ranks that moved, and questions as two models rank them."""

import io
import re
from html import escape

import matplotlib
from as2_pages import Shown, boxed, note
from pages import comparisons, examples, report

from aslab import plan
from aslab.show import plots

NOTHING = "Where ranks moved: not run, there is no data set on which both rows have results."


def inline_svg(figure, salt: str) -> str:
    """A figure as SVG in the page's own text colour; the same figure gives the same bytes."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(
        r' id="(?!(?:C\w+_|\w)?[0-9a-f]{10}")[^"]*"', "", text
    )  # two figures on a page must not share the names of their parts
    for colour, page in (
        ("#000000", "currentColor"),
        ("#333333", "currentColor"),
        ("#ffffff", "var(--pst-color-background)"),
    ):
        text = text.replace(colour, page)  # seaborn's legends are #333333
    return text


def drawn(figure, caption: str) -> str:
    """A figure with its words below it, which say in text what it shows."""
    said = escape(caption)
    return f'<figure class="as2-figure" role="group" aria-label="{said}">{inline_svg(figure, caption)}<figcaption>{said}</figcaption></figure>'  # noqa: E501


class Curves(Shown):
    """Losses and validation metrics of this machine's runs of the laptop budget: of the rows named, in one figure a stage."""

    optional_arguments = 99

    def show(self, paper, *rows):
        data, found = comparisons.given(paper, None, None)
        found = found[
            (found.budget == "laptop") & (found.dataset != plan.TRANSFER) & found.row.isin(rows or data["rows"])
        ]
        ranked = found.dataset != report.PRETRAINING
        html = ""
        for title, lines in (("Pre-training", found[~ranked]), ("Fine-tuning", found[ranked])):
            logs = report.logs(lines, data)
            if logs:
                html += drawn(plots.training_curves(logs), f"{title}: loss and validation metric by step.")
        return html or note("No run of the laptop budget has finished on this machine; make book makes some.")


class Examples(Shown):
    """Questions of two rows, before and after: both ranked lists side by side."""

    required_arguments = 3

    def show(self, paper, before, after):
        return boxed(examples.examples_table(paper, before, after))


class RankMoves(Shown):
    """Where the first right candidate stood and stands, for two rows, a figure a data set."""

    required_arguments = 3

    def show(self, paper, before, after):
        made = examples.moves_of_rows(paper, before, after)
        return "".join(drawn(figure, said) for _, said, figure in made) or note(NOTHING)


class Gains(Shown):
    """The printed gains with their intervals over seeds, and what the test sets can show."""

    def show(self, paper):
        caption = (
            "Each printed gain in P@1 over its backbone, with its 95 % interval over seeds. "
            "A triangle marks a gain or loss that the t test calls significant. "
            "The dashed line is the smallest gain that a paired bootstrap over this many questions can see."
        )
        figure = comparisons.gains_plot(paper)
        return drawn(figure, caption) if figure else note("No row of this paper names a baseline.")


class OwnGains(Shown):
    """Our differences with both intervals, claim by claim."""

    def show(self, paper):
        figure = comparisons.own_plot(paper)
        caption = "Our differences between the two rows of each claim, with the 95 % interval over seeds and the one over questions."
        return (
            drawn(figure, caption)
            if figure
            else note("Both intervals: not run, no claim has results of both its rows.")
        )


DIRECTIVES = {
    "curves": Curves,
    "examples": Examples,
    "gains": Gains,
    "own-gains": OwnGains,
    "rank-moves": RankMoves,
}
