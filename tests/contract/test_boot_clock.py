"""SQLite: a step of the wall clock changes no lease, no circuit and no wait while something runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import config
from holdfast.clock import SystemClock, boot_id, from_micros, to_micros
from holdfast.coordination.owners import OwnerProcess
from holdfast.coordination.runfile import RunFile
from holdfast.crawl.plan import CrawlPlan
from holdfast.db import connect
from holdfast.db.engine import Database, SessionClock, moment_in
from holdfast.db.raw import DatabaseClock, DatabaseReadOnly, SqliteRawDatabase, Transaction, sqlite_path
from holdfast.frontier import Frontier, FrontierSettings
from holdfast.jobs import executions
from holdfast.types import CircuitState, DomainUpdate
from holdfast.wiring import prepare
from tests.clock import FakeClock
from tests.contract.frontier_bed import found

STEPS = [61.0, 1800.0, -7200.0]
_PLAN = CrawlPlan(seeds=("http://a.test/",), contact="tests@example.org")


@pytest.fixture
def raw_db(migrated_sqlite: str) -> Iterator[SqliteRawDatabase]:
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    with closing(SqliteRawDatabase(path)) as opened:
        yield opened


def _begin(raw_db: SqliteRawDatabase, clock: DatabaseClock, home: Path) -> int:
    wish = executions.ExecutionWish(home)
    begun = executions.begin(raw_db, clock, _PLAN, wish, is_working=lambda _: False)
    return begun.execution_id


@contextmanager
def _process(url: str, machine: FakeClock) -> Iterator[tuple[Frontier, DatabaseClock]]:
    """Open what another process of the machine would have."""
    with closing(connect(url)) as raw_db:
        clock = DatabaseClock(raw_db, machine)
        yield Frontier(raw_db, clock, FrontierSettings(lease_s=60.0)), clock


@pytest.mark.parametrize("step_s", STEPS)
def test_wall_clock_step_gives_no_second_lease(
    raw_db: SqliteRawDatabase, migrated_sqlite: str, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    ours = DatabaseClock(raw_db, clock)
    frontier = Frontier(raw_db, ours, FrontierSettings(lease_s=60.0))
    execution_id = _begin(raw_db, ours, tmp_path)
    frontier.add(execution_id, [found("a.test", 1), found("b.test", 1)])
    [first] = frontier.lease(execution_id, 1, domains=1, pages=1)

    clock.shift_wall(step_s)
    clock.advance(1)
    with _process(migrated_sqlite, clock) as (other, _):
        leases = other.lease(execution_id, 2, domains=5, pages=1)

        assert [lease.domain for lease in leases] == ["b.test"], "the free domain, and not the one that is held"
        assert frontier.renew(1).keys() == {first.domain_id}
        clock.advance(61)
        assert "a.test" in [lease.domain for lease in other.lease(execution_id, 2, domains=5, pages=1)]


@pytest.mark.parametrize("step_s", STEPS)
def test_wall_clock_step_gives_up_no_host(
    raw_db: SqliteRawDatabase, migrated_sqlite: str, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    ours = DatabaseClock(raw_db, clock)
    frontier, began = Frontier(raw_db, ours), ours.now()
    execution_id = _begin(raw_db, ours, tmp_path)
    frontier.add(execution_id, [found("a.test", 1)])
    [lease] = frontier.lease(execution_id, 1, domains=1, pages=1)
    circuit = CircuitState(state="open", failures=5, opened_at=began, unreachable_since=began)
    rests_until = began + timedelta(seconds=60)
    update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, next_allowed_at=rests_until, circuit=circuit)
    frontier.release(execution_id, 1, [update])

    clock.shift_wall(step_s)
    with _process(migrated_sqlite, clock) as (other, theirs):
        assert other.hopeless_domains(execution_id, since=began, patience_s=1800.0) == []
        assert other.lease(execution_id, 2, domains=1, pages=1) == [], "its circuit is open for a minute"
        clock.advance(60.5)
        theirs.synchronise()
        assert len(other.lease(execution_id, 2, domains=1, pages=1)) == 1, "and for no longer"


@pytest.mark.parametrize("step_s", STEPS)
def test_wall_clock_step_leaves_owners_alive(
    raw_db: SqliteRawDatabase, migrated_sqlite: str, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    ours = DatabaseClock(raw_db, clock)
    _begin(raw_db, ours, tmp_path)
    owner = OwnerProcess(raw_db, ours, run=RunFile(tmp_path / "run"), kind="worker", execution_id=None)
    clock.shift_wall(step_s)
    with closing(Database(migrated_sqlite)) as database, database.read() as session:
        sessions, theirs = moment_in(session, SessionClock(clock)), moment_in(session, ours)
    owner.end()

    assert sessions == theirs == ours.now()


def test_idle_clock_follows_wall_clock_forward_only(raw_db: SqliteRawDatabase, clock: FakeClock) -> None:
    ours = DatabaseClock(raw_db, clock)

    clock.shift_wall(7200)
    assert ours.synchronise() == 7200.0
    clock.shift_wall(-7200)
    assert ours.synchronise() == 0.0


@pytest.mark.parametrize(("behind_s", "moved_s"), [(-3600.0, 0.0), (7200.0, 7200.0), (90_000.0, 0.0)])
def test_new_boot_goes_on_from_the_last_heartbeat(
    raw_db: SqliteRawDatabase, clock: FakeClock, tmp_path: Path, behind_s: float, moved_s: float
) -> None:
    last = clock.now() + timedelta(seconds=behind_s)
    with raw_db.write() as tx:
        tx.execute("INSERT INTO clock_anchors (boot_id, micros) VALUES ('another boot', 0)")
        tx.execute(
            "INSERT INTO owners (kind, host, pid, run_file, started_at, heartbeat_at)"
            " VALUES ('worker', 'h', 1, 'r', 0, ?)",
            (to_micros(last),),
        )

    assert DatabaseClock(raw_db, clock).now() == clock.now() + timedelta(seconds=moved_s)


def test_first_command_of_a_boot_stores_the_anchor(tmp_path: Path) -> None:
    settings = config.load(home=tmp_path)
    prepare(settings)
    machine = SystemClock()
    with closing(connect(settings.database)) as raw_db, raw_db.read() as tx:
        [(boot, micros)] = tx.execute("SELECT boot_id, micros FROM clock_anchors")

    assert boot == boot_id()
    assert abs(from_micros(micros) + timedelta(seconds=machine.monotonic()) - machine.now()) < timedelta(seconds=5)


class _ReadOnly(SqliteRawDatabase):
    def write(self) -> AbstractContextManager[Transaction]:
        raise DatabaseReadOnly(Path("holdfast.db"))


def test_read_only_database_goes_by_the_wall_clock(migrated_sqlite: str, clock: FakeClock) -> None:
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    with closing(_ReadOnly(path)) as fixed:
        assert fixed.now_micros(clock) == to_micros(clock.now())
