"""Data sets of the hub and of `datasets`: what `load_answers` makes of them, against the rows that they were made of."""

import json
import shutil
from collections import Counter

import datasets
import pytest

from asutil.data import answers, hub_answers, load_answers
from asutil.io import hub

SIZES = {"train": 40, "validation": 9, "test": 12}
OURS = {"train": "train", "validation": "dev", "test": "test"}


def rows_of(split, count, language=""):
    """Three candidates a question, the second one right."""
    texts = [(f"which {split} {n} {language}?", f"{split} {n} {k} {language}", int(k == 1)) for n in range(count) for k in range(3)]
    return [dict(zip(("question", "answer", "label"), row)) for row in texts]


def loaded(language="", columns=("question", "answer", "label")):
    """A DatasetDict of made-up rows."""
    new = dict(zip(("question", "answer", "label"), columns))
    rows = {split: [{new[old]: value for old, value in row.items()} for row in rows_of(split, n, language)] for split, n in SIZES.items()}
    return datasets.DatasetDict({split: datasets.Dataset.from_list(own) for split, own in rows.items()})


def texts_of(split):
    return [(question.text, candidate.text, candidate.label) for question in split for candidate in question.candidates]


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror with one data set that names its splits by language, and one with configurations."""
    monkeypatch.setenv(hub.MIRROR, str(tmp_path))
    folder, files = tmp_path / "some" / "languages", []
    folder.mkdir(parents=True)
    for language in ("de", "fr"):
        for split, part in loaded(language).items():
            part.to_json(folder / f"{split}_{language}.jsonl")
            files.append(f"  - split: {split}_{language}\n    path: {split}_{language}.jsonl\n")
    (folder / "README.md").write_text("---\nconfigs:\n- config_name: default\n  data_files:\n" + "".join(files) + "---\n")
    folder = tmp_path / "some" / "configurations"
    for language in ("it", "pl"):
        for split, part in loaded(language).items():
            (folder / language).mkdir(parents=True, exist_ok=True)
            part.to_csv(folder / language / f"{split}.csv")
    names = "".join(f"- config_name: {name}\n  data_dir: {name}\n" for name in ("it", "pl"))
    (folder / "README.md").write_text(f"---\nconfigs:\n{names}---\n")
    return tmp_path


def rows(split, language=""):
    return [tuple(row.values()) for row in rows_of(split, SIZES[split], language)]


@pytest.mark.parametrize(("name", "language"), [("languages:de", "de"), ("languages:fr", "fr"), ("configurations:pl", "pl")])
def test_a_data_set_of_the_hub_has_the_rows_of_its_files(mirror, name, language):
    splits = load_answers(f"some/{name}")
    assert {split: texts_of(splits[OURS[split]]) for split in SIZES} == {split: rows(split, language) for split in SIZES}
    assert splits["test"][3].id == "test-3"


def test_a_split_that_is_not_clear_is_refused_with_those_that_are_there(mirror):
    with pytest.raises(ValueError, match="expected one split train, got train_de, .*; name one of some/languages:de, some/languages:fr$"):
        load_answers("some/languages")
    with pytest.raises(ValueError, match="some/languages:es: expected one split train_es, got train_de"):
        load_answers("some/languages:es")
    for name in ("some/configurations", "some/configurations:es"):
        with pytest.raises(ValueError, match="expected one of its configurations: some/configurations:it, some/configurations:pl"):
            load_answers(name)
    with pytest.raises(
        FileNotFoundError,
        match=f"nobody/none: no such file or folder, and nobody/none could not be loaded from the hub .* set {hub.MIRROR}",
    ):
        load_answers("nobody/none")


def test_a_folder_that_no_hub_has_is_read_and_other_forms_of_files_are_not(mirror):
    shutil.copytree(mirror / "some" / "languages", mirror / "local" / "mine")
    assert texts_of(load_answers("local/mine:fr")["test"]) == rows("test", "fr")
    for path in (mirror / "local" / "mine").iterdir():
        path.rename(path.with_suffix(".txt"))
    with pytest.raises(ValueError, match="local/mine: expected files of the forms parquet, arrow, json, csv, got text"):
        load_answers("local/mine")


def test_its_fingerprint_follows_from_its_rows_alone(mirror):
    before = answers.fingerprint_of_answers("some/languages:de")
    assert before != answers.fingerprint_of_answers("some/languages:fr")
    shutil.copytree(mirror / "some" / "languages", mirror / "other" / "copy")
    assert answers.fingerprint_of_answers("other/copy:de") == before
    path = mirror / "other" / "copy" / "test_de.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(lines[0]) | {"label": 1}), *lines[1:]]) + "\n")
    assert answers.fingerprint_of_answers("other/copy:de") != before


def test_objects_of_datasets_are_read_as_they_are_with_the_columns_that_are_named():
    expected = {OURS[split]: rows(split) for split in SIZES}
    assert {split: texts_of(part) for split, part in load_answers(loaded()).items()} == expected
    named = loaded(columns=("query", "answer", "relevant"))
    made = load_answers(named, columns={"question": "query", "label": "relevant"})
    assert {split: texts_of(part) for split, part in made.items()} == expected
    with pytest.raises(ValueError, match="Dataset, train: expected the columns 'question', 'answer', 'label', lacks question, label"):
        load_answers(named)
    with pytest.raises(ValueError, match="columns, question: .* got 'querry'; did you mean 'query'"):
        load_answers(named, columns={"question": "querry", "label": "relevant"})
    with pytest.raises(ValueError, match="columns: those of wikiqa are known"):
        load_answers("wikiqa", columns={"question": "query"})


@pytest.mark.parametrize("wrong_first", [True, False])
@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1"), ("False", "True")])
def test_a_class_is_known_by_its_name_in_any_order(names, wrong_first, tmp_path):
    classes = datasets.ClassLabel(names=names if wrong_first else names[::-1])
    features = datasets.Features({"question": datasets.Value("string"), "answer": datasets.Value("string"), "label": classes})
    made = loaded().map(lambda row: row | {"label": names[row["label"]]}, features=features)
    assert {split: texts_of(part) for split, part in load_answers(made).items()} == {OURS[split]: rows(split) for split in SIZES}
    (folder := tmp_path / "made").mkdir()
    for split, part in made.items():
        part.to_parquet(folder / f"{split}.parquet")
    assert {split: texts_of(part) for split, part in load_answers(folder).items()} == {OURS[split]: rows(split) for split in SIZES}
    other = made.cast_column("label", datasets.ClassLabel(names=["entailment", "not_entailment"]))
    with pytest.raises(ValueError, match="row 1: expected the label 0 or 1, got '(not_)?entailment'"):
        load_answers(other)
    other["validation"].to_parquet(folder / "train.parquet")
    with pytest.raises(ValueError, match="row 1: expected the label 0 or 1, got '(not_)?entailment'"):
        load_answers(folder)


def test_splits_that_are_not_needed_may_be_missing():
    without = datasets.DatasetDict({split: part for split, part in loaded().items() if OURS[split] != "train"})
    read = load_answers(without, needed=["test"])
    assert {split: texts_of(part) for split, part in read.items()} == {OURS[split]: rows(split) for split in without}
    assert len({hub_answers.fingerprint(made) for made in (without, loaded())}) == 2
    with pytest.raises(ValueError, match="expected one split train, got validation, test"):
        load_answers(without)
    alone = datasets.DatasetDict(test=loaded()["test"])  # its name says what it is: it is not divided
    assert {split: texts_of(part) for split, part in load_answers(alone, needed=["test"]).items()} == {"test": rows("test")}
    with pytest.raises(ValueError, match="expected one split train, got test"):
        load_answers(alone)
    for wrong in (["tset"], []):
        with pytest.raises(ValueError, match="needed: "):
            load_answers(without, needed=wrong)


def test_one_dataset_is_divided_as_a_file_is_and_only_its_own_rows_count(tmp_path):
    whole = loaded()["train"]
    whole.to_json(tmp_path / "all.jsonl")
    divided, of_file = load_answers(whole), load_answers(tmp_path / "all.jsonl")
    assert {split: texts_of(part) for split, part in divided.items()} == {split: texts_of(part) for split, part in of_file.items()}
    chosen = whole.filter(lambda row: "1" in row["question"])
    read = Counter(row for part in load_answers(chosen).values() for row in texts_of(part))
    assert read == Counter(tuple(row.values()) for row in chosen)


@pytest.mark.parametrize("given", [3, ["a"], {"train": "a"}, loaded()["test"].to_iterable_dataset()])
def test_what_is_no_data_set_is_refused(given):
    with pytest.raises(ValueError, match=f"expected a hub id, a path, a Dataset or a DatasetDict .*, got {type(given).__name__}"):
        load_answers(given)


def test_a_split_becomes_a_dataset_and_comes_back():
    splits = load_answers(loaded())
    made = datasets.DatasetDict({split: splits[OURS[split]].limited(7).to_dataset() for split in SIZES})
    assert made["test"].column_names == ["question_id", "question", "answer", "label"]
    back = load_answers(made)
    for split in SIZES:
        limited = splits[OURS[split]].limited(7)
        assert [question.id for question in back[OURS[split]]] == [question.id for question in limited]
        assert texts_of(back[OURS[split]]) == texts_of(limited)
