"""The YAML of the papers, strictly read, and the plan of runs that follows from it."""

import json
import shlex
from pathlib import Path

import pandas as pd
import pytest

from aslab import identity, papers, parameters, records, rundir, runs
from aslab import plan as plans
from asutil.io import disk

from ..book.tables import results_table
from ..experiments.made_up import stub
from ..made_up import read_from
from .test_papers import write

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


# ------------------------------------------------------------------ the plan


def plan(budget, paper="sentence_objectives", **given):
    return plans.jobs(paper, budget, folder_for=stub, **given)


def test_a_pretraining_run_serves_every_data_set_and_seed():
    jobs = plan("gpu")
    made = [job.folder for job in jobs]
    assert len(set(made)) == len(made)
    # ssp, sp, psd and all for two backbones, three of mlm, nsp and sop, and ssp and sp with shuffled labels
    assert [job.notebook for job in jobs].count("pretrain") == 15
    # 15 rows and three controls on 2 data sets with 5 seeds, two transfers, and eight rows with fewer labels on WikiQA
    assert [job.notebook for job in jobs].count("finetune") == 18 * 2 * 5 + 2 + 8 * 5
    for position, job in enumerate(jobs):
        assert all(need in made[:position] for need in job.needs), "a run comes before one that it needs"
    one = [job for job in jobs if job.row == "roberta_psd"]
    assert [(job.dataset, job.seed) for job in one] == [
        ("pretraining", 0),
        *[(dataset, seed) for dataset in ("wikiqa", "trecqa") for seed in range(5)],
    ]
    assert {job.parameters["model"] for job in one[1:]} == {one[0].folder.as_posix()}
    assert one[1].needs == (one[0].folder,)
    given = {"budget": "gpu", "objective": "psd", "model": "ibm-granite/granite-embedding-30m-english", "seed": 0}
    assert one[0].parameters == given | {"corpus": "local/wikipedia_large"}
    base = next(job for job in jobs if job.row == "roberta_base")
    assert (base.notebook, base.needs, base.parameters["model"]) == ("finetune", (), "ibm-granite/granite-embedding-30m-english")
    assert {job.parameters["model"] for job in jobs if job.row == "electra_base"} == {"google/electra-small-discriminator"}


def test_transfer_is_two_calls_of_finetune():
    first, *adapted = [job for job in plan("paper", rows=["tanda_electra"]) if not job.search]
    assert (first.dataset, first.seed, first.parameters["dataset"], first.parameters["batch_size"]) == ("transfer", 0, "asnq", 1024)
    assert first.parameters["model"] == "google/electra-base-discriminator"
    tries = [job for job in plan("paper", rows=["tanda_electra"]) if job.search]
    assert {job.needs for job in tries} == {(first.folder,)} and {job.parameters["dataset"] for job in tries} == {"wikiqa", "trecqa"}
    assert not adapted  # the seeds follow the search
    on_asnq = [job for job in plan("paper", rows=["electra_base"]) if job.dataset == "asnq"]
    assert [job.parameters["batch_size"] for job in on_asnq] == [1024] * 5
    assert "batch_size" not in plan("paper", rows=["roberta_base"])[0].parameters  # 2048 by the budget


def test_mlm_only_runs_start_the_head_anew():
    pre, fine = plan("laptop", rows=["roberta_mlm_only_sp_data"], seeds=[0])
    assert (pre.parameters["objective"], pre.parameters["data"], fine.parameters["keep_head"]) == ("mlm", "sp", False)


def test_a_row_may_have_more_seeds_than_its_budget():
    seeds = {row: {job.seed for job in plan("small", rows=[row]) if job.notebook == "finetune"} for row in ("roberta_ssp", "roberta_sp")}
    assert seeds == {"roberta_ssp": {0, 1, 2, 3, 4}, "roberta_sp": {0, 1, 2}}
    assert {job.seed for job in plan("small", rows=["roberta_ssp", "roberta_sp"], seeds=[3])} == {0, 3}
    with pytest.raises(ValueError, match="unknown seed 7"):
        plan("small", seeds=[7])


