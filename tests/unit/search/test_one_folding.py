"""Documents and queries are folded and cut by the same functions: what a page shows finds it, alone and in quotes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from holdfast.db.schema import make_fresh
from holdfast.parse.text import words_of
from holdfast.search.analysis import LANGUAGES, prepared, stem, stems
from tests.search_bed import Bed, Capture, open_bed

_TEXTS = {
    "fr": "Un filtre de 10µm à 25º, et Mªluisa le №5 ou le Ⅻ.",
    "es": "La 1ª edición mide 5 µm.",
    "yo": "A ń kọ́ ẹ̀kọ́ àti ọ̀rọ̀ ní ilé.",
    "en-el": "The sign says ΛΕΩΦΟΡΟΣ and x̄ at ǧ.",
    "ja": "平成30年度の東京TV番組と香水。ｶﾞｲﾄﾞを見る。次第3回大会",
    "zh": "手机，电脑。键盘和iPhone",
    "ko": "대한 민국의 물때 표는 봄마다 나온다.",
    "th": "ภาษาไทยและ2024 ปี",
    "en": "Call sqlite3_open_v2 or std::vector in C++, see .htaccess and -DSQLITE_OMIT_TEMPDB.",
    "python": "Override __init__ and _private in trailing_ names.",
    "others": "Init scripts are private here; vector graphics open with vitamin C and a trailing name.",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A page for each text."""
    home = tmp_path_factory.mktemp("site")
    url = f"sqlite:///{home / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, home) as opened:
        opened.fill(
            Capture(url=f"https://a.test/{name}", text=text, language=name[:2]) for name, text in _TEXTS.items()
        )
        yield opened


@pytest.mark.parametrize(
    ("query", "page"),
    [
        *((word, "fr") for word in ("10µm", "10μm", "25º", "Mªluisa", "№5", "Ⅻ")),
        *((word, "es") for word in ("1ª edición", "5 µm", "mide")),
        *((word, "yo") for word in ("ẹ̀kọ́", "ọ̀rọ̀", "kọ́")),
        *((word, "en-el") for word in ("ΛΕΩΦΟΡΟΣ", "λεωφόρος", "ǧ")),
        *((word, "ja") for word in ("平成30年度", "東京TV番組", "香水", "水", "ｶﾞｲﾄﾞ", "ガイド", "第3回", "香水。ｶﾞｲﾄﾞ")),
        *((word, "zh") for word in ("手机，电脑", "手机。电脑"[:2], "电脑。键盘", "键盘和iPhone", "盘和iphone")),
        *((word, "ko") for word in ("대한 민국", "물때 표는 봄마다", "봄마다")),
        *((word, "th") for word in ("ภาษาไทยและ2024", "ไทย")),
        *((word, "en") for word in ("-DSQLITE_OMIT_TEMPDB", "sqlite3_open_v2", "std::vector", "C++", ".htaccess")),
        *((word, "python") for word in ("_private", "__init__", "trailing_")),
    ],
)
def test_text_of_a_page_finds_it_alone_and_in_quotes(site: Bed, query: str, page: str) -> None:
    assert site.urls(query)[:1] == [f"https://a.test/{page}"]
    assert site.urls(f'"{query}"')[:1] == [f"https://a.test/{page}"]


@pytest.mark.parametrize("query", ['"한민"', '"机电"', '"민국 물때"', '"京番"'])
def test_quoted_letters_of_two_words_are_not_one_word(site: Bed, query: str) -> None:
    assert site.urls(query) == []


@pytest.mark.parametrize("language", ["en", "fr", "xx"])
def test_every_letter_is_folded_alike_in_documents_and_queries(language: str) -> None:
    letters = [
        chr(code) for code in range(0x80, sys.maxunicode) if chr(code).isalnum() and not 0x1B00 <= code < 0x1B80
    ][::7]

    differ = [
        letter
        for letter in letters
        for word in (f"a{letter}b",)
        if set(stems(word, language)) != {kept for one in words_of(word) for kept in stems(one, language)}
    ]
    assert differ == []
    assert language in LANGUAGES
    assert stem("Ünïcode".lower(), "xx") == "unicode"
    assert prepared("İstanbul") == "istanbul"


def test_phrases_do_not_reach_from_the_title_into_the_text(bed: Bed) -> None:
    bed.fill([Capture(url="https://a.test/", title="Final Word", text="Begin here. MemoryError and IndexError")])

    assert bed.urls('"word begin"') == bed.urls('"error index"') == []
    assert bed.urls('"final word"') == bed.urls('"memory error"') == ["https://a.test/"]
