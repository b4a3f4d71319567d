"""Running crawls seen from outside (progress, speed, idle time), and `auto-recover` for them.

For an external tool this reads its directory, for our own crawler the rows. zimit is restarted by a request
to the tool itself, on its own machine: its worker releases the execution. A run of our own crawler is revoked
from its holder, on any machine. Either way the queue continues in the same directory. Nothing is done during
a deployment or, for our own crawler, while it waits for disk space.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.config import RecoverySettings, Settings
from holdfast.db.engine import machine_clock
from holdfast.db.models import Recovery
from holdfast.errors import Invalid, Unavailable
from holdfast.jobs.administration import maintenance
from holdfast.jobs.administration.maintenance import DirectoryRun, raise_options, take_to_restart
from holdfast.jobs.administration.recovering import (
    DAY,
    REMEMBERED,
    Rate,
    Refusal,
    add_recovery,
    note,
    recoveries,
    refused,
    streak,
)
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.specs import effective_config
from holdfast.jobs.views.listing import admin_counts, cleanup_counts
from holdfast.jobs.views.recorded import read_recorded
from holdfast.metrics import CrawlFigures, CrawlValues, RecordedFigures, WarcCheckFigures, textfile
from holdfast.processes.child_process import ChildProcess
from holdfast.processes.disk import low_volume
from holdfast.storage.disk import write_whole
from holdfast.values import dataclass
from holdfast.wiring.jobs import Jobs
from holdfast.worker.tool_process import signal_holder
from holdfast.zimit.flags import below_minimum
from holdfast.zimit.logs import newest_log, read_progress
from holdfast.zimit.outcome import is_storage_errno
from holdfast.zimit.output_directory import STATE_NAME, holder_of, load_state

DEPLOY_LOCK_S = 7200.0
"""How long a `deploy.lock` in the data directory is valid: longer than any deployment, in case one is left over."""

MOUNTS = Path("/proc/self/mountinfo")
_ASK = """
import os, stat, sys
try:
    if stat.S_ISDIR(os.stat(sys.argv[1]).st_mode):
        with os.scandir(sys.argv[1]) as names:
            next(names, None)
except OSError as exc:
    sys.exit(exc.errno if exc.errno and exc.errno < 256 else 255)
"""
_OCTAL = re.compile(r"\\([0-7]{3})")
_GONE = (errno.ENOENT, errno.ENOTDIR)


class PathHealth(StrEnum):
    ALIVE = "alive"
    MISSING = "missing"
    """The name does not exist; the disk below it responds."""
    DEAD = "dead"
    """The storage itself does not work: its endpoint is gone, stale or broken."""
    HANGS = "hangs"


class Probe(NamedTuple):
    health: PathHealth
    errno: int = 0

    @property
    def is_dead(self) -> bool:
        return self.health in (PathHealth.DEAD, PathHealth.HANGS)

    def describe(self) -> str:
        return f"{self.health.value} (errno {self.errno})" if self.errno else self.health.value


def probe(paths: Iterable[Path], clock: Clock, *, deadline_s: float) -> dict[Path, Probe]:
    """Probe all paths in parallel, each in its own process, and return their health within the deadline."""
    asked = {
        path: ChildProcess(
            # Start it isolated and without site packages: it must start quickly, and must not search our own paths.
            [sys.executable, "-I", "-S", "-c", _ASK, str(path)],
            os.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for path in dict.fromkeys(paths)
    }
    # Use one deadline for all: ten dead mounts take as long as one.
    deadline = clock.monotonic() + deadline_s
    codes = {path: process.finish(deadline - clock.monotonic()) for path, process in asked.items()}
    return {path: Probe(PathHealth.HANGS) if code is None else judge(code) for path, code in codes.items()}


def judge(code: int) -> Probe:
    """Return the health for an errno; permission errors are not the storage's fault."""
    if is_storage_errno(code):
        return Probe(PathHealth.DEAD, code)
    return Probe(PathHealth.MISSING, code) if code in _GONE else Probe(PathHealth.ALIVE, max(0, code))


