import hashlib
import json
import shutil
import signal
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from asutil import corpus as c
from asutil.corpus import arrays, cleaning, shards, sources, tokenizers
from asutil.io import disk, hub

from ..conftest import made_up_documents
from ..io.fake_hub import commit_of


def flat(documents):
    return [sentence for document in documents for paragraph in document for sentence in paragraph]


def kept(documents):
    """The filters of section 4, a second time: paragraphs of 60 characters, documents of 200."""
    cleaned = [[p for p in document if len(" ".join(p)) >= 60] for document in documents]
    return [document for document in cleaned if sum(len(" ".join(p)) for p in document) >= 200]


def as_texts(documents):
    return ["\n\n".join(" ".join(paragraph) for paragraph in document) for document in documents]


def as_jsonl(path, documents):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in as_texts(documents)))
    return path


@pytest.fixture
def built(corpus, tmp_path):
    """A copy of an index, to be damaged."""
    return shutil.copytree(corpus.folder, tmp_path / "index")


def test_index_holds_every_sentence_in_order(corpus, documents):
    expected = kept(documents)
    assert corpus.info["documents"] == len(expected) == len(corpus.documents) - 1
    assert corpus.info["paragraphs"] == sum(map(len, expected)) == len(corpus.paragraphs) - 1
    assert [corpus.text([n]) for n in range(corpus.info["sentences"])] == flat(expected)
    assert [len(p) for d in expected for p in d] == np.diff(corpus.paragraphs).tolist()
    assert corpus.documents[-1] == len(corpus.paragraphs) - 1 and corpus.sentences[-1] == len(corpus.tokens)


def test_span_ids_are_the_tokenizers_ids_of_the_joined_text(corpus, tokenizer):
    for start in range(0, corpus.info["sentences"] - 4, 7):
        text = corpus.text(range(start, start + 4))
        ids = corpus.tokens[corpus.sentences[start] : corpus.sentences[start + 4]].tolist()
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_byte_level_text_is_lossless(tokenizer, tmp_path_factory, sentences):
    given_sentences = [" ".join(s.split()) for s in sentences]
    given_sentences = [s for s in given_sentences if s and "\0" not in s and not set(s) & {"<", ">"}]
    filler = "A sentence that is long enough to keep this paragraph and this document in the index, whatever stands before it. " * 2
    out = tmp_path_factory.mktemp("lossless") / "index"
    built = c.build([[[*given_sentences, filler.strip()]]], tokenizer, out)
    assert [built.text([n]) for n in range(len(given_sentences))] == given_sentences


def test_an_interrupt_is_for_the_process_that_builds_and_not_for_its_workers():
    made = list(shards._in_order(signal.getsignal, [(signal.SIGINT,)] * 3, workers=2))
    assert made == [signal.SIG_IGN] * 3 and signal.getsignal(signal.SIGINT) != signal.SIG_IGN


def test_a_stopped_build_goes_on_at_its_unfinished_shard(documents, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "SHARD_CHARACTERS", 5_000)
    whole = c.build(documents, tokenizer, tmp_path / "whole")

    def stops():
        yield from documents[:20]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        c.build(stops(), tokenizer, tmp_path / "index")
    assert not (tmp_path / "index").exists()
    done = sorted((tmp_path / ".index.building").glob("shard-*"))
    assert done
    calls = []
    indexing = shards.index
    monkeypatch.setattr(shards, "index", lambda *a, **k: calls.append(1) or indexing(*a, **k))
    again = c.build(documents, tokenizer, tmp_path / "index")
    assert again.info["sha256"] == whole.info["sha256"]
    assert 0 < len(calls) == len(list(shards.grouped(documents))) - len(done)


def test_changed_documents_are_not_taken_from_an_old_shard(documents, tokenizer, tmp_path):
    changed = made_up_documents(seed=1)
    options = {"backend": tokenizer.backend_tokenizer.to_str(), "as_text": True, "out": tmp_path}
    settings = {"splitter": "blingfire", "min_sentence_chars": 0, "min_paragraph_chars": 60, "min_document_chars": 200}
    shards.make_shard(0, documents, settings=settings, **options)
    shards.make_shard(0, changed, settings=settings, **options)
    assert len(np.load(tmp_path / "shard-000000" / "documents.npy")) - 1 == len(kept(changed))


