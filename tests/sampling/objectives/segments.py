"""Next Sentence Prediction and Sentence Order Prediction: two neighbouring segments, and one negative."""

from tests.trust import must
from tests.trust.laws import Law, contiguous, law, places, said


@law
class nsp(Law):
    needs = (10, 5)
    hard = False
    negatives = 1

    def check(self, text, positive, example, before):
        a, b, chosen = places(text, positive, 0), places(text, positive, 1), places(text, example, 1)
        must(contiguous(a + b) and 1 <= len(a) <= 5 and 1 <= len(b) <= 5, f"neighbours of 1 to 5 sentences: {a}, {b}")
        must(contiguous(chosen) and len(chosen) == len(b), f"as long as the positive's {b}: {chosen}")
        return said(text, example, 1, chosen) | (said(text, positive, 0, a) if example is positive else set()), len(b)


@law
class sop(nsp):
    swap = True
