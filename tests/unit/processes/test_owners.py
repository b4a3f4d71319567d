"""Owners: who is dead is known at once by the lock, and nothing alive is ever taken for dead."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.db.raw import RawDatabase
from holdfast.errors import HoldfastError
from holdfast.processes.owners import (
    OwnerProcess,
    OwnerRow,
    OwnerState,
    cleaning_up,
    close_owner,
    dead_owners,
    is_working,
    judged,
    living_owners,
    rivals,
    seen_owners,
    was_closed,
)
from holdfast.processes.recovery import recover_owners
from holdfast.processes.runfile import RunFile, claimed, is_held, parsed_attempts
from tests.clock import FakeClock
from tests.execution import begun_execution


@pytest.fixture
def raw_db(tmp_path: Path) -> Iterator[RawDatabase]:
    """A database in which an execution has begun."""
    with begun_execution(tmp_path / "home") as begin:
        yield begin.runtime.raw_db


def _owner(raw_db: RawDatabase, clock: FakeClock, folder: Path, kind: str = "process") -> OwnerProcess:
    return OwnerProcess(raw_db, clock, run=RunFile(folder), kind=kind, execution_id=1)


def _die(owner: OwnerProcess) -> Path:
    """Let go of the lock without a word, as a killed process does."""
    path, copy = owner.run.path, owner.run.path.read_bytes()
    owner.run.close()
    path.write_bytes(copy)
    return path


def test_who_holds_its_lock_is_alive_and_who_does_not_is_dead(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    living, dead = _owner(raw_db, clock, tmp_path), _owner(raw_db, clock, tmp_path)
    dead.run.take(0, 9, 1.0)
    _die(dead)

    found = dead_owners(raw_db, clock, folder=tmp_path)

    assert [owner.id for owner in found] == [dead.id]
    assert list(parsed_attempts(found[0].run_path)) == [9]
    living.end()


@contextmanager
def _away(raw_db: RawDatabase) -> Iterator[None]:
    """Let no row of an owner be written for the length of the block."""
    with raw_db.write() as tx:
        tx.execute("ALTER TABLE owners RENAME TO owners_away")
    try:
        yield
    finally:
        with raw_db.write() as tx:
            tx.execute("ALTER TABLE owners_away RENAME TO owners")


def _open_paths() -> Iterator[str]:
    for fd in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):
            yield str(fd.readlink())


def test_an_owner_that_could_not_be_registered_leaves_neither_a_file_nor_a_lock(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    with _away(raw_db):
        for _ in range(5):
            with pytest.raises(HoldfastError):
                _owner(raw_db, clock, tmp_path / "run")

    assert list((tmp_path / "run").iterdir()) == []
    assert [path for path in _open_paths() if path.startswith(str(tmp_path / "run"))] == []


def test_an_owner_whose_row_could_not_be_closed_is_cleaned_up_after_at_once(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(raw_db, clock, tmp_path)
    with _away(raw_db), pytest.raises(HoldfastError):
        owner.end()

    assert [dead.id for dead in dead_owners(raw_db, clock, folder=tmp_path)] == [owner.id]


def test_an_owner_that_said_goodbye_is_not_dead(raw_db: RawDatabase, clock: FakeClock, tmp_path: Path) -> None:
    _owner(raw_db, clock, tmp_path).end()

    assert dead_owners(raw_db, clock, folder=tmp_path) == []


def test_an_owner_with_another_data_directory_is_judged_by_its_own_lock(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    elsewhere = _owner(raw_db, clock, tmp_path / "other")
    clock.advance(3600)

    assert dead_owners(raw_db, clock, folder=tmp_path / "run") == []

    _die(elsewhere)
    assert len(dead_owners(raw_db, clock, folder=tmp_path / "run")) == 1


def test_an_owner_whose_run_file_is_nowhere_is_dead_only_after_a_long_silence(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(raw_db, clock, tmp_path)
    _die(owner).unlink()
    clock.advance(100)
    with raw_db.write() as tx:
        owner.beat(tx)

    clock.advance(119)
    assert dead_owners(raw_db, clock, folder=tmp_path) == []

    clock.advance(2)
    assert [dead.id for dead in dead_owners(raw_db, clock, folder=tmp_path)] == [owner.id]


def test_a_dead_owner_is_found_although_its_data_directory_was_moved(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    _die(_owner(raw_db, clock, tmp_path / "before"))
    shutil.move(tmp_path / "before", tmp_path / "after")

    assert len(dead_owners(raw_db, clock, folder=tmp_path / "after")) == 1


def test_a_dead_owner_is_cleaned_up_after_by_one_and_once(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    _die(_owner(raw_db, clock, tmp_path))
    seen_by_one, seen_by_other = (dead_owners(raw_db, clock, folder=tmp_path)[0] for _ in range(2))

    with cleaning_up(raw_db, seen_by_one) as one, cleaning_up(raw_db, seen_by_other) as other:
        assert (one, other) == (True, False)
        assert close_owner(raw_db, clock, seen_by_one)
    with cleaning_up(raw_db, seen_by_other) as late:
        assert not late

    assert not close_owner(raw_db, clock, seen_by_other)
    assert not seen_by_one.run_path.exists()


def test_of_two_supervisors_of_one_execution_the_later_yields(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    first, second = (_owner(raw_db, clock, tmp_path, "supervisor") for _ in range(2))

    assert rivals(raw_db, clock, first, folder=tmp_path) == [second.id]
    assert rivals(raw_db, clock, second, folder=tmp_path) == [first.id]

    _die(first)
    assert rivals(raw_db, clock, second, folder=tmp_path) == []
    second.end()


def test_an_owner_that_was_taken_for_gone_learns_who_took_its_place(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    first = _owner(raw_db, clock, tmp_path, "supervisor")
    _die(first).unlink()
    clock.advance(121)
    [gone] = dead_owners(raw_db, clock, folder=tmp_path)
    assert (was_closed(raw_db, first), rivals(raw_db, clock, first, folder=tmp_path)) == (False, [])

    with cleaning_up(raw_db, gone):
        close_owner(raw_db, clock, gone)
    second, other = _owner(raw_db, clock, tmp_path, "supervisor"), _owner(raw_db, clock, tmp_path, "process")

    assert was_closed(raw_db, first)
    assert rivals(raw_db, clock, first, folder=tmp_path) == [second.id]
    assert rivals(raw_db, clock, second, folder=tmp_path) == []
    second.end()
    other.end()
    assert rivals(raw_db, clock, first, folder=tmp_path) == []


def test_an_execution_is_worked_on_while_an_owner_in_that_role_lives(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(raw_db, clock, tmp_path, "supervisor")

    assert is_working(raw_db, clock, execution_id=1, kind="supervisor", folder=tmp_path)
    assert not is_working(raw_db, clock, execution_id=1, kind="process", folder=tmp_path)
    _die(owner)
    assert not is_working(raw_db, clock, execution_id=1, kind="supervisor", folder=tmp_path)


def _rename(raw_db: RawDatabase, owner: OwnerProcess, host: str = "another-name") -> None:
    """Have an owner registered under another host name, as before a container was replaced."""
    with raw_db.write() as tx:
        tx.execute("UPDATE owners SET host = ? WHERE id = ?", (host, owner.id))


def test_a_run_file_in_our_folder_is_judged_by_its_lock_whatever_the_machine_was_called(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    living, dead = _owner(raw_db, clock, tmp_path, "supervisor"), _owner(raw_db, clock, tmp_path, "supervisor")
    for owner in (living, dead):
        _rename(raw_db, owner)
    _die(dead)

    found = dead_owners(raw_db, clock, folder=tmp_path)
    assert [(owner.id, owner.is_away) for owner in found] == [(dead.id, False)]

    clock.advance(3600)
    assert [owner.id for owner in dead_owners(raw_db, clock, folder=tmp_path)] == [dead.id]
    assert is_working(raw_db, clock, execution_id=1, kind="supervisor", folder=tmp_path)
    living.end()


def test_an_owner_of_another_machine_lives_until_it_is_silent_and_is_then_away(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(raw_db, clock, tmp_path / "there", "supervisor")
    _rename(raw_db, owner)
    _die(owner).unlink()

    clock.advance(119)
    assert dead_owners(raw_db, clock, folder=tmp_path) == []
    assert is_working(raw_db, clock, execution_id=1, kind="supervisor", folder=tmp_path)

    clock.advance(2)
    assert [(dead.id, dead.is_away) for dead in dead_owners(raw_db, clock, folder=tmp_path)] == [(owner.id, True)]
    assert not is_working(raw_db, clock, execution_id=1, kind="supervisor", folder=tmp_path)


@pytest.mark.parametrize("renamed", [True, False], ids=["another name", "two machines of one name"])
def test_a_lock_that_another_kernel_took_is_not_believed_to_be_free_while_its_owner_is_heard_of(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path, renamed: bool
) -> None:
    owner = _owner(raw_db, clock, tmp_path)
    if renamed:
        _rename(raw_db, owner)
    path = _die(owner)
    left = path.read_bytes()
    path.write_bytes(left[:16] + b"0" * 36 + left[52:])

    assert dead_owners(raw_db, clock, folder=tmp_path) == []

    clock.advance(121)
    assert [(dead.id, dead.is_away) for dead in dead_owners(raw_db, clock, folder=tmp_path)] == [(owner.id, False)]


def test_an_owner_that_was_taken_for_gone_is_back_with_its_next_heartbeat(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(raw_db, clock, tmp_path / "there")
    _rename(raw_db, owner)
    _die(owner).unlink()
    clock.advance(121)
    [away] = dead_owners(raw_db, clock, folder=tmp_path)
    with cleaning_up(raw_db, away) as ours:
        assert ours
        assert close_owner(raw_db, clock, away)

    with raw_db.write() as tx:
        owner.beat(tx)
    assert [seen.id for seen in living_owners(raw_db, clock, execution_id=1, folder=tmp_path)] == [owner.id]


def test_an_owner_whose_run_file_is_nowhere_is_cleaned_up_after_by_one(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    _die(_owner(raw_db, clock, tmp_path)).unlink()
    clock.advance(121)
    [dead] = dead_owners(raw_db, clock, folder=tmp_path)

    with cleaning_up(raw_db, dead) as one, cleaning_up(raw_db, dead) as other:
        assert (one, other) == (True, False)
    assert list(tmp_path.glob("*.claim")) == []


@contextmanager
def _another_user(folder: Path) -> Iterator[None]:
    """Be a user who may not look into this folder: root becomes another, others lock themselves out."""
    if os.geteuid():
        folder.chmod(0)
    else:
        folder.chmod(0o700)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        folder.chmod(0o700)


def test_an_owner_of_another_user_lives_until_it_is_silent_and_its_files_are_left_alone(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(raw_db, clock, tmp_path / "theirs")
    path = owner.run.path
    [row] = seen_owners(raw_db, clock, kind=owner.kind, folder=tmp_path)

    with _another_user(tmp_path / "theirs"):
        assert is_held(path)
        assert parsed_attempts(path) == {}
        with claimed(path) as ours:
            assert not ours
        before = row.heartbeat_at - timedelta(microseconds=1)
        assert judged(row, Path("/nowhere"), silent_since=before).state is OwnerState.ALIVE
        assert judged(row, Path("/nowhere"), silent_since=row.heartbeat_at).state is OwnerState.AWAY
    owner.end()


def test_walk_ends_the_rows_of_what_was_released(raw_db: RawDatabase, clock: FakeClock, tmp_path: Path) -> None:
    kept, other, ended = (_owner(raw_db, clock, tmp_path, kind) for kind in ("process", "visitor", "process"))
    living = _owner(raw_db, clock, tmp_path, "process")
    for owner in (kept, other, ended):
        _die(owner)

    def release(owner: OwnerRow) -> bool:
        asked.append(owner.id)
        return owner.id != kept.id

    for expected in ([kept.id, ended.id], [kept.id]):
        asked: list[int] = []
        count = recover_owners(raw_db, clock, folder=tmp_path, stale_s=0.0, release=release, kinds=("process",))
        assert (asked, count) == (expected, len(expected) - 1)
    assert recover_owners(raw_db, clock, folder=tmp_path, stale_s=0.0) == 2
    living.end()


def test_recovery_keeps_an_owner_that_is_back_before_its_turn(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    first, second = (_owner(raw_db, clock, tmp_path / "there") for _ in range(2))
    for owner in (first, second):
        _die(owner).unlink()
    clock.advance(121)
    released = []

    def release(owner: OwnerRow) -> bool:
        """Take so long that the owners' machine is back meanwhile."""
        released.append(owner.id)
        with raw_db.write() as tx:
            first.beat(tx)
            second.beat(tx)
        return True

    clock.advance(1)
    assert recover_owners(raw_db, clock, folder=tmp_path, stale_s=300, release=release) == 0

    assert released == [first.id]
    assert not was_closed(raw_db, first)
    assert not was_closed(raw_db, second)


def test_worker_on_a_machine_with_our_name_keeps_its_jobs(
    raw_db: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    worker = _owner(raw_db, clock, tmp_path / "there", "worker")
    _die(worker).unlink()

    clock.advance(300 + 119)
    assert recover_owners(raw_db, clock, folder=tmp_path, stale_s=300) == 0

    clock.advance(2)
    assert recover_owners(raw_db, clock, folder=tmp_path, stale_s=300) == 1
