"""Joint models: a question and its candidates in slots, its parameters, how alike slots are, verdicts one by one."""

import textwrap

import numpy as np
import pages
import pandas as pd
from as2_figures import drawn
from pages import note, numbers, register, render, row, table

from aslab import papers, records, rundir
from aslab.show import markup
from asutil import metrics
from asutil.data import claims
from asutil.data.answers import Candidate, Question
from asutil.inputs.groups import Groups
from asutil.io import disk
from asutil.pydocs import documents as docstrings

K, SLOT_TOKENS = 5, 64
SHOWN = 90  # characters of a text
ROLES = {"question": "question", "right": "✓ answers", "wrong": "✗ does not answer", "empty": "empty slot, no label"}
LABELS = {1: "right", 0: "wrong"}
READ_AS = {"first": "first token of each slot", "mean": "mean of each slot's tokens"}
ROBERTA_BASE = {"vocabulary": 50265, "positions": 514, "types": 1, "hidden": 768, "inner": 3072, "layers": 12}


@register("joint-input", "", files=["asutil/inputs/groups.py", "asutil/inputs/pairs.py", "asutil/pydocs/documents.py"])
def joint_input() -> str:
    """A question of the embedded data with its candidates, in the slots and groups that the package puts them into."""
    question = first_question()
    return figure(question) if question else note("No test question of the embedded data needs two inputs.")


def first_question(packages=docstrings.NUMPYDOC) -> Question | None:
    """The first test question of the embedded data that needs two inputs, with right and wrong candidates."""
    for question in docstrings.questions(packages):
        labels = [int(number in question.positive) for number in range(len(question.sentences))]
        two_inputs = K < len(labels) < 2 * K and 0 < sum(labels) < len(labels)
        if docstrings.split_of(question.function) == "test" and two_inputs:
            numbered = enumerate(zip(question.sentences, labels))
            candidates = tuple(Candidate(str(number), text, label, None, None) for number, (text, label) in numbered)
            return Question(question.id, question.text, candidates)
    return None


def words_as_tokens(texts: list[str]):
    """A tokenizer with a token for every word and punctuation mark of the texts: [CLS] x [SEP]."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    split, special = pre_tokenizers.BertPreTokenizer(), ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = dict.fromkeys(word for text in texts for word, _ in split.pre_tokenize_str(text))
    ids = {word: number for number, word in enumerate([*special, *words])}
    backend = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    backend.pre_tokenizer = split
    around = [(name, ids[name]) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", around)
    names = {f"{name.strip('[]').lower()}_token": name for name in special}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def figure(question: Question, k: int = K, slot_tokens: int = SLOT_TOKENS) -> str:
    """A panel an input, a box a slot: its text, positions and role; a word, a mark and a colour say the same."""
    texts = [candidate.text for candidate in question.candidates]
    groups = Groups(words_as_tokens([question.text, *texts]), [question], k)
    members = groups.members(np.arange(len(groups)))
    joined, labels = groups.join(members, (k + 1) * slot_tokens), groups.labels_of(members)
    panels = []
    for number, (start, stop) in enumerate(zip(joined.offsets[:-1], joined.offsets[1:])):
        types, positions = joined.types[start:stop], joined.positions[start:stop]
        texts_of = [question.text, *(texts[member] if member >= 0 else None for member in members[number])]
        roles = ["question", *(LABELS.get(label, "empty") for label in labels[number])]
        slots = [slot(i, texts_of[i], roles[i], positions[types == i], slot_tokens) for i in range(k + 1)]
        panels.append((f"{stop - start} tokens in {k + 1} slots of {slot_tokens} positions", slots))
    caption = (
        f"A question with {len(texts)} candidates, the first test question of the embedded data that needs two inputs. E is the "
        "encoder's output at the first token of a slot, as at budget paper. A bar shows the positions that a text takes; "
        "the rest is padding, to which no token attends. A hash of the texts, not their order in the document, decides which "
        "candidates share an input. Here every word "
        "and punctuation mark is a token; a model's own tokenizer cuts finer."
    )
    return pages.figure(render("slots.html", panels=panels), caption)


def slot(number: int, text: str | None, role: str, positions: np.ndarray, slot_tokens: int) -> dict:
    """One slot, for the template. Args: role: a name of `ROLES`. positions: of its tokens, none in an empty slot."""
    first, last = number * slot_tokens, (number + 1) * slot_tokens - 1
    one = {"number": number, "role": role, "text": None, "width": f"{100 * len(positions) / slot_tokens:.1f}"}
    if text is None:
        return one | {"role": "empty", "words": ROLES["empty"], "places": f"positions {first} to {last}, all padding"}
    padding = f", padding to {last}" if positions[-1] < last else ""
    places = f"positions {positions[0]} to {positions[-1]}{padding}"
    return one | {"text": textwrap.shorten(text, SHOWN, placeholder=" …"), "words": ROLES[role], "places": places}


def backbone_size(
    vocabulary: int, positions: int, types: int, hidden: int, inner: int, layers: int, embedding=None
) -> int:
    """Parameters of an encoder without pooler and head: (V + P + T + 2) E + N (4 H^2 + 2 H F + 9 H + F)

    E = H, or that of a smaller encoder with the embeddings of a larger one, and then a layer between, (E + 1) H.
    """
    between = (embedding + 1) * hidden if embedding else 0
    embeddings = (vocabulary + positions + types + 2) * (embedding or hidden)
    return embeddings + between + layers * (4 * hidden**2 + 2 * hidden * inner + 9 * hidden + inner)


def head_size(vectors: int, hidden: int) -> int:
    """Parameters of one linear layer for two classes on so many vectors side by side."""
    return 2 * vectors * hidden + 2


@register("joint-parameters", "", files=["experiments/joint_inference.yml"])
def joint_parameters() -> str:
    """The parameters of RoBERTa-Base and what a joint model adds, beside the paper's counts of RoBERTa and of AEk."""
    roberta, joint = papers.read("joint_inference")["parameters"].values()
    hidden, base = ROBERTA_BASE["hidden"], backbone_size(**ROBERTA_BASE)
    types, head = K * hidden, head_size(2, hidden)
    rows = [
        ("RoBERTa-Base, no pooler, no head", base, roberta),
        ("+ token types for the other slots", types, None),
        ("+ AEk, a linear layer on two vectors", head, None),
        ("the joint model with AEk", base + types + head, joint),
        ("more than RoBERTa-Base", types + head, joint - roberta),
        ("IEk in the place of AEk", head_size(1, hidden), None),
        ("RoBERTa's own pair head, dense-tanh-linear", hidden**2 + hidden + head_size(1, hidden), None),
    ]
    count = lambda value: f"{value:,}" if value is not None else "–"
    body = [row(name, *numbers(count(ours), count(theirs))) for name, ours, theirs in rows]
    caption = f"Parameters for k = {K}, two classes and vectors of {hidden}. The paper's counts: appendix C.3."
    return table(caption, ["", "Counted here", "Paper"], body)