def test_a_row_may_have_more_data_sets_than_its_budget():
    """Chosen rows rank our own questions at budget small: those that a pair model ranks at budget laptop."""
    jobs = {row: plan("small", "asbert", rows=[row]) for row in ("siamese_bert", "siamese_roberta")}
    assert {row: {job.dataset for job in own} for row, own in jobs.items()} == {
        "siamese_bert": {"wikiqa", "trecqa", "pydocs"},
        "siamese_roberta": {"wikiqa", "trecqa"},
    }
    run = next(job for job in jobs["siamese_bert"] if job.dataset == "pydocs")
    each = (("embed", run.parameters), ("finetune", {"budget": "laptop"}))
    assert {parameters.settings(name, given)["question_limit"] for name, given in each} == {240}
    pair = parameters.settings("finetune", {"budget": "small", "dataset": "pydocs"})
    assert abs(pair["warmup_steps"] - pair["epochs"] * 5_569 / pair["batch_size"] / 10) < 1  # candidates of its questions


def test_budget_small_learns_its_objectives_without_masked_language_modelling():
    """The stand-in has no masked-language-model head: no row learns one, and TREC-QA is that which people labelled."""
    for job in plan("small"):
        given = parameters.settings(job.notebook, {name: value for name, value in job.parameters.items() if name != "model"})
        if job.notebook == "pretrain":
            assert given["mlm_weight"] == 0 and given["objective"] != "mlm"
        else:
            pairs = {"wikiqa": 8_672, "trecqa": 5_914, "nq_sentences": 27_930, "selqa": 7_660}
            questions = {"wikiqa": 873, "nq_sentences": 5_668, "selqa": 646}
            share = given["train_limit"] / questions[given["dataset"]] if given["train_limit"] else 1
            examples = {"nq_sentences": 5_837} if given["loss"] else pairs  # lists of up to 16 candidates
            steps = given["epochs"] * share * examples[given["dataset"]] / given["batch_size"]
            assert given["epochs"] == 3 and abs(given["warmup_steps"] - steps / 10) < 1 and given["patience"] is None
            assert given["protocol"] == {"trecqa": "asbert"}.get(given["dataset"], "clean")
    assert parameters.settings("pretrain", {"budget": "paper"})["mlm_weight"] == 1
    assert parameters.settings("finetune", {"budget": "paper", "dataset": "trecqa"})["protocol"] == "clean"


def test_own_tasks_of_released_models_are_the_papers_and_trained_ones_the_other_budgets():
    assert [(job.notebook, job.parameters["objective"]) for job in plan("laptop", rows=["bert_nsp"])] == [("pretrain", "nsp")]
    (asked,) = plan("paper", rows=["albert_sop"])
    assert (asked.notebook, asked.dataset, asked.parameters["objectives"]) == ("task_difficulty", "pretraining", "sop")
    assert plans.gpu_hours(asked) == 1 and plans.gpu_hours(plan("laptop", rows=["bert_nsp"])[0]) == 0


def test_table_3_is_measured_on_wikipedia_after_pre_training_on_four_corpora():
    jobs = plan("paper", rows=TABLE_3)
    measured = [job for job in jobs if job.dataset == "pretraining"]
    assert sorted(job.row for job in measured) == sorted(TABLE_3) and {job.notebook for job in measured} == {"task_difficulty"}
    for job in measured:
        assert job.parameters["corpus"] == "wikimedia/wikipedia:20231101.en"
        if job.row not in ("bert_nsp", "albert_sop"):
            (start,) = job.needs
            trained = next(one for one in jobs if one.folder == start)
            assert (trained.notebook, trained.dataset, trained.row) == ("pretrain", "transfer", job.row)
            assert job.parameters["models"] == start.as_posix() and trained.parameters["corpus"].count(",") == 3
    for job in jobs:  # no fine-tuning starts from what only measures
        assert not {one.folder for one in measured} & {*job.needs}
        assert job.notebook != "finetune" or "pretrain" in job.parameters["model"]
    for budget in ("laptop", "small", "gpu"):  # one corpus, of which pre-training measures what it held out
        rows = papers.read("sentence_objectives", FOLDER)["budgets"][budget]["rows"]
        own = [job for job in plan(budget, rows=[row for row in TABLE_3 if row in rows]) if job.dataset == "pretraining"]
        assert {job.notebook for job in own} == {"pretrain"} and "," not in own[0].parameters["corpus"]


