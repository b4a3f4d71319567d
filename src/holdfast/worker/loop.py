"""The worker: queues what is due, leases it, has it run, settles it, and does chores in between; until told to stop.

The first signal drains: nothing new is taken, crawls finish what is in flight and are handed back. The second does not
wait. What is not settled is in the rows, and another worker goes on with it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast import log
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.coordination.disk import low_volume, shortage
from holdfast.coordination.owners import Owner
from holdfast.coordination.runfile import RunFile
from holdfast.db.sessionclock import SessionClock
from holdfast.errors import LeaseLost, Unavailable
from holdfast.jobs.endings import Ending, Result
from holdfast.jobs.leases import Lease, Leases
from holdfast.jobs.placement import Placement
from holdfast.jobs.plans import backend_of
from holdfast.jobs.retries import Failure
from holdfast.jobs.settling import Settler
from holdfast.wiring import Ground, open_ground
from holdfast.wiring.jobs import Jobs, open_jobs
from holdfast.worker.census import dead_holders, name_of
from holdfast.worker.chores import Bench, Chore
from holdfast.worker.feeding import FeedJobs
from holdfast.worker.heart import Heart
from holdfast.worker.recovery import recover
from holdfast.worker.rounds import Rounds
from holdfast.worker.run import Run, holding_for
from holdfast.worker.running import Runner, Stop
from holdfast.worker.stops import Stops

_log = log.get()
_LOOK_S = 0.1
_LET_GO_S = 10.0
"""How long runs may take to let go after the second signal."""
SCHEDULING, RUNNING = "worker", "runner"
"""What a worker is called among the owners: one that also queues what is due, and one that leaves it to others."""


class Roster(NamedTuple):
    """Who runs the executions of which backend, and which chores there are; filled in `worker.roster`."""

    runners: Mapping[str, Callable[[Settings], Runner]]
    chores: Sequence[Callable[[Bench], Chore]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """What a worker is asked to do."""

    once: bool = False
    """Run what is due now, with all that follows it, and end."""
    poll_s: float = 10.0
    concurrency: int = 1
    kinds: tuple[str, ...] | None = None
    schedules: bool = True
    """Whether it also turns due jobs into queued executions."""
    job_id: int | None = None
    """Run one execution of this job alone, and end."""


@dataclass(slots=True)
class Report:
    """What a worker did."""

    endings: Counter[str] = field(default_factory=Counter)
    """completed, failed, cancelled, released, lost, unsettled."""
    executions: list[int] = field(default_factory=list)
    low_disk: bool = False
    """Whether something waits that was not begun for want of space."""
    chore_errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """What a worker stands on; of its main thread, but for the heart and the chores."""

    ground: Ground
    jobs: Jobs
    name: str
    heart: Heart
    rounds: Rounds
    telling: Leases
    """For the threads of runs: with a clock that any thread may read."""


@contextmanager
def open_shop(settings: Settings, roster: Roster, *, schedules: bool = True) -> Iterator[Shop]:
    """Open connections, register the worker and start its heart and its chores; all of it ends with the block."""
    with ExitStack() as stack:
        ground = stack.enter_context(open_ground(settings))
        jobs = stack.enter_context(open_jobs(settings))
        recover(ground)
        kind = SCHEDULING if schedules else RUNNING
        owner = Owner(ground.hot, ground.clock, run=RunFile(ground.run_folder), kind=kind, execution_id=None)
        stack.callback(_say_goodbye, owner)
        heart, rounds = Heart(settings, owner), Rounds(settings, roster.chores)
        heart.start()
        stack.callback(heart.stop)
        rounds.start()
        stack.callback(rounds.stop, _LET_GO_S)
        clock = SessionClock(SystemClock())
        telling = Leases(jobs.database, clock, Settler(settings.jobs, Placement()), home=settings.home)
        yield Shop(ground=ground, jobs=jobs, name=name_of(owner.id), heart=heart, rounds=rounds, telling=telling)


def _say_goodbye(owner: Owner) -> None:
    with suppress(Unavailable):  # then the next start buries us
        owner.end()


class Worker:
    """The main thread of a worker."""

    def __init__(self, shop: Shop, duty: Duty, stops: Stops, roster: Roster) -> None:
        self._shop, self._duty, self._stops, self._runners = shop, duty, stops, roster.runners
        self._settings, self._clock = shop.jobs.settings, shop.ground.clock
        self._feed_jobs = FeedJobs(shop.jobs)
        self._runs: list[Run] = []
        self._wake = threading.Event()
        self._poll_at = 0.0
        self._hurried_at: float | None = None
        self._is_empty = False
        """Whether the last look found nothing that could be taken."""
        self._is_low = False
        self.report = Report()

    def run(self) -> Report:
        """Work until told to stop, or with `once` until nothing is due and nothing follows from what was done."""
        self._patiently(self._begin)
        while not self._is_over():
            self._patiently(self._look)
            self._pass_on()
            if not self._is_over():
                self._wake.wait(_LOOK_S)
                self._wake.clear()
        if self._duty.once:
            self._shop.rounds.exhaust(lambda: not self._stops.count)
        self.report.chore_errors = self._shop.rounds.errors
        return self.report

    def _patiently(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Unavailable as exc:  # nothing is lost: the next look finds the same rows
            _log.warning("worker.waits", action="look", message=str(exc))
        except Exception:  # what nobody foresaw: the runs go on, and so does the worker, unless it is to end anyway
            _log.exception("worker.look_failed", action="look")
            if self._duty.once and not self._runs:
                raise

    def _begin(self) -> None:
        jobs = self._shop.jobs
        jobs.scheduler.start(dead_owners=dead_holders(self._shop.ground, jobs.database))

    def _is_over(self) -> bool:
        if self._runs:
            return self._hurried_at is not None and self._clock.monotonic() - self._hurried_at > _LET_GO_S
        return bool(self._stops.count) or self._is_done() or (self._duty.once and self._is_empty)

    def _is_done(self) -> bool:
        """Return whether the one execution that was wanted has been run."""
        return self._duty.job_id is not None and bool(self.report.executions)

    def _look(self) -> None:
        """Settle what has ended; when it is time, queue what is due and take what is queued."""
        ended = [run for run in self._runs if run.is_over]
        for run in ended:
            self._settle(run)
        now = self._clock.monotonic()
        if self._stops.count or not (ended or now >= self._poll_at):
            return
        self._poll_at = now + self._duty.poll_s
        queued = self._schedule()
        taken = self._take()
        self._is_empty = not (queued or taken)

    def _schedule(self) -> bool:
        """Free what the dead of this machine held, and queue what is due; return whether there was any of it."""
        jobs = self._shop.jobs
        dead = dead_holders(self._shop.ground, jobs.database)
        freed = jobs.scheduler.sweep(dead_owners=dead) if dead else 0
        if self._duty.schedules:
            self._feed_jobs.look()
        tick = jobs.scheduler.tick() if self._duty.schedules else None
        return bool(freed or (tick is not None and (tick.queued or tick.cleared)))

    def _take(self) -> bool:
        """Begin as many executions as there is room for; return whether one was begun or may be at the next look."""
        taken = False
        while len(self._runs) < self._duty.concurrency and not self._is_done() and self._has_space():
            asked_at = self._clock.monotonic()
            lease = self._shop.jobs.leases.take(self._shop.name, kinds=self._duty.kinds, job_id=self._duty.job_id)
            if lease is None:
                break
            taken = True
            self._start(lease, asked_at)
        return taken or bool(self._runs)

    def _has_space(self) -> bool:
        """Return whether every volume has room for new work; the first time that one has not is told."""
        low = low_volume(self._settings)
        if low is not None and not self._is_low:
            waits = self._shop.jobs.leases.tell_waiting("disk_space", kinds=self._duty.kinds)
            told = shortage(low, self._settings.disk)
            _log.error("worker.low_disk", action="take", folder=str(low), execution=waits, message=told)
            self.report.low_disk = waits is not None
        elif self._is_low and low is None:
            _log.info("worker.disk_has_room", folder=str(self._settings.home))
            self.report.low_disk = False
        self._is_low = low is not None
        return low is None

    def _start(self, lease: Lease, asked_at: float) -> None:
        holding = holding_for(lease, self._shop.jobs.database, self._shop.telling, self._settings.jobs)
        self._shop.heart.keep(lease, holding, taken_at=asked_at)
        run = Run(lease, lambda: self._runner(lease), holding, wake=self._wake.set)
        self._runs.append(run)
        self.report.executions.append(lease.execution_id)
        _log.info("worker.run_starts", execution=lease.execution_id, job=lease.claim.job_id, source=lease.source.code,
                  resumed=lease.resumed, epoch=lease.claim.epoch)  # fmt: skip
        run.start()

    def _runner(self, lease: Lease) -> Runner:
        backend = backend_of(lease.job.kind, lease.job.config, lease.source.config)
        make = self._runners.get(backend)
        return _Nobody(backend) if make is None else make(self._settings)

    def _settle(self, run: Run) -> None:
        """Write how a run ended, under its lease; a database that is away leaves it for the next look."""
        self._shop.heart.ends(run.lease)
        try:
            word = self._write(run, run.ending)
        except Unavailable:
            raise
        except Exception as exc:  # the rows do not take this ending: one that says so is written in its place
            _log.exception("worker.settle_failed", action="settle", execution=run.lease.execution_id)
            word = self._give_up(run, exc)
        self._shop.heart.drop(run.lease)
        self._runs.remove(run)
        self.report.endings[word] += 1
        self._shop.rounds.wake()
        _log.info("worker.run_ends", execution=run.lease.execution_id, ending=word,
                  reason=run.ending.reason if run.ending else None)  # fmt: skip

    def _write(self, run: Run, ending: Ending | None) -> str:
        """Settle or hand back what is still ours; return the word for it."""
        leases = self._shop.jobs.leases
        try:
            if ending is None or run.is_lost:  # one that only lapsed is handed back, so that nobody waits for its end
                leases.release(run.lease, rest_s=run.holding.rest_s)
                return "released"
            leases.settle(run.lease, ending)
            return ending.result.value
        except LeaseLost as exc:
            _log.warning("worker.lease_lost", execution=run.lease.execution_id, message=str(exc))
            return "lost"

    def _give_up(self, run: Run, exc: Exception) -> str:
        """Settle a run as failed whose ending could not be written; if that fails, too, its lock goes stale."""
        error = f"its ending could not be written: {exc!r}"
        try:
            return self._write(
                run, Ending(result=Result.FAILED, failure=Failure.FAILED, reason="unsettled", error=error)
            )
        except Unavailable:
            raise
        except Exception:
            _log.exception("worker.settle_failed", action="give_up", execution=run.lease.execution_id)
            return "unsettled"

    def _pass_on(self) -> None:
        """Tell the runs and the chores what the signals said; runs that do not let go are left to the next worker."""
        if not self._stops.count:
            return
        self._shop.rounds.ask_to_stop()
        for run in self._runs:
            run.holding.ask(Stop.DRAIN if self._stops.count == 1 else Stop.NOW)
        if self._stops.count > 1 and self._hurried_at is None:
            self._hurried_at = self._clock.monotonic()


class _Nobody:
    """Stands in for a backend that no runner is known for."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def run(self, _lease: Lease, _holding: object) -> Ending:
        """Fail: trying again changes nothing."""
        return Ending(
            result=Result.FAILED, failure=Failure.CONFIG, reason="no_runner",
            error=f"this worker cannot run the backend {self._backend!r}; see: holdfast help start-worker",
        )  # fmt: skip


def work(settings: Settings, duty: Duty, stops: Stops, roster: Roster) -> Report:
    """Be a worker until told to stop, or until nothing is due; Unavailable if it cannot even begin."""
    with open_shop(settings, roster, schedules=duty.schedules) as shop:
        _log.info("worker.starts", name=shop.name, concurrency=duty.concurrency, schedules=duty.schedules)
        report = Worker(shop, duty, stops, roster).run()
        _log.info("worker.ends", name=shop.name, **report.endings)
        return report
