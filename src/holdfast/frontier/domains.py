"""Domains for operators: politeness state, share of a crawl, robots files, and linked hosts that were not crawled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, func, select, tuple_
from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.db.models import Domain, Exclusion, Page, Queue, Robots
from holdfast.errors import Invalid, NotFound
from holdfast.frontier.control import DomainUnknown
from holdfast.frontier.figures import COUNTED, select_frontier
from holdfast.records import Operator, from_row, record
from holdfast.types import RobotsAnswer, RobotsRecord

TOP_DOMAINS: Final = 500


class DomainState(StrEnum):
    """Current state of a domain; the first that applies."""

    FORBIDDEN = "forbidden"
    PAUSED = "paused"
    UNREACHABLE = "unreachable"
    """It does not respond, or its robots.txt is unavailable: it is retried later."""
    ACTIVE = "active"
    """A process holds its lease and sends requests."""
    RESTING = "resting"
    """It may be requested again later, because of its delay or its server's."""
    READY = "ready"


class HostOrder(StrEnum):
    """Orders of the hosts of a crawl; each has an index."""

    DUE = "due"
    """Hosts with queued URLs, by the time of the next request."""
    MET = "met"
    """All hosts, by discovery in the archive."""


class DomainOrder(StrEnum):
    """How domains are sorted."""

    DOMAIN = "domain"
    PAGE_COUNT = "page_count"
    """At most the 500 largest domains."""
    CRAWL_DELAY = "crawl_delay"
    """Only domains that an operator slowed down."""
    CREATED_AT = "created_at"


@record
class QueueInExecution:
    """URLs of a domain in one execution."""

    execution_id: Operator[int]
    pending: Operator[int]
    completed: Operator[int]
    failed: Operator[int]
    ruled_out: Operator[int]

    def __str__(self) -> str:
        return f"pending {self.pending}, completed {self.completed}, failed {self.failed}, ruled out {self.ruled_out}"


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


@record
class DiscoveredHost:
    """A host that was linked but not crawled."""

    host: Operator[str]
    rule: Operator[str]
    """The rule that excluded it."""
    links: Operator[int]


def is_held(domain: Domain, now: datetime) -> bool:
    return domain.lease_owner is not None and domain.lease_expires_at > to_micros(now)


def next_moment(domain: Domain) -> datetime | None:
    """Return when a domain may be requested next; None if unset."""
    return from_micros(domain.next_allowed_at) if domain.next_allowed_at else None


def domain_state(domain: Domain, now: datetime) -> DomainState:
    moment = next_moment(domain)
    for holds, state in (
        (not domain.is_allowed, DomainState.FORBIDDEN),
        (domain.paused_at is not None, DomainState.PAUSED),
        (domain.unreachable_since is not None, DomainState.UNREACHABLE),
        (is_held(domain, now), DomainState.ACTIVE),
        (moment is not None and moment > now + timedelta(seconds=1), DomainState.RESTING),
    ):
        if holds:
            return state
    return DomainState.READY


_FEW: Final[dict[DomainState, Sequence[ColumnElement[bool]]]] = {
    # Only operators forbid and pause domains, and the index has all that an operator changed.
    DomainState.FORBIDDEN: (Domain.changed_at.is_not(None), ~Domain.is_allowed),
    DomainState.PAUSED: (Domain.changed_at.is_not(None), Domain.paused_at.is_not(None)),
    DomainState.UNREACHABLE: (Domain.unreachable_since.is_not(None),),
    DomainState.ACTIVE: (Domain.lease_owner.is_not(None), Domain.lease_expires_at > 0),
}
FILTERED: Final = tuple(_FEW)
"""States that domain lists can be filtered by: each has an index."""


