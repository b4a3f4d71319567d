"""Simulated earlier crawls: writes a WARC file as if a bundled site had been crawled at an earlier date.

The dates of its records are invented, and the file says so. It is imported like any other file.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from holdfast.clock import Clock, digits14
from holdfast.demo.answers import SiteAnswer, SiteContent
from holdfast.types import Fetched
from holdfast.warc.record import sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter

NOTE = "Demonstration material: the site is invented, and so are the dates of these records."
_LINKS = re.compile(r"""(?:href|src)=["']([^"'#]+)|url\(["']?([^"')]+)|<(?:loc|link)>([^<]+)""")
_FORBIDDEN = re.compile(r"^Disallow: (\S+)$", re.MULTILINE)
_READ = ("text/html", "text/css", "application/xml", "application/rss+xml")
# One request a second and a little, as a polite crawl does.
_STEP = timedelta(milliseconds=1_270)
_OWN = {"/robots.txt": "robots", "/sitemap.xml": "sitemap"}
# From the block that is kept for documentation (RFC 5737): there never was a server.
_ADDRESS = "192.0.2.80"


class _Bytes:
    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        return len(self._content)

    def chunks(self) -> Iterator[bytes]:
        yield self._content

    def close(self) -> None:
        """Do nothing: no resource is open."""


def write_past(folder: Path, content: SiteContent, *, origin: str, moment: datetime, clock: Clock) -> Path:
    """Write the WARC file of a crawl that supposedly started at a given time; return the sealed file."""
    host = urlsplit(origin).netloc
    name = f"demo-{urlsplit(origin).hostname}-{digits14(moment)}"
    info = {"description": NOTE, "isPartOf": "holdfast demo", "hostname": host, "robots": "obey"}
    # The clock of this machine: the file itself was made today, and its first record says so.
    writer = WarcWriter.create(folder, name, 0, info, clock)
    for number, (path, answer) in enumerate(walked(content, origin)):
        writer.append_exchange(_exchange(f"{origin}{path}", answer, moment + number * _STEP, _OWN.get(path)))
    return writer.seal().path


def walked(content: SiteContent, origin: str) -> Iterator[tuple[str, SiteAnswer]]:
    """Yield path and response of everything reachable by links from the front page, except what robots.txt forbids."""
    robots = content.at("/robots.txt")
    forbidden = tuple(_FORBIDDEN.findall(robots.body.decode()))
    queue = deque(["/robots.txt", "/", "/sitemap.xml"])
    seen = set(queue)
    while queue:
        path = queue.popleft()
        answer = content.at(path)
        yield path, answer
        for link in _links(answer, f"{origin}{path}"):
            inside = link.removeprefix(origin)
            if inside != link and inside.startswith("/") and inside not in seen and not inside.startswith(forbidden):
                seen.add(inside)
                queue.append(inside)


def _links(answer: SiteAnswer, base: str) -> Iterator[str]:
    if "Location" in answer.headers:
        yield urljoin(base, answer.headers["Location"])
    if answer.headers.get("Content-Type", "").startswith(_READ):
        for found in _LINKS.findall(answer.body.decode()):
            yield urljoin(base, next(filter(None, found)))


def _exchange(url: str, answer: SiteAnswer, moment: datetime, purpose: str | None) -> ExchangeDraft:
    parts = urlsplit(url)
    request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: holdfast-demo\r\n\r\n"
    fetched = Fetched(
        url=url,
        status=answer.status.value,
        request_head=request.encode(),
        response_head=answer.head(),
        body=_Bytes(answer.body),
        ip=_ADDRESS,
        started_at=moment,
        took_s=0.0,
    )
    return ExchangeDraft(fetched=fetched, payload_digest=sha256_of([answer.body]), purpose=purpose)
