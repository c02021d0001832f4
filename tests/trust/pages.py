"""The book says what the records say: built twice from the same files, every number counted again, runs that failed, pages gone stale.

Numbers are read off the built pages and compared with those of the modules `traced` and `traced_...`, which know the
records and nothing of `asutil`, of `aslab` and of the book's own code.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from bs4 import BeautifulSoup, Tag
from tqdm.auto import tqdm

from asutil.io import disk

from . import (
    Broken,
    must,
    plots,
    traced,
    traced_backbone,
    traced_benchmarks,
    traced_blocks,
    traced_claims,
    traced_figure_claims,
    traced_gains,
    traced_gallery,
    traced_laptop,
    traced_leaderboard,
    traced_plots,
    traced_repeats,
)

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("asutil", "aslab", "book", "data_cards", "experiments", "notebooks", "results")
GENERATED = shutil.ignore_patterns("_build", "runs", "__pycache__", ".ipynb_checkpoints")
SAME_NAME = {  # module -> blocks that have the name of its function
    traced: "budgets",
    traced_benchmarks: "backends benchmarks choices growth latency slot-cosines start trust",
    traced_blocks: "asked claim-verdicts evidence-chance evidence-left-out evidence-near examples learning-curve rank-moves readouts",
    traced_claims: "answer claims findings headline scorecard t-tests two-tests",
    traced_figure_claims: "figure-claims",
    traced_gains: "limits",
    traced_laptop: "results",
    traced_leaderboard: "blind calibration first-stage leaderboard mined rankers",
    traced_repeats: "in-corpus repeats",
}
TRACED = {name: getattr(module, name.replace("-", "_")) for module, names in SAME_NAME.items() for name in names.split()}
TRACED |= {
    "backbone": traced_backbone.made,
    "backbone-command": traced_backbone.command,
    "backbone-loss": traced_backbone.loss,
    "context-overlap": traced_blocks.overlap,
    "costs": lambda root, _: traced_benchmarks.trained(root),
    "evidence-nearest": traced_blocks.nearest,
    "gallery": traced_gallery.cards,
    "pca": traced_blocks.components,
}
PLOTS = {  # beside what is said below them: how they are read, and what they must draw
    "backbone-loss": (plots.lines, traced_backbone.loss_by_step),
    "growth": (plots.lines, traced_plots.growth),
    "latency": (plots.lines, traced_plots.latency),
    "learning-curve": (plots.lines, traced_plots.learning_curve),
    "pca": (plots.marks, traced_plots.components),
    "slot-cosines": (plots.lines, traced_plots.slot_cosines),
}
DRAWN = {
    "overview": traced_gains.overview,
    "claims-plot": traced_gains.claims_plot,
    "gains": traced_gains.gains,
    "own-gains": traced_gains.own_gains,
}
NOT_RUN = ("curves", "demo", "runs")  # runs of this machine alone: a copy has none
# Data, plans (but for what was measured), the project itself, and what to type.
NO_RESULTS = ("citation", "commands", "counts", "datasets", "download", "folders")
# Directives whose captions have figures that follow from records.
WITH_FIGURES = re.compile("^(backbone|backends|choices|costs measured|first-stage|leaderboard|mined|rankers|t-tests)")
BOLD = " Bold: the best of our rows at one budget, and those not significantly worse over questions (95 %, unadjusted)."
# The last sentences above a table of results: the only model of our runs, and one verdict for all of them.
OURS = re.compile(r"Our runs began with [^ ]+\.(?= |$)|Ours is a reduced budget, so its figures are not compared with the paper's\.")
COUNTED = re.compile(r"(?<!\w)\d(?:[\d.,]*\d)?")


# ------------------------------------------------------------------ builds


def copied(root: Path) -> Path:
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=GENERATED)
    shutil.copy(ROOT / "CITATION.cff", root)
    return root


def build(*roots: Path) -> None:
    """Builds books side by side, without data. Raises: Broken where one does not build."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASUTIL_")}
    environment["AS2_EXECUTE"] = "off"  # their outputs have times
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "-W", "--keep-going", "book/"]
    started = []
    for root in roots:
        with (root / "build.log").open("w") as log:
            own = environment | {"PYTHONPATH": str(root)}
            started.append(subprocess.Popen(command, cwd=root, env=own, stdout=log, stderr=subprocess.STDOUT))
    for root, process in zip(roots, started):
        must(process.wait() == 0, f"the book builds: {(root / 'build.log').read_text('utf-8')[-2000:]}")


def html_of(root: Path) -> Path:
    return root / "book" / "_build" / "html"


