"""The built site: pages of the theme with names and roles for screen readers, and only what they use of its files."""

import re
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset

# What the theme and Sphinx write -> what takes its place.
MENDED = {
    # The button that opens the pages below another has no name.
    r'(>([^<>]+)</a><details[^>]*><summary)(?=><span class="toctree-toggle")': r'\1 aria-label="Pages below \2"',
    # The sidebar has no role.
    r'(?<=<div id="pst-primary-sidebar" )(?=class)': 'role="navigation" aria-label="Book" ',
    # The label of the search button hides its words.
    r'(?<=<button class="btn search-button-field )([^>]*) aria-label="Search"': r"\1",
    # The label of hidden content hides its words.
    r'(?<=<summary) aria-label="Toggle hidden content"': "",
    # References have roles that their elements may not have.
    r' role="(?:list" class="citation-list|doc-biblioentry|doc-backlink)"': "",
    # A head of a column or line is empty.
    r'<th(?: class="head"| scope="col")?>(?:<p></p>)?</th>': "<td></td>",
    # A formula that is the head of a column has no name.
    r'(?<=<th class="head"><p>)<math(?! aria)(?=[^>]*>(.*?)</math></p></th>)': lambda found: (
        f'<math aria-label="{words(found[1])}"'
    ),
    # Title and contents are written once more, for printing.
    r'(?s)<div id="jb-print-docs-body".*?(?=<div id="searchbox">)': "",
    # Code in the colour of text has marks: half of a source's bytes.
    r'<span class="(?:n|nn|nx|o|p|pm|pre|w)">([^<]*)</span>': r"\1",
    # No style and no script asks whether a link stays in the book.
    r'(?<=class="reference) internal(?=")': "",
    # Nor for the classes of a line of the sidebar that has no pages below it.
    r'<li class="toctree-l2"><a(?: class="reference")?(?= href)': "<li><a",
    # A head has no words.
    r"<thead>\s*<tr[^>]*>(?:\s*<td></td>)+\s*</tr>\s*</thead>": "",
}
# Scripts and styles -> where in a page it shows that they are used; None: nowhere.
USED = {
    r"fontawesome\.js": None,
    r"(?:searchtools|language_data|searchindex)\.js": r'id="search-results"',
    r"togglebutton\.(?:js|css)": r'class="(?:[^"]* )?(?:toggle|admonition dropdown|dropdown admonition)[" ]',
    r"(?:design-tabs\.js|sphinx-design\.min\.css)": r'class="(?:[^"]* )?sd-',
    r"mystnb\.\w+\.css": r'class="(?:[^"]* )?cell[" ]',
    r"exercise\.css": r'class="(?:[^"]* )?(?:exercise|solution)[" ]',
    r"(?:clipboard\.min|copybutton)\.js": r'<div class="highlight',
}
LOADED = r'\n?[ ]*<(?:script|link)\b[^>]*(?:src|href)="[^"]*/?{}(?:\?[^"]*)?"[^>]*?(?:></script>|/?>)'
WOFF = re.compile(r'url\([^)]*\.woff2\) format\("woff2"\),')  # the fonts are left as TrueType
ICON = re.compile(r'content:\s*"\\([0-9a-f]{4})"')
NOTE = re.compile(r"(?s)/\*(?!!).*?\*/")
RULE = re.compile(r"([^{};/]+)\{([^{}]*)\}")
SELECTORS = re.compile(r",(?![^(]*\))")  # a comma inside `:is(...)` separates nothing
INSIDE = re.compile(r"\([^()]*\)")
NAMES = re.compile(r"[.#]((?:[\w-]|\\.)+)")
EMPTY = re.compile(r"@(?:media|supports)[^{}]*\{\s*\}")
STRING = re.compile(r"""\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`""")
SHOWN = ("show", "fade", "active", "disabled")  # what bootstrap adds to any of its components
STYLES = (
    "styles/pydata-sphinx-theme.css",
    "styles/sphinx-book-theme.css",
    "pygments.css",
    "sphinx-design.min.css",
    "mystnb.*.css",
)


def rank_prose_first(app, config) -> None:
    """Searches sort their results by `scorer.js`."""
    config.html_search_scorer = str(Path(__file__).with_name("scorer.js"))


def lighten(app, exception) -> None:
    """Mends and lightens all pages and what they load; theme files that nothing needs are removed."""
    if exception is not None or app.builder.format != "html":
        return
    html = Path(app.outdir)
    pages = {page: page.read_text("utf-8") for page in html.rglob("*.html")}
    for page, text in pages.items():
        if (light := mended(text)) != text:
            page.write_text(light, encoding="utf-8")
    static = html / "_static"
    known = vocabulary(pages.values(), static)
    styles = {path: path.read_text("utf-8") for name in STYLES for path in static.glob(name)}
    for path, text in styles.items():
        styles[path] = pruned(text, known)
        path.write_text(WOFF.sub("", styles[path]), encoding="utf-8")
    only_icons(static, {int(code, 16) for text in styles.values() for code in ICON.findall(text)})
    unused = ("**/*.map", "**/*.woff2", "scripts/fontawesome.js", "*webpack-macros.html")
    for path in [path for pattern in unused for path in static.glob(pattern)]:
        path.unlink()


# ------------------------------------------------------------------ pages


def mended(text: str) -> str:
    """A page with what it lacks and without what it does not use."""
    for pattern, instead in MENDED.items():
        text = re.sub(pattern, instead, text)
    for file, use in USED.items():
        if use is None or not re.search(use, text):
            text = re.sub(LOADED.format(file), "", text)
    return text


def words(markup: str) -> str:
    """What stands between tags."""
    return " ".join(re.sub("<[^>]*>", " ", markup).split())


# ------------------------------------------------------------------ styles and icons


def vocabulary(pages: Iterable[str], static: Path) -> set[str]:
    """Every word that may be a class or an id: those of the pages, and those that scripts may add."""
    known, components = set(), set(SHOWN)
    for text in pages:
        known.update(*(names.split() for names in re.findall(r'\b(?:class|id)="([^"]*)"', text)))
        components.update(re.findall(r'data-bs-toggle="([^"]+)"', text))
    for script in static.rglob("*.js"):
        found = set(re.findall(r"[\w-]+", " ".join(STRING.findall(script.read_text("utf-8")))))
        if script.name == "bootstrap.js":
            found = {word for word in found if any(component in word for component in components)}
        known |= found
    return known


def pruned(css: str, known: set[str]) -> str:
    """A style sheet without the rules that apply to nothing; notes on licences stay."""

    def used(rule: re.Match) -> str:
        selectors = [one for one in SELECTORS.split(rule[1]) if set(NAMES.findall(INSIDE.sub("", one))) <= known]
        return f"{','.join(selectors)}{{{rule[2]}}}" if selectors else ""

    return EMPTY.sub("", RULE.sub(used, NOTE.sub("", css)))


def only_icons(static: Path, codes: set[int]) -> None:
    """The fonts of icons with those alone that a style sheet names."""
    for path in static.glob("vendor/fontawesome/webfonts/*.ttf"):
        options = subset.Options(layout_features=[], glyph_names=False)
        font = subset.load_font(path, options)
        made = subset.Subsetter(options)
        made.populate(unicodes=codes)
        made.subset(font)
        subset.save_font(font, path, options)
