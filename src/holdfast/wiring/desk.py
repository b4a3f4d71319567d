"""Where a server manages jobs and sources: one writer at a time, slots that follow what other processes changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.db.sessionclock import SessionClock
from holdfast.errors import Conflict, Unavailable
from holdfast.jobs.board.board import Board
from holdfast.jobs.placement import Placement
from holdfast.sources.config import SourceConfig
from holdfast.wiring.jobs import check_backend

_WAIT_S = 10.0


class Desk:
    """The board of one serving process; for any thread, one after the other."""

    def __init__(self, database: Database, clock: Clock, settings: Settings) -> None:
        self.settings, self.database = settings, database
        # The machine's clock gives way to the database's; one that a test moves by hand does not.
        self._server = SessionClock(clock) if isinstance(clock, SystemClock) else None
        self.clock: Clock = self._server or clock
        self._check = check_backend(settings)
        self.board = Board(self.clock, Placement(), backend_check=self._check)
        self._lock = Lock()

    @contextmanager
    def write(self, actor: str) -> Iterator[Session]:
        """Open a short transaction in somebody's name; Conflict if another process did the same thing meanwhile."""
        if not self._lock.acquire(timeout=_WAIT_S):
            raise Unavailable("other changes are still being written; try again in a moment")
        try:
            with audit.acting(actor), self.database.write() as session:
                self.look(session)
                yield session
        except IntegrityError as exc:
            raise Conflict("somebody else changed the same thing at this moment; look again, then repeat it") from exc
        finally:
            self._lock.release()

    def look(self, session: Session) -> None:
        """Let this desk's clock be the database's, as of this transaction."""
        if self._server is not None:
            self._server.look(session)

    def check(self, config: SourceConfig) -> None:
        """Refuse, with Invalid, a configuration that its backend could not run here."""
        self._check(config)