def test_records_of_the_own_task_are_those_on_wikipedia(tmp_path):
    data = papers.read("sentence_objectives", FOLDER)
    pre, task, _ = papers.stages(data, "roberta_ssp", "paper")
    made = []
    for stage in (pre, task):
        given = plans.stage_parameters(data, "roberta_ssp", stage, "paper", "asnq", 0, *made)
        made.append(local_run(tmp_path, stage["notebook"], identity.shown(parameters.settings(stage["notebook"], given))))
    lines = records.records("sentence_objectives", tmp_path / "none", tmp_path)
    assert lines.row.unique().tolist() == ["roberta_ssp"]
    assert lines[["dataset", "name"]].to_numpy().tolist() == [["transfer", made[0]], ["pretraining", made[1]]]
    chains = [[*one.earlier, one.record] for one in lines.itertuples()]
    assert plans.at_paper_settings(data, "roberta_ssp", "pretraining", chains[1])
    assert not plans.at_paper_settings(data, "roberta_ssp", "pretraining", chains[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "row", "control"),
    [
        *[("sentence_objectives", f"roberta_{game}", f"roberta_{game}_shuffled") for game in ("ssp", "sp")],
        ("contextual_as2", "roberta_dpc", "roberta_dpc_shuffled"),
        ("joint_inference", "joint_mspp_ie_k", "joint_mspp_ie_k_shuffled"),
    ],
)
def test_a_control_differs_from_its_row_in_the_labels_alone(paper, row, control):
    data = papers.read(paper, FOLDER)
    for budget in ("laptop", "small", "gpu"):
        made = []
        for name in (row, control):
            jobs = plans.jobs(paper, budget, rows=[name], seeds=[0], folder_for=stub)
            made.append([(job.notebook, {key: value for key, value in job.parameters.items() if key != "model"}) for job in jobs])
        (_, theirs), (_, ours) = made[0][0], made[1][0]
        assert ours == {**theirs, "labels": "shuffled"} and made[1][1:] != []
        own = {None, *papers.datasets(data, control, budget)}  # the row may have more
        assert [job for job in made[0][1:] if job[1].get("dataset") in own] == made[1][1:]
    assert control not in data["budgets"]["paper"]["rows"] and not any(data["rows"][control]["published"].values())
    assert data["rows"][control]["name"] in results_table(paper, "controls", folder=FOLDER)


def searching(folder):
    searched = {"epochs": [1, 2], "peak_lr": [1e-5, 2e-5], "datasets": ["own"]}
    write(folder, {"budgets.laptop.search": searched, "budgets.laptop.seeds": [0, 1, 2]})


def test_a_search_comes_first_and_its_best_on_dev_is_what_the_seeds_get(tmp_path, monkeypatch):
    searching(tmp_path)
    read_from(tmp_path, monkeypatch)

    def place(notebook, given):
        return tmp_path / "runs" / "-".join([notebook, *(str(given.get(name)) for name in ("epochs", "peak_lr", "seed"))])

    def planned():
        return plans.jobs("asbert", "laptop", folder_for=place)

    tries = planned()
    assert [(job.search, job.seed) for job in tries] == [("asbert-laptop-one-own", 0)] * 4
    assert {(job.parameters["epochs"], job.parameters["peak_lr"]) for job in tries} == {(1, 1e-5), (1, 2e-5), (2, 1e-5), (2, 2e-5)}
    for job, score in zip(tries, (0.5, 0.7, 0.7, 0.6)):
        assert planned() == tries  # not before the last try is done
        job.folder.mkdir(parents=True)
        disk.write_json(
            job.folder / "record.json", {"metrics": {"dev": {"map": score}, "test": {"map": 1 - score}}} | runs.hashes(job.folder)
        )
    after = planned()
    seeds = [job for job in after if not job.search]
    assert len(after) == 4 + 2  # the best try is the run of seed 0
    assert [(job.seed, job.parameters["epochs"], job.parameters["peak_lr"]) for job in seeds] == [(s, 1, 2e-5) for s in (0, 1, 2)]


