"""A record of the cosines between the slots of joint inputs, by layer: `slot_cosines` of several models.

python -m aslab.slots MODEL [MODEL ...] [--init 0.02 0.3] [--random] [--dataset wikiqa] [--out FILE]
"""

import argparse
from pathlib import Path

from asutil.io import checkpoints, disk
from asutil.models import slot_cosines

from . import runs


def record(names: list[str], inits: list[float], dataset: str) -> dict:
    """The cosines of several models, each with slot types of every size, and where they come from."""
    models, tokenizer = [], None
    for name in names:
        for init in inits:
            model, table = slot_cosines.of(name, init, dataset, tokenizer)
            tokenizer = tokenizer or model.tokenizer  # of a random one that of the first model
            config = model.backbone.config
            described = {
                "model": name,
                "type": config.model_type,
                "layers": config.num_hidden_layers,
                "hidden": config.hidden_size,
            }
            described |= {"init": init, "weights_sha256": checkpoints.fingerprint_of_weights(None, model.backbone)}
            models.append(described | {column: table[column].round(6).tolist() for column in table})
            print(f"\n{name}, slot types of standard deviation {init}", table.round(4).to_string(), sep="\n")
    origin = {name: runs.provenance()[name] for name in ("versions", "commit", "created")}
    return {"dataset": dataset, "inputs": slot_cosines.EXAMPLES, "models": models, **origin}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.slots", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="hub ids, folders or runs", metavar="model")
    parser.add_argument(
        "--init", nargs="+", type=float, default=[0.02], help="standard deviations of fresh slot types (default: 0.02)"
    )
    parser.add_argument("--random", action="store_true", help="also RoBERTa-Base's architecture with random weights")
    parser.add_argument(
        "--dataset", default="pydocs", help="whose test questions are read (default: the embedded ones)"
    )
    parser.add_argument("--out", type=Path, help="write a record of numbers into this file")
    given = parser.parse_args()
    content = record([*given.models, *[slot_cosines.RANDOM] * given.random], given.init, given.dataset)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        print(disk.write_json(given.out, content))


if __name__ == "__main__":
    main()
