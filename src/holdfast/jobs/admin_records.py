"""The older representation of jobs in `/api/admin/jobs`; compare `jobs.records`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.jobs.endings import Counts
from holdfast.jobs.store import execution_name
from holdfast.jobs.views.listing import JobRow
from holdfast.records import Operator, from_row, record


@record
class AdminJob:
    """A job and its newest run, with the older field names of `/api/admin/jobs`; includes ad-hoc crawls and
    imports.
    """

    id: Operator[int]
    execution_id: Operator[int | None]
    """The newest run: `jobId` of the public routes."""
    source_code: Operator[str]
    source_name: Operator[str]
    name: Operator[str]
    """The job's own name, or that of its newest run."""
    status: Operator[str]
    """queued, running, retryable, failed, completed, indexing, indexed, index_failed, paused, cancelled."""
    retry_count: Operator[int]
    created_at: Operator[datetime]
    queued_at: Operator[datetime | None]
    started_at: Operator[datetime | None]
    finished_at: Operator[datetime | None]
    cleanup_status: Operator[str]
    """Clean-up status of the newest run; `none` if it was not cleaned up."""
    cleaned_at: Operator[datetime | None]
    crawler_exit_code: Operator[int | None]
    """Exit code of zimit."""
    crawler_status: Operator[str | None]
    """success, failed, infra_error, infra_error_config or lease_lost."""
    warc_file_count: Operator[int]
    warc_bytes_total: Operator[int]
    indexed_page_count: Operator[int]
    storage_scanned_at: Operator[datetime | None]
    edition_id: Operator[int | None]
    """The annual edition that the job belongs to."""
    shard_key: Operator[str | None]
    shard_kind: Operator[str | None]
    acceptance_state: Operator[str | None]
    """A person's decision about the job in its edition, for example accepted_gap."""


@record
class IndexProgress:
    """Progress of indexing the WARC files of a run."""

    phase: Operator[str]
    """starting, read_warc, finalize or failed; done once every file is indexed."""
    warc_index: Operator[int]
    """Number of the file being read, from 1; the number of files at the end."""
    warc_total: Operator[int]
    current_warc: Operator[str | None]
    """Name of the file being read; null if none is."""
    records_processed: Operator[int]
    """Records read so far, over all files."""
    bytes_processed: Operator[int]
    bytes_total: Operator[int]
    started_at: Operator[datetime | None]
    last_progress_at: Operator[datetime | None]


@record
class AdminJobDetail(AdminJob):
    """A job with its configuration and the files of its newest run."""

    output_dir: Operator[str | None]
    """Output directory of the newest run."""
    crawler_stage: Operator[str | None]
    pages_crawled: Operator[int]
    pages_total: Operator[int]
    pages_failed: Operator[int]
    output_bytes_total: Operator[int | None]
    tmp_bytes_total: Operator[int | None]
    tmp_non_warc_bytes_total: Operator[int | None]
    final_zim_path: Operator[str | None]
    combined_log_path: Operator[str | None]
    state_file_path: Operator[str | None]
    coverage_report_path: Operator[str | None]
    config: Operator[dict[str, Any]]
    """Combined configuration of job and source, in the format that `archive-tool` reads."""
    last_stats: Operator[dict[str, Any]]
    """Latest statistics of the newest run."""
    index_progress: Operator[IndexProgress | None]
    """Indexing progress of the newest run; null until indexing starts."""


@record
class AdminJobList:
    """A page of jobs, newest first."""

    items: Operator[list[AdminJob]]
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]


@record
class AdminCounts:
    """Number of jobs by status."""

    counts: Operator[dict[str, int]]
    """By status; statuses without jobs are omitted."""


@record
class AdminSnapshot:
    """A capture of a page that a job made."""

    id: Operator[int]
    url: Operator[str]
    capture_timestamp: Operator[datetime]
    status_code: Operator[int | None]
    language: Operator[str | None]
    title: Operator[str | None]


_ARTIFACTS = ("final_zim", "combined_log", "state_file", "coverage_report")


def admin_job(row: JobRow, files: tuple[int, int]) -> AdminJob:
    """Convert a job to the older names; `files` are the number of its WARC files and their total size."""
    job, run = row.job, row.latest
    queued_at = run and (run.queued_at or run.created_at)
    scanned = run and (run.storage or {}).get("scanned_at")
    # A waiting job shows when it will be queued; one that ran shows when that run was queued.
    waits = row.admin_status in ("queued", "retryable")
    return from_row(
        AdminJob,
        job,
        execution_id=run and run.id,
        source_code=row.source.code,
        source_name=row.source.name,
        # A job without a name is shown under the name of its newest run, or of its source before the first run.
        name=job.name or (execution_name(row.source.code, run.id) if run else row.source.code),
        status=row.admin_status,
        retry_count=job.current_retry_count,
        queued_at=(job.next_run_at if waits else None) or queued_at or job.next_run_at,
        started_at=run and run.started_at,
        finished_at=run and run.finished_at,
        cleanup_status=run.cleanup_status if run else "none",
        cleaned_at=run and run.cleaned_at,
        crawler_exit_code=run and run.exit_code,
        crawler_status=run and (run.failure or ("success" if run.state == "completed" else None)),
        warc_file_count=files[0],
        warc_bytes_total=files[1],
        indexed_page_count=run.items_indexed if run else 0,
        storage_scanned_at=datetime.fromisoformat(scanned) if scanned else None,
    )


def admin_detail(
    row: JobRow,
    files: tuple[int, int],
    counts: Counts,
    *,
    config: dict[str, Any],
    stats: dict[str, Any],
    index_progress: IndexProgress | None = None,
) -> AdminJobDetail:
    """Convert a job to the older names, in full; `stats` are the newest that its crawl wrote."""
    run = row.latest
    storage, artifacts = (run and run.storage) or {}, (run and run.artifacts) or {}
    return from_row(
        AdminJobDetail,
        admin_job(row, files),
        output_dir=(run and run.output_dir) or None,
        crawler_stage=run and run.stage,
        pages_crawled=counts.items_crawled,
        pages_total=counts.items_total,
        pages_failed=counts.items_failed,
        **{f"{kind}_bytes_total": storage.get(f"{kind}_bytes") for kind in ("output", "tmp", "tmp_non_warc")},
        **{f"{kind}_path": artifacts.get(kind) for kind in _ARTIFACTS},
        config=config,
        last_stats=stats,
        index_progress=index_progress,
    )
