"""What all loaders of labelled data share: limits of splits, fingerprints of files, names and folders that are wrong."""

import json

import pytest

from asutil.data.answers import fingerprint_of_answers, load_answers
from asutil.data.claims import fingerprint_of_claims, load_claims
from asutil.data.long_questions import fingerprint_of_evidence, load_evidence
from asutil.pydocs import documents as docstrings

SIZES = {"train": 40, "dev": 20, "test": 12}
FINGERPRINTS = {load_answers: fingerprint_of_answers, load_claims: fingerprint_of_claims, load_evidence: fingerprint_of_evidence}
PASSAGES = [{"title": "Page", "sentences": ["It is.", "It was."]}]
ROWS = {
    load_answers: lambda n: [{"question_id": f"Q{n}", "question": f"q {n}?", "answer": f"a {k}", "label": k} for k in (0, 1)],
    load_claims: lambda n: [{"id": n, "claim": f"claim {n}", "label": "SUPPORTS", "evidence": [["Page", 0, f"It is {n}."]] * (n % 7)}],
    load_evidence: lambda n: [
        {"id": n, "question": f"q {n}?", "passages": PASSAGES, "answer": "yes", "kind": "yes", "evidence": [[0, 0], [0, 1]][: n % 3]}
    ],
}


@pytest.fixture(params=ROWS, ids=lambda load: load.__name__)
def loader(request, tmp_path):
    """A loader, and a folder in its form."""
    return request.param, filled(request.param, tmp_path)


def filled(load, folder):
    for split, size in SIZES.items():
        rows = [row for n in range(size) for row in ROWS[load](n)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, (40, 20, 12)),
        ({"limit": 9}, (9, 9, 9)),
        ({"train_limit": 7}, (7, 20, 12)),
        ({"test_limit": 15}, (40, 15, 12)),
        ({"limit": 9, "train_limit": 30}, (30, 9, 9)),
        ({"limit": 30, "test_limit": 5}, (30, 5, 5)),
        ({"limit": 1, "train_limit": 11, "test_limit": 3}, (11, 3, 3)),
    ],
)
def test_the_limit_of_a_split_is_its_own_where_it_has_one(loader, limits, kept):
    load, folder = loader
    splits = load(folder, **limits)
    assert tuple(map(len, splits.values())) == kept
    for (split, size), count in zip(SIZES.items(), kept, strict=True):
        report = splits[split].report
        unit = next(iter(report["kept"]))
        left_out = report["dropped"].get("beyond the limit", {}).get(unit, 0)
        assert (report["read"][unit], report["kept"][unit], left_out) == (size, count, size - count)
        for part in report["kept"]:
            assert report["read"][part] == report["kept"][part] + sum(lost[part] for lost in report["dropped"].values())


@pytest.mark.parametrize("load", [load_answers, load_claims, load_evidence])
def test_a_test_file_that_is_not_read_is_named(tmp_path, load, caplog):
    filled(load, tmp_path)
    (tmp_path / "test.jsonl").rename(tmp_path / "Test.jsonl")
    assert load(tmp_path)["test"] and "is not read" not in caplog.text
    (tmp_path / "Test.jsonl").rename(tmp_path / "test.txt")
    needed = {"needed": ["train"]} if load is load_answers else {}
    assert not load(tmp_path, **needed).get("test") and "test.txt is not read: its name is none of test." in caplog.text


def test_fewer_training_examples_are_a_part_of_more_and_the_other_splits_stay_whole(loader):
    """What a learning curve needs; shuffled rows have the same examples, a choice that is kept in the file's order."""
    load, folder = loader
    splits = {limit: load(folder, train_limit=limit) for limit in (5, 15, 30, 100)}
    lists = {limit: [example.id for example in of["train"]] for limit, of in splits.items()}
    ids = {limit: set(each) for limit, each in lists.items()}
    assert ids[5] < ids[15] < ids[30] < ids[100] and list(map(len, ids.values())) == [5, 15, 30, 40]
    assert lists[5] == sorted(lists[5], key=lists[100].index) != lists[100][:5]
    for split in ("dev", "test"):
        assert all([e.id for e in of[split]] == [e.id for e in load(folder)[split]] for of in splits.values())
    rows = (folder / "train.jsonl").read_text().splitlines(keepends=True)
    (folder / "train.jsonl").write_text("".join(reversed(rows)))
    assert {example.id for example in load(folder, train_limit=15)["train"]} == ids[15]


