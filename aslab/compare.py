"""Compares rankings of the same questions: metrics with intervals, two tests for every pair, and the questions whose rank changed.

A run is a name or folder of a finished run, or a TREC run file of any program; files need the qrels. Each ranker of a run of rank counts.
"""

import itertools
import string
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from click import Choice

from asutil import metrics
from asutil.data import answers
from asutil.draws import choose
from asutil.metrics import changes, rankings, significance, trec

from . import closing, commands, rankers, rundir, transfer
from .commands import argument, option
from .records import PER_QUESTION

# MAP, which decides, comes first.
METRICS = {"map": PER_QUESTION["map"]} | PER_QUESTION
MISSING = ("refuse", "drop", "zero")
FORMS = ("text", "markdown", "html")
WIDE = 24  # characters of a name in a table; a longer one has a letter, which a line explains
SHOWN = 5  # questions of each kind that moved, by name


# ------------------------------------------------------------------ what is compared


def read(
    names: list[str], qrels: Path | None = None, relevant_from: int = 1, dataset: str | None = None, metric: str = "map"
) -> dict[str, pd.DataFrame]:
    """Name of a run -> the metrics of each of its questions, with question_id as index.

    Args:
        dataset: the questions that are compared: each run's own, or those that it also ranked; by default its own.
        metric: one of `METRICS`, or one more of `ir_measures` (nDCG@10).

    Where one of them is a TREC file, all are measured against the qrels by trec_eval, which breaks ties by id. Without files a wrong
    candidate goes before a right one at the same score.
    Raises: ValueError for a name that is no run and no file, files without qrels, two runs of one name, and runs on different labels.
    """
    if relevant_from > 1 and qrels is None:
        raise ValueError(f"--relevant-from {relevant_from} goes with --qrels: labels of finished runs are 0 and 1")
    scores, records = {}, []
    more = () if metric in METRICS else (metric,)
    for measure in more:
        trec.measure_named(measure)
    for name in names:
        run, path = rundir.find(name), Path(name)
        if run is None and not path.is_file():
            raise ValueError(f"{name}: expected the name or folder of a finished run, or a TREC run file")
        if run is None and qrels is None:
            raise ValueError(f"{name} is a TREC run file: --qrels is needed with it")
        short = run.name if run else path.name
        if any(known == short or known.startswith(f"{short}:") for known in scores):
            raise ValueError(f"two runs are called {short}: give each another name")
        if run is None:
            scores[short] = trec.read_run(path)
            continue
        records.append(rundir.read_record(run))
        *_, file = _measured_on(records[-1], dataset)
        if records[-1].get("notebook") == "rank":
            table = rundir.read_table(run, rankers.SCORES, ("ranker", "question_id"), ("label", "score"))
            scores |= {f"{short}:{name}": own for name, own in table.groupby("ranker", sort=False)}
        else:
            scores[short] = rundir.read_table(run, file, numbers=("label", "score"))
    if any(record.get("notebook") == "rank" for record in records):
        _require_same_data(records, dataset)
    if qrels is None:
        _require_same_candidates(scores)
        rankings_of = {name: rankings.of(table, empty="skip") for name, table in scores.items()}
        values = {name: ranking.per_question.set_index("question_id") for name, ranking in rankings_of.items()}
        judged = {name: table.assign(relevance=table["label"]) for name, table in scores.items()}
        scores = {name: trec.untied(table) for name, table in scores.items()}
    else:
        labels = trec.read_qrels(qrels, relevant_from)
        for name, table in scores.items():
            trec.require_judged(name, table, labels)
        values = {name: trec.by_trec_eval(table, labels) for name, table in scores.items()}
        judged = dict.fromkeys(scores, labels)
    for name, measure in itertools.product(scores, more):
        values[name] = values[name].join(trec.by_measure(scores[name], judged[name], measure, relevant_from))
    return values


def _measured_on(record: dict, asked: str | None) -> tuple[str | None, str | None, str]:
    """The data set that a run is compared on (`rerank` names none), its sha256, and the file of scores. Raises: ValueError."""
    own, others = record["settings"].get("dataset"), record.get("transfer", {})
    if asked not in (None, own, *others):
        ranked = f"{record['name']} ranked {', '.join([str(own), *others])}"
        raise ValueError(f"--dataset {asked}: {ranked}; also_rank of finetune and embed ranks more")
    if asked in others:
        return asked, others[asked].get("fingerprint"), transfer.file_of(asked, "test")
    return own, record.get("inputs", {}).get("dataset"), "scores.parquet"


