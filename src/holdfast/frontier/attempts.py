"""Attempts on URLs: their results, and the lists of a run's URLs for operators.

Every query uses an index and reads a bounded number of rows, however large a crawl is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, and_, exists, func, select, tuple_
from sqlalchemy.orm import Session, aliased

from holdfast.clock import digits14, from_micros, moment_or_none
from holdfast.db.models import Domain, Execution, Job, Page, PageCrawl, Snapshot, Source
from holdfast.errors import Invalid, NotFound
from holdfast.frontier.outcome_words import outcome_word, robots_line
from holdfast.records import Operator, from_row, record
from holdfast.types import Outcome, UrlKind
from holdfast.values import dataclass
from holdfast.warc.record import snapshot_id
from holdfast.withdrawals.visibility import visible

LOOKED_AT: Final = 5000
"""Rows that one response reads where a filter has no index; the response then says where to continue."""
_BATCH: Final = 500
_Next = aliased(PageCrawl)


def is_retried(one: Any) -> Any:
    """SQL condition: another attempt followed this one, so that it is not the page's result."""
    return exists().where(
        _Next.execution_id == one.execution_id,
        _Next.domain_id == one.domain_id,
        _Next.page_id == one.page_id,
        _Next.attempt == one.attempt + 1,
    )


def last_attempts(
    session: Session, executions: Collection[int], pages: Collection[int], domains: Collection[str]
) -> Sequence[Any]:
    """Return the last attempts on these pages, by their columns' names."""
    if not executions or not pages:
        return []
    # Pages are unique within a domain: without it the hash alone would scan every domain of the archive.
    places = select(Domain.id).where(Domain.name.in_(domains)).scalar_subquery()
    return session.execute(
        select(
            Page.url_hash,
            PageCrawl.execution_id,
            PageCrawl.outcome,
            PageCrawl.reason,
            PageCrawl.status_code,
            PageCrawl.redirected_to,
            PageCrawl.warc_file_id,
            PageCrawl.warc_ordinal,
        )
        .join(PageCrawl, and_(PageCrawl.domain_id == Page.domain_id, PageCrawl.page_id == Page.id))
        .where(
            Page.domain_id.in_(places),
            Page.url_hash.in_(pages),
            PageCrawl.execution_id.in_(executions),
            ~is_retried(PageCrawl),
        )
    ).all()


class UrlStatus(StrEnum):
    PENDING = "pending"
    DEFERRED = "deferred"
    """Queued for a later moment: a retry, or one of too many links found together."""
    COMPLETED = "completed"
    FAILED = "failed"
    EXCLUDED = "excluded"
    """Not requested because of a rule, a limit, an operator or robots.txt."""
    RETRIED = "retried"
    """Another attempt followed."""


_CLOSED: Final = {"success": UrlStatus.COMPLETED, "excluded": UrlStatus.EXCLUDED, "blocked_robots": UrlStatus.EXCLUDED}


class UrlOrigin(StrEnum):
    SEED = "seed"
    SITEMAP = "sitemap"
    """From a sitemap or feed."""
    LINK = "link"
    SUBMITTED = "submitted"
    """Added by a person."""


class UrlSort(StrEnum):
    """The orders that have an index."""

    HOST = "host"
    PRIORITY = "priority"
    """Only for pending URLs."""
    NEXT_FETCH_AT = "next_fetch_at"
    """Only for deferred URLs."""


def origin_of(row: Row[Any]) -> UrlOrigin:
    if row.is_listed or row.kind == UrlKind.SITEMAP.value:
        return UrlOrigin.SITEMAP
    if row.via_page_id is not None:
        return UrlOrigin.LINK
    return UrlOrigin.SEED if row.depth == 0 else UrlOrigin.SUBMITTED


