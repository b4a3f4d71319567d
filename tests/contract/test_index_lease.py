"""Who reads a file: one at a time, and a late one changes nothing, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.errors import LeaseLost
from holdfast.index.indexer import MAX_KILLS, Indexer, Interrupted, index_pending, open_indexer
from holdfast.index.leases import LEASE_S, FileToIndex, ReadProgress, claim, pending_files
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.recovery import recover_owners
from holdfast.processes.runfile import RunFile
from tests.archive import Shot, build_archive
from tests.clock import FakeClock

DONE = ReadProgress("read_warc", 5, 2, 100, 200, {"truncated": {"count": 1, "offset": 7, "detail": "x"}})


@pytest.fixture
def home(tmp_path: Path, migrated_url: str) -> Path:
    """A data directory with one sealed file that waits."""
    build_archive(tmp_path / "home", [Shot(url="https://example.org/")], database_url=migrated_url, index=False)
    return tmp_path / "home"


@pytest.fixture
def raw_db(migrated_url: str, home: Path) -> Iterator[RawDatabase]:
    """A connection to it."""
    with closing(connect(migrated_url)) as opened:
        yield opened


def _state(raw_db: RawDatabase) -> tuple[object, ...]:
    with raw_db.read() as tx:
        return tx.execute(
            "SELECT f.index_state, r.phase, r.token, r.records FROM index_runs r"
            " JOIN warc_files f ON f.id = r.warc_file_id"
        )[0]


def _waits(raw_db: RawDatabase, clock: FakeClock) -> list[int]:
    with raw_db.read() as tx:
        return pending_files(tx, after=0, now=to_micros(clock.now()))


def test_a_file_is_held_by_one_reader_until_its_lease_is_over(raw_db: RawDatabase, clock: FakeClock) -> None:
    first = claim(raw_db, clock, 1, owner_id=None, version=1)
    assert first is not None
    assert claim(raw_db, clock, 1, owner_id=None, version=1) is None
    assert _waits(raw_db, clock) == []

    clock.advance(LEASE_S + 1)

    assert _waits(raw_db, clock) == [1]
    second = claim(raw_db, clock, 1, owner_id=None, version=1)
    assert second is not None
    with pytest.raises(LeaseLost), raw_db.write() as tx:
        first.hold(tx, DONE)
    with pytest.raises(LeaseLost):
        first.end(error=None)
    first.give_back()
    assert _state(raw_db) == ("running", "starting", 2, 0)
    with raw_db.write() as tx:
        second.hold(tx, DONE)
    second.end(error=None)
    assert _state(raw_db) == ("indexed", "finished", 2, 5)
    assert _waits(raw_db, clock) == []


def test_a_file_that_was_read_meanwhile_is_not_read_again_by_who_saw_it_wait(
    raw_db: RawDatabase, clock: FakeClock
) -> None:
    first = claim(raw_db, clock, 1, owner_id=None, version=1, only_waiting=True)
    assert first is not None
    with raw_db.write() as tx:
        first.hold(tx, DONE)
    first.end(error=None)
    before = _state(raw_db)

    assert claim(raw_db, clock, 1, owner_id=None, version=1, only_waiting=True) is None
    assert _state(raw_db) == before
    assert claim(raw_db, clock, 1, owner_id=None, version=1) is not None


def test_a_reader_that_gets_on_keeps_its_file(raw_db: RawDatabase, clock: FakeClock) -> None:
    lease = claim(raw_db, clock, 1, owner_id=None, version=1)
    assert lease is not None
    for _ in range(5):
        clock.advance(LEASE_S - 1)
        lease.pulse()
        assert claim(raw_db, clock, 1, owner_id=None, version=1) is None


def _recovered(raw_db: RawDatabase, clock: FakeClock, folder: Path) -> int:
    return recover_owners(raw_db, clock, folder=folder, stale_s=0.0)


def test_the_file_of_a_dead_owner_is_free_at_once(raw_db: RawDatabase, clock: FakeClock, tmp_path: Path) -> None:
    run = RunFile(tmp_path / "run")
    owner = OwnerProcess(raw_db, clock, run=run, kind="indexer", execution_id=None)
    assert claim(raw_db, clock, 1, owner_id=owner.id, version=1) is not None
    assert _recovered(raw_db, clock, tmp_path / "run") == 0
    assert claim(raw_db, clock, 1, owner_id=None, version=1) is None

    run.close()
    clock.advance(121)
    assert _recovered(raw_db, clock, tmp_path / "run") == 1

    assert claim(raw_db, clock, 1, owner_id=None, version=1) is not None


def test_file_that_keeps_killing_its_readers_fails_and_the_next_is_read(
    raw_db: RawDatabase, clock: FakeClock, home: Path, migrated_url: str
) -> None:
    build_archive(home, [Shot(url="https://example.org/next", execution=2)], database_url=migrated_url, index=False)

    def kill(readers: int) -> None:
        for _ in range(readers):
            assert claim(raw_db, clock, 1, owner_id=None, version=1) is not None
            clock.advance(LEASE_S + 1)

    kill(MAX_KILLS)
    with closing(Indexer(raw_db, clock, home)) as indexer:
        failed, read = index_pending(indexer, raw_db, clock)
        assert f"{MAX_KILLS} readers of example-00001.warc.gz were killed in a row" in str(failed.error)
        assert (read.error, read.warnings, _waits(raw_db, clock)) == (None, {}, [])

        again = indexer.index_file(1)
        assert again is not None
        assert (again.error, again.pages, again.warnings) == (None, 1, {}), "a person who asks for it starts anew"

        kill(3)
        again = indexer.index_file(1)
        assert again is not None
        assert (again.error, again.changed, again.warnings["reader_killed"]["count"]) == (None, 0, 3)


def test_an_owner_that_said_goodbye_holds_nothing(raw_db: RawDatabase, clock: FakeClock, tmp_path: Path) -> None:
    owner = OwnerProcess(raw_db, clock, run=RunFile(tmp_path / "run"), kind="indexer", execution_id=None)
    assert claim(raw_db, clock, 1, owner_id=owner.id, version=1) is not None
    owner.end()

    assert _waits(raw_db, clock) == [1]
    assert claim(raw_db, clock, 1, owner_id=None, version=1) is not None


def test_a_reader_that_is_told_to_stop_gives_its_file_back(raw_db: RawDatabase, clock: FakeClock, home: Path) -> None:
    with open_indexer(raw_db, clock, home) as indexer:
        indexer.stopping = True
        with pytest.raises(Interrupted):
            indexer.index_file(1)
    assert _state(raw_db)[:2] == ("pending", "stopped")
    assert _waits(raw_db, clock) == [1]

    with open_indexer(raw_db, clock, home) as indexer:
        done = indexer.index_file(1)

    assert done is not None
    assert _state(raw_db)[:2] == ("indexed", "finished")


def test_progress_is_told_and_stored_while_a_file_is_read(raw_db: RawDatabase, clock: FakeClock, home: Path) -> None:
    told: list[tuple[int, str, int]] = []

    def note(file: FileToIndex, progress: ReadProgress) -> None:
        told.append((file.id, progress.phase, progress.records))

    with closing(Indexer(raw_db, clock, home, on_progress=note)) as indexer:
        indexer.index_file(1)

    assert told == [(1, "finalize", 3)]
    with raw_db.read() as tx:
        assert tx.execute("SELECT records, pages, bytes_done = bytes_total, error FROM index_runs") == [
            (3, 1, True, None)
        ]


def test_a_file_that_is_gone_fails_with_a_reason_and_stays_known(
    raw_db: RawDatabase, clock: FakeClock, home: Path
) -> None:
    (path,) = home.rglob("*.warc.gz")
    path.unlink()

    with closing(Indexer(raw_db, clock, home)) as indexer:
        done = indexer.index_file(1)

    assert done is not None
    assert "there is no file" in (done.error or "")
    assert _state(raw_db)[:2] == ("failed", "failed")
    assert _waits(raw_db, clock) == []


def _is_elsewhere(raw_db: RawDatabase) -> None:
    """Have the indexer run on another machine, whose run files cannot be seen from here."""
    with raw_db.write() as tx:
        tx.execute("UPDATE owners SET host = 'far', run_file = '/far/x.run' WHERE kind = 'indexer'")


def test_a_reader_on_another_machine_that_gets_on_is_not_taken_for_gone(
    raw_db: RawDatabase, clock: FakeClock, home: Path, tmp_path: Path
) -> None:
    owner = OwnerProcess(raw_db, clock, run=RunFile(tmp_path / "far"), kind="indexer", execution_id=None)
    _is_elsewhere(raw_db)
    lease = claim(raw_db, clock, 1, owner_id=owner.id, version=1)
    assert lease is not None
    for _ in range(20):
        clock.advance(15)
        lease.pulse()

    assert _recovered(raw_db, clock, home / "run") == 0
    assert _waits(raw_db, clock) == []
    assert claim(raw_db, clock, 1, owner_id=None, version=1) is None
    owner.end()


def test_a_reader_that_was_taken_for_gone_while_it_had_nothing_to_read_holds_what_it_takes_next(
    raw_db: RawDatabase, clock: FakeClock, home: Path, tmp_path: Path
) -> None:
    owner = OwnerProcess(raw_db, clock, run=RunFile(tmp_path / "far"), kind="indexer", execution_id=None)
    _is_elsewhere(raw_db)
    clock.advance(600)
    assert _recovered(raw_db, clock, home / "run") == 1

    assert claim(raw_db, clock, 1, owner_id=owner.id, version=1) is not None

    assert _waits(raw_db, clock) == []
    assert claim(raw_db, clock, 1, owner_id=None, version=1) is None
    owner.end()
