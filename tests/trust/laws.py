"""The laws of every pre-training objective, checked from the text by a second, slow implementation that shares nothing with the sampler.

What holds for one objective alone is in `tests/sampling/objectives`: one file and one class an objective, without its rule.
"""

import importlib
import itertools
import pkgutil
import random
from collections import Counter, defaultdict

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tqdm.auto import tqdm

from asutil import corpus as c
from asutil import sampling
from asutil.draws import keyed, mix
from asutil.sampling import Sampler
from asutil.sampling.objectives import OBJECTIVES
from tests.sampling import objectives

from . import Broken, must

LAWS: dict[str, "Law"] = {}

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


def groups(sampler: Sampler, objective: str, numbers=None, **options):
    """Groups of a sampler, all or some, each a list of its examples, made one by one."""
    size = LAWS[objective].size(options)
    must(len(sampler) == size * sampler.groups, f"{sampler.groups} groups of {size}, got {len(sampler)} examples")
    for g in range(sampler.groups) if numbers is None else numbers:
        examples = [sampler[g * size + i] for i in range(size)]
        must({example.group for example in examples} == {g}, f"examples {g * size} to {(g + 1) * size - 1} are of group {g}")
        yield examples


# ------------------------------------------------------------------ one objective


def law(cls: type["Law"]) -> type["Law"]:
    """Register the laws of the objective that has the name of the class."""
    LAWS[cls.__name__] = cls()
    return cls


class Law:
    """The laws of an objective of pairs: one positive, then hard, then easy negatives, by the words of its paper."""

    needs: tuple[int, int]  # the most sentences that the paragraph of an anchor needs, and that of a negative, whatever lengths are drawn
    least = 2  # the fewest sentences that the paragraph of an anchor needs
    same_paragraph = True  # whether A and B of a positive are of one paragraph
    first = True  # whether the first paragraph of a document has parts A and B
    hard = True  # whether a negative may be of the document of the anchor
    before = False  # whether a negative may be asked for from the paragraph of the anchor, before A
    negatives: int | None = None  # of a group, where the paper leaves no choice
    swap = False  # whether the negative is the positive, swapped

    def size(self, options: dict) -> int:
        """Examples of a group."""
        return 1 + (self.negatives or options.get("negatives", 4))

    def check(self, text: Text, positive, example, before: bool) -> tuple[set[str], int]:
        """One example of a group, the positive itself or a negative, beside the positive.

        Returns: sentences that no negative may repeat (of a negative: its own), and how many a negative's paragraph needs.
        """
        raise NotImplementedError

    def check_group(self, text: Text, group: list, hard_negatives=2, validation=False, before=False) -> tuple[int, int]:
        """A whole group; the arguments are those of `check_group`."""
        positive, *negatives = group
        must(positive.label == 1 and positive.kind == "positive", f"the first of a group is positive: {positive}")
        must(all(n.label == 0 for n in negatives), f"all others are negative: {[n.label for n in negatives]}")
        together = positive.paragraph[0] == positive.paragraph[1]
        must(together or not self.same_paragraph, f"A and B of one paragraph: {positive.paragraph}")
        must(positive.document[0] == positive.document[1], f"A and B of one document: {positive.document}")
        must({d in text.validation for example in group for d in example.document} == {validation}, "all are of one side of the corpus")
        must(self.negatives in (None, len(negatives)), f"{self.negatives} negatives expected, got {len(negatives)}")
        known, need = self.check(text, positive, positive, before)
        if self.swap:
            (negative,) = negatives
            must(negative.kind == "hard" and negative.sentences == positive.sentences[::-1], "the negative is the positive, swapped")
            must((negative.parts, negative.paragraph) == (positive.parts[::-1], positive.paragraph), "swapped in its text, too")
            return 0, 0
        hard = 0
        for slot, negative in enumerate(negatives, 1):
            must(negative.sentences[0] == positive.sentences[0] and negative.parts[0] == positive.parts[0], "a group shares its A")
            theirs, _ = self.check(text, positive, negative, before and slot == 1)
            must(not known & theirs, f"{type(self).__name__}: a negative repeats {known & theirs} of its anchor or positive")
            is_hard = negative.kind == "hard"
            must(negative.kind in (("hard", "easy") if self.hard else ("easy",)), f"a negative is hard or easy: {negative.kind}")
            must((negative.document[1] == positive.document[0]) == is_hard, f"{negative.kind}, of documents {negative.document}")
            must(not is_hard or slot <= hard_negatives, f"hard ones come first, {hard_negatives} at most: slot {slot}")
            hard += is_hard
        possible = [p for p in text.others(positive.paragraph[0], need) if self.may_give(text, p)] if self.hard else []
        # The paragraph of a positive is no negative; the others of the document may be taken twice.
        return hard, min(hard_negatives, len(possible)) if set(possible) - {positive.paragraph[1]} else 0

    def may_give(self, text: Text, paragraph: int) -> bool:
        return self.first or paragraph != text.inside[text.of[paragraph]][0]

    def check_one(self, text: Text, group: list, split: str, options: dict, before: bool) -> None:
        """A group of a sampler; a corpus without a copy gives all the hard negatives that there can be."""
        hard, possible = self.check_group(text, group, options.get("hard_negatives", 2), split == "validation", before)
        must(hard <= possible or before, f"{possible} hard negatives at most, got {hard}")
        if len(text.unique) == len(text.inside):
            must(hard == possible or before, f"{possible} hard negatives can be had, got {hard}")

    def sure_anchors(self, text: Text, side: list[int], options: dict) -> set[int]:
        """Paragraphs that must be anchors whatever is drawn: long enough, free of copies, and with a negative that is sure, too."""
        anchor, other = self.needs
        able = lambda p, need: text.of[p] in text.unique and len(text.paragraphs[p]) >= need and self.may_give(text, p)
        givers = {text.of[p] for p in side if able(p, other)}
        found = {p for p in side if able(p, anchor) and (self.swap or givers - {text.of[p]})}
        return {p for p in found if self.same_paragraph or self.has_positive(text, p)}

    def has_positive(self, text: Text, paragraph: int) -> bool:
        """Whether another paragraph of the document gives B, where B is of another one."""
        return len(text.inside[text.of[paragraph]]) > 1

    def drawn_options(self, draw) -> dict:
        return {"lengths": draw(st.sampled_from([None, None, "even"]))}


