"""Directives of evidence in a long context: the loss drawn, how near questions come to their evidence, and which
sentences are nearest.
"""

from html import escape

from as2_pages import Shown, boxed, note
from as2_svg import WIDTH, arrow, box, figure, panel, text
from docutils import nodes
from pages import examples
from sphinx.util.docutils import SphinxDirective

from aslab import records, rundir
from aslab.analysis import comparisons
from aslab.papers import one_of
from aslab.records import HERE
from aslab.show import markup
from aslab.show.markup import NAMES
from asutil import draws
from asutil.data import long_questions
from asutil.data.data_sets import LONG
from asutil.io import hub
from asutil.metrics import changes

BEFORE = "before training"  # the baseline of a record that is its model before its own training
UNTRAINED = {
    "random": "map",
    "document_order": "map",
    "zero_shot": "map",
    "all_sentences": "evidence_f1",
    "most_frequent_answer": "answer_f1",
}
SEEN = {
    "map_raw": "raw vectors",
    "map_projected": "as trained",
    "map_predicted_type": "predicted type",
    "map_evidence_head": "evidence head",
}
TYPES = ("span", "yes", "no")
LONGEST = 300  # characters of a sentence that are shown


# ------------------------------------------------------------------ the loss


class Loss(SphinxDirective):
    """The input with its markers, and the question-evidence loss in the subspace of each question type."""

    def run(self):
        return [nodes.raw("", loss_figure(), format="html")]


def loss_figure() -> str:
    """Two panels: what is read and compared, and what attracts and repels in the subspace of each question type."""
    caption = (
        "Left: one model reads question and passages at once; heads and loss see the vectors of a few markers. Right: the same vectors "
        "through the projection of every question type. Here the question asks for a span. In the subspace of its type its evidence "
        "attracts (solid arrow), every other sentence repels (dashed line). In the subspaces of the other types all sentences repel, "
        "evidence too."
    )
    return figure(f'<div class="as2-inputs">{reading()}{subspaces()}</div>', caption)


def reading() -> str:
    wide, middle = WIDTH - 12, WIDTH / 2
    read = "[q] question [/q]  [doc] [t] title [/t]  [s] s₁ [/s]  [s] s₂ [/s] …"
    shapes = box(middle, 6, wide, read, "d", "s")
    shapes += arrow(middle, 34, middle, 54) + box(middle, 54, wide, "long-context model")
    markers = {"q": 44, "s₁": 174, "s₂": 252, "s₃": 326}
    for name, x in markers.items():
        shapes += arrow(x, 82, x, 104) + box(x, 104, 40, name, "d")
    for name, (left, right) in {"type of the question": (6, 134), "evidence or not": (146, 354)}.items():
        shapes += box((left + right) / 2, 160, right - left, name)
    shapes += arrow(44, 132, 60, 160)
    shapes += "".join(arrow(markers[name], 132, markers[name], 160) for name in ("s₁", "s₂", "s₃"))
    shapes += box(middle, 204, wide, "answer: start and end of a span, or a decoder")
    shapes += text(middle, 256, "losses of these three together: L(QA)", "l")
    shapes += text(middle, 280, "q, s₁, s₂, s₃ also go to L(c), on the right", "l")
    return panel("The task", "a question and many passages, read at once", shapes, 294)


def subspaces() -> str:
    height = 92
    shapes = "".join(subspace(name, 6 + number * height, height, own=number == 0) for number, name in enumerate(TYPES))
    return panel("The loss", "three subspaces, of which one is right", shapes, 294)


def subspace(name: str, top: float, height: float, own: bool) -> str:
    """Question and sentences as one type sees them; `own` is the type of the question."""
    words = f"W({name}): the type of this question" if own else f"W({name}): another type, all are negatives"
    shapes = f'<rect class="x" x="2" y="{top}" width="{WIDTH - 4}" height="{height - 10}" rx="6"/>'
    shapes += text(WIDTH / 2, top + 16, words, "s") + box(60, top + 36, 44, "q", "d")
    line = top + 50
    for number, sentence in enumerate(("s₁", "s₂", "s₃")):
        middle, near = 190 + 64 * number, own and number == 0
        shapes += box(middle, top + 36, 44, sentence, "d" if near else "p")
        if near:
            head = f"M92 {line - 5}L84 {line}L92 {line + 5}"
            shapes += f'<path class="k" d="M{middle - 22} {line}L84 {line}{head}"/>'
            shapes += text((84 + middle - 22) / 2, top + 44, "evidence", "s")
    start, end = (212, 232) if own else (82, 168)
    shapes += f'<path class="k" stroke-dasharray="4 4" d="M{start} {line}L{end} {line}M276 {line}L296 {line}"/>'
    if not own:
        shapes += f'<path class="k" stroke-dasharray="4 4" d="M212 {line}L232 {line}"/>'
    return shapes


