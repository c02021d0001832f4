"""BM25 in scripts with and without spaces between words, against a slow one written here."""

import math
import re
import sys
import unicodedata
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asutil
from asutil.data import baselines
from asutil.data.answers import load_answers

from .test_answers import folder

LETTERS = "abzABZ09_ äÉñőŽæøжЖβΣאب.,;-?!'\n\t…"


@given(st.text(st.sampled_from(LETTERS), max_size=60) | st.text(st.characters(max_codepoint=127), max_size=60))
def test_words_of_spaced_text_are_runs_of_letters_and_digits(text):
    assert baselines.words(text) == re.findall(r"\w+", text.casefold())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cafe\u0301 CAFÉ Straße STRASSE", ["café", "café", "strasse", "strasse"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs stay in their words
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("首都", ["首", "都", "首都"]),
        ("東京タワー2021年", ["東", "京", "タ", "ワ", "ー", "東京", "京タ", "タワ", "ワー", "2021", "年"]),
        ("ที่นี่", ["ที่", "นี่", "ที่นี่"]),
        ("I \u2764\ufe0f tea, 1\ufe0f\u20e3", ["i", "tea", "1"]),  # what chooses a glyph is no word, and no part of one
        ("\U0001f469\u200d\U0001f4bb ok", ["ok"]),
        ("\u845b\U000e0100\u98fe", ["葛", "飾", "葛飾"]),
    ],
)
def test_words_of_other_scripts(text, words):
    assert baselines.words(text) == [unicodedata.normalize("NFC", word) for word in words]


@pytest.mark.slow
def test_every_letter_and_digit_is_a_word_and_nothing_else_is():
    """Characters of scripts with spaces, each alone; a mark is a part of a word, and no word alone."""
    for character in map(chr, range(sys.maxunicode + 1)):
        text = unicodedata.normalize("NFC", character.casefold())
        if unicodedata.category(character) in ("Cn", "Cs") or baselines.UNSPACED.search(text):
            continue
        expected = [text] if re.match(r"\w", text) else []
        assert baselines.words(character) == expected, hex(ord(character))


def slow_bm25(question, texts, words=lambda text: re.findall(r"\w+", text.lower())):
    """Lucene's form: the sum over words of ln(1 + (N - df + .5) / (df + .5)) * tf / (tf + 1.5 (.25 + .75 length / mean length))."""
    documents = [Counter(words(text)) for text in texts]
    mean = sum(document.total() for document in documents) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in words(question):
            containing = sum(word in other for other in documents)
            if word in document:
                idf = math.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
                score += idf * document[word] / (document[word] + 1.5 * (0.25 + 0.75 * document.total() / mean))
        scores.append(score)
    return scores


def test_bm25_of_a_split_counts_the_candidates_of_all_questions(tmp_path):
    rows = [("Red apples?", "red red wine", 1), ("Red apples?", "green apples", 0)]
    rows += [("unknown", "a red car, here", 1), ("unknown", "...", 0)]
    rows = [(f"Q{number // 2}", *row[:1], "P", *row[1:]) for number, row in enumerate(rows)]
    scores = baselines.baseline_scores(load_answers(folder(tmp_path, test=rows))["test"], "bm25").score
    assert scores.tolist() == pytest.approx([*slow_bm25("Red apples?", [row[3] for row in rows])[:2], 0, 0], rel=1e-5)
    nothing = load_answers(folder(tmp_path, test=[("Q1", "?!", "P", "...", 1)]))["test"]
    assert baselines.baseline_scores(nothing, "bm25").score.tolist() == [0]


def pairs_of(text):
    """Characters and pairs of Chinese text, between punctuation, by hand."""
    return [part[i : i + size] for part in re.split("[，。？]", text) for size in (1, 2) for i in range(len(part) - size + 1)]


def test_chinese_candidates_are_ranked_by_the_characters_and_pairs_that_they_share():
    question = "法國的首都是哪裡？"
    texts = ["今天天氣很好。", "巴黎是法國的首都。", "法國人吃乳酪。", "首先，我們走了。"]
    expected = slow_bm25(question, texts, pairs_of)
    np.testing.assert_allclose(baselines.bm25_over(texts)(question), expected, rtol=1e-5)
    assert next(number for number, _ in asutil.load_ranker("bm25").rank(question, texts)) == 1


def test_bm25_of_some_texts_is_the_part_of_all_and_what_bm25s_gives():
    random = np.random.default_rng(3)
    known = [f"w{number}" for number in range(40)]
    texts = [" ".join(random.choice(known, random.integers(0, 9))) for _ in range(200)]
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index([text.split() for text in texts], show_progress=False)
    scores_for = baselines.bm25_over(texts)
    for _ in range(50):
        query, (first, stop) = random.choice(known, 6), sorted(random.integers(0, 200, 2))
        whole = scores_for(" ".join(query))
        assert np.array_equal(whole, index.get_scores(list(query)))
        assert np.array_equal(scores_for(f"unknown {' '.join(query)}", first, stop), whole[first:stop])


def test_a_ranker_that_orders_nothing_says_so(caplog):
    caplog.set_level("WARNING")
    questions = [f"word{n}" for n in range(12)]
    candidates = ["red wine", "a car"] * 12
    baselines.bm25(questions[:9], candidates[:18], [2] * 9)
    baselines.bm25(["red"] * 6 + questions[:6], candidates, [2] * 12)
    assert not caplog.messages
    baselines.bm25(["red"] * 5 + questions[:7], candidates, [2] * 12)
    (message,) = caplog.messages
    assert "the same score in 7 of 12 questions" in message
