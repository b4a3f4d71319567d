"""Single captures: `/api/snapshot/{id}`, the newest of the same page, and the one that answers for an address."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

from fastapi import Path, Query, Request
from sqlalchemy.orm import Session

from holdfast.api import queries
from holdfast.api.capture_queries import crawled_pages, pages_by_hash
from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.errors import answers
from holdfast.api.late_routes import LateRouter
from holdfast.api.middleware.request_ids import FOR_MEMBERS
from holdfast.api.permissions import PrincipalDep
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.search import (
    Keyword,
    LatestCapture,
    PageDetail,
    PageList,
    PageSummary,
    Provenance,
    Resolved,
    SnapshotDetail,
)
from holdfast.auth.roles import Permission
from holdfast.clock import digits14
from holdfast.crawl.signal_pages import PageInFull, PageStatus, SignalPageRow, SignalQuery, find_pages, page_by_hash
from holdfast.errors import HoldfastError, NotFound
from holdfast.index.queries import document_of, holding_of
from holdfast.noise.queries import verdict_on
from holdfast.replay import finding
from holdfast.replay.address import raw_path
from holdfast.replay.origins import browse_url
from holdfast.urls import parse, url_hash
from holdfast.warc.reader import read_warcinfo
from holdfast.warc.roots import locate
from holdfast.withdrawals.visibility import members_source, visible_snapshot

router = LateRouter(tags=["snapshots"])
SnapshotId = Annotated[RowId, Path(description="A snapshot's id.")]


@router.get("/api/snapshot/{id}", responses=answers(404, 422, 503))
def snapshot_detail(request: Request, archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> SnapshotDetail:
    """Return one capture."""
    found = visible_snapshot(session, id)
    is_for_members = members_source(session, found) is not None
    setattr(request.state, FOR_MEMBERS, is_for_members)
    document = document_of(session, found)
    source = queries.sources_by_id(session, [found.source_id])[found.source_id]
    why = None if found.noise is None else verdict_on(session, found.id)
    return SnapshotDetail(
        id=found.id,
        title=document.title if document else None,
        source_code=source.code,
        source_name=source.name,
        language=document.language if document else None,
        capture_date=found.captured_at.date(),
        capture_timestamp=found.captured_at,
        job_id=found.execution_id,
        original_url=found.url,
        snippet=document.snippet if document else None,
        raw_snapshot_url=raw_path(found.id),
        browse_url=browse_url(archive.settings, found, for_members=is_for_members),
        capture_backend=found.backend,
        capture_fidelity=found.fidelity,
        mime_type=found.media_type,
        status_code=found.status,
        author=document.author if document else None,
        published_at=document.published_at if document else None,
        modified_at=document.modified_at if document else None,
        keywords=(document.keywords or "").splitlines() if document else [],
        word_count=document.word_count if document else None,
        page_type=document.page_type if document else None,
        noise=found.noise,
        noise_evidence=None if why is None else why.evidence,
    )


# Of a run's configuration: nothing that could hold a secret, and no list of seeds, which may be a million.
_SETTINGS = (
    *("backend", "scope", "max_depth", "max_pages", "max_bytes", "max_time_s", "delay_s", "robots", "user_agent"),
    *("storage", "sitemaps", "requisites", "include", "exclude"),
)
# Other writers may name machines and people in their fields.
_INFO = ("software", "http-header-user-agent", "robots", "conformsto")
# Flags and names of people are for operators.
_OPERATORS = frozenset({"zimit_passthrough_args", "execution_policy", "operator"})


@router.get("/api/snapshots/{id}/provenance", responses=answers(404, 422, 503))
def provenance(
    request: Request, archive: ArchiveDep, session: SessionDep, principal: PrincipalDep, id: SnapshotId
) -> Provenance:
    """Return how a capture came about: its run and job, the program that wrote its record, and with which settings.

    Only operators see flags of zimit and the name of the archive's operator.
    """
    shown = {*_SETTINGS, *_INFO} | (_OPERATORS if principal.may(Permission.OPERATE) else set())
    found = visible_snapshot(session, id)
    setattr(request.state, FOR_MEMBERS, members_source(session, found) is not None)
    file, execution, job = queries.origin_of(session, found)
    try:
        info = read_warcinfo(locate(archive.home, file.path))
    # A file that is away or damaged leaves the rest of the answer true.
    except HoldfastError:
        info = {}
    return Provenance(
        snapshot_id=found.id,
        execution_id=execution.id,
        job_id=job.id,
        job_name=job.name,
        **{name: getattr(job, name) for name in ("edition_id", "shard_key", "shard_kind")},
        **{name: getattr(found, name) for name in ("warc_offset", "warc_length")},
        capture_backend=found.backend,
        capture_fidelity=found.fidelity,
        worker_id=file.owner_id,
        settings={name: value for name, value in execution.config.items() if name in shown and value is not None},
        warc_info={name: value for name, value in info.items() if name in shown},
        warc_file=PurePath(file.path).name,
        warc_record_id=found.record_id and f"<urn:uuid:{found.record_id}>",
        raw_snapshot_path=raw_path(found.id),
    )


@router.get("/api/snapshots/{id}/latest", responses=answers(404, 422, 503))
def latest(
    session: SessionDep,
    id: SnapshotId,
    require_html: Annotated[bool, Query(alias="requireHtml", description="Only captures that are HTML.")] = False,
) -> LatestCapture:
    """Return the newest good capture of the same page."""
    asked = visible_snapshot(session, id)
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
    job_id: Annotated[RowId | None, Query(alias="jobId", description="Only this crawl.")] = None,
) -> Resolved:
    """Return the capture that answers for an address and a moment: the page, its www and scheme twins, its group."""
    digits = timestamp or digits14(archive.clock.now())
    within = None if job_id is None else holding_of(session, job_id)
    # A crawl without a file has captured nothing; without the range, all crawls would answer for it.
    found = None if job_id is not None and within is None else finding.resolve(session, url, digits, within=within)
    if found is None:
        return Resolved(found=False)
    return Resolved(
        found=True,
        snapshot_id=found.id,
        capture_timestamp=found.captured_at,
        mime_type=found.media_type,
        resolved_url=found.url,
        browse_url=browse_url(archive.settings, found, for_members=members_source(session, found) is not None),
    )


pages_router = LateRouter(tags=["pages"])
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


@pages_router.get("/api/pages", responses=answers(403, 422, 503))
def list_pages(
    session: SessionDep,
    limit: Limit = 20,
    offset: Offset = 0,
    domain: Annotated[str | None, Query(max_length=255, description=DOMAIN)] = None,
    search: Search = "",
    status: OfStatus = None,
) -> PageList:
    """Return pages that were fetched or failed, the newest first; with `search`, those that have the words."""
    return _listed(session, search, SignalQuery(domain=domain or None, limit=limit, offset=offset), status)


@pages_router.get("/api/pages/domain/{domain}", responses=answers(403, 422, 503))
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


@pages_router.get("/api/pages/{urlHash}", responses=answers(403, 404, 422, 503))
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
    found = _page(session, url_hash_text)
    return PageDetail(
        **_shown(found.page).model_dump(),
        keywords=[Keyword(word=word, count=count) for word, count in found.words],
        links=list(found.links),
    )


def _page(session: Session, digest: str) -> PageInFull:
    try:
        return page_by_hash(session, digest)
    except NotFound:
        number = int.from_bytes(bytes.fromhex(digest[:16]), "big", signed=True)
        for row in pages_by_hash(session, number):
            # The database keeps 64 bits; the whole digest, where it was given, must fit, too.
            if len(digest) == 16 or url_hash(parse(row.url).normalised) == digest:
                return PageInFull(page=row, words=(), links=())
        raise


def _listed(session: SessionDep, search: str, question: SignalQuery, status: PageStatus | None = None) -> PageList:
    # No domain has one, and PostgreSQL takes none.
    if "\x00" in (question.domain or ""):
        return PageList(pages=[], total=0, limit=question.limit, offset=question.offset)
    if not search.strip():
        window = crawled_pages(
            session, domain=question.domain, status=status, limit=question.limit, offset=question.offset
        )
        return PageList(
            pages=[_shown(row) for row in window.pages],
            total=window.total,
            limit=question.limit,
            offset=question.offset,
        )
    found = find_pages(session, search, question)
    return PageList(
        pages=[_shown(row) for row in found.pages], total=found.total, limit=question.limit, offset=question.offset
    )


def _shown(row: SignalPageRow) -> PageSummary:
    return PageSummary(
        id=row.page_id,
        url=row.url,
        url_hash=url_hash(parse(row.url).normalised),
        domain=row.domain,
        source_code=row.source,
        status_code=row.status_code,
        content_type=row.media_type,
        content_hash=row.content_hash,
        title=row.title,
        description=row.description,
        language=row.language,
        word_count=row.word_count,
        links_count=row.links_count,
        crawled_at=row.fetched_at,
        status=row.status.value,
        content_length=row.content_length,
        crawl_duration_ms=row.duration_ms,
        error_message=row.error,
    )
