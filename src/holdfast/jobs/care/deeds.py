"""What looking after a directory leaves in the rows: its weight, its clean-up, another run, options that were raised.

Who opens the session ends it; what changes a job or an execution stands in the audit log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.models import Execution, Job
from holdfast.errors import Conflict, NotFound
from holdfast.jobs.board.queries import locked_both, locked_job, locked_source, open_execution
from holdfast.jobs.care import queries
from holdfast.jobs.care.queries import Run
from holdfast.jobs.imports import IMPORT
from holdfast.jobs.journal.events import emit
from holdfast.jobs.moves import move
from holdfast.jobs.operating.configuring import effective
from holdfast.jobs.specs import JobNotFound
from holdfast.jobs.states import State
from holdfast.sources.queries import named_source

_ANNUAL = ("annual", "shard")


class NoDirectory(NotFound):
    """A job has not run yet, so there is no directory to look after."""

    code = "no_directory"


class JobInUse(Conflict):
    """A job runs, or waits to be indexed; its directory is left alone."""

    code = "job_in_use"


def find_run(session: Session, *, job_id: int | None = None, execution_id: int | None = None) -> Run:
    """Return the execution of this number, or a job's newest that has a directory; JobNotFound or NoDirectory."""
    if execution_id is not None:
        found = queries.run_of_execution(session, execution_id)
        if found is None:
            raise NoDirectory(f"there is no execution {execution_id} with a directory; see: holdfast status")
        return found
    found = None if job_id is None else queries.run_of_job(session, job_id)
    if found is not None:
        return found
    if job_id is None or not queries.job_exists(session, job_id):
        raise JobNotFound
    raise NoDirectory(f"job {job_id} has not run yet; there is no directory to look after")


def note_storage(session: Session, clock: Clock, execution_id: int, weight: Mapping[str, int]) -> None:
    """Keep what an execution's directory weighed, and when that was looked at."""
    execution = queries.locked_execution(session, execution_id)
    execution.storage = {**weight, "scanned_at": clock.now().isoformat()}


def note_cleanup(session: Session, clock: Clock, execution_id: int, status: str) -> None:
    """Say that a directory was cleaned up, and how; its state file is gone (HA-100)."""
    execution = queries.locked_execution(session, execution_id)
    execution.cleanup_status, execution.cleaned_at = status, clock.now()
    execution.artifacts = {kind: path for kind, path in execution.artifacts.items() if kind != "state_file"}
    audit.record(session, clock, action="execution.cleaned", subject=f"execution {execution_id}",
                 detail={"status": status})  # fmt: skip


def run_again(session: Session, clock: Clock, job_id: int, *, reason: str) -> bool:
    """Let a job go on in the directory of its last execution, with its whole retry budget; False if it does so anyway.

    Files that were lost are the machine's fault: no retry is burnt. JobInUse if it runs.
    """
    job = locked_job(session, job_id)
    if job is None:
        raise JobNotFound
    if job.state is None or job.state in (State.PENDING, State.SCHEDULED, State.PAUSED, State.CANCELLED):
        return False
    if job.state == State.RUNNING or job.lock_token is not None:
        raise JobInUse(f"job {job_id} runs; wait for its end, or stop it")
    now = clock.now()
    steps = (State.PENDING, State.SCHEDULED) if job.state == State.FAILED else (State.SCHEDULED,)
    events = [move(job, step, now=now, reason=reason) for step in steps]
    job.current_retry_count, job.infra_retry_count, job.next_run_at = 0, 1, now
    audit.record(session, clock, action="job.run_again", subject=f"job {job_id}", detail={"reason": reason})
    emit(session, events, now=now)
    return True


def make_due(session: Session, clock: Clock, job_id: int, *, force: bool = False) -> None:
    """Let a waiting job be queued at once; JobNotFound, or Conflict if it is not queued or retryable.

    An annual job is not begun before its date unless somebody insists.
    """
    both = locked_both(session, job_id)
    if both is None or both[0].state is None:
        raise JobNotFound
    (job, source), now = both, clock.now()
    if job.state not in (State.PENDING, State.SCHEDULED):
        raise JobInUse(f"job {job_id} is {job.state}; only one that waits can be run, see: holdfast job retry")
    if not source.enabled:
        raise JobInUse(f"the source of job {job_id} is disabled; enable it first: holdfast source enable")
    early = job.kind in _ANNUAL and job.next_run_at is not None and job.next_run_at > now
    if early and not force and not job.current_retry_count + job.infra_retry_count:
        raise JobInUse(f"job {job_id} is not to begin before {job.next_run_at:%Y-%m-%d}; insist with --force")
    if open_execution(session, job_id=job_id) is None:
        job.next_run_at, job.updated_at = now, now


def raise_options(session: Session, clock: Clock, job_id: int, options: Mapping[str, Any], *, why: str) -> bool:
    """Give a job other tool options, at work or not: its next run has them. False if it has them already."""
    both = locked_both(session, job_id)
    if both is None:
        raise JobNotFound
    job, source = both
    zimit = asdict(effective(job, source).zimit)
    fresh = {**zimit["tool_options"], **options}
    if fresh == zimit["tool_options"]:
        return False
    content = {**zimit, "tool_options": fresh, "passthrough_args": list(zimit["passthrough_args"])}
    job.config, job.updated_at = {**job.config, "zimit": content}, clock.now()
    audit.record(session, clock, action="job.options_raised", subject=f"job {job_id}",
                 detail={"why": why, "options": dict(options)})  # fmt: skip
    return True


def register_directory(session: Session, clock: Clock, *, source: str, name: str | None, output_dir: str) -> Execution:
    """Make a job and a completed execution for a directory that a tool filled elsewhere; its index waits (HA-045).

    Conflict if an execution has this directory already; Invalid if the source's code is none.
    """
    now, found = clock.now(), named_source(session, clock, code=source, name=None)
    locked_source(session, found.id)  # of two who register one directory, the second finds the first
    taken = queries.run_in(session, output_dir)
    if taken is not None:
        raise Conflict(f"{output_dir} is the directory of execution {taken.id}; index it with: holdfast index-job")
    job = Job(source_id=found.id, kind=IMPORT, fingerprint=queries.fingerprint(output_dir), config={}, name=name,
              created_at=now, updated_at=now)  # fmt: skip
    session.add(job)
    session.flush()
    execution = Execution(
        job_id=job.id, number=1, state="completed", config={"backend": "zimit", "registered": True},
        output_dir=output_dir, created_at=now, started_at=now, finished_at=now, run_seconds=0.0, index_state="pending",
    )  # fmt: skip
    session.add(execution)
    session.flush()
    audit.record(session, clock, action="execution.registered", subject=f"execution {execution.id}",
                 detail={"source": found.code, "output_dir": output_dir})  # fmt: skip
    return execution
