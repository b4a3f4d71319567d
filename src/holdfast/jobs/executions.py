"""One run of a crawl: started or resumed, stopped on request, ended. The database allows one open one per job."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from holdfast.clock import Clock, to_micros
from holdfast.db.audit_events import append_event
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import Conflict, Invalid, NotFound, Unavailable
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import RunReading, facts_of, read
from holdfast.jobs.execution_queries import ExecutionEnding as ExecutionEnding
from holdfast.jobs.execution_queries import ExecutionRow
from holdfast.sources.adhoc_queries import ensure_source
from holdfast.sources.plan import CrawlPlan
from holdfast.storage.roots import find_file, key_of
from holdfast.storage.store import captures_folder, run_folder
from holdfast.values import dataclass
from holdfast.warc import queries as files
from holdfast.warc.outfile import OPEN_SUFFIX

ADHOC = "adhoc"


class NotStoppable(Conflict):
    """The execution cannot be stopped: it has not started, or has ended."""

    code = "not_stoppable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRun:
    execution_id: int
    source_code: str
    output_dir: Path
    resumed: bool
    run_seconds: float
    landing: tuple[str, ...] = ()
    goes_on_with: int | None = None
    """The execution whose frontier it continues, if it retries one."""

    @property
    def frontier_id(self) -> int:
        return self.goes_on_with or self.execution_id


class WorkTime:
    """Time worked on an execution, by all its workers: saved continuously, so that a kill loses only a moment.

    The row is only advanced from the value that this counter knows. So no time counts twice: not after a commit
    whose confirmation was lost, and not while two supervisors that consider each other dead work at the same
    time.
    """

    def __init__(self, clock: Clock, started: StartedRun) -> None:
        self._clock, self._execution_id = clock, started.execution_id
        self._known_s, self._since = started.run_seconds, clock.monotonic()
        # The last written value: the next read of the row shows whether it was committed.
        self._written_s, self._written_at = self._known_s, self._since
        self._paused_at: float | None = None
        self._rested_s = 0.0

    def rest(self, *, is_paused: bool) -> None:
        now = self._clock.monotonic()
        if is_paused:
            self._paused_at = now if self._paused_at is None else self._paused_at
        elif self._paused_at is not None:
            self._rested_s += now - self._paused_at
            self._paused_at = None

    def _now(self) -> float:
        """Return a monotonic clock that excludes pauses."""
        return (self._clock.monotonic() if self._paused_at is None else self._paused_at) - self._rested_s

    @property
    def used_s(self) -> float:
        return self._known_s + self._now() - self._since

    def write(self, tx: Transaction) -> None:
        """Save it in the row; if another process has changed the row meanwhile, continue from that value."""
        now, in_row = self._now(), execution_queries.run_seconds(tx, execution_id=self._execution_id)
        if in_row == self._written_s:
            self._known_s, self._since = self._written_s, self._written_at
        elif in_row != self._known_s:
            self._known_s, self._since = in_row, now
        self._written_s, self._written_at = self._known_s + now - self._since, now
        execution_queries.move_run_seconds(tx, execution_id=self._execution_id, before=in_row, after=self._written_s)


class ExecutionOptions(NamedTuple):
    home: Path
    output: Path | None = None
    resume_only: bool = False
    open_store: Callable[[str], object] = lambda _code: None
    """Opens the folder of a source below the data directory; raises Unavailable if its storage is unreachable."""


def begin(
    raw_db: RawDatabase, clock: Clock, plan: CrawlPlan, options: ExecutionOptions, *, is_working: Callable[[int], bool]
) -> StartedRun:
    """Resume the unfinished execution with the same seeds and scope, or start a new one.

    Raise Conflict if a live process runs it already, NotFound if `resume_only` and there is nothing to resume.
    `is_working` runs on the same connection, between two transactions: `rivals` tells apart two that start
    together.
    """
    fingerprint = plan.fingerprint()
    with raw_db.read() as tx:
        job = execution_queries.job_by_fingerprint(tx, kind=ADHOC, fingerprint=fingerprint)
        found = execution_queries.open_execution(tx, job_id=job[0]) if job is not None else None
    if found is not None and is_working(found.id):
        raise Conflict(
            f"execution {found.id} crawls these seeds already; watch it with: holdfast status, "
            "or end it with: holdfast stop"
        )
    if found is None and options.resume_only:
        raise NotFound("nothing to resume for these seeds and this scope; leave out --resume to start a crawl")
    with raw_db.write() as tx:
        started = _resume(tx, found, options) if found is not None else _start(tx, clock, plan, options, fingerprint)
        if plan.robots == "ignore":
            subject, detail = (
                f"execution {started.execution_id}",
                {"reason": plan.robots_reason, "seeds": list(plan.seeds)},
            )
            append_event(tx, clock, action="robots.ignored", subject=subject, detail=detail)
    return started


def files_are_away(tx: Transaction, home: Path, execution_ids: Sequence[int], *, folder: Path | None = None) -> bool:
    """Return whether these executions have sealed files and all are missing, as after a lost mount.

    With `folder`, only files below it count: others may be on another machine.
    """
    written = [file for one in execution_ids for file in files.files_of(tx, execution_id=one) if file.state == "sealed"]
    if folder is not None:
        written = [file for file in written if file.file_key.is_below(key_of(home, folder))]
    return bool(written) and not any(find_file(home, file.file_key) for file in written)


def _resume(tx: Transaction, found: ExecutionRow, options: ExecutionOptions) -> StartedRun:
    if not execution_queries.resume_execution(tx, execution_id=found.id):
        raise Conflict(f"execution {found.id} was ended by another start; the same command begins a new one")
    folder = run_folder(options.home, found.output_dir)
    execution_queries.place_execution(tx, execution_id=found.id, output_dir=str(folder))
    # Check in this transaction, before anything is resumed.
    if files_are_away(tx, options.home, [found.id]):
        raise Unavailable(
            f"{folder} has none of the files that were written there: is its storage mounted? If they are "
            f"gone for good, the same command starts from the beginning after: holdfast stop {found.id} --cancel"
        )
    # Only folders below the data directory have a storage mark; other outputs belong to the caller.
    if folder.is_relative_to(captures_folder(options.home).resolve()):
        options.open_store(found.source)
    return StartedRun(
        execution_id=found.id,
        source_code=found.source,
        output_dir=_made(folder),
        resumed=True,
        run_seconds=found.run_seconds,
        landing=tuple(found.config.get("landing", ())),
    )


def _start(tx: Transaction, clock: Clock, plan: CrawlPlan, options: ExecutionOptions, fingerprint: str) -> StartedRun:
    at = clock.now()
    now = to_micros(at)
    job = execution_queries.job_by_fingerprint(tx, kind=ADHOC, fingerprint=fingerprint)
    if job is None:
        first = plan.first_seed_url()
        source_id, code = ensure_source(tx, host=first.host, base_url=f"{first.origin}/", now=now)
        # Check again under the lock: another start may have created it meanwhile.
        job = execution_queries.job_by_fingerprint(tx, kind=ADHOC, fingerprint=fingerprint) or (
            execution_queries.insert_job(tx, source_id=source_id, kind=ADHOC, fingerprint=fingerprint, now=now),
            code,
        )
    job_id, code = job
    execution_id = execution_queries.insert_execution(tx, job_id=job_id, config=json.dumps(plan.public()), now=now)
    # The unique key of open executions decides, not the earlier check.
    if execution_id is None:
        raise Conflict("another start began to crawl these seeds a moment ago; watch it with: holdfast status")
    # Open it in this transaction: if the storage is unavailable, nothing has started.
    if options.output is None:
        options.open_store(code)
    # The name has a time and a number: two crawls of one source may start in the same second.
    folder = options.output or captures_folder(options.home) / code / f"{at:%Y%m%dT%H%M%SZ}__{code}-{execution_id}"
    execution_queries.place_execution(tx, execution_id=execution_id, output_dir=str(folder.resolve()))
    return StartedRun(
        execution_id=execution_id, source_code=code, output_dir=_made(folder.resolve()), resumed=False, run_seconds=0.0
    )


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Invalid(f"cannot write to {folder}: {exc.strerror}; choose another place with --output") from exc
    return folder


def end(
    raw_db: RawDatabase,
    clock: Clock,
    ending: ExecutionEnding,
    *,
    time: WorkTime | None = None,
    also: Callable[[Transaction], None] = lambda _tx: None,
) -> None:
    """Record how an execution ended, and how long it was worked on if `time` is given; `also` joins the
    transaction.
    """
    with raw_db.write() as tx:
        if time is not None:
            time.write(tx)
        execution_queries.end_execution(tx, ending, now=to_micros(clock.now()))
        also(tx)


def read_ending(
    raw_db: RawDatabase,
    home: Path,
    *,
    execution_id: int,
    stopped: int | None = None,
    unread: Mapping[str, int] | None = None,
) -> RunReading:
    """Return how a run without open URLs ended; `stopped` counts the URLs that a person's stop left over.

    `unread` counts, by limit, the pages whose links were not read again before that limit ended the run. Files
    that are missing below `home` count as another machine's.
    """
    with raw_db.read() as tx:
        frontier_id = execution_queries.frontier_of(tx, execution_id)
        left_out = execution_queries.left_out_by_limits(tx, frontier_id=frontier_id)
        runs = [execution_id, *execution_queries.runs_before(tx, execution_id=execution_id)]
        # Include earlier runs whose frontier this one continues: it did not fetch their captures again.
        written = [file for run in runs if run >= frontier_id for file in files.files_of(tx, execution_id=run)]
    facts = facts_of(execution_queries.ended_as(raw_db, frontier_id=frontier_id), stopped=stopped)
    elsewhere = sum(
        not find_file(home, one.file_key) and not find_file(home, one.file_key.with_suffix(OPEN_SUFFIX))
        for one in written
    )
    # A limit also leaves over pages whose links were not read again: their targets are unknown.
    over = Counter(facts.over) + Counter(unread or {})
    return read(replace(facts, over=over, left_out=left_out, files_elsewhere=elsewhere))


def request_stop(raw_db: RawDatabase, clock: Clock, *, execution_id: int | None, cancel: bool) -> list[int]:
    """Request one execution, or all running ones, to drain or to discard; return their ids.

    Raise NotFound if the execution is missing or none runs; NotStoppable if the given one does not run.

    The audit log records who requested it, and whether captures will be discarded.
    """
    with raw_db.write() as tx:
        if execution_id is not None:
            one = execution_queries.execution(tx, execution_id)
            # A run that has started may be queued for the next worker.
            is_started = one is not None and (
                one.state in execution_queries.OPEN or (one.state == "queued" and one.started_at is not None)
            )
            if one is not None and not is_started:
                raise NotStoppable(f"execution {one.id} is {one.state} and cannot be stopped; see: holdfast status")
            ids = [execution_id] if is_started else []
        else:
            ids = execution_queries.latest_executions(tx, limit=1000, running=True)
        execution_queries.ask_to_stop(tx, execution_ids=ids, word="cancel" if cancel else "drain")
        for one_id in ids:
            detail = {"discard": cancel}
            append_event(tx, clock, action="execution.stop_asked", subject=f"execution {one_id}", detail=detail)
    if not ids:
        which = "no execution runs" if execution_id is None else f"there is no execution {execution_id}"
        raise NotFound(f"{which}; see them with: holdfast status")
    return ids
