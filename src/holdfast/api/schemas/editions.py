"""Annual editions as whoever runs the archive sees them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from holdfast.api.schemas.archive import Coverage
from holdfast.api.schemas.base import Answer


class AdminEdition(Coverage):
    """An edition, with where its files lie below the data directory."""

    target_ledger_path: str | None = Field(examples=["editions/hc/2026/target-ledger.jsonl"])
    capture_manifest_path: str | None
    coverage_report_json_path: str | None
    coverage_report_md_path: str | None
    frozen_at: datetime | None
    frozen_digest: str | None = Field(description="Digest of the frozen list; what a citation names.")
    frozen_count: int | None
    frozen_path: str | None
    created_at: datetime


class AdminEditionList(Answer):
    """A page of editions."""

    items: list[AdminEdition]
    total: int
    limit: int
    offset: int


class EditionShard(Answer):
    """One job of an edition."""

    job_id: int
    name: str
    status: str = Field(description="In the words of /api/admin/jobs.", examples=["indexed"])
    shard_key: str = Field(examples=["full-site"])
    shard_kind: str = Field(examples=["full_site"])
    acceptance_state: str | None = Field(examples=["pending"])
    acceptance_reason: str | None
    capture_backend: str = Field(examples=["native"])
    indexed_page_count: int
    pages_crawled: int
    pages_total: int
    pages_failed: int
    retry_count: int
    executions: list[int]


class AdminEditionDetail(AdminEdition):
    """An edition with its shards."""

    shards: list[EditionShard]
    missing_seeds: list[dict[str, Any]] = Field(description="Seeds that were not captured, with the reason.")