@given(st.lists(st.integers(0, 40).map(lambda n: n * 2**58 % 2**64), max_size=30))
def test_repeated_before_counts_sentences_that_occur_again(hashes):
    counts = Counter(hashes)
    before = [sum(counts[value] > 1 for value in hashes[:place]) for place in range(len(hashes) + 1)]
    corpus = SimpleNamespace(hashes=np.array(hashes, np.uint64))
    assert c.Corpus.repeated_before.func(corpus).tolist() == before


def test_hashes_tell_sentences_apart(corpus):
    texts = [corpus.text([n]) for n in range(corpus.info["sentences"])]
    assert len(set(texts)) == len(set(corpus.hashes.tolist()))
    tokens, offsets = np.array([1, 2, 2, 1, 1, 2], np.uint16), np.array([0, 2, 4, 6])
    first, swapped, same = shards.sentence_hashes(tokens, offsets).tolist()
    assert first == same != swapped


def hash_by_hand(document):
    """The hash of a kept document, from its text alone."""
    text = "\n".join(" ".join(paragraph) for paragraph in document)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=b"validation").digest(), "little")


def held_out(built):
    """The text of every document that a corpus holds out: its sentences, tokens decoded."""
    first = built.paragraphs[built.documents]
    return {built.text(range(first[d], first[d + 1])) for d in np.flatnonzero(built.validation)}


FORMS = {"usual": {}, "shards": {"workers": 3}, "tokens": {}, "text": {}, "longer sentences": {"min_sentence_chars": 60}}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_held_out_documents_are_those_whose_own_hash_is_low(tokenizer, tmp_path, monkeypatch, form):
    """So a document is held out in every corpus that has it, whatever else is there, in any order, and however it is cut and tokenised."""
    made = kept(made_up_documents(400, paragraphs=(2, 3)))
    if form == "tokens":
        tokenizer = tokenizers.train_tokenizer((" ".join(flat([document])) for document in made[:50]), vocab_size=300)
    if form == "shards":
        monkeypatch.setattr(shards, "SHARD_CHARACTERS", 5_000)
    built = c.build(as_texts(made) if form == "text" else made, tokenizer, tmp_path / "index", **FORMS[form])
    assert built.document_hashes.tolist() == [hash_by_hand(document) for document in made]
    assert built.validation.tolist() == [hash_by_hand(document) / 2**64 <= 0.02 for document in made]
    assert 2 < built.validation.sum() < 18  # 8 expected; a binomial of 400 and .02 is outside once in a thousand times


def test_the_same_documents_are_held_out_by_other_limits():
    """A document that the usual limits leave out has the hash of what is kept of it."""
    document = [f"Paragraph {n} that is {'long enough by the usual limits, ' * (n % 3)}of prose." for n in range(12)] + ["A short one."]
    hashes = [shards.laid_out([document], min_paragraph_chars=least)[1]["document_hashes"][0] for least in (60, 10, 80)]
    assert len({*hashes}) == 1
    (short,) = shards.laid_out([["Short."]], min_paragraph_chars=1, min_document_chars=1)[1]["document_hashes"]
    assert short == shards.document_hash(["Short."])


def test_two_percent_of_many_documents_are_held_out():
    hashes = [shards.document_hash([f"Paragraph {n} of a document.", "Another one."]) for n in range(20_000)]
    share = np.mean(np.array(hashes, np.uint64) <= np.uint64(0.02 * 2**64))
    assert abs(share - 0.02) < 4 * (0.02 * 0.98 / 20_000) ** 0.5


