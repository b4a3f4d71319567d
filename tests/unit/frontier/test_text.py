"""Text from the web on its way into a column."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.frontier.text import clean


def test_what_is_fine_stays_the_same_object() -> None:
    text = "plain"

    assert clean(text, 10) is text
    assert clean(None, 10) is None


@given(st.text(st.characters(), max_size=50), st.integers(0, 60))
def test_whatever_comes_can_be_stored(text: str, limit: int) -> None:
    stored = clean(text, limit)

    assert stored is not None
    stored.encode("utf-8")
    assert "\x00" not in stored
    assert len(stored) <= limit


def test_lone_surrogates_and_nul_are_replaced() -> None:
    assert clean("a\x00b\ud800c é", 100) == "a\ufffdb?c é"
