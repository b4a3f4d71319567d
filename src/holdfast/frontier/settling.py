"""The end of attempts: closed once, with everything that came of them, in one transaction.

Stages: fence by token, keep what is still open, add links, close, update pages, insert retries, write signals, count;
in this order because of locks (`sql.py`). A visit whose token is old changes nothing, nor does one that was settled
before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.clock import Clock, to_micros
from holdfast.db.text import clean
from holdfast.frontier import sql
from holdfast.frontier.adding import Adding, FoundRow
from holdfast.frontier.connection import Connection, Spoken
from holdfast.frontier.depths import Depths, Raised, note_rereads
from holdfast.frontier.domains import fence, write_updates
from holdfast.frontier.heads import Heads
from holdfast.frontier.signals import SignalRows, weight
from holdfast.frontier.values import Settled
from holdfast.types import DomainUpdate, Kind, Outcome, Visit
from holdfast.values import dataclass

_VISITS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The running totals of one process."""

    owner_id: int
    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What a set of visits writes: computed before the transaction, and again only if some of them do not count."""

    closed: list[tuple[Any, ...]]
    told: dict[str, list[tuple[Any, ...]]]
    """What pages learn, by statement."""
    retries: list[tuple[int, int, int]]
    """When, now, and the attempt that is repeated."""
    found: list[FoundRow]
    shallower: list[FoundRow]
    excluded: list[tuple[str, str, int]]
    signals: SignalRows

    @classmethod
    def of(cls, visits: Sequence[Visit], adding: Adding, *, now: int) -> _Work:
        told: dict[str, list[tuple[Any, ...]]] = {}
        excluded: Counter[tuple[str, str]] = Counter()
        for visit in visits:
            if visit.outcome is not Outcome.EXCLUDED:
                statement, values = _told(visit)
                told.setdefault(statement, []).append(values)
            for (rule, host), count in visit.excluded.items():
                excluded[clean(rule, 200) or "", clean(host, 255) or ""] += count
        return cls(
            closed=[_closed(visit) for visit in visits], told=told,
            retries=[(to_micros(v.retry_at), now, v.attempt.id) for v in visits if v.retry_at is not None],
            found=adding.rows([(visit.found, visit.attempt.page_id) for visit in visits], now=now),
            shallower=adding.rows([(visit.shallower, visit.attempt.page_id) for visit in visits if visit.shallower],
                                  now=now),
            excluded=[(rule, host, excluded[rule, host]) for rule, host in sorted(excluded)],
            signals=SignalRows.of(visits),
        )  # fmt: skip


class Settlement:
    """Settles visits of one connection."""

    def __init__(self, connection: Connection, clock: Clock, adding: Adding, depths: Depths, *, links: int) -> None:
        self._connection, self._clock, self._adding, self._depths = connection, clock, adding, depths
        self._links = links

    def settle(self, execution_id: int, visits: Sequence[Visit], updates: Sequence[DomainUpdate],
               totals: Totals | None) -> Settled:  # fmt: skip
        """Settle all visits; split into several transactions only if they found more than one should add."""
        settled = Settled()
        chunks = list(_chunks(visits, self._links))
        for chunk in chunks[:-1]:
            settled = _sum(settled, self._settle(execution_id, chunk, (), None))
        return _sum(settled, self._settle(execution_id, chunks[-1], updates, totals))

    def _settle(self, execution_id: int, visits: Sequence[Visit], updates: Sequence[DomainUpdate],
                totals: Totals | None) -> Settled:  # fmt: skip
        now = to_micros(self._clock.now())
        work = _Work.of(visits, self._adding, now=now)
        tokens = {(visit.attempt.domain_id, visit.token) for visit in visits}
        tokens |= {(update.domain_id, update.token) for update in updates}
        with self._connection.write() as tx:
            held = fence(tx, tokens) if tokens else set()
            write_updates(tx, [update for update in updates if (update.domain_id, update.token) in held])
            ours = [visit for visit in visits if (visit.attempt.domain_id, visit.token) in held]
            taken, overtaken = _still_open(tx, execution_id, ours)
            if len(taken) < len(visits):
                work = _Work.of(taken, self._adding, now=now)  # every domain of these was looked up above
            heads = Heads()
            added = self._adding.insert(tx, execution_id, work.found, heads, now=now)
            _close(tx, taken, work, heads)
            if overtaken and self._depths.rules.limited:
                note_rereads(tx, execution_id, overtaken)
            work.signals.write(tx, execution_id)
            self._adding.requisites.promote(tx, execution_id, work.found)
            raised = self._raised(tx, execution_id, work, known=len(work.found) - sum(added.values()))
            closed = {visit.attempt.id for visit in taken}
            if repeated := [visit for visit in ours if visit.attempt.id not in closed]:
                raised += self._raised_before(tx, execution_id, _Work.of(repeated, self._adding, now=now))
            _count(tx, execution_id, work, totals, now)
            heads.write(tx, execution_id)
        self._depths.make_smaller(execution_id, raised)
        self._adding.requisites.settled(v.attempt.url_hash for v in taken if v.attempt.kind is Kind.REQUISITE)
        return Settled(
            closed=len(taken), new=sum(added.values()), retried=len(work.retries), added=frozenset(added),
            refused=tuple(v for v in visits if (v.attempt.domain_id, v.token) not in held),
            repeated=tuple(repeated),
            lost=tuple(u.domain_id for u in updates if (u.domain_id, u.token) not in held),
        )  # fmt: skip

    def _raised(self, tx: Spoken, execution_id: int, work: _Work, *, known: int) -> list[Raised]:
        """Return the pages that these visits found by a shorter way than the one that is known."""
        raised: list[Raised] = []
        if known and self._depths.rules.shared:
            raised += self._depths.deeper(tx, execution_id)
        if work.shallower:
            tx.load("new_found", sql.FOUND_COLUMNS, work.shallower)
            raised += self._depths.deeper(tx, execution_id)
        return raised

    def _raised_before(self, tx: Spoken, execution_id: int, work: _Work) -> list[Raised]:
        """Return such pages for visits that are offered again: the connection may have been lost before their depths
        were made smaller, which is a transaction of its own."""
        tx.load("new_found", sql.FOUND_COLUMNS, work.found)
        return self._raised(tx, execution_id, work, known=len(work.found))


def _chunks(visits: Sequence[Visit], links: int) -> Iterator[Sequence[Visit]]:
    """Yield the visits, each attempt once, in groups whose links fit one transaction; at least one, even if empty."""
    chunk: list[Visit] = []
    found = 0
    seen: set[int] = set()
    for visit in visits:
        if visit.attempt.id in seen:
            continue
        seen.add(visit.attempt.id)
        size = len(visit.found) + weight(visit)
        if chunk and (found + size > links or len(chunk) >= _VISITS_AT_ONCE):
            yield chunk
            chunk, found = [], 0
        chunk.append(visit)
        found += size
    yield chunk


def _sum(one: Settled, other: Settled) -> Settled:
    return Settled(
        closed=one.closed + other.closed, new=one.new + other.new, retried=one.retried + other.retried,
        added=one.added | other.added, refused=one.refused + other.refused, repeated=one.repeated + other.repeated,
        lost=one.lost + other.lost,
    )  # fmt: skip


def _still_open(tx: Spoken, execution_id: int, visits: Sequence[Visit]) -> tuple[list[Visit], list[tuple[int, int]]]:
    """Return the visits whose attempt is still open; under the lock of their domains no other process can close it.

    And the (domain, page) pairs among them that were found by a shorter way since they were taken: what they brought
    counts from the greater depth still.
    """
    if not visits:
        return [], []
    depths: dict[int, int] = dict(
        tx.execute(sql.OPEN_AMONG, (tx.list([visit.attempt.id for visit in visits]), execution_id))
    )
    still = [visit for visit in visits if visit.attempt.id in depths]
    overtaken = sorted(
        (one.attempt.domain_id, one.attempt.page_id)
        for one in still
        if one.attempt.kind is Kind.PAGE and depths[one.attempt.id] < one.attempt.depth
    )
    return still, overtaken


def _close(tx: Spoken, visits: Sequence[Visit], work: _Work, heads: Heads) -> None:
    """Close attempts, tell their pages, insert attempts n+1. Those cannot be there yet: the attempts were open."""
    tx.many(sql.CLOSE_VISIT, work.closed)
    for statement, rows in work.told.items():
        tx.many(statement, rows)
    tx.many(sql.INSERT_RETRY, work.retries)
    for visit in visits:
        heads.closed(visit.attempt.domain_id, visit.outcome, retried=visit.retry_at is not None)
        if visit.retry_at is not None:
            heads.opened(visit.attempt.domain_id, to_micros(visit.retry_at))


def _count(tx: Spoken, execution_id: int, work: _Work, totals: Totals | None, now: int) -> None:
    """Add to the exclusions, replace this process's totals."""
    if work.excluded:
        tx.load("new_exclusions", sql.EXCLUSION_COLUMNS, work.excluded)
        tx.execute(sql.UPSERT_EXCLUSIONS, (execution_id,))
    if totals is not None:
        tx.execute(sql.UPSERT_COUNTS, (execution_id, totals.owner_id, json.dumps(totals.counts), now))


