"""The page on the embedded backbone: its record, its command and its loss, from the files in its folder."""

from as2_figures import drawn
from pages import register, render, row, table

from aslab.show import plots
from asutil.io import disk, hub


def record() -> dict:
    return disk.read_json(hub.EMBEDDED_FOLDER / "record.json")


@register("backbone", "backbone")
def backbone() -> str:
    """The record as a table."""
    made = record()
    settings, figures = made["settings"], made["figures"]
    megabytes = (hub.EMBEDDED_FOLDER / "model.safetensors").stat().st_size / 1e6
    hours = figures["training_seconds"] / 3600
    masked = settings["mlm_share"] or 0.15
    lines = {
        "Size": f"{figures['parameters']:,} parameters with heads for training; {megabytes:.1f} MB in half precision",
        "Text": f"pydocs: {figures['corpus']['documents']:,} documents, {figures['corpus']['tokens']:,} tokens",
        "Read": f"{figures['tokens']:,} tokens in {settings['steps']:,} steps, {masked:.0%} of them masked",
        "Loss on held-out documents": f"{made['metrics']['validation']['mlm_loss']:.2f} nats a masked token",
        "Time": f"{hours:.1f} hours of one core, shared with other work, precision {settings['precision']}",
        "Fingerprint of the text": made["inputs"]["corpus"],
        "SHA-256 of the weights": made["model_sha256"],
        "Commit": made["commit"],
        "Versions": ", ".join(f"{name} {version}" for name, version in made["versions"].items()),
    }
    return table("The record of the embedded backbone.", ["What", "Value"], [row(*line) for line in lines.items()])


@register("backbone-command", "backbone")
def command() -> str:
    """The commands that make the backbone again."""
    made = record()
    given = " ".join(f"-p {name} {value}" for name, value in made["given"].items())
    text = f"OMP_NUM_THREADS=1 papermill notebooks/pretrain.ipynb {given}\nasutil embedded {made['name']}"
    return render("commands.html", text=text)


@register("backbone-loss", "backbone")
def loss() -> str:
    figure = plots.training_curves({"masked language modelling": hub.EMBEDDED_FOLDER / "log.jsonl"})
    return drawn(figure, "The training loss by step. It stays on a plateau first and falls afterwards.")
