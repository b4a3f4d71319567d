"""Jobs and executions as commands name and print them: a number in, lines and JSON objects out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from holdfast.cli.formatting import duration
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job
from holdfast.errors import NotFound
from holdfast.jobs import endings
from holdfast.jobs.endings import sentence_of
from holdfast.jobs.store import CRAWL, FEED, UNCAPPED, interval_of
from holdfast.jobs.views.listing import ListedJob, shown_job, stats_of

JobArgument = Annotated[int | None, typer.Argument(help="The job's number.", metavar="JOB")]
JobOption = Annotated[int | None, typer.Option("--id", help="The job's number, as the documents write it.")]


JOB_KINDS = (CRAWL, *UNCAPPED, FEED, "canary")
"""Kinds that a worker runs; ad-hoc crawls and imports have commands of their own."""


def job_number(argument: int | None, option: int | None) -> int:
    """Return the job that is meant, however it was named; exit code 2 if it was not, or twice."""
    given = {one for one in (argument, option) if one is not None}
    if len(given) != 1:
        raise typer.BadParameter("name one job by its number; see them with: holdfast job list", param_hint="JOB")
    return given.pop()


def find_job(database: Database, job_id: int) -> ListedJob:
    """Return a job, whether the scheduler runs it or not; NotFound."""
    with database.read() as session:
        found = shown_job(session, job_id, scheduled=False)
    if found is None:
        raise NotFound(f"there is no job {job_id}; see them with: holdfast job list")
    return found


def interval_text(job: Job) -> str:
    """Return how often a job runs, in words."""
    if job.interval_minutes is None or not job.schedule_enabled:
        return "once"
    unit = job.interval_type.removesuffix("s")
    return f"every {unit}" if job.interval_minutes == 1 else f"every {job.interval_minutes} {job.interval_type}"


def slowed_text(job: Job) -> str | None:
    """Return how often a job runs at present, if a start page that stays the same has slowed it down."""
    baseline = interval_of(job.interval_minutes, job.interval_type)
    if baseline is None or not (job.schedule_enabled and job.adaptive_scheduling):
        return None
    present = endings.interval(baseline, job.unchanged_count)
    if present == baseline:
        return None
    often = f"{job.unchanged_count} times" if job.unchanged_count > 1 else "once"
    return f"every {duration(present.total_seconds())}: its start page stayed the same {often}"


def job_object(found: ListedJob) -> dict[str, Any]:
    """Return a job for `--json`: `state` as document 003 calls it, `status` as document 000 does."""
    job, latest = found.job, found.latest
    return {
        "id": job.id,
        "source": found.source.code,
        "source_id": job.source_id,
        "kind": job.kind,
        "name": job.name,
        "url": job.url,
        "state": job.state,
        "status": found.admin_status,
        "interval_minutes": job.interval_minutes,
        "interval_type": job.interval_type,
        "schedule_enabled": job.schedule_enabled,
        "adaptive_scheduling": job.adaptive_scheduling,
        "next_run_at": _moment(job.next_run_at),
        "last_execution_at": _moment(job.last_execution_at),
        "retries": found.retries,
        "max_retries": job.max_retries,
        "retry_backoff_seconds": job.retry_backoff_seconds,
        "error": job.error_message,
        "lock_owner": job.lock_owner,
        "edition_id": job.edition_id,
        "shard_key": job.shard_key,
        "shard_kind": job.shard_kind,
        "acceptance_state": job.acceptance_state,
        "config": job.config,
        "created_at": _moment(job.created_at),
        "updated_at": _moment(job.updated_at),
        "latest_execution": latest and execution_object(latest),
    }


def stats_object(job: Job) -> dict[str, Any]:
    """Return a job's history in a few figures."""
    return {
        name: _moment(value) if isinstance(value, datetime) else value
        for name, value in stats_of(job)._asdict().items()
    }


def execution_object(row: Execution) -> dict[str, Any]:
    """Return an execution for `--json`, without its stack and metrics."""
    return {
        "id": row.id,
        "number": row.number,
        "state": row.state,
        "reason": row.reason,
        "index_state": row.index_state,
        "shortfalls": row.shortfalls,
        "sentence": ended_text(row),
        "failure": row.failure,
        "error": row.error,
        "exit_code": row.exit_code,
        "stage": row.stage,
        "retry_attempt": row.retry_attempt,
        "resumed_from": row.resumed_from,
        "queued_at": _moment(row.queued_at),
        "started_at": _moment(row.started_at),
        "finished_at": _moment(row.finished_at),
        "duration_ms": row.duration_ms,
        "cpu_ms": row.cpu_ms,
        "peak_memory_bytes": row.peak_memory_bytes,
        "items_crawled": row.items_crawled,
        "items_indexed": row.items_indexed,
        "items_failed": row.items_failed,
        "items_total": row.items_total,
        "log_lines": row.log_lines,
        "cleanup_status": row.cleanup_status,
        "output_dir": row.output_dir,
    }


def ended_text(row: Execution) -> str | None:
    """Return in words how an execution ended and what it fell short of; None while it has not ended."""
    if row.state in ("queued", "running"):
        return None
    return sentence_of(row.state, row.reason, row.shortfalls)


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value is not None else None
