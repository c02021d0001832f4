"""What papermill loads before its command line runs: strict parameters, a default output path, output shown live.

papermill 2.7 refuses a missing OUTPUT_PATH and only logs an unknown parameter. It imports the entry points of its
engines, and so this module, before `papermill.cli` defines its command. So the command is wrapped as soon as that
module is imported.
"""

import base64
import contextlib
import functools
import importlib.util
import os
import sys
import tempfile
from importlib.abc import MetaPathFinder
from keyword import iskeyword
from pathlib import Path

import click

LONGEST_SOCKET_FOLDER = 90  # characters: macOS takes 104 for the whole path of a socket
KERNEL = "python3"  # of this very Python, whatever kernels of that name the machine has


def is_ours(notebook: str) -> bool:
    """Whether `notebook` names a notebook, there or not, of this project's own `notebooks/` folder."""
    path = Path(notebook).resolve()
    if path.parent.name != "notebooks" or path.suffix not in ("", ".ipynb"):
        return False
    from . import rundir

    try:
        return path.parent.parent == rundir.root().resolve()
    except FileNotFoundError:  # no project of ours anywhere near
        return False


@contextlib.contextmanager
def refusing(where: str = "", *more: type[Exception]):
    """Wrong inputs, and errors of more kinds, become the command's own refusal: one line and exit code 2."""
    try:
        yield
    except (ValueError, OSError, *more) as error:
        raise click.UsageError(f"{where}{error}") from error


def given_parameters(options: dict) -> dict:
    """The explicit parameters in papermill's own order and with its own types: -b, -f, -y, -p, -r; the last one wins.

    Raises: click.UsageError for YAML that is no mapping and for a name that is no identifier.
    """
    import yaml
    from papermill.iorw import NoDatesSafeLoader, papermill_io

    from asutil.io import files, private

    parse = lambda text: files.yaml_value(text, NoDatesSafeLoader)
    read = lambda path: parse(papermill_io.read(path, [".json", ".yaml", ".yml"]))

    def add(values, where=""):
        for name in values:
            if not (isinstance(name, str) and name.isidentifier() and not iskeyword(name)):
                raise click.UsageError(f"{where}a parameter's name is a Python identifier, got {name!r:.80}")
        given.update(values)

    given = {}
    forms = {"-b": ("base64", lambda text: parse(base64.b64decode(text))), "-f": ("file", read), "-y": ("yaml", parse)}
    for option, (name, load) in forms.items():
        for text in options[f"parameters_{name}"]:
            with refusing(f"{option} {text}: ", RecursionError, yaml.YAMLError):
                values = load(text) or {}
            if not isinstance(values, dict):
                raise click.UsageError(f"{option} {text} expects `name: value` pairs, got {values!r:.80}")
            add(values, f"{option} {text}: ")
    add({name: private.value_of_word(value) for name, value in options["parameters"]})
    add(dict(options["parameters_raw"]))
    return given


def announce(folder: Path, record: dict) -> str:
    """The message about a finished run instead of a new one: its folder, its main metrics, how to run it again."""

    def figures(metrics: dict, *names: str):
        """A line a split, or ranker and split: the metrics of a record may have a level more."""
        if any(isinstance(value, dict) for value in metrics.values()):
            for name, inner in metrics.items():
                yield from figures(inner, *names, name)
        else:
            shown = [f"{name} {value:.4g}" for name, value in metrics.items() if isinstance(value, float)]
            yield f"  {', '.join(names)}: {', '.join(shown)}"

    from . import identity, parameters, provenance, rundir

    others = {name: part["metrics"] for name, part in record.get("transfer", {}).items()}
    lines = [f"Already finished: {folder}", *figures({**record.get("metrics", {}), **others})]
    same = "The same parameters give the same run."
    if record.get("sources_sha256") != provenance.sources_sha256():
        same = "It was made with other code of asutil or aslab, which its name does not tell."
    given = record.get("given", {})
    names = [given.get(name) for name in (*identity.STARTS, *identity.STAGES)]
    for ranker in parameters.names_of(given.get("models") or ""):
        names += identity.fused(ranker, folder.resolve().parent)
    starts = filter(None, (rundir.find(str(name), folder.resolve().parent) for name in names))
    finished = (start for start in starts if (start / "record.json").is_file())
    made = {start.name: rundir.read_record(start).get("created", "") for start in finished}
    if later := [name for name, created in made.items() if created > record.get("created", "")]:
        lines.append(f"{' and '.join(later)} was made again since: this run used an earlier one.")
    return "\n".join([*lines, f"{same} To run it again, delete {folder}."])


