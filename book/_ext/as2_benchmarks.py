"""The committed figures of `benchmarks/`: ratio, goal, spread and machine of each; latency and growth as plots."""

import pandas as pd
from as2_figures import drawn
from pages import benchmarks, numbers, register, render, row, table

from aslab.show import markup, plots
from aslab.show.markup import Html

# Keys of a record that the overview shows.
OVERVIEW = ("name", "ratio", "goal", "spread", "machine", "commit", "created")
TITLES = {  # of a benchmark: what is measured, and what it is compared with
    "sampling": ("Making pre-training examples", "tokenizing, padding and masking finished pairs of text"),
    "index": ("Building the token index", "a sentence splitter and a tokenizer alone"),
    "training_step": ("Training, tokens a second", "Trainer of transformers, padded to 128 tokens"),
    "cpu_step": ("A training step on a CPU", "a plain PyTorch loop, ordered by length"),
    "start": ("From a command to the first training step", "8 seconds"),
    "book": ("Building this book", "three minutes, ten seconds where nothing changed"),
    "scoring": ("Scoring candidates", "CrossEncoder.predict of sentence-transformers"),
    "scoring-gpu": ("Scoring candidates", "CrossEncoder.predict as it comes, float32; ours bf16"),
    "metrics": ("Ranking metrics", "torchmetrics and trec_eval"),
    "latency": ("A joint model, all questions in batches", "the pair model on the same candidates"),
    "search": ("Exact search among a million vectors", "sentence-transformers"),
    "contention": ("A run beside others on the same cores", "its fair share of the cores"),
    "own_questions": ("Memory to read 500,000 questions", "three times the size of their file"),
    "encoding": ("Texts to vectors", "SentenceTransformer.encode"),
}


@register("benchmarks", "benchmarks")
def named(*names: str) -> str:
    """A table of the named benchmarks, and below it the figures of each; `not run` where none are committed."""
    results = benchmarks(*names)
    return overview(names, results) + "".join(details(results[name]) for name in names if name in results)


def overview(names, results: dict[str, dict]) -> str:
    heads = ("What is measured", "Compared with", "Times as fast", "Least to most", "Goal, at least", "")
    caption = "The median over the rounds of one run; the lowest where a script compares several things."
    return table(caption, heads, [line(name, results.get(name)) for name in names])


def line(name: str, result: dict | None) -> str:
    title, peer = TITLES.get(name) or TITLES.get(name.removesuffix("-gpu"), (name, ""))
    head = f"{title}, GPU" if name.endswith("-gpu") else title
    if result is None:
        return row(head, peer, "", "", "", markup.word("not run"))
    reached = result["ratio"] >= result["goal"]
    kind, words = ("matches", "reached") if reached else ("differs", "not reached")
    between = f"{number(result['spread']['least'])} to {number(result['spread']['most'])}"
    texts = (number(result["ratio"]), between, number(result["goal"]))
    return row(head, peer, *numbers(*texts), Html(f'<span class="as2-verdict as2-{kind}">{words}</span>'))


def machine(measured_on: dict) -> str:
    device = measured_on["gpu"] or f"{measured_on['cores']} cores of {measured_on['processor']}"
    return f"{device}, {measured_on['system']}, Python {measured_on['python']}"


def details(result: dict) -> str:
    """Everything that was measured, folded away."""
    versions = ", ".join(f"{name} {version}" for name, version in result["machine"]["versions"].items())
    rows = [
        *flat({name: value for name, value in result.items() if name not in OVERVIEW}),
        ("measured on", machine(result["machine"])),
        ("versions", versions),
        ("commit", result.get("commit", "unknown")),
        ("date", result.get("created", "unknown")),
    ]
    title = TITLES.get(result["name"], (result["name"],))[0]
    figures = table("", (), [row(*each) for each in rows])
    return render("details.html", summary=f"{title}: all figures of the record", content=figures)


def flat(values: dict, before: str = ""):
    """(name, text) of every figure in nested dictionaries; a median with its least and most is one figure."""
    for name, value in values.items():
        label = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict) and {"median", "least", "most"} <= set(value):
            yield label, f"{number(value['median'])} ({number(value['least'])} to {number(value['most'])})"
            value = {key: inner for key, inner in value.items() if key not in ("median", "least", "most")}
        if isinstance(value, dict):
            yield from flat(value, f"{label}: ")
        elif value is not None:
            yield label, number(value)


