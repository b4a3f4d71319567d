"""Second chances by hand: a failed job, an index that failed, a burnt retry budget. What runs is left alone.

Who opens the session ends it; every change stands in the audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Conflict
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.indexing import ask_again
from holdfast.jobs.specs import BackendCheck, JobNotFound, JobRefused, job_config, planned_config
from holdfast.jobs.states import JobAction
from holdfast.jobs.store import locked_both, locked_job
from holdfast.jobs.views.listing import shown_job
from holdfast.sources.config import SourceConfig, SourceRefused


def locked_latest(session: Session, *, job_id: int) -> Execution | None:
    """Return a job's newest execution, and keep it to ourselves until the transaction ends."""
    query = select(Execution).where(Execution.job_id == job_id).order_by(Execution.number.desc()).limit(1)
    return session.scalars(query.with_for_update()).one_or_none()


def retried_ids(session: Session, *, source_id: int | None, states: Sequence[str], limit: int) -> list[int]:
    """Return the jobs, oldest first, that have burnt retries: of one source or of all, in some states or in any."""
    query = select(Job.id).where(
        Job.deleted_at.is_(None),
        Job.state.is_not(None),
        or_(Job.current_retry_count > 0, Job.infra_retry_count > 0),
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
    """What a retry did."""

    QUEUED = "queued"
    """The job runs again, with its whole budget."""
    INDEX_RESET = "index_reset"
    """The crawl stays as it is; its index is computed again."""


def retry(session: Session, clock: Clock, board: JobActions, job_id: int) -> Retried:
    """Give a failed job another run, or an execution whose index failed another reading; else NotRetryable."""
    job = locked_job(session, job_id)
    if job is None:
        raise JobNotFound
    if reset_index(session, clock, job_id):
        return Retried.INDEX_RESET
    word = word_for(session, job_id)
    if job.state is None or word != "failed":
        hint = "; the same `holdfast crawl` command resumes it" if job.state is None else ""
        raise NotRetryable(job.id, word, hint)
    _tell(session, clock, "job.retried", job.id)
    board.act(session, job.id, JobAction.RETRY)
    return Retried.QUEUED


def reset_index(session: Session, clock: Clock, job_id: int) -> bool:
    """Have the newest run of a job read again if only its index failed; False if that is not how it stands."""
    if locked_job(session, job_id) is None:
        raise JobNotFound
    latest = locked_latest(session, job_id=job_id)
    if latest is None or word_for(session, job_id) != "index_failed":
        return False
    _tell(session, clock, "job.index_reset", job_id, execution=latest.id)
    ask_again(session, latest.id, now=clock.now())
    return True


def word_for(session: Session, job_id: int) -> str:
    """Return a job's state in document 000's words, whether the scheduler runs it or not; JobNotFound."""
    shown = shown_job(session, job_id, scheduled=False)
    if shown is None:
        raise JobNotFound
    return shown.admin_status


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """What a reset of retry counts did, or would do."""

    reset: tuple[int, ...]
    unchanged: tuple[int, ...]
    """They had burnt none."""
    locked: tuple[int, ...]
    """Somebody works on them."""
    missing: tuple[int, ...]


def reset_retries(session: Session, clock: Clock, ids: Iterable[int], *, reason: str | None, apply: bool) -> Reset:
    """Set the burnt retries of these jobs to none; those that somebody holds are skipped and told."""
    fates: dict[str, list[int]] = {"reset": [], "unchanged": [], "locked": [], "missing": []}
    for job_id in dict.fromkeys(ids):
        job = locked_job(session, job_id)
        if job is None or job.state is None:
            fates["missing"].append(job_id)
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
    return Reset(**{name: tuple(found) for name, found in fates.items()})


def _tell(session: Session, clock: Clock, action: str, job_id: int, **detail: object) -> None:
    audit.record(session, clock, action=action, subject=f"job {job_id}", detail=detail)


PATCHABLE = ("queued", "retryable", "failed")


class NotPatchable(Conflict):
    """A job's configuration is changed only while nobody works with it."""

    code = "not_patchable"

    def __init__(self, job_id: int, state: str) -> None:
        super().__init__(f"job {job_id} is {state}; its configuration is changed only while {', '.join(PATCHABLE)}")


def effective(job: Job, source: Source, *, check: BackendCheck | None = None) -> SourceConfig:
    """Return the configuration that a job runs with; JobRefused, or the backend's refusal, names what is wrong."""
    try:
        made = job_config(job, source)
    except SourceRefused as exc:
        raise JobRefused(f"config.{exc.field}", exc.reason) from exc
    if check is not None:
        check(made)
    return made


class Patched(NamedTuple):
    """The tool's part of a configuration, before and after."""

    before: dict[str, Any]
    after: dict[str, Any]


def patch_zimit(
    session: Session,
    clock: Clock,
    job_id: int,
    changes: Mapping[str, Mapping[str, Any]],
    *,
    check: BackendCheck,
    apply: bool,
) -> Patched:
    """Change values of a job's `tool_options` and `execution_policy`; None takes one away. Checked before it is kept.

    JobNotFound, NotPatchable for a job that is not waiting, or the refusal of what the change would make of it.
    """
    both = locked_both(session, job_id)
    if both is None or both[0].state is None:
        raise JobNotFound
    job, source = both
    word = word_for(session, job.id)
    if word not in PATCHABLE or job.lock_token is not None:
        raise NotPatchable(job.id, word)
    before = asdict(effective(job, source).zimit)
    after = {**before, **{group: _changed(before[group], given) for group, given in changes.items()}}
    # What is taken away is kept as null: without that word the source's own value would come back.
    taken = {group: dict.fromkeys(set(before[group]) - set(after[group])) for group in changes}
    kept = {group: {**after[group], **taken[group]} for group in changes}
    fresh = {**job.config, "zimit": {**after, **kept, "passthrough_args": list(after["passthrough_args"])}}
    try:
        # zimit's rules hold whatever the backend: the options wait for the day when it is chosen.
        check(planned_config(source, {**fresh, "backend": "zimit"}, start=job.url if job.url_given else None))
    except SourceRefused as exc:
        raise JobRefused(f"config.{exc.field}", exc.reason) from exc
    if apply:
        job.config, job.updated_at = fresh, clock.now()
        audit.record(session, clock, action="job.config_patched", subject=f"job {job.id}", detail=dict(changes))
    return Patched(before, after)


def _changed(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**values, **given}.items() if value is not None}
