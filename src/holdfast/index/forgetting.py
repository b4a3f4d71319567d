"""Deletes a discarded file's captures together with the file."""

from __future__ import annotations

from holdfast.clock import Clock, to_micros
from holdfast.db.raw import RawDatabase
from holdfast.index.leases import revoke
from holdfast.index.writing import drop_between, index_transaction
from holdfast.index.writing_queries import end_of_slice
from holdfast.warc.queries import discard_file
from holdfast.warc.record import ORDINALS

# Number of snapshots that one transaction removes: other writers wait for it.
_AT_ONCE = 500


def forget_file(raw_db: RawDatabase, clock: Clock, warc_file_id: int) -> int:
    """Delete a file's listing with every capture read from it; return their number.

    If it is killed at any point, the file is still listed, and the next call continues.
    """
    first, last = warc_file_id * ORDINALS, (warc_file_id + 1) * ORDINALS - 1
    count = 0
    while True:
        with index_transaction(raw_db) as tx:
            # Do this each time: a reader that leased the file between two slices loses it again, and its rows are
            # removed, too.
            revoke(tx, warc_file_id)
            end = end_of_slice(tx, first, last, limit=_AT_ONCE)
            if end < 0:
                discard_file(tx, warc_file_id)
                return count
            count += drop_between(tx, first, end, now=to_micros(clock.now()))
