"""Two models on the same questions: which were rescued and which lost, both ranked lists side by side, and where ranks moved.

Everything here is a function of scores; text is joined where the data set is at hand. A ranking's lines have the classes `as2-right` and
`as2-wrong`, its table `as2-ranking`.
"""

import shlex
from functools import lru_cache
from html import escape

import pandas as pd

from aslab import papers, plan, records
from aslab.papers import SPLITS
from aslab.records import HERE
from aslab.show import markup, plots
from aslab.show.markup import NAMES, Html
from asutil.data import answers
from asutil.draws import choose
from asutil.io import hub, rundir, spelling
from asutil.metrics.changes import FATES, best_of, move_counts, rank_moves
from asutil.metrics.changes import fates as changes
from pages import comparisons

# ------------------------------------------------------------------ ranked lists


def side_by_side(question: str, lists: dict[str, list], texts: dict[str, str] | None = None) -> str:
    """The best candidates of one question by two models as HTML, list beside list; right ones ✓, wrong ones ✗, texts escaped.

    Args:
        lists: name of a model -> its candidates as `best_of` gives them.
        texts: candidate id -> text; an id without one is shown itself.
    """
    body = []
    for place in range(max(map(len, lists.values()))):
        cells = [_candidate(entries[place], texts or {}) if place < len(entries) else "" for entries in lists.values()]
        body.append(markup.line([markup.cell(place + 1, "th", scope="row"), *cells]))
    return markup.table(question, ["Rank", *lists], body).replace("as2-table", "as2-table as2-beside", 1)


def _candidate(entry: list, texts: dict[str, str]) -> Html:
    name, label, score, _ = entry
    kind, mark, said = ("as2-right", "✓", "answers") if label else ("as2-wrong", "✗", "does not answer")
    text = f'<abbr title="{said}">{mark}</abbr> {escape(str(texts.get(name, name)))} <small>score {score:.3f}</small>'
    return markup.cell(Html(text), kind=kind)


# ------------------------------------------------------------------ two rows of a paper


def best_pairs(data: dict, found: pd.DataFrame, before: str, after: str) -> list[comparisons.Pair]:
    """Where two rows can be compared best, one pair a data set: the largest budget, there most seeds, this machine's runs among equals.

    Columns that are one side of a data set are left out: what is shown are test questions.
    """
    for row in (before, after):
        if row not in data["rows"]:
            raise ValueError(
                f"{data['slug']} has no row {row!r}{spelling.nearest(row, data['rows'])} (it has: {', '.join(data['rows'])})"
            )
    printed = [name for table in data["tables"].values() for name in table["datasets"]]
    best = []
    for dataset in dict.fromkeys([*printed, *found.dataset]):
        if dataset not in (plan.TRANSFER, papers.NOTEBOOKS["pretrain"], *SPLITS):
            known = list(comparisons.pairs(found, after, before, dataset, rundir.BUDGETS))
            best += sorted(known, key=lambda p: (rundir.BUDGETS.index(p.budget), len(p.seeds), p.source == HERE))[-1:]
    return best


def _sides(pair: comparisons.Pair, before: str, after: str, seed: int):
    """The records of both rows with one seed, of an untrained encoder its only one."""
    lines = [pair.of(row) for row in (before, after)]
    return [next(one[(one.seed == seed) | records.no_spread(one)].itertuples()) for one in lines]


def moves_of_rows(paper: str, before: str, after: str, found: pd.DataFrame | None = None, folder=None) -> list[tuple]:
    """(data set, what the figure says in words, Figure) for each data set on which both rows have run; seeds are put together."""
    data, found = comparisons.given(paper, found, folder)
    known_pairs, shown = best_pairs(data, found, before, after), []
    names = [data["rows"][row]["name"] for row in (before, after)]
    for pair in known_pairs:
        each = [rank_moves(*map(records.per_question, _sides(pair, before, after, seed))) for seed in pair.seeds]
        moves = pd.concat(each)
        counted = move_counts(moves)
        seeds = f"seed {pair.seeds[0]}" if len(each) == 1 else f"{len(each)} seeds put together"
        asked = f"{len(each[0]):,} questions" + (f" times {len(each)} seeds" if len(each) > 1 else "")
        said = (
            f"{NAMES.get(pair.dataset, pair.dataset)}, budget {pair.shown_budget}, {seeds}: of {asked} the first right candidate "
            f"stands higher after {names[1]} than after {names[0]} for {counted['higher']:,}, as before for {counted['as before']:,}, "
            f"lower for {counted['lower']:,}."
        )
        shown.append((pair.dataset, said, plots.moves_plot(moves, *names)))
    return shown


