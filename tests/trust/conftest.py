"""Only the tests of the drills are collected here: a drill itself is no test, and may need packages of its own."""

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith(("test_", "__init__"))]
