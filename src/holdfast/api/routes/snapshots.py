"""Single captures: `/api/snapshot/{id}`, the newest of the same page, and the one that answers for an address."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from sqlalchemy.orm import Session

from holdfast.api import queries
from holdfast.api.addresses import browse_url, raw_url
from holdfast.api.deps import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.roles import PUBLIC
from holdfast.api.schemas.snapshots import LatestCapture, Resolved, SnapshotDetail
from holdfast.clock import digits14
from holdfast.db.models import Snapshot
from holdfast.errors import UrlRefused
from holdfast.index.queries import document_of, holding_of, snapshot
from holdfast.replay.finding import NotCaptured, candidates
from holdfast.replay.moments import earliest
from holdfast.urls import hash64, parse

router = APIRouter(tags=["snapshots"], dependencies=[PUBLIC])
SnapshotId = Annotated[int, Path(description="A snapshot's id.", ge=0, lt=1 << 63)]


@router.get("/api/snapshot/{id}", responses=answers(404, 422, 503))
def snapshot_detail(archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> SnapshotDetail:
    """Return one capture (HA-056)."""
    found = snapshot(session, id)
    document = document_of(session, found)
    source = queries.source_codes(session, [found.source_id])[found.source_id]
    return SnapshotDetail(
        id=found.id, title=document.title if document else None, source_code=source.code, source_name=source.name,
        language=document.language if document else None, capture_date=found.captured_at.date(),
        capture_timestamp=found.captured_at, job_id=found.execution_id, original_url=found.url,
        snippet=document.snippet if document else None, raw_snapshot_url=raw_url(found.id),
        browse_url=browse_url(archive.settings, url=found.url, captured_at=found.captured_at, snapshot_id=found.id),
        capture_backend=found.backend, capture_fidelity=found.fidelity, mime_type=found.media_type,
        status_code=found.status,
    )  # fmt: skip


@router.get("/api/snapshots/{id}/latest", responses=answers(404, 422, 503))
def latest(
    session: SessionDep,
    id: SnapshotId,
    require_html: Annotated[bool, Query(alias="requireHtml", description="Only captures that are HTML.")] = False,
) -> LatestCapture:
    """Return the newest good capture of the same page."""
    asked = snapshot(session, id)
    found = queries.latest_of_page(session, asked.url_hash, html=require_html)
    if found is None:
        return LatestCapture(found=False)
    return LatestCapture(
        found=True, snapshot_id=found.id, capture_timestamp=found.captured_at, mime_type=found.media_type
    )


@router.get("/api/replay/resolve", responses=answers(422, 503))
def resolve(
    archive: ArchiveDep,
    session: SessionDep,
    url: Annotated[str, Query(min_length=1, max_length=8192, examples=["http://example.org/"])],
    timestamp: Annotated[
        str | None, Query(pattern=r"^[0-9]{14}$", description="14 digits, UTC; now if left out.")
    ] = None,
    job_id: Annotated[int | None, Query(alias="jobId", ge=0, lt=1 << 63, description="Only this crawl.")] = None,
) -> Resolved:
    """Return the capture that answers for an address and a moment: the page, its www and scheme twins, its group."""
    digits = timestamp or digits14(archive.clock.now())
    found = _resolve(session, url, digits, job_id)
    if found is None:
        return Resolved(found=False)
    return Resolved(
        found=True, snapshot_id=found.id, capture_timestamp=found.captured_at, mime_type=found.media_type,
        resolved_url=found.url,
        browse_url=browse_url(archive.settings, url=found.url, captured_at=found.captured_at, snapshot_id=found.id),
    )  # fmt: skip


def _resolve(session: Session, url: str, digits: str, job_id: int | None) -> Snapshot | None:
    within = None if job_id is None else holding_of(session, job_id)
    if job_id is not None and within is None:
        return None
    try:
        ranked = candidates(session, url, digits, within=within)
    except NotCaptured:
        ranked = []
    rows = queries.snapshots_by_id(session, [sighting.id for sighting in ranked])
    best = next((rows[sighting.id] for sighting in ranked if sighting.id in rows), None)
    return best or queries.near_in_groups(session, _groups(url), earliest(digits), within)


def _groups(url: str) -> list[int]:
    """Return the hashes of the groups that an address may stand for: both schemes, with and without www."""
    try:
        parsed = parse(url)
    except UrlRefused:
        return []
    bare = parsed.group.partition("://")[2].removeprefix("www.")
    return [hash64(f"{scheme}://{www}{bare}") for scheme in ("https", "http") for www in ("", "www.")]
