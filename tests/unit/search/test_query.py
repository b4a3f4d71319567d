"""The query language by table: intents, precedence, fields, escapes; and that no string whatever breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.query import And, Field, Intent, Node, Not, Or, Term, group_hashes, parse_query
from holdfast.urls import hash64, parse


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("", Intent.BROWSE),
        ("  \t ", Intent.BROWSE),
        ("https://example.org/a?b=1", Intent.URL),
        ("www.example.org", Intent.URL),
        ("example.org/path", Intent.URL),
        ("covid19.html", Intent.URL),
        ("url:https://example.org/", Intent.URL),
        ("url:www.example.org/a", Intent.URL),
        ("url:covid19.html", Intent.BOOLEAN),
        ("title:example.org", Intent.BOOLEAN),
        ("flu vaccine", Intent.PLAIN),
        ("path/to.thing", Intent.PLAIN),
        ("flu and vaccine", Intent.PLAIN),
        ("flu Or vaccine", Intent.PLAIN),
        ("flu OR vaccine", Intent.BOOLEAN),
        ("command not found", Intent.PLAIN),
        ("IS NOT NULL", Intent.PLAIN),
        ("2013 NOT 2014", Intent.BOOLEAN),
        ("サーバ OR ホスト", Intent.BOOLEAN),
        ("인증 AND 서버", Intent.BOOLEAN),
        ("NOT サーバ", Intent.BOOLEAN),
        ("SQL OR WAL", Intent.BOOLEAN),
        ("FLU -SHOT", Intent.BOOLEAN),
        ("ls -l", Intent.PLAIN),
        ("-N schema", Intent.PLAIN),
        ("flu -病", Intent.BOOLEAN),
        ("flu -shot", Intent.BOOLEAN),
        ("(flu)", Intent.PLAIN),
        ("strlen(3) or not", Intent.PLAIN),
        ("(flu OR cold)", Intent.BOOLEAN),
        ("vacc*", Intent.BOOLEAN),
        ("text:flu", Intent.BOOLEAN),
        ("snippet:flu", Intent.BOOLEAN),
        ("well-known", Intent.PLAIN),
        ("- flu", Intent.PLAIN),
        ("-flu", Intent.PLAIN),
        ("-title:flu", Intent.BOOLEAN),
        ("site:example.org -draft", Intent.BOOLEAN),
        ("lang:fr -brouillon", Intent.BOOLEAN),
        ("intitle:flu -shot", Intent.BOOLEAN),
        ("after:2020 -title:draft", Intent.BOOLEAN),
        ("SELECT * FROM t WHERE a IS NOT NULL", Intent.PLAIN),
        ("create table IF NOT EXISTS harbours", Intent.PLAIN),
        ("flu AND NOT SARS", Intent.BOOLEAN),
        ("flu vaccine NOT SARS", Intent.BOOLEAN),
        ("NOT flu", Intent.BOOLEAN),
        ("FLU NOT shot", Intent.BOOLEAN),
        ("android", Intent.PLAIN),
        ('"flu vaccine"', Intent.PLAIN),
        ("AND", Intent.PLAIN),
        ("flu AND", Intent.PLAIN),
        ("(flu", Intent.PLAIN),
        ('flu AND "open', Intent.PLAIN),
        ("ftp://example.org/ x", Intent.PLAIN),
    ],
)
def test_a_query_has_the_intent_that_its_spelling_says(text: str, intent: Intent) -> None:
    assert parse_query(text).intent is intent


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a OR b AND c", Or((Term("a"), Term("b c")))),
        ('a OR "b d" (c)', Or((Term("a"), Term('"b d" c')))),
        ("a -bb c", And((Term("a c"), Not(Term("bb"))))),
        ("(a OR b) AND c", And((Or((Term("a"), Term("b"))), Term("c")))),
        ("NOT a AND b", And((Not(Term("a")), Term("b")))),
        ("a -bb", And((Term("a"), Not(Term("bb"))))),
        ("NOT NOT (a)", Term("a")),
        ("a OR b IS NOT NULL", Or((Term("a"), Term("b IS NOT NULL")))),
        ("title:Été", Term("ete", Field.TITLE)),
        ('URL:"a b"', Term("a b", Field.URL)),
        ("url:caf%C3%A9%2Fa", Term("cafe%2fa", Field.URL)),
        (r'title:"say \"yes\" \\ no"', Term(r'say "yes" \ no', Field.TITLE)),
        ("NOT (a-b) c", And((Not(Term("a-b")), Term("c")))),
        ("snippet:not x", And((Term("not", Field.SNIPPET), Term("x")))),
        ("50% AND off_n*", And((Term("50%"), Term("off_n", is_prefix=True)))),
    ],
)
def test_precedence_fields_and_escapes(text: str, tree: Node) -> None:
    assert parse_query(text).tree == tree


def test_more_than_32_terms_or_128_tokens_are_plain_text() -> None:
    assert parse_query(" OR ".join("abcdefghijklmnopqrstuvwxyzabcdef")).intent is Intent.BOOLEAN
    assert parse_query(" OR ".join("abcdefghijklmnopqrstuvwxyzabcdefg")).intent is Intent.PLAIN
    assert parse_query("NOT " + "(" * 60 + "a" + ")" * 60).intent is Intent.BOOLEAN
    assert parse_query("NOT " + "(" * 70 + "a" + ")" * 70).intent is Intent.PLAIN


def test_plain_words_have_three_letters_unless_all_are_short() -> None:
    assert parse_query("The Été of a café, in 2024").words.words == ("ete", "cafe", "2024")
    assert parse_query("C++").words.words == ("c",)


def test_long_query_keeps_sixteen_words_and_no_stop_words() -> None:
    found = parse_query("where is the " + " ".join(f"word{n}" for n in range(20))).words

    assert found.words == tuple(f"word{n}" for n in range(16))


def test_quotes_in_plain_text_make_phrases() -> None:
    found = parse_query('clinic "flu shot" "alone"').words

    assert (found.words, found.phrases) == (("clinic", "alone"), (("flu", "shot"),))


def test_a_lookup_asks_for_both_schemes_with_and_without_www() -> None:
    wanted = {hash64(f"{scheme}://{www}example.org/a") for scheme in ("http", "https") for www in ("", "www.")}

    assert set(group_hashes(parse("https://www.example.org/a?b=c#d"))) == wanted
    assert set(parse_query("example.org/a").groups) == wanted


def test_a_guess_is_marked_as_one() -> None:
    assert parse_query("https://example.org/").certain
    assert not parse_query("node.js").certain
    assert parse_query("flu AND shot").certain


@given(st.text(max_size=300))
def test_no_string_breaks_the_parser(text: str) -> None:
    found = parse_query(text)

    assert (found.tree is not None) == (found.intent is Intent.BOOLEAN)


_BITS = st.sampled_from(
    ['"', "(", ")", "AND", "OR", "NOT", "-", "title:", "url:", "\\", " ", "a", "\x00", "\ud800", "%", "*"]
)


@given(st.lists(_BITS, max_size=140).map("".join))
def test_no_mixture_of_operators_breaks_the_parser(text: str) -> None:
    parse_query(text)
