"""NewsAS2 in the hub's form and made from NewsQA, contexts from rows whose order was checked, and orders that are refused."""

import contextlib
import json
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from asutil.corpus.cleaning import splitter_function
from asutil.data import document_order, newsas2
from asutil.data.answers import load_answers
from asutil.data.baselines import baseline_scores
from asutil.data.data_sets import ANSWERS
from asutil.data.splits import SPLITS

from .test_answers import as_on_the_hub, counting, folder

PAGES = [[f"Sentence {n} of page {page} is long enough." for n in range(12)] for page in range(8)]


def news(questions_a_page=3, count=8, order=None):
    """(question, answer, label) as the hub has them: some questions about each page, all of its sentences under each."""
    draw, rows = random.Random(0), []
    for page, sentences in enumerate(PAGES[:count]):
        for asked in range(questions_a_page):
            right = set(draw.sample(range(12), 1 + (page + asked) % 2))
            page_rows = [(f"who is {asked} of {page}?", text, int(n in right)) for n, text in enumerate(sentences)]
            rows += order(page_rows) if order else page_rows
    return rows


def on_hub(tmp_path, monkeypatch, rows, name="newsas2", printed=1.5, group=50):
    """A mirror whose three splits have these rows; the counts and shares that are asserted are theirs."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(row[0] for row in rows))}
    as_on_the_hub(tmp_path, monkeypatch, name, [(*row, numbers[row[0]])[: 4 if name == "asnq" else 3] for row in rows], group=group)
    monkeypatch.setitem(ANSWERS, "newsas2", replace(ANSWERS["newsas2"], positives=dict.fromkeys(SPLITS, printed)))


# ---------------------------------------------------------------------------------------------------------------- the hub


def test_published_counts_and_shares():
    published = {"train": (71_561, 1_840_533), "dev": (2_102, 51_844), "test": (2_083, 51_472)}
    assert ANSWERS["newsas2"].counts == {"clean": published}
    assert ANSWERS["newsas2"].positives == {"train": 1.69, "dev": 1.66, "test": 1.68}
    # Every question of a clean dev or test set has a positive: the printed per cent cannot be a share of the candidates.
    assert all(asked / candidates > 0.0385 for asked, candidates in published.values())


@pytest.mark.parametrize("group", [5, 50, 1000])
def test_rows_of_one_text_are_a_question(tmp_path, monkeypatch, group):
    rows = news()
    on_hub(tmp_path, monkeypatch, [*rows[::2], *rows[1::2]], group=group)
    splits = load_answers("newsas2")
    assert [len(split) for split in splits.values()] == [24, 24, 24]
    first = splits["dev"][0]
    assert (first.id, first.text, len(first.candidates)) == ("dev-0", rows[0][0], 12)
    assert {(c.text, c.label) for c in first.candidates} == {row[1:] for row in rows[:12]}
    assert not splits["train"].ordered and all(c.before is c.after is None for c in first.candidates)
    assert len(baseline_scores(splits["test"], "bm25")) == len(rows)


def test_counts_are_of_all_rows_and_clean_sets_leave_out_what_cannot_be_ranked(tmp_path, monkeypatch):
    rows = [*news(), *[("never answered?", text, 0) for text in PAGES[0]]]
    on_hub(tmp_path, monkeypatch, rows, printed=36 / 25)
    splits = load_answers("newsas2")
    assert [len(split) for split in splits.values()] == [25, 24, 24]
    assert splits["test"].report["dropped"] == {"no positive": {"questions": 1, "candidates": 12}}
    counting(monkeypatch, "newsas2", {"clean": dict.fromkeys(SPLITS, (24, 288))})
    with pytest.raises(ValueError, match=r"newsas2.*expected 24 questions and 288 candidates, got 25 and 300"):
        load_answers("newsas2")


@pytest.mark.parametrize(("printed", "fits"), [(1.5, True), (12.5, True), (1.52, False), (12.6, False), (0, False)])
def test_the_share_of_positives_is_asserted(tmp_path, monkeypatch, printed, fits):
    on_hub(tmp_path, monkeypatch, news(), printed=printed)  # 36 positives, 24 questions, 288 candidates
    refused = pytest.raises(ValueError, match=rf"news_as2/train: expected {printed} positives .* got 12\.50 and 1\.50")
    with contextlib.nullcontext() if fits else refused:
        load_answers("newsas2")


# ---------------------------------------------------------------------------------------------------------------- contexts


@pytest.mark.parametrize("name", ["newsas2", "asnq"])
def test_contexts_once_the_order_is_checked(tmp_path, monkeypatch, name):
    on_hub(tmp_path, monkeypatch, news(), name)
    splits = load_answers(name, context=True, limit=5)
    for split in splits.values():
        assert split.ordered and len(split) == 5
        for question in split:
            texts = PAGES[int(question.text.split()[-1][:-1])]
            assert [c.text for c in question.candidates] == texts
            assert [c.before for c in question.candidates] == [None, *texts[:-1]]
            assert [c.after for c in question.candidates] == [*texts[1:], None]
    assert baseline_scores(splits["dev"], "document_order").score.min() == -11
    assert all(c.before is c.after is None for c in load_answers(name)["dev"][0].candidates)


def test_one_question_about_two_pages_has_no_context_across_them(tmp_path, monkeypatch):
    rows = [(text.replace("0 of 7", "0 of 0"), *rest) for text, *rest in news()]
    on_hub(tmp_path, monkeypatch, rows, printed=36 / 23)
    question = load_answers("newsas2", context=True)["train"][0]
    assert [c.text for c in question.candidates] == PAGES[0] + PAGES[7]
    assert [c.before for c in question.candidates] == [None, *PAGES[0][:-1], None, *PAGES[7][:-1]]
    assert [c.after for c in question.candidates] == [*PAGES[0][1:], None, *PAGES[7][1:], None]


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (
            lambda rows: random.Random(rows[0][0]).sample(rows, len(rows)),
            r"neighbours that another question has, too, 1?\d% are neighbours there",
        ),
        (lambda rows: sorted(rows, key=lambda row: -row[2]), "right candidates stand first in 100% of the questions"),
        (lambda rows: sorted(rows, key=lambda row: row[1]), "100% of the questions have their candidates in alphabetical order"),
    ],
    ids=["shuffled", "positives first", "sorted"],
)
@pytest.mark.parametrize("name", ["newsas2", "asnq"])
def test_rows_in_another_order_give_no_context(tmp_path, monkeypatch, name, order, reason):
    on_hub(tmp_path, monkeypatch, news(order=order), name)
    assert len(load_answers(name)["dev"]) == 24, "pairs need no order"
    with pytest.raises(ValueError, match=rf"/train: expected rows in the order of their documents.*({reason})"):
        load_answers(name, context=True)


def test_an_order_that_nothing_shows_gives_no_context(tmp_path, monkeypatch):
    on_hub(tmp_path, monkeypatch, news(questions_a_page=1), printed=12 / 8)
    with pytest.raises(ValueError, match="only 0 neighbours stand under two questions, 100 are needed"):
        load_answers("newsas2", context=True)


def test_measure_against_plain_loops(tmp_path, monkeypatch):
    """Repeated sentences, several pages in one question, rows moved by a few: each neighbour looked up by hand."""
    draw = random.Random(3)
    rows = []
    for number in range(60):
        page = [*draw.choice(PAGES), "Read more."]
        page.insert(draw.randrange(13), "Read more." if number % 3 else page[0])
        if number % 4 == 0:
            a, b = draw.sample(range(14), 2)
            page[a], page[b] = page[b], page[a]
        rows += [(f"q{number % 50}", text, int(n < 2)) for n, text in enumerate(page)]
    on_hub(tmp_path, monkeypatch, rows, printed=120 / 50, group=7)
    split = load_answers("newsas2")["train"]
    lists = [[(c.text, c.after) for c in question.candidates] for question in replace(split, ordered=True)]
    shared = same = 0
    by_text = {}
    for number, page in enumerate(lists):
        texts = [text for text, _ in page]
        for text, after in page:
            if texts.count(text) == 1:
                by_text.setdefault(text, []).append((number, after))
    for found in by_text.values():
        for (one, after), (other, again) in pairwise(found):
            texts = [text for text, _ in lists[other]]
            if after is not None and [text for text, _ in lists[one]].count(after) == texts.count(after) == 1:
                shared, same = shared + 1, same + (after == again)
    found = document_order.measure(split)
    assert (found.shared, found.same) == (shared, same)
    assert shared > 100 and 0.5 < same / shared < 1
    with pytest.raises(ValueError, match="are neighbours there in the same order"):
        document_order.check(split, "made up")


def test_rows_that_were_brought_together_are_no_neighbours(tmp_path, monkeypatch):
    """x and y stand next to each other under b; under a they meet only because its rows lie apart in the file."""
    for number, (rows, wanted) in enumerate([("ap ax bx by ay aq", (0, 0)), ("bx by ap ax cz ay aq", (1, 0)), ("bx by cz ax ay", (1, 1))]):
        on_hub(
            tmp_path / str(number), monkeypatch, [(*row, int(n < 2)) for n, row in enumerate(rows.split())], printed=2 / len(set(rows[::3]))
        )
        parts = ANSWERS["newsas2"].protocols["clean"]
        whole = {split: part._replace(rule="all") for split, part in parts.items()}
        monkeypatch.setitem(ANSWERS, "newsas2", replace(ANSWERS["newsas2"], protocols={"clean": whole}))
        found = document_order.measure(load_answers("newsas2")["dev"])
        assert (found.shared, found.same) == wanted


def test_who_has_no_context_is_told_why(tmp_path):
    rows = [("Q1", "why?", "", "Because.", 1), ("Q1", "why?", "", "Since then.", 0)]
    folder(tmp_path, train=rows, dev=rows, test=rows)
    with pytest.raises(ValueError, match="train: no sentences before and after .* needs a column document_title"):
        load_answers(tmp_path, context=True)
    splits = load_answers(folder(tmp_path), context=True)
    assert splits["dev"][0].candidates[0].after == "Since then."


@pytest.mark.mirror
def test_real_orders(mirror):
    """WikiQA's rows are in the order of its pages and show it; TREC-QA's are not, and are refused in words and by the check."""
    wikiqa = document_order.check(load_answers("wikiqa", context=True)["train"], "wikiqa")
    assert wikiqa.same == wikiqa.shared > 1_000
    with pytest.raises(ValueError, match="trecqa, train: .* right ones come first: the rows around one would tell its label"):
        load_answers("trecqa", context=True)
    with pytest.raises(ValueError, match="right candidates stand first in 100% of the questions"):
        document_order.check(load_answers("trecqa")["train"], "trecqa")


# ------------------------------------------------------------------------------------------------------------- from NewsQA

TEXT = (
    "LONDON, England (CNN) -- The bridge was closed\n on Monday after 3 p.m. by order of the mayor. \n\n\n\nNobody was hurt.\n\n"
    'Engineers said it would open "within a week". The mayor had no comment.\n'
)


def span(words, text=TEXT, blank=0):
    start = text.index(words)
    return {"s": start, "e": start + len(words) + blank}


def asked(text, *answers, consensus=None):
    """A question as NewsQA writes it; `answers`: one list of spans an annotator, or what he says instead."""
    sourced = [{"sourcerAnswers": answer if isinstance(answer, list) else [answer]} for answer in answers]
    found = [answer for answer in answers if isinstance(answer, list)]
    consensus = consensus or (found[0][0] if found else {"noAnswer": True})
    more = {"isAnswerAbsent": 0.5, "isQuestionBad": 0.0, "validatedAnswers": [{"noAnswer": True, "count": 1}]}
    return {"q": text, "consensus": consensus, "answers": sourced, **more}


QUESTIONS = [
    asked("When was it closed? ", [span("Monday", blank=1)], [span("after 3 p.m."), span("Monday")], {"noAnswer": True}),
    asked("Who spoke?", [span("Engineers")], [span("The mayor")]),
    asked("Was anyone hurt?", {"noAnswer": True}, [span("Nobody was hurt.")], consensus={"noAnswer": True}),
    asked("Why why?", {"badQuestion": True}),
    asked("What was said?", [{"s": span("Nobody")["s"], "e": span("within a week")["e"]}]),
]


def combined(path, *stories):
    path.write_text(json.dumps({"data": stories, "version": "1"}))
    return path


def story(split="train", number=0, **changed):
    return {"storyId": f"./cnn/stories/{split}{number}.story", "text": TEXT, "type": split, "questions": QUESTIONS} | changed


def test_rows_of_a_story_by_hand():
    made = list(newsas2.rows(story(), splitter_function("blingfire")))
    assert [row["answer"] for row in made[0]] == [
        "LONDON, England (CNN) -- The bridge was closed on Monday after 3 p.m. by order of the mayor.",
        "Nobody was hurt.",
        'Engineers said it would open "within a week".',
        "The mayor had no comment.",
    ]
    assert [(group[0]["question"], [row["label"] for row in group]) for group in made if group] == [
        ("When was it closed?", [1, 0, 0, 0]),
        ("Who spoke?", [0, 0, 1, 1]),
        ("What was said?", [0, 0, 0, 0]),  # its only answer runs over two sentences
    ]
    assert [bool(group) for group in made] == [True, True, False, False, True]
    assert {row["question_id"] for row in made[1]} == {"./cnn/stories/train0.story#1"}
    with pytest.raises(ValueError, match=r"train0\.story: its sentences have \d+ characters, the text has \d+"):
        list(newsas2.rows(story(), lambda text: [text[:-5]]))


def test_labels_agree_with_a_search_for_the_words():
    """Independent of positions: where every word stands once, a sentence is right exactly when it holds the answer's text."""
    draw = random.Random(1)
    words = [f"w{n}x" for n in range(300)]
    cuts = sorted(draw.sample(range(1, 300), 39))
    sentences = [" ".join(words[a:b]) + "." for a, b in zip([0, *cuts], [*cuts, 300])]
    text = "".join(sentence + draw.choice([" ", "\n\n", " \n ", "  "]) for sentence in sentences)
    spans = []
    for _ in range(40):
        first = draw.randrange(295)
        last = first + draw.randrange(3)
        spans.append({"s": text.index(words[first]), "e": text.index(words[last]) + len(words[last])})
    one = story(text=text, questions=[asked(f"q{n}?", [answer]) for n, answer in enumerate(spans)])
    made = list(newsas2.rows(one, lambda _: sentences))
    wanted = [[int(" ".join(text[s["s"] : s["e"]].split()) in sentence) for sentence in sentences] for s in spans]
    assert [[row["label"] for row in group] for group in made] == wanted
    assert 5 < sum(map(sum, wanted)) < 40


