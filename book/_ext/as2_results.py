"""Directives that show results and data: records and cards in, HTML out. The tables themselves come from `asutil.report`."""

import io
import re
from html import escape

import matplotlib
import pandas as pd
import yaml
from as2_pages import Shown, boxed, card_files, note
from docutils import nodes

from asutil import experiments, hub, metrics, questions, report, runs


class Verdicts(Shown):
    """All five papers: how many lines have which verdict."""

    required_arguments = 0

    def show(self):
        return boxed(report.verdict_table())


class Results(Shown):
    """One table of a paper beside ours."""

    required_arguments = 2

    def show(self, paper, table):
        return boxed(report.results_table(paper, table, links=self.links))


class Laptop(Shown):
    def show(self, paper):
        return boxed(report.laptop_table(paper, links=self.links))


class Claims(Shown):
    def show(self, paper):
        return boxed(report.claims_table(paper)) if experiments.read(paper).get("claims") else []


class Curves(Shown):
    """Losses and validation metrics of this machine's runs of the laptop rung."""

    def show(self, paper):
        found = experiments.records(paper)
        found, html = found[found.rung == "laptop"], ""
        for title, lines in (
            ("Pre-training", found[found.dataset == "pretraining"]),
            ("Fine-tuning", found[found.dataset != "pretraining"]),
        ):
            logs = report.logs(lines)
            if logs:
                drawing = inline_svg(report.training_curves(logs), f"{paper} {title}")
                html += (
                    f'<figure class="as2-figure">{drawing}<figcaption>{title}: loss and validation metric by step.</figcaption></figure>'
                )
        return html or note("No run of the laptop rung has finished on this machine; make book makes some.")


def inline_svg(figure, salt: str) -> str:
    """A figure as SVG in the page's own text colour; the same figure gives the same bytes."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' id="(?!\w?[0-9a-f]{10}")[^"]*"', "", text)  # two figures on a page must not share the names of their parts
    return text.replace("#000000", "currentColor").replace("#ffffff", "var(--pst-color-background)")


class Example(Shown):
    """One test question as models of two rows rank it, from this machine's laptop runs; else the first one of a committed result."""

    def show(self, paper):
        found = experiments.records(paper)
        found = found[found.dataset != "pretraining"]
        local = found[found.folder.notna() & (found.rung == "laptop") & (found.dataset == "pydocs")]
        if len(local):
            return boxed(example_of_runs(local[local.seed == local.seed.min()], experiments.read(paper)["rows"]))
        chosen = [line for line in found.itertuples() if line.record.get("chosen")]
        return boxed(example_of_record(chosen[0])) if chosen else note("No run has finished on this machine; make book makes some.")


def example_of_runs(lines, rows: dict) -> str:
    """A question that the last row's model answers and the first row's does not, as in the papers; else the first of handy size.

    A question that this machine's data hold in another form than the runs (other versions of packages) is passed over.
    """
    ends = lines.iloc[0], lines.iloc[-1]
    first, last = (pd.read_parquet(line.folder / "scores.parquet") for line in ends)
    tables = {rows[line.row]["name"]: table for line, table in zip(ends, (first, last))}
    known = {question.id: question for question in questions.load("pydocs")["test"]}
    before, after = (metrics.of(table, empty="skip").per_question.set_index("question_id").p_at_1 for table in (first, last))
    for name in (*after.index[after > before.reindex(after.index)], *after.index):
        candidates = known[name].candidates if name in known else ()
        ids = [candidate.id for candidate in candidates]
        if 4 <= len(ids) <= 12 and set(ids) == set(first.candidate_id[first.question_id == name]):
            scores = {model: table.set_index("candidate_id").score.reindex(ids).tolist() for model, table in tables.items()}
            return report.compare_rankings(known[name].text, [c.text for c in candidates], [c.label for c in candidates], scores)
    return "<p>No question of these runs has the same candidates in this machine's data.</p>"


