"""Operator changes to the frontier: settings of a domain, pauses, purges, and URLs added by hand.

All changes affect running crawls, on whatever machine. Each call is one short transaction, or a portion that
says whether to call again: a purge of a million attempts blocks no other writer, and may be interrupted
anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.audit_events import AuditAction, acting_user, append_event
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.frontier import control_queries as queries
from holdfast.frontier import sql
from holdfast.frontier.adding import Adding
from holdfast.frontier.politeness import MIN_DELAY_S
from holdfast.frontier.sql import Connection, FrontierTransaction
from holdfast.records import Operator, record
from holdfast.types import DomainChange, FoundUrl
from holdfast.values import dataclass

LONGEST_DELAY_S = 3600.0
PORTION = 1000
"""Attempts closed per transaction: about 30 ms on SQLite."""


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
        """Return what is to be changed; raise Invalid if that is nothing, or the delay is not allowed."""
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
            found = queries.locked_domain(tx, name)
            assert found is not None
            delay_s = None if update.default_delay else found.delay_s if update.delay_s is None else update.delay_s
            paused_at = (
                found.paused_at if update.paused is None else (found.paused_at or now) if update.paused else None
            )
            allowed = found.is_allowed if update.allowed is None else update.allowed
            after = found._replace(delay_s=delay_s, paused_at=paused_at, is_allowed=allowed)
            if after != found:
                queries.write_domain(tx, after, now=now)
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
            found = self._known(tx, name)
            queries.refresh_robots(tx, found.id, now=now)
            queries.write_domain(tx, found, now=now)
            self.audit("domain.robots_refreshed", name)(tx)

    def tell_holder(self, name: str, audit: Audit | None = None) -> None:
        """Make the process that holds a domain release it: its leased attempts may be gone."""
        with self._connection.write() as tx:
            queries.write_domain(tx, self._known(tx, name), now=to_micros(self._clock.now()))
            if audit is not None:
                audit(tx)

    def tell_holders(self, execution_id: int, audit: Audit) -> None:
        with self._connection.write() as tx:
            queries.tell_holders(tx, execution_id, now=to_micros(self._clock.now()))
            audit(tx)

    def write(self, note: Callable[[FrontierTransaction], None]) -> None:
        """Write an audit entry, or URLs that wait for a run, in a transaction of their own."""
        with self._connection.write() as tx:
            note(tx)

    def queued_executions(self, name: str) -> tuple[int, list[int]]:
        """Return a domain's id and the executions with open attempts on it; raise `DomainUnknown`."""
        with self._connection.read() as tx:
            domain_id = queries.known_domain(tx, name)
            if domain_id is None:
                raise DomainUnknown(name)
            return domain_id, [int(row[0]) for row in tx.execute(sql.QUEUES_OF_DOMAIN, (domain_id,))]

    def changed_since(self, since: datetime) -> list[DomainChange]:
        with self._connection.read() as tx:
            return queries.changed_since(tx, to_micros(since))

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

        def write(tx: FrontierTransaction) -> None:
            if running is not None and not queries.is_running(tx, running):
                raise Conflict(f"execution {running} has just ended")
            queries.note_added(tx, found, source_id=source_id, execution_id=execution_id, now=now, by=by)
            audit(tx)

        return write

    def waiting(self, execution_id: int, *, after: int) -> tuple[list[queries.WaitingUrl], int | None]:
        """Return unfinished URLs added to an execution's source, and the position to continue from.

        URLs that were completed by the run they joined are deleted here.
        """
        with self._connection.read() as tx:
            sources = tx.execute(sql.SOURCE_OF, (execution_id,))
            source_id = int(sources[0][0]) if sources else -1
            rows = queries.waiting_urls(tx, source_id=source_id, after=after, limit=PORTION)
            closed = [row.id for row in rows if queries.is_closed(tx, row)]
        if closed:
            with self._connection.write() as tx:
                queries.drop_waiting(tx, closed)
        done = frozenset(closed)
        return [row for row in rows if row.id not in done], rows[-1].id if len(rows) == PORTION else None

    def forget_waiting(self, taken: Sequence[queries.WaitingUrl]) -> Callable[[FrontierTransaction], None]:
        """Return a callable that deletes URLs, to run in the transaction in which a run adopts them."""
        return lambda tx: queries.drop_waiting(tx, [one.id for one in taken])

    def _known(self, tx: FrontierTransaction, name: str) -> queries.OperatorSettings:
        found = queries.locked_domain(tx, name)
        if found is None:
            raise DomainUnknown(name)
        return found
