"""The worker loop: queues due jobs, leases executions, runs and settles them, and works in the background.

The first signal drains: nothing new starts, crawls finish running requests and are released. The second does
not wait. Unsettled work stays in the rows, and another worker continues it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from typing import Final, NamedTuple

from holdfast import log
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.crawl.recovery import recover, recover_leases
from holdfast.crawl.stopping import Stops
from holdfast.db.engine import SessionClock, machine_clock
from holdfast.db.raw import synchronise
from holdfast.errors import HoldfastError, LeaseLost, Unavailable
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.kinds import OPERATIONS_AT_ONCE
from holdfast.jobs.leases import ExecutionLease, ExecutionLeases
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.slots import Placement
from holdfast.jobs.store import backend_of
from holdfast.processes.boot_clock import follow_wall
from holdfast.processes.disk import low_volume, shortage
from holdfast.processes.owners import OPERATING, WORKER_KINDS, OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.search.directory import IndexDirectory
from holdfast.sources.contact import ContactMissing, known_contact
from holdfast.sources.members_file import note_members
from holdfast.values import dataclass
from holdfast.webhooks.delivery import open_deliveries
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.jobs import Jobs, open_heartbeat, open_jobs
from holdfast.worker.after_crawl import AfterCrawl
from holdfast.worker.background import Accounting, BackgroundContext, BackgroundTask, BackgroundWork, LinkSignals
from holdfast.worker.feeds import FeedJobs, FeedRunner
from holdfast.worker.native import NativeRunner
from holdfast.worker.runner import OPERATION, Runner, RunnerHolding, StopReason, WorkerRun, asked_for, holding_for
from holdfast.worker.zimit import ZimitRunner

_log = log.get()
_LISTEN_S = 1.0
# Time limit for ending the heartbeat, the background work and, after the second signal, the runs.
_LET_GO_S = 10.0
# How often the worker renews its row; after two minutes of silence it counts as dead.
_OWNER_S = 15.0


@dataclass(slots=True)
class _Held:
    lease: ExecutionLease
    holding: RunnerHolding
    renewed_at: float
    is_ending: bool = False
    """Whether its ending is being written: the rows lose the holder a moment before the lease is dropped."""


class Heartbeat:
    """Keeps the leases of one worker alive until they are dropped."""

    def __init__(self, settings: Settings, owner: OwnerProcess) -> None:
        self._settings, self._owner = settings, owner
        self._held: dict[int, _Held] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._owner_at = 0.0
        # Use a separate thread and connections: a main thread blocked by a slow statement must not lose its leases.
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing; remaining leases expire. Does not wait for a renewal that hangs in the database."""
        self._ended.set()
        self._thread.join(_LET_GO_S)

    def keep(self, lease: ExecutionLease, holding: RunnerHolding, *, taken_at: float) -> None:
        """Keep a lease alive; it was leased no earlier than `taken_at`."""
        # Count from before the lease statement: its duration then only shortens the lease.
        holding.good_until(taken_at + self._settings.timings.jobs_stale_s)
        with self._lock:
            self._held[lease.execution_id] = _Held(lease, holding, taken_at)

    def ends(self, lease: ExecutionLease) -> None:
        """Mark that a run's ending is about to be written; its lease stays alive until it is dropped."""
        with self._lock:
            if (held := self._held.get(lease.execution_id)) is not None:
                # The rows lose their holder shortly before the lease is dropped: without this flag the heartbeat would
                # log a run that was just settled as lost.
                held.is_ending = True

    def drop(self, lease: ExecutionLease) -> None:
        with self._lock:
            self._held.pop(lease.execution_id, None)

    def _run(self) -> None:
        pause = min(_LISTEN_S, self._settings.timings.jobs_heartbeat_s / 2)
        while not self._ended.is_set():
            try:
                with open_heartbeat(self._settings) as (runtime, leases):
                    while not self._ended.wait(pause):
                        self._beat(runtime, leases)
            except Exception as exc:
                # The heartbeat survives every error: if it stopped, every run would be lost.
                _log.error("worker.heartbeat_failed", action="beat", error=repr(exc))
                self._ended.wait(pause)

    def _beat(self, runtime: Runtime, leases: ExecutionLeases) -> None:
        now = runtime.clock.monotonic()
        with self._lock:
            held = list(self._held.values())
        for one in held:
            try:
                # Read the time for each lease: renewing the previous one may have blocked on the database.
                self._renew(leases, one, runtime.clock.monotonic())
                one.holding.flush()
            except Exception as exc:
                # Catch errors per lease, so that the others are still renewed.
                _log.error("worker.beat_failed", action="beat", execution=one.lease.execution_id, error=repr(exc))
        if now - self._owner_at >= min(_OWNER_S, self._settings.timings.jobs_heartbeat_s):
            # An unavailable database does not stop the worker: the next heartbeat writes the row.
            with suppress(Unavailable), runtime.raw_db.write() as tx:
                self._owner.beat(tx)
                self._owner_at = now

    def _renew(self, leases: ExecutionLeases, one: _Held, now: float) -> None:
        timings = self._settings.timings
        if one.holding.stop is StopReason.LOST:
            return
        try:
            # Renew at each heartbeat but poll every second: stops arrive soon, and SQLite's one writer stays free.
            if now - one.renewed_at >= timings.jobs_heartbeat_s:
                word = leases.renew(one.lease)
                one.renewed_at = now
                one.holding.good_until(now + timings.jobs_stale_s)
            else:
                word = leases.poll_signals(one.lease)
        except LeaseLost as exc:
            with self._lock:
                # Ignore a run that is settled or about to be: the code that settles it notices a lost lease.
                if one.lease.execution_id not in self._held or one.is_ending:
                    return
            _log.warning("worker.lease_lost", execution=one.lease.execution_id, message=str(exc))
            one.holding.ask(StopReason.LOST)
        except Unavailable as exc:
            _log.warning("worker.database_unavailable", message=str(exc))
        else:
            one.holding.is_paused = word.is_paused
            asked = asked_for(word)
            if asked is not None:
                one.holding.ask(asked)


