"""Archives that other projects' tools write while a test runs: warcio, wget and pywb, and an index by cdxj-indexer."""

from __future__ import annotations

import itertools
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests import needs
from tests.patience import deadline

PEERS = needs.ROOT / ".venv-peers" / "bin"
_FRONT = b"<title>Front</title><p>One <a href='two.html'>two</a> <img src='i.png'></p>"
_ODD_ADDRESSES = (
    "http://example.org/ö?a=b&c", "http://WWW2.Example.org:80/Path/?b=2&a=1#part", "https://example.org:8443/a//b/../c",
    "http://example.org/x;v=1?q=%C3%BC+x", "http://example.org/?",
)  # fmt: skip
_OTHER_KINDS = (("resource", "text/plain"), ("metadata", "application/warc-fields"))
_HTML = ("Content-Type", "text/html; charset=utf-8")


class _Writer(WARCWriter):  # type: ignore[misc]
    def __init__(self, file: BinaryIO, **options: Any) -> None:
        super().__init__(file, **options)
        self._minutes = itertools.count()

    def curr_warc_date(self) -> str:
        """Return another moment for each record: indexers sort those of one second each in its own way."""
        return f"{datetime(2026, 9, 1, tzinfo=UTC) + timedelta(minutes=next(self._minutes)):%Y-%m-%dT%H:%M:%SZ}"

    def _create_temp_file(self) -> BytesIO:
        # Its own is a temporary file that it never closes, which Python warns about.
        return BytesIO()


def write_with_warcio(path: Path, *, gzip: bool = True, version: str = "1.0", pages_only: bool = False) -> Path:
    """Write bodies plain and chunked, a revisit of the first page, odd addresses and every other kind of record."""
    with path.open("wb") as file:
        writer = _Writer(file, gzip=gzip, warc_version=version)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "warcio", "format": "WARC File"}))
        _write_exchange(writer, "http://example.org/", _FRONT)
        chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"<p>in ", b"two parts</p>", b""))
        _write_exchange(writer, "http://example.org/two.html", chunked, ("Transfer-Encoding", "chunked"))
        for url in () if pages_only else _ODD_ADDRESSES:
            _write_exchange(writer, url, "<p>Übergröße</p>".encode())
        original = writer.create_warc_record("http://example.org/", "response", payload=BytesIO(_FRONT),
                                             http_headers=StatusAndHeaders("200 OK", [_HTML], "HTTP/1.1"))  # fmt: skip
        writer.ensure_digest(original, block=False, payload=True)
        writer.write_record(writer.create_revisit_record(
            "http://example.org/", original.rec_headers.get_header("WARC-Payload-Digest"), "http://example.org/",
            original.rec_headers.get_header("WARC-Date"), http_headers=original.http_headers,
        ))  # fmt: skip
        for kind, media_type in () if pages_only else _OTHER_KINDS:
            writer.write_record(writer.create_warc_record(
                f"http://example.org/{kind}", kind, payload=BytesIO(b"fetchTimeMs: 12\r\n"),
                warc_content_type=media_type,
            ))  # fmt: skip
    return path


def _write_exchange(writer: WARCWriter, url: str, body: bytes, *headers: tuple[str, str]) -> None:
    answered = StatusAndHeaders("200 OK", [_HTML, *headers], "HTTP/1.1")
    asked = StatusAndHeaders("GET / HTTP/1.1", [("Host", "example.org")], is_http_request=True)
    response = writer.create_warc_record(url, "response", payload=BytesIO(body), http_headers=answered)
    request = writer.create_warc_record(url, "request", http_headers=asked)
    writer.write_request_response_pair(request, response)


def write_with_wget(folder: Path, name: str = "wget") -> Path:
    """Let wget fetch a small site of three files into a WARC."""
    wget = needs.program("wget")
    with served(write_site(folder / f"{name}-site")) as url:
        subprocess.run(
            [wget, "-q", "--no-config", "-r", "-p", "-e", "robots=off", f"--warc-file={folder / name}", url],
            cwd=folder, check=True,
        )  # fmt: skip
    return folder / f"{name}.warc.gz"


def write_with_pywb(folder: Path) -> Path:
    """Let pywb record a small site while its pages are looked at, one of them twice, and one that is not there."""
    needs.peer(PEERS / "wayback")
    work = folder / "pywb-recorder"
    work.mkdir()
    subprocess.run([PEERS / "wb-manager", "init", "c"], cwd=work, check=True, capture_output=True)
    with served(write_site(folder / "pywb-site")) as url, pywb(work, "--live", "--record") as origin:
        for page in ("index.html", "two.html", "two.html", "nowhere.html"):
            with suppress(HTTPError), urlopen(f"{origin}/c/record/id_/{url}{page}", timeout=deadline(30)) as answer:
                answer.read()
    (recorded,) = (work / "collections" / "c" / "archive").glob("*.warc.gz")
    return recorded.rename(folder / "pywb.warc.gz")


def index_with_cdxj_indexer(*paths: Path) -> list[str]:
    """Return the lines of the index that pywb's indexer makes of archives."""
    indexer = needs.peer(PEERS / "cdxj-indexer")
    done = subprocess.run([indexer, "--sort", *paths], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith("!")]


def write_site(folder: Path) -> Path:
    """Write two pages and an image, and return their folder."""
    folder.mkdir()
    (folder / "index.html").write_bytes(_FRONT)
    (folder / "two.html").write_text("<title>Second</title><p>The second page of a very small site.</p>")
    (folder / "i.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback while the block runs; its address ends in a slash."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def pywb(folder: Path, *options: str) -> Iterator[str]:
    """Run pywb's server over the collections of a folder while the block runs; its address has no slash."""
    needs.peer(PEERS / "wayback")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("w") as log:
        command: list[str | Path] = [PEERS / "wayback", *options, "-p", str(port), "-b", "127.0.0.1"]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        _await_answer(f"http://127.0.0.1:{port}/", server, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _await_answer(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    ends, pause = time.monotonic() + deadline(60), threading.Event()
    while time.monotonic() < ends and server.poll() is None:
        try:
            with urlopen(url, timeout=deadline(5)):
                return
        except URLError:
            pause.wait(0.1)
    raise AssertionError(f"pywb did not start: {log.read_text()[-2000:]}")
