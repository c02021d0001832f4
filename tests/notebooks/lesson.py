"""Runs a lesson as its readers do, cell by cell: `python lesson.py NOTEBOOK WRONG PARAMETERS`.

WRONG is a JSON object: label of an exercise -> a text of its solution and a wrong one in its place. Each wrong solution runs before the
right one and must fail one of its assertions. PARAMETERS is a JSON object: name -> value in place of the notebook's. Prints the labels,
the CPU seconds and whether torch was imported.
"""

import json
import re
import sys
import time
from pathlib import Path


def run(notebook: Path, wrong: dict[str, list[str]], parameters: dict) -> list[str]:
    """The labels of the exercises whose solutions ran."""
    namespace, solution, solved = {"__name__": "__main__"}, [], []
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", ())
        if start := re.search(r"\{solution-start\} ([\w-]+)", source):
            solution, label = [], start[1]
        if "{solution-end}" in source:
            require_failure("\n".join(solution), *wrong[label], dict(namespace), label)
            execute("\n".join(solution), f"{notebook.stem}, {label}", namespace)
            solved.append(label)
        if "solution" in tags:
            solution.append(source)
        elif cell["cell_type"] == "code":
            execute(source, f"{notebook.stem}, cell {cell['id']}", namespace)
        if "parameters" in tags:
            namespace |= parameters
    return solved


def execute(source: str, name: str, namespace: dict) -> None:
    exec(compile(source, name, "exec"), namespace)


def require_failure(source: str, right: str, instead: str, namespace: dict, label: str) -> None:
    if source.count(right) != 1:
        raise ValueError(f"{label}: expected {right!r} once in the solution, got {source.count(right)} times")
    try:
        exec(source.replace(right, instead), namespace)
    except AssertionError:
        return
    raise ValueError(f"{label}: a wrong solution passes, with {instead!r} in place of {right!r}")


if __name__ == "__main__":
    solved = run(Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3]))
    print(json.dumps({"solved": solved, "seconds": time.process_time(), "torch": "torch" in sys.modules}))
