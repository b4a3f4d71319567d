"""What everything that reads the archive works with: settings, sessions, clock. Apart, so that a crawl stays small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db.engine import Database, moment_in, server_clock
from holdfast.wiring import prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The open archive; one of these serves a command or a server for its whole life."""

    settings: Settings
    database: Database
    clock: Clock

    def now(self, session: Session) -> datetime:
        """Return the time by which leases, heartbeats and turns are dated: the database server's where there is one.

        The machine's own may be minutes away from it, and would call a worker dead that has just been heard of.
        """
        return moment_in(session, server_clock(self.clock))

    @property
    def home(self) -> Path:
        """The data directory, below which the WARC files lie."""
        return self.settings.home


@contextmanager
def open_archive(settings: Settings) -> Iterator[Archive]:
    """Open the data directory and its database, migrated where that is needed and safe."""
    prepare(settings)
    database = Database(settings.database)
    try:
        yield Archive(settings=settings, database=database, clock=SystemClock())
    finally:
        database.close()