def choose_kernel(options: dict) -> None:
    """Take this Python's kernel, whatever the notebook names, or the one that was asked for.

    Raises: click.UsageError for a kernel that there is not.
    """
    from asutil.io import spelling

    options["kernel"], options["language"] = options["kernel"] or KERNEL, options["language"] or "python"
    if options["kernel"] != KERNEL:
        from jupyter_client.kernelspec import KernelSpecManager

        known = sorted({KERNEL, *KernelSpecManager().find_kernel_specs()})
        if options["kernel"] not in known:
            hint = spelling.nearest(options["kernel"], known)
            raise click.UsageError(
                f"-k {options['kernel']}: no kernel has this name{hint or '.'} There are: {', '.join(known)}. "
                f"Without -k, papermill takes its own Python's."
            )


def prepare(options: dict) -> None:
    """Check the parameters of a notebook of this project; fill in its output path, engine and kernel, in place.

    Raises: click.UsageError (exit code 2) for a wrong parameter; click.exceptions.Exit(0) for a finished run.
    """
    from . import datasets, identity, parameters, rundir

    notebook = Path(options["notebook_path"]).stem
    text = [pair for pair in options["parameters"] if parameters.stays_text(notebook, *pair)]
    options["parameters"] = tuple(pair for pair in options["parameters"] if pair not in text)
    options["parameters_raw"] = (*text, *options["parameters_raw"])
    given = given_parameters(options)
    raw = dict(options["parameters_raw"])
    meant = {name: parameters.as_meant(notebook, name, value) for name, value in given.items() if name not in raw}
    options["parameters"] += tuple((name, repr(value)) for name, value in meant.items() if value is not given[name])
    given |= meant
    with refusing():
        parameters.require_no_none(notebook, given)
        folder = identity.folder_for(notebook, given)
    choose_kernel(options)
    if not options["output_path"]:
        folder = Path(os.path.relpath(folder))
        if (folder / "record.json").is_file():
            with refusing():
                finished = announce(folder, rundir.read_record(folder))
            click.echo(finished)
            raise click.exceptions.Exit(0)
    with refusing():
        datasets.check(notebook, given)
    if not options["output_path"]:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"runs_dir: {folder} cannot be written: {error.strerror}") from error
        options["output_path"] = str(folder / "notebook.ipynb")
    if not options["engine"] and not options["log_output"] and options["output_path"] != "-":
        options["engine"] = "asutil"


def wrap(command: click.Command) -> None:
    """Make papermill's command prepare runs of this project's notebooks; other notebooks stay as they are."""
    from asutil.io import spelling

    from . import rundir

    execute = command.callback

    @functools.wraps(execute)
    def prepared(**options):
        notebook = options["notebook_path"]
        if not (notebook and is_ours(notebook)):
            return execute(**options)
        if not Path(notebook).is_file():
            folder = rundir.root() / "notebooks"
            near = spelling.nearest(f"{Path(notebook).stem}.ipynb", [path.name for path in folder.glob("*.ipynb")])
            raise click.UsageError(f"no notebook {Path(notebook).name!r} in {folder.name}/{near}")
        try:
            if not options["help_notebook"]:
                prepare(options)
            return execute(**options)
        except KeyboardInterrupt:
            click.echo("\nstopped: the same command continues it", err=True)
            raise click.exceptions.Exit(130) from None

    command.callback = prepared


class WhenImported(MetaPathFinder):
    """Waits for the import of `papermill.cli`, then wraps the command that it defines."""

    def find_spec(self, name, path=None, target=None):
        if name != "papermill.cli":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_wrap(module):
            execute(module)
            wrap(module.papermill)

        spec.loader.exec_module = execute_and_wrap
        return spec


sys.meta_path.insert(0, WhenImported())


# In a kernel tqdm and transformers draw widgets, which no terminal shows: this makes them write text bars.
TEXT_BARS = 'import sys, tqdm.std; sys.modules["tqdm.autonotebook"] = tqdm.std; get_ipython().config.pop("IPKernelApp", None); del sys, tqdm'  # noqa: E501


