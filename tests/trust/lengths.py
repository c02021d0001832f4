"""What lengths alone tell of labels: the share of right labels, mean lengths by kind, and how well lengths part right from wrong."""

import itertools

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from tqdm.auto import tqdm

from asutil import sampling
from asutil.sampling import Sampler
from asutil.sampling.objectives import OBJECTIVES
from asutil.sampling.spans import KINDS

from . import must

MOST = 0.58  # area under the curve that lengths alone may reach


def check(corpus, examples: int, seed: int) -> dict[str, dict]:
    """Every objective on a corpus: objective -> what `measured` gives. Raises: Broken where lengths say more than MOST, with the error."""
    before, found = sums(corpus), {}
    for objective in tqdm(sampling.OBJECTIVES, f"lengths of {corpus.info['source']}", unit="", dynamic_ncols=True):
        found[objective] = of_objective(corpus, before, objective, examples, seed)
    for objective, table in found.items():
        for part, row in table.items():
            low, by = row["auc"] - 2 * row["standard_error"], row["by"]
            must(
                low <= MOST, f"{objective}, {part}: AUC {row['auc']} of lengths alone ({by}), at most {MOST}, error {row['standard_error']}"
            )
    return found


def sums(corpus) -> dict[str, np.ndarray]:
    """Characters and tokens of all sentences before each place; a space is a character of the sentence before it."""
    tokens = np.diff(corpus.sentences)
    texts = np.split(np.asarray(corpus.tokens), corpus.sentences[1:-1])
    characters = np.array([len(text.removeprefix(" ")) + 1 for text in corpus.tokenizer.batch_decode(texts)])
    return {unit: np.concatenate([[0], sizes.cumsum()]) for unit, sizes in (("characters", characters), ("tokens", tokens))}


