"""The laws of every pre-training objective, checked from the text by a second, slow implementation that shares nothing with the sampler."""

import itertools
import random
from collections import Counter, defaultdict

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tqdm.auto import tqdm

from asutil import corpus as c
from asutil import sampling
from asutil.draws import keyed, mix
from asutil.sampling import Sampler, objectives

from . import Broken, must

CONTEXTUAL = {"sdc": 0, "dpc": 1, "dslc": 1}  # sentences that b's paragraph needs beside a and b
PAIRS = ("ssp", "sp", "psd", *CONTEXTUAL)
SEGMENTS = ("nsp", "sop")
# The most sentences that the paragraph of an anchor needs, and that of a negative, whatever lengths are drawn.
NEEDS = {"ssp": (8, 5), "sp": (4, 4), "psd": (1, 1), "nsp": (10, 5), "sop": (10, 5), "sdc": (4, 3), "dpc": (5, 4), "dslc": (5, 4)}
LAWS = {*PAIRS, *SEGMENTS, *objectives.UNIONS, "mspp"}
JOINT = {"positives": 1, "hard_negatives": 2, "negatives": 4, "max_sentences": 1}

# ------------------------------------------------------------------ a corpus as text


class Text:
    """A corpus as nested lists of sentence texts, with the paragraphs of each document and the documents that are validation."""

    def __init__(self, corpus):
        texts = [corpus.text([n]) for n in range(corpus.info["sentences"])]
        self.first = corpus.paragraphs.tolist()
        self.paragraphs = [texts[a:b] for a, b in itertools.pairwise(self.first)]
        self.of, self.inside = {}, defaultdict(list)
        for document, bounds in enumerate(itertools.pairwise(corpus.documents.tolist())):
            self.inside[document] = list(range(*bounds))
            self.of |= dict.fromkeys(range(*bounds), document)
        self.validation = set(np.flatnonzero(corpus.validation).tolist())
        self.counts = Counter(texts)
        self.unique = {d for d, inside in self.inside.items() if all(self.counts[s] == 1 for p in inside for s in self.paragraphs[p])}

    def others(self, paragraph: int, need: int) -> list[int]:
        """Paragraphs of the same document with `need` sentences or more."""
        return [p for p in self.inside[self.of[paragraph]] if p != paragraph and len(self.paragraphs[p]) >= need]


class Listed(c.Corpus):
    """An index of sentences that are names: two of the same name are copies. No tokens, no files.

    Documents are told apart by their number: two with the same sentences are not held out together.
    """

    def __init__(self, documents: list[list[list[int]]]):
        paragraphs = [p for document in documents for p in document]
        self.names = [name for paragraph in paragraphs for name in paragraph]
        offsets = {"sentences": [1] * len(self.names), "paragraphs": map(len, paragraphs), "documents": map(len, documents)}
        arrays = {name: np.cumsum([0, *sizes]) for name, sizes in offsets.items()}
        arrays |= {"tokens": np.arange(len(self.names)), "hashes": keyed(np.array(self.names))}
        arrays["document_hashes"] = numbered(len(documents))
        super().__init__(None, {"sentences": len(self.names)}, arrays)

    def text(self, numbers) -> str:
        return " ".join(str(self.names[n]) for n in numbers)


def numbered(documents: int) -> np.ndarray:
    """A hash of the number of each document."""
    return mix(np.arange(documents, dtype=np.uint64) + np.uint64(0x5EED))


def places(text: Text, example, part: int) -> list[int]:
    """Places of a part's sentences within its paragraph; that they, its text and its document are what they are said to be."""
    paragraph = example.paragraph[part]
    said, found = text.paragraphs[paragraph], [n - text.first[paragraph] for n in example.sentences[part]]
    must(found == sorted(found) and found[0] >= 0 and found[-1] < len(said), f"sentences of paragraph {paragraph}, in order: {found}")
    must(example.parts[part] == " ".join(said[i] for i in found), f"the text of these sentences, got {example.parts[part]!r}")
    must(example.document[part] == text.of[paragraph], f"paragraph {paragraph} is of document {text.of[paragraph]}: {example.document}")
    return found


def contiguous(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[-1] + 1))


def sizes_of(sampler: Sampler) -> int:
    """Examples of a group."""
    return 1 + sampler.negatives if sampler.rule is not objectives.mspp else 1


