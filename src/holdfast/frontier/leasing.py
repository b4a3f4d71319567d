"""Domain leases: acquired with a token, renewed in one statement, released or acquired from dead owners.

A lease is an owner, a token that increases with every acquisition, and an expiry by the database's clock. A
release clears the owner; a dead owner's name remains, so that the next owner waits a full delay first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.raw import Row, synchronise
from holdfast.errors import Conflict, NotFound
from holdfast.frontier import sql
from holdfast.frontier.sql import Connection, FrontierTransaction
from holdfast.series.counting import Counts
from holdfast.series.raw_queries import add_counts
from holdfast.types import (
    Attempt,
    CircuitState,
    DomainLease,
    DomainUpdate,
    Original,
    RobotsAnswer,
    RobotsRecord,
    UrlKind,
)

# As much as is parsed of a robots.txt; RFC 9309 (2.5) asks for at least 500 KiB.
_ROBOTS_BYTES = 512 * 1024


def moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def circuit_of(row: Sequence[Any]) -> CircuitState:
    """Return the circuit from its six columns, in table order."""
    state, failures, successes, opened_at, penalty, unreachable_since = row
    return CircuitState(
        state=state,
        failures=failures,
        successes=successes,
        opened_at=moment(opened_at),
        penalty=penalty,
        unreachable_since=moment(unreachable_since),
    )


def robots_of(tx: FrontierTransaction, domain_ids: Collection[int]) -> dict[int, tuple[RobotsRecord, ...]]:
    states: dict[int, list[RobotsRecord]] = {}
    for row in tx.execute(sql.ROBOTS, (tx.list(domain_ids),)):
        states.setdefault(row[0], []).append(_robots(row))
    return {domain_id: tuple(found) for domain_id, found in states.items()}


def robots_of_origin(tx: FrontierTransaction, origin: str) -> RobotsRecord | None:
    rows = tx.execute(sql.ROBOTS_OF_ORIGIN, (origin,))
    return _robots(rows[0]) if rows else None


def _robots(row: Row) -> RobotsRecord:
    _, origin, answer, status, body, failures, fetched_at, checked_at = row
    return RobotsRecord(
        origin=origin,
        answer=RobotsAnswer(answer),
        status=status,
        body=bytes(body),
        failures=failures,
        fetched_at=from_micros(fetched_at),
        checked_at=from_micros(checked_at),
    )


def write_updates(tx: FrontierTransaction, updates: Sequence[DomainUpdate]) -> None:
    """Write domain updates; the caller holds the locks and has checked the tokens."""
    if not updates:
        return
    # The last update of a domain counts; sorted, because rows are locked in the order of ids.
    rows = {update.domain_id: _row(update) for update in updates}
    tx.load("new_domains", sql.DOMAIN_COLUMNS, [rows[domain_id] for domain_id in sorted(rows)])
    tx.execute(sql.UPDATE_DOMAINS)
    robots = {state.origin: _robots_row(update, state) for update in updates for state in update.robots}
    if robots:
        tx.many(sql.UPSERT_ROBOTS, [robots[origin] for origin in sorted(robots)])


def _row(update: DomainUpdate) -> tuple[Any, ...]:
    circuit = update.circuit
    return (
        update.domain_id,
        to_micros(update.next_allowed_at),
        update.delay_s,
        circuit.state,
        circuit.failures,
        circuit.successes,
        micros(circuit.opened_at),
        circuit.penalty,
        micros(circuit.unreachable_since),
    )


def _robots_row(update: DomainUpdate, state: RobotsRecord) -> tuple[Any, ...]:
    return (
        update.domain_id,
        state.origin,
        state.answer.value,
        state.status,
        state.body[:_ROBOTS_BYTES],
        state.failures,
        to_micros(state.fetched_at),
        to_micros(state.checked_at),
    )


def fence(tx: FrontierTransaction, tokens: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Lock these domains in order and return the (domain, token) pairs that are still valid."""
    return fence_circuits(tx, tokens)[0]


