"""Record ids and the numbers made from where a record stands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

ORDINALS = 1 << 22
"""How many records one file may hold: a snapshot's id is its file's id times this, plus the record's ordinal."""

RecordIds = Callable[[], str]
"""Gives a new bare UUID at every call. Tests pass one that counts."""

_BATCH = 256


def snapshot_id(warc_file_id: int, ordinal: int) -> int:
    """Return the id of the snapshot that a record becomes, the same after every rebuild from the files."""
    return warc_file_id * ORDINALS + ordinal


def _uuids() -> Iterator[str]:
    # The kernel is asked once for 256 ids: a call to it for each would cost more than all the rest (2 us against 0.5).
    while True:
        pool = os.urandom(16 * _BATCH).hex()
        for at in range(0, len(pool), 32):
            variant = "89ab"[int(pool[at + 16], 16) & 3]
            yield (
                f"{pool[at : at + 8]}-{pool[at + 8 : at + 12]}-4{pool[at + 13 : at + 16]}"
                f"-{variant}{pool[at + 17 : at + 20]}-{pool[at + 20 : at + 32]}"
            )


def random_ids() -> RecordIds:
    """Return a source of random UUIDs (version 4); after a fork, make a new one."""
    return _uuids().__next__
