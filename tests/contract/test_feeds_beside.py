"""What happens beside a poll, on both databases: a feed is disabled by hand, a crawl holds the domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.clock import to_micros
from holdfast.db.models import Job
from holdfast.feeds import polling_queries, registry
from holdfast.types import CircuitState, DomainLease, DomainUpdate, UrlKind
from tests.clock import FakeClock
from tests.contract.feeds_bed import Bed, listed, open_bed


@pytest.fixture
def feeds(migrated_url: str, clock: FakeClock) -> Iterator[Bed]:
    with open_bed(migrated_url, clock) as opened:
        yield opened


@pytest.mark.parametrize("status", [200, 304, 404, 410])
def test_a_feed_that_was_disabled_by_hand_while_it_was_asked_stays_so(
    feeds: Bed, clock: FakeClock, status: int
) -> None:
    feed = feeds.add()
    book = feeds.worker().book
    with feeds.database.write() as session:
        registry.disable(session, clock, feed.id)
    asked_at = clock.now()

    book.read_settled([feeds.document("/1", status=status) if status < 400 else feeds.failure(status)])

    after = feeds.known()
    assert (after.disabled_at, after.next_poll_at, after.last_error_type) == (asked_at, None, "by_hand")
    assert (feeds.items(), feeds.queued()) == ({}, [])


def test_a_poll_that_read_its_feed_before_it_was_disabled_by_hand_does_not_undo_that(
    feeds: Bed, clock: FakeClock
) -> None:
    feed = feeds.add()
    worker = feeds.worker()
    with worker.raw_db.read() as tx:
        row = polling_queries.feed_by_hash(tx, source_id=feeds.source_id, url_hash=feed.url_hash)
    assert row is not None
    with feeds.database.write() as session:
        registry.disable(session, clock, feed.id)

    with worker.raw_db.write() as tx:
        assert not polling_queries.write_poll(tx, replace(row, last_polled_at=to_micros(clock.now())), error=None)

    assert feeds.known().disabled_at is not None


def test_a_crawl_hears_that_a_poll_waits_for_its_domain_and_lets_it_go_first(feeds: Bed, clock: FakeClock) -> None:
    crawl, poll = feeds.worker(1).frontier, feeds.worker(2).frontier
    with feeds.database.write() as session:
        for job in session.query(Job):
            job.state, job.kind = "running", "crawl" if job.id == 1 else "feed"
    crawl.add(1, [listed("/a").found])
    [held] = crawl.lease(1, 10, domains=1, pages=5)
    before = crawl.wanted([held.domain_id])
    poll.add(2, [listed("/feed", UrlKind.SITEMAP).found])

    assert (before, crawl.wanted([held.domain_id]), crawl.wanted([99])) == (set(), {held.domain_id}, set())
    crawl.release(1, 10, [_given_back(held, clock)])
    crawl.rest(1, [held.domain_id], seconds=3)
    assert crawl.lease(1, 10, domains=1, pages=5) == []
    [taken] = poll.lease(2, 20, domains=1, pages=5)
    assert not taken.taken_over
    clock.advance(3)
    assert crawl.lease(1, 10, domains=1, pages=5) == []
    poll.release(2, 20, [_given_back(taken, clock)])
    assert [lease.domain_id for lease in crawl.lease(1, 10, domains=1, pages=5)] == [held.domain_id]


@pytest.mark.parametrize("is_read", [False, True])
def test_settled_feed_is_requested_again_if_it_was_not_read(feeds: Bed, clock: FakeClock, is_read: bool) -> None:
    feeds.add()
    worker = feeds.worker()
    worker.frontier.add(1, [listed("/feed", UrlKind.SITEMAP).found])
    [lease] = worker.frontier.lease(1, 10, domains=1, pages=5)
    visit = replace(feeds.document("/1"), attempt=lease.attempts[0], token=lease.token)
    settled = worker.frontier.settle(1, 10, [visit])
    if is_read:
        worker.book.read_settled([visit])

    feeds.worker().book.resume()
    feeds.worker().book.resume()

    asked = [(1, "sitemap", "/feed")] * (1 if is_read else 2)
    assert settled.closed == 1
    assert feeds.queued() == ([(1, "page", "/1"), *asked] if is_read else asked)
    assert feeds.items() == ({"/1": 1} if is_read else {})


def test_items_that_wait_are_taken_when_a_poll_resumes(feeds: Bed, clock: FakeClock) -> None:
    feeds.add()
    worker = feeds.worker(items=0)
    worker.frontier.add(1, [listed("/feed", UrlKind.SITEMAP).found])
    feeds.worker().book.resume()
    [lease] = worker.frontier.lease(1, 10, domains=1, pages=5)
    visit = replace(feeds.document("/1"), attempt=lease.attempts[0], token=lease.token)
    worker.frontier.settle(1, 10, [visit])
    worker.book.read_settled([visit])
    waiting = feeds.items()

    feeds.worker().book.resume()

    assert (waiting, feeds.items()) == ({"/1": None}, {"/1": 1})


def _given_back(lease: DomainLease, clock: FakeClock) -> DomainUpdate:
    return DomainUpdate(
        domain_id=lease.domain_id, token=lease.token, circuit=CircuitState(), next_allowed_at=clock.now()
    )
