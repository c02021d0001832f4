"""Directives that show results and data: records and cards in, HTML out. The tables themselves come from `pages`."""

from html import escape

import yaml
from as2_pages import Shown, boxed, card_files, note
from pages import differences, miniature, verdicts

from aslab import papers, records, runs
from aslab.show.markup import NAMES
from asutil.data import answers


class Verdicts(Shown):
    """All five papers: how many rows have which verdict."""

    required_arguments = 0

    def show(self):
        return boxed(verdicts.verdict_table())


class Results(Shown):
    """One table of a paper beside ours: a tab a data set, and with `laptop` one of our own questions."""

    required_arguments = 2
    optional_arguments = 1

    def show(self, paper, table, laptop=""):
        if laptop not in ("", "laptop"):
            raise ValueError(f"after a table the word laptop is expected, or nothing: got {laptop!r}")
        return boxed(miniature.results_tabs(paper, table, bool(laptop), links=self.links))


class Demo(Shown):
    """What `make demo` made on this machine."""

    required_arguments = 0

    def show(self):
        table = miniature.demo_table()
        return (
            boxed(table)
            if table
            else note("Nothing has run on this machine yet: the command make demo fills this table.")
        )


class Claims(Shown):
    """The paper's claims, as printed and by our runs: on its own data sets, and on our own questions."""

    def show(self, paper):
        return boxed(miniature.claims_tabs(paper))


class TTests(Shown):
    """The papers' gains over their backbones, tested again from what is printed."""

    def show(self, paper):
        return boxed(differences.printed_table(paper))


class Limits(Shown):
    """What each test set can show at all."""

    def show(self, paper):
        return boxed(differences.limits_table(paper))


class TwoTests(Shown):
    """Our runs: a test over seeds beside one over questions, claim by claim."""

    def show(self, paper):
        return boxed(differences.two_tests_table(paper))


class Datasets(Shown):
    """One line a data set and protocol, from the front matter of the cards."""

    kind = "cards"
    required_arguments = 0

    def show(self):
        body = []
        for path in card_files(""):
            card = yaml.safe_load(path.read_text("utf-8").split("---")[1])
            protocols = card.get("counts") or {"–": {}}
            rows = f'rowspan="{len(protocols)}"'
            name = f'<th scope="row" {rows}><a href="data_cards/{path.stem}.html">{escape(card["name"])}</a></th>'
            licence = f"<td {rows}>{escape(card['licence'])}</td>"
            for protocol, splits in protocols.items():
                sizes = [splits.get(split) for split in answers.SPLITS]
                shown = [f"{size['questions']:,} / {size['candidates']:,}" if size else "–" for size in sizes]
                numbers = "".join(f'<td class="as2-number">{text}</td>' for text in shown)
                body.append(f"<tr class='as2-card'>{name}<td>{escape(protocol)}</td>{numbers}{licence}</tr>")
                name = licence = ""
        heads = "".join(f"<th>{text}</th>" for text in ("Name", "Protocol", "Train", "Dev", "Test", "Licence"))
        caption = "<caption>Questions / candidates of each split. A corpus for pre-training has none.</caption>"
        return boxed(
            f'<table class="as2-table">{caption}<thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>'
        )


class Runs(Shown):
    """The finished runs of this machine, with links to their pages."""

    kind = "runs"
    required_arguments = 0

    def show(self):
        rows = []
        for run in runs.read_all().query("finished").itertuples():
            name = f"<code>{escape(run.name)}</code>"
            link = f'<a href="{escape(self.links[run.name])}">{name}</a>' if run.name in self.links else name
            split = records.reported(run)
            measured = run.record["metrics"].get(split, {})
            figures = ", ".join(f"{NAMES[key]} {100 * measured[key]:.1f}" for key in papers.METRICS if key in measured)
            shown = (str(run.budget), str(run.seed), split if figures else "–", figures or "–")
            rows.append(f"<tr><th>{link}</th>{''.join(f'<td>{escape(text)}</td>' for text in shown)}</tr>")
        if not rows:
            return note(
                "This machine has no finished run. The command make demo makes the first ones, and any command on the page "
                "Notebooks makes one of your own."
            )
        heads = "".join(f"<th>{text}</th>" for text in ("Run", "Budget", "Seed", "Split", "Metrics, points"))
        return boxed(f'<table class="as2-table"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>')


DIRECTIVES = {
    "claims": Claims,
    "datasets": Datasets,
    "demo": Demo,
    "limits": Limits,
    "results": Results,
    "runs": Runs,
    "t-tests": TTests,
    "two-tests": TwoTests,
    "verdicts": Verdicts,
}
