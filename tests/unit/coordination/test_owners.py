"""Owners: who is dead is known at once by the lock, and nothing alive is ever taken for dead."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.coordination import owners
from holdfast.coordination.owners import (
    Life,
    OwnerProcess,
    _life,
    bury,
    cleaning_up,
    dead_owners,
    has_rival,
    is_gone,
    is_working,
    later_rivals,
    living_owners,
    was_closed,
)
from holdfast.coordination.runfile import RunFile, claimed, in_hand, is_held
from holdfast.db.raw import RawDatabase
from tests.clock import FakeClock
from tests.execution import begun_execution


@pytest.fixture
def hot(tmp_path: Path) -> Iterator[RawDatabase]:
    """A database in which an execution has begun."""
    with begun_execution(tmp_path / "home") as begin:
        yield begin.ground.hot


def _owner(hot: RawDatabase, clock: FakeClock, folder: Path, kind: str = "process") -> OwnerProcess:
    return OwnerProcess(hot, clock, run=RunFile(folder), kind=kind, execution_id=1)


def _die(owner: OwnerProcess) -> Path:
    """Let go of the lock without a word, as a killed process does."""
    path, copy = owner.run.path, owner.run.path.read_bytes()
    owner.run.close()
    path.write_bytes(copy)
    return path


def test_who_holds_its_lock_is_alive_and_who_does_not_is_dead(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    living, dead = _owner(hot, clock, tmp_path), _owner(hot, clock, tmp_path)
    dead.run.take(0, 9, 1.0)
    _die(dead)

    found = dead_owners(hot, clock, folder=tmp_path)

    assert [owner.id for owner in found] == [dead.id]
    assert [slot.attempt_id for slot in found[0].in_hand] == [9]
    living.end()


def test_an_owner_that_said_goodbye_is_not_dead(hot: RawDatabase, clock: FakeClock, tmp_path: Path) -> None:
    _owner(hot, clock, tmp_path).end()

    assert dead_owners(hot, clock, folder=tmp_path) == []


def test_an_owner_with_another_data_directory_is_judged_by_its_own_lock(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    elsewhere = _owner(hot, clock, tmp_path / "other")
    clock.advance(3600)

    assert dead_owners(hot, clock, folder=tmp_path / "run") == []

    _die(elsewhere)
    assert len(dead_owners(hot, clock, folder=tmp_path / "run")) == 1


def test_an_owner_whose_run_file_is_nowhere_is_dead_only_after_a_long_silence(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(hot, clock, tmp_path)
    _die(owner).unlink()
    clock.advance(100)
    with hot.write() as tx:
        owner.beat(tx)

    clock.advance(119)
    assert dead_owners(hot, clock, folder=tmp_path) == []

    clock.advance(2)
    assert [dead.id for dead in dead_owners(hot, clock, folder=tmp_path)] == [owner.id]


def test_a_dead_owner_is_found_although_its_data_directory_was_moved(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    _die(_owner(hot, clock, tmp_path / "before"))
    shutil.move(tmp_path / "before", tmp_path / "after")

    assert len(dead_owners(hot, clock, folder=tmp_path / "after")) == 1


def test_a_dead_owner_is_cleaned_up_after_by_one_and_once(hot: RawDatabase, clock: FakeClock, tmp_path: Path) -> None:
    _die(_owner(hot, clock, tmp_path))
    seen_by_one, seen_by_other = (dead_owners(hot, clock, folder=tmp_path)[0] for _ in range(2))

    with cleaning_up(hot, seen_by_one) as one, cleaning_up(hot, seen_by_other) as other:
        assert (one, other) == (True, False)
        assert bury(hot, clock, seen_by_one)
    with cleaning_up(hot, seen_by_other) as late:
        assert not late

    assert not bury(hot, clock, seen_by_other)
    assert not seen_by_one.run_path.exists()


def test_of_two_supervisors_of_one_execution_the_later_yields(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    first, second = (_owner(hot, clock, tmp_path, "supervisor") for _ in range(2))

    assert not has_rival(hot, clock, first, folder=tmp_path)
    assert has_rival(hot, clock, second, folder=tmp_path)

    _die(first)
    assert not has_rival(hot, clock, second, folder=tmp_path)
    second.end()


def test_an_owner_that_was_taken_for_gone_learns_who_took_its_place(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    first = _owner(hot, clock, tmp_path, "supervisor")
    _die(first).unlink()
    clock.advance(121)
    [gone] = dead_owners(hot, clock, folder=tmp_path)
    assert (was_closed(hot, first), later_rivals(hot, clock, first, folder=tmp_path)) == (False, [])

    with cleaning_up(hot, gone):
        bury(hot, clock, gone)
    second, other = _owner(hot, clock, tmp_path, "supervisor"), _owner(hot, clock, tmp_path, "process")

    assert was_closed(hot, first)
    assert [one.id for one in later_rivals(hot, clock, first, folder=tmp_path)] == [second.id]
    assert not has_rival(hot, clock, second, folder=tmp_path)
    second.end()
    other.end()
    assert later_rivals(hot, clock, first, folder=tmp_path) == []


def test_an_execution_is_worked_on_while_an_owner_in_that_role_lives(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(hot, clock, tmp_path, "supervisor")

    assert is_working(hot, clock, execution_id=1, kind="supervisor", folder=tmp_path)
    assert not is_working(hot, clock, execution_id=1, kind="process", folder=tmp_path)
    _die(owner)
    assert not is_working(hot, clock, execution_id=1, kind="supervisor", folder=tmp_path)


def _rename(hot: RawDatabase, owner: OwnerProcess, host: str = "another-name") -> None:
    """Have an owner registered under another host name, as before a container was replaced."""
    with hot.write() as tx:
        tx.execute("UPDATE owners SET host = ? WHERE id = ?", (host, owner.id))


def test_a_run_file_in_our_folder_is_judged_by_its_lock_whatever_the_machine_was_called(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    living, dead = _owner(hot, clock, tmp_path, "supervisor"), _owner(hot, clock, tmp_path, "supervisor")
    for owner in (living, dead):
        _rename(hot, owner)
    _die(dead)

    found = dead_owners(hot, clock, folder=tmp_path)
    assert [(owner.id, owner.is_away) for owner in found] == [(dead.id, False)]
    assert is_gone(hot, clock, dead.id, folder=tmp_path)

    clock.advance(3600)
    assert [owner.id for owner in dead_owners(hot, clock, folder=tmp_path)] == [dead.id]
    assert is_working(hot, clock, execution_id=1, kind="supervisor", folder=tmp_path)
    assert not is_gone(hot, clock, living.id, folder=tmp_path)
    living.end()


def test_an_owner_of_another_machine_lives_until_it_is_silent_and_is_then_away(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(hot, clock, tmp_path / "there", "supervisor")
    _rename(hot, owner)
    _die(owner).unlink()

    clock.advance(119)
    assert dead_owners(hot, clock, folder=tmp_path) == []
    assert is_working(hot, clock, execution_id=1, kind="supervisor", folder=tmp_path)

    clock.advance(2)
    assert [(dead.id, dead.is_away) for dead in dead_owners(hot, clock, folder=tmp_path)] == [(owner.id, True)]
    assert not is_working(hot, clock, execution_id=1, kind="supervisor", folder=tmp_path)
    assert not is_gone(hot, clock, owner.id, folder=tmp_path)  # its jobs have a heartbeat of their own


@pytest.mark.parametrize("renamed", [True, False], ids=["another name", "two machines of one name"])
def test_a_lock_that_another_kernel_took_is_not_believed_to_be_free_while_its_owner_is_heard_of(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path, renamed: bool
) -> None:
    owner = _owner(hot, clock, tmp_path)
    if renamed:
        _rename(hot, owner)
    path = _die(owner)
    left = path.read_bytes()
    path.write_bytes(left[:16] + b"0" * 36 + left[52:])

    assert dead_owners(hot, clock, folder=tmp_path) == []

    clock.advance(121)
    assert [(dead.id, dead.is_away) for dead in dead_owners(hot, clock, folder=tmp_path)] == [(owner.id, False)]


def test_an_owner_that_was_taken_for_gone_is_back_with_its_next_heartbeat(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(hot, clock, tmp_path / "there")
    _rename(hot, owner)
    _die(owner).unlink()
    clock.advance(121)
    [away] = dead_owners(hot, clock, folder=tmp_path)
    with cleaning_up(hot, away) as ours:
        assert ours
        assert bury(hot, clock, away)

    with hot.write() as tx:
        owner.beat(tx)
    assert [seen.id for seen in living_owners(hot, clock, execution_id=1, folder=tmp_path)] == [owner.id]


def test_an_owner_whose_run_file_is_nowhere_is_cleaned_up_after_by_one(
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    _die(_owner(hot, clock, tmp_path)).unlink()
    clock.advance(121)
    [dead] = dead_owners(hot, clock, folder=tmp_path)

    with cleaning_up(hot, dead) as one, cleaning_up(hot, dead) as other:
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
    hot: RawDatabase, clock: FakeClock, tmp_path: Path
) -> None:
    owner = _owner(hot, clock, tmp_path / "theirs")
    path = owner.run.path
    with hot.read() as tx:
        row = owners.owner(tx, owner_id=owner.id)
    assert row is not None

    with _another_user(tmp_path / "theirs"):
        assert is_held(path)
        assert in_hand(path) == []
        with claimed(path) as ours:
            assert not ours
        assert _life(row, Path("/nowhere"), silent_since=row.heartbeat_at - 1) is Life.ALIVE
        assert _life(row, Path("/nowhere"), silent_since=row.heartbeat_at) is Life.AWAY
    owner.end()
