"""Operations: work that takes minutes or hours, wanted by an operator, done by a process of its own.

A row says how far one is. At most one is open for each flight (one verification, one rebuild, one freezing of an
edition, one import of an upload); a unique key decides. A process holds one by a lease with a fencing token; a start
on the same machine goes by the lock of its run file, any other by the time of the lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.coordination.runfile import boot_id, is_held
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import Database, moment_in, server_clock
from holdfast.db.models import Operation
from holdfast.errors import Conflict, HoldfastError, LeaseLost, NotFound
from holdfast.operations import operation_queries as queries
from holdfast.operations.upload_queries import fail_import

LEASE: Final = timedelta(seconds=30)
"""Silence of a process after which another machine may take its operation up."""
BEAT_S: Final = 1.0
"""How often a process says how far it is, and hears whether it is to stop."""
MOST_ATTEMPTS: Final = 20
"""How often an operation is begun whose process does not come to an end."""
DIRECTORY: Final = "directory"
"""Among an operation's parameters: the id of the data directory that its files lie in."""


class OperationKind(StrEnum):
    """What is done."""

    IMPORT = "import"
    VERIFY = "verify"
    REBUILD_INDEX = "rebuild_index"
    REBUILD_SEARCH = "rebuild_search"
    REPORT_EDITION = "report_edition"
    FREEZE_EDITION = "freeze_edition"
    VERIFY_EDITION = "verify_edition"
    COMPARE_EDITIONS = "compare_editions"


