"""What crawls did lately: status codes, hosts, pages, and the hosts that do not answer.

Status classes come from the series. Everything else is counted from the newest attempts of the span, at most
`MOST_ATTEMPTS`, which an index has in order: nothing here grows with the archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.config import JobSettings
from holdfast.db.models import Execution, Job, Page, PageCrawl, Robots, Snapshot, Source
from holdfast.jobs.views.host_queries import DomainRow, DomainState, domains_by_id, listed_domains
from holdfast.jobs.views.timeseries import SeriesQuestion, read_series
from holdfast.series.counting import STATUSES
from holdfast.types import FAILURES, Outcome, RobotsAnswer, UrlKind
from holdfast.urls import page_key
from holdfast.values import dataclass
from holdfast.warc.record import snapshot_id
from holdfast.withdrawals.visibility import (
    visible_address,
    visible_page,
    visible_run,
    visible_snapshots,
    withdrawn_among,
)

MOST_ATTEMPTS: Final = 5_000
"""Attempts that are counted: 15 ms on SQLite."""
_DOMAINS, _PAGES, _HOSTS = 20, 20, 20
# Pages that may not be seen leave room for others.
_PAGES_READ = 5 * _PAGES


class BusyOrder(StrEnum):
    """By what the busiest domains are chosen."""

    CAPTURES = "captures"
    BYTES = "bytes"
    ERRORS = "errors"


class DomainActivity(NamedTuple):
    """What the counted attempts on one domain came to."""

    domain: str
    captures: int
    bytes: int
    errors: int


class VisitedPage(NamedTuple):
    """An attempt on a page, with its capture once that is indexed."""

    url: str
    title: str | None
    outcome: str
    reason: str | None
    status: int | None
    completed_at: datetime
    execution_id: int
    source: str
    capture: Snapshot | None


class UnreachableHost(NamedTuple):
    """A host that no crawl asks until it is tried again."""

    domain: str
    since: datetime
    failures: int
    reason: str
    next_try_at: datetime | None
    next_step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What crawls did in a span."""

    since: datetime
    until: datetime
    status_classes: Mapping[str, int]
    """Of the whole span."""
    attempts: int
    """The newest ones, which everything below is counted from."""
    is_cut: bool
    """The span has more attempts than are counted."""
    counted_from: datetime | None
    """When the oldest of them ended."""
    statuses: Sequence[tuple[int | None, int]]
    """Status codes with the number of their attempts, most first; None without a response."""
    domains: Sequence[DomainActivity]
    pages: Sequence[VisitedPage]
    unreachable: Sequence[UnreachableHost]


class _Attempt(NamedTuple):
    id: int
    domain_id: int
    kind: str
    outcome: str
    reason: str | None
    message: str | None
    status: int | None
    bytes: int | None
    file_id: int | None
    completed_at: int


_ATTEMPT: Final = (
    PageCrawl.id,
    PageCrawl.domain_id,
    PageCrawl.kind,
    PageCrawl.outcome,
    PageCrawl.reason,
    PageCrawl.message,
    PageCrawl.status_code,
    PageCrawl.wire_bytes,
    PageCrawl.warc_file_id,
    PageCrawl.completed_at,
)


def read_activity(
    session: Session, clock: Clock, settings: JobSettings, *, hours: int, order: BusyOrder = BusyOrder.CAPTURES
) -> Activity:
    """Return what crawls did in the last hours."""
    series = read_series(session, clock, settings, SeriesQuestion(hours=hours))
    totals: Counter[str] = Counter()
    for point in series.points:
        totals.update({name: point.counts[name] for name in STATUSES})
    newest = _newest_attempts(session, series.since)
    counted = newest[:MOST_ATTEMPTS]
    return Activity(
        since=series.since,
        until=series.until,
        status_classes={name.removeprefix("status_"): totals[name] for name in STATUSES},
        attempts=len(counted),
        is_cut=len(newest) > len(counted),
        counted_from=from_micros(counted[-1].completed_at) if counted else None,
        statuses=Counter(one.status for one in counted).most_common(),
        domains=_busiest(session, counted, order),
        pages=_recent_pages(session, [one.id for one in counted if one.kind == UrlKind.PAGE][:_PAGES_READ]),
        unreachable=_unreachable(session, counted),
    )


