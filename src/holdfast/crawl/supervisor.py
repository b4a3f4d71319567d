"""Runs one execution with a few processes: starts them, replaces those that die or hang, and ends the execution.

While the database is unavailable, nothing is started, counted as a death or ended.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from holdfast import log
from holdfast.crawl.assignment import Assignment, seeds_of
from holdfast.crawl.recovery import discard, recover
from holdfast.crawl.stopping import Stops, obeying_signals
from holdfast.db.raw import StatementTimeout, last_refusal, synchronise
from holdfast.errors import Conflict, NoSpace, Unavailable, UrlRefused
from holdfast.frontier import Frontier
from holdfast.frontier.control import WaitingUrl
from holdfast.jobs import executions
from holdfast.jobs.endings import LIMITS, RunReading, Shortfall, failed
from holdfast.jobs.executions import StartedRun, WorkTime, read_ending
from holdfast.jobs.views.status import ExecutionStatus, read_status
from holdfast.processes.child_process import ChildProcess
from holdfast.processes.disk import MountIdentity, shortage
from holdfast.processes.owners import OwnerProcess, rivals, was_closed
from holdfast.processes.runfile import RunFile, last_tick, new_name
from holdfast.sources.plan import CrawlPlan
from holdfast.types import FoundUrl
from holdfast.urls import parse
from holdfast.values import dataclass
from holdfast.warc import queries as files
from holdfast.wiring import Runtime

# Garbage collection takes a tenth of the loading time and finds nothing; `main` enables it again.
_PROGRAM = "import gc; gc.disable(); from holdfast.crawl.process import main; main()"
# How long a process may take to start: on a busy machine an interpreter needs seconds to load its modules.
_START_S = 20.0
_TICKS_S = os.sysconf("SC_CLK_TCK")


Cost = tuple[float, int]
"""CPU seconds, and the peak of memory in bytes."""


# glibc raises this to the size of the largest freed block, and then keeps blocks up to that size: concurrent hostile
# pages took 83 MiB with that and 58 MiB without. Other C libraries ignore it.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1024 * 1024)}


class CrawlChild(ChildProcess):
    """A process of a crawl: `crawl/process.py`."""

    def __init__(
        self, assignment: Assignment, *, environment: dict[str, str], log_path: Path, run_folder: Path, now: float
    ) -> None:
        self.run_path = run_folder / assignment.run_file
        self._alive_at = now
        self._has_ticked = False
        self._output = b""
        with log_path.open("ab") as log_file:
            super().__init__(
                [sys.executable, "-P", "-c", _PROGRAM],
                {**_MEMORY, **os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
            )
        assert self.stdin is not None
        with suppress(BrokenPipeError):  # it died at once: its exit code will show that
            self.stdin.write(assignment.to_json().encode())
            self.stdin.close()

    def cost(self) -> Cost | None:
        """Return the process's resource use as the kernel counts it while it is alive; None where it does not."""
        try:
            # The second field is the program's name in brackets, which may itself contain brackets and spaces.
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return None
        peak = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
        return (int(fields[11]) + int(fields[12])) / _TICKS_S, peak

    def fileno(self) -> int:
        assert self.stdout is not None
        return self.stdout.fileno()

    def read_output(self) -> None:
        written = os.read(self.fileno(), 4096)
        self._output += written
        # The kernel closes its output just before the process ends: without the wait it would count as alive.
        if not written:
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def ending(self) -> str | None:
        """Return the word with which an ended process reported its ending; None if it died."""
        assert self.stdout is not None
        lines = (self._output + self.stdout.read()).splitlines()
        self.close()
        return json.loads(lines[-1])["ending"] if lines and self.poll() == 0 else None

    def silent_for(self, now: float) -> float:
        """Return the seconds since the process's loop last showed life; a process that closed its run file is not
        silent.
        """
        tick = last_tick(self.run_path)
        if tick is None:
            return 0.0 if self._has_ticked else max(0.0, now - self._alive_at - _START_S)
        self._has_ticked = True
        return now - max(self._alive_at, tick)

    def excuse(self, now: float) -> None:
        """Count silence from now on, because this supervisor was suspended and could not check."""
        self._alive_at = now


_SEEDS_AT_ONCE = 5000
"""Seeds per batch, which is one transaction."""


