"""The end of attempts: closed once, with all their results, in one transaction.

Stages: fence by token, select open attempts, add links, close, update pages, insert retries, write
signals, count; in this order because of locks (`sql.py`). A visit with an old token changes nothing, nor does
one settled before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from holdfast.clock import Clock, to_micros
from holdfast.frontier import sql
from holdfast.frontier.adding import Adding, Depths, FoundRow, QueueHeads, Raised, note_rereads
from holdfast.frontier.leasing import count_circuits, fence, fence_circuits, write_updates
from holdfast.frontier.queries import open_domains
from holdfast.frontier.sql import Connection, FrontierTransaction
from holdfast.outside_text import clean
from holdfast.series.counting import Counts, count_visits
from holdfast.series.raw_queries import add_counts, minute_of
from holdfast.types import DomainUpdate, Outcome, UrlKind, Visit
from holdfast.urls import page_key
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    closed: int = 0
    new: int = 0
    retried: int = 0
    """Number of retries inserted (attempts n+1)."""
    added: frozenset[int] = frozenset()
    """Domains with new attempts."""
    refused: tuple[Visit, ...] = ()
    """Visits with a token that is no longer valid: nothing of them was written."""
    repeated: tuple[Visit, ...] = ()
    """Visits of attempts closed before: by our own earlier settle, an operator, or a limit."""
    lost: tuple[int, ...] = ()
    """Domains whose update was rejected because their token has changed."""


class Closing:
    """The part of `Frontier` that closes attempts in small transactions; the queue heads stay exact."""

    _connection: Connection
    _clock: Clock

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
        with self._connection.read() as tx:
            of_one = (execution_id, domain_id, limit)
            rows = tx.execute(sql.OPEN_OF_DOMAIN, of_one + of_one)
        held = None if token is None else (domain_id, token)
        return self._close([row[0] for row in rows[:limit]], outcome, reason, held=held)

    def close_rest(
        self,
        execution_id: int,
        *,
        outcome: Outcome,
        reason: str,
        kinds: Collection[UrlKind] = tuple(UrlKind),
        limit: int = 5000,
    ) -> int:
        """Close up to `limit` open attempts of an execution and return how many; call again until it returns 0.

        Attempts being fetched by another process are closed too; their visits then count as repeated.
        """
        with self._connection.read() as tx:
            of_all = (execution_id, tx.list([kind.value for kind in kinds]), limit)
            rows = tx.execute(sql.OPEN_OF_ALL, of_all + of_all)
        return self._close([row[0] for row in rows[:limit]], outcome, reason)

    def close_all(self, execution_id: int, reason: str, *, between: Callable[[], None] = lambda: None) -> None:
        """Close all open attempts of an execution as excluded; call `between` after each portion.

        Millions of rows take minutes.
        """
        while self.close_rest(execution_id, outcome=Outcome.EXCLUDED, reason=reason):
            between()

    def attribute_crash(self, attempt_ids: Sequence[int], evidence: str, *, limit: int = 3) -> list[int]:
        """Count a crash against attempts that a dead process was parsing; return those now quarantined.

        After `limit` crashes an attempt is closed as failed, reason `quarantined`, with the evidence as its message.
        """
        if not attempt_ids:
            return []
        with self._connection.write() as tx:
            _lock(tx, attempt_ids)
            rows = tx.execute(sql.COUNT_CRASH, (tx.list(attempt_ids),))
            quarantined = sorted(number for number, crashes in rows if crashes >= limit)
            # The evidence names a machine, whose name may hold characters that no column takes.
            self._end(tx, quarantined, Outcome.FAILED, "quarantined", message=clean(evidence, 2000))
        return quarantined

    def _reopen_ended(self, execution_id: int, domain_id: int, ended: Sequence[tuple[int, str]]) -> None:
        with self._connection.write() as tx:
            # Under the lock of their domains, as whatever closes attempts.
            _lock(tx, [number for number, _ in ended])
            self._open_again(tx, execution_id, domain_id, ended)

    def _open_again(
        self, tx: FrontierTransaction, execution_id: int, domain_id: int, ended: Sequence[tuple[int, str]]
    ) -> None:
        """Insert the next attempt of each ended one, by id and outcome; their domain must be locked."""
        now = to_micros(self._clock.now())
        tx.many(sql.INSERT_RETRY, [(None, now, attempt_id) for attempt_id, _ in ended])
        heads = QueueHeads()
        for outcome, count in Counter(Outcome(outcome) for _, outcome in ended).items():
            _count_closed(tx, execution_id, outcome, -count, now)
            heads.reopened(domain_id, now, outcome, count)
        heads.write(tx, execution_id)
        # Nothing is taken back: that they failed once is true.
        add_counts(tx, execution_id, Counter(queue=len(ended)), now=now, is_postgres=tx.is_postgres)

    def reopen_one(
        self,
        attempt_id: int,
        *,
        was_fetched: bool = False,
        also: Callable[[FrontierTransaction], None] = lambda _tx: None,
    ) -> bool:
        """Retry a URL that failed or was fetched; return False if it did neither or was retried since.

        `also` is called in the same transaction.
        """
        with self._connection.write() as tx:
            _lock(tx, [attempt_id])
            rows = tx.execute(sql.FETCHED_ATTEMPT if was_fetched else sql.FAILED_ATTEMPT, (attempt_id,))
            for execution_id, domain_id, outcome in rows:
                self._open_again(tx, execution_id, domain_id, [(attempt_id, outcome)])
            also(tx)
        return bool(rows)

    def close_one(self, attempt_id: int, *, outcome: Outcome, reason: str) -> bool:
        """Close one open attempt; return False if it is not open."""
        return self._close([attempt_id], outcome, reason) > 0

    def forget_originals(self, warc_file_id: int) -> None:
        """Remove every original in a WARC file that is being deleted: no revisit may refer to it, no 304 rely on
        it.
        """
        after = -1
        while True:
            with self._connection.write() as tx:
                rows = tx.execute(sql.RECORDS_OF_FILE, (warc_file_id, after, 5000))
                if not rows:
                    return
                _lock(tx, [row[0] for row in rows])
                tx.execute(sql.FORGET_ORIGINALS, (warc_file_id, tx.list([row[1] for row in rows])))
            # On by offset, so that each transaction is short.
            after = rows[-1][2]

    def _close(
        self, attempt_ids: Sequence[int], outcome: Outcome, reason: str, *, held: tuple[int, int] | None = None
    ) -> int:
        if not attempt_ids:
            return 0
        with self._connection.write() as tx:
            # Another process took the domain meanwhile, and may be fetching the very pages.
            if held is not None and not fence(tx, [held]):
                return 0
            _lock(tx, attempt_ids)
            return self._end(tx, attempt_ids, outcome, reason)

    def _end(
        self,
        tx: FrontierTransaction,
        attempt_ids: Sequence[int],
        outcome: Outcome,
        reason: str,
        *,
        message: str | None = None,
    ) -> int:
        """Close attempts whose domains are locked; those closed meanwhile stay unchanged."""
        if not attempt_ids:
            return 0
        now = to_micros(self._clock.now())
        values = (outcome.value, reason, message, now, tx.list(attempt_ids))
        rows = tx.execute(sql.CLOSE_IDS, values)
        if outcome is not Outcome.EXCLUDED:
            tx.execute(sql.FAIL_PAGES, (now, tx.list([page_id for _, _, page_id in rows])))
        heads: dict[int, QueueHeads] = {}
        for execution_id, domain_id, _ in rows:
            heads.setdefault(execution_id, QueueHeads()).closed(domain_id, outcome)
        closed = Counter(execution_id for execution_id, _, _ in rows)
        for execution_id in sorted(heads):
            _count_closed(tx, execution_id, outcome, closed[execution_id], now)
            heads[execution_id].write(tx, execution_id)
        for execution_id, count in sorted(closed.items()):
            ended = Counter({outcome.value: count, "queue": -count})
            add_counts(tx, execution_id, ended, now=now, is_postgres=tx.is_postgres)
        return len(rows)


def _count_closed(tx: FrontierTransaction, execution_id: int, outcome: Outcome, closed: int, now: int) -> None:
    """Add to the totals of attempts ended without a visit: no process counts them, and they may end last of all."""
    # The row must be there before it can be locked: two that end something at once would otherwise overwrite each
    # other.
    tx.execute(sql.ENSURE_COUNTS, (execution_id, now))
    found = tx.execute(sql.UNVISITED_COUNTS, (execution_id,))[0][0]
    counts = json.loads(found) if isinstance(found, str) else found
    outcomes = Counter(counts.get("outcomes", {}))
    outcomes[outcome.value] += closed
    tx.execute(sql.UPSERT_COUNTS, (execution_id, 0, json.dumps({"outcomes": outcomes}), now))


def _lock(tx: FrontierTransaction, attempt_ids: Sequence[int]) -> None:
    """Lock the domains of these attempts; closing an attempt requires that lock."""
    rows = tx.execute(sql.DOMAINS_OF, (tx.list(attempt_ids),))
    tx.execute(sql.LOCK_DOMAINS, (tx.list([row[0] for row in rows]),))


ROWS_A_LINK = 2
"""Word and link rows that cost as much in a transaction as one found URL: 5 to 8 us each on SQLite, with 250,000
and with a million of them, where a URL takes 13.
"""


@dataclass(slots=True)
class SignalRows:
    """Rows written by a set of visits, computed before the transaction."""

    pages: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    words: list[tuple[str, int, int]] = field(default_factory=list)
    links: list[tuple[int, int, int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, visits: Sequence[Visit]) -> SignalRows:
        """Return the rows of these visits, sorted by their keys; the last visit of a page counts."""
        rows = cls()
        latest = {visit.attempt.page_id: visit for visit in visits if visit.signals is not None}
        for page_id, visit in latest.items():
            signals = visit.signals
            assert signals is not None
            rows.pages[page_id] = _page(visit)
            rows.words += [(word, page_id, count) for word, count in signals.words]
            origin = signals.from_hash
            rows.links += [(page_id, to_hash, origin, clean(url, 16_384) or "") for to_hash, url in signals.links]
        rows.words.sort()
        rows.links.sort()
        return rows

    def write(self, tx: FrontierTransaction, execution_id: int) -> None:
        """Replace the signals of these pages."""
        if not self.pages:
            return
        ids = sorted(self.pages)
        # Replaced, not merged: a word that the page no longer has must not be found.
        tx.execute(sql.DROP_WORDS, (tx.list(ids),))
        tx.execute(sql.DROP_LINKS, (tx.list(ids),))
        tx.append("signal_words", sql.WORD_COLUMNS, self.words)
        tx.append("signal_links", sql.LINK_COLUMNS, self.links)
        source = tx.execute(sql.SOURCE_OF, (execution_id,))
        source_id = source[0][0] if source else 0
        tx.many(sql.UPSERT_SIGNALS, [(page_id, source_id, execution_id, *self.pages[page_id]) for page_id in ids])


def weight(visit: Visit) -> int:
    """Return the weight of a visit's signals in a transaction, in units of found URLs."""
    signals = visit.signals
    return 0 if signals is None else (len(signals.words) + len(signals.links)) // ROWS_A_LINK


