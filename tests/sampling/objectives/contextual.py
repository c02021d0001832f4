"""Objectives with a context c: which sentences c has, by the words of contextual_as2."""

from tests.trust import must
from tests.trust.laws import Law, contiguous, law, places, said


class Contextual(Law):
    needs = (5, 4)
    left = 1  # sentences that the paragraph of b needs beside a and b

    def check(self, text, positive, example, before):
        a, b, context = (places(text, example, part) for part in (0, 1, 2))
        is_positive, together = example is positive, example.paragraph[0] == example.paragraph[1]
        must(len(a) == 1 and 1 <= len(b) <= 3 and contiguous(b), f"a is one sentence, b a span of 1 to 3: {a}, {b}")
        must(len(b) == len(positive.sentences[1]), f"as long as the positive's: {b}")
        must(bool(context) and example.document[2] == example.document[1], "c is never empty, and of b's document")
        must(is_positive == together and not (together and set(a) & set(b)), "a and b: disjoint of one paragraph, or of two")
        self.check_context(text, example, a if together else [], b, context)
        chosen, around, of_a = said(text, example, 1, b), said(text, example, 2, context), said(text, example, 0, a)
        must(not around & (chosen | of_a), f"c repeats {around & (chosen | of_a)} of a or b")
        return (of_a | chosen if is_positive else chosen | around), len(b) + self.left

    def check_context(self, text, example, a, b, context):
        """Which sentences c has; `a` is empty where it is of another paragraph than b."""
        must(example.paragraph[2] == example.paragraph[1], "c is of b's paragraph")
        expected = self.expected(len(text.paragraphs[example.paragraph[1]]), a, b)
        must(context == expected, f"c beside a {a} and b {b} is {expected}, got {context}")


@law
class sdc(Contextual):
    needs = (4, 3)
    first = False
    left = 0

    def check_context(self, text, example, a, b, context):
        first, first_of_a = (text.inside[example.document[part]][0] for part in (1, 0))
        whole = list(range(len(text.paragraphs[first])))
        must(example.paragraph[2] == first and context == whole, f"c is the first paragraph, whole: {context}")
        must(first != example.paragraph[1] and first_of_a != example.paragraph[0], "a and b are of later paragraphs")


@law
class dpc(Contextual):
    def expected(self, size, a, b):
        return [i for i in range(size) if i not in b and i not in a]


@law
class dslc(Contextual):
    def expected(self, size, a, b):
        return [i for i in (b[0] - 1, b[-1] + 1) if 0 <= i < size]

    def check_context(self, text, example, a, b, context):
        super().check_context(text, example, a, b, context)
        must(not set(a) & set(context), f"a {a} is not beside b {b}")
