"""Which part of a file a Range header means (RFC 9110, section 14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.replay.headers import RangeRefused, parse_range


@pytest.mark.parametrize(
    ("header", "span"),
    [
        (None, None), ("", None), ("bytes=0-0", (0, 1)), ("bytes=0-", (0, 100)), ("bytes=50-60", (50, 61)),
        ("bytes=99-", (99, 100)), ("bytes=0-999", (0, 100)), ("bytes=-1", (99, 100)), ("bytes=-500", (0, 100)),
        ("Bytes = 1 - 2", (1, 3)), ("bytes=1-2,4-5", None), ("bytes=2-1", None), ("bytes=-", None), ("items=0-1", None),
        ("bytes=1.5-2", None), ("bytes=+1-2", None),
    ],
)  # fmt: skip
def test_spans(header: str | None, span: tuple[int, int] | None) -> None:
    assert parse_range(header, 100) == span


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_what_lies_behind_the_end_is_refused(header: str) -> None:
    with pytest.raises(RangeRefused):
        parse_range(header, 100)


def test_a_header_of_blanks_is_read_once() -> None:
    """A million of them on either side: shared out in every possible way, they would take years."""
    blanks = " \t" * 500_000

    assert parse_range(f"bytes={blanks}-{blanks}x", 100) is None
    assert parse_range(f"bytes{blanks}={blanks}1{blanks}-{blanks}2{blanks}", 100) == (1, 3)


@given(st.text(max_size=20), st.integers(0, 1000))
def test_no_header_breaks_it(text: str, size: int) -> None:
    try:
        span = parse_range(f"bytes={text}", size)
    except RangeRefused:
        return
    assert span is None or 0 <= span[0] < span[1] <= size