def test_at_least_two_different_documents_are_held_out(corpus, documents, tokenizer, tmp_path, caplog):
    made = kept(documents)
    few = c.build(made[:5], tokenizer, tmp_path / "few")
    assert few.validation.sum() == 2 and caplog.messages[0].startswith("few: 2 of 5 documents are held out for validation: divide long")
    hashes = [hash_by_hand(document) for document in made]
    assert corpus.validation.sum() == 2
    assert np.flatnonzero(corpus.validation).tolist() == sorted(np.argsort(np.array(hashes, np.uint64))[:2].tolist())
    lowest = made[int(np.argmin(np.array(hashes, np.uint64)))]
    copied = c.build([*made, lowest, lowest], tokenizer, tmp_path / "index")
    assert copied.validation.sum() == 4 and len(held_out(copied)) == 2


def test_two_configurations_of_a_mirrored_data_set_are_two_corpora(tmp_path, monkeypatch):
    folder = tmp_path / "owner" / "name"
    for configuration in ("en", "de"):
        (folder / configuration).mkdir(parents=True)
        (folder / configuration / "train.jsonl").write_text(f'{{"text": "{configuration}"}}\n')
    monkeypatch.setenv("ASUTIL_MIRROR", str(tmp_path))
    assert len({sources.fingerprint_of_source(f"owner/name{part}") for part in ("", ":en", ":de")}) == 3


def test_an_index_without_hashes_of_documents_is_refused_and_prepared_anew(documents, tokenizer, tmp_path):
    built = c.prepare(as_jsonl(tmp_path / "own.jsonl", documents), tokenizer, tmp_path / "indexes")
    info = {name: value for name, value in built.info.items() if name not in ("format", "content_sha256")}
    info["sha256"] = {name: value for name, value in info["sha256"].items() if name != "document_hashes"}
    identity = json.dumps([sources.fingerprint_of_source(tmp_path / "own.jsonl"), c.tokenizer_hash(tokenizer), {}, {}], sort_keys=True)
    earlier = built.folder.with_name(f"{built.folder.name[:-13]}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}")
    built.folder.rename(earlier)  # where the version before kept it
    (earlier / "document_hashes.npy").unlink()
    disk.write_json(earlier / "corpus.json", info)
    with pytest.raises(ValueError, match="document_hashes.npy is damaged, .*: build the index again"):
        c.Corpus.open(earlier)
    again = c.prepare(tmp_path / "own.jsonl", tokenizer, tmp_path / "indexes")
    assert again.folder != earlier and again.validation.any()


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("short", []),
        (["x" * 59, "y" * 250], ["y" * 250]),
        (["x" * 100, "y" * 99], []),
        ("A Title\n\n" + "word " * 50, [("word " * 50).strip()]),
        ("== History of everything that was ever written down in a book ==\n\n" + "word " * 50, [("word " * 50).strip()]),
        ("<p>" + "one &amp; two " * 25 + "</p><table><tr><td>cell</td></tr></table>", [("one & two " * 25).strip()]),
        ("x<y holds. " * 20 + "\n\n" + "word " * 50 + "\n \ny>x", [("x<y holds. " * 20).strip(), ("word " * 50).strip()]),
        ("<i\nclass=a>" + "word " * 50 + "</i\n>", [("word " * 50).strip()]),
        ("| a | b |\n| - | - |\n\n" + "if a < b and c > d then " * 10, [("if a < b and c > d then " * 10).strip()]),
    ],
)
def test_cleaning(document, expected):
    assert cleaning.clean(document) == expected


def test_twenty_characters_are_kept_and_nineteen_are_not(tokenizer, tmp_path):
    long = "This sentence has many more characters than the shortest one that is kept here." * 3
    built = c.build([[["x" * 19, "y" * 20, long, "z" * 18 + "."], [long, "w" * 19]]], tokenizer, tmp_path / "index", min_sentence_chars=20)
    assert [built.text([n]) for n in range(built.info["sentences"])] == ["y" * 20, long, long]
    assert np.diff(built.paragraphs).tolist() == [2, 1] and built.info["min_sentence_chars"] == 20


# ------------------------------------------------------------------ refusals


