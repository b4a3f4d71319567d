"""Leases of jobs: a worker leases a queued execution, renews the lease, and settles or releases the execution.

Every write carries the token and the epoch of its lease; a holder whose lease expired gets LeaseLost and
stops.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database, moment_in
from holdfast.db.models import Execution, Job, Source
from holdfast.errors import LeaseLost
from holdfast.jobs import schedule_queries
from holdfast.jobs.endings import Counts, RunEnding, StartPage
from holdfast.jobs.journal import emit, progress, status
from holdfast.jobs.schedule_queries import LeaseClaim
from holdfast.jobs.settling import RunSettler, record_progress, reported
from holdfast.jobs.states import State, state_of
from holdfast.jobs.store import folder_name, locked_execution
from holdfast.storage.store import captures_folder, run_folder
from holdfast.urls import parse
from holdfast.values import dataclass

# Retries of a search whose execution was cancelled before it could be locked.
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLease:
    """The right to run one execution for as long as it is renewed."""

    claim: LeaseClaim
    execution_id: int
    number: int
    owner: str
    """The name of the worker."""
    job: Job
    """As it was when it was leased."""
    of: Source | None
    """None for an operation."""
    output_dir: Path
    resumed: bool
    """True if a worker ran this execution, or the one that it retries, before."""
    before: Counts = field(default_factory=Counts)
    """Counts and cost of earlier holders of this execution."""
    named_at: datetime | None = None
    """When the first run in this directory was queued: the date in its file names."""
    left_behind: str | None = None
    """A sentence about the files on another machine that this run continues without."""

    @property
    def source(self) -> Source:
        assert self.of is not None, f"job {self.job.id} is an operation"
        return self.of

    @property
    def code(self) -> str:
        """The source's code; the kind of an operation."""
        return self.job.kind if self.of is None else self.of.code


class LeaseUpdate(NamedTuple):
    stop: str | None
    """`drain`, `cancel`, or None."""
    cancelled: bool
    """The job was cancelled: settle as cancelled after draining."""
    is_paused: bool = False
    """An operator paused the run."""


class _Gone(Exception):
    """Another worker was faster."""


