"""Where a crawl begins: seeds, and the sitemaps that robots files name."""

from __future__ import annotations

from typing import Any

from holdfast.crawl.assignment import seeds_of
from holdfast.types import UrlKind
from tests.patience import Calls
from tests.unit.crawl.bed import make_bed


def _sitemaps(origins: list[tuple[str, tuple[str, ...]]], **plan: Any) -> list[str]:
    bed = make_bed({}, **plan)
    gate = bed.worker().gate
    gate.sitemaps = origins
    found = list(gate.take_sitemaps())
    assert {one.kind for one in found} <= {UrlKind.SITEMAP}
    assert gate.sitemaps == [], "each is taken once"
    return [one.url for one in found]


def test_a_seed_is_asked_once_however_often_it_was_written() -> None:
    plan = make_bed({}, seeds=("http://a.test/", "http://a.test", "a.test")).plan

    assert [found.url for found in seeds_of(plan)] == ["http://a.test/", "https://a.test/"]
    assert {(found.depth, found.kind) for found in seeds_of(plan)} == {(0, UrlKind.PAGE)}


def test_sitemaps_are_those_that_robots_names_or_the_usual_one_of_a_seed() -> None:
    assert _sitemaps([("http://a.test", ("/s.xml", "http://b.test/theirs.xml"))]) == [
        "http://a.test/s.xml", "http://b.test/theirs.xml",
    ]  # fmt: skip
    assert _sitemaps([("http://a.test", ())]) == ["http://a.test/sitemap.xml"]
    assert _sitemaps([("https://a.test", ())]) == [], "in scope, but no seed's own origin"


def test_the_sitemaps_of_hosts_that_only_lend_a_picture_are_not_read() -> None:
    assert _sitemaps([("http://cdn.test", ("http://cdn.test/s.xml",))]) == []


def test_what_is_no_address_is_passed_over_and_a_crawl_may_do_without() -> None:
    inner = ("file:///etc/passwd", "http://a.test:22/s.xml", "javascript:x")

    assert _sitemaps([("http://a.test", inner)]) == []
    assert _sitemaps([("http://a.test", ("/s.xml",))], sitemaps=False) == []
    assert _sitemaps([("http://a.test", ("/s.xml",))], scope="page") == []


def test_the_sitemaps_of_a_site_cost_the_same_however_many_seeds_there_are() -> None:
    counts = []
    for seeds in (1, 500):
        bed = make_bed({}, seeds=tuple(f"http://h{n}.test/" for n in range(seeds)))
        gate = bed.worker("h0.test").gate
        gate.sitemaps.append(("http://h0.test", ()))
        with Calls() as work:
            found = [one.url for one in gate.take_sitemaps()]
        counts.append(work.count)
        assert found == ["http://h0.test/sitemap.xml"]

    assert counts[1] < 2 * counts[0]
