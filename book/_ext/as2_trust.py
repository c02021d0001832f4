"""The directive that shows the committed figures of `python -m trust`."""

from html import escape

from as2_pages import ROOT, SOURCES, Shown, boxed, note

from asutil import disk

SOURCES["trust"] = lambda _: sorted((ROOT / "results" / "trust").glob("*.json"))


class Trust(Shown):
    """What each part counted; a table a record."""

    kind = "trust"
    required_arguments = 0

    def show(self):
        made = [disk.read_json(path) for path in SOURCES["trust"]("")]
        return "".join(map(table, made)) or note("Not run: make trust measures it.")


def table(record: dict) -> str:
    rows = [(part, figures(found)) for part, found in record["parts"].items()]
    cores, day = record["hardware"]["cpu_cores"], record["created"][:10]
    rows.append(("measured", f"{record['size']} size, seed {record['seed']}, {cores} cores, {day}"))
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    return boxed(f'<table class="as2-table"><thead><tr><th>Part</th><th>Counted</th></tr></thead><tbody>{body}</tbody></table>')


def figures(found: dict) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.items() if not isinstance(value, dict | list))


DIRECTIVES = {"trust": Trust}
