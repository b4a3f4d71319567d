"""What must hold between the tables of the frontier, whatever happened to a crawl."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.clock import from_micros, to_micros
from holdfast.db.raw import RawDatabase
from holdfast.frontier import Account
from holdfast.frontier.queries import account_slice

# Each statement takes the execution twice, so that all of them are asked alike.
_BROKEN = {
    "queues.open differs from the open attempts": (
        "SELECT count(*) FROM (SELECT domain_id, sum(n) AS difference FROM ("
        " SELECT domain_id, -open AS n FROM queues WHERE execution_id = ? UNION ALL"
        " SELECT domain_id, 1 FROM page_crawls WHERE execution_id = ? AND outcome IS NULL) a GROUP BY domain_id) b"
        " WHERE difference <> 0"
    ),
    "queues do not add up to the addresses": (
        "SELECT count(*) FROM (SELECT domain_id, sum(n) AS difference FROM ("
        " SELECT domain_id, -(open + succeeded + failed + ruled_out) AS n FROM queues WHERE execution_id = ? UNION ALL"
        " SELECT domain_id, 1 FROM page_crawls WHERE execution_id = ? AND attempt = 1) a GROUP BY domain_id) b"
        " WHERE difference <> 0"
    ),
    "a page has two open attempts": (
        "SELECT count(*) FROM (SELECT page_id FROM page_crawls WHERE execution_id = ? AND execution_id = ?"
        " AND outcome IS NULL GROUP BY page_id HAVING count(*) > 1) a"
    ),
    "an open attempt is not the page's last": (
        "SELECT count(*) FROM page_crawls c JOIN page_crawls n ON n.execution_id = c.execution_id"
        " AND n.domain_id = c.domain_id AND n.page_id = c.page_id AND n.attempt = c.attempt + 1"
        " WHERE c.execution_id = ? AND c.execution_id = ? AND c.outcome IS NULL"
    ),
    "an attempt has no predecessor": (
        "SELECT count(*) FROM page_crawls c WHERE c.execution_id = ? AND c.execution_id = ? AND c.attempt > 1"
        " AND NOT EXISTS (SELECT 1 FROM page_crawls n WHERE n.execution_id = c.execution_id"
        " AND n.domain_id = c.domain_id AND n.page_id = c.page_id AND n.attempt = c.attempt - 1)"
    ),
    "a closed attempt lacks reason or time": (
        "SELECT count(*) FROM page_crawls WHERE execution_id = ? AND execution_id = ?"
        " AND outcome IS NOT NULL AND (reason IS NULL OR completed_at IS NULL)"
    ),
    "an attempt and its page disagree on the domain": (
        "SELECT count(*) FROM page_crawls c LEFT JOIN pages p ON p.id = c.page_id"
        " WHERE c.execution_id = ? AND c.execution_id = ? AND (p.id IS NULL OR p.domain_id <> c.domain_id)"
    ),
}


def audit(raw_db: RawDatabase, execution_id: int) -> list[str]:
    """Return which promises of the tables are broken for an execution; an empty list if none is."""
    with raw_db.read() as tx:
        found = {promise: tx.execute(query, (execution_id, execution_id))[0][0] for promise, query in _BROKEN.items()}
    return [f"{promise}: {count}" for promise, count in found.items() if count]


def account(raw_db: RawDatabase, execution_id: int) -> Iterator[Account]:
    """Yield the current outcome of each address of an execution."""
    after: tuple[int, int] | None = (-1, -1)
    while after is not None:
        rows, after = account_slice(raw_db, execution_id, after)
        yield from rows


def next_due_at(raw_db: RawDatabase, execution_id: int, now: datetime) -> datetime | None:
    """Return when a lease may next find something, or None if nothing is open; a held domain counts from its end."""
    with raw_db.read() as tx:
        rows = tx.execute(
            "SELECT q.due_at, d.next_allowed_at, d.lease_owner, d.lease_expires_at FROM queues q JOIN domains d"
            " ON d.id = q.domain_id WHERE q.execution_id = ? AND q.open > 0 AND d.is_allowed AND d.paused_at IS NULL",
            (execution_id,),
        )
    held = (0 if owner is None or until <= to_micros(now) else until for _, _, owner, until in rows)
    moments = [max(due_at, allowed_at, until) for (due_at, allowed_at, *_), until in zip(rows, held, strict=True)]
    return from_micros(min(moments)) if moments else None
