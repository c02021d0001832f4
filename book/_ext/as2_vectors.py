"""Models that embed each text alone: counts, scoring functions, ranked lists, vectors before and after."""

from html import escape

from as2_figures import drawn
from pages import numbers, register, report, row, table

from aslab import papers, records, rundir
from aslab.analysis import examples, verdicts
from aslab.analysis.report import drawable
from aslab.show import markup, pca
from aslab.show.lists import beside
from aslab.show.markup import NAMES, Html
from asutil.data.answers import TRIPLETS
from asutil.data.data_sets import ANSWERS
from asutil.metrics import changes

READOUTS = {"distance": "Distance", "cosine": "Cosine", "dot": "Dot product", "probability": "Probability"}
READOUT_LEGEND = "MAP in points by each scoring function of the same vectors, mean ± std over seeds; the one that ranks is underlined."

FILES = ["asutil/data/data_sets.py"]


@register("triplet-counts", "", files=FILES)
def triplet_counts(protocol: str) -> str:
    """The number of triplets that the pairs of each data set make under a protocol."""
    body = []
    for (dataset, protocol_of_count), triplets in TRIPLETS.items():
        if protocol_of_count == protocol:
            _, pairs = ANSWERS[dataset].counts[protocol]["train"]
            body.append(row(NAMES[dataset], *numbers(f"{pairs:,}", f"{triplets:,}", f"{triplets / pairs:.2f}")))
    caption = "The training split: pairs of a question and a candidate, and all triplets of a question, a right and a wrong candidate."
    return table(caption, ["", "Pairs", "Triplets", "Triplets a pair"], body)


@register("counts", files=FILES, of_paper=True)
def count_table(data: dict, runs, protocol: str) -> str:
    """The counts that a paper prints for its data sets, next to those of the data under a protocol: a line a split."""
    body = []
    for dataset, splits in data["counts"].items():
        head = [markup.cell(NAMES[dataset], "th", scope="row", rowspan=str(len(splits)))]
        for split, theirs in splits.items():
            ours = ANSWERS[dataset].counts[protocol][split]
            figures = (_both(theirs), _both(ours), _difference(theirs, ours))
            body.append(markup.line([*head, split, *numbers(*figures)]))
            head = []
    caption = "Questions / candidates, as printed and as they are in the data. Loading checks the counts of the data."
    return table(caption, ["", "Split", "Paper", "In the data", "Paper − data"], body)


def _both(counts) -> str:
    return " / ".join(f"{number:,}" for number in counts)


def _difference(counts, others) -> str:
    """The differences of two pairs of counts with their signs: `−3 / 0`."""
    apart = [count - other for count, other in zip(counts, others)]
    signed = (f"{number:+,}".replace("-", "−") if number else "0" for number in apart)
    return " / ".join(signed) if any(apart) else "same"


@register("readouts", of_paper=True)
def readout_table(data: dict, runs) -> str:
    """A table a data set that claims are about: a line a row and budget (untrained ones where they ran), a column a scoring function."""
    tables = []
    for dataset in dict.fromkeys(claim["dataset"] for claim in data["claims"]):
        body = [line for name in data["rows"] for line in readout_lines(data, runs, name, dataset)]
        heads = ["Row", *READOUTS.values(), "Seeds", "Budget"]
        tables.append(table(f"{NAMES[dataset]}, test questions. {READOUT_LEGEND}", heads, body))
    return "".join(tables)


def readout_lines(data: dict, runs, name: str, dataset: str) -> list[str]:
    title, made = data["rows"][name]["name"], []
    for source, budget, lines in verdicts.at_largest_budget(runs, name, dataset):
        cells = [readout_cell(list(lines.record), readout) for readout in READOUTS]
        origin = records.origin(budget, source)
        made.append(row(title, *cells, report.seed_count(data, lines), origin))
    if not made and not papers.untrained(data, name):
        made.append(row(title, markup.word("not run"), *"–" * (len(READOUTS) + 1)))
    return made


