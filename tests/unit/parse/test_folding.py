"""Folding: case, accents, compatibility forms; and places that stay where they are."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.parse.text import analysable, fold, fold_in_place, tidy, words_of
from tests import patience


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Hôpital", "hopital"),
        ("HO\u0302PITAL", "hopital"),
        ("ŒUVRE", "oeuvre"),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("Ångström", "angstrom"),
        ("İstanbul", "istanbul"),
        ("東京", "東京"),
        ("a\x00b\ud800c", "a b c"),
        ("e\u0301\u0301", "e"),
    ],
)
def test_case_and_accents_go(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text())
def test_folding_twice_changes_nothing_and_can_be_stored(text: str) -> None:
    once = fold(text)

    once.encode()
    assert fold(once) == once or not text.isascii()
    assert "\x00" not in tidy(text)


@given(st.text(alphabet="ab \t\n\x00\x1f\x7f", max_size=12))
def test_controls_and_runs_of_blanks_are_one_blank(text: str) -> None:
    blanks = "".join(char if char in "ab" else " " for char in text)

    assert tidy(text) == tidy(text + "\u00e9").removesuffix("\u00e9").rstrip() == " ".join(blanks.split())


@given(st.text())
def test_folding_in_place_keeps_every_place(text: str) -> None:
    assert len(fold_in_place(text)) == len(text)


def test_words_are_letters_and_digits() -> None:
    assert words_of("L’hôpital: e-mail_1, 2x") == ["l", "hopital", "e", "mail", "1", "2x"]


@pytest.mark.parametrize("made", [analysable, tidy, fold])
def test_marks_without_end_are_composed_in_linear_time(made: Callable[[str], str]) -> None:
    """Python sorts a run of marks in the square of its length: this one would take over a minute."""
    started = time.process_time()
    made("e" + "\u0301\u0323" * 250_000)

    assert time.process_time() - started < patience.allowed(10.0)


def test_composing_long_texts_by_pieces_changes_nothing() -> None:
    text = "cafe\u0301 " * 1_000

    assert analysable(text) == "caf\u00e9 " * 1_000