def examples_table(
    paper: str, before: str, after: str, found: pd.DataFrame | None = None, limit: int = 2, folder=None
) -> str:
    """Questions of two rows as HTML: some that are rescued, one that is lost, both ranked lists side by side; a part a data set.

    A hash chooses the questions. From this machine's runs it chooses among all of them, from committed records among those that they
    hold. Texts are joined where the data set is at hand, else ids stand for them, and the command that makes the ranking again.
    """
    data, found = comparisons.given(paper, found, folder)
    known_pairs, parts = best_pairs(data, found, before, after), []
    names = [data["rows"][row]["name"] for row in (before, after)]
    for pair in known_pairs:
        sides = _sides(pair, before, after, pair.seeds[0])
        fate = changes(*map(records.per_question, sides))
        lists = _lists(sides, before, fate, limit)
        known, shown = at_hand(sides[1].record, pair.dataset, lists), []
        for question, two in lists.items():
            text, texts = _joined(known.get(question), question, two)
            shown.append(side_by_side(f"{fate[question].capitalize()}: {text}", dict(zip(names, two)), texts))
        counted = ", ".join(f"{int((fate == one).sum()):,} {one}" for one in FATES)
        where = f"{NAMES.get(pair.dataset, pair.dataset)}, budget {pair.shown_budget}, seed {pair.seeds[0]}"
        parts.append(
            f"<p><strong>{escape(where)}.</strong> Of {len(fate):,} questions: {counted}, by first place.</p>"
            + "".join(shown)
        )
        if not shown:
            parts.append("<p>The committed records of these two rows share no question.</p>")
        elif not known:
            parts.append(
                f"<p>The text of this data set is not at hand: ids stand for it. {_command(sides[1].record)}</p>"
            )
    return (
        "\n".join(parts)
        or '<p class="as2-note">Examples: not run, there is no data set on which both rows have results.</p>'
    )


def _lists(sides, baseline: str, fate: pd.Series, limit: int) -> dict[str, tuple[list, list]]:
    """question -> both ranked lists: some rescued questions and one lost one, else what the records share."""
    if all(one.folder is not None for one in sides):
        tables = [rundir.read_table(one.folder) for one in sides]
        known = {name: tuple(best_of(table, name) for table in tables) for name in _chosen(fate, fate.index, limit)}
    else:
        first, last = ({entry["question_id"]: entry for entry in one.record.get("chosen", ())} for one in sides)
        beside = {
            name: entry["baseline"]["candidates"]
            for name, entry in last.items()
            if entry.get("baseline", {}).get("row") == baseline
        }
        beside |= {name: entry["candidates"] for name, entry in first.items()}
        known = {
            name: (beside[name], entry["candidates"])
            for name, entry in last.items()
            if name in beside and name in fate.index
        }
    return {name: known[name] for name in _chosen(fate, known, limit) or choose(known, limit)}


def _chosen(fate: pd.Series, among, limit: int) -> list[str]:
    held = fate[fate.index.isin(list(among))]
    return [*choose(held.index[held == "rescued"], limit), *choose(held.index[held == "lost"], 1)]


def at_hand(record: dict, dataset: str, question_ids) -> dict:
    """Test questions of a record's data set by id, where their text is on this machine; else nothing: the hub is not asked."""
    if dataset not in answers.NAMES or (dataset in answers.HUB and hub.mirror(answers.HUB[dataset][0]) is None):
        return {}
    made_from, fingerprint = record.get("inputs", {}).get("dataset"), answers.fingerprint(dataset)
    if dataset == "pydocs" and made_from not in (None, fingerprint):  # other versions of packages have other texts
        return {}
    split, wanted = (
        _test_split(dataset, record.get("settings", {}).get("protocol", "clean"), fingerprint),
        set(question_ids),
    )
    return {name: split[place] for place, name in enumerate(split.ids) if name in wanted}


@lru_cache
def _test_split(dataset: str, protocol: str, fingerprint: str) -> answers.Split:
    """A page shows several pairs of rows on the same questions, and pydocs takes seconds to read."""
    return answers.load_answers(dataset, protocol)["test"]


def _joined(question, name: str, lists) -> tuple[str, dict[str, str]]:
    """Text of a question and its candidates; ids where this machine's data hold the question in another form than the runs."""
    known = {candidate.id: candidate for candidate in question.candidates} if question else {}
    if not question or any(
        entry[0] not in known or known[entry[0]].label != entry[1] for entries in lists for entry in entries
    ):
        return name, {}
    return question.text, {one.id: one.text for one in known.values()}


def _command(record: dict) -> str:
    given = " ".join(f"-p {name} {shlex.quote(str(value))}" for name, value in record.get("given", {}).items())
    text = f"papermill notebooks/{record['notebook']}.ipynb {given}".strip()
    return f"The second ranking is made again by <code>{escape(text)}</code>."
