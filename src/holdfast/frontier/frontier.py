"""The frontier: add, lease, settle. Rows are the queue, domains are leased, what relies on a lease is fenced.

All methods are synchronous and belong to one thread with its connection. Each is one short transaction (`settle` is
split when it adds more links than a transaction should), and each may be repeated after Unavailable without harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

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
    RobotsState,
    UrlKind,
    Visit,
)
from holdfast.values import dataclass

ALL_KINDS = tuple(UrlKind)
QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSettings:
    """Sizes and times."""

    lease_s: float = 60.0
    """How long a domain is held without renewal."""
    links_per_transaction: int = 5_000
    """Found addresses that one transaction adds at most; a larger settle is split between visits."""
    known_domains: int = 100_000
    """Names whose id is remembered (about 150 bytes each)."""


class Frontier:
    """The pages to ask for, in a database that any number of processes share."""

    def __init__(self, raw_db: RawDatabase, clock: Clock, settings: FrontierSettings | None = None) -> None:
        """Prepare nothing yet; the clock should be a DatabaseClock wherever more than one process works."""
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
        """Add addresses to an execution and return how many it had not seen. `via` is the page they were found on.

        With `raised`, queued ones of a lower priority get the higher one, and it is called with how many those are.
        `also` is done in the transaction that adds the last of them (the only one, up to 5,000): what it writes and
        what is added stand or fall together, and what it raises undoes both.
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
        """Add what waits for the next run of an execution's source and is accepted; return how many were new."""
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
        """What depths mean to the execution that this frontier is used for; set by its owner before it begins."""
        return self._depths.rules

    def rereads(self, execution_id: int, *, limit: int) -> list[PageToReread]:
        """Return pages that were fetched before a shorter way to them was found: their links count anew."""
        with self._connection.read() as tx:
            return self._depths.rereads(tx, execution_id, limit=limit)

    def reread_count(self, execution_id: int) -> int:
        """Return how many such pages there are."""
        with self._connection.read() as tx:
            return int(tx.execute(sql.COUNT_REREADS, (execution_id,))[0][0])

    def read_again(self, execution_id: int, reread: PageToReread, found: Sequence[FoundUrl]) -> int:
        """Add what a page leads to from its smaller depth, and note it as read; return how many addresses were new.

        Killed in between, it is read once more, which is harmless.
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
        """Fetch a page anew whose stored answer cannot be read here: what it leads to is found by that.

        False if it was tried again since.
        """

        def done(tx: FrontierTransaction) -> None:
            tx.execute(sql.DROP_REREAD, (execution_id, reread.attempt.page_id, reread.depth))

        return self._closing.reopen_one(reread.attempt.id, was_fetched=True, also=done)

    def lease(self, execution_id: int, owner_id: int, *, domains: int, pages: int) -> list[DomainLease]:
        """Take up to `domains` domains that are due, longest waiting first, each with up to `pages` attempts.

        Only domains that are allowed, that no live owner holds and whose next moment has come; never one with nothing
        to hand out. Attempts come deferred-and-due first, then by priority, then in the order they were found.
        `taken_over` marks a domain that its last owner did not give back.
        """
        return self._leases.lease(execution_id, owner_id, domains=domains, pages=pages)

    def lease_named(self, owner_id: int, domain: str) -> DomainLease | None:
        """Take one domain by name for a request that is no attempt (a robots.txt that redirects there).

        None if another process holds it, an operator forbids it, or it must rest for more than half a lease: its next
        moment may still be to come. Give it back with `release`.
        """
        ids = self._adding.names.ids([domain], now=to_micros(self._clock.now()))
        return self._leases.lease_one(ids[domain], owner_id)

    def is_barred(self, domain: str) -> bool:
        """Return why `lease_named` refused a domain: True if it is forbidden or rests, False if it is held."""
        return self._leases.is_barred(domain)

    def is_forbidden(self, domain: str) -> bool:
        """Return whether an operator forbids a domain: nothing is ever asked there."""
        return self._leases.is_forbidden(domain)

    def robots(self, origin: str) -> RobotsState | None:
        """Return what was last learned of an origin's robots.txt, by whichever process holds its domain."""
        with self._connection.read() as tx:
            return robots_of_origin(tx, origin)

    def refill(
        self, execution_id: int, domain_id: int, token: int, *, limit: int, holding: Collection[int] = ()
    ) -> list[Attempt]:
        """Return up to `limit` more due attempts of a domain that we hold, without those in `holding`.

        None come if the token is not the domain's any more: the next renewal or settle says so.
        """
        return self._leases.refill(execution_id, (domain_id, token), limit=limit, holding=holding)

    def renew(self, owner_id: int) -> dict[int, tuple[int, datetime]]:
        """Extend all leases of this owner in one statement; return domain: (token, expiry).

        A domain that is missing, or has another token, is lost: ask it nothing more. An expired lease that is free
        is renewed; one that was freed is not, nor one that no caller of this frontier got to know (the answer to a
        `lease` was lost): an owner has one frontier.
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
        """Close attempts with all that came of them, and write what was learned about domains.

        Visits and updates whose token is old are refused and named; attempts that were closed before are skipped and
        named. What `counts` returns for those two replaces the running totals of this owner.
        """
        totals = None if counts is None else ProcessTotals(owner_id=owner_id, counts=counts)
        return self._settlement.settle(execution_id, visits, updates, totals)

    def release(self, execution_id: int, owner_id: int, updates: Sequence[DomainUpdate]) -> list[int]:
        """Give domains back, with what was learned; return the ids of those that a newer owner holds.

        The queue becomes due at the domain's next moment, or when the first of its deferred attempts is.
        """
        return self._leases.release(execution_id, owner_id, updates)

    def wanted(self, domain_ids: Collection[int]) -> set[int]:
        """Return which of these domains a poll of feeds waits for: it is short, and a crawl may last for days."""
        return self._leases.wanted(domain_ids) if domain_ids else set()

    def rest(self, execution_id: int, domain_ids: Collection[int], *, seconds: float) -> None:
        """Let an execution ask for these domains again only after so many seconds: others may take them first."""
        if domain_ids:
            self._leases.rest(execution_id, domain_ids, seconds=seconds)

    def let_go(self, leases: Collection[tuple[int, int]]) -> int:
        """Let go of (domain, token) pairs that we hold and do not work on: their lease's answer was lost on the way.

        The process that leases such a domain next takes it over, and waits one delay. Return how many were still ours.
        """
        return self._leases.let_go(leases) if leases else 0

    def free(self, owner_ids: Collection[int]) -> int:
        """Make the domains of dead owners leasable at once, void their tokens, return how many there were."""
        return self._leases.free(owner_ids) if owner_ids else 0

    def recover(self, *, older_than_s: float = 900.0) -> int:
        """Free leases that expired longer ago than this and return how many there were."""
        return self._leases.recover(older_than_s=older_than_s)

    def attribute_crash(self, attempt_ids: Sequence[int], evidence: str, *, limit: int = 3) -> list[int]:
        """Count a crash against attempts that a dead process was parsing; return those that are now quarantined.

        With `limit` crashes an attempt is closed as failed, reason `quarantined`, with the evidence as its message.
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

        Who decides it as the holder of the domain gives its token: nothing is closed if another holds it by now.
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

        What another process is fetching is closed too; its visit then counts as repeated.
        """
        return self._closing.close_rest(
            execution_id, ClosedUnvisited(outcome=outcome, reason=reason), kinds=kinds, limit=limit
        )

    def reopen(self, execution_id: int, *, every_domain: bool = False, limit: int = 2000) -> int:
        """Ask once more for what failed on domains that were given up, or on every domain; return how much that is.

        In short transactions, before any process works on the execution. A repeat finds nothing to do.
        """
        slices = self._connection.in_slices(sql.DOMAINS_GIVEN_UP, execution_id)
        given_up = None if every_domain else {row[0] for rows in slices for row in rows}
        if given_up is not None and not given_up:
            return 0
        return self._reopen(sql.FAILED_ATTEMPTS, execution_id, given_up, limit)

    def reopen_left_over(self, execution_id: int, *, limit: int = 2000) -> int:
        """Queue again what was not asked for because a person stopped the run; return how much that is.

        In short transactions, before any process works on the execution. A repeat finds nothing to do.
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
        """Ask once more for one address that failed; False if it did not, or was tried again since."""
        return self._closing.reopen_one(attempt_id)

    def close_one(self, attempt_id: int, *, outcome: Outcome, reason: str) -> bool:
        """Close one open attempt; False if it is not open."""
        return self._closing.close_one(attempt_id, ClosedUnvisited(outcome=outcome, reason=reason))

    def forget_originals(self, warc_file_id: int) -> None:
        """Forget every original in a WARC file that is going: no revisit may point there, no 304 stand for it."""
        self._closing.forget_originals(warc_file_id, chunk=5000)

    def known_signals(self, page_ids: Sequence[int]) -> dict[int, KnownSignals]:
        """Return what was kept of these pages before, by page; nothing for one whose body is kept or that is new."""
        with self._connection.read() as tx:
            return known_signals(tx, page_ids)

    def forget_signals(self, execution_id: int) -> None:
        """Forget the signals that an execution wrote and no other replaced since."""
        after: int | None = -1
        while after is not None:
            with self._connection.write() as tx:
                after = forget_signals(tx, execution_id, after=after)

    def find_redirect(self, execution_id: int, *, domain: str, url_hash: int) -> str | None:
        """Return where an address redirected to on another domain in an execution; None if it did not."""
        with self._connection.read() as tx:
            rows = tx.execute(queries.FIND_REDIRECT, (execution_id, domain, url_hash))
        return rows[0][0] if rows else None

    def find_capture(self, page_id: int, *, but_not_in: int) -> str | None:
        """Return the address that a page led to, or its own, when it was last captured; None if it never was."""
        with self._connection.read() as tx:
            rows = tx.execute(queries.FIND_CAPTURE, (page_id, but_not_in))
        return rows[0][0] if rows else None

    def signal_links(self, page_id: int) -> tuple[str, ...]:
        """Return where a page leads whose body is not kept."""
        with self._connection.read() as tx:
            return signal_links(tx, page_id)

    def open_count(self, execution_id: int) -> int:
        """Return how many attempts are open; 0 means that the execution has nothing left to do."""
        with self._connection.read() as tx:
            return queries.open_count(tx, execution_id)

    def open_domains(self, execution_id: int) -> int:
        """Return how many domains have open attempts."""
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
        """Return domains with open attempts that an operator forbids, and their tokens: the caller closes them."""
        with self._connection.read() as tx:
            return queries.forbidden_domains(tx, execution_id, limit=limit)

    def paused_domains(self, execution_id: int, *, before: datetime, limit: int = 100) -> list[tuple[int, int]]:
        """Return domains with open attempts that were paused before a moment, and their tokens."""
        with self._connection.read() as tx:
            return queries.paused_domains(tx, execution_id, before=to_micros(before), limit=limit)

    def hopeless_domains(
        self, execution_id: int, *, since: datetime, patience_s: float, limit: int = 100
    ) -> list[tuple[int, int]]:
        """Return domains with open attempts that stay unreachable for longer than one waits: the caller closes them.

        With the token of each, to be given to `close_domain`: a process that takes one meanwhile knows better.
        """
        now, patience = to_micros(self._clock.now()), round(patience_s * 1_000_000)
        with self._connection.read() as tx:
            return queries.hopeless_domains(
                tx, execution_id, since=to_micros(since), patience=patience, now=now, limit=limit
            )

    def reachable_at(self, execution_id: int) -> datetime | None:
        """Return when what an execution could not reach may be asked again, None if there is no such thing."""
        with self._connection.read() as tx:
            found = queries.reachable_at(tx, execution_id, now=to_micros(self._clock.now()))
        return None if found is None else from_micros(found)

    def unreachable(self, execution_id: int, *, limit: int = 5) -> list[Unreachable]:
        """Return domains of an execution that cannot be reached, and when they may be asked again."""
        with self._connection.read() as tx:
            return queries.unreachable(tx, execution_id, now=to_micros(self._clock.now()), limit=limit)

    def reset(self, domain: str) -> bool:
        """Forget that a domain could not be reached: its circuit, its slow-down, the failures of its robots files.

        It may then be asked at once, whatever was to be waited for. Return whether there was something to forget.
        NotFound if the domain is not known, Conflict while a live process holds it: that one knows better.
        """
        return self._leases.reset(domain)

    def stats(self, execution_id: int | None = None) -> FrontierStats:
        """Return the figures of one execution, or of all."""
        with self._connection.read() as tx:
            return queries.stats(tx, execution_id, now=to_micros(self._clock.now()))

    def list_open(self, execution_id: int, *, limit: int = 50) -> list[OpenAttempt]:
        """Return open attempts, those whose turn comes first first."""
        with self._connection.read() as tx:
            return queries.list_open(tx, execution_id, limit=limit, now=to_micros(self._clock.now()))
