"""Dates as assistants write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.assistants.moments import BadMoment, read_period


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026", _at(2026, 1, 1), _at(2026, 12, 31, 23, 59, 59, 999_999)),
        ("2026-02", _at(2026, 2, 1), _at(2026, 2, 28, 23, 59, 59, 999_999)),
        ("202602", _at(2026, 2, 1), _at(2026, 2, 28, 23, 59, 59, 999_999)),
        ("2024-02-29", _at(2024, 2, 29), _at(2024, 2, 29, 23, 59, 59, 999_999)),
        ("20240229", _at(2024, 2, 29), _at(2024, 2, 29, 23, 59, 59, 999_999)),
        ("20240229120000", _at(2024, 2, 29, 12), _at(2024, 2, 29, 12, 0, 0, 999_999)),
        ("2024-02-29T12:00", _at(2024, 2, 29, 12), _at(2024, 2, 29, 12, 0, 59, 999_999)),
        ("2024-02-29T12:00:07Z", _at(2024, 2, 29, 12, 0, 7), _at(2024, 2, 29, 12, 0, 7)),
        (" 2024-02-29 12:00:07+02:00 ", _at(2024, 2, 29, 10, 0, 7), _at(2024, 2, 29, 10, 0, 7)),
    ],
)
def test_a_date_names_a_period(text: str, start: datetime, end: datetime) -> None:
    assert read_period(text) == (start, end)


@pytest.mark.parametrize(
    "text",
    ["", "1700000000", "1763337600", "1763337600000", "17633376", "0", "20261", "2026-13", "2026-02-30", "20260230",
     "0000", "yesterday", "2026-2-3", "2026-03-01T25:00", "-2026", "２０２６", "9" * 40, "2026-03-01T12:00:00+99:00"],
)  # fmt: skip
def test_seconds_since_1970_and_nonsense_are_refused_not_guessed_at(text: str) -> None:
    with pytest.raises(BadMoment, match="is no moment; write a date such as 2026"):
        read_period(text)
