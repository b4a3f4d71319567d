"""What everything that reads the archive works with: settings, sessions, clock. Apart, so that a crawl stays small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.wiring import prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The open archive; one of these serves a command or a server for its whole life."""

    settings: Settings
    database: Database
    clock: Clock

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