def of_objective(corpus, before, objective, examples, seed) -> dict[str, dict]:
    """`measured` on all examples of some epochs, and on each part of them: the objectives of a union, the slots of mspp."""
    made, epoch, count = [], 0, 0
    while count < examples:
        sampler = Sampler(corpus, objective, seed, epoch)
        # whole groups, so that every group has its positive
        size = len(sampler) // sampler.groups
        numbers = np.arange(min(len(sampler), size * -(-(examples - count) // size)))
        made.append((epoch, sampler.spans(numbers)))
        count, epoch = count + made[-1][1].labels.size, epoch + 1
    lengths = {unit: np.concatenate([part_lengths(of, spans.ranges) for _, spans in made]) for unit, of in before.items()}
    labels, kinds = (np.concatenate([getattr(spans, name) for _, spans in made]) for name in ("labels", "kinds"))
    groups = np.concatenate([spans.paragraphs[:, 0] for _, spans in made])  # of one anchor, in all epochs
    if labels.ndim == 2:
        return of_slots(lengths, labels, kinds, groups)
    expected = 1 / (1 + sampler.negatives)
    must(abs(labels.mean() - expected) < 1e-9, f"{objective}: a share of {expected} positive, got {labels.mean()}")
    found = {"all": measured(lengths, labels, kinds, groups)}
    members = np.concatenate([spans.members for _, spans in made])
    for number, name in enumerate(OBJECTIVES[objective].members):
        rows = members == number
        found[name] = measured({unit: of[rows] for unit, of in lengths.items()}, labels[rows], kinds[rows], groups[rows])
    return found


def of_slots(lengths, labels, kinds, groups) -> dict[str, dict]:
    """mspp: s_0 with its candidates, of all slots together and of each; every slot is right as often as any other."""
    count = labels.shape[1]
    right, error = labels.mean(0), np.sqrt(labels.mean() * (1 - labels.mean()) / len(labels))
    must(abs(right - labels.mean()).max() < 5 * error, f"mspp: slots are right equally often, got {right.round(3).tolist()}")
    pairs = {unit: np.stack([np.repeat(of[:, :1], count, 1), of[:, 1:]], -1) for unit, of in lengths.items()}
    flat = {unit: of.reshape(-1, 2) for unit, of in pairs.items()}
    found = {"all": measured(flat, labels.ravel(), kinds.ravel(), np.repeat(groups, count))}
    for slot in range(count):
        found[f"slot {slot + 1}"] = measured({unit: of[:, slot] for unit, of in pairs.items()}, labels[:, slot], kinds[:, slot], groups)
    return found


def part_lengths(before: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Shapes: ranges (B, P, R, 2) -> (B, P)"""
    return (before[ranges[..., 1]] - before[ranges[..., 0]]).sum(-1)


def measured(lengths: dict[str, np.ndarray], labels, kinds, groups) -> dict:
    """Share of right labels, mean lengths of each kind, and the best area under the curve that lengths in one unit give.

    Tried are every length, and of every two parts difference, distance and ratio, alone, and a logistic regression on the logarithms of
    all lengths with their squares and products, on groups that it has not seen. Units are not mixed: how many characters a token has
    says what a text is about, and so does its mean sentence.
    """
    tried = {}
    for unit, of in lengths.items():
        tried |= {f"{unit}, {name}": area(labels, values) for name, values in alone(of).items()}
        tried[f"{unit}, regression"] = regression(of, labels, groups)
    best = max(tried, key=tried.get)
    means = {unit: {KINDS[kind]: of[kinds == kind].mean(0).round(2).tolist() for kind in np.unique(kinds)} for unit, of in lengths.items()}
    right, wrong = int(labels.sum()), int((1 - labels).sum())
    return {
        "auc": round(float(tried[best]), 4),
        "by": best,
        "standard_error": round(float(np.sqrt((right + wrong + 1) / (12 * right * wrong))), 4),
        "regression": {unit: round(float(tried[f"{unit}, regression"]), 4) for unit in lengths},
        "examples": len(labels),
        "positive": round(right / len(labels), 4),
        "mean": means,
        "quartiles": {unit: quartiles(of, labels) for unit, of in lengths.items()},
    }


def alone(of: np.ndarray) -> dict[str, np.ndarray]:
    """Single values of lengths (B, P)."""
    found = {f"part {part}": values for part, values in enumerate(of.T)}
    for one, other in itertools.combinations(range(of.shape[1]), 2):
        both = of[:, one].astype(float), of[:, other].astype(float)
        found |= {
            f"{one} - {other}": both[0] - both[1],
            f"|{one} - {other}|": abs(both[0] - both[1]),
            f"{one} / {other}": both[0] / both[1],
        }
    return found


def area(labels, values) -> float:
    """How well one value parts right from wrong, in whichever direction: .5 to 1."""
    found = roc_auc_score(labels, values)
    return max(found, 1 - found)


def regression(of: np.ndarray, labels, groups) -> float:
    """The area under the curve of a logistic regression on groups that it has not seen."""
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), LogisticRegression(max_iter=500))
    chances = cross_val_predict(model, np.log(of), labels, groups=groups, cv=GroupKFold(5), method="predict_proba")[:, 1]
    return float(roc_auc_score(labels, chances))


def quartiles(of: np.ndarray, labels) -> dict[str, list]:
    """Of each part's length, of right and of wrong examples."""
    return {name: np.percentile(of[labels == label], [25, 50, 75], axis=0).T.tolist() for label, name in ((1, "right"), (0, "wrong"))}


def largest(tables: dict[str, dict]) -> tuple[float, str]:
    """The largest area under the curve of a whole objective, and where; parts have fewer examples, and are judged with their errors.

    Args:
        tables: corpus -> what `check` gave.
    """
    return max((parts["all"]["auc"], f"{corpus} {objective}") for corpus, table in tables.items() for objective, parts in table.items())


def shown(table: dict[str, dict]) -> str:
    """A line an objective and part: share of right labels, area under the curve and its error."""
    rows = [{"objective": objective, "part": part, **row} for objective, parts in table.items() for part, row in parts.items()]
    return pd.DataFrame(rows)[["objective", "part", "examples", "positive", "auc", "standard_error", "by"]].to_string(index=False)