_LOOK_S = 0.1
# How often to look for operations: a person waits for them. A look is one cheap read.
_OPERATIONS_S = 1.0
SCHEDULING, RUNNING = WORKER_KINDS
"""Owner kinds of workers: one that also queues due jobs, and one that does not."""


class RunnerTable(NamedTuple):
    """Runners by backend, and the background tasks: `RUNNERS` and `BACKGROUND_TASKS` below."""

    runners: Mapping[str, Callable[[Settings], Runner]]
    tasks: Sequence[Callable[[BackgroundContext], BackgroundTask]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    once: bool = False
    """Run all due jobs with their follow-up work, and exit."""
    poll_s: float = 10.0
    concurrency: int = 1
    """Concurrent crawls; 0 runs only operations."""
    kinds: tuple[str, ...] | None = None
    """Only crawls of these kinds; operations are run in any case."""
    schedules: bool = True
    """Whether it also turns due jobs into queued executions."""
    job_id: int | None = None
    """Run only one execution of this job, and exit."""


@dataclass(slots=True)
class WorkerReport:
    endings: Counter[str] = field(default_factory=Counter)
    """completed, failed, cancelled, released, lost or unsettled."""
    executions: list[int] = field(default_factory=list)
    low_disk: bool = False
    """Whether anything was not started for lack of disk space."""
    background_errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """Dependencies of a worker; used by its main thread, except for heartbeat and background work."""

    runtime: Runtime
    jobs: Jobs
    owner: OwnerProcess
    heartbeat: Heartbeat
    background: BackgroundWork
    run_leases: ExecutionLeases
    """For the threads of runs: with a clock that any thread may read."""


def _recover_at_end(runtime: Runtime) -> None:
    """Clean up after dead processes; log failures, and leave the rest to the next start."""
    try:
        recover(runtime)
    except HoldfastError as exc:
        _log.warning("worker.not_cleaned_up", message=str(exc))


def _mend_note(jobs: Jobs, settings: Settings) -> None:
    """Record in the data directory which sources are for members only, in case a process died before doing so."""
    try:
        note_members(jobs.database, settings.home)
    except HoldfastError as exc:
        _log.warning("worker.members_not_noted", message=str(exc))


@contextmanager
def open_worker(settings: Settings, runner_table: RunnerTable, *, kind: str = SCHEDULING) -> Iterator[WorkerContext]:
    """Open connections, register the worker, start heartbeat and background work; end all with the block."""
    with ExitStack() as stack:
        runtime = stack.enter_context(open_runtime(settings))
        directory = IndexDirectory(settings.home).identity()
        jobs = stack.enter_context(open_jobs(settings, directory=directory))
        # Recover before leasing: run files show at once which processes of this machine died, while other machines have
        # to wait for the stale period.
        recover(runtime)
        _mend_note(jobs, settings)
        # Called last, so that processes that died after this worker's last run do not wait for another start.
        stack.callback(_recover_at_end, runtime)
        run = RunFile(runtime.run_folder)
        # Crawls do not wait for a worker that runs none: without the directory it does not show that one is here.
        here = None if kind == OPERATING else directory
        owner = OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind=kind, execution_id=None, directory=here)
        stack.callback(_end_owner, owner)
        heartbeat, background = Heartbeat(settings, owner), BackgroundWork(settings, runner_table.tasks)
        heartbeat.start()
        # Registered after the owner's end and so called before it: a heartbeat must not renew the row of a worker that
        # has ended.
        stack.callback(heartbeat.stop)
        background.start()
        stack.callback(background.stop, _LET_GO_S)
        if settings.webhooks.deliver:
            # Deliveries have their own connections: a receiver that hangs delays nothing else here.
            stack.enter_context(open_deliveries(settings, owner_id=owner.id))
        # Runs report from their own threads, and the main thread's database clock is not shared.
        clock = SessionClock(SystemClock())
        run_leases = ExecutionLeases(jobs.database, clock, RunSettler(settings, Placement()), home=settings.home)
        yield WorkerContext(
            runtime=runtime,
            jobs=jobs,
            owner=owner,
            heartbeat=heartbeat,
            background=background,
            run_leases=run_leases,
        )


