"""Nothing that comes from outside is run: pickles, Python of models, parameters, names of runs, texts in pages; and no page tells of us."""

import ast
import base64
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from click.testing import CliRunner
from papermill.cli import papermill
from tqdm import tqdm

from aslab import identity, processes, rundir, runs, trec
from asutil.io import checkpoints, disk
from tests.trust import Broken, hostile_book, must, pickled, published
from tests.trust.payloads import PAYLOADS
from tests.trust.published import STRANGER

SHORT = {"steps": 6, "batch_size": 8, "max_tokens": 48, "warmup_steps": 1}
PRETRAIN, FINETUNE = {"validation_examples": 40}, {"steps": None, "epochs": 1}
# Heard in every process below: which classes a pickle asks for, and names of this machine's user and host that are nobody's.
HEARD = f"""
import os, socket, sys, traceback
name, kept = {STRANGER["host"]!r}, os.uname()
socket.gethostname = lambda: name
socket.getfqdn = lambda *_: name + ".example"
os.uname = lambda: os.uname_result((kept.sysname, name, kept.release, kept.version, kept.machine))
def note(kind, text):
    with open(os.environ["TRUST_HEARD"], "a") as stream:
        stream.write(f"{{kind}} {{text}}\\n")
def heard(event, given):
    if event == "pickle.find_class":
        note("pickle", f"{{given}} {{[frame.name for frame in traceback.extract_stack()[-6:-1]]}}")
note("listens", os.getpid())
sys.addaudithook(heard)
"""


def check(full: bool, seed: int, folder: Path) -> dict:
    """Figures: pickles refused, names and values of parameters, names of runs, payloads, pages, and three figures that are 0."""
    root, mirror = hostile_book.copied(folder / "project"), folder / "mirror"
    marker, figures = folder / "ran", {}
    told = strangers(folder, root, mirror)
    started = Started(full, folder, root, marker, told)
    with started:
        figures["pickles_refused"] = pickled.refused(folder / "pickles")
        figures["models_with_python"] = pickled.remote(folder / "python")
        figures["sources_read"] = pickled.sources_say_nothing_unsafe()
        figures |= parameters(root, marker, seed)
        figures["run_names"] = run_names(folder / "names", root)
        hostile_book.plant(root, mirror)
        figures["processes_heard"] = started.finished()
    must(not marker.exists(), "a value of a parameter was run")
    html = hostile_book.build(root, told, full)
    figures |= {"payloads": len(PAYLOADS)} | published.pages(html, full, folder)
    return figures | {"places_or_names": published.traces(html, root, folder, started.runs())}


# ------------------------------------------------------------------ runs that are listened to


def strangers(folder: Path, root: Path, mirror: Path) -> dict:
    """The environment of a user, a home and a host that nobody has, in which every pickle is heard."""
    site = folder / "site"
    for place in (site, *(folder / STRANGER[name] for name in ("home", "temporary"))):
        place.mkdir()
    (site / "sitecustomize.py").write_text(HEARD, encoding="utf-8")
    named = {"HOME": str(folder / STRANGER["home"]), "TMPDIR": str(folder / STRANGER["temporary"])}
    named |= dict.fromkeys(("USER", "LOGNAME", "USERNAME"), STRANGER["user"]) | {"TRUST_HEARD": str(folder / "heard")}
    return hostile_book.environment(root, mirror, **named, PYTHONPATH=f"{site}{os.pathsep}{root}")


