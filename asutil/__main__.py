"""`python -m asutil` is the command `asutil`; an old name, such as `python -m asutil.tasks.mine`, names its command in `old`."""

from asutil import plugins

plugins.load("commands", "asutil")(globals().get("old", ""))
