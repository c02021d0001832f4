"""Paragraphs in the Same Document."""

from tests.trust import must
from tests.trust.laws import Law, law, places, said


@law
class psd(Law):
    needs = (1, 1)
    least = 1
    same_paragraph = False
    hard = False

    def check(self, text, positive, example, before):
        a, chosen = places(text, positive, 0), places(text, example, 1)
        anchor, other = positive.paragraph[0], example.paragraph[1]
        whole = [list(range(len(text.paragraphs[p]))) for p in (anchor, other)]
        must([a, chosen] == whole, f"whole paragraphs: {a}, {chosen}")
        must(other != anchor, "two paragraphs, not one twice")
        return said(text, example, 1, chosen) | (said(text, positive, 0, a) if example is positive else set()), 1