def _page(visit: Visit) -> tuple[Any, ...]:
    signals = visit.signals
    assert signals is not None
    content_hash = None if visit.content_hash is None else f"sha256:{visit.content_hash}"
    # Longer than a language tag may be: cut, it would name another language.
    language = visit.language if visit.language is not None and len(visit.language) <= 35 else None
    return (
        to_micros(visit.finished_at),
        visit.status,
        clean(visit.media_type, 255),
        content_hash,
        clean(language, 35),
        clean(visit.title, 1000),
        clean(signals.description, 2000),
        len(signals.words),
        signals.links_count,
        page_key(visit.attempt.url),
    )


_VISITS_AT_ONCE = 1000

CountsOf = Callable[[Sequence[Visit], Sequence[Visit]], Mapping[str, Any]]
"""Returns the running totals that go with a settle, from its rejected and its repeated visits."""


ProcessTotals = tuple[int, CountsOf]
"""An owner, and what computes its running totals once it is known which of its visits count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Rows written by a set of visits: computed before the transaction, and again only if some of them do not
    count.
    """

    closed: list[tuple[Any, ...]]
    page_updates: dict[str, list[tuple[Any, ...]]]
    retries: list[tuple[int, int, int]]
    """Retry time, current time, and the attempt that is repeated."""
    found: list[FoundRow]
    shallower: list[FoundRow]
    excluded: list[tuple[str, str, int]]
    signals: SignalRows
    counts: Counts

    @classmethod
    def of(cls, visits: Sequence[Visit], adding: Adding, *, now: int) -> _Work:
        page_updates: dict[str, list[tuple[Any, ...]]] = {}
        excluded: Counter[tuple[str, str]] = Counter()
        for visit in visits:
            if visit.outcome is not Outcome.EXCLUDED:
                statement, values = _page_update(visit)
                page_updates.setdefault(statement, []).append(values)
            for (rule, host), count in visit.excluded.items():
                excluded[clean(rule, 200) or "", clean(host, 255) or ""] += count
        return cls(
            closed=[_closed(visit) for visit in visits],
            page_updates=page_updates,
            retries=[(to_micros(v.retry_at), now, v.attempt.id) for v in visits if v.retry_at is not None],
            found=adding.rows([(visit.found, visit.attempt.page_id) for visit in visits], now=now),
            shallower=adding.rows(
                [(visit.shallower, visit.attempt.page_id) for visit in visits if visit.shallower], now=now
            ),
            excluded=[(rule, host, count) for (rule, host), count in sorted(excluded.items()) if count],
            signals=SignalRows.of(visits),
            counts=count_visits(visits),
        )


