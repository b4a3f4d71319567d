"""`/api/admin/annual-editions`: editions with the inner life of their shards, and gaps that somebody accepts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator

from holdfast import audit
from holdfast.api.deps import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.hands import HandDep
from holdfast.api.roles import ADMIN
from holdfast.api.schemas.editions import AdminEdition, AdminEditionDetail, AdminEditionList, EditionShard
from holdfast.api.schemas.forms import checked_text
from holdfast.db.models import Edition, Source
from holdfast.editions import queries
from holdfast.editions.acceptance import LEAST_CHARS, MOST_CHARS, accept_gap
from holdfast.editions.composition import shard_object
from holdfast.editions.volume import Volume, read_volume

router = APIRouter(prefix="/api/admin/annual-editions", tags=["admin"], dependencies=[ADMIN])
_MAX_ID = (1 << 63) - 1
EditionId = Annotated[int, Path(ge=0, le=_MAX_ID, description="An edition's id.", examples=[1])]
JobId = Annotated[int, Path(ge=0, le=_MAX_ID, description="The job of a shard.", examples=[1])]
Reason = Annotated[
    str,
    Query(min_length=LEAST_CHARS, max_length=MOST_CHARS, description="Why the gap is accepted.", examples=["closed"]),
    AfterValidator(checked_text),
]


@router.get("", responses=answers(403, 422, 503))
def annual_editions(
    session: SessionDep,
    source: Annotated[
        str | None, Query(description="A source's code.", max_length=64, pattern="^[a-z0-9-]*$", examples=["example"])
    ] = None,
    year: Annotated[int | None, Query(ge=1970, le=9999, description="Of this year.", examples=[2026])] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Rows of a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Rows to leave out first.")] = 0,
) -> AdminEditionList:
    """Return editions, the latest year first."""
    rows, total = queries.listed(session, source=source, year=year, limit=limit, offset=offset)
    items = [AdminEdition(**_fields(edition, kept)) for edition, kept in rows]
    return AdminEditionList(items=items, total=total, limit=limit, offset=offset)


@router.get("/{id}", responses=answers(403, 404, 422, 503))
def annual_edition(session: SessionDep, id: EditionId) -> AdminEditionDetail:
    """Return one edition with its shards, as they stand now."""
    return _detail(read_volume(session, id))


@router.post("/jobs/{job_id}/accept-gap", responses=answers(403, 404, 409, 422, 503))
def accept_shard_gap(archive: ArchiveDep, hand: HandDep, job_id: JobId, reason: Reason) -> AdminEditionDetail:
    """Accept what a shard did not bring: it no longer blocks its edition, and the report says why, and who said so."""
    with audit.acting(hand.actor):
        return _detail(accept_gap(archive.database, archive.home, archive.clock, job_id=job_id, reason=reason))


def _detail(volume: Volume) -> AdminEditionDetail:
    return AdminEditionDetail(
        **_fields(volume.edition, volume.source),
        shards=[EditionShard(**shard_object(shard)) for shard in volume.shards],
        missing_seeds=volume.edition.coverage_summary.get("missing_seeds", []),
    )


_COLUMNS = (
    "year", "status", "search_ready", "research_ready", "intended_url_count", "captured_url_count",
    "failed_url_count", "missing_url_count", "excluded_url_count", "fallback_url_count", "shard_count",
    "indexed_shard_count", "needs_review_shard_count", "backend_counts", "coverage_summary", "generated_at",
    "target_ledger_path", "capture_manifest_path", "coverage_report_json_path", "coverage_report_md_path",
    "frozen_at", "frozen_digest", "frozen_count", "frozen_path", "created_at",
)  # fmt: skip


def _fields(edition: Edition, source: Source) -> dict[str, object]:
    shown = {name: getattr(edition, name) for name in _COLUMNS}
    return {"edition_id": edition.id, "source_code": source.code, "source_name": source.name, **shown}