class Live:
    """Writes the output of cells to this process's own streams, while it comes.

    On a terminal the text is written as it is. papermill's bar is removed before it and drawn again after a full
    line, so that a cell's own progress bar moves in place. In a file or a pipe a line is written when it is complete,
    in its last state.
    """

    def __init__(self):
        self.pending = {"stdout": "", "stderr": ""}
        self.bar_at = None

    def show(self, name: str, text: str, bar=None) -> None:
        stream = getattr(sys, name)
        if stream.isatty():
            if bar is not None:
                bar.clear()
            stream.write(text)
            stream.flush()
            if bar is not None and text.endswith("\n"):
                bar.refresh()
            return
        if bar is not None and self.bar_at != bar.n and not sys.stderr.isatty():
            sys.stderr.write("\n")  # a bar in a file ends no line of its own
            sys.stderr.flush()
            self.bar_at = bar.n
        *lines, self.pending[name] = (self.pending[name] + text).replace("\r\n", "\n").split("\n")
        for line in lines:
            stream.write(line.rsplit("\r", 1)[-1] + "\n")
        stream.flush()

    def close(self) -> None:
        for name, text in self.pending.items():
            if text:
                getattr(sys, name).write(text.rsplit("\r", 1)[-1] + "\n")


def plain_text(output: dict) -> str:
    """The text of a displayed result; "" for a picture, a widget or an object's address."""
    data = output.get("data", {})
    text = "".join(data.get("text/plain", ""))
    if text.startswith("<") or any(kind.startswith(("image/", "application/vnd.jupyter.widget")) for kind in data):
        return ""
    return text and text + "\n"


def __getattr__(name: str):
    """`Engine`, made when papermill asks for it: this module must be whole before papermill's engines are."""
    if name != "Engine":
        raise AttributeError(name)
    import asyncio

    from jupyter_client.kernelspec import KernelSpecManager
    from nbclient.util import ensure_async, run_sync
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import NBClientEngine
    from papermill.log import logger

    class Client(PapermillNotebookClient):
        def create_kernel_manager(self):
            folders = {"kernel_dirs": []} if self.kernel_name == KERNEL else {}
            specs = KernelSpecManager(**folders)  # without folders it knows the kernel of this Python alone
            # Ports are chosen before the kernel takes them: of kernels that start at once two may get the same one. Files do not clash.
            place = {"transport": "ipc", "ip": f"{self.sockets}/k"} if len(self.sockets) < LONGEST_SOCKET_FOLDER else {}
            self.km = self.kernel_manager_class(kernel_name=self.kernel_name, kernel_spec_manager=specs, **place)
            return self.km

        def papermill_execute_cells(self):
            self.kc.execute(TEXT_BARS, silent=True)
            try:
                super().papermill_execute_cells()
            except KeyboardInterrupt:
                run_sync(self.interrupted)()
                raise

        async def interrupted(self):
            """Interrupt the cell, too, and wait until what waits for it has ended: else that complains when it is dropped."""
            await ensure_async(self.km.interrupt_kernel())
            waiting = asyncio.all_tasks() - {asyncio.current_task()}
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), timeout=10)

        def process_message(self, *args, **kwargs):
            output = super().process_message(*args, **kwargs)
            if output and output.output_type == "stream":
                self.live.show(output.name, "".join(output.text), self.nb_man.pbar)
            elif output and plain_text(output):
                self.live.show("stdout", plain_text(output), self.nb_man.pbar)
            return output

    class Engine(NBClientEngine):
        """papermill's engine, but it shows output as it comes and stores progress bars in their last state."""

        @classmethod
        def nb_kernel_name(cls, nb, name=None):
            return name or KERNEL

        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, start_timeout=60, execution_timeout=None, **options):
            own = {name: options.get(name) for name in ("stdout_file", "stderr_file")}
            own |= {"kernel_name": kernel_name, "timeout": execution_timeout, "startup_timeout": start_timeout}
            own |= {"coalesce_streams": True, "extra_arguments": ["--log-level=ERROR"]}
            client = Client(nb_man, log=logger, **own)
            client.live = Live()
            try:
                with tempfile.TemporaryDirectory(prefix="kernel-", ignore_cleanup_errors=True) as client.sockets:
                    return client.execute()
            finally:
                client.live.close()

    globals()["Engine"] = Engine
    return Engine
