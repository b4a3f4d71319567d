"""Operations: work of minutes or hours that an operator requests and a separate process performs.

A row stores the progress. At most one operation is open per flight (one verification, one rebuild, one
freezing of an edition, one import of an upload); a unique key enforces it. A process holds an operation by a
lease with a fencing token. A process on the same machine checks the lock of its run file, any other the time
of the lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import Database, moment_in, server_clock
from holdfast.db.models import Operation
from holdfast.errors import Conflict, HoldfastError, LeaseLost, NotFound
from holdfast.operations import queries
from holdfast.processes.runfile import has_died

LEASE: Final = timedelta(seconds=30)
"""Silence of a process after which another machine may take over its operation."""
BEAT_S: Final = 1.0
"""How often a process stores its progress, and checks whether to stop."""
MOST_ATTEMPTS: Final = 20
"""Limit of starts of an operation whose process dies each time."""
DIRECTORY: Final = "directory"
"""Parameter of an operation: the id of the data directory with its files."""


class OperationKind(StrEnum):
    IMPORT = "import"
    VERIFY = "verify"
    REBUILD_INDEX = "rebuild_index"
    REBUILD_SEARCH = "rebuild_search"
    REPORT_EDITION = "report_edition"
    FREEZE_EDITION = "freeze_edition"
    VERIFY_EDITION = "verify_edition"
    COMPARE_EDITIONS = "compare_editions"


class OperationState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class OperationRunning(Conflict):
    """The same work is queued or running already; `operation_id` names it."""

    code = "operation_running"

    def __init__(self, operation_id: int, subject: str) -> None:
        super().__init__(
            f"operation {operation_id} already does this ({subject}); see /api/admin/operations/{operation_id}, or: "
            f"holdfast operation show {operation_id}"
        )
        self.operation_id = operation_id


class OperationNotFound(NotFound):
    """The operation does not exist."""

    code = "operation_not_found"

    def __init__(self, operation_id: int) -> None:
        super().__init__(f"unknown operation {operation_id}; see /api/admin/operations, or: holdfast operation list")


class OperationOver(Conflict):
    """The operation has ended and cannot be cancelled."""

    code = "operation_over"

    def __init__(self, operation_id: int, state: str) -> None:
        super().__init__(f"operation {operation_id} is already {state}; start a new one instead")


class OperationAbandoned(HoldfastError):
    """The operation failed every time it was started."""

    code = "operation_abandoned"

    def __init__(self, attempts: int) -> None:
        super().__init__(f"failed {attempts} times; see the server log")


class HeldOperation(NamedTuple):
    operation_id: int
    attempt: int


def start(session: Session, clock: Clock, request: Operation, *, directory: str | None = None) -> Operation:
    """Queue an operation in the caller's transaction; raise OperationRunning if one of the same flight is open.

    `request` is a new row with a kind, flight, subject and parameters; at most one operation per flight is open.
    `directory` is the id of the data directory with its files: servers of other directories skip it.
    """
    now = clock.now()
    made = queries.insert_operation(
        session,
        {
            "kind": request.kind,
            "flight": request.flight,
            "subject": request.subject,
            "parameters": request.parameters if directory is None else {**request.parameters, DIRECTORY: directory},
            "state": OperationState.QUEUED.value,
            "result": {},
            "actor": acting_user(),
            "created_at": now,
            "updated_at": now,
        },
    )
    if made is None:
        running = queries.open_operation(session, flight=request.flight)
        # The operation may have ended between the two statements; then the client's next attempt succeeds.
        raise OperationRunning(running.id if running else 0, request.subject)
    subject, detail = f"operation {made}", {"kind": request.kind, "subject": request.subject, **request.parameters}
    audit.record(session, clock, action="operation.started", subject=subject, detail=detail)
    return find(session, made)


def find(session: Session, operation_id: int) -> Operation:
    found = session.get(Operation, operation_id, populate_existing=True)
    if found is None:
        raise OperationNotFound(operation_id)
    return found


def cancel(session: Session, clock: Clock, operation_id: int) -> Operation:
    """Cancel a queued operation, or request the running one to stop; raise OperationNotFound or OperationOver."""
    row = find(session, operation_id)
    if row.finished_at is not None:
        raise OperationOver(row.id, row.state)
    now = clock.now()
    row.stop_asked, row.updated_at = True, now
    if row.state == OperationState.QUEUED:
        row.state, row.finished_at = OperationState.CANCELLED.value, now
        queries.fail_import(session, row.id, now=now)
    audit.record(session, clock, action="operation.cancelled", subject=f"operation {row.id}", detail={"kind": row.kind})
    session.flush()
    return row


class OperationLeases:
    """Leases operations, one at a time; thread-safe."""

    def __init__(
        self, database: Database, clock: Clock, run_folder: Path, *, directory: Callable[[], str] | None = None
    ) -> None:
        """`directory` returns the id of the data directory whose operations are leased; without it those of any are.

        It is called only when an operation is pending, so that no id is created unnecessarily.
        """
        self._database, self._run_folder, self._directory = database, run_folder, directory
        # Machines that share a database server have different clocks: leases use the server's.
        self._clock = server_clock(clock)

    def take(self, run_file: str | None = None) -> HeldOperation | None:
        """Lease the oldest operation that is queued or whose process is dead; return None without one.

        `run_file` belongs to the process that leases it; the process that runs it replaces it by its own.
        """
        # Read first: do not occupy SQLite's only writer for a check that usually finds nothing.
        with self._database.read() as session:
            found = self._free(session)
        for row in found:
            if (held := self._taken(row, run_file)) is not None:
                return held
        return None

    def _taken(self, row: Operation, run_file: str | None) -> HeldOperation | None:
        with self._database.write() as session:
            now = moment_in(session, self._clock)
            until = now + LEASE
            if not queries.take_operation(session, row.id, row.attempt, now=now, until=until, run_file=run_file):
                return None
        held = HeldOperation(row.id, row.attempt + 1)
        if row.stop_asked:
            self.settle(held, OperationState.CANCELLED)
            return None
        # An operation that kills its process every time would be restarted forever. One that was released properly does
        # not count, however often the server was restarted.
        if row.attempt >= MOST_ATTEMPTS and row.state != OperationState.QUEUED:
            given_up = OperationAbandoned(row.attempt)
            self.settle(held, OperationState.FAILED, error=str(given_up), error_code=given_up.code)
            return None
        return held

    def _free(self, session: Session) -> list[Operation]:
        rows = queries.open_operations(session)
        # Usually there are none: then do not read the server's time.
        now = moment_in(session, self._clock) if rows else None
        return [row for row in rows if now is not None and self._is_free(row, now)]

    def _is_free(self, row: Operation, now: datetime) -> bool:
        # Servers may share a database but not their files. Stopping needs no files: any server does it, so that an
        # operation for a missing directory can be cancelled.
        if self._directory is not None and not row.stop_asked:
            wanted = row.parameters.get(DIRECTORY)
            if wanted is not None and wanted != self._directory():
                return False
        if row.state == OperationState.QUEUED:
            return True
        if row.lease_until is None or row.lease_until <= now:
            return True
        # The run file may be on another machine, or from before a reboot: then only the lease shows whether it lives.
        return row.run_file is not None and has_died(self._run_folder / row.run_file)

    def beat(self, held: HeldOperation, **values: Any) -> bool:
        """Renew the lease and store the progress; return whether to stop. Raise LeaseLost if it was lost."""
        with self._database.write() as session:
            now = moment_in(session, self._clock)
            asked = queries.change_held(session, held, {"lease_until": now + LEASE, "updated_at": now, **values})
        if asked is None:
            raise LeaseLost(f"operation {held.operation_id} was taken up by another process")
        return asked

    def give_back(self, held: HeldOperation) -> None:
        """Return the operation to the queue for the next process, because this one ends."""
        values = {"state": OperationState.QUEUED.value, "lease_until": None, "run_file": None}
        with self._database.write() as session:
            queries.change_held(session, held, {**values, "updated_at": moment_in(session, self._clock)})

    def let_go(self, held: HeldOperation, result: Mapping[str, Any]) -> None:
        """Store the result and release the lease; unlike `give_back`, the attempt counts."""
        with self._database.write() as session:
            values = {"lease_until": None, "run_file": None, "result": dict(result)}
            queries.change_held(session, held, {**values, "updated_at": moment_in(session, self._clock)})

    def settle(
        self,
        held: HeldOperation,
        state: OperationState,
        *,
        result: Mapping[str, Any] | None = None,
        error: str | None = None,
        error_code: str | None = None,
    ) -> bool:
        """Store how it ended; return False if another process holds it by now, which will store that itself."""
        values: dict[str, Any] = {
            "state": state.value,
            "error": error,
            "error_code": error_code,
            "lease_until": None,
            "run_file": None,
        }
        if result is not None:
            values["result"] = dict(result)
        with self._database.write() as session:
            now = moment_in(session, self._clock)
            settled = queries.change_held(session, held, {**values, "updated_at": now, "finished_at": now})
            if settled is not None and state is not OperationState.DONE:
                # Do this here, not where an import fails: its process may have died, or never have started.
                queries.fail_import(session, held.operation_id, now=now)
        return settled is not None

    def waits(self) -> bool:
        with self._database.read() as session:
            return bool(self._free(session))
