"""Serves the bundled website on a loopback port that the kernel chose; reads no path from a request."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from importlib.resources.abc import Traversable
from types import TracebackType

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml; charset=utf-8",
}
_REDIRECTS = {"/home": "/", "/index.html": "/"}
_PRIVATE = "/private/"
# What the later edition of the site no longer has.
_REMOVED = ("/notes/winter-gulls.html",)


_BUNDLE = resources.files("holdfast.demo")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """One file as it is served."""

    body: bytes
    media_type: str
    etag: str


def _reply(body: bytes, suffix: str) -> _Reply:
    return _Reply(body=body, media_type=_TYPES[suffix], etag=f'"{hashlib.sha256(body).hexdigest()[:16]}"')


def _read(folder: Traversable, below: str, origin: str) -> dict[str, _Reply]:
    """Return every file of the site by the path that it answers to."""
    found: dict[str, _Reply] = {}
    for item in folder.iterdir():
        if item.is_dir():
            found |= _read(item, f"{below}{item.name}/", origin)
        elif (dot := item.name.rfind(".")) > 0 and item.name[dot:] in _TYPES:
            body = item.read_bytes()
            if item.name == "robots.txt":
                # The kernel chooses the port, so the file cannot name its sitemap by address.
                body = body.replace(b"{origin}", origin.encode())
            path = below if item.name == "index.html" else f"{below}{item.name}"
            found[path] = _reply(body, item.name[dot:])
    return found


def _sitemap(paths: list[str], origin: str) -> bytes:
    """Return a sitemap of every public page."""
    entries = "".join(f"  <url><loc>{origin}{path}</loc></url>\n" for path in paths)
    opening = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{opening}\n{entries}</urlset>\n'.encode()


class _Demo(ThreadingHTTPServer):
    """The server, and the files that it holds in memory."""

    # A crawler that is killed leaves connections open: they must not keep the program alive.
    daemon_threads = True
    files: dict[str, _Reply]


class _Visit(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "HoldfastDemo"
    sys_version = ""

    def do_GET(self) -> None:
        """Look the path up; nothing that is not in the table is ever opened."""
        # Looked up in a table, never joined to a folder: no request can leave the bundle.
        path = self.path.split("?", 1)[0]
        assert isinstance(self.server, _Demo)
        reply = self.server.files.get(path)
        if path in _REDIRECTS:
            self._send(HTTPStatus.MOVED_PERMANENTLY, b"", {"Location": _REDIRECTS[path]})
        elif reply is None:
            body = b"<!DOCTYPE html><title>Not found</title><p>The tide took this page. <a href='/'>Home</a></p>"
            self._send(HTTPStatus.NOT_FOUND, body, {"Content-Type": _TYPES[".html"]})
        elif self.headers.get("If-None-Match") == reply.etag:
            self._send(HTTPStatus.NOT_MODIFIED, b"", {"ETag": reply.etag})
        else:
            self._send(HTTPStatus.OK, reply.body, {"Content-Type": reply.media_type, "ETag": reply.etag})

    do_HEAD = do_GET

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        # RFC 9110, 8.6: a length in a 304 would be that of the body that is not sent.
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the crawl reports what it fetched."""


class DemoSite:
    """The running website; leaving its `with` block, or `close`, ends it."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._server = _Demo((address, 0), _Visit)
        self.address: str = address
        self.port: int = self._server.server_address[1]
        origin = f"http://{address}:{self.port}"
        # Where a crawl starts.
        self.url = f"{origin}/"
        self._origin = origin
        # The path of every page, the forbidden ones included.
        self.pages: list[str] = []
        self._publish(_read(_BUNDLE / "site", "/", origin))
        # Asked every 0.05 s whether to end: the usual half second would be felt in every test.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="demo site", daemon=True)
        self._thread.start()

    def change(self) -> None:
        """Put the later edition of the site in place: pages edited, one gone, one that was lost is back."""
        files = _read(_BUNDLE / "site", "/", self._origin) | _read(_BUNDLE / "later", "/", self._origin)
        self._publish({path: file for path, file in files.items() if path not in _REMOVED})

    def _publish(self, files: dict[str, _Reply]) -> None:
        self.pages = sorted(path for path, file in files.items() if file.media_type.startswith("text/html"))
        public = [path for path in self.pages if not path.startswith(_PRIVATE)]
        self._server.files = files | {"/sitemap.xml": _reply(_sitemap(public, self._origin), ".xml")}

    def close(self) -> None:
        """Stop serving; may be called once."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> DemoSite:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
