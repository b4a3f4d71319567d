"""From found addresses to pages and open attempts: bulk, in key order, each once per execution.

The unique keys are the authority: a page is (domain, hash), an address is in an execution when its attempt 1 is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.frontier import sql
from holdfast.frontier.connection import Connection, Spoken
from holdfast.frontier.heads import Heads
from holdfast.frontier.text import clean
from holdfast.types import Found, Kind

FoundRow = tuple[int, int, str, str, int, int, int | None, int | None]
"""domain id, hash, url, kind, priority, depth, scheduled for, via page."""
Batch = tuple[Sequence[Found], int | None]
"""Found addresses and the page that they were found on."""

_KINDS = {kind: kind.value for kind in Kind}
_MAX_URL = 16_384
_SMALL = 32_767


class DomainNames:
    """The ids of domain names; names that nobody knew get a row."""

    def __init__(self, connection: Connection, *, limit: int) -> None:
        self._connection, self._limit = connection, limit
        self._ids: dict[str, int] = {}

    def ids(self, names: Iterable[str], *, now: int) -> dict[str, int]:
        """Return the id of each name. Made before the transaction that needs them: a name alone does no harm."""
        wanted = set(names)
        missing = sorted(wanted - self._ids.keys())
        if missing:
            if len(self._ids) + len(missing) > self._limit:
                self._ids = {name: self._ids[name] for name in wanted & self._ids.keys()}
            self._ids.update(self._look_up(missing, now))
        return self._ids

    def _look_up(self, names: list[str], now: int) -> dict[str, int]:
        with self._connection.read() as tx:
            known = {name: int(number) for name, number in tx.execute(sql.DOMAIN_IDS, (tx.list(names),))}
        new = [name for name in names if name not in known]
        if new:
            with self._connection.write() as tx:
                tx.many(sql.INSERT_DOMAIN, [(name, now) for name in new])
                known.update((name, int(number)) for name, number in tx.execute(sql.DOMAIN_IDS, (tx.list(new),)))
        return known


def merge(batches: Iterable[Batch]) -> dict[tuple[str, int], tuple[Found, int | None]]:
    """Return each address once: found as a page wins over requisite, then the smaller depth."""
    merged: dict[tuple[str, int], tuple[Found, int | None]] = {}
    for batch, via in batches:
        for found in batch:
            key = (found[2], found[1])
            known = merged.get(key)
            if known is None or (known[0] is not found and _rank(found) > _rank(known[0])):
                merged[key] = (found, via)
    return merged


def _rank(found: Found) -> tuple[bool, int, int]:
    return found.kind is Kind.PAGE, -found.depth, found.priority


def rows_of(merged: dict[tuple[str, int], tuple[Found, int | None]], ids: dict[str, int], *,
            now: int) -> list[FoundRow]:  # fmt: skip
    """Return what is loaded, in key order; a time that has come counts as at once."""
    rows: list[FoundRow] = []
    for (url, url_hash, domain, kind, depth, priority, scheduled_for), via in merged.values():
        if not url.isascii() or "\x00" in url:
            url = clean(url, _MAX_URL) or ""
        if scheduled_for is not None and scheduled_for <= now:
            scheduled_for = None
        priority = priority if -_SMALL <= priority <= _SMALL else (_SMALL if priority > 0 else -_SMALL)
        rows.append((ids[domain], url_hash, url, _KINDS[kind], priority, depth, scheduled_for, via))
    rows.sort()
    return rows


def insert(tx: Spoken, execution_id: int, rows: Sequence[FoundRow], heads: Heads, *, now: int) -> Counter[int]:
    """Insert pages and attempts that are not there; return how many addresses are new to the execution, by domain."""
    added: Counter[int] = Counter()
    if not rows:
        return added
    tx.load("new_found", sql.FOUND_COLUMNS, rows)
    tx.execute(sql.INSERT_PAGES, (now,))
    inserted = tx.execute(sql.INSERT_ATTEMPTS, (execution_id, now))
    for (domain_id, scheduled_for), count in Counter(inserted).items():
        added[domain_id] += count
        heads.opened(domain_id, now if scheduled_for is None else scheduled_for, count)
    if len(inserted) < len(rows):
        _promote(tx, execution_id)
    return added


def _promote(tx: Spoken, execution_id: int) -> None:
    """Make pages of open requisites that were now found as pages: their links are to be followed."""
    promotable = tx.execute(sql.PROMOTABLE, (execution_id,))
    if promotable:
        tx.many(sql.PROMOTE, [(priority, depth, number) for number, priority, depth in promotable])
