"""A headless Chromium whose every request goes to a server of ours, and what stands in a page beside text."""

import re
import subprocess
import threading
from collections.abc import Iterable
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from as2_pdf import chromium as found  # noqa: F401

OWN = re.compile(r"(^|\.)(google|googleapis|gvt1)\.com$")  # where the browser itself looks for updates, whatever page it shows
BOOK = "http://book.test"
MARK = re.compile(r"pwn\d\d")
WORDS = ("title", "aria-label", "alt", "value", "placeholder", "data-candidate")  # attributes that are text
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-pings", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps"),
    *("--disable-domain-reliability", "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter"),
    "--gaia-url=http://accounts.google.com",
)


class Site:
    """A proxy on the loopback interface: it serves a folder as `book.test`, and gives nothing to those who ask another host."""

    def __init__(self, folder: Path):
        self.asked: list[str] = []
        site = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *given):
                super().__init__(*given, directory=str(folder))

            def do_GET(self):
                address = urlsplit(self.path)
                site.asked.append(self.path)
                if address.hostname == urlsplit(BOOK).hostname:
                    self.path = address.path
                    return super().do_GET()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

            do_POST = do_HEAD = do_PUT = do_OPTIONS = do_CONNECT = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def elsewhere(self) -> list[str]:
        """What hosts other than ours and the browser's own were asked."""
        hosts = {address: urlsplit(address if "//" in address else f"//{address}").hostname or "" for address in self.asked}
        return [address for address in self.asked if hosts[address] != urlsplit(BOOK).hostname and not OWN.search(hosts[address])]


def opened(chromium: str, site: Site, page: str, folder: Path, milliseconds: int = 2000) -> str:
    """A page of the site as the browser has it once its scripts have run; `folder` is the browser's own."""
    given = [f"--user-data-dir={folder}", f"--proxy-server=127.0.0.1:{site.server.server_port}", f"--virtual-time-budget={milliseconds}"]
    command = [chromium, *OPTIONS, *given, "--dump-dom", f"{BOOK}/{page}"]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=True).stdout


class Page(HTMLParser):
    """The text of a page, and where a `pwnNN` stands in it that is not text."""

    def __init__(self, html: str):
        super().__init__()
        self.pieces, self.live, self.inside = [], [], ""
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())

    def _note(self, what: Iterable[str]) -> None:
        self.live += [f"<{self.inside}> {text[:200]}" for text in what if MARK.search(text)]

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self._note([tag, *(f"{name}={value}" for name, value in attributes if name not in WORDS)])

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, text):
        if self.inside in ("script", "style"):
            self._note([text])
        else:
            self.pieces.append(text)

    def handle_comment(self, text):
        self._note([text])

    handle_decl = handle_pi = unknown_decl = handle_comment
