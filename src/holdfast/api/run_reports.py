"""The accounts of runs: all attempts of a run are counted, and each open page of it asks anew."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from holdfast.api.costly_answers import CostlyAnswers
from holdfast.api.errors import ExecutionNotFound
from holdfast.clock import Clock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.errors import NotFound
from holdfast.jobs.views.listing import execution
from holdfast.jobs.views.run_report import run_report

_KEPT: Final = 32


class RunReports:
    """Answers with accounts of runs, of now or of a moment ago (`CostlyAnswers`)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._reports: CostlyAnswers[dict[str, Any]] = CostlyAnswers(clock, kept=_KEPT)

    def read(self, execution_id: int) -> dict[str, Any]:
        """Return the account of a run; ExecutionNotFound."""
        with self._database.read() as session:
            row = execution(session, execution_id)
        if row is None:
            raise ExecutionNotFound
        # By its state: what was counted while it ran is not its last word.
        return self._reports.read((execution_id, row.state, row.finished_at), lambda: self._counted(execution_id))

    def _counted(self, execution_id: int) -> dict[str, Any]:
        # A connection of its own: the count speaks SQL itself, and may take long.
        with closing(connect(self._database.url)) as raw_db:
            try:
                return run_report(raw_db, self._clock, execution_id)
            except NotFound as exc:
                raise ExecutionNotFound from exc
