"""Operator actions on the queue and its domains, for routes and commands.

Every change is audited in the transaction that makes it. Long operations commit in batches and stop when the
caller's `goes_on`, checked before each batch, returns False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import Row

from holdfast.clock import Clock
from holdfast.db.audit_events import append_event
from holdfast.db.raw import RawDatabase
from holdfast.errors import Conflict, Invalid
from holdfast.frontier.attempts import status_of
from holdfast.frontier.control import PORTION, DomainSettings, DomainUpdate
from holdfast.frontier.frontier import Frontier
from holdfast.frontier.sql import FrontierTransaction
from holdfast.records import Operator, record
from holdfast.types import CLEARED, PURGED, Outcome
from holdfast.urls import parse_seed


@record
class ClearReceipt:
    """Result of removing URLs from queues."""

    removed: Operator[int]
    done: Operator[bool]
    """Whether the removal is complete; otherwise repeat the request to continue."""
    executions: Operator[list[int]]
    """Executions whose queues lost URLs."""


def domain_of(written: str) -> str:
    """Return a domain as the frontier spells it: with its port unless that is 80 or 443; raise Invalid if
    malformed.
    """
    return parse_seed(written.strip()).domain


def audit_entry(clock: Clock, action: str, subject: str, **detail: Any) -> Callable[[FrontierTransaction], None]:
    """Return a callable that writes an audit entry, to run in the transaction of the change."""

    def write(tx: FrontierTransaction) -> None:
        append_event(tx, clock, action=action, subject=subject, detail=detail)

    return write


def set_domain(frontier: Frontier, clock: Clock, name: str, request: DomainUpdate) -> DomainSettings:
    """Change the delay of a domain, or pause or forbid it; running crawls apply it within a second."""
    changed = {
        "delay_s": request.delay_s,
        "default_delay": request.default_delay or None,
        "allowed": request.allowed,
        "paused": request.paused,
    }
    said = {key: value for key, value in changed.items() if value is not None}
    if not said:
        raise Invalid("nothing is to be changed; name a delay, whether the domain is paused, or whether it is allowed")
    return frontier.control.set_domain(name, request, also=audit_entry(clock, "domain.changed", name, **said))


def refresh_robots(frontier: Frontier, clock: Clock, name: str) -> None:
    """Fetch the robots files of a domain again before its next page."""
    frontier.control.ask_robots_again(name, also=audit_entry(clock, "domain.robots_refreshed", name))


def reset_domain(raw_db: RawDatabase, frontier: Frontier, clock: Clock, name: str) -> bool:
    """Clear the unreachable state of a domain; False if it had none. Raise NotFound, or Conflict while leased."""
    lifted = frontier.reset(name)
    with raw_db.write() as tx:
        append_event(tx, clock, action="domain.reset", subject=name, detail={"lifted": lifted})
    return lifted


def purge(
    frontier: Frontier, clock: Clock, name: str, *, execution_id: int | None, goes_on: Callable[[], bool]
) -> ClearReceipt:
    """Remove a domain's queued URLs from one execution, or from all; raise DomainUnknown."""
    domain_id, queued = frontier.control.queued_executions(name)
    executions = [one for one in queued if execution_id is None or one == execution_id]

    def portions() -> Iterator[int]:
        for one in executions:
            while closed := frontier.close_domain(
                one, domain_id, outcome=Outcome.EXCLUDED, reason=PURGED, limit=PORTION
            ):
                yield closed

    closed, is_done = _in_portions(portions(), goes_on)
    # Last: the holder of the domain then finds nothing queued.
    audit = audit_entry(clock, "domain.purged", name, closed=closed, executions=executions)
    frontier.control.tell_holder(name, also=audit)
    return ClearReceipt(removed=closed, done=is_done, executions=executions)


def drop_attempt(frontier: Frontier, clock: Clock, attempt: Row[Any]) -> None:
    """Remove one queued URL from its execution; raise Conflict if it is not queued."""
    if not frontier.close_one(attempt.id, outcome=Outcome.EXCLUDED, reason=PURGED):
        status = status_of(attempt).value
        raise Conflict(f"attempt {attempt.id} is {status}, not queued; there is nothing to take away")
    audit = audit_entry(clock, "frontier.dropped", f"execution {attempt.frontier_id}", url=attempt.url)
    frontier.control.tell_holder(attempt.domain, also=audit)


def clear(frontier: Frontier, clock: Clock, execution_id: int, *, goes_on: Callable[[], bool]) -> ClearReceipt:
    """Remove everything queued from an execution; a running one then ends."""

    def portions() -> Iterator[int]:
        while closed := frontier.close_rest(execution_id, outcome=Outcome.EXCLUDED, reason=CLEARED, limit=PORTION):
            yield closed

    closed, is_done = _in_portions(portions(), goes_on)
    subject = f"execution {execution_id}"
    frontier.control.tell_holders(execution_id, also=audit_entry(clock, "frontier.cleared", subject, closed=closed))
    return ClearReceipt(removed=closed, done=is_done, executions=[execution_id])


def _in_portions(portions: Iterable[int], goes_on: Callable[[], bool]) -> tuple[int, bool]:
    total = 0
    for closed in portions:
        total += closed
        if not goes_on():
            return total, False
    return total, True
