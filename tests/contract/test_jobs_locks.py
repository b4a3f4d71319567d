"""Rows are locked in one order, the source before its jobs: whoever changes a job never waits in a circle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from holdfast.config import FeedSettings
from holdfast.jobs.administration.actions import patch_zimit
from holdfast.jobs.administration.maintenance import make_due, raise_options
from holdfast.jobs.administration.source_jobs import follow_feeds
from holdfast.jobs.store import locked_job, locked_source
from holdfast.sources.queries import source_by_id
from tests import patience
from tests.clock import FakeClock
from tests.flow.faults.bed import until
from tests.jobs_bed import Bed, open_bed

pytestmark = pytest.mark.postgres
Deed = Callable[[Session, Bed], object]


@pytest.fixture
def bed(migrated_postgres: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    """Jobs on PostgreSQL: SQLite has one writer."""
    with open_bed(migrated_postgres, clock, tmp_path) as opened:
        yield opened


def _feeds(session: Session, bed: Bed, minutes: int = 7) -> object:
    source = source_by_id(session, 1)
    assert source is not None
    return follow_feeds(session, bed.party.actions, source, FeedSettings(interval_minutes=minutes))


_DEEDS: dict[str, Deed] = {
    "make_due": lambda session, bed: make_due(session, bed.clock, 1),
    "raise_options": lambda session, bed: raise_options(session, bed.clock, 1, {"initial_workers": 2}, why="test"),
    "patch_zimit": lambda session, bed: patch_zimit(session, bed.clock, 1, {}, check=lambda _: None, apply=True),
    "follow_feeds": _feeds,
}


@pytest.mark.parametrize("name", _DEEDS)
def test_the_source_is_locked_before_the_job(bed: Bed, name: str) -> None:
    bed.upsert(bed.source(feeds=True), interval_minutes=60, schedule_enabled=True)
    with bed.database.write() as session:
        _feeds(session, bed, minutes=15)
    deed = _DEEDS[name]

    def act() -> None:
        with bed.another().database.write() as session:
            deed(session, bed)
            done.append(name)

    done: list[str] = []
    thread = threading.Thread(target=act, name=name, daemon=True)
    with bed.database.write() as session:
        session.execute(text("SET LOCAL lock_timeout = '5s'"))
        locked_source(session, 1)
        thread.start()
        until(lambda: _waits(bed), within_s=20, what="it waits for the source")
        # Where it had locked a job before, this would wait for it, and it for us.
        assert [locked_job(session, job_id) is not None for job_id in (1, 2)] == [True, True]
    thread.join(patience.deadline(20))

    assert done == [name]


def _waits(bed: Bed) -> bool:
    with bed.database.read() as session:
        waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'")
        return bool(session.scalar(waits))
