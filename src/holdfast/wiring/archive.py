"""Shared objects for all readers of the archive: settings, sessions, clock. Separate, so that a crawl stays small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db.engine import Database, moment_in, server_clock
from holdfast.values import dataclass
from holdfast.wiring import prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The open archive; one instance serves a command or a server for its whole life."""

    settings: Settings
    database: Database
    clock: Clock

    def now(self, session: Session) -> datetime:
        """Return the time for leases, heartbeats and turns: the database server's, if there is a server.

        The machine's own may differ by minutes, and would make live workers look dead.
        """
        return moment_in(session, server_clock(self.clock))

    @property
    def home(self) -> Path:
        return self.settings.home


@contextmanager
def open_archive(settings: Settings) -> Iterator[Archive]:
    """Open the data directory and its database, migrated if that is necessary and safe."""
    prepare(settings)
    database = Database(settings.database)
    try:
        yield Archive(settings=settings, database=database, clock=SystemClock())
    finally:
        database.close()
