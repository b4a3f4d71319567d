"""Originals that came after their revisits: looked for when a file is done, a few hundred at a time."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.db.hot import Hot, Transaction
from holdfast.index.keys import identify, url_key
from holdfast.index.runs.lease import Lease
from holdfast.index.writing import queries
from holdfast.index.writing.batch import DAY, ranges
from holdfast.index.writing.originals import find_original
from holdfast.index.writing.queries import Candidate, Revisit, Unresolved
from holdfast.parse.document import Kind, kind_of
from holdfast.urls import hash64
from holdfast.warc.ids import ORDINALS

_AT_ONCE = 500
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

    Its own, because another reader may have stored their originals meanwhile.
    """
    own = range(lease.warc_file_id * ORDINALS, (lease.warc_file_id + 1) * ORDINALS)
    after, count = -1, 0
    while True:
        with hot.read() as tx:
            waiting = queries.unresolved(tx, after=after, limit=_AT_ONCE)
            found = [(one, find_original(tx, _revisit(one))) for one in waiting if one.id in own or _key(one) in seen]
        pairs = [(one, original) for one, original in found if original is not None]
        if pairs:
            with hot.write() as tx:
                lease.hold(tx)
                _put(tx, pairs, now=now)
            count += len(pairs)
        if len(waiting) < _AT_ONCE:
            return count
        after = waiting[-1].id


def _key(one: Unresolved) -> str:
    return url_key(one.refers_to_url) if one.refers_to_url else one.url_key


def _revisit(one: Unresolved) -> Revisit:
    is_not_modified = one.status == 304
    return Revisit(one.id, _key(one), one.refers_to_at, one.captured_at, one.digest, is_not_modified)


def _is_for_crawlers(one: Unresolved) -> bool:
    """Whether a revisit is no page although its own type is a page's: the crawler asked for it on its own account."""
    return not one.is_page and kind_of(b"", one.media_type) is not Kind.OTHER


def _put(tx: Transaction, pairs: Sequence[tuple[Unresolved, Candidate]], *, now: int) -> None:
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
        found = (original.id, original.document_id, original.body_hash, original.media_type)
        rows.append((*found, is_page, original.noindex, group, one.id))
    queries.put_originals(tx, rows)
    days = {(one.url_hash, one.captured_at - one.captured_at % DAY) for one, _ in pairs}
    ids = {one.id for one, _ in pairs} | set(queries.settle_duplicates(tx, sorted(days), day_micros=DAY))
    queries.refresh_groups(tx, shifts)
    queries.put_outbox(tx, [("snapshots", first, last, {}) for first, last in ranges(ids)], now=now)
