"""What was found: every claim in a sentence, with p-values adjusted for their number.

Only committed records count here, so that a page says the same on every machine.
"""

from collections import Counter
from html import escape
from typing import NamedTuple

import pandas as pd

from aslab import papers, records
from aslab.records import COMMITTED, no_spread
from aslab.show import markup
from aslab.show.markup import NAMES, Html
from asutil.io import rundir
from asutil.metrics import significance
from asutil.metrics.significance import Comparison
from pages import comparisons, testable
from pages.comparisons import Outcome, Pair

BUDGETS = {
    "small": "The paper's data sets, budget small and above",
    "laptop": "Our own questions, budget laptop",
}


class Finding(NamedTuple):
    """A claim on one metric at one budget.

    `holm` is its p over all tests of the paper at that budget, `seeds` Student's t over seeds; None where nothing was
    tested, or where there are too few seeds.
    """

    outcome: Outcome
    holm: float | None
    seeds: Comparison | None

    @property
    def word(self) -> str:
        """How far a difference can be believed: "finding" where other questions and other seeds would show it, too,
        "hint" where its interval leaves out zero, else "can be chance"; "" where nothing was tested.

        Over questions the p of a finding is below .05 after Holm's adjustment; over seeds it has the same sign in the
        interval of the t test. Encoders that were not trained have no seeds.
        """
        if self.holm is None:
            return ""
        sign, where = self.outcome.questions.sign, self.outcome.where
        if not sign:
            return CHANCE
        untrained = all(no_spread(where.of(self.outcome.claim[row])) for row in ("row_a", "row_b"))
        repeats = self.seeds.sign == sign if self.seeds else untrained
        return FINDING if self.holm < 0.05 and repeats else HINT


FINDING, HINT, CHANCE = "finding", "hint", "can be chance"


# ------------------------------------------------------------------ claims


def findings(data: dict, runs: pd.DataFrame, budget: str = "small", draws: int = 10_000) -> list[Finding]:
    """All claims of a paper on its own data sets, at budget small and above, or on those of budget laptop.

    Args:
        runs: the paper's records; those of this machine are left out.
    """
    known = _KNOWN.get((data["slug"], budget, draws))
    if known and known[0] is runs and known[1] is data:
        return known[2]
    found = _findings(data, runs[runs.source == COMMITTED], budget, draws)
    _KNOWN[data["slug"], budget, draws] = runs, data, found
    return found


_KNOWN = {}  # the last ones of each paper, with the frame that they follow from: a page after the other asks for them


def _findings(data: dict, runs: pd.DataFrame, budget: str, draws: int) -> list[Finding]:
    laptop = budget == "laptop"
    if laptop:
        asked = papers.claims_asked(data, budget) if budget in data.get("budgets", {}) else []
    else:
        asked = papers.claims(data)
    outcomes = [_outcome(data, runs, claim, laptop, draws) for claim in asked]
    tested = [outcome for outcome in outcomes if is_tested(outcome)]
    adjusted = iter(significance.holm([outcome.questions.p_value for outcome in tested]))
    return [
        Finding(outcome, next(adjusted), _over_seeds(outcome)) if is_tested(outcome) else Finding(outcome, None, None)
        for outcome in outcomes
    ]


def _over_seeds(outcome: Outcome) -> Comparison | None:
    claim = outcome.claim
    return comparisons.over_seeds(outcome.where, claim["row_a"], claim["row_b"], claim["metric"])


def _outcome(data: dict, runs: pd.DataFrame, claim: dict, laptop: bool, draws: int) -> Outcome:
    if not laptop:
        return comparisons.outcome(data, runs, claim, draws)
    pair = next(comparisons.pairs(runs, claim["row_a"], claim["row_b"], claim["dataset"], ("laptop",)), None)
    if pair:
        return comparisons.outcome(data, runs, claim, draws, pair)
    return Outcome(claim, testable.of_rows(data, (claim["row_a"], claim["row_b"]), claim["dataset"]))