def test_empty_corpus_is_refused_with_counts_and_its_source(tokenizer, tmp_path):
    with pytest.raises(ValueError, match=r"empty corpus: 2 documents read, none kept"):
        c.build(["too short", "this too"], tokenizer, tmp_path / "index")
    (tmp_path / "short.txt").write_text("short")
    with pytest.raises(c.EmptyCorpus, match=r"empty corpus: 1 documents read, .*: own:short\.txt"):
        c.prepare(tmp_path / "short.txt", tokenizer, tmp_path / "indexes")
    assert not (tmp_path / "index").exists()


def test_another_tokenizer_is_refused_with_both_hashes(corpus, documents):
    other = tokenizers.train_tokenizer((" ".join(flat([d])) for d in documents), vocab_size=300)
    with pytest.raises(ValueError, match=corpus.info["tokenizer_sha256"][:16]):
        c.Corpus.open(corpus.folder, other)


def test_tokenizer_without_prefix_space_is_refused(documents, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenizer.backend_tokenizer, "pre_tokenizer", pre_tokenizers.ByteLevel(add_prefix_space=False))
    with pytest.raises(ValueError, match="prefix space"):
        c.build(documents, tokenizer, tmp_path / "index")


def told(folder, **changed):
    """corpus.json says something else, with a seal that is right."""
    disk.write_json(folder / "corpus.json", json.loads((folder / "corpus.json").read_text()) | changed)


def with_a_pickle(folder):
    np.save(folder / "sentences.npy", np.array([{}], dtype=object), allow_pickle=True)
    told(folder, sha256={name: hub.sha256(folder / f"{name}.npy") for name in arrays.ARRAYS})  # as if that had been written


def with_another_header(folder):
    path = folder / "documents.npy"
    path.write_bytes(path.read_bytes().replace(b"}", b"(", 1))


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (with_another_header, ValueError, r"documents\.npy is damaged"),
        (lambda folder: (folder / "corpus.json").unlink(), FileNotFoundError, "no finished index"),
        (with_a_pickle, ValueError, r"sentences.npy is damaged, cut short or a pickle, which is refused: build the index again"),
        (lambda folder: told(folder, documents=7), ValueError, r"corpus\.json is damaged.*documents is 7, the index holds \d+"),
    ],
)
def test_damaged_index_is_refused(built, damage, error, words):
    """What is cut short, or has another bit or value, `tests.trust.damaged` tries."""
    damage(built)
    with pytest.raises(error, match=words):
        c.Corpus.open(built)


def test_only_what_is_too_large_to_be_checked_is_read_in_the_order_of_the_disk(corpus, monkeypatch):
    in_memory = c.Corpus.open(corpus.folder)
    monkeypatch.setattr(arrays, "VERIFIED_BYTES", (corpus.folder / "tokens.npy").stat().st_size - 1)
    on_disk = c.Corpus.open(corpus.folder)
    assert isinstance(on_disk.tokens, np.memmap) and not isinstance(in_memory.tokens, np.memmap)
    assert isinstance(in_memory.tokens.base, np.memmap), "it is not copied"
    starts, lengths = np.array([50, 3, 20, 4]), np.array([30, 20, 0, 5])
    read = [arrays.read_ranges(corpus.tokens, starts, lengths).tolist() for corpus in (in_memory, on_disk)]
    assert read[0] == read[1] == [in_memory.tokens[n] for s, size in zip(starts, lengths) for n in range(s, s + size)]


def test_disk_full_leaves_nothing_that_opens(documents, tokenizer, tmp_path, monkeypatch):
    def full(path, array):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(shards.np, "save", full)
    with pytest.raises(OSError, match="index failed .*No space left"):
        c.build(documents, tokenizer, tmp_path / "index")
    assert not (tmp_path / "index").exists()
    monkeypatch.undo()
    assert c.build(documents, tokenizer, tmp_path / "index").info["documents"]


