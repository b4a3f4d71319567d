"""A capture compared with the live page, and one page fetched on demand: polite, bounded, nothing stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio import CapacityLimiter
from anyio.to_thread import current_default_thread_limiter
from sqlalchemy import func, select

from holdfast.changes.pairs import TextMode
from holdfast.config import PolitenessSettings, Settings
from holdfast.crawl import live_pages
from holdfast.crawl.live_pages import (
    LiveFailed,
    LiveTooLarge,
    compare_live,
    extract,
    fetch_live,
)
from holdfast.crawl.recovery import recover
from holdfast.crawl.requests import DomainBusy, RobotsDenied
from holdfast.db.models import AddedUrl, Document, Domain, Owner, Page, PageCrawl, Snapshot, WarcFile, Withdrawal
from holdfast.errors import AddressForbidden, Invalid
from holdfast.processes.owners import VISITOR, OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.sources.contact import remember_contact
from holdfast.types import DomainUpdate, RobotsAnswer, RobotsRecord
from holdfast.urls import page_key, parse
from holdfast.wiring import open_runtime
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, build_archive
from tests.client import Client, asking
from tests.contract.changes_bed import page
from tests.site import Exchange, Site, judge

Opening = Callable[..., tuple[Archive, Client]]
LOOPBACK = (ip_network("127.0.0.0/8"),)


@pytest.fixture
def open_archive(database_url: str, tmp_path: Path) -> Iterator[Opening]:
    """Open an archive with these captures, and a client of its server."""
    with ExitStack() as stack:

        def opened(*shots: Shot, as_admin: bool = True, **api: Any) -> tuple[Archive, Client]:
            built = build_archive(tmp_path, shots, database_url=database_url)
            stack.callback(built.database.close)
            settings = built.settings.model_copy(
                update={
                    "allow_networks": LOOPBACK,
                    "contact": "t@example.org",
                    "api": built.settings.api.model_copy(update={"rate_limiting": False, **api}),
                }
            )
            archive = Archive(settings=settings, database=built.database, clock=built.clock)
            return archive, stack.enter_context(asking(archive, as_admin=as_admin))

        yield opened


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a data directory without a database."""
    return Settings(home=tmp_path, allow_networks=LOOPBACK, contact="t@example.org")


def _compare(client: Client, archive: Archive, **query: str) -> httpx.Response:
    with archive.database.read() as session:
        snapshot_id = session.scalar(select(Snapshot.id))
    return client.get(f"/api/snapshots/{snapshot_id}/compare-live", params=query)


def test_compare_live_shows_what_changed(open_archive: Opening, site: Site) -> None:
    site.serve("/tides", page("The pier is closed"))
    archive, client = open_archive(Shot(url=site.url(0, "/tides"), body=page("The pier is open")))

    answer = _compare(client, archive)

    found = answer.json()
    assert answer.status_code == 200, found
    assert found["stats"]["changeType"] == "updated"
    assert found["stats"]["changedSections"] == 1
    assert found["liveFetch"]["finalUrl"] == found["archivedSnapshot"]["originalUrl"] == site.url(0, "/tides")
    assert found["liveFetch"]["statusCode"] == 200
    assert '<div class="ha-diff-line ha-diff-del"><code>-The pier is <del>open</del>' in found["diffHtml"]
    assert found["diff"]["hunks"]
    assert "no-store" in answer.headers["cache-control"]
    assert answer.headers["x-robots-tag"] == "noindex"
    assert [one.path for one in site.log()] == ["/robots.txt", "/tides"]
    assert "t@example.org" in (site.log()[1].user_agent or "")
    assert judge(site.settled(), delay_s=1.0) == []


