"""`/api/admin/feeds`: feeds and sitemaps, which a worker polls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import Field
from sqlalchemy.orm import Session

from holdfast.api.dependencies import (
    AdminWrite,
    AdminWriteDep,
    ArchiveDep,
    SessionDep,
    SourceCode,
    source_id_of,
    source_of,
)
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm, RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.auth.roles import Permission
from holdfast.clock import Clock
from holdfast.db.models import Feed
from holdfast.feeds import queries, registry
from holdfast.feeds.records import FeedDetail, FeedKind, FeedRecord, FeedsDue, feed_detail, feed_record
from holdfast.jobs.administration.source_jobs import follow_feeds, make_feeds_due
from holdfast.sources.queries import source_by_id
from holdfast.wiring.archive import Archive

router = LazyRouter(prefix="/api/admin/feeds", tags=["feeds"])
FeedId = Annotated[RowId, Path(description="A feed's id.", examples=[3])]
_ITEMS = 20


@router.get("", Permission.WATCH, errors=(404,))
def list_feeds(
    session: SessionDep,
    source: SourceCode = None,
    kind: Annotated[FeedKind | None, Query(description="Only these.")] = None,
    disabled: Annotated[bool | None, Query(description="Only those that are, or are not.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Piece[FeedRecord]:
    """Return feeds by id, each with its state."""
    rows = queries.listed(
        session,
        source_id=source_id_of(session, source),
        disabled=disabled,
        kind=kind,
        after=decode_id(cursor) or 0,
        limit=limit + 1,
    )
    return piece_of(rows, limit, lambda row: feed_record(*row), lambda row: row[0].id)


class NewFeedForm(RequestForm, example={"source": "example", "url": "https://example.org/news.rss"}):
    """A feed that is not discovered automatically."""

    source: str = Field(min_length=1, max_length=64, description="The source's code.")
    url: str = Field(min_length=1, max_length=8192, description="Its address.")
    kind: FeedKind = Field("feed", description="feed or sitemap.")


@router.post("", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=201)
def add_feed(archive: ArchiveDep, admin: AdminWriteDep, response: Response, form: NewFeedForm) -> FeedRecord:
    """Add a feed or a sitemap that is not discovered automatically; it is polled while the source's feeds are on."""
    settings, limits = archive.settings.feeds, archive.settings.timings
    with admin.write() as session:
        owner = source_of(session, form.source)
        clock = admin.clock
        row = registry.add(session, clock, owner, form.url, kind=form.kind, limit=limits.feeds_per_source)
        follow_feeds(session, admin.actions, owner, settings)
        session.flush()
        response.headers["Location"] = f"/api/admin/feeds/{row.id}"
        return feed_record(row, owner.code)


class FeedPollForm(RequestForm, example={"source": "example"}):
    """The source whose feeds are polled."""

    source: str = Field(min_length=1, max_length=64, description="The source's code.")


@router.post("/poll", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def poll_feeds(archive: ArchiveDep, admin: AdminWriteDep, form: FeedPollForm) -> FeedsDue:
    """Let the next worker poll a source's feeds now; 409 if they are off."""
    return _soon(archive, admin, form.source, search=False)


@router.post("/discover", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def discover_feeds(archive: ArchiveDep, admin: AdminWriteDep, form: FeedPollForm) -> FeedsDue:
    """Let the next worker search a source for feeds and sitemaps now; 409 if its feeds are off."""
    return _soon(archive, admin, form.source, search=True)


def _soon(archive: Archive, admin: AdminWrite, code: str, *, search: bool) -> FeedsDue:
    service = admin.job_service
    with admin.write() as session:
        source = source_of(session, code)
        state = make_feeds_due(session, service.clock, service.actions, source, archive.settings.feeds, search=search)
        return FeedsDue(source=source.code, job_state=state)


@router.get("/{id}", Permission.WATCH, errors=(404,))
def get_feed(session: SessionDep, id: FeedId) -> FeedDetail:
    """Return one feed with its most recent items."""
    row = registry.find(session, id)
    items = queries.items_of(session, source_id=row.source_id, feed_id=row.id, limit=_ITEMS)
    return feed_detail(row, _code(session, row), items)


def _code(session: Session, row: Feed) -> str:
    owner = source_by_id(session, row.source_id)
    return owner.code if owner is not None else ""


@router.post("/{id}/enable", Permission.OPERATE, errors=(404, 409))
def enable_feed(admin: AdminWriteDep, id: FeedId) -> FeedRecord:
    """Enable a disabled feed and clear its errors."""
    return _changed(admin, id, registry.enable)


@router.post("/{id}/disable", Permission.OPERATE, errors=(404, 409))
def disable_feed(admin: AdminWriteDep, id: FeedId) -> FeedRecord:
    """Stop polling a feed until it is enabled."""
    return _changed(admin, id, registry.disable)


def _changed(admin: AdminWrite, feed_id: int, action: Callable[[Session, Clock, int], Feed]) -> FeedRecord:
    with admin.write() as session:
        row = action(session, admin.clock, feed_id)
        return feed_record(row, _code(session, row))


@router.delete("/{id}", Permission.OPERATE, errors=(404, 409), status_code=204)
def remove_feed(admin: AdminWriteDep, id: FeedId) -> None:
    """Remove a feed from its source. It comes back if it is discovered again; disable it to prevent that."""
    with admin.write() as session:
        registry.remove(session, admin.clock, id)