def _newest_attempts(session: Session, since: datetime) -> list[_Attempt]:
    rows = session.execute(
        select(*_ATTEMPT)
        .where(
            PageCrawl.started_at.is_not(None),
            PageCrawl.completed_at >= to_micros(since),
            # Nothing was requested for these.
            PageCrawl.outcome.not_in((Outcome.BLOCKED_ROBOTS, Outcome.EXCLUDED)),
        )
        .order_by(PageCrawl.completed_at.desc(), PageCrawl.id.desc())
        .limit(MOST_ATTEMPTS + 1)
    )
    return [_Attempt._make(row) for row in rows]


def _busiest(session: Session, counted: Sequence[_Attempt], order: BusyOrder) -> list[DomainActivity]:
    figures: dict[BusyOrder, Counter[int]] = {one: Counter() for one in BusyOrder}
    for attempt in counted:
        figures[BusyOrder.CAPTURES][attempt.domain_id] += attempt.file_id is not None
        figures[BusyOrder.BYTES][attempt.domain_id] += attempt.bytes or 0
        figures[BusyOrder.ERRORS][attempt.domain_id] += attempt.outcome in FAILURES
    chosen = [number for number, amount in figures[order].most_common(_DOMAINS) if amount]
    known = domains_by_id(session, chosen)
    return [
        DomainActivity(known[number].name, *(figures[one][number] for one in BusyOrder))
        for number in chosen
        if number in known
    ]


def _recent_pages(session: Session, ids: Sequence[int]) -> list[VisitedPage]:
    rows = session.execute(
        select(PageCrawl, Page.url, Source.code)
        .join(Page, Page.id == PageCrawl.page_id)
        .join(Execution, Execution.id == PageCrawl.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(
            PageCrawl.id.in_(ids),
            visible_run(PageCrawl.execution_id),
            visible_address(Page.url_hash),
            visible_page(Page.id),
        )
        .order_by(PageCrawl.completed_at.desc(), PageCrawl.id.desc())
    ).all()
    # The clauses above go by hash: a spelling that no capture has yet is hidden by its key alone.
    keys = {attempt.id: page_key(url) for attempt, url, _ in rows}
    hidden = withdrawn_among(session, keys=set(keys.values()))
    shown = [row for row in rows if keys[row[0].id] not in hidden][:_PAGES]
    captures = visible_snapshots(session, [number for row in shown if (number := _capture_of(row[0])) is not None])
    return [_recent_page(attempt, url, source, captures) for attempt, url, source in shown]


def _capture_of(attempt: PageCrawl) -> int | None:
    if attempt.warc_file_id is None or attempt.warc_ordinal is None:
        return None
    return snapshot_id(attempt.warc_file_id, attempt.warc_ordinal)


def _recent_page(attempt: PageCrawl, url: str, source: str, captures: Mapping[int, Snapshot]) -> VisitedPage:
    number = _capture_of(attempt)
    return VisitedPage(
        url=url,
        title=attempt.title,
        outcome=attempt.outcome or "",
        reason=attempt.reason,
        status=attempt.status_code,
        completed_at=from_micros(attempt.completed_at or 0),
        execution_id=attempt.execution_id,
        source=source,
        capture=None if number is None else captures.get(number),
    )


def _unreachable(session: Session, counted: Sequence[_Attempt]) -> list[UnreachableHost]:
    rows = listed_domains(session, by_age=False, falls=False, state=DomainState.UNREACHABLE, after=None, limit=_HOSTS)
    ids = [row.id for row in rows]
    without_robots: dict[int, Any] = {
        one.domain_id: one
        for one in session.scalars(
            select(Robots).where(Robots.domain_id.in_(ids), Robots.answer == RobotsAnswer.UNREACHABLE.value)
        )
    }
    last_failure = {one.domain_id: one for one in reversed(counted) if one.outcome in FAILURES}
    return [_unreachable_host(row, without_robots.get(row.id), last_failure.get(row.id)) for row in rows]


def _unreachable_host(row: DomainRow, robots: Robots | None, failed: _Attempt | None) -> UnreachableHost:
    address = f"https://{row.name}/"
    if robots is not None:
        address = f"{robots.origin}/robots.txt"
        answer = f"status {robots.status}" if robots.status is not None else "no response"
        reason = f"robots.txt cannot be fetched ({answer}), so nothing may be requested"
    elif failed is not None:
        reason = failed.message or failed.reason or failed.outcome
    else:
        reason = f"{row.circuit_failures} failures in a row"
    return UnreachableHost(
        domain=row.name,
        since=row.unreachable_since or row.created_at,
        failures=row.circuit_failures,
        reason=reason,
        next_try_at=row.next_moment,
        next_step=f"Open {address} in a browser. If it answers, reset the host to crawl it now.",
    )
