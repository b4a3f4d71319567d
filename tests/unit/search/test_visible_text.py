"""Search of all visible text: main content first, the rest of a page at a lower weight."""

from __future__ import annotations

import pytest

from holdfast.search.matching import MatchMode
from tests.search_bed import Bed, Capture, pages

_PROSE = "The harbour office publishes the tide tables of the coast every spring for fishers and ferries. " * 3


@pytest.fixture
def site(bed: Bed) -> Bed:
    bed.fill(
        [
            Capture(url="https://a.test/main", title="Moorings", text=f"{_PROSE}Moorings are let by the year."),
            Capture(
                url="https://a.test/rest",
                title="Ferries",
                text="Ferries leave at noon from the old quay and return with the evening tide, except on feast days.",
                rest="Moorings and lighthouses\nEntrée des artistes\nQuayside café\nC++ and strlen(3)",
            ),
        ]
    )
    return bed


@pytest.mark.parametrize(
    "query",
    [
        *("lighthouses", "ferries lighthouse", '"moorings and lighthouses"', "near:3(moorings lighthouses)"),
        *("light*", "text:lighthouses", "lighthouses AND ferries", "lighthouses -zebra", "lighthouse OR zebra"),
        *('"entrée"', "quayside cafe", "Quaysude", "C++", "strlen(3)", "where is the lighthouse zebra"),
    ],
)
def test_rest_of_a_page_is_found(site: Bed, query: str) -> None:
    assert site.urls(query) == ["https://a.test/rest"]


def test_main_content_ranks_before_the_rest(site: Bed) -> None:
    assert site.urls("moorings") == ["https://a.test/main", "https://a.test/rest"]


def test_excluded_word_of_the_rest_excludes_its_page(site: Bed) -> None:
    assert site.urls("moorings -lighthouses") == ["https://a.test/main"]


def test_passage_comes_from_the_rest_only_where_main_lacks_the_words(site: Bed) -> None:
    def passage(query: str) -> str:
        [hit] = site.ask(query).hits[-1:]
        return "".join(piece.text for piece in hit.passages[0])

    assert "Moorings and lighthouses" in passage("lighthouses")
    assert "Ferries leave at noon" in passage("ferries noon")


def test_single_excluded_word_is_searched(bed: Bed) -> None:
    bed.fill([Capture(url="https://a.test/", title="Options", text="Compile with -DSQLITE_OMIT_TEMPDB to save room.")])

    assert bed.urls("-DSQLITE_OMIT_TEMPDB") == ["https://a.test/"]


def test_exact_form_ranks_before_other_words_of_its_stem(bed: Bed) -> None:
    others = [Capture(url=f"https://a.test/{n}", title=f"{n}", text=f"Initial values {n}. " * 9) for n in range(30)]
    bed.fill([*others, Capture(url="https://a.test/exact", title="Names", text=f"{_PROSE * 9}Write your initials.")])

    assert bed.urls("initials")[0] == "https://a.test/exact"


def test_heading_of_a_sentence_ranks_first_with_its_short_words(bed: Bed) -> None:
    other = "To rewrite history of a commit is a way; a single line is not. Rewriting commits of a single day. " * 4
    bed.fill(
        [
            *(Capture(url=f"https://a.test/{n}", title=f"{n}", text=f"{other} {n}") for n in range(5)),
            Capture(url="https://a.test/right", title="Rewriting a single commit", text=_PROSE),
        ]
    )

    assert bed.urls("Rewriting a single commit")[0] == "https://a.test/right"


def test_small_joints_in_a_sentence_are_words(bed: Bed) -> None:
    bed.fill(
        [Capture(url="https://a.test/", title="Compare", text="Compares files in the working tree and the index.")]
    )

    found = bed.ask("files in the working tree or the index")
    assert (found.mode, found.total) == (MatchMode.FTS, 1)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        *(("wordy*", {1, 2, 3}), ("wordy* -wordy7*", {1, 2}), ("NOT wordy*", {4, 5, 6})),
        *(("pg_ls*", {4}), ("東京都*", {6}), ("text:京*", {6})),
    ],
)
def test_prefix_finds_every_word_that_starts_with_it(bed: Bed, query: str, found: set[int]) -> None:
    frequent, others = (" ".join(f"{word}{n}" for n in range(100, 700)) for word in ("wordy", "other"))
    bed.fill(
        pages(
            [
                frequent,
                f"{frequent} {others}",
                "text wordy777",
                "text of pg_ls_dir",
                "text for lsof",
                "これは東京都です",
            ]
        )
    )

    answer = bed.ask(query)

    assert {int(hit.row.url.rpartition("/")[2]) for hit in answer.hits} == found
    assert answer.exact


@pytest.mark.parametrize("query", ["command not found", "COMMAND NOT FOUND", "is not null", "IS NOT NULL"])
def test_message_with_not_finds_the_pages_that_have_it(bed: Bed, query: str) -> None:
    bed.fill(pages(["The shell says: command not found.", "Each command is short.", "Where x IS NOT NULL, stop."]))

    assert [hit.row.url[-1] for hit in bed.ask(query).hits] == ["1" if "ound" in query.lower() else "3"]


@pytest.mark.parametrize(
    "query", ["平成30年度", "30年", "東京TV番組", "手机iPhone", "ภาษาไทยและ2024", '"平成30年"', "intitle:平成30年度"]
)
def test_run_with_digits_or_latin_letters_finds_its_page(bed: Bed, query: str) -> None:
    text = "平成30年度の東京TV番組 手机iPhone ภาษาไทยและ2024"
    bed.fill(
        [
            Capture(url="https://a.test/", title="平成30年度", text=text),
            Capture(url="https://a.test/2", text="平成31年"),
        ]
    )

    assert [hit.row.url for hit in bed.ask(query).hits] == ["https://a.test/"]


@pytest.mark.parametrize(
    "query",
    ["潮汐表の発行", "潮汐表はいつ発行されますか", "潮汐表 灯台", "조석표 발행 시간", "조석표가", "海岸潮汐表出版时间"],
)
def test_question_in_an_unspaced_script_finds_pages_with_some_of_it(bed: Bed, query: str) -> None:
    texts = ["海岸の潮汐表を発行します。漁師と渡船の。", "조석표를 봄마다 발행합니다", "The harbour office."]
    bed.fill(pages(texts))

    found = bed.ask(query)

    assert [hit.row.url[-1] for hit in found.hits] == ["2" if "조" in query else "1"]
    assert found.mode is MatchMode.SOME_WORDS
    assert any(piece.hit for piece in found.hits[0].passages[0])


@pytest.mark.parametrize("query", ["می\u200cخواهم", "کتاب\u200cها", "کتابها", "क्\u200dषमता"])
def test_word_with_a_joiner_is_found(bed: Bed, query: str) -> None:
    bed.fill(pages(["این کتاب\u200cها را می\u200cخواهم क्\u200dषमता"]))

    assert bed.ask(query).total == 1


def test_last_word_of_a_very_long_page_is_found(bed: Bed) -> None:
    bed.fill([Capture(url="https://a.test/", title="Long", text="tide\n" * 420_000 + "zymurgy", rest="x\n" * 9)])

    [hit] = bed.ask("zymurgy").hits
    assert "zymurgy" in "".join(piece.text for piece in hit.passages[0])


def test_prefix_of_one_letter_is_that_word(bed: Bed) -> None:
    bed.fill(pages(["text of the letter v", "text of a vaccine"]))

    assert bed.urls("v*") == bed.urls("v") == ["https://example.org/1"]
