"""A measure of rankings is one file: `hit@3` is added to a copy of the project, and all that shows measures has it."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from math import comb
from pathlib import Path

import pytest

from asutil.data import claims
from asutil.metrics import registry, verdicts

ROOT = Path(__file__).resolve().parents[2]
HIT_AT_3 = """
from math import comb

from ..registry import register


def value(ranks):
    return (ranks.first <= 3).astype(float)


def at_random(size, right):
    return 1 - comb(size - right, 3) / comb(size, 3) if size > 3 else 1.0


register("hit@3", "Hit@3", "hit_at_3", value, at_random, torchmetrics=("RetrievalHitRate", 3))
"""
# Of each question the labels from the best candidate down.
RANKED = {"a": [1, 0, 0, 0, 0], "b": [0, 0, 1, 1, 0], "c": [0, 0, 0, 1, 0, 1], "d": [0, 1]}
SEEN = """
import json
import sys
from types import SimpleNamespace

import pandas as pd

from asutil import metrics
from asutil.metrics import peers
from aslab import compare, papers, rankers, records
from aslab.show import markup, tables

ranked, folder = json.loads(sys.argv[1]), sys.argv[2]
rows = [(q, f"{q}{n}", label, -n) for q, labels in ranked.items() for n, label in enumerate(labels)]
table = pd.DataFrame(rows, columns=["question_id", "candidate_id", "label", "score"])
made = metrics.of(table)
values = made.per_question.set_index("question_id")
record = {"notebook": "finetune"} | records.columns_entry(values) | {"per_question": records.rounded(values)}
old = {"notebook": "finetune", "per_question": [["a", 1.0, 1.0, 1.0]]}
line = lambda record: SimpleNamespace(record=record, folder=None, row="row", dataset="wikiqa", budget="small", seed=0)
metrics.write_trec(table, f"{folder}/one", f"{folder}/qrels")
metrics.write_trec(table.assign(score=-table.score), f"{folder}/two", f"{folder}/qrels")
compared = compare.read([f"{folder}/one", f"{folder}/two"], f"{folder}/qrels")
log = [{"step": 1, "loss": 1.0, "tokens": 9, "seconds": 1, "learning_rate": 1.0}, {"step": 1, "eval_hit@3": 0.75}]
print(json.dumps({
    "attribute": made.hit_at_3,
    "record": made.record(),
    "per question": values.hit_at_3.to_dict(),
    "at random": metrics.at_random(table).per_question.set_index("question_id").hit_at_3.to_dict(),
    "peers": peers.by_torchmetrics(table)["hit@3"],
    "columns": record["columns"],
    "committed": records.per_question(line(record)).hit_at_3.to_dict(),
    "old": list(records.per_question(line(old)).columns),
    "of rankers": list(rankers.questions_of({"per_question": {"bm25": old["per_question"]}})["bm25"].columns),
    "means": compare.means(compared)["hit@3"].to_dict(),
    "order": list(compare.means(compared)),
    "pairs": compare.pairs(compared, "hit@3").columns[2],
    "table": tables.in_points({"this run": made.record()}, "test")["Hit@3"].to_dict(),
    "log": tables.training_log(log)["dev Hit@3, points"].to_list(),
    "may be printed": "hit@3" in papers.METRICS and "hit@3" in papers.PER_QUESTION_METRICS,
    "name": markup.NAMES["hit@3"],
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    """What a copy of the project says that has one file more."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("asutil", "aslab"):
        shutil.copytree(ROOT / package, tree / package, ignore=ignored)
    (tree / "asutil" / "metrics" / "measures" / "hit_at_3.py").write_text(HIT_AT_3, encoding="utf-8")
    command = [sys.executable, "-c", SEEN, json.dumps(RANKED), str(tree)]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    made = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tree, env=environment)
    return json.loads(made.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_measure_is_one_file_by_hand(seen):
    assert seen["per question"] == seen["committed"] == {"a": 1, "b": 1, "c": 0, "d": 1}
    assert seen["attribute"] == seen["record"]["hit@3"] == 0.75
    assert list(seen["record"])[:4] == ["p@1", "map", "mrr", "hit@3"]
    assert seen["peers"] == pytest.approx(0.75)


def test_its_mean_over_all_orders_by_a_slow_loop(seen):
    for question, labels in RANKED.items():
        hits = [any(order[:3]) for order in itertools.permutations(labels)]
        size, right = len(labels), sum(labels)
        assert seen["at random"][question] == pytest.approx(sum(hits) / len(hits), rel=1e-12)
        assert size < 3 or seen["at random"][question] == pytest.approx(1 - comb(size - right, 3) / comb(size, 3), rel=1e-12)


def test_records_name_their_columns_and_those_of_before_stay_as_they_are(seen):
    first = ["p_at_1", "average_precision", "reciprocal_rank"]
    assert seen["columns"] == [*first, "hit_at_3"] and seen["old"] == seen["of rankers"] == first


def test_comparisons_tables_and_logs_show_it(seen):
    # Backwards b has a right candidate at rank 2, c at 1, a at 5, d at 1.
    assert {run: cell.split()[0] for run, cell in seen["means"].items()} == {"one": "75.0", "two": "75.0"}
    assert seen["order"] == ["map", "p@1", "mrr", "hit@3"]
    assert seen["pairs"] == "hit@3, A - B"
    assert seen["table"] == {"this run": "75.0"} and seen["log"] == ["75.0"]
    assert seen["may be printed"] and seen["name"] == "Hit@3"


# ------------------------------------------------------------------ those that are there


def test_the_measures_and_their_order():
    assert registry.columns("question") == {"p@1": "p_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}
    assert list(registry.columns("claim")) == ["label_accuracy"]
    assert list(registry.columns("context")) == ["answer_f1", "evidence_f1", "map_raw", "map_projected", "map_predicted_type"]
    cards = [["p@1", "map"], ["label_accuracy"], ["map_projected", "answer_f1"], ["auc", "accuracy"]]
    assert [registry.card(of) for of in ("question", "claim", "context", "split")] == cards
    assert all(measure.value and measure.at_random for measure in registry.measures("question"))


def test_a_key_belongs_to_one_measure():
    assert registry.measures("question")
    with pytest.raises(ValueError, match="two measures have the key 'map'"):
        registry.register("map", "MAP")


def test_verdicts_have_the_labels_of_the_claims():
    assert verdicts.LABELS == claims.LABELS
    own = verdicts.verification([0, 1, 1], [0, 1, 0], names=("no", "yes"))
    assert own["f1_no"] == own["f1_yes"] == pytest.approx(2 / 3)