def test_compare_live_stores_nothing(open_archive: Opening, site: Site) -> None:
    site.serve("/tides", page("The pier is closed"))
    archive, client = open_archive(Shot(url=site.url(0, "/tides"), body=page("The pier is open")))
    kept = (Snapshot, Document, WarcFile, Page, PageCrawl, AddedUrl)

    def counts() -> list[int]:
        with archive.database.read() as session:
            return [session.scalar(select(func.count()).select_from(table)) or 0 for table in kept]

    before = counts()
    assert _compare(client, archive, mode="full").json()["textModeUsed"] == "full"

    assert counts() == before
    with archive.database.read() as session:
        assert session.scalars(select(Owner.id).where(Owner.kind == VISITOR)).all() == []
        assert session.scalars(select(Domain.lease_owner)).all() == [None]


def test_recovery_deletes_rows_of_ended_and_dead_visitors(open_archive: Opening) -> None:
    archive, _ = open_archive()
    with open_runtime(archive.settings) as runtime:
        run = RunFile(runtime.run_folder)
        OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind=VISITOR, execution_id=None)
        run.let_go()
        with archive.database.write() as session:
            left = Owner(kind=VISITOR, host="h", pid=1, run_file="/gone", started_at=BEGIN, heartbeat_at=BEGIN)
            left.ended_at = BEGIN
            session.add(left)

        recover(runtime)

    with archive.database.read() as session:
        assert session.scalars(select(Owner.id).where(Owner.kind == VISITOR)).all() == []


def test_compare_live_uses_stored_robots_and_yields_to_crawls(open_archive: Opening, site: Site) -> None:
    site.serve("/tides", page("The same"))
    archive, client = open_archive(Shot(url=site.url(0, "/tides"), body=page("The same")))
    url = parse(site.url(0, "/tides"))
    with open_runtime(archive.settings) as runtime:
        run, now = RunFile(archive.home / "run"), runtime.clock.now()
        owner = OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind="process", execution_id=None)
        lease = runtime.frontier.lease_named(owner.id, url.domain)
        assert lease is not None
        busy = _compare(client, archive)
        known = RobotsRecord(origin=url.origin, answer=RobotsAnswer.RULES, fetched_at=now, checked_at=now, status=200,
                            body=b"User-agent: *\nDisallow: /private\n")  # fmt: skip
        update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, circuit=lease.circuit, next_allowed_at=now,
                              robots=(known,))  # fmt: skip
        runtime.frontier.release(0, owner.id, [update])

    assert (busy.status_code, busy.json()["code"], busy.headers["retry-after"]) == (429, "domain_busy", "5")
    assert f"{url.domain} is being crawled or is rate-limited" in busy.json()["detail"]
    assert _compare(client, archive).json()["stats"]["changeType"] == "unchanged"
    assert [one.path for one in site.log()] == ["/tides"]


def test_compare_live_is_closed_to_readers_by_default(open_archive: Opening, site: Site) -> None:
    site.serve("/tides", page("The same"))
    shot = Shot(url=site.url(0, "/tides"), body=page("The same"))
    archive, reader = open_archive(shot, as_admin=False)

    assert _compare(reader, archive).status_code == 401
    assert site.log() == []
    with archive.database.read() as session:
        snapshot_id = session.scalar(select(Snapshot.id))
    assert reader.get(f"/api/snapshots/{snapshot_id}/view").json()["canCompareLive"] is False
    _, opened = open_archive(as_admin=False, compare_live=True)
    assert opened.get(f"/api/snapshots/{snapshot_id}/view").json()["canCompareLive"] is True
    assert _compare(opened, archive).status_code == 200
    assert opened.request("POST", "/api/v1/fetch", json={"url": site.url(0, "/tides")}).status_code == 401


def test_compare_live_refuses_what_is_no_html(open_archive: Opening, site: Site) -> None:
    archive, client = open_archive(Shot(url=site.url(0, "/a.css"), body="p {}", media_type="text/css"))

    answer = _compare(client, archive)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert site.log() == []


def test_live_page_that_is_gone_is_reported(open_archive: Opening, site: Site) -> None:
    archive, client = open_archive(Shot(url=site.url(0, "/status/404"), body=page("It was here")))

    found = _compare(client, archive).json()

    assert (found["stats"]["changeType"], found["diff"], found["liveFetch"]["statusCode"]) == ("gone", None, 404)
    assert found["stats"]["summary"] == "The live page answered with status 404"


