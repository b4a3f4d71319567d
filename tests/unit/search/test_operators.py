"""Parting a query into operators and words: by table, and that no string breaks it or keeps it busy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.clauses import MAX_OPERATORS, Parted, part
from holdfast.search.operators import (
    KINDS,
    OPERATORS,
    AllOf,
    AnyOf,
    Condition,
    InLanguage,
    InTitle,
    InUrl,
    NearWords,
    OfType,
    OnSite,
    Without,
    as_markdown,
    as_text,
    syntax_record,
)
from holdfast.search.query import Intent, parse_query
from holdfast.search.segments import TYPE_NAMES

_FR, _EN, _PDF = InLanguage("fr"), InLanguage("en"), OfType("pdf")


@pytest.mark.parametrize(
    ("text", "rest", "conditions"),
    [
        ("flu vaccine", "flu vaccine", ()),
        ("lang:fr flu", "flu", (_FR,)),
        ("flu lang:fr vaccine", "flu vaccine", (_FR,)),
        ('flu "lang:fr" x', 'flu "lang:fr" x', ()),
        ("flu AND lang:fr AND (a OR b)", "flu (a OR b)", (_FR,)),
        ("a AND b lang:fr", "a AND b", (_FR,)),
        ("(a OR b) -c lang:fr", "(a OR b) -c", (_FR,)),
        ('title:"a b" lang:fr', 'title:"a b"', (_FR,)),
        ("-lang:fr", "", (Without(_FR),)),
        ("NOT -lang:fr", "", (_FR,)),
        ("-(lang:fr OR type:pdf)", "", (Without(AnyOf((_FR, _PDF))),)),
        ("lang:fr OR lang:en type:pdf", "", (AnyOf((_FR, AllOf((_EN, _PDF)))),)),
        ('intitle:"flu shot" inurl:/EN/', "", (InTitle(("flu", "shot")), InUrl("/en/"))),
        ('"a b"~3', "", (NearWords(words=("a", "b"), distance=3),)),
        ("near:(a b)", "", (NearWords(words=("a", "b"), distance=10),)),
        ("site:EXAMPLE.org./En", "", (OnSite(host="example.org", path="/en"),)),
        ("site:bücher.example", "", (OnSite(host="xn--bcher-kva.example"),)),
        ("(flu lang:fr", "(flu", (_FR,)),
        ("flu) -lang:fr OR", "flu)", (Without(_FR),)),
        ("flu :) NOT lang:fr", "flu :)", (Without(_FR),)),
        ("flu :) NOT -lang:fr", "flu :)", (_FR,)),
        ("lang:fr or lang:en", "", (AnyOf((_FR, _EN)),)),
        ("lang:fr and not (type:pdf or lang:en)", "", (_FR, Without(AnyOf((_PDF, _EN))))),
        ("lang:fr or flu", "or flu", (_FR,)),
        ("inurl:Foo_(bar) flu", "flu", (InUrl("foo_(bar)"),)),
        ("(inurl:foo) flu", "flu", (InUrl("foo"),)),
        ("intitle:水道", "", (InTitle(("水道",)),)),
        ("lang: fr", "lang: fr", ()),
        ("xlang:fr", "xlang:fr", ()),
        ("https://example.org/?lang:fr", "https://example.org/?lang:fr", ()),
        ("title:site:a", "title:site:a", ()),
    ],
)
def test_operators_are_taken_out_and_words_stay_as_typed(
    text: str, rest: str, conditions: tuple[Condition, ...]
) -> None:
    found = part(text)

    assert (found.rest, found.conditions, found.problem) == (rest, conditions, None)


def test_words_of_operators_rank_where_there_are_no_others() -> None:
    alone = parse_query("intitle:flu near:3(water school)")

    assert (alone.intent, alone.words.words) == (Intent.PLAIN, ("flu", "water", "school"))
    assert parse_query("lang:fr").intent is Intent.BROWSE
    assert parse_query("-intitle:flu").intent is Intent.BROWSE


def test_operators_add_no_more_words_than_a_query_has() -> None:
    letters = iter(range(0x4E00, 0x9000))
    many = parse_query(" ".join("intitle:" + "".join(chr(next(letters)) for _ in range(4)) for _ in range(18)))

    assert len(many.conditions) == 18
    assert (len(many.words.words), len(many.words.phrases)) == (0, 16)
    words = " ".join(f"word{n}" for n in range(14))
    assert len(parse_query(f"{words} intitle:'seven eight nine ten'").words.words) == 16
    assert len(parse_query(f'{words} near:5(one two three four five) intitle:"six seven"').words.words) == 16


def test_every_example_of_the_help_is_what_it_says() -> None:
    for one in OPERATORS.values():
        for example in one.examples:
            found = part(example)
            assert found.problem is None, example
            assert found.rest == "", example
            assert found.conditions or found.like, example


def test_all_help_is_made_from_the_one_table() -> None:
    text, markdown, told = as_text(), as_markdown(), syntax_record()

    for name in OPERATORS:
        assert f"  {name}:" in text
        assert f"| `{name}:" in markdown
    assert [one.name for one in told.operators] == list(OPERATORS)
    assert max(map(len, text.splitlines())) <= 80


def test_the_documentation_has_the_table_as_it_is() -> None:
    page = (Path(__file__).parents[3] / "docs" / "search.md").read_text()

    assert as_markdown() in page, "run: make docs"


def test_the_kinds_of_pages_are_those_of_the_index() -> None:
    assert sorted(TYPE_NAMES.values()) == list(KINDS)


@given(st.text(max_size=300))
def test_no_string_breaks_it(text: str) -> None:
    assert isinstance(part(text), Parted)
    parse_query(text)


_BITS = st.sampled_from(
    ['"', "(", ")", "AND", "OR", "NOT", "-", "title:", " ", "a", "\\", "~5", ":", "near:5(", "\x00", "\ud800"]
    + [f"{name}:" for name in OPERATORS]
    + [example for one in OPERATORS.values() for example in one.examples]
)


@given(st.lists(_BITS, max_size=140).map("".join))
def test_no_mixture_of_operators_breaks_it(text: str) -> None:
    part(text)
    parse_query(text)


@pytest.mark.parametrize("bit", ["(", ")", '"', "-", "site:", "near:5(", "OR ", "lang:fr OR ", '"a"~5', "\\", "NOT "])
def test_what_is_repeated_ten_thousand_times_is_cut_first(bit: str) -> None:
    assert len(parse_query(bit * 10_000).text) <= 256
    assert isinstance(part(f"lang:fr {bit * 2_000}"), Parted)


def test_as_many_operators_as_may_be_are_taken() -> None:
    assert part(" ".join(["site:a"] * MAX_OPERATORS)).problem is None
    assert "at most" in (part(" ".join(["site:a"] * (MAX_OPERATORS + 1))).problem or "")
