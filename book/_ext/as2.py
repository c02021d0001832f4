"""The book's own Sphinx extension: notebooks and runs in, pages out, no request to another host.

It copies notebooks, finished runs and data cards to where Sphinx finds them, turns math into MathML at build time,
removes scripts of other hosts, adds descriptions for search engines and previews, and registers
`as2-show NAME`, which shows what a function of the other modules returns.
"""

import hashlib
import json
import os
import re
from html import escape
from importlib import import_module
from pathlib import Path

from as2_api import Api, Name, Source, visit_source
from as2_bootstrap import Bootstrap
from as2_built import File
from as2_code import Excerpt
from as2_deviations import Accepted, Severity
from as2_executed import DECIDE_TEXTS, LESSONS, REPORTS, end, reports, with_outputs
from as2_gallery import gallery_page, run_page
from as2_light import lighten, rank_prose_first
from as2_pages import BOOK, ROOT, Figure, Show, card_files, files, forget, outdated, rewritten, run_files
from as2_papers import write_figures
from as2_reorder import Reorder
from as2_texts import begin, with_texts
from docutils import nodes
from latex2mathml.converter import convert

from aslab.gallery import cleaned, executed, without_paths
from aslab.rundir import read_record

# Modules that register what pages show.
for name in "backbone benchmarks contexts costs evidence figures joint results trust vectors".split():
    import_module(f"as2_{name}")
for path in sorted((Path(__file__).parent / "pages").glob("[!_]*.py")):
    import_module(f"pages.{path.stem}")

DIRECTIVES = {"show": Show, "api": Api, "excerpt": Excerpt, "reorder": Reorder, "bootstrap": Bootstrap}
ROLES = {"name": Name(), "src": File(), "figure": Figure(), "severity": Severity(), "accepted": Accepted()}

# ------------------------------------------------------------------ copies


def of_run(path: Path) -> dict:
    """The executed notebook of a run, on a site without text of its data: it may be a user's own."""
    plan = path.with_name("run.json")
    given = json.loads(plan.read_text("utf-8"))["given"] if plan.is_file() else {}
    notebook = without_paths(json.loads(path.read_text("utf-8")), given)
    return cleaned(notebook) if os.environ.get("AS2_SITE") else notebook


def sync() -> None:
    """Bring copies of notebooks, runs, executed notebooks and data cards up to date; unchanged files keep their time."""
    notebooks = {path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("*.ipynb")}
    lessons = {path.name: path.read_bytes() for path in (ROOT / LESSONS).glob("*.ipynb")}
    notebook_of = {path.parent.name: path.with_name("notebook.ipynb") for path in run_files("")}
    pages = {name: path for name, path in notebook_of.items() if path.is_file() and finished(path)}
    runs = {f"{run}.ipynb": encoded(run_page(of_run(path), run)) for run, path in pages.items()}
    gallery = {one.path.name: encoded(gallery_page(one)) for one in executed()}
    cards = {path.name: path.read_bytes() for path in card_files("")}
    copies = {"notebooks": notebooks, LESSONS: lessons, "runs": runs, "gallery": gallery, "data_cards": cards}
    copies[REPORTS] = reports()
    for folder, wanted in copies.items():
        target = BOOK / folder
        target.mkdir(exist_ok=True)
        for path in target.iterdir():
            if path.is_file() and path.name not in wanted:
                path.unlink()
        for name, content in wanted.items():
            if not (target / name).is_file() or (target / name).read_bytes() != content:
                (target / name).write_bytes(content)


def encoded(notebook: dict) -> bytes:
    return json.dumps(notebook, indent=1).encode()


def finished(notebook: Path) -> bool:
    """Whether a run has a record that can be read; a table that needs a damaged one names it."""
    try:
        return bool(read_record(notebook.parent))
    except ValueError:
        return False


# ------------------------------------------------------------------ math and offline pages


def visit_math(self, node):
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displaymath(self, node):
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight", tabindex="0"))
    self.body.append(f"{number}{convert(node.astext(), display='block')}</div>")
    raise nodes.SkipNode


