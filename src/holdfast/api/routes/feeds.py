"""`/api/admin/feeds`: feeds and sitemaps that are asked for what is new; a worker does the asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query, Response
from sqlalchemy.orm import Session

from holdfast.api.dependencies import ArchiveDep, SessionDep, SourceCode, source_id_of, source_of
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWrite, AdminWriteDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.feeds import (
    FeedDetail,
    FeedItemShown,
    FeedKind,
    FeedPolled,
    FeedPollForm,
    FeedShown,
    NewFeedForm,
    feed_fields,
)
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.clock import Clock
from holdfast.db.models import Feed
from holdfast.feeds import queries, registry
from holdfast.jobs.administration.source_jobs import follow_feeds, make_feeds_due
from holdfast.sources.queries import source_by_id
from holdfast.wiring.archive import Archive

router = LateRouter(prefix="/api/admin/feeds", tags=["feeds"])
FeedId = Annotated[RowId, Path(description="A feed's id.", examples=[3])]
_CHANGED = answers(403, 404, 409, 422, 503)
_SENT = answers(403, 404, 409, 413, 415, 422, 503)
_ITEMS = 20


@router.get("", responses=answers(403, 404, 422, 503))
def list_feeds(
    session: SessionDep,
    source: SourceCode = None,
    kind: Annotated[FeedKind | None, Query(description="Only these.")] = None,
    disabled: Annotated[bool | None, Query(description="Only those that are, or are not.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Listed[FeedShown]:
    """Return feeds by id, each with how it is doing."""
    place = decode_cursor(cursor, int)
    wanted = queries.FeedFilter(
        source_id=source_id_of(session, source),
        disabled=disabled,
        kind=kind,
        after=int(place[0]) if place else 0,
        limit=limit + 1,
    )
    rows = queries.listed(session, wanted)
    after = encode_cursor(rows[limit - 1][0].id) if len(rows) > limit else None
    return Listed(items=[FeedShown.of(feed, code) for feed, code in rows[:limit]], next=after, limit=limit)


@router.post("", status_code=201, responses=_SENT)
def add_feed(archive: ArchiveDep, admin: AdminWriteDep, response: Response, form: NewFeedForm) -> FeedShown:
    """Let a source have a feed or a sitemap that is not found by itself; it is polled if the source's feeds are on."""
    settings = archive.settings.feeds
    with admin.write() as session:
        owner = source_of(session, form.source)
        clock = admin.job_service.clock
        row = registry.add(session, clock, owner, form.url, kind=form.kind.value, limit=settings.per_source)
        follow_feeds(session, admin.job_service.actions, owner, settings)
        session.flush()
        response.headers["Location"] = f"/api/admin/feeds/{row.id}"
        return FeedShown.of(row, owner.code)


@router.post("/poll", status_code=202, responses=_SENT)
def poll_feeds(archive: ArchiveDep, admin: AdminWriteDep, form: FeedPollForm) -> FeedPolled:
    """Have a source's feeds polled at once by the next worker; 409 if they are off."""
    return _soon(archive, admin, form.source, search=False)


@router.post("/discover", status_code=202, responses=_SENT)
def discover_feeds(archive: ArchiveDep, admin: AdminWriteDep, form: FeedPollForm) -> FeedPolled:
    """Have a source searched for feeds and sitemaps at once by the next worker; 409 if its feeds are off."""
    return _soon(archive, admin, form.source, search=True)


def _soon(archive: Archive, admin: AdminWrite, code: str, *, search: bool) -> FeedPolled:
    service = admin.job_service
    with admin.write() as session:
        source = source_of(session, code)
        state = make_feeds_due(session, service.clock, service.actions, source, archive.settings.feeds, search=search)
        return FeedPolled(source=source.code, job_state=state)


@router.get("/{id}", responses=answers(403, 404, 422, 503))
def get_feed(session: SessionDep, id: FeedId) -> FeedDetail:
    """Return one feed with the items that it named last."""
    row = registry.find(session, id)
    items = queries.items_of(session, source_id=row.source_id, feed_id=row.id, limit=_ITEMS)
    return FeedDetail(**feed_fields(row, _code(session, row)), items=[FeedItemShown.of(item) for item in items])


def _code(session: Session, row: Feed) -> str:
    owner = source_by_id(session, row.source_id)
    return owner.code if owner is not None else ""


@router.post("/{id}/enable", responses=_CHANGED)
def enable_feed(admin: AdminWriteDep, id: FeedId) -> FeedShown:
    """Poll a feed again that was disabled, with nothing against it."""
    return _changed(admin, id, registry.enable)


@router.post("/{id}/disable", responses=_CHANGED)
def disable_feed(admin: AdminWriteDep, id: FeedId) -> FeedShown:
    """Poll a feed no more, until it is enabled."""
    return _changed(admin, id, registry.disable)


def _changed(admin: AdminWrite, feed_id: int, action: Callable[[Session, Clock, int], Feed]) -> FeedShown:
    with admin.write() as session:
        row = action(session, admin.job_service.clock, feed_id)
        return FeedShown.of(row, _code(session, row))


@router.delete("/{id}", status_code=204, responses=_CHANGED)
def remove_feed(admin: AdminWriteDep, id: FeedId) -> None:
    """Take a feed from its source. It comes back if it is found again; disable one that is not wanted."""
    with admin.write() as session:
        registry.remove(session, admin.job_service.clock, id)
