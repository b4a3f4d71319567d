"""Signals of the link graph (in-links, out-links and PageRank), recomputed and written to `page_signals`.

Edges are read in chunks and stored as pairs of numbers, each pair of groups once: about 40 bytes an edge and 60
a page at the peak (a million edges: under 100 MB). Links of a page to itself do not count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from holdfast import log
from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.index.indexer import Interrupted
from holdfast.processes.runfile import alone
from holdfast.search import queries
from holdfast.search.directory import IndexBusy, IndexDirectory, IndexElsewhere
from holdfast.search.outbox import Stopping, checked, demand_outbox, take_over_signals
from holdfast.search.queries import SignalRow
from holdfast.storage.disk import write_whole
from holdfast.values import dataclass

DAMPING: Final = 0.85
ROUNDS: Final = 40
TOLERANCE: Final = 1e-8
_CHUNK: Final = 100_000
# Rows of one transaction: far below the half second that a writer may hold SQLite.
_WRITE: Final = 2_000

# Share by which a rank must move to be written: the order of results goes by its logarithm.
_MOVED: Final = 0.01
# Microseconds between two computations while the archive hardly grows.
_LATE: Final = 24 * 3_600 * 1_000_000

_log = log.get(room="search")

Ids = npt.NDArray[np.int64]
Edges = npt.NDArray[np.int64]
"""Two columns: from, to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Pages by the hash of their group's URL, and the distinct links between them, by place."""

    pages: Ids
    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]


def graph_of(chunks: Iterable[Sequence[tuple[int, int]]]) -> Graph:
    kept, pending, count = np.empty((0, 2), np.int64), list[Edges](), 0
    for chunk in chunks:
        fresh = np.array(chunk, np.int64).reshape(-1, 2)
        # A page does not recommend itself.
        pending.append(fresh[fresh[:, 0] != fresh[:, 1]])
        count += len(pending[-1])
        # Memory goes by distinct links and not by captures. Sorting after every chunk took quadratic time.
        if 2 * count >= len(kept):
            kept, pending, count = _distinct(np.concatenate((kept, *pending))), [], 0
    kept = _distinct(np.concatenate((kept, *pending)))
    del pending
    pages, places = np.unique(kept, return_inverse=True)
    pairs = places.reshape(-1, 2).astype(np.int32)
    return Graph(pages=pages, sources=pairs[:, 0], targets=pairs[:, 1])