def number(value) -> str:
    """Three significant digits with thousands marked; words as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


SIDES = {"torch": "torch, float32", "onnx": "ONNX, float32", "onnx_int8": "ONNX, weights of 8 bits"}


@register("backends", "benchmarks", "ONNX: not run. benchmarks/backends.py measures it.", records=("backends",))
def backends(result: dict) -> str:
    """An exported run by three backends: speed, size, and what the scores lose."""
    heads = ("Backend", "Pairs a second", "Times torch", "MAP", "Difference [95 %]", "MB")
    caption = (
        f"{result['model']} on the {result['questions']:,} test questions of {result['dataset']}, {result['pairs']:,} pairs; "
        f"medians of {result['rounds']} rounds, {result['threads']} threads, {machine(result['machine'])}; MAP in points."
    )
    return table(caption, heads, [_side(title, result[side]) for side, title in SIDES.items()]) + details(result)


def _side(title: str, one: dict) -> str:
    lost, times = "–", "1"
    if "map_difference" in one:
        low, high = (100 * float(edge) for edge in one["interval"].split(" to "))
        lost = f"{100 * one['map_difference']:+.1f} [{low:+.1f}, {high:+.1f}]"
        times = f"{one['times_torch']['median']:.1f}"
    speed, points = f"{one['pairs_a_second']['median']:,.0f}", f"{100 * one['map']:.1f}"
    return row(title, *numbers(speed, times, points, lost, f"{one['megabytes']:.0f}"))


WAYS = {  # of benchmarks/latency.py
    "pair": "pair model",
    "joint": "joint model",
    "pair_padded": "pair model, padded",
    "joint_padded": "joint model, padded",
}
FORMULAS = {  # part of the formula -> how its line is drawn, and its label
    "attention": ("--", "formula, attention: (k + 1)² / 4k"),
    "linear": (":", "formula, linear: (k + 1) / 2k"),
}
SETTINGS = {"together": "all questions in batches", "alone": "one question at a time"}


@register("latency", "benchmarks", "Latency: not run. make bench measures it.", records=("latency", "latency-gpu"))
def latency(result: dict) -> str:
    """The time of a joint model and a pair model for the same candidates: a plot with the paper's formula, and the quotients."""
    model, rounds = result["model"], result["rounds"]
    caption = (
        f"Time to rank the first k candidates of {result['questions']:,} questions of {result['dataset']} from texts to scores, "
        f"{result['questions_alone']:,} of them also one at a time: the median over {rounds} round{'s' * (rounds > 1)}, "
        f"by {model['name']} ({model['layers']} layers of {model['hidden']}) on {machine(result['machine'])}. "
        f"Padded: every text to {result['slot_tokens']} tokens, as in the paper's formula, whose lines start from the time of padded pairs."
    )
    return drawn(latency_plot(result), caption) + latency_table(result)


