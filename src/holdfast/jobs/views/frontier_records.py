"""The frontier and its domains for operators: queued URLs, hosts of a crawl, domains and their robots files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from holdfast.clock import digits14, from_micros, moment_or_none
from holdfast.db.models import Domain, PageCrawl, Snapshot
from holdfast.jobs.views.frontier_queries import UrlStatus, status_of
from holdfast.jobs.views.host_queries import DomainState, QueueInExecution, domain_state, is_held, next_moment
from holdfast.jobs.views.outcome_words import outcome_word, robots_line
from holdfast.records import Operator, from_row, record
from holdfast.types import Outcome, RobotsAnswer, RobotsRecord, UrlKind
from holdfast.warc.record import snapshot_id
from holdfast.withdrawals.visibility import visible


@record
class RunCapture:
    """The capture of a URL, or of its redirect target."""

    snapshot_id: Operator[int]
    timestamp: Operator[str]
    """14 digits, as in the URL of its replay."""
    url: Operator[str]


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


@record
class DomainRecord:
    """A domain and its current state."""

    domain: Operator[str]
    state: Operator[DomainState]
    page_count: Operator[int]
    """Known pages, counted up to 10,000."""
    crawl_delay: Operator[float | None]
    """Seconds between requests, set by an operator; null: the source's delay."""
    is_allowed: Operator[bool]
    paused: Operator[bool]
    paused_at: Operator[datetime | None]
    circuit: Operator[str]
    """closed, open or half_open."""
    circuit_failures: Operator[int]
    circuit_opened_at: Operator[datetime | None]
    slow_down: Operator[float]
    """Factor on the delay after 429 and 503; 1 means no slow-down."""
    unreachable_since: Operator[datetime | None]
    next_allowed_at: Operator[datetime | None]
    leased: Operator[bool]
    """Whether a process holds its lease."""
    created_at: Operator[datetime]


@record
class RobotsOfOrigin:
    """The last known robots.txt of an origin."""

    origin: Operator[str]
    answer: Operator[RobotsAnswer]
    """rules, allow_all (no robots.txt), or unreachable: nothing may be fetched."""
    status: Operator[int | None]
    failures: Operator[int]
    fetched_at: Operator[datetime]
    checked_at: Operator[datetime]

    def __str__(self) -> str:
        return f"{self.origin} {self.answer.value} ({self.status})"


@record
class DomainDetail(DomainRecord):
    """A domain with its robots files and its queue."""

    robots: Operator[list[RobotsOfOrigin]]
    queue: Operator[QueueInExecution | None]
    """Queue in the newest crawl; null if that has no URL of this domain."""


@record
class CrawledHost:
    """Counts and state of a host in one crawl."""

    domain: Operator[str]
    state: Operator[DomainState]
    """State of the host itself, in all crawls."""
    pending: Operator[int]
    completed: Operator[int]
    failed: Operator[int]
    ruled_out: Operator[int]
    due_at: Operator[datetime | None]
    """Earliest time of the next request; null if nothing is queued."""
    next_allowed_at: Operator[datetime | None]
    crawl_delay: Operator[float | None]
    """Seconds between requests, set by an operator; null: the source's delay."""
    circuit: Operator[str]
    """closed, open or half_open."""
    circuit_failures: Operator[int]
    slow_down: Operator[float]
    """Factor on the delay after 429 and 503; 1 means no slow-down."""
    paused_at: Operator[datetime | None]
    unreachable_since: Operator[datetime | None]


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


def domain_record(row: Domain, *, pages: int, now: datetime) -> DomainRecord:
    return from_row(
        DomainRecord,
        row,
        page_count=pages,
        paused=row.paused_at is not None,
        leased=is_held(row, now),
        **_shared(row, now),
    )


def _shared(row: Domain, now: datetime) -> dict[str, Any]:
    """Return the fields of a domain that both records have."""
    return {
        "domain": row.name,
        "state": domain_state(row, now),
        "crawl_delay": row.delay_s,
        "circuit": row.circuit_state,
        "slow_down": row.penalty,
        "next_allowed_at": next_moment(row),
    }


def domain_detail(
    row: Domain, *, pages: int, now: datetime, robots: list[RobotsRecord], queue: QueueInExecution | None
) -> DomainDetail:
    origins = [from_row(RobotsOfOrigin, one) for one in robots]
    return from_row(DomainDetail, domain_record(row, pages=pages, now=now), robots=origins, queue=queue)


def crawled_host(domain: Domain, queue: QueueInExecution, due_at: int, *, now: datetime) -> CrawledHost:
    return from_row(
        CrawledHost,
        domain,
        pending=queue.pending,
        completed=queue.completed,
        failed=queue.failed,
        ruled_out=queue.ruled_out,
        due_at=from_micros(due_at) if queue.pending and due_at else None,
        **_shared(domain, now),
    )