def groups(sampler: Sampler, numbers):
    """Some groups of a sampler, each a list of its examples, made one by one."""
    size = sizes_of(sampler)
    for g in numbers:
        examples = [sampler[g * size + i] for i in range(size)]
        must({example.group for example in examples} == {g}, f"examples {g * size} to {(g + 1) * size - 1} are of group {g}")
        yield examples


# ------------------------------------------------------------------ objectives of groups: one positive, then negatives


def check_group(text: Text, objective: str, group: list, hard_negatives=2, validation=False, before=False) -> tuple[int, int]:
    """One positive, then hard, then easy negatives, by the papers' words.

    Args:
        before: whether B follows A, and the first hard negative may be a span before A.
    Returns: hard negatives of the group, and how many there could be at most.
    """
    positive, *negatives = group
    must(positive.label == 1 and positive.kind == "positive", f"the first of a group is positive: {positive}")
    must(all(n.label == 0 for n in negatives), f"all others are negative: {[n.label for n in negatives]}")
    must(positive.paragraph[0] == positive.paragraph[1] or objective == "psd", f"A and B of one paragraph: {positive.paragraph}")
    must(positive.document[0] == positive.document[1], f"A and B of one document: {positive.document}")
    must({d in text.validation for example in group for d in example.document} == {validation}, "all are of one side of the corpus")
    if objective in SEGMENTS:
        return _check_segments(text, objective, positive, negatives)
    check = _check_context if objective in CONTEXTUAL else _check_pair
    known, need = check(text, objective, positive, positive, before)
    hard = 0
    for slot, negative in enumerate(negatives, 1):
        must(negative.sentences[0] == positive.sentences[0] and negative.parts[0] == positive.parts[0], "a group shares its A")
        theirs, _ = check(text, objective, positive, negative, before and slot == 1)
        must(not known & theirs, f"{objective}: a negative repeats {known & theirs} of its anchor or positive")
        is_hard = negative.kind == "hard"
        must(negative.kind in ("hard", "easy"), f"a negative is hard or easy: {negative.kind}")
        must((negative.document[1] == positive.document[0]) == is_hard, f"{negative.kind}, of documents {negative.document}")
        must(not is_hard or slot <= hard_negatives, f"hard ones come first, {hard_negatives} at most: slot {slot}")
        hard += is_hard
    possible = 0 if objective == "psd" else len([p for p in text.others(positive.paragraph[0], need) if _may_give(text, objective, p)])
    return hard, min(hard_negatives, possible)


def _may_give(text, objective, paragraph) -> bool:
    return objective != "sdc" or paragraph != text.inside[text.of[paragraph]][0]


def _check_segments(text, objective, positive, negatives) -> tuple[int, int]:
    """nsp and sop: two neighbouring segments, and one negative."""
    (negative,) = negatives
    a, b = (places(text, positive, part) for part in (0, 1))
    must(contiguous(a + b) and 1 <= len(a) <= 5 and 1 <= len(b) <= 5, f"neighbours of 1 to 5 sentences: {a}, {b}")
    if objective == "sop":
        must(negative.kind == "hard" and negative.sentences == positive.sentences[::-1], "the negative is the positive, swapped")
        must((negative.parts, negative.paragraph) == (positive.parts[::-1], positive.paragraph), "swapped in its text, too")
        return 0, 0
    chosen = places(text, negative, 1)
    must(negative.sentences[0] == positive.sentences[0] and negative.parts[0] == positive.parts[0], "a group shares its A")
    must(negative.kind == "easy" and negative.document[1] != positive.document[0], f"of another document: {negative.document}")
    must(contiguous(chosen) and len(chosen) == len(b), f"as long as the positive's {b}: {chosen}")
    known, theirs = _said(text, positive, 0, a) | _said(text, positive, 1, b), _said(text, negative, 1, chosen)
    must(not known & theirs, f"nsp: a negative repeats {known & theirs}")
    return 0, 0


def _said(text, example, part, at) -> set[str]:
    return {text.paragraphs[example.paragraph[part]][i] for i in at}


