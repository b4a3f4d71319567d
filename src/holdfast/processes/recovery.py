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
    stale_s: float,
    release: Release | None = None,
    kinds: Collection[str] | None = None,
) -> int:
    """Release what dead owners of these kinds held, and end their rows; return how many. Safe to run at any time.

    `stale_s` is how long a silent worker of another machine keeps its jobs.
    """
    # The end of a row frees its jobs. Their last heartbeat may be slightly later than that of the row.
    silent_since, ended = clock.now() - timedelta(seconds=stale_s) - GONE, 0
    for owner in dead_owners(raw_db, clock, folder=folder):
        may_hold_jobs = owner.kind in _WORKERS and owner.is_away and owner.heartbeat_at > silent_since
        if may_hold_jobs or (kinds is not None and owner.kind not in kinds):
            continue
        with cleaning_up(raw_db, owner) as ours:
            ended += ours and (release is None or release(owner)) and close_owner(raw_db, clock, owner)
    return ended
