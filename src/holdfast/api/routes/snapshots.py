"""Single captures: `/api/snapshot/{id}`, the newest of the same page, and the best match for a URL and time."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePath
from typing import Annotated, NamedTuple

from fastapi import Path, Query, Request

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.middleware.request_ids import FOR_MEMBERS
from holdfast.api.routing import LazyRouter, PrincipalDep
from holdfast.api.schemas.base import RowId
from holdfast.auth.roles import Permission
from holdfast.clock import digits14, from_micros
from holdfast.crawl.signal_pages import PageStatus, SignalPageRow, SignalQuery, crawled_pages, find_pages, page_by_hash
from holdfast.errors import HoldfastError
from holdfast.index.capture_queries import SNAPSHOT_DETAIL, latest_of_page, origin_of
from holdfast.index.queries import holding_of
from holdfast.records import from_row
from holdfast.replay import finding
from holdfast.replay.address import raw_path
from holdfast.replay.origins import browse_url
from holdfast.replay.records import (
    Keyword,
    LatestCapture,
    PageDetail,
    PageList,
    PageRecord,
    Provenance,
    Resolved,
    SnapshotDetail,
)
from holdfast.urls import parse, url_hash
from holdfast.warc.reader import read_warcinfo
from holdfast.warc.roots import locate
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.visibility import members_source, no_snapshot, visible_snapshot

router = LazyRouter(tags=["snapshots"])
SnapshotId = Annotated[RowId, Path(description="A snapshot's id.")]


class _Located(NamedTuple):
    id: int
    url: str
    captured_at: datetime


@router.get("/api/snapshot/{id}", Permission.READ, errors=(404,))
def snapshot_detail(request: Request, id: SnapshotId) -> SnapshotDetail:
    """Return one capture."""
    archive: Archive = request.app.state.archive
    with archive.database.raw_reads.read() as (tx, dialect):
        found = SNAPSHOT_DETAIL.rows(tx, dialect, snapshot_id=id)
    if not found:
        raise no_snapshot(id)
    is_for_members, *values = found[0]
    row = dict(zip(SNAPSHOT_DETAIL.names[1:], values, strict=True))
    setattr(request.state, FOR_MEMBERS, bool(is_for_members))
    captured_at = from_micros(row["captured_at"])
    given = {
        "id": id,
        "captured_at": captured_at,
        "capture_date": captured_at.date(),
        "raw_snapshot_url": raw_path(id),
        "browse_url": browse_url(
            archive.settings, _Located(id, row["url"], captured_at), for_members=bool(is_for_members)
        ),
        "published_at": None if row["published_at"] is None else from_micros(row["published_at"]),
        "modified_at": None if row["modified_at"] is None else from_micros(row["modified_at"]),
        "keywords": (row["keywords"] or "").splitlines(),
        "noise_evidence": None if row["noise"] is None else row["noise_evidence"],
    }
    return SnapshotDetail(**row | given)


# Fields of a run's configuration without secrets, and without the list of seeds, which may be a million.
_SETTINGS = (
    *("backend", "scope", "max_depth", "max_pages", "max_bytes", "max_time_s", "delay_s", "robots", "user_agent"),
    *("storage", "sitemaps", "requisites", "include", "exclude"),
)
# Other writers may name machines and people in their fields.
_INFO = ("software", "http-header-user-agent", "robots", "conformsto")
# Only operators see flags and names of people.
_OPERATORS = frozenset({"zimit_passthrough_args", "execution_policy", "operator"})


@router.get("/api/snapshots/{id}/provenance", Permission.READ, errors=(404,))
def provenance(
    request: Request, archive: ArchiveDep, session: SessionDep, principal: PrincipalDep, id: SnapshotId
) -> Provenance:
    """Return the provenance of a capture: its run and job, the program that wrote its record, and its settings.

    Only operators see flags of zimit and the name of the archive's operator.
    """
    shown = {*_SETTINGS, *_INFO} | (_OPERATORS if principal.may(Permission.OPERATE) else set())
    found = visible_snapshot(session, id)
    setattr(request.state, FOR_MEMBERS, members_source(session, found.source_id, found.original_id) is not None)
    file, execution, job = origin_of(session, found)
    try:
        info = read_warcinfo(locate(archive.home, file.path))
    # A missing or damaged file does not affect the rest of the response.
    except HoldfastError:
        info = {}
    return from_row(
        Provenance,
        found,
        snapshot_id=found.id,
        execution_id=execution.id,
        job_id=job.id,
        job_name=job.name,
        **{name: getattr(job, name) for name in ("edition_id", "shard_key", "shard_kind")},
        worker_id=file.owner_id,
        settings={name: value for name, value in execution.config.items() if name in shown and value is not None},
        warc_info={name: value for name, value in info.items() if name in shown},
        warc_file=PurePath(file.path).name,
        warc_record_id=found.record_id and f"<urn:uuid:{found.record_id}>",
        raw_snapshot_path=raw_path(found.id),
    )


@router.get("/api/snapshots/{id}/latest", Permission.READ, errors=(404,))
def latest(
    session: SessionDep,
    id: SnapshotId,
    require_html: Annotated[bool, Query(alias="requireHtml", description="Only captures that are HTML.")] = False,
) -> LatestCapture:
    """Return the newest good capture of the same page."""
    asked = visible_snapshot(session, id)
    found = latest_of_page(session, asked.url_hash, html=require_html)
    if found is None:
        return LatestCapture(found=False)
    return from_row(LatestCapture, found, found=True)


@router.get("/api/replay/resolve", Permission.READ)
def resolve(
    archive: ArchiveDep,
    session: SessionDep,
    url: Annotated[str, Query(min_length=1, max_length=8192, examples=["http://example.org/"])],
    timestamp: Annotated[
        str | None, Query(pattern=r"^[0-9]{14}$", description="14 digits, UTC; now if left out.")
    ] = None,
    job_id: Annotated[RowId | None, Query(alias="jobId", description="Only this crawl.")] = None,
) -> Resolved:
    """Return the capture for a URL and time: of the page, of its www and scheme variants, or of its group."""
    digits = timestamp or digits14(archive.clock.now())
    within = None if job_id is None else holding_of(session, job_id)
    # A crawl without a file has captured nothing; without the range, captures of all crawls would match.
    found = None if job_id is not None and within is None else finding.resolve(session, url, digits, within=within)
    if found is None:
        return Resolved(found=False)
    for_members = members_source(session, found.source_id, found.original_id) is not None
    return from_row(
        Resolved,
        found,
        found=True,
        resolved_url=found.url,
        browse_url=browse_url(archive.settings, found, for_members=for_members),
    )


pages_router = LazyRouter(tags=["pages"])
Limit = Annotated[int, Query(ge=1, le=100, description="Pages to return.")]
Offset = Annotated[int, Query(ge=0, le=100_000, description="Pages to pass over.")]
Search = Annotated[
    str,
    Query(
        max_length=500,
        examples=["vaccine"],
        description="Words that a page must have all of, among pages of `signals` storage; others: /api/search.",
    ),
]
OfStatus = Annotated[
    PageStatus | None,
    Query(description="Only with this status, among the newest 100,000 pages; not with `search`."),
]
DOMAIN = "A host, with its port if that is neither 80 nor 443."


@pages_router.get("/api/pages", Permission.WATCH)
def list_pages(
    session: SessionDep,
    limit: Limit = 20,
    offset: Offset = 0,
    domain: Annotated[str | None, Query(max_length=255, description=DOMAIN)] = None,
    search: Search = "",
    status: OfStatus = None,
) -> PageList:
    """Return pages that were fetched or failed, newest first; with `search`, those that contain the words."""
    return _listed(session, search, SignalQuery(domain=domain or None, limit=limit, offset=offset), status)


@pages_router.get("/api/pages/domain/{domain}", Permission.WATCH)
def list_pages_of_domain(
    session: SessionDep,
    domain: Annotated[str, Path(max_length=255, description=DOMAIN, examples=["example.org"])],
    limit: Limit = 20,
    offset: Offset = 0,
    search: Search = "",
    status: OfStatus = None,
) -> PageList:
    """Return the pages of one domain."""
    return _listed(session, search, SignalQuery(domain=domain, limit=limit, offset=offset), status)


@pages_router.get("/api/pages/{urlHash}", Permission.WATCH, errors=(404,))
def page_detail(
    session: SessionDep,
    url_hash_text: Annotated[
        str,
        Path(
            alias="urlHash",
            pattern="^[0-9a-f]{16}(?:[0-9a-f]{48})?$",
            examples=["0123456789abcdef"],
            description="The SHA-256 of the normalised address in hex, or its first 16 digits.",
        ),
    ],
) -> PageDetail:
    """Return one page, with its keywords and links if its storage is `signals`."""
    found = page_by_hash(session, url_hash_text)
    return from_row(
        PageDetail,
        found.page,
        url_hash=url_hash(parse(found.page.url).normalised),
        keywords=[Keyword(word=word, count=count) for word, count in found.words],
        links=list(found.links),
    )


def _listed(session: SessionDep, search: str, question: SignalQuery, status: PageStatus | None = None) -> PageList:
    # No domain has a NUL character, and PostgreSQL rejects it.
    if "\x00" in (question.domain or ""):
        return PageList(pages=[], total=0, limit=question.limit, offset=question.offset)
    if search.strip():
        rows, total = find_pages(session, search, question)
    else:
        rows, total = crawled_pages(
            session, domain=question.domain, status=status, limit=question.limit, offset=question.offset
        )
    return PageList(pages=[page_record(row) for row in rows], total=total, limit=question.limit, offset=question.offset)


def page_record(row: SignalPageRow) -> PageRecord:
    return from_row(PageRecord, row, url_hash=url_hash(parse(row.url).normalised))