def latency_plot(result: dict):
    """Milliseconds a question by the number of candidates, as a Figure: a line a way to read, dashed the formula."""
    import seaborn
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), layout="constrained")
    for axis, (setting, title) in zip(figure.subplots(1, 2), SETTINGS.items()):
        frame = pd.DataFrame(
            {"k": int(k), "way": name, "ms": at["milliseconds_a_question"][way][setting]["median"], **at["formula"]}
            for way, name in WAYS.items()
            for k, at in result["by_k"].items()
        )
        looks = {"hue": "way", "style": "way", "markers": True, "dashes": False, "palette": "colorblind"}
        seaborn.lineplot(frame, x="k", y="ms", ax=axis, **looks)
        pairs = frame[frame.way == WAYS["pair_padded"]]
        for part, (dash, label) in FORMULAS.items():
            axis.plot(pairs.k, pairs.ms * pairs[part], color="black", linestyle=dash, label=label)
        axis.set(xlabel="candidates, k", ylabel="milliseconds a question", title=title)
        axis.set(ylim=(0, None), xticks=sorted(set(frame.k)))
        axis.grid(alpha=0.3)
        handles_and_labels = axis.get_legend_handles_labels()
        axis.get_legend().remove()
    figure.legend(*handles_and_labels, loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    return figure


def latency_table(result: dict) -> str:
    """Joint time by pair time for each k, as run and padded, next to the formula and the paper's measurement."""
    paper = result["published"]
    joint, pair = paper["joint_seconds"], paper["pair_seconds"]
    published = f"{joint} / {pair} = {joint / pair:.2f}"
    heads = [f"{way}: {part}" for way in ("As run", "Padded") for part in ("batches", "model alone", "one question")]
    body = []
    for k, at in result["by_k"].items():
        ratios = [ratio["median"] for way in ("joint_by_pair", "joint_by_pair_padded") for ratio in at[way].values()]
        texts = [f"{value:.2f}" for value in (*ratios, *at["formula"].values())]
        body.append(row(k, *numbers(*texts, published if int(k) == paper["k"] else "–")))
    caption = (
        f"Time of the joint model divided by that of the pair model: above 1 it takes longer. The goal is at most 1 in "
        f"batches, as run. Published: {paper['on']}."
    )
    return table(caption, ["k", *heads, "Formula: attention", "Formula: linear", "Published"], body)


@register("start", "benchmarks", "Start: not run. benchmarks/start.py measures it.", records=("start",))
def start(result: dict) -> str:
    """The seconds from a command to the first training step: a line a part, a bar from its beginning to its end."""
    parts = {name: taken for name, taken in result["seconds"].items() if name != "whole"}
    width = 100 / sum(taken["median"] for taken in parts.values())
    rows, begins = [], 0.0
    for name, taken in parts.items():
        bar = render("bar.html", x=f"{begins * width:.2f}", width=f"{taken['median'] * width:.2f}")
        seconds = f"{taken['median']:.1f} ({taken['least']:.1f} to {taken['most']:.1f})"
        rows.append(row(name, markup.number(seconds), bar))
        begins += taken["median"]
    return table("The parts of the start, in order.", ["Part", "Seconds", "When"], rows)


AXES = {  # of benchmarks/growth.py: what grows, its name, and what is drawn over it
    "corpus": ("megabytes", "corpus, MB of text", "build_seconds", "seconds to build the index"),
    "candidates": ("candidates", "candidates of a question", "milliseconds_a_question", "milliseconds a question"),
    "lengths": ("length", "tokens of an input", "tokens_a_second", "training, tokens a second"),
    "vectors": ("millions", "vectors on disk, millions", "search_seconds", "seconds to search for 64 questions"),
    "processes": ("processes", "processes", "tokens_a_second", "training, tokens a second"),
}
NO_GROWTH = "Growth: not run. python benchmarks/record.py growth measures it."


@register("growth", "benchmarks", NO_GROWTH, records=("growth", "growth-gpu"))
def growth(result: dict) -> str:
    model = result["model"]
    caption = (
        "Time grows in proportion to the size (dashed). Each point was measured in a process of its own, on "
        f"{machine(result['machine'])}; text of "
        f"{result['source']}, a model of {model['layers']} layers of {model['hidden']}, one thread a process. "
        f"Two processes train on {result['ratio']:.2f} times the tokens of one "
        f"({result['spread']['least']:.2f} to {result['spread']['most']:.2f} from round to round)."
    )
    return drawn(growth_plot(result), caption) + memory_table(result)


def growth_plot(result: dict):
    """A panel for each of `AXES` with at least three points, as a matplotlib Figure.

    Sizes and times have logarithmic axes. A dashed line through the first time grows in proportion to the size.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    measured = {name: axes for name, axes in AXES.items() if len(result.get(name, ())) > 2}
    figure = Figure(figsize=(8, 3 * -(-len(measured) // 2)), layout="constrained")
    panels = figure.subplots(-(-len(measured) // 2), 2, squeeze=False).flat
    for (name, (size, label, measure, unit)), axis in zip(measured.items(), panels):
        points = [(point[size], point[measure]) for point in result[name] if point[measure] is not None]
        sizes, figures = zip(*points)
        axis.plot(sizes, figures, color=plots.BLUE, marker="o")
        axis.set_xscale("log")
        if measure.endswith("a_second"):
            axis.set_ylim(0, None)
        else:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axis.plot(sizes, [figures[0] * each / sizes[0] for each in sizes], color="grey", linestyle="--")
        axis.minorticks_off()
        axis.set(xlabel=label, ylabel=unit, xticks=sizes)
        axis.grid(alpha=0.3)
        axis.xaxis.set_major_formatter("{x:,.10g}")
        axis.yaxis.set_major_formatter("{x:,.10g}")
    for axis in panels:
        axis.set_axis_off()
    return figure


def memory_table(result: dict) -> str:
    """The memory of the smallest and of the largest size of each of `AXES`, and the exponents of time and memory."""
    body = []
    for name, (size, label, *_) in AXES.items():
        points = [point for point in result.get(name, ()) if point["peak_memory_mib"] is not None]
        if points:
            ends = points[0], points[-1]
            grown, memory = (" to ".join(f"{point[key]:,.10g}" for point in ends) for key in (size, "peak_memory_mib"))
            powers = result.get("exponents", {}).get(name, {})
            fitted = [f"{powers[of]:.2f}" if of in powers else "–" for of in ("time", "memory")]
            body.append(row(label, *numbers(grown, memory, *fitted)))
    caption = (
        "Peak of memory of one process at the smallest and the largest size; the import of the package is part of it. "
        "For vectors, it is what a search allocates, without the mapped file. Time and memory grow with the size to the "
        "power of the last two columns: 1 is linear, and memory is counted without the import."
    )
    return table(caption, ["What grows", "From, to", "MiB", "Time, power", "Memory, power"], body)
