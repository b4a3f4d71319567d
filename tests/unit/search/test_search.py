"""Search as a reader meets it: words in two languages, addresses, booleans, filters, pages, facets, typos."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.db.schema import make_fresh
from holdfast.search.matching import MatchMode
from holdfast.search.search import BadSearch, ResultKind, Sort
from holdfast.sources.queries import SourceNotFound
from tests.search_bed import DAY, Bed, Capture, open_bed, pages

_SITE = [
    Capture(url="https://www.example.org/flu", title="Flu vaccine", text="The flu vaccine is given in every clinic."),
    Capture(url="https://www.example.org/fr/grippe", title="La grippe", language="fr",
            text="La sécurité des élèves vaccinés à l’hôpital général."),
    Capture(url="https://www.example.org/list?page=2", title="Clinics", text="A list of clinics that give vaccines."),
    Capture(url="http://other.test/deep/er/page.html", title="Terms and conditions", text="Read the small print."),
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """One small site for all tests that only ask."""
    home = tmp_path_factory.mktemp("site")
    url = f"sqlite:///{home / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, home) as opened:
        opened.fill(_SITE)
        yield opened


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("securite", "/fr/grippe"),
        ("SÉCURITÉ", "/fr/grippe"),
        ("vaccinees", "/fr/grippe"),
        ("hopitaux", "/fr/grippe"),
        ("giving clinics lists", "/list?page=2"),
        ('"small print"', "/deep/er/page.html"),
    ],
)
def test_words_are_found_whatever_their_accents_and_endings(site: Bed, query: str, path: str) -> None:
    found = site.ask(query)

    assert [hit.row.url.endswith(path) for hit in found.hits] == [True]
    assert found.mode is MatchMode.FTS


def test_a_phrase_must_stand_as_it_is(site: Bed) -> None:
    assert site.ask('"print small"').total == 0


@pytest.mark.parametrize("query", ["https://example.org/flu", "www.example.org/flu", "example.org/flu#top"])
def test_an_address_is_found_by_any_of_its_spellings(site: Bed, query: str) -> None:
    found = site.ask(query)

    assert [hit.row.url for hit in found.hits] == ["https://www.example.org/flu"]
    assert found.mode is MatchMode.URL


def test_an_address_with_a_scheme_is_not_guessed_at(site: Bed) -> None:
    assert site.ask("https://example.org/fl").total == 0


def test_what_only_looks_like_an_address_falls_to_words(bed: Bed) -> None:
    bed.fill(pages(["Written in node.js by hand", "Nothing of it"]))

    assert bed.urls("node.js") == ["https://example.org/1"]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("title:flu", 1),
        ("url:EXAMPLE.org AND NOT title:grippe", 2),
        ("snippet:élèves OR url:deep", 2),
        ("title:cine OR (clinic)", 2),
        ("ccine AND (clinic)", 0),
        ("NOT url:example.org", 1),
        ("title:flu OR NOT url:example.org", 2),
        ("url:page= -url:zzz", 1),
        ("la OR zzzz", 1),
        ("zzzz OR yyyy", 0),
        ("url:%", 0),
        ("url:_", 0),
        ("url:\\", 0),
    ],
)
def test_boolean_terms_match_fields_and_words_of_the_text(site: Bed, query: str, count: int) -> None:
    found = site.ask(query)

    assert (found.mode, found.total) == (MatchMode.BOOLEAN, count)


def test_small_words_between_words_still_find_the_page(site: Bed) -> None:
    assert site.urls("terms and conditions") == ["http://other.test/deep/er/page.html"]
    assert site.urls("small and print") == ["http://other.test/deep/er/page.html"]


def test_a_typo_is_answered_with_what_was_meant(site: Bed) -> None:
    found = site.ask("vacine clinc")

    assert (found.mode, found.did_you_mean) == (MatchMode.FUZZY, "vaccine clinic")
    assert found.total == 2


def test_a_typo_is_read_so_that_a_page_has_all_the_words(bed: Bed) -> None:
    texts = ["The lighthouse keeper slept.", *(f"Keep the garden of house {n}." for n in range(5))]
    bed.fill(Capture(url=f"https://a.test/{n}", text=text) for n, text in enumerate(texts))

    found = bed.ask("lighthouse keepr")

    assert (found.mode, found.did_you_mean) == (MatchMode.FUZZY, "lighthouse keeper")
    assert found.total == 1


def test_a_form_of_a_word_is_not_corrected_to_a_word_of_another_language(bed: Bed) -> None:
    english = "The server can log the user agent of visitors.", "Every request has a user agent."
    texts = [*((text, "en") for text in english), ("Un agent user log each visiter.", "fr")]
    bed.fill(
        Capture(url=f"https://a.test/{n}", text=text, language=language) for n, (text, language) in enumerate(texts)
    )

    found = bed.ask("log user agent each visitor")

    assert (found.mode, found.did_you_mean) == (MatchMode.SOME_WORDS, None)
    assert found.hits[0].row.url == "https://a.test/0"


@pytest.mark.parametrize("typed", ["書", "猫", "IBM"])
def test_short_words_and_unspaced_ones_are_not_corrected(bed: Bed, typed: str) -> None:
    bed.fill([Capture(url="https://a.test/", text="I am in a queue, I'm told. im, 水")])

    found = bed.ask(typed)

    assert (found.total, found.did_you_mean) == (0, None)


def test_a_part_of_a_word_is_found_before_typos_are_tried(site: Bed) -> None:
    found = site.ask("onditi")

    assert (found.mode, found.total, found.did_you_mean) == (MatchMode.FALLBACK, 1, None)


def test_words_under_three_letters_are_a_substring(site: Bed) -> None:
    assert site.urls("La") == ["https://www.example.org/fr/grippe"]


def test_scripts_without_blanks_between_words_are_searched_letter_by_letter(bed: Bed) -> None:
    long = "概要 " * 150
    bed.fill([Capture(url="https://example.org/ja", text=f"{long}東京都の天気は晴れです", language="ja"),
              Capture(url="https://example.org/zh", text=f"{long}北京天气", language="zh")])  # fmt: skip

    assert bed.urls("東京") == ["https://example.org/ja"]
    assert bed.urls("京天气") == ["https://example.org/zh"]
    assert bed.urls("京東") == []
    [hit] = bed.ask("天気").hits
    assert [piece.text for piece in hit.passages[0] if piece.hit] == ["天気"]


def test_errors_and_redirects_are_shown_last_and_only_if_wanted(bed: Bed) -> None:
    bed.fill(
        Capture(url=f"https://example.org/{status}", text=f"parrot {status}", status=status)
        for status in (404, None, 301, 200, 500)
    )

    assert bed.urls("parrot") == ["https://example.org/200", "https://example.org/None"]
    found = [url.rpartition("/")[2] for url in bed.urls("parrot", non_2xx=True)]
    assert found[:3] == ["200", "301", "None"]
    assert set(found[3:]) == {"404", "500"}


def test_equal_captures_of_a_day_are_shown_once(bed: Bed) -> None:
    moments = [DAY, DAY + timedelta(hours=2), DAY + timedelta(days=1)]
    bed.fill(Capture(url="https://example.org/", text="parrot", at=at) for at in moments)

    assert bed.ask("parrot").total == 2
    assert bed.ask("parrot", duplicates=True).total == 3


def test_noindex_stays_out(bed: Bed) -> None:
    bed.fill([Capture(url="https://example.org/", text="parrot", noindex=True)])

    assert bed.ask("parrot").total == 0
    assert bed.ask("https://example.org/").total == 0
    assert bed.ask().total == 0


def test_pages_show_the_latest_matching_capture_of_each_group(bed: Bed) -> None:
    bed.fill(
        [Capture(url=f"https://example.org/a?n={n}", text=f"parrot {n}", at=DAY + timedelta(days=n)) for n in range(3)]
        + [Capture(url="https://example.org/b", text="parrot")]
    )

    found = bed.ask("parrot", view=ResultKind.PAGES)

    assert found.total == 2
    assert {(hit.row.url, hit.captures) for hit in found.hits} == {
        ("https://example.org/a?n=2", 3), ("https://example.org/b", 1),
    }  # fmt: skip
    assert bed.ask(view=ResultKind.PAGES).mode is MatchMode.PAGES


def test_filters_and_facets_agree(bed: Bed) -> None:
    bed.fill(
        Capture(
            url=f"https://{'a' if n % 2 else 'b'}.test/{n}", text=f"parrot {n}", source=("one", "two", "three")[n % 3],
            language=("en", "fr", None)[n % 3], media_type="application/pdf" if n % 5 == 0 else "text/html",
            at=DAY + timedelta(days=100 * n),
        )
        for n in range(12)
    )  # fmt: skip

    whole = bed.ask("parrot")

    for name, field in (("source", "source"), ("language", "language"), ("type", "type"), ("host", "host")):
        for count in whole.facets[name]:
            if count.value != "und":
                assert bed.ask("parrot", **{field: count.value}).total == count.count, (name, count)
    assert sum(count.count for count in whole.facets["year"]) == whole.total == 12
    for count in whole.facets["year"]:
        year = int(count.value)
        assert bed.ask("parrot", start=date(year, 1, 1), end=date(year, 12, 31)).total == count.count
    assert sum(bar for _, bar in whole.histogram) == 12


@pytest.mark.parametrize("query", ["parrot", "nothing has this", None])
def test_a_source_that_there_is_not_is_told_and_not_taken_for_one_without_captures(bed: Bed, query: str | None) -> None:
    bed.fill(pages(["parrot"]))

    with pytest.raises(SourceNotFound, match="there is no source 'no-such'; see them with: holdfast source list"):
        bed.ask(query, source="no-such")


def test_days_are_included_at_both_ends(bed: Bed) -> None:
    bed.fill([Capture(url="https://example.org/", text="parrot", at=DAY)])
    day = DAY.date()

    assert bed.ask(start=day, end=day).total == 1
    assert bed.ask(start=day + timedelta(days=1)).total == 0
    assert bed.ask(end=day - timedelta(days=1)).total == 0
    assert bed.ask(end=date.max, start=date.min).total == 1


def test_paging_past_the_end_is_empty_with_the_same_total(bed: Bed) -> None:
    bed.fill(pages([f"parrot {n}" for n in range(7)]))

    shown = [bed.ask("parrot", page=page, page_size=3) for page in (1, 2, 3, 4)]

    assert [len(answer.hits) for answer in shown] == [3, 3, 1, 0]
    assert {answer.total for answer in shown} == {7}
    assert len({hit.row.id for answer in shown for hit in answer.hits}) == 7


@pytest.mark.parametrize("bounds", [{"page": 0}, {"page_size": 0}, {"page_size": 101}, {"q": "x" * 257},
                                    {"start": date(2025, 1, 2), "end": date(2025, 1, 1)}])  # fmt: skip
def test_bounds_that_make_no_sense_are_refused(bed: Bed, bounds: dict[str, Any]) -> None:
    with pytest.raises(BadSearch):
        bed.ask(**{"q": None, **bounds})


def test_newest_is_by_moment_then_id(bed: Bed) -> None:
    ids = bed.fill(pages(["parrot", "parrot two", "parrot three"]))

    assert [hit.row.id for hit in bed.ask("parrot", sort=Sort.NEWEST).hits] == ids[::-1]


def test_an_archive_without_an_index_answers_nothing(bed: Bed) -> None:
    assert bed.ask("parrot").total == 0
    assert bed.ask().hits == []


def test_more_documents_than_promised_are_said_not_to_be_exact(bed: Bed) -> None:
    bed.fill(pages(["parrot", "parrot two"]))
    bed.search.exact_documents, bed.search.filtered_documents = 1, (1, 2)

    assert bed.ask("two").exact
    broad, filtered = bed.ask("parrot"), bed.ask("parrot", source="demo")
    assert (broad.exact, broad.total) == (False, 1)
    assert (filtered.exact, filtered.total) == (True, 2)  # one was too few to stop at


@pytest.mark.parametrize("query", ["parrot", "parrot feather wing nest", "zebra"])
def test_exact_flag_ignores_hidden_documents(bed: Bed, query: str) -> None:
    def page(number: int) -> Capture:
        return Capture(url=f"https://a.test/zebra/{number}", text=f"parrot feather {'parrot wing ' * number}")

    ids = bed.fill(page(number) for number in range(12))
    bed.search.exact_documents = bed.search.named_addresses = 3
    for snapshot_id in ids[4:]:
        bed.withdraw(snapshot_id=snapshot_id)
    four = bed.ask(query)
    bed.withdraw(snapshot_id=ids[0])
    three = bed.ask(query)

    assert (four.total, four.exact) == (3, False)
    assert (three.total, three.exact) == (3, True)


def test_a_score_is_the_sum_of_its_parts(site: Bed) -> None:
    found = site.ask("vaccine", explain=True)

    sums = [round(sum(hit.parts.values()), 4) for hit in found.hits]
    assert sums == sorted(sums, reverse=True)
    assert len(set(sums)) > 1
    assert found.hits[0].parts["rankText"] > 0


def test_a_page_scores_the_same_with_and_without_a_filter(bed: Bed) -> None:
    bed.fill(
        [
            Capture(url="https://a.test/parrot", title="Parrot", text="parrot parrot parrot", source="big"),
            Capture(url="https://b.test/1", title="Birds", text="A parrot among many other birds.", source="small"),
        ]
    )

    def scores(**more: Any) -> dict[str, float]:
        return {hit.row.url: hit.parts["rankText"] for hit in bed.ask("parrot", explain=True, **more).hits}

    alone = scores(source="small")
    assert alone == {"https://b.test/1": scores()["https://b.test/1"]}
    assert 0 < alone["https://b.test/1"] < 1


def test_what_may_not_be_seen_is_no_measure_for_the_rest(bed: Bed) -> None:
    best, other = bed.fill(pages(["parrot parrot parrot", "A parrot among many other birds, and then some more."]))
    bed.withdraw(snapshot_id=best)

    found = bed.ask("parrot", explain=True)
    assert [(hit.row.id, hit.parts["rankText"]) for hit in found.hits] == [(other, 1.0)]


_NASTY = ['"', "AND", "NEAR(", "-x", "*", "example-site", "(" * 120, "\x00", "\ud800", "🦜", "مرحبا", "%" * 200, "\\",
          "title:", "url:http://", "http://[", "a.b:c:d", "::", "1e400", "'; DROP TABLE snapshots --"]  # fmt: skip


@pytest.mark.parametrize("query", _NASTY)
def test_hostile_queries_are_answered(site: Bed, query: str) -> None:
    site.ask(query)
    site.ask(query, view=ResultKind.PAGES, sort=Sort.NEWEST, non_2xx=True)


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=60))
def test_any_query_is_answered(site: Bed, query: str) -> None:
    site.ask(query)


@pytest.mark.parametrize(("year", "counted"), [(1, "1970"), (2025, "2025"), (5_000, "4700"), (9_999, "4700")])
def test_broken_date_counts_in_the_nearest_year(bed: Bed, year: int, counted: str) -> None:
    bed.fill([Capture(url="https://a.test/", at=DAY.replace(year=year))])

    assert [one.value for one in bed.ask().facets["year"]] == [counted]