def mount_point(path: Path, table: str) -> Path | None:
    """Return the mount point of a path, from the kernel's table; None for the root filesystem."""
    points = {
        Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split()[4]))
        for line in table.splitlines()
        if len(line.split()) > 4
    }
    # Choose the deepest one: mounts may be nested.
    above = [point for point in points if path.is_relative_to(point)]
    best = max(above, key=lambda point: len(point.parts), default=None)
    return None if best is None or best == Path(best.anchor) else best


Ask = Callable[[Iterable[Path]], Mapping[Path, Probe]]

TOOLS = ("zimit", "http_warc", "playwright_warc")


class RunActivity(NamedTuple):
    pages: int
    running_s: float
    """Since its current holder leased it."""
    idle_s: float
    """Since its count of pages last changed, or since it was leased if the count never did."""
    pages_per_minute: float | None
    """None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    run: DirectoryRun
    activity: RunActivity
    holder: int | None = None
    """Process id of the tool that works in the directory; None if none does, and for our own crawler."""
    state_ok: bool = True
    restarts: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    log: str | None = None

    @property
    def is_tool(self) -> bool:
        return is_tool_run(self.run)

    @property
    def is_annual(self) -> bool:
        """Whether the minimum options of annual crawls apply."""
        return self.run.job.kind in ("annual", "shard")


def is_tool_run(run: DirectoryRun) -> bool:
    return run.execution.config.get("backend") in TOOLS


def watch_runs(jobs: Jobs, *, ask: Ask | None = None) -> list[WatchedRun]:
    """Inspect every running execution, by job, without changes. `ask` replaces how directories are inspected."""
    now = jobs.clock.now()
    with jobs.database.read() as session:
        runs = maintenance.running(session)
        rows = {
            run.job.id: (maintenance.last_progress(session, run), maintenance.next_due(session, run))
            # Read the rows of our own crawler, and the directory of a tool.
            for run in runs
            if not is_tool_run(run)
        }
    folders = [Path(run.execution.output_dir) for run in runs if run.job.id not in rows]
    health = ask(folders) if ask else probe(folders, jobs.clock, deadline_s=jobs.settings.timings.storage_probe_s)
    watched_runs = []
    for run in runs:
        if run.job.id in rows:
            delay_s = jobs.settings.politeness.delay_s
            watched_runs.append(watch_native(run, *rows[run.job.id], now=now, delay_s=delay_s))
        elif health[Path(run.execution.output_dir)].is_dead:
            watched_runs.append(_unseen_run(run, now=now))
        else:
            watched_runs.append(watch_tool(run, jobs.clock))
    return watched_runs


def watch_native(
    run: DirectoryRun, moved: datetime | None, due: datetime | None, *, now: datetime, delay_s: float
) -> WatchedRun:
    """Return the activity of our own crawler's run: since its counts changed, or since its next URL was due.

    No speed is given, because politeness limits it. `delay_s` is the default for sources without a delay.
    """
    taken = run.job.lock_acquired_at or run.execution.started_at or now
    # Waiting for a site or for its own delay does not count as stalled.
    delay = timedelta(seconds=_delay_s(run, delay_s))
    # Nor does a pause: during it there is nothing to do, and URLs that were due before are due again afterwards.
    paused = now if run.execution.paused_at is not None else None
    since = max(filter(None, (taken, moved, due, paused))) + delay
    idle_s = max(0.0, (now - since).total_seconds())
    return WatchedRun(run=run, activity=RunActivity(run.execution.items_crawled, _running_s(run, now), idle_s, None))


def _delay_s(run: DirectoryRun, usual_s: float) -> float:
    configured = run.execution.config.get("delay_s")
    if configured is None:
        # An invalid configuration affects the next run: still check this run and all others.
        with suppress(Invalid):
            configured = effective_config(run.job, run.source).delay_s
    return usual_s if configured is None else float(configured)


def watch_tool(run: DirectoryRun, clock: Clock) -> WatchedRun:
    """Inspect a tool's directory without changes. The newest log counts, whatever the row contains.

    If the disk does not respond, the run looks as if nothing had happened since it was leased.
    """
    now = clock.now()
    try:
        # Rows have the database's time; files, and times that a tool writes in them, have this machine's.
        files_now = machine_clock(clock).now()
        return _watch_directory(run, Path(run.execution.output_dir), _running_s(run, now), files_now)
    except OSError:
        return _unseen_run(run, now=now)


def _running_s(run: DirectoryRun, now: datetime) -> float:
    taken = run.job.lock_acquired_at or run.execution.started_at or now
    return max(0.0, (now - taken).total_seconds())


def _unseen_run(run: DirectoryRun, *, now: datetime) -> WatchedRun:
    seconds = _running_s(run, now)
    blind = RunActivity(run.execution.items_crawled, seconds, seconds, None)
    return WatchedRun(run=run, activity=blind, state_ok=False)


def _watch_directory(run: DirectoryRun, folder: Path, running_s: float, now: datetime) -> WatchedRun:
    log, state = newest_log(folder), load_state(folder, 1)
    progress = None if log is None else read_progress(log)
    pages, moved, pages_per_minute = progress or (0, None, None)
    if moved is None and log is not None:
        moved = datetime.fromtimestamp(log.stat().st_mtime, UTC)
    # Limit it to the time of this holder: an earlier holder's log does not show how long this one was idle.
    idle_s = running_s if moved is None else min(running_s, max(0.0, (now - moved).total_seconds()))
    return WatchedRun(
        run=run,
        holder=holder_of(folder),
        state_ok=_is_state_ok(folder),
        restarts=state.container_restarts_done,
        errors=dict(state.errors),
        log=None if log is None else str(log),
        activity=RunActivity(pages, running_s, idle_s, pages_per_minute),
    )


def _is_state_ok(folder: Path) -> bool:
    try:
        return isinstance(json.loads((folder / STATE_NAME).read_bytes()), dict)
    except (OSError, ValueError):
        return False


def read_figures(jobs: Jobs) -> tuple[CrawlFigures, RecordedFigures]:
    """Return the figures of this installation, and those that `/metrics` also exports."""
    now = jobs.clock.now()
    with jobs.database.read() as session:
        counts, cleanups = admin_counts(session), cleanup_counts(session)
        recorded = RecordedFigures(read_recorded(session, jobs.clock))
    watched_runs = watch_runs(jobs)
    figures = CrawlFigures(
        [_figures_of(watched, jobs.settings.recovery.stalled_s) for watched in watched_runs],
        jobs=counts,
        cleanups=cleanups,
        free_bytes=shutil.disk_usage(jobs.settings.home).free,
        written_at=now.timestamp(),
    )
    return figures, recorded


def _figures_of(watched: WatchedRun, stalled_s: float) -> CrawlValues:
    activity = watched.activity
    gauges = {
        "stalled": float(activity.idle_s >= stalled_s),
        "last_progress_age_seconds": activity.idle_s,
        "crawl_rate_ppm": activity.pages_per_minute,
        "state_file_ok": float(watched.state_ok),
        "container_restarts_done": float(watched.restarts),
    }
    return (str(watched.run.job.id), watched.run.source.code), gauges, watched.errors


def write_textfile(path: Path, *figures: CrawlFigures | WarcCheckFigures | RecordedFigures) -> bytes:
    """Replace the file atomically and return its text; raise Unavailable if that fails."""
    data = textfile(*figures)
    try:
        write_whole(path, data)
    except OSError as exc:
        raise Unavailable(f"cannot write {path}: {exc.strerror}; choose another place with --out") from exc
    return data


# A crawl captures its first pages within minutes, and a restart takes as long to show an effect: a second one would
# only discard what it has started.
GUARD_S = 600.0
_RATE = Rate(GUARD_S, ((DAY, 3),))
# After this many restarts in a row, each with fewer new pages than this, a person must look at the job.
VAIN_RESTARTS, VAIN_PAGES = 3, 10
# A crawl is slow below this rate; this many slow checks in a row restart it.
SLOW_PAGES_PER_MINUTE, SLOW_CHECKS = 2.0, 6


class RecoveryAction(StrEnum):
    """An observation or recovery action for a job, stored in `recoveries`."""

    RESTART_STALLED = "restart_stalled"
    RESTART_SLOW = "restart_slow"
    SEEN_SLOW = "seen_slow"
    SEEN_FINE = "seen_fine"
    """It was slow before, and no longer is."""
    WOKEN = "woken"
    NOTHING = "nothing"


RESTARTS = (RecoveryAction.RESTART_STALLED, RecoveryAction.RESTART_SLOW)


Decision = tuple[RecoveryAction, str]
"""An action and its reason."""


def decide(activity: RunActivity, history: Sequence[Recovery], limits: RecoverySettings, *, now: datetime) -> Decision:
    """Return what to do for a job. `history` holds its notes of at least the last day, oldest first."""
    # A crawl that was just leased has no counts yet and would look stalled.
    if activity.running_s < GUARD_S:
        return RecoveryAction.NOTHING, "just_started"
    if activity.idle_s >= limits.stalled_s:
        return _restart(RecoveryAction.RESTART_STALLED, activity, history, now)
    slow = activity.pages_per_minute is not None and activity.pages_per_minute < SLOW_PAGES_PER_MINUTE
    noted = len(streak(history, RecoveryAction.SEEN_SLOW))
    if slow and noted + 1 >= SLOW_CHECKS:
        return _restart(RecoveryAction.RESTART_SLOW, activity, history, now)
    if slow:
        return RecoveryAction.SEEN_SLOW, f"slow {noted + 1} of {SLOW_CHECKS}"
    return RecoveryAction.SEEN_FINE if noted else RecoveryAction.NOTHING, "healthy"


def _restart(wanted: RecoveryAction, activity: RunActivity, history: Sequence[Recovery], now: datetime) -> Decision:
    """Return a restart unless one happened recently, too often today, or never helped."""
    restarts = [one for one in history if one.action in RESTARTS]
    if (refusal := refused([one.at for one in restarts], _RATE, now=now)) is not None:
        return RecoveryAction.NOTHING, "just_helped" if refusal is Refusal.PAUSE else "helped_too_often"
    recent = restarts[-VAIN_RESTARTS:]
    # Restarts that led to no new pages do not help: the site or its configuration is at fault, and a person has to
    # look.
    if len(recent) == VAIN_RESTARTS and max(_yields(recent, activity.pages)) < VAIN_PAGES:
        return RecoveryAction.NOTHING, "breaker_open"
    return wanted, "stalled" if wanted is RecoveryAction.RESTART_STALLED else "slow"


def _yields(restarts: Sequence[Recovery], pages: int) -> list[int]:
    """Return the new pages after each restart; if a crawl's count restarted from 0, all of them are new."""
    # The next restart shows what each restart achieved; the current count judges the last one.
    ends = [*(one.pages for one in restarts[1:]), pages]
    return [end - one.pages if end >= one.pages else end for one, end in zip(restarts, ends, strict=True)]