@pytest.mark.parametrize("name", ["limit", "train_limit", "test_limit"])
@pytest.mark.parametrize("limit", [0, "20", 2.5])
def test_a_limit_that_counts_nothing_is_refused(loader, name, limit):
    load, folder = loader
    with pytest.raises(ValueError, match=f"{name} must be at least 1 (question|claim), got {limit!r}"):
        load(folder, **{name: limit})


def test_a_fingerprint_follows_the_files_of_the_splits_and_no_others(loader):
    load, folder = loader
    fingerprint = FINGERPRINTS[load]
    first = fingerprint(folder)
    (folder / "notes.txt").write_text("nothing to do with it")
    assert fingerprint(str(folder)) == first
    for split in SIZES:
        path = folder / f"{split}.jsonl"
        whole = path.read_text()
        path.write_text(whole.replace("1", "2", 1))
        assert fingerprint(folder) != first
        path.write_text(whole)
    if load is not load_answers:
        (folder / "test.jsonl").unlink()
        assert fingerprint(folder) != first
        of_docstrings = docstrings.fingerprint_of_docstrings(docstrings.NUMPYDOC)
        assert fingerprint({load_claims: "pydocs_claims", load_evidence: "pydocs_evidence"}[load]) == of_docstrings != first


@pytest.mark.parametrize(
    ("load", "given", "error", "words"),
    [
        (load_answers, ["wikqa"], ValueError, "did you mean 'wikiqa'"),
        (load_answers, ["zzz"], ValueError, r"data set \(and no such file or folder\): one of wikiqa, .* expected, got 'zzz'"),
        (load_answers, ["wikiqa", "cleen"], ValueError, "protocol: one of clean, .*got 'cleen'; did you mean 'clean'"),
        (load_answers, ["wikiqa", "clean", "some"], ValueError, "train_questions: one of all, with_positive expected, got 'some'"),
        (load_answers, ["pydocs", "asbert"], ValueError, "protocol: one of clean expected, got 'asbert'"),
        (load_claims, ["fevr"], FileNotFoundError, r"fevr: expected one of fever, .* or a folder.*did you mean 'fever'\?"),
        (load_evidence, ["hotpot"], FileNotFoundError, r"hotpot: expected one of hotpotqa, .* or a folder.*did you mean 'hotpotqa'\?"),
    ],
)
def test_names_that_are_wrong(load, given, error, words):
    with pytest.raises(error, match=words):
        load(*given)


QASPER = {"a/qasper-dev-v0.3.json": "[{}]", "b/qasper-dev-v0.3.json": "[{}]"}


@pytest.mark.parametrize(
    ("load", "changed", "error", "words"),
    [
        (load_answers, {"dev.tsv": "x"}, ValueError, r"one file for dev, got dev\.tsv, dev\.jsonl"),
        (load_answers, {"dev.jsonl": None}, FileNotFoundError, r"expected one of dev\.tsv, .*, dev\.parquet, .*; it holds test\.jsonl"),
        (load_answers, {"dev.jsonl": ""}, ValueError, r"dev\.jsonl is empty"),
        (load_claims, {"bert_dev.json": "x"}, ValueError, r"expected one file for dev, got dev\.jsonl, bert_dev\.json"),
        (load_claims, {"dev.jsonl": None}, FileNotFoundError, r"expected one of dev\.jsonl, dev\.json, .*; it holds test\.jsonl, train"),
        (load_claims, {"dev.jsonl": ""}, ValueError, r"dev\.jsonl is empty: expected at least one claim"),
        (load_evidence, QASPER, ValueError, r"expected one file a split, got qasper-dev-v0\.3\.json, qasper-dev-v0\.3\.json"),
        (load_evidence, {"dev.jsonl": None}, FileNotFoundError, r"expected dev\.jsonl or one of hotpot_dev.*qasper-dev.*; it holds t"),
        (load_evidence, {"dev.jsonl": ""}, ValueError, r"dev\.jsonl is empty: expected at least one question"),
    ],
)
def test_folders_that_are_wrong(tmp_path, load, changed, error, words):
    filled(load, tmp_path)
    for name, content in changed.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.unlink() if content is None else path.write_text(content)
    with pytest.raises(error, match=words):
        load(tmp_path)
