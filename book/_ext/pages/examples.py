"""Two models on the same questions: which were rescued and which lost, both ranked lists side by side, and where
ranks moved.

Everything here is a function of scores; text is joined where the data set is on this machine. A ranking's lines have
the classes `as2-right` and `as2-wrong`, its table `as2-ranking`.
"""

from functools import lru_cache
from html import escape

import pandas as pd

from aslab import papers, plan, records, rundir
from aslab.analysis import comparisons
from aslab.papers import SPLITS
from aslab.records import HERE
from aslab.show import markup, plots
from aslab.show.markup import NAMES, Html
from asutil.data import answers
from asutil.data.data_sets import ANSWERS
from asutil.draws import choose
from asutil.io import hub
from asutil.metrics.changes import FATES, best_of, fates, move_counts, rank_moves

WITHOUT_TEXT = (
    "<p>The text of this data set is not at hand where this page was built: ids stand for it. The paper's page "
    "<em>Run</em> has the commands that make both rankings again.</p>"
)
NOTHING = '<p class="as2-note">Examples: not run, there is no data set on which both rows have results.</p>'

# ------------------------------------------------------------------ ranked lists


def side_by_side(question: str, lists: dict[str, list], texts: dict[str, str] | None = None) -> str:
    """The best candidates of one question by two models as HTML, list beside list; right ones ✓, wrong ones ✗, texts
    escaped.

    Args:
        lists: name of a model -> its candidates as `best_of` gives them.
        texts: candidate id -> text; a candidate without text is shown by its id.
    """
    body = []
    for rank in range(max(map(len, lists.values()))):
        cells = [_candidate(entries[rank], texts or {}) if rank < len(entries) else "" for entries in lists.values()]
        body.append(markup.line([markup.cell(rank + 1, "th", scope="row"), *cells]))
    return markup.table(question, ["Rank", *lists], body).replace("as2-table", "as2-table as2-beside", 1)


def _candidate(entry: list, texts: dict[str, str]) -> Html:
    name, label, score, _ = entry
    kind, mark, words = ("as2-right", "✓", "answers") if label else ("as2-wrong", "✗", "does not answer")
    text = f'<abbr title="{words}">{mark}</abbr> {escape(str(texts.get(name, name)))} <small>score {score:.3f}</small>'
    return markup.cell(Html(text), kind=kind, **{"data-candidate": str(name)})


# ------------------------------------------------------------------ two rows of a paper


def best_pairs(data: dict, runs: pd.DataFrame, before: str, after: str) -> list[comparisons.Pair]:
    """The best pair of two rows on each data set: the largest budget, there most seeds, this machine's runs among
    equals.

    Columns of a paper's tables that are one split of a data set are left out: test questions are shown.
    """
    for row in (before, after):
        papers.one_of(row, data["rows"], data["slug"], "row")
    printed = [name for table in data["tables"].values() for name in table["datasets"]]
    best = []
    for dataset in dict.fromkeys([*printed, *runs.dataset]):
        if dataset not in (plan.TRANSFER, papers.NOTEBOOKS["pretrain"], *SPLITS):
            pairs = list(comparisons.pairs(runs, after, before, dataset, rundir.BUDGETS))
            best += sorted(pairs, key=lambda p: (rundir.BUDGETS.index(p.budget), len(p.seeds), p.source == HERE))[-1:]
    return best


def moves_of_rows(paper: str, before: str, after: str, runs: pd.DataFrame | None = None, folder=None) -> list[tuple]:
    """(data set, what the figure shows in words, Figure) for each data set on which both rows have run, over all
    seeds.
    """
    data, runs = comparisons.rows_and_runs(paper, runs, folder)
    shown, pairs = [], best_pairs(data, runs, before, after)
    names = [data["rows"][row]["name"] for row in (before, after)]
    for pair in pairs:
        each = [rank_moves(*map(records.per_question, pair.records_of((before, after), seed))) for seed in pair.seeds]
        moves = pd.concat(each)
        words = _moves_in_words(pair, names, move_counts(moves), len(each[0]))
        shown.append((pair.dataset, words, plots.moves_plot(moves, *names)))
    return shown


def _moves_in_words(pair: comparisons.Pair, names: list[str], count: dict[str, int], questions: int) -> str:
    several = len(pair.seeds) > 1
    seeds = f"{len(pair.seeds)} seeds put together" if several else f"seed {pair.seeds[0]}"
    moved = f"{questions:,} questions" + (f" times {len(pair.seeds)} seeds" if several else "")
    return (
        f"{NAMES.get(pair.dataset, pair.dataset)}, budget {pair.shown_budget}, {seeds}: of {moved} the first right candidate "
        f"stands higher after {names[1]} than after {names[0]} for {count['higher']:,}, as before for {count['as before']:,}, "
        f"lower for {count['lower']:,}."
    )


