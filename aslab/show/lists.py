"""Ranked lists and verdicts as HTML for a notebook, and the first group of a sampler as a table.

A ranking's lines have the classes `as2-right` and `as2-wrong`, its table `as2-ranking`.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from asutil.data.answers import Question, Split
from asutil.data.claims import LABELS, Claim
from asutil.draws import choose
from asutil.metrics.changes import TOP
from asutil.metrics.verdicts import CLASSES, per_claim, predictions

from . import markup

RANKING = "application/vnd.asutil.ranking+json"  # ids and scores of a question's candidates, without text


def sampled(sampler) -> pd.DataFrame:
    """The first group of a `sampling.Sampler`: one row an example; for mspp, whose group is one example, one row a sentence."""
    first = sampler[0]
    if isinstance(first.kind, tuple):
        texts = [text[:200] for text in first.parts]
        columns = {"label": ("", *first.label), "kind": ("s0", *first.kind), "text": texts}
        return pd.DataFrame({"slot": range(len(texts))} | columns)
    rows = []
    for example in (first, *(sampler[i] for i in range(1, 1 + sampler.negatives))):
        texts = dict(zip(("first", "second", "context"), (text[:200] for text in example.parts)))
        rows.append({"label": example.label, "kind": example.kind} | texts)
    return pd.DataFrame(rows)


class Ranking:
    """A question with its best candidates, best first. A notebook that is published keeps the ids, and leaves out the text.

    Args:
        scores: one score a candidate; by candidate id, or in the order of the candidates.
    """

    def __init__(self, question: Question, scores):
        names = [candidate.id for candidate in question.candidates]
        self.question = question
        self.scores = scores if isinstance(scores, dict) else dict(zip(names, scores, strict=True))
        if set(self.scores) != set(names):
            expected = f"expected scores of {', '.join(names)}"
            raise ValueError(f"{question.id}: {expected}, got those of {', '.join(self.scores)}")

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        every = self.question.candidates
        ours = [self.scores[candidate.id] for candidate in every]
        html = ranked_example(self.question.text, [one.text for one in every], ours, [one.label for one in every])
        ids = {"question": self.question.id, "scores": self.scores}
        return {"text/html": html, RANKING: ids, "text/plain": f"{self.question.id}: {len(every)} candidates"}


def ranked_example(question: str, candidates: list[str], scores, labels, top: int = TOP) -> str:
    """One question with its best candidates as HTML, best first; of equal scores the wrong candidate is first, as in metrics."""
    return compare_rankings(question, candidates, labels, {"score": scores}, top)


def compare_rankings(question: str, candidates: list[str], labels, scores: dict, top: int = TOP) -> str:
    """One question ranked by several models as HTML: rank (score) by each, in the first model's order; texts are escaped.

    Args:
        scores: name of a model -> one score a candidate.
        top: candidates that some model ranks this high are shown.
    """
    for name, values in {"labels": labels, **scores}.items():
        if len(values) != len(candidates):
            raise ValueError(f"one value a candidate: got {len(values)} of {name} for {len(candidates)} candidates")
    every = range(len(candidates))
    orders = {name: sorted(every, key=lambda i: (-values[i], labels[i])) for name, values in scores.items()}
    shown = [i for i in next(iter(orders.values())) if any(i in order[:top] for order in orders.values())]
    body = []
    for i in shown:
        ranks = [markup.number(f"{order.index(i) + 1} ({scores[name][i]:.3f})") for name, order in orders.items()]
        kind, mark = ("as2-right", "✓ answers") if labels[i] else ("as2-wrong", "✗ does not")
        body.append(markup.line([*ranks, mark, candidates[i]], kind))
    ranks = ["Rank (score)"] if len(scores) == 1 else [f"Rank by {name} (score)" for name in orders]
    more = f" ({len(candidates) - len(shown)} more candidates)" if len(candidates) > len(shown) else ""
    return markup.table(f"{question}{more}", [*ranks, "Label", "Candidate"], body, "as2-table as2-ranking")


def beside(question: str, ranked: dict[str, list], texts: dict[str, str], below: str = "") -> str:
    """The best candidates of a question by two models as HTML, list beside list; right ones ✓, wrong ones ✗, texts escaped.

    Args:
        ranked: name of a model -> its candidates as `changes.best_of` gives them.
        texts: candidate id -> text; a candidate without text is shown by its id.
        below: a sentence that follows the question.
    """
    body = []
    for rank in range(max(map(len, ranked.values()))):
        cells = [_candidate(entries[rank], texts) if rank < len(entries) else "" for entries in ranked.values()]
        body.append(markup.line([markup.cell(rank + 1, "th", scope="row"), *cells]))
    small = f"<small>{escape(below)}</small>" if below else ""
    return markup.table(markup.Html(f"{escape(question)}{small}"), ["Rank", *ranked], body, "as2-table as2-beside")


def _candidate(entry: list, texts: dict[str, str]) -> markup.Html:
    name, label, score, _ = entry
    kind, mark, words = ("as2-right", "✓", "answers") if label else ("as2-wrong", "✗", "does not answer")
    text = f'<abbr title="{words}">{mark}</abbr> {escape(str(texts.get(name, name)))} <small>score {score:.3f}</small>'
    return markup.cell(markup.Html(text), kind=kind, **{"data-candidate": str(name)})


def side_by_side(split: Split, top: pd.DataFrame, chosen: dict[str, list[str]]) -> str:
    """The k candidates of some questions as HTML, with rank and score by both stages, in the second one's order.

    Args:
        top: the table of `reranking.joined`.
        chosen: the word before a question, such as "rescued" -> ids of questions.
    """
    parts, places = [], {name: place for place, name in enumerate(split.ids)}
    for caption, name in [(caption, name) for caption, names in chosen.items() for name in names]:
        question, rows = split[places[name]], top[top.question_id == name]
        texts = {candidate.id: candidate.text for candidate in question.candidates}
        scores = {"the joint model": rows.score.tolist(), "the first stage": rows.first_score.tolist()}
        candidates = [texts[candidate] for candidate in rows.candidate_id]
        caption = f"{caption}: {question.text}"
        parts.append(compare_rankings(caption, candidates, rows.label.tolist(), scores, len(rows)))
    return "".join(parts)


def verdicts(claims: Sequence[Claim], scores: pd.DataFrame, each: int = 1, seed: int = 0) -> str:
    """Claims with evidence, label and verdict as HTML: `each` with a right and `each` with a wrong verdict, by a hash.

    Args:
        scores: rows of `predict` for these claims. seed: of the hash.
    """
    by_id = {claim.id: claim for claim in claims}
    right = per_claim(scores).set_index("question_id")["label_accuracy"] == 1
    guesses = dict(zip(scores.claim_id, predictions(scores)))
    best = dict(zip(scores.claim_id, np.exp(scores[list(CLASSES)].max(axis=1))))
    parts = []
    groups = ((right.index[right], "as2-right", "✓ right"), (right.index[~right], "as2-wrong", "✗ wrong"))
    for ids, kind, mark in groups:
        for name in choose(ids, each, seed):
            claim = by_id[name]
            verdict = f"{LABELS[guesses[name]]}, probability {best[name]:.2f} ({mark})"
            caption = f"{claim.text} Label: {LABELS[claim.label]}. Verdict: {verdict}."
            body = [markup.line([markup.number(str(n)), piece.text], kind) for n, piece in enumerate(claim.evidence, 1)]
            parts.append(markup.table(caption, ["No.", "Evidence"], body or [markup.line(["–", "no evidence"], kind)]))
    return "".join(parts)