def _require_same_candidates(scores: dict[str, pd.DataFrame]) -> None:
    """Refuse other candidates or labels of a question that two tables share.

    Ids of a user's questions follow from the name of the file: another content has the same. Raises: ValueError.
    """
    # Each question as the first run that ranked it has it.
    known = pd.DataFrame(columns=["question_id", "candidate_id", "label", "run"])
    for name, table in scores.items():
        table = table[["question_id", "candidate_id", "label"]].astype({"label": int})
        first_of = dict(zip(known.question_id, known.run))
        new = ~table.question_id.isin(first_of)
        ours, theirs = known[known.question_id.isin(table.question_id)], table[~new]
        known = pd.concat([known, table[new].assign(run=name)])
        both = ours.merge(theirs, "outer", ["question_id", "candidate_id"], suffixes=("", "_there"), indicator="only")
        wrong = both[both.label != both.label_there]  # a label that is missing differs from every other
        for row in wrong.head(1).itertuples():
            first = first_of[row.question_id]
            where = {"both": f"has {row.label:g} and {row.label_there:g}", "left_only": f"is in {first} alone"}
            told = f"candidate {row.candidate_id!r} of question {row.question_id!r} {where.get(row.only, f'is in {name} alone')}"
            raise ValueError(f"{first} and {name} were measured on different labels: {told} ({len(wrong)} such)")


def _require_same_data(records: list[dict], asked: str | None) -> None:
    """Refuse runs of rank and others that were measured on different data. Raises: ValueError."""
    data = {run["name"]: _measured_on(run, asked)[:2] for run in records if run["settings"].get("dataset")}
    if len({*data.values()}) > 1:
        each = "; ".join(f"{run} on {dataset} ({str(sha256)[:12]})" for run, (dataset, sha256) in data.items())
        raise ValueError(f"runs on the same data expected, got {each}")


def different_files(names: list[str], asked: str | None = None, called: dict | None = None) -> list[str]:
    """A sentence where runs were measured on different files, which may differ in training rows alone; ids may be equal in both.

    Args:
        asked: as `dataset` of `read`. called: other names of the runs.
    """
    runs = {}
    for folder in filter(None, map(rundir.find, names)):
        dataset, sha256, _ = _measured_on(rundir.read_record(folder), asked)
        if dataset and sha256:
            runs[(called or {}).get(folder.name, folder.name)] = dataset, sha256
    two = itertools.combinations({*runs.values()}, 2)
    if all(a[0] == b[0] and answers.of_one_source(a[0], a[1], b[1]) for a, b in two):
        return []
    which = ", ".join(f"{dataset} {sha256[:8]}" for dataset, sha256 in runs.values())
    return [f"{' and '.join(runs)} were measured on different files ({which})"]


def shortened(names: list[str]) -> dict[str, str]:
    """Names of runs of at most WIDE characters as they are; A, B, ... for longer ones, before the ranker's name.

    Example:
        >>> shortened(["a.run", "rank-wikiqa-laptop-bm25-and-others-0123456789ab:bm25"])
        {'a.run': 'a.run', 'rank-wikiqa-laptop-bm25-and-others-0123456789ab:bm25': 'A:bm25'}
    """
    runs = list(dict.fromkeys(name.partition(":")[0] for name in names))
    letters = iter([*string.ascii_uppercase, *map(str, range(len(runs)))])
    short = {run: run if len(run) <= WIDE else next(letters) for run in runs}
    if len({*short.values()}) < len(short):  # a run is called like a letter
        short = {run: run for run in runs}
    return {name: name.replace(run, short[run], 1) for name in names for run in [name.partition(":")[0]]}


def aligned(
    values: dict[str, pd.DataFrame], missing: str = "refuse", asked: Iterable[str] = ()
) -> tuple[dict[str, pd.DataFrame], str]:
    """The same questions for every run, and a sentence on those that some run lacks.

    Args:
        asked: questions that every run should have, also where none has.
        missing: `refuse` them, `drop` them for all, or count them as `zero` for the runs that lack them.
    Raises: ValueError that names questions, where they are refused or none is left.
    """
    every = list(dict.fromkeys([*asked, *(question for table in values.values() for question in table.index)]))
    lacking = {name: [question for question in every if question not in table.index] for name, table in values.items()}
    told = lambda name, gone: f"{name} lacks {len(gone)} of {len(every)} questions ({', '.join(gone[:3])}...)"
    message = "; ".join(told(name, gone) for name, gone in lacking.items() if gone)
    if message and missing == "refuse":
        raise ValueError(f"{message}: --missing drop leaves them out for all, --missing zero counts them as wrong")
    if missing == "drop":
        gone = {question for questions in lacking.values() for question in questions}
        every = [question for question in every if question not in gone]
    if not every:
        raise ValueError(f"no question is in all runs: {message}")
    if message:
        message += f": {'left out for all' if missing == 'drop' else 'counted as zero'}."
    return {name: table.reindex(every).fillna(0.0) for name, table in values.items()}, message


# ------------------------------------------------------------------ tables


def in_all(values: dict[str, pd.DataFrame]) -> dict[str, str]:
    """The metrics of all runs, and their columns: `METRICS`, and one more that was asked for."""
    columns = next(iter(values.values())).select_dtypes("float").columns
    return METRICS | {column: column for column in columns if column not in METRICS.values()}