def drop_thebe(app, config):
    """jupyter-book always loads sphinx-thebe, which puts a script of another host on every page."""
    of_thebe = lambda listener: getattr(listener.handler, "__module__", "").startswith("sphinx_thebe")
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [listener for listener in listeners if not of_thebe(listener)]
    app.registry.css_files = [entry for entry in app.registry.css_files if entry[0] != "sphinx-thebe.css"]


# ------------------------------------------------------------------ found and shared

PDF = "`make pdf` prints the whole book as one PDF, `book/_build/html/as2.pdf`."


def published_at(app, config):
    """Canonical addresses and pictures for previews where AS2_SITE names the site, as `https://example.org/book/`."""
    config.html_baseurl = config.ogp_site_url = os.environ.get("AS2_SITE", "")
    config.ogp_social_cards = {"enable": bool(config.html_baseurl)}


def with_site(app, page, source):
    """The address of a known site in the entry of this book, and a link to its PDF, `as2.pdf`, on the first page."""
    if site := os.environ.get("AS2_SITE"):
        source[0] = re.sub(
            r"(?s)(@software\{.*?)^\}", rf"\1  url = {{{site}}},\n}}", source[0], count=1, flags=re.MULTILINE
        )
        source[0] = source[0].replace(PDF, 'The whole book is also <a href="as2.pdf">one PDF</a>.')


def sitemap(app, exception):
    """`sitemap.xml` with the address of every page, where the site is known."""
    site = app.config.html_baseurl
    if site and exception is None and app.builder.format == "html":
        pages = sorted(app.builder.get_target_uri(name) for name in app.env.found_docs)
        urls = "".join(f"<url><loc>{escape(site.rstrip('/'))}/{escape(page)}</loc></url>\n" for page in pages)
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        (Path(app.outdir) / "sitemap.xml").write_text(f"{head}{urls}</urlset>\n", encoding="utf-8")


COLAB = "https://colab.research.google.com"
TOUR = "notebooks/tour"


def open_in_colab(app, pagename, templatename, context, doctree):
    """A link on the page of the tour or a lesson that opens it in Colab, where AS2_REPOSITORY names a repository of github.com."""
    server, _, repository = os.environ.get("AS2_REPOSITORY", "").rstrip("/").partition("github.com/")
    opens = pagename == TOUR or pagename.startswith(LESSONS)
    if opens and server == "https://" and repository:
        url = f"{COLAB}/github/{repository.removesuffix('.git')}/blob/main/{pagename}.ipynb"
        link = {"type": "link", "url": url, "text": "Open in Colab", "tooltip": "Run this notebook in Colab"}
        context["header_buttons"].append(link)


def sources_version() -> int:
    """A number that follows from sources, and from what decides which texts are shown: where one changes, all pages are built again."""
    paths = sorted(path for path in Path(__file__).parent.rglob("*") if path.suffix in (".py", ".html", ".js"))
    paths += files("aslab/**/*.py", "aslab/*.yml", "asutil/**/*.py", "data_cards/*.md")
    texts = [os.environ.get(name, "").encode() for name in (*DECIDE_TEXTS, "AS2_EXECUTE")]
    return int(hashlib.sha256(b"".join([*texts, *(path.read_bytes() for path in paths)])).hexdigest()[:12], 16)


def setup(app):
    sync()
    app.setup_extension("sphinxext.opengraph")
    app.connect("config-inited", published_at)
    app.connect("source-read", with_site)
    app.connect("source-read", with_outputs)
    app.connect("source-read", with_texts)
    app.connect("config-inited", rank_prose_first)
    app.connect("config-inited", drop_thebe, priority=900)
    app.connect("html-page-context", open_in_colab, priority=502)  # after the theme's own buttons
    app.connect("env-get-outdated", outdated)
    app.connect("env-purge-doc", forget)
    app.connect("env-before-read-docs", begin)
    app.connect("env-updated", rewritten)
    app.connect("build-finished", end)
    app.connect("build-finished", sitemap)
    app.connect("build-finished", lighten, priority=900)  # after the theme has written its own files
    app.connect("build-finished", write_figures)
    app.add_node(Source, html=(visit_source, None))
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    for name, directive in DIRECTIVES.items():
        app.add_directive(f"as2-{name}", directive)
    for name, role in ROLES.items():
        app.add_role(f"as2-{name}", role)
    return {"version": "1", "env_version": sources_version(), "parallel_read_safe": False, "parallel_write_safe": True}
