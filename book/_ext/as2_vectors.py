"""Directives of models that embed each text by itself: networks and triplets drawn, counts, ranked lists, vectors before and after."""

import csv
import io
import json
from html import escape
from pathlib import Path

from as2_figures import drawn
from as2_pages import ROOT, Shown, boxed, note
from docutils import nodes
from pages import comparisons, examples, report, testable
from sphinx.util.docutils import SphinxDirective

from aslab import papers, plan
from aslab.records import COMMITTED, HERE
from aslab.show import markup, pca
from aslab.show.markup import NAMES, Html
from asutil.data import answers
from asutil.io import hub, rundir
from asutil.io.rundir import BUDGETS
from asutil.metrics import changes

MARGIN = 5.0
DIRECTIONS = {"shows": "show"} | {word: f"are {word}" for word in ("unclear", "opposite", testable.VERDICT, "not run")}
READOUTS = {"distance": "Distance", "cosine": "Cosine", "dot": "Dot product", "probability": "Probability"}
READOUT_LEGEND = (
    "MAP in points by each readout of the same vectors, mean ± std over seeds; the readout that ranks is underlined."
)
TAB_SEPARATED = ("wikiqa",)  # released as a .tsv, where a quotation mark may be taken for quoting


class Networks(SphinxDirective):
    """The siamese and the triplet network, a panel each."""

    def run(self):
        return [nodes.raw("", networks(), format="html")]


# ------------------------------------------------------------------ the networks

WIDTH, TOWER = 360, 108
SIAMESE = {"question": "u", "candidate": "v"}
TRIPLET = {"right candidate": "p", "question": "a", "wrong candidate": "n"}


