"""The earlier name of `asutil.heads`."""

from ..heads import *  # noqa: F403
