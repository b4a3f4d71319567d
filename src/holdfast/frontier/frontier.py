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

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.raw import RawDatabase
from holdfast.frontier import queries, sql
from holdfast.frontier.adding import Adding, DepthRules, Depths, QueueHeads
from holdfast.frontier.control import FrontierControl, WaitingUrl
from holdfast.frontier.leasing import FrontierLeases, moment, robots_of_origin
from holdfast.frontier.queries import FrontierStats, OpenAttempt, Unreachable
from holdfast.frontier.settling import (
    Closing,
    CountsOf,
    Settled,
    Settlement,
)
from holdfast.frontier.sql import Connection, FrontierTransaction
from holdfast.series.raw_queries import add_counts
from holdfast.types import (
    DomainLease,
    DomainUpdate,
    FoundUrl,
    PageToReread,
    RobotsRecord,
    Visit,
)
from holdfast.values import dataclass

_REOPENED_AT_ONCE = 2000
_CLOSED_AT_ONCE = 100
"""Domains whose attempts are closed before the next look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSettings:
    """Sizes and times of the frontier."""

    lease_s: float = 60.0
    """Duration of a domain lease without renewal."""
    links_per_transaction: int = 5_000
    """Limit of found URLs added per transaction; a larger settle is split between visits."""
    known_domains: int = 100_000
    """Limit of cached domain ids (about 150 bytes each)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSignals:
    fetched_at: datetime
    content_hash: str | None
    has_all_links: bool
    """Whether the stored links include all of the page's links to other URLs."""


