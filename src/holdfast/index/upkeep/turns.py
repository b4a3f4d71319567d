"""A transaction of upkeep: it takes its turn among the indexers, so that neither overlooks what the other writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.db.hot import Hot, Transaction
from holdfast.index.runs.queries import take_turn

Seen = Callable[[int], None]
"""Hears how many rows were looked at so far."""


@contextmanager
def turn(hot: Hot) -> Iterator[Transaction]:
    """Open a short transaction in which no indexer writes."""
    with hot.write() as tx:
        if hot.dialect == "postgresql":
            take_turn(tx)
        yield tx
