"""Lists of changes for readers: the queries, and the feed.

Captures under a takedown are excluded, on either side; no query reads the whole table.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from email.utils import format_datetime
from functools import cache
from html import escape
from itertools import islice, takewhile
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, and_, bindparam, case, column, func, select, text
from sqlalchemy.orm import Session

from holdfast.changes.records import ChangeEvent
from holdfast.changes.verdict import ChangeType
from holdfast.clock import to_micros
from holdfast.db.models import Change, Diff, Document, PageGroup, Snapshot, Source
from holdfast.errors import Invalid
from holdfast.withdrawals.visibility import visible, visible_change, visible_source


class ChangeScope(NamedTuple):
    source_id: int | None = None
    execution_id: int | None = None
    latest: bool = False
    """Only the latest crawl of the source, or of each source."""
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""
    unchanged: bool = False
    """Include captures without a change."""
    noise: bool = False
    """Include captures of an error or placeholder page instead of the page itself."""
    type: ChangeType | None = None
    """Only changes of this type among the newest `listed` ones."""


def span(
    first: date | None, last: date | None, *, names: tuple[str, str] = ("from", "to")
) -> tuple[datetime | None, datetime | None]:
    """Return the start of the first day and the exclusive end of the last; raise Invalid if they are reversed.

    `names` are the caller's names of the two days, for the error message.
    """
    if first is not None and last is not None and first > last:
        raise Invalid(f"`{names[0]}` is later than `{names[1]}`; turn them around")
    since = None if first is None else datetime.combine(first, time(), UTC)
    if last is None or last == date.max:
        return since, None
    return since, datetime.combine(last + timedelta(days=1), time(), UTC)


MAX_ITEMS = 50
_UNSAYABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def rss(events: Sequence[ChangeEvent], *, site: str, title: str) -> bytes:
    """Return the feed of these events, newest first; the same events give the same bytes."""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>',
        _element("title", title),
        _element("link", f"{site}/changes"),
        _element("description", "What changed on the archived pages, newest first."),
    ]
    if events:
        parts.append(
            _element("lastBuildDate", format_datetime(max(event.to_captured_at for event in events), usegmt=True))
        )
    parts += [_item(event, site) for event in events[:MAX_ITEMS]]
    parts.append("</channel></rss>\n")
    return "\n".join(parts).encode("utf-8", "replace")


def compare_path(event: ChangeEvent) -> str:
    before = "" if event.from_snapshot_id is None else f"&fromSnapshotId={event.from_snapshot_id}"
    return f"/api/changes/compare?toSnapshotId={event.to_snapshot_id}{before}"


def compare_page(to_snapshot_id: int, from_snapshot_id: int | None = None) -> str:
    """Return the path of the comparison page; without an earlier capture, it compares with the previous one."""
    before = "" if from_snapshot_id is None else f"&from={from_snapshot_id}"
    return f"/compare?to={to_snapshot_id}{before}"


def _item(event: ChangeEvent, site: str) -> str:
    return "\n".join(
        (
            "<item>",
            _element("title", f"{event.source_name}: {event.group or 'a page'}"),
            _element("link", f"{site}{compare_page(event.to_snapshot_id, event.from_snapshot_id)}"),
            f'<guid isPermaLink="false">change-{event.id}</guid>',
            _element("pubDate", format_datetime(event.to_captured_at, usegmt=True)),
            _element("category", event.type),
            _element("description", event.summary),
            "</item>",
        )
    )


def _element(name: str, text: str) -> str:
    # XML 1.0 cannot represent these characters; one of them makes the whole feed unreadable.
    return f"<{name}>{escape(_UNSAYABLE.sub('', text))}</{name}>"


MAX_LISTED = 10_000
"""Limit on the changes counted and paged through, newest first; search has the same limit."""
_LEAST_EACH = 20
_MAX_CRAWLS = 200


def latest_crawls(session: Session, source_id: int | None, *, limit: int) -> list[tuple[datetime, int]]:
    """Return moment and execution of the latest crawl of a source, or of each source with changes, newest first."""
    # Query only sources with changes: for one without, a planner may scan all changes.
    if source_id is not None:
        crawls = _CRAWLS_OF_SOURCE.where(Change.source_id == source_id).limit(1)
    else:
        crawls = _CRAWLS.limit(limit)
    return [(row[0], row[1]) for row in session.execute(crawls)]


_CRAWLS_OF_SOURCE = select(Change.to_captured_at, Change.to_execution_id).order_by(
    Change.to_captured_at.desc(), Change.id.desc()
)


def _crawls() -> Select[*tuple[Any, ...]]:
    # Seek from one source to the next: GROUP BY would scan the table, which has a row per capture.
    known = select(func.min(Change.source_id).label("id")).cte("known", recursive=True)
    following = select(func.min(Change.source_id)).where(Change.source_id > known.c.id).scalar_subquery()
    known = known.union_all(select(following).where(known.c.id.is_not(None)))
    newest = (
        select(column_)
        .where(Change.source_id == known.c.id)
        .order_by(Change.to_captured_at.desc(), Change.id.desc())
        .limit(1)
        .scalar_subquery()
        for column_ in (Change.to_captured_at, Change.to_execution_id)
    )
    moment, execution = newest
    return (
        select(moment.label("at"), execution.label("execution_id"))
        .where(known.c.id.is_not(None), visible_source(known.c.id))
        .order_by(text("at DESC"), text("execution_id DESC"))
    )


_CRAWLS = _crawls()


def page_of_events(
    session: Session, scope: ChangeScope, *, offset: int, limit: int, listed: int = MAX_LISTED
) -> tuple[list[ChangeEvent], int, bool]:
    """Return a page of events, newest first, their number, and whether it is exact: not if over `listed` are in scope.

    Paging also ends at `listed`; older events are reached with an earlier `until`.
    """
    if scope.latest:
        rows, is_exact = _of_latest(session, scope, listed)
    else:
        rows = _read(session, scope, scope.execution_id, listed + 1)
        rows, is_exact = rows[:listed], len(rows) <= listed
    places = [change_id for _, change_id, is_shown in rows if is_shown]
    return events_of(session, places[offset : offset + limit]), len(places), is_exact


# The time of a change, its id, and whether the viewer may see it.
_Place = tuple[datetime, int, bool]


def _of_latest(session: Session, scope: ChangeScope, listed: int) -> tuple[list[_Place], bool]:
    # Read only the latest crawls. The list ends where an older crawl could have a newer change.
    crawls = latest_crawls(session, scope.source_id, limit=_MAX_CRAWLS + 1)
    beyond = crawls[_MAX_CRAWLS][0] if len(crawls) > _MAX_CRAWLS else None
    # The expected share of each crawl: one with more is read further, one with less costs little.
    batch = max(_LEAST_EACH, listed // max(1, len(crawls)) + 1)
    streams = [_stream(session, scope, crawl, batch) for crawl in crawls[:_MAX_CRAWLS]]
    merged = (row for row in heapq.merge(*streams, reverse=True) if row[1] != _AHEAD)
    # Beyond that time a crawl that was not read could have the next change.
    rows = list(islice(takewhile(lambda row: beyond is None or row[0] > beyond, merged), listed + 1))
    return rows[:listed], beyond is None and len(rows) <= listed


_AHEAD = (1 << 63) - 1


def _stream(session: Session, scope: ChangeScope, crawl: tuple[datetime, int], batch: int) -> Iterator[_Place]:
    """Yield the changes of a crawl, newest first; each batch is read only when its turn comes."""
    # Start with a time before all changes of the crawl: the merge then reads the crawl only when needed.
    at, execution_id = crawl
    yield at, _AHEAD, False
    rows = _read(session, scope, execution_id, batch)
    yield from rows
    while len(rows) == batch:
        rows = _read(session, scope, execution_id, batch, behind=rows[-1])
        yield from rows


def _read(
    session: Session, scope: ChangeScope, execution_id: int | None, most: int, *, behind: _Place | None = None
) -> list[_Place]:
    """Return the newest changes of an execution, else of the scope's source, else of all sources."""
    by = "execution" if execution_id is not None else "source" if scope.source_id is not None else "moment"
    given: dict[str, object] = {"most": most}
    if (owner := scope.source_id if execution_id is None else execution_id) is not None:
        given["owner"] = owner
    if scope.since is not None:
        given["since"] = to_micros(scope.since)
    if scope.until is not None:
        given["until"] = to_micros(scope.until)
    if by == "execution" and scope.source_id is not None:
        given["source"] = scope.source_id
    if scope.type is not None:
        given["type"] = scope.type.value
    if behind is not None:
        given |= {"at": to_micros(behind[0]), "id": behind[1]}
    is_sqlite, found = session.get_bind().dialect.name == "sqlite", list[_Place]()
    for which in _indexes(scope):
        rows = session.execute(_slice(by, which, is_sqlite, frozenset(given)), given)
        found += [(row[0], row[1], bool(row[2])) for row in rows]
    return sorted(found, reverse=True)[:most]