def networks() -> str:
    """Both networks from the texts down to the loss; words, not colours, say what is shared."""
    caption = (
        "The siamese network reads two texts and says whether they match; the triplet network reads three and measures which of two is "
        "nearer. All towers of a network are one and the same, a language model and a pooling: what is inside the dashed line gives the "
        "vectors, and is all that serving needs. Above it the siamese network has one linear layer, the triplet network nothing to learn."
    )
    return (
        f'<figure class="as2-figure" role="group" aria-label="{escape(caption)}"><div class="as2-inputs">{siamese()}{triplet()}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def siamese() -> str:
    shapes, (u, v) = towers(SIAMESE, "one network g, read twice: the same weights")
    middle = WIDTH / 2
    shapes += (
        arrow(u, 228, middle - 40, 248) + arrow(v, 228, middle + 40, 248) + box(middle, 248, 200, "[ u ; v ; |u − v| ]")
    )
    shapes += arrow(middle, 276, middle, 292) + box(middle, 292, 200, "linear layer: one number z")
    shapes += arrow(middle, 320, middle, 336) + box(middle, 336, 200, "P(match) = 1 / (1 + exp(−z))")
    shapes += text(middle, 384, "loss: −log P if it answers, else −log(1 − P)", "l")
    return panel("Siamese", "a question, a candidate and a label", shapes)


def triplet() -> str:
    shapes, (p, a, n) = towers(TRIPLET, "one network g, read three times: the same weights")
    for side, name, start in ((p, "|a − p|²", -12), (n, "|a − n|²", 12)):
        between = (side + a) / 2
        shapes += (
            arrow(side, 228, between + start, 270) + arrow(a, 228, between - start, 270) + box(between, 270, 84, name)
        )
        shapes += arrow(between, 298, a + 2 * start, 336)
    shapes += box(a, 336, 250, f"max( |a − p|² − |a − n|² + {MARGIN:g}, 0 )")
    shapes += text(a, 384, "loss: 0 once the wrong one is farther by the margin", "l")
    return panel("Triplet", "a question, a right and a wrong one", shapes)


def towers(names: dict[str, str], shared: str) -> tuple[str, list[float]]:
    """A tower a text, from the text down to its vector, and where each one's middle is."""
    middles = [WIDTH * (2 * place + 1) / (2 * len(names)) for place in range(len(names))]
    shapes = f'<rect class="x" x="2" y="52" width="{WIDTH - 4}" height="130" rx="6"/>'
    for middle, (name, vector) in zip(middles, names.items()):
        shapes += box(middle, 6, TOWER, name, "d") + arrow(middle, 34, middle, 86)
        shapes += (
            box(middle, 86, TOWER, "language model")
            + arrow(middle, 114, middle, 140)
            + box(middle, 140, TOWER, "mean over tokens")
        )
        shapes += arrow(middle, 168, middle, 200) + box(middle, 200, 44, vector, "d")
    halo = (
        "paint-order:stroke;stroke:var(--pst-color-background);stroke-width:6px"  # the arrows pass behind these words
    )
    return shapes + f'<g style="{halo}">{text(WIDTH / 2, 72, shared, "s")}</g>', middles


def panel(name: str, said: str, shapes: str, height: int = 394) -> str:
    head = f'<p class="as2-kind"><strong>{escape(name)}</strong> {escape(said)}</p>'
    size = f'viewBox="0 0 {WIDTH} {height}" style="min-width:0;max-width:27rem;margin:0 auto"'
    return f'<div class="as2-input">{head}<svg {size} aria-hidden="true" xmlns="http://www.w3.org/2000/svg">{shapes}</svg></div>'


def box(middle: float, top: float, width: float, words: str, kind: str = "p") -> str:
    place = f'x="{middle - width / 2:g}" y="{top:g}" width="{width:g}" height="28" rx="5"'
    return f'<rect class="{kind}" {place}/>' + text(middle, top + 18, words, "l")


def text(middle: float, base: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{middle:g}" y="{base:g}" text-anchor="middle">{escape(words)}</text>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """A line with a head that points down."""
    head = f"M{to_x - 4:g} {to_y - 6:g}L{to_x:g} {to_y:g}L{to_x + 4:g} {to_y - 6:g}"
    return f'<path class="k" d="M{x:g} {y:g}L{to_x:g} {to_y:g}{head}"/>'


# ------------------------------------------------------------------ triplets


class TripletKinds(SphinxDirective):
    """The loss of a triplet by how far its wrong candidate is, and which stretches of that are hard, semi-hard and easy."""

    def run(self):
        caption = (
            "The loss of one triplet by how far its wrong candidate n is from the question a, while its right one p stays where it is. "
            "Hard: n is nearer than p. Semi-hard: n is farther, but not by the margin. Easy: n is farther by more, and nothing is learnt."
        )
        return [nodes.raw("", drawn(kinds_plot(), caption), format="html")]


def stretches(to_positive: float, margin: float, end: float) -> dict[str, tuple[float, float]]:
    """From where to where the distance to the wrong candidate makes a triplet hard, semi-hard and easy."""
    return {
        "hard": (0, to_positive),
        "semi-hard": (to_positive, to_positive + margin),
        "easy": (to_positive + margin, end),
    }


def kinds_plot(to_positive: float = 6.0, margin: float = MARGIN, end: float = 17.0):
    """max(p - n + m, 0) over n as a matplotlib Figure, a stretch a kind: a name and a hatch say which."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 2.9), layout="constrained")
    axis = figure.subplots()
    top = to_positive + margin
    for (name, (start, stop)), hatch in zip(stretches(to_positive, margin, end).items(), ("///", "..", "")):
        axis.axvspan(start, stop, facecolor="none", edgecolor="#8888", hatch=hatch, linewidth=0)
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 3}
        axis.text((start + stop) / 2, 0.9 * top, name, ha="center", va="center", bbox=behind)
    axis.plot([0, top, end], [top, 0, 0], color="black", linewidth=2)
    ticks = {0: "0", to_positive: "|a − p|²", top: f"|a − p|² + {margin:g}"}
    for place in (to_positive, top):
        axis.axvline(place, color="black", linestyle="--", linewidth=1)
    axis.set_xticks(list(ticks), list(ticks.values()))
    axis.set(
        xlabel="|a − n|², from the question to the wrong candidate",
        ylabel="loss",
        xlim=(0, end),
        ylim=(0, 1.05 * top),
        yticks=[],
    )
    axis.spines[["top", "right"]].set_visible(False)
    return figure


class TripletCounts(SphinxDirective):
    """How many triplets the pairs of each data set make under a protocol."""

    required_arguments = 1

    def run(self):
        self.env.note_dependency(str(ROOT / "asutil" / "data" / "answers.py"))
        return [nodes.raw("", boxed(triplet_table(self.arguments[0], answers.TRIPLETS)), format="html")]


def triplet_table(protocol: str, counts: dict) -> str:
    body = []
    for (dataset, of), triplets in counts.items():
        if of == protocol:
            pairs = answers.COUNTS[dataset][protocol]["train"][1]
            figures = [markup.number(said) for said in (f"{pairs:,}", f"{triplets:,}", f"{triplets / pairs:.2f}")]
            body.append(markup.line([markup.cell(NAMES[dataset], "th", scope="row"), *figures]))
    caption = "The training side: pairs of a question and a candidate, and all triplets of a question, a right and a wrong candidate."
    return markup.table(caption, ["", "Pairs", "Triplets", "Triplets a pair"], body)


# ------------------------------------------------------------------ readouts


class Readouts(Shown):
    """MAP of a paper's rows by each readout of the same vectors."""

    def show(self, paper):
        return boxed(readout_table(*comparisons.given(paper, None, None)))


def readout_table(data: dict, found) -> str:
    """A table of each data set's test questions: a line a row and budget, a column a readout. Untrained rows appear once they have run."""
    tables = []
    for dataset in dict.fromkeys(
        name for table in data["tables"].values() for name in table["datasets"] if name not in papers.SPLITS
    ):
        body = [line for row in data["rows"] for line in readout_lines(data, found, row, dataset)]
        heads = ["Row", *READOUTS.values(), "Seeds", "Budget"]
        tables.append(markup.table(f"{NAMES[dataset]}, test questions. {READOUT_LEGEND}", heads, body))
    return "".join(tables)


def readout_lines(data: dict, found, row: str, dataset: str) -> list[str]:
    head, lines = markup.cell(data["rows"][row]["name"], "th", scope="row"), []
    for source, budget, of_row in report._groups(found, row, dataset):
        cells = [readout_cell(list(of_row.record), name) for name in READOUTS]
        origin = budget + (f", {source}" if source == HERE else "")
        lines.append(markup.line([head, *cells, report._seeds(data, row, of_row), origin]))
    if not lines and not papers.untrained(data, row):
        lines.append(markup.line([head, markup.word("not run"), *["–"] * (len(READOUTS) + 1)]))
    return lines


def readout_cell(records: list[dict], name: str) -> Html:
    """MAP by one readout, underlined where it is the one that ranks. A record from before all readouts were kept has that one alone."""
    readouts = [one.get("readouts") or {one["settings"]["rank_by"]: one["metrics"]} for one in records]
    figure = report.spread([one[name]["test"]["map"] for one in readouts if name in one])
    ranks = all(one["settings"]["rank_by"] == name for one in records)
    return markup.number(Html(f"<u>{figure}</u>") if ranks else figure)


# ------------------------------------------------------------------ counts


class Counts(Shown):
    """The counts that a paper prints for its data sets, beside those of the data under a protocol."""

    required_arguments = 2

    def show(self, paper, protocol):
        self.env.note_dependency(str(ROOT / "asutil" / "data" / "answers.py"))
        return boxed(count_table(papers.read(paper)["counts"], protocol))


def count_table(printed: dict, protocol: str) -> str:
    """A line a side; where a data set was released as a .tsv and is on this machine, also what a reader that knows quoting gets."""
    body = []
    for dataset, sides in printed.items():
        for place, (side, theirs) in enumerate(sides.items()):
            ours = answers.COUNTS[dataset][protocol][side]
            apart = [there - here for there, here in zip(theirs, ours)]
            said = [
                "same"
                if not any(apart)
                else " / ".join(f"{number:+,}".replace("+0", "0").replace("-", "−") for number in apart)
            ]
            head = markup.cell(NAMES[dataset], "th", scope="row", rowspan=str(len(sides)))
            figures = [
                markup.number(one) for one in (_both(theirs), _both(ours), *said, quoted(dataset, protocol, side))
            ]
            body.append(markup.line([*([] if place else [head]), side, *figures]))
    caption = "Questions / candidates, as printed and as they are in the data, which every loading checks."
    return markup.table(caption, ["", "Side", "Paper", "In the data", "Paper − data", 'Read with " as a quote'], body)


def _both(counts) -> str:
    return " / ".join(f"{number:,}" for number in counts)


def quoted(dataset: str, protocol: str, side: str) -> str:
    """What the protocol leaves of a side whose quotation marks are read as quoting; in words where that is not known."""
    hub_id, protocols = answers.HUB[dataset]
    if dataset not in TAB_SEPARATED:
        return "–"
    if hub.mirror(hub_id) is None:
        return "data not at hand"
    table = hub.table(hub_id, protocols[protocol][side][0])
    columns = (table[name].to_pylist() for name in ("question_id", "question", "document_title", "answer", "label"))
    return _both(read_with_quotes("\t".join(map(str, row)) for row in zip(*columns)))


def read_with_quotes(lines) -> tuple[int, int]:
    """Questions with a right candidate, and their candidates, of tab-separated lines (question first, label last) read with quoting."""
    rows = [
        row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter="\t") if row
    ]  # a text may hold empty lines
    right = {row[0] for row in rows if row[-1] == "1"}
    return len(right), sum(row[0] in right for row in rows)


