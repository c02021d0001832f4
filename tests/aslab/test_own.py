"""From own documents to a ranker: the runs and their commands, refusals before anything runs, the comparison by hand, what is exported."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from aslab import export, identity, own, own_inputs, rundir
from aslab.commands import asutil
from asutil import corpus
from asutil.io import disk
from asutil.sampling import Sampler

from .. import made_up

HEAD = "question\tanswer\tlabel\n"
PARAGRAPH = "The lighthouse on the northern rock was rebuilt after the great storm. Its lamp burns oil from the harbour."


@pytest.fixture
def config(tmp_path):
    """The options of a call: ten documents, and twelve questions with two candidates each."""
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(10):
        (texts / f"{number}.txt").write_text(f"{PARAGRAPH} {number}\n\n{PARAGRAPH}\n")
    rows = [f"What is {number}?\tAnswer {label} to {number}\t{label}\n" for number in range(12) for label in (1, 0)]
    (tmp_path / "mine.tsv").write_text(HEAD + "".join(rows))
    return {"corpus": str(texts), "questions": str(tmp_path / "mine.tsv"), "to": str(tmp_path / "ranker")}


# ------------------------------------------------------------------ the runs


def test_one_pretraining_and_each_seed_with_it_and_without_it(config):
    made = own.chain(config | {"seeds": "0,4"})
    assert [job.notebook for job in made.jobs] == ["pretrain", *["finetune"] * 4]
    assert made.pretraining.parameters == {"budget": "laptop", "objective": "sp", "corpus": config["corpus"], "seed": 0}
    assert [job.parameters for job in made.plain] == [{"budget": "laptop", "dataset": config["questions"], "seed": seed} for seed in (0, 4)]
    for plain, pretrained in zip(made.plain, made.pretrained, strict=True):
        assert pretrained.parameters == plain.parameters | {"model": f"runs/{made.pretraining.folder.name}"}
        assert (plain.needs, pretrained.needs) == ((), (made.pretraining.folder,))
    assert len({job.folder for job in made.jobs}) == 5
    for job in made.jobs:  # papermill's own folder for the same words
        words = shlex.split(job.command)
        given = {words[i + 1]: yaml.safe_load(words[i + 2]) for i, word in enumerate(words) if word == "-p"}
        assert identity.folder_for(job.notebook, given, must_exist=False) == job.folder
    _, *words = shlex.split(made.command)
    names = [[job.folder.name for job in jobs] for jobs in (made.plain, made.pretrained)]
    assert words == ["-m", "asutil", "own", "--plain", ",".join(names[0]), "--pretrained", ",".join(names[1]), "--to", config["to"]]


def test_options_reach_the_notebooks_that_have_them(config):
    made = own.chain(
        config | {"objective": "psd", "budget": "small", "model": "tiny", "steps": 7, "epochs": 3, "max_tokens": 40, "seeds": 1}
    )
    assert [job.seed for job in made.jobs] == [0, 1, 1]  # the pre-training always has seed 0
    common = {"budget": "small", "model": "tiny", "max_tokens": 40}
    assert made.pretraining.parameters == common | {"objective": "psd", "corpus": config["corpus"], "steps": 7, "seed": 0}
    assert made.plain[0].parameters == common | {"dataset": config["questions"], "epochs": 3, "seed": 1}


def test_changed_inputs_are_other_runs_where_they_matter(config, tmp_path):
    before = own.chain(config)
    (tmp_path / "texts" / "0.txt").write_text("Other text.\n")
    corpus = own.chain(config)
    assert corpus.pretraining.folder != before.pretraining.folder and corpus.plain == before.plain
    assert not {job.folder for job in corpus.pretrained} & {job.folder for job in before.pretrained}
    with (tmp_path / "mine.tsv").open("a") as stream:
        stream.write("Another?\tYes\t1\n")
    questions = own.chain(config)
    assert questions.pretraining == corpus.pretraining
    assert not {job.folder for job in questions.jobs[1:]} & {job.folder for job in corpus.jobs[1:]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"corpus": None}, r"corpus is missing\nexpected: snakemake -c2 own --config corpus=my_texts questions=my_questions.tsv"),
        ({"questions": None}, r"questions is missing\nexpected: snakemake"),
        ({"corpus": "owner/texts"}, r"corpus: /.*owner/texts does not exist\nexpected"),
        ({"questions": "/nowhere.tsv"}, r"questions: /nowhere.tsv does not exist\nexpected"),
        ({"question": "x"}, "unknown option 'question'; did you mean 'questions'"),
        ({"seed": 3}, "unknown option 'seed'; did you mean 'seeds'"),
        ({"architecture": "joint"}, "unknown option 'architecture'"),
        ({"seeds": "0;1"}, "seeds: expected whole numbers joined by commas, as 0,1,2; got '0;1'"),
        ({"objective": "spp"}, "unknown objective 'spp'; did you mean 'sp'"),
        ({"objective": "mspp"}, "unknown objective 'mspp'"),
        ({"questions": 2024.1}, "questions: expected text, got 2024.1, as YAML reads it: write it with ./ before it"),
        ({"corpus": 0}, "corpus: expected text, got 0"),
        ({"model": 7}, "model: expected text, got 7"),
        ({"to": 5}, "to: expected text, got 5"),
        ({"budget": "labtop"}, "budget of pretrain is one of laptop, small, gpu, paper; got 'labtop'"),
        ({"epochs": 0}, "epochs of finetune is at least 1"),
        (
            {"model": "runs/pretrain-sp-0123456789ab"},
            "model: expected what a pre-training starts from, got one that ended, runs/pretrain-sp",
        ),
    ],
)
def test_refused_before_anything_runs(config, changed, message):
    with pytest.raises((ValueError, OSError), match=message):
        own.chain(config | changed)


@pytest.mark.parametrize(("to", "expected"), [("./5", "5"), (None, own.DEFAULTS["to"]), ("", own.DEFAULTS["to"])])
def test_a_place_that_is_a_number_or_left_empty(config, monkeypatch, tmp_path, to, expected):
    monkeypatch.chdir(tmp_path)
    assert own.chain(config | {"to": to}).to == own.remote.expanded(expected)


def test_what_others_wrote_is_not_replaced(config, tmp_path):
    """Refused before anything runs: a report, a ranker of other questions, an export that was changed or has further files."""
    to, report = tmp_path / "ranker", tmp_path / "comparison.md"
    report.write_text("My own notes")
    with pytest.raises(FileExistsError, match="comparison.md exists and is no report that this command wrote"):
        own.chain(config)
    assert own.chain(config | {"to": str(tmp_path / "other")}).to == tmp_path / "other"  # its report has its name
    (tmp_path / "other-comparison.html").write_text("My own notes")
    with pytest.raises(FileExistsError, match="other-comparison.html exists"):
        own.chain(config | {"to": str(tmp_path / "other")})
    report.write_text(own.rendered(["One sentence."], "markdown"))
    report.with_suffix(".html").write_text(own.rendered(["One sentence."], "html"))
    to.mkdir()
    (to / "weights").write_text("1")
    disk.write_json(to / disk.LIST, {"files": disk.hashes(to)})
    card = own.CARD + "\n| run | `finetune` |\n| data set | `own:{}` |\n"
    (to / "README.md").write_text(card.format("mine.tsv"))
    assert own.chain(config).to == to
    (to / "README.md").write_text(card.format("theirs.tsv"))
    with pytest.raises(FileExistsError, match="ranker: it exists and is no ranker for own:mine.tsv that this command wrote"):
        own.chain(config)
    (to / "README.md").write_text(card.format("mine.tsv"))
    (to / "notes.txt").touch()
    with pytest.raises(ValueError, match="notes.txt is not in the list of asutil_files.json: move it from ranker/"):
        own.chain(config)
    (to / "notes.txt").unlink()
    (to / "weights").write_text("2")
    with pytest.raises(ValueError, match="ranker/weights is damaged or was changed"):
        own.chain(config)


def test_inputs_are_read_before_anything_runs(config, tmp_path):
    corpus, few = "corpus: 10 documents, 10 of them long enough", "Fewer than 6 test questions cannot show any difference"
    assert own_inputs.require_readable(own.chain(config)) == f"{corpus}\nquestions: 10 train, 1 dev, 1 test. {few}"
    (tmp_path / "texts" / "notes.md").touch()
    (tmp_path / "texts" / "README").touch()
    (tmp_path / "texts" / "SHORT.TXT").write_text("Too short.")
    lines = own_inputs.require_readable(own.chain(config | {"question_limit": 4})).splitlines()
    assert lines[0] == "corpus: 11 documents, 10 of them long enough; 2 files are not read: 1 without an ending, 1 .md"
    assert lines[1:] == [f"questions: 4 train, 1 dev, 1 test. {few}", "left out by question_limit=4: 6 of 10 training questions"]
    (tmp_path / "right.tsv").write_text(HEAD + "".join(f"What is {number}?\tThis\t1\n" for number in range(12)))
    with pytest.raises(ValueError, match=r"right.tsv: every candidate has label 1: .* add wrong candidates"):
        own_inputs.require_readable(own.chain(config | {"questions": str(tmp_path / "right.tsv")}))
    (tmp_path / "mine.tsv").write_text(HEAD + "Why?\tBecause\tmaybe\n")
    with pytest.raises(ValueError, match=r"mine.tsv, row 2: expected the label 0 or 1, got 'maybe'"):
        own_inputs.require_readable(own.chain(config))
    (tmp_path / "notes.jsonl").write_text('{"texts": "x"}\n')
    with pytest.raises(ValueError, match=r"notes.jsonl line 1: expected text in 'text'"):
        own_inputs.require_readable(own.chain(config | {"corpus": str(tmp_path / "notes.jsonl")}))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.md").touch()
    with pytest.raises(FileNotFoundError, match=r"empty: no .parquet, .jsonl or .txt file; it holds a.md"):
        own_inputs.require_readable(own.chain(config | {"corpus": str(tmp_path / "empty")}))
    (tmp_path / "notes.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"empty corpus: 0 documents read, none kept \(a document needs 200 .*\nexpected"):
        own_inputs.require_readable(own.chain(config | {"corpus": str(tmp_path / "notes.jsonl")}))
    (tmp_path / "texts" / "z.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"texts/z.txt: expected UTF-8, got byte 0xe9 at 3"):
        own_inputs.require_readable(own.chain(config))


ONE_SENTENCE = "A paragraph of a single sentence that is long enough to stay in an index, and its number is {}."
OF_FEW = {  # paragraphs of each document
    "one document": [[f"{PARAGRAPH} {number}" for number in range(3)] for _ in range(1)],
    "two documents": [[f"{PARAGRAPH} {number} of {document}" for number in range(3)] for document in range(2)],
    "one sentence each": [[ONE_SENTENCE.format(f"{document} {number}") for number in range(3)] for document in range(9)],
    "one paragraph each": [[f"{PARAGRAPH} {document}" * 3] for document in range(9)],
}


@pytest.mark.parametrize(
    ("texts", "objective", "message"),
    [
        ("one document", "sp", "in the train documents: 1 document, which is held out for validation; it needs at least 2 documents"),
        ("two documents", "psd", "in the train documents: 2 documents, all of them held out for validation; it needs"),
        ("one sentence each", "sp", "in the train documents: 7 documents, 21 paragraphs, the longest of 1 sentences; it needs"),
        ("one sentence each", "psd", None),
        ("one paragraph each", "psd", "no eligible anchor for psd in the train documents: 7 documents, 7 paragraphs"),
        ("one paragraph each", "sp", None),
    ],
)
def test_the_preview_refuses_what_pre_training_refuses(tmp_path, tokenizer, config, texts, objective, message):
    rows = OF_FEW[texts]
    (tmp_path / "few.jsonl").write_text("".join(json.dumps({"text": "\n\n".join(paragraphs)}) + "\n" for paragraphs in rows))
    made = own.chain(config | {"corpus": str(tmp_path / "few.jsonl"), "objective": objective})
    index = corpus.prepare(str(tmp_path / "few.jsonl"), tokenizer, tmp_path / "shared")
    outcomes = []
    for read in (lambda: own_inputs.require_readable(made), lambda: [Sampler(index, objective, split=s) for s in ("train", "validation")]):
        try:
            outcomes.append(read() and None)
        except ValueError as error:
            outcomes.append(str(error))
    preview, sampled = outcomes
    assert (preview is None) == (sampled is None) == (message is None), outcomes
    if message:
        assert message in sampled and sampled in preview and "few.jsonl" in preview


# ------------------------------------------------------------------ the comparison


def pretraining(folder, **validation):
    return str(made_up.finished(folder / "pretrain-sp-texts-0123456789ab", {"notebook": "pretrain", "metrics": {"validation": validation}}))


def finished(folder, seed, dev, ranks, model="pydocs_roberta"):
    """A run of finetune whose one right candidate of five has these ranks on test."""
    rows = [
        (question, f"{question}{'right' if n == rank else n - (n > rank)}", int(n == rank), -float(n))
        for question, rank in ranks.items()
        for n in range(1, 6)
    ]
    table = pd.DataFrame(rows, columns=["question_id", "candidate_id", "label", "score"]).astype({"label": np.int8, "score": np.float32})
    test = sum(1 / rank for rank in ranks.values()) / len(ranks)
    settings, metrics = {"dataset": "own:mine", "model": model}, {"dev": {"map": dev}, "test": {"map": test}}
    record = {"notebook": "finetune", "seed": seed, "settings": settings, "metrics": metrics}
    record |= {"baselines": {"bm25": {"p@1": 0.5, "map": 0.625, "mrr": 0.7}}}
    folder = folder / f"finetune-mine-{len(list(folder.iterdir())):012x}"
    run = made_up.finished(folder, record, scores=table, scores_dev=table[table.question_id != "c"])
    disk.write_json(run / "record.json", disk.read_json(run / "record.json") | {"weights_sha256": {"w": f"{dev}"}})
    return str(run)


@pytest.fixture
def systems(tmp_path):
    """Two seeds each. The pre-trained one is better on test, the plain one on dev."""
    folder, model = tmp_path / "runs", "runs/pretrain-sp-texts-0123456789ab"
    folder.mkdir()
    plain = [finished(folder, 0, 0.6, {"a": 2, "b": 1, "c": 4}), finished(folder, 1, 0.8, {"a": 4, "b": 1, "c": 4})]
    trained = [finished(folder, n, dev, {"a": 1, "b": 1, "c": rank}, model) for n, dev, rank in ((0, 0.65, 2), (1, 0.7, 4))]
    return {"plain": plain, "pre-trained": trained}


def test_questions_are_averaged_over_seeds(systems):
    assert own.averaged(systems["plain"])["average_precision"].to_dict() == pytest.approx({"a": (1 / 2 + 1 / 4) / 2, "b": 1, "c": 1 / 4})
    assert own.averaged(systems["pre-trained"])["p_at_1"].to_dict() == {"a": 1, "b": 1, "c": 0}


def test_the_choice_is_made_on_dev_and_never_on_test(systems):
    assert own.choose(systems) == ("plain", systems["plain"][1])
    sentences = own.report(systems)[:3]
    points = 100 * ((1 - 3 / 8) + 0 + (3 / 8 - 1 / 4)) / 3
    assert f"MAP {points:+.1f} points" in sentences[0] and "3 test questions, means of 2 seeds" in sentences[0]
    assert "the plain model, by MAP on 2 dev questions (plain 70.0 and pre-trained 67.5)" in sentences[1]
    assert (
        sentences[2]
        == "Not worth using yet: on the same test questions BM25, which needs no training, has MAP 62.5, the exported system 54.2."
    )
    assert own.caution(0.625, {"random": {"map": 0.3}, "bm25": {"map": 0.625}}) == []  # not ahead
    same = {"plain": systems["plain"], "pre-trained": systems["plain"]}
    assert own.choose(same)[0] == "plain"  # of equals the simpler one
    for exchanged, option in (({"plain": systems["pre-trained"]}, "plain"), (same, "pretrained")):
        with pytest.raises(
            ValueError, match=rf"--{option}: expected (one that did not|a run that started from a pre-training), .* started from"
        ):
            own.report(systems | exchanged)


def test_the_report_begins_with_runs_on_other_files_of_one_name(systems):
    for number, name in enumerate(name for names in systems.values() for name in names):
        path = Path(name) / "record.json"
        record = disk.read_json(path)
        record["settings"]["dataset"] = "own:data"
        disk.write_json(path, record | {"inputs": {"dataset": f"{min(number, 1)}" * 64}})
    first, second, *_ = own.report(systems)
    assert first.endswith(" were measured on different files (own:data 00000000, own:data 11111111, own:data 11111111, own:data 11111111)")
    assert second.startswith("Pre-training on the corpus")


@pytest.mark.parametrize(
    ("better", "message"), [("pre-trained", "helped: MAP +50.0"), ("plain", "did harm: MAP -50.0"), (None, "made no difference")]
)
def test_the_verdict_follows_the_interval(tmp_path, better, message):
    (tmp_path / "runs").mkdir()
    ranks = {system: {f"q{n}": 1 if system == better else 2 for n in range(30)} for system in ("plain", "pre-trained")}
    values = {system: own.averaged([finished(tmp_path / "runs", 0, 0.5, own_ranks)]) for system, own_ranks in ranks.items()}
    assert own.verdict(values, 1).startswith(f"Pre-training on the corpus {message}") and own.verdict(values, 1).endswith(
        "means of 1 seed."
    )


@pytest.mark.parametrize(("questions", "effect"), [(5, "made no difference that these questions can tell from chance"), (6, "helped")])
def test_five_questions_show_nothing(tmp_path, questions, effect):
    """All of them better: the bootstrap's interval has no width, and of 2^5 swaps two are as extreme."""
    (tmp_path / "runs").mkdir()
    ranks = {"plain": 2, "pre-trained": 1}
    own_ranks = {system: {f"q{n}": rank for n in range(questions)} for system, rank in ranks.items()}
    values = {system: own.averaged([finished(tmp_path / "runs", 0, 0.5, of)]) for system, of in own_ranks.items()}
    sentence = own.verdict(values, 1)
    assert sentence.startswith(
        f"Pre-training on the corpus {effect}: MAP +50.0 points (95 % interval +50.0 to +50.0, p by randomisation = "
    )
    assert f"= {2 / 2**questions:.4f})" in sentence
    assert ("Fewer than 6 test questions" in sentence) == (questions < 6)