class ExecutionLeases:
    """The leases of one worker. Each call is one short transaction; times are the database's, read after locking."""

    def __init__(
        self, database: Database, clock: Clock, settler: RunSettler, *, home: Path, directory: str | None = None
    ) -> None:
        """`directory` is the id of the data directory; the workers of another one keep the runs that they started."""
        self._database, self._clock, self._settler, self._home = database, clock, settler, home
        self._directory = directory

    def take(
        self,
        owner_id: int,
        *,
        kinds: tuple[str, ...] | None = None,
        job_id: int | None = None,
        operations: bool = False,
    ) -> ExecutionLease | None:
        """Return a lease on the execution that has waited longest, of any job or of one; None if none is queued.

        With `operations`, lease an operation; without, a run of a source.
        """
        which: Any = {"kinds": kinds, "job_id": job_id, "directory": self._directory, "operations": operations}
        for _ in range(_TRIES):
            # Search without a lock first: on SQLite, a write transaction per poll would block every other writer.
            with self._database.read() as session:
                now = moment_in(session, self._clock)
                waits = schedule_queries.next_queued(session, now=now, **which)
            if waits is None:
                return None
            with suppress(_Gone), self._database.write() as session:
                # Skip an execution that another worker is leasing now: no worker waits for another.
                free = schedule_queries.lock_next(session, now=now, **which)
                execution_id, _, may_start = waits
                if not may_start:
                    schedule_queries.close_stray(session, execution_id=execution_id, now=now)
                return None if free is None else self._take(session, *free, owner_id)
        return None

    def tell_waiting(self, reason: str, *, kinds: tuple[str, ...] | None = None) -> int | None:
        """Record as an event why the next execution is not started; return its id, None if none is queued."""
        with self._database.write() as session:
            now = moment_in(session, self._clock)
            waits = schedule_queries.next_queued(session, now=now, kinds=kinds, directory=self._directory)
            if waits is None:
                return None
            execution_id, job_id, _ = waits
            job, _ = schedule_queries.job_and_source(session, job_id)
            event = status(job.id, state_of(job), execution_id=execution_id, waits_for=reason)
            emit(session, [event], now=now)
            return execution_id

    def _take(self, session: Session, execution_id: int, job_id: int, owner_id: int) -> ExecutionLease:
        # The row is locked, so no earlier hold can end after this moment.
        now, token = moment_in(session, self._clock), secrets.token_hex(16)
        epoch = schedule_queries.hold_job(session, job_id=job_id, token=token, owner_id=owner_id, now=now)
        execution = schedule_queries.begin_execution(session, execution_id=execution_id, now=now)
        if execution is None:
            # The rollback also releases the job's lock.
            raise _Gone
        # The session may still have these rows as they were before the lock.
        job = session.get_one(Job, job_id, populate_existing=True)
        source = None if job.source_id is None else session.get_one(Source, job.source_id, populate_existing=True)
        owner = str(job.lock_owner)
        left_behind = self._left_behind(session, execution)
        resumed = bool(execution.output_dir) or execution.resumed_from is not None
        if source is not None and (left_behind is not None or not execution.output_dir):
            before = None if left_behind else schedule_queries.output_dir(session, execution.resumed_from)
            execution.output_dir = before or self._folder(execution, (job, source), now)
        if source is not None:
            execution.output_dir = str(run_folder(self._home, execution.output_dir))
        execution.directory = self._directory or execution.directory
        claim = LeaseClaim(job_id, token, epoch)
        schedule_queries.begin_hold(session, claim, execution_id=execution.id, owner=owner, now=now)
        session.flush()
        if source is not None:
            emit(session, [status(job.id, State.RUNNING, execution_id=execution.id, owner=owner)], now=now)
        return ExecutionLease(
            claim=claim,
            execution_id=execution.id,
            number=execution.number,
            owner=owner,
            of=source,
            job=job,
            output_dir=Path(execution.output_dir),
            resumed=resumed,
            before=reported(execution),
            named_at=self._named_at(session, execution),
            left_behind=left_behind,
        )

    def _named_at(self, session: Session, execution: Execution) -> datetime:
        while execution.resumed_from is not None and execution.resumed_from < execution.id:
            before = session.get(Execution, execution.resumed_from)
            if before is None:
                break
            execution = before
        return execution.created_at

    def _left_behind(self, session: Session, execution: Execution) -> str | None:
        """Return a sentence about the files of an execution in another data directory; None if it has none there."""
        if self._directory is None or execution.directory in (None, self._directory):
            return None
        last = schedule_queries.last_worker(session, execution.directory or "")
        folder = execution.output_dir or schedule_queries.output_dir(session, execution.resumed_from)
        whose = f"{last[0]}, silent since {last[1]:%Y-%m-%d %H:%M} UTC" if last else "an unknown machine"
        return (
            f"the earlier files of this run are in {folder} on {whose}; it continues here in a new folder without "
            "them, and they are indexed when that machine is back"
        )

    def _folder(self, execution: Execution, of: tuple[Job, Source], now: datetime) -> str:
        job, source = of
        stem = f"{now:%Y%m%dT%H%M%SZ}__{folder_name(source.code, execution.id, job.name)}"
        return str((captures_folder(self._home) / source.code / stem).resolve())

    def renew(self, lease: ExecutionLease) -> LeaseUpdate:
        """Renew the lease and return instructions to the holder; raise LeaseLost if another worker holds the job."""
        with self._database.write() as session:
            state = schedule_queries.beat(session, lease.claim, now=moment_in(session, self._clock))
            # Read in the transaction of the renewal: a holder learns of a stop request with its next heartbeat at the
            # latest.
            orders = schedule_queries.orders(session, execution_id=lease.execution_id)
        return _update_of(lease, state, orders)

    def poll_signals(self, lease: ExecutionLease) -> LeaseUpdate:
        """Return instructions to the holder without writing anything; raise LeaseLost as `renew` does."""
        with self._database.read() as session:
            # Keep this order: a cancellation that commits between the two reads must not look like a plain stop.
            orders = schedule_queries.orders(session, execution_id=lease.execution_id)
            state = schedule_queries.held_state(session, lease.claim)
        return _update_of(lease, state, orders)

    def report(self, lease: ExecutionLease, counts: Counts, metrics: dict[str, Any]) -> None:
        """Write the progress of a run and record it as an event; raise LeaseLost as `renew` does."""
        with self._database.write() as session:
            job, execution, now = self._held(session, lease)
            # If the holder dies, its working time ends with its last report.
            job.lock_heartbeat_at = now
            execution.metrics = metrics or execution.metrics
            if lease.of is None:
                return
            record_progress(session, (lease.job, lease.of), execution, counts, now=now)
            execution.items_crawled, execution.items_failed = counts.items_crawled, counts.items_failed
            execution.items_total = counts.items_total
            # Add the cost of earlier holders: times add up, and the highest memory peak counts.
            whole = counts.after(lease.before)
            execution.cpu_ms, execution.peak_memory_bytes = whole.cpu_ms, whole.peak_memory_bytes
            event = progress(
                lease.claim.job_id,
                lease.execution_id,
                items_found=counts.items_crawled,
                items_indexed=execution.items_indexed,
            )
            emit(session, [event], now=now)

    def release(self, lease: ExecutionLease, *, rest_s: float = 0.0, has_died: bool = False) -> None:
        """Return an execution to the queue, to be continued after `rest_s` seconds; raise LeaseLost as `renew`
        does. `has_died` records that its process died.
        """
        how = "died" if has_died else "released"
        with self._database.write() as session:
            job, execution, now = self._held(session, lease)
            # End the hold before releasing the job: the history must never show two holds at a time.
            schedule_queries.end_hold(session, job_id=job.id, epoch=lease.claim.epoch, ending=how, now=now)
            # Otherwise the execution keeps its place in the queue.
            if rest_s > 0:
                execution.queued_at = now + timedelta(seconds=rest_s)
            emit(session, self._settler.hand_back(session, job, execution, now=now, reason="released"), now=now)

    def settle(self, lease: ExecutionLease, ending: RunEnding) -> State:
        """Write how a run ended and what its job does next; return its state. LeaseLost leaves everything
        unchanged.
        """
        with self._database.write() as session:
            job, execution, now = self._held(session, lease)
            schedule_queries.end_hold(session, job_id=job.id, epoch=lease.claim.epoch, ending="settled", now=now)
            ending = replace(ending, counts=ending.counts.after(lease.before))
            events = self._settler.settle(session, job, execution, ending, now=now)
            emit(session, events, now=now)
            return state_of(job)

    def _held(self, session: Session, lease: ExecutionLease) -> tuple[Job, Execution, datetime]:
        job = schedule_queries.held_job(session, lease.claim)
        if job is None:
            raise _lost(lease)
        return job, locked_execution(session, lease.execution_id), moment_in(session, self._clock)


