"""The frontier as operators look at it: figures, and the addresses of a run with where each stands.

Every question is answered by an index and looks at a bounded number of rows, however large a crawl is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, exists, func, select, tuple_
from sqlalchemy.orm import Session, aliased

from holdfast.clock import from_micros, to_micros
from holdfast.db.models import AddedUrl, Domain, Execution, Job, Page, PageCrawl, Queue, Source
from holdfast.errors import Invalid, NotFound
from holdfast.types import Outcome, UrlKind

_NO_FRONTIER: Final = ("feed", "import")
LOOKED_AT: Final = 5000
"""Rows that one answer looks at where a filter has no index: it then says where to go on."""
_BATCH: Final = 500
COUNTED: Final = 10_000
"""Rows that are counted where their number may be large."""


class MeantFrontier(NamedTuple):
    """An execution and whose frontier it works on."""

    execution_id: int
    frontier_id: int
    state: str
    source: str
    source_id: int


def meant_frontier(session: Session, wanted: int | None) -> MeantFrontier:
    """Return the execution that is meant: this one, or the newest crawl that has a frontier; NotFound."""
    frontier_id = func.coalesce(Execution.frontier_id, Execution.id)
    statement = (
        select(Execution.id, frontier_id, Execution.state, Source.code, Source.id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
    )
    if wanted is not None:
        row = session.execute(statement.where(Execution.id == wanted)).one_or_none()
        if row is None:
            raise NotFound(
                f"there is no execution {wanted}; leave it out for the newest crawl, or see: holdfast status"
            )
        return MeantFrontier(*row)
    # An import or a poll of feeds is not what a person means who asks what is queued.
    newest = (
        statement.where(Job.kind.not_in(_NO_FRONTIER), exists().where(Queue.execution_id == frontier_id))
        .order_by(Execution.id.desc())
        .limit(1)
    )
    row = session.execute(newest).one_or_none()
    if row is None:
        raise NotFound("no crawl has queued anything yet; start one with: holdfast crawl https://example.org")
    return MeantFrontier(*row)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """The frontier of an execution, counted by domain: each address once, however often it was tried."""

    pending: int
    completed: int
    failed: int
    ruled_out: int
    domains: int
    in_progress: int
    """Domains that a process asks at this moment, each with one request at a time."""
    paused_domains: int
    waiting: int
    """Addresses that were added by hand and wait for the source's next run."""


def queue_figures(session: Session, meant: MeantFrontier, *, now: datetime) -> QueueFigures:
    """Return the figures of an execution: one row a domain is read, no attempt."""
    sums = session.execute(
        select(
            func.coalesce(func.sum(Queue.open), 0),
            func.coalesce(func.sum(Queue.succeeded), 0),
            func.coalesce(func.sum(Queue.failed), 0),
            func.coalesce(func.sum(Queue.ruled_out), 0),
            func.count(),
        ).where(Queue.execution_id == meant.frontier_id)
    ).one()
    queued = exists().where(Queue.execution_id == meant.frontier_id, Queue.domain_id == Domain.id, Queue.open > 0)
    # From the few domains that are held, or were changed by hand, to the queue: never the other way round.
    held = select(func.count()).where(Domain.lease_owner.is_not(None), Domain.lease_expires_at > to_micros(now), queued)
    paused = select(func.count()).where(Domain.changed_at.is_not(None), Domain.paused_at.is_not(None), queued)
    added = select(AddedUrl.id).where(AddedUrl.source_id == meant.source_id, AddedUrl.execution_id.is_(None))
    waiting = select(func.count()).select_from(added.limit(COUNTED).subquery())
    pending, completed, failed, ruled_out, domains = (int(value) for value in sums)
    return QueueFigures(
        pending=pending,
        completed=completed,
        failed=failed,
        ruled_out=ruled_out,
        domains=domains,
        in_progress=session.scalar(held) or 0,
        paused_domains=session.scalar(paused) or 0,
        waiting=session.scalar(waiting) or 0,
    )


class UrlStatus(StrEnum):
    """Where an attempt on an address stands."""

    PENDING = "pending"
    DEFERRED = "deferred"
    """Queued for a later moment: a retry, or one of too many links at once."""
    COMPLETED = "completed"
    FAILED = "failed"
    EXCLUDED = "excluded"
    """A rule, a limit or an operator kept it from being asked; robots.txt, too."""
    RETRIED = "retried"
    """Another attempt followed."""


_CLOSED: Final = {
    "success": UrlStatus.COMPLETED,
    "excluded": UrlStatus.EXCLUDED,
    "blocked_robots": UrlStatus.EXCLUDED,
}


