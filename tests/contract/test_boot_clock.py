"""SQLite: a step of the wall clock changes no lease, no circuit and no wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from holdfast import config
from holdfast.clock import SystemClock, boot_id, from_micros, to_micros
from holdfast.db import connect
from holdfast.db.engine import Database, SessionClock, moment_in
from holdfast.db.raw import DatabaseClock, DatabaseReadOnly, SqliteRawDatabase, Transaction, sqlite_path
from holdfast.frontier import Frontier, FrontierSettings
from holdfast.jobs import executions
from holdfast.processes.boot_clock import follow_wall
from holdfast.processes.owners import OwnerProcess, dead_owners, seen_owners
from holdfast.processes.runfile import RunFile
from holdfast.sources.plan import CrawlPlan
from holdfast.types import CircuitState, DomainLease, DomainUpdate
from holdfast.wiring import prepare
from tests.clock import FakeClock
from tests.contract.frontier_bed import found

STEPS = [61.0, 1800.0, -7200.0]
CLOSED = CircuitState()
_PLAN = CrawlPlan(seeds=("http://a.test/",), contact="tests@example.org")


@pytest.fixture
def raw_db(migrated_sqlite: str) -> Iterator[SqliteRawDatabase]:
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    with closing(SqliteRawDatabase(path)) as opened:
        yield opened


@contextmanager
def _running(raw_db: SqliteRawDatabase, clock: DatabaseClock, home: Path) -> Iterator[int]:
    """Hold an execution as the process that crawls it does."""
    wish = executions.ExecutionOptions(home)
    begun = executions.begin(raw_db, clock, _PLAN, wish, is_working=lambda _: False)
    owner = _owner(raw_db, clock, home, kind="process", execution_id=begun.execution_id)
    yield begun.execution_id
    owner.end()


def _owner(
    raw_db: SqliteRawDatabase, clock: DatabaseClock, home: Path, *, kind: str, execution_id: int | None = None
) -> OwnerProcess:
    return OwnerProcess(raw_db, clock, run=RunFile(home / "run"), kind=kind, execution_id=execution_id)


@contextmanager
def _process(url: str, machine: FakeClock) -> Iterator[tuple[Frontier, DatabaseClock]]:
    """Open what another process of the machine would have."""
    path = sqlite_path(url)
    assert path is not None
    with closing(connect(url)) as raw_db:
        follow_wall(raw_db, machine, folder=path.parent / "run")
        clock = DatabaseClock(raw_db, machine)
        yield Frontier(raw_db, clock, FrontierSettings(lease_s=60.0)), clock


def _anchored(raw_db: SqliteRawDatabase, machine: FakeClock, home: Path) -> DatabaseClock:
    follow_wall(raw_db, machine, folder=home / "run")
    return DatabaseClock(raw_db, machine)


def _boot_again(raw_db: SqliteRawDatabase, owner: OwnerProcess) -> None:
    """Leave the row and the run file of an owner as they are found after a power cut."""
    owner.run.let_go()
    with owner.run.path.open("r+b") as file:
        file.seek(16)
        file.write(b"another boot".ljust(36, b"\0"))
    with raw_db.write() as tx:
        tx.execute("UPDATE clock_anchors SET boot_id = 'another boot'")


@pytest.mark.parametrize("step_s", STEPS)
def test_wall_clock_step_gives_no_second_lease(
    raw_db: SqliteRawDatabase, migrated_sqlite: str, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    ours = _anchored(raw_db, clock, tmp_path)
    frontier = Frontier(raw_db, ours, FrontierSettings(lease_s=60.0))
    with _running(raw_db, ours, tmp_path) as execution_id:
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
    ours = _anchored(raw_db, clock, tmp_path)
    frontier, began = Frontier(raw_db, ours), ours.now()
    with _running(raw_db, ours, tmp_path) as execution_id:
        frontier.add(execution_id, [found("a.test", 1)])
        [lease] = frontier.lease(execution_id, 1, domains=1, pages=1)
        circuit = CircuitState(state="open", failures=5, opened_at=began, unreachable_since=began)
        _rest(frontier, execution_id, lease, until=began + timedelta(seconds=60), circuit=circuit)

        clock.shift_wall(step_s)
        with _process(migrated_sqlite, clock) as (other, theirs):
            assert other.hopeless_domains(execution_id, since=began, patience_s=1800.0) == []
            assert other.lease(execution_id, 2, domains=1, pages=1) == [], "its circuit is open for a minute"
            clock.advance(60.5)
            theirs.synchronise()
            assert len(other.lease(execution_id, 2, domains=1, pages=1)) == 1, "and for no longer"


def _rest(
    frontier: Frontier, execution_id: int, lease: DomainLease, *, until: datetime, circuit: CircuitState = CLOSED
) -> None:
    update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, next_allowed_at=until, circuit=circuit)
    frontier.release(execution_id, 1, [update])


@pytest.mark.parametrize("step_s", STEPS)
def test_wall_clock_step_moves_no_clock_of_a_running_crawl(
    raw_db: SqliteRawDatabase, migrated_sqlite: str, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    ours = _anchored(raw_db, clock, tmp_path)
    began = ours.now()
    with _running(raw_db, ours, tmp_path):
        clock.shift_wall(step_s)
        with _process(migrated_sqlite, clock) as (_, theirs):
            assert theirs.now() == _session_time(migrated_sqlite, clock) == ours.now() == began


def _session_time(url: str, machine: FakeClock) -> datetime:
    with closing(Database(url)) as database, database.read() as session:
        return moment_in(session, SessionClock(machine))


@pytest.mark.parametrize("step_s", STEPS)
def test_idle_clock_follows_wall_clock_in_every_reader(
    raw_db: SqliteRawDatabase, migrated_sqlite: str, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    ours = _anchored(raw_db, clock, tmp_path)
    # It polls, and holds nothing.
    worker = _owner(raw_db, ours, tmp_path, kind="worker")

    clock.shift_wall(step_s)
    with _process(migrated_sqlite, clock) as (_, theirs):
        [seen] = seen_owners(raw_db, theirs, kind="worker", folder=tmp_path / "run")
        assert ours.synchronise() == step_s
        assert theirs.now() == _session_time(migrated_sqlite, clock) == ours.now() == clock.now()
        assert seen.heartbeat_at == clock.now(), "its silence is as long as before"
    worker.end()


@pytest.mark.parametrize("step_s", STEPS)
def test_idle_clock_follows_wall_clock_after_a_killed_crawl(
    raw_db: SqliteRawDatabase, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    ours = _anchored(raw_db, clock, tmp_path)
    executions.begin(raw_db, ours, _PLAN, executions.ExecutionOptions(tmp_path), is_working=lambda _: False)
    _owner(raw_db, ours, tmp_path, kind="process", execution_id=1).run.let_go()

    clock.shift_wall(step_s)

    assert _anchored(raw_db, clock, tmp_path).now() == clock.now()


_LEASES = [
    "INSERT INTO domains (name, created_at, lease_owner, lease_expires_at) VALUES ('a.test', 0, ?, 9)",
    "UPDATE jobs SET lock_token = 't', lock_owner_id = ?",
]


@pytest.mark.parametrize("lease", _LEASES)
def test_clock_stays_while_a_live_process_holds_a_lease(
    raw_db: SqliteRawDatabase, clock: FakeClock, tmp_path: Path, lease: str
) -> None:
    ours = _anchored(raw_db, clock, tmp_path)
    owner = _owner(raw_db, ours, tmp_path, kind="worker")
    executions.begin(raw_db, ours, _PLAN, executions.ExecutionOptions(tmp_path), is_working=lambda _: False)
    with raw_db.write() as tx:
        tx.execute(lease, (owner.id,))
    clock.shift_wall(7200)

    assert clock.now() - _anchored(raw_db, clock, tmp_path).now() == timedelta(seconds=7200)
    owner.run.let_go()
    assert _anchored(raw_db, clock, tmp_path).now() == clock.now()


def test_clock_is_read_without_the_write_lock_when_wall_is_ahead(
    raw_db: SqliteRawDatabase, migrated_sqlite: str, clock: FakeClock, tmp_path: Path
) -> None:
    ours = _anchored(raw_db, clock, tmp_path)
    path = sqlite_path(migrated_sqlite)
    assert path is not None
    with _running(raw_db, ours, tmp_path), closing(SqliteRawDatabase(path, busy_timeout_s=0.0)) as other:
        clock.shift_wall(7200)
        with raw_db.write():
            assert _anchored(other, clock, tmp_path).now() == ours.now()


@pytest.mark.parametrize("step_s", [3600.0, -7200.0, -90_000.0])
def test_new_boot_takes_the_wall_clock(
    raw_db: SqliteRawDatabase, clock: FakeClock, tmp_path: Path, step_s: float
) -> None:
    owner = _owner(raw_db, _anchored(raw_db, clock, tmp_path), tmp_path, kind="worker")
    _boot_again(raw_db, owner)
    clock.shift_wall(step_s)

    ours = _anchored(raw_db, clock, tmp_path)

    assert ours.now() == clock.now()
    assert [dead.id for dead in dead_owners(raw_db, ours, folder=tmp_path / "run")] == [owner.id]


@pytest.mark.parametrize(
    ("step_s", "reboots"), [(-7200.0, True), (-90_000.0, True), *((step_s, False) for step_s in STEPS)]
)
def test_waits_keep_their_length_when_the_clock_is_set(
    raw_db: SqliteRawDatabase, clock: FakeClock, tmp_path: Path, step_s: float, reboots: bool
) -> None:
    ours = _anchored(raw_db, clock, tmp_path)
    wish = executions.ExecutionOptions(tmp_path)
    execution_id = executions.begin(raw_db, ours, _PLAN, wish, is_working=lambda _: False).execution_id
    owner = _owner(raw_db, ours, tmp_path, kind="process", execution_id=execution_id)
    frontier, began = Frontier(raw_db, ours, FrontierSettings(lease_s=60.0)), ours.now()
    late = found("c.test", 1, scheduled_for=to_micros(began + timedelta(seconds=60)))
    frontier.add(execution_id, [found("a.test", 1), found("b.test", 1), late])
    _, resting = frontier.lease(execution_id, owner.id, domains=2, pages=1)
    _rest(frontier, execution_id, resting, until=began + timedelta(seconds=60))
    if reboots:
        _boot_again(raw_db, owner)
    else:
        owner.run.let_go()
    clock.shift_wall(step_s)

    frontier = Frontier(raw_db, _anchored(raw_db, clock, tmp_path))

    assert frontier.lease(execution_id, 9, domains=3, pages=1) == [], "no wait is shortened"
    clock.advance(61)
    assert len(frontier.lease(execution_id, 9, domains=3, pages=1)) == 3


def test_leases_of_an_earlier_boot_end_when_wall_is_behind(
    raw_db: SqliteRawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(raw_db, _anchored(raw_db, clock, tmp_path), tmp_path, kind="worker")
    until = to_micros(clock.now() + timedelta(seconds=30))
    with raw_db.write() as tx:
        tx.execute(
            "INSERT INTO webhooks (url, events, sources, secret, created_by, created_at, updated_at)"
            " VALUES ('http://a.test/', '[]', '[]', 's', 'a', 0, 0)"
        )
        tx.execute(
            "INSERT INTO webhook_deliveries"
            " (webhook_id, event_key, message_id, event, body, state, next_at, lease_expires_at, created_at)"
            " VALUES (1, 'k', 'm', 'e', '', 'pending', ?, ?, 0)",
            (until, until),
        )
    _boot_again(raw_db, owner)
    clock.shift_wall(-90_000)
    follow_wall(raw_db, clock, folder=tmp_path / "run")

    with raw_db.read() as tx:
        [ends] = tx.execute("SELECT lease_expires_at, next_at FROM webhook_deliveries")
    assert {from_micros(end) for end in ends} == {clock.now() + timedelta(seconds=30)}


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
        assert _anchored(fixed, clock, path.parent).now() == clock.now()
