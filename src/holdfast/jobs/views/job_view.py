"""The one view of a job and of an execution: the routes and `--json` print it alike. Moments are aware UTC.

Field names are those of `/api/v1`; the names that `--json` had first are printed beside them (two tables of aliases).
Older dialects are adapted from this view in `dialects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.db.models import Execution
from holdfast.jobs.backends import is_own_run
from holdfast.jobs.endings import Counts, ending_word, rule_of, sentence_of
from holdfast.jobs.journal import LOG_NAME
from holdfast.jobs.pauses import may_wait
from holdfast.jobs.store import schedule_of_job
from holdfast.jobs.views.listing import ListedJob, stats_of
from holdfast.sources.schedule import words_of

_MB: Final = 1024 * 1024
# Programs may read either name; a field that is gone or renamed would break them.
JOB_ALIASES: Final[Mapping[str, str]] = {
    "source": "source_code",
    "kind": "type",
    "state": "status",
    "last_execution_at": "last_run_at",
    "retries": "current_retry_count",
    "error": "error_message",
}
EXECUTION_ALIASES: Final[Mapping[str, str]] = {
    "number": "execution_number",
    "state": "status",
    "index_state": "index_status",
    "error": "error_message",
    "finished_at": "completed_at",
    "cpu_ms": "cpu_time_ms",
    "log_lines": "log_line_count",
}


def job_view(listed: ListedJob) -> dict[str, Any]:
    """Return a job with its newest execution in short."""
    job, latest = listed.job, listed.latest
    view = {
        "id": job.id,
        "source_id": job.source_id,
        "source_code": listed.source.code,
        "source_name": listed.source.name,
        "name": job.name,
        "type": job.kind,
        "url": job.url,
        "status": job.state,
        "admin_status": listed.admin_status,
        "interval_minutes": job.interval_minutes,
        "interval_type": job.interval_type,
        "schedule": words_of(schedule_of_job(job)),
        "schedule_enabled": job.schedule_enabled,
        "adaptive_scheduling": job.adaptive_scheduling,
        "next_run_at": job.next_run_at,
        "last_run_at": job.last_execution_at,
        "is_paused": job.state == "paused",
        "paused_at": job.paused_at,
        "paused_by": job.paused_by,
        "cancelled_at": job.cancelled_at,
        "lock_token": job.lock_token,
        "lock_owner": job.lock_owner,
        "lock_acquired_at": job.lock_acquired_at,
        "max_retries": job.max_retries,
        "retry_backoff_seconds": job.retry_backoff_seconds,
        # Trouble of the machine burns no retry, so `infra_retry_count` is not part of it.
        "current_retry_count": job.current_retry_count,
        "failure_count": job.failed_runs,
        "last_failure_at": job.last_failure_at,
        "error_message": job.error_message,
        "started_at": latest.started_at if latest else None,
        "completed_at": latest.finished_at if latest else None,
        "edition_id": job.edition_id,
        "shard_key": job.shard_key,
        "shard_kind": job.shard_kind,
        "acceptance_state": job.acceptance_state,
        "config": job.config,
        "metadata": job.details,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "run_may": _run_may(listed, latest) if latest else None,
        "latest_execution": execution_summary(latest, awaited=listed.awaited) if latest else None,
    }
    return view | {alias: view[name] for alias, name in JOB_ALIASES.items()}


def _run_may(listed: ListedJob, latest: Execution) -> str | None:
    is_own = is_own_run(listed.job.kind, latest.config, listed.job.config, listed.source.config)
    return may_wait(listed.job, latest, is_own=is_own)


def execution_summary(execution: Execution, counts: Counts | None = None, awaited: str | None = None) -> dict[str, Any]:
    """Return an execution without stack and metrics; `counts` are newer ones, `awaited` names its machine in words."""
    memory, is_over = execution.peak_memory_bytes, execution.state not in ("queued", "running")
    view = {
        "id": execution.id,
        "job_id": execution.job_id,
        "execution_number": execution.number,
        "status": execution.state,
        "ending": ending_word(execution.state, execution.reason),
        "reason": execution.reason,
        "shortfalls": execution.shortfalls,
        "sentence": sentence_of(execution.state, execution.reason, execution.shortfalls) if is_over else awaited,
        # While it runs nothing is known, for it or against it.
        "research_ready": rule_of(execution.state, execution.reason).is_ready if is_over else None,
        "created_at": execution.created_at,
        "queued_at": execution.queued_at,
        "started_at": execution.started_at,
        "completed_at": execution.finished_at,
        "duration_ms": execution.duration_ms,
        "paused_at": execution.paused_at,
        "paused_by": execution.paused_by,
        "paused_seconds": round(execution.paused_seconds, 1),
        "items_crawled": counts.items_crawled if counts else execution.items_crawled,
        "items_failed": counts.items_failed if counts else execution.items_failed,
        "items_total": counts.items_total if counts else execution.items_total,
        "items_indexed": execution.items_indexed,
        "index_status": execution.index_state,
        "error_message": execution.error,
        "failure": execution.failure,
        "cpu_time_ms": execution.cpu_ms,
        "memory_peak_mb": None if memory is None else round(memory / _MB, 1),
        "peak_memory_bytes": memory,
        "retry_attempt": execution.retry_attempt,
        "resumed_from": execution.resumed_from,
        "exit_code": execution.exit_code,
        "stage": execution.stage,
        "cleanup_status": execution.cleanup_status,
        "cleaned_at": execution.cleaned_at,
        "output_dir": execution.output_dir,
        "storage": execution.storage or {},
        "artifacts": execution.artifacts or {},
        "log_object_key": log_key(execution),
        "log_size_bytes": execution.log_bytes,
        "log_line_count": execution.log_lines,
        "log_dropped_lines": execution.log_dropped,
    }
    return view | {alias: view[name] for alias, name in EXECUTION_ALIASES.items()}


def execution_view(execution: Execution, counts: Counts | None = None, awaited: str | None = None) -> dict[str, Any]:
    """Return a whole execution; for the arguments see `execution_summary`."""
    metrics = {"crawl_metrics": execution.metrics} if execution.metrics else {}
    return {
        **execution_summary(execution, counts, awaited=awaited),
        "stack_trace": execution.stack,
        "metadata": metrics,
    }


def stats_view(listed: ListedJob) -> dict[str, Any]:
    """Return a job's history in a few figures."""
    return {"job_id": listed.job.id, **stats_of(listed.job)._asdict()}


def log_key(execution: Execution) -> str | None:
    """Return the name under which an execution's log is kept, None if it has no line (or none any more)."""
    if not execution.log_lines or execution.pruned_at is not None:
        return None
    return LOG_NAME.format(job_id=execution.job_id, number=execution.number)
