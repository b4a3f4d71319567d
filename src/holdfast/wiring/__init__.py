"""Creates the objects that the programs work with, from the settings: database, clock, frontier."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from holdfast import config, log
from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.raw import DatabaseClock, RawDatabase, sqlite_path
from holdfast.db.schema import prepare as prepare_database
from holdfast.frontier import Frontier, FrontierSettings
from holdfast.processes.boot_clock import follow_wall
from holdfast.storage.roots import link_captures
from holdfast.values import dataclass
from holdfast.withdrawals.viewers import see_everything

__all__ = ["Runtime", "begin_program", "open_runtime", "prepare"]


def begin_program() -> Settings:
    """Start a process that is no server: let it read everything and write our log; return its settings."""
    see_everything()
    settings = config.load()
    log.configure(settings.log_level)
    return settings


def prepare(settings: Settings) -> None:
    """Create the data directory, migrate the schema, and link the folder of captures to its configured location.

    If that is impossible, raise Unavailable or Invalid with instructions.
    """
    prepare_database(settings)
    if sqlite_path(settings.database) is not None:
        with closing(connect(settings.database)) as raw_db:
            follow_wall(raw_db, SystemClock(), folder=settings.home / "run")
    if settings.warc_root is not None:
        link_captures(settings.home, settings.warc_root)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    settings: Settings
    raw_db: RawDatabase
    clock: Clock
    frontier: Frontier

    @property
    def run_folder(self) -> Path:
        return self.settings.home / "run"


@contextmanager
def open_runtime(settings: Settings) -> Iterator[Runtime]:
    """Open the data directory and its database; migrate it first if that is necessary and safe."""
    prepare(settings)
    raw_db = connect(settings.database)
    try:
        # The database's clock alone decides which leases are valid.
        clock = DatabaseClock(raw_db)
        frontier = Frontier(raw_db, clock, FrontierSettings(lease_s=settings.timings.lease_seconds))
        yield Runtime(settings=settings, raw_db=raw_db, clock=clock, frontier=frontier)
    finally:
        raw_db.close()
