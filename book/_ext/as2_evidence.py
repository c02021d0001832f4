"""Directives of evidence in a long context: the loss drawn, how near questions come to their evidence, and which sentences are nearest."""

from html import escape

from as2_pages import Shown, boxed, note
from as2_vectors import arrow, box, panel, text
from docutils import nodes
from pages import comparisons, examples, report
from sphinx.util.docutils import SphinxDirective

from aslab import records
from aslab.papers import one_of
from aslab.records import HERE
from aslab.show import markup
from aslab.show.markup import NAMES
from asutil import draws
from asutil.data import long_questions
from asutil.io import hub, rundir
from asutil.metrics import changes

BEFORE = "before training"
UNTRAINED = {"random": "map", "document_order": "map", "zero_shot": "map", "all_sentences": "evidence_f1"}
SEEN = {
    "map_raw": "raw vectors",
    "map_projected": "as trained",
    "map_predicted_type": "predicted type",
    "map_evidence_head": "evidence head",
}
WIDTH = 360
NOTHING = "Nearest sentences: not run, no two runs of these rows hold the same questions."
TYPES = ("span", "yes", "no")


# ------------------------------------------------------------------ the loss


class Loss(SphinxDirective):
    """The input with its markers, and the question-evidence loss in the subspace of each question type."""

    def run(self):
        return [nodes.raw("", loss_figure(), format="html")]