def test_nltk_without_its_data_says_what_to_install_before_anything_is_read(tokenizer, tmp_path, monkeypatch):
    import nltk

    monkeypatch.setattr(nltk.data, "path", [])
    read = []
    with pytest.raises(LookupError, match=r"python -m nltk.downloader punkt_tab .*splitter blingfire"):
        c.build((read.append(1) for _ in range(3)), tokenizer, tmp_path / "index", splitter="nltk")
    assert not read and not list(tmp_path.iterdir())


def test_nltk_splits_where_its_data_are():
    with pytest.raises(ValueError, match="splitter is blingfire or nltk, got 'spacy'"):
        cleaning.splitter_function("spacy")
    try:
        split = cleaning.splitter_function("nltk")
    except LookupError:
        pytest.skip("needs NLTK's data: python -m nltk.downloader punkt_tab")
    assert split("One sentence. Another one.") == ["One sentence.", "Another one."]


# ------------------------------------------------------------------ sources


def test_files_of_every_kind_give_the_same_documents(tmp_path, caplog):
    texts = ["First paragraph.\n\nSecond one.", "Another document, with ümlauts."]
    pd.DataFrame({"text": texts, "title": ["a", "b"]}).to_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"text": t, "title": n}) + "\n" for t, n in zip(texts, "ab")))
    (tmp_path / "txt").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "txt" / f"{number}.txt").write_text(text, encoding="utf-8")
    for source in ("x.parquet", "x.jsonl", "txt"):
        assert list(sources.documents(tmp_path / source)) == texts
    assert list(sources.documents(tmp_path / "x.jsonl", exclude_titles=["a"])) == texts[1:] and not caplog.messages
    for source, titles in ((tmp_path / "txt", ["a"]), (tmp_path / "x.parquet", ["c"]), ("pydocs", ["numpy"])):
        assert list(sources.documents(source, limit=9, exclude_titles=titles)) == list(sources.documents(source, limit=9)) != []
    assert list(sources.documents(tmp_path / "x.parquet", exclude_titles=["b", "c", "d"])) == texts[:1]
    said = "no document has {} titles of exclude_titles, such as {}"
    expected = [said.format(*words) for words in [("1 of the 1", "a"), ("1 of the 1", "c"), ("1 of the 1", "numpy"), ("2 of the 3", "c")]]
    assert [message.partition(": ")[2] for message in caplog.messages] == expected
    assert list(sources.documents(f"{tmp_path / 'x.jsonl'},{tmp_path / 'txt'}", limit=3)) == [*texts, texts[0]]
    for separator in ("\n", r"\n"):  # the second as a command line passes it
        read = next(iter(sources.documents(tmp_path / "x.jsonl", paragraph_separator=separator)))
        assert read == ["First paragraph.", "", "Second one."]
    assert list(sources.documents(tmp_path / "x.jsonl", text_column="title")) == ["a", "b"]


def test_a_tag_separates_paragraphs_outside_of_blocks(tmp_path):
    one, two = (
        "A paragraph of prose that is long enough to be kept, as it is.",
        "Another paragraph of prose, which is nearly as long as the first.",
    )
    made = {"text": f"<p>{one}</p><table><tr><td><p>{one}</p></td></tr></table>\n<p class='x'>{two}</p>"}
    (tmp_path / "x.jsonl").write_text(json.dumps(made) + "\n")
    documents = sources.documents(tmp_path / "x.jsonl", paragraph_separator="</p>")
    assert [cleaning.clean(document, min_document_chars=0) for document in documents] == [[one, two]]


def test_a_block_of_markup_is_no_paragraph_whatever_separates_them(tmp_path):
    prose = "A paragraph of prose that is long enough to be kept, on its own line."
    blocks = ["<script>", "var settings = {colour: 'red', and: 'more that reads like a line of text'};", "</script>"]
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": "\n".join([prose, *blocks, prose])}) + "\n")
    (document,) = sources.documents(tmp_path / "x.jsonl", paragraph_separator="\n")
    assert cleaning.clean(document, min_document_chars=0) == [prose, prose]


