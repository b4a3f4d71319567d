"""Recent crawl activity: status codes, hosts, pages, and unreachable hosts.

Status classes come from the time series. Everything else is counted from the newest attempts of the period,
at most `MOST_ATTEMPTS`, in index order: the cost does not grow with the archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Row, select
from sqlalchemy.orm import Session, load_only

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.models import Domain, Execution, Job, Page, PageCrawl, Robots, Snapshot, Source
from holdfast.frontier.attempts import capture_of
from holdfast.frontier.domains import DomainState, domains_by_id, listed_domains, next_moment
from holdfast.frontier.outcome_words import outcome_word
from holdfast.jobs.views.timeseries import read_series
from holdfast.records import Operator, record
from holdfast.types import FAILURES, Outcome, RobotsAnswer, UrlKind
from holdfast.urls import page_key
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
# Number of runs that continued the frontiers of those pages; beyond it, older pages show the run that started the
# frontier.
_RUNS = 200
# Read more than needed: some pages may be hidden.
_PAGES_READ = 5 * _PAGES


class BusyOrder(StrEnum):
    CAPTURES = "captures"
    BYTES = "bytes"
    ERRORS = "errors"


@record
class StatusCount:
    """How often one status code was returned."""

    status: Operator[int | None]
    """Null without a response."""
    attempts: Operator[int]


@record
class BusyDomain:
    """Crawl results of one domain."""

    domain: Operator[str]
    captures: Operator[int]
    bytes: Operator[int]
    """Received from the network."""
    errors: Operator[int]
    """Failed attempts; a retry counts again."""


@record
class RequestedPage:
    """A page that was requested."""

    url: Operator[str]
    title: Operator[str | None]
    outcome: Operator[Outcome]
    word: Operator[str]
    """The outcome in plain words."""
    reason: Operator[str | None]
    status: Operator[int | None]
    completed_at: Operator[datetime]
    execution_id: Operator[int]
    source_code: Operator[str]
    snapshot_id: Operator[int | None]
    """Its capture; null before that is indexed, or without one."""
    captured_at: Operator[datetime | None]


@record
class UnreachableHost:
    """A host that no crawl requests until its next retry."""

    domain: Operator[str]
    since: Operator[datetime]
    failures: Operator[int]
    """Consecutive failures."""
    reason: Operator[str]
    next_try_at: Operator[datetime | None]
    next_step: Operator[str]


@record
class Activity:
    """Recent crawl activity. All but `statusClasses` and `unreachableHosts` is counted from the newest attempts."""

    since: Operator[datetime]
    until: Operator[datetime]
    status_classes: Operator[dict[str, int]]
    """Responses of the whole period, by class."""
    attempts: Operator[int]
    """Attempts that are counted: the newest, at most 5,000."""
    is_cut: Operator[bool]
    """Whether the period has more attempts than are counted."""
    counted_from: Operator[datetime | None]
    """When the oldest counted attempt ended."""
    statuses: Operator[list[StatusCount]]
    """Most frequent first."""
    domains: Operator[list[BusyDomain]]
    """At most 20."""
    pages: Operator[list[RequestedPage]]
    """The newest first, at most 20."""
    unreachable_hosts: Operator[list[UnreachableHost]]
    """By name, at most 20; `/api/domains` lists all."""


_ATTEMPT: Final[tuple[Any, ...]] = (
    PageCrawl.id,
    PageCrawl.domain_id,
    PageCrawl.kind,
    PageCrawl.outcome,
    PageCrawl.reason,
    PageCrawl.message,
    PageCrawl.status_code.label("status"),
    PageCrawl.wire_bytes.label("bytes"),
    PageCrawl.warc_file_id.label("file_id"),
    PageCrawl.completed_at,
)


def read_activity(session: Session, clock: Clock, *, hours: int, order: BusyOrder = BusyOrder.CAPTURES) -> Activity:
    series = read_series(session, clock, hours=hours)
    newest = _newest_attempts(session, series.since)
    counted = newest[:MOST_ATTEMPTS]
    return Activity(
        since=series.since,
        until=series.until,
        status_classes={name: sum(counts) for name, counts in series.status_classes.items()},
        attempts=len(counted),
        is_cut=len(newest) > len(counted),
        counted_from=from_micros(counted[-1].completed_at) if counted else None,
        statuses=[
            StatusCount(status=status, attempts=count)
            for status, count in Counter(one.status for one in counted).most_common()
        ],
        domains=_busiest(session, counted, order),
        pages=_recent_pages(session, [one.id for one in counted if one.kind == UrlKind.PAGE][:_PAGES_READ]),
        unreachable_hosts=_unreachable(session, counted),
    )


def _newest_attempts(session: Session, since: datetime) -> Sequence[Row[Any]]:
    return session.execute(
        select(*_ATTEMPT)
        .where(
            PageCrawl.started_at.is_not(None),
            PageCrawl.completed_at >= to_micros(since),
            # Nothing was requested for these.
            PageCrawl.outcome.not_in((Outcome.BLOCKED_ROBOTS, Outcome.EXCLUDED)),
        )
        .order_by(PageCrawl.completed_at.desc(), PageCrawl.id.desc())
        .limit(MOST_ATTEMPTS + 1)
    ).all()


def _busiest(session: Session, counted: Sequence[Row[Any]], order: BusyOrder) -> list[BusyDomain]:
    figures: dict[BusyOrder, Counter[int]] = {one: Counter() for one in BusyOrder}
    for attempt in counted:
        figures[BusyOrder.CAPTURES][attempt.domain_id] += attempt.file_id is not None
        figures[BusyOrder.BYTES][attempt.domain_id] += attempt.bytes or 0
        figures[BusyOrder.ERRORS][attempt.domain_id] += attempt.outcome in FAILURES
    chosen = [number for number, amount in figures[order].most_common(_DOMAINS) if amount]
    known = domains_by_id(session, chosen)
    return [
        BusyDomain(domain=known[number].name, **{one.value: figures[one][number] for one in BusyOrder})
        for number in chosen
        if number in known
    ]


def _recent_pages(session: Session, ids: Sequence[int]) -> list[RequestedPage]:
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
    captures = visible_snapshots(session, [number for row in shown if (number := capture_of(row[0])) is not None])
    runs = _runs_on(session, {attempt.execution_id for attempt, _, _ in shown})
    return [_recent_page(attempt, url, source, captures, runs) for attempt, url, source in shown]


def _runs_on(session: Session, frontiers: Collection[int]) -> list[Execution]:
    """Return the runs that continued these frontiers, newest first: attempts name the run that began one."""
    jobs = select(Execution.job_id).where(Execution.id.in_(frontiers)).correlate(None)
    query = select(Execution).where(Execution.job_id.in_(jobs), Execution.frontier_id.in_(frontiers))
    query = query.order_by(Execution.id.desc())
    return list(session.scalars(query.options(load_only(Execution.frontier_id, Execution.started_at)).limit(_RUNS)))


def _recent_page(
    attempt: PageCrawl, url: str, source: str, captures: Mapping[int, Snapshot], runs: Sequence[Execution]
) -> RequestedPage:
    capture, outcome = captures.get(capture_of(attempt) or -1), attempt.outcome or ""
    at = from_micros(attempt.completed_at or 0)
    continued = (
        run.id for run in runs if run.frontier_id == attempt.execution_id and run.started_at and run.started_at <= at
    )
    return RequestedPage(
        url=url,
        title=attempt.title,
        outcome=Outcome(outcome),
        word=outcome_word(outcome, attempt.reason),
        reason=attempt.reason,
        status=attempt.status_code,
        completed_at=at,
        execution_id=next(continued, attempt.execution_id),
        source_code=source,
        snapshot_id=None if capture is None else capture.id,
        captured_at=None if capture is None else capture.captured_at,
    )


def _unreachable(session: Session, counted: Sequence[Row[Any]]) -> list[UnreachableHost]:
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


def _unreachable_host(row: Domain, robots: Robots | None, failed: Row[Any] | None) -> UnreachableHost:
    address = row.name
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
        next_try_at=next_moment(row),
        next_step=f"Open {address} in a browser. If it answers, reset the host to crawl it now.",
    )
