"""Database side of directory maintenance: sizes, clean-up state, reruns, raised options.

The caller opens and ends the session; changes to jobs and executions are audited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Select, exists, func, or_, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock, moment_or_none
from holdfast.db.engine import moment_in
from holdfast.db.models import Execution, Job, JobEvent, Queue, Snapshot, Source, WarcFile
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.jobs import store
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.journal import PROGRESS, STATUS, emit
from holdfast.jobs.kinds import UNCAPPED
from holdfast.jobs.schedule_queries import end_hold
from holdfast.jobs.settling import RunSettler, reported
from holdfast.jobs.specs import effective_config
from holdfast.jobs.states import State, move
from holdfast.jobs.store import JobNotFound, locked_both, locked_execution, locked_job, of_source, open_execution
from holdfast.sources.queries import find_source


class DirectoryRun(NamedTuple):
    """An execution that has a directory, with its job and source."""

    job: Job
    source: Source
    execution: Execution


def directories() -> Select[Job, Source, Execution]:
    return (
        select(Job, Source, Execution)
        .join(Source, Source.id == Job.source_id)
        .join(Execution, Execution.job_id == Job.id)
        .where(Job.deleted_at.is_(None), Execution.output_dir != "")
    )


def directory_runs(session: Session, query: Select[Job, Source, Execution]) -> list[DirectoryRun]:
    return [DirectoryRun(*row) for row in session.execute(query)]


def is_wanted(session: Session, *, job_id: int, output_dir: str) -> bool:
    """Return whether a queued, running or resumable execution of the job uses this directory."""
    there = select(Execution.id).where(Execution.job_id == job_id, Execution.output_dir == output_dir)
    query = select(Execution.id).where(
        Execution.job_id == job_id,
        Execution.state.in_(("queued", "running", "stopped")),
        # A queued retry has no directory yet: it will continue in that of the previous run.
        or_(Execution.output_dir == output_dir, Execution.resumed_from.in_(there)),
    )
    return session.scalar(query.limit(1)) is not None


def running(session: Session) -> list[DirectoryRun]:
    query = directories().where(Job.state == "running", Execution.state == "running").order_by(Job.id)
    return directory_runs(session, query)


def waiting_for_storage(session: Session) -> list[DirectoryRun]:
    """Return the newest execution with a directory of each job that waits after a machine failure, by job id."""
    newest = (
        select(func.max(Execution.id))
        .join(Job, Job.id == Execution.job_id)
        .where(
            Job.state == "scheduled", Job.infra_retry_count > 0, Job.deleted_at.is_(None), Execution.output_dir != ""
        )
        .group_by(Execution.job_id)
        .scalar_subquery()
    )
    return directory_runs(session, directories().where(Execution.id.in_(newest)).order_by(Job.id))


def runs_of_source(session: Session, *, source: str | None, limit: int) -> list[DirectoryRun]:
    """Return the newest execution with a directory of every job, of one source or of all, newest first."""
    newest = (
        select(func.max(Execution.id)).where(Execution.output_dir != "").group_by(Execution.job_id).scalar_subquery()
    )
    query = directories().where(Execution.id.in_(newest)).order_by(Execution.id.desc()).limit(limit)
    return directory_runs(session, query if source is None else query.where(Source.code == source))


def has_captures(session: Session, *, execution_id: int) -> bool:
    return bool(session.scalar(select(exists().where(Snapshot.execution_id == execution_id))))


def registered(session: Session, *, execution_id: int) -> list[WarcFile]:
    """Return the files of an execution that are not discarded."""
    query = select(WarcFile).where(WarcFile.execution_id == execution_id, WarcFile.state != "discarded")
    return list(session.scalars(query.order_by(WarcFile.id)))


def annual_jobs(session: Session, *, year: int, sources: Sequence[str]) -> list[tuple[Job, Source]]:
    query = (
        select(Job, Source)
        .join(Source, Source.id == Job.source_id)
        .where(Job.kind.in_(UNCAPPED), Job.deleted_at.is_(None))
        .order_by(Job.id)
    )
    rows = session.execute(query.where(Source.code.in_(sources)) if sources else query)
    return [(row[0], row[1]) for row in rows if row[0].details.get("campaign_year") == year]


def waiting(session: Session, *, after: datetime, limit: int) -> list[Job]:
    """Return and lock the jobs that wait out a backoff, next first. Cooldowns after machine failures are excluded."""
    query = (
        select(Job)
        .where(
            Job.next_run_at > after,
            Job.state == "scheduled",
            Job.current_retry_count > 0,
            # Do not shorten a cooldown after a machine failure: the failed part is usually still unavailable.
            Job.infra_retry_count == 0,
            Job.deleted_at.is_(None),
            Job.lock_token.is_(None),
        )
        .order_by(Job.next_run_at, Job.id)
        .limit(limit)
        .with_for_update()
    )
    return list(session.scalars(query))


def uncleaned_runs(
    session: Session, *, backends: Sequence[str], before: datetime, after: int, limit: int
) -> list[DirectoryRun]:
    """Return indexed, never cleaned executions of some backends that ended before a moment, by id."""
    query = (
        directories()
        .where(Execution.index_state == "indexed", Execution.cleanup_status == "none", Execution.finished_at < before)
        .where(Execution.id > after, Execution.config["backend"].as_string().in_(list(backends)))
        .order_by(Execution.id)
        .limit(limit)
    )
    return directory_runs(session, query)


def last_progress(session: Session, run: DirectoryRun) -> datetime | None:
    """Return when a run's counts last changed or it was last resumed, from its events."""
    query = select(JobEvent.at).where(
        JobEvent.job_id == run.job.id, JobEvent.execution_id == run.execution.id, JobEvent.name.in_((PROGRESS, STATUS))
    )
    return session.scalar(query.order_by(JobEvent.id.desc()).limit(1))