DEPLOY_LOCK = "deploy.lock"
Signal = Callable[[WatchedRun], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryCase:
    watched: WatchedRun
    action: RecoveryAction
    reason: str
    raised: dict[str, int]
    """Tool options that are too low for a restart to help."""
    done: bool
    """False in a dry run, and if the run could not be reached from here, or has ended meanwhile."""


def recover(jobs: Jobs, *, apply: bool, ask: Signal | None = None) -> tuple[list[RecoveryCase], list[int]] | None:
    """Inspect all running crawls and recover those that need it; without `apply`, only report.

    Return the cases, and the jobs whose backoff was shortened, so that enough of them run; None while a deployment
    runs.
    """
    limits, now = jobs.settings.recovery, jobs.clock.now()
    if is_deploying(jobs.settings, jobs.clock):
        return None
    watched_runs, low = watch_runs(jobs), low_volume(jobs.settings) is not None
    with jobs.database.read() as session:
        ids = [one.run.job.id for one in watched_runs]
        rows = recoveries(session, Recovery.job_id.in_(ids), since=now - REMEMBERED)
    cases = []
    for watched in watched_runs:
        history = [row for row in rows if row.job_id == watched.run.job.id]
        action, reason = decision = decide(watched.activity, history, limits, now=now)
        # A crawl that waits for disk space is not stalled: a restart would only make it wait again.
        if low and not watched.is_tool:
            action, reason = decision = RecoveryAction.NOTHING, "no_space"
        raised = minima(watched) if watched.is_tool and action in RESTARTS else {}
        done = apply and _help(jobs, watched, decision, raised, ask or partial(restart, jobs))
        cases.append(RecoveryCase(watched=watched, action=action, reason=reason, raised=raised, done=done))
    return cases, _wake(jobs, limits, now, apply=apply)


def is_deploying(settings: Settings, clock: Clock) -> bool:
    """Return whether a deployment is running: `deploy.lock` exists in the data directory and has not expired."""
    try:
        touched = datetime.fromtimestamp((settings.home / DEPLOY_LOCK).stat().st_mtime, UTC)
    except OSError:
        return False
    # Check both directions: the age of a file from the future (written with a wrong clock) is unknown.
    return abs(machine_clock(clock).now() - touched) < timedelta(seconds=DEPLOY_LOCK_S)


def minima(watched: WatchedRun) -> dict[str, int]:
    """Return the tool options that a job must raise: all minima for an annual one, a few restarts for any other."""
    try:
        options = effective_config(watched.run.job, watched.run.source).zimit.tool_options
    except Invalid:
        # The configuration was changed since this run started: the next run fails with it, whatever is added.
        return {}
    return below_minimum(options, annual=watched.is_annual)


def _help(jobs: Jobs, watched: WatchedRun, decision: Decision, raised: dict[str, int], ask: Signal) -> bool:
    """Carry out a decision and record it; a tool that cannot be reached from here is not recorded."""
    action, reason = decision
    if action is RecoveryAction.NOTHING:
        return False
    run = watched.run
    # Do this before the restart, so that the next run starts with the missing options.
    if action in RESTARTS and raised:
        with jobs.database.write() as session:
            raise_options(session, jobs.clock, run.job.id, raised, why=reason)
    # A tool on another machine cannot be reached: do not record an action, so that its own machine acts.
    if action in RESTARTS and not ask(watched):
        return False
    with jobs.database.write() as session:
        note(session, jobs.clock, [run], action.value, reason, pages=watched.activity.pages)
    return True


def restart(jobs: Jobs, watched: WatchedRun) -> bool:
    """Restart a run where it is; return False if it cannot be reached from here, or has ended."""
    if watched.is_tool:
        return ask_tool(watched)
    settler = RunSettler(jobs.settings, jobs.placement)
    with jobs.database.write() as session:
        return take_to_restart(session, jobs.clock, settler, watched.run, reason="auto_recover")


def ask_tool(watched: WatchedRun) -> bool:
    """Request a crawl's tool to end, within its container's grace period; False if it is not on this machine."""
    if watched.holder is None:
        return False
    return signal_holder(Path(watched.run.execution.output_dir), watched.holder, signal.SIGTERM)


def _wake(jobs: Jobs, limits: RecoverySettings, now: datetime, *, apply: bool) -> list[int]:
    """Shorten backoffs, the earliest first, until enough crawls are queued or running."""
    with jobs.database.write() as session:
        missing = limits.keep_running - maintenance.busy_count(session)
        # Take the earliest first, and only as many as are missing.
        waiting = maintenance.waiting(session, after=now, limit=missing) if missing > 0 else []
        for job in waiting if apply else ():
            job.next_run_at = job.updated_at = now
            add_recovery(
                session, Recovery(job_id=job.id, at=now, action=RecoveryAction.WOKEN.value, reason="too_few_run")
            )
        return [job.id for job in waiting]