def listed_domains(
    session: Session, *, by_age: bool, falls: bool, state: DomainState | None, after: str | int | None, limit: int
) -> list[Domain]:
    """Return domains by name, or by discovery; continues after the name or id `after`."""
    key: Any = Domain.id if by_age else Domain.name
    where = list(_FEW.get(state, ())) if state is not None else []
    if after is not None:
        where.append(key < after if falls else key > after)
    return list(session.scalars(select(Domain).where(*where).order_by(key.desc() if falls else key).limit(limit)))


def slowed_domains(session: Session, *, falls: bool, limit: int) -> list[Domain]:
    """Return the domains whose delay an operator set, ordered by delay."""
    query = select(Domain).where(Domain.changed_at.is_not(None), Domain.delay_s.is_not(None))
    order = Domain.delay_s.desc() if falls else Domain.delay_s
    return list(session.scalars(query.order_by(order, Domain.id).limit(limit)))


def domains_by_id(session: Session, ids: Sequence[int]) -> dict[int, Domain]:
    return {row.id: row for row in session.scalars(select(Domain).where(Domain.id.in_(ids)))}


def domain_named(session: Session, name: str) -> Domain | None:
    return session.scalars(select(Domain).where(Domain.name == name)).one_or_none()


def find_domain(session: Session, name: str) -> Domain:
    """Return a domain; raise DomainUnknown."""
    found = domain_named(session, name)
    if found is None:
        raise DomainUnknown(name)
    return found


def page_count(session: Session, domain_id: int) -> int:
    """Return how many pages of a domain are known, counted up to 10,000."""
    some = select(Page.id).where(Page.domain_id == domain_id).limit(COUNTED).subquery()
    return session.scalar(select(func.count()).select_from(some)) or 0


def largest_domains(session: Session) -> list[tuple[int, int]]:
    """Return the domains with the most pages, with counts: counts all pages, so do not call it for each request."""
    count = func.count()
    query = select(Page.domain_id, count).group_by(Page.domain_id).order_by(count.desc(), Page.domain_id)
    return [(row[0], row[1]) for row in session.execute(query.limit(TOP_DOMAINS))]


def page_of_domains(
    session: Session,
    *,
    order: DomainOrder,
    falls: bool,
    state: DomainState | None,
    after: str | int | None,
    limit: int,
    now: datetime,
    largest: Callable[[Session], Sequence[tuple[int, int]]] = largest_domains,
) -> tuple[list[DomainRecord], str | int | None]:
    """Return domains in an order, and where to continue.

    `after` is a name or an id; if the order is by delay, or by page count (of the `largest`), how many to skip. Raise
    Invalid for a state with one of these two orders.
    """
    pages: dict[int, int] = {}
    following: str | int | None = None
    if order in (DomainOrder.DOMAIN, DomainOrder.CREATED_AT):
        by_age = order is DomainOrder.CREATED_AT
        rows = listed_domains(session, by_age=by_age, falls=falls, state=state, after=after, limit=limit)
        if len(rows) == limit:
            following = rows[-1].id if by_age else rows[-1].name
    elif state is not None:
        raise Invalid(
            "state: domains of one state are sorted by domain or created_at; leave one of both out", field="state"
        )
    else:
        start = max(0, int(after or 0))
        if order is DomainOrder.PAGE_COUNT:
            counted = largest(session)
            pages = dict((counted if falls else counted[::-1])[start : start + limit])
            found = domains_by_id(session, list(pages))
            rows, is_cut = [found[number] for number in pages if number in found], start + limit < len(counted)
        else:
            rows = slowed_domains(session, falls=falls, limit=start + limit + 1)[start:]
            rows, is_cut = rows[:limit], len(rows) > limit
        following = start + limit if is_cut else None
    counts = [pages.get(row.id) or page_count(session, row.id) for row in rows]
    return [domain_record(row, pages=count, now=now) for row, count in zip(rows, counts, strict=True)], following


def newest_page(session: Session) -> int:
    return session.scalar(select(func.max(Page.id))) or 0


