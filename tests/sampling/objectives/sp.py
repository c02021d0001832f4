"""Span in Paragraph."""

from tests.trust import must
from tests.trust.laws import Law, contiguous, law, places, said


@law
class sp(Law):
    needs = (4, 4)

    def check(self, text, positive, example, before):
        a, chosen = places(text, positive, 0), places(text, example, 1)
        other, is_positive = example.paragraph[1], example is positive
        cut = [i for i in range(len(text.paragraphs[other])) if i not in chosen]
        must(contiguous(a) and 1 <= len(a) <= 3, f"A is a span of 1 to 3 sentences: {a}")
        must(cut == a if is_positive else contiguous(cut) and len(cut) == len(a), f"a paragraph without a span as long as {a}: {chosen}")
        must(is_positive == (other == positive.paragraph[0]), "a negative is of another paragraph")
        return said(text, example, 1, chosen) | (said(text, positive, 0, a) if is_positive else set()), len(a) + 1
