"""Runs statements over all attempts of a run, one slice at a time: a run may have millions of them.

One statement over a whole run would hit PostgreSQL's statement timeout, and on SQLite hold a read transaction
for as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.db.raw import RawDatabase, Row, StatementTimeout

IN_SLICE: Final = "c.execution_id = ? AND (c.domain_id, c.page_id) > (?, ?) AND (c.domain_id, c.page_id) <= (?, ?)"
"""The condition on `page_crawls c` with which a statement for `in_slices` must start its WHERE."""
SLICE_END: Final = (
    "SELECT domain_id, page_id FROM page_crawls WHERE execution_id = ? AND (domain_id, page_id) > (?, ?)"
    " ORDER BY domain_id, page_id LIMIT 1 OFFSET ?"
)
# 20,000 attempts take 0.1 s from memory. From a slow disk they may take minutes: the slice then shrinks.
_LARGEST, _SMALLEST = 20_000, 300
_LAST = (2**63 - 1, 2**63 - 1)


def in_slices(raw_db: RawDatabase, statement: str, execution_id: int) -> Iterator[list[Row]]:
    """Yield a statement's rows for each slice of a run, in order of domain and page; a page's attempts share a slice.

    Each slice is a separate transaction. Raise StatementTimeout if even the smallest slice takes too long.
    """
    after, size = (-1, -1), _LARGEST
    while after != _LAST:
        try:
            with raw_db.read() as tx:
                if raw_db.dialect == "postgresql":
                    # Without fresh statistics a server may read or sort the rest of the run for each slice: 5 million
                    # attempts took 185 s then.
                    tx.execute("SET LOCAL enable_seqscan = off")
                    tx.execute("SET LOCAL enable_bitmapscan = off")
                end = tx.execute(SLICE_END, (execution_id, *after, size - 1))
                upto = (end[0][0], end[0][1]) if end else _LAST
                rows = tx.execute(statement, (execution_id, *after, *upto))
        except StatementTimeout:
            if size <= _SMALLEST:
                raise
            size //= 4
            continue
        yield rows
        after = upto
