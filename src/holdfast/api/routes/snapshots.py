"""Captures: records, the history of a page, contents and packages of one capture; pages as crawls fetched them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple

from fastapi import Path, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response, StreamingResponse

from holdfast.api.dependencies import ArchiveDep, CountedYearsDep, HistoriesDep, SessionDep, demand_exports
from holdfast.api.heavy import Streamed, export, heavily
from holdfast.api.middleware.request_ids import FOR_MEMBERS
from holdfast.api.record_answers import record_response
from holdfast.api.routes.replay import origins_here
from holdfast.api.routing import LazyRouter, PrincipalDep, principal_of
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import ListCursor, ListLimit, decode_id, encode_cursor
from holdfast.auth.roles import Permission
from holdfast.clock import digits14, from_micros
from holdfast.crawl.signal_pages import PageStatus, SignalPageRow, SignalQuery, crawled_pages, find_pages, page_by_hash
from holdfast.db.models import Snapshot
from holdfast.errors import HoldfastError
from holdfast.exports.queries import file_keys
from holdfast.exports.selection import MOST_BYTES, pack_selection, rows_with_originals
from holdfast.index.capture_queries import SNAPSHOT_DETAIL, latest_of_page, origin_of
from holdfast.index.queries import StoredRecord, document_of, holding_of, open_stored, shown_text
from holdfast.jobs.imports import job_names
from holdfast.jobs.store import execution_name
from holdfast.parse.charset import decode_text
from holdfast.records import from_row
from holdfast.replay import finding, history
from holdfast.replay.address import Modifier, raw_path
from holdfast.replay.capabilities import MEMBERS_S
from holdfast.replay.finding import FoundCapture, NotCaptured
from holdfast.replay.history import HistoricCapture, PageHistory
from holdfast.replay.origins import ReplayOrigins, browse_url
from holdfast.replay.page_parts import captured_beside, page_parts
from holdfast.replay.records import (
    CaptureContent,
    CaptureRecord,
    CaptureView,
    Header,
    History,
    HistoryCapture,
    Keyword,
    LatestCapture,
    Neighbour,
    PageDetail,
    PageList,
    PageRecord,
    Parts,
    Provenance,
    Resolved,
    SnapshotDetail,
    YearCount,
)
from holdfast.replay.renderer import renderer_folder, renderer_path
from holdfast.replay.serving import CaptureLost
from holdfast.sources.queries import sources_by_id
from holdfast.storage.roots import stored_file
from holdfast.urls import parse, url_hash
from holdfast.warc.reader import DamagedWarc, read_warcinfo
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hidden_captures import hidden_addresses
from holdfast.withdrawals.viewers import viewer
from holdfast.withdrawals.visibility import members_source, no_snapshot, visibility_mark, visible_snapshot

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
        info = read_warcinfo(stored_file(archive.home, file.file_key))
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
        warc_file=file.file_key.name,
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


_LISTED = 500
_MAX_SOURCE_BYTES = 1024 * 1024
_MAX_TEXT_CHARS = 500_000
_TEXTUAL = ("text/", "json", "xml", "javascript", "ecmascript", "x-www-form-urlencoded")


@router.get("/api/history", Permission.READ, errors=(404,))
def page_history(
    session: SessionDep,
    counted_years: CountedYearsDep,
    histories: HistoriesDep,
    url: Annotated[str, Query(min_length=1, max_length=8192, examples=["https://example.org/"])],
    year: Annotated[int | None, Query(ge=1970, le=9999, description="The latest with captures if left out.")] = None,
    limit: ListLimit = _LISTED,
    cursor: ListCursor = None,
) -> History:
    """Return the history of a page: captures counted for every year, and one year with its days and captures.

    Each capture says whether its content differs from that of the previous capture.
    """
    at = max(0, decode_id(cursor) or 0)
    key = history.known_key(session, url)
    # The key names the viewer and the newest takedown, so that a takedown takes effect at once. All spellings and
    # years of an address share one count.
    seen = (key, visibility_mark(session), viewer())
    years, is_cut = counted = counted_years.cached(session, seen, lambda own: history.count_years(own, key))
    if not years:
        # The capture was hidden since the key was computed.
        raise NotCaptured(url)
    shown_year = max(years) if year is None else year

    def read(own: Session) -> PageHistory:
        return history.page_history(own, key, counted, year=shown_year)

    # A year without captures is fast to read, and must not evict slow ones from the cache.
    is_costly = is_cut or shown_year in years
    found = histories.cached(session, (*seen, shown_year), read) if is_costly else read(session)
    shown = found.captures[at : at + limit]
    more = at + limit < len(found.captures)
    return History(
        url=found.url or url,
        years=[YearCount(year=number, captures=count) for number, count in found.years.items()],
        year=found.year,
        days=found.days,
        is_cut=found.is_cut,
        items=[from_row(HistoryCapture, one) for one in shown],
        next=encode_cursor(at + limit) if more else None,
        limit=limit,
    )


@router.get("/api/snapshots/{id}/view", Permission.READ, errors=(404,))
def capture_view(request: Request, archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> CaptureView:
    """Return a capture with its replay URLs, its origin, and the captures and changes around it."""
    found = visible_snapshot(session, id)
    document = document_of(session, found)
    source = sources_by_id(session, [found.source_id])[found.source_id]
    change, previous_change, next_change = history.changes_around(session, found)
    around = finding.neighbours(session, found.url_key, found.captured_at, found.id)
    named = job_names(session, [found.execution_id]).get(found.execution_id)
    file_key = file_keys(session, [found.warc_file_id]).get(found.warc_file_id)
    public, shown = _origins(request, archive, session, found)
    digits = digits14(found.captured_at)
    return from_row(
        CaptureView,
        found,
        title=document.title if document else None,
        language=document.language if document else None,
        source_code=source.code,
        source_name=source.name,
        job_name=execution_name(source.code, found.execution_id, named),
        record_id=None if found.record_id is None else _record_name(found.record_id),
        warc_file=file_key.name if file_key is not None else "",
        change=change,
        frame_url=shown.memento(digits, Modifier.MAIN, found.url),
        frame_seconds=MEMBERS_S if shown.root else None,
        permalink=public.memento(digits, "", found.url),
        raw_url=shown.memento(digits, Modifier.RAW, found.url),
        renderer_url=_renderer_url(archive, shown, found),
        can_compare_live=archive.settings.api.compare_live or principal_of(request.scope).may(Permission.OPERATE),
        first=_neighbour(around.first),
        previous=_neighbour(around.previous),
        next=_neighbour(around.next),
        last=_neighbour(around.last),
        previous_change=_neighbour(previous_change),
        next_change=_neighbour(next_change),
    )


def _origins(
    request: Request, archive: Archive, session: Session, found: Snapshot
) -> tuple[ReplayOrigins, ReplayOrigins]:
    """Return the origins for citations, which are permanent, and for display now, with a capability if
    members-only.
    """
    origins = origins_here(request, archive)
    source_id = members_source(session, found.source_id, found.original_id)
    setattr(request.state, FOR_MEMBERS, source_id is not None)
    if source_id is None:
        return origins, origins
    # Citations name the application's host, which redirects members: a capability expires.
    return origins._replace(origin=origins.here), origins._replace(root=request.app.state.replay_keys.root(source_id))


def _renderer_url(archive: Archive, shown: ReplayOrigins, found: Snapshot) -> str | None:
    # Do not offer it for members' captures: all its replayed pages share one origin and its storage.
    if shown.root or renderer_folder(archive.settings) is None:
        return None
    return f"{shown.origin}{renderer_path(found.id)}"


def _record_name(record_id: str) -> str:
    # A bare UUID is stored without its prefix; a foreign archive may have named its records otherwise.
    return record_id if ":" in record_id else f"urn:uuid:{record_id}"


def _neighbour(one: FoundCapture | HistoricCapture | None) -> Neighbour | None:
    return None if one is None else from_row(Neighbour, one)


@contextmanager
def _opened(archive: Archive, session: Session, found: Snapshot) -> Iterator[StoredRecord]:
    """Yield the record of a capture; raise CaptureLost if it cannot be read."""
    try:
        with open_stored(session, archive.home, found) as stored:
            yield stored
    except DamagedWarc as exc:
        raise CaptureLost(found.url, str(exc)) from exc


@router.get("/api/snapshots/{id}/record", Permission.READ, errors=(404,))
def capture_record(archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> CaptureRecord:
    """Return the headers of a capture: those that the server sent, and those of its WARC record."""
    found = visible_snapshot(session, id)
    is_veiled = found.refers_to_url is not None and bool(hidden_addresses(session, [found.refers_to_url]))
    with _opened(archive, session, found) as stored:
        head = stored.head
        return CaptureRecord(
            snapshot_id=found.id,
            status_code=stored.status,
            reason="" if head is None else head.reason,
            headers=[] if head is None else [_header(*pair) for pair in head.headers],
            record_headers=[
                _header(*pair)
                for pair in stored.record.fields
                if not (is_veiled and pair[0].lower().startswith("warc-refers-to"))
            ],
        )


def _header(name: str, value: str) -> Header:
    # Bytes that are not UTF-8 are surrogates here, which JSON cannot represent.
    return Header(name=_whole(name), value=_whole(value).strip())


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class ContentForm(StrEnum):
    """The form of a capture's content: text or markup."""

    TEXT = "text"
    SOURCE = "source"


