"""Ends what processes left that died: one walk over their rows, whatever they held.

A live process never counts as dead, files of another machine are not touched, and one process at a time cleans up
after another (`owners.py`). The end of a row frees every lease that names it: jobs, files to index, deliveries of
webhooks (`leases.py`). What else an owner held (domains, WARC files) the caller releases first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Final

from holdfast.clock import Clock
from holdfast.db.raw import RawDatabase
from holdfast.processes.owners import GONE, OPERATING, WORKER_KINDS, OwnerRow, cleaning_up, close_owner, dead_owners

INDEXER: Final = "indexer"
_WORKERS = (*WORKER_KINDS, OPERATING)
LEASE_KINDS: Final = (*_WORKERS, "scheduler", INDEXER)
"""Owners that hold nothing but leases, which end with their rows."""
Release = Callable[[OwnerRow], bool]
"""Releases what an owner held besides leases; returns False if some of it is left, so that its row stays."""


def recover_owners(
    raw_db: RawDatabase,
    clock: Clock,
    *,
    folder: Path,
    release: Release,
    kinds: Collection[str] | None = None,
) -> int:
    """Release what dead owners of these kinds held, and end their rows; return how many. Safe to run at any time."""
    ended = 0
    for owner in dead_owners(raw_db, clock, folder=folder):
        if kinds is None or owner.kind in kinds:
            with cleaning_up(raw_db, owner) as ours:
                ended += ours and release(owner) and close_owner(raw_db, clock, owner)
    return ended


def may_hold_jobs(owner: OwnerRow, clock: Clock, *, stale_s: float) -> bool:
    """Return whether this is a worker of another machine that may still hold its jobs, as far as known."""
    if owner.kind not in _WORKERS or not owner.is_away:
        return False
    # The end of a row frees its jobs. They stay its own for the stale period after their last heartbeat, which may be
    # slightly later than that of the row.
    return clock.now() - owner.heartbeat_at < timedelta(seconds=stale_s) + GONE
