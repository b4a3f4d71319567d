"""The frontier as operators see it: figures, and the URLs of a run with their status.

Every query uses an index and reads a bounded number of rows, however large a crawl is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Row, exists, func, select, tuple_
from sqlalchemy.orm import Session, aliased

from holdfast.clock import to_micros
from holdfast.db.models import AddedUrl, Domain, Execution, Job, Page, PageCrawl, Queue, Source
from holdfast.errors import Invalid, NotFound
from holdfast.jobs.attempt_queries import is_retried
from holdfast.records import Operator, record
from holdfast.types import Outcome, UrlKind
from holdfast.values import dataclass

LOOKED_AT: Final = 5000
"""Rows that one response reads where a filter has no index; the response then says where to continue."""
_BATCH: Final = 500
COUNTED: Final = 10_000
"""Limit of counts where the number of rows may be large."""


class SelectedFrontier(NamedTuple):
    """An execution, and the one whose frontier it uses."""

    execution_id: int
    frontier_id: int
    state: str
    source: str
    source_id: int


_FRONTIER_ID = func.coalesce(Execution.frontier_id, Execution.id)
# Imports and polls of feeds have no frontier.
_HAS_FRONTIER = Job.kind.not_in(("feed", "import")), exists().where(Queue.execution_id == _FRONTIER_ID)


def select_frontier(session: Session, wanted: int | None) -> SelectedFrontier:
    """Return this execution, or the newest crawl that has a frontier; raise NotFound."""
    statement = (
        select(Execution.id, _FRONTIER_ID, Execution.state, Source.code, Source.id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
    )
    newest = statement.where(*_HAS_FRONTIER).order_by(Execution.id.desc()).limit(1)
    row = session.execute(newest if wanted is None else statement.where(Execution.id == wanted)).one_or_none()
    if row is None and wanted is None:
        raise NotFound("no crawl has queued anything yet; start one with: holdfast crawl https://example.org")
    if row is None:
        raise NotFound(f"there is no execution {wanted}; leave it out for the newest crawl, or see: holdfast status")
    return SelectedFrontier(*row)


@record
class FrontierFigures:
    """Figures of an execution's frontier; each URL counts once."""

    execution_id: Operator[int]
    source_code: Operator[str]
    state: Operator[str]
    """State of the execution: queued, running, stopped, completed, failed or cancelled."""
    pending: Operator[int]
    """Queued URLs, including those that are being fetched."""
    in_progress: Operator[int]
    """Domains with a running request, one at a time each."""
    completed: Operator[int]
    failed: Operator[int]
    ruled_out: Operator[int]
    """Excluded by a rule, a limit or an operator without a request."""
    total_domains: Operator[int]
    paused_domains: Operator[int]
    """Paused domains with queued URLs."""
    waiting: Operator[int]
    """URLs that an operator added for the source's next run; counted up to 10,000."""


def frontier_figures(session: Session, selected: SelectedFrontier, *, now: datetime) -> FrontierFigures:
    """Return the figures of an execution; reads one row per domain, no attempts."""
    sums = session.execute(
        select(
            func.coalesce(func.sum(Queue.open), 0),
            func.coalesce(func.sum(Queue.succeeded), 0),
            func.coalesce(func.sum(Queue.failed), 0),
            func.coalesce(func.sum(Queue.ruled_out), 0),
            func.count(),
        ).where(Queue.execution_id == selected.frontier_id)
    ).one()
    queued = exists().where(Queue.execution_id == selected.frontier_id, Queue.domain_id == Domain.id, Queue.open > 0)
    # From the few domains that are held, or were changed by hand, to the queue: never the other way round.
    held = select(func.count()).where(Domain.lease_owner.is_not(None), Domain.lease_expires_at > to_micros(now), queued)
    paused = select(func.count()).where(Domain.changed_at.is_not(None), Domain.paused_at.is_not(None), queued)
    added = select(AddedUrl.id).where(AddedUrl.source_id == selected.source_id, AddedUrl.execution_id.is_(None))
    waiting = select(func.count()).select_from(added.limit(COUNTED).subquery())
    pending, completed, failed, ruled_out, domains = (int(value) for value in sums)
    return FrontierFigures(
        execution_id=selected.execution_id,
        source_code=selected.source,
        state=selected.state,
        pending=pending,
        completed=completed,
        failed=failed,
        ruled_out=ruled_out,
        total_domains=domains,
        in_progress=session.scalar(held) or 0,
        paused_domains=session.scalar(paused) or 0,
        waiting=session.scalar(waiting) or 0,
    )


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


def newest_of_source(session: Session, source_id: int) -> int:
    """Return the newest crawl of a source that has a frontier; raise NotFound."""
    crawls = select(Execution.id).join(Job, Job.id == Execution.job_id).where(Job.source_id == source_id)
    found = session.scalar(crawls.where(*_HAS_FRONTIER).order_by(Execution.id.desc()).limit(1))
    if found is None:
        raise NotFound(f"no crawl of source {source_id} has queued anything yet; run its job, or add an address")
    return found


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
