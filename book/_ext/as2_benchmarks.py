"""Directives that show committed figures of `benchmarks/`: of each its ratio, goal, spread and machine, and latencies as a plot."""

import json
from html import escape

import pandas as pd
from as2_figures import drawn
from as2_pages import ROOT, SOURCES, Shown, boxed, note

FOLDER = ROOT / "results" / "benchmarks"
SOURCES["benchmarks"] = lambda _: sorted(FOLDER.glob("*.json"))
OVERVIEW = ("name", "ratio", "goal", "spread", "machine", "commit", "created")


class Benchmarks(Shown):
    """A table of the named benchmarks, and below it the figures of each; `not run` where none are committed."""

    kind = "benchmarks"
    final_argument_whitespace = False
    optional_arguments = 99

    def show(self, *names):
        found = {path.stem: json.loads(path.read_text("utf-8")) for path in SOURCES["benchmarks"]("")}
        return overview(names, found) + "".join(details(found[name]) for name in names if name in found)


def overview(names, found: dict[str, dict]) -> str:
    heads = "".join(
        f"<th>{text}</th>" for text in ("Benchmark", "Times the peer", "Least to most", "Goal", "", "Measured on")
    )
    body = "".join(line(name, found.get(name)) for name in names)
    caption = (
        "<caption>The median over the rounds of one run. Where a script compares several things, the lowest.</caption>"
    )
    return boxed(f'<table class="as2-table">{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>')


def line(name: str, result: dict | None) -> str:
    head = f'<th scope="row"><code>{escape(name)}</code></th>'
    if result is None:
        return f'<tr>{head}<td></td><td></td><td></td><td class="as2-verdict as2-not-run">not run</td><td></td></tr>'
    reached = result["ratio"] >= result["goal"]
    verdict = f'<td class="as2-verdict as2-{"matches" if reached else "differs"}">{"reached" if reached else "not reached"}</td>'
    between = f"{number(result['spread']['least'])} to {number(result['spread']['most'])}"
    figures = "".join(
        f'<td class="as2-number">{text}</td>' for text in (number(result["ratio"]), between, number(result["goal"]))
    )
    return f"<tr>{head}{figures}{verdict}<td>{escape(machine(result['machine']))}</td></tr>"


def machine(known: dict) -> str:
    device = known["gpu"] or f"{known['cores']} cores of {known['processor']}"
    return f"{device}, {known['system']}, Python {known['python']}"


def details(result: dict) -> str:
    """Everything that was measured, folded away."""
    measured = {name: value for name, value in result.items() if name not in OVERVIEW}
    versions = ", ".join(f"{name} {version}" for name, version in result["machine"]["versions"].items())
    rows = [
        *flat(measured),
        ("versions", versions),
        ("commit", result.get("commit", "unknown")),
        ("date", result.get("created", "unknown")),
    ]
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    table = boxed(f'<table class="as2-table"><tbody>{body}</tbody></table>')
    return f"<details><summary>All figures of <code>{escape(result['name'])}</code></summary>{table}</details>"


def flat(values: dict, before: str = ""):
    """(name, text) of every figure in nested dictionaries; a median is one figure with its least and most."""
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
    """Three digits that count, thousands marked; words as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# ------------------------------------------------------------------ latency

WAYS = {  # of benchmarks/latency.py
    "pair": "pair model",
    "joint": "joint model",
    "pair_padded": "pair model, padded",
    "joint_padded": "joint model, padded",
}
SETTINGS = {"together": "all questions in batches", "alone": "one question at a time"}


class Latency(Shown):
    """How long a joint model and a pair model take for the same candidates, drawn beside the paper's formula; a figure a machine."""

    kind = "benchmarks"
    required_arguments = 0

    def show(self):
        made = [
            json.loads(path.read_text("utf-8"))
            for path in SOURCES["benchmarks"]("")
            if path.stem in ("latency", "latency-gpu")
        ]
        return "".join(map(latency, made)) or note("Latency: not run. make bench measures it.")


def latency(result: dict) -> str:
    """The plot, and how many times as long as the pair model the joint model took."""
    model, rounds = result["model"], result["rounds"]
    caption = (
        f"Time to rank the first k candidates of {result['questions']:,} questions of {result['dataset']} from texts to scores, "
        f"{result['questions_alone']:,} of them also one at a time: the median over {rounds} round{'s' * (rounds > 1)}, "
        f"by {model['name']} ({model['layers']} layers of {model['hidden']}) on {machine(result['machine'])}. "
        f"Padded: every text to {result['slot_tokens']} tokens, as in the paper's formula, whose lines start from the time of padded pairs."
    )
    return drawn(latency_plot(result), caption) + latency_table(result)