_QUEUE: Final = (
    Queue.execution_id,
    Queue.open.label("pending"),
    Queue.succeeded.label("completed"),
    Queue.failed,
    Queue.ruled_out,
)


def queue_of_domain(session: Session, frontier_id: int, domain_id: int) -> QueueInExecution | None:
    row = session.execute(
        select(*_QUEUE).where(Queue.execution_id == frontier_id, Queue.domain_id == domain_id)
    ).one_or_none()
    return None if row is None else from_row(QueueInExecution, row)


def hosts_of_crawl(
    session: Session, frontier_id: int, *, order: HostOrder, after: Sequence[int] | None, limit: int, now: datetime
) -> tuple[list[CrawledHost], tuple[int, int] | None]:
    """Return hosts of an execution's frontier, and where to continue: the time and id of the last one."""
    query = select(*_QUEUE, Queue.due_at, Queue.domain_id).where(Queue.execution_id == frontier_id)
    if order is HostOrder.DUE:
        query = query.where(Queue.open > 0).order_by(Queue.due_at, Queue.domain_id)
        if after is not None:
            query = query.where(tuple_(Queue.due_at, Queue.domain_id) > (after[0], after[1]))
    else:
        query = query.order_by(Queue.domain_id)
        if after is not None:
            query = query.where(Queue.domain_id > after[1])
    rows = session.execute(query.limit(limit)).all()
    known = domains_by_id(session, [row.domain_id for row in rows])
    hosts = [
        from_row(
            CrawledHost,
            known[row.domain_id],
            **{name: getattr(row, name) for name in ("pending", "completed", "failed", "ruled_out")},
            due_at=from_micros(row.due_at) if row.pending and row.due_at else None,
            **_shared(known[row.domain_id], now),
        )
        for row in rows
        if row.domain_id in known
    ]
    return hosts, (rows[-1].due_at, rows[-1].domain_id) if len(hosts) == limit else None


def robots_of_domain(session: Session, domain_id: int) -> list[RobotsRecord]:
    return _robots(session, Robots.domain_id == domain_id)


def robots_of_origin(session: Session, origin: str) -> RobotsRecord | None:
    return next(iter(_robots(session, Robots.origin == origin)), None)


def _robots(session: Session, where: ColumnElement[bool]) -> list[RobotsRecord]:
    rows = session.scalars(select(Robots).where(where).order_by(Robots.origin))
    return [from_row(RobotsRecord, row, answer=RobotsAnswer(row.answer)) for row in rows]


def left_out_hosts(
    session: Session, frontier_id: int, *, rule: str | None, after: Sequence[str] | None, limit: int
) -> list[DiscoveredHost]:
    """Return hosts that an execution's pages link to and that were not crawled, by rule and host."""
    where = [Exclusion.execution_id == frontier_id]
    if rule is not None:
        where.append(Exclusion.rule == rule)
    if after is not None:
        where.append(tuple_(Exclusion.rule, Exclusion.host) > (after[0], after[1]))
    rows = session.execute(
        select(Exclusion.rule, Exclusion.host, Exclusion.count.label("links"))
        .where(*where)
        .order_by(Exclusion.rule, Exclusion.host)
        .limit(limit)
    )
    return [from_row(DiscoveredHost, row) for row in rows]


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


def domain_detail(session: Session, name: str, *, execution: int | None, now: datetime) -> DomainDetail:
    """Return a domain with its robots files, and its queue in an execution or the newest crawl.

    Raise DomainUnknown, or NotFound for an unknown execution.
    """
    row = find_domain(session, name)
    try:
        queue = queue_of_domain(session, select_frontier(session, execution).frontier_id, row.id)
    except NotFound:
        if execution is not None:
            raise
        queue = None
    found = domain_record(row, pages=page_count(session, row.id), now=now)
    origins = [from_row(RobotsOfOrigin, one) for one in robots_of_domain(session, row.id)]
    return from_row(DomainDetail, found, robots=origins, queue=queue)
