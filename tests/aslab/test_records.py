"""The columns of committed records that name none."""

from types import SimpleNamespace

import pandas as pd
import pytest

from aslab import records
from asutil.metrics import registry


@pytest.mark.parametrize(
    ("notebook", "columns"),
    [
        ("finetune", "p_at_1 average_precision reciprocal_rank"),
        ("verify_claims", "label_accuracy"),
        ("find_evidence", "answer_f1 evidence_f1 map_raw map_projected map_predicted_type"),
    ],
)
def test_a_new_measure_does_not_rename_the_columns_of_old_records(monkeypatch, notebook, columns):
    columns = columns.split()
    old = {"notebook": notebook, "per_question": [["a", *range(len(columns))]]}
    of = records.kind(old)
    new = {name: registry.Measure(name, name, of=of, column=name) for name in ("p@1", "map_first", "aa")}
    monkeypatch.setattr(registry, "MEASURES", new | {key: value for key, value in registry.MEASURES.items() if key not in new})
    assert list(registry.columns(of).values())[: len(columns)] != columns
    line = SimpleNamespace(record=old, folder=None, row="row", dataset="own", budget="small", seed=0)
    assert records.per_question(line).iloc[0].to_dict() == dict(zip(columns, range(len(columns))))


def test_dev_questions_of_another_data_set_do_not_count_again():
    record = {"notebook": "finetune", "settings": {}, "metrics": {"test": {}}, "per_question_dev": [["a", 1, 0.5, 1.0]]}
    line = lambda dataset: SimpleNamespace(record=record, folder=None, row="row", dataset=dataset, budget="small", seed=0, earlier=[])
    dev = lambda dataset: records.dev_questions({"budgets": {}, "rows": {"row": {}}}, line(dataset))
    assert list(dev("pydocs").index) == ["a"] and dev("pydocs_more") is None


def test_dev_and_test_together_have_the_measures_of_both(monkeypatch):
    """A measure that was added after a run is in the values of dev, which are computed today, and not in those of test."""
    table = lambda names, **columns: pd.DataFrame(columns, index=pd.Index(names, name="question_id"))
    monkeypatch.setattr(records, "dev_questions", lambda data, one: table(["a"], average_precision=[0.5], new=[1.0]))
    monkeypatch.setattr(records, "per_question", lambda one: table(["b", "c"], average_precision=[1.0, 0.25]))
    pooled = records.pooled({}, None)
    assert list(pooled.columns) == ["average_precision"] and pooled["average_precision"].tolist() == [0.5, 1.0, 0.25]