def same(one: Path, other: Path, files="*", read=Path.read_bytes, promise="two builds are equal byte for byte") -> int:
    """How many files two builds have in common, all of them. Raises: Broken for a file that differs."""
    each = [{path.relative_to(html): read(path) for path in html.rglob(files) if path.is_file()} for html in (one, other)]
    apart = sorted(str(name) for name in each[0].keys() | each[1].keys() if each[0].get(name) != each[1].get(name))
    must(not apart, f"{promise}: {apart[:9]} differ")
    return len(each[0])


def versionless(page: Path) -> str:
    """The text of a page but for the versions of style sheets, which a first build does not know."""
    return re.sub(r"\?v=\w+", "", page.read_text("utf-8"))


# ------------------------------------------------------------------ numbers on pages


def traced_pages(root: Path) -> dict[str, int]:
    """Page -> how many numbers on it were counted again. Raises: Broken for one that is not what the records give."""
    found = {}
    for path in sorted(html_of(root).rglob("*.html")):
        page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
        blocks = page.select("[data-as2]")
        numbers = sum(traced_block(root, path.name, block) for block in blocks) + quoted(root, path.name, page)
        if numbers:
            none_typed(root / "book" / path.relative_to(html_of(root)).with_suffix(".md"), blocks)
            found[path.relative_to(html_of(root)).as_posix()] = numbers
    papers = {f"papers/{path.stem}.html" for path in (root / "book" / "papers").glob("*.md")}
    must(papers <= found.keys(), f"every paper's page has results that can be traced: {sorted(papers - found.keys())} have none")
    return found


def quoted(root: Path, name: str, page: Tag) -> int:
    """How many figures stand in the text of a page. Raises: Broken for one that is not what the records give."""
    found = page.select("[data-as2-figure]")
    for one in found:
        told, shown = traced_claims.quoted(root, one["data-as2-figure"], one.get_text()), one.get_text()
        must(told == shown.replace("−", "-"), f"{name}: {shown!r} is quoted, the records give {told!r} ({one['data-as2-figure']})")
    return len(found)


def none_typed(source: Path, blocks: list[Tag]) -> None:
    """Raises: Broken where a figure of three digits or more that a page shows also stands in its own text, where it would go stale."""
    text = re.sub(r"```.*?```|\{as2-figure\}`[^`]*`", "", source.read_text("utf-8"), flags=re.DOTALL)
    typed = {number for number in COUNTED.findall(text) if re.fullmatch(r"\d{2,}\.\d+|\d\.\d{2,}", number)}
    both = typed & {number for block in blocks for number in COUNTED.findall(block.get_text(" "))}
    must(not both, f"no result is typed into a page: {source.name} says {sorted(both)}")


def traced_block(root: Path, page: str, block: Tag) -> int:
    """How many numbers a directive shows. Raises: Broken for a line that is not the one that the records give."""
    name, *arguments = block["data-as2"].split()
    where = f"{page}, {block['data-as2']}"
    must(name in {*TRACED, *DRAWN, *NOT_RUN, *NO_RESULTS}, f"{where}: nothing says what its numbers come from")
    if name in DRAWN:
        return drawn_as_expected(where, plots.differences(block), DRAWN[name](root, *arguments))
    if name in NO_RESULTS or (name == "costs" and arguments != ["measured"]):
        return 0
    shown, known = list(lines(block)), known_numbers(root, arguments)
    strange = [caption for caption in captions(block) if not set(COUNTED.findall(caption)) <= known]
    must(not strange, f"{where}: {strange} stands above a table, and in no file of the paper")
    if name in NOT_RUN:
        named = re.compile("|".join(traced.NAMES.values()))
        texts = [line if isinstance(line, str) else " ".join(line[1:]) for line in shown]
        figures = [text for text in texts if COUNTED.search(named.sub("", text))]
        must(not figures, f"{where}: no run has finished, and it shows {figures[:3]}")
        return 0
    for number, (said, told) in enumerate(itertools.zip_longest(shown, TRACED[name](root, *arguments)), 1):
        fits = told <= said if isinstance(said, Counter) else told == said  # beside the counts of a figure stand the labels of its axes
        must(fits, f"{where}, line {number}: the page says {said}, the records {told}")
    counted = sum(len(COUNTED.findall(" ".join([line] if isinstance(line, str) else line))) for line in shown)
    if name in PLOTS:
        read, expected = PLOTS[name]
        counted += plotted_as_expected(where, read(block), list(expected(root, *arguments)))
    return counted


