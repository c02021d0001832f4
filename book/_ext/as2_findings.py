"""Directives and a role for what was found: claims in sentences, claims as intervals, figures in the text of a page."""

from html import escape

from as2_figures import drawn
from as2_pages import SOURCES, Shown, boxed, note
from docutils import nodes
from pages import believed, blind, findings, intervals, leaderboard, mined
from sphinx.util.docutils import SphinxRole

from asutil.io import rundir

SOURCES["blind"] = lambda _: [blind.place()] if blind.place().is_file() else []
SOURCES["calibration"] = lambda _: [believed.place()] if believed.place().is_file() else []
SOURCES["mined"] = lambda _: [mined.place()] if mined.place().is_file() else []
SOURCES["rankers"] = lambda _: [
    rundir.root() / "experiments" / "rankers.yml",
    *sorted((rundir.root() / "results" / "rankers").glob("*.json")),
]


class Findings(Shown):
    """Each claim of a paper in one sentence, from committed records."""

    def show(self, paper):
        return findings.findings_html(paper) or note("No claim of this paper has been tested yet.")


class Scorecard(Shown):
    """All five papers: how many claims came out how."""

    required_arguments = 0

    def show(self):
        return boxed(findings.scorecard())


class ClaimsPlot(Shown):
    """The claims of a paper as differences with intervals: printed and ours."""

    def show(self, paper):
        figure = intervals.claims_plot(paper)
        if figure is None:
            return note("Differences of this paper's claims: not run.")
        caption = (
            "The difference of each claim that our runs test, as printed and by our runs, with 95 % intervals: over seeds as "
            "printed (none where no deviation is printed), over questions for ours. A triangle: the whole interval is on one side of zero."
        )
        return drawn(figure, caption)


class Leaderboard(Shown):
    """Everything that was run on a data set, the best first."""

    kind = "all results"

    def show(self, dataset):
        return boxed(leaderboard.leaderboard(dataset))


class Rankers(Shown):
    """Rankers of others on a data set, none of them trained here."""

    kind = "rankers"

    def show(self, dataset):
        table = leaderboard.of_rankers(dataset)
        return (
            boxed(table)
            if table
            else note(f"Rankers of others on {dataset}: not run. snakemake rankers_small ranks them.")
        )


class Blind(Shown):
    """Which rankers read the question."""

    kind = "blind"
    required_arguments = 0

    def show(self):
        table = blind.blind_table()
        return (
            boxed(table)
            if table
            else note("Rankers without the question: not run. python -m aslab.blind measures them.")
        )


class Believed(Shown):
    """How far scores can be believed."""

    kind = "calibration"
    required_arguments = 0

    def show(self):
        table = believed.calibration_table()
        return boxed(table) if table else note("Calibration: not run. python -m aslab.calibration measures it.")


class Mined(Shown):
    """What mined negatives change."""

    kind = "mined"
    required_arguments = 0

    def show(self):
        table = mined.mined_table()
        return (
            boxed(table)
            if table
            else note("Mined negatives: not run. python -m aslab.mined compares runs with and without.")
        )


class Figure(SphinxRole):
    """A figure of our records in the text of a page, or words on a difference; the build fails where the records say something else."""

    def run(self):
        paper = self.env.docname.rpartition("papers/")[2] if "papers/" in self.env.docname else ""
        try:
            quote = findings.quoted(self.text, paper)
        except ValueError as error:
            raise ValueError(f"{self.env.docname}, line {self.lineno}: {error}") from error
        told = f'class="as2-quoted" title="{escape(quote.files)}" data-as2-figure="{escape(quote.expression)}"'
        return [nodes.raw("", f"<span {told}>{escape(quote.shown)}</span>", format="html")], []


DIRECTIVES = {
    "blind": Blind,
    "calibration": Believed,
    "findings": Findings,
    "claims-plot": ClaimsPlot,
    "leaderboard": Leaderboard,
    "mined": Mined,
    "rankers": Rankers,
    "scorecard": Scorecard,
}
ROLES = {"figure": Figure()}
