"""What `experiments/rankers.yml` lists: runs of `rank`, and what is known of models."""

import pytest

from aslab import parameters, rankers


def test_every_budget_has_a_run_for_each_data_set_and_no_other_has_any(tmp_path):
    listed = rankers.read()["budgets"]
    for budget, own in listed.items():
        made = rankers.jobs(budget, tmp_path)
        assert [job.dataset for job in made] == own["datasets"] and len({job.folder for job in made}) == len(made)
        for job in made:
            settings = parameters.settings("rank", job.parameters)
            assert settings["protocol"] == "clean" and settings["models"].split(",") == own["rankers"]
            assert job.folder.parent == tmp_path and job.folder.name.startswith(f"rank-{job.dataset}-")
    assert rankers.jobs("laptop") == []


@pytest.mark.parametrize(
    ("name", "seen"),
    [("bm25", "no"), ("cross-encoder/ms-marco-MiniLM-L6-v2", "yes"), ("nobody/nothing", "not known"), ("all-MiniLM-L6-v2", "yes")],
)
def test_whether_a_model_was_trained_on_questions(name, seen):
    assert rankers.pairs_before(name) == seen


def test_only_listed_models_are_described():
    content = rankers.read()
    listed = {name.rsplit("/", 1)[-1] for budget in content["budgets"].values() for name in budget["rankers"]}
    assert set(content["pairs_before"]) - listed == {"glove-6b-50d", "usem3"}  # rows of asbert
    assert set(content["pairs_before"].values()) <= {"yes", "no", "likely"}


def test_publish_writes_what_is_finished_alone(tmp_path):
    assert rankers.publish(tmp_path / "results", tmp_path / "runs") == []