def known_numbers(root: Path, arguments: list[str]) -> set[str]:
    """Numbers that may stand above a table: those of the paper's file, which say where it prints what, a level of 95 %, and class 1."""
    file = root / "experiments" / f"{arguments[0] if arguments else ''}.yml"
    return {"1", "95", *(COUNTED.findall(file.read_text("utf-8")) if file.is_file() else ())}


def captions(block: Tag) -> list[str]:
    return [OURS.sub("", words_above(caption)) for caption in block.find_all("caption") if not counted(caption)]


def counted(caption: Tag) -> bool:
    """Whether a caption has figures that follow from records: those of ranked lists, and those above some tables."""
    ours = caption.find_parent(class_="as2-laptop") or caption.find_parent(attrs={"data-as2": WITH_FIGURES})
    return "as2-beside" in caption.parent["class"] or ours is not None


def lines(block: Tag) -> Iterable[str | list[str] | Counter]:
    """What a block says: its sentences and commands, and its tables' cells; of moved ranks also the drawn counts.

    Of a table of results also `OURS`, the sentences that take the place of a column or of the names of models.
    """
    embedded = False  # whether ranked lists are of data that have their texts everywhere
    for element in block.find_all(["p", "li", "pre", "caption", "figcaption", "tr", "summary"]):
        beside = embedded and element.find_parent("table", class_="as2-beside")
        if element.name == "tr" and not element.find_parent("thead") and not beside:
            yield cells_of(element)
        elif element.name == "summary" and "as2-folded" in element.parent.get("class", ()):
            yield text_of(element)
        elif element.name == "pre":
            yield " ".join(element.get_text().replace("\\\n", " ").split())
        elif beside and element.name == "caption":
            fate, ranks = text_of(element).split(":", 1)[0], text_of(element.small).split(" Words that", 1)[0]
            yield f"{fate}. {ranks}"  # no record has the texts of the embedded data
            yield from map(candidates_of, beside.select("tbody tr"))
        elif element.name == "figcaption" or (element.name == "caption" and counted(element)):
            yield words_above(element)
            if block["data-as2"].startswith("rank-moves"):
                yield Counter(text.get_text() for text in element.parent.find_all("text") if text.get_text().isdigit())
        elif element.name == "caption" and block["data-as2"].startswith("results") and OURS.search(text_of(element)):
            yield " ".join(OURS.findall(text_of(element)))
        elif element.name in ("p", "li") and "as2-note" not in element.get("class", ()):
            said = re.split(" The texts of its questions are not available here| Text: ", text_of(element), maxsplit=1)[0]
            embedded = said.startswith("pydocs")
            yield said


def words_above(caption: Tag) -> str:
    """A caption without its last sentence on figures in bold, which the tests of tables check."""
    return text_of(caption).removesuffix(BOLD)


def cells_of(line: Tag) -> list[str]:
    return [text_of(cell) for cell in line.find_all(["td", "th"])]


def candidates_of(line: Tag) -> list[str]:
    """The cells of a line of ranked lists, with the id of each candidate in place of its text."""
    shown = []
    for cell in line.find_all(["td", "th"]):
        name = cell.get("data-candidate")
        shown.append(f"{cell.abbr.get_text()} {cell.abbr['title']} {name} {text_of(cell.small)}" if name else text_of(cell))
    return shown


def text_of(tag: Tag) -> str:
    """The words of an element; a label's mark with its title, which says what it means."""
    titles = {mark.string: mark["title"] for mark in tag.select("abbr:not(.as2-mark)")}
    texts = [f"{text} {titles[text]}" if text in titles and text.parent.name == "abbr" else text for text in tag.find_all(string=True)]
    return " ".join(" ".join(texts).split()).replace(" ,", ",")  # a comma that follows a label


# ------------------------------------------------------------------ plots


def drawn_as_expected(where: str, shown: dict[str, list], expected: dict[str, list]) -> int:
    in_order = lambda values: sorted(values, key=lambda one: np.round(one, 3).tolist())  # equal ends differ in their last digits
    for what, values in expected.items():
        fits = np.shape(values) == np.shape(shown[what]) and np.allclose(in_order(values), in_order(shown[what]), atol=0.01)
        must(fits, f"{where}: {what} are drawn at {shown[what]}, the records give {values}")
    return sum(np.size(values) for values in shown.values())


