"""A source that keeps signals instead of bodies: fetched as ever, no WARC file, keywords found, changes seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.zimit.output_directory import SENTINEL
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import arm, disarmed, rows, seeds, settled_twice
from tests.site import Site
from tests.site.book import html, links
from tests.site.log import Entry
from tests.site.wire import Exchange

_SIGNALS = ("--storage", "signals", "--delay", "0", "--no-sitemaps")
_PATHS = ["changing", "same", "plain", "file.pdf", "picture", "gone", "moved", "noindex", "feed"]


@dataclass
class Round:
    """One crawl: what it said, what it asked, how its pages ended, and the signals after it."""

    result: dict[str, Any]
    log: list[Entry]
    outcomes: dict[str, tuple[str, str]]
    pages: dict[str, tuple[Any, ...]]
    words: dict[str, set[str]]

    def asked(self, path: str) -> Entry:
        [entry] = [entry for entry in self.log if entry.path == path]
        return entry


@dataclass
class World:
    """Two crawls of a site of which one page changes between them."""

    crawler: Crawler
    background: list[Round]
    base: str
    faults: list[str]


def _signals(crawler: Crawler) -> tuple[dict[str, tuple[Any, ...]], dict[str, set[str]]]:
    found = rows(
        crawler,
        "SELECT p.url, s.fetched_at, s.content_hash, s.language, s.title, s.description, s.links_count, s.execution_id"
        " FROM signal_pages s JOIN pages p ON p.id = s.page_id",
    )
    words: dict[str, set[str]] = {row[0]: set() for row in found}
    for url, word in rows(crawler, "SELECT p.url, w.word FROM signal_words w JOIN pages p ON p.id = w.page_id"):
        words[url].add(word)
    return {row[0]: row[1:] for row in found}, words


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("signals") / "home")
    versions = iter(["Premier hôpital", "Second clinic"])
    with Site.start(hosts=1, pages=1) as site:
        site.on("/s/start", _start)
        site.serve("/s/same", html("Same", "<p>never different words</p>"))
        site.serve("/s/plain", "Just plain épices", media="text/plain; charset=utf-8")
        site.serve("/s/file.pdf", b"%PDF-1.4 nothing", media="application/pdf")
        site.serve("/s/picture", b"\x89PNG\r\n\x1a\nnothing", media="image/png")
        site.serve("/s/feed", "<rss><channel><title>t</title></channel></rss>", media="application/rss+xml")
        site.serve("/s/moved", "", status=302, headers=[("Location", "/s/target")])
        site.serve("/s/target", html("Target", "<p>arrived anyway</p>"))
        site.serve("/s/noindex", html("Hidden", "<p>secret words</p>", head='<meta name="robots" content="noindex">'))
        background: list[Round] = []
        for text in versions:
            site.serve("/s/changing", html(text, links([f"/s/{text.split()[1]}"]), head=_HEAD))
            seen = len(site.log())
            result = crawler.crawl(site.url(0, "/s/start"), *_SIGNALS)
            log = site.settled()[seen:]
            number = len(background) + 1
            background.append(Round(result, log, crawler.outcomes(number), *_signals(crawler)))
    return World(crawler, background, site.url(0, "/s/"), crawler.faults(2))


_HEAD = '<meta name="description" content="Où est l’entrée?">'


async def _start(exchange: Exchange) -> None:
    if exchange.request.headers.get("if-none-match") == '"start"':
        await exchange.reply(status=304, headers=[("ETag", '"start"')])
    else:
        body = links([f"/s/{path}" for path in _PATHS]) + '<img src="/s/never.png">'
        page = html("Start", body).replace("<html", '<html lang="fr-CA"')
        await exchange.reply(page, headers=[("ETag", '"start"')])


def test_no_body_is_kept_anywhere(world: World) -> None:
    assert world.faults == []
    assert world.crawler.warcs() == []
    assert rows(world.crawler, "SELECT count(*) FROM warc_files") == [(0,)]
    assert [one.result["warc_files"] for one in world.background] == [[], []]
    left = [path.name for path in (world.crawler.home / "warcs").rglob("*") if path.is_file()]
    assert [name for name in left if name not in ("crawl.log", SENTINEL)] == []


def test_pages_are_settled_as_ever_and_only_text_is_supported(world: World) -> None:
    outcomes = {url.removeprefix(world.base): ending for url, ending in world.background[0].outcomes.items()}

    assert outcomes["start"] == outcomes["same"] == outcomes["plain"] == ("success", "ok")
    for path in ("file.pdf", "picture", "feed"):
        assert outcomes[path] == ("excluded", "unsupported_type"), path
    assert outcomes["gone"] == ("blocked_4xx", "http_404")
    assert outcomes["moved"][0] == "success"
    assert not [entry for entry in world.background[0].log if entry.path == "/s/never.png"]


def test_signals_are_taken_before_the_body_is_dropped(world: World) -> None:
    first = world.background[0]
    base = world.base

    fetched_at, content_hash, _, title, description, links_count, _ = first.pages[f"{base}changing"]
    assert (title, description, links_count) == ("Premier hôpital", "Où est l’entrée?", 1)
    assert content_hash.startswith("sha256:")
    assert fetched_at > 0
    assert {"premier", "hopital", "ou", "entree"} <= first.words[f"{base}changing"]
    assert first.pages[f"{base}start"][2] == "fr-CA"
    assert rows(world.crawler, f"SELECT language FROM pages WHERE url = '{base}start'") == [("fr-CA",)]
    assert "epices" in first.words[f"{base}plain"]
    assert "arrived" in first.words[f"{base}moved"]
    assert first.words[f"{base}noindex"] == set()
    assert f"{base}file.pdf" not in first.pages


def test_a_304_writes_nothing_and_its_links_are_followed(world: World) -> None:
    first, second = world.background
    start = f"{world.base}start"

    assert second.asked("/s/start").if_none_match == '"start"'
    assert second.outcomes[start] == ("success", "not_modified")
    assert {url for url in first.outcomes if "hopital" not in url and "h%C3" not in url} <= set(second.outcomes)
    assert second.pages[start] == first.pages[start]
    hashes = rows(
        world.crawler,
        f"SELECT c.content_hash FROM page_crawls c JOIN pages p ON p.id = c.page_id WHERE p.url = '{start}'",
    )
    assert len({row[0] for row in hashes}) == 1


def test_the_same_bytes_write_nothing_and_others_replace_all(world: World) -> None:
    first, second = world.background
    same, changing = f"{world.base}same", f"{world.base}changing"

    assert second.outcomes[same] == ("success", "unchanged")
    assert second.pages[same] == first.pages[same]
    assert second.pages[changing][-1] == 2
    assert second.pages[changing][3] == "Second clinic"
    assert "hopital" not in second.words[changing]
    assert {"second", "clinic"} <= second.words[changing]


@pytest.mark.parametrize(
    ("words", "found"),
    [(("PLAIN", "epices"), ["plain"]), (("never", "words"), ["same"]), (("never", "epices"), []), (("hopital",), [])],
)
def test_pages_are_found_by_all_their_words(world: World, words: tuple[str, ...], found: list[str]) -> None:
    said = world.crawler.run("page", "search", *words, "--json")

    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    assert [page["url"].removeprefix(world.base) for page in answer["pages"]] == found
    assert answer["total"] == len(found)


def test_a_page_is_shown_in_full(world: World) -> None:
    said = world.crawler.run("page", "show", f"{world.base}changing", "--json")
    missing = world.crawler.run("page", "show", f"{world.base}file.pdf")

    page = json.loads(said.stdout)
    assert page["keywords"]["clinic"] >= 1
    assert page["links"] == [f"{world.base}clinic"]
    assert missing.returncode == 1
    assert "holdfast page search" in missing.stderr


def test_death_around_a_commit_loses_no_page_and_no_signal(any_crawler: Crawler, tmp_path: Path) -> None:
    steps = ("before_sync", "after_sync", "after_commit")
    tokens = arm(tmp_path / "tokens", *steps)
    with Site.plain(hosts=4, pages=20) as site:
        result = any_crawler.crawl(
            *seeds(site), "--storage", "signals", "--delay", "0.01", "--workers", "2",
            HOLDFAST_FAILPOINT=",".join(f"{step}:kill:1:{tokens}" for step in steps),
            HOLDFAST_TIMINGS_CRAWL_SETTLE_S="0.02",
        )  # fmt: skip
        outcomes = any_crawler.outcomes()
        missing = [url for url in site.urls() if outcomes.get(url, ("absent", ""))[0] != "success"]
        expected = set(site.urls())

    assert disarmed(tokens)
    assert result["state"] == "completed"
    assert missing == []
    pages, words = _signals(any_crawler)
    assert expected <= set(pages)
    assert all(words[url] for url in expected)
    assert settled_twice(any_crawler) == 0
    assert any_crawler.faults() == []
