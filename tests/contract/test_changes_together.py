"""Comparing while others do: two at once, captures that arrive meanwhile, a run that is stopped, short transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from holdfast.changes.compute import Computed, compute_pending
from holdfast.db.engine import Database
from holdfast.wiring.archive import Archive
from tests import patience
from tests.contract.changes_bed import PAGE, Building, compute, day, open_building, told


@pytest.fixture
def building(tmp_path: Path, migrated_url: str) -> Iterator[Building]:
    """Build an archive of this test alone."""
    with open_building(tmp_path / "home", migrated_url) as build:
        yield build


def test_what_is_done_stays_done_when_it_is_stopped(building: Building) -> None:
    archive = building([day(n, f"words {n}", url=f"{PAGE}/{p}", execution=n + 1) for n in range(2) for p in range(80)])

    def stop(_result: Computed) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute_pending(archive.database, archive.clock, stop)
    done = len(told(archive))
    rest = compute(archive)

    assert 0 < done < 160
    assert (rest.events, len(told(archive))) == (160 - done, 160)
    assert {row[1] for row in told(archive) if row[0] == 1} == {"updated"}


def test_late_captures_before_a_long_outage_are_written_in_short_transactions(building: Building) -> None:
    outage = [day(100 + n, None, status=503, execution=n + 1) for n in range(60)]
    archive = building([*outage, day(300, "after", execution=90)])
    compute(archive)
    archive = building([day(n, None, status=503, execution=100 + n) for n in range(40)])
    asked = [0]

    def note(*_: object) -> None:
        asked[-1] += 1

    def ended(*_: object) -> None:
        asked.append(0)

    def stop(_result: Computed) -> None:
        raise KeyboardInterrupt

    event.listen(archive.database.engine, "before_cursor_execute", note)
    event.listen(archive.database.engine, "commit", ended)
    event.listen(archive.database.engine, "rollback", ended)
    writes = _Counted(archive.database, asked)
    with pytest.raises(KeyboardInterrupt):
        compute_pending(writes, archive.clock, stop)  # type: ignore[arg-type]
    done = len(told(archive)) - 61
    rest = compute_pending(writes, archive.clock)  # type: ignore[arg-type]

    assert 0 < done < 40
    assert rest.looked_at == 40 - done
    assert max(writes.statements) < 600, "forty times fifty captures follow"
    days = [*range(40), *range(100, 160)]
    assert told(archive)[:100] == [(now, "error", before) for now, before in zip(days, [None, *days[:-1]], strict=True)]


class _Counted:
    """A database that notes how many statements each of its write transactions had."""

    def __init__(self, database: Database, asked: list[int]) -> None:
        self._database, self._asked = database, asked
        self.read = database.read
        self.statements: list[int] = []

    @contextmanager
    def write(self) -> Iterator[Session]:
        with self._database.write() as session:
            before = self._asked[-1]
            yield session
            self.statements.append(self._asked[-1] - before)


class _Timed(Database):
    """A database that notes what each of its transactions costs this process, and how many wrote."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.spent: list[float] = []

    @contextmanager
    def write(self) -> Iterator[Session]:
        started = time.process_time()
        with super().write() as session:
            yield session
        self.spent.append(time.process_time() - started)


def test_no_transaction_is_long(building: Building) -> None:
    words = "The harbour lies open to the west, and the tide runs hard. " * 40
    archive = building(
        [day(n, f"{words} {n}", url=f"{PAGE}/{p}", execution=n + 1) for n in range(2) for p in range(100)]
    )

    with closing(_Timed(archive.database.url)) as database:
        compute_pending(database, archive.clock)

    assert len(database.spent) == 4, "two hundred captures, sixty-four at a time"
    assert max(database.spent) < patience.allowed(0.25)


def test_two_at_once_say_everything_once(building: Building) -> None:
    archive = building([day(n, f"words {n}", url=f"{PAGE}/{p}", execution=n + 1) for n in range(6) for p in range(12)])
    failures: list[BaseException] = []
    barrier = threading.Barrier(2)

    def run() -> None:
        try:
            with closing(Database(archive.database.url)) as database:
                barrier.wait(patience.deadline(10))
                compute_pending(database, archive.clock)
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience.deadline(60))

    assert not failures
    found = told(archive)
    assert len(found) == 72
    assert sorted({(at, kind, since) for at, kind, since in found}) == [
        (0, "new_page", None), *((n, "updated", n - 1) for n in range(1, 6)),
    ]  # fmt: skip
    assert compute(archive).looked_at == 0


def test_a_capture_that_arrives_while_its_neighbours_are_compared_is_not_missed(building: Building) -> None:
    archive = building([day(0, "one"), day(4, "three")])
    arrived: list[Archive] = []

    def arrive(*_: object) -> None:
        if not arrived:
            arrived.append(archive)
            building([day(2, "two")])

    with _before_first_write(archive.database, arrive):
        compute(archive)
    compute(archive)

    assert arrived
    assert told(archive) == [(0, "new_page", None), (2, "updated", 0), (4, "updated", 2)]


class _before_first_write:
    """Calls something when the comparison is done and nothing is written yet: after the last read session."""

    def __init__(self, database: Database, call: Callable[[], None]) -> None:
        self._database, self._call, self._reads = database, call, 0

    def __enter__(self) -> None:
        event.listen(Session, "after_commit", self._seen)

    def __exit__(self, *_: object) -> None:
        event.remove(Session, "after_commit", self._seen)

    def _seen(self, _session: Session) -> None:
        self._reads += 1
        if self._reads == 3:
            self._call()
