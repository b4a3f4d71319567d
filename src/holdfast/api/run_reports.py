"""Cached run reports: a report counts all attempts of a run, and each open browser page requests it repeatedly."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import Final

from holdfast.api.adaptive_cache import AdaptiveCache
from holdfast.api.errors import ExecutionNotFound
from holdfast.clock import Clock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.errors import NotFound
from holdfast.jobs.views.listing import execution
from holdfast.jobs.views.run_report import RunReport, run_report

_KEPT: Final = 32
# A run may have a million hosts; all of them are listed by `/api/frontier/hosts`.
_MOST_HOSTS: Final = 200


class RunReports:
    """Returns run reports, current or slightly older (`AdaptiveCache`)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._reports: AdaptiveCache[RunReport] = AdaptiveCache(clock, kept=_KEPT)

    def read(self, execution_id: int) -> RunReport:
        """Return the report of a run; raises ExecutionNotFound."""
        with self._database.read() as session:
            row = execution(session, execution_id)
        if row is None:
            raise ExecutionNotFound
        # By its state: what was counted while it ran is not its last word.
        return self._reports.read((execution_id, row.state, row.finished_at), lambda: self._counted(execution_id))

    def _counted(self, execution_id: int) -> RunReport:
        # A connection of its own: the count speaks SQL itself, and may take long.
        with closing(connect(self._database.url)) as raw_db:
            try:
                found = run_report(raw_db, self._clock, execution_id)
            except NotFound as exc:
                raise ExecutionNotFound from exc
        return replace(found, domains=dict(Counter(found.domains).most_common(_MOST_HOSTS)))
