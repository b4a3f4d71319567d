"""The frontier: add, lease, settle. Rows are the queue, domains are leased, writes that need a lease are fenced.

All methods are synchronous and belong to one thread with its connection. Each is one short transaction
(`settle` is split when it adds too many links for one transaction), and each can be repeated safely after
`Unavailable`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Literal

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.raw import RawDatabase
from holdfast.frontier import queries, sql
from holdfast.frontier.adding import Adding, DepthRules, Depths, QueueHeads
from holdfast.frontier.control import FrontierControl
from holdfast.frontier.control_queries import WaitingUrl
from holdfast.frontier.leasing import FrontierLeases, robots_of_origin
from holdfast.frontier.queries import FrontierStats, OpenAttempt, Unreachable
from holdfast.frontier.settling import (
    ClosedUnvisited,
    Closing,
    CountsOf,
    KnownSignals,
    ProcessTotals,
    Settled,
    Settlement,
    forget_signals,
    known_signals,
    signal_links,
)
from holdfast.frontier.sql import Connection, FrontierTransaction
from holdfast.outside_text import clean
from holdfast.series.raw_queries import add_counts
from holdfast.types import (
    Attempt,
    DomainLease,
    DomainUpdate,
    FoundUrl,
    Outcome,
    PageToReread,
    RobotsRecord,
    UrlKind,
    Visit,
)
from holdfast.values import dataclass

ALL_KINDS = tuple(UrlKind)
QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSettings:
    """Sizes and times of the frontier."""

    lease_s: float = 60.0
    """Duration of a domain lease without renewal."""
    links_per_transaction: int = 5_000
    """Limit of found URLs added per transaction; a larger settle is split between visits."""
    known_domains: int = 100_000
    """Limit of cached domain ids (about 150 bytes each)."""


class Frontier:
    def __init__(self, raw_db: RawDatabase, clock: Clock, settings: FrontierSettings | None = None) -> None:
        """Create a frontier without opening anything; use a `DatabaseClock` if more than one process works."""
        self._settings = settings or FrontierSettings()
        self._clock = clock
        self._connection = Connection(raw_db)
        self._adding = Adding(self._connection, known_domains=self._settings.known_domains)
        self._leases = FrontierLeases(self._connection, clock, lease_s=self._settings.lease_s)
        self._closing = Closing(self._connection, clock)
        self.control = FrontierControl(self._connection, clock, self._adding)
        """What operators do beside a crawl."""
        links = self._settings.links_per_transaction
        self._depths = Depths(self._connection)
        self._settlement = Settlement(self._connection, clock, self._adding, self._depths, links=links)

    def add(
        self,
        execution_id: int,
        found: Sequence[FoundUrl],
        *,
        via: int | None = None,
        also: Callable[[FrontierTransaction], None] | None = None,
        raised: Callable[[int], None] | None = None,
    ) -> int:
        """Add URLs to an execution and return how many are new to it. `via` is the page they were found on.

        With `raised`, queued URLs of a lower priority get the higher one, and it is called with their number. `also`
        runs in the transaction that adds the last URLs (the only one, up to 5,000): both commit or neither does, and
        an
        exception in it undoes both.
        """
        added = 0
        # A larger transaction keeps the other processes waiting: SQLite has one writer.
        size = self._settings.links_per_transaction
        # Once even for no address at all, if there is something to do beside it.
        for start in range(0, max(len(found), also is not None), size):
            now = to_micros(self._clock.now())
            rows = self._adding.rows([(found[start : start + size], via)], now=now)
            with self._connection.write() as tx:
                heads = QueueHeads()
                new = self._adding.insert(tx, execution_id, rows, heads, now=now).total()
                added += new
                self._adding.requisites.promote(tx, execution_id, rows)
                if raised is not None:
                    lower = tx.execute(sql.LOWER_RANKED, (execution_id,))
                    tx.many(sql.PUT_FORWARD, lower)
                    raised(len(lower))
                heads.write(tx, execution_id)
                if also is not None and start + size >= len(found):
                    also(tx)
                grown = Counter(links=new, queue=heads.growth)
                add_counts(tx, execution_id, grown, now=now, is_postgres=tx.is_postgres)
        return added

    def take_waiting(self, execution_id: int, accepts: Callable[[WaitingUrl], bool]) -> int:
        """Add the accepted URLs that wait for the next run of an execution's source; return how many were new."""
        added, after = 0, 0
        while True:
            rows, next_after = self.control.waiting(execution_id, after=after)
            taken = [row for row in rows if accepts(row)]
            if taken:
                forget = self.control.forget_waiting(taken)
                added += self.add(execution_id, [row.found() for row in taken], also=forget)
            if next_after is None:
                return added
            after = next_after

    @property
    def depth_rules(self) -> DepthRules:
        return self._depths.rules

    def rereads(self, execution_id: int, *, limit: int) -> list[PageToReread]:
        """Return pages fetched before a shorter path to them was found: their links must be re-evaluated."""
        with self._connection.read() as tx:
            return self._depths.rereads(tx, execution_id, limit=limit)

    def reread_count(self, execution_id: int) -> int:
        with self._connection.read() as tx:
            return int(tx.execute(sql.COUNT_REREADS, (execution_id,))[0][0])

    def read_again(self, execution_id: int, reread: PageToReread, found: Sequence[FoundUrl]) -> int:
        """Add a page's links from its smaller depth, and mark it as read; return how many URLs were new.

        After a kill in between, it is read once more, which is harmless.
        """
        attempt, now = reread.attempt, to_micros(self._clock.now())
        rows = self._adding.rows([(found, attempt.page_id)], now=now)
        # Depths first, then the note that it was read: killed between the two, the page is read once more.
        if rows:
            with self._connection.write() as tx:
                tx.load("new_found", sql.FOUND_COLUMNS, rows)
                raised = self._depths.deeper(tx, execution_id)
            self._depths.make_smaller(execution_id, raised)

        def done(tx: FrontierTransaction) -> None:
            tx.execute(sql.DROP_REREAD, (execution_id, attempt.page_id, attempt.depth))

        return self.add(execution_id, found, via=attempt.page_id, also=done)

    def fetch_again(self, execution_id: int, reread: PageToReread) -> bool:
        """Fetch a page again whose stored response cannot be read here, to find its links.

        Return False if it was retried since.
        """

        def done(tx: FrontierTransaction) -> None:
            tx.execute(sql.DROP_REREAD, (execution_id, reread.attempt.page_id, reread.depth))

        return self._closing.reopen_one(reread.attempt.id, was_fetched=True, also=done)

    def lease(self, execution_id: int, owner_id: int, *, domains: int, pages: int) -> list[DomainLease]:
        """Lease up to `domains` due domains, longest waiting first, each with up to `pages` attempts.

        Only domains that are allowed, not held by a live owner, due, and with attempts to assign. Attempts are ordered
        deferred-and-due first, then by priority, then in the order they were found. `taken_over` marks a domain that
        its last owner did not release.
        """
        return self._leases.lease(execution_id, owner_id, domains=domains, pages=pages)

    def lease_named(self, owner_id: int, domain: str) -> DomainLease | None:
        """Lease one domain by name for a request without an attempt (a robots.txt that redirects there).

        Return None if another process holds it, an operator forbids it, or it must rest for more than half a lease; it
        may still have to wait for its next turn. Release it with `release`.
        """
        ids = self._adding.names.ids([domain], now=to_micros(self._clock.now()))
        return self._leases.lease_one(ids[domain], owner_id)

    def is_barred(self, domain: str) -> bool:
        """Return why `lease_named` failed: True if the domain is forbidden or resting, False if it is held."""
        return self._leases.is_barred(domain)

    def closed(self, domain: str) -> Literal["forbidden", "paused"] | None:
        """Return whether an operator has forbidden or paused a domain: nothing is requested there."""
        return self._leases.closed(domain)

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the last record of an origin's robots.txt, by whichever process holds its domain."""
        with self._connection.read() as tx:
            return robots_of_origin(tx, origin)

    def refill(
        self, execution_id: int, domain_id: int, token: int, *, limit: int, holding: Collection[int] = ()
    ) -> list[Attempt]:
        """Return up to `limit` more due attempts of a held domain, without those in `holding`.

        Return none if the token is no longer valid: the next renewal or settle reports it.
        """
        return self._leases.refill(execution_id, (domain_id, token), limit=limit, holding=holding)

    def renew(self, owner_id: int) -> dict[int, tuple[int, datetime]]:
        """Extend all leases of this owner in one statement; return domain: (token, expiry).

        A domain that is missing or has another token is lost: do not request it any more. An expired lease that is
        free
        is renewed; a released one is not, nor one unknown to callers of this frontier (the response to a `lease` was
        lost). An owner has one frontier.
        """
        return self._leases.renew(owner_id)

    def settle(
        self,
        execution_id: int,
        owner_id: int,
        visits: Sequence[Visit],
        updates: Sequence[DomainUpdate] = (),
        counts: CountsOf | None = None,
    ) -> Settled:
        """Close attempts with all their results, and write what was learned about domains.

        Visits and updates with an old token are rejected and returned; attempts closed before are skipped and
        returned.
        The value of `counts` for those two replaces the running totals of this owner.
        """
        totals = None if counts is None else ProcessTotals(owner_id=owner_id, counts=counts)
        return self._settlement.settle(execution_id, visits, updates, totals)

    def release(self, execution_id: int, owner_id: int, updates: Sequence[DomainUpdate]) -> list[int]:
        """Release domains with their updates; return the ids of those that a newer owner holds.

        The queue becomes due at the domain's next turn, or when the first of its deferred attempts is.
        """
        return self._leases.release(execution_id, owner_id, updates)

    def wanted(self, domain_ids: Collection[int]) -> set[int]:
        """Return which of these domains a feed poll waits for: polls are short, and a crawl may last for days."""
        return self._leases.wanted(domain_ids) if domain_ids else set()

    def rest(self, execution_id: int, domain_ids: Collection[int], *, seconds: float) -> None:
        """Make an execution wait `seconds` before it leases these domains again, so that others can have them
        first.
        """
        if domain_ids:
            self._leases.rest(execution_id, domain_ids, seconds=seconds)

    def let_go(self, leases: Collection[tuple[int, int]]) -> int:
        """Release (domain, token) pairs held without being processed: the response to their lease was lost.

        The next process to lease such a domain takes it over, and waits one delay. Return how many were still held.
        """
        return self._leases.let_go(leases) if leases else 0

    def free(self, owner_ids: Collection[int]) -> int:
        """Release the domains of dead owners immediately and void their tokens; return how many there were."""
        return self._leases.free(owner_ids) if owner_ids else 0

    def recover(self, *, older_than_s: float = 900.0) -> int:
        """Release leases that expired longer ago than this; return how many there were."""
        return self._leases.recover(older_than_s=older_than_s)

    def attribute_crash(self, attempt_ids: Sequence[int], evidence: str, *, limit: int = 3) -> list[int]:
        """Count a crash against attempts that a dead process was parsing; return those now quarantined.

        After `limit` crashes an attempt is closed as failed, reason `quarantined`, with the evidence as its message.
        """
        # It names a machine, which may be called what no column takes.
        ending = ClosedUnvisited(outcome=Outcome.FAILED, reason=QUARANTINED, message=clean(evidence, 2000))
        return self._closing.attribute_crash(attempt_ids, ending, limit=limit) if attempt_ids else []

    def close_domain(
        self,
        execution_id: int,
        domain_id: int,
        *,
        outcome: Outcome,
        reason: str,
        limit: int = 5000,
        token: int | None = None,
    ) -> int:
        """Close up to `limit` open attempts of a domain and return how many; call again until it returns 0.

        A caller that acts as the domain's holder passes its token: nothing is closed if another process holds it by
        now.
        """
        ending = ClosedUnvisited(outcome=outcome, reason=reason)
        return self._closing.close_domain(execution_id, domain_id, ending, limit=limit, token=token)

    def close_rest(
        self,
        execution_id: int,
        *,
        outcome: Outcome,
        reason: str,
        kinds: Collection[UrlKind] = ALL_KINDS,
        limit: int = 5000,
    ) -> int:
        """Close up to `limit` open attempts of an execution and return how many; call again until it returns 0.

        Attempts being fetched by another process are closed too; their visits then count as repeated.
        """
        return self._closing.close_rest(
            execution_id, ClosedUnvisited(outcome=outcome, reason=reason), kinds=kinds, limit=limit
        )

    def reopen(self, execution_id: int, *, every_domain: bool = False, limit: int = 2000) -> int:
        """Retry failed attempts on domains that were given up, or on every domain; return how many.

        Uses short transactions; call before any process works on the execution. A repeated call finds nothing to do.
        """
        slices = self._connection.in_slices(sql.DOMAINS_GIVEN_UP, execution_id)
        given_up = None if every_domain else {row[0] for rows in slices for row in rows}
        if given_up is not None and not given_up:
            return 0
        return self._reopen(sql.FAILED_ATTEMPTS, execution_id, given_up, limit)

    def reopen_left_over(self, execution_id: int, *, limit: int = 2000) -> int:
        """Queue attempts again that were not requested because a person stopped the run; return how many.

        Uses short transactions; call before any process works on the execution. A repeated call finds nothing to do.
        """
        return self._reopen(sql.LEFT_OVER_ATTEMPTS, execution_id, None, limit)

    def _reopen(self, statement: str, execution_id: int, given_up: Collection[int] | None, limit: int) -> int:
        reopened = 0
        # The attempts that are inserted lie in the slice that was read already: none is found again.
        for rows in self._connection.in_slices(statement, execution_id):
            chosen = (row for row in rows if given_up is None or row[0] in given_up)
            for domain_id, group in groupby(chosen, key=itemgetter(0)):
                ended = [(number, outcome) for _, number, outcome in group]
                for start in range(0, len(ended), limit):
                    self._closing.reopen(execution_id, domain_id, ended[start : start + limit])
                reopened += len(ended)
        return reopened

    def reopen_one(self, attempt_id: int) -> bool:
        """Retry one failed URL; return False if it did not fail or was retried since."""
        return self._closing.reopen_one(attempt_id)

    def close_one(self, attempt_id: int, *, outcome: Outcome, reason: str) -> bool:
        return self._closing.close_one(attempt_id, ClosedUnvisited(outcome=outcome, reason=reason))

    def forget_originals(self, warc_file_id: int) -> None:
        """Remove every original in a WARC file that is being deleted: no revisit may refer to it, no 304 rely on
        it.
        """
        self._closing.forget_originals(warc_file_id, chunk=5000)

    def known_signals(self, page_ids: Sequence[int]) -> dict[int, KnownSignals]:
        """Return the stored signals of these pages, by page; none for a new page or one whose body is stored."""
        with self._connection.read() as tx:
            return known_signals(tx, page_ids)

    def forget_signals(self, execution_id: int) -> None:
        """Delete the signals written by an execution that were not replaced since."""
        after: int | None = -1
        while after is not None:
            with self._connection.write() as tx:
                after = forget_signals(tx, execution_id, after=after)

    def find_redirect(self, execution_id: int, *, domain: str, url_hash: int) -> str | None:
        """Return the target of a URL's redirect to another domain in an execution; None if there was no redirect."""
        with self._connection.read() as tx:
            rows = tx.execute(queries.FIND_REDIRECT, (execution_id, domain, url_hash))
        return rows[0][0] if rows else None

    def find_capture(self, page_id: int, *, but_not_in: int) -> str | None:
        """Return the final URL of a page's last capture in other executions, or its own; None if never captured."""
        with self._connection.read() as tx:
            rows = tx.execute(queries.FIND_CAPTURE, (page_id, but_not_in))
        return rows[0][0] if rows else None

    def signal_links(self, page_id: int) -> tuple[str, ...]:
        with self._connection.read() as tx:
            return signal_links(tx, page_id)

    def open_count(self, execution_id: int) -> int:
        """Return the number of open attempts; 0 means that the execution is finished."""
        with self._connection.read() as tx:
            return queries.open_count(tx, execution_id)

    def open_domains(self, execution_id: int) -> int:
        with self._connection.read() as tx:
            return queries.open_domains(tx, execution_id)

    def expired_domains(self) -> int:
        """Return how many domains, of any execution, are held by an owner that is frozen, cut off or dead."""
        with self._connection.read() as tx:
            return queries.expired_domains(tx, now=to_micros(self._clock.now()))

    def next_due_at(self, execution_id: int) -> datetime | None:
        """Return when a lease may next find something, or None if nothing is open."""
        with self._connection.read() as tx:
            due = queries.next_due_at(tx, execution_id, now=to_micros(self._clock.now()))
        return None if due is None else from_micros(due)

    def forbidden_domains(self, execution_id: int, *, limit: int = 100) -> list[tuple[int, int]]:
        """Return forbidden domains with open attempts, and their tokens: the caller closes them."""
        with self._connection.read() as tx:
            return queries.forbidden_domains(tx, execution_id, limit=limit)

    def paused_domains(self, execution_id: int, *, before: datetime, limit: int = 100) -> list[tuple[int, int]]:
        with self._connection.read() as tx:
            return queries.paused_domains(tx, execution_id, before=to_micros(before), limit=limit)

    def hopeless_domains(
        self, execution_id: int, *, since: datetime, patience_s: float, limit: int = 100
    ) -> list[tuple[int, int]]:
        """Return domains with open attempts that stay unreachable longer than the patience: the caller closes them.

        Includes each token, to pass to `close_domain`: a process that leases one meanwhile has newer information.
        """
        now, patience = to_micros(self._clock.now()), round(patience_s * 1_000_000)
        with self._connection.read() as tx:
            return queries.hopeless_domains(
                tx, execution_id, since=to_micros(since), patience=patience, now=now, limit=limit
            )

    def reachable_at(self, execution_id: int) -> datetime | None:
        with self._connection.read() as tx:
            found = queries.reachable_at(tx, execution_id, now=to_micros(self._clock.now()))
        return None if found is None else from_micros(found)

    def unreachable(self, execution_id: int, *, limit: int = 5) -> list[Unreachable]:
        with self._connection.read() as tx:
            return queries.unreachable(tx, execution_id, now=to_micros(self._clock.now()), limit=limit)

    def reset(self, domain: str) -> bool:
        """Clear a domain's unreachable state: its circuit, its slow-down, the failures of its robots files.

        It may then be requested immediately, whatever wait was in force. Return whether anything was cleared. Raise
        `NotFound` if the domain is unknown, `Conflict` while a live process holds it, which has newer information.
        """
        return self._leases.reset(domain)

    def stats(self, execution_id: int | None = None) -> FrontierStats:
        with self._connection.read() as tx:
            return queries.stats(tx, execution_id, now=to_micros(self._clock.now()))

    def list_open(self, execution_id: int, *, limit: int = 50) -> list[OpenAttempt]:
        with self._connection.read() as tx:
            return queries.list_open(tx, execution_id, limit=limit, now=to_micros(self._clock.now()))
