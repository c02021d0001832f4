"""Commands on pages are read as they are meant."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def snakemake_lines():
    """The arguments of every snakemake line of the pages, without its profile, whose executor need not be installed."""
    for path in (ROOT / "README.md", *sorted(ROOT.glob("book/*.md")), *sorted(ROOT.glob("experiments/profiles/*/config.yaml"))):
        for line in re.findall(r"^(?:[$#]\s+)?snakemake (.+)$", path.read_text("utf-8").replace("\\\n", ""), re.MULTILINE):
            arguments = shlex.split(re.sub(r"--profile \S+", "", line), comments=True)
            yield pytest.param(arguments, id=f"{path.parent.name}/{path.name}: {line[-50:]}")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", snakemake_lines())
def test_snakemake_reads_its_lines_as_they_are_meant(arguments):
    """Options that take several values would take a target that follows them, too."""
    cli = pytest.importorskip("snakemake.cli", reason="snakemake is not installed (extra: matrix)")
    (target,) = [word for word in arguments if re.fullmatch(r"own|demo|laptop|rankers_\w+|\w+_(laptop|small|gpu|paper)", word)]
    assert cli.get_argument_parser().parse_args(arguments).targets == [target]