def next_due(session: Session, run: DirectoryRun) -> datetime | None:
    """Return when a run of our own crawler has its next URL due; None if its queue is empty."""
    frontier_id = run.execution.frontier_id or run.execution.id
    query = select(func.min(Queue.due_at)).where(Queue.execution_id == frontier_id, Queue.open > 0)
    return moment_or_none(session.scalar(query))


def newest_directories(session: Session, *, source_id: int, count: int) -> list[str]:
    """Return the directories of a source's newest executions, newest first; retries in the same one count once."""
    newest = func.max(Execution.id).label("newest")
    query = (
        select(Execution.output_dir, newest)
        .join(Job, Job.id == Execution.job_id)
        .where(Job.source_id == source_id, Execution.output_dir != "")
        .group_by(Execution.output_dir)
        .order_by(newest.desc())
        .limit(count)
    )
    return [row[0] for row in session.execute(query)]


def busy_count(session: Session) -> int:
    query = select(func.count()).select_from(Execution).join(Job, Job.id == Execution.job_id)
    return session.scalar(query.where(Execution.state.in_(("queued", "running")), of_source())) or 0


class NoDirectory(NotFound):
    """The job has not run yet and has no directory."""

    code = "no_directory"


class JobInUse(Conflict):
    """The job is running, pending, or waiting to be indexed, so the requested change is not allowed now."""

    code = "job_in_use"


def find_run(session: Session, *, job_id: int | None = None, execution_id: int | None = None) -> DirectoryRun:
    """Return this execution, or a job's newest one that has a directory; raise JobNotFound or NoDirectory."""
    mine = Job.id == job_id if execution_id is None else Execution.id == execution_id
    row = session.execute(directories().where(mine).order_by(Execution.number.desc()).limit(1)).one_or_none()
    if row is not None:
        return DirectoryRun(*row)
    if execution_id is not None:
        raise NoDirectory(f"there is no execution {execution_id} with a directory; see: holdfast status")
    if job_id is None or store.job(session, job_id) is None:
        raise JobNotFound
    raise NoDirectory(f"job {job_id} has not run yet; there is no directory to look after")


def note_storage(session: Session, clock: Clock, execution_id: int, weight: Mapping[str, int]) -> None:
    execution = locked_execution(session, execution_id)
    execution.storage = {**weight, "scanned_at": clock.now().isoformat()}


def note_cleanup(session: Session, clock: Clock, execution_id: int, status: str) -> None:
    """Record that a directory was cleaned up, and how; its state file no longer exists."""
    execution = locked_execution(session, execution_id)
    execution.cleanup_status, execution.cleaned_at = status, clock.now()
    # The clean-up removed the state file with the temporary directories: no route may show its path any more.
    execution.artifacts = {kind: path for kind, path in execution.artifacts.items() if kind != "state_file"}
    audit.record(
        session, clock, action="execution.cleaned", subject=f"execution {execution_id}", detail={"status": status}
    )


def attach_zim(session: Session, clock: Clock, path: Path, *, execution_id: int | None, source: str | None) -> int:
    """Attach a ZIM file to an execution, or to a source's newest started one; return the execution's id.

    Raise Invalid if the file is not a ZIM, NotFound if the execution is missing.
    """
    try:
        with path.open("rb") as file:
            is_zim = file.read(4) == b"ZIM\x04"
    except OSError as exc:
        raise Invalid(f"cannot read {path}: {exc.strerror}") from exc
    if not is_zim:
        raise Invalid(f"{path} is not a ZIM file; zimit and the openZIM tools make them")
    if source is not None:
        newest = select(func.max(Execution.id)).join(Job, Job.id == Execution.job_id)
        mine = (Job.source_id == find_source(session, source).id, Execution.started_at.is_not(None))
        execution_id = session.scalar(newest.where(*mine))
    if execution_id is None or session.get(Execution, execution_id) is None:
        raise NotFound(f"there is no execution {execution_id or f'of {source}'}; see them with: holdfast status")
    execution = locked_execution(session, execution_id)
    execution.artifacts = {**execution.artifacts, "final_zim": str(path.resolve())}
    subject, detail = f"execution {execution_id}", {"path": str(path.resolve())}
    audit.record(session, clock, action="execution.zim_attached", subject=subject, detail=detail)
    return execution_id