def fence_circuits(
    tx: FrontierTransaction, tokens: Collection[tuple[int, int]]
) -> tuple[set[tuple[int, int]], dict[int, str]]:
    """Lock these domains in order; return the valid pairs, and the state of each domain's circuit."""
    held = tx.execute(sql.LOCK_DOMAINS, (tx.list({domain_id for domain_id, _ in tokens}),))
    in_force = {(domain_id, token) for domain_id, token, _ in held} & set(tokens)
    return in_force, {domain_id: circuit for domain_id, _, circuit in held}


def count_circuits(before: Mapping[int, str], updates: Iterable[DomainUpdate]) -> Counts:
    """Return how many circuits these updates open, and how many they close."""
    counts: Counts = Counter()
    # The last update of a domain counts.
    for domain_id, now in {update.domain_id: update.circuit.state for update in updates}.items():
        if now != before[domain_id] and now in _TURNED:
            counts[_TURNED[now]] += 1
    return counts


_TURNED = {"open": "circuits_opened", "closed": "circuits_closed"}


_KINDS = {kind.value: kind for kind in UrlKind}
# Where `sql.DUE_DOMAINS` has the state of the circuit.
_CIRCUIT_STATE = 6
# Looks of one lease: heads that a dead owner left due without anything to ask are rare, and put off when met.
_TRIES = 3