def example_of_record(line) -> str:
    """The best candidates of a committed result's first chosen question: with their text where the data set is at hand, else their ids."""
    chosen, texts = line.record["chosen"][0], {}
    if line.dataset in questions.HUB and hub.mirror(questions.HUB[line.dataset][0]):
        asked = [q for q in questions.load(line.dataset)["test"] if q.id == chosen["question_id"]]
        texts = {thing.id: thing.text for question in asked for thing in (question, *question.candidates)}
    candidates = sorted(chosen["candidates"], key=lambda entry: entry[3])
    shown, labels, scores = zip(*[(texts.get(name, name), label, score) for name, label, score, _ in candidates])
    title = f"{line.dataset}, ranked by {line.row}: {texts.get(chosen['question_id'], chosen['question_id'])}"
    return report.ranked_example(title, shown, scores, labels)


class Datasets(Shown):
    """One line a data set and protocol, from the front matter of the cards."""

    kind = "cards"
    required_arguments = 0

    def show(self):
        body = []
        for path in card_files(""):
            card = yaml.safe_load(path.read_text("utf-8").split("---")[1])
            protocols = card.get("counts") or {"–": {}}
            name = f'<th scope="row" rowspan="{len(protocols)}"><a href="data_cards/{path.stem}.html">{escape(card["name"])}</a></th>'
            for number, (protocol, splits) in enumerate(protocols.items()):
                sizes = [splits.get(side) for side in questions.SIDES]
                shown = [f"{size['questions']:,} / {size['candidates']:,}" if size else "–" for size in sizes]
                numbers = "".join(f'<td class="as2-number">{text}</td>' for text in shown)
                licence = f'<td rowspan="{len(protocols)}">{escape(card["licence"])}</td>' if not number else ""
                body.append(f"<tr class='as2-card'>{'' if number else name}<td>{escape(protocol)}</td>{numbers}{licence}</tr>")
        heads = "".join(f"<th>{text}</th>" for text in ("Name", "Protocol", "Train", "Dev", "Test", "Licence"))
        caption = "<caption>Questions / candidates of each split. A corpus for pre-training has none.</caption>"
        return boxed(f'<table class="as2-table">{caption}<thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>')


class Commands(Shown):
    """What to type for each row of the laptop rung, with seed 0."""

    def show(self, paper):
        lines = [f"# all rows and seeds, on two cores\nsnakemake -s experiments/Snakefile -c2 {paper}_laptop"]
        data = experiments.read(paper)
        for row in data["rungs"]["laptop"]["rows"]:
            commands = [job.command for job in experiments.jobs(paper, "laptop", rows=[row], seeds=[0])]
            lines.append("\n".join([f"# {data['rows'][row]['name']}", *commands]))
        text = "\n\n".join(lines)
        return [nodes.literal_block(text, text, language="bash")]


class Runs(Shown):
    """The finished runs of this machine, with links to their pages."""

    kind = "runs"
    required_arguments = 0

    def show(self):
        rows = []
        for run in runs.read_all().query("finished").itertuples():
            name = f"<code>{escape(run.name)}</code>"
            link = f'<a href="{self.links[run.name]}">{name}</a>' if run.name in self.links else name
            values = next(iter(run.record["metrics"].values()), {})
            shown = ", ".join(f"{escape(key)} {value:.3f}" for key, value in values.items() if isinstance(value, float))
            rows.append(f"<tr><th>{link}</th><td>{escape(str(run.rung))}</td><td>{run.seed}</td><td>{shown}</td></tr>")
        head = "<thead><tr><th>Run</th><th>Budget</th><th>Seed</th><th>Metrics</th></tr></thead>"
        return boxed(f'<table class="as2-table">{head}<tbody>{"".join(rows)}</tbody></table>') if rows else note("No run has finished yet.")


DIRECTIVES = {
    "claims": Claims,
    "commands": Commands,
    "curves": Curves,
    "datasets": Datasets,
    "example": Example,
    "laptop": Laptop,
    "results": Results,
    "runs": Runs,
    "verdicts": Verdicts,
}
