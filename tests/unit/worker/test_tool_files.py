"""What another program's crawl captured at its start address."""

from __future__ import annotations

import gzip
from pathlib import Path

from holdfast.worker.tool_process import start_page_in


def _record(url: str, status: str, body: str = "", *fields: str) -> bytes:
    block = "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: text/html", *fields, "", body])
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{hash((url, body)) & 0xFFFF:032x}>\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(f"{head}{block}\r\n\r\n".encode())


def _file(path: Path, *records: bytes) -> Path:
    path.write_bytes(b"".join(records))
    return path


def test_a_start_page_is_judged_by_the_page_that_its_redirects_lead_to(tmp_path: Path) -> None:
    moved = _record("https://a.example/", "301 Moved", "moved", "Location: https://www.a.example/home")
    one = _file(tmp_path / "1.warc.gz", moved, _record("https://www.a.example/home", "200 OK", "as it was"))
    two = _file(tmp_path / "2.warc.gz", moved, _record("https://www.a.example/home", "200 OK", "otherwise"))

    first, same, other = (start_page_in([path], "https://a.example/") for path in (one, one, two))

    assert first.content_hash is not None
    assert first == same
    assert other.content_hash not in (None, first.content_hash)


def test_what_says_nothing_of_a_start_page_leaves_nothing_to_judge_by(tmp_path: Path) -> None:
    circle = _record("https://a.example/", "302 Found", "", "Location: /")
    gone = _record("https://b.example/", "404 Not Found", "gone")
    file = _file(tmp_path / "1.warc.gz", circle, gone, b"\x1f\x8bbroken")

    for url in ("https://a.example/", "https://b.example/", "https://c.example/"):
        assert start_page_in([file, tmp_path / "missing.warc.gz"], url).content_hash is None
