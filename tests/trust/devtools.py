"""A headless Chromium that stays open: one process and one tab for many pages, driven by its DevTools protocol."""

import contextlib
import json
import subprocess
import time
from pathlib import Path

import websocket

from .browser import OPTIONS, Site

START, PAGE = 30, 120  # seconds: for the browser to start, for one call or one page


class Tab:
    """A tab whose requests all go to a site; `events` holds what the browser reported since the last `open`."""

    def __init__(self, chromium: str, site: Site, folder: Path):
        own = [f"--user-data-dir={folder}", f"--proxy-server=127.0.0.1:{site.server.server_port}", "--remote-debugging-port=0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([chromium, *OPTIONS, *own, "about:blank"], **quiet)
        self.events, self.calls, self.session = [], 0, {}
        port, path = _address(folder / "DevToolsActivePort", self.process)
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=PAGE, suppress_origin=True)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Network.setCacheDisabled", cacheDisabled=True)  # every page asks for all that it needs

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, websocket.WebSocketException):
            self.session = {}
            self.call("Browser.close")
        try:
            self.process.wait(START)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def call(self, method: str, **parameters) -> dict:
        """The answer to a command. Raises: RuntimeError with the browser's own message."""
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": parameters, **self.session}))
        while (message := json.loads(self.socket.recv())).get("id") != self.calls:
            self.events.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def run(self, script: str):
        """The value of an expression in the page, awaited. Raises: RuntimeError for an error of the script."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["result"].get("description") or str(done["exceptionDetails"]))
        return done["result"].get("value")

    def open(self, address: str) -> None:
        """Loads a page and all that it asks for."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not self.told("Page.loadEventFired"):
            self.events.append(json.loads(self.socket.recv()))

    def told(self, method: str) -> list[dict]:
        """The events of one kind since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]


def _address(file: Path, process: subprocess.Popen) -> list[str]:
    """Port and path of the protocol, which the browser writes when it is ready."""
    end = time.monotonic() + START
    while time.monotonic() < end and process.poll() is None:
        if file.is_file() and len(lines := file.read_text().split()) == 2:
            return lines
        time.sleep(0.05)
    process.kill()
    raise RuntimeError(f"expected {process.args[0]} to be ready in {START} s, it was not (exit status {process.poll()})")
