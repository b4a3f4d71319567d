"""No regular expression of the house can be made slow by what it reads."""

from __future__ import annotations

import pytest

from tests.house.patterns import Pattern, collect, guilty
from tests.house.source import modules


@pytest.mark.timeout(900)
def test_every_regular_expression_is_linear() -> None:
    found = collect(modules("src/holdfast"))
    slow = guilty(found)

    assert len(found) > 150
    assert not slow, "\n".join(
        f"{where} is slow for {text}: use possessive quantifiers (`*+`), a bound, or re2"
        for where, text in slow.items()
    )


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (rb'"(?:[^"\\]|\\.)*"', "search"),
        (r"bytes[ \t]*=[ \t]*(\d{0,18})[ \t]*-[ \t]*(\d{0,18})[ \t]*", "fullmatch"),
        (r"(a|aa)+$", "match"),
        (r"\s+$", "search"),
        (r"(://[^:/@\s]*):[^@\s]*@", "search"),
        (r"<!--.*?-->", "search"),
    ],
)
def test_a_slow_pattern_is_found(text: str | bytes, method: str) -> None:
    harmless = Pattern("harmless", r"[a-z]+", 0, ("search",))
    slow = Pattern("slow", text, 0, (method,))

    assert list(guilty([harmless, slow, harmless])) == ["slow"]


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', "search"),
        (r"bytes[ \t]*+=[ \t]*+(\d{0,18})[ \t]*+-[ \t]*+(\d{0,18})[ \t]*+", "fullmatch"),
        (r"[^/?#]*", "match"),
        (r"(?<=://)[^/@\s]{1,512}@", "search"),
    ],
)
def test_a_linear_pattern_is_left_alone(text: str | bytes, method: str) -> None:
    assert guilty([Pattern("linear", text, 0, (method,))]) == {}
