"""Amounts of time and bytes as they are typed."""

from __future__ import annotations

import pytest
import typer

from holdfast.cli.parameters import read_size, read_time


def test_an_amount_is_read_with_its_unit() -> None:
    assert (read_time("90s"), read_time("2h"), read_size("500MB")) == (90.0, 7200.0, 500_000_000)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0s", "is not more than nothing"),
        ("-5s", "is not more than nothing"),
        ("nan", "is no"),
        ("99999999999999999d", "is more than can be kept"),
        ("1y", "is no amount"),
    ],
)
def test_an_amount_that_cannot_be_kept_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(typer.BadParameter, match=why):
        read_time(text)
