"""The limits of train, and of dev and test, of every loader of labelled data: which one holds, and what a split reports."""

import json

import pytest

from asutil.data.answers import load_answers
from asutil.data.claims import load_claims
from asutil.data.long_questions import load_evidence

SIZES = {"train": 40, "dev": 20, "test": 12}
ROWS = {
    load_answers: lambda n: [{"question_id": f"Q{n}", "question": f"q {n}?", "answer": f"a {k}", "label": k} for k in (0, 1)],
    load_claims: lambda n: [{"id": n, "claim": f"claim {n}", "label": "SUPPORTS", "evidence": [["Page", 0, f"It is {n}."]]}],
    load_evidence: lambda n: [
        {
            "id": str(n),
            "question": f"q {n}?",
            "passages": [{"title": "Page", "sentences": ["It is.", "It was."]}],
            "answer": "yes",
            "kind": "yes",
            "evidence": [[0, 1]],
        }
    ],
}


@pytest.fixture(params=ROWS, ids=lambda load: load.__name__)
def loader(request, tmp_path):
    """A loader, and a folder in its form."""
    for split, size in SIZES.items():
        rows = [row for n in range(size) for row in ROWS[request.param](n)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return request.param, tmp_path


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


def test_fewer_training_examples_are_a_part_of_more_and_the_other_splits_stay_whole(loader):
    """What a learning curve needs; shuffled rows have the same examples."""
    load, folder = loader
    splits = {limit: load(folder, train_limit=limit) for limit in (5, 15, 30, 100)}
    ids = {limit: {example.id for example in of["train"]} for limit, of in splits.items()}
    assert ids[5] < ids[15] < ids[30] < ids[100] and list(map(len, ids.values())) == [5, 15, 30, 40]
    for split in ("dev", "test"):
        assert all([e.id for e in of[split]] == [e.id for e in load(folder)[split]] for of in splits.values())
    rows = (folder / "train.jsonl").read_text().splitlines(keepends=True)
    (folder / "train.jsonl").write_text("".join(reversed(rows)))
    assert {example.id for example in load(folder, train_limit=15)["train"]} == ids[15]


@pytest.mark.parametrize("name", ["limit", "train_limit", "test_limit"])
def test_a_limit_of_nothing_is_refused(loader, name):
    load, folder = loader
    with pytest.raises(ValueError, match=f"{name} must be at least 1 "):
        load(folder, **{name: 0})