def test_a_built_folder_is_loaded_with_contexts(tmp_path):
    source = combined(tmp_path / "combined.json", story(), story("dev"), story("test"), story("test", 1, questions=QUESTIONS[:1]))
    record = newsas2.build(source, tmp_path / "news", splitter="blingfire")
    assert record["counts"] == {"train": [3, 12], "dev": [2, 8], "test": [3, 12]}
    one = {"without an answer": 2, "without both labels": 1}
    assert record["left_out"] == {"train": {"without an answer": 2}, "dev": one, "test": one}
    splits = load_answers(tmp_path / "news", context=True)
    assert {split: len(content) for split, content in splits.items()} == {"train": 3, "dev": 2, "test": 3}
    question = splits["test"][2]
    texts = [c.text for c in question.candidates]
    assert (question.id, question.text) == ("./cnn/stories/test1.story#0", "When was it closed?")
    assert [(c.before, c.after) for c in question.candidates] == list(zip([None, *texts[:-1]], [*texts[1:], None]))
    with pytest.raises(FileExistsError, match="news exists already"):
        newsas2.build(source, tmp_path / "news", splitter="blingfire")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"type": "validation"}, "story 2: .* type is 'validation', expected one of train, dev, test"),
        ({"questions": [asked("who?", [{"s": 5, "e": 5}])]}, r"story 2: .* question 'who\?' with spans \[\(5, 5\)"),
        ({"questions": [asked("who?", [{"s": 5, "e": 10_000}])]}, rf"story 2: .* in a text of {len(TEXT)} characters"),
        ({"questions": [asked(" ", [{"s": 5, "e": 6}])]}, "story 2: .* question ' '"),
        ({"questions": [{"q": "who?"}]}, "story 2: expected a story of NewsQA, got KeyError"),
        ({"storyId": 7}, "story 2: .* storyId is 7, expected text"),
        ({"text": None}, "story 2: expected a story of NewsQA, got TypeError"),
    ],
)
def test_what_is_wrong_with_a_story_is_said_with_its_number(tmp_path, changed, message):
    source = combined(tmp_path / "combined.json", story(), story("dev") | changed)
    with pytest.raises(ValueError, match=rf"combined\.json, {message}"):
        newsas2.build(source, tmp_path / "news", splitter="blingfire")
    for wrong in ("[]", '{"data": null}', '{"data": "text"}', "[" * 100_000):
        source.write_text(wrong)
        with pytest.raises(ValueError, match=r"combined\.json: expected NewsQA's combined JSON"):
            list(newsas2.stories(source))