def _update_of(lease: ExecutionLease, state: str | None, orders: tuple[str | None, bool]) -> LeaseUpdate:
    if state is None:
        raise _lost(lease)
    cancelled, (stop, is_paused) = state == State.CANCELLED, orders
    return LeaseUpdate(stop or ("drain" if cancelled else None), cancelled, is_paused)


def _lost(lease: ExecutionLease) -> LeaseLost:
    return LeaseLost(
        f"{lease.owner} no longer holds execution {lease.execution_id} of job {lease.claim.job_id}; nothing was written"
    )


_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5


def start_page(session: Session, *, execution_id: int, url: str, etag: str | None = None) -> StartPage:
    """Return an execution's observation of its job's start URL; `etag` is the one stored before the run."""
    for hop in range(_MOST_REDIRECTS + 1):
        address = parse(url)
        found = schedule_queries.start_answer(
            session, execution_id=execution_id, domain=address.domain, url_hash=address.hash64
        )
        if found is None:
            return StartPage()
        if found.redirected_to is None or found.status not in _REDIRECTS:
            # The stored ETag is that of the start page, not of the page behind a redirect.
            same = hop == 0 and etag is not None and found.etag == etag and found.content_hash is not None
            return StartPage(content_hash=found.content_hash, not_modified=found.status == 304 or same)
        # A redirect's own body never changes: compare the page behind it.
        url = found.redirected_to
    return StartPage()


def start_etag(session: Session, *, url: str) -> str | None:
    """Return the last known ETag of a start page: read it before a run, for `start_page` after the run."""
    address = parse(url)
    return schedule_queries.page_etag(session, domain=address.domain, url_hash=address.hash64)