def loss_figure() -> str:
    """Two panels: what is read and compared, and what attracts and repels in the subspace of each question type."""
    caption = (
        "Left: one model reads question and passages at once; the vectors of a few markers are what the heads and the loss see. Right: the "
        "same vectors through the projection of every question type. Here the question asks for a span. In the subspace of its type its "
        "evidence attracts (solid arrow), every other sentence repels (dashed line). As another type sees them all sentences repel, "
        "evidence too."
    )
    return (
        f'<figure class="as2-figure" role="group" aria-label="{escape(caption)}"><div class="as2-inputs">{reading()}{subspaces()}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def reading() -> str:
    shapes = box(
        WIDTH / 2, 6, WIDTH - 12, "[q] question [/q]  [doc] [t] title [/t]  [s] s₁ [/s]  [s] s₂ [/s] …", "d"
    ).replace('class="l"', 'class="s"')
    shapes += arrow(WIDTH / 2, 34, WIDTH / 2, 54) + box(WIDTH / 2, 54, WIDTH - 12, "long-context model")
    places = {"q": 44, "s₁": 174, "s₂": 252, "s₃": 326}
    for name, middle in places.items():
        shapes += arrow(middle, 82, middle, 104) + box(middle, 104, 40, name, "d")
    for name, (left, right) in {"type of the question": (6, 134), "evidence or not": (146, 354)}.items():
        shapes += box((left + right) / 2, 160, right - left, name)
    shapes += arrow(44, 132, 60, 160) + "".join(
        arrow(places[name], 132, places[name], 160) for name in ("s₁", "s₂", "s₃")
    )
    shapes += box(WIDTH / 2, 204, WIDTH - 12, "answer: start and end of a span, or a decoder")
    shapes += text(WIDTH / 2, 256, "losses of these three together: L(QA)", "l")
    shapes += text(WIDTH / 2, 280, "q, s₁, s₂, s₃ also go to L(c), on the right", "l")
    return panel("The task", "a question and many passages, read at once", shapes, 294)


def subspaces() -> str:
    shapes, height = "", 92
    for row, name in enumerate(TYPES):
        top, own = 6 + row * height, row == 0
        shapes += f'<rect class="x" x="2" y="{top}" width="{WIDTH - 4}" height="{height - 10}" rx="6"/>'
        words = f"W({name}): the type of this question" if own else f"W({name}): another type, all are negatives"
        shapes += text(WIDTH / 2, top + 16, words, "s") + box(60, top + 36, 44, "q", "d")
        for place, sentence in enumerate(("s₁", "s₂", "s₃")):
            middle, near = 190 + 64 * place, own and place == 0
            shapes += box(middle, top + 36, 44, sentence, "d" if near else "p")
            if near:
                shapes += f'<path class="k" d="M{middle - 22} {top + 50}L84 {top + 50}M92 {top + 45}L84 {top + 50}L92 {top + 55}"/>'
                shapes += text((84 + middle - 22) / 2, top + 44, "evidence", "s")
        start, end = (212, 232) if own else (82, 168)
        shapes += f'<path class="k" stroke-dasharray="4 4" d="M{start} {top + 50}L{end} {top + 50}M276 {top + 50}L296 {top + 50}"/>'
        if not own:
            shapes += f'<path class="k" stroke-dasharray="4 4" d="M212 {top + 50}L232 {top + 50}"/>'
    return panel("The loss", "three subspaces, of which one is right", shapes, 294)


# ------------------------------------------------------------------ how near


class Near(Shown):
    """Mean average precision of questions and their evidence before and after training, by every similarity: of the rows named."""

    required_arguments = 3
    optional_arguments = 97

    def show(self, paper, dataset, *rows):
        return boxed(near_table(*comparisons.given(paper, None, None), dataset, rows))


def near_table(data: dict, found, dataset: str, rows) -> str:
    """A line a row: mAP before training, and after it by raw vectors, as trained, by the predicted type and by the evidence head."""
    body = []
    for row in rows:
        one_of(row, data["rows"], data["slug"], "row")
        head, lines = markup.cell(data["rows"][row]["name"], "th", scope="row"), best(found, row, dataset)
        if lines is None:
            body.append(markup.line([head, markup.word("not run"), *["–"] * (len(SEEN) + 2)]))
            continue
        measured = [records.figures(one) for one in lines.itertuples()]
        started = [one.record["baselines"][BEFORE]["map_projected"] for one in lines.itertuples()]
        figures = [started, *([one[name] for one in measured] for name in SEEN)]
        origin = lines.budget.iloc[0] + (f", {HERE}" if lines.source.iloc[0] == HERE else "")
        body.append(
            markup.line([head, *(markup.number(report.spread(values)) for values in figures), len(lines), origin])
        )
    heads = ["Row", "Before training, dev", *(f"After: {name}" for name in SEEN.values()), "Seeds", "Budget"]
    return markup.table(
        f"{NAMES.get(dataset, dataset)}. Mean average precision of the evidence, in points, mean ± std over seeds.",
        heads,
        body,
    )


def best(found, row: str, dataset: str):
    """The records of a row on a data set: of the largest budget, the committed ones first; None where there are none."""
    lines = found[(found.row == row) & (found.dataset == dataset)]
    if not len(lines):
        return None
    order = max(((rundir.BUDGETS.index(budget), source != HERE) for budget, source in zip(lines.budget, lines.source)))
    return lines[(lines.budget == rundir.BUDGETS[order[0]]) & ((lines.source != HERE) == order[1])]


# ------------------------------------------------------------------ what was read


class LeftOut(Shown):
    """How many questions of each side were read, and what did not fit into the longest input, of a row on a data set."""

    required_arguments = 2
    optional_arguments = 98

    def show(self, paper, row, *datasets):
        return boxed(left_out_table(*comparisons.given(paper, None, None), row, datasets))


def left_out_table(data: dict, found, row: str, datasets) -> str:
    """A line a data set and side, from the record of the row that is `best`."""
    one_of(row, data["rows"], data["slug"], "row")
    body = []
    for dataset in datasets:
        lines = best(found, row, dataset)
        if lines is None:
            body.append(
                markup.line(
                    [markup.cell(NAMES.get(dataset, dataset), "th", scope="row"), markup.word("not run"), *"–––––"]
                )
            )
            continue
        record = lines.iloc[0].record
        for side, lost in record["figures"]["left_out"].items():
            name = markup.cell(f"{NAMES.get(dataset, dataset)}, {side}", "th", scope="row")
            counts = [record["figures"]["read"][side], *(lost[what] for what in ("distractors", "evidence", "others"))]
            cells = [markup.number(f"{record['settings']['max_tokens']:,}"), lines.budget.iloc[0]]
            body.append(markup.line([name, *(markup.number(f"{count:,}") for count in counts), *cells]))
    heads = [
        "Side",
        "Questions",
        "Sentences of passages not chosen",
        "Evidence cut away",
        "Other sentences cut away",
        "Tokens",
        "Budget",
    ]
    return markup.table("What an input holds. Evidence that is cut away counts as missed.", heads, body)


# ------------------------------------------------------------------ what chance gives


class Chance(Shown):
    """What no training reaches on the same contexts, of a row on some data sets."""

    required_arguments = 2
    optional_arguments = 98

    def show(self, paper, row, *datasets):
        return boxed(chance_table(*comparisons.given(paper, None, None), row, datasets))


def chance_table(data: dict, found, row: str, datasets) -> str:
    """A line a data set, from the record of the row that is `best`."""
    one_of(row, data["rows"], data["slug"], "row")
    body = []
    for dataset in datasets:
        head, lines = markup.cell(NAMES.get(dataset, dataset), "th", scope="row"), best(found, row, dataset)
        if lines is None:
            body.append(markup.line([head, markup.word("not run"), *["–"] * len(UNTRAINED)]))
            continue
        known = lines.iloc[0].record["baselines"]
        figures = (markup.number(report.spread([known[name][metric]])) for name, metric in UNTRAINED.items())
        body.append(markup.line([head, *figures, lines.budget.iloc[0]]))
    heads = [
        "Data set",
        *(f"{NAMES[name].capitalize()}, {NAMES[metric]}" for name, metric in UNTRAINED.items()),
        "Budget",
    ]
    return markup.table("Without any training, on the contexts that the models read: points.", heads, body)


# ------------------------------------------------------------------ which sentences


class Nearest(Shown):
    """Questions with the sentences that are nearest to them, by two rows side by side."""

    required_arguments = 3

    def show(self, paper, before, after):
        data, found = comparisons.given(paper, None, None)
        return boxed(nearest(data, found, before, after)) or note(
            "Nearest sentences: not run, no two runs of these rows hold the same questions."
        )


def nearest(data: dict, found, before: str, after: str, limit: int = 3) -> str:
    """Some questions that both rows' records hold, chosen by a hash, with their nearest sentences; texts where they are at hand."""
    pairs, parts = examples.best_pairs(data, found, before, after), []
    names = [data["rows"][row]["name"] for row in (before, after)]
    for pair in pairs:
        sides = examples._sides(pair, before, after, pair.seeds[0])
        held = [lists(side) for side in sides]
        shared = draws.choose(set(held[0]) & set(held[1]), limit)
        if not shared:
            continue
        at_hand = texts(pair.dataset, shared)
        where = f"{NAMES.get(pair.dataset, pair.dataset)}, budget {pair.shown_budget}, seed {pair.seeds[0]}."
        parts.append(
            f"<p><strong>{escape(where)}</strong>{'' if at_hand else ' The texts are not at hand: ids stand for them.'}</p>"
        )
        for name in shared:
            said, of = at_hand.get(name, (name, {}))
            parts.append(examples.side_by_side(said, {title: side[name] for title, side in zip(names, held)}, of))
    return "".join(parts)


def lists(side) -> dict[str, list]:
    """The nearest sentences of a record's questions."""
    if side.folder is not None:
        table = rundir.read_table(side.folder).assign(score=lambda rows: rows["gold"])
        return {name: changes.best_of(table, name) for name in draws.choose(set(table.question_id), 3)}
    return {entry["question_id"]: entry["candidates"] for entry in side.record.get("chosen", ())}


def texts(dataset: str, names) -> dict[str, tuple[str, dict[str, str]]]:
    """question id -> its text, and the text of every sentence by number; nothing where the data set is not on this machine."""
    if dataset in long_questions.HUB and hub.mirror(long_questions.HUB[dataset]) is None:
        return {}
    sides = long_questions.load_evidence(dataset)
    held = {question.id: question for question in sides["test"] or sides["dev"]}
    return {name: (held[name].text, numbered(held[name])) for name in names if name in held}


def numbered(question) -> dict[str, str]:
    units = (
        (f"{p}-{n}", text) for p, passage in enumerate(question.passages) for n, text in enumerate(passage.sentences)
    )
    return {name: text if len(text) <= 300 else text[:299] + "…" for name, text in units}


DIRECTIVES = {
    "evidence-chance": Chance,
    "evidence-left-out": LeftOut,
    "evidence-loss": Loss,
    "evidence-near": Near,
    "evidence-nearest": Nearest,
}