class Frontier(FrontierLeases, Closing):
    def __init__(self, raw_db: RawDatabase, clock: Clock, settings: FrontierSettings | None = None) -> None:
        """Create a frontier without opening anything; use a `DatabaseClock` if more than one process works."""
        self._settings = settings or FrontierSettings()
        super().__init__(Connection(raw_db), clock, lease_s=self._settings.lease_s)
        self._adding = Adding(self._connection, known_domains=self._settings.known_domains)
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

        return self.reopen_one(reread.attempt.id, was_fetched=True, also=done)

    def lease_named(self, owner_id: int, domain: str) -> DomainLease | None:
        """Lease one domain by name for a request without an attempt (a robots.txt that redirects there).

        Return None if another process holds it, an operator forbids it, or it must rest for more than half a lease; it
        may still have to wait for its next turn. Release it with `release`.
        """
        ids = self._adding.names.ids([domain], now=to_micros(self._clock.now()))
        return self.lease_one(ids[domain], owner_id)

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the last record of an origin's robots.txt, by whichever process holds its domain."""
        with self._connection.read() as tx:
            return robots_of_origin(tx, origin)

    def settle(
        self,
        execution_id: int,
        owner_id: int,
        visits: Sequence[Visit],
        updates: Sequence[DomainUpdate] = (),
        counts: CountsOf | None = None,
    ) -> Settled:
        """Close attempts with all their results, and write domain updates.

        Visits and updates with an old token are rejected and returned; attempts closed before are skipped and
        returned.
        The value of `counts` for those two replaces the running totals of this owner.
        """
        totals = None if counts is None else (owner_id, counts)
        return self._settlement.settle(execution_id, visits, updates, totals)

    def reopen(self, execution_id: int, *, every_domain: bool = False, limit: int = _REOPENED_AT_ONCE) -> int:
        """Retry failed attempts on domains that were given up, or on every domain; return how many.

        Uses short transactions; call before any process works on the execution. A repeated call finds nothing to do.
        """
        slices = self._connection.in_slices(sql.DOMAINS_GIVEN_UP, execution_id)
        given_up = None if every_domain else {row[0] for rows in slices for row in rows}
        if given_up is not None and not given_up:
            return 0
        return self._reopen(sql.FAILED_ATTEMPTS, execution_id, given_up, limit)

    def reopen_left_over(self, execution_id: int) -> int:
        """Queue attempts again that were not requested because a person stopped the run; return how many.

        Uses short transactions; call before any process works on the execution. A repeated call finds nothing to do.
        """
        return self._reopen(sql.LEFT_OVER_ATTEMPTS, execution_id, None, _REOPENED_AT_ONCE)

    def _reopen(self, statement: str, execution_id: int, given_up: Collection[int] | None, limit: int) -> int:
        reopened = 0
        # The attempts that are inserted lie in the slice that was read already: none is found again.
        for rows in self._connection.in_slices(statement, execution_id):
            chosen = (row for row in rows if given_up is None or row[0] in given_up)
            for domain_id, group in groupby(chosen, key=itemgetter(0)):
                ended = [(number, outcome) for _, number, outcome in group]
                for start in range(0, len(ended), limit):
                    self._reopen_ended(execution_id, domain_id, ended[start : start + limit])
                reopened += len(ended)
        return reopened

    def known_signals(self, page_ids: Sequence[int]) -> dict[int, KnownSignals]:
        """Return the stored signals of these pages, by page; none for a new page or one whose body is stored."""
        with self._connection.read() as tx:
            rows = tx.execute(sql.KNOWN_SIGNALS, (tx.list(page_ids),))
        return {
            page_id: KnownSignals(
                fetched_at=from_micros(fetched_at),
                content_hash=(content_hash or "").removeprefix("sha256:") or None,
                has_all_links=stored == links_count,
            )
            for page_id, fetched_at, content_hash, links_count, stored in rows
        }

    def forget_signals(self, execution_id: int) -> None:
        """Delete the signals written by an execution that were not replaced since."""
        # It looks at all pages of the execution's source, by index: few executions are discarded.
        after = -1
        while True:
            with self._connection.write() as tx:
                source = tx.execute(sql.SOURCE_OF, (execution_id,))
                rows = tx.execute(sql.SIGNALS_OF, (source[0][0] if source else 0, after, 200))
                ours = [page_id for page_id, writer in rows if writer == execution_id]
                if ours:
                    for statement in (sql.DROP_WORDS, sql.DROP_LINKS, sql.DROP_SIGNALS):
                        tx.execute(statement, (tx.list(ours),))
            if not rows:
                return
            after = rows[-1][0]

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
            return tuple(row[0] for row in tx.execute(sql.LINKS_OF, (page_id,)))

    def open_count(self, execution_id: int) -> int:
        """Return the number of open attempts; 0 means that the execution is finished."""
        with self._connection.read() as tx:
            return queries.open_count(tx, execution_id=execution_id)

    def open_domains(self, execution_id: int) -> int:
        with self._connection.read() as tx:
            return queries.open_domains(tx, execution_id)

    def expired_domains(self) -> int:
        """Return how many domains, of any execution, are held by an owner that is frozen, cut off or dead."""
        held = "lease_owner IS NOT NULL AND lease_expires_at > 0 AND lease_expires_at <= ?"
        return self._figure(f"SELECT count(*) FROM domains WHERE {held}", to_micros(self._clock.now())) or 0  # noqa: S608

    def reachable_at(self, execution_id: int) -> datetime | None:
        return moment(self._figure(queries.REACHABLE_AT, execution_id, to_micros(self._clock.now())))

    def _figure(self, statement: str, *values: int) -> int | None:
        with self._connection.read() as tx:
            found = tx.execute(statement, values)[0][0]
        return None if found is None else int(found)

    def forbidden_domains(self, execution_id: int) -> list[tuple[int, int]]:
        """Return forbidden domains with open attempts, and their tokens: the caller closes them."""
        return self._domains(queries.FORBIDDEN, execution_id)

    def paused_domains(self, execution_id: int, *, before: datetime) -> list[tuple[int, int]]:
        return self._domains(queries.PAUSED, execution_id, to_micros(before))

    def hopeless_domains(self, execution_id: int, *, since: datetime, patience_s: float) -> list[tuple[int, int]]:
        """Return domains with open attempts that stay unreachable longer than the patience: the caller closes them.

        The patience counts from `since`, or from when they became unreachable if that was later. Includes each token,
        to pass to `close_domain`: domains held now are left to their holder, and so are those that a process leases
        meanwhile.
        """
        now, patience = to_micros(self._clock.now()), round(patience_s * 1_000_000)
        return self._domains(queries.HOPELESS, execution_id, to_micros(since) + patience, patience, now)

    def _domains(self, statement: str, *values: int) -> list[tuple[int, int]]:
        with self._connection.read() as tx:
            return [(domain_id, token) for domain_id, token in tx.execute(statement, (*values, _CLOSED_AT_ONCE))]

    def unreachable(self, execution_id: int) -> list[Unreachable]:
        """Return a few unreachable domains that may not be requested now, soonest first."""
        with self._connection.read() as tx:
            rows = tx.execute(queries.UNREACHABLE, (execution_id, to_micros(self._clock.now())))
        return [Unreachable(name, from_micros(since), from_micros(until)) for name, since, until in rows]

    def stats(self, execution_id: int | None = None) -> FrontierStats:
        with self._connection.read() as tx:
            return queries.stats(tx, execution_id, now=to_micros(self._clock.now()))

    def list_open(self, execution_id: int, *, limit: int = 50) -> list[OpenAttempt]:
        with self._connection.read() as tx:
            return queries.list_open(tx, execution_id, limit=limit, now=to_micros(self._clock.now()))
