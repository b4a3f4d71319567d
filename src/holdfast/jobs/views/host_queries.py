"""The hosts of one crawl: what each has queued and done, what it waits for, its robots files, hosts left out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from holdfast.db.models import Exclusion, Queue, Robots
from holdfast.jobs.views.frontier_queries import DomainRow, QueueOfDomain, domains_by_id
from holdfast.types import RobotsAnswer, RobotsState


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
