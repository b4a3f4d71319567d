"""Text and JSON from outside on their way into a column."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.outside_text import clean, to_json


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


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_JSON)
def test_whatever_json_comes_can_be_stored(value: object) -> None:
    text = to_json(value)

    again = json.dumps(json.loads(text, parse_constant=pytest.fail), ensure_ascii=False)
    again.encode("utf-8")
    assert "\x00" not in json.loads(json.dumps(again))


def test_json_that_is_fine_stays_as_it_is() -> None:
    value = {"a": [1, 2.5, None, "\U0001f600", "the text \\u0000"], "b": {"c": True}}

    assert json.loads(to_json(value)) == value
