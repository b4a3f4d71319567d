"""Counts that are kept ready: when they are made anew, and that neither counting nor asking wears a server out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from holdfast.api.figures import FRESH_S, CountCache, CountedWork
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.db.models import Job, Source
from holdfast.wiring import prepare
from tests.clock import FakeClock


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty database."""
    settings = Settings(home=tmp_path)
    prepare(settings)
    opened = Database(settings.database)
    yield opened
    opened.close()


class _Slow:
    """What is counted: asking whether it changed takes time."""

    def __init__(self, clock: FakeClock, asking_s: float) -> None:
        self.clock, self.asking_s = clock, asking_s
        self.value = self.asked = self.counted = 0

    def state(self, _session: Session) -> int:
        self.clock.advance(self.asking_s)
        self.asked += 1
        return self.value

    def count(self, _session: Session) -> int:
        self.counted += 1
        return self.value


def test_count_with_state_uses_its_own_session(database: Database, clock: FakeClock) -> None:
    used: list[Session] = []
    counting: CountCache[None] = CountCache(database, clock)
    with database.read() as session:
        counting.cached(session, None, used.append, state=lambda _session: 1)
    counting.close()

    assert len(used) == 1
    assert used[0] is not session


@pytest.mark.parametrize(("asking_s", "asked"), [(0.001, 13), (0.02, 3)])
def test_slow_check_for_changes_rests_ten_times_its_cost(
    database: Database, clock: FakeClock, asking_s: float, asked: int
) -> None:
    slow = _Slow(clock, asking_s)
    counting: CountCache[int] = CountCache(database, clock)
    with database.read() as session:
        for _ in range(10):
            assert counting.cached(session, None, slow.count, state=slow.state) == 0
        slow.value = 1
        told = counting.cached(session, None, slow.count, state=slow.state)
        clock.advance(1)
        later = counting.cached(session, None, slow.count, state=slow.state)
    counting.close()

    assert slow.asked == asked, "at each look but the first, and before each of the two counts"
    assert (told, later) == ((1, 1) if asking_s < 0.01 else (0, 1))
    assert slow.counted == 2


def test_job_figures_are_five_seconds_old_at_most(database: Database, clock: FakeClock) -> None:
    work = CountedWork(database, clock)
    with database.read() as session:
        before = work.read(session).jobs
    with database.write() as session:
        source = Source(code="ex", name="ex", enabled=True, config={}, created_at=clock.now(), updated_at=clock.now())
        session.add(source)
        session.flush()
        session.add(Job(source_id=source.id, kind="crawl", fingerprint="", created_at=clock.now(), state="pending"))

    with database.read() as session:
        same = work.read(session).jobs
        clock.advance(FRESH_S)
        fresh = work.read(session).jobs
    work.close()

    assert (before, same, fresh) == ({}, {}, {"queued": 1})


def test_old_count_is_made_in_the_request_when_bearable(database: Database, clock: FakeClock) -> None:
    slow = _Slow(clock, 0.0)

    def count(session: Session) -> int:
        clock.advance(0.5)
        return slow.count(session)

    counting: CountCache[int] = CountCache(database, clock)
    with database.read() as session:
        counting.cached(session, None, count, state=slow.state)
        slow.value = 1
        clock.advance(1)
        soon = counting.cached(session, None, count, state=slow.state)
        clock.advance(60)
        late = counting.cached(session, None, count, state=slow.state)
    counting.close()

    assert (soon, late, slow.counted) == (0, 1, 2)
