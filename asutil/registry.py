"""What the files of a package register, so that a new one is a new file that nothing else names: objectives, measures, heads."""

from importlib import import_module
from pkgutil import iter_modules


class Registry(dict):
    """Key -> what is registered under it, in the order of their numbers (`number`) where they have one.

    Args:
        kind: what they are, in the plural.

    Example:
        >>> registry = Registry("words")
        >>> registry.add("one", 1)
        >>> registry.add("one", 2)
        Traceback (most recent call last):
        ValueError: two words have the key 'one'
    """

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def add(self, key: str, entry) -> None:
        """Register an entry. Raises: ValueError for a key or a number that another one has."""
        if key in self:
            raise ValueError(f"two {self.kind} have the key {key!r}")
        number = getattr(entry, "number", None)
        for other, registered in self.items():
            if number is not None and registered.number == number:
                raise ValueError(f"{key}, number {number}: {other} has this number")
        self[key] = entry
        if number is not None:
            ordered = sorted(self.items(), key=lambda item: item[1].number)
            self.clear()
            self.update(ordered)


def import_files(package: str, path) -> None:
    """Import every module of a package, in the order of their names: each registers what it has."""
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")
