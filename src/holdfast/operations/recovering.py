"""`auto-recover`: crawls that do not get on are restarted where they are; zimit's with document 001's resiliency.

zimit is restarted by a request to the tool itself, on its own machine: its worker hands the execution back. A run of
our own crawler is taken from its holder, wherever that is. The queue goes on with either in the same directory. Nothing
is done while a deployment says so, or, for our own crawler, while it waits for room on the disk.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from holdfast.archive_tool.contract import ANNUAL_BACKOFF_MINUTES, ANNUAL_ERRORS, ANNUAL_RESTARTS
from holdfast.config import RecoverySettings, Settings
from holdfast.coordination.disk import low_volume
from holdfast.db.models import Recovery
from holdfast.jobs.administration import maintenance
from holdfast.jobs.administration.maintenance import raise_options, take_to_restart
from holdfast.jobs.administration.recovering import RESTARTS, Help, Helped, RecoveryDecision, decide
from holdfast.jobs.administration.repair import effective
from holdfast.jobs.settling import RunSettler
from holdfast.operations.watching import WatchedRun, see_all
from holdfast.wiring.jobs import Jobs
from holdfast.worker.tool_process import signal_holder

DEPLOY_LOCK = "deploy.lock"
OTHER_RESTARTS = 6
"""Restarts that a job that is not annual may have at least."""
_REMEMBERED = timedelta(days=30)
Signal = Callable[[WatchedRun], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One running crawl, and what is done for it."""

    sight: WatchedRun
    decision: RecoveryDecision
    raised: dict[str, int]
    """Tool options that are too low for a restart to help."""
    done: bool
    """False in a dry run, and if the run could not be reached from here, or has ended meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What one look did, or would do."""

    deploying: bool
    cases: tuple[Case, ...]
    woken: tuple[int, ...]
    """Jobs whose backoff is cut short, so that enough of them get on."""


def recover(jobs: Jobs, *, apply: bool, ask: Signal | None = None) -> Recovered:
    """Look at every crawl that runs, and help those that need it; without `apply` only say what would be done."""
    limits, now = jobs.settings.recovery, jobs.clock.now()
    if is_deploying(jobs.settings, now):
        return Recovered(deploying=True, cases=(), woken=())
    sights, low = see_all(jobs), low_volume(jobs.settings) is not None
    with jobs.database.read() as session:
        rows = maintenance.recoveries(session, job_ids=[one.run.job.id for one in sights], since=now - _REMEMBERED)
    history: dict[int, list[Helped]] = {}
    for row in rows:
        history.setdefault(row.job_id, []).append(Helped(row.at, row.action, row.pages))
    cases = []
    for sight in sights:
        decision = decide(sight.sight, history.get(sight.run.job.id, ()), limits, now=now)
        if low and not sight.is_tool:
            decision = RecoveryDecision(help=Help.NOTHING, reason="no_space")
        raised = minima(sight) if sight.is_tool and decision.help in RESTARTS else {}
        done = apply and _help(jobs, sight, decision, raised, ask or partial(restart, jobs))
        cases.append(Case(sight=sight, decision=decision, raised=raised, done=done))
    return Recovered(deploying=False, cases=tuple(cases), woken=_wake(jobs, limits, now, apply=apply))


def is_deploying(settings: Settings, now: datetime) -> bool:
    """Return whether somebody asked for quiet: a `deploy.lock` in the data directory, not older than its time."""
    try:
        touched = datetime.fromtimestamp((settings.home / DEPLOY_LOCK).stat().st_mtime, UTC)
    except OSError:
        return False
    return now - touched < timedelta(seconds=settings.recovery.deploy_lock_s)


def minima(sight: WatchedRun) -> dict[str, int]:
    """Return the tool options that a job lacks: document 001's for an annual one, a few restarts for any other."""
    options = effective(sight.run.job, sight.run.source).zimit.tool_options
    return lacking(options, annual=sight.is_annual)


def lacking(options: dict[str, object], *, annual: bool) -> dict[str, int]:
    """Return what these tool options would have to become, and only that (HA-037)."""
    least = {"max_container_restarts": ANNUAL_RESTARTS if annual else OTHER_RESTARTS}
    if annual:
        least |= {"error_threshold_timeout": ANNUAL_ERRORS, "error_threshold_http": ANNUAL_ERRORS}
    found = {name: value for name, value in least.items() if _number(options.get(name)) < value}
    if annual and options.get("backoff_delay_minutes") != ANNUAL_BACKOFF_MINUTES:
        found["backoff_delay_minutes"] = ANNUAL_BACKOFF_MINUTES
    return found


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _help(jobs: Jobs, sight: WatchedRun, decision: RecoveryDecision, raised: dict[str, int], ask: Signal) -> bool:
    """Do what was decided and note it; a tool that cannot be reached from here is not noted as helped."""
    if decision.help is Help.NOTHING:
        return False
    run, now = sight.run, jobs.clock.now()
    if decision.help in RESTARTS and raised:
        with jobs.database.write() as session:
            raise_options(session, jobs.clock, run.job.id, raised, why=decision.reason)
    if decision.help in RESTARTS and not ask(sight):
        return False
    with jobs.database.write() as session:
        maintenance.add_recovery(
            session,
            Recovery(
                job_id=run.job.id,
                execution_id=run.execution.id,
                at=now,
                action=decision.help.value,
                reason=decision.reason,
                pages=sight.sight.pages,
            ),
        )
    return True


def restart(jobs: Jobs, sight: WatchedRun) -> bool:
    """Have a run gone on with where it is; False if it cannot be reached from here, or is over."""
    if sight.is_tool:
        return ask_tool(sight)
    settler = RunSettler(jobs.settings.jobs, jobs.placement)
    with jobs.database.write() as session:
        return take_to_restart(session, jobs.clock, settler, sight.run, reason="auto_recover")


def ask_tool(sight: WatchedRun) -> bool:
    """Ask the tool of a running crawl to end, with its container's grace; False if it is not on this machine."""
    if sight.holder is None:
        return False
    return signal_holder(Path(sight.run.execution.output_dir), sight.holder, signal.SIGTERM)


def _wake(jobs: Jobs, limits: RecoverySettings, now: datetime, *, apply: bool) -> tuple[int, ...]:
    """Cut backoffs short, the earliest first, until enough crawls are queued or run."""
    with jobs.database.write() as session:
        missing = limits.keep_running - maintenance.busy_count(session)
        waiting = maintenance.waiting(session, after=now, limit=missing) if missing > 0 else []
        for job in waiting if apply else ():
            job.next_run_at = job.updated_at = now
            maintenance.add_recovery(
                session, Recovery(job_id=job.id, at=now, action=Help.WOKEN.value, reason="too_few_run")
            )
        return tuple(job.id for job in waiting)
