"""Annual editions as readers and operators see them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.changes.site_comparison import SiteKind
from holdfast.db.models import Edition, Source
from holdfast.editions.edition_view import Acceptance, EditionView, Shard, ended_as
from holdfast.records import Operator, Public, from_row, record


@record
class EditionRecord:
    """How much of a source was captured in a year, in numbers."""

    edition_id: Public[int]
    source_code: Public[str]
    source_name: Public[str]
    year: Public[int]
    status: Public[str]
    search_ready: Public[bool]
    research_ready: Public[bool]
    intended_url_count: Public[int]
    captured_url_count: Public[int]
    failed_url_count: Public[int]
    missing_url_count: Public[int]
    excluded_url_count: Public[int]
    fallback_url_count: Public[int]
    shard_count: Public[int]
    indexed_shard_count: Public[int]
    needs_review_shard_count: Public[int]
    backend_counts: Public[dict[str, Any]]
    generated_at: Public[datetime | None]
    frozen_at: Public[datetime | None]
    frozen_digest: Public[str | None]
    """Digest of the frozen list; citations contain it."""

    @property
    def is_frozen(self) -> bool:
        """Whether its list of captures is frozen."""
        return self.frozen_at is not None


@record
class Coverage(EditionRecord):
    """How much of a source was captured in a year."""

    coverage_summary: Public[dict[str, Any]]
    compared_years: Public[list[int]]
    """Earlier editions that it was compared with page by page, the latest first."""


@record
class AdminEdition(EditionRecord):
    """An edition, with the paths of its files below the data directory."""

    coverage_summary: Operator[dict[str, Any]]
    target_ledger_path: Operator[str | None]
    capture_manifest_path: Operator[str | None]
    coverage_report_json_path: Operator[str | None]
    coverage_report_md_path: Operator[str | None]
    frozen_count: Operator[int | None]
    frozen_path: Operator[str | None]
    created_at: Operator[datetime]


@record
class AdminEditionList:
    """A page of editions."""

    items: Operator[list[AdminEdition]]
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]


@record
class EditionShard:
    """One job of an edition."""

    job_id: Operator[int]
    name: Operator[str]
    status: Operator[str]
    """As in /api/admin/jobs."""
    shard_key: Operator[str]
    shard_kind: Operator[str]
    acceptance_state: Operator[str | None]
    acceptance_reason: Operator[str | None]
    capture_backend: Operator[str]
    indexed_page_count: Operator[int]
    pages_crawled: Operator[int]
    pages_total: Operator[int]
    pages_failed: Operator[int]
    retry_count: Operator[int]
    executions: Operator[list[int]]
    ended: Operator[str | None]
    """How its last run ended."""
    shortfalls: Operator[dict[str, Any]]
    falls_short: Operator[bool]
    """Whether its gap must be accepted before the edition is ready for research."""


@record
class AdminEditionDetail(AdminEdition):
    """An edition with its shards."""

    shards: Operator[list[EditionShard]]
    missing_seeds: Operator[list[dict[str, Any]]]
    """Seeds that were not captured, with the reason."""


@record
class CoverageAddress:
    """The outcome of one intended address."""

    url: Public[str]
    origin: Public[str]
    """seed, sitemap, feed, link or crawler."""
    outcome: Public[str]
    """captured, failed, robots, excluded, over_limit or not_reached."""
    reason: Public[str]
    detail: Public[str]
    http_status: Public[str]
    via: Public[str]
    """The page where it was found."""
    redirected_to: Public[str]
    snapshot_id: Public[int | None]


@record
class EditionDifference:
    """The change of one page from an earlier edition to a later one."""

    type: Public[SiteKind]
    url: Public[str | None]
    """Its address, or the last one if it is gone; null if it was taken down."""
    from_url: Public[str | None]
    """Its earlier address, if it moved."""
    from_snapshot_id: Public[int | None]
    to_snapshot_id: Public[int | None]


def edition_record(edition: Edition, source: Source) -> EditionRecord:
    return from_row(EditionRecord, edition, **_named(edition, source))


def coverage_record(edition: Edition, source: Source, summary: dict[str, Any], years: list[int]) -> Coverage:
    return from_row(Coverage, edition, **_named(edition, source), coverage_summary=summary, compared_years=years)


def admin_edition(edition: Edition, source: Source) -> AdminEdition:
    return from_row(AdminEdition, edition, **_named(edition, source))


def edition_detail(view: EditionView) -> AdminEditionDetail:
    return from_row(
        AdminEditionDetail,
        view.edition,
        **_named(view.edition, view.source),
        shards=[shard_record(shard) for shard in view.shards],
        missing_seeds=view.edition.coverage_summary.get("missing_seeds", []),
    )


def _named(edition: Edition, source: Source) -> dict[str, Any]:
    return {"edition_id": edition.id, "source_code": source.code, "source_name": source.name}


def shard_record(shard: Shard) -> EditionShard:
    latest = shard.runs[-1] if shard.runs else None
    return EditionShard(
        job_id=shard.job.id,
        name=shard.name,
        status=shard.status,
        shard_key=shard.key,
        shard_kind=shard.kind,
        acceptance_state=Acceptance.NEEDS_REVIEW if shard.state.needs_review else shard.job.acceptance_state,
        acceptance_reason=shard.reason,
        capture_backend=shard.backend,
        indexed_page_count=sum(run.items_indexed for run in shard.runs),
        pages_crawled=latest.items_crawled if latest else 0,
        pages_total=latest.items_total if latest else 0,
        pages_failed=latest.items_failed if latest else 0,
        retry_count=shard.job.current_retry_count,
        executions=[run.id for run in shard.runs],
        ended=ended_as(latest) if latest else None,
        shortfalls=latest.shortfalls if latest else {},
        falls_short=shard.state.falls_short,
    )


def coverage_address(row: Mapping[str, str]) -> CoverageAddress:
    named = ("url", "origin", "outcome", "reason", "detail", "http_status", "via", "redirected_to")
    snapshot_id = _number(row.get("snapshot_id", ""))
    return CoverageAddress(**{name: row.get(name, "") for name in named}, snapshot_id=snapshot_id)


def edition_difference(row: Mapping[str, str], *, is_taken_down: bool) -> EditionDifference:
    """Return a row of a comparison; a page that was taken down has no address."""
    if is_taken_down:
        return EditionDifference(
            type=SiteKind.WITHDRAWN, url=None, from_url=None, from_snapshot_id=None, to_snapshot_id=None
        )
    return EditionDifference(
        type=SiteKind(row["kind"]),
        url=row["url"],
        from_url=row["from_url"] or None,
        from_snapshot_id=_number(row["from_snapshot_id"]),
        to_snapshot_id=_number(row["to_snapshot_id"]),
    )


def _number(cell: str) -> int | None:
    return int(cell) if cell.isdecimal() else None
