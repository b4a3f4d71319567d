"""`/api/pages`: its parameters and fields, for who runs the archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.crawl.signal_pages import keywords_of
from holdfast.db import connect
from holdfast.frontier import Frontier
from holdfast.types import FoundUrl, Outcome, Signals, UrlKind, Visit
from holdfast.urls import parse
from tests.client import Client, asking
from tests.unit.api.conftest import MakeArchive, MakeClient

_URL = parse("https://example.org/vaccins?a=1")
_BODY = parse("https://kept.example/page")


def _kept(database_url: str) -> None:
    """Keep the signals of one page."""
    clock = SystemClock()
    with closing(connect(database_url)) as raw_db:
        frontier = Frontier(raw_db, clock)
        frontier.add(1, [FoundUrl(_URL.fetch, _URL.hash64, _URL.domain, UrlKind.PAGE, 0, 1)])
        [lease] = frontier.lease(1, 1, domains=1, pages=1)
        signals = Signals(description="Où", words=keywords_of(["Vaccins et santé"]), from_hash=1,
                          links=((2, "https://example.org/b"),), links_count=1)  # fmt: skip
        frontier.settle(1, 1, [Visit(
            attempt=lease.attempts[0], token=lease.token, outcome=Outcome.SUCCESS, reason="ok", status=200,
            started_at=clock.now(), finished_at=clock.now(), media_type="text/html", content_hash="c" * 64,
            title="Vaccins", language="fr", signals=signals,
        )])  # fmt: skip


def _captured(database_url: str) -> None:
    """Capture one page the usual way, with its body; the next one waits in the queue."""
    clock = SystemClock()
    with closing(connect(database_url)) as raw_db:
        frontier = Frontier(raw_db, clock)
        frontier.add(2, [FoundUrl(_BODY.fetch, _BODY.hash64, _BODY.domain, UrlKind.PAGE, 0, 1)])
        [lease] = frontier.lease(2, 1, domains=1, pages=1)
        frontier.settle(2, 1, [Visit(
            attempt=lease.attempts[0], token=lease.token, outcome=Outcome.SUCCESS, reason="ok", status=200,
            started_at=clock.now(), finished_at=clock.now(), media_type="text/html", content_hash="d" * 64,
            title="With a body", language="en",
        )])  # fmt: skip
        waiting = parse("https://kept.example/waiting")
        frontier.add(2, [FoundUrl(waiting.fetch, waiting.hash64, waiting.domain, UrlKind.PAGE, 0, 1)])


def test_pages_of_every_storage_are_listed_once_they_were_fetched(make_archive: MakeArchive) -> None:
    archive = make_archive()
    _kept(archive.settings.database)
    _captured(archive.settings.database)
    with asking(archive) as client:
        listed = client.get("/api/pages").json()
        second = client.get("/api/pages?limit=1&offset=1").json()
        of_domain = client.get("/api/pages/domain/kept.example").json()
        one = client.get(f"/api/pages/{_BODY.url_hash}").json()
        unknown = client.get("/api/pages/0123456789abcdef")

    assert [page["title"] for page in listed["pages"]] == ["With a body", "Vaccins"]
    assert (listed["total"], second["total"], of_domain["total"]) == (2, 2, 1)
    assert second["pages"] == listed["pages"][1:]
    assert of_domain["pages"] == listed["pages"][:1]
    assert (one["statusCode"], one["contentType"], one["language"]) == (200, "text/html", "en")
    assert (one["contentHash"], one["keywords"], one["links"]) == ("sha256:" + "d" * 64, [], [])
    assert unknown.status_code == 404


def test_pages_list_failed_and_blocked_with_length_and_error(make_archive: MakeArchive) -> None:
    archive, clock = make_archive(), SystemClock()
    urls = [parse(f"https://kept.example/{number}") for number in range(3)]
    ended: list[dict[str, Any]] = [
        {"outcome": Outcome.SUCCESS, "reason": "ok", "status": 200, "wire_bytes": 512, "title": "Good"},
        {"outcome": Outcome.FAILED, "reason": "timeout", "message": "no answer within 30 s"},
        {"outcome": Outcome.BLOCKED_ROBOTS, "reason": "robots"},
    ]
    with closing(connect(archive.settings.database)) as raw_db:
        frontier = Frontier(raw_db, clock)
        frontier.add(1, [FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.PAGE, 0, 1) for url in urls])
        [lease] = frontier.lease(1, 1, domains=1, pages=3)
        now = clock.now()
        by_url = {attempt.url: attempt for attempt in lease.attempts}
        frontier.settle(1, 1, [
            Visit(attempt=by_url[url.fetch], token=lease.token, started_at=now - timedelta(milliseconds=250),
                  finished_at=now, **facts)
            for url, facts in zip(urls, ended, strict=True)
        ])  # fmt: skip
    with asking(archive) as client:
        listed = {page["url"]: page for page in client.get("/api/pages").json()["pages"]}
        by_status = {
            status: [page["url"] for page in client.get("/api/pages", params={"status": status}).json()["pages"]]
            for status in ("fetched", "failed", "blocked", "never_crawled")
        }
        blocked = client.get(f"/api/pages/{urls[2].url_hash}").json()

    good, failed = listed[urls[0].fetch], listed[urls[1].fetch]
    assert (good["status"], good["contentLength"], good["crawlDurationMs"], good["errorMessage"]) == (
        "fetched", 512, 250, None,
    )  # fmt: skip
    assert (failed["status"], failed["errorMessage"]) == ("failed", "no answer within 30 s")
    assert by_status == {
        "fetched": [urls[0].fetch], "failed": [urls[1].fetch], "blocked": [urls[2].fetch], "never_crawled": [],
    }  # fmt: skip
    assert blocked["status"] == "blocked"


@pytest.fixture
def pages(make_archive: MakeArchive) -> Iterator[Client]:
    """A client for an archive that keeps the signals of one page."""
    archive = make_archive()
    _kept(archive.settings.database)
    with asking(archive) as client:
        yield client


def test_a_page_is_listed_with_its_fields(pages: Client) -> None:
    answer = pages.get("/api/pages?search=sante&limit=5&offset=0").json()

    assert (answer["total"], answer["limit"], answer["offset"]) == (1, 5, 0)
    [page] = answer["pages"]
    assert page.pop("crawledAt").endswith("Z")
    assert page.pop("id") > 0
    assert page == {
        "url": _URL.fetch, "urlHash": _URL.url_hash, "domain": "example.org", "sourceCode": None, "statusCode": 200,
        "contentType": "text/html", "contentHash": "sha256:" + "c" * 64, "title": "Vaccins", "description": "Où",
        "language": "fr", "wordCount": 3, "linksCount": 1, "status": "fetched", "contentLength": None,
        "crawlDurationMs": None, "errorMessage": None,
    }  # fmt: skip


def test_one_page_is_shown_by_its_hash_and_those_of_a_domain_by_its_name(pages: Client) -> None:
    page = pages.get(f"/api/pages/{_URL.url_hash}").json()

    assert page["keywords"] == [{"word": word, "count": 1} for word in ("et", "sante", "vaccins")]
    assert page["links"] == ["https://example.org/b"]
    assert pages.get("/api/pages/domain/example.org").json()["total"] == 1
    assert pages.get("/api/pages?domain=other.example").json()["pages"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/pages?limit=101", 422), ("/api/pages?limit=0", 422), ("/api/pages?offset=-1", 422),
        ("/api/pages/xyz", 422), ("/api/pages/" + "0" * 16, 404), ("/api/pages?domain=%00", 422),
        ("/api/pages?search=" + "+".join(f"w{n}" for n in range(17)), 422), ("/api/pages/domain/%00", 200),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(client: Client, path: str, status: int) -> None:
    assert client.get(path).status_code == status


def test_pages_are_for_whoever_runs_the_archive(make_client: MakeClient) -> None:
    guarded = make_client(admin_token="sixteen-characters")

    assert guarded.get("/api/pages").status_code == 401
    assert guarded.get("/api/pages", headers={"x-admin-token": "sixteen-characters"}).status_code == 200
