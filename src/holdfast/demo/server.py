"""Serves the bundled websites on a loopback port; no request path reaches the file system.

`DemoSite` is the marsh station alone, at an address with a port. `DemoWeb` is the town and the station under
their names, with a nameserver that knows them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from holdfast.demo.answers import SiteAnswer, SiteContent
from holdfast.demo.marsh import marsh_content
from holdfast.demo.names import NameServer
from holdfast.demo.town import LAST_STATE, town_content

TOWN_HOST = "www.kelpsound.example"
MARSH_HOST = "marsh.kelpsound.example"
_HTTP_PORT = 80


class _Server(ThreadingHTTPServer):
    # A crawler that is killed leaves connections open: they must not keep the program alive.
    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, _Visit)
        self.sites: dict[str, SiteContent] = {}
        """By host name; the empty name is for all others."""


class _Visit(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "HoldfastDemo"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer from the table of hosts and paths; no other file is ever opened."""
        assert isinstance(self.server, _Server)
        sites = self.server.sites
        host = (self.headers.get("Host") or "").partition(":")[0].lower()
        content = sites.get(host) or sites.get("")
        if content is None:
            self._send(SiteAnswer(status=HTTPStatus.MISDIRECTED_REQUEST))
            return
        answer = content.at(self.path)
        etag = answer.headers.get("ETag")
        if etag is not None and self.headers.get("If-None-Match") == etag:
            answer = SiteAnswer(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag})
        self._send(answer)

    do_HEAD = do_GET

    def _send(self, answer: SiteAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        # RFC 9110, 8.6: a length in a 304 would be that of the body that is not sent.
        if answer.status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the crawl reports its requests."""


class _Running:
    """A server in a thread; leaving its `with` block, or `close`, stops it."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.address, self.port = str(server.server_address[0]), int(server.server_address[1])
        # Asked every 0.05 s whether to end: the usual half second would be felt in every test.
        self._thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="demo site", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving; must be called only once."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class DemoSite(_Running):
    """The marsh station alone, under any host name."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__(_Server((address, 0)))
        self._origin = f"http://{self.address}:{self.port}"
        # Where a crawl starts.
        self.url = f"{self._origin}/"
        # The path of every page, the forbidden ones included.
        self.pages: list[str] = []
        self._publish(is_later=False)

    def change(self) -> None:
        """Switch to the later edition of the site: pages were edited, one is gone, a lost one is back."""
        self._publish(is_later=True)

    def _publish(self, *, is_later: bool) -> None:
        content = marsh_content(self._origin, is_later=is_later)
        self.pages = content.pages
        self._server.sites[""] = content


WebPlace = tuple[str, int, int]
"""Address and port of the sites, and port of their nameserver; a new process can take over those of one that ended."""


class DemoWeb(_Running):
    """The town and the marsh station under their names, in their present state."""

    def __init__(self, place: WebPlace | None = None) -> None:
        super().__init__(_Server(place[:2]) if place is not None else _own_server())
        port = "" if self.port == _HTTP_PORT else f":{self.port}"
        self.town_url, self.marsh_url = f"http://{TOWN_HOST}{port}/", f"http://{MARSH_HOST}{port}/"
        self._server.sites = {TOWN_HOST: self.town(LAST_STATE), MARSH_HOST: self.marsh(is_later=True)}
        names = {TOWN_HOST: self.address, MARSH_HOST: self.address}
        self._names = NameServer(names, port=0 if place is None else place[2])
        self.place: WebPlace = self.address, self.port, self._names.port

    def town(self, state: int) -> SiteContent:
        return town_content(state, origin=self.town_url.rstrip("/"), marsh_url=self.marsh_url)

    def marsh(self, *, is_later: bool) -> SiteContent:
        return marsh_content(self.marsh_url.rstrip("/"), is_later=is_later)

    @property
    def variables(self) -> dict[str, str]:
        """The settings with which a crawl resolves the sites' names and is permitted to connect to them."""
        return {
            "HOLDFAST_FETCH_NAMESERVERS": f"127.0.0.1:{self._names.port}",
            "HOLDFAST_ALLOW_NETWORKS": "127.0.0.0/8",
        }

    @contextmanager
    def reachable(self) -> Iterator[None]:
        """Make the sites reachable for crawls that this process starts."""
        # Through the environment, because a crawl is a process of its own that reads its settings from there.
        variables = self.variables
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def close(self) -> None:
        super().close()
        self._names.close()


def _own_server() -> _Server:
    """Return a server at port 80 of a separate loopback address, so that URLs need no port; else at any port."""
    number = os.getpid()
    own = f"127.80.{number >> 8 & 255}.{number & 255}"
    try:
        # Not for every user of every machine: it takes a privilege, or Linux in a container, and all of 127/8.
        return _Server((own, _HTTP_PORT))
    except OSError:
        return _Server(("127.0.0.1", 0))