class Seeding:
    # Starting again after a kill is harmless: existing rows are not added twice.

    def __init__(self, plan: CrawlPlan, frontier: Frontier, frontier_id: int) -> None:
        self._frontier, self._frontier_id = frontier, frontier_id
        # In batches: the first can be requested while the rest of a million is still being read.
        self._seeds = seeds_of(plan)
        self._next = self._read()
        self._added = 0
        self._total = len(plan.lists) + int(plan.search) if plan.polls else len(plan.seeds)

    def _read(self) -> list[FoundUrl]:
        return list(islice(self._seeds, _SEEDS_AT_ONCE))

    @property
    def left(self) -> int:
        """Upper bound of the seeds not added yet; the plan may contain duplicates."""
        return max(len(self._next), self._total - self._added) if self._next else 0

    def step(self) -> None:
        if self._next:
            # Do this before `_next` advances: the next step then adds a batch that the database rejected.
            self._frontier.add(self._frontier_id, self._next)
            self._added += len(self._next)
            self._next = self._read()


T = TypeVar("T")

_log = log.get()
_LOOK_S = 0.1
_SHOW_S = 0.5
_BEAT_S = 15.0
# How often the working time is written: a kill loses up to this much.
_COUNT_S = 2.0
_AGAIN_S = 0.5  # how often an unavailable database is retried
_TIMEOUTS = 3  # how often a statement may time out before waiting does not help
# A longer pause between two checks means that this process was suspended: silence meanwhile proves nothing.
_ASLEEP_S = 2.0
# This many consecutive deaths without settled work end the execution: in total, and for each of its processes.
_DEATHS = 8
_DEATHS_EACH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """How a crawl ended (completed, stopped with work left, cancelled and discarded, failed), and its resource use."""

    reading: RunReading
    cost: Cost
    error: str | None = None
    """Human-readable reason of the failure."""

    @property
    def state(self) -> str:
        return self.reading.state


