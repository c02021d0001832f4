"""Compares the runs on your own documents, with and without pre-training, and exports the better ranker.

`snakemake -c2 own --config corpus=my_texts questions=my_questions.tsv` makes the runs (experiments/own.smk), and ends with `asutil own`,
which compares the two systems on the test questions, a run being one seed, and exports the one with the better MAP on dev.
"""

import html
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from asutil.corpus import sources
from asutil.io import disk, remote
from asutil.sampling import OBJECTIVES

from . import closing, commands, compare, identity, papers, parameters, rundir
from .commands import option
from .own_inputs import USAGE
from .parameters import names_of
from .plan import Job

DEFAULTS = {
    "corpus": None,
    "questions": None,
    "objective": "sp",  # gains most over its control in results/sentence_objectives at budget laptop
    "budget": "laptop",
    "seeds": "0,1,2",
    "model": None,
    "to": "own/ranker",
}
# Parameters of the notebooks that an option decides, or the Snakefile, or the export: a CrossEncoder reads pairs.
SET_BY_US = ("dataset", "seed", "runs_dir", "architecture", "head", "k")
LINE = "sentence_objectives"  # the paper whose line the runs follow, and whose gpu_hours they have
PLAIN = "plain"
PRETRAINED = "pre-trained"
POINTS = "Test: points with 95 % intervals over questions; * best, or not told from it; below, without any training"
TITLE = "With and without pre-training"
CARD = "Made with asutil"  # a model card of aslab.export


# ------------------------------------------------------------------ the runs


@dataclass(frozen=True)
class Chain:
    """One pre-training, the fine-tunings that start from it, one a seed, and those that start from its model."""

    pretraining: Job
    plain: list[Job]
    pretrained: list[Job]
    to: Path

    @property
    def jobs(self) -> list[Job]:
        return [self.pretraining, *self.plain, *self.pretrained]

    @property
    def command(self) -> str:
        """`asutil own --plain ... --pretrained ... --to ...`"""
        plain, pretrained = (",".join(job.folder.name for job in jobs) for jobs in (self.plain, self.pretrained))
        words = ["own", "--plain", plain, "--pretrained", pretrained, "--to", str(self.to)]
        return shlex.join([sys.executable, "-m", "asutil", *words])


def chain(config: dict) -> Chain:
    """The runs for the options of `--config`; what is no option is a parameter for every notebook that has it.

    Raises: ValueError, OSError for an option that is missing or unknown, and for inputs that cannot be read, before anything runs.
    """
    option = DEFAULTS | {name: value for name, value in config.items() if name in DEFAULTS}
    more = {name: value for name, value in config.items() if name not in DEFAULTS}
    known = {name for notebook in ("pretrain", "finetune") for name in parameters.parameters(notebook)} - set(SET_BY_US)
    papers.all_of(more, sorted(known | set(DEFAULTS)), "--config", "option")
    # Two parts and several negatives, like a question and its candidates.
    pairs = [name for name, rule in OBJECTIVES.items() if rule.parts == 2 and rule.negatives is None]
    papers.one_of(option["objective"], pairs, "--config", "objective")
    for name in ("corpus", "questions", "model", "to"):
        value = option[name]
        if not isinstance(value, str | None):
            raise ValueError(f"{name}: expected text, got {value!r}, as YAML reads it: write it with ./ before it")
        if not value and name in ("corpus", "questions"):
            raise ValueError(f"{name} is missing\n{USAGE}")
    if Path(option["model"] or "").name.startswith("pretrain-"):
        raise ValueError(f"model: expected what a pre-training starts from, got one that ended, {option['model']}")
    corpus = ",".join(_existing("corpus", part) for part in sources.parts_of(option["corpus"]))
    questions = _existing("questions", option["questions"])
    to = remote.expanded(option["to"] or DEFAULTS["to"])
    _require_replaceable(to, identity.shown({"dataset": questions})["dataset"])
    shared = {"budget": option["budget"]} | ({"model": option["model"]} if option["model"] else {}) | more
    pretraining = _job("pretrain", PRETRAINED, shared | {"objective": option["objective"], "corpus": corpus, "seed": 0})
    if not re.fullmatch(r" *\d+ *(, *\d+ *)*", str(option["seeds"])):
        raise ValueError(f"seeds: expected whole numbers joined by commas, as 0,1,2; got {option['seeds']!r}")
    seeds = dict.fromkeys(map(int, str(option["seeds"]).split(",")))
    plain = [_job("finetune", PLAIN, shared | {"dataset": questions, "seed": seed}) for seed in seeds]
    started = {"model": f"runs/{pretraining.folder.name}"}
    given = [job.parameters | started for job in plain]
    pretrained = [_job("finetune", PRETRAINED, own, (pretraining.folder,)) for own in given]
    return Chain(pretraining, plain, pretrained, to)


def _existing(option: str, value: str) -> str:
    """The path that an option names. Raises: FileNotFoundError that shows how the command is written."""
    path = remote.path_of(value)
    if not path.exists():
        raise FileNotFoundError(f"{option}: {path.absolute()} does not exist\n{USAGE}")
    return str(path)


