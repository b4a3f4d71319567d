"""The hosts of one crawl: what each has queued and done, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from holdfast.db.models import Queue
from holdfast.jobs.views.frontier_queries import DomainRow, QueueOfDomain, domains_by_id


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