def test_the_ending_of_a_file_decides_how_it_is_read_and_is_part_of_its_fingerprint(tmp_path):
    (tmp_path / "a.txt").write_text('{"text": "one"}\n')
    before = sources.fingerprint_of_source(str(tmp_path))
    (tmp_path / "a.txt").rename(tmp_path / "a.jsonl")
    assert sources.fingerprint_of_source(str(tmp_path)) != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"text": "a"}\nnot json\n', r"x.jsonl line 2: not JSON"),
        ("x.jsonl", b'{"text": "a"}\n{"body": "b"}\n', r"x.jsonl line 2: expected text in 'text'"),
        (
            "x.jsonl",
            b'{"text": "a\\u0000b"}\n',
            r"x.jsonl line 1, 'text': expected text that UTF-8 can encode, got a NUL byte at character 1",
        ),
        ("x.jsonl", b'{"text": "\xff"}\n', r"x.jsonl line 1: expected UTF-8, got byte 0xff"),
        ("x.jsonl", b"[1]\n", r"x.jsonl line 1: expected an object"),
        ("x.txt", b"\xe9t\xe9", r"x.txt: expected UTF-8, got byte 0xe9 at 0"),
        ("x.csv", b"", r"expected .parquet, .jsonl or .txt, got .csv"),
    ],
)
def test_bad_files_are_refused_with_file_and_row(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)x\..*{message.removeprefix('x.')}"):
        list(sources.documents(tmp_path / name))