def code(marker: Path) -> list[str]:
    """Texts that write the marker where Python, YAML, a template or a shell takes them for its own."""
    run, touch = f"__import__('pathlib').Path({str(marker)!r}).touch()", f"touch {marker}"
    around = ['"+{}+"', "'+{}+'", '"""+{}+"""', "'''+{}+'''", '\\"+{}+\\"', "\\'+{}#"]
    around += ['"\n{}\n"', "'\n{}\n'", '\\\n"\n{}\n#', '\\\\"\n{}\n"']
    around += ["{}", "{{{}}}", "{{{{ {} }}}}", "x;{}", "x\n{}", "x\r{}", "x\x0c{}", "x\u2028{}", "${{{}}}", "%s{}", "\t{}\\", "#\n{}\n"]
    shell = ["$({})", "`{}`", "; {}", "!{}", "%%bash\n{}", "x' ; {} ; '", "get_ipython().system('{}')"]
    tags = [f"!!python/object/apply:os.system ['{touch}']", f'!!python/object/new:exec ["{run}"]']
    return [text.format(run) for text in around] + [text.format(touch) for text in shell] + tags


class Started:
    """A pre-training and a fine-tuning, in the background, on files whose names are code; with payloads in every text."""

    def __init__(self, full: bool, folder: Path, root: Path, marker: Path, told: dict):
        self.folder, self.root, self.told = folder, root, told
        named = "".join(text.replace("/", "\u2215") for text in (code(marker)[2], "\n", "<img src=pwn91 onerror=alert(1)>")) + "{0}%s"
        self.corpus, self.questions = (folder / f"{named[:200]}{kind}.jsonl" for kind in ("c", "q"))
        documents = [" ".join(PAYLOADS[n : n + 3]) + "\n\n" + " ".join(PAYLOADS[n + 3 : n + 7]) for n in range(43)]
        self.corpus.write_text("".join(json.dumps({"text": f"A sentence that is plain. {text}"}) + "\n" for text in documents))
        texts = [(f"{n} {PAYLOADS[n]}", PAYLOADS[n - m], m == 1) for n in range(50) for m in range(1, 5)]
        rows = [{"question": asked, "answer": text, "label": int(right), "document_title": asked} for asked, text, right in texts]
        self.questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
        pretrain = {"corpus": self.corpus} | ({} if full else SHORT | PRETRAIN)
        finetune = {"dataset": self.questions, "model": "tiny"} | ({} if full else SHORT | FINETUNE)
        self.given = {"pretrain": pretrain, "finetune": finetune}

    def __enter__(self):
        command = [sys.executable, "-c", CHAIN, json.dumps(self.given, default=str)]
        with (self.folder / "runs.log").open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=self.root, env=self.told, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()

    def finished(self) -> int:
        """Wait for both; the number of processes in which no pickle was loaded. Raises: Broken where one was, or a run failed."""
        status = self.process.wait(timeout=3600)
        said = (self.folder / "runs.log").read_text(encoding="utf-8", errors="replace")
        must(status == 0 and len(self.runs()) == 2, f"two runs on files with strange names should finish: {said[-2000:]}")
        lines = (self.folder / "heard").read_text(encoding="utf-8").splitlines()
        loaded = [line for line in lines if not line.startswith("listens")]
        must(not loaded, f"no pickle is loaded in training, fine-tuning and scoring: {loaded[:3]}")
        must(len(lines) >= 5, f"five processes at least should have been heard, got {len(lines)}")
        return len(lines)

    def runs(self) -> list[Path]:
        """The folders of the runs that these made."""
        found = [path.parent for path in sorted((self.root / "runs").glob("*/record.json")) if (path.parent / "run.json").is_file()]
        return [path for path in found if path.name.startswith(("pretrain-", "finetune-"))]


# Pre-train, then fine-tune what came of it, then rank: as a user's shell would do one after the other.
CHAIN = """
import json, os, subprocess, sys
from pathlib import Path
given = json.loads(sys.argv[1])
for notebook in ("pretrain", "finetune"):
    values = [word for name, value in given[notebook].items() if value is not None for word in ("-p", name, str(value))]
    subprocess.run([sys.executable, "-m", "papermill", f"notebooks/{notebook}.ipynb", *values], check=True)
    (made,) = [path.parent for path in Path("runs").glob(f"{notebook}-*/record.json") if (path.parent / "run.json").is_file()]
    given["finetune"]["model"] = made.name
rank = f"import asutil; print(asutil.load_ranker({made.name!r}).rank('Which?', ['One.', 'Two.']))"
subprocess.run([sys.executable, "-c", rank], check=True)
"""


