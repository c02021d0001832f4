"""Sentences as the splitter parts them, written down by hand: indexes of corpora, and so every sampled example, follow from them."""

import pytest

from asutil.corpus import cleaning

PARAGRAPHS = [
    ["Emperor penguins breed on ice.", "They walk up to 120 km!", "Why?", "Nobody knows."],
    ["Dr. A. Smith met Mr. Jones at 3.5 p.m. in the U.S. embassy.", "It rained."],
    ['He said: "It is late."', "Then he left (e.g. by train)."],
    ["法國的首都是巴黎。", "巴黎在塞納河畔。"],
    ["no capital letter follows. so this is one sentence, up to its end"],
    ["Naïve café owners paid 5 € … and left.", "Ünal did not."],
]


@pytest.mark.parametrize("sentences", PARAGRAPHS, ids=lambda sentences: sentences[0][:20])
def test_blingfire_parts_a_paragraph_into_these_sentences(sentences):
    joined = "" if any("\u4e00" <= character <= "\u9fff" for character in sentences[0]) else " "
    assert cleaning.splitter_function("blingfire")(joined.join(sentences)) == sentences
