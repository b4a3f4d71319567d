"""What everything that manages, schedules or runs jobs stands on, with one clock that decides who owns what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from sqlalchemy.exc import IntegrityError

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db.connect import connect
from holdfast.db.dbclock import DatabaseClock
from holdfast.db.engine import Database
from holdfast.errors import Conflict
from holdfast.jobs.board.board import Board
from holdfast.jobs.leases import Leases
from holdfast.jobs.placement import Placement
from holdfast.jobs.scheduler import Scheduler
from holdfast.jobs.settling import Settler
from holdfast.jobs.specs import BackendCheck
from holdfast.sources.config import SourceConfig
from holdfast.wiring import prepare
from holdfast.wiring.zimit import zimit_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of one installation, open; for one thread."""

    settings: Settings
    database: Database
    clock: Clock
    """The database server's where it is another machine's, ours otherwise."""
    placement: Placement
    board: Board
    scheduler: Scheduler
    leases: Leases


def check_backend(settings: Settings) -> BackendCheck:
    """Return what refuses, with Invalid, a configuration that its backend could not run on this machine (HA-038)."""

    def check(config: SourceConfig) -> None:
        if config.backend == "zimit":
            zimit_config(config, settings)

    return check


@contextmanager
def _one_first() -> Iterator[None]:
    try:
        yield
    except IntegrityError as exc:
        raise Conflict("somebody else changed the same thing at this moment; look again, then repeat it") from exc


@contextmanager
def open_jobs(settings: Settings, *, backend_check: BackendCheck | None = None) -> Iterator[Jobs]:
    """Open the data directory and its database, migrated where that is needed and safe.

    A configuration is checked with `check_backend` before anything is queued, unless another check is given. What two
    parties wanted to be first at ends the block of the second with Conflict.
    """
    prepare(settings)
    with closing(connect(settings.database)) as hot, closing(Database(settings.database)) as database, _one_first():
        clock: Clock = DatabaseClock(hot) if hot.dialect == "postgresql" else SystemClock()
        placement = Placement()
        settler = Settler(settings.jobs, placement)
        yield Jobs(
            settings=settings, database=database, clock=clock, placement=placement,
            board=Board(clock, placement, backend_check=backend_check or check_backend(settings)),
            scheduler=Scheduler(database, clock, settings.jobs, placement),
            leases=Leases(database, clock, settler, home=settings.home),
        )  # fmt: skip