class Settlement:
    def __init__(self, connection: Connection, clock: Clock, adding: Adding, depths: Depths, *, links: int) -> None:
        self._connection, self._clock, self._adding, self._depths = connection, clock, adding, depths
        self._links = links
        self._counted_at: dict[int, int] = {}
        """The minute in which domains were counted last, of the execution that was settled last."""

    def settle(
        self, execution_id: int, visits: Sequence[Visit], updates: Sequence[DomainUpdate], totals: ProcessTotals | None
    ) -> Settled:
        """Settle all visits; split into several transactions only if they found more links than one should add."""
        # Updates of domains and totals go with the last part: they tell of all visits, and must not stand before them.
        settled = Settled()
        chunks = list(_chunks(visits, self._links))
        for chunk in chunks[:-1]:
            settled = _sum(settled, self._settle(execution_id, chunk, (), None, settled))
        return _sum(settled, self._settle(execution_id, chunks[-1], updates, totals, settled))

    def _settle(
        self,
        execution_id: int,
        visits: Sequence[Visit],
        updates: Sequence[DomainUpdate],
        totals: ProcessTotals | None,
        before: Settled,
    ) -> Settled:
        now = to_micros(self._clock.now())
        work, domains = _Work.of(visits, self._adding, now=now), self._domains_waiting(execution_id, now)
        tokens = {(visit.attempt.domain_id, visit.token) for visit in visits}
        tokens |= {(update.domain_id, update.token) for update in updates}
        with self._connection.write() as tx:
            # Locks on domains first: whatever follows relies on no other process closing these attempts.
            held, circuits = fence_circuits(tx, tokens) if tokens else (set(), {})
            learned = [update for update in updates if (update.domain_id, update.token) in held]
            write_updates(tx, learned)
            ours = [visit for visit in visits if (visit.attempt.domain_id, visit.token) in held]
            taken, overtaken = _still_open(tx, execution_id, ours)
            # Rare, so the work was computed for all of them before the transaction, and not inside it.
            if len(taken) < len(visits):
                work = _Work.of(taken, self._adding, now=now)  # every domain of these was looked up above
            heads = QueueHeads()
            added = self._adding.insert(tx, execution_id, work.found, heads, now=now)
            _close(tx, taken, work, heads)
            # Their links counted from the greater depth, and may have been left out for it.
            if overtaken and self._depths.rules.limited:
                note_rereads(tx, execution_id, overtaken)
            work.signals.write(tx, execution_id)
            self._adding.requisites.promote(tx, execution_id, work.found)
            raised = self._raised(tx, execution_id, work, known=len(work.found) - sum(added.values()))
            closed = {visit.attempt.id for visit in taken}
            if repeated := [visit for visit in ours if visit.attempt.id not in closed]:
                raised += self._raised_before(tx, execution_id, _Work.of(repeated, self._adding, now=now))
            refused = [visit for visit in visits if (visit.attempt.domain_id, visit.token) not in held]
            _exclude(tx, execution_id, work)
            if totals is not None:
                owner_id, counts_of = totals
                counts = counts_of((*before.refused, *refused), (*before.repeated, *repeated))
                tx.execute(sql.UPSERT_COUNTS, (execution_id, owner_id, json.dumps(counts), now))
            heads.write(tx, execution_id)
            grown = work.counts + count_circuits(circuits, learned)
            grown["links"], grown["queue"] = sum(added.values()), heads.growth
            add_counts(tx, execution_id, grown, now=now, domains=domains, is_postgres=tx.is_postgres)
        # After the commit, in a transaction of its own (see `make_smaller`).
        self._depths.make_smaller(execution_id, raised)
        self._adding.requisites.settled(visit.attempt.url_hash for visit in taken)
        return Settled(
            closed=len(taken),
            new=sum(added.values()),
            retried=len(work.retries),
            added=frozenset(added),
            refused=tuple(refused),
            repeated=tuple(repeated),
            lost=tuple(u.domain_id for u in updates if (u.domain_id, u.token) not in held),
        )

    def _domains_waiting(self, execution_id: int, now: int) -> int:
        """Return the number of domains with due attempts, counted once a minute; 0 in between."""
        # Before the transaction, and rarely: an execution may know a million domains (60 ms).
        minute = minute_of(now)
        if self._counted_at.get(execution_id) == minute:
            return 0
        self._counted_at = {execution_id: minute}
        with self._connection.read() as tx:
            return open_domains(tx, execution_id)

    def _raised(self, tx: FrontierTransaction, execution_id: int, work: _Work, *, known: int) -> list[Raised]:
        raised: list[Raised] = []
        if known and self._depths.rules.shared:
            raised += self._depths.deeper(tx, execution_id)
        if work.shallower:
            tx.load("new_found", sql.FOUND_COLUMNS, work.shallower)
            raised += self._depths.deeper(tx, execution_id)
        return raised

    def _raised_before(self, tx: FrontierTransaction, execution_id: int, work: _Work) -> list[Raised]:
        """Return such pages for repeated visits: the connection may have been lost before their depths were made
        smaller, which is a separate transaction.
        """
        tx.load("new_found", sql.FOUND_COLUMNS, work.found)
        return self._raised(tx, execution_id, work, known=len(work.found))


