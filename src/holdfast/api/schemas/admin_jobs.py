"""Jobs in document 000's fields (1.7 of the facts)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from holdfast.api.schemas.base import Answer


class AdminJob(Answer):
    """A job and its newest run."""

    id: int
    execution_id: int | None = Field(description="Its newest run: `jobId` of the public routes.")
    source_code: str
    source_name: str
    name: str
    status: str
    retry_count: int
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    cleanup_status: str
    cleaned_at: datetime | None
    crawler_exit_code: int | None
    crawler_status: str | None
    warc_file_count: int
    warc_bytes_total: int
    indexed_page_count: int
    storage_scanned_at: datetime | None
    edition_id: int | None
    shard_key: str | None
    shard_kind: str | None
    acceptance_state: str | None


class AdminJobDetail(AdminJob):
    """The same with what it takes to look into it."""

    output_dir: str | None
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
    config: dict[str, Any]
    last_stats: dict[str, Any]


class AdminJobList(Answer):
    """A page of jobs, newest first."""

    items: list[AdminJob]
    total: int
    limit: int
    offset: int


class AdminCounts(Answer):
    """How many jobs there are of each status."""

    counts: dict[str, int] = Field(description="By status; one without jobs is left out.")


class AdminSnapshot(Answer):
    """A capture of a page that a job made."""

    id: int
    url: str
    capture_timestamp: datetime
    status_code: int | None
    language: str | None
    title: str | None