@router.get("/api/snapshots/{id}/content", Permission.READ, errors=(404,))
def capture_content(
    archive: ArchiveDep,
    session: SessionDep,
    id: SnapshotId,
    form: Annotated[ContentForm, Query(description="What the page says, or its markup.")] = ContentForm.TEXT,
) -> CaptureContent:
    """Return a page's text (at most 500,000 characters) or its markup as sent (at most 1 MiB)."""
    found = visible_snapshot(session, id)
    if form is ContentForm.SOURCE:
        return _source(archive, session, found)
    text = shown_text(session, found)
    return CaptureContent(
        snapshot_id=found.id,
        form="text",
        text=None if text is None else text[:_MAX_TEXT_CHARS],
        charset=None,
        is_cut=text is not None and len(text) > _MAX_TEXT_CHARS,
    )


def _source(archive: Archive, session: Session, found: Snapshot) -> CaptureContent:
    with _opened(archive, session, found) as stored:
        media_type = stored.media_type or ""
        is_text = any(word in media_type for word in _TEXTUAL)
        body = stored.content(_MAX_SOURCE_BYTES + 1) if is_text else b""
        declared = None if stored.body_head is None else stored.body_head.charset
    text, charset = decode_text(body[:_MAX_SOURCE_BYTES], declared) if is_text else (None, None)
    return CaptureContent(
        snapshot_id=found.id,
        form="source",
        text=None if text is None else _whole(text),
        charset=charset,
        is_cut=len(body) > _MAX_SOURCE_BYTES,
    )