def _chunks(visits: Sequence[Visit], links: int) -> Iterator[Sequence[Visit]]:
    """Yield the visits, each attempt once, in groups whose links fit one transaction; at least one, even if empty."""
    chunk: list[Visit] = []
    found = 0
    seen: set[int] = set()
    for visit in visits:
        # A repeat after a lost answer may bring the same visit twice in one call.
        if visit.attempt.id in seen:
            continue
        seen.add(visit.attempt.id)
        # A visit is never split: its attempt closes with all its links or with none.
        size = len(visit.found) + weight(visit)
        if chunk and (found + size > links or len(chunk) >= _VISITS_AT_ONCE):
            yield chunk
            chunk, found = [], 0
        chunk.append(visit)
        found += size
    yield chunk


def _sum(one: Settled, other: Settled) -> Settled:
    return Settled(
        closed=one.closed + other.closed,
        new=one.new + other.new,
        retried=one.retried + other.retried,
        added=one.added | other.added,
        refused=one.refused + other.refused,
        repeated=one.repeated + other.repeated,
        lost=one.lost + other.lost,
    )


def _still_open(
    tx: FrontierTransaction, execution_id: int, visits: Sequence[Visit]
) -> tuple[list[Visit], list[tuple[int, int]]]:
    """Return the visits whose attempt is still open; under their domains' lock no other process can close it.

    Also return their (domain, page) pairs that were found by a shorter path since they were leased.
    """
    if not visits:
        return [], []
    depths: dict[int, int] = dict(
        tx.execute(sql.OPEN_AMONG, (execution_id, tx.list([visit.attempt.id for visit in visits])))
    )
    still = [visit for visit in visits if visit.attempt.id in depths]
    overtaken = sorted(
        (one.attempt.domain_id, one.attempt.page_id)
        for one in still
        if one.attempt.kind is UrlKind.PAGE and depths[one.attempt.id] < one.attempt.depth
    )
    return still, overtaken