def test_fetch_route_extracts_and_queues_only_if_asked(open_archive: Opening, site: Site) -> None:
    site.serve("/news", page("Boats are back"))
    archive, client = open_archive(Shot(url=site.url(1, "/")))
    url = site.url(0, "/news")

    plain = client.request("POST", "/api/v1/fetch", json={"url": url})
    with archive.database.read() as session:
        assert session.scalars(select(AddedUrl.url)).all() == []
    queued = client.request("POST", "/api/internal/v1/fetch", json={"url": url, "capture": True})

    found = plain.json()
    assert plain.status_code == 200, found
    assert (found["title"], found["status_code"], found["queued"]) == ("Tides", 200, None)
    assert "Boats are back" in found["raw_text"]
    assert queued.json()["queued"]["status"] == "job_made"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/encoding/gzip-bomb", LiveTooLarge),
        ("/framing/endless", LiveTooLarge),
        ("/framing/short", LiveTooLarge),
        ("/framing/reset-first", LiveFailed),
        ("/redirect/loop", LiveFailed),
    ],
)
def test_hostile_live_pages_are_bounded(settings: Settings, site: Site, path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        fetch_live(settings, site.url(0, path), contact="t@example.org")

    assert len(site.log()) <= 7


def test_slow_live_page_ends_after_eight_seconds(settings: Settings, site: Site) -> None:
    with pytest.raises(LiveFailed, match="within 8 s"):
        fetch_live(settings, site.url(0, "/slow/silent"), contact="t@example.org")


def test_live_fetch_is_refused_by_guard_before_any_request(tmp_path: Path, site: Site) -> None:
    with pytest.raises(AddressForbidden):
        fetch_live(Settings(home=tmp_path), site.url(0, "/"), contact="t@example.org")

    assert site.log() == []


def test_live_redirect_is_judged_by_robots_and_guard(settings: Settings, site: Site) -> None:
    site.serve("/robots.txt", "User-agent: *\nDisallow: /secret\n", media="text/plain")
    site.serve("/away", "", status=302, headers=[("Location", site.url(0, "/secret"))])
    site.serve("/inside", "", status=302, headers=[("Location", "http://10.0.0.1/")])

    with pytest.raises(RobotsDenied):
        fetch_live(settings, site.url(0, "/away"), contact="t@example.org")
    with pytest.raises(AddressForbidden):
        fetch_live(settings, site.url(0, "/inside"), contact="t@example.org")

    assert "/secret" not in {one.path for one in site.log()}


@pytest.mark.parametrize("path", ["/away", "/robots.txt"])
def test_live_redirect_to_another_private_host_is_refused(settings: Settings, site: Site, path: str) -> None:
    site.serve(path, "", status=302, headers=[("Location", site.url(1, "/inner"))], host=0)
    site.serve("/inner", page("Salaries"))

    with pytest.raises((AddressForbidden, RobotsDenied)):
        fetch_live(settings, site.url(0, "/away"), contact="t@example.org")

    assert "/inner" not in {one.path for one in site.log()}


def test_live_fetch_follows_robots_txt_through_five_redirects(tmp_path: Path, site: Site) -> None:
    quick = PolitenessSettings(delay_s=0.0)
    settings = Settings(home=tmp_path, allow_networks=LOOPBACK, contact="t@example.org", politeness=quick)
    for number, path in enumerate(["/robots.txt", "/r1", "/r2", "/r3", "/r4"], start=1):
        site.serve(path, "", status=302, headers=[("Location", f"/r{number}")])
    site.serve("/r5", "User-agent: *\nDisallow: /\n", media="text/plain")

    with pytest.raises(RobotsDenied):
        fetch_live(settings, site.url(0, "/tides"), contact="t@example.org")

    assert site.log()[-1].path == "/r5"


def test_live_fetches_are_limited_per_process(open_archive: Opening, site: Site) -> None:
    archive, client = open_archive(Shot(url=site.url(0, "/tides"), body=page("The same")))
    taken = [live_pages.TURNS.acquire(blocking=False) for _ in range(live_pages.AT_ONCE)]
    try:
        answer = _compare(client, archive)
    finally:
        for _ in taken:
            live_pages.TURNS.release()

    assert all(taken)
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (429, "live_busy", "5")
    assert site.log() == []


def test_fetch_without_contact_is_refused(open_archive: Opening, site: Site) -> None:
    archive, _ = open_archive(Shot(url=site.url(0, "/")))
    silent = Archive(
        settings=archive.settings.model_copy(update={"contact": None}), database=archive.database, clock=archive.clock
    )
    with asking(silent) as client:
        answer = client.request("POST", "/api/v1/fetch", json={"url": site.url(0, "/")})

        assert (answer.status_code, "HOLDFAST_CONTACT" in answer.json()["detail"]) == (400, True)
        assert site.log() == []
        remember_contact(silent.settings, "kept@example.org")
        assert client.request("POST", "/api/v1/fetch", json={"url": site.url(0, "/")}).status_code == 200
    assert "kept@example.org" in (site.log()[-1].user_agent or "")


def test_compare_live_shows_nothing_taken_down_meanwhile(open_archive: Opening, site: Site) -> None:
    url = site.url(0, "/tides")
    archive, client = open_archive(Shot(url=url, body=page("The pier is open")))

    async def take_down(exchange: Exchange) -> None:
        with archive.database.write() as session:
            session.add(Withdrawal(url_key=page_key(url), subject="x", reason="x", actor="x", created_at=BEGIN))
        await exchange.reply(page("The pier is closed"))

    site.on("/tides", take_down)
    answer = _compare(client, archive)

    assert answer.status_code == 404
    assert "pier" not in answer.text


def test_live_fetch_takes_no_shared_thread(open_archive: Opening, site: Site) -> None:
    archive, client = open_archive(Shot(url=site.url(0, "/tides"), body=page("The same")))
    taken: list[float] = []

    async def shared() -> CapacityLimiter:
        return current_default_thread_limiter()

    limiter = client._runner.run(shared())

    async def count(exchange: Exchange) -> None:
        taken.append(limiter.borrowed_tokens)
        await exchange.reply(page("The same"))

    site.on("/tides", count)
    assert _compare(client, archive).status_code == 200
    assert client.request("POST", "/api/v1/fetch", json={"url": site.url(0, "/tides")}).status_code == 200

    assert taken == [0, 0]


def test_pictures_are_not_extracted(settings: Settings, site: Site) -> None:
    site.serve("/a.png", b"\x89PNG\r\n\x1a\n" + bytes(40), media="image/png")
    found = fetch_live(settings, site.url(0, "/a.png"), contact="t@example.org")

    with pytest.raises(Invalid, match="image/png"):
        extract(found)


def test_indexed_text_is_compared_when_the_record_is_gone(open_archive: Opening, site: Site) -> None:
    site.serve("/tides", page("The pier is closed"))
    archive, _ = open_archive(Shot(url=site.url(0, "/tides"), body=page("The pier is open")))
    for path in (archive.home / "warcs").rglob("*.warc.gz"):
        path.unlink()
    live = fetch_live(archive.settings, site.url(0, "/tides"), contact="t@example.org")
    with archive.database.read() as session:
        archived = session.scalars(select(Snapshot)).one()

    stats, _, mode = compare_live(archive.database, archive.home, archived, live, TextMode.FULL)

    assert (mode, stats.change_type) == (TextMode.MAIN, "updated")


def test_domain_that_rests_is_not_waited_for(open_archive: Opening, site: Site) -> None:
    archive, _ = open_archive(Shot(url=site.url(0, "/")))
    fetch_live(archive.settings, site.url(0, "/status/503?after=600"), contact="t@example.org")

    with pytest.raises(DomainBusy):
        fetch_live(archive.settings, site.url(0, "/"), contact="t@example.org")

    assert [one.path.partition("?")[0] for one in site.log()] == ["/robots.txt", "/status/503"]
