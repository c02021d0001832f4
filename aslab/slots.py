"""Records the cosines between the slots of joint inputs, by layer, for several models.

python -m aslab.slots MODEL [MODEL ...] [--init 0.02 0.3] [--random] [--dataset wikiqa] [--out FILE]
"""

import argparse

from asutil.io import checkpoints

from . import measured, slot_cosines


def record(names: list[str], inits: list[float], dataset: str) -> dict:
    """The cosines of several models, each with slot types of every standard deviation."""
    models, tokenizer = [], None
    for name in names:
        for init in inits:
            model, table = slot_cosines.of(name, init, dataset, tokenizer)
            tokenizer = tokenizer or model.tokenizer  # a model with random weights gets that of the first model
            config = model.backbone.config
            sizes = {"layers": config.num_hidden_layers, "hidden": config.hidden_size}
            described = {"model": name, "type": config.model_type, **sizes, "init": init}
            described["weights_sha256"] = checkpoints.fingerprint_of_weights(None, model.backbone)
            models.append(described | {column: table[column].round(6).tolist() for column in table})
            print(f"\n{name}, slot types of standard deviation {init}", table.round(4).to_string(), sep="\n")
    return {"dataset": dataset, "inputs": slot_cosines.EXAMPLES, "between": "candidates", "models": models}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m aslab.slots", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="a hub id, a folder or a run", metavar="model")
    deviations = "one or more standard deviations of the fresh slot types (default: 0.02)"
    parser.add_argument("--init", nargs="+", type=float, default=[0.02], help=deviations)
    parser.add_argument("--random", action="store_true", help="also measure RoBERTa-Base with random weights")
    parser.add_argument(
        "--dataset",
        default="pydocs",
        help="data set whose test questions are read (default: pydocs, which is embedded)",
    )
    random = [slot_cosines.RANDOM]
    measured.main(
        parser, lambda options: record(options.models + random * options.random, options.init, options.dataset)
    )


if __name__ == "__main__":
    main()