@pytest.mark.slow
def test_searches_are_named_and_hold_their_tries():
    jobs, searches = plans.jobs_and_searches("sentence_objectives", "paper")
    assert jobs == plans.jobs("sentence_objectives", "paper")
    assert all(len(tries) == 12 for tries in searches.values())
    assert "sentence_objectives-paper-roberta_ssp-trecqa" in searches and not any("asnq" in name for name in searches)
    assert plans.jobs_and_searches("sentence_objectives", "small")[1] == {}


def test_parameters_for_every_run_reach_those_that_have_them():
    jobs = plan("laptop", rows=["roberta_psd"], seeds=[0], data_sets=["pydocs"], more={"workers": 2, "precision": "bf16"})
    assert ["workers" in job.parameters for job in jobs] == [True, False]
    assert all(job.command.endswith("-p precision bf16") for job in jobs)
    with pytest.raises(ValueError, match="more: unknown parameter 'precison'; did you mean 'precision'"):
        plan("laptop", more={"precison": "bf16"})
    for name in plans.PLANNED:  # of a row: one value for all would make other rows of them
        with pytest.raises(ValueError, match=f"unknown parameter '{name}'"):
            plan("laptop", more={name: "x"})


def test_the_demo():
    demo = papers.read("sentence_objectives", FOLDER)["demo"]
    jobs = plan(**demo)
    pre_trained = [(notebook, row, 0) for row in ("roberta_psd", "roberta_ssp") for notebook in ("pretrain", "finetune")]
    assert [(job.notebook, job.row, job.seed) for job in jobs] == [("finetune", "roberta_base", 0), *pre_trained]


def test_the_papers_own_budget():
    jobs = plan("paper")
    wanted = {"FacebookAI/roberta-base", "google/electra-base-discriminator"}
    assert {job.parameters["model"] for job in jobs if job.notebook == "pretrain"} == wanted
    assert len(next(job for job in jobs if job.notebook == "pretrain").parameters["corpus"].split(",")) == 4
    assert {job.seed for job in jobs if job.notebook == "finetune"} == {0, 1, 2, 3, 4}


def test_commands_survive_a_shell():
    job = plan("small", rows=["roberta_psd"])[1]
    assert shlex.split(job.command) == [
        *["papermill", "notebooks/finetune.ipynb", "-p", "budget", "small", "-p", "model", job.needs[0].as_posix()],
        *["-p", "dataset", "wikiqa", "-p", "seed", "0"],
    ]
    odd = plans.Job("p", "r", "small", "d", 0, "finetune", {"dataset": "my data; rm -rf x"}, Path("f"))
    assert shlex.split(odd.command)[-1] == "my data; rm -rf x"


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"unknown budget 'labtop'; did you mean 'laptop'"):
        plan("labtop")
    with pytest.raises(ValueError, match=r"unknown row 'roberta_pds'; did you mean 'roberta_psd'"):
        plan("laptop", rows=["roberta_pds"])
    with pytest.raises(ValueError, match=r"unknown row 'electra_psd'"):
        plan("small", rows=["electra_psd"])
    with pytest.raises(ValueError, match="unknown row 'gear'"):  # it has no stages: a system of others
        plans.jobs("joint_inference", "paper", rows=["gear"], folder_for=stub)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", list(papers.NOTEBOOKS))
