"""What the link graph says of pages: in-links, out-links and PageRank, computed anew and written to `page_signals`.

Edges are read in chunks and kept as pairs of numbers, each pair of groups once: about 40 bytes an edge and 60 a page at
the peak (a million edges: under 100 MB). It refuses nothing; links of a page to itself do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.search import queries
from holdfast.search.queries import SignalRow

DAMPING: Final = 0.85
ROUNDS: Final = 40
TOLERANCE: Final = 1e-8
_CHUNK: Final = 100_000
_WRITE: Final = 2_000
"""Rows of one transaction: far below the half second that a writer may hold SQLite."""

Ids = npt.NDArray[np.int64]
Edges = npt.NDArray[np.int64]
"""Two columns: from, to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Pages by the hash of their group's address, and the distinct links between them, by place."""

    pages: Ids
    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]


def graph_of(chunks: Iterable[Sequence[tuple[int, int]]]) -> Graph:
    """Return the graph of edges that come in chunks; each edge counts once however often it was captured."""
    kept = np.empty((0, 2), np.int64)
    for chunk in chunks:
        fresh = np.array(chunk, np.int64).reshape(-1, 2)
        fresh = fresh[fresh[:, 0] != fresh[:, 1]]
        kept = _distinct(np.concatenate((kept, fresh)))
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
        lost = rank[out == 0].sum() / count
        fresh = (1 - DAMPING) / count + DAMPING * (given + lost)
        moved = float(np.abs(fresh - rank).sum())
        rank = fresh
        if moved < TOLERANCE:
            break
    return rank * count


def signals_of(graph: Graph) -> list[SignalRow]:
    """Return the signals of every page in the graph, by hash."""
    count = len(graph.pages)
    inlinks = np.bincount(graph.targets, minlength=count).tolist()
    outlinks = np.bincount(graph.sources, minlength=count).tolist()
    ranks = pagerank(graph).tolist()
    return [SignalRow(*row) for row in zip(graph.pages.tolist(), inlinks, outlinks, ranks, strict=True)]


def recompute(database: Database, clock: Clock, *, progress: Callable[[int], None] = lambda _rows: None) -> int:
    """Compute all signals anew and write them; return how many pages have any. Readers see old and new ones mixed
    until it is done; the search index takes them over afterwards (`drain.take_over_signals`)."""
    with database.read() as session:
        graph = graph_of(queries.links(session, chunk=_CHUNK))
    rows, now = signals_of(graph), clock.now()
    for start in range(0, len(rows), _WRITE):
        with database.write() as session:
            queries.put_signals(session, rows[start : start + _WRITE], computed_at=now)
        progress(min(start + _WRITE, len(rows)))
    while True:
        with database.write() as session:
            if not queries.drop_stale_signals(session, before=now, limit=_WRITE):
                return len(rows)
