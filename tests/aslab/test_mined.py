"""What mined negatives change, from made-up runs: means over seeds, differences by hand, refusals."""

import numpy as np
import pandas as pd
import pytest
from pages import mined as page

from aslab import mined, rundir
from asutil.io import disk
from asutil.metrics import significance

from ..made_up import cells, finished


def run(folder, number, first, dataset="own", ids="abcd", **settings):
    """A finished run in which the right one of two candidates is first for as many questions as `first` says."""
    scores = np.ravel([[1.0, 0.0] if n < first else [0.0, 1.0] for n in range(len(ids))]).astype(np.float32)
    table = pd.DataFrame({"question_id": np.repeat(list(ids), 2), "label": [1, 0] * len(ids), "score": scores})
    about = {"dataset": "pydocs", "model": "a/model", "question_limit": None} | settings
    record = {"notebook": "finetune", "seed": number, "settings": about, "inputs": {"dataset": dataset}}
    record |= {"metrics": {"test": {"map": (first + len(ids)) / 2 / len(ids)}}, "figures": {"examples": 8}}
    return str(finished(folder / f"finetune-made-{number:012d}", record, scores=table))


def made(folder, name, fingerprint):
    (folder / name).mkdir()
    content = {"model": {"name": name, "readout": name}, "rule": {}, "counts": {"negatives": 1200}, "fingerprint": fingerprint}
    content["dataset"] = {"fingerprint": "own"}
    disk.write_json(folder / name / "mined.json", content)
    return str(folder / name)


def test_the_table_has_means_over_seeds_and_differences(tmp_path, monkeypatch):
    plain = [run(tmp_path, 1, 1), run(tmp_path, 2, 2)]  # MAP 5/8, 6/8
    random = [made(tmp_path, "random", "r"), run(tmp_path, 3, 2, "r")]  # 6/8
    best = [made(tmp_path, "bm25", "b"), run(tmp_path, 4, 4, "b"), run(tmp_path, 5, 3, "b")]  # 1, 7/8
    content = mined.record(plain, [random, best])
    assert [row[1] for row in content["sets"][0]["per_question"]] == [1.0, 0.75, 0.5, 0.5]
    monkeypatch.setattr(rundir, "root", lambda: tmp_path)
    assert page.mined_table() == "", "no record, no table"
    (tmp_path / "results").mkdir()
    disk.write_json(tmp_path / "results" / "mined.json", content)
    none, drawn, chosen = cells(page.mined_table())[1:]
    assert none[:4] == ["none", "–", "2", "68.8 ± 8.8"] and none[4] == "–" and none[5].startswith("-6.2 [")
    assert drawn[:4] == ["random ones", "1,200", "1", "75.0"] and drawn[4].startswith("+6.2 [") and drawn[5] == "–"
    assert chosen[:4] == ["the best by BM25", "1,200", "2", "93.8 ± 8.8"]
    assert chosen[4].startswith("+25.0 [") and chosen[5].startswith("+18.8 [")


@pytest.mark.parametrize(
    ("dataset", "ids", "message"), [("other", "abcd", "expected a run of finetune on this data set"), ("m", "abce", "other questions")]
)
def test_runs_that_do_not_belong_together(tmp_path, dataset, ids, message):
    folder = made(tmp_path, "bm25", "m")
    with pytest.raises(ValueError, match=message):
        mined.record([run(tmp_path, 1, 1)], [[folder, run(tmp_path, 2, 2, dataset, ids)]])
    with pytest.raises(ValueError, match="expected a run on the data that were mined"):
        mined.record([run(tmp_path, 3, 1, "corrected")], [[folder, run(tmp_path, 4, 2, "m")]])


def test_runs_of_another_training_and_repeated_ones_are_refused(tmp_path):
    folder, plain = made(tmp_path, "bm25", "m"), run(tmp_path, 1, 1)
    with pytest.raises(ValueError, match="expected runs that differ in data and seed alone, got other epochs"):
        mined.record([plain], [[folder, run(tmp_path, 2, 2, "m", epochs=9)]])
    with pytest.raises(ValueError, match="expected each run once"):
        mined.record([plain, plain], [[folder, run(tmp_path, 3, 2, "m")]])


def test_seeds_of_one_set_need_the_same_test_questions(tmp_path):
    runs_of_a_set = [run(tmp_path, 1, 1), run(tmp_path, 2, 1, ids="abc")]
    with pytest.raises(ValueError, match="finetune-made-000000000002 was tested on other questions than finetune-made-000000000001"):
        mined.record(runs_of_a_set, [])


def test_the_words_about_our_own_runs():
    """The sentence above the table in book/reproduce.md: negatives help, chosen ones are not told from random ones."""
    path = rundir.root() / "results" / "mined.json"
    sets = {one.get("model", {}).get("name"): np.array([row[1] for row in one["per_question"]]) for one in disk.read_json(path)["sets"]}
    none, random, best = sets.pop(None), sets.pop("random"), sets["bm25"]
    assert significance.paired_bootstrap(best, none).sign == significance.paired_bootstrap(random, none).sign == 1
    assert [significance.paired_bootstrap(own, random).sign for own in sets.values()] == [0, 0]
