"""An indexer as others see it: an owner with a locked run file, so that a killed one is known to be gone at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from holdfast.clock import Clock, to_micros
from holdfast.coordination.owners import Owner, bury, cleaning_up, dead_owners
from holdfast.coordination.runfile import RunFile
from holdfast.db.hot import Hot
from holdfast.index.indexer import Indexer, OnProgress
from holdfast.index.runs import queries
from holdfast.index.runs.spans import note_spans
from holdfast.index.writing.late import resolve_some, somewhere

KIND = "indexer"


@contextmanager
def open_indexer(hot: Hot, clock: Clock, home: Path, *, on_progress: OnProgress | None = None) -> Iterator[Indexer]:
    """Register this process, free what dead indexers of this machine held, and yield what reads files."""
    folder = home.resolve() / "run"
    free_the_dead(hot, clock, folder)
    note_spans(hot)
    resolve_some(hot, after=somewhere(hot), now=to_micros(clock.now()))
    owner = Owner(hot, clock, run=RunFile(folder), kind=KIND, execution_id=None)
    try:
        with closing(Indexer(hot, clock, home, owner_id=owner.id, on_progress=on_progress)) as indexer:
            yield indexer
    finally:
        owner.end()


def free_the_dead(hot: Hot, clock: Clock, folder: Path) -> int:
    """End the leases of indexers of this machine that died; return how many there were."""
    count = 0
    for owner in dead_owners(hot, clock, folder=folder):
        if owner.kind != KIND:
            continue
        with cleaning_up(hot, owner) as ours:
            if ours:
                with hot.write() as tx:
                    queries.free_owner(tx, owner.id, now=to_micros(clock.now()))
                bury(hot, clock, owner)
                count += 1
    return count
