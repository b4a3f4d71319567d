"""Changes: lists, comparisons, a feed, the history of a page, and comparisons of two crawls of a site."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from holdfast import cancellation
from holdfast.api.dependencies import (
    ArchiveDep,
    NoiseShown,
    SessionDep,
    Since,
    SourceCode,
    Until,
    site_of,
    source_id_of,
)
from holdfast.api.heavy import Streamed, heavily
from holdfast.api.record_answers import record_response
from holdfast.api.routes.snapshots import SnapshotId
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RowId
from holdfast.auth.roles import Permission
from holdfast.changes import listing
from holdfast.changes.listing import MAX_ITEMS, MAX_LISTED, ChangeScope, rss, span
from holdfast.changes.pairs import Compared, TextMode, compare_captures
from holdfast.changes.records import (
    ChangeList,
    ComparedSnapshot,
    Comparison,
    Timeline,
    TimelineSnapshot,
    compared_snapshot,
    text_diff,
)
from holdfast.changes.site_comparison import SLICE, Cursor, PageDifference, SiteKind, site_slice
from holdfast.changes.verdict import ChangeType
from holdfast.db.models import Snapshot
from holdfast.errors import NotFound
from holdfast.index.queries import document_of
from holdfast.jobs.imports import job_names
from holdfast.jobs.store import execution_name
from holdfast.records import from_row
from holdfast.replay.origins import browse_url
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.visibility import members_among, visible_snapshot

router = LazyRouter(tags=["changes"])
WithNoise = Annotated[NoiseShown, Query(description="`show`: also captures that show something else than their page.")]
OnlyType = Annotated[
    ChangeType | None, Query(alias="type", description="Only changes of this kind, among the newest ten thousand.")
]
# Number of captures that a timeline shows.
_HISTORY = 1000


@router.get("/api/changes", Permission.READ, errors=(404,))
def changes(
    archive: ArchiveDep,
    session: SessionDep,
    source: SourceCode = None,
    job_id: Annotated[RowId | None, Query(alias="jobId", description="Only this crawl.")] = None,
    latest: Annotated[bool, Query(description="Only the latest crawl of each source.")] = False,
    include_unchanged: Annotated[bool, Query(alias="includeUnchanged")] = False,
    noise: WithNoise = NoiseShown.HIDE,
    type_: OnlyType = None,
    from_: Since = None,
    to: Until = None,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=100)] = 20,
) -> ChangeList:
    """Return changes, newest first; without a filter, those of the latest crawl of each source."""
    if not archive.settings.api.changes:
        return ChangeList(enabled=False, total=0, total_is_exact=True, page=page, page_size=page_size, results=[])
    source_id = source_id_of(session, source)
    since, until = span(from_, to)
    scope = _narrowed(ChangeScope(source_id=source_id, since=since, until=until), noise, type_)
    scope = scope._replace(unchanged=include_unchanged or scope.unchanged)
    if job_id is not None:
        scope = scope._replace(execution_id=job_id)
    # Without a filter, show the newest crawl of each source: a list of all changes says little.
    elif latest or (source is None and since is None and until is None):
        scope = scope._replace(latest=True)
    events, total, is_exact = listing.page_of_events(session, scope, offset=(page - 1) * page_size, limit=page_size)
    return ChangeList(
        enabled=True, total=total, total_is_exact=is_exact, page=page, page_size=page_size, results=events
    )


def _narrowed(scope: ChangeScope, noise: NoiseShown, type_: ChangeType | None) -> ChangeScope:
    return scope._replace(
        noise=noise is NoiseShown.SHOW or type_ is ChangeType.NOISE,
        unchanged=type_ is ChangeType.UNCHANGED,
        type=type_,
    )


@router.get("/api/changes/compare", Permission.READ, errors=(404,), response_model=Comparison)
async def compare(
    request: Request,
    archive: ArchiveDep,
    to_snapshot_id: Annotated[RowId, Query(alias="toSnapshotId")],
    from_snapshot_id: Annotated[
        RowId | None, Query(alias="fromSnapshotId", description="The capture before it if left out.")
    ] = None,
    mode: Annotated[
        TextMode, Query(description="The page's content, or all that it shows: navigation and footer too.")
    ] = TextMode.MAIN,
) -> Response:
    """Return the differences between two captures of a page, down to the words of changed lines."""
    _demand_enabled(archive)

    def work() -> Response:
        # Encode it on the thread for heavy work: a diff of 400 lines would block the event loop.
        found = compare_captures(
            archive.database, archive.home, archive.clock, to_snapshot_id, from_snapshot_id, mode=mode
        )
        return record_response(_compared(archive, found, mode))

    return await heavily(request, work)


def _compared(archive: Archive, found: Compared, mode: TextMode) -> Comparison:
    diff = text_diff(found.hunks, found.touched, requested=mode.value, used=found.mode.value, truncated=found.truncated)
    with archive.database.read() as session:
        names = job_names(session, [one.execution_id for one in (found.earlier, found.later) if one is not None])

        def side(row: Snapshot) -> ComparedSnapshot:
            document = document_of(session, row)
            name = execution_name(found.event.source_code, row.execution_id, names[row.execution_id])
            return compared_snapshot(row, title=document.title if document else None, job_name=name)

        return from_row(
            Comparison,
            diff,
            event=found.event,
            from_snapshot=None if found.earlier is None else side(found.earlier),
            to_snapshot=side(found.later),
        )


@router.get("/api/changes/rss", Permission.READ, errors=(404,), responses={304: {}}, response_class=Response)
def feed(
    request: Request,
    archive: ArchiveDep,
    session: SessionDep,
    source: SourceCode = None,
    noise: WithNoise = NoiseShown.HIDE,
    type_: OnlyType = None,
) -> Response:
    """Return the 50 newest changes as RSS, optionally of one kind."""
    _demand_enabled(archive)
    scope = _narrowed(ChangeScope(source_id=source_id_of(session, source)), noise, type_)
    # Most feeds are full with the newest changes. Search for rare ones, or those behind many hidden ones, as far back
    # as in the list.
    for listed in (4 * MAX_ITEMS, MAX_LISTED):
        events, _, _ = listing.page_of_events(session, scope, offset=0, limit=MAX_ITEMS, listed=listed)
        if len(events) == MAX_ITEMS:
            break
    title = "Changes in the archive" if not source else f"Changes of {source}"
    title += "" if type_ is None else f" ({type_.value})"
    body = rss(events, site=site_of(request, archive.settings), title=title)
    headers = {"ETag": f'"{sha256(body).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/rss+xml; charset=utf-8")


@router.get("/api/changes/site", Permission.READ, errors=(404,), response_class=StreamingResponse)
async def site(
    request: Request,
    archive: ArchiveDep,
    from_: Annotated[RowId, Query(alias="from", description="The earlier crawl's number.")],
    to: Annotated[RowId, Query(description="The later crawl's number.")],
    include_unchanged: Annotated[bool, Query(alias="includeUnchanged")] = False,
    limit: Annotated[int, Query(ge=1, le=20_000, description="Captures to look at in this request.")] = 5000,
    after: Annotated[str | None, Query(max_length=32, description="`next` of the answer before.")] = None,
) -> Response:
    """Compare two crawls: one JSON object per page, then one with the counts and where to continue.

    Kinds are new, gone, changed, unchanged (counted; listed on request), moved, error (the later crawl failed to
    fetch the page or did not reach it), and withdrawn, without a URL. Repeat the request with
    `after` until `next` is null; counts are of one response.
    """
    _demand_enabled(archive)
    cursor = Cursor() if after is None else Cursor.parse(after)

    def work() -> Streamed:
        with archive.database.read() as session:
            # Check before the first byte: two crawls that cannot be compared get an error status, not a broken stream.
            site_slice(session, from_, to, cursor, limit=1)
        lines = _site_lines(archive, (from_, to), cursor, limit=limit, unchanged=include_unchanged)
        return Streamed(lines, "application/x-ndjson", {})

    return await heavily(request, work)


def _site_lines(
    archive: Archive, executions: tuple[int, int], cursor: Cursor | None, *, limit: int, unchanged: bool
) -> Iterator[bytes]:
    counts: Counter[str] = Counter({kind.value: 0 for kind in SiteKind})
    while cursor is not None and limit > 0:
        cancellation.check()
        most = min(limit, SLICE)
        with archive.database.read() as session:
            entries, cursor = site_slice(session, *executions, cursor, limit=most)
        for entry in entries:
            counts[entry.kind] += 1
            if unchanged or entry.kind != SiteKind.UNCHANGED:
                yield _line(_site_object(entry))
        limit -= most
    yield _line({"counts": dict(counts), "next": None if cursor is None else str(cursor)})


def _site_object(entry: PageDifference) -> dict[str, object]:
    return {
        "type": entry.kind,
        "url": entry.url,
        "fromUrl": entry.from_url,
        "fromSnapshotId": entry.from_snapshot_id,
        "toSnapshotId": entry.to_snapshot_id,
    }


def _line(content: dict[str, object]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


@router.get("/api/snapshots/{id}/timeline", Permission.READ, errors=(404,))
def timeline(archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> Timeline:
    """Return the captures of this capture's page, oldest first; only the newest thousand if there are more."""
    asked = visible_snapshot(session, id)
    if asked.group_id is None:
        raise NotFound(f"snapshot {id} is no page, so it has no timeline; see /cdx?url={asked.url}")
    source = listing.source(session, asked.source_id)
    rows = listing.timeline(session, asked.group_id, limit=_HISTORY + 1)
    is_cut = len(rows) > _HISTORY
    before: dict[int, int] = {}
    shown = []
    names = job_names(session, (row.execution_id for row in rows))
    led = members_among(session, (row.id for row in rows))
    for row in rows[-_HISTORY:]:
        shown.append(
            TimelineSnapshot(
                snapshot_id=row.id,
                capture_date=row.captured_at.date(),
                capture_timestamp=row.captured_at,
                job_id=row.execution_id,
                title=row.title,
                job_name=execution_name(source.code, row.execution_id, names.get(row.execution_id)),
                status_code=row.status,
                noise=row.noise,
                compare_from_snapshot_id=before.get(row.url_hash),
                browse_url=browse_url(archive.settings, row, for_members=row.id in led),
            )
        )
        # Compare by address, not by row: a group has pages that differ in their query, which are not versions of each
        # other.
        before[row.url_hash] = row.id
    return Timeline(
        source_code=source.code,
        source_name=source.name,
        truncated=is_cut,
        snapshots=shown,
        normalized_url_group=listing.group_url(session, asked.group_id),
    )


def _demand_enabled(archive: Archive) -> None:
    if not archive.settings.api.changes:
        raise NotFound("change tracking is not shown here; see HOLDFAST_API_CHANGES")
