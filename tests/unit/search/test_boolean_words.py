"""A word in a Boolean query means what it means in a plain one, and both are ranked alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.db.schema import make_fresh
from holdfast.search.matching import MatchMode
from holdfast.search.query import plain
from holdfast.search.query_terms import query_terms
from tests.search_bed import Bed, Capture, open_bed, pages

_SITE = [
    Capture(url="https://a.test/cats", title="Pets", text="Cats sleep all day near the harbour."),
    Capture(url="https://a.test/education", title="Education", text="Schools near the harbour open in autumn."),
    Capture(url="https://a.test/scarce", title="Water", text="A cat finds water scarce, and so do dogs."),
    Capture(url="https://a.test/dogs", title="Dogs", text="Dogs bark in the education office."),
    Capture(url="https://a.test/fr", title="Écoles", language="fr", text="Les élèves marchent vers l’école."),
    Capture(url="https://a.test/cat/food", title="Meals", text="What to put on the plate."),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """One small site for all tests that only ask."""
    home = tmp_path_factory.mktemp("site")
    url = f"sqlite:///{home / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, home) as opened:
        opened.fill(_SITE)
        yield opened


@pytest.mark.parametrize("kept", ["cat", "dogs", "harbour", "near the harbour", "élèves", "education", '"cat finds"'])
@pytest.mark.parametrize("excluded", ["dog", "car", "cat", "zebra", "ecole", '"finds water"', "water scarce"])
def test_excluding_a_word_removes_the_pages_it_finds(site: Bed, kept: str, excluded: str) -> None:
    minus = f"-{excluded}" if " " not in excluded or '"' in excluded else f"NOT ({excluded})"

    found, gone = site.ask(f"{kept} {minus}"), site.ask(excluded)

    # Only a plain query is answered with parts of words where no page has the words.
    whole = {hit.row.url for hit in gone.hits} if gone.mode is MatchMode.FTS else set()
    assert {hit.row.url for hit in found.hits} == set(site.urls(kept)) - whole
    assert found.mode is MatchMode.BOOLEAN


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("cat AND harbour", "cat harbour"),
        ("cats -zebra", "cats"),
        ("text:cats", "cats"),
        ("élèves AND école", "élèves école"),
        ('"cat finds" AND water', '"cat finds" water'),
        ("dogs OR dog", "dogs"),
    ],
)
def test_boolean_words_find_and_rank_like_plain_words(site: Bed, query: str, plain: str) -> None:
    assert site.urls(query) == site.urls(plain) != []


def test_boolean_or_finds_the_pages_of_both_words(site: Bed) -> None:
    assert set(site.urls("cat OR zebraa")) == set(site.urls("cat"))
    assert set(site.urls("cat OR school")) == {*site.urls("cat"), *site.urls("school")}
    assert set(site.urls("(cat OR school) -harbour")) == {"https://a.test/scarce", "https://a.test/cat/food"}
    assert set(site.urls("title:education OR dogs")) == {f"https://a.test/{n}" for n in ("education", "dogs", "scarce")}
    assert set(site.urls("harbour -title:duca")) == {"https://a.test/cats"}
    assert set(site.urls("harbour NOT (dogs OR school)")) == {"https://a.test/cats"}


def test_excluded_words_alone_leave_all_other_pages(site: Bed) -> None:
    everything = set(site.urls())

    assert set(site.urls("NOT cat AND NOT dog")) == everything - set(site.urls("cat")) - set(site.urls("dog"))


@pytest.mark.parametrize("operators", ["site:a.test", "lang:en", "after:2020"])
@pytest.mark.parametrize("excluded", ["cats", "title:educ"])
def test_one_excluded_word_beside_an_operator_is_excluded(site: Bed, operators: str, excluded: str) -> None:
    without = set(site.urls(f"{operators} -{excluded}"))

    assert without == set(site.urls(operators)) - set(site.urls(excluded))
    assert without


def test_boolean_words_are_highlighted_in_all_their_forms(site: Bed) -> None:
    [hit] = site.ask("cat harbour -zebra").hits

    assert [piece.text for piece in hit.passages[0] if piece.hit] == ["Cats", "harbour"]


@pytest.mark.parametrize(
    ("query", "evidence"),
    [("cat", 1), ("cat food", 1), ("cat food bowl", 2), ("pg_replication_origin_session_progress()", 1),
     ("one two three four five six seven", 4), ('"cat food"', 1),
     ("\u732b", 1), ("\u732b\u306e\u98df\u3079\u7269", 1), ("\u732b" * 30, 4)],
)  # fmt: skip
def test_text_counts_more_the_more_words_a_query_has(query: str, evidence: float) -> None:
    assert query_terms(plain(query), query).evidence == evidence


@pytest.mark.parametrize(("q", "found"), [("c* title:page", [1]), ("* title:page", []), ("ca* title:page", [2])])
def test_star_is_a_prefix_only_after_two_letters(bed: Bed, q: str, found: list[int]) -> None:
    bed.fill(pages(["vitamin c", "cats"]))

    assert [int(url[-1]) for url in bed.urls(q)] == found