@router.get("/api/snapshots/{id}/parts", Permission.READ, errors=(404,), response_model=Parts)
async def capture_parts(request: Request, archive: ArchiveDep, id: SnapshotId) -> Response:
    """Return the parts that a page needs, when each was captured, and which are missing."""

    def work() -> Response:
        # Use a thread for heavy work: this parses a page and looks up three hundred addresses.
        try:
            found = page_parts(archive.database, archive.home, id)
        except DamagedWarc as exc:
            raise CaptureLost(f"snapshot {id}", str(exc)) from exc
        return record_response(found)

    return await heavily(request, work)


@router.get("/api/snapshots/{id}/wacz", Permission.READ, errors=(404, 409), response_class=StreamingResponse)
async def capture_wacz(request: Request, archive: ArchiveDep, id: SnapshotId) -> Response:
    """Return a page with its parts as a WACZ 1.1.1 package: the captures that replay shows for it."""
    return await export(request, lambda: pack_capture(archive, id))


# Bytes that a package adds: its index, its list of pages, and the ZIP format.
_PACKAGING_BYTES = 1_000_000


def pack_capture(archive: Archive, snapshot_id: int, most_bytes: int = MOST_BYTES) -> Streamed:
    """Return a package of a page, its parts, and nearby captures of the same run, up to `most_bytes`.

    Raises NotFound, CaptureLost or SelectionTooLarge.
    """
    demand_exports(archive)
    try:
        found = page_parts(archive.database, archive.home, snapshot_id)
    except DamagedWarc as exc:
        raise CaptureLost(f"snapshot {snapshot_id}", str(exc)) from exc
    named = dict.fromkeys((snapshot_id, *(one.snapshot_id for one in found.parts if one.snapshot_id is not None)))
    with archive.database.read() as session:
        page = visible_snapshot(session, snapshot_id)
        left = most_bytes - _PACKAGING_BYTES - sum(row.length for row in rows_with_originals(session, named).values())
        ids = [*named, *captured_beside(session, snapshot_id, but=named, most_bytes=left)]
    title = f"{page.url[:500]}, {page.captured_at:%Y-%m-%d}"
    return stream_selection(archive, ids, title=title, name=f"capture-{snapshot_id}")


def stream_selection(archive: Archive, ids: Sequence[int], *, title: str, name: str) -> Streamed:
    package = pack_selection(archive.database, archive.home, ids, title=title, now=archive.clock.now())
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.wacz"',
        "Content-Length": str(package.size),
        "Cache-Control": "no-store",
    }
    return Streamed(package.read(), "application/wacz", headers)


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
