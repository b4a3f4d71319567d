"""A site that is crawled again: what did not change is a revisit of what we have, what did is stored anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows
from tests.flow.records import Stored, captures
from tests.site import Site
from tests.site.book import html, links
from tests.site.log import Entry
from tests.site.wire import Exchange

_PATHS = ["etag", "etag-weak", "modified", "changing", "revision?every=1", "etag-lie", "deaf", "always-304"]


@dataclass
class Round:
    """One of three crawls: the site as it was, as it is, and with the first crawl's file gone."""

    result: dict[str, Any]
    log: list[Entry]
    kept: dict[str, list[Stored]]
    outcomes: dict[str, tuple[str, str]]


@dataclass
class World:
    """Three crawls of the same pages."""

    background: list[Round]
    base: str
    faults: list[str]
    originals: list[tuple[Any, ...]]

    def record(self, number: int, path: str) -> Stored:
        [record] = self.background[number].kept[f"{self.base}/cache/{path}"]
        return record

    def asked(self, number: int, path: str) -> Entry:
        [entry] = [entry for entry in self.background[number].log if entry.path == f"/cache/{path}"]
        return entry


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("revisits") / "home")
    with Site.start(hosts=1, pages=1) as site:
        site.on("/cache/start", _start)
        site.serve("/cache/below", html("found by the links of a page that did not change"))
        background: list[Round] = []
        for number in range(3):
            if number == 2:
                for path in background[0].result["warc_files"]:
                    Path(path).rename(f"{path}.gone")
            seen = len(site.log())
            result = crawler.crawl(site.url(0, "/cache/start"), "--delay", "0", "--no-sitemaps")
            log = site.settled()[seen:]
            background.append(Round(result, log, captures(result["warc_files"]), crawler.outcomes(number + 1)))
        for path in background[0].result["warc_files"]:
            Path(f"{path}.gone").rename(path)
    originals = rows(crawler, "SELECT p.url, p.original_file_id FROM pages p WHERE p.original_record_id IS NOT NULL")
    return World(background, site.url(0, "").rstrip("/"), crawler.faults(3), originals)


async def _start(exchange: Exchange) -> None:
    """The front page, with a validator: its links must be known when it answers 304."""
    if exchange.request.headers.get("if-none-match") == '"start"':
        await exchange.reply(status=304, headers=[("ETag", '"start"')])
    else:
        body = links([*(f"/cache/{path}" for path in _PATHS), "/cache/below"])
        await exchange.reply(html("start", body), headers=[("ETag", '"start"')])


def test_the_links_of_an_unchanged_page_are_followed_from_our_copy(world: World) -> None:
    assert world.background[1].result["pages"] == world.background[0].result["pages"] == len(_PATHS) + 2
    assert set(world.background[1].outcomes) == set(world.background[0].outcomes)


@pytest.mark.parametrize("path", ["etag", "etag-weak", "modified", "start"])
def test_a_304_is_a_revisit_that_names_the_original(world: World, path: str) -> None:
    first, second = world.record(0, path), world.record(1, path)

    assert first.type == "response"
    assert second.type == "revisit"
    assert second.headers["WARC-Profile"].endswith("/revisit/server-not-modified")
    assert second.headers["WARC-Refers-To"] == first.headers["WARC-Record-ID"]
    assert second.headers["WARC-Refers-To-Target-URI"] == first.url
    assert second.headers["WARC-Refers-To-Date"] == first.headers["WARC-Date"]
    assert second.status == 304
    assert world.background[1].outcomes[first.url] == ("success", "not_modified")


def test_the_validators_are_sent_back_as_they_came(world: World) -> None:
    assert world.asked(1, "etag").if_none_match == '"v1"'
    assert world.asked(1, "etag-weak").if_none_match == 'W/"v1"'
    assert world.asked(1, "modified").if_modified_since == "Tue, 01 Sep 2026 10:00:00 GMT"
    assert {entry.if_none_match for entry in world.background[0].log} == {None}


def test_the_same_bytes_with_status_200_are_a_revisit_by_digest(world: World) -> None:
    first, second = world.record(0, "deaf"), world.record(1, "deaf")

    assert second.type == "revisit"
    assert second.headers["WARC-Profile"].endswith("/revisit/identical-payload-digest")
    assert second.headers["WARC-Payload-Digest"] == first.headers["WARC-Payload-Digest"]
    assert second.headers["WARC-Refers-To"] == first.headers["WARC-Record-ID"]
    assert second.body == b""
    assert world.background[1].outcomes[first.url] == ("success", "unchanged")


@pytest.mark.parametrize("path", ["changing", "revision?every=1", "etag-lie"])
def test_a_changed_page_is_stored_anew_whatever_its_validator_says(world: World, path: str) -> None:
    first, second = world.record(0, path), world.record(1, path)

    assert second.type == "response"
    assert second.body != first.body
    assert world.background[1].outcomes[first.url] == ("success", "ok")


@pytest.mark.parametrize("path", ["etag", "etag-weak", "modified", "deaf", "start"])
def test_an_original_that_is_gone_is_neither_asked_about_nor_pointed_to(world: World, path: str) -> None:
    asked = world.asked(2, path)

    assert (asked.if_none_match, asked.if_modified_since) == (None, None)
    assert world.record(2, path).type == "response"
    assert world.background[2].outcomes[world.record(2, path).url] == ("success", "ok")


def test_an_original_that_is_still_there_is_used_although_another_file_is_gone(world: World) -> None:
    assert world.asked(2, "changing").status == 200
    assert world.background[2].result["pages"] == len(_PATHS) + 2
    newest = world.background[2].result["execution"]
    assert {file_id for _, file_id in world.originals} == {newest}, "every page has an original in the third file now"


def test_the_archive_is_whole(world: World) -> None:
    assert world.faults == []
