"""Leases: the right of one process to work on a row, for a limited time; one set of columns and rules for all rows.

owner_id          the process that holds it, a row of `owners`; null if the process is not registered
token             grows with each lease: a holder that lost its lease is rejected at its next write
lease_expires_at  by the clock of the database; null while it is free

Raw SQL and sessions use the same conditions. Domains and jobs keep their own columns and statements, and their
tokens grow in the same way (decision 0056).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.db.models.base import Leased

HELD: Final = "token = ? AND lease_expires_at IS NOT NULL"
"""Condition of every write by a holder. Without another holder since, an expired lease still counts as held."""
RELEASED: Final = "owner_id = NULL, lease_expires_at = NULL"
REVOKED: Final = f"token = token + 1, {RELEASED}"
"""Assignments that reject the next write of the present holder."""
REOPEN: Final = "UPDATE owners SET ended_at = NULL, heartbeat_at = :now WHERE id = :owner_id AND ended_at IS NOT NULL"
"""Opens the row of an owner that was silent for long and ended by others: until then, its leases count as free."""


def is_free(table: str, now: str = "?") -> str:
    """Return the condition that no process holds a row of this table or alias; `now` is an SQL expression."""
    expired = f"{table}.lease_expires_at <= {now}"
    return f"({table}.lease_expires_at IS NULL OR {expired} OR {has_ended(f'{table}.owner_id')})"


def has_ended(owner_id: str) -> str:
    """Return the condition that an owner has ended, or died and was recovered (`processes/recovery.py`)."""
    return f"EXISTS (SELECT 1 FROM owners WHERE owners.id = {owner_id} AND owners.ended_at IS NOT NULL)"  # noqa: S608


def take(row: Leased, owner_id: int | None, *, until: datetime) -> None:
    """Lease a row that the caller has locked, or is about to insert."""
    row.owner_id, row.token, row.lease_expires_at = owner_id, (row.token or 0) + 1, until


def release(row: Leased) -> None:
    row.owner_id = row.lease_expires_at = None


def revoke(row: Leased) -> None:
    """Release a row, and reject the next write of its present holder."""
    row.token += 1
    release(row)
