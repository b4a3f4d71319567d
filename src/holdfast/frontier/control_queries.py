"""Rows that operators write beside a running crawl: domain settings, and URLs waiting for a run.

A process detects a change by its time (`changed_since`), releases the domain, and reads the rest with its next
lease. So only one place applies settings, and a crawl on another machine needs no signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.clock import from_micros
from holdfast.frontier.sql import FrontierTransaction, Statement
from holdfast.types import DomainChange, FoundUrl, UrlKind

_DOMAIN = "SELECT id, delay_s, is_allowed, paused_at, changed_at FROM domains WHERE name = ?"
_LOCKED_DOMAIN = Statement(sqlite=_DOMAIN, postgresql=f"{_DOMAIN} FOR UPDATE")
# A partial index covers only domains that an operator changed, which are few.
_CHANGED = "SELECT id, changed_at, delay_s FROM domains WHERE changed_at > ? ORDER BY changed_at, id"
_LATER = {"sqlite": "max(?, coalesce(changed_at, 0) + 1)", "postgresql": "GREATEST(?, coalesce(changed_at, 0) + 1)"}
_TELL_HOLDERS = """
 WHERE lease_owner IS NOT NULL AND lease_expires_at > ?
   AND EXISTS (SELECT 1 FROM queues q WHERE q.execution_id = ? AND q.domain_id = domains.id)"""
TELL_HOLDERS = Statement(
    sqlite=f"UPDATE domains SET changed_at = {_LATER['sqlite']} {_TELL_HOLDERS}",  # noqa: S608 - constants above
    # Locked in the order of ids before they are changed, as everywhere.
    postgresql=f"""
WITH held AS (SELECT id FROM domains {_TELL_HOLDERS} ORDER BY id FOR UPDATE)
UPDATE domains SET changed_at = {_LATER["postgresql"]} FROM held WHERE domains.id = held.id""",  # noqa: S608
)


class OperatorSettings(NamedTuple):
    """Operator settings of a domain; times in microseconds."""

    id: int
    delay_s: float | None
    is_allowed: bool
    paused_at: int | None
    changed_at: int | None


def known_domain(tx: FrontierTransaction, name: str) -> int | None:
    rows = tx.execute(_DOMAIN, (name,))
    return int(rows[0][0]) if rows else None


def locked_domain(tx: FrontierTransaction, name: str) -> OperatorSettings | None:
    """Return a domain's settings, locked until the transaction ends."""
    rows = tx.execute(_LOCKED_DOMAIN, (name,))
    return OperatorSettings(*rows[0])._replace(is_allowed=bool(rows[0][2])) if rows else None


def write_domain(tx: FrontierTransaction, domain: OperatorSettings, *, now: int) -> None:
    # Later than any change before it, also within one microsecond: a process knows a change by its moment.
    changed_at = max(now, (domain.changed_at or 0) + 1)
    tx.execute(
        "UPDATE domains SET delay_s = ?, is_allowed = ?, paused_at = ?, changed_at = ? WHERE id = ?",
        (domain.delay_s, domain.is_allowed, domain.paused_at, changed_at, domain.id),
    )


def refresh_robots(tx: FrontierTransaction, domain_id: int, *, now: int) -> None:
    tx.execute("UPDATE domains SET robots_after = ? WHERE id = ?", (now, domain_id))


def tell_holders(tx: FrontierTransaction, execution_id: int, *, now: int) -> None:
    values = (now, execution_id, now) if tx.is_postgres else (now, now, execution_id)
    tx.execute(TELL_HOLDERS, values)


def changed_since(tx: FrontierTransaction, since: int) -> list[DomainChange]:
    rows = tx.execute(_CHANGED, (since,))
    return [DomainChange(domain_id, from_micros(at), delay_s or 0.0) for domain_id, at, delay_s in rows]


class WaitingUrl(NamedTuple):
    id: int
    url: str
    url_hash: int
    domain: str
    priority: int
    depth: int
    execution_id: int | None

    def found(self) -> FoundUrl:
        return FoundUrl(self.url, self.url_hash, self.domain, UrlKind.PAGE, self.depth, self.priority)


_WAITING = "SELECT id, url, url_hash, domain, priority, depth, execution_id FROM added_urls"
_ADD_WAITING = """
INSERT INTO added_urls (source_id, domain, url_hash, url, priority, depth, execution_id, added_at, added_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, domain, url_hash) DO UPDATE SET priority = excluded.priority, depth = excluded.depth,
       execution_id = excluded.execution_id, added_at = excluded.added_at, added_by = excluded.added_by"""
_DROP_WAITING = Statement(
    sqlite="DELETE FROM added_urls WHERE id IN (SELECT value FROM json_each(?))",
    postgresql="DELETE FROM added_urls WHERE id = ANY(?::bigint[])",
)
# Closed in the frontier that it joined: there is nothing left to do for it. A run that was stopped, cancelled or at a
# limit closes what it did not get to; that is still wanted.
_IS_CLOSED = """
SELECT 1 FROM domains d CROSS JOIN pages p CROSS JOIN page_crawls c
 WHERE d.name = ? AND p.domain_id = d.id AND p.url_hash = ? AND c.execution_id = ? AND c.domain_id = p.domain_id
   AND c.page_id = p.id AND c.outcome IS NOT NULL
   AND NOT (c.outcome = 'excluded' AND (c.reason IN ('stopped', 'cancelled') OR c.reason LIKE 'over_limit:%'))
   AND NOT EXISTS (SELECT 1 FROM page_crawls n WHERE n.execution_id = c.execution_id AND n.domain_id = c.domain_id
                      AND n.page_id = c.page_id AND n.attempt = c.attempt + 1)"""


def is_running(tx: FrontierTransaction, execution_id: int) -> bool:
    return bool(
        tx.execute(
            "SELECT 1 FROM executions WHERE id = ? AND state = 'running' AND stop_requested IS NULL", (execution_id,)
        )
    )


def note_added(
    tx: FrontierTransaction, found: Sequence[FoundUrl], *, source_id: int, execution_id: int | None, now: int, by: str
) -> None:
    rows: list[tuple[Any, ...]] = [
        (source_id, one.domain, one.url_hash, one.url, one.priority, one.depth, execution_id, now, by)
        for one in sorted(found, key=lambda one: (one.domain, one.url_hash))
    ]
    tx.many(_ADD_WAITING, rows)


def waiting_urls(tx: FrontierTransaction, *, source_id: int, after: int, limit: int) -> list[WaitingUrl]:
    rows = tx.execute(f"{_WAITING} WHERE source_id = ? AND id > ? ORDER BY id LIMIT ?", (source_id, after, limit))
    return [WaitingUrl(*row) for row in rows]


def drop_waiting(tx: FrontierTransaction, ids: Sequence[int]) -> None:
    tx.execute(_DROP_WAITING, (tx.list(ids),))


def is_closed(tx: FrontierTransaction, one: WaitingUrl) -> bool:
    return one.execution_id is not None and bool(tx.execute(_IS_CLOSED, (one.domain, one.url_hash, one.execution_id)))
