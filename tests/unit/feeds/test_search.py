"""Where feeds are looked for, and in which order."""

from __future__ import annotations

from typing import Any

from holdfast.feeds.polling import USUAL_PLACES, FeedSearch
from holdfast.types import Attempt, FoundUrl, Outcome, UrlKind, Visit
from holdfast.urls import parse
from tests.clock import FakeClock

_START = "http://a.test/"


def found(url: str) -> FoundUrl:
    """Return an address."""
    parsed = parse(url)
    return FoundUrl(parsed.fetch, parsed.hash64, parsed.domain, UrlKind.SITEMAP, 1, 0)


def visit(url: str = _START, **more: Any) -> Visit:
    """Return what came of a page."""
    now = FakeClock().now()
    attempt = Attempt(id=1, page_id=1, domain_id=1, url=url, url_hash=parse(url).hash64, kind=UrlKind.PAGE, depth=0,
                      number=1, priority=3)  # fmt: skip
    facts: dict[str, Any] = {"outcome": Outcome.SUCCESS, "reason": "ok", "status": 200}
    return Visit(attempt=attempt, token=1, started_at=now, finished_at=now, **{**facts, **more})


def search() -> FeedSearch:
    """Return a search that begins at the start page."""
    return FeedSearch(parse(_START).hash64)


def urls(candidates: list[FoundUrl]) -> list[str]:
    """Return their addresses."""
    return [one.url for one in candidates]


PLACES = [f"http://a.test{path}" for path in USUAL_PLACES]


def test_the_feeds_that_the_start_page_names_come_first() -> None:
    one = search()

    assert urls(one.visited(visit(feeds=(found("http://a.test/x"),)))) == ["http://a.test/x"]
    assert one.tried(parse("http://a.test/x").hash64, good=True) == []


def test_the_usual_places_are_tried_when_it_names_none() -> None:
    assert urls(search().visited(visit())) == PLACES
    assert PLACES[0] == "http://a.test/feed"


def test_the_usual_places_are_tried_when_nothing_that_it_names_is_a_feed() -> None:
    one = search()
    one.visited(visit(feeds=(found("http://a.test/x"), found("http://a.test/y"))))

    assert one.tried(parse("http://a.test/x").hash64, good=False) == []
    assert urls(one.tried(parse("http://a.test/y").hash64, good=False)) == PLACES
    assert one.tried(parse(PLACES[0]).hash64, good=False) == []


def test_one_good_feed_is_enough() -> None:
    one = search()
    one.visited(visit(feeds=(found("http://a.test/x"), found("http://a.test/y"))))

    assert one.tried(parse("http://a.test/x").hash64, good=True) == []
    assert one.tried(parse("http://a.test/y").hash64, good=False) == []


def test_other_pages_are_not_searched() -> None:
    assert search().visited(visit("http://a.test/item", feeds=(found("http://a.test/comments"),))) == []


def test_a_start_page_elsewhere_is_searched_where_it_landed() -> None:
    one = search()

    assert one.visited(visit(status=301, redirected_to="http://b.test/home")) == []
    assert urls(one.visited(visit("http://b.test/home"))) == [f"http://b.test{path}" for path in USUAL_PLACES]


def test_a_start_page_that_fails_leaves_the_usual_places() -> None:
    assert urls(search().visited(visit(outcome=Outcome.BLOCKED_4XX, status=404))) == PLACES
