"""Servers that are slow or rude: each is given up in time, and no other host is kept waiting."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows
from tests.site import Site, judge
from tests.site.log import Entry

_DEADLINE_S = 1.5
_KEPT, _ATTEMPTS = 0.9, 3
_POLITE, _PAGES, _DELAY_S = 8, 25, 0.1
_RUDE = [
    "/slow/head", "/slow/body", "/slow/chunks", "/slow/silent", "/slow/stall", "/slow/stall-head", "/slow/continue",
    "/framing/reset", "/framing/reset-first", "/framing/garbage-after", "/slow/hints",
]  # fmt: skip
_SHORT = {
    "HOLDFAST_FETCH_DEADLINE_S": str(_DEADLINE_S), "HOLDFAST_TIMINGS_CRAWL_CONNECT_S": "1",
    "HOLDFAST_POLITENESS_RETRIES": "0",
    "HOLDFAST_TIMINGS_CRAWL_UNREACHABLE_S": "2",
}  # fmt: skip


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address whose server never takes a connection from its queue, which is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.9.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield "http://{}:{}/".format(*listener.getsockname())
        for sock in waiting:
            sock.close()


@dataclass
class Pace:
    """How fast the polite hosts were crawled, and what they and the others saw."""

    seconds: float
    log: list[Entry]


def _crawl(crawler: Crawler, site: Site, *others: str) -> Pace:
    """Crawl the polite hosts, and others beside them; return how long the polite ones took."""
    seen = len(site.log())
    crawler.environment |= _SHORT
    seeds = [site.url(host) for host in range(_POLITE)]
    crawler.crawl(*seeds, *others, "--delay", str(_DELAY_S), "--no-sitemaps", timeout_s=90)
    log = site.settled()[seen:]
    polite = [entry.start for entry in log if entry.host in site.hosts[:_POLITE]]
    return Pace(max(polite) - min(polite), log)


@pytest.mark.slow
def test_rude_servers_are_given_up_in_time_and_others_keep_their_pace(tmp_path: Path, deaf: str) -> None:
    with Site.start(hosts=_POLITE + len(_RUDE) + 1, pages=_PAGES, tls="stalled", process=True) as site:
        rude = [site.url(_POLITE + number, f"{path}?n={n}") for number, path in enumerate(_RUDE) for n in range(2)]
        stalled = site.url(_POLITE + len(_RUDE), "/", scheme="https")
        # Measured again if need be: one crawl of the two may have met another process, waiting for a server would be
        # seen each time.
        for attempt in range(_ATTEMPTS):
            crawler = Crawler(tmp_path / f"beside-{attempt}")
            base = _crawl(Crawler(tmp_path / f"alone-{attempt}"), site)
            busy = _crawl(crawler, site, *rude, stalled, deaf)
            print(f"polite hosts: {base.seconds:.2f} s alone, {busy.seconds:.2f} s beside {len(_RUDE) + 2} rude ones")
            if base.seconds / busy.seconds >= _KEPT:
                break

    assert base.seconds / busy.seconds >= _KEPT
    longest = max(entry.end - entry.start for entry in busy.log if entry.end is not None)
    print(f"longest request {longest:.2f} s")
    assert longest <= _DEADLINE_S + patience.allowed(0.5)
    assert judge(busy.log, delay_s=_DELAY_S) == []
    outcomes = crawler.outcomes()
    captured = [url for url in site.urls() if outcomes.get(url) == ("success", "ok")]
    assert len(captured) >= _POLITE * _PAGES
    assert {outcomes[url][0] for url in rude} <= {"success", "failed", "timeout"}
    assert outcomes[stalled] == outcomes[deaf] == ("failed", "domain_unreachable")
    assert rows(crawler, "SELECT count(*) FROM owners WHERE kind = 'process'") == [(1,)]
    assert crawler.faults() == []
