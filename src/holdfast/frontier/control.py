"""Operator changes to the frontier: settings of a domain, pauses, purges, and URLs added by hand.

All changes affect running crawls, on whatever machine. Each call is one short transaction, or a portion that
says whether to call again: a purge of a million attempts blocks no other writer, and may be interrupted
anywhere. A process detects a change by its time (`changed_since`), releases the domain, and reads the rest with
its next lease. So only one place applies settings, and a crawl on another machine needs no signal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.audit_events import AuditAction, acting_user, append_event
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.frontier import sql
from holdfast.frontier.adding import Adding
from holdfast.frontier.politeness import MIN_DELAY_S
from holdfast.frontier.sql import Connection, FrontierTransaction, Statement
from holdfast.records import Operator, record
from holdfast.types import DomainChange, FoundUrl, UrlKind
from holdfast.values import dataclass

LONGEST_DELAY_S = 3600.0
PORTION = 1000
"""Attempts closed per transaction: about 30 ms on SQLite."""
_DOMAIN = "SELECT id, delay_s, is_allowed, paused_at, changed_at FROM domains WHERE name = ?"
_LOCKED_DOMAIN = Statement(sqlite=_DOMAIN, postgresql=f"{_DOMAIN} FOR UPDATE")
# A partial index covers only domains that an operator changed, which are few.
_CHANGED = "SELECT id, changed_at, delay_s FROM domains WHERE changed_at > ? ORDER BY changed_at, id"
_LATER = {"sqlite": "max(?, coalesce(changed_at, 0) + 1)", "postgresql": "GREATEST(?, coalesce(changed_at, 0) + 1)"}
_TELL_HOLDERS = """
 WHERE lease_owner IS NOT NULL AND lease_expires_at > ?
   AND EXISTS (SELECT 1 FROM queues q WHERE q.execution_id = ? AND q.domain_id = domains.id)"""
_TELL_ALL = Statement(
    sqlite=f"UPDATE domains SET changed_at = {_LATER['sqlite']} {_TELL_HOLDERS}",  # noqa: S608 - constants above
    # Locked in the order of ids before they are changed, as everywhere.
    postgresql=f"""
WITH held AS (SELECT id FROM domains {_TELL_HOLDERS} ORDER BY id FOR UPDATE)
UPDATE domains SET changed_at = {_LATER["postgresql"]} FROM held WHERE domains.id = held.id""",  # noqa: S608
)
_WAITING = (
    "SELECT id, url, url_hash, domain, priority, depth, execution_id FROM added_urls"
    " WHERE source_id = ? AND id > ? ORDER BY id LIMIT ?"
)
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
_IS_RUNNING = "SELECT 1 FROM executions WHERE id = ? AND state = 'running' AND stop_requested IS NULL"


class DelayRefused(Invalid):
    """The delay is not allowed for a domain."""

    code = "delay_refused"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"crawlDelay must be between {MIN_DELAY_S:g} s and {LONGEST_DELAY_S:g} s, not {seconds:g} s; to stop "
            "requests, pause the domain; to use its source's delay, send null"
        )
        self.field = "crawlDelay"


class DomainUnknown(NotFound):
    """No crawl has found this domain."""

    code = "domain_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no crawl has met the domain {name[:255]!r}; those that were met are listed at /api/domains, and with: "
            "holdfast domain list"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainUpdate:
    """Changes of a domain; None keeps the current value."""

    delay_s: float | None = None
    default_delay: bool = False
    """Whether to remove the domain's own delay."""
    allowed: bool | None = None
    """Whether it may be requested at all: queued attempts of a forbidden domain end as excluded."""
    paused: bool | None = None
    """Whether to pause it: queued attempts stay queued."""

    def changes(self) -> dict[str, Any]:
        """Return the columns to change; raise Invalid if there are none, or if the delay is not allowed."""
        changes = {
            "delay_s": self.delay_s,
            "default_delay": self.default_delay or None,
            "allowed": self.allowed,
            "paused": self.paused,
        }
        said = {key: value for key, value in changes.items() if value is not None}
        if not said:
            raise Invalid(
                "nothing is to be changed; name a delay, whether the domain is paused, or whether it is allowed"
            )
        if self.delay_s is not None and not MIN_DELAY_S <= self.delay_s <= LONGEST_DELAY_S:
            raise DelayRefused(self.delay_s)
        return said


