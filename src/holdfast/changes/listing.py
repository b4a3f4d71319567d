"""Lists of changes for readers: their values, the sentence that sums one up, the feed, and the questions to the table.

Nothing withdrawn is among them, on either side; no question reads all of the table.
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

from sqlalchemy import Select, and_, bindparam, case, column, func, select, text
from sqlalchemy.orm import Session

from holdfast.changes.verdict import ChangeType
from holdfast.clock import to_micros
from holdfast.db.models import Change, Diff, Document, PageGroup, Snapshot, Source
from holdfast.errors import Invalid
from holdfast.withdrawals.visibility import visible, visible_change, visible_source


class ChangeScope(NamedTuple):
    """Which changes are meant."""

    source_id: int | None = None
    execution_id: int | None = None
    latest: bool = False
    """Only the latest crawl of the source, or of each source."""
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""
    unchanged: bool = False
    """Also the captures at which nothing had changed."""
    noise: bool = False
    """Also those that do not show their page."""
    type: ChangeType | None = None
    """Only these, among the newest that a list is long."""


class ListedChange(NamedTuple):
    """One change, with what readers want to know of it."""

    id: int | None
    type: str
    source_code: str
    source_name: str
    group: str | None
    from_snapshot_id: int | None
    to_snapshot_id: int
    from_captured_at: datetime | None
    to_captured_at: datetime
    from_execution_id: int | None
    to_execution_id: int
    diff_id: int | None
    added_sections: int | None
    removed_sections: int | None
    changed_sections: int | None
    added_lines: int | None
    removed_lines: int | None
    ratio: float | None
    diff_noise: bool | None
    truncated: bool | None
    has_diff: bool | None
    version: int | None
    error: str | None
    computed_at: datetime | None
    title: str | None = None
    """Of the page; of the earlier capture where the later one is no capture of the page."""

    @property
    def high_noise(self) -> bool:
        """Whether the change says little: almost all is new, or it cannot be compared as text."""
        return bool(self.diff_noise) if self.diff_id is not None else self.type == ChangeType.UPDATED

    @property
    def diff_available(self) -> bool:
        """Whether there is a diff to show."""
        return self.diff_id is not None and bool(self.has_diff)

    @property
    def summary(self) -> str:
        """What happened, in a sentence."""
        return summary(self)


class ChangePage(NamedTuple):
    """A page of events."""

    events: tuple[ListedChange, ...]
    total: int
    is_exact: bool


class TimelineEntry(NamedTuple):
    """One capture in the history of a page."""

    id: int
    url_hash: int
    url: str
    captured_at: datetime
    execution_id: int
    title: str | None
    status: int | None
    noise: str | None


_PLAIN = {
    ChangeType.NEW_PAGE: "First capture of this page",
    ChangeType.UNCHANGED: "No change since the capture before",
    ChangeType.GONE: "The page is gone",
    ChangeType.ERROR: "The page could not be captured",
    ChangeType.NOISE: "Something else was captured in place of the page",
}


def summary(event: ListedChange) -> str:
    """Return what happened: sections where they are known, else lines, with a warning where most of it is noise."""
    kind = ChangeType(event.type)
    if kind in (ChangeType.ERROR, ChangeType.NOISE) and event.error:
        return f"{_PLAIN[kind]}: {event.error}"
    if kind is not ChangeType.UPDATED:
        return _PLAIN[kind]
    if event.diff_id is None:
        return "Updated; the two versions cannot be compared as text (high noise)"
    sections = event.added_sections or 0, event.removed_sections or 0, event.changed_sections or 0
    return counts_summary(sections, (event.added_lines or 0, event.removed_lines or 0), has_high_noise=event.high_noise)


def counts_summary(sections: tuple[int, int, int], lines: tuple[int, int], *, has_high_noise: bool) -> str:
    """Return a sentence about added, removed and changed sections; about added and removed lines if there are none."""
    added, removed, changed = sections
    found = _counted("section", (changed, "changed"), (added, "added"), (removed, "removed"))
    summed_up = found or _counted("line", (lines[0], "added"), (lines[1], "removed")) or "Updated; the text is the same"
    return f"{summed_up} (high noise)" if has_high_noise else summed_up


def _counted(noun: str, *counts: tuple[int, str]) -> str:
    parts = [f"{count} {noun if count == 1 else f'{noun}s'} {verb}" for count, verb in counts if count]
    return ", ".join(parts)


def span(
    first: date | None, last: date | None, *, names: tuple[str, str] = ("from", "to")
) -> tuple[datetime | None, datetime | None]:
    """Return the begin of the first day and the end of the last, which is exclusive; Invalid if they are turned.

    `names` are those that the caller gave the two days.
    """
    if first is not None and last is not None and first > last:
        raise Invalid(f"`{names[0]}` is later than `{names[1]}`; turn them around")
    since = None if first is None else datetime.combine(first, time(), UTC)
    if last is None or last == date.max:
        return since, None
    return since, datetime.combine(last + timedelta(days=1), time(), UTC)


MAX_ITEMS = 50
_UNSAYABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def rss(events: Sequence[ListedChange], *, site: str, title: str) -> bytes:
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


def compare_path(event: ListedChange) -> str:
    """Return where the change is told to programs."""
    before = "" if event.from_snapshot_id is None else f"&fromSnapshotId={event.from_snapshot_id}"
    return f"/api/changes/compare?toSnapshotId={event.to_snapshot_id}{before}"


def compare_page(to_snapshot_id: int, from_snapshot_id: int | None = None) -> str:
    """Return where a change is shown to people; without an earlier capture, against the one before it."""
    before = "" if from_snapshot_id is None else f"&from={from_snapshot_id}"
    return f"/compare?to={to_snapshot_id}{before}"


def _item(event: ListedChange, site: str) -> str:
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
    # XML 1.0 has no way at all to write these characters; one of them makes the whole feed unreadable.
    return f"<{name}>{escape(_UNSAYABLE.sub('', text))}</{name}>"


MAX_LISTED = 10_000
"""Changes that are counted and paged through, newest first; as many as search counts."""
_LEAST_EACH = 20
_MAX_CRAWLS = 200


class NewestCrawl(NamedTuple):
    """The crawl that brought the newest change of a source."""

    at: datetime
    """When that was."""
    execution_id: int


def latest_crawls(session: Session, source_id: int | None, *, limit: int) -> list[NewestCrawl]:
    """Return the latest crawl of a source, or of each source that has changes: the newest ones, newest first."""
    # Only sources that have changes are asked about: for one that has none a planner may walk all changes there are.
    if source_id is not None:
        crawls = _CRAWLS_OF_SOURCE.where(Change.source_id == source_id)
        return [NewestCrawl._make(row) for row in session.execute(crawls.limit(1))]
    return [NewestCrawl._make(row) for row in session.execute(_CRAWLS.limit(limit))]


_CRAWLS_OF_SOURCE = select(Change.to_captured_at, Change.to_execution_id).order_by(
    Change.to_captured_at.desc(), Change.id.desc()
)


def _crawls() -> Select[*tuple[Any, ...]]:
    # From one source to the next by seeks: GROUP BY would read the table, which has a row a capture.
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
) -> ChangePage:
    """Return a page of events, newest first, and how many there are; not exact where more were in scope than `listed`.

    Paging ends there too: what is older is reached with an earlier `until`.
    """
    found = (_of_latest if scope.latest else _of_one)(session, scope, listed)
    places = [row.id for row in found.rows if row.is_shown]
    return ChangePage(
        events=tuple(events_of(session, places[offset : offset + limit])), total=len(places), is_exact=found.is_all
    )


class _Place(NamedTuple):
    """Where a change stands in the order of a list."""

    at: datetime
    id: int
    is_shown: bool


class _Newest(NamedTuple):
    rows: list[_Place]
    """Newest first."""
    is_all: bool


def _of_one(session: Session, scope: ChangeScope, listed: int) -> _Newest:
    """Return the newest changes of an execution, of a source, or of all: one stretch of one index."""
    if scope.execution_id is not None:
        part = _Slice("execution", scope.execution_id, listed + 1)
    elif scope.source_id is not None:
        part = _Slice("source", scope.source_id, listed + 1)
    else:
        part = _Slice("moment", None, listed + 1)
    rows = _read(session, scope, part)
    return _Newest(rows[:listed], len(rows) <= listed)


def _of_latest(session: Session, scope: ChangeScope, listed: int) -> _Newest:
    """Return the newest changes of the latest crawls: one stream each, merged as far as a page needs."""
    # Only so many crawls are looked into; where the next one could have a newer change, the list ends, and is not all.
    crawls = latest_crawls(session, scope.source_id, limit=_MAX_CRAWLS + 1)
    beyond = crawls[_MAX_CRAWLS].at if len(crawls) > _MAX_CRAWLS else None
    # About what each crawl contributes: one that brings more is read on, one that brings less costs little.
    batch = max(_LEAST_EACH, listed // max(1, len(crawls)) + 1)
    streams = [_stream(session, scope, crawl, batch) for crawl in crawls[:_MAX_CRAWLS]]
    merged = (row for row in heapq.merge(*streams, reverse=True) if row.id != _AHEAD)
    # Behind that moment a crawl that was not looked into could have the next change.
    rows = list(islice(takewhile(lambda row: beyond is None or row.at > beyond, merged), listed + 1))
    return _Newest(rows[:listed], beyond is None and len(rows) <= listed)


class _Slice(NamedTuple):
    """The newest changes of one owner, in the order of time."""

    by: str
    """execution, source, or moment: the changes of all."""
    owner: int | None
    most: int


_AHEAD = (1 << 63) - 1


def _stream(session: Session, scope: ChangeScope, crawl: NewestCrawl, batch: int) -> Iterator[_Place]:
    """Yield the changes of a crawl, newest first, read a batch at a time, and nothing before its turn has come."""
    # A place ahead of all its changes: the merge reads the crawl only when its turn has come.
    yield _Place(crawl.at, _AHEAD, False)
    part = _Slice("execution", crawl.execution_id, batch)
    rows = _read(session, scope, part)
    yield from rows
    while len(rows) == batch:
        rows = _read(session, scope, part, behind=rows[-1])
        yield from rows


def _read(session: Session, scope: ChangeScope, part: _Slice, *, behind: _Place | None = None) -> list[_Place]:
    """Return where the changes of a slice stand, newest first, and whether they may be shown."""
    given: dict[str, object] = {"most": part.most}
    if part.owner is not None:
        given["owner"] = part.owner
    if scope.since is not None:
        given["since"] = to_micros(scope.since)
    if scope.until is not None:
        given["until"] = to_micros(scope.until)
    if part.by == "execution" and scope.source_id is not None:
        given["source"] = scope.source_id
    if scope.type is not None:
        given["type"] = scope.type.value
    if behind is not None:
        given |= {"at": to_micros(behind.at), "id": behind.id}
    is_sqlite, found = session.get_bind().dialect.name == "sqlite", list[_Place]()
    for which in _indexes(scope):
        rows = session.execute(_slice(part.by, which, is_sqlite, frozenset(given)), given)
        found += [_Place(row[0], row[1], bool(row[2])) for row in rows]
    return sorted(found, reverse=True)[: part.most]


class _Held(NamedTuple):
    """An index of changes: how its name ends, and which it holds, as it is spelled there; or what is left of it."""

    ending: str
    clause: str


_TOLD = _Held("_told", "type <> 'unchanged' AND type <> 'noise'")
_NOISE = _Held("_noise", "type = 'noise'")


def _indexes(scope: ChangeScope) -> tuple[_Held, ...]:
    """Return the indexes that hold what is asked for: each is read no further than a list is long."""
    if scope.unchanged:
        return (_Held("", "true" if scope.noise else "type <> 'noise'"),)
    return (_TOLD, _NOISE) if scope.noise else (_TOLD,)


_NARROWED = {
    "since": "to_captured_at >= :since",
    "until": "to_captured_at < :until",
    "source": "source_id + 0 = :source",
    "at": "(to_captured_at, id) < (:at, :id)",
}


@cache
def _slice(by: str, which: _Held, is_sqlite: bool, given: frozenset[str]) -> Select[*tuple[Any, ...]]:
    """Return the question for a slice; only it is read, and only once."""
    # Written out for the sake of a hint: without statistics SQLite takes the index that holds the unchanged ones too,
    # and walks through all of them. `+ 0` keeps the index of sources away from a question about an execution.
    owner = {"execution": ["to_execution_id = :owner"], "source": ["source_id = :owner"], "moment": []}[by]
    index = f"ix_changes_{by}{which.ending}"
    clauses = [*owner, which.clause]
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
    # Not inside: of a rare kind all changes there are would be read. So it is looked for among the newest.
    wanted = [change.c.type == bindparam("type")] if "type" in given else []
    return select(change.c.to_captured_at, change.c.id, and_(*visible_change(change.c), *wanted))


def _events() -> Select[*tuple[Any, ...]]:
    lost = Change.type.in_([ChangeType.GONE.value, ChangeType.ERROR.value, ChangeType.NOISE.value])
    titled = case((lost, Change.from_snapshot_id), else_=Change.to_snapshot_id)
    return (
        select(
            Change.id,
            Change.type,
            Source.code,
            Source.name,
            PageGroup.url,
            Change.from_snapshot_id,
            Change.to_snapshot_id,
            Change.from_captured_at,
            Change.to_captured_at,
            Change.from_execution_id,
            Change.to_execution_id,
            Diff.id,
            Diff.added_sections,
            Diff.removed_sections,
            Diff.changed_sections,
            Diff.added_lines,
            Diff.removed_lines,
            Diff.ratio,
            Diff.high_noise,
            Diff.truncated,
            Diff.body.is_not(None),
            Diff.version,
            Change.error,
            Change.computed_at,
            Document.title,
        )
        .select_from(Change)
        .join(Source, Source.id == Change.source_id)
        .outerjoin(PageGroup, PageGroup.id == Change.group_id)
        .outerjoin(Diff, Diff.id == Change.diff_id)
        .outerjoin(Snapshot, Snapshot.id == titled)
        .outerjoin(Document, Document.id == Snapshot.document_id)
    )


def event_at(session: Session, to_snapshot_id: int) -> ListedChange | None:
    """Return what happened at this capture, if that is known and may be shown."""
    row = session.execute(
        _events().where(Change.to_snapshot_id == to_snapshot_id, *visible_change(Change))
    ).one_or_none()
    return None if row is None else ListedChange._make(row)


def events_of(session: Session, ids: Sequence[int]) -> list[ListedChange]:
    """Return these changes in this order, less what may not be shown; ask for some hundred."""
    rows = session.execute(_events().where(Change.id.in_(ids), *visible_change(Change)))
    found = {row[0]: ListedChange._make(row) for row in rows}
    return [found[change_id] for change_id in ids if change_id in found]


def timeline(session: Session, group_id: int, *, limit: int) -> list[TimelineEntry]:
    """Return the newest captures of a group that may be shown, oldest first."""
    rows = session.execute(
        select(
            Snapshot.id,
            Snapshot.url_hash,
            Snapshot.url,
            Snapshot.captured_at,
            Snapshot.execution_id,
            Document.title,
            Snapshot.status,
            Snapshot.noise,
        )
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.group_id == group_id, *visible())
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(limit)
    )
    return [TimelineEntry._make(row) for row in rows][::-1]


def group_url(session: Session, group_id: int | None) -> str | None:
    """Return the address of a group."""
    return None if group_id is None else session.scalar(select(PageGroup.url).where(PageGroup.id == group_id))


def source(session: Session, source_id: int) -> Source:
    """Return a source."""
    return session.get_one(Source, source_id)
