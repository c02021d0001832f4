"""Runs a lesson as its readers do, cell by cell: `python lesson.py NOTEBOOK WRONG`.

WRONG is a JSON object: label of an exercise -> a text of its solution and a wrong one in its place. Each wrong solution runs before the
right one and must fail one of its assertions. Prints the labels, the CPU seconds and whether torch was imported.
"""

import json
import re
import sys
import time
from pathlib import Path


def run(notebook: Path, wrong: dict[str, list[str]]) -> list[str]:
    """The labels of the exercises whose solutions ran."""
    namespace, label, solved = {"__name__": "__main__"}, "", []
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if start := re.search(r"\{solution-start\} ([\w-]+)", source):
            label = start[1]
        if cell["cell_type"] != "code":
            continue
        if "solution" in cell["metadata"].get("tags", ()):
            require_failure(source, *wrong[label], dict(namespace), label)
            solved.append(label)
        exec(compile(source, f"{notebook.stem}, cell {cell['id']}", "exec"), namespace)
    return solved


def require_failure(source: str, right: str, instead: str, namespace: dict, label: str) -> None:
    if source.count(right) != 1:
        raise ValueError(f"{label}: expected {right!r} once in the solution, got {source.count(right)} times")
    try:
        exec(source.replace(right, instead), namespace)
    except AssertionError:
        return
    raise ValueError(f"{label}: a wrong solution passes, with {instead!r} in place of {right!r}")


if __name__ == "__main__":
    solved = run(Path(sys.argv[1]), json.loads(sys.argv[2]))
    print(json.dumps({"solved": solved, "seconds": time.process_time(), "torch": "torch" in sys.modules}))
