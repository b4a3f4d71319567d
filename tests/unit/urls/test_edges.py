"""Edges of the link graph: other groups once each, in order, without assets and the page itself."""

from __future__ import annotations

from holdfast.urls import Base, hash64, parse
from holdfast.urls.links import MAX_EDGES, edges_of, leading_out

_PAGE = "https://example.org/a"


def _leading(*hrefs: str) -> list[tuple[int, str]]:
    links = Base(_PAGE).resolve(hrefs).links
    return [(to, link.fetch) for to, link in leading_out(links, own_hash=hash64(parse(_PAGE).group))]


def test_assets_and_the_page_itself_lead_nowhere() -> None:
    assert _leading("/a#top", "/a?x=1", "/style.css", "/photo.JPG?w=2", "/b") == [
        (hash64("https://example.org/b"), "https://example.org/b")
    ]


def test_variants_of_a_query_are_one_edge_and_several_links() -> None:
    leading = _leading("/b?p=1", "/b?p=2", "/b", "https://other.example/")

    assert len(leading) == 4
    links = Base(_PAGE).resolve(["/b?p=1", "/b?p=2", "https://other.example/"]).links
    edges = edges_of(leading_out(links, own_hash=0))
    assert list(edges) == [hash64("https://example.org/b"), hash64("https://other.example/")]


def test_there_are_at_most_two_hundred() -> None:
    links = Base(_PAGE).resolve([f"/{number}" for number in range(300)]).links

    assert len(edges_of(leading_out(links, own_hash=0))) == MAX_EDGES
