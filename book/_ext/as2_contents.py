"""The contents of the book beside each page: the titles of pages alone.

Sphinx would copy the headings of all pages for every page, and drop them.
"""

from functools import cache

from sphinx import addnodes


def titles_alone(app, pagename, templatename, context, doctree) -> None:
    """Give templates that want titles alone contents without headings."""
    of_page = context["toctree"]

    def toctree(**options) -> str:
        if not options.get("titles_only"):
            return of_page(**options)
        whole, app.env.tocs = app.env.tocs, _without_headings(app.env)
        try:
            return of_page(**options)
        finally:
            app.env.tocs = whole

    context["toctree"] = toctree


@cache
def _without_headings(env) -> dict:
    """Page -> its title and the lists of pages below it. All pages have been read when the first is written."""
    pages = {}
    for name, contents in env.tocs.items():
        pages[name] = contents.deepcopy()
        for entry in pages[name].children:
            lists = list(entry.findall(addnodes.toctree))
            if len(entry) > 1 and lists:
                entry[1][:] = lists
            elif len(entry) > 1:
                entry.pop(1)
    return pages
