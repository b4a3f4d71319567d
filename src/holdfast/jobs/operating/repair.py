"""Second chances by hand: a failed job, an index that failed, a burnt retry budget. What runs is left alone.

Who opens the session ends it; every change stands in the audit log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.errors import Conflict
from holdfast.jobs.board.board import Board
from holdfast.jobs.board.queries import locked_job
from holdfast.jobs.indexing.steps import ask_again
from holdfast.jobs.listing.queries import shown_job
from holdfast.jobs.operating import queries
from holdfast.jobs.specs import JobNotFound
from holdfast.jobs.states import Action


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


def retry(session: Session, clock: Clock, board: Board, job_id: int) -> Retried:
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
    board.act(session, job.id, Action.RETRY)
    return Retried.QUEUED


def reset_index(session: Session, clock: Clock, job_id: int) -> bool:
    """Have the newest run of a job read again if only its index failed; False if that is not how it stands."""
    if locked_job(session, job_id) is None:
        raise JobNotFound
    latest = queries.locked_latest(session, job_id=job_id)
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