def is_tested(outcome: Outcome) -> bool:
    return outcome.questions is not None and not outcome.reason


def sentences(data: dict, every: list[Finding]) -> str:
    """A list in HTML, one sentence a claim that has runs or a reason for none: difference, interval, p, seeds, budget, model."""
    by_claim = {}
    for finding in every:
        if finding.outcome.where or finding.outcome.reason:
            by_claim.setdefault(finding.outcome.claim["id"], []).append(finding)
    items = "".join(f"<li>{_sentence(data, group)}</li>" for group in by_claim.values())
    return f'<ul class="as2-findings">{items}</ul>' if items else ""


def _sentence(data: dict, group: list[Finding]) -> Html:
    """A claim, what was compared, and the result by each of its metrics."""
    claim, where, reason = group[0].outcome.claim, group[0].outcome.where, group[0].outcome.reason
    words = f"<q>{escape(claim['claim'])}</q> <small>{escape(claim['where'])}</small> "
    if where is None:
        return Html(f"{words}{markup.word(testable.VERDICT)}: {escape(reason)}.")
    rows = " − ".join(data["rows"][claim[row]]["name"] for row in ("row_a", "row_b"))
    seeds = f"{len(where.seeds)} seed{'s' * (len(where.seeds) > 1)}"
    compared = f"{rows}, {NAMES.get(claim['dataset'], claim['dataset'])}, {seeds}, budget {where.budget}, {_models(where, claim)}"
    return Html(f"{words}{escape(compared)}: {'; '.join(map(_result, group))}.")


def _result(finding: Finding) -> str:
    outcome = finding.outcome
    metric = NAMES[outcome.claim["metric"]]
    if finding.holm is None:
        return f"{metric} {markup.word(outcome.word)}" + f" ({escape(outcome.reason)})" * bool(outcome.reason)
    p_values = [
        markup.probability(outcome.questions.p_value),
        markup.probability(finding.holm).replace("p", "Holm", 1),
        *([f"over seeds {markup.probability(finding.seeds.p_value)}"] if finding.seeds else []),
    ]
    word = finding.word if finding.word == CHANCE else f"a {finding.word}"
    said = escape(f"{word}: {', '.join(p_values)}")
    return f"{metric} {markup.points(outcome.questions)} {markup.word(outcome.word)} ({said})"


def _models(where: Pair, claim: dict) -> str:
    """The models that the runs of both rows began with; one name where they are the same."""
    each = [records.backbone(line) for row in ("row_a", "row_b") for line in where.of(claim[row]).itertuples()]
    return " and ".join(name.rsplit("/", 1)[-1] for name in dict.fromkeys(each))


def counted(every: list[Finding]) -> str:
    """How many tests came out how: `14 tests: 4 show (3 findings), 10 unclear, 0 opposite`; "" for none."""
    tested = [finding for finding in every if finding.holm is not None]
    if not tested:
        return ""
    words = Counter(finding.outcome.word for finding in tested)
    kept = Counter(finding.outcome.word for finding in tested if finding.word == FINDING)
    shown = {"shows": "show", "unclear": "unclear", "opposite": "opposite"}
    each = [
        f"{words[word]} {said}" + f" ({_findings_of(kept[word])})" * bool(kept[word]) for word, said in shown.items()
    ]
    return f"{len(tested)} tests: {', '.join(each)}"


def _findings_of(count: int) -> str:
    return f"{count} finding{'s' * (count > 1)}"


def without_runs(data: dict, every: list[Finding], budget: str = "small") -> str:
    """How many claims have neither runs nor a reason for none, and the smallest budgets that test them; "" for none."""
    outcomes = {finding.outcome.claim["id"]: finding.outcome for finding in every}
    missing = [outcome.claim for outcome in outcomes.values() if not outcome.where and not outcome.reason]
    if not missing:
        return ""
    words = f"{len(missing)} of {len(outcomes)} claims have no runs yet"
    if budget == "laptop":
        return words
    needed = Counter(papers.first_budget(data, claim) for claim in missing)
    return f"{words}: " + ", ".join(f"{needed[name]} need budget {name}" for name in rundir.BUDGETS if needed[name])


