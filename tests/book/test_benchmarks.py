"""What the benchmarks share: turns, ratios, and figures that are kept with their machine; and the latency script, once on made-up text."""

import ast
import doctest
import getpass
import itertools
import json
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pages
import pytest
import torch

from aslab import rundir
from asutil.data.questions import Candidate, Question

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if "--quick" in path.read_text("utf-8") and path.stem != "side_by_side"]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture
def shared():
    import side_by_side

    return side_by_side


@pytest.fixture
def keeping():
    import record

    return record


def test_sides_take_turns_and_each_round_is_timed_alone(shared, monkeypatch):
    clock, called = itertools.count(), []
    costs = {"ours": 1, "peer": 10}

    def side(name):
        called.append(name)
        for _ in range(costs[name]):
            next(clock)

    monkeypatch.setattr(shared.time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(shared.time, "process_time", lambda: 0.0)
    wall, processor = shared.seconds({name: lambda name=name: side(name) for name in costs}, rounds=3)
    assert called == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert wall == {"ours": [2.0] * 3, "peer": [11.0] * 3}
    assert processor == {"ours": [0.0] * 3, "peer": [0.0] * 3}


def test_a_side_may_have_any_name(shared, capsys):
    names = ["ours", 2, (3, "pair", None)]
    wall, _ = shared.seconds(dict.fromkeys(names, lambda: None), rounds=2)
    assert list(wall) == names and all(len(taken) == 2 for taken in wall.values())
    assert re.sub(r" [\d.]+ s\b", "", capsys.readouterr().out).splitlines() == [
        "round 1 of 2: ours 2 3 pair None",
        "round 2 of 2: 3 pair None 2 ours",
    ]


def test_ratios_are_of_speeds_in_the_same_round(shared):
    assert doctest.testmod(shared).failed == 0
    # twice the work in half the time, then in the same time
    assert shared.ratios([1.0, 2.0], [2.0, 2.0], ours_work=2, their_work=1) == {"median": 3.0, "least": 2.0, "most": 4.0}


def test_the_lowest_median_is_the_headline_and_the_last_line_is_json(shared, keeping, capsys):
    compared = {"a": {"median": 3.0, "least": 2.5, "most": 9.0}, "b": {"median": 2.0, "least": 1.9, "most": 2.2}}
    result = shared.headline("speed", 1.5, compared, quick=True, nested={"a": compared["a"]}, words="on pydocs")
    shared.show(result)
    printed = capsys.readouterr().out
    assert json.loads(printed.splitlines()[-1]) == result
    assert result["ratio"] == 2.0 and result["spread"] == compared["b"] and result["goal"] == 1.5
    assert keeping.last_line(printed) == result


@pytest.mark.parametrize("output", ["", "no json", '{"name": "x"}', "[1, 2]"])
def test_output_without_a_result_is_refused(keeping, output):
    with pytest.raises(ValueError, match="expected a last line of JSON with name, ratio and goal"):
        keeping.last_line(output)


def test_figures_are_kept_with_their_machine_and_without_its_name(keeping, tmp_path):
    result = {"name": "speed", "ratio": 2.0, "goal": 1.5}
    kept = json.loads(keeping.record(result, tmp_path, None).read_text("utf-8"))
    assert kept | result == kept
    assert kept["machine"]["cores"] >= 1 and kept["machine"]["processor"] and kept["machine"]["versions"]["torch"]
    text = json.dumps(kept["machine"])
    assert str(Path.home()) not in text and (platform.node() or "a host") not in text
    assert f'"{getpass.getuser()}"' not in text
    assert keeping.record(result, tmp_path, "a GPU").name == "speed-gpu.json"
    assert json.loads((tmp_path / "speed-gpu.json").read_text("utf-8"))["machine"]["gpu"] == "a GPU"


def test_a_script_that_fails_leaves_no_figures(keeping, tmp_path, monkeypatch, capfd):
    (tmp_path / "broken.py").write_text('print("{}")\nraise SystemExit(3)\n')
    (tmp_path / "fine.py").write_text('print("first")\nprint("last")\n')
    monkeypatch.setattr(keeping, "HERE", tmp_path)
    with pytest.raises(RuntimeError, match=r"broken\.py ended with status 3"):
        keeping.run("broken")
    assert keeping.run("fine") == "first\nlast\n"
    (tmp_path / "slow.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    with pytest.raises(SystemExit, match=r"slow\.py was stopped: the time is over"):
        keeping.run("slow", seconds=0.5)
    (tmp_path / "told.py").write_text("import sys\nprint(sys.argv[1:])\n")
    assert keeping.run("told", "'a folder' --dataset wikiqa") == "['a folder', '--dataset', 'wikiqa']\n"


def test_what_fails_keeps_no_other_from_being_measured(keeping, tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "silent.py").write_text("")
    (tmp_path / "fine.py").write_text("""print('{"name": "fine", "ratio": 2.0, "goal": 1}')\n""")
    monkeypatch.setattr(keeping, "HERE", tmp_path)
    monkeypatch.setattr(rundir, "root", lambda: tmp_path)
    monkeypatch.setattr(sys, "argv", ["record.py", "broken", "silent", "fine"])
    with pytest.raises(SystemExit, match=r"broken\.py ended with status 3; silent: expected .*: the figures of the others are kept"):
        keeping.main()
    assert [path.name for path in (tmp_path / "results" / "benchmarks").iterdir()] == ["fine.json"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_says_what_it_measures_and_how_to_run_it(path):
    doc = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert f"python benchmarks/{path.name}" in doc
    assert len(doc.splitlines()[0]) > 40


# ------------------------------------------------------------------ on the book's page


def committed(**changes):
    result = {
        "name": "speed",
        "ratio": 2.5,
        "goal": 2,
        "spread": {"median": 2.5, "least": 2.25, "most": 12345.6},
        "by_part": {"a <b>": {"median": 1.0, "least": 0.5, "most": 2.0, "goal": 3}},
        "quick": False,
        "machine": {"processor": "CPU <7>", "cores": 2, "system": "Linux", "gpu": None, "python": "3.12", "versions": {"torch": "2.13"}},
    }
    return result | changes


def test_the_page_shows_ratio_goal_spread_and_machine():
    import as2_benchmarks

    known = committed()
    html = as2_benchmarks.overview(["speed", "search-gpu"], {"speed": known}) + as2_benchmarks.details(known)
    assert ">2.5<" in html and ">2.25 to 12,346<" in html and ">2<" in html
    assert "Exact search among a million vectors, GPU</th><td>sentence-transformers<" in html
    assert ">reached<" in html and html.count(">not run<") == 1
    assert "2 cores of CPU &lt;7&gt;, Linux, Python 3.12" in html
    assert "by part: a &lt;b&gt;</th><td>1 (0.5 to 2)<" in html
    assert "by part: a &lt;b&gt;: goal</th><td>3<" in html
    assert "quick</th><td>no<" in html and "torch 2.13" in html
    assert "<b>" not in html
    below = as2_benchmarks.overview(["speed"], {"speed": committed(ratio=1.9)})
    assert ">not reached<" in below and ">reached<" not in below
    assert "a GPU, Linux" in as2_benchmarks.details(committed(machine=known["machine"] | {"gpu": "a GPU"}))


def test_committed_figures_are_of_whole_runs():
    paths = sorted((FOLDER.parent / "results" / "benchmarks").glob("*.json"))
    assert len(paths) >= 10
    for path in paths:
        result = json.loads(path.read_text("utf-8"))
        assert path.stem == result["name"] + "-gpu" * bool(result["machine"]["gpu"])
        assert not result.get("quick")


# ------------------------------------------------------------------ backends


@pytest.fixture
def other():
    import backends

    return backends


def test_a_backend_is_compared_on_the_same_questions(other):
    candidates = lambda n, labels: tuple(Candidate(f"q{n}-{k}", "text", label, None, None) for k, label in enumerate(labels))
    questions = [Question("q0", "?", candidates(0, (1, 0))), Question("q1", "?", candidates(1, (0, 1, 0)))]
    right = np.array([2.0, 1.0, 0.5, 3.0, 0.0])
    wrong = np.array([2.0, 1.0, 3.0, 0.5, 0.0])  # second of three in q1
    found = other.precision(questions, {"torch": right, "onnx": right + 1e-6, "onnx_int8": wrong})
    assert found["torch"] == {"map": 1.0}
    assert found["onnx"] == {"map": 1.0, "map_difference": 0.0, "interval": "0.0000 to 0.0000", "largest_score_difference": 1e-6}
    assert found["onnx_int8"] == {"map": 0.75, "map_difference": -0.25, "interval": "-0.5000 to 0.0000", "largest_score_difference": 2.5}


def test_the_name_of_a_model_is_no_markup_in_the_table_of_backends():
    import as2_benchmarks

    rate = lambda median: {"median": median, "least": 0, "most": 0}
    side = lambda pairs, reached, size, **more: {"pairs_a_second": rate(pairs), "map": reached, "megabytes": size, **more}
    exact = {"times_torch": rate(1.99), "map_difference": 0.0, "interval": "0.0000 to 0.0000"}
    rounded = {"times_torch": rate(13.0), "map_difference": -0.036, "interval": "-0.0632 to -0.0087"}
    sides = {"torch": side(100.4, 0.75, 121.2), "onnx": side(200.0, 0.75, 121.3, **exact)}
    sides["onnx_int8"] = side(1300.0, 0.714, 30.7, **rounded)
    about = {"name": "backends", "model": "a<b", "questions": 237, "dataset": "wikiqa", "pairs": 2341, "rounds": 5, "threads": 2}
    about["machine"] = {"gpu": None, "cores": 2, "processor": "P", "system": "S", "python": "3", "versions": {}}
    html = as2_benchmarks.backends(about | sides)
    assert "a&lt;b on the 237 test questions of wikiqa, 2,341 pairs; medians of 5 rounds, 2 threads" in html


def test_an_absent_onnx_package_is_named(other, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SystemExit, match=r"optimum-onnx and onnxruntime are expected.*onnxruntime.*environment of its own"):
        other.require_onnx()


def test_an_exported_folder_is_taken_as_it_is(other, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert other.exported(str(tmp_path), tmp_path / "unused") == tmp_path
    with pytest.raises((ValueError, OSError), match="nobody"):
        other.exported(str(tmp_path / "nobody"), tmp_path / "unused")


# ------------------------------------------------------------------ latency


@pytest.fixture
def slow():
    import latency

    return latency


@pytest.fixture(scope="module")
def asked_folder(tmp_path_factory):
    """A data set of made-up questions of nine candidates; every third candidate and question 5 are too long for their slots."""
    folder, draw = tmp_path_factory.mktemp("asked"), np.random.default_rng(0)
    for side in ("train", "dev", "test"):
        rows = []
        for question in range(10):
            asked = f"Which {side} river is number {question}?" + " Which?" * 80 * (question == 5)
            for number in range(4 if question == 3 else 9):
                words = draw.choice("river paper theory copper matrix orbit".split(), 80 if number % 3 == 2 else draw.integers(3, 40))
                rows.append({"question": asked, "answer": f"{' '.join(words)} {number}", "label": int(number == 0)})
        (folder / f"{side}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def rankers(slow, asked_folder):
    """Six questions with 5 candidates each, a ranker of pairs and one of 5 candidates together."""
    chosen, tokenizer = slow.asked(str(asked_folder), "tiny", 6, 5)
    return chosen, slow.ranker_of("tiny", tokenizer), slow.ranker_of("tiny", tokenizer, 5)


def test_the_formula_of_the_paper_by_hand(slow):
    assert doctest.testmod(slow).failed == 0
    assert slow.formula(1) == {"attention": 1.0, "linear": 1.0}  # one candidate: the same input both ways
    lengths = 7 * [2 * 64], [8 * 64]
    squares, sums = ([sum(n**power for n in side) for side in lengths] for power in (2, 1))
    assert slow.formula(7) == {"attention": round(squares[1] / squares[0], 3), "linear": round(sums[1] / sums[0], 3)}


def test_only_candidates_that_no_way_cuts_are_ranked(slow, asked_folder, rankers):
    chosen, pairs, together = rankers
    assert [len(question.candidates) for question in chosen] == [5] * 6
    numbers = [int(re.search(r"\d", question.text)[0]) for question in chosen]
    assert numbers == [0, 1, 2, 4, 6, 7]  # 3 has four candidates, 5 is too long
    texts = [[question.text, *(one.text for one in question.candidates)] for question in chosen]
    lengths = [[len(pairs.model.tokenizer(text)["input_ids"]) for text in one] for one in texts]
    assert max(map(max, lengths)) <= 64
    read = {way: slow.checked(ranker, chosen, way)["tokens_a_question"] for way, ranker in (("pair", pairs), ("joint", together))}
    assert read["joint"] == pytest.approx(sum(map(sum, lengths)) / 6, abs=0.1)
    assert read["pair"] == pytest.approx(sum(sum(5 * [one[0]] + one[1:]) for one in lengths) / 6, abs=0.1)
    with pytest.raises(ValueError, match=r"expected test questions with 7 candidates of at most 62 tokens, got none"):
        slow.asked(str(asked_folder), "tiny", 6, 7)
    with pytest.raises(ValueError, match=r"expected test questions with 10 candidates"):
        slow.asked(str(asked_folder), "tiny", 6, 10)


def test_the_padded_form_is_that_of_the_formula_and_gives_the_same_scores(slow, rankers, monkeypatch):
    chosen, pairs, together = rankers
    seen = []
    for ranker, way in ((pairs, "pair"), (together, "joint")):
        hook = ranker.model.register_forward_pre_hook(lambda _, batch: seen.append(batch[0]))
        found = slow.checked(ranker, chosen, way)
        hook.remove()
        assert found["largest_difference"] <= 1e-5 and found["spread_of_scores"] > 100 * found["largest_difference"]
    compact, wide = ([batch for batch in seen if (batch["input_ids"].shape[1] in (128, 384)) is whole] for whole in (False, True))
    assert sum(batch["input_ids"].shape[0] for batch in wide) == 6 * 5 + 6  # every pair, every group
    assert all(batch["input_ids"].numel() <= 1024 for batch in wide) and compact
    joint = next(batch for batch in wide if "firsts" in batch)
    assert joint["position_ids"][0].tolist() == list(range(384))
    assert joint["firsts"].flatten().tolist() == list(range(0, joint["input_ids"].numel(), 64))
    assert bool((joint["token_type_ids"] == torch.arange(384) // 64).all())

    padded = slow.padded
    unmasked = lambda *given: [batch | {"attention_mask": torch.ones_like(batch["input_ids"])} for batch in padded(*given)]
    monkeypatch.setattr(slow, "padded", unmasked)
    for ranker, way in ((pairs, "pair"), (together, "joint")):
        with pytest.raises(ValueError, match=f"{way}: equal scores expected with and without padding, got a difference of"):
            slow.checked(ranker, chosen, way)


def test_base_has_the_shape_of_roberta_base(slow, rankers, monkeypatch):
    _, pairs, _ = rankers
    built, tokenizer = [], pairs.model.tokenizer
    small = [slow.loading.tiny(tokenizer) for _ in range(2)]  # in its place: nothing of its size is needed
    monkeypatch.setattr(slow.loading, "from_config", lambda config, *_, **__: built.append(config) or small.pop())
    for k, length in ((None, 128), (7, 512)):
        ranker = slow.ranker_of("base", tokenizer, k)
        assert (ranker.joint_k, ranker.max_tokens, ranker.model.training) == (k, length, False)
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings")
    assert [getattr(built[0], name) for name in names] == [50265, 768, 12, 12, 3072, 514]


def test_time_inside_the_model_is_that_between_its_marks(slow, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(slow, "GPU", False)
    monkeypatch.setattr(slow.time, "perf_counter", lambda: float(next(clock) ** 2))
    model = torch.nn.Linear(2, 2)
    passes = slow.Passes(model)
    model(torch.zeros(1, 2)), model(torch.zeros(1, 2))
    assert passes.seconds() == (1 - 0) + (9 - 4) and passes.seconds() == 0


@pytest.mark.slow
def test_the_script_measures_all_ways_and_the_page_draws_them(slow, keeping, asked_folder, monkeypatch, capsys, tmp_path):
    import as2_benchmarks

    monkeypatch.setattr(slow, "GPU", False)
    arguments = ["--rounds", "1", "--questions", "5", "--dataset", str(asked_folder), "--model", "tiny", "--k", "5", "1"]
    monkeypatch.setattr(sys, "argv", ["latency.py", *arguments])
    slow.main()
    printed = capsys.readouterr().out
    result = keeping.last_line(printed)
    assert (result["name"], result["goal"], result["quick"], result["rounds"]) == ("latency", 1.0, False, 1)
    assert (result["questions"], result["questions_alone"], result["dataset"]) == (5, 1, str(asked_folder))
    assert list(result["by_k"]) == ["1", "5"] and "k = 5 as published: joint 81 s, pair 71 s, joint / pair 1.141" in printed
    for one in result["by_k"].values():
        times = one["milliseconds_a_question"]
        assert list(times) == ["pair", "joint", "pair_padded", "joint_padded"]
        assert all(0 < times[way]["passes"]["median"] <= times[way]["together"]["median"] for way in times)
        ratio = times["joint"]["alone"]["median"] / times["pair"]["alone"]["median"]
        assert one["joint_by_pair"]["alone"]["median"] == pytest.approx(ratio, rel=1e-2)
    assert result["ratio"] == pytest.approx(
        1 / max(one["joint_by_pair"]["together"]["median"] for one in result["by_k"].values()), rel=1e-2
    )

    folder = tmp_path / "results" / "benchmarks"
    folder.mkdir(parents=True)
    keeping.record(result | {"dataset": "a <b>"}, folder, None)
    keeping.record(result, folder, "a GPU")
    monkeypatch.setattr(pages.rundir, "root", lambda: tmp_path)
    show = pages.REGISTRY["latency"].function
    html = show()
    assert html.count("<figure") == 2 and html.count("81 / 71 = 1.14") == 2
    assert "a &lt;b&gt;" in html and "on a GPU, Linux" in html and "<b>" not in html
    figure = as2_benchmarks.latency_plot(result)
    assert {axis.get_xlabel() for axis in figure.axes} == {"candidates, k"}
    assert {axis.get_ylabel() for axis in figure.axes} == {"milliseconds a question"}
    drawn = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    known = [one["milliseconds_a_question"]["pair_padded"]["together"]["median"] for one in result["by_k"].values()]
    assert list(drawn["formula, attention: (k + 1)² / 4k"]) == pytest.approx([known[0], 1.8 * known[1]])
    assert list(drawn["formula, linear: (k + 1) / 2k"]) == pytest.approx([known[0], 0.6 * known[1]])
    monkeypatch.setattr(pages.rundir, "root", lambda: tmp_path / "none")
    assert show() == "" and pages.REGISTRY["latency"].empty == "Latency: not run. make bench measures it."


def test_the_parts_of_a_start_are_cells_of_the_notebook():
    """Each part begins with a cell of its own, in this order; their seconds by hand."""
    import start

    assert doctest.testmod(start).failed == 0
    cells = json.loads((FOLDER.parent / "notebooks" / "pretrain.ipynb").read_text("utf-8"))["cells"]
    stamp = lambda n: {"papermill": {"start_time": f"1970-01-01T00:01:{n:02}"}}
    timed = [cell | {"metadata": stamp(n)} for n, cell in enumerate(cells) if cell["cell_type"] == "code"]
    seconds = start.parts(timed, 60.0, 60.0 + len(cells))
    before = ["papermill and its kernel", "imports of the notebook", "corpus index and tokenizer"]
    assert list(seconds) == [*before, "sampler", "model", "first step", "whole"]
    assert min(seconds.values()) > 0 and sum(seconds.values()) == 2 * seconds["whole"] == 2 * len(cells)


def test_words_on_the_page_of_choices_follow_from_the_figures():
    """*A hundred candidates take less than a second*, *all of a million takes some ten milliseconds a question*, or 100 alone."""
    read = lambda name: json.loads((FOLDER.parent / "results" / "benchmarks" / f"{name}.json").read_text("utf-8"))
    page = (FOLDER.parent / "book" / "rank.md").read_text("utf-8")
    assert "a hundred candidates take less than a second" in page
    assert read("backends")["torch"]["pairs_a_second"]["least"] > 100
    search = read("search")
    (words,) = (" ".join(part.split()) for part in page.split("\n\n") if part.startswith("**A million candidates.**"))
    assert "some ten milliseconds a question where 64 are asked together, and less than a tenth of a second for a question" in words
    assert search["vectors"] == 1_000_000 and search["questions"] == 64
    together, alone = (search["milliseconds_a_question"][side]["most"] for side in ("ours", "ours_alone"))
    assert 9 < together < 11 and alone < 100


# ------------------------------------------------------------------ growth


def test_exponents_of_time_and_memory():
    import growth

    assert doctest.testmod(growth).failed == 0
    corpus = [{"megabytes": n, "build_seconds": 3.0 * n, "peak_memory_mib": 400 + 2 * n**2, "before_mib": 400} for n in (1, 10, 100)]
    lengths = [{"length": n, "tokens_a_second": 1000 / n, "peak_memory_mib": None, "before_mib": None} for n in (64, 128)]
    one = [{"candidates": 10, "milliseconds_a_question": 1.0, "peak_memory_mib": 1, "before_mib": 0}]
    vectors = [{"millions": n, "search_seconds": n, "peak_memory_mib": 20, "before_mib": None} for n in (1, 10)]
    fitted = growth.exponents({"corpus": corpus, "lengths": lengths, "vectors": vectors, "candidates": one, "processes": [{}]})
    assert fitted == {"corpus": {"time": 1.0, "memory": 2.0}, "lengths": {"time": 2.0}, "vectors": {"time": 1.0}}


def test_exponents_of_own_questions_are_those_of_the_points_on_record():
    import own_questions

    assert doctest.testmod(own_questions).failed == 0
    record = json.loads((own_questions.ROOT / "results/benchmarks/own_questions.json").read_text("utf-8"))
    points = [record[f"{count:,} questions"] | {"questions": count} for count in (50, *own_questions.SIZES[-2:])]
    assert record["exponents"] == own_questions.exponents(*points)


def test_a_corpus_comes_again_with_other_words(monkeypatch):
    import growth

    documents = [["One. Two."], "A text. Its end."]
    monkeypatch.setattr(growth.sources, "documents", lambda source: iter(documents))
    again = [["One. In reading 1 Two."], ["A text. In reading 1 Its end."]]
    assert list(growth.some("a source", 50)) == [["One. Two."], ["A text. Its end."], *again]
    assert list(growth.some("a source", 5)) == [["One. Two."]]


def test_the_largest_micro_batch_is_the_last_before_memory_ends(corpus):
    import training_step

    from asutil import sampling
    from asutil.models import loading

    model, sampler = loading.tiny(corpus.tokenizer), sampling.Sampler(corpus, "ssp", max_tokens=128)
    sizes, forward = [], model.forward

    def ends(micro):
        sizes.append(micro["input_ids"].numel())
        if len(sizes) == 3:
            raise torch.OutOfMemoryError("the third is too large")
        return forward(micro)

    model.forward = ends
    largest = training_step.largest_micro_batch(model, sampler, size=512, most=1 << 20)
    assert len(sizes) == 3 and largest == {"tokens": sizes[1], "pairs": 8, "peak_memory_gib": None}
    assert all(parameter.grad is None for parameter in model.parameters())


def test_which_objectives_the_page_says_are_fast_enough():
    measured = json.loads((FOLDER.parent / "results" / "benchmarks" / "sampling.json").read_text("utf-8"))["objectives"]
    assert [name for name, one in measured.items() if one["fast_enough"]] == []
    page = " ".join((FOLDER.parent / "book" / "throughput.md").read_text("utf-8").split())
    assert "On the machine of the record, a slow one, none does." in page


def test_what_the_page_says_of_scoring_on_a_gpu():
    found = json.loads((rundir.root() / "results/benchmarks/scoring-gpu.json").read_text())
    assert found["largest_difference"] <= 0.2 * found["spread_of_scores"], "up to a fifth of their spread"
    assert found["against_bfloat16"]["median"] >= found["goal"]
