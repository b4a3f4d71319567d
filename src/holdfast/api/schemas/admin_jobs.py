"""Jobs in document 000's fields (1.7 of the facts)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import Answer

_JOB: dict[str, Any] = {
    "id": 1, "executionId": 12, "sourceCode": "example", "sourceName": "Example", "name": "example-12",
    "status": "indexed", "retryCount": 0, "createdAt": "2026-11-01T09:00:00Z", "queuedAt": "2026-11-15T12:15:00Z",
    "startedAt": "2026-11-15T12:15:03Z", "finishedAt": "2026-11-15T12:20:41Z", "cleanupStatus": "none",
    "cleanedAt": None, "crawlerExitCode": None, "crawlerStatus": "success", "warcFileCount": 1,
    "warcBytesTotal": 1031830, "indexedPageCount": 558, "storageScannedAt": None, "editionId": None, "shardKey": None,
    "shardKind": None, "acceptanceState": None,
}  # fmt: skip


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


class AdminJobDetail(AdminJob):
    """The same with what it takes to look into it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        **_JOB, "outputDir": "/srv/holdfast/warcs/example/20261115T121503Z__example-12", "crawlerStage": None,
        "pagesCrawled": 560, "pagesTotal": 562, "pagesFailed": 2, "outputBytesTotal": None, "tmpBytesTotal": None,
        "tmpNonWarcBytesTotal": None, "finalZimPath": None, "combinedLogPath": None, "stateFilePath": None,
        "coverageReportPath": None, "config": {"seeds": ["https://example.org/"]}, "lastStats": {},
    }]})  # fmt: skip

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
    config: dict[str, Any] = Field(description="Of the job and its source together, in document 000's shape.")
    last_stats: dict[str, Any] = Field(description="What its newest run counted last.")


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

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": 4194307, "url": "https://example.org/", "captureTimestamp": "2026-11-15T12:15:04Z", "statusCode": 200,
        "language": "en", "title": "Example",
    }]})  # fmt: skip

    id: int
    url: str
    capture_timestamp: datetime
    status_code: int | None
    language: str | None
    title: str | None
