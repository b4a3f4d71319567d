"""Changes as rows for readers. Nothing withdrawn is among them, on either side; no question reads all of the table."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Subquery, and_, column, exists, func, select, text
from sqlalchemy.orm import Session

from holdfast.changes.listing.events import Event, Page, Scope, TimelineEntry
from holdfast.clock import to_micros
from holdfast.db.models import Change, Diff, Document, PageGroup, Snapshot, Source, Withdrawal
from holdfast.index.queries import visible

MAX_LISTED = 10_000
"""Changes that are counted and paged through, newest first; as many as search counts."""
_LEAST_EACH = 20
_MAX_SOURCES = 200


def shown(change: Any = Change) -> tuple[ColumnElement[bool], ...]:
    """Return the clauses, over Change or what has its columns, that leave out what is withdrawn: capture or page."""
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
    read = _of_sources if scope.execution_ids is None else _of_executions
    found = read(session, scope, listed)
    ids = [row.id for row in found.rows[offset : offset + limit]]
    events = {row[0]: Event._make(row) for row in session.execute(_events().where(Change.id.in_(ids)))}
    return Page(events=tuple(events[change_id] for change_id in ids), total=len(found.rows), is_exact=found.is_all)


class _Place(NamedTuple):
    """Where a change stands in the order of a list."""

    at: datetime
    id: int
    is_shown: bool


class _Newest(NamedTuple):
    rows: list[_Place]
    """Those that may be shown, newest first."""
    is_all: bool


def _of_executions(session: Session, scope: Scope, listed: int) -> _Newest:
    """Return the newest changes of some executions: as many of each, by their ids, which is the order of its files."""
    wanted = scope.execution_ids or ()
    each = max(_LEAST_EACH, listed // max(1, len(wanted)))
    found: list[_Place] = []
    is_all = True
    for execution_id in wanted:
        rows = _read(session, scope, _Slice("execution", execution_id, each + 1))
        is_all = is_all and len(rows) <= each
        found += rows[:each]
    return _Newest([row for row in sorted(found, reverse=True) if row.is_shown], is_all)


def _of_sources(session: Session, scope: Scope, listed: int) -> _Newest:
    """Return the newest changes of a source, or of all sources: one stream each, merged as far as anybody looks."""
    sources = _sources_with_changes(session) if scope.source_id is None else [scope.source_id]
    batch = max(_LEAST_EACH, listed // max(1, len(sources)) + 1)
    streams = [_stream(session, scope, _Slice("source", source_id, batch)) for source_id in sources]
    rows = list(islice(heapq.merge(*streams, reverse=True), listed + 1))
    return _Newest([row for row in rows[:listed] if row.is_shown], len(rows) <= listed)


class _Slice(NamedTuple):
    """The newest changes of one owner."""

    by: str
    """source, in the order of time; or execution, in the order of ids."""
    owner: int
    most: int


def _stream(session: Session, scope: Scope, part: _Slice) -> Iterator[_Place]:
    """Yield the changes of a source, newest first, read from one index a batch at a time."""
    rows = _read(session, scope, part)
    yield from rows
    while len(rows) == part.most:
        rows = _read(session, scope, part, behind=rows[-1])
        yield from rows


def _read(session: Session, scope: Scope, part: _Slice, *, behind: _Place | None = None) -> list[_Place]:
    """Return where the changes of a slice stand, newest first, and whether they may be shown."""
    given: dict[str, object] = {"owner": part.owner, "most": part.most}
    if scope.since is not None:
        given["since"] = to_micros(scope.since)
    if scope.until is not None:
        given["until"] = to_micros(scope.until)
    if part.by == "execution" and scope.source_id is not None:
        given["source"] = scope.source_id
    if behind is not None:
        given |= {"at": to_micros(behind.at), "id": behind.id}
    change = _slice(part.by, scope.unchanged, session.get_bind().dialect.name == "sqlite", frozenset(given))
    rows = session.execute(select(change.c.to_captured_at, change.c.id, and_(*shown(change.c))), given)
    return sorted((_Place(row[0], row[1], bool(row[2])) for row in rows), reverse=True)


_NARROWED = {
    "since": "to_captured_at >= :since", "until": "to_captured_at < :until", "source": "source_id + 0 = :source",
    "at": "(to_captured_at, id) < (:at, :id)",
}  # fmt: skip


@cache
def _slice(by: str, unchanged: bool, is_sqlite: bool, given: frozenset[str]) -> Subquery:
    """Return the question for a slice; only it is read, and only once.

    Written out for the sake of a hint: without statistics SQLite takes the index that holds the unchanged ones too, and
    walks through all of them. `+ 0` keeps the index of sources away from a question about an execution.
    """
    owner, order = ("source_id", "to_captured_at DESC, id DESC") if by == "source" else ("to_execution_id", "id DESC")
    index = f"ix_changes_{by}" if unchanged else f"ix_changes_{by}_told"
    clauses = [f"{owner} = :owner", *([] if unchanged else ["type <> 'unchanged'"])]
    clauses += [clause for name, clause in _NARROWED.items() if name in given]
    statement = text(
        "SELECT id, url_hash, from_snapshot_id, to_snapshot_id, to_captured_at FROM changes"  # noqa: S608 - all ours
        f"{f' INDEXED BY {index}' if is_sqlite else ''} WHERE {' AND '.join(clauses)} ORDER BY {order} LIMIT :most"
    )
    kept = (Change.id, Change.url_hash, Change.from_snapshot_id, Change.to_snapshot_id, Change.to_captured_at)
    return statement.columns(*(column(one.key, one.type) for one in kept)).subquery("change")


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