def test_the_reader_learns_whether_the_own_task_was_learnt(systems, tmp_path):
    assert own.own_task(systems["pre-trained"][0]) == []  # it starts from no run
    model = pretraining(tmp_path / "runs", auc=0.527, auc_tfidf=0.738)
    run = finished(tmp_path / "runs", 0, 0.5, {"a": 1, "b": 1, "c": 2}, model)
    (sentence,) = own.own_task(run)
    assert "AUC 0.53, where 0.50 is chance, and counting shared words reaches 0.74" in sentence
    assert sentence in own.report({"plain": systems["plain"][:1], "pre-trained": [run]})
    shutil.rmtree(rundir.find(model))
    assert own.own_task(run) == []  # the run was moved here alone


def test_what_pre_training_did_is_not_told_of_runs_that_differ_in_more(systems):
    with pytest.raises(ValueError, match=r"the same seeds of both expected, got \[0, 1\] plain and \[0\] pre-trained"):
        own.report(systems | {"pre-trained": systems["pre-trained"][:1]})
    path = Path(systems["pre-trained"][0]) / "record.json"
    record = disk.read_json(path)
    disk.write_json(path, record | {"settings": record["settings"] | {"train_limit": 8}})
    with pytest.raises(ValueError, match="differ in their start and their seed alone expected, got train_limit None, 8"):
        own.report(systems)


