"""The directive that shows the committed figures of `python -m tests.trust`."""

from html import escape

from as2_pages import ROOT, SOURCES, Shown, boxed, note

from asutil.io import disk

SOURCES["trust"] = lambda _: sorted((ROOT / "results" / "trust").glob("*.json"))


class Trust(Shown):
    """The counts of each part in its last run."""

    kind = "trust"
    required_arguments = 0

    def show(self):
        records = [disk.read_json(path) for path in SOURCES["trust"]("")]
        return table(records) if records else note("Not run: make trust measures it.")


def table(records: list[dict]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Part", "Counted", "Measured"))
    body = ""
    for record in records:
        cells = "".join(f"<td>{escape(text)}</td>" for text in (figures(record["figures"]), measured(record)))
        body += f'<tr><th scope="row">{escape(record["part"])}</th>{cells}</tr>'
    return boxed(f'<table class="as2-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def measured(record: dict) -> str:
    return f"{record['size']} size, seed {record['seed']}, {record['hardware']['cpu_cores']} cores, {record['created'][:10]}"


def figures(counts: dict) -> str:
    single = {name: value for name, value in counts.items() if not isinstance(value, dict | list)}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in single.items())


DIRECTIVES = {"trust": Trust}
