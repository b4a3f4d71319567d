"""Changes as rows for readers. Nothing withdrawn is among them, on either side; no question reads all of the table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, TextClause, and_, exists, func, select, text
from sqlalchemy.orm import Session, aliased

from holdfast.changes.listing.events import Event, Page, Scope, TimelineEntry
from holdfast.db.models import Change, Diff, Document, PageGroup, Snapshot, Source, Withdrawal
from holdfast.index.queries import visible

MAX_LISTED = 10_000
"""Changes that are counted and paged through, newest first; as many as search counts."""
_LEAST_EACH = 20
_MAX_SOURCES = 200
_TOLD = text("changes.type <> 'unchanged'")
"""Spelled as the partial indexes are, so that both databases see that they hold all that is asked for."""


def shown(change: type[Change] = Change) -> tuple[ColumnElement[bool], ...]:
    """Return the clauses over Change that leave out what is withdrawn: either capture, or the page."""
    standing = Withdrawal.lifted_at.is_(None)
    return (
        ~exists().where(standing, Withdrawal.snapshot_id == change.to_snapshot_id),
        ~exists().where(standing, Withdrawal.snapshot_id == change.from_snapshot_id),
        ~exists().where(standing, Withdrawal.url_hash == change.url_hash),
    )


def latest_executions(session: Session, source_id: int | None) -> list[int]:
    """Return the execution of the newest change of a source, or of each source: two seeks each."""
    found: list[int] = []
    for known in _sources_with_changes(session) if source_id is None else [source_id]:
        newest = session.scalar(
            select(Change.to_execution_id)
            .where(Change.source_id == known)
            .order_by(Change.to_captured_at.desc(), Change.id.desc())
            .limit(1)
        )
        if newest is not None:
            found.append(newest)
    return found


def _sources_with_changes(session: Session) -> list[int]:
    """Return the sources that have changes, from one to the next; for one that has none a planner may walk it all."""
    found: list[int] = []
    while len(found) < _MAX_SOURCES:
        following = session.scalar(select(func.min(Change.source_id)).where(Change.source_id > (found or [-1])[-1]))
        if following is None:
            break
        found.append(following)
    return found


def page_of_events(session: Session, scope: Scope, *, offset: int, limit: int, listed: int = MAX_LISTED) -> Page:
    """Return a page of events, newest first, and how many there are; not exact where more were in scope than `listed`.

    Paging ends there too: what is older is reached with an earlier `until`.
    """
    slices = _slices(session, scope)
    if not slices:
        return Page(events=(), total=0, is_exact=True)
    each = max(_LEAST_EACH, listed // len(slices))
    found: list[tuple[datetime, int]] = []
    is_exact = True
    for part in slices:
        # Only the slice is read, and only once: joined with the table by id, a planner might walk the table.
        change = aliased(Change, part.limit(each + 1).subquery())
        rows = session.execute(select(change.to_captured_at, change.id, and_(*shown(change)))).all()
        is_exact = is_exact and len(rows) <= each
        found += [(row[0], row[1]) for row in rows[:each] if row[2]]
    found.sort(reverse=True)
    ids = [change_id for _, change_id in found[offset : offset + limit]]
    events = {row[0]: Event._make(row) for row in session.execute(_events().where(Change.id.in_(ids)))}
    return Page(events=tuple(events[change_id] for change_id in ids), total=len(found), is_exact=is_exact)


def _slices(session: Session, scope: Scope) -> list[Select[Change]]:
    """Return the newest changes in scope: a slice for each execution, or for each source, all from one index."""
    span: list[ColumnElement[bool] | TextClause] = [] if scope.unchanged else [_TOLD]
    if scope.since is not None:
        span.append(Change.to_captured_at >= scope.since)
    if scope.until is not None:
        span.append(Change.to_captured_at < scope.until)
    if scope.execution_ids is not None:
        if scope.source_id is not None:
            # `+ 0` keeps the planner on the index of executions: the one of sources would read the whole source.
            span.append(Change.source_id + 0 == scope.source_id)
        newest = (Change.id.desc(),)
        return [
            select(Change).where(Change.to_execution_id == execution_id, *span).order_by(*newest)
            for execution_id in scope.execution_ids
        ]
    sources = _sources_with_changes(session) if scope.source_id is None else [scope.source_id]
    return [
        select(Change)
        .where(Change.source_id == source_id, *span)
        .order_by(Change.to_captured_at.desc(), Change.id.desc())
        for source_id in sources
    ]


def _events() -> Select[*tuple[Any, ...]]:
    return (
        select(
            Change.id, Change.type, Source.code, Source.name, PageGroup.url, Change.from_snapshot_id,
            Change.to_snapshot_id, Change.from_captured_at, Change.to_captured_at, Change.from_execution_id,
            Change.to_execution_id, Diff.id, Diff.added_sections, Diff.removed_sections, Diff.changed_sections,
            Diff.added_lines, Diff.removed_lines, Diff.ratio, Diff.high_noise, Diff.truncated,
            Diff.body.is_not(None), Diff.version, Change.error, Change.computed_at,
        )
        .select_from(Change)
        .join(Source, Source.id == Change.source_id)
        .outerjoin(PageGroup, PageGroup.id == Change.group_id)
        .outerjoin(Diff, Diff.id == Change.diff_id)
    )  # fmt: skip


def event_at(session: Session, to_snapshot_id: int) -> Event | None:
    """Return what happened at this capture, if that is known and may be shown."""
    row = session.execute(_events().where(Change.to_snapshot_id == to_snapshot_id, *shown())).one_or_none()
    return None if row is None else Event._make(row)


def events_after(
    session: Session, *, source_id: int | None, after_id: int, until_id: int, since: datetime | None,
    until: datetime | None,
) -> list[Event]:  # fmt: skip
    """Return the events whose ids stand between two, by id, that may be shown."""
    query = _events().where(Change.id > after_id, Change.id <= until_id, *shown())
    if source_id is not None:
        query = query.where(Change.source_id == source_id)
    if since is not None:
        query = query.where(Change.to_captured_at >= since)
    if until is not None:
        query = query.where(Change.to_captured_at < until)
    return [Event._make(row) for row in session.execute(query.order_by(Change.id))]


def timeline(session: Session, group_id: int, *, limit: int) -> list[TimelineEntry]:
    """Return the newest captures of a group that may be shown, oldest first."""
    rows = session.execute(
        select(
            Snapshot.id, Snapshot.url_hash, Snapshot.url, Snapshot.captured_at, Snapshot.execution_id, Document.title,
            Snapshot.status,
        )
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.group_id == group_id, *visible())
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(limit)
    )  # fmt: skip
    return [TimelineEntry._make(row) for row in rows][::-1]


def group_url(session: Session, group_id: int | None) -> str | None:
    """Return the address of a group."""
    return None if group_id is None else session.scalar(select(PageGroup.url).where(PageGroup.id == group_id))


def source(session: Session, source_id: int) -> Source:
    """Return a source."""
    return session.get_one(Source, source_id)