def findings_html(paper: str, runs: pd.DataFrame | None = None, draws: int = 10_000, folder=None) -> str:
    """For each of the two kinds of questions: how many claims came out how, and a sentence a claim."""
    data, runs = comparisons.rows_and_runs(paper, runs, folder)
    parts = []
    for budget, kind in BUDGETS.items():
        every = findings(data, runs, budget, draws)
        if every:
            known = (counted(every), without_runs(data, every, budget))
            summary = escape(". ".join(filter(None, known)) or "Nothing could be tested")
            parts.append(f"<p><strong>{kind}.</strong> {summary}.</p>{sentences(data, every)}")
    return "".join(parts)


def last_outcomes(data: dict, runs: pd.DataFrame, draws: int = 10_000):
    """(claim, kind of budget, outcome) of each claim that was tested, by the last of its metrics."""
    metric = {claim["id"]: claim["metric"] for claim in papers.claims(data)}
    for budget in BUDGETS:
        for outcome, holm, _ in findings(data, runs, budget, draws):
            if holm is not None and outcome.claim["metric"] == metric[outcome.claim["id"]]:
                yield outcome.claim, budget, outcome


def answer(folder=None, draws: int = 10_000) -> str:
    """What came out of all tested claims, in words; "" where none was tested."""
    words, kept, families, weaker = [], [], 0, 0
    for paper in papers.papers():
        data, runs = comparisons.rows_and_runs(paper, None, folder)
        words += [outcome.word for _, _, outcome in last_outcomes(data, runs, draws)]
        for budget in BUDGETS:
            tested = [one for one in findings(data, runs, budget, draws) if one.holm is not None]
            families += bool(tested)
            kept += [one.outcome.word if one.word == FINDING else "" for one in tested]
            weaker += hints_if_seeds_are_adjusted(tested)
    if not words:
        return ""
    return (
        f"We could test a claim of these papers {len(words)} times, with small models: {words.count('shows')} times it shows, "
        f"{words.count('unclear')} times it cannot be told from chance, and {words.count('opposite')} times the opposite shows. "
        f"Some claims are tested on two metrics, which makes {len(kept)} tests. {kept.count('shows')} of them are findings "
        f"as the papers say and {kept.count('opposite')} findings of the opposite: over questions after Holm's adjustment "
        f"within each of {families} families of tests, one a paper and kind of questions, and over seeds. "
        f"The test over seeds is not adjusted: if it were, {weaker} of these findings would be hints."
    )


def hints_if_seeds_are_adjusted(tested: list[Finding]) -> int:
    """How many findings of a family of tests would be hints, if the p over seeds were adjusted by Holm's rule, too."""
    tried = [one for one in tested if one.seeds]
    adjusted = significance.holm([one.seeds.p_value for one in tried])
    return sum(one.word == FINDING and p_value >= 0.05 for one, p_value in zip(tried, adjusted))


