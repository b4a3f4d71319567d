"""One answer that takes very long to put together or to read: the others go on, and a stop ends the crawl."""

from __future__ import annotations

import gzip
import os
import signal

import pytest

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import seeds, until
from tests.site import Site

_LARGE = b"<p>" + b"x" * 2_000_000
_SITEMAP = gzip.compress(os.urandom(40_000))


def _served(site: Site) -> None:
    site.serve("/large", _LARGE)
    site.serve("/sitemap.xml", _SITEMAP, media="application/gzip")


@pytest.mark.parametrize(("place", "path"), [("prepare", "/large"), ("read_slowly", "/sitemap.xml")])
def test_an_answer_that_takes_for_ever_holds_up_nobody_and_a_stop_ends_the_crawl(
    crawler: Crawler, place: str, path: str
) -> None:
    with Site.start(hosts=1, pages=1) as slow, Site.plain(hosts=2, pages=10) as site:
        _served(slow)
        process = crawler.start(
            slow.url(0, "/large"), *seeds(site), "--delay", "0", HOLDFAST_FAILPOINT=f"{place}@{path}:sleep",
        )  # fmt: skip
        wanted = set(site.urls())
        until(lambda: wanted <= _captured(crawler), within_s=60, what="all pages of the other hosts")
        os.kill(process.pid, signal.SIGINT)
        crawler.finish(process)

    assert crawler.processes() == []
    assert crawler.faults() == []


@pytest.mark.parametrize(("place", "path"), [("prepare", "/large"), ("read_slowly", "/sitemap.xml")])
def test_a_process_with_such_an_answer_does_not_outlive_its_supervisor(crawler: Crawler, place: str, path: str) -> None:
    with Site.start(hosts=1, pages=1) as slow:
        _served(slow)
        process = crawler.start(
            slow.url(0, "/large"), slow.url(0, "/"), "--delay", "0", "--depth", "0",
            HOLDFAST_FAILPOINT=f"{place}@{path}:sleep",
        )  # fmt: skip
        until(lambda: slow.url(0, "/") in _captured(crawler), within_s=60, what="the other page")
        process.kill()
        process.communicate()
        until(lambda: crawler.processes() == [], within_s=60, what="the end of its process")


def _captured(crawler: Crawler) -> set[str]:
    if not (crawler.home / "holdfast.db").exists():
        return set()
    try:
        return {url for url, (outcome, _) in crawler.outcomes().items() if outcome == "success"}
    except Exception as exc:
        if "no such table" in str(exc) or "locked" in str(exc):
            return set()
        raise