# ------------------------------------------------------------------ parameters


def parameters(root: Path, marker: Path, seed: int) -> dict:
    """Names that are code are refused before anything is made; values that are code reach a notebook as the same text. Counts of both."""
    texts, names, values = code(marker), 0, 0
    before = _files(root)
    with _inside(root):
        for text in tqdm(texts, desc="names that are code", leave=False):
            for given in _ways(text, "1"):
                _refused(given, marker, "a name that is code")
                names += 1
            _refused_by_ranks(text, marker)
            names += 1
        for tag in texts[-2:]:
            for given in (["-y", f"steps: {tag}"], ["-b", base64.b64encode(f"{{steps: {tag}}}".encode()).decode()]):
                _refused(given, marker, "a tag that is code")
                names += 1
        must(_files(root) == before, f"what is refused should leave nothing behind, got {sorted(_files(root) - before)[:3]}")
        for text in tqdm(texts, desc="values that are code", leave=False):
            for given in _ways("runs_dir", text):
                _kept(given, text, marker)
                values += 1
            _kept_by_ranks(root, text, marker)
            values += 1
            for given in _ways("objective", text):
                _refused(given, marker, "a value that is code where some words are allowed")
                values += 1
    return {"names_with_code": names, "values_with_code": values}


def _files(root: Path) -> set[str]:
    """What lies in a project, but for the folder of runs, in which others work at the same time."""
    kept = [top for top in root.iterdir() if top.name != "runs"]
    return {path.relative_to(root).as_posix() for top in kept for path in top.rglob("*") if "__pycache__" not in path.parts}


@contextmanager
def _inside(root: Path) -> Iterator[None]:
    """In the folder of another project, as a user of it."""
    with patch.dict(os.environ, {"ASUTIL_PROJECT": str(root)}), chdir(root), tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        yield


def _ways(name: str, value: str) -> Iterable[list[str]]:
    """One parameter in each of papermill's forms."""
    text = json.dumps({name: value})
    path = Path(os.environ["TMPDIR"]) / "given.yml"
    path.write_text(text, encoding="utf-8")
    return [["-p", name, value], ["-r", name, value], ["-y", text], ["-f", str(path)], ["-b", base64.b64encode(text.encode()).decode()]]


def _papermill(given: list[str], out: Path) -> tuple[int, str]:
    done = CliRunner().invoke(papermill, ["notebooks/pretrain.ipynb", str(out), "--prepare-only", "--no-progress-bar", *given])
    return done.exit_code, done.output


def _refused(given: list[str], marker: Path, what: str) -> None:
    out = Path(os.environ["TMPDIR"]) / "refused.ipynb"
    status, said = _papermill(given, out)
    must(status == 2 and not out.exists(), f"{what}: exit code 2 and no notebook were promised for {given}, got {status}: {said[-300:]}")
    must(not marker.exists(), f"{what}: it was run, {given}")


def _kept(given: list[str], value: str, marker: Path) -> None:
    """The cell that papermill writes, run as the kernel runs it: the value, and nothing but it."""
    out = Path(os.environ["TMPDIR"]) / "kept.ipynb"
    status, said = _papermill(given, out)
    must(status == 0, f"a folder may have any name, got {status} for {given}: {said[-300:]}")
    cells = json.loads(out.read_text(encoding="utf-8"))["cells"]
    (source,) = ["".join(cell["source"]) for cell in cells if "injected-parameters" in cell["metadata"].get("tags", [])]
    try:
        lines, got = ast.parse(source).body, {}
        exec(source, got)
    except Exception as error:
        raise Broken(f"an assignment was promised for {value!r}, got {source!r}: {error}") from error
    must(len(lines) == 1 and isinstance(lines[0], ast.Assign), f"one assignment was promised for {value!r}, got {source!r}")
    must(got["runs_dir"] == value, f"the value {value!r} was promised, the notebook has {got['runs_dir']!r}")
    must(not marker.exists(), f"the value {value!r} was run")


