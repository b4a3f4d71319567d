"""A job's state in the words of documents 000 and 001, where `/api/admin/jobs` shows it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.jobs.states import State

ADMIN_STATES = (
    "queued", "running", "retryable", "failed", "completed", "indexing", "indexed", "index_failed", "paused",
    "cancelled",
)  # fmt: skip
_ADHOC = {
    "queued": "queued",
    "running": "running",
    "stopped": "retryable",
    "failed": "failed",
    "cancelled": "cancelled",
}


class Latest(NamedTuple):
    """A job's newest execution, as far as its state is concerned."""

    state: str
    index_state: str | None = None


def admin_state(state: str | None, *, retries: int, latest: Latest | None, failed: bool = False) -> str:
    """Return the admin word for a job and its latest execution.

    queued is pending, or scheduled without a retry; retryable is scheduled with one, or pending after a run that
    `failed`; what has been crawled shows how far its index is. A job that the scheduler does not run (ad hoc, import)
    is what its execution is.
    """
    if state is None:
        if latest is None:
            return "queued"
        return _ADHOC.get(latest.state) or _indexed(latest)
    if state == State.PENDING:
        return "retryable" if failed else "queued"
    if state == State.SCHEDULED:
        if retries > 0:
            return "retryable"
        return _indexed(latest) if latest is not None and latest.state == "completed" else "queued"
    if state == State.COMPLETED:
        return _indexed(latest) if latest is not None else "completed"
    return state


def _indexed(latest: Latest) -> str:
    return latest.index_state if latest.index_state in ("indexing", "indexed", "index_failed") else "completed"