def test_plans_and_settings_name_parameters_that_the_notebooks_have(notebook):
    if not (FOLDER.parent / "notebooks" / f"{notebook}.ipynb").is_file():
        pytest.skip(f"notebooks/{notebook}.ipynb is not there")
    known = parameters.parameters(notebook)
    data = papers.read("sentence_objectives", FOLDER)
    for rule in data["settings"]:
        if rule["notebook"] == notebook:
            assert set(rule["are"]) | set(rule.get("when", {})) <= {*known, "row"}
    for budget in rundir.BUDGETS:
        for job in plan(budget):
            if job.notebook == notebook:
                parameters.check(notebook, job.parameters)


# ------------------------------------------------------------------ the paper's own settings


def chain(row="roberta_psd", dataset="wikiqa", budget="paper", pretrain=None, finetune=None):
    """Records of the runs behind a row's figures on a data set with what its notebooks would set, and some changes."""
    data, made, model = papers.read("sentence_objectives", FOLDER), [], None
    left_out = "finetune" if dataset == "pretraining" else "task_difficulty"
    for stage in papers.stages(data, row, budget):
        if stage["notebook"] == left_out:
            continue
        given = plans.stage_parameters(data, row, stage, budget, dataset, 0, model)
        changes = (pretrain if stage["notebook"] == "pretrain" else finetune) or {}
        model = f"{stage['notebook']}-{len(made):012d}"
        settings = identity.shown(parameters.settings(stage["notebook"], given)) | changes
        made.append({"notebook": stage["notebook"], "name": model, "budget": budget, "seed": 0, "settings": settings})
    return made


TABLE_3 = papers.read("sentence_objectives", FOLDER)["tables"]["table_3"]["rows"]


@pytest.mark.parametrize("row", TABLE_3)
def test_own_tasks_are_the_papers_on_wikipedia_and_not_on_four_corpora(row):
    """Section 5.3: the validation split of Wikipedia, for all eight rows. The objectives themselves were learnt on four corpora."""
    data, made = papers.read("sentence_objectives", FOLDER), chain(row, "pretraining")
    *before, last = made
    assert (last["notebook"], last["settings"]["corpus"]) == ("task_difficulty", "wikimedia/wikipedia:20231101.en")
    assert [one["notebook"] for one in before] == ["pretrain"] * (row not in ("bert_nsp", "albert_sop"))
    assert plans.at_paper_settings(data, row, "pretraining", made)
    four = data["budgets"]["paper"]["corpus"]
    for changed in ({"corpus": four}, {"corpus": "wikimedia/wikipedia"}, {"max_tokens": 64}, {"models": "pretrain-ffffffffffff"}):
        other = [*before, last | {"settings": last["settings"] | changed}]
        assert not plans.at_paper_settings(data, row, "pretraining", other), changed
    for one in before:  # what pre-training held out of its own corpora
        assert one["settings"]["corpus"] == four and four.count(",") == 3
        assert not plans.at_paper_settings(data, row, "pretraining", before)


def test_a_setting_that_came_later_leaves_a_record_at_the_papers():
    data, made = papers.read("sentence_objectives", FOLDER), chain()
    del made[0]["settings"]["same_paragraph_before"]
    assert plans.at_paper_settings(data, "roberta_psd", "wikiqa", made)


def test_a_paper_without_settings_has_no_exact_run():
    assert not plans.at_paper_settings(papers.read("evidence_contrast", FOLDER), "led_base", "qasper", chain())


# ------------------------------------------------------------------ records


def local_run(folder, notebook, given):
    name = f"{notebook}-{abs(hash(json.dumps(given))) % 10**12:012d}"
    (folder / name).mkdir(parents=True)
    made = {"notebook": notebook, "name": name, "budget": given["budget"], "seed": given["seed"], "settings": given, "metrics": {}}
    disk.write_json(folder / name / "record.json", made | runs.hashes(folder / name))
    return name


