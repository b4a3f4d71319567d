"""What an operator does to the frontier: settings of a domain, pauses, purges, and addresses added by hand.

Everything takes effect in a crawl that runs, on whatever machine. Each call is one short transaction, or a portion that
says whether to call again: a purge of a million attempts holds up no other writer, and may be broken off anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.frontier import control_queries as queries
from holdfast.frontier import sql
from holdfast.frontier.adding import Adding
from holdfast.frontier.politeness import MIN_DELAY_S
from holdfast.frontier.sql import Connection, FrontierTransaction
from holdfast.types import DomainChange, FoundUrl
from holdfast.values import dataclass

LONGEST_DELAY_S = 3600.0
PORTION = 1000
"""Attempts that one transaction closes: about 30 ms on SQLite."""
PURGED, CLEARED = "purged", "cleared"
"""Reasons with which attempts end that an operator takes from the queue."""


class DelayRefused(Invalid):
    """A domain cannot have this delay."""

    code = "delay_refused"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"crawlDelay: a domain is asked at most once in {MIN_DELAY_S:g} s and at least once in "
            f"{LONGEST_DELAY_S:g} s, so {seconds:g} s is not possible; pause it instead, or leave the delay to its "
            "source with null"
        )
        self.field = "crawlDelay"


class DomainUnknown(NotFound):
    """No crawl has met this domain."""

    code = "domain_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no crawl has met the domain {name[:255]!r}; those that were met are listed at /api/domains, and with: "
            "holdfast domain list"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainWish:
    """What is to change about a domain; None leaves a part as it is."""

    delay_s: float | None = None
    default_delay: bool = False
    """Whether the domain is to have no delay of its own any more."""
    allowed: bool | None = None
    """Whether it may be asked at all: what is queued of a forbidden domain ends as excluded."""
    paused: bool | None = None
    """Whether it rests: what is queued stays queued."""

    def check(self) -> None:
        """Raise DelayRefused for a delay below the house's floor, or without an end."""
        if self.delay_s is not None and not MIN_DELAY_S <= self.delay_s <= LONGEST_DELAY_S:
            raise DelayRefused(self.delay_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSettings:
    """What an operator has set for a domain."""

    domain_id: int
    delay_s: float | None
    is_allowed: bool
    paused_at: datetime | None


Audit = Callable[[FrontierTransaction], None]
"""Writes who did it, in the same transaction."""


class FrontierControl:
    """An operator's hand on the frontier, over one connection."""

    def __init__(self, connection: Connection, clock: Clock, adding: Adding) -> None:
        self._connection, self._clock, self._adding = connection, clock, adding

    def set_domain(self, name: str, wish: DomainWish, *, also: Audit) -> DomainSettings:
        """Change a domain's settings, made if no crawl has met it yet; DelayRefused for a delay that cannot be."""
        wish.check()
        now = to_micros(self._clock.now())
        self._adding.names.ids([name], now=now)
        with self._connection.write() as tx:
            found = queries.locked_domain(tx, name)
            assert found is not None
            delay_s = None if wish.default_delay else found.delay_s if wish.delay_s is None else wish.delay_s
            paused_at = found.paused_at if wish.paused is None else (found.paused_at or now) if wish.paused else None
            allowed = found.is_allowed if wish.allowed is None else wish.allowed
            after = found._replace(delay_s=delay_s, paused_at=paused_at, is_allowed=allowed)
            if after != found:
                queries.write_domain(tx, after, now=now)
                also(tx)
        return DomainSettings(
            domain_id=after.id,
            delay_s=after.delay_s,
            is_allowed=after.is_allowed,
            paused_at=None if after.paused_at is None else from_micros(after.paused_at),
        )

    def ask_robots_again(self, name: str, *, also: Audit) -> None:
        """Let the robots files of a domain be read anew before its next page, in a crawl that runs, too."""
        now = to_micros(self._clock.now())
        with self._connection.write() as tx:
            found = self._known(tx, name)
            queries.ask_robots_again(tx, found.id, now=now)
            queries.write_domain(tx, found, now=now)
            also(tx)

    def tell_holder(self, name: str, *, also: Audit) -> None:
        """Let the process that holds a domain give it back: what it took may be gone."""
        with self._connection.write() as tx:
            queries.write_domain(tx, self._known(tx, name), now=to_micros(self._clock.now()))
            also(tx)

    def tell_holders(self, execution_id: int, *, also: Audit) -> None:
        """Let the processes that hold domains of an execution give them back."""
        with self._connection.write() as tx:
            queries.tell_holders(tx, execution_id, now=to_micros(self._clock.now()))
            also(tx)

    def queued_executions(self, name: str) -> tuple[int, list[int]]:
        """Return a domain's id and the executions that have open attempts of it; DomainUnknown."""
        with self._connection.read() as tx:
            domain_id = queries.known_domain(tx, name)
            if domain_id is None:
                raise DomainUnknown(name)
            return domain_id, [int(row[0]) for row in tx.execute(sql.QUEUES_OF_DOMAIN, (domain_id,))]

    def changed_since(self, since: datetime) -> list[DomainChange]:
        """Return which domains an operator changed after a moment."""
        with self._connection.read() as tx:
            return queries.changed_since(tx, to_micros(since))

    def note_added(
        self,
        found: Sequence[FoundUrl],
        *,
        source_id: int,
        by: str,
        execution_id: int | None = None,
        running: int | None = None,
    ) -> Callable[[FrontierTransaction], None]:
        """Return what writes down that addresses were added, for the transaction that adds them to a frontier.

        Conflict, which undoes both, if the execution that is said to be running has ended meanwhile.
        """
        now = to_micros(self._clock.now())

        def write(tx: FrontierTransaction) -> None:
            if running is not None and not queries.is_running(tx, running):
                raise Conflict(f"execution {running} has just ended")
            queries.note_added(tx, found, source_id=source_id, execution_id=execution_id, now=now, by=by)

        return write

    def wait(self, found: Sequence[FoundUrl], *, source_id: int, by: str, also: Audit) -> None:
        """Let addresses wait for the next run of their source."""
        write = self.note_added(found, source_id=source_id, by=by)
        with self._connection.write() as tx:
            write(tx)
            also(tx)

    def waiting(self, execution_id: int, *, after: int) -> tuple[list[queries.WaitingUrl], int | None]:
        """Return addresses that were added to an execution's source and are not done, and where to go on.

        Those that the run which they joined has brought to an end are forgotten here.
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
        """Return what forgets addresses, for the transaction in which a run takes them."""
        return lambda tx: queries.drop_waiting(tx, [one.id for one in taken])

    def _known(self, tx: FrontierTransaction, name: str) -> queries.OperatorSettings:
        found = queries.locked_domain(tx, name)
        if found is None:
            raise DomainUnknown(name)
        return found
