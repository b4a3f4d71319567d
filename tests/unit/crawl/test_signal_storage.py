"""What is kept of a page whose body is not: a 304 may stand for it only if all that it leads to is kept."""

from __future__ import annotations

import pytest

from holdfast.crawl.page_reading import DocumentFacts
from holdfast.crawl.signal_storage import signals_of
from holdfast.types import Link, ParsedPage, Signals
from holdfast.urls import Normalisation

_PAGE = "https://example.org/list"


def _signals(*hrefs: str) -> Signals:
    page = ParsedPage(links=tuple(Link(href, "a") for href in hrefs))
    return signals_of(_PAGE, page, DocumentFacts(page=page, links=page.links))


@pytest.mark.parametrize(
    ("hrefs", "kept"),
    [
        (["/a", "/b", "/a#part"], ["/a", "/b"]),
        (["#top", "/list", "/a"], ["/a"]),
        (["/feed.xml", "/data.zip", "/a"], ["/a", "/data.zip", "/feed.xml"]),
        (["/a?x=1"], ["/a?x=1"]),
    ],
)
def test_links_that_are_all_kept_are_counted_as_many(hrefs: list[str], kept: list[str]) -> None:
    signals = _signals(*hrefs)

    assert sorted(url.removeprefix("https://example.org") for _, url in signals.links) == kept
    assert signals.links_count == len(signals.links)


@pytest.mark.parametrize(
    "hrefs", [["?page=2"], ["/a?page=1", "/a?page=2"], [f"/{number}" for number in range(201)]],
    ids=["other pages of its own path", "several queries of one path", "more than are kept"],
)  # fmt: skip
def test_links_that_are_not_kept_are_counted_all_the_same(hrefs: list[str]) -> None:
    signals = _signals(*hrefs)

    assert signals.links_count == len(hrefs)
    assert len(signals.links) < len(hrefs)


def test_a_port_that_the_crawl_allows_is_one_that_its_pages_and_links_may_have() -> None:
    page = ParsedPage(links=(Link("/a", "a"),))
    allowed = Normalisation(allow_ports=frozenset({9200}))

    signals = signals_of("http://example.org:9200/", page, DocumentFacts(page=page, links=page.links), allowed)

    assert [url for _, url in signals.links] == ["http://example.org:9200/a"]
