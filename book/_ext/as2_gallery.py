"""Pages of executed notebooks: those of this machine's runs, and the committed ones, each with a card."""

import re
from dataclasses import replace

import pages
from as2_svg import in_page_colours
from pages import register, render
from pages.report import PRETRAINING, UNTRAINED

from aslab import records
from aslab.gallery import TREC, Executed, executed, without_paths
from aslab.show.markup import NAMES
from aslab.show.picture import SVG

NUMBER = re.compile(r"<td>([-+]?\d[\d,.:]*(?:e[-+]?\d+)?(?: %)?|–)</td>")
NOT_SET = re.compile(r"<tr>\s*<th>\w+</th>\s*<td>None</td>\s*</tr>\s*")  # a setting
WITHOUT_TEXT = "It is stored without text of the data set."
SHOWS = "shows"  # tag of a cell that a page has only with an output
ID = re.compile(r'(\bid="|href="#|url\(#)')


def run_page(notebook: dict, title: str, about: str = "") -> dict:
    """An executed notebook as a page: its title, Markdown about the run, its plots in the page's colours."""
    page = without_paths(notebook)
    cells = [cell for cell in page["cells"] if "injected-parameters" not in cell["metadata"].get("tags", [])]
    page["cells"] = that_show(cells)
    for number, cell in enumerate(page["cells"]):
        if "outputs" in cell:
            cell["outputs"] = [for_page(output, f"c{number}-") for output in cell["outputs"]]
            if "parameters" in cell["metadata"].get("tags", []):
                cell["metadata"]["tags"].append("hide-input")
    first = next((cell for cell in page["cells"] if cell["cell_type"] == "markdown"), None)
    if first:
        own_title, *rest = "".join(first["source"]).split("\n")
        first["source"] = "\n".join([f"# {title}", "", about, "", f"**{own_title.lstrip('# ')}**", *rest])
    return page


def that_show(cells: list[dict]) -> list[dict]:
    """Cells without those that were to show something and do not, and without the words before them."""
    kept = []
    for cell in cells:
        if SHOWS in cell["metadata"].get("tags", ()) and not cell["outputs"]:
            if kept and kept[-1]["cell_type"] == "markdown":
                kept.pop()
        else:
            kept.append(cell)
    return kept


def for_page(output: dict, prefix: str) -> dict:
    """An output with its plot in the page's colours, or with the numbers of its table aligned."""
    data = output.get("data", {})
    if SVG not in data:
        html = NOT_SET.sub("", "".join(data.get("text/html", "")))
        aligned = {"text/html": NUMBER.sub(r'<td class="as2-number">\1</td>', html)}
        return output | {"data": data | aligned} if "text/html" in data else output
    words = output["metadata"].get(SVG, {}).get("alt", "A plot of this run.")
    svg = ID.sub(rf"\g<1>{prefix}", in_page_colours("".join(data[SVG])))  # ids of two plots are kept apart
    html = pages.figure(svg, words)
    return output | {"data": {"text/html": html, "text/plain": words}, "metadata": {}}


def title_of(one: Executed) -> str:
    """The row and its data set, as `RoBERTa + PSD: pre-training`."""
    dataset = "pre-training" if one.line.dataset == PRETRAINING else NAMES.get(one.line.dataset, one.line.dataset)
    return f"{one.data['rows'][one.line.row]['name']}: {dataset}"


def summary(one: Executed) -> str:
    """The key metrics of a run with their split, as `P@1 49.8, MAP 63.0 (test, points)`."""
    shown = ", ".join(f"{NAMES[name]} {100 * value:.1f}" for name, value in one.key_metrics.items())
    return f"{shown} ({records.split(one.line)}, points)"


def came_out(one: Executed) -> str:
    """The metric of a run that matters most beside those of rankers without training: `MAP 63.0 on test. Without training: BM25 59.0.`"""
    metric = "map" if "map" in one.key_metrics else next(iter(one.key_metrics))
    # What a random order is worth depends on how it is taken: some notebooks draw one, the record has the expectation.
    # Before training, `find_evidence` measures on dev alone.
    left_out = ("random", "before training")
    known = {name: own for name, own in (one.line.record.get("baselines") or {}).items() if name not in left_out}
    baselines = {name: (own or {}).get("map" if metric.startswith("map") else metric) for name, own in known.items()}
    baselines |= {name: records.figures(one.line).get(key) for name, key in UNTRAINED.get(metric, {}).items()}
    beside = [f"{NAMES.get(name, name)} {100 * value:.1f}" for name, value in baselines.items() if value is not None]
    without = f" Without training: {', '.join(beside)}." if beside else ""
    return f"**{NAMES[metric]} {100 * one.key_metrics[metric]:.1f} on {records.split(one.line)}.**{without}"


def gallery_page(one: Executed) -> dict:
    """The page of a committed notebook."""
    slug, size = one.data["slug"], len(one.path.read_bytes()) // 1000
    scores = one.path.with_suffix(TREC)
    trec = f"| scores | {{download}}`run.txt and qrels.txt for trec_eval <../../results/notebooks/{scores.name}>` |\n"
    tables = one.repeated and summary(replace(one, line=one.repeated))
    repeats = (
        f"| repeats | the run in the tables, with equal settings but for machine, precision or version: {tables} |\n"
    )
    about = f"""
{came_out(one)}

| | |
|---|---|
| paper | [{one.data["title"]}](../papers/{slug}.md) |
| row | {one.data["rows"][one.line.row]["name"]} |
| model | {records.backbone(one.line)} |
| budget, seed | {one.line.budget}, {one.line.seed} |
| result | {summary(one)} |
| run | `{one.path.stem}` |
| notebook | {{download}}`download it with its outputs, {size} kB <../../results/notebooks/{one.path.name}>` |
{trec if scores.is_file() else ""}{repeats if tables else ""}
{WITHOUT_TEXT}
Messages of progress were removed from its outputs.
The metrics are those of this run's own committed record. Times are those of this execution.
"""
    return run_page(one.content, title_of(one), about)


@register("gallery", "all results", "No executed notebook is in results/notebooks.")
def gallery() -> str:
    """A card with the figures of each committed notebook."""
    cards = [card(one) for one in executed()]
    return render("gallery.html", cards=cards) if cards else ""


def card(one: Executed) -> dict:
    model = records.backbone(one.line).rsplit("/", 1)[-1]
    seed = f"seed {one.line.seed}{' again' * bool(one.repeated)}"
    run = f"notebook {one.line.record['notebook']}, {one.line.budget} budget, {seed}, model {model}"
    return {"page": one.path.stem, "title": title_of(one), "lines": [one.data["title"], run, summary(one)]}