def test_local_runs_find_their_rows(tmp_path, monkeypatch):
    """Effective settings are what is given and one default."""
    monkeypatch.setattr(parameters, "settings", lambda notebook, given: {"steps": 10, "runs_dir": None, **given})
    start = {"budget": "laptop", "model": "pydocs_roberta", "steps": 10}
    pre = local_run(tmp_path, "pretrain", start | {"objective": "psd", "corpus": "pydocs", "seed": 0})
    fine = {"budget": "laptop", "dataset": "pydocs", "steps": 10}
    one = local_run(tmp_path, "finetune", fine | {"model": pre, "seed": 0})
    base = local_run(tmp_path, "finetune", fine | {"model": "pydocs_roberta", "seed": 0})
    local_run(tmp_path, "finetune", fine | {"model": "pydocs_roberta", "seed": 0, "steps": 999})  # not the row's own parameters
    local_run(tmp_path, "finetune", fine | {"model": "pretrain-000000000000", "seed": 0})  # of a model that is no row's
    (tmp_path / "finetune-111111111111").mkdir()  # not finished
    lines = records.records("sentence_objectives", tmp_path / "none", tmp_path)
    assert lines[["row", "dataset", "budget", "seed", "source", "name"]].to_numpy().tolist() == [
        ["roberta_base", "pydocs", "laptop", 0, "this machine", base],
        ["roberta_psd", "pretraining", "laptop", 0, "this machine", pre],
        ["roberta_psd", "pydocs", "laptop", 0, "this machine", one],
    ]
    assert [[r["name"] for r in earlier] for earlier in lines.earlier] == [[], [], [pre]]


