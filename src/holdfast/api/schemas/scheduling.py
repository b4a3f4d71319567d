"""What the scheduler's routes and those below `/api/admin/jobs` answer with."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import Answer
from holdfast.api.schemas.jobs import JobAnswer
from holdfast.jobs.slots import Reason


class ExecutionFigures(JobAnswer):
    """How runs went."""

    total: int = Field(description="Of all time.")
    average_duration_ms: float = Field(description="Of the last 24 hours.")
    success_rate: float = Field(description="Of the last 24 hours, 0 to 1; 1 if nothing ran.")


class MetricsShown(JobAnswer):
    """How the scheduler is doing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "jobs": {
                        "pending": 0,
                        "scheduled": 40,
                        "running": 2,
                        "paused": 1,
                        "completed": 3,
                        "failed": 0,
                        "cancelled": 0,
                    },
                    "executions": {"total": 1200, "average_duration_ms": 338000.0, "success_rate": 0.98},
                    "last_check_at": "2026-11-15T12:20:40Z",
                    "last_metrics_update": "2026-11-15T12:20:41Z",
                    "stale_locks_cleared": 1,
                    "warnings": [],
                }
            ]
        }
    )

    jobs: dict[str, int] = Field(description="By state, all seven.")
    executions: ExecutionFigures
    last_check_at: datetime | None = Field(description="When a process that schedules was last heard of.")
    last_metrics_update: datetime
    stale_locks_cleared: int = Field(description="Of all time; when it grows, workers die or hang.")
    warnings: list[str] = Field(description="A success rate below 0.8, stale locks again and again.")


class HourShown(JobAnswer):
    """One hour of the day, UTC."""

    hour: int
    job_count: int


class SlotShown(JobAnswer):
    """A quarter of an hour in which runs begin."""

    starts_at: datetime
    job_count: int


class DistributionShown(JobAnswer):
    """How the runs of the coming day are spread."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "window_hours": 24,
                    "slot_minutes": 15,
                    "total_jobs": 2,
                    "hourly_distribution": [{"hour": 0, "job_count": 1}, {"hour": 1, "job_count": 1}],
                    "slot_distribution": [{"starts_at": "2026-11-15T00:15:00Z", "job_count": 1}],
                    "distribution_score": 0.92,
                    "peak_hour": 0,
                    "peak_count": 1,
                    "rebalance_advised": False,
                }
            ]
        }
    )

    window_hours: int
    slot_minutes: int
    total_jobs: int
    hourly_distribution: list[HourShown]
    slot_distribution: list[SlotShown] = Field(
        description="The slots of the coming 24 hours in which runs begin, in order; what is overdue is in the first."
    )
    distribution_score: float = Field(description="0 to 1; 1 is even.")
    peak_hour: int
    peak_count: int
    rebalance_advised: bool = Field(description="The score is below 0.7.")


class MovedShown(JobAnswer):
    """A job that another slot suits better."""

    job_id: int
    old_time: datetime
    new_time: datetime


class SkippedShown(JobAnswer):
    """A job that stays, and why."""

    job_id: int
    reason: str = Field(description=f"One of {', '.join(Reason)}.")


class RebalanceShown(JobAnswer):
    """What a rebalance does: every scheduled job is in one of the two lists."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "moved": [{"job_id": 1, "old_time": "2026-11-15T18:15:00Z", "new_time": "2026-11-15T20:30:00Z"}],
                    "skipped": [{"job_id": 2, "reason": "placement_cooldown"}],
                    "new_distribution_score": 0.95,
                }
            ]
        }
    )

    moved: list[MovedShown]
    skipped: list[SkippedShown]
    new_distribution_score: float


