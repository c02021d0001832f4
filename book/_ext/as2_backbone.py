"""Directives of the page on the embedded backbone: its record, its command and its loss, from the files in its
folder.
"""

from as2_figures import drawn
from as2_pages import SOURCES, Shown, boxed
from docutils import nodes

from aslab.show import markup, plots
from asutil.io import disk, hub

SOURCES["backbone"] = lambda _: sorted(hub.EMBEDDED_FOLDER.glob("*"))


def record() -> dict:
    return disk.read_json(hub.EMBEDDED_FOLDER / "record.json")


class Backbone(Shown):
    """The record as a table."""

    kind = "backbone"
    required_arguments = 0

    def show(self):
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
        body = [markup.line([markup.cell(name, "th", scope="row"), text]) for name, text in lines.items()]
        return boxed(markup.table("The record of the embedded backbone.", ["What", "Value"], body))


class BackboneCommand(Shown):
    """The commands that make the backbone again."""

    kind = "backbone"
    required_arguments = 0
    recorded = True

    def show(self):
        made = record()
        given = " ".join(f"-p {name} {value}" for name, value in made["given"].items())
        text = f"OMP_NUM_THREADS=1 papermill notebooks/pretrain.ipynb {given}\npython -m aslab.backbone {made['name']}"
        return [nodes.literal_block(text, text, language="bash")]


class BackboneLoss(Shown):
    """The training loss by step."""

    kind = "backbone"
    required_arguments = 0

    def show(self):
        figure = plots.training_curves({"masked language modelling": hub.EMBEDDED_FOLDER / "log.jsonl"})
        return drawn(figure, "The training loss by step. It stays on a plateau first and falls afterwards.")


DIRECTIVES = {"backbone": Backbone, "backbone-command": BackboneCommand, "backbone-loss": BackboneLoss}
