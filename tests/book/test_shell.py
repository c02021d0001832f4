"""Commands on pages fit their column, and a shell reads them as before."""

import re
import shlex
from pathlib import Path

import pytest
from docutils import nodes

ROOT = Path(__file__).parents[2]

LONG = "papermill notebooks/finetune.ipynb -p budget laptop -p model roberta-base -p text 'two words - here' -p seed 0 --last"


@pytest.mark.parametrize("command", [LONG, f"$ {LONG}", f"A=1 {LONG} -- target_one target_two", "x " + "y" * 90 + " -p a"])
def test_a_long_command_is_broken_before_an_option(command, directives):
    lines = directives("as2_shell").fitted(command).split("\n")
    assert len(lines) > 1 and all(line.endswith(" \\") for line in lines[:-1])
    assert all(len(line) <= 77 for line in lines) or "yyy" in command
    assert all(line.lstrip().startswith("-") or "yyy" in line for line in lines[1:])
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)


def test_a_value_too_long_for_the_line_of_its_option_gets_its_own(directives):
    command = f"papermill notebooks/rerank.ipynb -p first_run runs/short -p joint_run runs/{'y' * 62} -p seed 0"
    lines = directives("as2_shell").fitted(command).split("\n")
    assert lines[1:] == ["    -p joint_run \\", f"    runs/{'y' * 62} \\", "    -p seed 0"] and max(map(len, lines)) <= 77
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)


def test_short_commands_comments_and_other_languages_stay(directives):
    shell = directives("as2_shell")
    page = nodes.section()
    kept = ["papermill a -p b c", f"# {LONG}", f"{LONG}  # why"]
    page += [nodes.literal_block(text, text, language="bash") for text in kept]
    page += nodes.literal_block(LONG, LONG, language="python")
    page += nodes.literal_block(LONG, LONG, language="console")
    shell.fit_commands(None, page)
    shown = [block.astext() for block in page.findall(nodes.literal_block)]
    assert shown[:-1] == [*kept, LONG] and shown[-1] == shell.fitted(LONG) != LONG
    assert page.children[-1].rawsource == shown[-1]


def snakemake_lines():
    """The arguments of every snakemake line of the pages, without its profile, whose executor need not be installed."""
    for path in (ROOT / "README.md", *sorted(ROOT.glob("book/*.md")), *sorted(ROOT.glob("experiments/profiles/*/config.yaml"))):
        for line in re.findall(r"^(?:[$#]\s+)?snakemake (.+)$", path.read_text("utf-8").replace("\\\n", ""), re.MULTILINE):
            arguments = shlex.split(re.sub(r"--profile \S+", "", line), comments=True)
            yield pytest.param(arguments, id=f"{path.parent.name}/{path.name}: {line[-50:]}")


@pytest.mark.parametrize("arguments", snakemake_lines())
def test_snakemake_reads_its_lines_as_they_are_meant(arguments):
    """Options that take several values would take a target that follows them, too."""
    cli = pytest.importorskip("snakemake.cli", reason="snakemake is not installed (extra: matrix)")
    (target,) = [word for word in arguments if re.fullmatch(r"own|demo|laptop|rankers_\w+|\w+_(laptop|small|gpu|paper)", word)]
    assert cli.get_argument_parser().parse_args(arguments).targets == [target]
