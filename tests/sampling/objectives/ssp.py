"""Spans in the Same Paragraph."""

from tests.trust import must
from tests.trust.laws import Law, contiguous, law, places, said


@law
class ssp(Law):
    needs = (8, 5)
    before = True

    def check(self, text, positive, example, before):
        a, b, chosen = places(text, positive, 0), places(text, positive, 1), places(text, example, 1)
        anchor, other, is_positive = positive.paragraph[0], example.paragraph[1], example is positive
        must(contiguous(a) and 1 <= len(a) <= 3 and contiguous(b) and 1 <= len(b) <= 5, f"spans of 1 to 3 and 1 to 5: {a}, {b}")
        must(not set(a) & set(b) and not (before and is_positive and b[0] < a[-1]), f"disjoint, and B after A where it is to be: {a}, {b}")
        must(contiguous(chosen) and len(chosen) == len(b), f"as long as the positive's {b}: {chosen}")
        must(is_positive or other != anchor or (before and chosen[-1] < a[0]), "a negative of the anchor's paragraph stands before A")
        return said(text, example, 1, chosen) | (said(text, positive, 0, a) if is_positive else set()), len(b)