def _distinct(edges: Edges) -> Edges:
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    ordered = edges[order]
    new = np.ones(len(ordered), np.bool_)
    new[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    return ordered[new]


def pagerank(graph: Graph) -> npt.NDArray[np.float64]:
    """Return PageRank scaled to a mean of 1; a page without links gives its rank to all."""
    count = len(graph.pages)
    if not count:
        return np.empty(0)
    out = np.bincount(graph.sources, minlength=count)
    share = np.divide(1.0, out, out=np.zeros(count), where=out > 0)
    rank = np.full(count, 1.0 / count)
    for _ in range(ROUNDS):
        given = np.bincount(graph.targets, weights=(rank * share)[graph.sources], minlength=count)
        # Pages without links would swallow their rank, and the sum would shrink with every round.
        lost = rank[out == 0].sum() / count
        fresh = (1 - DAMPING) / count + DAMPING * (given + lost)
        moved = float(np.abs(fresh - rank).sum())
        rank = fresh
        if moved < TOLERANCE:
            break
    return rank * count


def signals_of(graph: Graph) -> list[SignalRow]:
    count = len(graph.pages)
    inlinks = np.bincount(graph.targets, minlength=count).tolist()
    outlinks = np.bincount(graph.sources, minlength=count).tolist()
    ranks = pagerank(graph).tolist()
    return [SignalRow(*row) for row in zip(graph.pages.tolist(), inlinks, outlinks, ranks, strict=True)]


def recompute(database: Database, clock: Clock, *, check: Callable[[], None] = lambda: None) -> int:
    """Recompute all signals and write the changed ones; return the number of pages with signals.

    Readers see old and new ones mixed until it is done; the search index copies them afterwards
    (`outbox.take_over_signals`). `check` is called between two pieces of work; an exception from it ends the work.
    """
    with database.read() as session:
        graph = graph_of(_checked(queries.links(session, chunk=_CHUNK), check))
    check()
    rows, now = signals_of(graph), clock.now()
    known = _known(database, check)
    changed = [row for row in rows if _differs(row, known.pop(row.url_hash, None))]
    for start in range(0, len(changed), _WRITE):
        check()
        with database.write() as session:
            queries.put_signals(session, changed[start : start + _WRITE], computed_at=now)
    stale = sorted(known)
    for start in range(0, len(stale), _WRITE):
        check()
        with database.write() as session:
            queries.drop_signals(session, stale[start : start + _WRITE])
    return len(rows)


def _checked(chunks: Iterable[Sequence[tuple[int, int]]], check: Callable[[], None]) -> Iterator[Any]:
    for chunk in chunks:
        check()
        yield chunk


def _known(database: Database, check: Callable[[], None]) -> dict[int, SignalRow]:
    found: dict[int, SignalRow] = {}
    after = -(1 << 63)
    while True:
        check()
        with database.read() as session:
            rows = queries.signals(session, after=after, limit=_CHUNK)
        if not rows:
            return found
        found.update((row.url_hash, row) for row in rows)
        after = rows[-1].url_hash


def _differs(row: SignalRow, known: SignalRow | None) -> bool:
    """Return True if a page's signals changed enough to write them: every rank moves a little with every link."""
    if known is None or (row.inlinks, row.outlinks) != (known.inlinks, known.outlinks):
        return True
    # Otherwise every crawl would rewrite every row of the table.
    return abs(row.pagerank - known.pagerank) > _MOVED * known.pagerank


def refresh(
    database: Database, home: Path, clock: Clock, *, most: int | None = None, is_stopping: Stopping = lambda: False
) -> bool:
    """Recompute the signals if the archive has grown by a tenth, or at all within a day; return True if it did.

    So each link is read only a few times as the archive grows. Return False too if another process is working on
    them, if the index belongs to another data directory, if there are more than `most` pages, or if a stop was
    requested.
    """
    directory, note = IndexDirectory(home), home / "search" / "link-signals.json"
    try:
        with database.read() as session:
            demand_outbox(session, directory)
            figure = queries.links_figure(session)
        now = to_micros(clock.now())
        if (most is not None and figure > most) or not is_due(_noted(note), figure, now):
            return False
        directory.folder.mkdir(parents=True, exist_ok=True)
        with alone(directory.folder / "link-signals.lock", IndexBusy("another process computes the link signals")):
            # Not while another process writes the index: what it cannot take over would be computed again and again.
            with directory.writing():
                pass
            pages = recompute(database, clock, check=checked(is_stopping))
            # Before the note: a death in between computes them once more, and nothing is missed.
            take_over_signals(database, home)
            write_whole(note, json.dumps({"figure": figure, "at": now}).encode())
    except (IndexBusy, IndexElsewhere, Interrupted):
        return False
    _log.info("search.signals_computed", pages=pages)
    return True


def is_due(state: tuple[int, int] | None, figure: int, now: int) -> bool:
    """Return True if signals computed at `state` (size, time) are due for the current size and time."""
    if state is None:
        return figure > 0
    before, at = state
    # A clock that was set back must not stop it for years.
    waited, moved = abs(now - at), abs(figure - before)
    return moved > 0 and (moved * 10 >= before or waited >= _LATE)


def _noted(path: Path) -> tuple[int, int] | None:
    try:
        fields = json.loads(path.read_text())
        return int(fields["figure"]), int(fields["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
