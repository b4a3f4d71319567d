"""Terms over time on SQLite and PostgreSQL: what is counted, of what it is a share, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from holdfast.records import encode
from holdfast.search.filters import BadOperator
from holdfast.search.search import BadSearch
from holdfast.search.terms_over_time import (
    BadTerms,
    TermCounts,
    TermsAnswer,
    TermsRequest,
    TimeUnit,
    split_terms,
    terms_csv,
    terms_record,
)
from holdfast.sources.queries import SourceNotFound
from tests.search_bed import Bed, Capture, open_bed


def _capture(year: int, text: str, *, month: int = 5, path: str = "", **more: object) -> Capture:
    at = datetime(year, month, 3, 12, tzinfo=UTC)
    return Capture(url=f"https://example.org/{path}", text=text, at=at, **more)  # type: ignore[arg-type]


_CAPTURES = [
    _capture(2020, "flu in the city"),
    _capture(2022, "flu in the city"),
    _capture(2022, "measles and flu", month=11),
    _capture(2022, "water and school", path="b", language="fr", source="other"),
    _capture(2023, "measles again", path="c"),
    _capture(2023, "flu that is gone", path="d", status=404),
    _capture(2023, "flu that hides", path="e", noindex=True),
]


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[Bed]:
    """The captures on each kind of database."""
    with open_bed(migrated_url, tmp_path / "home") as opened:
        yield opened


def _terms(bed: Bed, *terms: str, **more: object) -> TermsAnswer:
    return bed.search.terms(TermsRequest(terms=terms, **more), wait=True)  # type: ignore[arg-type]


def test_captures_and_new_documents_are_counted_by_year(bed: Bed) -> None:
    bed.fill(_CAPTURES)

    found = _terms(bed, "flu", "Measles", "in the city")

    assert (found.starts, found.volume) == (["2020", "2021", "2022", "2023"], [1, 0, 3, 1])
    assert found.terms == [
        TermCounts(term="flu", captures=[1, 0, 2, 0], documents=[1, 0, 1, 0], exact=True),
        TermCounts(term="Measles", captures=[0, 0, 1, 1], documents=[0, 0, 1, 1], exact=True),
        TermCounts(term="in the city", captures=[1, 0, 1, 0], documents=[1, 0, 0, 0], exact=True),
    ]


def test_counts_by_month_and_in_a_span_of_days(bed: Bed) -> None:
    bed.fill(_CAPTURES)

    found = _terms(bed, "flu", unit=TimeUnit.MONTH, start=date(2022, 5, 1), end=date(2022, 12, 31))

    assert (found.starts[0], found.starts[-1], len(found.starts)) == ("2022-05", "2022-11", 7)
    assert found.terms[0].captures == [1, 0, 0, 0, 0, 0, 1]
    assert found.volume == [2, 0, 0, 0, 0, 0, 1]


def test_source_and_operators_confine_terms_and_volume(bed: Bed) -> None:
    bed.fill(_CAPTURES)

    assert _terms(bed, "school", source="other").volume == [1]
    assert _terms(bed, "school", operators="lang:fr").volume == [1]
    assert _terms(bed, "flu", operators="site:example.org -lang:fr").volume == [1, 0, 2, 1]
    assert _terms(bed, "flu", operators="site:elsewhere.test").volume == []


def test_what_is_withdrawn_is_in_no_count(bed: Bed) -> None:
    ids = bed.fill(_CAPTURES)
    assert _terms(bed, "flu").volume == [1, 0, 3, 1]

    bed.withdraw(snapshot_id=ids[0])

    found = _terms(bed, "flu")
    assert (found.starts, found.volume) == (["2022", "2023"], [3, 1])
    assert (found.terms[0].captures, found.terms[0].documents) == ([2, 0], [2, 0])


def test_an_empty_archive_has_no_time(bed: Bed) -> None:
    found = _terms(bed, "flu")

    assert (found.starts, found.volume) == ([], [])


def test_what_cannot_be_counted_is_refused(bed: Bed) -> None:
    bed.fill(_CAPTURES)

    long = "one two three four five six seven eight nine"
    for terms in [(), ("?",), tuple("abcdefghi"), (long,), ("a" * 200, "b" * 60)]:
        with pytest.raises(BadTerms):
            _terms(bed, *terms)
    with pytest.raises(SourceNotFound):
        _terms(bed, "flu", source="nope")
    for operators in ["before:yesterday", "flu", "like:1"]:
        with pytest.raises(BadOperator):
            _terms(bed, "flu", operators=operators)


def test_operators_on_words_confine_terms(bed: Bed) -> None:
    bed.fill([*_CAPTURES, _capture(2024, "flu and water", path="f", title="Flu")])

    assert _terms(bed, "flu", operators="intitle:flu").volume == [1]
    assert _terms(bed, "flu", operators="near:3(measles flu)").volume == [1]


def test_what_is_longer_than_a_query_is_refused_and_not_cut(bed: Bed) -> None:
    with pytest.raises(BadSearch, match="at most 256"):
        _terms(bed, "flu", operators="-site:example.com " * 15 + "before:2000")


def test_a_single_letter_of_an_unspaced_script_is_counted_wherever_it_stands(bed: Bed) -> None:
    texts = {"水道の話": "ja", "飲み水": "ja", "a 水道": "en", "火": "ja"}
    bed.fill(_capture(2020, text, path=str(n), language=texts[text]) for n, text in enumerate(texts))

    assert _terms(bed, "水").terms == [TermCounts(term="水", captures=[3], documents=[3], exact=True)]


def test_a_volume_that_was_not_looked_at_as_a_whole_is_told_each_time(bed: Bed) -> None:
    bed.fill(_capture(2020 + n, f"flu {n}", path=f"en/{n}") for n in range(6))
    bed.search.volume_rows = 3

    for _ in range(2):
        found = _terms(bed, "flu", operators="-type:pdf")
        assert (sum(found.volume), found.starts[-1], found.terms[0].exact) == (3, "2025", False)
    # A rare operator gives all rows by itself, and filters alone cost nothing.
    assert _terms(bed, "flu", operators="inurl:/en/").terms[0].exact
    assert _terms(bed, "flu").terms[0].exact


def test_the_same_as_json_and_csv(bed: Bed) -> None:
    bed.fill(_CAPTURES)
    found = _terms(bed, "flu")

    told = encode(terms_record(found))["terms"][0]
    assert (told["captures"], told["newDocuments"], told["isExact"]) == (3, 2, True)
    assert told["counts"][2] == {"start": "2022", "captures": 2, "newDocuments": 1, "share": 0.66666667}
    assert terms_csv(found).splitlines()[:2] == [
        "term,start,captures,new_documents,volume,share,is_exact",
        "flu,2020,1,1,1,1.00000000,true",
    ]


def test_terms_are_parted_by_commas() -> None:
    assert split_terms(' flu, "whooping cough",,flu ,"", "') == ("flu", "whooping cough")
    assert split_terms("“whooping cough”,« péché »") == ("whooping cough", '" péché "')
    assert split_terms('péché, "péché",peche,la "pêche",Pêche') == ("péché", '"péché"', "peche", 'la "pêche"', "Pêche")


def test_terms_are_told_as_they_were_typed(bed: Bed) -> None:
    bed.fill([
        _capture(2020, "le péché du roi", path="a", language="fr"),
        _capture(2020, "la pêche du roi", path="b", language="fr"),
        _capture(2020, "京都の寺", path="c", language="ja"),
    ])  # fmt: skip

    found = _terms(bed, *split_terms('péché,"péché","la pêche" , 京都, PÊCHE  du, =péché'))

    assert [(one.term, one.captures) for one in found.terms] == [
        ("péché", [2]), ('"péché"', [1]), ('"la pêche"', [1]), ("京都", [1]), ("PÊCHE du", [2]), ("=péché", [2]),
    ]  # fmt: skip
    assert [line.partition(",20")[0] for line in terms_csv(found).splitlines()[1:]] == [
        "péché", '"""péché"""', '"""la pêche"""', "京都", "PÊCHE du", "'=péché",
    ]  # fmt: skip