def test_a_record_from_before_a_parameter_came_is_still_its_rows(tmp_path):
    given = plans.stage_parameters(
        papers.read("sentence_objectives", FOLDER), "roberta_base", {"notebook": "finetune"}, "small", "wikiqa", 1, None
    )
    settings = identity.shown(parameters.settings("finetune", given))
    for absent in ("weight_decay", "max_tokens"):  # one with a default of its own, one that the budget sets
        folder = tmp_path / absent
        old = {name: value for name, value in settings.items() if name != absent}
        name = local_run(folder, "finetune", old)
        lines = records.records("sentence_objectives", folder / "none", folder)
        assert lines[["row", "seed", "name"]].to_numpy().tolist() == [["roberta_base", 1, name]]
    local_run(tmp_path / "other", "finetune", settings | {"weight_decay": 0.5})
    assert not len(records.records("sentence_objectives", tmp_path / "none", tmp_path / "other"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pretrain", "finetune", "expected"),
    [
        ({}, {}, ["pretraining", "asnq"]),
        ({}, {"evaluations": 3, "patience": 6}, ["pretraining", "asnq"]),  # any, and one of two
        ({}, {"patience": 7}, ["pretraining"]),
        ({}, {"seed": 4}, ["pretraining", "asnq"]),  # one of the paper's seeds
        ({}, {"seed": 9}, ["pretraining"]),
        ({}, {"gradient_checkpointing": True}, ["pretraining", "asnq"]),  # changes no result
        ({"heads": "separate"}, {}, ["pretraining", "asnq"]),  # any, when the objective is all
        ({"heads": "separate"}, {"evaluations": 3}, ["pretraining", "asnq"]),
        ({"steps": 400001}, {}, []),
        ({"mlm_weight": 0.0}, {}, []),
    ],
)
def test_local_runs_at_budget_paper_are_matched_by_the_papers_rules(tmp_path, pretrain, finetune, expected):
    """As `at_paper_settings` does: with each value that a rule accepts a run is listed, with another it is not."""
    made = chain("roberta_all", "asnq", pretrain=pretrain, finetune=finetune)
    made[-1]["seed"] = made[-1]["settings"]["seed"]
    for one in made:
        (tmp_path / one["name"]).mkdir()
        disk.write_json(tmp_path / one["name"] / "record.json", one | {"metrics": {}})
    lines = records.records("sentence_objectives", tmp_path / "none", tmp_path)
    assert lines[["row", "dataset", "seed", "name"]].to_numpy().tolist() == [
        ["roberta_all", one["settings"].get("dataset", "pretraining"), one["seed"], one["name"]] for one in made[: len(expected)]
    ]
    assert list(lines.dataset) == expected
    if len(expected) == 2:
        data = papers.read("sentence_objectives", FOLDER)
        assert plans.at_paper_settings(data, "roberta_all", "asnq", records.chain(lines.iloc[1]))


def test_a_run_with_exactly_a_rows_settings_is_no_other_rows(tmp_path):
    """Of two runs that the rules accept the row's own counts, even if it is the older one."""
    for number, (evaluations, day) in enumerate([(None, "01"), (3, "02")]):
        (one,) = chain("roberta_base", "asnq", finetune={"evaluations": evaluations} if evaluations else {})
        name = f"finetune-{number:012d}"
        (tmp_path / name).mkdir()
        disk.write_json(tmp_path / name / "record.json", one | {"name": name, "created": f"2026-01-{day}", "metrics": {}})
    lines = records.records("sentence_objectives", tmp_path / "none", tmp_path)
    assert set(lines.name[lines.row == "roberta_base"]) == {"finetune-000000000000"}


def test_committed_results(tmp_path):
    place = tmp_path / "results/sentence_objectives/roberta_psd"
    place.mkdir(parents=True)
    record = {"row": "roberta_psd", "dataset": "wikiqa", "budget": "small", "seed": 2, "name": "finetune-x"}
    disk.write_json(place / "wikiqa-small-seed2.json", record)

    def read():
        return records.records("sentence_objectives", tmp_path / "results", tmp_path / "runs")

    found = read()
    assert isinstance(found, pd.DataFrame)
    assert found[["row", "dataset", "budget", "seed", "source"]].to_numpy().tolist() == [["roberta_psd", "wikiqa", "small", 2, "committed"]]
    also = {"metrics": {"test": {"map": 0.5}}, "fingerprint": "f", "per_question": [["a", 1, 0.5, 0.5]]}
    of_nq = record | {"dataset": "nq_sentences", "metrics": {"test": {"map": 0.9}, "dev": {}}, "transfer": {"selqa": also}}
    settings = {"settings": {"dataset": "nq_sentences"}}
    disk.write_json(
        place / "nq_sentences-small-seed2.json", of_nq | settings | {"per_question": [["b", 1, 0.9, 0.9]], "per_question_dev": []}
    )
    own, transfer = (next(read().query(f"dataset == '{name}'").itertuples()) for name in ("nq_sentences", "selqa_from_nq_sentences"))
    assert [records.figures(line)["map"] for line in (own, transfer)] == [0.9, 0.5]
    assert [list(records.per_question(line).index) for line in (own, transfer)] == [["b"], ["a"]]
    assert records.dev_questions(papers.read("sentence_objectives"), transfer) is None and "transfer" not in transfer.record
    disk.write_json(place / "trecqa-small-seed2.json", record)
    with pytest.raises(ValueError, match=r"roberta_psd/trecqa-small-seed2.json holds the record of roberta_psd/wikiqa-small-seed2.json"):
        read()
    for text in ("{", "[]", '{"row": 1}'):
        (place / "trecqa-small-seed2.json").write_text(text)
        with pytest.raises(ValueError, match=r"roberta_psd/trecqa-small-seed2.json is damaged"):
            read()


@pytest.mark.parametrize(
    ("paper", "row", "control"),
    [("sentence_objectives", "roberta_ssp", "roberta_ssp_head_anew"), ("contextual_as2", "roberta_dpc", "roberta_dpc_head_anew")],
)
def test_a_control_of_the_head_differs_in_nothing_else(paper, row, control):
    data = papers.read(paper, FOLDER)
    assert control not in data["budgets"]["paper"]["rows"] and not any(data["rows"][control]["published"].values())
    for budget in ("laptop", "small", "gpu"):
        theirs, ours = (plans.jobs(paper, budget, [name], [0], folder_for=stub) for name in (row, control))
        assert len(ours) == 1 + len(papers.datasets(data, control, budget))
        assert ours[0].folder == theirs[0].folder and ours[0].notebook == "pretrain"
        same = [job for job in theirs[1:] if job.dataset in papers.datasets(data, control, budget)]
        for one, other in zip(same, ours[1:], strict=True):
            settings = [parameters.settings("finetune", job.parameters) for job in (one, other)]
            assert settings[1] == settings[0] | {"keep_head": False} and settings[0]["keep_head"]


def test_at_budget_small_nq_sentences_is_ranked_in_place_of_asnq():
    """Every row of a pre-training learns it from the same start as the other data sets, and TANDA adapts the run of the plain backbone."""
    jobs = plan("small")
    alone = {f"roberta_{row}_500" for row in ("listwise", "distilled", "sp_shuffled", "psd", "all")} | {
        "roberta_sp_500_head_anew"
    }  # not on WikiQA
    rows = {job.row for job in jobs if job.dataset == "nq_sentences"} - alone
    assert rows == {job.row for job in jobs if job.dataset == "wikiqa"} - {"tanda_roberta"}
    (transfer,) = {job.needs for job in jobs if job.row == "tanda_roberta"}
    (first,) = (job for job in jobs if (job.folder,) == transfer)
    assert (first.dataset, first.row, first.seed, first.parameters["dataset"]) == ("nq_sentences", "roberta_base", 0, "nq_sentences")
    assert not any("nq_sentences" in str(job.parameters) for budget in ("laptop", "gpu", "paper") for job in plan(budget))
    for job in jobs:
        others = "wikiqa,trecqa,selqa" if job.parameters.get("dataset") == "nq_sentences" else None
        assert job.parameters.get("also_rank") == others


def test_a_seed_pre_trains_on_its_own_where_the_budget_says_so():
    """A seed of nq_sentences is a whole chain, so that its spread is that of pre-training, too; on WikiQA all seeds share one."""
    jobs = plan("small", rows=["roberta_sp"], seeds=[0, 2])
    by_folder = {job.folder: job for job in jobs}
    for job in (job for job in jobs if job.notebook == "finetune"):
        (before,) = (by_folder[need] for need in job.needs)
        assert before.notebook == "pretrain" and before.seed == (job.seed if job.dataset == "nq_sentences" else 0)
        assert job.parameters["model"] == before.folder.as_posix()
    assert [job.seed for job in jobs if job.notebook == "pretrain"] == [0, 2]
    again = plan("laptop", rows=["roberta_base", "roberta_sp"], data_sets=["pydocs_more"])
    chains = [("roberta_sp", notebook, seed) for notebook in ("pretrain", "finetune") for seed in range(3)]
    asked = [("roberta_base", "finetune", seed) for seed in range(3)] + chains  # the budget's seeds alone, not the row's more seeds
    assert [(job.row, job.notebook, job.seed) for job in again] == asked


def test_a_student_learns_from_the_run_before_it_and_starts_from_the_backbone():
    jobs = plan("small", rows=["roberta_base_500", "roberta_distilled_500"], seeds=[0, 1])
    students = [job for job in jobs if job.parameters.get("loss") == "distillation"]
    teachers = {job.folder: job for job in jobs if job.row == "roberta_base_500" and job.dataset == "nq_sentences"}
    assert [job.seed for job in students] == [0, 1] and len(teachers) == 2
    for student in students:
        teacher = teachers[student.needs[0]]  # no run of its own: the seed's own run of the other row
        assert student.parameters["teacher"] == teacher.folder.as_posix() and teacher.seed == student.seed
        assert student.parameters["model"] == teacher.parameters["model"] == "ibm-granite/granite-embedding-30m-english"
        assert (teacher.parameters["train_limit"], student.parameters["train_limit"]) == (500, 1500)
