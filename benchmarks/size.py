"""How large the program is, by folder: `python benchmarks/size.py [CHECKOUT]` prints one table and four lines.

lines: all lines of the .py files · docstrings: lines of docstrings · once: private functions and methods whose name occurs once outside
their definition in the program
"""

import argparse
import ast
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

ROOMS = ("asutil", "aslab", "book/_ext", "tests", "benchmarks")
PROGRAM = ("asutil", "aslab", "book/_ext")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def rooms(root: Path) -> dict[str, list[Path]]:
    """Folder -> its files; a folder of the program also by its own folders, for `asutil/data`."""
    files = {}
    for top in ROOMS:
        every = sorted((root / top).rglob("*.py"))
        files[top] = every
        if top in PROGRAM:
            for path in every:
                inside = path.relative_to(root / top).parts
                files.setdefault(f"{top}/{inside[0]}" if len(inside) > 1 else f"{top}/*.py", []).append(path)
    return files


def docstring_lines(tree: ast.Module) -> int:
    """Lines of the docstrings of a module, its classes and functions."""
    lines = 0
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
            and ast.get_docstring(node, clean=False) is not None
        ):
            text = node.body[0]
            lines += text.end_lineno - text.lineno + 1
    return lines


def private_functions(tree: ast.Module) -> list[str]:
    """Names of the functions and methods of a module that begin with one underscore."""
    names = [node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    return [name for name in names if name.startswith("_") and not name.startswith("__")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root = parser.parse_args().checkout
    files = rooms(root)
    texts = {path: path.read_text("utf-8") for top in ROOMS for path in files[top]}
    lines = {path: text.count("\n") for path, text in texts.items()}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    words = Counter(word for top in PROGRAM for path in files[top] for word in re.findall(r"\w+", texts[path]))
    print(f"{'folder':24}{'files':>7}{'lines':>8}{'docstrings':>12}{'private':>9}{'once':>6}")
    for folder, paths in sorted(files.items()):
        private = [name for path in paths for name in private_functions(trees[path])]
        once = sum(words[name] == 2 for name in private) if folder.split("/")[0] in ("asutil", "aslab", "book") else "-"
        total, documented = sum(lines[path] for path in paths), sum(docstring_lines(trees[path]) for path in paths)
        print(f"{folder:24}{len(paths):>7}{total:>8,}{documented:>12,}{len(private):>9}{once:>6}")
    program = [path for top in PROGRAM for path in files[top]]
    largest = max(program, key=lines.get)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    print(f"program: {sum(lines[path] for path in program):,} lines")
    print(f"largest file of the program: {largest.relative_to(root)}, {lines[largest]} lines")
    print(f"dependencies without an extra: {len(project['dependencies'])}")
    print(f"words of book/, README and CONTRIBUTING: {prose(root):,}")


def prose(root: Path) -> int:
    """Words of the committed pages' text, without code."""
    listed = subprocess.run(
        ["git", "ls-files", "book/*.md", "README.md", "CONTRIBUTING.md"], cwd=root, capture_output=True, text=True
    )
    text = " ".join((root / name).read_text("utf-8") for name in listed.stdout.split())
    return len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())


if __name__ == "__main__":
    main()
