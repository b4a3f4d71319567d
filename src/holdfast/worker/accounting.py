"""Accounts for annual editions on its own, once the last of their shards has come to rest."""

from __future__ import annotations

from holdfast import log
from holdfast.editions.keeping import due
from holdfast.editions.refusals import EditionBusy, LedgerUnbalanced
from holdfast.editions.report import write_report
from holdfast.worker.chores import Bench

_log = log.get()
_LOOK_ROWS = 1000


class _Stopped(Exception):
    """The worker ends: the report is left to the next one."""


class Accounting:
    """The chore of writing the reports of editions that are due."""

    name = "edition reports"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._passed: set[int] = set()
        """Editions that this worker could not account for; another, or a person, may."""

    def run_once(self) -> bool:
        """Write one report that is due; False if none is, if others are at all of them, or if the worker ends."""
        with self._bench.database.read() as session:
            found = due(session, passed=self._passed)
        try:
            return any(self._account(edition_id) for edition_id in found)
        except _Stopped:
            return False

    def _account(self, edition_id: int) -> bool:
        """Write a report; False if somebody else is at it."""
        bench, ground = self._bench, self._bench.ground
        try:
            written = write_report(bench.database, ground.settings.home, ground.clock, edition_id, tell=self._look)
        except EditionBusy:
            return False
        except LedgerUnbalanced as exc:
            _log.error("edition.unbalanced", edition_id=edition_id, message=str(exc))
            self._passed.add(edition_id)
            return True
        content = written.content
        _log.info("edition.reported", source=content["source"], year=content["year"], status=content["status"])
        return True

    def _look(self, count: int) -> None:
        if count % _LOOK_ROWS == 1 and self._bench.is_stopping():
            raise _Stopped