class Supervisor:
    def __init__(
        self,
        runtime: Runtime,
        started: StartedRun,
        plan: CrawlPlan,
        *,
        workers: int,
        show: Callable[[ExecutionStatus], None],
    ) -> None:
        self._runtime, self._started, self._plan = runtime, started, plan
        self._workers, self._show = workers, show
        self._children: list[CrawlChild] = []
        self._seeding: Seeding | None = None
        # Numbers of processes that were started before all seeds were added: they may end although more follow.
        self._early: set[int] = set()
        self._resting = 0
        """Places of such processes that found nothing more to do."""
        self._vacant = 0
        """Places of processes that died and were not cleaned up after yet."""
        self._again_at = 0.0
        self._endings: list[str] = []
        self._stops = Stops()
        self._epoch: int | None = None
        self._stopped_at: float | None = None
        self._deaths, self._settled = 0, -1
        self._shown_at = self._looked_at = self._beat_at = self._counted_at = runtime.clock.monotonic()
        self._time = WorkTime(runtime.clock, started)
        self._failure: str | None = None
        self._mount = MountIdentity(started.output_dir)
        self._has_vanished = False
        """Whether the folder that is written to is gone, or another: a mount that was taken away."""
        self._owner: OwnerProcess | None = None
        self._rivals: set[int] = set()
        """Later supervisors of this execution that lived when they were last looked for."""
        self._costs: dict[int, Cost] = {}
        self._peak_bytes = 0

    def run(self) -> ExecutionStatus:
        """Run the execution to its end and return its last status; raise `Conflict` if another live supervisor has
        it.
        """
        with obeying_signals() as stops, self._in_place() as owner:
            conclusion = self._crawl(owner, stops, None)
            if stops.abandoned:
                number = self._started.execution_id
                raise Conflict(
                    f"execution {number} was taken up or ended by another process while this one stood still, so this "
                    f"one has handed back; look at it with: holdfast status {number}"
                )
            ending = self._patiently(lambda: self._ending(conclusion))
            raw_db, clock = self._runtime.raw_db, self._runtime.clock
            # Do this in one step with its ending: no other start may find a running crawl without a process.
            self._patiently(lambda: executions.end(raw_db, clock, ending, time=self._time, also=owner.leave))
            if self._has_vanished:
                raise Unavailable(
                    f"{self._started.output_dir} has vanished while it was written to: is its storage mounted? "
                    "Once it is back, the same command resumes"
                )
            return self._patiently(self._status)

    def _ending(self, conclusion: Conclusion) -> executions.ExecutionEnding:
        """Return the final row values of a crawl without a job; a finished one waits to be indexed."""
        state, reason, shortfalls = conclusion.reading
        with self._runtime.raw_db.read() as tx:
            has_files = bool(files.files_of(tx, execution_id=self._started.execution_id))
        index_state = "pending" if has_files and state in ("completed", "failed") else None
        return executions.ExecutionEnding(
            self._started.execution_id, state, reason, shortfalls, conclusion.error, index_state
        )

    def crawl(self, stops: Stops, *, epoch: int | None = None) -> Conclusion:
        """Crawl until nothing is open, a limit is reached or an operator stops it; does not write the execution's row.

        Without the epoch of a lease, raise `Conflict` if another supervisor of the same execution is alive.
        """
        with self._in_place() as owner:
            return self._crawl(owner, stops, epoch)

    @contextmanager
    def _in_place(self) -> Iterator[OwnerProcess]:
        """Register as the execution's supervisor until the block ends."""
        runtime, number = self._runtime, self._started.execution_id
        run = RunFile(runtime.run_folder)
        owner = OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind="supervisor", execution_id=number)
        self._owner = owner
        try:
            yield owner
        finally:
            with suppress(Unavailable):  # then the next start cleans up
                owner.end()

    def _crawl(self, owner: OwnerProcess, stops: Stops, epoch: int | None) -> Conclusion:
        runtime, started = self._runtime, self._started
        self._stops, self._epoch = stops, epoch
        try:
            if epoch is None and min(self._find_rivals(owner), default=owner.id) < owner.id:
                raise Conflict(f"execution {started.execution_id} was taken up by another start a moment ago")
            self._seeding = seeding = Seeding(self._plan, runtime.frontier, started.frontier_id)
            self._patiently(seeding.step)
            self._patiently(self._take_waiting)
            for _ in range(self._workers):
                if not stops.count:
                    self._start()
            self._watch(owner)
            self._patiently(lambda: self._yield_if_replaced(owner))
            return self._patiently(self._conclude)
        finally:
            for child in self._children:
                child.kill()
                child.wait()

    def _take_waiting(self) -> None:
        """Add the URLs added to the source by hand since its last run that are within this run's scope."""
        if self._plan.polls:
            return
        policy = self._plan.normalisation()
        scope = cache(self._plan.build_scope)  # only if something waits: a million seeds take seconds to read

        def accepts(waiting: WaitingUrl) -> bool:
            try:
                return scope().decide(parse(waiting.url, policy), 0).allowed
            except UrlRefused:
                return False

        taken = self._runtime.frontier.take_waiting(self._started.frontier_id, accepts)
        if taken:
            _log.info("crawl.added_taken", execution=self._started.execution_id, urls=taken)

    @property
    def cost(self) -> Cost:
        return sum(cpu_s for cpu_s, _ in self._costs.values()), self._peak_bytes

    def _patiently(self, call: Callable[[], T]) -> T:
        """Return the result of a call, waiting for an unavailable database; raise `StatementTimeout` if it is too
        slow.
        """
        timeouts = 0
        while True:
            try:
                return call()
            except NoSpace:
                raise
            except Unavailable as exc:
                timeouts += isinstance(exc, StatementTimeout)
                if self._stops.count > 1 or timeouts >= _TIMEOUTS:
                    raise
                _log.warning("crawl.database_unavailable", message=str(exc))
                time.sleep(_AGAIN_S)

    def _start(self) -> None:
        settings, started = self._runtime.settings, self._started
        left = None if self._plan.max_time_s is None else max(0.0, self._plan.max_time_s - self._time.used_s)
        assignment = Assignment(
            plan=replace(self._plan, landing=started.landing).to_json(),
            execution_id=started.execution_id,
            source_code=started.source_code,
            output_dir=str(started.output_dir),
            run_file=new_name(),
            processes=self._workers,
            seconds_left=left,
            supervisor=os.getpid(),
            epoch=self._epoch,
            goes_on_with=started.goes_on_with,
        )
        child = CrawlChild(
            assignment,
            environment={"HOLDFAST_HOME": str(settings.home.resolve()), "HOLDFAST_DATABASE_URL": settings.database},
            log_path=started.output_dir / "crawl.log",
            run_folder=self._runtime.run_folder,
            now=self._runtime.clock.monotonic(),
        )
        self._children.append(child)
        if self._seeds_left:
            self._early.add(child.pid)

    @property
    def _seeds_left(self) -> int:
        return 0 if self._seeding is None else self._seeding.left

    def _is_seeding(self) -> bool:
        """Return whether there are seeds to add; a stopping run leaves them to the start that resumes it."""
        return self._seeds_left > 0 and not self._stops.count and self._failure is None

    def _watch(self, owner: OwnerProcess) -> None:
        while self._children or self._vacant or self._resting or self._is_seeding():
            self._rest()
            now = self._runtime.clock.monotonic()
            if self._stops.count and self._stopped_at is None:
                self._stopped_at = now
            if now - self._looked_at > _ASLEEP_S:
                for child in self._children:
                    child.excuse(now)
                self._beat_at = self._shown_at = -math.inf  # another may have taken its place: check at once
            self._looked_at = now
            for child in list(self._children):
                child.ask_to_end(self._stops.count)
                self._look_at(child, now)
            try:
                if self._vacant and now >= self._again_at:
                    self._fill()
                if now >= self._again_at:
                    self._seed()
                if now - self._shown_at >= _SHOW_S:
                    self._look_at_rows(owner, now)
            except Unavailable as exc:
                _log.warning("crawl.database_unavailable", message=str(exc))
                self._again_at = now + _AGAIN_S
                if self._stops.count > 1 and not self._children:
                    raise

    def _seed(self) -> None:
        """Add a batch of seeds; restart processes that ended before these existed."""
        if self._seeding is not None and self._is_seeding():
            self._seeding.step()
        if not self._resting:
            return
        if not self._stops.count and self._failure is None:
            if self._runtime.frontier.open_count(self._started.frontier_id):
                for _ in range(self._resting):
                    self._start()
            elif self._seeds_left:
                return
        self._resting = 0

    def _rest(self) -> None:
        """Wait until the next check; a process that writes its last line ends the wait."""
        wait_s = 0.0 if self._is_seeding() else _LOOK_S
        if not self._children:
            time.sleep(wait_s)
        for child in select.select(self._children, (), (), wait_s)[0]:
            child.read_output()

    def _look_at_rows(self, owner: OwnerProcess, now: float) -> None:
        """Show the progress, check for a stop request, and write that this process is alive."""
        self._shown_at = now
        self._weigh()
        self._look_at_folder()
        # Only for a standalone crawl: the time of a job's run is written with its lease.
        if self._epoch is None and now - self._counted_at >= _COUNT_S:
            with self._runtime.raw_db.write() as tx:
                self._time.write(tx)
            self._counted_at = now
        if now - self._beat_at >= _BEAT_S:
            synchronise(self._runtime.clock)
            self._yield_if_replaced(owner)
            self._beat_at = now
            if not self._stops.abandoned:  # its row stays closed: its successor need not yield to it
                with self._runtime.raw_db.write() as tx:
                    owner.beat(tx)
        status = self._status()
        self._time.rest(is_paused=status.paused_at is not None)
        self._show(replace(status, seeds_left=self._seeds_left))
        if status.stop_requested is not None and not self._stops.count:
            self._stops.ask(1)
        if sum(status.outcomes.values()) > self._settled:
            self._settled, self._deaths = sum(status.outcomes.values()), 0

    def _look_at_folder(self) -> None:
        """Hand back if the output folder is missing or replaced; for a job's run its worker does that."""
        # Files below a lost mount belong to another disk: leave them untouched.
        if self._epoch is None and not self._has_vanished and not self._mount.is_same:
            _log.error("crawl.output_vanished", folder=str(self._started.output_dir))
            self._has_vanished = True
            self._stops.ask(2)

    def _find_rivals(self, owner: OwnerProcess) -> list[int]:
        return rivals(self._runtime.raw_db, self._runtime.clock, owner, folder=self._runtime.run_folder)

    def _yield_if_replaced(self, owner: OwnerProcess) -> None:
        """Hand back if this process was suspended so long that another replaced it or ended the execution."""
        # A job's run has a lease that shows this.
        if self._epoch is not None or self._stops.abandoned:
            return
        # A start beside a live supervisor yields by itself quickly: so a later one counts if our row was closed before
        # it started, or if it still runs one heartbeat later.
        later = {one for one in self._find_rivals(owner) if one > owner.id}
        is_replaced = bool(later & self._rivals or (later and was_closed(self._runtime.raw_db, owner)))
        self._rivals = later
        if is_replaced or self._status().state != "running":
            _log.error("crawl.replaced", execution=self._started.execution_id)
            self._stops.abandon()

    def _weigh(self) -> None:
        costs = {child.pid: child.cost() for child in self._children}
        self._costs.update((pid, cost) for pid, cost in costs.items() if cost is not None)
        self._peak_bytes = max(self._peak_bytes, sum(cost[1] for cost in costs.values() if cost is not None))

    def _look_at(self, child: CrawlChild, now: float) -> None:
        if child.has_ended():
            self._weigh()
        code = child.poll()
        if code is None:
            if child.silent_for(now) > self._runtime.settings.timings.crawl_watchdog_s or self._overdue(now):
                _log.error("crawl.process_hangs", pid=child.pid)
                child.kill()
                child.wait()
            return
        self._children.remove(child)
        is_early = child.pid in self._early
        self._early.discard(child.pid)
        ending = child.ending()
        if ending is None:
            # `_fill` cleans up and replaces it once the database is available.
            _log.error("crawl.process_died", pid=child.pid, code=code)
            self._vacant += 1
        # A parser hangs in it: it has settled all but that page, and ends, so that a new process replaces it.
        elif ending == "replace" and not self._stops.count:
            self._start()
        elif ending == "done" and is_early:
            self._resting += 1
        else:
            self._endings.append(ending)

    def _overdue(self, now: float) -> bool:
        """Return whether a process has had enough time to drain: requests, settling, and a margin."""
        settings = self._runtime.settings
        patience = settings.fetch.deadline_s + settings.timings.lease_seconds + settings.timings.crawl_watchdog_s
        return self._stopped_at is not None and now - self._stopped_at > patience

    def _fill(self) -> None:
        """Clean up after dead processes, and start new ones unless that is hopeless or not needed."""
        recover(self._runtime)
        self._look_at_folder()  # a full disk may be why they died
        vacant, self._vacant = self._vacant, 0
        self._deaths += vacant
        # A page that kills its process is quarantined after three deaths, so more in a row have another cause.
        if self._deaths >= max(_DEATHS, _DEATHS_EACH * self._workers):
            self._failure = f"{self._deaths} processes died in a row; see crawl.log in {self._started.output_dir}"
        if self._failure is None and not self._stops.count:
            for _ in range(vacant):
                self._start()

    def _status(self) -> ExecutionStatus:
        return read_status(self._runtime.raw_db, self._runtime.clock, self._started.execution_id)

    def _conclude(self) -> Conclusion:
        """Return how the execution ended, and close the attempts that will not be requested any more."""
        limit = next((ending for ending in self._endings if ending in LIMITS), None)
        if self._stops.abandoned:
            return self._concluded(RunReading("stopped", "abandoned", {}))
        if self._status().stop_requested == "cancel":
            self._close_rest("cancelled")
            discard(self._runtime, self._started.execution_id)
            return self._concluded(RunReading("cancelled", "discarded", {}))
        if self._failure is not None:
            return self._concluded(failed(Shortfall.CRASHED, self._deaths, self._read()), error=self._failure)
        if Shortfall.STORAGE in self._endings and not self._stops.count:
            return self._without_room()
        frontier, is_over = self._runtime.frontier, limit is not None and not self._stops.count
        rereads = frontier.reread_count(number := self._started.frontier_id)
        if is_over:
            self._close_rest(f"over_limit:{limit}")
        left = frontier.open_count(number) + (rereads + self._seeds_left if self._stops.count else 0)
        unread = {str(limit): rereads} if is_over else {}
        reading = self._read(stopped=left or None, unread=unread)
        return self._concluded(reading._replace(state="stopped") if left else reading, error=self._why(reading))

    def _read(self, *, stopped: int | None = None, unread: Mapping[str, int] | None = None) -> RunReading:
        home, run = self._runtime.settings.home, self._started.execution_id
        return read_ending(self._runtime.raw_db, home, execution_id=run, stopped=stopped, unread=unread)

    def _without_room(self) -> Conclusion:
        """Return the conclusion of a crawl whose time ran out while the disk was full; remaining attempts stay
        open.
        """
        left = self._runtime.frontier.open_count(self._started.frontier_id)
        reading = failed(Shortfall.STORAGE, left, self._read())
        settings = self._runtime.settings
        refusal = last_refusal(settings.home)
        error = refusal.sentence() if refusal else shortage(self._started.output_dir, settings.disk)
        return self._concluded(reading, error=error)

    def _why(self, reading: RunReading) -> str | None:
        """Return the error of a crawl that captured nothing, with the next time its servers may be requested."""
        if reading.state != "failed":
            return None
        again_at = self._runtime.frontier.reachable_at(self._started.frontier_id)
        rest = f"; nothing is asked there before {again_at:%Y-%m-%d %H:%M} UTC" if again_at else ""
        return f"{reading.sentence()}{rest}"

    def _concluded(self, reading: RunReading, *, error: str | None = None) -> Conclusion:
        return Conclusion(reading=reading, cost=self.cost, error=error)

    def _close_rest(self, reason: str) -> None:
        self._runtime.frontier.close_all(self._started.frontier_id, reason, between=self._stay_alive)

    def _stay_alive(self) -> None:
        if self._owner is not None:
            with self._runtime.raw_db.write() as tx:
                self._owner.beat(tx)