class OperationState(StrEnum):
    """How far it is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class OperationRunning(Conflict):
    """The same work is wanted already; `operation_id` names it."""

    code = "operation_running"

    def __init__(self, operation_id: int, subject: str) -> None:
        super().__init__(
            f"operation {operation_id} is at it already ({subject}); watch it at /api/admin/operations/{operation_id}, "
            f"or with: holdfast operation show {operation_id}"
        )
        self.operation_id = operation_id


class OperationNotFound(NotFound):
    """There is no such operation."""

    code = "operation_not_found"

    def __init__(self, operation_id: int) -> None:
        super().__init__(
            f"there is no operation {operation_id}; they are listed at /api/admin/operations, and with: holdfast "
            "operation list"
        )


class OperationOver(Conflict):
    """The operation has ended: there is nothing to cancel."""

    code = "operation_over"

    def __init__(self, operation_id: int, state: str) -> None:
        super().__init__(f"operation {operation_id} is {state} already; start another where it came from")


class OperationAbandoned(HoldfastError):
    """The operation was begun again and again, and its process never came to an end."""

    code = "operation_abandoned"

    def __init__(self, attempts: int) -> None:
        super().__init__(f"it was begun {attempts} times and never came to an end; the server's log says why")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationWish:
    """What is to be done."""

    kind: OperationKind
    flight: str
    """What at most one open operation may be at."""
    subject: str
    parameters: dict[str, Any]


class HeldOperation(NamedTuple):
    """An operation that a process has begun."""

    operation_id: int
    attempt: int


def start(session: Session, clock: Clock, wish: OperationWish, *, directory: str | None = None) -> Operation:
    """Queue an operation in the caller's transaction; OperationRunning if an open one is at the same flight.

    `directory` is the id of the data directory that its files lie in: no server of another one takes it.
    """
    now = clock.now()
    made = queries.insert_operation(
        session,
        {
            "kind": wish.kind.value,
            "flight": wish.flight,
            "subject": wish.subject,
            "parameters": wish.parameters if directory is None else {**wish.parameters, DIRECTORY: directory},
            "state": OperationState.QUEUED.value,
            "result": {},
            "actor": acting_user(),
            "created_at": now,
            "updated_at": now,
        },
    )
    if made is None:
        running = queries.open_operation(session, flight=wish.flight)
        # It may have ended between the two statements; then the client's next try succeeds.
        raise OperationRunning(running.id if running else 0, wish.subject)
    audit.record(
        session,
        clock,
        action="operation.started",
        subject=f"operation {made}",
        detail={"kind": wish.kind.value, "subject": wish.subject, **wish.parameters},
    )
    return find(session, made)


def find(session: Session, operation_id: int) -> Operation:
    """Return one operation; OperationNotFound."""
    found = queries.operation_by_id(session, operation_id)
    if found is None:
        raise OperationNotFound(operation_id)
    return found


def cancel(session: Session, clock: Clock, operation_id: int) -> Operation:
    """End an operation that waits, or ask the process that is at it to leave off; OperationNotFound, OperationOver."""
    row = find(session, operation_id)
    if row.finished_at is not None:
        raise OperationOver(row.id, row.state)
    now = clock.now()
    row.stop_asked, row.updated_at = True, now
    if row.state == OperationState.QUEUED:
        row.state, row.finished_at = OperationState.CANCELLED.value, now
        fail_import(session, row.id, now=now)
    audit.record(session, clock, action="operation.cancelled", subject=f"operation {row.id}", detail={"kind": row.kind})
    session.flush()
    return row


class OperationLeases:
    """Takes operations up, one at a time; for any thread."""

    def __init__(
        self, database: Database, clock: Clock, run_folder: Path, *, directory: Callable[[], str] | None = None
    ) -> None:
        """`directory` tells the id of the data directory whose operations are taken; without it those of any are.

        It is asked when something waits: where nothing ever does, no id is made.
        """
        self._database, self._run_folder, self._directory = database, run_folder, directory
        # Machines share a database server, and their clocks differ: a lease is dated and judged by the server's.
        self._clock = server_clock(clock)

    def take(self, run_file: str | None = None) -> HeldOperation | None:
        """Begin the oldest operation that waits, or whose process is gone; None if there is none.

        `run_file` is that of the process that takes it; the one that runs it puts its own in its place.
        """
        # Read first: the one writer of SQLite is not held for a look that mostly finds nothing.
        with self._database.read() as session:
            found = self._free(session)
        for row in found:
            if (held := self._taken(row, run_file)) is not None:
                return held
        return None

    def _taken(self, row: Operation, run_file: str | None) -> HeldOperation | None:
        with self._database.write() as session:
            now = moment_in(session, self._clock)
            lease = queries.TakenUntil(now, now + LEASE, run_file)
            if not queries.take_operation(session, row.id, row.attempt, lease):
                return None
        held = HeldOperation(row.id, row.attempt + 1)
        if row.stop_asked:
            self.settle(held, OperationState.CANCELLED)
            return None
        # What takes its process down every time would be begun for ever. One that was given back in good order is no
        # such case, however often the server was started anew.
        if row.attempt >= MOST_ATTEMPTS and row.state != OperationState.QUEUED:
            given_up = OperationAbandoned(row.attempt)
            self.settle(held, OperationState.FAILED, error=str(given_up), error_code=given_up.code)
            return None
        return held

    def _free(self, session: Session) -> list[Operation]:
        """Return the operations that wait, or whose process is gone, the oldest first."""
        rows = queries.open_operations(session)
        # Mostly there are none: then the server is not asked for the time.
        now = moment_in(session, self._clock) if rows else None
        return [row for row in rows if now is not None and self._is_free(row, now)]

    def _is_free(self, row: Operation, now: datetime) -> bool:
        # Servers may share a database and not their files. One that is to stop needs none: any server ends it, so
        # that what was meant for a directory that is gone can be cancelled.
        if self._directory is not None and not row.stop_asked:
            meant = row.parameters.get(DIRECTORY)
            if meant is not None and meant != self._directory():
                return False
        if row.state == OperationState.QUEUED:
            return True
        if row.lease_until is None or row.lease_until <= now:
            return True
        if row.run_file is None:
            return False
        path = self._run_folder / row.run_file
        # A run file of another machine is not here, or was made under another kernel: only the lease tells then.
        return path.exists() and boot_id(path) == boot_id() and not is_held(path)

    def beat(self, held: HeldOperation, **values: Any) -> bool:
        """Renew the lease and write how far it is; return whether it is to stop. LeaseLost if another has it."""
        with self._database.write() as session:
            now = moment_in(session, self._clock)
            asked = queries.change_held(session, held, {"lease_until": now + LEASE, "updated_at": now, **values})
        if asked is None:
            raise LeaseLost(f"operation {held.operation_id} was taken up by another process")
        return asked

    def give_back(self, held: HeldOperation) -> None:
        """Let the next process go on with it: this one ends."""
        values = {"state": OperationState.QUEUED.value, "lease_until": None, "run_file": None}
        with self._database.write() as session:
            queries.change_held(session, held, {**values, "updated_at": moment_in(session, self._clock)})

    def let_go(self, held: HeldOperation, result: Mapping[str, Any]) -> None:
        """Keep what was found and let the next process go on at once; unlike one given back, the attempt counts."""
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
        """Say how it ended; False if another process has it by now, which then says so itself."""
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
                # Here, and not where an import fails: its process may have died, or never have begun.
                fail_import(session, held.operation_id, now=now)
        return settled is not None

    def waits(self) -> bool:
        """Return whether there is one to take up."""
        with self._database.read() as session:
            return bool(self._free(session))
