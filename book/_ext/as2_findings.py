"""Directives and a role for what was found: claims in sentences, claims as intervals, figures in the text of a page."""

from html import escape

import pandas as pd
from as2_benchmarks import committed
from as2_figures import drawn
from as2_pages import SOURCES, Shown, boxed, note
from docutils import nodes
from pages import (
    believed,
    blind,
    choices,
    figure_claims,
    findings,
    in_corpus,
    intervals,
    leaderboard,
    mined,
    quotes,
    repeats,
)
from sphinx.util.docutils import SphinxRole

from aslab import measured, rankers, records, rundir

SOURCES |= {name: lambda _, name=name: measured.files(name) for name in ("blind", "calibration", "mined")}
SOURCES["rankers"] = lambda _: [
    rundir.root() / "experiments" / "rankers.yml",
    *sorted((rundir.root() / "results" / "rankers").glob("*.json")),
]
SOURCES["repeats"] = lambda paper: [
    *SOURCES["results" if paper else "all results"](paper),
    *sorted((rundir.root() / "results" / "repeats" / paper).rglob("*.json")),
]
SOURCES["overlap"] = lambda paper: [*SOURCES["results"](paper), *measured.files("overlap")]
SOURCES["choices"] = lambda _: [*SOURCES["rankers"](_), *SOURCES["benchmarks"](_)]


CAPTION = (
    "The difference of each claim that our runs test, as printed and by our runs, with 95 % intervals: over seeds as printed (none where "
    "no deviation is printed), over questions and seeds for ours. A triangle: the whole interval is on one side of zero."
)


class Findings(Shown):
    """Each claim of a paper in one sentence, from committed records."""

    def show(self, paper):
        return findings.findings_html(paper) or note("No claim of this paper has been tested yet.")


class Headline(Shown):
    """All five papers: the claims of abstracts and conclusions, the printed difference, ours, and the verdict."""

    required_arguments = 0

    def show(self):
        return boxed(findings.headline_table())


class Scorecard(Shown):
    """All five papers: how many headline claims have which verdict."""

    required_arguments = 0

    def show(self):
        return boxed(findings.scorecard())


class Answer(Shown):
    """How many claims have which verdict, in words."""

    required_arguments = 0

    def show(self):
        told = findings.answer()
        return f'<p class="as2-answer">{escape(told)}</p>' if told else note("No claim has been tested yet.")


class Overview(Shown):
    """The headline claims of all papers as differences with intervals: printed and ours."""

    required_arguments = 0

    def show(self):
        figure = intervals.overview_plot()
        return drawn(figure, CAPTION) if figure else note("Differences of claims: not run.")


class ClaimsPlot(Shown):
    """The claims of a paper as differences with intervals: printed and ours."""

    def show(self, paper):
        figure = intervals.claims_plot(paper)
        return drawn(figure, CAPTION) if figure else note("Differences of this paper's claims: not run.")


class FigureClaims(Shown):
    """The claims of a paper on figures without values of questions, and on more than two rows."""

    def show(self, paper):
        return boxed(figure_claims.figure_claims_table(paper))


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


class Choices(Shown):
    """Which ranker for how many candidates."""

    kind = "choices"
    required_arguments = 0

    def show(self):
        record, backends = rankers.committed("results").get("wikiqa"), committed("backends").get("backends")
        if not record or not backends:
            return note(
                "Accuracy and time side by side: not run. snakemake rankers_small and benchmarks/backends.py measure them."
            )
        runs = records.records("asbert")
        trained = runs[(runs.row == "triplet_bert") & (runs.dataset == "wikiqa") & (runs.budget == "small")]
        each = [records.per_question(line)["average_precision"] for line in trained.itertuples()]
        triplets = pd.concat(each, axis=1).mean(axis=1) if each else None
        return boxed(choices.choices_table(record, backends, triplets))


class Measured(Shown):
    """The table of a record that `aslab.measured` reads, or what measures it."""

    required_arguments = 0

    def show(self, *arguments):
        html = self.table(*arguments)
        return boxed(html) if html else note(f"{self.title}: not run. python -m aslab.{self.kind} measures it.")


class Blind(Measured):
    """Which rankers read the question: all that were tested, or those under one protocol."""

    optional_arguments = 1
    kind = "blind"
    title = "Rankers without the question"
    table = staticmethod(blind.blind_table)


class Believed(Measured):
    """How far scores can be believed."""

    kind = "calibration"
    title = "Calibration"
    table = staticmethod(believed.calibration_table)


class Mined(Measured):
    """What mined negatives change."""

    kind = "mined"
    title = "Mined negatives"
    table = staticmethod(mined.mined_table)


class Repeats(Shown):
    """Runs that were made twice with equal settings: those of a paper, or of all with how often tests tell them apart."""

    kind = "repeats"
    required_arguments = 0
    optional_arguments = 1

    def show(self, paper=""):
        table = repeats.repeats_table(paper)
        return boxed(table) if table else note("No run was made twice with equal settings.")


class InCorpus(Shown):
    """A paper's claimed gains with and without the questions about articles that pre-training has read."""

    kind = "overlap"

    def show(self, paper):
        table = in_corpus.in_corpus_table(paper)
        return (
            boxed(table)
            if table
            else note("Questions about articles of the corpus: python -m aslab.analysis.overlap finds them.")
        )


class Figure(SphinxRole):
    """A figure of our records in the text of a page, or words on a difference; the build fails where the records say something else."""

    def run(self):
        folder, _, paper = self.env.docname.partition("/")
        paper = paper.partition("/")[0] if folder == "papers" else ""
        try:
            quote = quotes.quoted(self.text, paper)
        except ValueError as error:
            raise ValueError(f"{self.env.docname}, line {self.lineno}: {error}") from error
        told = f'class="as2-quoted" title="{escape(quote.files)}" data-as2-figure="{escape(quote.expression)}"'
        return [nodes.raw("", f"<span {told}>{escape(quote.shown)}</span>", format="html")], []


DIRECTIVES = {
    "answer": Answer,
    "blind": Blind,
    "calibration": Believed,
    "findings": Findings,
    "headline": Headline,
    "choices": Choices,
    "claims-plot": ClaimsPlot,
    "figure-claims": FigureClaims,
    "in-corpus": InCorpus,
    "leaderboard": Leaderboard,
    "mined": Mined,
    "overview": Overview,
    "rankers": Rankers,
    "repeats": Repeats,
    "scorecard": Scorecard,
}
ROLES = {"figure": Figure()}