class UrlOrigin(StrEnum):
    """How a run came to know an address."""

    SEED = "seed"
    SITEMAP = "sitemap"
    """A sitemap or a feed names it."""
    LINK = "link"
    SUBMITTED = "submitted"
    """A person added it."""


class UrlSort(StrEnum):
    """The orders that an index has."""

    HOST = "host"
    PRIORITY = "priority"
    """Only of pending addresses."""
    NEXT_FETCH_AT = "next_fetch_at"
    """Only of deferred addresses."""


class FrontierUrl(NamedTuple):
    """One attempt on an address."""

    id: int
    domain_id: int
    page_id: int
    attempt: int
    url: str
    domain: str
    kind: str
    priority: int
    depth: int
    scheduled_for: int | None
    outcome: str | None
    reason: str | None
    status_code: int | None
    message: str | None
    created_at: int
    completed_at: int | None
    crashes: int
    has_later: bool
    via_page_id: int | None
    is_listed: bool
    """A sitemap or a feed of this run names it."""

    @property
    def origin(self) -> UrlOrigin:
        """How this run came to know it."""
        if self.is_listed or self.kind == UrlKind.SITEMAP.value:
            return UrlOrigin.SITEMAP
        if self.via_page_id is not None:
            return UrlOrigin.LINK
        return UrlOrigin.SEED if self.depth == 0 else UrlOrigin.SUBMITTED

    @property
    def status(self) -> UrlStatus:
        """Where it stands."""
        if self.outcome is None:
            return UrlStatus.PENDING if self.scheduled_for is None else UrlStatus.DEFERRED
        return UrlStatus.RETRIED if self.has_later else _CLOSED.get(self.outcome, UrlStatus.FAILED)

    def moments(self) -> tuple[datetime, datetime | None, datetime | None]:
        """Return when it was queued, from when on it may be asked, and when it ended."""
        later, done = self.scheduled_for, self.completed_at
        return (
            from_micros(self.created_at),
            None if later is None else from_micros(later),
            None if done is None else from_micros(done),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFilter:
    """Which addresses are wanted; what is None does not matter."""

    status: UrlStatus | None = None
    domain: str | None = None
    kind: UrlKind | None = None
    search: str | None = None
    """A part of the address, whatever its letters' case."""
    origin: UrlOrigin | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    is_last: bool = False
    """Only the last attempt on each address."""
    sort: UrlSort | None = None
    """The order of the status if None."""
    offset: int = 0
    """Fitting addresses to skip first."""
    limit: int = 50
    after: Sequence[int] | None = None
    """The place of the last one that was listed: three numbers."""


UrlPlace = tuple[int, int, int]
"""Where a list of addresses goes on."""


class UrlWindow(NamedTuple):
    """Some addresses, and the place to go on from; it may be there although fewer than asked for were found."""

    rows: list[FrontierUrl]
    next: tuple[int, int, int] | None


_LATER = aliased(PageCrawl)
_HAS_LATER: ColumnElement[bool] = PageCrawl.outcome.is_not(None) & exists().where(
    _LATER.execution_id == PageCrawl.execution_id,
    _LATER.domain_id == PageCrawl.domain_id,
    _LATER.page_id == PageCrawl.page_id,
    _LATER.attempt == PageCrawl.attempt + 1,
).correlate(PageCrawl)
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
_COLUMNS: Final = (
    PageCrawl.id,
    PageCrawl.domain_id,
    PageCrawl.page_id,
    PageCrawl.attempt,
    Page.url,
    Domain.name,
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
    _HAS_LATER.label("has_later"),
    PageCrawl.via_page_id,
    _IS_LISTED.label("is_listed"),
)
_SORTED_STATUS: Final = {UrlSort.PRIORITY: UrlStatus.PENDING, UrlSort.NEXT_FETCH_AT: UrlStatus.DEFERRED}


def fetch_counts(session: Session, page_ids: Sequence[int]) -> dict[int, int]:
    """Return how often each of these pages was fetched, over all runs; those never fetched are left out."""
    rows = session.execute(
        select(PageCrawl.page_id, func.count())
        .where(PageCrawl.page_id.in_(page_ids), PageCrawl.started_at.is_not(None))
        .group_by(PageCrawl.page_id)
    )
    return {page_id: count for page_id, count in rows}


def frontier_urls(session: Session, frontier_id: int, wanted: UrlFilter) -> UrlWindow:
    """Return attempts of an execution: what is pending by priority, what is deferred by its moment, all by domain."""
    domain_id = None
    if wanted.domain is not None:
        domain_id = session.scalar(select(Domain.id).where(Domain.name == wanted.domain))
        if domain_id is None:
            return UrlWindow([], None)
    if wanted.sort in _SORTED_STATUS:
        status = _SORTED_STATUS[wanted.sort]
        if wanted.status not in (None, status):
            raise Invalid(f"sort_by: {wanted.sort.value} is an order of {status.value} addresses only", field="sort_by")
        wanted = replace(wanted, status=status)
    is_by_page = wanted.status is None or wanted.sort is UrlSort.HOST
    parts = _by_page if is_by_page or wanted.status is None else _PARTS.get(wanted.status, _by_page)
    after = None if wanted.after is None else (wanted.after[0], wanted.after[1], wanted.after[2])
    found: list[FrontierUrl] = []
    last, skipped = after, 0
    for looked_at, row in enumerate(_read(session, frontier_id, domain_id, parts, after, wanted)):
        if len(found) == wanted.limit or looked_at == LOOKED_AT + wanted.offset:
            return UrlWindow(found, last)
        last = _place_of(row, parts)
        if _fits(row, wanted):
            if skipped < wanted.offset:
                skipped += 1
            else:
                found.append(row)
    return UrlWindow(found, None)


class AttemptOfSource(NamedTuple):
    """One attempt, and whose frontier it stands in."""

    row: FrontierUrl
    frontier_id: int
    source: str


def attempt_by_id(session: Session, attempt_id: int) -> AttemptOfSource:
    """Return one attempt; NotFound."""
    found = session.execute(
        select(*_COLUMNS, PageCrawl.execution_id, Source.code)
        .join(Page, Page.id == PageCrawl.page_id)
        .join(Domain, Domain.id == PageCrawl.domain_id)
        .join(Execution, Execution.id == PageCrawl.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(PageCrawl.id == attempt_id)
    ).one_or_none()
    if found is None:
        raise NotFound(f"there is no attempt {attempt_id}; they are listed at /api/frontier/urls")
    values = tuple(found)
    return AttemptOfSource(FrontierUrl(*values[:-2]), values[-2], values[-1])


def newest_of_source(session: Session, source_id: int) -> int:
    """Return the newest crawl of a source that has a frontier; NotFound."""
    frontier_id = func.coalesce(Execution.frontier_id, Execution.id)
    found = session.scalar(
        select(Execution.id)
        .join(Job, Job.id == Execution.job_id)
        .where(
            Job.source_id == source_id,
            Job.kind.not_in(_NO_FRONTIER),
            exists().where(Queue.execution_id == frontier_id),
        )
        .order_by(Execution.id.desc())
        .limit(1)
    )
    if found is None:
        raise NotFound(f"no crawl of source {source_id} has queued anything yet; run its job, or add an address")
    return found


def _fits(row: FrontierUrl, wanted: UrlFilter) -> bool:
    if wanted.status is not None and row.status is not wanted.status:
        return False
    if wanted.kind is not None and row.kind != wanted.kind.value:
        return False
    if wanted.origin is not None and row.origin is not wanted.origin:
        return False
    if wanted.outcome is not None and row.outcome != wanted.outcome.value:
        return False
    if wanted.reason is not None and row.reason != wanted.reason:
        return False
    if wanted.is_last and row.has_later:
        return False
    return wanted.search is None or wanted.search.lower() in row.url.lower()


_Parts = Callable[[UrlPlace | None], list[tuple[Sequence[ColumnElement[bool]], Sequence[Any]]]]
"""The ranges of an index that come after a place, each with its order."""


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


def _place_of(row: FrontierUrl, parts: _Parts) -> UrlPlace:
    if parts is _by_priority:
        return row.domain_id, row.priority, row.id
    if parts is _by_moment:
        return row.domain_id, row.scheduled_for or 0, row.id
    return row.domain_id, row.page_id, row.attempt


def _read(
    session: Session, frontier_id: int, domain_id: int | None, parts: _Parts, after: UrlPlace | None, wanted: UrlFilter
) -> Iterator[FrontierUrl]:
    """Yield attempts after a place, a batch at a time."""
    filters = (wanted.kind, wanted.search, wanted.origin, wanted.outcome, wanted.reason, wanted.is_last)
    is_plain = not any(filters) and (wanted.status is None or _PARTS.get(wanted.status) is parts)
    size = min(wanted.offset + wanted.limit + 1, _BATCH) if is_plain else _BATCH
    place = after
    while True:
        rows: list[FrontierUrl] = []
        for where, order in parts(place):
            left = size - len(rows)
            rows += [FrontierUrl(*row) for row in session.execute(_window(frontier_id, domain_id, where, order, left))]
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
