"""Says that an execution is indexed once its last file was read by a command: what a worker does for those of jobs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.jobs.indexing import queries, steps
from holdfast.jobs.plans import OWN


def close_account(database: Database, clock: Clock, execution_id: int) -> bool:
    """Say that an execution's files were read, or which could not be; False while one waits, is open, or there is none.

    Nothing happens to an execution that still runs, or that another process has closed meanwhile.
    """
    with database.read() as session:
        states = queries.file_states(session, execution_id=execution_id)
        if not states.total or states.waiting or queries.open_files(session, execution_id=execution_id):
            return False
        found = queries.quality(session, execution_id=execution_id)
    unread = ", ".join(Path(path).name for path in list(states.failed.values())[:5])
    now = clock.now()
    with database.write() as session, suppress(steps.NotIndexable):
        steps.ask_again(session, execution_id, now=now)  # one that nobody has asked to index yet
    try:
        with database.write() as session:
            steps.take_up(session, execution_id, now=now)
            error = f"could not be read: {unread}" if unread else None
            steps.conclude(session, execution_id, found, error=error, now=now)
    except steps.NotIndexable:
        return False
    return True


def close_accounts(database: Database, clock: Clock) -> list[int]:
    """Do so for every execution of our own crawler, and every import, that waits for nothing else; return their ids."""
    closed: list[int] = []
    after = 0
    while True:
        with database.read() as session:
            found = queries.next_to_index(session, after=after)
        if found is None:
            return closed
        after = found.execution_id
        if found.backend in OWN and close_account(database, clock, after):
            closed.append(after)
