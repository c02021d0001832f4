"""The script `asutil`, which says what to install where the extra `lab` is missing."""

import sys


def main(command: str = "") -> None:
    """As `commands.main`."""
    try:
        from . import commands
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("asutil needs click: pip install 'asutil[lab]'")
    commands.main(command)
