"""The directive that shows the committed figures of `python -m tests.trust`."""

from html import escape
from pathlib import Path

import yaml
from as2_pages import ROOT, SOURCES, Shown, boxed, note

from aslab.show import markup
from aslab.show.markup import Html
from asutil.io import disk

WORDS = Path(__file__).with_name("trust.yml")
SOURCES["trust"] = lambda _: [WORDS, *sorted((ROOT / "results" / "trust").glob("*.json"))]


class Trust(Shown):
    """The counts of each part in its last run."""

    kind = "trust"
    required_arguments = 0

    def show(self):
        records = [disk.read_json(path) for path in SOURCES["trust"]("") if path != WORDS]
        return table(records) if records else note("Not run: make trust measures it.")


def table(records: list[dict]) -> str:
    words = yaml.safe_load(WORDS.read_text("utf-8"))
    body = []
    for record in records:
        head = markup.cell(record["part"], "th", scope="row")
        counted = "<br>".join(map(escape, figures(record["figures"], words[record["part"]])))
        body.append(markup.line([head, Html(counted), measured(record)]))
    return boxed(markup.table("What the last full run of each part counted.", ["Part", "Counted", "Measured"], body))


def measured(record: dict) -> str:
    return f"{record['size']} size, seed {record['seed']}, {record['hardware']['cpu_cores']} cores, {record['created'][:10]}"


def figures(counts: dict, words: dict[str, str]) -> list[str]:
    """Each figure in its words."""
    text = lambda value: f"{value:,}" if isinstance(value, int) else str(value)
    return [said.format(text(counts[name])) for name, said in words.items() if name in counts]


DIRECTIVES = {"trust": Trust}