def _close(tx: FrontierTransaction, visits: Sequence[Visit], work: _Work, heads: QueueHeads) -> None:
    """Close attempts, update their pages, insert attempts n+1, which cannot exist yet: the attempts were open."""
    tx.many(sql.CLOSE_VISIT, work.closed)
    for statement, rows in work.page_updates.items():
        tx.many(statement, rows)
    tx.many(sql.INSERT_RETRY, work.retries)
    for visit in visits:
        heads.closed(visit.attempt.domain_id, visit.outcome, retried=visit.retry_at is not None)
        if visit.retry_at is not None:
            heads.opened(visit.attempt.domain_id, to_micros(visit.retry_at))


def _exclude(tx: FrontierTransaction, execution_id: int, work: _Work) -> None:
    """Add to the exclusions; a negative count subtracts what a later document made obsolete."""
    if work.excluded:
        tx.load("new_exclusions", sql.EXCLUSION_COLUMNS, work.excluded)
        tx.execute(sql.UPSERT_EXCLUSIONS, (execution_id,))
        if any(count < 0 for _, _, count in work.excluded):
            tx.execute("DELETE FROM exclusions WHERE execution_id = ? AND count <= 0", (execution_id,))


def _closed(visit: Visit) -> tuple[Any, ...]:
    # A visit without a stored response (a timeout, a page of which only signals are kept) points to no record.
    record = visit.record or (None, None, None, None)
    # The column is a SMALLINT: one value that does not fit would undo the whole batch.
    status = visit.status if visit.status is None or 0 <= visit.status <= 32767 else None
    return (
        visit.outcome.value,
        clean(visit.reason, 200),
        status,
        clean(visit.message, 2000),
        clean(visit.media_type, 255),
        visit.wire_bytes,
        visit.requests,
        visit.payload_digest,
        visit.content_hash,
        clean(visit.title, 1000),
        clean(visit.redirected_to, 16_384),
        len(visit.found) + sum(max(0, count) for count in visit.excluded.values()),
        record[0],
        record[1],
        record[2],
        record[3],
        to_micros(visit.started_at),
        to_micros(visit.finished_at),
        visit.attempt.id,
    )


def _page_update(visit: Visit) -> tuple[str, tuple[Any, ...]]:
    """Return the statement, with its values, that updates a page after its visit."""
    # Validators belong to the last good answer; a 304 without any leaves them as they are. The first language that was
    # found stays.
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
        *learned,
        original.record_id,
        clean(original.url, 16_384),
        to_micros(original.captured_at),
        original.payload_digest,
        original.warc_file_id,
        original.offset,
        page_id,
    )
