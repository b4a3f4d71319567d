"""Who holds jobs on this machine, and who of them is dead: known at once, long before the stale period is over."""

from __future__ import annotations

import socket

from holdfast.coordination.owners import is_gone
from holdfast.db.engine import Database
from holdfast.jobs.schedule.queries import lock_owners
from holdfast.wiring import Ground


def name_of(owner_id: int) -> str:
    """Return the name under which a worker holds jobs: its machine, and its number among the owners."""
    return f"{socket.gethostname()}/{owner_id}"


def dead_holders(ground: Ground, database: Database) -> list[str]:
    """Return the holders of jobs that ran on this machine and are gone."""
    with database.read() as session:
        names = lock_owners(session)
    dead = []
    for name in names:
        host, _, number = name.rpartition("/")
        if host != socket.gethostname() or not number.isdecimal():
            continue
        if is_gone(ground.hot, ground.clock, int(number), folder=ground.run_folder):
            dead.append(name)
    return dead
