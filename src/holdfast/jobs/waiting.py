"""Finds out why a queued run has not started, for pages, commands and the API alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.clock import Clock, from_micros
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.jobs.kinds import OF_SOURCE
from holdfast.jobs.pauses import RunWait, awaited
from holdfast.processes.disk import low_volume
from holdfast.processes.owners import WORKER_KINDS, OwnerRow, seen_owners
from holdfast.sources.contact import ContactMissing, known_contact

if TYPE_CHECKING:
    from holdfast.db.models import Execution


class QueuedRun(NamedTuple):
    execution_id: int
    job_id: int
    source: str
    queued_at: int
    enabled: bool
    keepers: frozenset[int] | None
    """The workers beside its files that have not ended; None if any worker may start it."""
    machine: str
    """A sentence about the machine with its files."""


_COLUMNS: Final = (
    "SELECT e.id, e.job_id, s.code, e.queued_at, s.enabled, e.directory FROM executions e"
    " JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id"
    # A released run of `holdfast crawl` has no place in the queue: no worker leases it.
    " WHERE e.state = 'queued' AND e.queued_at IS NOT NULL"
)


def queued_runs(tx: Transaction, *, limit: int, ids: Collection[int] | None = None) -> list[QueuedRun]:
    """Return queued executions in the order in which workers lease them: all, or those of `ids`."""
    chosen = "" if ids is None else f" AND e.id IN ({', '.join('?' * len(ids))})"
    rows = tx.execute(f"{_COLUMNS}{chosen} ORDER BY e.queued_at, e.id LIMIT ?", (*(ids or ()), limit))
    machines = {directory: _machine(tx, directory) for directory in {row[5] for row in rows} if directory is not None}
    nowhere: tuple[frozenset[int] | None, str] = (None, "")
    return [QueuedRun(row[0], row[1], row[2], row[3], bool(row[4]), *machines.get(row[5], nowhere)) for row in rows]


def _machine(tx: Transaction, directory: str) -> tuple[frozenset[int] | None, str]:
    rows = tx.execute(
        "SELECT host, heartbeat_at FROM owners WHERE directory = ? ORDER BY heartbeat_at DESC LIMIT 1", (directory,)
    )
    if not rows:
        return None, ""
    host, seen_at = rows[0]
    keepers = tx.execute("SELECT id FROM owners WHERE directory = ? AND ended_at IS NULL", (directory,))
    return frozenset(int(row[0]) for row in keepers), awaited(str(host), from_micros(int(seen_at)), directory)


def workers_at_work(raw_db: RawDatabase, clock: Clock, run_folder: Path) -> list[tuple[OwnerRow, int]]:
    """Return the workers whose rows are open, on all machines, and the number of jobs that each runs.

    They are running, or died without ending.
    """
    with raw_db.read() as tx:
        rows = tx.execute(
            "SELECT lock_owner_id, count(*) FROM jobs"  # noqa: S608 - our constant
            f" WHERE lock_token IS NOT NULL AND {OF_SOURCE} GROUP BY lock_owner_id"
        )
    jobs = {row[0]: int(row[1]) for row in rows}
    seen = [one for kind in WORKER_KINDS for one in seen_owners(raw_db, clock, kind=kind, folder=run_folder)]
    return [(one, jobs.get(one.id, 0)) for one in seen]


def waiting_runs(
    raw_db: RawDatabase, clock: Clock, settings: Settings, runs: Iterable[QueuedRun]
) -> list[tuple[QueuedRun, RunWait]]:
    """Return why each of these runs waits. The cost does not depend on their number."""
    runs = list(runs)
    if not runs:
        return []
    workers = workers_at_work(raw_db, clock, settings.home / "run")
    alive = {seen.id: jobs for seen, jobs in workers if not seen.is_gone}
    obstacle, now = _obstacle(settings, alive.values()), clock.now()
    return [(run, _own_wait(run, alive, now) or obstacle or _turn(run, alive)) for run in runs]


def waits_of(settings: Settings, clock: Clock, runs: Iterable[Execution | None]) -> dict[int, RunWait]:
    """Return by id why the queued ones of these executions wait; opens a short connection of its own."""
    ids = {run.id for run in runs if run is not None and run.state == "queued"}
    if not ids:
        return {}
    with closing(connect(settings.database)) as raw_db:
        with raw_db.read() as tx:
            queued = queued_runs(tx, limit=len(ids), ids=ids)
        return {run.execution_id: wait for run, wait in waiting_runs(raw_db, clock, settings, queued)}


def _own_wait(run: QueuedRun, alive: Mapping[int, int], now: datetime) -> RunWait | None:
    if (at := from_micros(run.queued_at)) > now:
        return RunWait("time", f"starts no earlier than {at:%Y-%m-%d %H:%M} UTC")
    if not run.enabled:
        return RunWait("source", "its source is disabled; enable the source to start it")
    return None if run.keepers is None or run.keepers & alive.keys() else RunWait("machine", run.machine)


def _obstacle(settings: Settings, alive: Collection[int]) -> RunWait | None:
    """Return the first obstacle that keeps all runs waiting; `alive` has the jobs of each worker that is alive."""
    if (full := low_volume(settings)) is not None:
        return RunWait("disk", f"the disk of {full} is too full for new work; free some space")
    # A busy worker has a contact: its own HOLDFAST_CONTACT is not visible here.
    if not any(alive) and known_contact(settings) is None:
        return RunWait("contact", str(ContactMissing()))
    return None


def _turn(run: QueuedRun, alive: Mapping[int, int]) -> RunWait:
    workers = [jobs for worker, jobs in alive.items() if run.keepers is None or worker in run.keepers]
    if not workers:
        return RunWait("worker", "no worker runs; start one with: holdfast start-worker")
    if all(workers):
        if run.keepers is not None:
            return RunWait("busy", "the worker that has its files is busy; it starts when that worker is free")
        return RunWait("busy", "all workers are busy; it starts when one of them is free")
    return RunWait("turn", "its turn is next")