# ------------------------------------------------------------------ how near


class Near(Shown):
    """Mean average precision of questions and their evidence before and after training, by every similarity: of
    the rows named.
    """

    required_arguments = 3
    optional_arguments = 97

    def show(self, paper, dataset, *rows):
        return boxed(near_table(*comparisons.rows_and_runs(paper), dataset, rows))


def near_table(data: dict, runs, dataset: str, rows) -> str:
    """A line a row: mAP before training, and after it by raw vectors, as trained, by the predicted type and by
    the evidence head.
    """
    body = []
    for row in rows:
        one_of(row, data["rows"], data["slug"], "row")
        head, lines = markup.cell(data["rows"][row]["name"], "th", scope="row"), best(runs, row, dataset)
        if lines is None:
            body.append(markup.line([head, markup.word("not run"), *["–"] * (len(SEEN) + 2)]))
            continue
        after = [records.figures(line) for line in lines.itertuples()]
        before = [line.record["baselines"][BEFORE]["map_projected"] for line in lines.itertuples()]
        figures = [before, *([metrics[name] for metrics in after] for name in SEEN)]
        cells = [markup.spread(values) for values in figures]
        origin = lines.budget.iloc[0] + (f", {HERE}" if lines.source.iloc[0] == HERE else "")
        body.append(markup.line([head, *cells, len(lines), origin]))
    heads = ["Row", "Before training, dev", *(f"After: {name}" for name in SEEN.values()), "Seeds", "Budget"]
    title = f"{NAMES.get(dataset, dataset)}. Mean average precision of the evidence, in points, mean ± std over seeds."
    return markup.table(title, heads, body)


def best(runs, row: str, dataset: str):
    """The records of a row on a data set: of the largest budget, the committed ones first; None where there are
    none.
    """
    lines = runs[(runs.row == row) & (runs.dataset == dataset)]
    if not len(lines):
        return None
    each = zip(lines.budget, lines.source)
    budget, committed = max((rundir.BUDGETS.index(budget), source != HERE) for budget, source in each)
    return lines[(lines.budget == rundir.BUDGETS[budget]) & ((lines.source != HERE) == committed)]


# ------------------------------------------------------------------ what was read


class LeftOut(Shown):
    """The number of questions of each split that a row read, and what did not fit into the longest input."""

    required_arguments = 2
    optional_arguments = 98

    def show(self, paper, row, *datasets):
        return boxed(left_out_table(*comparisons.rows_and_runs(paper), row, datasets))


def left_out_table(data: dict, runs, row: str, datasets) -> str:
    """A line a data set and split, from the record of the row that is `best`."""
    one_of(row, data["rows"], data["slug"], "row")
    body = []
    for dataset in datasets:
        name, lines = NAMES.get(dataset, dataset), best(runs, row, dataset)
        if lines is None:
            body.append(markup.line([markup.cell(name, "th", scope="row"), markup.word("not run"), *"–––––"]))
            continue
        record = lines.iloc[0].record
        for split, lost in record["figures"]["left_out"].items():
            head = markup.cell(f"{name}, {split}", "th", scope="row")
            counts = [record["figures"]["read"][split], lost["distractors"], lost["evidence"], lost["others"]]
            cells = [markup.number(f"{record['settings']['max_tokens']:,}"), lines.budget.iloc[0]]
            body.append(markup.line([head, *(markup.number(f"{count:,}") for count in counts), *cells]))
    heads = ["Split", "Questions", "Sentences of passages not chosen", "Evidence cut away", "Other sentences cut away"]
    title = "The content of the inputs. Evidence that is cut away counts as missed."
    return markup.table(title, [*heads, "Tokens", "Budget"], body)


