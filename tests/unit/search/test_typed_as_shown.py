"""What readers copy from a page or type as a name finds that page: signs, addresses, questions, wrapped lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.db.schema import make_fresh
from holdfast.search.matching import MatchMode
from tests.search_bed import Bed, Capture, open_bed

_SITE = [
    Capture(url="https://a.test/options", title="c", text="The option -c reads a file. Property home include d."),
    Capture(url="https://a.test/cpp", title="Languages", text="Parts of it were written in C++ long ago."),
    Capture(url="https://a.test/titled", title="C# reference", text="All parts of the language."),
    Capture(url="https://a.test/sharp", title="History", text="Its makers designed C# later."),
    Capture(url="https://a.test/flu", title="Health", text="A flu vaccine is given in every clinic for children."),
    Capture(url="https://a.test/fishing", title="Sport", text="La pêche near a hospital is safe."),
    Capture(url="https://a.test/shown", title="Links", text="See https://example.org/other for the rest."),
    Capture(url="https://a.test/home", title="Shells", text="The directory is named by $HOME in most shells."),
    Capture(url="https://a.test/path", title="Variables", text="Programs are found by %PATH% on Windows."),
    Capture(url="https://a.test/peel", title="Revisions", text="A tag with ^{tree} names the tree below."),
    Capture(url="https://a.test/arrow", title="Pointers", text="It calls node->next() until the end of the list."),
    Capture(url="https://a.test/path-of", title="Roads", text="The path by the node leads to the next tree."),
    Capture(url="https://a.test/comite", language="fr", title="Conseil", text="Le comité se réunit le lundi."),
    Capture(url="https://a.test/commit", title="History", text="Every commit has a message of its own."),
    Capture(url="https://a.test/labs", title="Budgets", text="Money for R&D grew every year."),
    Capture(url="https://a.test/r", title="Letters", text="Letters r and d stand here, d and r again."),
    Capture(url="https://a.test/python", title="Classes", text="Write @property above the method."),
    Capture(url="https://a.test/download", title="Sources", text="See https://www2.other.test/cgi/src for the code."),
    Capture(url="https://a.test/mail", title="Contact", text="Write to press.office@harbour.test or call."),
    Capture(
        url="https://a.test/press", title="Hosts", text="The press.office, harbour.test, press.office and harbour.test"
    ),
    Capture(url="https://a.test/create", title="Tables", text="Create a virtual table with this statement."),
    Capture(url="https://a.test/long", title="Notes", text="How a virtual table works. Where you can create one."),
    Capture(url="https://a.test/ja", language="ja", title="設定", text="いろいろな オプションがあります"),
    Capture(url="https://a.test/ja-lines", language="ja", title="導入", text="制限されている\n\x03ディレクトリ"),
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


@pytest.mark.parametrize(
    ("query", "page"),
    [
        *(("C++", "cpp"), ("$HOME", "home"), ("@property", "python"), ("written in C++", "cpp")),
        *(("%PATH%", "path"), ("^{tree}", "peel")),
    ],
)
def test_name_with_signs_finds_only_pages_that_show_it(site: Bed, query: str, page: str) -> None:
    assert site.urls(query) == [f"https://a.test/{page}"]


def test_name_with_signs_finds_its_word_when_no_page_shows_it(site: Bed) -> None:
    assert site.urls("#virtual") == site.urls("virtual") != []


def test_name_with_signs_finds_page_that_shows_it_in_its_title_alone(site: Bed) -> None:
    assert sorted(site.urls("C#")) == ["https://a.test/sharp", "https://a.test/titled"]


@pytest.mark.parametrize("query", ["#virtual AND statement", "#virtual OR nowhere", "statement -#virtual"])
def test_name_with_signs_is_its_word_in_a_boolean_query(site: Bed, query: str) -> None:
    assert site.urls(query) == site.urls(query.replace("#", ""))


def test_name_with_ampersand_comes_before_its_letters(site: Bed) -> None:
    assert site.urls("R&D") == ["https://a.test/labs", "https://a.test/r"]


def test_mail_address_comes_before_its_words(site: Bed) -> None:
    assert site.urls("press.office@harbour.test") == ["https://a.test/mail", "https://a.test/press"]


def test_member_behind_an_arrow_comes_before_its_words(site: Bed) -> None:
    assert site.urls("node->next()") == ["https://a.test/arrow", "https://a.test/path-of"]


def test_word_is_corrected_although_a_foreign_word_has_its_stem(site: Bed) -> None:
    found = site.ask("comit message")

    assert (found.hits[0].row.url, found.did_you_mean) == ("https://a.test/commit", "commit message")


def test_address_in_a_text_is_found_when_no_capture_has_it(site: Bed) -> None:
    assert site.urls("https://www2.other.test/cgi/src") == ["https://a.test/download"]
    assert site.ask("https://gone.other.test/cgi").mode is MatchMode.URL


@pytest.mark.parametrize("query", ["https://example.org/ab", "https://other.org/example"])
def test_address_is_found_in_a_text_only_with_its_words_side_by_side(site: Bed, query: str) -> None:
    found = site.ask(query)

    assert (found.total, found.mode) == (0, MatchMode.URL)


@pytest.mark.parametrize("query", ["url:https://example.org/other", "http://www.example.org/other"])
def test_address_in_a_text_is_found_in_every_form_of_the_query(site: Bed, query: str) -> None:
    assert site.urls(query) == ["https://a.test/shown"]


def test_small_words_are_not_required_when_there_are_others(site: Bed) -> None:
    found = site.urls("how can you create a virtual table")

    assert sorted(found) == ["https://a.test/create", "https://a.test/long"]
    assert site.urls("how where") == ["https://a.test/long"]


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize(
    ("first", "second", "page"), [("いろいろな", "オプション", "ja"), ("制限されている", "ディレクトリ", "ja-lines")]
)
def test_quote_matches_wide_letters_with_and_without_blanks(
    site: Bed, first: str, second: str, page: str, blank: str
) -> None:
    assert site.urls(f'"{first}{blank}{second}"') == [f"https://a.test/{page}"]


def test_quoted_word_is_not_corrected(site: Bed) -> None:
    assert site.urls("statment") == ["https://a.test/create"]
    assert site.urls('"statment"') == []


def test_word_beside_a_quote_is_corrected(site: Bed) -> None:
    found = site.ask('"flu vaccine" clinc')

    assert ([hit.row.url for hit in found.hits], found.did_you_mean) == (["https://a.test/flu"], '"flu vaccine" clinic')
    assert site.urls('"peche" hospitl') == ["https://a.test/fishing"]
    assert site.urls('"péche" hospitl') == []
