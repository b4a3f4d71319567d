"""Pages that declare no charset: what we take them for is what Chromium takes them for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from holdfast.parse.charset import decode_text, known_charset
from tests import patience
from tests.flow.replay.stage import browser, leaks
from tests.legacy_text import LEGACY_TEXT, undeclared_page

__all__ = ["browser", "leaks"]


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        encoding, _, language = self.path.strip("/").partition("/")
        body = undeclared_page(encoding, with_language=language == "named") if encoding in LEGACY_TEXT else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the pages."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join(patience.deadline(5))


@pytest.mark.parametrize("language", ["named", "unnamed"])
def test_undeclared_page_reads_as_in_chromium(browser: Browser, address: str, language: str) -> None:
    page = browser.new_page()
    for encoding in LEGACY_TEXT:
        page.goto(f"{address}/{encoding}/{language}")
        shown = known_charset(page.evaluate("document.characterSet")), page.evaluate("document.body.innerText").strip()

        text, charset = decode_text(undeclared_page(encoding, with_language=language == "named"))

        assert shown[0] == charset
        assert f"<p>{shown[1]}</p>" in text
    page.close()
