"""What `holdfast status` says of feeds, on both databases: which were disabled by their answers, and which are late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.status import feed_lines
from holdfast.clock import to_micros
from holdfast.config import FeedSettings
from holdfast.db import connect
from holdfast.feeds import registry, status
from holdfast.feeds.status import FeedStatus, LateSource, read_feed_status
from holdfast.jobs.administration.source_jobs import disable_source, follow_all
from holdfast.records import encode
from holdfast.sources import registry as sources
from holdfast.sources.queries import find_source
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed

_TURN = timedelta(minutes=15)


@pytest.fixture
def jobs(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as bed:
        bed.source("ex", feeds=True)
        follow_all(bed.database, bed.party.actions, FeedSettings())
        yield bed


def add(jobs: Bed, path: str, **facts: Any) -> int:
    """Let the source have a feed."""
    with jobs.database.write() as session:
        made = registry.add(session, jobs.clock, find_source(session, "ex"), f"https://ex.example{path}")
        for name, value in facts.items():
            setattr(made, name, value)
        return made.id


def standing(jobs: Bed) -> FeedStatus:
    """Return how the feeds stand."""
    with closing(connect(jobs.url)) as raw_db:
        return read_feed_status(raw_db, jobs.clock, FeedSettings())


def test_feeds_that_are_polled_in_time_are_not_worth_a_word(jobs: Bed, clock: FakeClock) -> None:
    add(jobs, "/due")
    add(jobs, "/soon", next_poll_at=clock.now() + _TURN)
    clock.advance(2 * _TURN.total_seconds())

    assert feed_lines(standing(jobs)) == []


def test_a_feed_that_its_answers_disabled_is_shown_and_one_by_hand_is_not(jobs: Bed, clock: FakeClock) -> None:
    gone = add(jobs, "/gone", disabled_at=clock.now(), last_error_type="gone", next_poll_at=None)
    add(jobs, "/old", disabled_at=clock.now() - timedelta(days=8), last_error_type="gone", next_poll_at=None)
    unwanted = add(jobs, "/unwanted")
    with jobs.database.write() as session:
        registry.disable(session, clock, unwanted)

    [said] = feed_lines(standing(jobs))

    assert said == (
        f"feed {gone} of ex is disabled (gone): https://ex.example/gone; try again: holdfast feed enable {gone}"
    )
    assert [one["feed"] for one in encode(standing(jobs))["disabled"]] == [gone]


def test_feeds_that_nobody_polls_are_late_unless_they_are_not_meant_to_be_polled(jobs: Bed, clock: FakeClock) -> None:
    since = clock.now()
    add(jobs, "/one")
    add(jobs, "/two", next_poll_at=since + _TURN)
    add(jobs, "/map.xml", kind="sitemap", origin="robots")
    clock.advance(4 * _TURN.total_seconds())

    assert standing(jobs).late == [LateSource(source="ex", feeds=3, since=since)]
    assert "holdfast start-worker --kinds feed" in feed_lines(standing(jobs))[0]
    with jobs.database.write() as session:
        sources.edit(session, clock, "ex", {"config": {"sitemaps": False}})
    assert [one.feeds for one in standing(jobs).late] == [2]
    with jobs.database.write() as session:
        disable_source(session, clock, "ex")
    assert standing(jobs).late == []


def test_a_source_whose_feeds_name_more_than_may_wait_is_shown(jobs: Bed) -> None:
    add(jobs, "/well")
    add(jobs, "/endless", last_error_type="backlog", last_error="many are left")

    assert encode(standing(jobs))["backlog"] == [{"source": "ex", "feeds": 1}]
    [said] = feed_lines(standing(jobs))
    assert "feeds of ex name more than may wait" in said


def test_the_overview_of_feeds_walks_no_table(jobs: Bed, clock: FakeClock) -> None:
    at = to_micros(clock.now())
    with closing(connect(jobs.url)) as raw_db, raw_db.write() as tx:
        explain = "EXPLAIN QUERY PLAN " if raw_db.dialect == "sqlite" else "EXPLAIN "
        tx.execute(
            "INSERT INTO feeds (source_id, url, url_hash, kind, origin, created_at, next_poll_at)"
            " SELECT 1, 'u', n, 'feed', 'index', 1, 9000000000000000 FROM"
            " (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000) SELECT n FROM c) t"
        )
        tx.execute("ANALYZE")
        plans = [" ".join(str(row[-1]) for row in tx.execute(explain + text, values))
                 for text, values in ((status.DISABLED, (at, "x", 5)), (status.LATE, (at, 5)),
                                      (status.BACKLOGS, (5, "x")))]  # fmt: skip

    assert "ix_feeds_disabled" in plans[0], plans
    assert "ix_feeds_due" in plans[1], plans
    assert "ix_feeds_due" in plans[2], plans