def readout_cell(records: list[dict], name: str) -> Html:
    """MAP by one readout, underlined where it is the one that ranks. Older records have that one only."""
    readouts = [record.get("readouts") or {record["settings"]["rank_by"]: record["metrics"]} for record in records]
    figure = markup.spread_text([metrics[name]["test"]["map"] for metrics in readouts if name in metrics])
    ranks = all(record["settings"]["rank_by"] == name for record in records)
    return markup.number(Html(f"<u>{figure}</u>") if ranks else figure)


@register("asked", empty="The paper's own questions: not run, no two runs of these rows hold them.", of_paper=True)
def asked(data: dict, runs, before: str, after: str) -> str:
    """Both ranked lists of every question that the paper prints (`questions:` of its file), where its text is here.

    Else, and where a committed record has no lists of a question: the rank of its first right candidate.
    """
    parts, names = [], [data["rows"][name]["name"] for name in (before, after)]
    for pair in examples.best_pairs(data, runs, before, after):
        both = pair.records_of((before, after), pair.seeds[0])
        printed = data.get("questions", {}).get(pair.dataset, ())
        known, tables = examples.at_hand(both[1].record, pair.dataset, printed), []
        for name in printed:
            two = [ranked(line, name) for line in both]
            title, texts = examples.texts_of(known.get(name), name, two)
            if texts and all(two):
                tables.append(f'<div class="as2-box" tabindex="0">{beside(title, dict(zip(names, two)), texts)}</div>')
            elif line := first_right(name, both, names):
                tables.append(f"<p>{line}</p>")
        if tables:
            parts += [f"<p><strong>{escape(pair.place)}.</strong></p>", *tables]
    return "".join(parts)


def first_right(question_id: str, lines, names: list[str]) -> str:
    """`Q33: the first right candidate has rank 2 by A and rank 1 by B.`; "" where a run does not have the question."""
    reciprocal = [records.per_question(line)["reciprocal_rank"].get(question_id, 0) for line in lines]
    if not all(reciprocal):
        return ""
    ranks = [f"rank {round(1 / value)} by {escape(name)}" for value, name in zip(reciprocal, names)]
    return f"{escape(question_id)}: the first right candidate has {' and '.join(ranks)}."


def ranked(line, question_id: str) -> list:
    """The best candidates of a question by one run, from its folder or committed record; [] without the question."""
    if line.folder is not None:
        return changes.best_of(rundir.read_table(line.folder), question_id)
    chosen = {entry["question_id"]: entry["candidates"] for entry in line.record.get("chosen", ())}
    return chosen.get(question_id, [])


@register("pca", empty="Vectors: not run.", of_paper=True)
def components(data: dict, runs, name: str, dataset: str) -> str:
    """Questions with their candidates in two dimensions, by the record of a row on a data set that `drawable` gives."""
    papers.one_of(name, data["rows"], data["slug"], "row")
    line = drawable(runs, name, dataset)
    return drawn(pca.plot(line.record["pca"]), words_of(line, data)) if line else ""


def words_of(line, data: dict) -> str:
    """What the figure shows, in words and from its numbers."""
    shown, dataset = line.record["pca"], NAMES.get(line.dataset, line.dataset)
    count = {role: shown["roles"].count(role) for role in pca.ROLES}
    origin = records.origin(line.budget, line.source)
    words = (
        f"{data['rows'][line.row]['name']} on {dataset}, budget {origin}, seed {line.seed}: {count['question']} questions with "
        f"{count['positive']} right and {count['negative']} wrong candidates, in the two directions in which their vectors differ most."
    )
    panels = [name for name in pca.PANELS if name in shown]
    for name in panels:
        near, far = (shown[name]["distance"][role] for role in ("positive", "negative"))
        when = pca.PANELS[name].capitalize() if len(panels) > 1 else "Untrained"
        times = f", {far / near:.2f} times as far" if near else ""
        share = 100 * sum(shown[name]["explained"])
        words += (
            f" {when}, a question is {near:.2f} from its right candidates on average and {far:.2f} from its wrong ones{times}, measured in "
            f"all dimensions; these two hold {share:.0f} % of the variance."
        )
    return words
