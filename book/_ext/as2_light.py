"""The built site: pages of the theme with names and roles for screen readers, and only what they use of its files."""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

import tinycss2
from fontTools import subset

# What the theme and Sphinx write -> what takes its place.
MENDED = {
    r'(>([^<>]+)</a><details[^>]*><summary)(?=><span class="toctree-toggle")': r'\1 aria-label="Pages below \2"',
    r'(?<=<div id="pst-primary-sidebar" )(?=class)': 'role="navigation" aria-label="Book" ',
    r'(?<=<button class="btn search-button-field )([^>]*) aria-label="Search"': r"\1",
    r'(?<=<summary) aria-label="Toggle hidden content"': "",
    r' role="(?:list" class="citation-list|doc-biblioentry|doc-backlink)"': "",
    r'<th(?: class="head"| scope="col")?>(?:<p></p>)?</th>': "<td></td>",
    r'(?<=<th class="head"><p>)<math(?! aria)(?=[^>]*>(.*?)</math></p></th>)': lambda found: (
        f'<math aria-label="{words(found[1])}"'
    ),
    r'(?s)<div id="jb-print-docs-body".*?(?=<div id="searchbox">)': "",  # title and contents once more
    r'<span class="(?:n|nn|nx|o|p|pm|pre|w)">([^<]*)</span>': r"\1",  # code in the colour of text: half of a source's bytes
    r"<thead>\s*<tr[^>]*>(?:\s*<td></td>)+\s*</tr>\s*</thead>": "",
}
# Scripts and styles -> where in a page it shows that they are used; None: nowhere.
USED = {
    r"fontawesome\.js": None,
    r"(?:searchtools|language_data|searchindex)\.js": r'id="search-results"',
    r"togglebutton\.(?:js|css)": r'class="(?:[^"]* )?(?:toggle|admonition dropdown|dropdown admonition)[" ]',
    r"(?:design-tabs\.js|sphinx-design\.min\.css)": r'class="(?:[^"]* )?sd-',
    r"mystnb\.\w+\.css": r'class="(?:[^"]* )?cell[" ]',
    r"(?:clipboard\.min|copybutton)\.js": r'<div class="highlight',
}
LOADED = r'\n?[ ]*<(?:script|link)\b[^>]*(?:src|href)="[^"]*/?{}(?:\?[^"]*)?"[^>]*?(?:></script>|/?>)'
WOFF = re.compile(r'url\([^)]*\.woff2\) format\("woff2"\),')  # the fonts are left as TrueType
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
        styles[path] = pruned(tinycss2.parse_stylesheet(text), known)
        path.write_text(WOFF.sub("", styles[path]), encoding="utf-8")
    only_icons(static, {ord(icon) for text in styles.values() for icon in re.findall("[\ue000-\uf8ff]", text)})
    for unused in (
        *static.rglob("*.map"),
        *static.rglob("*.woff2"),
        *static.glob("scripts/fontawesome.js"),
        *static.glob("*webpack-macros.html"),
    ):
        unused.unlink()


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


def pruned(rules: Iterable, known: set[str]) -> str:
    """A style sheet without the rules that apply to nothing; notes on licences stay."""
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [tinycss2.serialize(one) for one in selectors_of(rule) if names_of(one) <= known]
            if selectors:
                kept.append(f"{','.join(selectors)}{{{tinycss2.serialize(rule.content)}}}")
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
            if inside := pruned(tinycss2.parse_rule_list(rule.content), known):
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inside}}}")
        elif rule.type == "at-rule" or (rule.type == "comment" and rule.value.startswith("!")):
            kept.append(rule.serialize())
    return "\n".join(kept)


def selectors_of(rule) -> list[list]:
    """The selectors of a rule, each as its tokens; a comma inside `:is(...)` separates nothing."""
    groups = itertools.groupby(rule.prelude, lambda token: token.type == "literal" and token.value == ",")
    return [[token for token in tokens if token.type != "comment"] for comma, tokens in groups if not comma]


def names_of(selector: list) -> set[str]:
    """The classes and ids that an element and those around it must have."""
    names = {token.value for token in selector if token.type == "hash"}
    pairs = itertools.pairwise(selector)
    return names | {
        token.value for dot, token in pairs if token.type == "ident" and dot.type == "literal" and dot.value == "."
    }


def only_icons(static: Path, codes: set[int]) -> None:
    """The fonts of icons with those alone that a style sheet names."""
    for path in static.glob("vendor/fontawesome/webfonts/*.ttf"):
        options = subset.Options(layout_features=[], glyph_names=False)
        font = subset.load_font(path, options)
        made = subset.Subsetter(options)
        made.populate(unicodes=codes)
        made.subset(font)
        subset.save_font(font, path, options)
