"""The statements about owners: one function, one statement."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.db.hot import Transaction

_COLUMNS = "id, kind, pid, run_file, execution_id, heartbeat_at"


class OwnerRow(NamedTuple):
    """An owner that has not said goodbye."""

    id: int
    kind: str
    pid: int
    run_file: str
    execution_id: int | None
    heartbeat_at: int


class Newcomer(NamedTuple):
    """A process that is about to hold leases."""

    kind: str
    host: str
    pid: int
    run_file: str
    execution_id: int | None


def insert_owner(tx: Transaction, owner: Newcomer, *, now: int) -> int:
    """Register a process and return its id."""
    rows = tx.execute(
        "INSERT INTO owners(kind, host, pid, run_file, execution_id, started_at, heartbeat_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (*owner, now, now),
    )
    return int(rows[0][0])


def beat(tx: Transaction, *, owner_id: int, now: int) -> None:
    """Say that an owner is alive and getting on."""
    tx.execute("UPDATE owners SET heartbeat_at = ? WHERE id = ? AND ended_at IS NULL", (now, owner_id))


def end_owner(tx: Transaction, *, owner_id: int, now: int) -> bool:
    """Close an owner's row; False if somebody closed it before."""
    rows = tx.execute("UPDATE owners SET ended_at = ? WHERE id = ? AND ended_at IS NULL RETURNING id", (now, owner_id))
    return bool(rows)


def open_owners(tx: Transaction, *, host: str) -> list[OwnerRow]:
    """Return the owners of this machine that have not said goodbye."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM owners WHERE host = ? AND ended_at IS NULL ORDER BY id",  # noqa: S608
        (host,),
    )
    return [OwnerRow(*row) for row in rows]


class Whereabouts(NamedTuple):
    """Where an owner's run file is, when it was heard of last, and whether it has said goodbye."""

    run_file: str
    heartbeat_at: int
    ended: bool


def whereabouts(tx: Transaction, *, owner_id: int) -> Whereabouts | None:
    """Return what is known of one owner, None if there never was one."""
    rows = tx.execute("SELECT run_file, heartbeat_at, ended_at FROM owners WHERE id = ?", (owner_id,))
    return Whereabouts(rows[0][0], rows[0][1], rows[0][2] is not None) if rows else None


def is_open(tx: Transaction, *, owner_id: int) -> bool:
    """Return whether nobody has closed an owner's row yet."""
    return bool(tx.execute("SELECT 1 FROM owners WHERE id = ? AND ended_at IS NULL", (owner_id,)))


class Acquaintance(NamedTuple):
    """An owner of any machine that has not said goodbye."""

    id: int
    host: str
    pid: int
    run_file: str
    started_at: int
    heartbeat_at: int


def open_of_kind(tx: Transaction, *, kind: str) -> list[Acquaintance]:
    """Return the owners of one kind, on all machines, that have not said goodbye."""
    rows = tx.execute(
        "SELECT id, host, pid, run_file, started_at, heartbeat_at FROM owners"
        " WHERE kind = ? AND ended_at IS NULL ORDER BY id",
        (kind,),
    )
    return [Acquaintance(*row) for row in rows]


def open_owner_of(tx: Transaction, *, execution_id: int, kind: str) -> list[OwnerRow]:
    """Return the owners of one kind that work on an execution."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM owners"  # noqa: S608
        " WHERE execution_id = ? AND kind = ? AND ended_at IS NULL ORDER BY id",
        (execution_id, kind),
    )
    return [OwnerRow(*row) for row in rows]