class FrontierLeases:
    """The part of `Frontier` that leases domains and reads what to request there."""

    def __init__(self, connection: Connection, clock: Clock, *, lease_s: float) -> None:
        self._connection, self._clock = connection, clock
        self._length = timedelta(seconds=lease_s)
        # By owner: domains whose lease a caller got to know, and its token. Only those are renewed.
        self._handed: dict[int, dict[int, int]] = {}

    def lease(self, execution_id: int, owner_id: int, *, domains: int, pages: int) -> list[DomainLease]:
        """Lease up to `domains` due domains, longest waiting first, each with up to `pages` attempts.

        Only domains that are allowed, not held by a live owner, due, and with attempts to assign. Attempts are ordered
        deferred-and-due first, then by priority, then in the order they were found. `taken_over` marks a domain that
        its last owner did not release.
        """
        granted: list[DomainLease] = []
        for _ in range(_TRIES):
            leases = self._lease(execution_id, owner_id, domains=domains - len(granted), pages=pages)
            idle = [lease for lease in leases if not lease.attempts]
            granted += [lease for lease in leases if lease.attempts]
            self._put_off(execution_id, owner_id, idle)
            if not idle:
                break
        self._hand(owner_id, granted)
        return granted

    def _lease(self, execution_id: int, owner_id: int, *, domains: int, pages: int) -> list[DomainLease]:
        now = self._clock.now()
        at = to_micros(now)
        if not self._connection.is_postgres:
            # A process asks at least twice a second, mostly in vain: it should not wait for SQLite's one writer.
            with self._connection.read() as tx:
                if not tx.execute(sql.DUE_DOMAINS, (execution_id, at, at, at, 1)):
                    return []
        with self._connection.write() as tx:
            rows = tx.execute(sql.DUE_DOMAINS, (execution_id, at, at, at, domains))
            self._take(tx, owner_id, rows, now)
        if not rows:
            return []
        # The domains are ours now: reading what to ask needs no lock.
        with self._connection.read() as tx:
            circuits = {row[0]: row[_CIRCUIT_STATE] for row in rows}
            robots = robots_of(tx, circuits)
            attempts = self._due(tx, execution_id, circuits, to_micros(now), pages)
        return [self._granted(row, now, robots.get(row[0], ()), attempts.get(row[0], ())) for row in rows]

    def lease_one(self, domain_id: int, owner_id: int) -> DomainLease | None:
        now = self._clock.now()
        with self._connection.write() as tx:
            # Half a lease: a caller that must wait longer for the domain would lose it before it may ask.
            rested_by = to_micros(now + self._length / 2)
            rows = tx.execute(sql.FREE_DOMAIN, (domain_id, to_micros(now), rested_by))
            self._take(tx, owner_id, rows, now)
            robots = robots_of(tx, [domain_id]) if rows else {}
        if not rows:
            return None
        lease = self._granted(rows[0], now, robots.get(domain_id, ()), ())
        self._hand(owner_id, [lease])
        return lease

    def is_barred(self, domain: str) -> bool:
        """Return why `lease_named` failed: True if the domain is forbidden or resting, False if it is held."""
        now = self._clock.now()
        with self._connection.read() as tx:
            return bool(tx.execute(sql.BARRED, (domain, to_micros(now), to_micros(now + self._length / 2))))

    def closed(self, domain: str) -> Literal["forbidden", "paused"] | None:
        """Return whether an operator has forbidden or paused a domain: nothing is requested there."""
        with self._connection.read() as tx:
            rows = tx.execute(sql.CLOSED, (domain,))
        return ("paused" if rows[0][0] else "forbidden") if rows else None

    def _hand(self, owner_id: int, leases: Sequence[DomainLease]) -> None:
        self._handed.setdefault(owner_id, {}).update((lease.domain_id, lease.token) for lease in leases)

    def _take(self, tx: FrontierTransaction, owner_id: int, rows: Sequence[Row], now: datetime) -> None:
        if rows:
            tx.execute(sql.TAKE, (owner_id, to_micros(now + self._length), tx.list([row[0] for row in rows])))

    def _granted(self, row: Row, now: datetime, robots: Any, attempts: Any) -> DomainLease:
        domain_id, name, delay_s, next_allowed_at, last_owner, token, *circuit, robots_after, changed_at = row
        return DomainLease(
            domain_id=domain_id,
            domain=name,
            # The row was read before it was taken, which counts its token up by one.
            token=token + 1,
            expires_at=now + self._length,
            delay_s=delay_s or 0.0,
            next_allowed_at=from_micros(next_allowed_at),
            taken_over=last_owner is not None,
            circuit=circuit_of(circuit),
            robots=robots,
            attempts=attempts,
            robots_after=moment(robots_after),
            changed_at=moment(changed_at),
        )

    def _due(
        self, tx: FrontierTransaction, execution_id: int, circuits: Mapping[int, str], at: int, limit: int
    ) -> dict[int, tuple[Attempt, ...]]:
        """Return the attempts to assign, by domain: deferred ones whose time has come, then by priority.

        Deferred ones come last if the circuit of the domain is not closed.
        """
        due: dict[int, list[Attempt]] = {}
        late_turns = {domain_id: 0 if state == "closed" else 2 for domain_id, state in circuits.items()}
        if self._connection.is_postgres:
            values = (list(late_turns), list(late_turns.values()), execution_id, at, limit, execution_id, limit)
            rows = tx.execute(sql.DUE_ATTEMPTS, values)
        else:
            rows = []
            for domain_id, turn in late_turns.items():
                values_of_one = (turn, execution_id, domain_id, at, limit, execution_id, domain_id, limit)
                rows += tx.execute(sql.DUE_ATTEMPTS, values_of_one)
        for row in rows:
            taken = due.setdefault(row[2], [])
            # Two lists come for each domain, late ones and ready ones, each up to the limit.
            if len(taken) < limit:
                taken.append(_attempt(row))
        return {domain_id: tuple(taken) for domain_id, taken in due.items()}

    def refill(
        self, execution_id: int, domain_id: int, token: int, *, limit: int, holding: Collection[int] = ()
    ) -> list[Attempt]:
        """Return up to `limit` more due attempts of a held domain, without those in `holding`.

        Return none if the token is no longer valid: the next renewal or settle reports it.
        """
        with self._connection.read() as tx:
            # Another process may have taken the domain over meanwhile; two would then ask it at once.
            held = tx.execute(sql.LEASE_TOKEN, (domain_id,))
            if not held or held[0][0] != token:
                return []
            at = to_micros(self._clock.now())
            # Attempts in progress are still open and are returned first, so the limit grows by their number.
            due = self._due(tx, execution_id, {domain_id: held[0][1]}, at, limit + len(holding))
        fresh = [attempt for attempt in due.get(domain_id, ()) if attempt.id not in holding]
        return fresh[:limit]

    def renew(self, owner_id: int) -> dict[int, tuple[int, datetime]]:
        """Extend all leases of this owner in one statement; return domain: (token, expiry).

        A domain that is missing or has another token is lost: do not request it any more. An expired lease that is
        free
        is renewed; a released one is not, nor one unknown to callers of this frontier (the response to a `lease` was
        lost). An owner has one frontier.
        """
        # Once a renewal, so that the drift between this machine and the server never adds up to a lease.
        synchronise(self._clock)
        until = self._clock.now() + self._length
        with self._connection.write() as tx:
            rows = tx.execute(sql.RENEW, (owner_id, to_micros(until)))
            handed = self._handed.get(owner_id, {})
            known = {domain_id: token for domain_id, token in rows if handed.get(domain_id) == token}
            # Taken by a call whose answer was lost: no part of this process works on it, and renewing it would hold it
            # for ever.
            if len(known) < len(rows):
                tx.execute(sql.LET_GO, (tx.list([domain_id for domain_id, _ in rows if domain_id not in known]),))
        self._handed[owner_id] = known
        return {domain_id: (token, until) for domain_id, token in known.items()}

    def release(self, execution_id: int, owner_id: int, updates: Sequence[DomainUpdate]) -> list[int]:
        """Release domains with their updates; return the ids of those that a newer owner holds.

        The queue becomes due at the domain's next turn, or when the first of its deferred attempts is.
        """
        if not updates:
            return []
        with self._connection.write() as tx:
            held, circuits = fence_circuits(tx, [(update.domain_id, update.token) for update in updates])
            ours = [update for update in updates if (update.domain_id, update.token) in held]
            write_updates(tx, ours)
            ids = tx.list(sorted(update.domain_id for update in ours))
            tx.execute(sql.RELEASE, (owner_id, ids))
            _next_due(tx, execution_id, ids)
            now = to_micros(self._clock.now())
            add_counts(tx, execution_id, count_circuits(circuits, ours), now=now, is_postgres=tx.is_postgres)
        return [update.domain_id for update in updates if (update.domain_id, update.token) not in held]

    def _put_off(self, execution_id: int, owner_id: int, idle: Sequence[DomainLease]) -> None:
        """Release domains without attempts to assign; a `taken_over` mark stays."""
        if not idle:
            return
        with self._connection.write() as tx:
            held = fence(tx, [(lease.domain_id, lease.token) for lease in idle])
            ours = sorted(lease.domain_id for lease in idle if (lease.domain_id, lease.token) in held)
            clean = {lease.domain_id for lease in idle if not lease.taken_over}
            # A domain that was taken over keeps the name of the dead owner, so that the next one waits a full delay as
            # well.
            tx.execute(sql.RELEASE, (owner_id, tx.list([domain_id for domain_id in ours if domain_id in clean])))
            tx.execute(sql.LET_GO, (tx.list([domain_id for domain_id in ours if domain_id not in clean]),))
            _next_due(tx, execution_id, tx.list(ours))

    def wanted(self, domain_ids: Collection[int]) -> set[int]:
        """Return which of these domains a feed poll waits for: polls are short, and a crawl may last for days."""
        if not domain_ids:
            return set()
        with self._connection.read() as tx:
            rows = tx.execute(sql.WANTED, (tx.list(domain_ids), to_micros(self._clock.now())))
        return {row[0] for row in rows}

    def rest(self, execution_id: int, domain_ids: Collection[int], *, seconds: float) -> None:
        """Make an execution wait `seconds` before it leases these domains again, so that others can have them
        first.
        """
        if not domain_ids:
            return
        until = to_micros(self._clock.now() + timedelta(seconds=seconds))
        with self._connection.write() as tx:
            tx.execute(sql.REST, (until, execution_id, until, tx.list(sorted(domain_ids))))

    def reset(self, domain: str) -> bool:
        """Clear a domain's unreachable state: its circuit, its slow-down, the failures of its robots files.

        It may then be requested immediately, whatever wait was in force. Return whether anything was cleared. Raise
        `NotFound` if the domain is unknown, `Conflict` while a live process holds it, which has newer information.
        """
        now = to_micros(self._clock.now())
        with self._connection.write() as tx:
            rows = tx.execute(sql.DOMAIN_TO_RESET, (domain,))
            if not rows:
                raise NotFound(f"{domain} was never asked for anything; is it spelled as in: holdfast frontier list")
            domain_id, owner, expires_at = rows[0]
            if owner is not None and expires_at > now:
                raise Conflict(f"a crawl works on {domain} at this moment; there is nothing to lift")
            ids = tx.list([domain_id])
            lifted = tx.execute(sql.FORGET_OUTAGE, (now, now, domain_id, now))
            lifted += tx.execute(sql.FORGET_ROBOTS, (domain_id,))
            tx.execute(sql.FORGET_ROBOTS_FAILURES, (domain_id,))
            for (execution_id,) in tx.execute(sql.QUEUES_OF_DOMAIN, (domain_id,)):
                _next_due(tx, execution_id, ids)
        return bool(lifted)

    def let_go(self, leases: Collection[tuple[int, int]]) -> int:
        """Release (domain, token) pairs held without being processed: the response to their lease was lost.

        The next process to lease such a domain takes it over, and waits one delay. Return how many were still held.
        """
        if not leases:
            return 0
        with self._connection.write() as tx:
            held = fence(tx, leases)
            tx.execute(sql.LET_GO, (tx.list(sorted(domain_id for domain_id, _ in held)),))
        return len(held)

    def free(self, owner_ids: Collection[int]) -> int:
        """Release the domains of dead owners immediately and void their tokens; return how many there were."""
        if not owner_ids:
            return 0
        with self._connection.write() as tx:
            return len(tx.execute(sql.FREE_OWNERS, (tx.list(owner_ids),)))

    def recover(self, *, older_than_s: float = 900.0) -> int:
        """Release leases that expired longer ago than this; return how many there were."""
        before = self._clock.now() - timedelta(seconds=older_than_s)
        with self._connection.write() as tx:
            return len(tx.execute(sql.FREE_EXPIRED, (to_micros(before),)))


