"""The link graph: PageRank against its definition, and what it does to the order of results."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import select

from holdfast.db.models import PageSignal
from holdfast.search import signals
from holdfast.search.outbox import take_over_signals
from holdfast.search.signals import graph_of, pagerank, recompute, signals_of
from holdfast.urls import hash64
from tests.clock import FakeClock
from tests.search_bed import Bed, Capture


def test_each_pair_of_pages_counts_once_and_never_itself() -> None:
    rows = signals_of(graph_of([[(1, 2), (1, 2), (3, 2), (2, 2)], [(1, 2), (2, 3)]]))

    assert [(row.url_hash, row.inlinks, row.outlinks) for row in rows] == [(1, 0, 1), (2, 2, 1), (3, 1, 1)]


def test_link_graph_sorts_each_edge_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_rows, distinct = list[int](), signals._distinct

    def counted(edges: signals.Edges) -> signals.Edges:
        sorted_rows.append(len(edges))
        return distinct(edges)

    monkeypatch.setattr(signals, "_distinct", counted)
    chunks = [[(page, page + 1) for page in range(start, start + 10)] for start in range(0, 1_000, 10)]

    graph = graph_of([*chunks, *chunks])

    assert len(graph.sources) == 1_000
    assert sum(sorted_rows) < 10_000


def test_pagerank_is_what_the_matrix_says() -> None:
    edges = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2), (4, 3)]
    graph = graph_of([edges])
    move = np.zeros((5, 5))
    for a, b in edges:
        move[b, a] = 1 / sum(1 for source, _ in edges if source == a)
    whole = 0.85 * move + 0.15 / 5
    values, vectors = np.linalg.eig(whole)
    leading = np.real(vectors[:, np.argmax(np.real(values))])

    assert pagerank(graph) == pytest.approx(leading / leading.sum() * 5, rel=1e-3)


def test_an_empty_graph_has_no_ranks() -> None:
    assert signals_of(graph_of([])) == []


def test_a_page_that_many_link_to_comes_first(bed: Bed, clock: FakeClock) -> None:
    urls = [f"https://example.org/{name}" for name in "abcdefgh"]
    bed.fill(Capture(url=url, title="Parrots", text=f"parrot {url}", links=("https://example.org/f",)) for url in urls)
    assert bed.urls("parrot")[0] != "https://example.org/f"

    assert recompute(bed.database, clock) == 8
    take_over_signals(bed.database, bed.home)

    assert bed.urls("parrot")[0] == "https://example.org/f"
    with bed.database.read() as session:
        inlinks = session.scalar(select(PageSignal.inlinks).where(PageSignal.url_hash == hash64(urls[5])))
    assert inlinks == 7


def test_signals_of_pages_that_nobody_links_any_more_go(bed: Bed, clock: FakeClock) -> None:
    bed.fill([Capture(url="https://example.org/a", links=("https://example.org/b",))])
    recompute(bed.database, clock)
    with bed.database.write() as session:
        session.connection().exec_driver_sql("DELETE FROM page_links")
    clock.advance(1)

    assert recompute(bed.database, clock) == 0
    with bed.database.read() as session:
        assert session.scalars(select(PageSignal)).all() == []