def _job(notebook: str, system: str, given: dict, needs: tuple[Path, ...] = ()) -> Job:
    own = {name: value for name, value in given.items() if name in parameters.parameters(notebook)}
    folder = identity.folder_for(notebook, own, must_exist=False)
    dataset = Path(own.get("dataset", "pretraining")).name
    return Job(LINE, f"own, {system}", own["budget"], dataset, own["seed"], notebook, own, folder, needs)


# ------------------------------------------------------------------ the comparison


def averaged(names: list[str]) -> pd.DataFrame:
    """The metrics of each test question, averaged over the runs of one system. Raises: as `compare.read` and `compare.aligned`."""
    values, _ = compare.aligned(compare.read(names))
    tables = [table[list(compare.in_all(values).values())] for table in values.values()]
    return sum(tables) / len(tables)


def record_of(name: str) -> dict:
    return rundir.finished(name)[1]


def dev_map(name: str) -> float:
    return record_of(name)["metrics"]["dev"]["map"]


def choose(systems: dict[str, list[str]]) -> tuple[str, str]:
    """The system with the higher mean MAP on dev, and its run with the highest; the first of equals. Test figures are never read."""
    mean = {system: sum(map(dev_map, names)) / len(names) for system, names in systems.items()}
    best = max(mean, key=mean.get)
    return best, max(systems[best], key=dev_map)


def verdict(values: dict[str, pd.DataFrame], seeds: int) -> str:
    """A sentence on the difference of MAP on test, from the questions' means over seeds."""
    ours, other = (values[system]["average_precision"] for system in (PRETRAINED, PLAIN))
    sign, difference = closing.difference(ours, other)
    effects = {1: "helped", -1: "did harm", 0: "made no difference that these questions can tell from chance"}
    over = f"on {len(ours)} test questions, means of {seeds} seed{'s' * (seeds != 1)}"
    few = f" {closing.TOO_FEW}." * (len(ours) < closing.FEWEST)
    return f"Pre-training on the corpus {effects[sign]}: {difference} {over}.{few}"


def own_task(name: str) -> list[str]:
    """A sentence on whether the pre-training that a run starts from learnt its own task; none where it starts from no pre-training."""
    start = rundir.find(record_of(name)["settings"]["model"])
    known = start is not None and (start / "record.json").is_file()  # it may have stayed on another machine
    figures = rundir.read_record(start)["metrics"].get("validation", {}) if known else {}
    if "auc" not in figures:
        return []
    compared = f"0.50 is chance, and counting shared words reaches {figures['auc_tfidf']:.2f}"
    return [f"Its own task, on held-out documents of the corpus: AUC {figures['auc']:.2f}, where {compared}."]


def caution(reached: float, baselines: dict) -> list[str]:
    """A sentence where something that needs no training has a higher MAP on test than the exported system; else none."""
    best = max(baselines, key=lambda name: baselines[name]["map"], default=None)
    if best is None or baselines[best]["map"] <= reached:
        return []
    theirs = baselines[best]["map"]
    return [f"{closing.not_better(best, theirs, 'the exported system', reached, 'the same test questions')}."]


def report(systems: dict[str, list[str]]) -> list:
    """The parts of the comparison: sentences, and pairs of a title and a table.

    Raises: ValueError for a run under the name of the other system, and for one with other settings or seeds than the others; as
        `compare.read` and `compare.aligned`.
    """
    frames = {system: averaged(names) for system, names in systems.items()}
    best, chosen = choose(systems)
    runs_of = []
    for system, name in [(system, name) for system, names in systems.items() for name in names]:
        record = record_of(name)
        start = str(record["settings"]["model"])
        if Path(start).name.startswith("pretrain-") != (system == PRETRAINED):
            expected = "a run that started from a pre-training" if system == PRETRAINED else "one that did not"
            raise ValueError(f"--{system.replace('-', '')}: expected {expected}, {name} started from {start}")
        points = (f"{100 * record['metrics'][split]['map']:.1f}" for split in ("dev", "test"))
        runs_of.append((system, record["seed"], *points, name + " (exported)" * (name == chosen)))
    every = [name for names in systems.values() for name in names]
    if len(differ := compare.settings(every).drop(index=["model", "seed"], errors="ignore")):
        came = "; ".join(f"{setting} {', '.join(dict.fromkeys(own))}" for setting, *own in differ.itertuples())
        raise ValueError(f"runs that differ in their start and their seed alone expected, got {came}")
    plain, after = (sorted(record_of(name)["seed"] for name in systems[system]) for system in (PLAIN, PRETRAINED))
    if plain != after:
        raise ValueError(f"the same seeds of both expected, got {plain} plain and {after} pre-trained")
    compare.read(every)  # on the same labels
    values, _ = compare.aligned(frames)
    dev = rundir.read_table(rundir.find(chosen), "scores_dev.parquet")["question_id"].nunique()
    means = {system: 100 * sum(map(dev_map, names)) / len(names) for system, names in systems.items()}
    figures = " and ".join(f"{system} {value:.1f}" for system, value in means.items())
    exported = f"Exported: the {best} model, by MAP on {dev} dev questions ({figures}); of its seeds the best there."
    baselines = record_of(systems[PLAIN][0])["baselines"]
    untrained = pd.DataFrame.from_dict(baselines, "index").reindex(columns=list(compare.METRICS))
    untrained = untrained.map(lambda value: "–" if pd.isna(value) else f"{100 * value:.1f}")
    sentences = [*compare.different_files(every), verdict(values, len(systems[PLAIN]))]
    sentences += [*own_task(systems[PRETRAINED][0]), exported]
    sentences += caution(values[best]["average_precision"].mean(), baselines)
    pairs = compare.pairs({system: values[system] for system in (PRETRAINED, PLAIN)})
    of_runs = pd.DataFrame(runs_of, columns=["system", "seed", "map on dev", "map on test", "run"])
    tables = {
        POINTS: pd.concat([compare.means(values), untrained]),
        "Test: the difference, by two tests": pairs.drop(columns="Holm").set_index("A"),
        "Each run": of_runs.set_index("system"),
    }
    return [*sentences, *tables.items()]


