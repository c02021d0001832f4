"""Notebooks are run for real, by papermill and a kernel of their own, in processes that are forked from one that has imported torch.

`python forked.py serve SOCKET` imports what every notebook imports and then forks a process for each request: papermill with its
arguments, or a kernel. It ends when its standard input does. `python forked.py kernel SOCKET FILE` is the command of a Jupyter kernel:
it asks for a forked one and lasts as long as that.
"""

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

# Neither papermill, whose hooks look at how it is imported, nor pyplot, which chooses its backend then.
IMPORTED = (
    *("torch", "torch.utils.tensorboard", "transformers", "transformers.trainer", "transformers.models.roberta.modeling_roberta"),
    *("datasets", "tokenizers", "safetensors.torch", "torchmetrics", "sklearn.decomposition", "scipy.stats", "matplotlib"),
    *("livekit.blingfire", "pandas", "pyarrow.parquet", "nbclient", "nbformat", "click", "requests", "tqdm.auto", "jsonschema"),
    "ipykernel.kernelapp",
)
KERNEL = {"display_name": "Python 3", "language": "python"}


# ------------------------------------------------------------------ the process that forks


def serve(path: str) -> None:
    for name in IMPORTED:
        with contextlib.suppress(ImportError):  # what is not installed cannot be needed
            importlib.import_module(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:  # without threads, which a fork would leave behind
        if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
            os.killpg(0, signal.SIGKILL)
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _attend(connection)
        connection.close()


def _attend(connection) -> None:
    """Fork what is asked for, wait for it, and give back its exit status; kill it if the client has disconnected."""
    message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 2)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if not child:
        connection.close()
        _become(json.loads(message), streams)
    threading.Thread(target=lambda: connection.recv(1) or _killed(child), daemon=True).start()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(status).encode())
    os._exit(0)


def _killed(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _become(request: dict, streams) -> None:
    """Be the process that was asked for: its environment, folder, output and command line."""
    for number, stream in zip((1, 2), streams):
        os.dup2(stream, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = request["command"]
    status = 1
    try:
        if request["kernel"]:
            from ipykernel import kernelapp

            kernelapp.launch_new_instance(sys.argv[1:])
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


# ------------------------------------------------------------------ those who ask


def ask(path: str, command: list[str], folder, environment: dict, streams, kernel: bool) -> int:
    """The exit status of a forked process, once it has ended."""
    request = {"command": command, "folder": str(folder), "environment": environment, "kernel": kernel}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [json.dumps(request).encode()], streams)
        return json.loads(connection.recv(64) or b"1")


class Forking:
    """The process that forks, and a kernel named forked that comes from it."""

    def __init__(self, folder: Path):
        self.path, self.folder = str(folder / "socket"), folder
        command = [sys.executable, __file__, "serve", self.path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        spec = folder / "kernels" / "forked"
        spec.mkdir(parents=True)
        argv = [sys.executable, __file__, "kernel", self.path, "{connection_file}"]
        (spec / "kernel.json").write_text(json.dumps(KERNEL | {"argv": argv}))
        assert self.process.stdout.readline() == b"ready\n"

    def run(self, command: list[str], folder, environment: dict) -> subprocess.CompletedProcess:
        """What `subprocess.run(command, ...)` gives, of a Python program."""
        environment = environment | {"JUPYTER_PATH": str(self.folder)}
        with (self.folder / "out").open("w+b") as out, (self.folder / "err").open("w+b") as err:
            status = ask(self.path, command, folder, environment, [out.fileno(), err.fileno()], kernel=False)
            texts = [stream.seek(0) or stream.read().decode() for stream in (out, err)]
        return subprocess.CompletedProcess(command, status, *texts)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


if __name__ == "__main__":
    task, path, *rest = sys.argv[1:]
    if task == "serve":
        serve(path)
    command = ["ipykernel_launcher", "-f", *rest]
    sys.exit(ask(path, command, Path.cwd(), dict(os.environ), [1, 2], kernel=True))
