"""Two models on the same questions: which were rescued and which lost, both ranked lists side by side, and where ranks moved.

Everything here is a function of scores; text is joined where the data set is at hand. A ranking's lines have the classes `as2-right` and
`as2-wrong`, its table `as2-ranking`.
"""

import hashlib
import shlex
from functools import lru_cache
from html import escape

import numpy as np
import pandas as pd

from . import comparisons, experiments, hub, markup, metrics, questions, rundir, spelling
from .experiments import HERE
from .markup import NAMES, Html
from .rows import SIDES

FATES = ("rescued", "lost", "right by both", "wrong by both")
TOP = 5
PLACES = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6 to 10": 10, "11 on": np.inf}  # ranks in the plot, by their last one


# ------------------------------------------------------------------ questions


def _first_right(table: pd.DataFrame) -> pd.Series:
    """Reciprocal rank by question, from scores (question_id, label, score) or from values by question."""
    if "score" in table:
        table = metrics.of(table, empty="skip").per_question
    if "question_id" in table:
        table = table.set_index("question_id")
    return table["reciprocal_rank"]


def _both(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Reciprocal ranks of the same questions under both systems."""
    before, after = _first_right(before), _first_right(after)
    if not before.index.is_unique or not after.index.is_unique or set(before.index) != set(after.index):
        raise ValueError(f"the two sides are not the same questions, each once ({len(before)} and {len(after)})")
    return pd.DataFrame({"before": before, "after": after.reindex(before.index)})


def fates(before: pd.DataFrame, after: pd.DataFrame) -> pd.Series:
    """What became of each question's first place: "rescued", "lost", "right by both" or "wrong by both", by question_id.

    Args:
        before, after: scores (question_id, label, score) of two runs, or their values by question (`per_question`), in any order.
    Raises: ValueError where the two are not the same questions.
    """
    right = _both(before, after) == 1
    names = np.select([~right.before & right.after, right.before & ~right.after, right.before & right.after], FATES[:3], FATES[3])
    return pd.Series(names, right.index, dtype=object)


def choose(question_ids, limit: int, seed: int = 0) -> list[str]:
    """At most `limit` of the ids: those with the lowest hash, keyed by the seed. Nobody picks, and the order of the ids has no say."""
    return sorted(map(str, question_ids), key=lambda name: hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest())[:limit]


def rescued(before: pd.DataFrame, after: pd.DataFrame, limit: int = 3, seed: int = 0) -> tuple[list[str], dict[str, int]]:
    """Questions whose best candidate is wrong before and right after, chosen by a keyed hash; and how many have which fate.

    Paper: sentence_objectives, table 6.
    Returns: question ids, and the number of questions of each fate: rescued ones alone would flatter.
    Example:
        >>> before = pd.DataFrame({"question_id": list("aabb"), "label": [1, 0, 0, 1], "score": [0.1, 0.9, 0.2, 0.8]})
        >>> rescued(before, before.assign(score=[0.9, 0.1, 0.2, 0.8]))
        (['a'], {'rescued': 1, 'lost': 0, 'right by both': 1, 'wrong by both': 0})
    """
    found = fates(before, after)
    return choose(found.index[found == "rescued"], limit, seed), {fate: int((found == fate).sum()) for fate in FATES}


def best_of(scores: pd.DataFrame, question_id: str, count: int = TOP) -> list[list]:
    """The best candidates of one question: [candidate_id, label, score, rank], the wrong one first among equals, as in the metrics."""
    ranked = scores[scores.question_id == question_id].sort_values(["score", "label"], ascending=[False, True], kind="stable")
    best = ranked.head(count).itertuples()
    return [[row.candidate_id, int(row.label), round(float(row.score), 4), rank] for rank, row in enumerate(best, 1)]


def sampled(sampler) -> pd.DataFrame:
    """The first group of a `sampling.Sampler`: a line an example, of mspp, where the group is one example, a line a sentence."""
    first = sampler[0]
    if isinstance(first.kind, tuple):
        kinds, labels = ("s0", *first.kind), ("", *first.label)
        return pd.DataFrame({"slot": range(len(first.parts)), "label": labels, "kind": kinds, "text": [text[:200] for text in first.parts]})
    group, parts = [first, *(sampler[i] for i in range(1, 1 + sampler.negatives))], ("first", "second", "context")
    return pd.DataFrame([{"label": e.label, "kind": e.kind, **{name: text[:200] for name, text in zip(parts, e.parts)}} for e in group])


# ------------------------------------------------------------------ ranked lists


def ranked_example(question: str, candidates: list[str], scores, labels, top: int = TOP) -> str:
    """One question with its best candidates as HTML, best first; at one score the wrong candidate stands first, as in the metrics."""
    return compare_rankings(question, candidates, labels, {"score": scores}, top)


def compare_rankings(question: str, candidates: list[str], labels, scores: dict, top: int = TOP) -> str:
    """One question ranked by several models as HTML: rank (score) by each, in the order of the first; texts are escaped.

    Args:
        scores: name of a model -> one score a candidate.
        top: candidates that some model ranks this high are shown.
    """
    for name, values in {"labels": labels, **scores}.items():
        if len(values) != len(candidates):
            raise ValueError(f"one value a candidate: got {len(values)} of {name} for {len(candidates)} candidates")
    orders = {name: sorted(range(len(candidates)), key=lambda i: (-values[i], labels[i])) for name, values in scores.items()}
    shown = [i for i in next(iter(orders.values())) if any(i in order[:top] for order in orders.values())]
    body = []
    for i in shown:
        ranks = [markup.number(f"{order.index(i) + 1} ({scores[name][i]:.3f})") for name, order in orders.items()]
        kind, said = ("as2-right", "✓ answers") if labels[i] else ("as2-wrong", "✗ does not")
        body.append(markup.line([*ranks, said, candidates[i]], kind))
    heads = [*("Rank (score)" if len(scores) == 1 else f"Rank by {name} (score)" for name in orders), "Label", "Candidate"]
    more = f" ({len(candidates) - len(shown)} more candidates)" if len(candidates) > len(shown) else ""
    return markup.table(f"{question}{more}", heads, body).replace("as2-table", "as2-table as2-ranking", 1)


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


# ------------------------------------------------------------------ where ranks moved


def rank_moves(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """The rank of each question's first right candidate under both systems: columns before, after; question_id as index.

    Args: as of `fates`. A question without a right candidate has no such rank and is left out.
    Example:
        >>> before = pd.DataFrame({"question_id": ["a", "b"], "reciprocal_rank": [0.5, 1.0]})
        >>> rank_moves(before, before.assign(reciprocal_rank=[1.0, 0.25])).values.tolist()
        [[2, 1], [1, 4]]
    """
    both = _both(before, after)
    return (1 / both[(both > 0).all(axis=1)]).round().astype(int)


def move_counts(moves: pd.DataFrame) -> dict[str, int]:
    """How many questions have their first right candidate higher, as high, and lower than before."""
    signs = np.sign(moves.before - moves.after)
    return {"higher": int((signs > 0).sum()), "as before": int((signs == 0).sum()), "lower": int((signs < 0).sum())}


def moves_plot(moves: pd.DataFrame, before: str, after: str):
    """Where ranks moved, as a matplotlib Figure: questions by rank before and after, and how many went up, stayed and went down."""
    import seaborn
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure(figsize=(8, 3.9), layout="constrained")
    grid, bars = figure.subplots(1, 2, width_ratios=(3, 2))
    binned = moves.apply(lambda ranks: pd.cut(ranks, [0, *PLACES.values()], labels=list(PLACES)))
    counts = pd.crosstab(binned.before, binned.after, dropna=False).reindex(index=list(PLACES), columns=list(PLACES), fill_value=0)
    blue = seaborn.color_palette("colorblind")[0]
    shades = LinearSegmentedColormap.from_list("shades", [(*blue, 0), (*blue, 0.65)])  # clear to half clear, on any page
    texts = counts.map(lambda count: str(count) if count else "")
    looks = {"norm": PowerNorm(0.5, vmin=0), "cmap": shades, "cbar": False, "annot_kws": {"color": "black"}}
    seaborn.heatmap(counts, annot=texts, fmt="", linewidths=0.5, linecolor="#8888", ax=grid, **looks)
    for place in range(len(PLACES)):
        grid.add_patch(Rectangle((place, place), 1, 1, fill=False, edgecolor="black"))
    grid.set(xlabel=f"rank by {after}", ylabel=f"rank by {before}", title="questions; left of the outlined: higher")
    grid.tick_params(axis="x", rotation=0)
    counted = move_counts(moves)
    seaborn.barplot(x=list(counted.values()), y=list(counted), hue=list(counted), palette="colorblind", legend=False, ax=bars)
    for bar in bars.containers:
        bars.bar_label(bar, padding=3)
    bars.set(xlabel="questions", ylabel="", title="first right candidate")
    bars.margins(x=0.15)
    bars.spines[["top", "right"]].set_visible(False)
    return figure


# ------------------------------------------------------------------ two rows of a paper


def best_pairs(data: dict, found: pd.DataFrame, before: str, after: str) -> list[comparisons.Pair]:
    """Where two rows can be compared best, one pair a data set: the largest rung, there most seeds, this machine's runs among equals.

    Columns that are one side of a data set are left out: what is shown are test questions.
    """
    for row in (before, after):
        if row not in data["rows"]:
            raise ValueError(f"{data['slug']} has no row {row!r}{spelling.nearest(row, data['rows'])} (it has: {', '.join(data['rows'])})")
    printed = [name for table in data["tables"].values() for name in table["datasets"]]
    best = []
    for dataset in dict.fromkeys([*printed, *found.dataset]):
        if dataset not in (experiments.TRANSFER, experiments.NOTEBOOKS["pretrain"], *SIDES):
            known = list(comparisons.pairs(found, after, before, dataset, rundir.RUNGS))
            best += sorted(known, key=lambda p: (rundir.RUNGS.index(p.rung), len(p.seeds), p.source == HERE))[-1:]
    return best


def _sides(pair: comparisons.Pair, before: str, after: str, seed: int):
    """The records of both rows with one seed, of an untrained encoder its only one."""
    lines = [pair.of(row) for row in (before, after)]
    return [next(one[(one.seed == seed) | comparisons.no_spread(one)].itertuples()) for one in lines]


def moves_of_rows(paper: str, before: str, after: str, found: pd.DataFrame | None = None, folder=None) -> list[tuple]:
    """(data set, what the figure says in words, Figure) for each data set on which both rows have run; seeds are put together."""
    data, found = comparisons.given(paper, found, folder)
    known_pairs, shown = best_pairs(data, found, before, after), []
    names = [data["rows"][row]["name"] for row in (before, after)]
    for pair in known_pairs:
        each = [rank_moves(*map(comparisons.per_question, _sides(pair, before, after, seed))) for seed in pair.seeds]
        moves = pd.concat(each)
        counted = move_counts(moves)
        seeds = f"seed {pair.seeds[0]}" if len(each) == 1 else f"{len(each)} seeds put together"
        asked = f"{len(each[0]):,} questions" + (f" times {len(each)} seeds" if len(each) > 1 else "")
        said = (
            f"{NAMES.get(pair.dataset, pair.dataset)}, rung {pair.budget}, {seeds}: of {asked} the first right candidate "
            f"stands higher after {names[1]} than after {names[0]} for {counted['higher']:,}, as before for {counted['as before']:,}, "
            f"lower for {counted['lower']:,}."
        )
        shown.append((pair.dataset, said, moves_plot(moves, *names)))
    return shown


def examples_table(paper: str, before: str, after: str, found: pd.DataFrame | None = None, limit: int = 2, folder=None) -> str:
    """Questions of two rows as HTML: some that are rescued, one that is lost, both ranked lists side by side; a part a data set.

    A hash chooses the questions. From this machine's runs it chooses among all of them, from committed records among those that they
    hold. Texts are joined where the data set is at hand, else ids stand for them, and the command that makes the ranking again.
    """
    data, found = comparisons.given(paper, found, folder)
    known_pairs, parts = best_pairs(data, found, before, after), []
    names = [data["rows"][row]["name"] for row in (before, after)]
    for pair in known_pairs:
        sides = _sides(pair, before, after, pair.seeds[0])
        fate = fates(*map(comparisons.per_question, sides))
        lists = _lists(sides, before, fate, limit)
        known, shown = at_hand(sides[1].record, pair.dataset, lists), []
        for question, two in lists.items():
            text, texts = _joined(known.get(question), question, two)
            shown.append(side_by_side(f"{fate[question].capitalize()}: {text}", dict(zip(names, two)), texts))
        counted = ", ".join(f"{int((fate == one).sum()):,} {one}" for one in FATES)
        where = f"{NAMES.get(pair.dataset, pair.dataset)}, rung {pair.budget}, seed {pair.seeds[0]}"
        parts.append(f"<p><strong>{escape(where)}.</strong> Of {len(fate):,} questions: {counted}, by first place.</p>" + "".join(shown))
        if not shown:
            parts.append("<p>The committed records of these two rows share no question.</p>")
        elif not known:
            parts.append(f"<p>The text of this data set is not at hand: ids stand for it. {_command(sides[1].record)}</p>")
    return "\n".join(parts) or '<p class="as2-note">Examples: not run, there is no data set on which both rows have results.</p>'


def _lists(sides, baseline: str, fate: pd.Series, limit: int) -> dict[str, tuple[list, list]]:
    """question -> both ranked lists: some rescued questions and one lost one, else what the records share."""
    if all(one.folder is not None for one in sides):
        tables = [rundir.read_table(one.folder) for one in sides]
        known = {name: tuple(best_of(table, name) for table in tables) for name in _chosen(fate, fate.index, limit)}
    else:
        first, last = ({entry["question_id"]: entry for entry in one.record.get("chosen", ())} for one in sides)
        beside = {name: entry["baseline"]["candidates"] for name, entry in last.items() if entry.get("baseline", {}).get("row") == baseline}
        beside |= {name: entry["candidates"] for name, entry in first.items()}
        known = {name: (beside[name], entry["candidates"]) for name, entry in last.items() if name in beside and name in fate.index}
    return {name: known[name] for name in _chosen(fate, known, limit) or choose(known, limit)}


def _chosen(fate: pd.Series, among, limit: int) -> list[str]:
    held = fate[fate.index.isin(list(among))]
    return [*choose(held.index[held == "rescued"], limit), *choose(held.index[held == "lost"], 1)]


def at_hand(record: dict, dataset: str, question_ids) -> dict:
    """Test questions of a record's data set by id, where their text is on this machine; else nothing: the hub is not asked."""
    if dataset not in questions.NAMES or (dataset in questions.HUB and hub.mirror(questions.HUB[dataset][0]) is None):
        return {}
    made_from, fingerprint = record.get("inputs", {}).get("dataset"), questions.fingerprint(dataset)
    if dataset == "pydocs" and made_from not in (None, fingerprint):  # other versions of packages have other texts
        return {}
    split, wanted = _test_split(dataset, record.get("settings", {}).get("protocol", "clean"), fingerprint), set(question_ids)
    return {name: split[place] for place, name in enumerate(split.ids) if name in wanted}


@lru_cache
def _test_split(dataset: str, protocol: str, fingerprint: str) -> questions.Split:
    """A page shows several pairs of rows on the same questions, and pydocs takes seconds to read."""
    return questions.load(dataset, protocol)["test"]


def _joined(question, name: str, lists) -> tuple[str, dict[str, str]]:
    """Text of a question and its candidates; ids where this machine's data hold the question in another form than the runs."""
    known = {candidate.id: candidate for candidate in question.candidates} if question else {}
    if not question or any(entry[0] not in known or known[entry[0]].label != entry[1] for entries in lists for entry in entries):
        return name, {}
    return question.text, {one.id: one.text for one in known.values()}


def _command(record: dict) -> str:
    given = " ".join(f"-p {name} {shlex.quote(str(value))}" for name, value in record.get("given", {}).items())
    text = f"papermill notebooks/{record['notebook']}.ipynb {given}".strip()
    return f"The second ranking is made again by <code>{escape(text)}</code>."