def _check_pair(text, objective, positive, example, before) -> tuple[set[str], int]:
    """ssp, sp, psd. Returns: sentences that no negative may repeat (of a negative: its own), and how many a negative's paragraph needs."""
    anchor, other = positive.paragraph[0], example.paragraph[1]
    size, is_positive = len(text.paragraphs[other]), example is positive
    a, b, chosen = places(text, positive, 0), places(text, positive, 1), places(text, example, 1)
    if objective == "psd":
        must(a == list(range(len(text.paragraphs[anchor]))) and chosen == list(range(size)), f"whole paragraphs: {a}, {chosen}")
        must(other != anchor, "two paragraphs, not one twice")
        need = 1
    elif objective == "sp":
        cut = [i for i in range(size) if i not in chosen]
        must(contiguous(a) and 1 <= len(a) <= 3, f"A is a span of 1 to 3 sentences: {a}")
        must(cut == a if is_positive else contiguous(cut) and len(cut) == len(a), f"a paragraph without a span as long as {a}: {chosen}")
        must(is_positive == (other == anchor), "a negative is of another paragraph")
        need = len(a) + 1
    else:
        must(objective == "ssp", f"{objective} has laws of its own here")
        must(contiguous(a) and 1 <= len(a) <= 3 and contiguous(b) and 1 <= len(b) <= 5, f"spans of 1 to 3 and 1 to 5: {a}, {b}")
        must(not set(a) & set(b) and not (before and is_positive and b[0] < a[-1]), f"disjoint, and B after A where it is to be: {a}, {b}")
        must(contiguous(chosen) and len(chosen) == len(b), f"as long as the positive's {b}: {chosen}")
        must(is_positive or other != anchor or (before and chosen[-1] < a[0]), "a negative of the anchor's paragraph stands before A")
        need = len(b)
    own = _said(text, example, 1, chosen)
    return own | (_said(text, positive, 0, a) if is_positive else set()), need


def _check_context(text, objective, positive, example, _) -> tuple[set[str], int]:
    """sdc, dpc, dslc: which sentences c has, by the paper's words. Returns: as `_check_pair` does."""
    a, b, context = (places(text, example, part) for part in (0, 1, 2))
    of_b, home = (text.paragraphs[p] for p in example.paragraph[1:])
    is_positive, together = example is positive, example.paragraph[0] == example.paragraph[1]
    must(len(a) == 1 and 1 <= len(b) <= 3 and contiguous(b), f"a is one sentence, b a span of 1 to 3: {a}, {b}")
    must(len(b) == len(positive.sentences[1]), f"as long as the positive's: {b}")
    must(bool(context) and example.document[2] == example.document[1], "c is never empty, and of b's document")
    must(is_positive == together and not (together and set(a) & set(b)), "a and b: disjoint of one paragraph, or of two")
    if objective == "sdc":
        first, first_of_a = (text.inside[example.document[part]][0] for part in (1, 0))
        must(example.paragraph[2] == first and context == list(range(len(home))), f"c is the first paragraph, whole: {context}")
        must(first != example.paragraph[1] and first_of_a != example.paragraph[0], "a and b are of later paragraphs")
    else:
        must(example.paragraph[2] == example.paragraph[1], "c is of b's paragraph")
    if objective == "dpc":
        must(context == [i for i in range(len(of_b)) if i not in b and not (together and i in a)], f"c is what is left: {context}")
    if objective == "dslc":
        must(context == [i for i in (b[0] - 1, b[-1] + 1) if 0 <= i < len(of_b)], f"c is the sentences beside b {b}: {context}")
        must(not (together and a[0] in context), f"a {a} is not beside b {b}")
    chosen, around, of_a = _said(text, example, 1, b), _said(text, example, 2, context), _said(text, example, 0, a)
    must(not around & (chosen | of_a), f"c repeats {around & (chosen | of_a)} of a or b")
    return (of_a | chosen if is_positive else chosen | around), len(b) + CONTEXTUAL[objective]


# ------------------------------------------------------------------ mspp: a group is one example


def check_joint(text: Text, example, split="train", **options) -> int:
    """A group of mspp by the paper's words. Returns: how many hard negatives it has."""
    wanted = JOINT | options
    parts = [places(text, example, part) for part in range(len(example.parts))]
    count = wanted["positives"] + wanted["negatives"]
    must(len(example.label) == len(example.kind) == len(parts) - 1 == count, f"{count} candidates expected, got {len(parts) - 1}")
    must(all(map(contiguous, parts)) and len({len(part) for part in parts[1:]}) == 1, f"spans, all candidates of one length: {parts}")
    must(max(map(len, parts)) <= wanted["max_sentences"], f"at most {wanted['max_sentences']} sentences: {parts}")
    said = [_said(text, example, number, part) for number, part in enumerate(parts)]
    must(sum(map(len, said)) == len(set.union(*said)), "no two texts of a group share a sentence, nor copies of one")
    anchor, document = example.paragraph[0], example.document[0]
    for label, kind, paragraph, home in zip(example.label, example.kind, example.paragraph[1:], example.document[1:]):
        expected = "positive" if paragraph == anchor else "hard" if home == document else "easy"
        must(kind == expected and label == (kind == "positive"), f"{expected} expected, got {kind} with label {label}")
    must({home in text.validation for home in example.document} == {split == "validation"}, "all are of one side of the corpus")
    counts = Counter(example.kind)
    must(counts["positive"] == wanted["positives"] and counts["hard"] <= wanted["hard_negatives"], f"kinds of a group: {counts}")
    if counts["hard"] < wanted["hard_negatives"]:  # only where every span that is left in the document repeats a sentence
        known = said[0].union(*(words for kind, words in zip(example.kind, said[1:]) if kind != "easy"))
        for other in text.others(anchor, len(parts[1])):
            left = [span for span in spans_of(text.paragraphs[other], len(parts[1])) if not known & set(span)]
            must(not left, f"a hard negative was to be had: {left[:1]}")
    return counts["hard"]