# ------------------------------------------------------------------ orderings and ranked lists


class Orderings(Shown):
    """The paper's claims, those of one order side by side for its data sets."""

    def show(self, paper):
        return boxed(ordering_table(*comparisons.given(paper, None, None)))


def ordering_table(data: dict, found, draws: int = 10_000) -> str:
    """A line two rows, and of each data set the printed difference, and ours below a word on its direction."""
    lines, body, words = {}, [], []
    for claim in data["claims"]:
        lines.setdefault((claim["row_a"], claim["sign"], claim["row_b"]), {})[claim["dataset"]] = claim
    datasets = list(dict.fromkeys(claim["dataset"] for claim in data["claims"]))
    for (row, sign, other), claims in lines.items():
        names = [data["rows"][one]["name"] for one in (row, other)]
        cells = [markup.cell(f" {'ahead of' if sign == '+' else 'behind'} ".join(names), "th", scope="row")]
        for claim in map(claims.get, datasets):
            printed, ours, word = compared(data, found, claim, draws) if claim else ("", "", "")
            cells += [markup.number(printed), Html(f"{markup.word(word)}<small>{ours}</small>") if word else ""]
            words += [word] * bool(word)
        body.append(markup.line(cells))
    counted = ", ".join(f"{words.count(word)} {said}" for word, said in DIRECTIONS.items())
    caption = f"{len(words)} orderings of two rows that the paper names: {counted}. Differences in points, ours with the 95 % interval."
    heads = [head for name in datasets for head in (f"{NAMES[name]}: paper", f"{NAMES[name]}: ours")]
    return markup.table(caption, ["Said", *heads], body)


