"""The job that polls a source's feeds follows the source; and what a poll finds to do, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from holdfast.clock import to_micros
from holdfast.config import FeedSettings
from holdfast.db import connect
from holdfast.db.models import AuditEvent, Execution, Feed, FeedItem, Job, Page, PageCrawl, Source
from holdfast.errors import Conflict
from holdfast.feeds import polling, queries, registry
from holdfast.feeds.queries import FeedNotFound, FeedsTooMany, FeedTaken
from holdfast.jobs.administration.source_jobs import disable_source, enable_source, follow_all, run_soon
from holdfast.jobs.kinds import FEED
from holdfast.jobs.store import crawl_job
from holdfast.sources import registry as sources
from holdfast.sources.queries import find_source, note_search
from tests.clock import FakeClock
from tests.jobs_bed import Bed, failed, open_bed

SETTINGS = FeedSettings()


@pytest.fixture
def jobs(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as bed:
        yield bed


def follow(jobs: Bed, **settings: Any) -> int:
    """Let all feed jobs follow."""
    return follow_all(jobs.database, jobs.party.actions, FeedSettings(**settings))


def _count_unreached(jobs: Bed, what: registry.PollPlan, *, since: datetime, now: datetime) -> int:
    with closing(connect(jobs.url)) as raw_db:
        return polling.count_unreached(raw_db, [one.id for one in what.feeds], SETTINGS, since=since, now=now)


def states(jobs: Bed) -> list[tuple[str | None, int | None]]:
    """Return state and interval of the feed jobs that are there."""
    with jobs.database.read() as session:
        rows = session.execute(
            select(Job.state, Job.interval_minutes).where(Job.kind == FEED, Job.deleted_at.is_(None))
        )
        return [(row[0], row[1]) for row in rows]


def edit(jobs: Bed, **fields: Any) -> None:
    """Change the configuration of the source."""
    with jobs.database.write() as session:
        sources.edit(session, jobs.clock, "ex", {"config": fields})


def test_a_source_has_one_feed_job_while_its_feeds_are_on(jobs: Bed) -> None:
    jobs.source("quiet")
    jobs.source("ex", feeds=True)

    assert [follow(jobs), follow(jobs)] == [1, 0]
    assert states(jobs) == [("scheduled", 15)]
    edit(jobs, feeds=False)
    assert [follow(jobs), follow(jobs)] == [1, 0]
    assert states(jobs) == []


def test_another_interval_or_the_switch_of_the_house_reaches_all_jobs(jobs: Bed) -> None:
    jobs.source("ex", feeds=True)
    follow(jobs)

    assert follow(jobs, interval_minutes=60) == 1
    assert states(jobs) == [("scheduled", 60)]
    assert follow(jobs, poll=False) == 1
    assert states(jobs) == []


def test_the_feed_job_stands_beside_the_crawl_job_and_waits_with_its_source(jobs: Bed) -> None:
    source_id = jobs.source("ex", feeds=True)
    jobs.upsert(source_id, interval_minutes=60, schedule_enabled=True)
    follow(jobs)

    with jobs.database.write() as session:
        assert disable_source(session, jobs.clock, "ex") == 2
    assert states(jobs) == [("paused", 15)]
    with jobs.database.write() as session:
        assert enable_source(session, jobs.clock, jobs.party.actions, "ex") == 2
    assert states(jobs) == [("scheduled", 15)]


def test_a_feed_job_that_runs_is_removed_when_it_has_ended(jobs: Bed) -> None:
    source_id = jobs.source("ex", feeds=True)
    follow(jobs)
    with jobs.database.write() as session:
        assert run_soon(session, jobs.clock, jobs.party.actions, source_id) in ("pending", "scheduled")
    jobs.party.scheduler.tick()
    lease = jobs.party.taken()
    edit(jobs, feeds=False)

    assert follow(jobs) == 0
    jobs.party.leases.release(lease)
    assert follow(jobs) == 1
    assert states(jobs) == []


def test_a_poll_by_hand_runs_at_once_and_keeps_the_rhythm(jobs: Bed, clock: FakeClock) -> None:
    source_id = jobs.source("ex", feeds=True)
    follow(jobs)
    with jobs.database.write() as session:
        before = crawl_job(session, source_id=source_id, kind=FEED)
        assert before is not None
        job_id, rhythm = before.id, before.rhythm_at
        run_soon(session, jobs.clock, jobs.party.actions, source_id)
    jobs.run_once(job_id)

    job = jobs.job(job_id)
    assert (job.state, job.successful_runs) == ("scheduled", 1)
    assert job.next_run_at is not None
    assert rhythm is not None
    assert (job.next_run_at - rhythm) % timedelta(minutes=15) == timedelta()
    assert job.next_run_at > clock.now()


def brief(jobs: Bed, **settings: Any) -> registry.PollPlan:
    """Return what a poll of the source has to do now."""
    with jobs.database.read() as session:
        source = find_source(session, "ex")
        return registry.plan_poll(
            session, source, sources.config_of(source), FeedSettings(**settings), now=jobs.clock.now()
        )


def add(jobs: Bed, path: str = "/feed", **facts: Any) -> Feed:
    """Let the source have a feed."""
    with jobs.database.write() as session:
        made = registry.add(session, jobs.clock, find_source(session, "ex"), f"https://ex.example{path}")
        for name, value in facts.items():
            setattr(made, name, value)
        return made


def test_a_poll_asks_what_is_due_or_nearly_so(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    soon, late = clock.now() + timedelta(minutes=7), clock.now() + timedelta(minutes=8)
    add(jobs, "/due")
    add(jobs, "/soon", next_poll_at=soon)
    add(jobs, "/late", next_poll_at=late)
    add(jobs, "/limited", next_poll_at=soon, last_error_type="rate_limited")
    add(jobs, "/failing", next_poll_at=soon, last_error_type="network")
    add(jobs, "/disabled", next_poll_at=None, disabled_at=clock.now())

    paths = {feed.url.removeprefix("https://ex.example") for feed in brief(jobs).feeds}

    assert paths == {"/due", "/soon", "/failing"}


def test_an_interval_that_becomes_shorter_counts_at_once(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    now = clock.now()
    add(jobs, "/feed", last_polled_at=now, next_poll_at=now + timedelta(days=1))
    clock.advance(15 * 60)

    assert brief(jobs, interval_minutes=1440).feeds == ()
    assert len(brief(jobs).feeds) == 1


def test_who_asked_us_to_stay_away_is_not_asked_early_by_the_rhythm_or_by_hand(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    polled, minute = clock.now(), timedelta(minutes=1)
    add(jobs, "/busy", last_polled_at=polled, next_poll_at=polled + 16 * minute, last_error_type="upstream_failure")
    add(jobs, "/limited", last_polled_at=polled, next_poll_at=polled + 10 * minute, last_error_type="rate_limited")
    add(jobs, "/failing", last_polled_at=polled, next_poll_at=polled + 15 * minute, last_error_type="upstream_failure")
    found: list[set[str]] = []
    for minutes in (9, 1, 5, 1):
        clock.advance(60 * minutes)
        found.append({feed.url.removeprefix("https://ex.example/") for feed in brief(jobs).feeds})

    assert found == [{"failing"}, {"failing", "limited"}, {"failing", "limited"}, {"busy", "failing", "limited"}]
    with jobs.database.read() as session:
        rows = queries.feeds_of_source(session, source_id=1)
    assert [feed.url[-8:] for feed in registry.make_due(clock, rows, SETTINGS)] == ["/failing"]


def test_a_run_that_did_not_reach_a_feed_leaves_it_disabled_by_hand(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    feed, what = add(jobs), brief(jobs)
    with jobs.database.write() as session:
        registry.disable(session, clock, feed.id)
    assert _count_unreached(jobs, what, since=clock.now(), now=clock.now()) == 0

    with jobs.database.read() as session:
        assert registry.find(session, feed.id).last_error_type == "by_hand"


def test_without_sitemaps_only_those_that_somebody_added_are_polled(jobs: Bed) -> None:
    jobs.source("ex", feeds=True, sitemaps=False)
    add(jobs, "/found.xml", kind="sitemap", origin="robots")
    add(jobs, "/mine.xml", kind="sitemap")
    add(jobs, "/feed")

    assert [feed.url[-9:] for feed in brief(jobs).feeds] == ["/mine.xml", "mple/feed"]


def test_a_source_is_searched_again_only_after_so_many_hours(jobs: Bed, clock: FakeClock) -> None:
    source_id = jobs.source("ex", feeds=True)
    assert brief(jobs).search
    assert not brief(jobs, discovery=False).search
    with jobs.database.write() as session:
        note_search(session, source_id=source_id, at=clock.now())

    clock.advance(24 * 3600 - 1)
    assert not brief(jobs).search
    assert brief(jobs).is_idle
    clock.advance(1)
    assert brief(jobs).search


@pytest.mark.parametrize(("backend", "alone"), [("zimit", True), ("native", False)])
def test_only_a_source_that_zimit_crawls_is_left_alone(jobs: Bed, backend: str, alone: bool) -> None:
    jobs.once("ex", config={"feeds": True, "backend": backend})
    assert not brief(jobs).is_idle
    jobs.party.scheduler.tick()
    lease = jobs.party.taken()

    assert (brief(jobs).crawled_now, brief(jobs).is_idle) == (alone, alone)
    jobs.party.leases.release(lease)
    assert not brief(jobs).is_idle


def test_items_are_in_scope_where_the_seeds_landed_in_the_last_crawl(jobs: Bed) -> None:
    job_id = jobs.once("ex", config={"feeds": True})
    assert brief(jobs).landing == ()
    jobs.run_once(job_id)
    with jobs.database.write() as session:
        session.scalars(select(Execution)).one().config = {"landing": ["https://there.example/"]}

    assert brief(jobs).landing == ("https://there.example/",)


def test_feeds_that_a_run_did_not_reach_count_as_network_errors(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    add(jobs, "/reached")
    add(jobs, "/missed", consecutive_errors=9, last_error_type="network")
    began, what = clock.now(), brief(jobs)
    clock.advance(60)
    with jobs.database.write() as session:
        reached = queries.listed(session)[0][0]
        reached.last_polled_at = clock.now()
    assert _count_unreached(jobs, what, since=began, now=clock.now()) == 1

    with jobs.database.read() as session:
        rows = {feed.url[-7:]: feed for feed, _ in queries.listed(session)}
    assert (rows["/missed"].consecutive_errors, rows["/missed"].next_poll_at) == (10, None)
    assert rows["/missed"].disabled_at == clock.now()
    assert rows["reached"].consecutive_errors == 0


def test_items_that_an_earlier_poll_took_and_never_asked_for_wait_again(jobs: Bed, clock: FakeClock) -> None:
    source_id = jobs.source("ex", feeds=True)
    feed = add(jobs)
    follow(jobs)
    with jobs.database.write() as session:
        job = crawl_job(session, source_id=source_id, kind=FEED)
        assert job is not None
        run_soon(session, jobs.clock, jobs.party.actions, source_id)
    jobs.run_once(job.id, failed())
    now, execution = clock.now(), jobs.executions(job.id)[0].id
    endings = (("success", "ok"), ("failed", "http_404"), ("excluded", "over_limit:max_time"), (None, None))
    with jobs.database.write() as session:
        for number, (outcome, reason) in enumerate(endings):
            page = Page(domain_id=1, url_hash=number, url=f"https://ex.example/{number}", created_at=now)
            session.add(page)
            session.flush()
            session.add(PageCrawl(execution_id=execution, domain_id=1, page_id=page.id, attempt=1, kind="page",
                                  priority=1, depth=0, outcome=outcome, reason=reason,
                                  created_at=to_micros(now)))  # fmt: skip
            session.add(FeedItem(source_id=source_id, feed_id=feed.id, url_hash=number, url=page.url, found_at=now,
                                 execution_id=execution))  # fmt: skip

    with closing(connect(jobs.url)) as raw_db:
        given = [polling.recover_items(raw_db, job_id=job.id, source_id=source_id) for _ in range(2)]

    with jobs.database.read() as session:
        rows = session.execute(select(FeedItem.url_hash, FeedItem.execution_id).order_by(FeedItem.url_hash)).all()
    assert given == [2, 0]
    assert [tuple(row) for row in rows] == [(0, execution), (1, execution), (2, None), (3, None)]


def test_items_that_were_captured_years_ago_are_forgotten_a_stretch_at_a_time(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    feed, old = add(jobs), clock.now() - polling.ITEMS_KEPT - timedelta(days=1)
    with jobs.database.write() as session:
        for number in range(200):
            # Every tenth waits, and every eleventh was named a moment ago.
            session.add(FeedItem(source_id=feed.source_id, feed_id=feed.id, url_hash=number,
                                 url=f"https://ex.example/{number}", execution_id=None if number % 10 == 0 else 1,
                                 found_at=clock.now() if number % 11 == 0 else old))  # fmt: skip

    with closing(connect(jobs.url)) as raw_db:
        once = polling.forget_items(raw_db, now=clock.now(), looked_at=50)
        rest = polling.forget_items(raw_db, now=clock.now())

    with jobs.database.read() as session:
        kept = list(session.scalars(select(FeedItem.url_hash).order_by(FeedItem.url_hash)))
    assert 0 < once <= 50
    assert once + rest + len(kept) == 200
    assert kept == [number for number in range(200) if number % 10 == 0 or number % 11 == 0]


def test_a_feed_that_is_added_by_hand_finds_room_by_the_rule_of_found_ones(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    by_hand, found = add(jobs, "/1"), add(jobs, "/2")
    with jobs.database.write() as session:
        registry.disable(session, clock, by_hand.id)
        row = registry.find(session, found.id)
        row.origin, row.disabled_at, row.last_error_type = "discovered", clock.now(), "gone"

    def room() -> bool:
        with suppress(FeedsTooMany), jobs.database.write() as session:
            registry.add(session, clock, find_source(session, "ex"), "https://ex.example/3", limit=2)
            return True
        return False

    assert not room(), "those that are disabled count"
    clock.advance(timedelta(days=31).total_seconds())
    assert room(), "one that its answers disabled a month ago makes room"
    with jobs.database.read() as session:
        assert [one.url for one in queries.feeds_of_source(session, source_id=by_hand.source_id)] == [
            "https://ex.example/1", "https://ex.example/3",
        ]  # fmt: skip


def test_feeds_are_managed_by_hand_and_that_is_audited(jobs: Bed, clock: FakeClock) -> None:
    jobs.source("ex", feeds=True)
    feed = add(jobs)
    with pytest.raises(FeedTaken):
        add(jobs)
    with jobs.database.write() as session, pytest.raises(FeedsTooMany):
        registry.add(session, clock, find_source(session, "ex"), "https://ex.example/2", limit=1)
    with jobs.database.write() as session:
        registry.disable(session, clock, feed.id)
    assert brief(jobs).feeds == ()
    with jobs.database.write() as session:
        registry.enable(session, clock, feed.id)
    assert len(brief(jobs).feeds) == 1
    with jobs.database.write() as session:
        registry.remove(session, clock, feed.id)
    with jobs.database.read() as session, pytest.raises(FeedNotFound):
        registry.find(session, feed.id)

    with jobs.database.read() as session:
        deeds = list(session.scalars(select(AuditEvent.action).order_by(AuditEvent.id)))
    assert [deed for deed in deeds if deed.startswith("feed.")] == [
        "feed.added", "feed.disabled", "feed.enabled", "feed.removed",
    ]  # fmt: skip


def test_a_source_with_feeds_is_not_deleted_from_under_them(jobs: Bed) -> None:
    jobs.source("ex", feeds=True)
    add(jobs)

    with jobs.database.write() as session, pytest.raises(Conflict, match="feeds"):
        sources.delete(session, jobs.clock, "ex")
    with jobs.database.read() as session:
        assert session.scalars(select(Source.code)).all() == ["ex"]
        assert session.scalars(select(Execution.id)).all() == []