def plotted_as_expected(where: str, shown: plots.Drawn, expected: plots.Drawn) -> int:
    """How many coordinates the panels of plots draw, all as the records give them, in their order and with their names."""
    said, told = ([words for words, _ in panels] for panels in (shown, expected))
    must(said == told, f"{where}: the panels say {said}, the records {told}")
    for (words, found), (_, known) in zip(shown, expected):
        names, others = ([name for name, _ in one] for one in (found, known))
        must(names == others, f"{where}, {words[-1]}: {names} are drawn, the records give {others}")
        for (name, points), (_, places) in zip(found, known):
            told = f"{name} is drawn at {np.round(points, 4).tolist()}, the records give {places}"
            must(plots.drawn_through(np.array(points, float), np.array(places, float)), f"{where}, {words[-1]}: {told}")
    return sum(np.size(points) for _, found in shown for _, points in found)


# ------------------------------------------------------------------ what changes


def changed(root: Path) -> None:
    """A figure, a row and a printed number change, and runs end badly: the next build shows the new ones, and nothing of those runs."""
    results = root / "results" / "sentence_objectives"
    place = results / "roberta_ssp" / "pydocs-laptop-seed0.json"
    record = json.loads(place.read_text("utf-8"))
    record["metrics"]["test"]["map"] += 0.1
    disk.write_json(place, record)
    unquoted(root, results).unlink()  # a build would refuse the change where a text quotes the record
    paper = root / "experiments" / "sentence_objectives.yml"
    text = paper.read_text("utf-8")
    cell = re.search(r"p@1: \[(\d+\.\d), ", text)
    paper.write_text(text[: cell.start(1)] + "12.3" + text[cell.end(1) :], encoding="utf-8")
    try:
        traced_pages(root)
    except Broken:
        pass
    else:
        raise Broken("pages that are older than the records are noticed: none was")
    told = ended_badly(root)
    build(root)
    traced_pages(root)
    never_shown(root, told)


def unquoted(root: Path, results: Path) -> Path:
    """The first record of a pre-training that no text quotes."""
    quotes = [quote for page in (root / "book").rglob("*.md") for quote in re.findall(r"\{as2-figure\}`([^`]+)`", page.read_text("utf-8"))]
    words = set(re.findall(r"\w+", " ".join(quote for quote in quotes if "on pretraining at laptop" in quote)))
    return next(path for path in sorted(results.glob("*/pretraining-laptop-seed0.json")) if path.parent.name not in words)


def ended_badly(root: Path) -> str:
    """Runs that stopped before their record and in an error; and the figure that both of them show in their notebooks."""
    told, text = "0.87654321", (root / "notebooks" / "finetune.ipynb").read_text("utf-8")
    shown = {"output_type": "stream", "name": "stdout", "text": f"P@1 {told}"}
    error = {"output_type": "error", "ename": "ValueError", "evalue": f"stopped at {told}", "traceback": []}
    for number, outputs in enumerate(([shown], [shown, error])):
        folder, notebook = root / "runs" / f"finetune-{number:012x}", json.loads(text)
        folder.mkdir(parents=True)
        next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")["outputs"] = outputs
        (folder / "notebook.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    return told


def never_shown(root: Path, told: str) -> None:
    for path in html_of(root).rglob("*.html"):
        must(told not in path.read_text("utf-8"), f"no page shows a run that failed: {path.name} shows {told}")


def torn(root: Path) -> None:
    """A record that was cut off: the book names it instead of being built, and shows nothing of its run."""
    told, folder = "0.87654321", root / "runs" / f"finetune-{0:012x}"
    (folder / "record.json").write_text('{"notebook": "finetune", "metrics": {"test": {"map": ' + told, encoding="utf-8")
    try:
        build(root)
    except Broken as error:
        must(f"{folder.name}/record.json is damaged" in str(error), f"a damaged record is named: {error}")
    else:
        raise Broken("a damaged record is named: the book was built over one")
    never_shown(root, told)


def check(full: bool, seed: int, folder: Path) -> dict:
    """Two builds, every number, then the changes; at full size also the changed book built anew, and a damaged record."""
    with tqdm(total=3 + 2 * full, desc="builds of the book", dynamic_ncols=True) as done:
        roots = copied(folder / "one"), copied(folder / "another place" / "two")
        build(*roots)
        done.update(2)
        equal, numbers = same(*map(html_of, roots)), traced_pages(roots[0])
        changed(roots[0])
        done.update()
        if full:
            anew = shutil.copytree(roots[0], folder / "anew", ignore=shutil.ignore_patterns("_build"))
            build(anew)
            same(html_of(roots[0]), html_of(anew), "*.html", versionless, "pages that are rebuilt are those of a new build")
            done.update()
            torn(anew)
            done.update()
    return {"files_equal": equal, "numbers_traced": sum(numbers.values()), "pages": len(numbers), "by_page": numbers}