# ------------------------------------------------------------------ what chance gives


class Chance(Shown):
    """The figures of untrained baselines on the contexts of a row, for some data sets."""

    required_arguments = 2
    optional_arguments = 98

    def show(self, paper, row, *datasets):
        return boxed(chance_table(*comparisons.rows_and_runs(paper), row, datasets))


def chance_table(data: dict, runs, row: str, datasets) -> str:
    """A line a data set, from the record of the row that is `best`."""
    one_of(row, data["rows"], data["slug"], "row")
    body = []
    for dataset in datasets:
        head, lines = markup.cell(NAMES.get(dataset, dataset), "th", scope="row"), best(runs, row, dataset)
        if lines is None:
            body.append(markup.line([head, markup.word("not run"), *["–"] * len(UNTRAINED)]))
            continue
        baselines = lines.iloc[0].record["baselines"]
        figures = (markup.spread([baselines[name][metric]]) for name, metric in UNTRAINED.items())
        body.append(markup.line([head, *figures, lines.budget.iloc[0]]))
    heads = [f"{NAMES[name].capitalize()}, {NAMES[metric]}" for name, metric in UNTRAINED.items()]
    title = "Without any training, on the contexts that the models read: points."
    return markup.table(title, ["Data set", *heads, "Budget"], body)


# ------------------------------------------------------------------ which sentences


class Nearest(Shown):
    """Questions with the sentences that are nearest to them, by two rows side by side."""

    required_arguments = 3

    def show(self, paper, before, after):
        data, runs = comparisons.rows_and_runs(paper)
        return boxed(nearest(data, runs, before, after)) or note(
            "Nearest sentences: not run, no two runs of these rows hold the same questions."
        )


def nearest(data: dict, runs, before: str, after: str, limit: int = 3) -> str:
    """Some questions that both rows' records hold, chosen by a hash, with their nearest sentences; texts where
    they are at hand.
    """
    parts, pairs = [], examples.best_pairs(data, runs, before, after)
    names = [data["rows"][row]["name"] for row in (before, after)]
    for pair in pairs:
        each = [lists(line) for line in pair.records_of((before, after), pair.seeds[0])]
        shared = draws.choose(set.intersection(*map(set, each)), limit)
        if not shared:
            continue
        at_hand = texts(pair.dataset, shared)
        without = "" if at_hand else " The texts are not at hand: ids stand for them."
        parts.append(f"<p><strong>{escape(pair.place)}.</strong>{without}</p>")
        for question_id in shared:
            question, sentences = at_hand.get(question_id, (question_id, {}))
            two = {name: of_row[question_id] for name, of_row in zip(names, each)}
            parts.append(examples.side_by_side(question, two, sentences))
    return "".join(parts)


def lists(line) -> dict[str, list]:
    """The nearest sentences of a record's questions."""
    if line.folder is not None:
        table = rundir.read_table(line.folder).assign(score=lambda rows: rows["gold"])
        return {name: changes.best_of(table, name) for name in draws.choose(set(table.question_id), 3)}
    return {entry["question_id"]: entry["candidates"] for entry in line.record.get("chosen", ())}


def texts(dataset: str, names) -> dict[str, tuple[str, dict[str, str]]]:
    """question id -> its text, and the text of every sentence by number; empty where the data set is not on this
    machine.
    """
    if LONG[dataset].hub_id and hub.mirror(LONG[dataset].hub_id) is None:
        return {}
    splits = long_questions.load_evidence(dataset)
    questions = {question.id: question for question in splits["test"] or splits["dev"]}
    return {name: (questions[name].text, numbered(questions[name])) for name in names if name in questions}


def numbered(question) -> dict[str, str]:
    """`passage-sentence` -> the text of a sentence, cut to `LONGEST` characters."""
    sentences = {
        f"{p}-{n}": text for p, passage in enumerate(question.passages) for n, text in enumerate(passage.sentences)
    }
    return {name: text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for name, text in sentences.items()}


DIRECTIVES = {
    "evidence-chance": Chance,
    "evidence-left-out": LeftOut,
    "evidence-loss": Loss,
    "evidence-near": Near,
    "evidence-nearest": Nearest,
}