def _closed(visit: Visit) -> tuple[Any, ...]:
    """Return the values of CLOSE_VISIT."""
    record = visit.record or (None, None, None, None)
    status = visit.status if visit.status is None or 0 <= visit.status <= 32767 else None
    return (
        visit.outcome.value, clean(visit.reason, 200), status, clean(visit.message, 2000), clean(visit.media_type, 255),
        visit.wire_bytes, visit.requests, visit.payload_digest, visit.content_hash, clean(visit.title, 1000),
        clean(visit.redirected_to, 16_384), len(visit.found) + sum(visit.excluded.values()), record[0], record[1],
        record[2], record[3], to_micros(visit.started_at), to_micros(visit.finished_at), visit.attempt.id,
    )  # fmt: skip


def _told(visit: Visit) -> tuple[str, tuple[Any, ...]]:
    """Return how a page learns of its visit: a statement and its values.

    Validators belong to the last good answer; a 304 without any leaves them as they are. Language sticks.
    """
    at, page_id = to_micros(visit.finished_at), visit.attempt.page_id
    if visit.outcome is not Outcome.SUCCESS:
        return sql.PAGE_FAILED, (at, page_id)
    language = visit.language if visit.language is not None and len(visit.language) <= 35 else None
    learned = (at, clean(language, 35), clean(visit.etag, 1024), clean(visit.last_modified, 255))
    original = visit.original
    if original is None and visit.status == 200 and (visit.etag or visit.last_modified):
        return sql.PAGE_MOVED_ON, (*learned, visit.payload_digest, page_id)
    if original is None:
        return (sql.PAGE_UNCHANGED if visit.status == 304 else sql.PAGE_FETCHED), (*learned, page_id)
    return sql.PAGE_FETCHED_ANEW, (
        *learned, original.record_id, clean(original.url, 16_384), to_micros(original.captured_at),
        original.payload_digest, original.warc_file_id, original.offset, page_id,
    )  # fmt: skip