def _end_owner(owner: OwnerProcess) -> None:
    # If the database is unavailable, the next worker start closes our row.
    with suppress(Unavailable):
        owner.end()


class Worker:
    def __init__(self, context: WorkerContext, options: WorkerOptions, stops: Stops, runner_table: RunnerTable) -> None:
        self._context, self._options, self._stops, self._runners = context, options, stops, runner_table.runners
        self._settings, self._clock = context.jobs.settings, context.runtime.clock
        self._feed_jobs = FeedJobs(context.jobs)
        self._runs: list[WorkerRun] = []
        self._wake = threading.Event()
        self._poll_at = self._operations_at = 0.0
        self._recovers = False
        self._hurried_at: float | None = None
        # Whether the last poll found nothing to lease.
        self._is_empty = False
        self._is_low = False
        self._is_anonymous: bool | None = None
        """Whether no contact was known at the last look. A contact may change, but it never goes away."""
        self.report = WorkerReport()

    def run(self) -> WorkerReport:
        """Work until stopped, or with `once` until nothing is due and no follow-up work remains."""
        self._patiently(self._begin)
        while not self._is_over():
            self._patiently(self._look)
            self._pass_on()
            if not self._is_over():
                self._wake.wait(_LOOK_S)
                self._wake.clear()
        if self._options.once:
            self._context.background.exhaust(lambda: not self._stops.count)
        self.report.background_errors = self._context.background.errors
        return self.report

    def _patiently(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Unavailable as exc:
            # Nothing is lost: the next poll finds the same rows.
            _log.warning("worker.waits", action="look", message=str(exc))
        except Exception:
            # An unexpected error ends neither the runs nor the worker, unless it is ending anyway.
            _log.exception("worker.look_failed", action="look")
            if self._options.once and not self._runs:
                raise

    def _begin(self) -> None:
        self._context.jobs.scheduler.start()

    def _is_over(self) -> bool:
        if self._runs:
            return self._hurried_at is not None and self._clock.monotonic() - self._hurried_at > _LET_GO_S
        return bool(self._stops.count) or self._is_done() or (self._options.once and self._is_empty)

    def _is_done(self) -> bool:
        return self._options.job_id is not None and bool(self.report.executions)

    def _look(self) -> None:
        ended = [run for run in self._runs if run.is_over]
        for run in ended:
            self._settle(run)
        now = self._clock.monotonic()
        # An ended run frees a slot: lease the next one now, not at the next poll.
        if self._stops.count:
            return
        if OPERATION in self._runners and (ended or now >= self._operations_at):
            self._operations_at = now + _OPERATIONS_S
            self._take_operations()
        if not (ended or now >= self._poll_at):
            return
        self._poll_at = now + self._options.poll_s
        runtime = self._context.runtime
        follow_wall(runtime.raw_db, machine_clock(self._clock), folder=runtime.run_folder)
        synchronise(self._clock, self._context.jobs.clock)
        queued = self._schedule()
        taken = self._take()
        self._is_empty = not (queued or taken)

    def _schedule(self) -> bool:
        """Release leases of dead holders on this machine, and queue due jobs; return whether there were any."""
        jobs = self._context.jobs
        # Check at each poll: jobs of a killed worker on this machine then continue within seconds, not after the stale
        # period. `open_worker` has just done so for the first poll.
        if self._recovers:
            recover_leases(self._context.runtime)
        self._recovers = True
        freed = jobs.scheduler.sweep()
        if self._options.schedules:
            self._feed_jobs.look()
        tick = jobs.scheduler.tick() if self._options.schedules else None
        return bool(freed or (tick is not None and (tick.queued or tick.cleared)))

    def _take(self) -> bool:
        """Start as many executions as there is room for; return whether one started, or may start next time."""
        while len(self._runs) - self._operations() < self._options.concurrency and not self._is_done():
            if not (self._is_ready() and self._lease(operations=False)):
                break
        return bool(self._runs)

    def _take_operations(self) -> None:
        """Start as many operations as there is room for: they need neither a contact nor room on every disk."""
        while self._operations() < OPERATIONS_AT_ONCE and not self._is_done() and self._lease(operations=True):
            pass

    def _operations(self) -> int:
        return sum(run.lease.of is None for run in self._runs)

    def _lease(self, *, operations: bool) -> bool:
        """Lease and start one execution; return False if none waits."""
        # Read the time before the statement, so that the lease never lasts longer here than in the row.
        asked_at, options = self._clock.monotonic(), self._options
        kinds = None if operations else options.kinds
        lease = self._context.jobs.leases.take(
            self._context.owner.id, kinds=kinds, job_id=options.job_id, operations=operations
        )
        if lease is not None:
            self._start(lease, asked_at)
        return lease is not None

    def _is_ready(self) -> bool:
        # A permanent worker waits for the contact that comes with the first website; a single pass runs all due jobs.
        if not self._options.once and self._is_anonymous is not False:
            is_news, self._is_anonymous = self._is_anonymous is None, known_contact(self._settings) is None
            if self._is_anonymous:
                if is_news:
                    _log.warning("worker.no_contact", action="take", message=str(ContactMissing()))
                return False
        return self._has_space()

    def _has_space(self) -> bool:
        """Return whether every volume has space for new work; log when one first has not."""
        # Check only before a start: nothing else could act on the result.
        low = low_volume(self._settings)
        if low is not None and not self._is_low:
            # Report it once, with the first waiting job: a report per poll would fill log and events.
            waits = self._context.jobs.leases.tell_waiting("disk_space", kinds=self._options.kinds)
            message = shortage(low, self._settings.disk)
            _log.error("worker.low_disk", action="take", folder=str(low), execution=waits, message=message)
            self.report.low_disk = waits is not None
        elif self._is_low and low is None:
            _log.info("worker.disk_has_room", folder=str(self._settings.home))
            self.report.low_disk = False
        self._is_low = low is not None
        return low is None

    def _start(self, lease: ExecutionLease, asked_at: float) -> None:
        holding = holding_for(lease, self._context.jobs.database, self._context.run_leases, self._settings.jobs)
        self._context.heartbeat.keep(lease, holding, taken_at=asked_at)
        run = WorkerRun(lease, lambda: self._runner(lease), holding, wake=self._wake.set)
        self._runs.append(run)
        self.report.executions.append(lease.execution_id)
        _log.info(
            "worker.run_starts",
            execution=lease.execution_id,
            job=lease.claim.job_id,
            source=lease.code,
            resumed=lease.resumed,
            epoch=lease.claim.epoch,
        )
        run.start()

    def _runner(self, lease: ExecutionLease) -> Runner:
        backend = OPERATION
        if lease.of is not None:
            backend = backend_of(lease.job.kind, lease.job.config, lease.of.config)
        make = self._runners.get(backend)
        # Run a job of an unknown backend as a run that fails: otherwise it would be leased and dropped again and again.
        return _NoRunner(backend) if make is None else make(self._settings)

    def _settle(self, run: WorkerRun) -> None:
        """Write how a run ended, under its lease; if the database is unavailable, retry in the next round."""
        # Only this thread settles runs, under the token and epoch of their lease.
        self._context.heartbeat.ends(run.lease)
        try:
            word = self._write(run, run.ending)
        except Unavailable:
            raise
        except Exception as exc:
            # The database rejected this ending: write one that reports the failure instead.
            _log.exception("worker.settle_failed", action="settle", execution=run.lease.execution_id)
            word = self._give_up(run, exc)
        self._context.heartbeat.drop(run.lease)
        self._runs.remove(run)
        self.report.endings[word] += 1
        # The run left new files to index.
        self._context.background.wake()
        _log.info(
            "worker.run_ends",
            execution=run.lease.execution_id,
            ending=word,
            reason=run.ending.reason if run.ending else None,
        )

    def _write(self, run: WorkerRun, ending: RunEnding | None) -> str:
        leases = self._context.jobs.leases
        try:
            # Release a lease that merely expired, so that its job does not wait for the stale period.
            if ending is None or run.is_lost:
                leases.release(run.lease, rest_s=run.holding.rest_s, has_died=run.holding.has_died)
                return "released"
            leases.settle(run.lease, ending)
            return ending.result.value
        except LeaseLost as exc:
            _log.warning("worker.lease_lost", execution=run.lease.execution_id, message=str(exc))
            return "lost"

    def _give_up(self, run: WorkerRun, exc: Exception) -> str:
        """Settle a run as failed if its ending could not be written; if that fails too, its lock goes stale."""
        error = f"its ending could not be written: {exc!r}"
        try:
            return self._write(
                run, RunEnding(result=RunResult.FAILED, failure=FailureCause.FAILED, reason="unsettled", error=error)
            )
        except Unavailable:
            raise
        except Exception:
            _log.exception("worker.settle_failed", action="give_up", execution=run.lease.execution_id)
            return "unsettled"

    def _pass_on(self) -> None:
        if not self._stops.count:
            return
        self._context.background.ask_to_stop()
        for run in self._runs:
            # The first signal drains. The second does not wait: unsettled work is in the database, and another worker
            # continues it.
            run.holding.ask(StopReason.DRAIN if self._stops.count == 1 else StopReason.NOW)
        if self._stops.count > 1 and self._hurried_at is None:
            self._hurried_at = self._clock.monotonic()


class _NoRunner:
    def __init__(self, backend: str) -> None:
        self._backend = backend

    def run(self, _lease: ExecutionLease, _holding: object) -> RunEnding:
        """Return a configuration failure: retrying changes nothing."""
        return RunEnding(
            result=RunResult.FAILED,
            failure=FailureCause.CONFIG,
            reason="no_runner",
            error=f"this worker cannot run the backend {self._backend!r}; see: holdfast help start-worker",
        )


def work(settings: Settings, options: WorkerOptions, stops: Stops, runner_table: RunnerTable) -> WorkerReport:
    """Run a worker until stopped, or until nothing is due; raise Unavailable if it cannot start."""
    crawling = SCHEDULING if options.schedules else RUNNING
    with open_worker(settings, runner_table, kind=crawling if options.concurrency else OPERATING) as context:
        name = context.owner.name
        _log.info("worker.starts", name=name, concurrency=options.concurrency, schedules=options.schedules)
        report = Worker(context, options, stops, runner_table).run()
        _log.info("worker.ends", name=name, **report.endings)
        return report


RUNNERS: Final[Mapping[str, Callable[[Settings], Runner]]] = {
    "native": NativeRunner,
    "zimit": ZimitRunner,
    "feed": FeedRunner,
}
"""Keys are the results of `backend_of`; a source's configuration may use the first two.

`operations.runner` adds that of operations.
"""
BACKGROUND_TASKS: Final[tuple[Callable[[BackgroundContext], BackgroundTask], ...]] = (
    AfterCrawl,
    Accounting,
    LinkSignals,
)
"""In the order in which they run."""