def compared(data: dict, found, claim: dict, draws: int) -> tuple[Html, str, str]:
    """The printed difference of a claim's two rows, ours over questions, and the word of `comparisons.outcome` on it."""
    row, other, dataset, metric = (claim[key] for key in ("row_a", "row_b", "dataset", "metric"))
    printed = [
        comparisons.printed_points(data["rows"][one]["published"][dataset][metric], data["unit"])
        for one in (row, other)
    ]
    ours = comparisons.outcome(data, found, claim, draws)
    apart = printed[0][0] - printed[1][0]
    theirs = Html(f"{apart:+.1f}{'' if (apart > 0) == (claim['sign'] == '+') else '<small>not as said</small>'}")
    figures = markup.points(ours.questions).replace(" ", "\u00a0")
    return theirs, f"{figures} {escape(ours.reason)}".rstrip(), ours.word


class Asked(Shown):
    """The questions whose candidates the paper prints, as two rows rank them."""

    required_arguments = 3

    def show(self, paper, before, after):
        data, found = comparisons.given(paper, None, None)
        return boxed(asked(data, found, before, after)) or note(
            "The paper's own questions: not run, no two runs of these rows hold them."
        )


def asked(data: dict, found, before: str, after: str) -> str:
    """Both ranked lists of every question that the paper prints, by id (`questions:` of its file); texts where they are at hand."""
    parts, names = [], [data["rows"][row]["name"] for row in (before, after)]
    for pair in examples.best_pairs(data, found, before, after):
        wanted = data.get("questions", {}).get(pair.dataset, ())
        sides = examples._sides(pair, before, after, pair.seeds[0])
        lists = {name: two for name in wanted if all(two := [ranked(side, name) for side in sides])}
        known = examples.at_hand(sides[1].record, pair.dataset, lists)
        if lists:
            where = f"{NAMES.get(pair.dataset, pair.dataset)}, budget {pair.shown_budget}, seed {pair.seeds[0]}."
            parts.append(
                f"<p><strong>{escape(where)}</strong>{'' if known else ' The texts are not at hand: ids stand for them.'}</p>"
            )
        for name, two in lists.items():
            said, texts = examples._joined(known.get(name), name, two)
            parts.append(examples.side_by_side(said, dict(zip(names, two)), texts))
    return "".join(parts)


