"""The committed figures of `python -m tests.trust`: the counts of each part in its last run."""

from html import escape
from pathlib import Path

import pages
import yaml
from pages import register, row

from aslab import provenance, rundir
from aslab.show.markup import Html
from asutil.io import disk

WORDS = Path(__file__).with_name("trust.yml")


@register("trust", "trust", "Not run: make trust measures it.")
def trust() -> str:
    files = sorted((rundir.root() / "results" / "trust").glob("*.json"))
    return table([disk.read_json(path) for path in files]) if files else ""


def table(records: list[dict]) -> str:
    words = yaml.safe_load(WORDS.read_text("utf-8"))
    sources = provenance.sources_sha256()
    body = []
    for record in records:
        counted = ";<br>".join(map(escape, figures(record["figures"], words[record["part"]])))
        body.append(row(record["part"], Html(counted), measured(record, sources)))
    return pages.table("What the last full run of each part counted.", ["Part", "Counted", "Measured"], body)


def measured(record: dict, sources: str) -> str:
    """How a part was measured, at which commit, and whether the packages have other sources now."""
    commit, _, changes = record["commit"].partition("+")
    text = f"{record['size']} size, seed {record['seed']}, {record['hardware']['cpu_cores']} cores, {record['created'][:10]}"
    text += f", at commit {commit[:7]}{' with uncommitted changes' if changes else ''}"
    return text if record["sources_sha256"] == sources else f"{text}, before later changes of asutil and aslab"


def figures(counts: dict, words: dict[str, str]) -> list[str]:
    """Each figure in its words; of a part that broke off, why."""
    if "broken" in counts:
        return [f"broken: {counts['broken']}"]
    text = lambda value: f"{value:,}" if isinstance(value, int) else str(value)
    return [sentence.format(text(counts[name])) for name, sentence in words.items() if name in counts]
