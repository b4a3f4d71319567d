"""Keywords: folded as search folds, the same for pages and questions, never more than a page may have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.crawl.signal_pages import MAX_CHARS, MAX_WORDS, asked_for, keywords_of
from holdfast.errors import Invalid
from holdfast.parse.text import analysable, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hôpital d’Été, hôpital", {"hopital": 2, "d": 1, "ete": 1}),
        ("HO\u0302PITAL", {"hopital": 1}),
        ("Straße – ŒUVRE", {"strasse": 1, "oeuvre": 1}),
        ("снова Снова snake_case", {"снова": 2, "snake": 1, "case": 1}),
        ("東京都", {"東": 1, "京": 1, "都": 1}),
        ("בֵּית־סֵפֶר", {"בית": 1, "ספר": 1}),
        ("x" * (MAX_CHARS + 1) + " ok", {"ok": 1}),
        ("\ud800 \x00 …", {}),
    ],
)
def test_words_are_folded_and_counted(text: str, words: dict[str, int]) -> None:
    assert dict(keywords_of([text])) == words


@given(st.text(alphabet=st.characters(max_codepoint=0x2000, exclude_categories=("Cs", "No", "So", "Sk", "Lm"))))
def test_a_page_has_the_words_that_folding_all_of_it_gives(text: str) -> None:
    expected = {word for word in words_of(analysable(text)) if len(word) <= MAX_CHARS}

    assert len(expected) > MAX_WORDS or {word for word, _ in keywords_of([text])} == expected


@given(st.text(max_size=200))
def test_whatever_a_page_says_can_be_asked_for(text: str) -> None:
    kept = {word for word, _ in keywords_of([text])}

    try:
        assert set(asked_for(text)) <= kept
    except Invalid:
        assert len(kept) > 16
    "".join(kept).encode()


def test_the_most_frequent_are_kept_and_small_words_go_first() -> None:
    rare = [f"rare{number}" for number in range(MAX_WORDS - 1)]
    text = " ".join(["the the the und und", *rare, "often often"])

    kept = dict(keywords_of(["Title", None, text]))

    assert len(kept) == MAX_WORDS
    assert kept["often"] == 2
    assert "title" in kept
    assert "the" not in kept
    assert rare[-1] not in kept


def test_a_question_leaves_out_small_words_unless_it_has_no_others() -> None:
    assert asked_for("The hospital of the city") == ["hospital", "city"]
    assert asked_for("to be or not to be")
    assert asked_for(" … ") == []


def test_a_question_with_too_many_words_is_refused() -> None:
    with pytest.raises(Invalid, match="at most 16"):
        asked_for(" ".join(f"word{number}" for number in range(17)))