def ranked(side, question_id: str) -> list:
    """The best candidates of a question by one run, from its folder or from what was committed of it; none where it does not hold it."""
    if side.folder is not None:
        return changes.best_of(rundir.read_table(side.folder), question_id)
    chosen = {entry["question_id"]: entry["candidates"] for entry in side.record.get("chosen", ())}
    return chosen.get(question_id, [])


# ------------------------------------------------------------------ vectors before and after training


class Components(Shown):
    """Questions with their candidates in two dimensions, of a row on a data set: the committed run first, of the largest budget."""

    required_arguments = 3

    def show(self, paper, row, dataset):
        data, found = comparisons.given(paper, None, None)
        if row not in data["rows"]:
            raise ValueError(f"{paper} has no row {row!r} (it has: {', '.join(data['rows'])})")
        one = drawable(found, row, dataset)
        return drawn(pca.plot(one.record["pca"]), said_of(one, data)) if one else not_run(data, row, dataset)


def drawable(found, row: str, dataset: str):
    """The best record with coordinates: a committed one, of the largest budget, of the first seed; None where there is none."""
    lines = [
        one for one in found[(found.row == row) & (found.dataset == dataset)].itertuples() if one.record.get("pca")
    ]
    return max(lines, key=lambda one: (one.source == COMMITTED, BUDGETS.index(one.budget), -one.seed), default=None)


def said_of(one, data: dict) -> str:
    """What the figure shows, in words and from its numbers."""
    shown, where = one.record["pca"], NAMES.get(one.dataset, one.dataset)
    counted = {role: shown["roles"].count(role) for role in pca.ROLES}
    origin = one.budget + ("" if one.source == COMMITTED else f", {one.source}")
    said = (
        f"{data['rows'][one.row]['name']} on {where}, budget {origin}, seed {one.seed}: {counted['question']} questions with "
        f"{counted['positive']} right and {counted['negative']} wrong candidates, in the two directions in which their vectors differ most."
    )
    panels = [name for name in pca.PANELS if name in shown]
    for name in panels:
        near, far = (shown[name]["distance"][role] for role in ("positive", "negative"))
        when = pca.PANELS[name].capitalize() if len(panels) > 1 else "Untrained"
        times = f", {far / near:.2f} times as far" if near else ""
        share = 100 * sum(shown[name]["explained"])
        said += (
            f" {when}, a question is {near:.2f} from its right candidates on average and {far:.2f} from its wrong ones{times}, measured in "
            f"all dimensions; these two hold {share:.0f} % of the variance."
        )
    return said


def not_run(data: dict, row: str, dataset: str) -> str:
    """A line in the place of the figure, with the command of the smallest budget that makes it."""
    said = f"Vectors of {escape(data['rows'][row]['name'])} on {escape(NAMES.get(dataset, dataset))}: not run."
    commands = (command_of(data, budget, row, dataset) for budget in data.get("budgets", {}))
    command = next(filter(None, commands), None)
    return f'<p class="as2-note">{said}{f" <code>{escape(command)}</code> makes them." if command else ""}</p>'


def command_of(data: dict, budget: str, row: str, dataset: str) -> str | None:
    """The command of a row's last run at one budget, with its first seed; None where the budget does not have it."""
    if row not in data["budgets"][budget]["rows"]:
        return None
    apart = lambda notebook, given: Path(
        f"{notebook}-{json.dumps(given, sort_keys=True, default=str)}"
    )  # a plan asks for no real folder
    made = plan.jobs(data["slug"], budget, [row], data["budgets"][budget]["seeds"][:1], folder_for=apart)
    return next((job.command for job in reversed(made) if job.dataset == dataset), None)


DIRECTIVES = {
    "asked": Asked,
    "counts": Counts,
    "networks": Networks,
    "orderings": Orderings,
    "pca": Components,
    "readouts": Readouts,
    "triplet-counts": TripletCounts,
    "triplet-kinds": TripletKinds,
}
