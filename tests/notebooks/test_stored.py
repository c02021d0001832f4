"""Notebooks as they are stored: their parameters, what their cells give to what they call, and their outputs, which are none."""

import ast
import inspect
import json
import re
from pathlib import Path

import pytest

from aslab import identity, parameters, runs

ROOT = Path(__file__).parents[2]
WITHOUT_RUN = ("tour", "report")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SET_BY_BUDGETS = ("model", "corpus", "dataset", "steps", "epochs", "batch_size", "peak_lr", "max_tokens", "micro_tokens")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_run = pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem not in WITHOUT_RUN], ids=lambda path: path.stem)


def code_of(path: Path) -> list[str]:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@each_notebook
def test_stored_without_outputs_in_short_cells(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    (parameters_cell,) = tagged
    first_met, *_ = "".join(parameters_cell["source"]).split("# For experts")
    assert len(first_met.splitlines()) <= 15
    assert all(len("".join(cell["source"]).splitlines()) <= 15 for cell in code if cell not in tagged)
    assert notebook["cells"][0]["cell_type"] == "markdown"
    assert not any(word in "".join(cell["source"]) for cell in code for word in ("class ", "\nfor ", "while ")) or path.stem in (
        "tour",
        "finetune",
    )


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS if path.stem not in ("tour", "report", "rank")])
def test_every_parameter_is_explained_used_and_set_by_its_budget(name):
    _, *cells = code_of(ROOT / "notebooks" / f"{name}.ipynb")  # the first one has the parameters
    code = "\n".join(cells)
    taken = parameters.parameters(name)
    assert {"seed", "budget", "runs_dir"} <= set(taken)
    for parameter in taken.values():
        assert len(parameter.help) >= 8 and parameter.type in parameters.TYPES
        assert parameter.name in ("budget", "runs_dir") or f"s.{parameter.name}" in code, parameter.name
    for budget in () if name == "rerank" else taken["budget"].choices:  # it says what it ranks by its runs
        settings = parameters.settings(name, {"budget": budget})
        parameters.check(name, settings)
        assert name == "task_difficulty" or not [each for each in SET_BY_BUDGETS if settings.get(each, "") is None]


@each_notebook
def test_names_of_runs_have_a_word_order_for_every_parameter(path):
    own = {name.removeprefix(f"{path.stem}.") for name in identity.WORDS}
    assert {*parameters.parameters(path.stem)} - own <= {"runs_dir"} or path.stem in WITHOUT_RUN


# What takes an option by another name than its own.
OTHER_NAMES = {
    *("name=dataset", "name=model", "name=joint_run", "names=models", "names=objectives", "path=exclude_titles", "source=corpus"),
    *("limit=claim_limit", "limit=question_limit", "fewest=least_of_type", "size=validation_examples", "longest=max_tokens"),
    *("form=head_form", "by=rank_by", "share=mlm_share", "steps=warmup_steps", "share=warmup_share"),
    *("wrong_types=wrong_type_negatives", "checkpointing=gradient_checkpointing"),
}


@each_run
def test_an_option_is_given_to_the_argument_of_its_name(path):
    """By the signatures of what the notebook calls, whether arguments have names there or not."""
    tree, names, given = ast.parse("\n".join(code_of(path))), {}, []
    exec("\n".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)), names)
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        try:
            signature = inspect.signature(eval(ast.unparse(call.func), dict(names)))
        except (NameError, AttributeError, ValueError):  # a method of what the notebook made
            continue
        plain = [value for value in call.args if not isinstance(value, ast.Starred)]
        arguments = signature.bind_partial(*plain, **{one.arg: one.value for one in call.keywords if one.arg}).arguments
        options = {name: re.fullmatch(r"s\.(\w+)", ast.unparse(value)) for name, value in arguments.items() if isinstance(value, ast.AST)}
        given += [(name, option[1]) for name, option in options.items() if option]
    assert len(given) >= 5
    assert not [one for one in given if one[0] != one[1] and "=".join(one) not in OTHER_NAMES]


@each_run
def test_before_a_run_starts_its_notebook_has_no_plain_variable_of_its_own(path, monkeypatch):
    """Its cells up to `runs.start` run as they are: `start` refuses a variable that is no parameter, and the kernel's own are none."""
    variables = {"__name__": "__main__", "_": "", "In": [""], "Out": {}}
    monkeypatch.setattr(runs, "start", lambda name, given: (parameters.require_no_other(name, given, again=False), 1 / 0))
    code = code_of(path)
    started = next(number for number, source in enumerate(code) if "runs.start(" in source)
    with pytest.raises(ZeroDivisionError):
        exec("\n".join(code[: started + 1]), variables)
    assert "s" not in variables and set(parameters.parameters(path.stem)) <= set(variables)


def test_names_of_runs_do_not_follow_the_order_in_the_notebook():
    given = {"keep_head": False, "batch_size": 16, "seed": 1, "model": "tiny", "head_form": "released", "architecture": "joint"}
    name = identity.of_run("finetune", given)["name"]
    assert name[:-13] == "finetune-pydocs-tiny-joint-released-keep-headFalse-batch-size16-seed1"


def test_the_budgets_are_of_notebooks():
    assert set(parameters._budgets()) <= {path.stem for path in NOTEBOOKS}


@each_notebook
def test_no_text_of_a_notebook_has_a_backslash_and_an_n_for_a_line_break(path):
    """What is printed with them shows both characters."""
    texts = [node.value for code in code_of(path) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert not [text for text in texts if isinstance(text, str) and re.search(r"\\[nt]", text)]