def findings_and_hints(draws: int = 10_000) -> str:
    """Every difference of a claim that is a finding or a hint on some questions, paper by paper; "" where there is none.

    A claim on several metrics appears with the last of them.
    """
    datasets, body, shown = dict.fromkeys(("wikiqa", "trecqa", "hotpotqa", "ours")), [], []
    for paper in papers.papers():
        data, runs = comparisons.rows_and_runs(paper)
        last, lines = {claim["id"]: claim["metric"] for claim in papers.claims(data)}, {}
        for budget in BUDGETS:
            for one in findings(data, runs, budget, draws):
                claim = one.outcome.claim
                if one.word and claim["metric"] == last[claim["id"]]:
                    place = "ours" if budget == "laptop" else claim["dataset"]
                    lines.setdefault((claim["row_a"], claim["row_b"], claim["sign"]), {})[place] = one
        kept = {rows: of for rows, of in lines.items() if {FINDING, HINT} & {one.word for one in of.values()}}
        if kept:
            body.append(
                markup.line([markup.cell(data["title"], "th", scope="colgroup", colspan=str(1 + len(datasets)))])
            )
        for (row, other, _), of in kept.items():
            names = " − ".join(data["rows"][name]["name"] for name in (row, other))
            body.append(markup.line([names, *(_difference(of.get(place)) for place in datasets)]))
            shown += [(place == "ours", one) for place, one in of.items()]
    if not body:
        return ""
    title = (
        "Differences that a paper claims and that are a finding (bold) or a hint on some questions, in points of MAP, of mAP for "
        "evidence, of accuracy for claims. Opposite: to the claim. Dev: the same on the dev questions alone, where they chose nothing. "
        "Ours: our own questions. –: not claimed there, not run, or not testable."
    )
    heads = ["Row A − row B", *(NAMES.get(name, name) for name in datasets)]
    return markup.table(title, heads, body) + _again_on_dev(shown)


def _again_on_dev(every: list[tuple[bool, Finding]]) -> str:
    """How many findings and hints have the same sign on dev questions, and how many show there.

    Args:
        every: whether it is about our own questions, and the finding.
    """
    groups = []
    for ours, whose in ((False, "public"), (True, "our own")):
        counts = []
        for word in (FINDING, HINT):
            known = [one.outcome for own, one in every if (own, one.word) == (ours, word) and one.outcome.dev]
            same = sum(one.dev.difference * one.questions.difference > 0 for one in known)
            again = sum(one.dev.sign == one.questions.sign for one in known)
            counts += [f"{same} of {len(known)} {word}s have the same sign and {again} show again"] * bool(known)
        groups += [f" On {whose} ones {'; '.join(counts)}."] * bool(counts)
    return f"<p>Dev questions that chose nothing are a second sample.{''.join(groups)}</p>" if groups else ""


def _difference(one: Finding | None) -> Html:
    if one is None:
        return markup.number("–")
    opposite = "opposite " * (one.outcome.word == "opposite")
    dev = f"<small>dev {100 * one.outcome.dev.difference:+z.1f}</small>" if one.outcome.dev else ""
    shown = markup.number(
        Html(f"{100 * one.outcome.questions.difference:+z.1f}<small>{opposite}{one.word}</small>{dev}")
    )
    return markup.best(shown) if one.word == FINDING else shown


OUTCOMES = ("shows", "unclear", "opposite", testable.VERDICT, "not run")


def scorecard() -> str:
    """All papers: how many claims came out how, on the paper's data sets and on ours. A claim on several metrics counts by its last one."""
    body = []
    for paper in papers.papers():
        data, runs = comparisons.rows_and_runs(paper)
        link = Html(f'<a href="papers/{paper}.html">{escape(data["title"])}</a>')
        kind = "pre-trains on text" if pre_trains(data) else "changes how labels are learnt"
        head = [markup.cell(Html(f"{link}<small>{kind}</small>"), "th", scope="row", rowspan=str(len(BUDGETS)))]
        for budget, whose in zip(BUDGETS, ("its own", "ours")):
            last = {one.outcome.claim["id"]: one.outcome.word for one in findings(data, runs, budget)}
            words = list(last.values())
            body.append(
                markup.line([*head, whose, *(markup.number(str(words.count(word) or "–")) for word in OUTCOMES)])
            )
            head = []
    heads = ["Paper", "Questions", *map(markup.word, OUTCOMES)]
    return markup.table(
        "How many claims came out how. A claim on several metrics counts once, by the last of them.", heads, body
    )


def pre_trains(data: dict) -> bool:
    stages = (stage for row in data["rows"].values() for stage in row.get("stages", ()))
    return any(stage["notebook"] == "pretrain" for stage in stages)
