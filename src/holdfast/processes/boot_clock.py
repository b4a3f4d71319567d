"""Sets the clock of a SQLite database to the wall clock: once per boot, and after a step while nothing is leased.

The wall clock may step for a good reason: a machine without a battery gets the time only after its first start.
A step must not end a lease early, so the clock is not set while a live process holds one; retry times move with
it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from holdfast.clock import Clock, boot_id, to_micros
from holdfast.db.raw import DatabaseReadOnly, RawDatabase, Transaction
from holdfast.db.sqlite import ANCHOR, DatabaseLocked, since_boot
from holdfast.errors import NoSpace
from holdfast.processes.owners import GONE, located
from holdfast.processes.runfile import is_held

_LEAST = 1_000_000
_SILENCE = GONE.seconds * 1_000_000
# All except idle workers and schedulers.
_HOLDERS = """
SELECT run_file FROM owners o WHERE ended_at IS NULL
   AND (kind NOT IN ('worker', 'runner', 'scheduler') OR EXISTS (SELECT 1 FROM jobs WHERE lock_token IS NOT NULL)
        OR EXISTS (SELECT 1 FROM domains WHERE lease_owner = o.id AND lease_expires_at > 0))"""
# Recovery releases jobs and files with their owners. Scheduled times are wall time and do not move.
_MOVES = (
    "UPDATE owners SET heartbeat_at = heartbeat_at + ? WHERE heartbeat_at > ?",
    "UPDATE domains SET lease_expires_at = lease_expires_at + ? WHERE lease_owner IS NOT NULL AND lease_expires_at > ?",
    "UPDATE domains SET next_allowed_at = next_allowed_at + ? WHERE next_allowed_at > ?",
    "UPDATE queues SET due_at = due_at + ? WHERE open > 0 AND due_at > ?",
    "UPDATE page_crawls SET scheduled_for = scheduled_for + ? WHERE outcome IS NULL AND scheduled_for > ?",
    "UPDATE webhook_deliveries SET lease_expires_at = lease_expires_at + ?"
    " WHERE state = 'pending' AND lease_expires_at > ?",
    "UPDATE webhook_deliveries SET next_at = next_at + ? WHERE state = 'pending' AND next_at > ?",
)


def follow_wall(raw_db: RawDatabase, machine: Clock, *, folder: Path) -> None:
    """Set the clock if due and no live process holds a lease; a database that cannot be written is left unchanged."""
    boot, wall, passed = boot_id(), to_micros(machine.now()), since_boot(machine)
    if boot is None or raw_db.dialect != "sqlite":
        return
    with raw_db.read() as tx:
        if _step(tx, boot, wall, passed, folder) is None:
            return
    with suppress(DatabaseReadOnly, DatabaseLocked, NoSpace), raw_db.write() as tx:
        # Check again in the write transaction: another process may have set the clock or leased something since.
        step = _step(tx, boot, wall, passed, folder)
        if step is None:
            return
        for move in _MOVES if step else ():
            tx.execute(move, (step, min(wall, wall - step) - _SILENCE))
        if not tx.execute(ANCHOR, (boot,)):
            # Owners of an earlier boot are dead, however short the downtime.
            silent = "UPDATE owners SET heartbeat_at = min(heartbeat_at, ?) WHERE ended_at IS NULL"
            tx.execute(silent, (wall - _SILENCE,))
        tx.execute("REPLACE INTO clock_anchors (boot_id, micros) VALUES (?, ?)", (boot, wall - passed))


def _step(tx: Transaction, boot: str, wall: int, passed: int, folder: Path) -> int | None:
    """Return how far retry times move when the clock is set; None if the clock is not set."""
    rows = tx.execute(ANCHOR, (boot,))
    if not rows:
        # How long the machine was off is unknown: if the wall clock is behind, continue from the last heartbeat.
        return min(0, wall - (tx.execute("SELECT max(heartbeat_at) FROM owners")[0][0] or 0))
    step = wall - passed - int(rows[0][0])
    if abs(step) <= _LEAST:
        return None
    # Locks show which processes live: all processes on a SQLite file are on one machine.
    return None if any(is_held(located(folder, Path(file))) for (file,) in tx.execute(_HOLDERS)) else step