def rendered(parts: list, form: str) -> str:
    """The report as text, Markdown or a page of HTML."""
    sentence = (lambda text: f"<p>{html.escape(text)}</p>") if form == "html" else str
    page = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{TITLE}</title>\n<h1>{TITLE}</h1>'
    head = {"html": page, "markdown": f"# {TITLE}"}
    shown = [sentence(part) if isinstance(part, str) else compare.rendered(*part, form) for part in parts]
    shown = [*filter(None, [head.get(form)]), *shown]
    return "\n".join([*shown, "</html>"]) if form == "html" else "\n\n".join(shown)


# ------------------------------------------------------------------ the export


def _reports(to: Path) -> dict[Path, str]:
    """The files of the comparison and their forms: named after the ranker, but for the usual one."""
    name = "comparison" if to.name == Path(DEFAULTS["to"]).name else f"{to.name}-comparison"
    return {to.with_name(f"{name}.md"): "markdown", to.with_name(f"{name}.html"): "html"}


def _require_replaceable(to: Path, questions: str) -> str:
    """The model card of an earlier export for these questions, as a record shows them; "" where `to` is free.

    Raises: FileExistsError for anything else that is there, and for a report that this command did not write; ValueError for an export
        that was changed or has further files.
    """
    card = to / disk.CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    of_others = re.findall(r"^\| data set \| `(.*)` \|$", text, re.MULTILINE) not in ([], [questions])
    foreign = [path for path in _reports(to) if path.exists() and TITLE not in path.read_text("utf-8", "replace")]
    if foreign or (to.exists() and (CARD not in text or of_others)):
        it_is = f"{foreign[0]} exists and is no report" if foreign else "it exists and is no ranker"
        whose = f" for {questions}" if of_others else ""
        raise FileExistsError(f"to={to}: {it_is}{whose} that this command wrote; name a folder that does not exist")
    if (to / disk.LIST).is_file():
        disk.check_all(to, disk.read_json(to / disk.LIST)["files"], disk.LIST, "; or name another folder as `to`")
    return text


def export(name: str, to: Path) -> Path:
    """Export a run, in place of an earlier export; nothing is written where `to` has this run's weights already."""
    from . import export as exporting  # with torch, which a plan does not need

    record = record_of(name)
    if f"`{record['weights_sha256']}`" in _require_replaceable(to, record["settings"]["dataset"]):
        disk.remove_leftovers(to)
        return to
    return exporting.export(name, to, replace=True)


def compared(plain: list[str], pretrained: list[str], to: Path) -> str:
    """Write the comparison and the better ranker; returns the comparison, and where both are."""
    systems = {PLAIN: plain, PRETRAINED: pretrained}
    parts = report(systems)
    to = export(choose(systems)[1], to)
    written = _reports(to)
    for path, form in written.items():
        text = rendered(parts, form) + "\n"
        disk.atomically(path, lambda part, text=text: part.write_text(text, encoding="utf-8"))
    ranker = f"asutil.load_ranker({str(to)!r}), sentence_transformers.CrossEncoder({str(to)!r})"
    return f"{rendered(parts, 'text')}\n\nThe same as files: {', '.join(map(str, written))}\nThe ranker: {ranker}"


TO = "folder for the exported ranker; the comparison is stored next to it"
LIST = {"type": names_of, "required": True, "metavar": "RUN,..."}
command = commands.command(
    compared,
    option("--plain", "runs that were fine-tuned without pre-training, one for each seed", **LIST),
    option("--pretrained", "runs that were fine-tuned after pre-training, one for each seed", **LIST),
    option("--to", TO, type=Path, default=DEFAULTS["to"]),
    example="asutil own --plain finetune-<a>,finetune-<b> --pretrained finetune-<c>,finetune-<d>",
)
