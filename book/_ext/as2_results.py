"""What was run, and on which data: the finished runs of this machine, and the data sets, from the front matter of their cards."""

from html import escape

import yaml
from as2_pages import card_files
from pages import numbers, register, row, table

from aslab import papers, records, runs
from aslab.show import markup
from aslab.show.markup import NAMES, Html
from asutil.data import answers


@register("datasets", "cards")
def datasets() -> str:
    """One line a data set and protocol."""
    body = []
    for path in card_files():
        card = yaml.safe_load(path.read_text("utf-8").split("---")[1])
        protocols = card.get("counts") or {"–": {}}
        name = Html(f'<a href="data_cards/{path.stem}.html">{escape(card["name"])}</a>')
        head = [markup.cell(name, "th", scope="row", rowspan=str(len(protocols)))]
        licence = [markup.cell(card["licence"], rowspan=str(len(protocols)))]
        for protocol, splits in protocols.items():
            sizes = [splits.get(split) for split in answers.SPLITS]
            counts = [f"{size['questions']:,} / {size['candidates']:,}" if size else "–" for size in sizes]
            body.append(markup.line([*head, protocol, *numbers(*counts), *licence]))
            head, licence = [], []
    heads = ("Name", "Protocol", "Train", "Dev", "Test", "Licence")
    return table("Questions / candidates of each split. A corpus for pre-training has none.", heads, body)


NO_RUNS = (
    "This machine has no finished run. The command make demo makes the first ones, and any command on the page Notebooks makes one of "
    "your own."
)


@register("runs", "runs", NO_RUNS, on_page=True)
def finished(page) -> str:
    """The finished runs of this machine, with links to their pages."""
    body, links = [], page.links
    for run in runs.read_all().query("finished").itertuples():
        name = f"<code>{escape(run.name)}</code>"
        link = f'<a href="{escape(links[run.name])}">{name}</a>' if run.name in links else name
        split = records.reported(run)
        measured = run.record["metrics"].get(split, {})
        figures = ", ".join(f"{NAMES[key]} {100 * measured[key]:.1f}" for key in papers.METRICS if key in measured)
        body.append(row(Html(link), str(run.budget), str(run.seed), split if figures else "–", figures or "–"))
    return table("", ("Run", "Budget", "Seed", "Split", "Metrics, points"), body) if body else ""
