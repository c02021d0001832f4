"""Multi-Sentences in Paragraph Prediction: a group is one example."""

from collections import Counter

from hypothesis import strategies as st

from tests.trust import must
from tests.trust.laws import Law, Text, contiguous, law, places, said

JOINT = {"positives": 1, "hard_negatives": 2, "negatives": 4, "max_sentences": 1}


@law
class mspp(Law):
    def size(self, options):
        return 1

    def check_one(self, text, group, split, options, before):
        check_joint(text, group[0], split, **options)

    def sure_anchors(self, text, side, options):
        wanted = JOINT | options
        if wanted["max_sentences"] > 1:
            return set()
        found, count = set(), wanted["positives"] + wanted["negatives"]
        for p in side:
            elsewhere = {name for q in side if text.of[q] != text.of[p] for name in text.paragraphs[q]}
            distinct = len(set(text.paragraphs[p])) == len(text.paragraphs[p]) >= 1 + wanted["positives"]
            if distinct and len(elsewhere) > count:
                found.add(p)
        return found

    def drawn_options(self, draw):
        return {"positives": draw(st.sampled_from([1, 1, 2, 3])), "max_sentences": draw(st.sampled_from([1, 1, 2, 3]))}


def check_joint(text: Text, example, split="train", **options) -> int:
    """A group of mspp by the paper's words. Returns: how many hard negatives it has."""
    wanted = JOINT | options
    parts = [places(text, example, part) for part in range(len(example.parts))]
    count = wanted["positives"] + wanted["negatives"]
    must(len(example.label) == len(example.kind) == len(parts) - 1 == count, f"{count} candidates expected, got {len(parts) - 1}")
    must(all(map(contiguous, parts)) and len({len(part) for part in parts[1:]}) == 1, f"spans, all candidates of one length: {parts}")
    must(max(map(len, parts)) <= wanted["max_sentences"], f"at most {wanted['max_sentences']} sentences: {parts}")
    texts = [said(text, example, number, part) for number, part in enumerate(parts)]
    must(sum(map(len, texts)) == len(set.union(*texts)), "no two texts of a group share a sentence, nor copies of one")
    anchor, document = example.paragraph[0], example.document[0]
    for label, kind, paragraph, home in zip(example.label, example.kind, example.paragraph[1:], example.document[1:]):
        expected = "positive" if paragraph == anchor else "hard" if home == document else "easy"
        must(kind == expected and label == (kind == "positive"), f"{expected} expected, got {kind} with label {label}")
    must({home in text.validation for home in example.document} == {split == "validation"}, "all are of one side of the corpus")
    counts = Counter(example.kind)
    must(counts["positive"] == wanted["positives"] and counts["hard"] <= wanted["hard_negatives"], f"kinds of a group: {counts}")
    if counts["hard"] < wanted["hard_negatives"]:  # only where every span that is left in the document repeats a sentence
        known = texts[0].union(*(words for kind, words in zip(example.kind, texts[1:]) if kind != "easy"))
        for other in text.others(anchor, len(parts[1])):
            left = [span for span in spans_of(text.paragraphs[other], len(parts[1])) if not known & set(span)]
            must(not left, f"a hard negative was to be had: {left[:1]}")
    return counts["hard"]


def spans_of(paragraph: list[str], size: int) -> list[list[str]]:
    return [paragraph[at : at + size] for at in range(len(paragraph) - size + 1)]