def status_of(row: Row[Any]) -> UrlStatus:
    if row.outcome is None:
        return UrlStatus.PENDING if row.scheduled_for is None else UrlStatus.DEFERRED
    return UrlStatus.RETRIED if row.has_later else _CLOSED.get(row.outcome, UrlStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFilter:
    """Filter for URLs; None means no restriction."""

    status: UrlStatus | None = None
    domain: str | None = None
    kind: UrlKind | None = None
    search: str | None = None
    """Part of the URL, case-insensitive."""
    origin: UrlOrigin | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    is_last: bool = False
    """Only the last attempt on each URL."""
    sort: UrlSort | None = None
    """None selects the default order of the status."""
    offset: int = 0
    """Matching URLs to skip first."""
    limit: int = 50
    after: Sequence[int] | None = None
    """Position of the last listed URL: three numbers."""


UrlPlace = tuple[int, int, int]


_VIA = aliased(PageCrawl)
_IS_LISTED: ColumnElement[bool] = (
    exists()
    .where(
        _VIA.page_id == PageCrawl.via_page_id,
        _VIA.execution_id == PageCrawl.execution_id,
        _VIA.kind == UrlKind.SITEMAP.value,
    )
    .correlate(PageCrawl)
)
_COLUMNS: Final[tuple[Any, ...]] = (
    PageCrawl.id,
    PageCrawl.domain_id,
    PageCrawl.page_id,
    PageCrawl.attempt,
    Page.url,
    Domain.name.label("domain"),
    PageCrawl.kind,
    PageCrawl.priority,
    PageCrawl.depth,
    PageCrawl.scheduled_for,
    PageCrawl.outcome,
    PageCrawl.reason,
    PageCrawl.status_code,
    PageCrawl.message,
    PageCrawl.created_at,
    PageCrawl.completed_at,
    PageCrawl.crashes,
    (PageCrawl.outcome.is_not(None) & is_retried(PageCrawl)).label("has_later"),
    PageCrawl.via_page_id,
    # Whether a sitemap or feed of this run lists it.
    _IS_LISTED.label("is_listed"),
)
_SORTED_STATUS: Final = {UrlSort.PRIORITY: UrlStatus.PENDING, UrlSort.NEXT_FETCH_AT: UrlStatus.DEFERRED}


def fetch_counts(session: Session, page_ids: Sequence[int]) -> dict[int, int]:
    """Return how often each page was fetched, over all runs; pages never fetched are omitted."""
    rows = session.execute(
        select(PageCrawl.page_id, func.count())
        .where(PageCrawl.page_id.in_(page_ids), PageCrawl.started_at.is_not(None))
        .group_by(PageCrawl.page_id)
    )
    return {page_id: count for page_id, count in rows}


def frontier_urls(
    session: Session, frontier_id: int, wanted: UrlFilter
) -> tuple[list[Row[Any]], tuple[int, int, int] | None]:
    """Return attempts of an execution (pending ones by priority, deferred ones by time, all by domain), and where to
    continue, which may be set although fewer than requested were found.
    """
    domain_id = None
    if wanted.domain is not None:
        domain_id = session.scalar(select(Domain.id).where(Domain.name == wanted.domain))
        if domain_id is None:
            return [], None
    if wanted.sort in _SORTED_STATUS:
        status = _SORTED_STATUS[wanted.sort]
        if wanted.status not in (None, status):
            raise Invalid(f"sort_by: {wanted.sort.value} is an order of {status.value} addresses only", field="sort_by")
        wanted = replace(wanted, status=status)
    is_by_page = wanted.status is None or wanted.sort is UrlSort.HOST
    parts = _by_page if is_by_page or wanted.status is None else _PARTS.get(wanted.status, _by_page)
    after = None if wanted.after is None else (wanted.after[0], wanted.after[1], wanted.after[2])
    found: list[Row[Any]] = []
    last, skipped = after, 0
    for looked_at, row in enumerate(_read(session, frontier_id, domain_id, parts, after, wanted)):
        if len(found) == wanted.limit or looked_at == LOOKED_AT + wanted.offset:
            return found, last
        last = _place_of(row, parts)
        if _fits(row, wanted):
            if skipped < wanted.offset:
                skipped += 1
            else:
                found.append(row)
    return found, None


def each_url(session: Session, frontier_id: int, wanted: UrlFilter) -> Iterator[Row[Any]]:
    """Yield all attempts that `frontier_urls` lists page by page."""
    while True:
        # A filter without an index reads a few thousand attempts at a time.
        rows, following = frontier_urls(session, frontier_id, wanted)
        yield from rows
        if following is None:
            return
        wanted = replace(wanted, after=following, offset=0)


def attempt_by_id(session: Session, attempt_id: int) -> Row[Any]:
    """Return one attempt, with `frontier_id` and the code of its `source`; raise NotFound."""
    found: Any = session.execute(
        select(*_COLUMNS, PageCrawl.execution_id.label("frontier_id"), Source.code.label("source"))
        .join(Page, Page.id == PageCrawl.page_id)
        .join(Domain, Domain.id == PageCrawl.domain_id)
        .join(Execution, Execution.id == PageCrawl.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(PageCrawl.id == attempt_id)
    ).one_or_none()
    if found is None:
        raise NotFound(f"there is no attempt {attempt_id}; they are listed at /api/frontier/urls")
    row: Row[Any] = found
    return row


def _fits(row: Row[Any], wanted: UrlFilter) -> bool:
    if wanted.status is not None and status_of(row) is not wanted.status:
        return False
    if wanted.kind is not None and row.kind != wanted.kind.value:
        return False
    if wanted.origin is not None and origin_of(row) is not wanted.origin:
        return False
    if wanted.outcome is not None and row.outcome != wanted.outcome.value:
        return False
    if wanted.reason is not None and row.reason != wanted.reason:
        return False
    if wanted.is_last and row.has_later:
        return False
    return wanted.search is None or wanted.search.lower() in row.url.lower()


_Parts = Callable[[UrlPlace | None], list[tuple[Sequence[ColumnElement[bool]], Sequence[Any]]]]


def _by_page(after: UrlPlace | None) -> list[tuple[Sequence[ColumnElement[bool]], Sequence[Any]]]:
    key = (PageCrawl.domain_id, PageCrawl.page_id, PageCrawl.attempt)
    return [([] if after is None else [tuple_(*key) > after], key)]


def _by_moment(after: UrlPlace | None) -> list[tuple[Sequence[ColumnElement[bool]], Sequence[Any]]]:
    key = (PageCrawl.domain_id, PageCrawl.scheduled_for, PageCrawl.id)
    where = [PageCrawl.outcome.is_(None), PageCrawl.scheduled_for.is_not(None)]
    return [(where if after is None else [*where, tuple_(*key) > after], key)]


def _by_priority(after: UrlPlace | None) -> list[tuple[Sequence[ColumnElement[bool]], Sequence[Any]]]:
    where = [PageCrawl.outcome.is_(None), PageCrawl.scheduled_for.is_(None)]
    key = (PageCrawl.domain_id, PageCrawl.priority.desc(), PageCrawl.id)
    if after is None:
        return [(where, key)]
    domain_id, priority, number = after
    same = PageCrawl.domain_id == domain_id
    # Three ranges: one comparison of a key that falls and rises would walk all that was listed before.
    return [
        ([*where, same, PageCrawl.priority == priority, PageCrawl.id > number], key),
        ([*where, same, PageCrawl.priority < priority], key),
        ([*where, PageCrawl.domain_id > domain_id], key),
    ]


_PARTS: Final[dict[UrlStatus, _Parts]] = {UrlStatus.PENDING: _by_priority, UrlStatus.DEFERRED: _by_moment}


def _place_of(row: Row[Any], parts: _Parts) -> UrlPlace:
    if parts is _by_priority:
        return row.domain_id, row.priority, row.id
    if parts is _by_moment:
        return row.domain_id, row.scheduled_for or 0, row.id
    return row.domain_id, row.page_id, row.attempt


def _read(
    session: Session, frontier_id: int, domain_id: int | None, parts: _Parts, after: UrlPlace | None, wanted: UrlFilter
) -> Iterator[Row[Any]]:
    filters = (wanted.kind, wanted.search, wanted.origin, wanted.outcome, wanted.reason, wanted.is_last)
    is_plain = not any(filters) and (wanted.status is None or _PARTS.get(wanted.status) is parts)
    size = min(wanted.offset + wanted.limit + 1, _BATCH) if is_plain else _BATCH
    place = after
    while True:
        rows: list[Row[Any]] = []
        for where, order in parts(place):
            left = size - len(rows)
            rows += session.execute(_window(frontier_id, domain_id, where, order, left))
            if len(rows) == size:
                break
        yield from rows
        if len(rows) < size:
            return
        place = _place_of(rows[-1], parts)


def _window(
    frontier_id: int, domain_id: int | None, where: Sequence[ColumnElement[bool]], order: Sequence[Any], size: int
) -> Any:
    own = [] if domain_id is None else [PageCrawl.domain_id == domain_id]
    return (
        select(*_COLUMNS)
        .join(Page, Page.id == PageCrawl.page_id)
        .join(Domain, Domain.id == PageCrawl.domain_id)
        .where(PageCrawl.execution_id == frontier_id, *own, *where)
        .order_by(*order)
        .limit(size)
    )


@record
class RunCapture:
    """The capture of a URL, or of its redirect target."""

    snapshot_id: Operator[int]
    timestamp: Operator[str]
    """14 digits, as in the URL of its replay."""
    url: Operator[str]


def capture_of(attempt: PageCrawl) -> int | None:
    """Return the id that an attempt's capture has, or gets when it is indexed; None if it stored nothing."""
    if attempt.warc_file_id is None or attempt.warc_ordinal is None:
        return None
    return snapshot_id(attempt.warc_file_id, attempt.warc_ordinal)


def captures_of(session: Session, attempt_ids: Sequence[int]) -> dict[int, RunCapture]:
    stored = session.execute(
        select(PageCrawl.id, PageCrawl.warc_file_id, PageCrawl.warc_ordinal).where(
            PageCrawl.id.in_(attempt_ids), PageCrawl.warc_file_id.is_not(None), PageCrawl.warc_ordinal.is_not(None)
        )
    )
    numbers = {attempt: snapshot_id(file or 0, ordinal or 0) for attempt, file, ordinal in stored}
    rows = session.execute(
        select(Snapshot.id, Snapshot.captured_at, Snapshot.url).where(Snapshot.id.in_(numbers.values()), *visible())
    )
    found = {number: RunCapture(snapshot_id=number, timestamp=digits14(at), url=url) for number, at, url in rows}
    return {attempt: found[number] for attempt, number in numbers.items() if number in found}


@record
class QueuedUrl:
    """One attempt on a URL."""

    id: Operator[int]
    url: Operator[str]
    domain: Operator[str]
    kind: Operator[UrlKind]
    status: Operator[UrlStatus]
    priority: Operator[int]
    depth: Operator[int]
    attempt: Operator[int]
    """1 for the first attempt."""
    outcome: Operator[Outcome | None]
    """Null while it is queued."""
    word: Operator[str]
    """The outcome for display, such as `not found`."""
    reason: Operator[str | None]
    robots_line: Operator[int | None]
    """Line of robots.txt that forbids it; `message` contains the rule."""
    status_code: Operator[int | None]
    message: Operator[str | None]
    crashes: Operator[int]
    """Processes that died while parsing it."""
    created_at: Operator[datetime]
    scheduled_for: Operator[datetime | None]
    """Not fetched before this time."""
    completed_at: Operator[datetime | None]
    capture: Operator[RunCapture | None]
    """Null without a capture, before it is indexed, or if you may not see it."""


def queued_url(row: Row[Any], capture: RunCapture | None = None) -> QueuedUrl:
    return from_row(
        QueuedUrl,
        row,
        kind=UrlKind(row.kind),
        status=status_of(row),
        outcome=None if row.outcome is None else Outcome(row.outcome),
        word=outcome_word(row.outcome, row.reason),
        robots_line=robots_line(row.reason),
        created_at=from_micros(row.created_at),
        scheduled_for=moment_or_none(row.scheduled_for),
        completed_at=moment_or_none(row.completed_at),
        capture=capture,
    )
