"""The old name of the command `asutil embedded`."""

import runpy

if __name__ == "__main__":
    runpy.run_module("asutil", {"old": "embedded"})
