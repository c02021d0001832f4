"""The directive that shows the committed figures of `python -m tests.trust`."""

from html import escape
from pathlib import Path

import yaml
from as2_pages import ROOT, SOURCES, Shown, boxed, module_files, note

from aslab import provenance
from aslab.show import markup
from aslab.show.markup import Html
from asutil.io import disk

WORDS = Path(__file__).with_name("trust.yml")
SOURCES["trust"] = lambda _: [WORDS, *record_files(), *module_files("")]


def record_files() -> list[Path]:
    return sorted((ROOT / "results" / "trust").glob("*.json"))


class Trust(Shown):
    """The counts of each part in its last run."""

    kind = "trust"
    required_arguments = 0

    def show(self):
        records = [disk.read_json(path) for path in record_files()]
        return table(records) if records else note("Not run: make trust measures it.")


def table(records: list[dict]) -> str:
    words = yaml.safe_load(WORDS.read_text("utf-8"))
    sources = provenance.sources_sha256()
    body = []
    for record in records:
        head = markup.cell(record["part"], "th", scope="row")
        counted = ";<br>".join(map(escape, figures(record["figures"], words[record["part"]])))
        body.append(markup.line([head, Html(counted), measured(record, sources)]))
    return boxed(markup.table("What the last full run of each part counted.", ["Part", "Counted", "Measured"], body))


def measured(record: dict, sources: str) -> str:
    """How a part was measured, at which commit, and whether the packages have other sources now."""
    commit, _, changes = record["commit"].partition("+")
    text = f"{record['size']} size, seed {record['seed']}, {record['hardware']['cpu_cores']} cores, {record['created'][:10]}"
    text += f", at commit {commit[:7]}{' with uncommitted changes' if changes else ''}"
    return text if record["sources_sha256"] == sources else f"{text}, before later changes of asutil and aslab"


def figures(counts: dict, words: dict[str, str]) -> list[str]:
    """Each figure in its words."""
    text = lambda value: f"{value:,}" if isinstance(value, int) else str(value)
    return [said.format(text(counts[name])) for name, said in words.items() if name in counts]


DIRECTIVES = {"trust": Trust}