def _ranks(*given: str) -> None:
    with patch.object(sys, "argv", ["asutil.training.processes", *given]), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        processes.main()


def _refused_by_ranks(name: str, marker: Path) -> None:
    try:
        _ranks("notebooks/pretrain.ipynb", "-p", name, "1")
    except (ValueError, SystemExit):
        must(not marker.exists(), f"a name that is code: it was run by asutil.training.processes, {name!r}")
    else:
        must(False, f"a name that is code should be refused by asutil.training.processes: {name!r}")


def _kept_by_ranks(root: Path, value: str, marker: Path) -> None:
    """A notebook of two cells by `asutil.training.processes`: its training sees the value."""
    path, seen = root / "notebooks" / "seen.ipynb", Path(os.environ["TMPDIR"]) / "seen"
    training = f"class training:\n    train = lambda text: open({str(seen)!r}, 'w', newline='').write(text)\ntraining.train(runs_dir)"
    tagged = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": 'runs_dir: str = "runs"  # where runs are kept'}
    trains = {"cell_type": "code", "metadata": {"tags": ["train"]}, "source": training}
    path.write_text(json.dumps({"cells": [tagged, trains]}), encoding="utf-8")
    try:
        _ranks("notebooks/seen.ipynb", "-p", "runs_dir", value)
        with seen.open(newline="") as stream:
            must(stream.read() == value, f"the value {value!r} should reach the training of asutil.training.processes as it is")
    finally:
        path.unlink()
    must(not marker.exists(), f"the value {value!r} was run by asutil.training.processes")


# ------------------------------------------------------------------ names of runs


def run_names(folder: Path, root: Path) -> int:
    """Names that would lead out of `runs/`: nothing is read or written there; the number of names."""
    ending = "-0123456789ab"
    outside = folder / f"outside{ending}"
    outside.mkdir(parents=True)
    disk.write_json(outside / "record.json", {"name": "outside", "metrics": {}} | runs.hashes(outside))
    kept = root / "runs"
    kept.mkdir(exist_ok=True)
    (kept / f"link{ending}").symlink_to(outside)
    parts = ["../" * n for n in range(1, 6)]
    parts += ["..\\", "....//", "%2e%2e%2f", "./", "x/../../", "//", "\u2215..\u2215", "\x00", "\n", "\u202e"]
    parts += ["n" * 300, "n" * 5_000, "~", "$HOME/", "`id`", "a\x00b/../", "\ud800", "con", "*", "?", "C:\\", "file:///", "\\\\host\\"]
    names = [f"{part}outside{ending}" for part in parts] + [f"link{ending}", f"link{ending}/", *(f"{text}{ending}" for text in PAYLOADS)]
    with _inside(root):
        for name in names:
            found = lambda name: rundir.read_record(rundir.find(name) or name)
            for read in (rundir.read_record, found, checkpoints.source, lambda n: trec.export(n, "out")):
                _not_outside(read, name)
            _written_inside(name, kept)
        must(f"link{ending}" not in set(runs.read_all().name), "a link in runs/ is no run")
    (kept / f"link{ending}").unlink()
    return len(names)


def _not_outside(read, name: str) -> None:
    try:
        found = read(name)
    except (ValueError, OSError):
        return
    must(found in (name, f"{name}/model") or str(found).startswith("."), f"the name {name!r} should lead nowhere, got {found}")


def _written_inside(name: str, kept: Path) -> None:
    """Where a run that is given a name as its model or corpus would be: in `runs/`, under a name of a run's form."""
    for notebook, given in (("finetune", {"model": name}), ("rerank", {"first_run": name, "joint_run": name})):
        try:
            folder = identity.folder_for(notebook, given, must_exist=False)
        except (ValueError, OSError):
            continue
        must(folder.parent == kept and rundir.NAME.fullmatch(folder.name), f"{name!r}: a folder in runs/ was promised, got {folder}")
