"""Operator actions on the queue and its domains, for routes and commands.

Every change is audited in the transaction that makes it. Long operations commit in batches and stop when the
caller's `goes_on`, checked before each batch, returns False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import Row

from holdfast.errors import Conflict
from holdfast.frontier.attempts import status_of
from holdfast.frontier.control import PORTION
from holdfast.frontier.frontier import Frontier
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


def reset_domain(frontier: Frontier, name: str) -> bool:
    """Clear the unreachable state of a domain; False if it had none. Raise NotFound, or Conflict while leased."""
    lifted = frontier.reset(name)
    frontier.control.write(frontier.control.audit("domain.reset", name, lifted=lifted))
    return lifted


def purge(frontier: Frontier, name: str, *, execution_id: int | None, goes_on: Callable[[], bool]) -> ClearReceipt:
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
    audit = frontier.control.audit("domain.purged", name, closed=closed, executions=executions)
    frontier.control.tell_holder(name, audit)
    return ClearReceipt(removed=closed, done=is_done, executions=executions)


def drop_attempt(frontier: Frontier, attempt: Row[Any]) -> None:
    """Remove one queued URL from its execution; raise Conflict if it is not queued."""
    if not frontier.close_one(attempt.id, outcome=Outcome.EXCLUDED, reason=PURGED):
        status = status_of(attempt).value
        raise Conflict(f"attempt {attempt.id} is {status}, not queued; there is nothing to take away")
    audit = frontier.control.audit("frontier.dropped", f"execution {attempt.frontier_id}", url=attempt.url)
    frontier.control.tell_holder(attempt.domain, audit)


def clear(frontier: Frontier, execution_id: int, *, goes_on: Callable[[], bool]) -> ClearReceipt:
    """Remove everything queued from an execution; a running one then ends."""

    def portions() -> Iterator[int]:
        while closed := frontier.close_rest(execution_id, outcome=Outcome.EXCLUDED, reason=CLEARED, limit=PORTION):
            yield closed

    closed, is_done = _in_portions(portions(), goes_on)
    subject = f"execution {execution_id}"
    frontier.control.tell_holders(execution_id, frontier.control.audit("frontier.cleared", subject, closed=closed))
    return ClearReceipt(removed=closed, done=is_done, executions=[execution_id])


def _in_portions(portions: Iterable[int], goes_on: Callable[[], bool]) -> tuple[int, bool]:
    total = 0
    for closed in portions:
        total += closed
        if not goes_on():
            return total, False
    return total, True
