"""Hosts that the archive links to and does not hold, on SQLite and PostgreSQL: counted once, bounded, forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.db.models import IndexRun, LinkedHostVote, Withdrawal
from holdfast.search.linked_hosts import HOSTS_OF_SITE, PAIRS_OF_FILE, host_name, refresh_linked_hosts
from holdfast.search.linked_queries import linked_hosts
from tests.clock import FakeClock
from tests.search_bed import Bed, Capture, open_bed


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[Bed]:
    """An archive whose files can be read, on each kind of database."""
    with open_bed(migrated_url, tmp_path / "home") as opened:
        opened.home.mkdir()
        yield opened


def _read(bed: Bed, *sources: str) -> None:
    """Note that the files of sources were read to their end at this moment."""
    assert isinstance(bed.clock, FakeClock)
    bed.clock.advance(1)
    now = bed.clock.now()
    with bed.database.write() as session:
        for source in sources:
            run = IndexRun(
                warc_file_id=bed._executions[source][1], version=1, phase="done", warnings={}, started_at=now,
                progress_at=now, finished_at=now,
            )  # fmt: skip
            session.merge(run)


def _count(bed: Bed) -> bool:
    return refresh_linked_hosts(bed.database, bed.home, bed.clock)


def _listed(bed: Bed, *, limit: int = 100) -> list[tuple[str, int, int]]:
    with bed.database.read() as session:
        found = linked_hosts(session, limit=limit, offset=0)
    return [(host_name(key), one.sites, one.links) for key, one in found.items()]


def _page(url: str, *links: str, source: str = "demo") -> Capture:
    return Capture(url=url, text=f"{url} {links}", links=links, source=source)


def test_hosts_are_ordered_by_the_sites_that_link_to_them(bed: Bed) -> None:
    bed.add(
        [
            _page("https://www.a.org/1", "https://news.test/x", "https://www.a.org/2", "http://www.shop.test/"),
            _page("https://blog.a.org/1", "https://news.test/y", "http://news.test:8080/z", "http://10.0.0.1/"),
            _page("https://b.co.uk/", "https://shop.test/", "https://a.org/", "http://localhost/", source="other"),
        ]
    )
    _read(bed, "demo", "other")

    assert _count(bed)
    assert not _count(bed), "nothing is counted twice"

    # blog.a.org and www.a.org are one site; a.org and www.a.org one host, which is held.
    assert _listed(bed) == [("shop.test", 2, 2), ("news.test", 1, 3)]


def test_a_file_that_is_read_again_replaces_what_it_had_added(bed: Bed) -> None:
    bed.add([_page("https://a.org/1", "https://news.test/x")])
    _read(bed, "demo")
    _count(bed)
    bed.add([_page("https://a.org/2", "https://news.test/y", "https://new.test/")])
    _read(bed, "demo")

    assert _count(bed)

    assert _listed(bed) == [("news.test", 1, 2), ("new.test", 1, 1)]


def test_a_host_is_forgotten_once_something_of_it_is_kept(bed: Bed) -> None:
    bed.add([_page("https://a.org/", "https://news.test/x", "https://shop.test/")])
    _read(bed, "demo")
    _count(bed)

    bed.add([_page("https://www.news.test/", source="news")])
    assert _listed(bed) == [("shop.test", 1, 1)], "at once, before it is counted"
    _read(bed, "news")
    _count(bed)

    with bed.database.read() as session:
        assert {row.key for row in session.query(LinkedHostVote)} == {"test,shop"}
    # What named it before takes nothing away from others when it is read again.
    _read(bed, "demo")
    assert _count(bed)
    assert _listed(bed) == [("shop.test", 1, 1)]


def test_links_of_withdrawn_captures_count_no_more_until_they_are_shown_again(bed: Bed) -> None:
    first, _ = bed.add(
        [
            _page("https://a.org/1", "https://secret.test/", "https://news.test/"),
            _page("https://a.org/2", "https://news.test/"),
        ]
    )
    _read(bed, "demo")
    _count(bed)
    assert _listed(bed) == [("news.test", 1, 2), ("secret.test", 1, 1)]

    number = bed.withdraw(snapshot_id=first)
    assert _count(bed)
    assert not _count(bed)
    assert _listed(bed) == [("news.test", 1, 1)]

    with bed.database.write() as session:
        session.get_one(Withdrawal, number).lifted_at = bed.clock.now() + timedelta(seconds=1)
    assert _count(bed)
    assert _listed(bed) == [("news.test", 1, 2), ("secret.test", 1, 1)]


def test_one_site_makes_no_more_rows_than_it_may(bed: Bed) -> None:
    for number in range(4):
        links = [f"https://h{number}-{n}.test/" for n in range(HOSTS_OF_SITE // 2)]
        bed.add([_page(f"https://s{number}.a.org/", *links, source=f"s{number}")])
        _read(bed, f"s{number}")
        _count(bed)

    assert len(_listed(bed, limit=10_000)) == HOSTS_OF_SITE
    # What was not taken is not taken away either when the file is read again.
    _read(bed, "s3")
    _count(bed)
    assert len(_listed(bed, limit=10_000)) == HOSTS_OF_SITE


def test_one_file_adds_the_most_frequent_pairs_only(bed: Bed) -> None:
    each = PAIRS_OF_FILE // 3 + 1
    bed.add(
        _page(f"https://{site}.org/", *(f"https://h{n}.{site}.test/" for n in range(each)), "https://z.often.test/")
        for site in ("a", "b", "c")
    )
    bed.add([_page("https://a.org/again", "https://z.often.test/again")])
    _read(bed, "demo")
    _count(bed)

    with bed.database.read() as session:
        assert session.query(LinkedHostVote).count() == PAIRS_OF_FILE
    assert _listed(bed)[0] == ("z.often.test", 1, 2), (
        "the pair with two links is among them, those with one are not all"
    )
