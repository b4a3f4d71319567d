"""Who holds jobs, and who of them is dead: by their locks at once, long before the stale period is over."""

from __future__ import annotations

import socket

from holdfast.coordination.owners import is_gone, is_registered
from holdfast.db.engine import Database
from holdfast.jobs.schedule.queries import lock_owners
from holdfast.wiring import Ground


def name_of(owner_id: int) -> str:
    """Return the name under which a worker holds jobs: its machine, and its number among the owners."""
    return f"{socket.gethostname()}/{owner_id}"


def dead_holders(ground: Ground, database: Database) -> list[str]:
    """Return the holders of jobs that are gone, as far as can be told from here, whatever their machine was called.

    Holders of another machine are left to the stale period: their run files cannot be seen from here.
    """
    with database.read() as session:
        names = lock_owners(session)
    dead = []
    for name in names:
        host, _, number = name.rpartition("/")
        if not number.isdecimal():
            continue
        known = host == socket.gethostname() or is_registered(ground.hot, int(number), host=host)
        if known and is_gone(ground.hot, ground.clock, int(number), folder=ground.run_folder):
            dead.append(name)
    return dead
