"""The old name of `asutil slots`, for one release."""

from .commands import main

if __name__ == "__main__":
    main("slots")