def means(values: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A line a run: each metric in points with its 95 % interval over questions; * marks the best and what is tied with it.

    Fewer than `closing.FEWEST` questions tell no runs apart.
    """
    metrics_of_all = in_all(values)
    table = pd.DataFrame(index=list(values), columns=list(metrics_of_all), dtype=object)
    for metric, column in metrics_of_all.items():
        each = {name: own[column] for name, own in values.items()}
        best = max(each, key=lambda name: each[name].mean())
        for name, own in each.items():
            low, high = significance.mean_interval(own)
            few = len(own) < closing.FEWEST
            tied = name == best or few or metrics.paired_bootstrap(each[best], own).sign <= 0
            table.loc[name, metric] = f"{100 * own.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]{'*' * tied}"
    return table


def pairs(values: dict[str, pd.DataFrame], metric: str = "map", draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """A line for each two runs: difference in points with its interval, p of a bootstrap and of a randomisation test, that p by Holm."""
    rows = []
    for first, second in itertools.combinations(values, 2):
        ours, other = (values[name][METRICS.get(metric, metric)] for name in (first, second))
        test = significance.paired_bootstrap(ours, other, draws, seed)
        low, high = (100 * edge for edge in test.interval)
        apart = f"{100 * test.difference:+.1f} [{low:+.1f}, {high:+.1f}]"
        rows.append((first, second, apart, test.p_value, significance.randomisation(ours, other, draws, seed)))
    table = pd.DataFrame(rows, columns=["A", "B", f"{metric}, A - B", "bootstrap p", "randomisation p"])
    return table.assign(**{"Holm": significance.holm(table["randomisation p"])}).round(4)


def moved(values: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A line for each run but the first: questions whose best candidate became right or wrong, counted; some by name, one a line."""
    first, *others = values
    rows = []
    for name in others:
        fates = changes.fates(values[first], values[name])
        for fate in ("rescued", "lost"):
            ids = fates.index[fates == fate]
            shown = choose(ids, SHOWN) or [""]
            rows += [(name, fate, len(ids), shown[0]), *(("", "", "", question) for question in shown[1:])]
    return pd.DataFrame(rows, columns=["run", f"against {first}", "questions", "such as"])


def settings(names: list[str]) -> pd.DataFrame:
    """The settings that differ between finished runs, a column a run; empty where fewer than two of the names are runs."""
    folders = [folder for folder in map(rundir.find, names) if folder]
    each = {folder.name: rundir.read_record(folder)["settings"] for folder in folders}
    keys = dict.fromkeys(key for own in each.values() for key in own)
    differ = [key for key in keys if len(Counter(str(own.get(key)) for own in each.values())) > 1]
    return pd.DataFrame({name: [str(own.get(key)) for key in differ] for name, own in each.items()}, index=differ)


def report(
    names: list[str], qrels: Path | None, missing: str, metric: str, form: str, relevant_from: int, dataset: str | None
) -> str:
    asked = []
    if qrels is not None:
        labels = trec.read_qrels(qrels, relevant_from)
        asked = labels.loc[labels.label > 0, "question_id"].unique()
        if not len(asked):
            raise ValueError(f"{qrels}: expected a relevance of {relevant_from} or more, got none")
    values, message = aligned(read(names, qrels, relevant_from, dataset, metric), missing, asked)
    if len(values) < 2:
        raise ValueError("two runs or more are needed to compare, or a run of rank with two rankers")
    short = shortened(list(values))
    values = {short[name]: table for name, table in values.items()}
    letters = {name.partition(":")[0]: own.partition(":")[0] for name, own in short.items()}
    legend = [f"{own} = {name}" for name, own in letters.items() if name != own]
    legend += different_files(names, dataset, letters)
    count = len(next(iter(values.values())))
    legend += [f"{closing.TOO_FEW}."] * (count < closing.FEWEST)
    tables = {
        "Settings that differ": settings(names).rename(columns=letters),
        f"Points with 95 % intervals over {count} questions; * best, or not told from it": means(values),
        "Every pair": pairs(values, metric).set_index("A"),
        "Questions that moved": moved(values).set_index("run"),
    }
    shown = [rendered(title, table, form) for title, table in tables.items() if len(table)]
    return "\n\n".join(filter(None, [*legend, message, *shown]))


def rendered(title: str, table: pd.DataFrame, form: str) -> str:
    """A table under its title, as text, Markdown or HTML."""
    if form == "html":
        return f"<h3>{title}</h3>\n{table.to_html()}"
    if form == "markdown":
        return f"### {title}\n\n{table.to_markdown(disable_numparse=True)}"
    return f"{title}\n{table.to_string()}"


command = commands.command(
    report,
    argument("names", "two or more finished runs or TREC run files, or one run of rank", nargs=-1, metavar="RUN..."),
    option("--qrels", "file of labels for trec_eval; required if a run is a TREC file", type=Path),
    option("--missing", "what happens to questions that a run lacks", type=Choice(MISSING), default="refuse"),
    option("--metric", f"of every pair: {', '.join(METRICS)}, or any of ir_measures, as nDCG@10", default="map"),
    option("--relevant-from", "the lowest relevance of the qrels that is right", default=1),
    option("--dataset", "the data set whose ranking is compared, also by also_rank; default: each run's own"),
    option("--form", "how tables are printed", type=Choice(FORMS), default="text"),
    example="asutil compare bm25.run mine.run --qrels qrels.txt --form markdown",
    details="Prints intervals, two tests for every pair, and the questions that moved. Each ranker of a run of rank counts.",
)
