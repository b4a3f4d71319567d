"""Adds found URLs as pages and open attempts: in bulk, in key order, each once per execution.

The unique keys decide: a page is (domain, hash), and a URL belongs to an execution when its attempt 1 exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import eq, itemgetter

from holdfast.clock import from_micros
from holdfast.db.raw import Row
from holdfast.frontier import sql
from holdfast.frontier.leasing import original_of
from holdfast.frontier.sql import Connection, FrontierTransaction
from holdfast.outside_text import clean
from holdfast.types import Attempt, FoundUrl, Original, Outcome, PageToReread, UrlKind
from holdfast.values import dataclass

Raised = tuple[int, int, int, int]


@dataclass(slots=True, kw_only=True)
class DepthRules:
    limited: bool = False
    """Whether the link depth is limited: only then does the starting depth of links matter."""
    shared: bool = False
    """Whether other processes have added, or add, URLs that this one has not seen."""

    def share(self) -> None:
        """From now on, look up the depth that the database has recorded for found URLs."""
        # A forgotten URL looks new: without a query, a shorter path to it would be lost.
        self.shared = self.limited


class Depths:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.rules = DepthRules()

    def deeper(self, tx: FrontierTransaction, execution_id: int) -> list[Raised]:
        return [
            (domain_id, page_id, depth, rank)
            for domain_id, page_id, depth, rank in tx.execute(sql.DEEPER, (execution_id,))
        ]

    def make_smaller(self, execution_id: int, raised: Iterable[Raised]) -> int:
        """Give pages their smaller depth, in a separate transaction; return how many there were."""
        best: dict[tuple[int, int], tuple[int, int]] = {}
        for domain_id, page_id, depth, rank in raised:
            known = best.get((domain_id, page_id))
            # Two links of one batch may lead to a page by ways of different length.
            if known is None or depth < known[0]:
                best[domain_id, page_id] = depth, rank
        if not best:
            return 0
        # A transaction of its own: locks on domains are taken before all others, and the domains of the pages that were
        # found are not those of the pages that are being settled.
        with self._connection.write() as tx:
            tx.execute(sql.LOCK_DOMAINS, (tx.list(sorted({domain_id for domain_id, _ in best})),))
            pages = sorted(best.items())
            tx.many(
                sql.RAISE,
                [(depth, rank, rank, execution_id, *page, depth) for page, (depth, rank) in pages],
            )
            # Without a limit on depth no link was left out, so nothing would be gained by reading the page again.
            if self.rules.limited:
                note_rereads(tx, execution_id, [page for page, _ in pages])
        return len(best)

    def rereads(self, tx: FrontierTransaction, execution_id: int, *, limit: int) -> list[PageToReread]:
        """Return pages whose links must be re-evaluated, nearest to a seed first."""
        return [_reread(row) for row in tx.execute(sql.REREADS, (execution_id, limit))]


def note_rereads(tx: FrontierTransaction, execution_id: int, pages: Sequence[tuple[int, int]]) -> None:
    """Mark those (domain, page) pairs for reading again that were fetched."""
    tx.many(sql.ADD_REREAD, [(execution_id, *page) for page in pages])


def _reread(row: Row) -> PageToReread:
    (
        attempt_id,
        page_id,
        domain_id,
        depth,
        url,
        url_hash,
        status,
        landed,
        file_id,
        offset,
        record_id,
        *_,
    ) = row
    original = None
    if record_id is not None:
        original = original_of(url, row[10:])
    # Cut, or reached over redirects: no later capture may point to its record, but its bytes can be read again there.
    elif file_id is not None:
        original = Original(
            record_id="",
            url=landed or url,
            captured_at=from_micros(0),
            payload_digest="",
            warc_file_id=file_id,
            offset=offset,
        )
    is_redirect = landed is not None and status is not None and 300 <= status < 400
    attempt = Attempt(
        id=attempt_id,
        page_id=page_id,
        domain_id=domain_id,
        url=url,
        url_hash=url_hash,
        kind=UrlKind.PAGE,
        depth=depth,
        number=1,
        priority=0,
        original=None if is_redirect else original,
    )
    return PageToReread(
        attempt=attempt, base=url if is_redirect else landed or url, leads_to=landed if is_redirect else None
    )


# A head that only loses attempts does not become due earlier.
_NEVER = 1 << 62
_OPEN, _SUCCEEDED, _FAILED, _RULED_OUT, _DUE = range(5)


class QueueHeads:
    """Changes by domain, written once at the end of a transaction, in the order of domains."""

    def __init__(self) -> None:
        self._changes: dict[int, list[int]] = {}

    def _of(self, domain_id: int) -> list[int]:
        change = self._changes.get(domain_id)
        if change is None:
            change = self._changes[domain_id] = [0, 0, 0, 0, _NEVER]
        return change

    def opened(self, domain_id: int, due_at: int, count: int = 1) -> None:
        """Count new open attempts that may be requested from `due_at` on."""
        change = self._of(domain_id)
        change[_OPEN] += count
        # The earliest counts: a later one of the same transaction must not hide what may be asked for now.
        if due_at < change[_DUE]:
            change[_DUE] = due_at

    def closed(self, domain_id: int, outcome: Outcome, *, retried: bool = False) -> None:
        """Count one closed attempt; one that is retried does not end its URL."""
        change = self._of(domain_id)
        change[_OPEN] -= 1
        if not retried:
            change[ending(outcome)] += 1

    def reopened(self, domain_id: int, due_at: int, outcome: Outcome, count: int) -> None:
        """Count URLs that had this outcome and are fetched once more."""
        self.opened(domain_id, due_at, count)
        self._of(domain_id)[ending(outcome)] -= count

    @property
    def growth(self) -> int:
        """Net number of open attempts added to all queues together."""
        return sum(change[_OPEN] for change in self._changes.values())

    def write(self, tx: FrontierTransaction, execution_id: int) -> None:
        if self._changes:
            # In the order of domains, which is the order in which every process locks them.
            rows = [(domain_id, *change) for domain_id, change in sorted(self._changes.items())]
            tx.load("new_heads", sql.HEAD_COLUMNS, rows)
            tx.execute(sql.UPSERT_HEADS, (execution_id,))


def ending(outcome: Outcome) -> int:
    if outcome is Outcome.SUCCESS:
        return _SUCCEEDED
    # What robots.txt forbids was never asked for: nothing has failed.
    return _RULED_OUT if outcome in (Outcome.EXCLUDED, Outcome.BLOCKED_ROBOTS) else _FAILED


FoundRow = tuple[int, int, str, str, int, int, int | None, int | None, int, int]
"""domain id, hash, url, kind, priority, depth, scheduled for, via page, hops, generation."""
Batch = tuple[Sequence[FoundUrl], int | None]

_KEY = itemgetter(0, 1)
_HASH = itemgetter(1)
_URL = itemgetter(2)
_PRIORITY = itemgetter(4)
_SCHEDULED = itemgetter(6)
_MAX_URL = 16_384
_SMALL = 32_767
_REQUISITES = 100_000


class DomainNames:
    def __init__(self, connection: Connection, *, limit: int) -> None:
        self._connection, self._limit = connection, limit
        self._ids: dict[str, int] = {}

    def ids(self, names: Iterable[str], *, now: int) -> dict[str, int]:
        """Return the id of each name, inserting new ones. Call before the transaction that needs them: unused names
        are
        harmless.
        """
        wanted = set(names)
        missing = sorted(wanted - self._ids.keys())
        if missing:
            if len(self._ids) + len(missing) > self._limit:
                # Those of this batch stay: the caller is about to use them.
                self._ids = {name: self._ids[name] for name in wanted & self._ids.keys()}
            self._ids.update(self._look_up(missing, now))
        return self._ids

    def _look_up(self, names: list[str], now: int) -> dict[str, int]:
        # Read first: nearly all names are known, and a reader waits for no writer.
        with self._connection.read() as tx:
            known = {name: int(number) for name, number in tx.execute(sql.DOMAIN_IDS, (tx.list(names),))}
        new = [name for name in names if name not in known]
        if new:
            with self._connection.write() as tx:
                tx.many(sql.INSERT_DOMAIN, [(name, now) for name in new])
                known.update((name, int(number)) for name, number in tx.execute(sql.DOMAIN_IDS, (tx.list(new),)))
        return known


def rows_of(batches: Iterable[Batch], ids: dict[str, int], *, now: int) -> list[FoundRow]:
    """Return the rows to load: each URL once, in key order; a scheduled time in the past counts as now."""
    rows: list[FoundRow] = []
    page = UrlKind.PAGE
    for batch, via in batches:
        # `_value_` and not `value`: the property costs more than the rest of the row.
        rows += [
            (
                ids[domain],
                url_hash,
                url,
                "page" if kind is page else kind._value_,
                priority,
                depth,
                scheduled_for,
                via,
                hops,
                generation,
            )
            for url, url_hash, domain, kind, depth, priority, scheduled_for, hops, generation in batch
        ]
    try:
        rows.sort()
    except TypeError:  # one address twice, once with a time and once without: rare, so the faster sort goes first
        rows.sort(key=_KEY)
    rows = _once(rows)
    return rows if _is_plain(rows) else [_plain(row, now) for row in rows]


def _once(rows: list[FoundRow]) -> list[FoundRow]:
    # Most batches hold no address twice, and two lists that are shifted by one say so without a loop in Python.
    hashes = list(map(_HASH, rows))
    if not any(map(eq, hashes, hashes[1:])):
        return rows
    unique = rows[:1]
    for row in rows[1:]:
        if _KEY(row) != _KEY(unique[-1]):
            unique.append(row)
        elif _rank(row) > _rank(unique[-1]):
            unique[-1] = row
    return unique


def _is_plain(rows: Sequence[FoundRow]) -> bool:
    """Return whether no row needs special handling: all due now, in ASCII, with a priority that fits its column."""
    # One look at all addresses together, instead of one at each: thousands come at a time, and nearly all are plain.
    text = "".join(map(_URL, rows))
    priorities = {0, *map(_PRIORITY, rows)}
    return (
        text.isascii()
        and "\x00" not in text
        and set(map(_SCHEDULED, rows)) <= {None}
        and -_SMALL <= min(priorities) <= max(priorities) <= _SMALL
    )


def _plain(row: FoundRow, now: int) -> FoundRow:
    domain_id, url_hash, url, kind, priority, depth, scheduled_for, via, hops, generation = row
    if scheduled_for is not None and scheduled_for <= now:
        scheduled_for = None
    # The column is a SMALLINT: PostgreSQL would refuse the whole batch for one value that does not fit.
    priority = max(-_SMALL, min(priority, _SMALL))
    url = clean(url, _MAX_URL) or ""
    return domain_id, url_hash, url, kind, priority, depth, scheduled_for, via, hops, generation


def _rank(row: FoundRow) -> tuple[bool, int, int]:
    """Return the precedence of two sightings of a URL: a page before a requisite, then the smaller depth."""
    return row[3] == "page", -row[5], row[4]


class Requisites:
    """URLs that this process added as requisites of a page and has not settled.

    If one of them is later found as a page, its open attempt becomes one, so that its links are followed. Looking
    for such attempts in the database would cost a fifth of every add (2.9 of 15 us a row).
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._hashes: set[int] = set()

    def settled(self, url_hashes: Iterable[int]) -> None:
        self._hashes.difference_update(url_hashes)

    def promote(self, tx: FrontierTransaction, execution_id: int, rows: Sequence[FoundRow]) -> None:
        """Turn open requisites among the inserted rows into pages, and record the requisites in the rows."""
        # Called after attempts were closed: one that another process is closing is skipped, not waited for.
        known = self._hashes
        again = [row[1] for row in rows if row[1] in known and row[3] == "page"] if known else []
        if again:
            # Remembered until they are settled: this transaction may fail, and is then tried once more.
            tx.many(sql.PROMOTE, tx.execute(sql.OPEN_REQUISITES, (execution_id, tx.list(again))))
        known.update(row[1] for row in rows if row[3] == "requisite")
        # A promotion that is missed costs the links of one page; memory without a limit costs the process.
        if len(known) > self._limit:
            known.clear()