@record
class DomainSettings:
    """Settings of a domain made by operators."""

    domain: Operator[str]
    domain_id: int
    crawl_delay: Operator[float | None]
    is_allowed: Operator[bool]
    paused: Operator[bool]
    paused_at: Operator[datetime | None]


class OperatorSettings(NamedTuple):
    """Operator settings of a domain; times in microseconds."""

    id: int
    delay_s: float | None
    is_allowed: bool
    paused_at: int | None
    changed_at: int | None


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


Audit = Callable[[FrontierTransaction], None]
"""Writes an audit entry, in the transaction of the change."""


class FrontierControl:
    def __init__(self, connection: Connection, clock: Clock, adding: Adding) -> None:
        self._connection, self._clock, self._adding = connection, clock, adding

    def audit(self, action: AuditAction, subject: str, **detail: Any) -> Audit:
        return lambda tx: append_event(tx, self._clock, action=action, subject=subject, detail=detail)

    def set_domain(self, name: str, update: DomainUpdate) -> DomainSettings:
        """Change a domain's settings, creating the domain if unknown; running crawls apply them within a second.

        Raise Invalid if nothing is changed, and `DelayRefused` for an invalid delay.
        """
        audit = self.audit("domain.changed", name, **update.changes())
        now = to_micros(self._clock.now())
        self._adding.names.ids([name], now=now)
        with self._connection.write() as tx:
            found = self._locked(tx, name)
            delay_s = None if update.default_delay else found.delay_s if update.delay_s is None else update.delay_s
            paused_at = (
                found.paused_at if update.paused is None else (found.paused_at or now) if update.paused else None
            )
            allowed = found.is_allowed if update.allowed is None else update.allowed
            after = found._replace(delay_s=delay_s, paused_at=paused_at, is_allowed=allowed)
            if after != found:
                _write(tx, after, now=now)
                audit(tx)
        return DomainSettings(
            domain=name,
            domain_id=after.id,
            crawl_delay=after.delay_s,
            is_allowed=after.is_allowed,
            paused=after.paused_at is not None,
            paused_at=None if after.paused_at is None else from_micros(after.paused_at),
        )

    def refresh_robots(self, name: str) -> None:
        """Fetch the robots files of a domain again before its next page, also in a running crawl."""
        now = to_micros(self._clock.now())
        with self._connection.write() as tx:
            found = self._locked(tx, name)
            tx.execute("UPDATE domains SET robots_after = ? WHERE id = ?", (now, found.id))
            _write(tx, found, now=now)
            self.audit("domain.robots_refreshed", name)(tx)

    def tell_holder(self, name: str, audit: Audit | None = None) -> None:
        """Make the process that holds a domain release it: its leased attempts may be gone."""
        with self._connection.write() as tx:
            _write(tx, self._locked(tx, name), now=to_micros(self._clock.now()))
            if audit is not None:
                audit(tx)

    def tell_holders(self, execution_id: int, audit: Audit) -> None:
        now = to_micros(self._clock.now())
        with self._connection.write() as tx:
            tx.execute(_TELL_ALL, (now, execution_id, now) if tx.is_postgres else (now, now, execution_id))
            audit(tx)

    def write(self, note: Callable[[FrontierTransaction], None]) -> None:
        """Write an audit entry, or URLs that wait for a run, in a transaction of their own."""
        with self._connection.write() as tx:
            note(tx)

    def queued_executions(self, name: str) -> tuple[int, list[int]]:
        """Return a domain's id and the executions with open attempts on it; raise `DomainUnknown`."""
        with self._connection.read() as tx:
            rows = tx.execute(_DOMAIN, (name,))
            if not rows:
                raise DomainUnknown(name)
            domain_id = int(rows[0][0])
            return domain_id, [int(row[0]) for row in tx.execute(sql.QUEUES_OF_DOMAIN, (domain_id,))]

    def changed_since(self, since: datetime) -> list[DomainChange]:
        with self._connection.read() as tx:
            rows = tx.execute(_CHANGED, (to_micros(since),))
        return [DomainChange(domain_id, from_micros(at), delay_s or 0.0) for domain_id, at, delay_s in rows]

    def note_added(
        self,
        found: Sequence[FoundUrl],
        audit: Audit,
        *,
        source_id: int,
        execution_id: int | None = None,
        running: int | None = None,
    ) -> Callable[[FrontierTransaction], None]:
        """Return a callable that records added URLs, to run in the transaction that adds them to a frontier.

        It raises `Conflict`, which undoes both, if the execution given as `running` has ended meanwhile.
        """
        now, by = to_micros(self._clock.now()), acting_user()
        rows: list[tuple[Any, ...]] = [
            (source_id, one.domain, one.url_hash, one.url, one.priority, one.depth, execution_id, now, by)
            for one in sorted(found, key=lambda one: (one.domain, one.url_hash))
        ]

        def write(tx: FrontierTransaction) -> None:
            if running is not None and not tx.execute(_IS_RUNNING, (running,)):
                raise Conflict(f"execution {running} has just ended")
            tx.many(_ADD_WAITING, rows)
            audit(tx)

        return write

    def waiting(self, execution_id: int, *, after: int) -> tuple[list[WaitingUrl], int | None]:
        """Return unfinished URLs added to an execution's source, and the position to continue from.

        URLs that were completed by the run they joined are deleted here.
        """
        with self._connection.read() as tx:
            sources = tx.execute(sql.SOURCE_OF, (execution_id,))
            source_id = int(sources[0][0]) if sources else -1
            rows = [WaitingUrl(*row) for row in tx.execute(_WAITING, (source_id, after, PORTION))]
            closed = [
                row
                for row in rows
                if row.execution_id is not None and tx.execute(_IS_CLOSED, (row.domain, row.url_hash, row.execution_id))
            ]
        if closed:
            self.write(self.forget_waiting(closed))
        done = {row.id for row in closed}
        return [row for row in rows if row.id not in done], rows[-1].id if len(rows) == PORTION else None

    def forget_waiting(self, taken: Sequence[WaitingUrl]) -> Callable[[FrontierTransaction], None]:
        """Return a callable that deletes URLs, to run in the transaction in which a run adopts them."""

        def forget(tx: FrontierTransaction) -> None:
            tx.execute(_DROP_WAITING, (tx.list([one.id for one in taken]),))

        return forget

    @staticmethod
    def _locked(tx: FrontierTransaction, name: str) -> OperatorSettings:
        """Return a domain's settings, locked until the transaction ends; raise `DomainUnknown`."""
        rows = tx.execute(_LOCKED_DOMAIN, (name,))
        if not rows:
            raise DomainUnknown(name)
        return OperatorSettings(*rows[0])._replace(is_allowed=bool(rows[0][2]))


def _write(tx: FrontierTransaction, domain: OperatorSettings, *, now: int) -> None:
    # Later than any change before it, also within one microsecond: a process knows a change by its moment.
    changed_at = max(now, (domain.changed_at or 0) + 1)
    tx.execute(
        "UPDATE domains SET delay_s = ?, is_allowed = ?, paused_at = ?, changed_at = ? WHERE id = ?",
        (domain.delay_s, domain.is_allowed, domain.paused_at, changed_at, domain.id),
    )