def _next_due(tx: FrontierTransaction, execution_id: int, ids: Any) -> None:
    """Set when the queues of these domains next have attempts to assign."""
    # First the lock, then the look: an add that we waited for is seen, one that waits for us lowers it afterwards.
    if tx.is_postgres:
        tx.execute(sql.LOCK_HEADS, (execution_id, ids))
    tx.execute(sql.PUT_OFF, (execution_id, ids))


def original_of(url: str, columns: Sequence[Any]) -> Original:
    """Return the original of a page from its six columns, in table order."""
    record_id, original_url, original_at, digest, file_id, offset = columns
    return Original(
        record_id=record_id,
        # Only another address than the page's own is stored.
        url=original_url or url,
        captured_at=from_micros(original_at),
        payload_digest=digest,
        warc_file_id=file_id,
        offset=offset,
    )


def _attempt(row: Row) -> Attempt:
    (
        number,
        page_id,
        domain_id,
        url,
        url_hash,
        kind,
        depth,
        attempt,
        priority,
        etag,
        last_modified,
        record_id,
        original_url,
        original_at,
        digest,
        file_id,
        offset,
        hops,
        generation,
    ) = row
    original = None
    if record_id is not None:
        original = original_of(url, (record_id, original_url, original_at, digest, file_id, offset))
    return Attempt(
        id=number,
        page_id=page_id,
        domain_id=domain_id,
        url=url,
        url_hash=url_hash,
        kind=_KINDS[kind],
        depth=depth,
        number=attempt,
        priority=priority,
        etag=etag,
        last_modified=last_modified,
        original=original,
        hops=hops,
        generation=generation,
    )
