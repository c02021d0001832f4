"""Records the cosines between the slots of joint inputs, by layer, for several models."""

from asutil.io import checkpoints

from . import commands, measured, slot_cosines
from .commands import argument, option, words


def record(names: list[str], inits: list[float], random: bool, dataset: str) -> dict:
    """The cosines of several models, each with slot types of every standard deviation; `random` adds one with random weights."""
    models, tokenizer = [], None
    for name in [*names, *[slot_cosines.RANDOM] * random]:
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


command = measured.command(
    record,
    argument("names", "hub ids, folders or runs", nargs=-1, metavar="MODEL..."),
    words("--init inits", "standard deviations of the fresh slot types", float, default="0.02", metavar="S..."),
    option("--random", "also measure RoBERTa-Base with random weights", is_flag=True),
    option("--dataset", "data set whose test questions are read; pydocs is embedded", default="pydocs"),
    example="asutil slots FacebookAI/roberta-base --init 0.02 0.3 --dataset wikiqa",
)

if __name__ == "__main__":
    commands.main("slots")
