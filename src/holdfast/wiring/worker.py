"""What a worker's own threads stand on, each with connections of its own. Who runs what is in `worker.roster`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.jobs.leases import Leases
from holdfast.jobs.placement import Placement
from holdfast.jobs.settling import Settler
from holdfast.wiring import Ground, open_ground


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What says that a worker lives: leases that are renewed, and the row of the worker itself; for one thread."""

    ground: Ground
    leases: Leases


@contextmanager
def open_pulse(settings: Settings) -> Iterator[Pulse]:
    """Open connections for one more thread of a worker."""
    with open_ground(settings) as ground, closing(Database(settings.database)) as database:
        settler = Settler(settings.jobs, Placement())
        leases = Leases(database, ground.clock, settler, home=settings.home)
        yield Pulse(ground=ground, leases=leases)
