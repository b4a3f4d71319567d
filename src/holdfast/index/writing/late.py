"""Originals that came after their revisits: looked for when a file is done, and a few hundred now and then."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from itertools import chain

from holdfast.db.hot import Hot, Transaction
from holdfast.index.keys import identify, url_key
from holdfast.index.runs.lease import Lease
from holdfast.index.upkeep.turns import turn
from holdfast.index.writing import queries
from holdfast.index.writing.batch import DAY, ranges
from holdfast.index.writing.originals import find_original
from holdfast.index.writing.queries import Candidate, Revisit, Unresolved
from holdfast.parse.document import Kind, kind_of
from holdfast.urls import hash64
from holdfast.warc.ids import ORDINALS

_AT_ONCE = 500
_SLICE = 500
"""Ids of a file whose addresses are looked at in one go."""
_NEWEST = 5_000
"""Waiting revisits that are looked at for each file because they were read last."""
_MOST = 5_000
"""Waiting revisits that one slice of a file looks at; what is over waits for `resolve_some`."""
_LAST_ID = (1 << 63) - 1
_BITS = 23


class SeenKeys:
    """Which keys a file has originals for, in one megabyte whatever its size: it may say yes too often, never no."""

    def __init__(self) -> None:
        self._bits = bytearray(1 << (_BITS - 3))

    def add(self, key: str) -> None:
        """Note one."""
        at = hash64(key) & ((1 << _BITS) - 1)
        self._bits[at >> 3] |= 1 << (at & 7)

    def __contains__(self, key: str) -> bool:
        at = hash64(key) & ((1 << _BITS) - 1)
        return bool(self._bits[at >> 3] & (1 << (at & 7)))


def resolve_late(hot: Hot, lease: Lease, seen: SeenKeys, *, now: int) -> int:
    """Give revisits their originals where this file brought them, and try its own once more; return how many got one.

    Its own, because another reader may have stored their originals meanwhile. The work grows with the file, not with
    how many revisits wait in the archive: many wait for ever, for an original that is not here.
    """
    first, last = lease.warc_file_id * ORDINALS, (lease.warc_file_id + 1) * ORDINALS - 1
    count = 0
    for waiting in chain(_own(hot, first, last), _newest(hot, seen, first, last), _at_addresses(hot, first, last)):
        with hot.read() as tx:
            pairs = _found(tx, waiting)
        if pairs:
            with hot.write() as tx:
                lease.hold(tx)
                count += _put(tx, pairs, now=now)
    return count


def resolve_some(hot: Hot, *, after: int, now: int) -> int:
    """Give some of the revisits behind an id their originals; return how many got one.

    For those that name another address than their own, and were read long before their original: no index leads there.
    """
    with hot.read() as tx:
        waiting = queries.unresolved(tx, after=after, until=_LAST_ID, limit=_AT_ONCE)
        pairs = _found(tx, waiting)
    if not pairs:
        return 0
    with turn(hot) as tx:
        return _put(tx, pairs, now=now)


def somewhere(hot: Hot) -> int:
    """Return an id by chance: who goes on behind it each time comes by everywhere in the end, and keeps no note."""
    with hot.read() as tx:
        return secrets.randbelow(queries.last_snapshot_id(tx) + 1) - 1


def _own(hot: Hot, first: int, last: int) -> Iterator[list[Unresolved]]:
    """Yield the revisits of a file that still wait."""
    after = first - 1
    while True:
        with hot.read() as tx:
            waiting = queries.unresolved(tx, after=after, until=last, limit=_AT_ONCE)
        yield waiting
        if len(waiting) < _AT_ONCE:
            return
        after = waiting[-1].id


def _newest(hot: Hot, seen: SeenKeys, first: int, last: int) -> Iterator[list[Unresolved]]:
    """Yield those that were read last and may wait for this file: files of one crawl are read in any order."""
    with hot.read() as tx:
        newest = queries.newest_unresolved(tx, limit=_NEWEST)
    yield [one for one in newest if not first <= one.id <= last and _key(one) in seen]


def _at_addresses(hot: Hot, first: int, last: int) -> Iterator[list[Unresolved]]:
    """Yield those at the addresses that a file captured, whenever they were read; nothing if none waits elsewhere."""
    with hot.read() as tx:
        before = queries.unresolved(tx, after=-1, until=first - 1, limit=1)
        behind = queries.unresolved(tx, after=last, until=_LAST_ID, limit=1)
        end = queries.last_capture_id(tx, first, last) if before or behind else -1
    for start in range(first, end + 1, _SLICE):
        with hot.read() as tx:
            waiting = queries.waiting_for(tx, start, min(start + _SLICE - 1, last), earlier=DAY, limit=_MOST)
        yield waiting


def _found(tx: Transaction, waiting: Sequence[Unresolved]) -> list[tuple[Unresolved, Candidate]]:
    found = ((one, find_original(tx, _revisit(one))) for one in waiting)
    return [(one, original) for one, original in found if original is not None]


def _key(one: Unresolved) -> str:
    return url_key(one.refers_to_url) if one.refers_to_url else one.url_key


def _revisit(one: Unresolved) -> Revisit:
    is_not_modified = one.status == 304
    return Revisit(one.id, _key(one), one.refers_to_at, one.captured_at, one.digest, is_not_modified)


def _is_for_crawlers(one: Unresolved) -> bool:
    """Whether a revisit is no page although its own type is a page's: the crawler asked for it on its own account."""
    return not one.is_page and kind_of(b"", one.media_type) is not Kind.OTHER


def _put(tx: Transaction, found: Sequence[tuple[Unresolved, Candidate]], *, now: int) -> int:
    """Write what was found, in a transaction in which no other indexer writes; return how many still waited for it.

    What is counted goes by the rows as they are now: another indexer may have found the same originals meanwhile.
    """
    waiting = queries.still_unresolved(tx, [one.id for one, _ in found])
    pairs = [(waiting[one.id], original) for one, original in found if one.id in waiting]
    if not pairs:
        return 0
    shifts: dict[int, int] = {}
    rows = []
    for one, original in pairs:
        group, is_page = one.group_id, original.is_page and not _is_for_crawlers(one)
        if is_page and group is None:
            identity = identify(one.url)
            made = queries.put_groups(tx, one.source_id, {identity.group_hash: identity.group}, moment=now)
            group = made[identity.group_hash]
            shifts[group] = shifts.get(group, 0) + 1
        elif not is_page and group is not None:
            shifts[group], group = shifts.get(group, 0) - 1, None
        shown = (original.id, original.document_id, original.body_hash, original.media_type)
        rows.append((*shown, is_page, original.noindex, group, one.id))
    queries.put_originals(tx, rows)
    days = {(one.url_hash, one.captured_at - one.captured_at % DAY) for one, _ in pairs}
    ids = {one.id for one, _ in pairs} | set(queries.settle_duplicates(tx, sorted(days), day_micros=DAY))
    queries.refresh_groups(tx, shifts)
    queries.put_outbox(tx, [("snapshots", first, last, {}) for first, last in ranges(ids)], now=now)
    return len(pairs)