def _add_attempts(tx: FrontierTransaction, execution_id: int, now: int) -> list[Row]:
    if tx.is_postgres:
        return tx.execute(sql.ADD_ATTEMPTS, (execution_id, now))
    last = tx.execute(sql.LAST_ATTEMPT)[0][0]
    tx.execute(sql.ADD_ATTEMPTS, (execution_id, now))
    return tx.execute(sql.ADDED_AFTER, (last,))


class Adding:
    def __init__(self, connection: Connection, *, known_domains: int) -> None:
        self.names = DomainNames(connection, limit=known_domains)
        self.requisites = Requisites(limit=_REQUISITES)

    def rows(self, batches: Sequence[Batch], *, now: int) -> list[FoundRow]:
        """Return the rows for `insert`; call before the transaction, because a new domain gets its row here."""
        ids = self.names.ids({found.domain for batch, _ in batches for found in batch}, now=now)
        return rows_of(batches, ids, now=now)

    def insert(
        self, tx: FrontierTransaction, execution_id: int, rows: Sequence[FoundRow], heads: QueueHeads, *, now: int
    ) -> Counter[int]:
        """Insert missing pages and attempts; return how many are new to the execution, by domain."""
        added: Counter[int] = Counter()
        if not rows:
            return added
        tx.load("new_found", sql.FOUND_COLUMNS, rows)
        tx.execute(sql.INSERT_PAGES, (now,))
        for domain_id, scheduled_for, count in _add_attempts(tx, execution_id, now):
            added[domain_id] += count
            heads.opened(domain_id, now if scheduled_for is None else scheduled_for, count)
        return added