def examples_table(
    paper: str,
    before: str,
    after: str,
    runs: pd.DataFrame | None = None,
    limit: int = 2,
    folder=None,
    dataset: str | None = None,
) -> str:
    """Some questions that are rescued and one that is lost, by two rows as HTML, both ranked lists side by side; a
    part a data set, those whose text is at hand first, or only the one of `dataset`.

    A hash chooses the questions: of this machine's runs among all of them, of committed records among those that they
    hold. Where the data set is not on this machine, ids and the command that makes the ranking again replace the texts.
    """
    data, runs = comparisons.rows_and_runs(paper, runs, folder)
    pairs = [pair for pair in best_pairs(data, runs, before, after) if dataset in (None, pair.dataset)]
    names = [data["rows"][row]["name"] for row in (before, after)]
    parts = [_of_pair(pair, (before, after), names, limit) for pair in pairs]
    parts.sort(key=lambda lines: lines[-1] == WITHOUT_TEXT)  # what can be read comes first
    return "\n".join(part for lines in parts for part in lines) or NOTHING


def _of_pair(pair: comparisons.Pair, rows, names: list[str], limit: int) -> list[str]:
    """The examples of one data set: how many questions have which fate, then the lists."""
    both = pair.records_of(rows, pair.seeds[0])
    fate = fates(*map(records.per_question, both))
    lists = _lists(both, rows[0], fate, limit)
    questions, tables = at_hand(both[1].record, pair.dataset, lists), ""
    for name, two in lists.items():
        title, texts = texts_of(questions.get(name), name, two)
        tables += side_by_side(f"{fate[name].capitalize()}: {title}", dict(zip(names, two)), texts)
    counts = ", ".join(f"{int((fate == word).sum()):,} {word}" for word in FATES)
    parts = [
        f"<p><strong>{escape(pair.place)}.</strong> Of {len(fate):,} questions: {counts}, by first place.</p>{tables}"
    ]
    if not tables:
        parts.append("<p>The committed records of these two rows share no question.</p>")
    elif not questions:
        parts.append(WITHOUT_TEXT)
    return parts


def _lists(both, baseline: str, fate: pd.Series, limit: int) -> dict[str, tuple[list, list]]:
    """question -> both ranked lists: some rescued questions and one lost one, else what the records share."""
    if all(line.folder is not None for line in both):
        tables = [rundir.read_table(line.folder) for line in both]
        names = _chosen(fate, fate.index, limit)
        lists = {name: tuple(best_of(table, name) for table in tables) for name in names}
    else:
        lists = _committed_lists(both, baseline, fate)
    return {name: lists[name] for name in _chosen(fate, lists, limit) or choose(lists, limit)}


def _committed_lists(both, baseline: str, fate: pd.Series) -> dict[str, tuple[list, list]]:
    """The lists of the questions that both records hold; a record also holds its baseline's lists of its own
    questions.
    """
    first, last = ({entry["question_id"]: entry for entry in line.record.get("chosen", ())} for line in both)
    before = {
        name: entry["baseline"]["candidates"]
        for name, entry in last.items()
        if entry.get("baseline", {}).get("row") == baseline
    }
    before |= {name: entry["candidates"] for name, entry in first.items()}
    shared = [name for name in last if name in before and name in fate.index]
    return {name: (before[name], last[name]["candidates"]) for name in shared}


def _chosen(fate: pd.Series, among, limit: int) -> list[str]:
    fate = fate[fate.index.isin(list(among))]
    return [*choose(fate.index[fate == "rescued"], limit), *choose(fate.index[fate == "lost"], 1)]


# ------------------------------------------------------------------ texts


def at_hand(record: dict, dataset: str, question_ids) -> dict:
    """Test questions of a record's data set by id, where their text is on this machine; else none. The hub is not
    asked.

    The text of pydocs follows from versions of packages: with other versions than the record's there is none.
    """
    if dataset not in ANSWERS or (ANSWERS[dataset].hub_id and hub.mirror(ANSWERS[dataset].hub_id) is None):
        return {}
    recorded, fingerprint = record.get("inputs", {}).get("dataset"), answers.fingerprint_of_answers(dataset)
    if dataset == "pydocs" and recorded not in (None, fingerprint):
        return {}
    questions = _test_questions(dataset, record.get("settings", {}).get("protocol", "clean"), fingerprint)
    wanted = set(question_ids)
    return {name: questions[number] for number, name in enumerate(questions.ids) if name in wanted}


@lru_cache
def _test_questions(dataset: str, protocol: str, fingerprint: str) -> answers.Split:
    """A page shows several pairs of rows on the same questions, and pydocs takes seconds to read."""
    return answers.load_answers(dataset, protocol)["test"]


def texts_of(question, name: str, lists) -> tuple[str, dict[str, str]]:
    """Text of a question and its candidates; its id alone where this machine's data differ from what the runs
    ranked.
    """
    candidates = {candidate.id: candidate for candidate in question.candidates} if question else {}
    entries = [(entry[0], entry[1]) for ranked in lists for entry in ranked]
    same = all(id_ in candidates and candidates[id_].label == label for id_, label in entries)
    if not question or not same:
        return name, {}
    return question.text, {candidate.id: candidate.text for candidate in candidates.values()}
