"""The statements about owners: one function, one statement."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.db.hot import Transaction

_COLUMNS = "id, kind, host, pid, run_file, execution_id, started_at, heartbeat_at, ended_at"


class OwnerRow(NamedTuple):
    """A process that holds leases, or held them; times in microseconds."""

    id: int
    kind: str
    host: str
    pid: int
    run_file: str
    execution_id: int | None
    started_at: int
    heartbeat_at: int
    ended_at: int | None


class NewOwner(NamedTuple):
    """A process that is about to hold leases."""

    kind: str
    host: str
    pid: int
    run_file: str
    execution_id: int | None


def insert_owner(tx: Transaction, owner: NewOwner, *, now: int) -> int:
    """Register a process and return its id."""
    rows = tx.execute(
        "INSERT INTO owners(kind, host, pid, run_file, execution_id, started_at, heartbeat_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (*owner, now, now),
    )
    return int(rows[0][0])


def beat(tx: Transaction, *, owner_id: int, now: int) -> None:
    """Say that an owner is alive and getting on; one that was taken for gone is back."""
    tx.execute("UPDATE owners SET heartbeat_at = ?, ended_at = NULL WHERE id = ?", (now, owner_id))


def end_owner(tx: Transaction, *, owner_id: int, now: int) -> bool:
    """Close an owner's row; False if it was closed before."""
    rows = tx.execute("UPDATE owners SET ended_at = ? WHERE id = ? AND ended_at IS NULL RETURNING id", (now, owner_id))
    return bool(rows)


def open_owners(tx: Transaction) -> list[OwnerRow]:
    """Return the owners of all machines that have not said goodbye; as many as there are processes."""
    rows = tx.execute(f"SELECT {_COLUMNS} FROM owners WHERE ended_at IS NULL ORDER BY id")  # noqa: S608
    return [OwnerRow(*row) for row in rows]


def owner(tx: Transaction, *, owner_id: int) -> OwnerRow | None:
    """Return what is known of one owner, None if there never was one."""
    rows = tx.execute(f"SELECT {_COLUMNS} FROM owners WHERE id = ?", (owner_id,))  # noqa: S608
    return OwnerRow(*rows[0]) if rows else None


def is_open(tx: Transaction, *, owner_id: int) -> bool:
    """Return whether an owner's row is not closed yet."""
    return bool(tx.execute("SELECT 1 FROM owners WHERE id = ? AND ended_at IS NULL", (owner_id,)))


def open_owners_of(tx: Transaction, *, execution_id: int) -> list[OwnerRow]:
    """Return the owners that work on an execution, in any role."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM owners WHERE execution_id = ? AND ended_at IS NULL ORDER BY id",  # noqa: S608
        (execution_id,),
    )
    return [OwnerRow(*row) for row in rows]