class SyncShown(JobAnswer):
    """How many sources got a job, had one, or were skipped."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "sources_seen": 3,
                    "sources_enabled": 2,
                    "created": 1,
                    "already_has_job": 1,
                    "resumed": 0,
                    "skipped_disabled": 1,
                    "skipped_rate_limit_parse_failure": 0,
                    "errors": [],
                }
            ]
        }
    )

    sources_seen: int
    sources_enabled: int
    created: int = Field(description="Sources that got a job.")
    already_has_job: int
    resumed: int = Field(description="Sources whose paused jobs were resumed.")
    skipped_disabled: int
    skipped_rate_limit_parse_failure: int = Field(description="Always 0: a delay must be a number when it is saved.")
    errors: list[str] = Field(description="Code and reason of those whose configuration cannot be used.")


_JOB: dict[str, Any] = {
    "id": 1,
    "executionId": 12,
    "sourceCode": "example",
    "sourceName": "Example",
    "name": "example-12",
    "status": "indexed",
    "retryCount": 0,
    "createdAt": "2026-11-01T09:00:00Z",
    "queuedAt": "2026-11-15T12:15:00Z",
    "startedAt": "2026-11-15T12:15:03Z",
    "finishedAt": "2026-11-15T12:20:41Z",
    "cleanupStatus": "none",
    "cleanedAt": None,
    "crawlerExitCode": None,
    "crawlerStatus": "success",
    "warcFileCount": 1,
    "warcBytesTotal": 1031830,
    "indexedPageCount": 558,
    "storageScannedAt": None,
    "editionId": None,
    "shardKey": None,
    "shardKind": None,
    "acceptanceState": None,
}


class AdminJob(Answer):
    """A job and its newest run."""

    model_config = ConfigDict(json_schema_extra={"examples": [_JOB]})

    id: int
    execution_id: int | None = Field(description="Its newest run: `jobId` of the public routes.")
    source_code: str
    source_name: str
    name: str = Field(description="Its own, or that of its newest run.")
    status: str = Field(
        description="queued, running, retryable, failed, completed, indexing, indexed, index_failed, paused, cancelled."
    )
    retry_count: int
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    cleanup_status: str = Field(description="How far its newest run was cleaned up; `none`: not at all.")
    cleaned_at: datetime | None
    crawler_exit_code: int | None = Field(description="Of zimit.")
    crawler_status: str | None = Field(description="success, failed, infra_error, infra_error_config or lease_lost.")
    warc_file_count: int
    warc_bytes_total: int
    indexed_page_count: int
    storage_scanned_at: datetime | None
    edition_id: int | None = Field(description="The annual edition that it is a part of.")
    shard_key: str | None
    shard_kind: str | None
    acceptance_state: str | None = Field(description="What its edition's keeper said of it: accepted_gap, for example.")


class IndexProgress(Answer):
    """How far the indexing of a run's WARC files is."""

    phase: str = Field(description="starting, read_warc, finalize or failed; done once every file is indexed.")
    warc_index: int = Field(description="The file that is read now, from 1; the number of files at the end.")
    warc_total: int
    current_warc: str | None = Field(description="Its name; null while none is read.")
    records_processed: int = Field(description="Of all its files.")
    bytes_processed: int
    bytes_total: int
    started_at: datetime | None
    last_progress_at: datetime | None


class AdminJobDetail(AdminJob):
    """The same with what it takes to look into it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    **_JOB,
                    "outputDir": "/srv/holdfast/warcs/example/20261115T121503Z__example-12",
                    "crawlerStage": None,
                    "pagesCrawled": 560,
                    "pagesTotal": 562,
                    "pagesFailed": 2,
                    "outputBytesTotal": None,
                    "tmpBytesTotal": None,
                    "tmpNonWarcBytesTotal": None,
                    "finalZimPath": None,
                    "combinedLogPath": None,
                    "stateFilePath": None,
                    "coverageReportPath": None,
                    "config": {"seeds": ["https://example.org/"]},
                    "lastStats": {},
                }
            ]
        }
    )

    output_dir: str | None = Field(description="Where its newest run wrote.")
    crawler_stage: str | None
    pages_crawled: int
    pages_total: int
    pages_failed: int
    output_bytes_total: int | None
    tmp_bytes_total: int | None
    tmp_non_warc_bytes_total: int | None
    final_zim_path: str | None
    combined_log_path: str | None
    state_file_path: str | None
    coverage_report_path: str | None
    config: dict[str, Any] = Field(description="Of job and source together, in the shape that `archive-tool` reads.")
    last_stats: dict[str, Any] = Field(description="What its newest run counted last.")
    index_progress: IndexProgress | None = Field(None, description="How far its newest run is indexed; null unbegun.")


class AdminJobList(Answer):
    """A page of jobs, newest first."""

    items: list[AdminJob]
    total: int
    limit: int
    offset: int


class AdminCounts(Answer):
    """How many jobs there are of each status."""

    counts: dict[str, int] = Field(
        description="By status; one without jobs is left out.", examples=[{"indexed": 40, "running": 2}]
    )


class AdminSnapshot(Answer):
    """A capture of a page that a job made."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 4194307,
                    "url": "https://example.org/",
                    "captureTimestamp": "2026-11-15T12:15:04Z",
                    "statusCode": 200,
                    "language": "en",
                    "title": "Example",
                }
            ]
        }
    )

    id: int
    url: str
    capture_timestamp: datetime
    status_code: int | None
    language: str | None
    title: str | None
