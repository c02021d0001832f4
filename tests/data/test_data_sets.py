"""The registry of data sets: what is listed elsewhere for readers has all of them."""

import json
import re
from pathlib import Path

import pytest

from asutil.data.data_sets import ANSWERS, CLAIMS, LONG, TEST_ONLY

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
READ = {"finetune": ANSWERS, "embed": ANSWERS, "rank": ANSWERS, "verify_claims": CLAIMS, "find_evidence": LONG}


@pytest.mark.parametrize("name", READ)
def test_the_comment_of_a_notebook_lists_the_data_sets_that_it_takes(name):
    notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    source = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    comment = re.search(r"^dataset: .*#(.*)", source, re.M)[1]
    assert set(READ[name]) - set(TEST_ONLY) <= set(re.findall(r"\w+", comment))