# A partial index of changes: the suffix of its name, and its condition exactly as in the index.
_PartialIndex = tuple[str, str]
_TOLD: _PartialIndex = ("_told", "type <> 'unchanged' AND type <> 'noise'")
_NOISE: _PartialIndex = ("_noise", "type = 'noise'")


def _indexes(scope: ChangeScope) -> tuple[_PartialIndex, ...]:
    if scope.unchanged:
        return (("", "true" if scope.noise else "type <> 'noise'"),)
    return (_TOLD, _NOISE) if scope.noise else (_TOLD,)


_NARROWED = {
    "since": "to_captured_at >= :since",
    "until": "to_captured_at < :until",
    "source": "source_id + 0 = :source",
    "at": "(to_captured_at, id) < (:at, :id)",
}


@cache
def _slice(by: str, which: _PartialIndex, is_sqlite: bool, given: frozenset[str]) -> Select[*tuple[Any, ...]]:
    # Spelled out for an index hint: without statistics SQLite uses the index that includes unchanged captures and scans
    # all of them. `+ 0` keeps the index of sources out of queries by execution.
    owner = {"execution": ["to_execution_id = :owner"], "source": ["source_id = :owner"], "moment": []}[by]
    ending, condition = which
    index = f"ix_changes_{by}{ending}"
    clauses = [*owner, condition]
    clauses += [clause for name, clause in _NARROWED.items() if name in given]
    statement = text(
        "SELECT id, source_id, from_snapshot_id, to_snapshot_id, to_captured_at, type FROM changes"  # noqa: S608 - all ours
        f"{f' INDEXED BY {index}' if is_sqlite else ''} WHERE {' AND '.join(clauses)}"
        " ORDER BY to_captured_at DESC, id DESC LIMIT :most"
    )
    kept = (
        *(Change.id, Change.source_id, Change.from_snapshot_id, Change.to_snapshot_id),
        *(Change.to_captured_at, Change.type),
    )
    change = statement.columns(*(column(one.key, one.type) for one in kept)).subquery("change")
    # Filter outside: for a rare type the inner query would read all changes. So only the newest are searched.
    wanted = [change.c.type == bindparam("type")] if "type" in given else []
    return select(change.c.to_captured_at, change.c.id, and_(*visible_change(change.c), *wanted))


