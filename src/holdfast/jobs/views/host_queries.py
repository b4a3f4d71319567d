"""Domains as operators look at them: how each is treated, its part in a crawl, its robots files, hosts left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, func, select, tuple_
from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.db.models import Domain, Exclusion, Page, Queue, Robots
from holdfast.jobs.views.frontier_queries import COUNTED
from holdfast.types import RobotsAnswer, RobotsState

TOP_DOMAINS: Final = 500


class DomainState(StrEnum):
    """What a domain is at this moment; the first that holds."""

    FORBIDDEN = "forbidden"
    PAUSED = "paused"
    UNREACHABLE = "unreachable"
    """It does not answer, or gives no robots.txt: it is tried again later."""
    ACTIVE = "active"
    """A process holds it and asks it."""
    RESTING = "resting"
    """It may be asked again later, as its delay or its server wants."""
    READY = "ready"


class DomainRow(NamedTuple):
    """A domain as it stands."""

    id: int
    name: str
    delay_s: float | None
    is_allowed: bool
    paused_at: datetime | None
    next_allowed_at: int
    lease_owner: int | None
    lease_expires_at: int
    circuit_state: str
    circuit_failures: int
    circuit_opened_at: datetime | None
    penalty: float
    unreachable_since: datetime | None
    robots_after: datetime | None
    created_at: datetime

    def is_held(self, now: datetime) -> bool:
        """Return whether a process asks it."""
        return self.lease_owner is not None and self.lease_expires_at > to_micros(now)

    @property
    def next_moment(self) -> datetime | None:
        """When it may be asked next; None if that was never said."""
        return from_micros(self.next_allowed_at) if self.next_allowed_at else None

    def state(self, now: datetime) -> DomainState:
        """Return what it is."""
        rests = self.next_moment is not None and self.next_moment > now + timedelta(seconds=1)
        for holds, state in (
            (not self.is_allowed, DomainState.FORBIDDEN),
            (self.paused_at is not None, DomainState.PAUSED),
            (self.unreachable_since is not None, DomainState.UNREACHABLE),
            (self.is_held(now), DomainState.ACTIVE),
            (rests, DomainState.RESTING),
        ):
            if holds:
                return state
        return DomainState.READY


_DOMAIN: Final = (
    Domain.id,
    Domain.name,
    Domain.delay_s,
    Domain.is_allowed,
    Domain.paused_at,
    Domain.next_allowed_at,
    Domain.lease_owner,
    Domain.lease_expires_at,
    Domain.circuit_state,
    Domain.circuit_failures,
    Domain.circuit_opened_at,
    Domain.penalty,
    Domain.unreachable_since,
    Domain.robots_after,
    Domain.created_at,
)
_FEW: Final[dict[DomainState, Sequence[ColumnElement[bool]]]] = {
    # Only an operator forbids and pauses, and the index has the domains that one changed.
    DomainState.FORBIDDEN: (Domain.changed_at.is_not(None), ~Domain.is_allowed),
    DomainState.PAUSED: (Domain.changed_at.is_not(None), Domain.paused_at.is_not(None)),
    DomainState.UNREACHABLE: (Domain.unreachable_since.is_not(None),),
    DomainState.ACTIVE: (Domain.lease_owner.is_not(None), Domain.lease_expires_at > 0),
}
FILTERED: Final = tuple(_FEW)
"""States by which domains can be looked for: an index has each."""


def listed_domains(
    session: Session, *, by_age: bool, falls: bool, state: DomainState | None, after: str | int | None, limit: int
) -> list[DomainRow]:
    """Return domains by name, or by when they were first met; after the name or the id of the last that was listed."""
    key: Any = Domain.id if by_age else Domain.name
    where = list(_FEW.get(state, ())) if state is not None else []
    if after is not None:
        where.append(key < after if falls else key > after)
    rows = session.execute(select(*_DOMAIN).where(*where).order_by(key.desc() if falls else key).limit(limit))
    return [DomainRow._make(row) for row in rows]


def slowed_domains(session: Session, *, falls: bool, limit: int) -> list[DomainRow]:
    """Return the domains with a delay of their own, by it: those that an operator slowed."""
    order = (Domain.delay_s.desc(), Domain.id) if falls else (Domain.delay_s, Domain.id)
    where = (Domain.changed_at.is_not(None), Domain.delay_s.is_not(None))
    return [
        DomainRow._make(row) for row in session.execute(select(*_DOMAIN).where(*where).order_by(*order).limit(limit))
    ]


def domains_by_id(session: Session, ids: Sequence[int]) -> dict[int, DomainRow]:
    """Return these domains."""
    rows = session.execute(select(*_DOMAIN).where(Domain.id.in_(ids)))
    return {row[0]: DomainRow._make(row) for row in rows}


def domain_by_name(session: Session, name: str) -> DomainRow | None:
    """Return one domain."""
    row = session.execute(select(*_DOMAIN).where(Domain.name == name)).one_or_none()
    return None if row is None else DomainRow._make(row)


def page_count(session: Session, domain_id: int) -> int:
    """Return how many pages of a domain are known, counted up to ten thousand."""
    some = select(Page.id).where(Page.domain_id == domain_id).limit(COUNTED).subquery()
    return session.scalar(select(func.count()).select_from(some)) or 0


def largest_domains(session: Session) -> list[tuple[int, int]]:
    """Return the domains with the most pages, with their number: all pages are counted, so not for each request."""
    count = func.count()
    rows = session.execute(
        select(Page.domain_id, count).group_by(Page.domain_id).order_by(count.desc(), Page.domain_id).limit(TOP_DOMAINS)
    )
    return [(row[0], row[1]) for row in rows]


def newest_page(session: Session) -> int:
    """Return the id of the newest page: it grows with their number."""
    return session.scalar(select(func.max(Page.id))) or 0


class QueueOfDomain(NamedTuple):
    """What one execution has of a domain."""

    execution_id: int
    open: int
    succeeded: int
    failed: int
    ruled_out: int


def queue_of_domain(session: Session, frontier_id: int, domain_id: int) -> QueueOfDomain | None:
    """Return what an execution has of a domain."""
    row = session.execute(
        select(Queue.execution_id, Queue.open, Queue.succeeded, Queue.failed, Queue.ruled_out).where(
            Queue.execution_id == frontier_id, Queue.domain_id == domain_id
        )
    ).one_or_none()
    return None if row is None else QueueOfDomain(*row)


class HostOrder(StrEnum):
    """Which hosts of a crawl are listed, and in which order; an index has each."""

    DUE = "due"
    """Those with something queued, by when they are looked at next."""
    MET = "met"
    """All of them, as they became known to the archive."""


class HostOfCrawl(NamedTuple):
    """A host in one crawl."""

    domain: DomainRow
    queue: QueueOfDomain
    due_at: int
    """In microseconds: nothing of it is asked for before."""


_COLUMNS: Final = (Queue.execution_id, Queue.open, Queue.succeeded, Queue.failed, Queue.ruled_out)


def hosts_of_crawl(
    session: Session, frontier_id: int, *, order: HostOrder, after: Sequence[int] | None, limit: int
) -> list[HostOfCrawl]:
    """Return hosts of an execution's frontier, after the moment and the id of the last that was listed."""
    query = select(*_COLUMNS, Queue.due_at, Queue.domain_id).where(Queue.execution_id == frontier_id)
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
    return [
        HostOfCrawl(known[row.domain_id], QueueOfDomain(*row[:5]), row.due_at) for row in rows if row.domain_id in known
    ]


