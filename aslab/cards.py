"""What the cards in `data_cards/` say of a data set."""

import yaml

from . import rundir


def licence_of(dataset: str) -> str:
    """The licence in a data set's card; for data of the user, that it is theirs to say."""
    path = rundir.root() / "data_cards" / f"{dataset}.md"
    if not path.is_file():
        return "not known: it has no data card"
    return yaml.safe_load(path.read_text("utf-8").split("---")[1])["licence"]
