"""What changed: lists, comparisons, a feed, the history of a page, two crawls of a site held against each other."""

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
from holdfast.api.errors import answers
from holdfast.api.heavy import Streamed, heavily
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.snapshots import SnapshotId
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.changes import (
    ChangeEvent,
    ChangeList,
    Comparison,
    Timeline,
    TimelineSnapshot,
    diff_fields,
    side,
)
from holdfast.changes import listing
from holdfast.changes.listing import MAX_ITEMS, MAX_LISTED, ChangeScope, rss, span
from holdfast.changes.pairs import TextMode, WantedComparison, compare_captures
from holdfast.changes.site_comparison import SLICE, Cursor, PageDifference, SiteKind, site_slice
from holdfast.changes.verdict import ChangeType
from holdfast.errors import NotFound
from holdfast.index.queries import document_of
from holdfast.jobs.imports import job_names
from holdfast.jobs.store import execution_name
from holdfast.replay.origins import browse_url
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.visibility import members_among, visible_snapshot

router = LateRouter(tags=["changes"])
WithNoise = Annotated[NoiseShown, Query(description="`show`: also captures that show something else than their page.")]
OnlyType = Annotated[
    ChangeType | None, Query(alias="type", description="Only changes of this kind, among the newest ten thousand.")
]
# Captures that a timeline shows.
_HISTORY = 1000


@router.get("/api/changes", responses=answers(404, 422, 503))
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
    """Return changes, newest first; without any filter, those of the latest crawl of each source."""
    if not archive.settings.api.changes:
        return ChangeList(enabled=False, total=0, page=page, page_size=page_size, results=[])
    source_id = source_id_of(session, source)
    since, until = span(from_, to)
    scope = _narrowed(ChangeScope(source_id=source_id, since=since, until=until), noise, type_)
    scope = scope._replace(unchanged=include_unchanged or scope.unchanged)
    if job_id is not None:
        scope = scope._replace(execution_id=job_id)
    # Without a filter the newest of each source: a list of all changes says little.
    elif latest or (source is None and since is None and until is None):
        scope = scope._replace(latest=True)
    found = listing.page_of_events(session, scope, offset=(page - 1) * page_size, limit=page_size)
    return ChangeList(
        enabled=True,
        total=found.total,
        total_is_exact=found.is_exact,
        page=page,
        page_size=page_size,
        results=[ChangeEvent.of(event) for event in found.events],
    )


def _narrowed(scope: ChangeScope, noise: NoiseShown, type_: ChangeType | None) -> ChangeScope:
    """Return a scope with what a reader wants to see: a list and its feed go by the same words."""
    return scope._replace(
        noise=noise is NoiseShown.SHOW or type_ is ChangeType.NOISE,
        unchanged=type_ is ChangeType.UNCHANGED,
        type=type_,
    )


@router.get("/api/changes/compare", responses=answers(400, 404, 422, 503), response_model=Comparison)
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
    """Return what differs between two captures of a page, down to the words of changed lines."""
    _demand_enabled(archive)
    wanted = WantedComparison(to_snapshot_id, from_snapshot_id, mode)

    def work() -> Response:
        # Serialised on the thread for heavy work: a diff of 400 lines would hold up the event loop.
        return Response(_compared(archive, wanted).model_dump_json(by_alias=True), media_type="application/json")

    return await heavily(request, work)


def _compared(archive: Archive, wanted: WantedComparison) -> Comparison:
    found = compare_captures(archive.database, archive.home, archive.clock, wanted)
    with archive.database.read() as session:
        titles = {
            shown.id: document.title if (document := document_of(session, shown)) else None
            for shown in (found.earlier, found.later)
            if shown is not None
        }
        named = job_names(session, [one.execution_id for one in (found.earlier, found.later) if one is not None])
    names = {number: execution_name(found.event.source_code, number, name) for number, name in named.items()}
    earlier = found.earlier
    return Comparison(
        event=ChangeEvent.of(found.event),
        from_snapshot=None if earlier is None else side(earlier, titles[earlier.id], names[earlier.execution_id]),
        to_snapshot=side(found.later, titles[found.later.id], names[found.later.execution_id]),
        **diff_fields(found.hunks, found.touched, (wanted.mode, found.mode), truncated=found.truncated),
    )


@router.get("/api/changes/rss", responses={**answers(404, 422, 503), 304: {}}, response_class=Response)
def feed(
    request: Request,
    archive: ArchiveDep,
    session: SessionDep,
    source: SourceCode = None,
    noise: WithNoise = NoiseShown.HIDE,
    type_: OnlyType = None,
) -> Response:
    """Return the 50 newest changes as RSS, of one kind if that is named."""
    _demand_enabled(archive)
    scope = _narrowed(ChangeScope(source_id=source_id_of(session, source)), noise, type_)
    # Most feeds are full of the newest. What is rare, or behind many changes that the reader may not see, is looked for
    # as far back as in the list.
    for listed in (4 * MAX_ITEMS, MAX_LISTED):
        found = listing.page_of_events(session, scope, offset=0, limit=MAX_ITEMS, listed=listed)
        if len(found.events) == MAX_ITEMS:
            break
    title = "Changes in the archive" if not source else f"Changes of {source}"
    title += "" if type_ is None else f" ({type_.value})"
    body = rss(found.events, site=site_of(request, archive.settings), title=title)
    headers = {"ETag": f'"{sha256(body).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/rss+xml; charset=utf-8")


@router.get("/api/changes/site", responses=answers(404, 422, 503), response_class=StreamingResponse)
async def site(
    request: Request,
    archive: ArchiveDep,
    from_: Annotated[RowId, Query(alias="from", description="The earlier crawl's number.")],
    to: Annotated[RowId, Query(description="The later crawl's number.")],
    include_unchanged: Annotated[bool, Query(alias="includeUnchanged")] = False,
    limit: Annotated[int, Query(ge=1, le=20_000, description="Captures to look at in this request.")] = 5000,
    after: Annotated[str | None, Query(max_length=32, description="`next` of the answer before.")] = None,
) -> Response:
    """Hold two crawls against each other: a JSON object a page, then one with the counts and where to go on.

    Kinds are new, gone, changed, unchanged (only counted unless asked for), moved, error (nothing can be said of a
    page that the later crawl asked for in vain or did not get to), and withdrawn, without an address. Ask again with
    `after` until `next` is null; counts are of one answer.
    """
    _demand_enabled(archive)
    cursor = Cursor() if after is None else Cursor.parse(after)

    def work() -> Streamed:
        with archive.database.read() as session:
            # Before the first byte: two crawls that cannot be compared are refused with a status, not in the stream.
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
            found = site_slice(session, *executions, cursor, limit=most)
        for entry in found.entries:
            counts[entry.kind] += 1
            if unchanged or entry.kind != SiteKind.UNCHANGED:
                yield _line(_site_object(entry))
        cursor, limit = found.following, limit - most
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


@router.get("/api/snapshots/{id}/timeline", responses=answers(404, 422, 503))
def timeline(archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> Timeline:
    """Return the captures of the page that this one is of, oldest first; the newest thousand if there are more."""
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
        # By address, not by row: a group holds pages that differ in their query, which are not versions of each other.
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
