"""Directives that draw how texts are embedded: the siamese and the triplet network, and the loss of a triplet."""

from as2_figures import drawn
from as2_svg import HALO, WIDTH, arrow, box, figure, panel, text
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

MARGIN = 5.0
TOWER = 108  # width of a box
SIAMESE = {"question": "u", "candidate": "v"}
TRIPLET = {"right candidate": "p", "question": "a", "wrong candidate": "n"}


class Networks(SphinxDirective):
    """The siamese and the triplet network, a panel each."""

    def run(self):
        return [nodes.raw("", networks(), format="html")]


def networks() -> str:
    """Both networks from the texts down to the loss; words, not colours, tell what is shared."""
    caption = (
        "The siamese network reads two texts and predicts whether they match; the triplet network reads three and measures which of two "
        "is nearer. All towers of a network are the same: a language model and a pooling. The part inside the dashed line makes the "
        "vectors, and serving needs nothing else. Above it the siamese network has one linear layer, the triplet network no weights."
    )
    return figure(f'<div class="as2-inputs">{siamese()}{triplet()}</div>', caption)


def siamese() -> str:
    shapes, (u, v) = towers(SIAMESE, "one network g, read twice: the same weights")
    middle = WIDTH / 2
    shapes += arrow(u, 228, middle - 40, 248) + arrow(v, 228, middle + 40, 248)
    shapes += box(middle, 248, 200, "[ u ; v ; |u − v| ]")
    shapes += arrow(middle, 276, middle, 292) + box(middle, 292, 200, "linear layer: one number z")
    shapes += arrow(middle, 320, middle, 336) + box(middle, 336, 200, "P(match) = 1 / (1 + exp(−z))")
    shapes += text(middle, 384, "loss: −log P if it answers, else −log(1 − P)", "l")
    return panel("Siamese", "a question, a candidate and a label", shapes)


def triplet() -> str:
    shapes, (p, a, n) = towers(TRIPLET, "one network g, read three times: the same weights")
    for candidate, distance, shift in ((p, "|a − p|²", -12), (n, "|a − n|²", 12)):
        between = (candidate + a) / 2
        shapes += arrow(candidate, 228, between + shift, 270) + arrow(a, 228, between - shift, 270)
        shapes += box(between, 270, 84, distance) + arrow(between, 298, a + 2 * shift, 336)
    shapes += box(a, 336, 250, f"max( |a − p|² − |a − n|² + {MARGIN:g}, 0 )")
    shapes += text(a, 384, "loss: 0 once the wrong one is farther by the margin", "l")
    return panel("Triplet", "a question, a right and a wrong one", shapes)


def towers(vectors: dict[str, str], shared: str) -> tuple[str, list[float]]:
    """A tower for each text, from the text down to its vector, and the middle of each tower."""
    middles = [WIDTH * (2 * number + 1) / (2 * len(vectors)) for number in range(len(vectors))]
    shapes = f'<rect class="x" x="2" y="52" width="{WIDTH - 4}" height="130" rx="6"/>'
    for middle, (name, vector) in zip(middles, vectors.items()):
        shapes += box(middle, 6, TOWER, name, "d") + arrow(middle, 34, middle, 86)
        shapes += box(middle, 86, TOWER, "language model") + arrow(middle, 114, middle, 140)
        shapes += box(middle, 140, TOWER, "mean over tokens") + arrow(middle, 168, middle, 200)
        shapes += box(middle, 200, 44, vector, "d")
    return shapes + f'<g style="{HALO}">{text(WIDTH / 2, 72, shared, "s")}</g>', middles


# ------------------------------------------------------------------ the loss of a triplet


class TripletKinds(SphinxDirective):
    """The loss of a triplet over the distance of its wrong candidate, with the ranges where it is hard, semi-hard
    and easy.
    """

    def run(self):
        caption = (
            "The loss of one triplet over the distance of its wrong candidate n from the question a; its right candidate p does not move. "
            "Hard: n is nearer than p. Semi-hard: n is farther, but by less than the margin. Easy: n is farther by more, and the loss is 0."
        )
        return [nodes.raw("", drawn(kinds_plot(), caption), format="html")]


def ranges(to_positive: float, margin: float, end: float) -> dict[str, tuple[float, float]]:
    """The distances of the wrong candidate, from and to, at which a triplet is hard, semi-hard and easy."""
    return {
        "hard": (0, to_positive),
        "semi-hard": (to_positive, to_positive + margin),
        "easy": (to_positive + margin, end),
    }


def kinds_plot(to_positive: float = 6.0, margin: float = MARGIN, end: float = 17.0):
    """max(p - n + m, 0) over n as a matplotlib Figure; each range has a name and a hatch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 2.9), layout="constrained")
    axis = figure.subplots()
    top = to_positive + margin
    for (name, (start, stop)), hatch in zip(ranges(to_positive, margin, end).items(), ("///", "\\\\\\", "")):
        axis.axvspan(start, stop, facecolor="none", edgecolor="#8888", hatch=hatch, linewidth=0)
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 3}
        axis.text((start + stop) / 2, 0.9 * top, name, ha="center", va="center", bbox=behind)
    axis.plot([0, top, end], [top, 0, 0], color="black", linewidth=2)
    for distance in (to_positive, top):
        axis.axvline(distance, color="black", linestyle="--", linewidth=1)
    axis.set_xticks([0, to_positive, top], ["0", "|a − p|²", f"|a − p|² + {margin:g}"])
    axis.set(xlabel="|a − n|², from the question to the wrong candidate", ylabel="loss", yticks=[])
    axis.set(xlim=(0, end), ylim=(0, 1.05 * top))
    axis.spines[["top", "right"]].set_visible(False)
    return figure


DIRECTIVES = {"networks": Networks, "triplet-kinds": TripletKinds}
