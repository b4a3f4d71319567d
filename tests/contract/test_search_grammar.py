"""The grammar of queries by table, on SQLite and PostgreSQL: what each operator finds, alone, joined and left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.db.models import Snapshot
from holdfast.search.filters import BadOperator
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.search import BadSearch, ResultKind
from holdfast.withdrawals.visibility import SnapshotNotFound
from tests.search_bed import Bed, Capture, open_bed


def _at(year: int, month: int = 6, day: int = 1) -> datetime:
    return datetime(year, month, day, 12, tzinfo=UTC)


_CAPTURES = {
    "home": Capture(url="https://example.org/", title="Example", text="Flu vaccine for every school.", at=_at(2021)),
    "www": Capture(url="https://www.example.org/en/flu", title="Flu vaccines",
                   text="The flu vaccine is given at the school by the water.", at=_at(2022),
                   author="Zoë  Doe", published=_at(2021, 12, 31), page_type="article"),
    "fr": Capture(url="https://fr.example.org/grippe", title="La grippe", language="fr",
                  text="Le vaccin contre la grippe, flu en anglais.", at=_at(2023)),
    "port": Capture(url="http://example.org:8080/flu", title="Test server", text="Flu on another port.", at=_at(2023)),
    "pdf": Capture(url="https://www.example.org/en/flu.pdf", title="Leaflet", text="Flu leaflet, water and school.",
                   media_type="application/pdf", at=_at(2024)),
    "enough": Capture(url="https://www.example.org/enough", title="Enough", text="Flu enough.", at=_at(2024, 2, 29)),
    "other": Capture(url="https://notexample.org/en/flu", title="About us", language=None,
                     text="Flu at a school that one two three four five six has water.", at=_at(2024, 12, 31)),
    "uk": Capture(url="https://nhs.example.gov.uk/Vaccines/Flu", title="Flu jab", text="The jab against flu.",
                  at=_at(2025), author="Jane Doe", published=_at(2023, 5, 31), page_type="reference"),
    "old": Capture(url="https://paper.test/news", title="News", text="Water prices rise.", at=_at(2022, 1, 1)),
    "same": Capture(url="https://paper.test/news", title="News", text="Water prices rise.", at=_at(2022, 3, 1)),
    "new": Capture(url="https://paper.test/news", title="News", text="Water prices fall.", at=_at(2023, 3, 1)),
}  # fmt: skip
_FLU = {"home", "www", "fr", "port", "pdf", "enough", "other", "uk"}


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[Bed]:
    """The pages on each kind of database."""
    with open_bed(migrated_url, tmp_path / "home") as opened:
        yield opened


_ASKED: list[tuple[str, set[str]]] = [
    ("flu", _FLU),
    # site:
    ("flu site:example.org", {"home", "www", "fr", "port", "pdf", "enough"}),
    ("site:example.org", {"home", "www", "fr", "port", "pdf", "enough"}),
    ("flu SITE:Example.ORG.", {"home", "www", "fr", "port", "pdf", "enough"}),
    ("flu site:*.example.org", {"home", "www", "fr", "port", "pdf", "enough"}),
    ("flu site:www.example.org", {"www", "pdf", "enough"}),
    ("flu site:example.org:8080", {"port"}),
    ("flu site:gov.uk", {"uk"}),
    ("flu site:uk", {"uk"}),
    ("flu site:example", set()),
    ("flu site:www.example.org/en", {"www", "pdf"}),
    ("flu site:example.org/en/", {"www", "pdf"}),
    ("flu site:example.org/en/flu", {"www"}),
    ("site:nhs.example.gov.uk/vaccines", {"uk"}),
    ("flu -site:example.org", {"other", "uk"}),
    ("flu NOT site:example.org", {"other", "uk"}),
    ("flu (site:notexample.org OR site:gov.uk)", {"other", "uk"}),
    ("site:notexample.org OR site:gov.uk", {"other", "uk"}),
    ("flu -(site:example.org OR lang:und)", {"uk"}),
    ("(site:example.org type:pdf) OR (site:gov.uk after:2025)", {"pdf", "uk"}),
    # before: and after:
    ("flu before:2022", {"home"}),
    ("flu after:2024-12", {"other", "uk"}),
    ("flu after:2024-12-31", {"other", "uk"}),
    ("flu after:2025-01-01", {"uk"}),
    ("flu before:2024-12-31 after:2024", {"pdf", "enough"}),
    ("flu after:2024-02-29 before:2024-03", {"enough"}),
    ("flu -after:2022", {"home"}),
    ("after:2025", {"uk"}),
    ("before:9999-12-31 site:gov.uk", {"uk"}),
    # type:, lang:
    ("flu type:pdf", {"pdf"}),
    ("type:PDF", {"pdf"}),
    ("flu lang:fr", {"fr"}),
    ("flu lang:fr-CA", {"fr"}),
    ("flu lang:und", {"other"}),
    ("lang:fr", {"fr"}),
    # author:, published:, and page types
    ("author:doe", {"www", "uk"}),
    ('flu author:"zoe doe"', {"www"}),
    ("flu -author:doe", _FLU - {"www", "uk"}),
    ("type:article", {"www"}),
    ("flu (type:reference OR type:article)", {"www", "uk"}),
    ("published:2021", {"www"}),
    ("flu published:2023-05", {"uk"}),
    ("published:2023-05-31", {"uk"}),
    ("published:2023-06", set()),
    ("flu -published:2021", _FLU - {"www"}),
    # intitle:, inurl:
    ("intitle:vaccine", {"www"}),
    ("intitle:flu", {"www", "uk"}),
    ("flu -intitle:flu", _FLU - {"www", "uk"}),
    ('intitle:"flu jab"', {"uk"}),
    ("school intitle:flu", {"www"}),
    ("inurl:en/flu", {"www", "pdf", "other"}),
    ("flu inurl:GRIPPE", {"fr"}),
    ("flu -inurl:example.org", {"uk"}),
    # near:
    ("near:2(school water)", {"www", "pdf"}),
    ("near:1(water school)", {"pdf"}),
    ("near:9(water school)", {"www", "pdf", "other"}),
    ('"water school"~1', {"pdf"}),
    ("flu near:(school water) -type:pdf", {"www", "other"}),
    # changed:
    ("changed:yes", {"new"}),
    ("water changed:no", {"same"}),
    ("changed:2023", {"new"}),
    ("changed:2022", set()),
    ("prices -changed:yes", {"old", "same"}),
    # Words, phrases and what was there before stay as they are beside operators.
    ('"flu vaccine" site:example.org', {"home", "www"}),
    ("(title:flu OR title:leaflet) site:example.org", {"www", "pdf"}),
    ("flu -leaflet site:www.example.org type:pdf", set()),
    ("title:leaflet", {"pdf"}),
    ("url:grippe", {"fr"}),
    ("https://www.example.org/en/flu before:2023", {"www"}),
    ("https://www.example.org/en/flu before:2020", set()),
    # What cannot be parted cleanly is parted loosely.
    ("(flu site:example.org type:pdf", {"pdf"}),
    ("flu :) NOT site:example.org", {"other", "uk"}),
    ("flu :) NOT -site:gov.uk", {"uk"}),
    ("flu AND site:gov.uk", {"uk"}),
    # Small joints between two operators; curly quotes.
    ("site:notexample.org or site:gov.uk", {"other", "uk"}),
    ("flu site:example.org and not (lang:fr or type:html)", {"pdf"}),
    ("intitle:\u201cflu jab\u201d", {"uk"}),
    ("\u00abflu vaccine\u00bb site:example.org", {"home", "www"}),
    ("site:gov.uk AND flu AND after:2000", {"uk"}),
]


def test_each_query_finds_what_its_operators_leave(bed: Bed) -> None:
    ids = bed.fill(_CAPTURES.values())
    names = dict(zip(ids, _CAPTURES, strict=True))

    for query, wanted in _ASKED:
        answer = bed.ask(query, page_size=100)
        assert {names[hit.row.id] for hit in answer.hits} == wanted, query
        assert (answer.total, answer.exact) == (len(wanted), True), query
        pages = bed.ask(query, page_size=100, view=ResultKind.PAGES)
        assert {hit.row.url for hit in pages.hits} == {_CAPTURES[name].url for name in wanted}, query


def test_operators_leave_the_order_that_the_words_give(bed: Bed) -> None:
    bed.fill(_CAPTURES.values())
    everything = [hit.row.url for hit in bed.ask("flu vaccine", page_size=100).hits]

    confined = [hit.row.url for hit in bed.ask("flu site:example.org vaccine", page_size=100).hits]

    assert confined == [url for url in everything if "//example.org" in url or ".example.org" in url]
    assert len(confined) > 1


_REFUSED = [
    ("flu before:yesterday", "2023-05-31"),
    ("after:2023-13", "2023-05"),
    ("after:2023-02-30", "a day"),
    ("type:word", "html, other, pdf, text, article"),
    ("lang:english", "pt-BR"),
    ("changed:maybe", "yes, no"),
    ("near:5(water)", "near:5(water school)"),
    ("near:0(water school)", "1 to 100"),
    ("near:water", "near:5(water school)"),
    ("site:http://", "example.org"),
    ("like:abc", "number of a capture"),
    ("flu OR site:example.org", "cannot be joined"),
    ("-like:1", "like: stands by itself"),
    ("like:1 like:2", "one capture"),
    ("flu like:1", "cannot be combined"),
    (" ".join(["site:a"] * 33), "at most 32"),
    ("site: example.org flu", "site:example.org"),
    ("site:a.org OR site:b.org) flu", "unbalanced parentheses"),
    ("flu) -(site:a.org type:pdf", "unbalanced parentheses"),
    (f'intitle:"{"a " * 33}"', "at most 32 words"),
    (f"near:5({' '.join('abcdefghi')})", "at most 8 words"),
    ("near:5(\u6c34 \u5b66\u6821)", "two letters or more"),
]


def test_an_operator_that_cannot_be_meant_is_refused_with_what_is_right(bed: Bed) -> None:
    for query, told in _REFUSED:
        with pytest.raises(BadOperator, match=re.escape(told)):
            bed.ask(query)


@pytest.mark.parametrize(
    "query", ["10:30", "std::vector", "foo:bar", '"site:example.org"', "type::word", "before: noon"]
)
def test_what_is_no_operator_is_a_word(bed: Bed, query: str) -> None:
    bed.fill(
        [
            Capture(url="https://a.test/", text="It began at 10:30 with std::vector and foo:bar, before: noon."),
            Capture(url="https://b.test/", text="Write site:example.org or type::word."),
        ]
    )

    assert bed.ask(query).total == 1


def test_a_withdrawn_capture_decides_nothing(bed: Bed) -> None:
    _, middle, last = bed.fill(
        Capture(url="https://a.test/", text=text, at=_at(2020 + year))
        for year, text in enumerate(["price one", "price two", "price one"])
    )
    assert {hit.row.id for hit in bed.ask("changed:yes").hits} == {middle, last}

    bed.withdraw(snapshot_id=middle)

    assert bed.ask("changed:yes").total == 0
    assert [hit.row.id for hit in bed.ask("price changed:no").hits] == [last]


def test_captures_like_another_are_found_by_its_words(bed: Bed) -> None:
    words = "parrot cockatoo feather aviary perch"
    ids = bed.fill(
        [
            Capture(url="https://a.test/1", text=f"{words} one"),
            Capture(url="https://a.test/1", text=f"{words} two", at=_at(2026)),
            Capture(url="https://b.test/2", text=f"{words} elsewhere, with fewer of its own"),
            Capture(
                url="https://c.test/3", text="A cockatoo on a perch in its aviary, feather by feather.", language="fr"
            ),
            Capture(url="https://d.test/4", text="Nothing of it but budgets and taxes."),
        ]
    )

    assert bed.urls(f"like:{ids[0]}") == ["https://b.test/2", "https://c.test/3"]
    assert bed.urls(like=ids[0]) == ["https://b.test/2", "https://c.test/3"]
    assert bed.urls(f"like:{ids[0]} lang:fr") == ["https://c.test/3"]

    bed.withdraw(snapshot_id=ids[2])
    assert bed.urls(like=ids[0]) == ["https://c.test/3"]
    bed.withdraw(snapshot_id=ids[0])
    with pytest.raises(SnapshotNotFound):
        bed.ask(like=ids[0])


def test_a_corrected_query_keeps_its_operators(bed: Bed) -> None:
    bed.fill(_CAPTURES.values())

    assert bed.ask("leaflett type:pdf").did_you_mean == "leaflet type:pdf"


def test_what_pages_say_of_themselves_is_counted(bed: Bed) -> None:
    bed.fill(_CAPTURES.values())

    def counted(query: str) -> dict[str, list[tuple[str, int]]]:
        facets = bed.ask(query).facets
        return {name: [(one.value, one.count) for one in facets[name]] for name in ("pageType", "author", "published")}

    assert counted("flu") == {
        "pageType": [("article", 1), ("reference", 1)],
        "author": [("Jane Doe", 1), ("Zoë Doe", 1)],
        "published": [("2021", 1), ("2023", 1)],
    }
    assert counted("prices") == {"pageType": [], "author": [], "published": []}


_SCRIPTS = {
    "ja": Capture(url="https://ja.test/1", title="水の話", text="水道の学校で飲む", language="ja", author="王小明"),
    "drink": Capture(url="https://ja.test/2", title="飲み水", text="飲み水", language="ja"),
    "waterworks": Capture(url="https://ja.test/3", title="東京都の水道", text="東京都の水道", language="ja"),
    "ko": Capture(url="https://ko.test/", title="서울 학교", text="서울 학교 소식", language="ko", author="김민수"),
    "hi": Capture(url="https://hi.test/", title="कहानी", text="एक कहानी", language="hi", author="प्रेमचंद शर्मा"),
    "de": Capture(url="https://de.test/", title="Phone 水道", text="Rad", language="de", author="José Müller-Straße"),
}  # fmt: skip


def test_operators_on_words_hold_in_every_script(bed: Bed) -> None:
    names = dict(zip(bed.fill(_SCRIPTS.values()), _SCRIPTS, strict=True))

    for query, wanted in [
        ("author:王小明", {"ja"}),
        ("author:王", {"ja"}),
        ("author:小明", {"ja"}),
        ("author:明", {"ja"}),
        ("author:김민수", {"ko"}),
        ("author:शर्मा", {"hi"}),
        ('author:"प्रेमचंद शर्मा"', {"hi"}),
        ('author:"jose muller"', {"de"}),
        ("author:straße", {"de"}),
        ("intitle:水", {"ja", "drink", "waterworks", "de"}),
        ("intitle:水道", {"waterworks", "de"}),
        ('intitle:"東京都 の水道"', {"waterworks"}),
        ('intitle:"서울 학교"', {"ko"}),
        ('intitle:"phone 水"', {"de"}),
        ("near:5(水道 学校)", {"ja"}),
        ("near:5(学校 水道)", {"ja"}),
        ("near:1(水道 学校)", {"ja"}),
        ("near:1(東京都 水道)", {"waterworks"}),
        ("near:5(東京 学校)", set()),
    ]:
        found = bed.ask(query, page_size=100, similar=SimilarResults.SHOW)
        assert {names[hit.row.id] for hit in found.hits} == wanted, query


def test_a_title_is_read_in_its_own_language(bed: Bed) -> None:
    """In Romanian the stem of `hostile` is `host`: that is none of its forms in an English title."""
    bed.fill(
        [
            Capture(url="https://a.test/host", title="Host names", text="hostile words about something"),
            Capture(url="https://a.test/not", title="Not found yet", text="these notes are hostile"),
            Capture(url="https://a.test/notes", title="My note", text="a page with its own note"),
            Capture(url="https://a.test/ro", title="Hostile", text="hostile", language="ro"),
        ]
    )

    assert bed.urls("intitle:hostile") == ["https://a.test/ro"]
    assert set(bed.urls("site:a.test -intitle:notes")) == {
        "https://a.test/host",
        "https://a.test/not",
        "https://a.test/ro",
    }


def test_two_forms_of_one_word_are_not_near_each_other(bed: Bed) -> None:
    bed.fill([Capture(url="https://a.test/", text="Only one run here, by the water.")])

    assert bed.ask("near:5(run running)").total == 0
    assert bed.ask("near:5(run running water)").total == 1


def test_words_of_operators_are_no_words_beside_them(bed: Bed) -> None:
    words = "parrot cockatoo feather aviary"
    first, *_ = bed.fill(Capture(url=f"https://{name}.test/", title=f"{name} flu", text=words) for name in "abc")

    assert bed.urls("intitle:b", like=first, similar=SimilarResults.SHOW) == ["https://b.test/"]
    assert bed.urls(f"like:{first} near:3(c flu)", similar=SimilarResults.SHOW) == ["https://c.test/"]


def test_a_word_of_an_operator_is_not_corrected(bed: Bed) -> None:
    bed.fill([Capture(url="https://a.test/", title="Vaccine clinic", text="The flu vaccine clinic.")])

    assert (bed.ask("flu intitle:vacccine").did_you_mean, bed.ask("intitle:vacccine").did_you_mean) == (None, None)
    assert bed.ask("fluu linic intitle:vaccine").did_you_mean == "flu clinic intitle:vaccine"
    assert bed.ask("linic clinic").did_you_mean in (None, "clinic clinic")


def test_marks_without_a_letter_find_nothing(bed: Bed) -> None:
    bed.fill(_CAPTURES.values())

    assert bed.ask("\u0301").total == 0


def test_an_address_may_have_parentheses(bed: Bed) -> None:
    bed.fill(Capture(url=f"https://a.test/{path}", text="x") for path in ("Foo_(bar)", "Foo_bar"))

    assert bed.urls("inurl:Foo_(bar)") == ["https://a.test/Foo_(bar)"]


def test_noise_is_no_change(bed: Bed) -> None:
    ids = bed.add(
        Capture(url="https://a.test/", text=text, at=_at(2020 + year))
        for year, text in enumerate(["good page", "captcha please", "good page"])
    )
    with bed.database.write() as session:
        session.get_one(Snapshot, ids[1]).noise = "block_page"
    bed.drain()

    assert bed.ask("changed:yes").total == 0
    assert [hit.row.id for hit in bed.ask("changed:no").hits] == [ids[2]]
    assert {hit.row.id for hit in bed.ask("changed:yes", noise=True).hits} == {ids[1], ids[2]}


def test_a_capture_that_is_in_no_result_names_none(bed: Bed) -> None:
    words = "parrot cockatoo feather aviary perch"
    hidden, _ = bed.fill(
        [
            Capture(url="https://a.test/", text=words, noindex=True),
            Capture(url="https://b.test/", text=f"{words} elsewhere"),
        ]
    )

    for name in ("like", "similar_to"):
        with pytest.raises(SnapshotNotFound):
            bed.ask(None, **{name: hidden})


def test_pages_of_no_known_language_are_asked_for_as_the_facet_names_them(bed: Bed) -> None:
    bed.fill(_CAPTURES.values())
    facet = {one.value: one.count for one in bed.ask().facets["language"]}

    assert facet["und"] == 1
    for name, count in facet.items():
        assert bed.ask(language=name).total == bed.ask(f"lang:{name}").total == count


def test_a_total_is_not_exact_where_not_all_addresses_were_read(bed: Bed) -> None:
    bed.fill(Capture(url=f"https://a.test/zebra/{n}", text=f"page {n} of other words") for n in range(6))
    found = bed.ask("zebra")
    assert (found.total, found.exact) == (6, True)

    bed.search.named_addresses = 4

    found = bed.ask("ZEBRA")
    assert (found.total, found.exact) == (4, False)


_WRONG: list[dict[str, Any]] = [
    {"type": "HTML"}, {"type": "article"}, {"language": "EN"}, {"language": "english"}, {"status": "200"}, {"host": ""},
    {"host": "a" * 300}, {"like": 0}, {"like": 2**63}, {"similar_to": 2**63},
]  # fmt: skip


def test_a_filter_that_cannot_be_meant_is_refused(bed: Bed) -> None:
    for wrong in _WRONG:
        with pytest.raises(BadSearch):
            bed.ask(**wrong)


def test_where_not_all_can_be_looked_at_the_newest_are_shown(bed: Bed) -> None:
    bed.fill(Capture(url=f"https://a.test/en/{n}", text=f"flu {n}", at=_at(2020 + n)) for n in range(6))
    # Nothing may be read of the index, and two texts be looked at.
    bed.search.candidates, bed.search.checks = 0, 2

    for query in ("site:a.test/en", "inurl:/en/"):
        found = bed.ask(query)
        assert [hit.row.captured_at.year for hit in found.hits] == [2025, 2024], query
        assert (found.total, found.exact) == (2, False), query


def test_a_page_is_not_like_itself_whatever_is_read(bed: Bed) -> None:
    words = "parrot cockatoo feather aviary perch"
    long = f"{words} {' '.join(f'filler{n}' for n in range(300))}"
    first, _, other = bed.fill(
        [
            Capture(url="https://a.test/", text=long),
            Capture(url="https://a.test/", text=words, at=_at(2026)),
            Capture(url="https://b.test/", text=f"{words} elsewhere, and with more of its own"),
        ]
    )
    assert [hit.row.id for hit in bed.ask(like=first).hits] == [other]

    # The newer capture of the page itself is the one that has most of the words.
    bed.search.exact_documents = 1

    assert bed.ask(like=first, duplicates=True).total == 0