def latency_plot(result: dict):
    """Milliseconds a question by the number of candidates, a line a way, and dashed what the formula expects, as a matplotlib Figure."""
    import seaborn
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), layout="constrained")
    for axis, (setting, title) in zip(figure.subplots(1, 2), SETTINGS.items()):
        frame = pd.DataFrame(
            {"k": int(k), "way": name, "ms": one["milliseconds_a_question"][way][setting]["median"], **one["formula"]}
            for way, name in WAYS.items()
            for k, one in result["by_k"].items()
        )
        looks = {"hue": "way", "style": "way", "markers": True, "dashes": False, "palette": "colorblind"}
        seaborn.lineplot(frame, x="k", y="ms", ax=axis, **looks)
        pairs = frame[frame.way == WAYS["pair_padded"]]
        for part, dash, label in (
            ("attention", "--", "formula, attention: (k + 1)² / 4k"),
            ("linear", ":", "formula, linear: (k + 1) / 2k"),
        ):
            axis.plot(pairs.k, pairs.ms * pairs[part], color="black", linestyle=dash, label=label)
        axis.set(
            xlabel="candidates, k",
            ylabel="milliseconds a question",
            title=title,
            ylim=(0, None),
            xticks=sorted(set(frame.k)),
        )
        axis.grid(alpha=0.3)
        named = axis.get_legend_handles_labels()
        axis.get_legend().remove()
    figure.legend(*named, loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    return figure


def latency_table(result: dict) -> str:
    """Joint by pair for each k, as run and padded, beside the formula and what the paper measured."""
    paper = result["published"]
    published = (
        f"{paper['joint_seconds']} / {paper['pair_seconds']} = {paper['joint_seconds'] / paper['pair_seconds']:.2f}"
    )
    heads = [f"{way}: {part}" for way in ("As run", "Padded") for part in ("batches", "model alone", "one question")]
    heads = ["k", *heads, "Formula: attention", "Formula: linear", "Published"]
    body = ""
    for k, one in result["by_k"].items():
        ratios = [ratio["median"] for way in ("joint_by_pair", "joint_by_pair_padded") for ratio in one[way].values()]
        texts = [f"{value:.2f}" for value in (*ratios, *one["formula"].values())] + [
            published if int(k) == paper["k"] else "–"
        ]
        body += (
            f'<tr><th scope="row">{k}</th>' + "".join(f'<td class="as2-number">{text}</td>' for text in texts) + "</tr>"
        )
    caption = f"Time of the joint model by that of the pair model: above 1 it takes longer. Published: {paper['on']}."
    head = "".join(f"<th>{text}</th>" for text in heads)
    return boxed(
        f'<table class="as2-table"><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


# ------------------------------------------------------------------ growth

MEMORY = {"peak_memory_mib": "peak of memory, MiB"}
RATE = {"tokens_a_second": "tokens a second, training"}
AXES = {  # of benchmarks/growth.py: what grows, its label, and what is drawn over it
    "corpus": ("megabytes", "corpus, MB of text", {"build_seconds": "seconds to build the index"} | MEMORY),
    "candidates": (
        "candidates",
        "candidates a question",
        {"milliseconds_a_question": "milliseconds a question"} | MEMORY,
    ),
    "lengths": ("length", "tokens of an input", RATE | MEMORY),
    "processes": ("processes", "processes", RATE | {"peak_memory_mib": "peak of memory of one, MiB"}),
}


class Growth(Shown):
    """Time and memory against size of the corpus, candidates, length of an input and number of processes; a figure a machine."""

    kind = "benchmarks"
    required_arguments = 0

    def show(self):
        made = [
            json.loads(path.read_text("utf-8"))
            for path in SOURCES["benchmarks"]("")
            if path.stem in ("growth", "growth-gpu")
        ]
        return "".join(map(growth, made)) or note("Growth: not run. python benchmarks/record.py growth measures it.")


def growth(result: dict) -> str:
    model = result["model"]
    caption = (
        f"How time (above) and memory (below) grow, each point in a process of its own, on {machine(result['machine'])}; text of "
        f"{result['source']}, a model of {model['layers']} layers of {model['hidden']}, one thread a process. "
        f"Two processes train on {result['ratio']:.2f} times the tokens of one."
    )
    return drawn(growth_plot(result), caption)


def growth_plot(result: dict):
    """A column an axis of growth, a line of points each, as a matplotlib Figure."""
    from matplotlib.figure import Figure

    shown = {name: axes for name, axes in AXES.items() if result.get(name)}
    figure = Figure(figsize=(2.9 * len(shown), 5), layout="constrained")
    for column, (name, (key, label, drawn_over)) in zip(figure.subplots(2, len(shown), squeeze=False).T, shown.items()):
        for axis, (figure_name, title) in zip(column, drawn_over.items()):
            points = [(one[key], one[figure_name]) for one in result[name] if one[figure_name] is not None]
            axis.plot(*zip(*points), color="black", marker="o")
            axis.set(title=title, xlabel=label, ylim=(0, None), xlim=(0, None), xticks=[x for x, _ in points[-3:]])
            axis.title.set_fontsize("small")
            axis.grid(alpha=0.3)
    return figure


DIRECTIVES = {"benchmarks": Benchmarks, "growth": Growth, "latency": Latency}