def spans_of(paragraph: list[str], size: int) -> list[list[str]]:
    return [paragraph[at : at + size] for at in range(len(paragraph) - size + 1)]


# ------------------------------------------------------------------ one epoch of a corpus


def check_epoch(corpus, objective: str, seed=0, epoch=0, split="train", **options) -> int:
    """All laws on all groups of an epoch; which paragraphs are visited, how often, and that order has no say. Returns: groups."""
    text = Text(corpus)
    try:
        sampler = Sampler(corpus, objective, seed, epoch, split, **options)
    except ValueError as error:
        must(f"no eligible anchor for {_asked(objective)}" in str(error), f"{objective} refused a corpus: {error}")
        must(not all(sure_anchors(text, name, split, options) for name in _members(objective)), f"{objective} refused a corpus: {error}")
        return 0
    numbers = np.arange(len(sampler))
    made, visited = sampler.spans(numbers), defaultdict(list)
    examples = [made.example(corpus, row) for row in numbers]
    size = sizes_of(sampler)
    must(len(sampler) == size * sampler.groups, f"{sampler.groups} groups of {size}, got {len(sampler)} examples")
    for start in range(0, len(examples), size):
        group, name = examples[start : start + size], _members(objective)[made.members[start]]
        must({example.group for example in group} == {start // size}, "examples stand in the order of their groups")
        _check_one(text, name, group, split, options)
        visited[name].append(group[0].paragraph[0])
    for name, anchors in visited.items():
        must(len(anchors) == len(set(anchors)), f"{name}: every anchor once an epoch, got {anchors}")
    must(len({len(visited[name]) for name in _members(objective)}) == 1, f"{objective}: equal parts, got {dict(visited)}")
    missing = [sorted(sure_anchors(text, name, split, options) - set(visited[name])) for name in _members(objective)]
    # of a union, the objective with the fewest
    must(not all(missing), f"{objective}: paragraphs {missing} are anchors, and were not visited")
    _check_order(Sampler(corpus, objective, seed, epoch, split, **options), made, len(sampler))
    return sampler.groups


def _members(objective) -> tuple[str, ...]:
    return objectives.UNIONS.get(objective, (objective,))


def _asked(objective) -> str:
    return "" if objective in objectives.UNIONS else objective


def _check_one(text, name, group, split, options) -> None:
    """A group by its objective's laws; a corpus without a copy gives all the hard negatives that there can be."""
    if name == "mspp":
        check_joint(text, group[0], split, **options)
        return
    before = options.get("same_paragraph_before", False) and name == "ssp"
    hard, possible = check_group(text, name, group, options.get("hard_negatives", 2), split == "validation", before)
    must(hard <= possible or before, f"{name}: {possible} hard negatives at most, got {hard}")
    if len(text.unique) == len(text.inside):
        must(hard == possible or before, f"{name}: {possible} hard negatives can be had, got {hard}")


def sure_anchors(text: Text, objective: str, split: str, options: dict) -> set[int]:
    """Paragraphs that must be anchors whatever is drawn: long enough, free of copies, and with a negative that is sure, too."""
    side = [p for p, d in text.of.items() if (d in text.validation) == (split == "validation")]
    if objective == "mspp":
        return _sure_joint(text, side, JOINT | options)
    anchor, other = NEEDS[objective]
    able = lambda p, need: text.of[p] in text.unique and len(text.paragraphs[p]) >= need and _may_give(text, objective, p)
    givers = {text.of[p] for p in side if able(p, other)}
    found = {p for p in side if able(p, anchor) and (objective == "sop" or givers - {text.of[p]})}
    return {p for p in found if objective != "psd" or len(text.inside[text.of[p]]) > 1}


def _sure_joint(text, side, wanted) -> set[int]:
    if wanted["max_sentences"] > 1:
        return set()
    found, count = set(), wanted["positives"] + wanted["negatives"]
    for p in side:
        elsewhere = {name for q in side if text.of[q] != text.of[p] for name in text.paragraphs[q]}
        distinct = len(set(text.paragraphs[p])) == len(text.paragraphs[p]) >= 1 + wanted["positives"]
        if distinct and len(elsewhere) > count:
            found.add(p)
    return found


def _check_order(sampler, made, count) -> None:
    """Another sampler of the same seed and epoch, asked in another order and for one alone, gives the same."""
    order = np.arange(count)[:: -1 if count % 3 else 1]
    order = np.concatenate([order[1::2], order[::2]])
    again, alone = sampler.spans(order), sampler.spans(order[:1])
    for name in ("ranges", "paragraphs", "labels", "kinds", "groups", "members"):
        whole = getattr(made, name)
        must(np.array_equal(whole[order], getattr(again, name)), f"{name} depend on the order in which examples are made")
        must(np.array_equal(whole[order[:1]], getattr(alone, name)), f"{name} of an example depend on those made beside it")


# ------------------------------------------------------------------ corpora


@st.composite
def corpora(draw) -> list[list[list[int]]]:
    """Documents of paragraphs of sentences that are numbers: all of them different, or out of a few, so that they repeat."""
    documents, paragraphs, sentences = draw(st.integers(4, 12)), draw(st.integers(1, 6)), draw(st.sampled_from([1, 6, 10, 14]))
    different, chance = draw(st.sampled_from([None, None, 12, 40, 200])), random.Random(draw(st.integers(0, 2**32 - 1)))
    numbers = itertools.count()
    name = (lambda: next(numbers)) if different is None else lambda: chance.randrange(different)
    several = lambda most: range(chance.randint(1, most))
    return [[[name() for _ in several(sentences)] for _ in several(paragraphs)] for _ in range(documents)]


@st.composite
def drawn_options(draw, objective: str) -> dict:
    """Options that an objective can have, and the usual ones as often as any other."""
    negatives = draw(st.sampled_from([4, 4, 1, 3]))
    options = {"negatives": negatives, "hard_negatives": draw(st.integers(0, min(3, negatives)))}
    if objective in ("ssp", "all"):
        options["same_paragraph_before"] = bool(options["hard_negatives"]) and draw(st.booleans())
    if objective == "mspp":
        options |= {"positives": draw(st.sampled_from([1, 1, 2, 3])), "max_sentences": draw(st.sampled_from([1, 1, 2, 3]))}
    else:
        options["lengths"] = draw(st.sampled_from([None, None, "even"]))
    return options


def check(count: int, number: int) -> dict[str, int]:
    """The laws of every objective on `count` generated corpora each. Returns: groups checked an objective."""
    unlike = set(sampling.OBJECTIVES) ^ LAWS
    must(not unlike, f"objectives without laws, or laws without objective: {unlike}")
    found = {}
    with tqdm(total=count * len(LAWS), desc="corpora", unit="", dynamic_ncols=True) as bar:
        for place, objective in enumerate(sampling.OBJECTIVES):
            found[objective] = _check_corpora(objective, count, number + place, bar)
    return found


def _check_corpora(objective, count, number, bar) -> int:
    made = Counter()
    usual = {
        "deadline": None,
        "database": None,
        "print_blob": False,
        "report_multiple_bugs": False,
        "suppress_health_check": list(HealthCheck),
    }

    @seed(number)
    @settings(max_examples=count, phases=(Phase.generate, Phase.shrink), **usual)
    @given(corpora(), drawn_options(objective), st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(["train"] * 4 + ["validation"]))
    def laws(documents, options, seed, epoch, split):
        made["corpora"] += 1
        made["groups"] += check_epoch(Listed(documents), objective, seed, epoch, split, **options)
        bar.update()

    try:
        laws()
    except Broken as error:
        raise Broken("; ".join([f"{objective}: {error}", *getattr(error, "__notes__", [])])) from error
    must(made["corpora"] >= count, f"{count} corpora for {objective}, got {made['corpora']}")
    must(made["groups"] >= count / 4, f"{objective}: corpora that give groups, got {made['groups']} groups of {count}")
    return made["groups"]
