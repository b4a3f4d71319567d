"""The numbers beside results: a facet's count is what choosing it shows, a total is what paging reaches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.search import ResultKind, SearchAnswer, Sort
from tests.search_bed import Bed, Capture, open_bed

PAGES, SNAPSHOTS = ResultKind.PAGES, ResultKind.SNAPSHOTS
_STORY = " ".join(f"story{n}" for n in range(40))


def _captures() -> list[Capture]:
    """Return pages of three years: some in each year, of a language that changes, and a page that moved."""
    found = []
    for n in range(30):
        for year in (2022, 2023, 2025)[: 1 + n % 3]:
            for month in (2, 2 + n % 5):
                at = datetime(year, month, 1 + n % 9 + month, 12, tzinfo=UTC)
                french = n % 4 == 0 and year == 2022
                found.append(
                    Capture(
                        url=f"https://h{n % 2}.test/{n}", at=at, source=f"s{n % 2}", language="fr" if french else "en",
                        title=f"Page {n}", text=f"parrot number{n} of year{year} and month{month}",
                        author="Ann" if year == 2022 else "Bo", page_type="article" if n % 5 else "product",
                        media_type="text/plain" if year == 2023 and n % 2 else "text/html",
                    )
                )  # fmt: skip
    moved = {"title": "A story", "text": f"parrot {_STORY}"}
    found.append(Capture(url="https://h0.test/old", at=datetime(2021, 5, 5, tzinfo=UTC), **moved))  # type: ignore[arg-type]
    for number in range(3):
        at = datetime(2025, 5, 5 + number, tzinfo=UTC)
        found.append(Capture(url=f"https://h0.test/new{number}", at=at, **moved))  # type: ignore[arg-type]
    return found


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[Bed]:
    """The pages on each kind of database."""
    with open_bed(migrated_url, tmp_path / "home") as opened:
        opened.fill(_captures())
        yield opened


def _reached(bed: Bed, asked: dict[str, Any]) -> int:
    """Return how many results paging reaches."""
    pages = [bed.ask(**asked, page_size=7, page=page) for page in range(1, 40)]
    return len({hit.row.id for page in pages for hit in page.hits})


_ASKED = [
    {"q": "parrot", "view": PAGES},
    {"q": "parrot", "view": SNAPSHOTS},
    {"q": "parrot", "view": PAGES, "similar": SimilarResults.SHOW},
    {"q": "parrot", "view": PAGES, "sort": Sort.NEWEST},
    {"q": "parrot", "view": PAGES, "sort": Sort.NEWEST, "similar": SimilarResults.COLLAPSE},
    {"q": "year2022", "view": PAGES},
    {"view": PAGES},
    {"source": "s1", "view": PAGES},
]


@pytest.mark.parametrize("asked", _ASKED)
def test_total_is_what_paging_reaches(bed: Bed, asked: dict[str, Any]) -> None:
    assert bed.ask(**asked).total == _reached(bed, asked) > 0


def _year(value: str) -> dict[str, Any]:
    return {"start": date(int(value), 1, 1), "end": date(int(value), 12, 31)}


def _month(start: str) -> dict[str, Any]:
    first = date.fromisoformat(start)
    return {"start": first, "end": (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)}


def _facets(answer: SearchAnswer) -> dict[str, list[tuple[str, int]]]:
    return {name: [(one.value, one.count) for one in counts] for name, counts in answer.facets.items()}


@pytest.mark.parametrize("asked", _ASKED)
def test_facet_counts_are_the_totals_of_each_choice(bed: Bed, asked: dict[str, Any]) -> None:
    whole = bed.ask(**asked)

    facets = _facets(whole)
    for name in ("source", "language", "type", "host"):
        for value, count in facets[name]:
            assert bed.ask(**{**asked, name: value}).total == count, (name, value)
    for value, count in facets["year"]:
        assert bed.ask(**asked, **_year(value)).total == count, value
    operators = {"pageType": "type:", "author": "author:"}
    for name, operator in operators.items():
        for value, count in facets[name]:
            question = " ".join(filter(None, (asked.get("q"), f"{operator}{value}")))
            assert bed.ask(**{**asked, "q": question}).total == count, (name, value)
    assert whole.histogram_unit == "month"
    for start, count in whole.histogram:
        assert bed.ask(**asked, **_month(start)).total == count, start


@pytest.mark.parametrize("asked", [{"q": "parrot"}, {"q": "story1"}, {}])
def test_captures_view_counts_each_capture_once_in_every_facet(bed: Bed, asked: dict[str, Any]) -> None:
    found = bed.ask(**asked, view=SNAPSHOTS)

    assert (found.collapsed, {hit.similar for hit in found.hits}) == (0, {None})
    for name in ("source", "language", "year", "type", "status", "host"):
        assert sum(count for _, count in _facets(found)[name]) == found.total, name
    assert sum(count for _, count in found.histogram) == found.total == _reached(bed, {**asked, "view": SNAPSHOTS})


def test_host_is_spelled_alike_in_facet_filter_and_site(bed: Bed) -> None:
    urls = ("https://bücher.de/a", "https://bucher.de/a", "http://example.org:80/x", "https://EXAMPLE.com./x")
    bed.fill(Capture(url=url, title="Host", text="spelled tide") for url in urls)

    hosts = _facets(bed.ask("spelled", view=SNAPSHOTS))["host"]
    assert sorted(hosts) == [("bucher.de", 1), ("example.com", 1), ("example.org", 1), ("xn--bcher-kva.de", 1)]
    for name, url in zip(("bücher.de", "bucher.de", "example.org:80", "EXAMPLE.com"), urls, strict=True):
        assert bed.urls("spelled", host=name, view=SNAPSHOTS) == [url]
        assert bed.urls(f"spelled site:{name}", view=SNAPSHOTS) == [url]
    for name, _ in hosts:
        assert bed.ask("spelled", host=name, view=SNAPSHOTS).total == 1


@pytest.mark.parametrize("asked", ["site:a.test/café", "inurl:café", "inurl:cafe", "inurl:caf%C3%A9", "url:café"])
def test_escaped_and_plain_letters_of_a_path_are_found_alike(bed: Bed, asked: str) -> None:
    bed.fill([Capture(url="https://a.test/caf%C3%A9", text="one"), Capture(url="https://a.test/café/b", text="two")])

    assert bed.ask(asked, view=SNAPSHOTS).total == 2


def test_pages_count_in_each_year_in_which_they_match(bed: Bed) -> None:
    found = bed.ask("parrot", view=PAGES)
    day = bed.ask("parrot", view=PAGES, start=date(2025, 2, 1), end=date(2025, 2, 28))

    # 30 pages; the story stands on four, and counts once in each of its years.
    assert (found.total, found.collapsed) == (31, 3)
    assert _facets(found)["year"] == [("2021", 1), ("2022", 30), ("2023", 20), ("2025", 11)]
    assert _facets(bed.ask("parrot number5 year2022", view=PAGES))["year"] == [("2022", 1)]
    assert day.histogram_unit == "day"
    assert sum(count for _, count in day.histogram) >= day.total == 10
