"""The directive that shows committed figures of `benchmarks/`: ratio, goal, spread, machine, and all else that was measured."""

import json
from html import escape

from as2_pages import ROOT, SOURCES, Shown, boxed

FOLDER = ROOT / "results" / "benchmarks"
SOURCES["benchmarks"] = lambda _: sorted(FOLDER.glob("*.json"))
OVERVIEW = ("name", "ratio", "goal", "spread", "machine", "commit", "created")


class Benchmarks(Shown):
    """A table of the named benchmarks, and below it the figures of each; `not run` where none are committed."""

    kind = "benchmarks"
    final_argument_whitespace = False
    optional_arguments = 99

    def show(self, *names):
        found = {path.stem: json.loads(path.read_text("utf-8")) for path in SOURCES["benchmarks"]("")}
        return overview(names, found) + "".join(details(found[name]) for name in names if name in found)


def overview(names, found: dict[str, dict]) -> str:
    heads = "".join(f"<th>{text}</th>" for text in ("Benchmark", "Times the peer", "Least to most", "Goal", "", "Measured on"))
    body = "".join(line(name, found.get(name)) for name in names)
    caption = "<caption>The median over the rounds of one run. Where a script compares several things, the lowest.</caption>"
    return boxed(f'<table class="as2-table">{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>')


def line(name: str, result: dict | None) -> str:
    head = f'<th scope="row"><code>{escape(name)}</code></th>'
    if result is None:
        return f'<tr>{head}<td></td><td></td><td></td><td class="as2-verdict as2-not-run">not run</td><td></td></tr>'
    reached = result["ratio"] >= result["goal"]
    verdict = f'<td class="as2-verdict as2-{"matches" if reached else "differs"}">{"reached" if reached else "not reached"}</td>'
    between = f"{number(result['spread']['least'])} to {number(result['spread']['most'])}"
    figures = "".join(f'<td class="as2-number">{text}</td>' for text in (number(result["ratio"]), between, number(result["goal"])))
    return f"<tr>{head}{figures}{verdict}<td>{escape(machine(result['machine']))}</td></tr>"


def machine(known: dict) -> str:
    device = known["gpu"] or f"{known['cores']} cores of {known['processor']}"
    return f"{device}, {known['system']}, Python {known['python']}"


def details(result: dict) -> str:
    """Everything that was measured, folded away."""
    measured = {name: value for name, value in result.items() if name not in OVERVIEW}
    versions = ", ".join(f"{name} {version}" for name, version in result["machine"]["versions"].items())
    rows = [
        *flat(measured),
        ("versions", versions),
        ("commit", result.get("commit", "unknown")),
        ("date", result.get("created", "unknown")),
    ]
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    table = boxed(f'<table class="as2-table"><tbody>{body}</tbody></table>')
    return f"<details><summary>All figures of <code>{escape(result['name'])}</code></summary>{table}</details>"


def flat(values: dict, before: str = ""):
    """(name, text) of every figure in nested dictionaries; a median is one figure with its least and most."""
    for name, value in values.items():
        label = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict) and {"median", "least", "most"} <= set(value):
            yield label, f"{number(value['median'])} ({number(value['least'])} to {number(value['most'])})"
            value = {key: inner for key, inner in value.items() if key not in ("median", "least", "most")}
        if isinstance(value, dict):
            yield from flat(value, f"{label}: ")
        elif value is not None:
            yield label, number(value)


def number(value) -> str:
    """Three digits that count, thousands marked; words as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


DIRECTIVES = {"benchmarks": Benchmarks}
