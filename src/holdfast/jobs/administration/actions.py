"""Manual actions on jobs: create, change, pause, resume, cancel, retry, force, delete, and reset failures.

Only legal transitions happen. The caller opens and ends the session; each action locks the job, writes its
state through `states.move`, writes an audit entry and publishes an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, cast

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import AuditAction
from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Conflict
from holdfast.jobs import store
from holdfast.jobs.indexing import ask_again
from holdfast.jobs.journal import emit, status
from holdfast.jobs.kinds import CRAWL
from holdfast.jobs.pauses import end_pause
from holdfast.jobs.slots import Placement
from holdfast.jobs.specs import (
    COLUMNS,
    BackendCheck,
    JobBusy,
    JobRefused,
    JobSpec,
    ScheduleKept,
    check_uncapped,
    checked_config,
    effective_config,
    planned_config,
)
from holdfast.jobs.states import TERMINAL, JobAction, State, after, move, route, state_of
from holdfast.jobs.store import JobNotFound, interval_of, locked_both, locked_job, scheduled_job
from holdfast.jobs.views.listing import shown_job
from holdfast.records import Operator, record
from holdfast.sources.config import SourceConfig, SourceRefused
from holdfast.urls import parse_seed
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Upserted:
    job: Job
    created: bool
    warnings: tuple[str, ...]


class JobActions:
    def __init__(
        self,
        clock: Clock,
        placement: Placement,
        *,
        backend_check: BackendCheck | None = None,
        annual_check: BackendCheck | None = None,
    ) -> None:
        self._clock, self._placement = clock, placement
        self._backend_check, self._annual_check = backend_check, annual_check

    def upsert(
        self, session: Session, spec: JobSpec, *, kind: str = CRAWL, replaces_schedule: bool = False
    ) -> Upserted:
        """Create the source's crawl job, or update the existing one. A running job is not interrupted.

        The job that polls a source's feeds works the same way: one per source, and it recurs.

        Raise Invalid for a bad request or source configuration; raise ScheduleKept if the job recurs and `spec` is
        for one run without `replaces_schedule`. Then nothing is changed.
        """
        source, config = self._checked(session, spec)
        found = store.crawl_job(session, source_id=source.id, kind=kind)
        if found is not None and found.schedule_enabled and not spec.recurring and not replaces_schedule:
            raise ScheduleKept(source.code, found.id)
        if found is not None:
            return self._apply(session, found, spec, config, enabled=source.enabled)
        now = self._clock.now()
        made = self._insert(session, spec, source, config, kind=kind)
        if source.enabled:
            self._schedule(session, made, now=now)
        self._note(made)
        self._tell(session, "job.created", made)
        emit(session, [status(made.id, state_of(made), created=True)], now=now)
        return Upserted(job=made, created=True, warnings=config.warnings())

    def add(self, session: Session, spec: JobSpec, *, kind: str, at: datetime) -> Job:
        """Create an additional job of another kind (annual, shard) that runs once, not before `at`.

        A source may have any number of them. Raise Invalid if the request is bad; then nothing is written.
        """
        if kind == CRAWL or spec.recurring:
            raise JobRefused("kind", "a source has one crawl job, and only that recurs")
        (source, config), now = self._checked(session, spec), self._clock.now()
        made = self._insert(session, spec, source, config, kind=kind)
        # `rhythm_at` keeps the date, so that nothing that wakes the job later runs it earlier.
        made.next_run_at = made.rhythm_at = max(at, now)
        self._tell(session, "job.created", made)
        session.flush()
        emit(session, [status(made.id, State.PENDING, created=True)], now=now)
        return made

    def edit(self, session: Session, job_id: int, spec: JobSpec) -> Upserted:
        """Give a job a new plan; raise JobNotFound, or Conflict if it is cancelled.

        Unlike `upsert`, this wakes nothing: a paused job stays paused, and a finished one runs again only if its
        interval changes.
        """
        spec.check()
        found, source = locked_both(session, job_id)
        if source.id != spec.source_id:
            raise JobRefused("source_id", "a job stays with its source")
        config = checked_config(source, spec.config, start=spec.url, check=self._backend_check)
        _check_kind(found, spec)
        check_uncapped(found.kind, config, self._annual_check)
        return self._apply(session, found, spec, config, enabled=source.enabled, rests=_rests(found, spec))

    def end_schedule(self, session: Session, job_id: int) -> None:
        """Stop a job from recurring. A run that is running, or queued by a person, continues; a scheduled run is
        cancelled with its job, and a job that never ran is deleted.
        """
        job = scheduled_job(session, job_id)
        if state_of(job) not in (State.SCHEDULED, State.PAUSED):
            for name, value in (("interval_minutes", None), ("anchor", None), ("schedule_enabled", False)):
                setattr(job, name, value)
            job.updated_at = self._clock.now()
            self._tell(session, "job.replanned", job)
        elif store.has_executions(session, job_id=job.id):
            self.act(session, job_id, JobAction.CANCEL)
        else:
            self.delete(session, job_id)

    def act(self, session: Session, job_id: int, action: JobAction) -> Job:
        """Pause, resume, cancel, retry or force a job; raise JobNotFound, or IllegalTransition if not allowed now."""
        job = scheduled_job(session, job_id)
        target, now = after(action, state_of(job)), self._clock.now()
        opened = store.open_execution(session, job_id=job.id)
        event = move(job, target, now=now, execution_id=opened.id if opened else None, action=action.value)
        # A job that a user paused is resumed by a user only: enabling the source does not wake it.
        if action is JobAction.PAUSE:
            job.paused_by = "user"
            _withdraw(opened, "paused", now)
        elif action is JobAction.RESUME:
            job.current_retry_count = job.infra_retry_count = 0
            self._schedule(session, job, now=now)
        elif action is JobAction.CANCEL:
            _withdraw(opened, "cancelled", now)
        else:
            if action is JobAction.RETRY:
                # The retry continues where the last run failed and uses no retry of the job, as after a machine
                # failure.
                job.current_retry_count, job.infra_retry_count = 0, 1
            # Do not queue a run twice.
            job.next_run_at = now if opened is None else None
        self._note(job)
        self._tell(session, cast(AuditAction, f"job.{action}"), job)
        emit(session, [event], now=now)
        return job

    def wake(self, session: Session, job_id: int, *, now: datetime) -> bool:
        """Reschedule a pending job that has no next run time; return False if its run is queued already."""
        job = scheduled_job(session, job_id)
        if store.open_execution(session, job_id=job.id) is not None:
            return False
        self._schedule(session, job, now=now)
        job.updated_at = now
        self._note(job)
        return True

    def delete(self, session: Session, job_id: int) -> None:
        """Delete a job; raise JobBusy if it runs. A job with executions stays as a hidden row that they refer to."""
        job = scheduled_job(session, job_id)
        now = self._clock.now()
        if job.lock_token is not None or state_of(job) is State.RUNNING:
            raise JobBusy(job.id)
        # A worker would start a queued run although its job is shown nowhere.
        _withdraw(store.open_execution(session, job_id=job.id), "deleted", now)
        self._placement.note(job.id, None, None)
        self._tell(session, "job.deleted", job)
        if not store.has_executions(session, job_id=job.id):
            # Its audit entry stays; a row without executions has nothing that refers to it.
            session.delete(job)
            session.flush()
            return
        events = []
        if state_of(job) not in TERMINAL:
            events.append(move(job, State.CANCELLED, now=now, deleted=True))
        job.deleted_at = job.updated_at = now
        emit(session, events, now=now)

    def _checked(self, session: Session, spec: JobSpec) -> tuple[Source, SourceConfig]:
        """Return the source of a new job, locked, and the configuration; raise Invalid."""
        spec.check()
        # The lock makes two requests for the same source run one after the other: the second finds the first's job.
        source = store.locked_source(session, spec.source_id)
        if source is None:
            raise JobRefused("source_id", f"there is no source {spec.source_id}")
        return source, checked_config(source, spec.config, start=spec.url, check=self._backend_check)

    def _insert(self, session: Session, spec: JobSpec, source: Source, config: SourceConfig, *, kind: str) -> Job:
        now = self._clock.now()
        job = Job(
            source_id=source.id,
            kind=kind,
            fingerprint="",
            created_at=now,
            updated_at=now,
            state=(State.SCHEDULED if spec.recurring else State.PENDING).value,
        )
        _write(job, spec, config)
        session.add(job)
        session.flush()
        return job

    def _apply(
        self, session: Session, job: Job, spec: JobSpec, config: SourceConfig, *, enabled: bool, rests: bool = False
    ) -> Upserted:
        now = self._clock.now()
        target = State.SCHEDULED if spec.recurring else State.PENDING
        # A running run keeps the plan it started with; the new plan applies from the next turn.
        stays, forced = rests or state_of(job) is State.RUNNING, _is_forced(job, spec)
        # Reject before anything is written.
        steps = () if stays or forced else route(state_of(job), target)
        changed = JobSpec.of(job).rhythm != spec.rhythm
        before = job.url, job.config
        _write(job, spec, config)
        job.updated_at = now
        # A retry counter of the old plan would make the next run continue in the old run's directory.
        if steps or changed or before != (job.url, job.config):
            job.current_retry_count = job.infra_retry_count = 0
        events = [move(job, step, now=now, replanned=True) for step in steps]
        if steps:
            # A new plan does not retry the old one.
            job.error_message = None
        if stays or store.open_execution(session, job_id=job.id) is not None:
            job.next_run_at = None
        elif enabled and not forced and (steps or changed or job.next_run_at is None):
            self._schedule(session, job, now=now)
        self._note(job)
        self._tell(session, "job.replanned", job)
        emit(session, events, now=now)
        return Upserted(job=job, created=False, warnings=config.warnings())

    def _schedule(self, session: Session, job: Job, *, now: datetime) -> None:
        """Set when a pending job runs next: at its date, or in the least busy slot; immediately if it runs once."""
        interval = interval_of(job.interval_minutes, job.interval_type)
        if state_of(job) is State.SCHEDULED and interval is not None:
            schedule = store.schedule_of_job(job)
            if schedule is not None and schedule.start is not None:
                job.next_run_at = job.rhythm_at = next(schedule.turns(now))
            else:
                job.next_run_at = job.rhythm_at = self._placement.place(session, interval, now=now)
            job.placed_at = now
        else:
            # A job with a date (an annual crawl) never runs before that date, whatever happened meanwhile.
            job.next_run_at = now if job.kind == CRAWL else max(now, job.rhythm_at or now)

    def _note(self, job: Job) -> None:
        self._placement.note(job.id, job.next_run_at, interval_of(job.interval_minutes, job.interval_type))

    def _tell(self, session: Session, action: AuditAction, job: Job) -> None:
        detail = {"state": job.state, "source_id": job.source_id, "kind": job.kind}
        audit.record(session, self._clock, action=action, subject=f"job {job.id}", detail=detail)


def _rests(job: Job, spec: JobSpec) -> bool:
    """Return whether a job is idle and `spec` is no reason to start it."""
    # A changed name must not run a finished job again; a changed interval does (decision 0012).
    if state_of(job) in (State.COMPLETED, State.FAILED):
        return (JobSpec.of(job).rhythm, job.schedule_enabled) == (spec.rhythm, spec.schedule_enabled)
    return state_of(job) is State.PAUSED


def _check_kind(job: Job, spec: JobSpec) -> None:
    """Raise JobRefused for a schedule that this kind of job cannot have."""
    unchanged = spec.rhythm == JobSpec.of(job).rhythm
    if job.kind != CRAWL and spec.interval is not None and not unchanged:
        raise JobRefused("interval_minutes", f"job {job.id} is of kind {job.kind}: only a source's crawl job recurs")


def _is_forced(job: Job, spec: JobSpec) -> bool:
    """Return whether a recurring job waits for a run that a person requested; a new plan does not cancel that run."""
    recurs = job.schedule_enabled and interval_of(job.interval_minutes, job.interval_type) is not None
    return recurs and spec.recurring and state_of(job) is State.PENDING


def _write(job: Job, spec: JobSpec, config: SourceConfig) -> None:
    job.url = parse_seed(spec.url).fetch if spec.url else config.seeds[0]
    job.url_given = spec.url is not None
    for name in (*COLUMNS, "config", "details"):
        setattr(job, name, getattr(spec, name))
    job.fingerprint = sha256(f"{CRAWL} {job.url}".encode()).hexdigest()


def _withdraw(execution: Execution | None, reason: str, now: datetime) -> None:
    """Cancel an execution that no worker has started, or drain a running one: its captures are preserved."""
    if execution is None:
        return
    if execution.state == "queued":
        execution.state, execution.reason, execution.finished_at = "cancelled", reason, now
        end_pause(execution, now=now)  # the worker released this run while it was paused
    else:
        execution.stop_requested = "drain"


def retried_ids(session: Session, *, source_id: int | None, states: Sequence[str], limit: int) -> list[int]:
    """Return ids of jobs with used retries, oldest first: of one source or of all, in some states or in any."""
    query = select(Job.id).where(
        Job.deleted_at.is_(None), Job.state.is_not(None), or_(Job.current_retry_count > 0, Job.infra_retry_count > 0)
    )
    if source_id is not None:
        query = query.where(Job.source_id == source_id)
    if states:
        query = query.where(Job.state.in_(states))
    return list(session.scalars(query.order_by(Job.id).limit(limit)))


class NotRetryable(Conflict):
    """A job is neither failed nor waiting for an index that failed."""

    code = "not_retryable"

    def __init__(self, job_id: int, state: str, hint: str) -> None:
        super().__init__(f"job {job_id} is {state}; only failed and index_failed are retried{hint}")
        self.state = state


class Retried(StrEnum):
    QUEUED = "queued"
    """The job runs again, with its full retry budget."""
    INDEX_RESET = "index_reset"
    """The crawl is unchanged; its index is rebuilt."""


def retry(session: Session, clock: Clock, actions: JobActions, job_id: int) -> Retried:
    """Run a failed job again, or rebuild an index that failed; raise NotRetryable otherwise."""
    if reset_index(session, clock, job_id):
        return Retried.INDEX_RESET
    shown = shown_job(session, job_id, scheduled=False)
    if shown.job.state is None or shown.admin_status != "failed":
        hint = "; the same `holdfast crawl` command resumes it" if shown.job.state is None else ""
        raise NotRetryable(job_id, shown.admin_status, hint)
    _tell(session, clock, "job.retried", job_id)
    actions.act(session, job_id, JobAction.RETRY)
    return Retried.QUEUED


def reset_index(session: Session, clock: Clock, job_id: int) -> bool:
    """Queue the newest run of a job for indexing again; return False unless only its index failed."""
    # Lock the job before its execution, as everywhere: a worker that settles locks them in this order.
    if locked_job(session, job_id) is None:
        raise JobNotFound
    newest = select(Execution).where(Execution.job_id == job_id).order_by(Execution.number.desc()).limit(1)
    latest = session.scalars(newest.with_for_update()).one_or_none()
    if latest is None or shown_job(session, job_id, scheduled=False).admin_status != "index_failed":
        return False
    _tell(session, clock, "job.index_reset", job_id, execution=latest.id)
    ask_again(session, latest.id, now=clock.now())
    return True


@record
class RetriesReset:
    """The jobs whose retries were (or would be) reset, and those whose were not."""

    applied: Operator[bool]
    reset: Operator[tuple[int, ...]]
    unchanged: Operator[tuple[int, ...]]
    """Jobs that had not used any."""
    locked: Operator[tuple[int, ...]]
    """Jobs that a worker holds."""
    missing: Operator[tuple[int, ...]]


def reset_retries(
    session: Session, clock: Clock, ids: Iterable[int], *, reason: str | None, apply: bool
) -> RetriesReset:
    """Reset the used retries of these jobs to 0; jobs that a worker holds are skipped and reported."""
    fates: dict[str, list[int]] = {"reset": [], "unchanged": [], "locked": [], "missing": []}
    for job_id in dict.fromkeys(ids):
        job = locked_job(session, job_id)
        if job is None or job.state is None:
            fates["missing"].append(job_id)
        # Its worker writes the counters when the run ends: a reset in between would be undone.
        elif job.lock_token is not None or job.state == "running":
            fates["locked"].append(job_id)
        elif not job.current_retry_count and not job.infra_retry_count:
            fates["unchanged"].append(job_id)
        else:
            fates["reset"].append(job_id)
            if apply:
                _tell(session, clock, "job.retries_reset", job_id, reason=reason, burnt=job.current_retry_count)
                job.current_retry_count = job.infra_retry_count = 0
                job.updated_at = clock.now()
    return RetriesReset(applied=apply, **{name: tuple(found) for name, found in fates.items()})


def _tell(session: Session, clock: Clock, action: AuditAction, job_id: int, **detail: object) -> None:
    audit.record(session, clock, action=action, subject=f"job {job_id}", detail=detail)


PATCHABLE = ("queued", "retryable", "failed")


class NotPatchable(Conflict):
    """A job's configuration can only change while no worker holds it."""

    code = "not_patchable"

    def __init__(self, job_id: int, state: str) -> None:
        super().__init__(f"job {job_id} is {state}; its configuration is changed only while {', '.join(PATCHABLE)}")


