"""The directive that shows the committed figures of `python -m tests.trust`."""

from html import escape

from as2_pages import ROOT, SOURCES, Shown, boxed, note

from asutil.io import disk

SOURCES["trust"] = lambda _: sorted((ROOT / "results" / "trust").glob("*.json"))


class Trust(Shown):
    """What each part counted when it was run last."""

    kind = "trust"
    required_arguments = 0

    def show(self):
        made = [disk.read_json(path) for path in SOURCES["trust"]("")]
        return table(made) if made else note("Not run: make trust measures it.")


def table(records: list[dict]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Part", "Counted", "Measured"))
    body = "".join(
        f'<tr><th scope="row">{escape(one["part"])}</th><td>{escape(figures(one["figures"]))}</td><td>{escape(measured(one))}</td></tr>'
        for one in records
    )
    return boxed(f'<table class="as2-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def measured(record: dict) -> str:
    return f"{record['size']} size, seed {record['seed']}, {record['hardware']['cpu_cores']} cores, {record['created'][:10]}"


def figures(found: dict) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in found.items() if not isinstance(value, dict | list)
    )


DIRECTIVES = {"trust": Trust}
