"""Forms of words: exact before folded, compounds whole and in parts, eighteen languages, unspaced scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.db.schema import make_fresh
from holdfast.search.analysis import (
    LANGUAGES,
    compound,
    compounds_in,
    language_field,
    prepared,
    query_pairs,
    stems,
    words_of_path,
)
from holdfast.search.near_duplicates import SimilarResults
from tests.search_bed import Bed, Capture, open_bed

_FILLER = "Words that stand on every page of this small site so that each is as long as the next."
# Two forms of one word, and another word that a careless fold would take for it or None.
_FAMILIES = {
    "ar": ("المدرسة", "مدرسة"), "da": ("skolen", "skoler"), "de": ("übungen", "übung"), "el": ("σχολεία", "σχολείο"),
    "en": ("schools", "school"), "es": ("canciones", "canción"), "fi": ("kirjastossa", "kirjastot"),
    "fr": ("vaccinées", "vaccin"), "hu": ("könyvek", "könyvben"), "it": ("scuole", "scuola"),
    "nl": ("huizen", "huis"), "no": ("skoler", "skolen"), "pt": ("escolas", "escola"), "ro": ("cărți", "cărțile"),
    "ru": ("школах", "школа"), "sv": ("böckerna", "böcker"), "ta": ("பள்ளிகள்", "பள்ளி"), "tr": ("şehirler", "şehirde"),
}  # fmt: skip


def _page(name: str, text: str, language: str | None = "en", title: str | None = None) -> Capture:
    return Capture(url=f"https://forms.test/{name}", text=f"{_FILLER} {text} {name}.", title=title, language=language)


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """Pages that differ in the form of one word."""
    home = tmp_path_factory.mktemp("forms")
    url = f"sqlite:///{home / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, home) as opened:
        opened.fill([
            *(_page(f"lang-{tag}", pair[0], tag) for tag, pair in _FAMILIES.items()),
            _page("c-parts", "The tmpdir is listed by ls and by pg tools."),
            _page("c-phrase", "Type pg ls tmpdir here."),
            _page("c-whole", "Call pg_ls_tmpdir() here."),
            _page("camel", "It raises MemoryError when it ends."),
            _page("camel-apart", "An error of the memory comes at its end."),
            _page("general", "General advice for all.", title="General advice"),
            _page("generale", "L'assemblée générale de la ville.", "fr"),
            _page("schon", "Das ist schon lange her.", "de"),
            _page("schoen", "Das ist schön gemacht.", "de"),
            _page("ja", "東京都の図書館は便利です。", "ja", title="都立図書館案内"),
            _page("ja-other", "京の都は東にある。", "ja"),
            _page("tr-dotted", "Trenler İZMİR yolunda durur.", "tr"),
            _page("th", "ห้องสมุดแห่งชาติเปิดทุกวัน", "th"),
            _page("hi", "राष्ट्रीय पुस्तकालय खुला है", "hi"),
            _page("ko", "국립중앙도서관은 매일 엽니다", "ko"),
            _page("ru-other", "Музей открыт каждый день.", "ru"),
        ])  # fmt: skip
        yield opened


def _names(forms: Bed, typed: str) -> list[str]:
    # Pages that differ in one word are near-duplicates.
    return [url.rpartition("/")[2] for url in forms.urls(typed, similar=SimilarResults.SHOW)]


@pytest.mark.parametrize("language", sorted(_FAMILIES))
def test_another_form_of_a_word_is_found_in_every_language_that_is_stemmed(forms: Bed, language: str) -> None:
    assert f"lang-{language}" in _names(forms, _FAMILIES[language][1])


def test_every_language_that_is_stemmed_has_its_field() -> None:
    assert set(_FAMILIES) == set(LANGUAGES) - {"xx"}
    assert [language_field(tag) for tag in ("nb-NO", "nn", "pt-BR", "PL", "", None)] == ["no", "no", "pt", *["xx"] * 3]


def test_a_compound_is_found_whole_then_as_a_phrase_then_by_its_parts(forms: Bed) -> None:
    assert _names(forms, "pg_ls_tmpdir") == ["c-whole", "c-phrase", "c-parts"]


@pytest.mark.parametrize("typed", ["MemoryError", "memoryerror", "memory error"])
def test_capitals_part_a_compound_too(forms: Bed, typed: str) -> None:
    assert _names(forms, typed)[0] == "camel"


def test_a_part_of_a_compound_finds_it(forms: Bed) -> None:
    assert set(_names(forms, "memory")) == {"camel", "camel-apart"}
    assert {"c-whole", "c-phrase", "c-parts"} == set(_names(forms, "tmpdir"))


@pytest.mark.parametrize(("typed", "first", "behind"), [
    ("générale", "generale", "general"), ("schön", "schoen", "schon"), ("schon", "schon", "schoen"),
])  # fmt: skip
def test_the_form_that_was_typed_comes_before_the_folded_one(forms: Bed, typed: str, first: str, behind: str) -> None:
    found = _names(forms, typed)

    assert found[0] == first
    assert behind not in found or found.index(behind) > 0


@pytest.mark.parametrize(("typed", "names"), [
    ('"schön"', {"schoen"}), ('"schon"', {"schon", "schoen"}), ("schön", {"schon", "schoen"}),
    ('"schön gemacht"', {"schoen"}), ('"assemblee generale"', {"generale"}), ('"assemblée generale"', {"generale"}),
])  # fmt: skip
def test_accents_in_quotes_are_required_and_those_that_were_not_typed_are_not(
    forms: Bed, typed: str, names: set[str]
) -> None:
    assert set(_names(forms, typed)) == names


@pytest.mark.parametrize(("typed", "names"), [
    ("東京都", ["ja"]), ("図書館", ["ja"]), ("ห้องสมุด", ["th"]), ("ชาติ", ["th"]), ("पुस्तकालय", ["hi"]),
    ("title:図書館案", ["ja"]), ("title:図書", ["ja"]), ("도서관", ["ko"]),
    ("музей", ["ru-other"]), ("東", ["ja", "ja-other"]),
])  # fmt: skip
def test_words_of_unspaced_and_other_scripts_are_found_as_they_stand(forms: Bed, typed: str, names: list[str]) -> None:
    assert sorted(_names(forms, typed)) == sorted(names)


def test_all_words_come_before_some_and_some_only_where_no_page_has_all(forms: Bed) -> None:
    assert _names(forms, "memory tmpdir zzzunheard")[:1] != []
    assert forms.ask("memory error").mode.value == "relevance_fts"
    assert forms.ask("assemblée tmpdir").mode.value == "relevance_some_words"


@pytest.mark.parametrize(("word", "parts"), [
    ("pg_ls_dir", ("pg", "ls", "dir")), ("well-known", ("well", "known")), ("os.path", ("os", "path")),
    ("TCP/IP", ("TCP", "IP")), ("XMLHttpRequest", ("XML", "Http", "Request")), ("iPhone", ("i", "Phone")),
    ("Word", ()), ("NATO", ()), ("word", ()), ("std::vector", ("std", "vector")), ("sha256", ()),
])  # fmt: skip
def test_compounds_are_parted_at_their_joints_and_capitals(word: str, parts: tuple[str, ...]) -> None:
    assert compound(word) == parts


def test_compounds_are_taken_out_of_what_stands_around_them() -> None:
    text = "Call (pg_ls_tmpdir()), or os.path.join(a, b). A well-known MemoryError; NATO. Plain words."

    assert compounds_in(text) == ["pg_ls_tmpdir", "os.path.join", "well-known", "MemoryError"]


def test_a_path_is_words_without_the_ending_of_a_file() -> None:
    assert stems(words_of_path("https://x.test/docs/asyncio-taskGroups.html?x=1#y"), "en")[:3] == [
        "doc",
        "asyncio",
        "taskgroup",
    ]
    assert "東京" in stems(words_of_path("https://x.test/%E6%9D%B1%E4%BA%AC"), "xx")


def test_pairs_of_letters_make_a_phrase_of_the_text() -> None:
    asked = query_pairs(["東", "京", "都"])
    kept = prepared("は東京都の").split()

    assert asked == ["東京", "京都"]
    assert [kept[at : at + 2] for at in range(len(kept)) if kept[at : at + 2] == asked] == [asked]


@given(st.text(max_size=200))
def test_any_text_can_be_prepared_and_taken_apart(text: str) -> None:
    assert isinstance(prepared(text), str)
    # Of several parts, or with a sign: `$HOME`, `C++`, `%PATH%`, `_x`.
    assert all(compound(word) or not word.isalnum() for word in compounds_in(text))
    assert all(isinstance(stems(text, language), list) for language in LANGUAGES)


def test_a_page_named_by_a_word_comes_before_lists_of_links_in_scripts_without_spaces(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    lists = [
        Capture(url=f"https://cjk.test/list{n}", text=f"京都 大阪 奈良 {n}. {_FILLER}", title=f"一覧{n}", language="ja",
                links=("https://cjk.test/kyoto",))
        for n in range(6)
    ]  # fmt: skip
    page = Capture(url="https://cjk.test/kyoto", text=f"京都の案内です。{_FILLER * 3}", title="京都", language="ja")
    with open_bed(url, tmp_path / "home") as bed:
        bed.fill([*lists, page])

        found = bed.ask("京都", similar=SimilarResults.SHOW)

    assert found.hits[0].row.url == page.url
    assert len(found.hits) == 7


def test_accents_that_were_typed_outweigh_titles_and_links_of_another_word(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    general = [
        Capture(url=f"https://a.test/general-{n}", title="General", text=f"General advice, general rules. {_FILLER}",
                links=("https://a.test/general-0",))
        for n in range(8)
    ]  # fmt: skip
    page = Capture(url="https://a.test/fr", title="Réunion", language="fr", text=f"L'assemblée générale. {_FILLER * 4}")
    with open_bed(url, tmp_path / "home") as bed:
        bed.fill([*general, page])

        assert bed.ask("générale", similar=SimilarResults.SHOW).hits[0].row.url == page.url


def test_capital_i_with_a_dot_is_an_i(forms: Bed) -> None:
    assert _names(forms, "izmir") == _names(forms, "İzmir") == _names(forms, "İZMİR") == ["tr-dotted"]