def _events() -> Select[*tuple[Any, ...]]:
    lost = Change.type.in_([ChangeType.GONE.value, ChangeType.ERROR.value, ChangeType.NOISE.value])
    titled = case((lost, Change.from_snapshot_id), else_=Change.to_snapshot_id)
    return (
        select(
            *(Change.id, Change.type, Change.error, Change.computed_at, Document.title),
            *(Source.code.label("source_code"), Source.name.label("source_name"), PageGroup.url.label("group")),
            *(Change.from_snapshot_id, Change.from_captured_at, Change.from_execution_id),
            *(Change.to_snapshot_id, Change.to_captured_at, Change.to_execution_id),
            *(Diff.added_sections, Diff.removed_sections, Diff.changed_sections, Diff.added_lines, Diff.removed_lines),
            *(Diff.id.label("diff_id"), Diff.ratio, Diff.high_noise.label("diff_noise"), Diff.truncated),
            Diff.body.is_not(None).label("has_diff"),
        )
        .select_from(Change)
        .join(Source, Source.id == Change.source_id)
        .outerjoin(PageGroup, PageGroup.id == Change.group_id)
        .outerjoin(Diff, Diff.id == Change.diff_id)
        .outerjoin(Snapshot, Snapshot.id == titled)
        .outerjoin(Document, Document.id == Snapshot.document_id)
    )


def event_at(session: Session, to_snapshot_id: int) -> ChangeEvent | None:
    row = session.execute(
        _events().where(Change.to_snapshot_id == to_snapshot_id, *visible_change(Change))
    ).one_or_none()
    return None if row is None else ChangeEvent(**row._asdict())


def events_of(session: Session, ids: Sequence[int]) -> list[ChangeEvent]:
    """Return these changes in this order, without those that may not be shown; pass a few hundred at most."""
    rows = session.execute(_events().where(Change.id.in_(ids), *visible_change(Change)))
    found = {row.id: ChangeEvent(**row._asdict()) for row in rows}
    return [found[change_id] for change_id in ids if change_id in found]


def timeline(session: Session, group_id: int, *, limit: int) -> Sequence[Row[*tuple[Any, ...]]]:
    rows = session.execute(
        select(
            *(Snapshot.id, Snapshot.url_hash, Snapshot.url, Snapshot.captured_at, Snapshot.execution_id),
            *(Document.title, Snapshot.status, Snapshot.noise),
        )
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.group_id == group_id, *visible())
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(limit)
    )
    return rows.all()[::-1]


def group_url(session: Session, group_id: int | None) -> str | None:
    return None if group_id is None else session.scalar(select(PageGroup.url).where(PageGroup.id == group_id))


def source(session: Session, source_id: int) -> Source:
    return session.get_one(Source, source_id)
