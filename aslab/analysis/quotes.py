"""Figures and words in the text of a page, checked against the records that they follow from."""

import re
from functools import partial
from typing import NamedTuple

from asutil.metrics.significance import Comparison

from .. import papers, records, rundir
from ..records import COMMITTED
from ..show import markup
from . import claims, comparisons

QUOTED = re.compile(
    r"(?P<shown>.+?): (?P<metric>[\w@]+) of (?:(?P<paper>\w+)/)?(?P<row>\w+)(?: - (?P<other>\w+))? on (?P<dataset>\w+) at (?P<budget>\w+)"
    r"(?: over (?P<over>dev|both))?(?: is (?P<direction>better|worse|unclear))?",
    re.DOTALL,
)
SIGNS = {"better": 1, "worse": -1, "unclear": 0}
WORD = re.compile(rf"\b(not )?({'|'.join(word for word in claims.VERDICTS if word != claims.NOT_RUN)})\b")


class Quote(NamedTuple):
    """A figure or words on a page, and the records that they follow from."""

    shown: str
    expression: str
    files: str


def quoted(text: str, paper: str = "", read=comparisons.rows_and_runs) -> Quote:
    """Checks words of a page against committed records: `+4.2: map of roberta_sp - roberta_base on pydocs at laptop`.

    A number is a mean over seeds in points, or a difference of two rows, paired by question, with as many digits as are shown; a
    difference with its interval is `+4.2 [+1.0, +7.4]`, as tables have it. The metric `hours` is the time of a run, on its own machine.
    `over dev` compares two rows on dev questions alone, `over both` on those of dev and test, where dev chose nothing.
    Words need a direction: `no gain is seen: map of a - b on pydocs at laptop is unclear`, by the 95 % interval over questions and
    seeds. Words that hold a verdict must be about a claim with that verdict, and not over dev alone.
    A row may be an untrained baseline of a data set (random, bm25, document_order), and may name another paper: `asbert/glove`.

    Args:
        read: paper -> its file and its records.
    Raises: ValueError that says what the records give instead.
    """
    match = QUOTED.fullmatch(text.strip())
    if not match:
        form = "`figure: metric of row - row on data set at budget`, with `is better` after words"
        raise ValueError(f"expected {form}, got {text!r}")
    part = match.groupdict()
    if part["over"] and not part["other"]:
        raise ValueError(f"over {part['over']}: expected a difference of two rows: {text!r}")
    paper = part["paper"] or paper
    data, runs = read(paper)
    rows = [name for name in (part["row"], part["other"]) if name]
    value, tested, rows, seeds = _value(data, runs[runs.source == COMMITTED], rows, part)
    file = part["dataset"].rpartition(papers.TRANSFER)[2]  # the record of a run that also ranked it
    files = f"results/{paper}/{{{','.join(rows)}}}/{file}-{part['budget']}-seed{{{','.join(map(str, seeds))}}}.json"
    if part["direction"]:
        if tested.sign != SIGNS[part["direction"]]:
            told = next(word for word, known in SIGNS.items() if known == tested.sign)
            said = f"{part['shown']!r} is said to be {part['direction']}"
            raise ValueError(f"{said}, the records say {told} ({value:+.2f}): {text}")
        if verdict := WORD.search(part["shown"]):
            if verdict[1] or part["over"] == "dev":
                raise ValueError(f"expected the verdict that a claim has, not over dev: got {part['shown']!r}: {text}")
            _require_word(verdict[2], claims.judged(data, runs), part)
    else:
        digits = len(part["shown"].partition(" [")[0].partition(".")[2])  # as many as the page shows
        expected = f"{value:{'+' if tested else ''}.{digits}f}"
        if tested and part["shown"].endswith("]"):
            expected = markup.points(tested)
        expected = expected.replace("-", "−")
        if part["shown"].replace("-", "−") != expected:
            raise ValueError(f"{part['shown']!r} is quoted, the records give {expected!r}: {text}")
    expression = text[match.end("shown") + 2 :].strip().replace(f"{paper}/", "")
    return Quote(part["shown"], f"{paper} {expression}", files)


def _require_word(word: str, every: list[claims.Judged], part: dict) -> None:
    """Refuse a verdict on two rows that no claim is about, or that the claim has not."""
    place = {part["row"], part["other"]}, part["metric"], part["dataset"], part["budget"] == claims.PYDOCS
    for one in every:
        claim = one.outcome.claim
        rows = {claim["row_a"], claim["row_b"]}
        if (rows, claim["metric"], claim["dataset"], one.family == claims.PYDOCS) == place:
            if one.word != word:
                raise ValueError(f"{part['shown']!r} is said of {claim['id']}, the verdict is {one.word!r}")
            return
    difference = f"{part['row']} - {part['other']} on {part['dataset']}"
    raise ValueError(f"{part['shown']!r} is said of {difference}: no claim is about it")


def _value(data: dict, runs, rows: list[str], part: dict) -> tuple[float, Comparison | None, list[str], list[int]]:
    """Points or hours, the test where two rows are compared, and the rows and seeds they are from."""
    lines = runs[(runs.dataset == part["dataset"]) & (runs.budget == part["budget"])]
    if len(rows) == 1:
        own = lines[lines.row == rows[0]]
        values = records.values(own, part["metric"])
        unit = 100
        if part["metric"] == "hours":
            values = [records.seconds(line.record) for line in own.itertuples()]
            unit = 1 / 3600
        if rows[0] not in data["rows"]:  # an untrained baseline, which every record of these questions has
            known = [line for line in lines.itertuples() if (line.record.get("baselines") or {}).get(rows[0])]
            values = [line.record["baselines"][rows[0]][part["metric"]] for line in known[:1]]
            own = lines[lines.index.isin([line.Index for line in known[:1]])]
        if not values:
            raise ValueError(f"no record of {rows[0]} on {part['dataset']} at {part['budget']} has {part['metric']}")
        return unit * sum(values) / len(values), None, sorted(set(own.row)), sorted(own.seed)
    pair = next(comparisons.pairs(lines, *rows, part["dataset"], rundir.BUDGETS), None)
    of = {"dev": records.dev_questions, "both": records.pooled}.get(part["over"])
    of = partial(of, data) if of else records.per_question
    tested = pair and comparisons.over_both(pair, *rows, part["metric"], of=of)
    if not tested:
        wanted = f"runs on {part['dataset']} at {part['budget']} with {part['metric']}"
        raise ValueError(f"{' and '.join(rows)} have no common {wanted}, or nothing shows how much their seeds differ")
    return 100 * tested.difference, tested, rows, pair.seeds