def test_missing_sources_say_what_was_expected(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        list(sources.documents(tmp_path / "nothing.jsonl"))
    with pytest.raises(FileNotFoundError, match=r"no .parquet, .jsonl or .txt"):
        list(sources.documents(tmp_path))
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.txt").symlink_to("gone.txt")
    with pytest.raises(FileNotFoundError, match=r"b\.txt"):
        list(sources.documents(tmp_path))


def test_a_nul_in_a_parquet_file_becomes_a_blank(tmp_path):
    """OpenWebText has some; in a text file a NUL is an error, since it shows an encoding that is not UTF-8."""
    pd.DataFrame({"text": ["one\0two", "\0", "three"]}).to_parquet(tmp_path / "x.parquet")
    assert list(sources.documents(tmp_path / "x.parquet")) == ["one two", " ", "three"]


def test_a_mirror_without_folders_of_configurations_has_the_default_one(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    folder = tmp_path / "wikimedia/wikipedia"
    folder.mkdir(parents=True)
    pd.DataFrame({"text": ["English."]}).to_parquet(folder / "train.parquet")
    read = lambda source: list(sources.documents(source))
    assert read("wikimedia/wikipedia") == read("wikimedia/wikipedia:20231101.en") == ["English."]
    with pytest.raises(FileNotFoundError, match=r"the mirror has no folder 20231101\.fr in wikimedia/wikipedia; it holds train\.parquet"):
        read("wikimedia/wikipedia:20231101.fr")
    for language in ("en", "fr"):
        (folder / f"20231101.{language}").mkdir()
        pd.DataFrame({"text": [language]}).to_parquet(folder / f"20231101.{language}/train-00000-of-00001.parquet")
    assert [*read("wikimedia/wikipedia"), *read("wikimedia/wikipedia:20231101.fr")] == ["en", "fr"]


def test_an_index_of_the_hub_names_the_commit_that_it_was_made_from(on_hub, tokenizer, tmp_path, documents):
    root, _ = on_hub
    (root / "datasets/owner/name/main").mkdir(parents=True)
    pd.DataFrame({"text": as_texts(documents)}).to_parquet(root / "datasets/owner/name/main/train.parquet")
    built = c.prepare("owner/name", tokenizer, tmp_path / "corpora")
    assert built.info["hub_commits"] == {"owner/name": commit_of("datasets", "owner/name")}
    assert built.info["documents_read"] == len(documents)


def test_prepare_opens_what_it_built_and_builds_what_changed(tokenizer, tmp_path, documents):
    source = str(as_jsonl(tmp_path / "x.jsonl", documents))
    first = c.prepare(source, tokenizer, tmp_path / "corpora")
    for usual in ({}, {"min_paragraph_chars": None}):
        assert c.prepare(source, tokenizer, tmp_path / "corpora", **usual).folder == first.folder
    others = [
        c.prepare(source, tokenizer, tmp_path / "corpora", **{name: value})
        for name, value in (("limit", 10), ("min_sentence_chars", 20), ("min_paragraph_chars", 200))
    ]
    assert len({first.folder, *(other.folder for other in others)}) == 4
    assert others[2].info["paragraphs"] < first.info["paragraphs"] and str(tmp_path) not in json.dumps(first.info)
    with pytest.raises(ValueError, match="min_paragraph_chars: .* was built with 60, got 200"):
        c.prepare(str(first.folder), tokenizer, tmp_path, min_paragraph_chars=200)
    as_jsonl(tmp_path / "x.jsonl", documents[::-1])
    assert c.prepare(source, tokenizer, tmp_path / "corpora").folder != first.folder


@pytest.mark.mirror
def test_wikipedia_from_the_mirror(mirror, tokenizer, tmp_path):
    built = c.build(sources.documents("local/wikipedia_small", limit=40), tokenizer, tmp_path / "index")
    assert built.info["documents_read"] == 40 and built.info["sentences"] > 1000


def test_titles_are_lines_and_what_is_no_utf8_is_named(tmp_path):
    (tmp_path / "titles.txt").write_bytes("One\u2028line\r\n \nTwo\n".encode())
    assert sources.read_titles(str(tmp_path / "titles.txt")) == ("One\u2028line", "Two")
    (tmp_path / "titles.txt").write_bytes(b"One\n\xff")
    with pytest.raises(ValueError, match=r"titles\.txt line 2: expected UTF-8, got byte 0xff"):
        sources.read_titles(str(tmp_path / "titles.txt"))


def test_a_reference_to_an_endless_number_is_a_character(documents):
    assert cleaning.clean(f"{'Some prose in a paragraph. ' * 9}&#{'9' * 5000};")[0].endswith("\ufffd")


def test_files_of_several_splits_are_all_read_and_named(tmp_path, caplog):
    for name in ("train-00000-of-00001", "test", "training_notes"):
        pd.DataFrame({"text": [name]}).to_parquet(tmp_path / f"{name}.parquet")
    assert sorted(sources.documents(tmp_path)) == ["test", "train-00000-of-00001", "training_notes"]
    (said,) = caplog.messages
    assert said.endswith("all of its files are read, though splits are among them: test.parquet, train-00000-of-00001.parquet")
    (tmp_path / "test.parquet").unlink()
    caplog.clear()
    assert len(list(sources.documents(tmp_path))) == 2 and not caplog.messages


def test_hidden_files_are_no_documents_and_are_counted(tmp_path):
    texts = {name: f"Document {name}. " * 30 for name in ("a.txt", ".ipynb_checkpoints/a-checkpoint.txt", ".hidden/b.txt", "inner/._c.txt")}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "inner" / "._d.txt").write_bytes(b"\xe9 no text at all")
    assert list(sources.documents(str(tmp_path))) == [texts["a.txt"]]
    assert sources.not_read(tmp_path) == "4 files are not read: 4 hidden"
    (tmp_path / "x.jsonl.gz").touch()
    (tmp_path / "inner" / "linked").symlink_to(tmp_path / ".hidden")
    with pytest.raises(ValueError, match="linked: expected a folder, got a link to one"):
        sources.files_of(tmp_path)
    with pytest.raises(ValueError, match=r"got \.gz: unpack it first \(gunzip --keep x\.jsonl\.gz\)"):
        next(iter(sources.documents(str(tmp_path / "x.jsonl.gz"))))


LIGHTHOUSE = "The lighthouse was built in 1890. It had three keepers. Later the island got electricity. "
CHINESE = "燈塔建於一八九〇年。它由三名守衛看管。後來島上通了電。\n\n" * 3


def test_the_limits_of_paragraphs_and_documents_can_be_lowered(tokenizer, tmp_path):
    with pytest.raises(ValueError, match=r"none kept \(a document needs 200 characters .* lower min_document_chars"):
        c.build([CHINESE], tokenizer, tmp_path / "none")
    built = c.build([CHINESE, "短。"], tokenizer, tmp_path / "some", min_paragraph_chars=20, min_document_chars=60)
    assert [built.info[name] for name in ("documents", "paragraphs", "sentences", "documents_read")] == [1, 3, 9, 2]
    assert (built.info["min_paragraph_chars"], built.info["min_document_chars"]) == (20, 60)
    assert repr(built).endswith("tokens, of 2 documents read)")
    with pytest.raises(ValueError, match=r"a document needs 90 characters in paragraphs of 20"):
        c.build([CHINESE], tokenizer, tmp_path / "few", min_paragraph_chars=20, min_document_chars=90)


@pytest.mark.parametrize(
    ("text", "warnings"),
    [(LIGHTHOUSE * 3, []), (LIGHTHOUSE.lower() * 3, ["have one sentence"]), (CHINESE * 4, ["tokens of a character"])],
    ids=["English", "without capitals", "Chinese"],
)
def test_a_language_that_splitter_or_tokenizer_do_not_know_is_warned_of(tmp_path, caplog, text, warnings):
    english = tokenizers.train_tokenizer([LIGHTHOUSE] * 9, 400)
    caplog.set_level("WARNING")
    c.build([text], english, tmp_path / "index", min_paragraph_chars=20, min_document_chars=60)
    assert len(caplog.messages) == len(warnings)
    assert all(part in message for part, message in zip(warnings, caplog.messages))


def test_a_tokenizer_that_knows_few_words_is_warned_of_wherever_they_are(tmp_path, caplog):
    """The later documents are Chinese: to these words, all of it is one unknown word."""
    vocabulary = {word: n for n, word in enumerate(["[UNK]", *sorted(set(LIGHTHOUSE.lower().replace(".", " .").split()))])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    named = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", pad_token="[UNK]")
    caplog.set_level("WARNING")
    limits = {"min_paragraph_chars": 20, "min_document_chars": 60}
    c.build([f"{LIGHTHOUSE * 25}\n\n{LIGHTHOUSE * 25}"] * 2, named, tmp_path / "english", **limits)
    assert not caplog.messages
    built = c.build([LIGHTHOUSE * 50] * 2 + [CHINESE * 20] * 9, named, tmp_path / "mixed", **limits)
    share = np.mean(np.asarray(built.tokens) == 0)
    (message,) = caplog.messages
    assert share > 0.3 and abs(float(message.split()[1]) / 100 - share) < 0.15
    assert "% of the tokens are unknown to the tokenizer" in message


def test_a_tokenizer_from_scratch_is_trained_on_what_the_limits_keep(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps({"text": CHINESE}) + "\n")
    limits = {"min_paragraph_chars": 20, "min_document_chars": 60}
    usual, few = (tokenizers.tokenizer_for("tiny", str(path), tmp_path, **form) for form in (dict.fromkeys(limits), limits))
    assert len(few) > len(usual) and len(few.tokenize("島上")) < len(usual.tokenize("島上")) == 7


def test_files_that_are_not_read_are_counted_once_when_an_index_is_built(tokenizer, tmp_path, caplog):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a.txt", "notes.md", "README", "._a.txt"):
        (folder / name).write_text(LIGHTHOUSE * 3)
    caplog.set_level("WARNING")
    for _ in range(2):
        c.prepare(str(folder), tokenizer, tmp_path / "corpora")
    counts = [message for message in caplog.messages if "not read" in message]
    assert counts == ["own:texts: 3 files are not read: 1 without an ending, 1 .md, 1 hidden"]


@pytest.mark.parametrize(("break_", "told"), [("\n", True), ("\n\n", False)])
def test_documents_without_two_paragraphs_are_told(tokenizer, tmp_path, caplog, break_, told):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(break_.join([LIGHTHOUSE + name] * 3))
    c.prepare(str(tmp_path), tokenizer, tmp_path / "corpora")
    assert any("no document has two paragraphs" in message for message in caplog.messages) == told