def check_group(text: Text, objective: str, group: list, hard_negatives=2, validation=False, before=False) -> tuple[int, int]:
    """One positive, then hard, then easy negatives, by the papers' words.

    Args:
        before: whether B follows A, and the first hard negative may be a span before A.
    Returns: hard negatives of the group, and how many there could be at most.
    """
    return LAWS[objective].check_group(text, group, hard_negatives, validation, before)


def said(text: Text, example, part: int, at: list[int]) -> set[str]:
    return {text.paragraphs[example.paragraph[part]][i] for i in at}


# ------------------------------------------------------------------ one epoch of a corpus


def check_epoch(corpus, objective: str, seed=0, epoch=0, split="train", **options) -> int:
    """All laws on all groups of an epoch; which paragraphs are visited, how often, and that order has no say. Returns: groups."""
    text = Text(corpus)
    try:
        sampler = Sampler(corpus, objective, seed, epoch, split, **options)
    except ValueError as error:
        must(
            f"no eligible anchor for {objective if len(_members(objective)) == 1 else ''}" in str(error),
            f"{objective} refused a corpus: {error}",
        )
        must(not all(sure_anchors(text, name, split, options) for name in _members(objective)), f"{objective} refused a corpus: {error}")
        return 0
    numbers = np.arange(len(sampler))
    made, visited = sampler.spans(numbers), defaultdict(list)
    examples = [made.example(corpus, row) for row in numbers]
    size = LAWS[_members(objective)[0]].size(options)
    must(len(sampler) == size * sampler.groups, f"{sampler.groups} groups of {size}, got {len(sampler)} examples")
    for start in range(0, len(examples), size):
        group, name = examples[start : start + size], _members(objective)[made.members[start]]
        must({example.group for example in group} == {start // size}, "examples stand in the order of their groups")
        before = options.get("same_paragraph_before", False) and LAWS[name].before
        LAWS[name].check_one(text, group, split, options, before)
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
    return OBJECTIVES[objective].members or (objective,)


def sure_anchors(text: Text, objective: str, split: str, options: dict) -> set[int]:
    """Paragraphs that must be anchors whatever is drawn."""
    side = [p for p, d in text.of.items() if (d in text.validation) == (split == "validation")]
    return LAWS[objective].sure_anchors(text, side, options)


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
    if any(LAWS[name].before for name in _members(objective)):
        options["same_paragraph_before"] = bool(options["hard_negatives"]) and draw(st.booleans())
    return options | LAWS[_members(objective)[0]].drawn_options(draw)


def check(count: int, number: int) -> dict[str, int]:
    """The laws of every objective on `count` generated corpora each. Returns: groups checked an objective."""
    unlike = {name for name in sampling.OBJECTIVES if name not in OBJECTIVES or not OBJECTIVES[name].members} ^ set(LAWS)
    must(not unlike, f"objectives without laws, or laws without objective: {unlike}")
    found = {}
    with tqdm(total=count * len(sampling.OBJECTIVES), desc="corpora", unit="", dynamic_ncols=True) as bar:
        for place, objective in enumerate(sampling.OBJECTIVES):
            found[objective] = check_corpora(objective, count, number + place, bar)
    return found


def check_corpora(objective, count, number, bar=None) -> int:
    """The laws of an objective on so many generated corpora. Returns: groups checked."""
    made = Counter()
    quiet = {"database": None, "print_blob": False, "report_multiple_bugs": False, "suppress_health_check": list(HealthCheck)}

    @seed(number)
    @settings(max_examples=count, phases=(Phase.generate, Phase.shrink), deadline=None, **quiet)
    @given(corpora(), drawn_options(objective), st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(["train"] * 4 + ["validation"]))
    def laws(documents, options, seed, epoch, split):
        made["corpora"] += 1
        made["groups"] += check_epoch(Listed(documents), objective, seed, epoch, split, **options)
        if bar:
            bar.update()

    try:
        laws()
    except Broken as error:
        raise Broken("; ".join([f"{objective}: {error}", *getattr(error, "__notes__", [])])) from error
    must(made["corpora"] >= count, f"{count} corpora for {objective}, got {made['corpora']}")
    must(made["groups"] >= count / 4, f"{objective}: corpora that give groups, got {made['groups']} groups of {count}")
    return made["groups"]


for _module in pkgutil.iter_modules(objectives.__path__):
    importlib.import_module(f"{objectives.__name__}.{_module.name}")