def patch_zimit(
    session: Session,
    clock: Clock,
    job_id: int,
    changes: Mapping[str, Mapping[str, Any]],
    *,
    check: BackendCheck,
    apply: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Change values of a job's `tool_options` and `execution_policy`; None removes one. Validates before storing.

    Return the tool's part of the configuration before and after.

    Raise JobNotFound, NotPatchable for a job that is not pending, or the error that `check` raises.
    """
    job, source = locked_both(session, job_id)
    word = shown_job(session, job.id, scheduled=False).admin_status
    # A running tool has already read its options: the stored ones would differ from those it uses.
    if word not in PATCHABLE or job.lock_token is not None:
        raise NotPatchable(job.id, word)
    before = asdict(effective_config(job, source).zimit)
    after = {**before, **{group: _changed(before[group], given) for group, given in changes.items()}}
    # Store a removed value as null: without the key the source's own value would apply again.
    taken = {group: dict.fromkeys(set(before[group]) - set(after[group])) for group in changes}
    kept = {group: {**after[group], **taken[group]} for group in changes}
    fresh = {**job.config, "zimit": {**after, **kept, "passthrough_args": list(after["passthrough_args"])}}
    try:
        # Apply zimit's rules whatever the backend is: the options take effect once zimit is chosen.
        check(planned_config(source, {**fresh, "backend": "zimit"}, start=job.url if job.url_given else None))
    except SourceRefused as exc:
        raise JobRefused(f"config.{exc.field}", exc.reason) from exc
    if apply:
        job.config, job.updated_at = fresh, clock.now()
        audit.record(session, clock, action="job.config_patched", subject=f"job {job.id}", detail=dict(changes))
    return before, after


def _changed(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**values, **given}.items() if value is not None}