@register("claim-verdicts", empty="Verdicts one by one: not run, no row has verified claims.", of_paper=True)
def verdict_table(data: dict, runs: pd.DataFrame) -> str:
    """A line a row, data set and budget, mean over seeds in points."""
    runs = runs[[record.get("notebook") == "verify_claims" for record in runs.record]]
    if runs.empty:
        return ""
    names = {f"f1_{name}": verdict for name, verdict in zip(metrics.verdicts.CLASSES, claims.LABELS)}
    body = []
    for (dataset, budget, source, own), lines in runs.groupby(["dataset", "budget", "source", "row"], sort=False):
        name, where = data["rows"][own]["name"], markup.NAMES.get(dataset, dataset)
        origin = records.origin(budget, source)
        each = [records.values(lines, metric) for metric in ("label_accuracy", *names, "majority")]
        figures = [f"{100 * np.mean(seeds):.1f}" if seeds else "–" for seeds in each]
        body.append(row(name, where, *numbers(*figures), len(lines), origin))
    heads = ["Row", "Claims", "Label accuracy", *(f"F1, {verdict.lower()}" for verdict in names.values())]
    title = "Verdicts one by one, in points, mean over seeds."
    return table(title, [*heads, "Majority", "Seeds", "Budget"], body)


@register("slot-cosines", "slots", "Cosines between slots: not run. asutil slots measures them.")
def slot_cosines() -> str:
    """How alike the slots of one input are, layer by layer, from the committed record of `asutil slots`."""
    path = rundir.root() / "results" / "joint_inference" / "slot_cosines.json"
    if not path.is_file():
        return ""
    record = disk.read_json(path)
    caption = (
        f"Mean cosine between two {record.get('between', 'slots')} of one input, after the embeddings (0) and after each layer, before any "
        f"training: {record['inputs']} inputs of {record['dataset']}. At 1 they are all one vector. Types: the standard deviation of fresh "
        "slot types."
    )
    return drawn(cosine_plot(record), caption) + cosine_table(record)


def model_name(measured: dict) -> str:
    """A model of the record, with the standard deviation of its fresh slot types."""
    name = "RoBERTa-Base, random weights" if measured["model"] == "random" else measured["model"].split("/")[-1]
    return f"{name}, types {measured['init']:g}"


def cosine_plot(record: dict):
    """Cosine by layer, a panel for each way to read a slot and a line a model, as a matplotlib Figure."""
    import seaborn
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.4), layout="constrained")
    for axis, (pooling, title) in zip(figure.subplots(1, 2), READ_AS.items()):
        points = [
            (layer, cosine, model_name(model))
            for model in record["models"]
            for layer, cosine in enumerate(model[pooling])
        ]
        frame = pd.DataFrame(points, columns=["layer", "cosine", "model"])
        looks = {"hue": "model", "style": "model", "markers": True, "dashes": False, "palette": "colorblind"}
        seaborn.lineplot(frame, x="layer", y="cosine", ax=axis, **looks)
        axis.set(title=title, ylim=(-0.05, 1.05), xlabel="layer", ylabel="mean cosine between slots")
        axis.grid(True)
        axis.get_legend().remove()
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def cosine_table(record: dict) -> str:
    """Mean and least cosine after the last layer, by both ways to read a slot."""
    body = []
    for model in record["models"]:
        last = [f"{model[name][-1]:.4f}" for name in ("first", "first_least", "mean", "mean_least")]
        body.append(row(model_name(model), *numbers(*last)))
    heads = ["Model", "First token, mean", "least", "Mean of tokens, mean", "least"]
    caption = f"Cosines after the last layer, over all pairs of {record.get('between', 'slots')}."
    return table(caption, heads, body)
