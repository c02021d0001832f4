"""Every private name of another package is used for real here, so that a new version says which of them is gone."""

import ast
import re
from pathlib import Path

import pytest
import torch
from transformers import RobertaConfig, RobertaModel

from asutil.io import private

ROOT = Path(__file__).resolve().parents[2]
OWN = ("asutil", "aslab", "tests", "pages")
FILES = [path for folder in ("asutil", "aslab", "benchmarks", "book/_ext") for path in sorted((ROOT / folder).rglob("*.py"))]


def private_names(source: str) -> list[str]:
    """The private names that a module takes from modules of other packages, or from their configs and Snakemake's workflow."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    from_others = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level and not node.module.startswith(OWN)
    ]
    taken = [alias.name for node in from_others for alias in node.names if re.match(r"_[^_]", alias.name)]
    modules = {(alias.asname or alias.name).partition(".")[0] for node in (*imports, *from_others) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if node.attr == "_attn_implementation" or (isinstance(root, ast.Name) and root.id in modules):
                taken.append(node.attr)
    return taken


@pytest.mark.slow
def test_no_other_module_uses_a_private_name_of_another_package():
    made_up = "import torch\nfrom a.b import _c\nfrom asutil.x import _y\nconfig._attn_implementation\ntorch._dynamo\nself._own\n"
    assert private_names(made_up) == ["_c", "_attn_implementation", "_dynamo"]
    used = {str(path.relative_to(ROOT)): names for path in FILES if (names := private_names(path.read_text("utf-8")))}
    assert set(used) == {"asutil/io/private.py"}, used
    assert not re.search(r"\bworkflow\._", (ROOT / "experiments" / "Snakefile").read_text("utf-8"))


def test_attention_of_a_config_is_what_the_model_runs_with():
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = RobertaModel(RobertaConfig(**sizes)).eval()
    ids = torch.tensor([[3, 4, 5]])
    assert private.attention(model.config) == "sdpa" and private.attention(object()) is None
    assert model(ids, output_attentions=False).last_hidden_state.shape == (1, 3, 8)
    private.set_attention(model.config, "no such function")
    with pytest.raises((KeyError, ValueError, AttributeError)):
        model(ids)
    private.set_attention(model.config, "eager")
    model.set_attn_implementation("eager")
    assert private.attention(model.config) == "eager"


def test_flash_attention_has_the_arguments_that_are_given():
    schema = str(torch.ops.aten._flash_attention_forward.default._schema)
    order = [
        re.search(rf"\b{name}\b", schema).start()
        for name in ("query", "key", "value", "cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p")
    ]
    assert order == sorted(order) and {"scale", "window_size_left", "window_size_right"} <= set(re.findall(r"\w+", schema))


def test_a_function_that_cannot_be_compiled_raises_the_error():
    def breaks(values):
        torch._dynamo.graph_break()
        return values

    with pytest.raises(private.compile_errors()):
        torch.compile(breaks, fullgraph=True, backend="eager")(torch.ones(2))


@pytest.mark.parametrize(
    ("text", "value"), [("True", True), ("False", False), ("None", None), ("7", 7), ("2e-5", 2e-5), ("psd", "psd"), ("", "")]
)
def test_words_of_the_command_line_are_what_papermill_makes_of_them(text, value):
    came = private.value_of_word(text)
    assert came == value and type(came) is type(value)