def test_the_command_writes_the_comparison_next_to_the_export(systems, tmp_path, monkeypatch, capsys):
    def stub(run, to, replace):
        assert replace
        to.parent.mkdir(exist_ok=True)
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        weights = disk.read_json(Path(run) / "record.json")["weights_sha256"]
        (to / "README.md").write_text(f"{own.CARD}\n| weights | `{weights}` |\n")
        return to

    monkeypatch.setattr(export, "export", stub)
    to = tmp_path / "mine" / "ranker"
    words = ["own", "--plain", ",".join(systems["plain"]), "--pretrained", ",".join(systems["pre-trained"]), "--to", str(to)]
    asutil.main(words)
    shown = capsys.readouterr().out
    assert "0.8" in (to / "README.md").read_text() and f"load_ranker('{to}')" in shown
    page = (tmp_path / "mine" / "comparison.md").read_text()
    assert "| bm25" in page and "62.5" in page and "(exported)" in page and page.startswith("# With and without")
    assert (tmp_path / "mine" / "comparison.html").read_text().count("<table") == 3

    asutil.main([*words[:-1], str(to.with_name("second"))])
    assert (tmp_path / "mine" / "second-comparison.md").read_text() == page == (tmp_path / "mine" / "comparison.md").read_text()

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = to.with_name(f".ranker.{disk._machine()}.{ended.pid}.0123abcd.part")  # by one that was killed after its last step
    left.mkdir()
    monkeypatch.setattr(export, "export", lambda *given: pytest.fail("the same weights are there already"))
    asutil.main(words)
    assert not left.exists()
    monkeypatch.setattr(export, "export", stub)
    (to / "old").touch()
    (to / "README.md").write_text(f"{own.CARD}: of another run")
    asutil.main(words)
    assert not (to / "old").exists() and "0.8" in (to / "README.md").read_text()
    (to / "README.md").write_text("Something of the user's own")
    assert "it exists and is no ranker that this command wrote" in made_up.refused(capsys, *words)
    assert (to / "README.md").read_text() == "Something of the user's own"


def test_a_card_of_ours_is_known_as_ours():
    record = {"notebook": "finetune", "name": "finetune-mine-0123456789ab", "budget": "laptop", "seed": 0, "weights_sha256": {"m": "12"}}
    record["settings"] = {"dataset": "own:mine.tsv", "model": "tiny", "max_tokens": 48}
    scores = pd.DataFrame({"question_id": ["q"] * 2, "candidate_id": list("12"), "label": [1, 0], "score": [1.0, 0.0]})
    card = str(export.card(record, scores, "ranker", "tiny"))
    assert own.CARD in card and "| data set | `own:mine.tsv` |\n" in card and f"`{record['weights_sha256']}`" in card
