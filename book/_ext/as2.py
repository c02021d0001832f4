"""The book's own Sphinx extension: notebooks and runs in, pages out, nothing asked of another host.

It copies notebooks, finished runs and data cards to where Sphinx finds them, turns math into MathML at build time, takes out what
would load scripts from elsewhere, and gives the pages their directives (`as2_backbone`, `as2_code`, `as2_results`, `as2_figures`,
`as2_contexts`, `as2_joint`, `as2_vectors`, `as2_evidence`, `as2_benchmarks`, `as2_costs`, `as2_trust`).
"""

import json
import sys
from pathlib import Path

import as2_backbone
import as2_benchmarks
import as2_code
import as2_contexts
import as2_costs
import as2_evidence
import as2_figures
import as2_joint
import as2_results
import as2_trust
import as2_vectors
from as2_pages import BOOK, ROOT, card_files, forget, outdated, rewritten, run_files
from docutils import nodes
from latex2mathml.converter import convert

from asutil.io.rundir import read_record

# ------------------------------------------------------------------ copies


def sync() -> None:
    """Bring `book/notebooks`, `book/runs` and `book/data_cards` up to date; unchanged files keep their time."""
    notebooks = {path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
    notebook_of = {path.parent.name: path.with_name("notebook.ipynb") for path in run_files("")}
    runs = {f"{name}.ipynb": run_page(path) for name, path in notebook_of.items() if path.is_file() and finished(path)}
    cards = {path.name: path.read_bytes() for path in card_files("")}
    for folder, wanted in {"notebooks": notebooks, "runs": runs, "data_cards": cards}.items():
        target = BOOK / folder
        target.mkdir(exist_ok=True)
        for path in target.iterdir():
            if path.is_file() and path.name not in wanted:
                path.unlink()
        for name, content in wanted.items():
            if not (target / name).is_file() or (target / name).read_bytes() != content:
                (target / name).write_bytes(content)


def finished(notebook: Path) -> bool:
    """Whether a run has a record that can be read; what reads a damaged one for a table names it."""
    try:
        return bool(read_record(notebook.parent))
    except ValueError:
        return False


def run_page(path: Path) -> bytes:
    """An executed notebook whose title is its run's name, without any path of the machine it ran on."""
    notebook = json.loads(path.read_text("utf-8"))
    notebook["metadata"].pop("papermill", None)
    notebook["cells"] = [
        cell for cell in notebook["cells"] if "injected-parameters" not in cell["metadata"].get("tags", [])
    ]
    for cell in notebook["cells"]:
        cell["metadata"].pop("papermill", None)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            title, *rest = "".join(cell["source"]).split("\n")
            cell["source"] = "\n".join([f"# {path.parent.name}", "", title.lstrip("# "), *rest])
            break
    text = json.dumps(notebook, indent=1)
    for place, name in ((sys.prefix, "<environment>"), (str(ROOT), "<project>"), (str(Path.home()), "~")):
        text = text.replace(json.dumps(place)[1:-1], name)
    return text.encode()


# ------------------------------------------------------------------ math and offline pages


def visit_math(self, node):
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displaymath(self, node):
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    self.body.append(f"{number}{convert(node.astext(), display='block')}</div>")
    raise nodes.SkipNode


def drop_thebe(app, config):
    """jupyter-book always loads sphinx-thebe, which names a script on another host on every page."""
    for event, listeners in app.events.listeners.items():
        kept = [
            listener
            for listener in listeners
            if not getattr(listener.handler, "__module__", "").startswith("sphinx_thebe")
        ]
        app.events.listeners[event] = kept
    app.registry.css_files = [entry for entry in app.registry.css_files if entry[0] != "sphinx-thebe.css"]


def setup(app):
    sync()
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    app.connect("config-inited", drop_thebe, priority=900)
    app.connect("env-get-outdated", outdated)
    app.connect("env-purge-doc", forget)
    app.connect("env-updated", rewritten)
    pages = (
        as2_backbone,
        as2_code,
        as2_results,
        as2_figures,
        as2_contexts,
        as2_joint,
        as2_vectors,
        as2_evidence,
        as2_benchmarks,
    )
    for module in (*pages, as2_costs, as2_trust):
        for name, directive in module.DIRECTIVES.items():
            app.add_directive(f"as2-{name}", directive)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
