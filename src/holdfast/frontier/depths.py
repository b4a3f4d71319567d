"""How far a page is from a seed, when a shorter way to it is found after a longer one.

An open attempt gets the smaller depth. What was fetched already is noted as to be read again: its links count from the
smaller depth, so that none within the limit is missed. To look for such pages among all that are found would cost a
fifth of every add; so it is done for those that a process has met before at a greater depth, and for all that are known
only where others have added to the execution (`shared`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.clock import from_micros
from holdfast.db.hot import Row
from holdfast.frontier import sql
from holdfast.frontier.connection import Connection, Spoken
from holdfast.types import Attempt, Kind, Original, Reread
from holdfast.values import dataclass

Raised = tuple[int, int, int, int]
"""Domain, page, the smaller depth, and the priority that goes with it."""


@dataclass(slots=True, kw_only=True)
class DepthRules:
    """What depths mean to an execution."""

    limited: bool = False
    """Whether links beyond some depth are not followed: only then does it matter where links count from."""
    shared: bool = False
    """Whether other processes have added, or add, addresses that this one has not met."""


class Depths:
    """Makes depths smaller, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.rules = DepthRules()

    def deeper(self, tx: Spoken, execution_id: int) -> list[Raised]:
        """Return which of the addresses just loaded are known by a longer way."""
        return [
            (domain_id, page_id, depth, rank)
            for domain_id, page_id, depth, rank in tx.execute(sql.DEEPER, (execution_id,))
        ]

    def make_smaller(self, execution_id: int, raised: Iterable[Raised]) -> int:
        """Give pages their smaller depth, in a transaction of its own; return how many there were.

        Its own, because locks on domains come before all else: those of the pages that are found are others than those
        of the pages that are settled.
        """
        best: dict[tuple[int, int], tuple[int, int]] = {}
        for domain_id, page_id, depth, rank in raised:
            known = best.get((domain_id, page_id))
            if known is None or depth < known[0]:
                best[domain_id, page_id] = depth, rank
        if not best:
            return 0
        with self._connection.write() as tx:
            tx.execute(sql.LOCK_DOMAINS, (tx.list(sorted({domain_id for domain_id, _ in best})),))
            pages = sorted(best.items())
            tx.many(
                sql.RAISE,
                [(depth, rank, execution_id, *page, depth) for page, (depth, rank) in pages],
            )
            if self.rules.limited:
                note_rereads(tx, execution_id, [page for page, _ in pages])
        return len(best)

    def rereads(self, tx: Spoken, execution_id: int, *, limit: int) -> list[Reread]:
        """Return pages whose links are to be counted anew, nearest to a seed first."""
        return [_reread(row) for row in tx.execute(sql.REREADS, (execution_id, limit))]


def note_rereads(tx: Spoken, execution_id: int, pages: Sequence[tuple[int, int]]) -> None:
    """Note (domain, page) pairs as to be read again, as far as they were fetched."""
    tx.many(sql.ADD_REREAD, [(execution_id, *page) for page in pages])


def _reread(row: Row) -> Reread:
    (
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
        original_url,
        original_at,
        digest,
        original_file_id,
        original_offset,
    ) = row
    original = None
    if record_id is not None:
        original = Original(
            record_id=record_id,
            url=original_url or url,
            captured_at=from_micros(original_at),
            payload_digest=digest,
            warc_file_id=original_file_id,
            offset=original_offset,
        )
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
        id=0,
        page_id=page_id,
        domain_id=domain_id,
        url=url,
        url_hash=url_hash,
        kind=Kind.PAGE,
        depth=depth,
        number=1,
        priority=0,
        original=None if is_redirect else original,
    )
    return Reread(attempt=attempt, base=url if is_redirect else landed or url, leads_to=landed if is_redirect else None)
