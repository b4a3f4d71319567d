"""Page groups held against their snapshots, and set right: counts, dates, latest capture; pages without a group."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import Clock, to_micros
from holdfast.db.hot import Hot, Transaction
from holdfast.index.keys import identify
from holdfast.index.upkeep import queries
from holdfast.index.upkeep.turns import Seen, turn
from holdfast.index.writing.batch import ranges
from holdfast.index.writing.queries import put_groups, put_outbox

_BATCH = 200


@dataclass(slots=True, kw_only=True)
class Groups:
    """What was found, and set right if that was asked for."""

    looked: int = 0
    wrong: int = 0
    empty: int = 0
    """Groups of which no capture is left; counted in `wrong` too."""


def rebuild_groups(hot: Hot, *, source_id: int | None = None, apply: bool, seen: Seen) -> Groups:
    """Hold every group against its snapshots; with `apply`, rewrite those that are wrong, a few at a time."""
    found = Groups()
    after = 0
    while True:
        with hot.read() as tx:
            page = queries.groups_after(tx, after=after, source_id=source_id, limit=_BATCH)
        if not page:
            return found
        after = page[-1].id
        wrong = [one.id for one in page if not one.is_right]
        found.looked += len(page)
        found.wrong += len(wrong)
        found.empty += sum(one.is_empty for one in page)
        if wrong and apply:
            with turn(hot) as tx:
                queries.rewrite_groups(tx, wrong)
        seen(found.looked)


def group_pages(hot: Hot, clock: Clock, *, source_id: int | None = None, apply: bool, seen: Seen) -> int:
    """Give pages that have no group theirs, and return how many there were; without `apply` they are only counted."""
    total, after = 0, 0
    while True:
        with hot.read() as tx:
            page = queries.ungrouped(tx, after=after, source_id=source_id, limit=_BATCH)
        if not page:
            return total
        after = page[-1].id
        total += len(page)
        if apply:
            with turn(hot) as tx:
                _group(tx, page, now=to_micros(clock.now()))
        seen(total)


def _group(tx: Transaction, page: list[queries.Ungrouped], *, now: int) -> None:
    touched: set[int] = set()
    for source_id in sorted({one.source_id for one in page}):
        known = {one.id: identify(one.url) for one in page if one.source_id == source_id}
        ids = put_groups(tx, source_id, {name.group_hash: name.group for name in known.values()}, moment=now)
        queries.put_group(tx, [(ids[name.group_hash], snapshot_id) for snapshot_id, name in known.items()])
        touched.update(ids.values())
    queries.rewrite_groups(tx, sorted(touched))
    put_outbox(tx, [("snapshots", first, last, {}) for first, last in ranges(one.id for one in page)], now=now)
