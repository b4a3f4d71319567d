"""A real documentation site from Debian's packages: we capture what `wget -r` finds, and nothing is left open."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests import needs, patience
from tests.flow.crawler import Crawler

_DOCS = Path("/usr/share/doc/python3-doc/html")
_EXPLAINED = {"/_static/opensearch.xml"}
"""What wget follows and we do not: `<link rel="search">` describes a search box to a browser; no page shows it."""


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture
def documentation() -> Iterator[str]:
    if not _DOCS.is_dir():
        needs.lacking("Debian's python3-doc", "`tools/services` installs it")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(_DOCS.resolve())))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_real_site_is_captured_as_completely_as_wget_finds_it(
    documentation: str, crawler: Crawler, tmp_path: Path
) -> None:
    options = ("-q", "-r", "-l", "inf", "-p", "-np", "-e", "robots=off", "-P", str(tmp_path / "wget"))
    with subprocess.Popen(["wget", *options, documentation]) as wget:
        crawler.crawl(documentation, "--delay", "0", "--depth", "-1", "--no-sitemaps", timeout_s=110)
        wget.wait(timeout=patience.deadline(110))

    outcomes = crawler.outcomes()
    captured = {_path(url) for url, (outcome, _) in outcomes.items() if outcome == "success"}
    root = tmp_path / "wget" / urlsplit(documentation).netloc
    found = {f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file()}
    assert len(found) > 400
    assert found - captured - _without_query(captured) == _EXPLAINED
    open_ones = [url for url, (outcome, _) in outcomes.items() if outcome == "open"]
    assert open_ones == []
    # What we have beyond wget exists on the server: it is asked for, not invented (a link that wget does not read).
    extra = {path for path in captured if path.split("?")[0] not in {name.split("?")[0] for name in found}}
    assert all((_DOCS / unquote(path).lstrip("/")).exists() for path in extra), sorted(extra)[:10]
    assert crawler.faults() == []


def _path(url: str) -> str:
    parts = urlsplit(url)
    path = parts.path if not parts.path.endswith("/") else f"{parts.path}index.html"
    return f"{unquote(path)}?{parts.query}" if parts.query else unquote(path)


def _without_query(paths: set[str]) -> set[str]:
    return {path.split("?")[0] for path in paths}