def run_again(session: Session, clock: Clock, job_id: int, *, reason: str) -> bool:
    """Queue a job to continue in its last execution's directory, with its full retry budget; False if it does already.

    Lost files are the machine's fault: no retry is used. Raise JobInUse if the job runs.
    """
    job = locked_job(session, job_id)
    if job is None:
        raise JobNotFound
    if job.state is None or job.state in (State.PENDING, State.SCHEDULED, State.PAUSED, State.CANCELLED):
        return False
    if job.state == State.RUNNING or job.lock_token is not None:
        raise JobInUse(f"job {job_id} runs; wait for its end, or stop it")
    now = clock.now()
    # Go through pending: the table of states has no step from failed to scheduled.
    steps = (State.PENDING, State.SCHEDULED) if job.state == State.FAILED else (State.SCHEDULED,)
    events = [move(job, step, now=now, reason=reason) for step in steps]
    # Count it as a machine failure: the run continues in the same directory and uses no retry of the job.
    job.current_retry_count, job.infra_retry_count, job.next_run_at = 0, 1, now
    audit.record(session, clock, action="job.run_again", subject=f"job {job_id}", detail={"reason": reason})
    emit(session, events, now=now)
    return True


def make_due(session: Session, clock: Clock, job_id: int, *, force: bool = False) -> None:
    """Make a pending job due immediately; raise JobNotFound, or JobInUse if it is not queued or retryable.

    An annual job does not start before its date unless `force` is set.
    """
    (job, source), now = locked_both(session, job_id), clock.now()
    if job.state not in (State.PENDING, State.SCHEDULED):
        raise JobInUse(f"job {job_id} is {job.state}; only one that waits can be run, see: holdfast job retry")
    if not source.enabled:
        raise JobInUse(f"the source of job {job_id} is disabled; enable it first: holdfast source enable")
    early = job.kind in UNCAPPED and job.next_run_at is not None and job.next_run_at > now
    if early and not force and not job.current_retry_count + job.infra_retry_count:
        raise JobInUse(f"job {job_id} is not to begin before {job.next_run_at:%Y-%m-%d}; insist with --force")
    if open_execution(session, job_id=job_id) is None:
        job.next_run_at, job.updated_at = now, now


def raise_options(session: Session, clock: Clock, job_id: int, options: Mapping[str, Any], *, why: str) -> bool:
    """Change a job's tool options, from its next run on, even while it runs; return False if nothing changes."""
    job, source = locked_both(session, job_id)
    zimit = asdict(effective_config(job, source).zimit)
    fresh = {**zimit["tool_options"], **options}
    if fresh == zimit["tool_options"]:
        return False
    content = {**zimit, "tool_options": fresh, "passthrough_args": list(zimit["passthrough_args"])}
    job.config, job.updated_at = {**job.config, "zimit": content}, clock.now()
    subject, detail = f"job {job_id}", {"why": why, "options": dict(options)}
    audit.record(session, clock, action="job.options_raised", subject=subject, detail=detail)
    return True


def take_for_storage(session: Session, clock: Clock, settler: RunSettler, run: DirectoryRun, *, error: str) -> bool:
    """End a run whose storage is dead, as `infra_error`; return False if its holder no longer runs it."""
    held = _taken(session, clock, run)
    if held is None:
        return False
    job, execution, now = held
    ending = RunEnding(
        result=RunResult.FAILED,
        failure=FailureCause.INFRA,
        reason="storage",
        error=error,
        counts=reported(execution),
        metrics=execution.metrics,
    )
    emit(session, settler.settle(session, job, execution, ending, now=now), now=now)
    return True


def take_to_restart(session: Session, clock: Clock, settler: RunSettler, run: DirectoryRun, *, reason: str) -> bool:
    """Return a run to the queue, to continue where it is; return False if its holder no longer runs it."""
    held = _taken(session, clock, run)
    if held is None:
        return False
    job, execution, now = held
    emit(session, settler.hand_back(session, job, execution, now=now, reason=reason), now=now)
    return True


def _taken(session: Session, clock: Clock, run: DirectoryRun) -> tuple[Job, Execution, datetime] | None:
    """End a run's lease; return its rows, locked, and the moment. None if its holder no longer runs it."""
    job, execution = locked_job(session, run.job.id), locked_execution(session, run.execution.id)
    if job is None or job.state != State.RUNNING or execution.state != "running":
        return None
    # Another worker may have leased it since the check and must keep it.
    if job.lock_epoch != run.job.lock_epoch:
        return None
    # Read the server's clock after locking the rows, so that no hold overlaps with the next (decision 0012).
    now = moment_in(session, clock)
    end_hold(session, job_id=job.id, epoch=job.lock_epoch, ending="lease_lost", now=now)
    return job, execution, now