def robots_of_domain(session: Session, domain_id: int) -> list[RobotsState]:
    """Return what is known of the robots files of a domain, by origin."""
    rows = session.scalars(select(Robots).where(Robots.domain_id == domain_id).order_by(Robots.origin))
    return [
        RobotsState(
            origin=row.origin,
            answer=RobotsAnswer(row.answer),
            status=row.status,
            body=row.body,
            failures=row.failures,
            fetched_at=row.fetched_at,
            checked_at=row.checked_at,
        )
        for row in rows
    ]


class LeftOutHost(NamedTuple):
    """A host that links led to and that a rule left out."""

    rule: str
    host: str
    links: int


def left_out_hosts(
    session: Session, frontier_id: int, *, rule: str | None, after: Sequence[str] | None, limit: int
) -> list[LeftOutHost]:
    """Return hosts that links of an execution led to and that were not followed, by rule and host."""
    where = [Exclusion.execution_id == frontier_id]
    if rule is not None:
        where.append(Exclusion.rule == rule)
    if after is not None:
        where.append(tuple_(Exclusion.rule, Exclusion.host) > (after[0], after[1]))
    rows = session.execute(
        select(Exclusion.rule, Exclusion.host, Exclusion.count)
        .where(*where)
        .order_by(Exclusion.rule, Exclusion.host)
        .limit(limit)
    )
    return [LeftOutHost._make(row) for row in rows]
