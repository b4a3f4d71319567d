"""The log of a site is read a line at a time, and each line once."""

from __future__ import annotations

from pathlib import Path

from tests.site.log import Entry, LogReader, LogWriter


def _entry(number: int, *, end: float | None = None) -> Entry:
    return Entry(
        id=number, connection=1, host="127.0.0.2", port=80, method="GET", path="/", start=9.0 - number, end=end
    )


def test_what_came_since_is_added_and_what_ended_since_replaced(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = LogReader(path)
    assert reader.entries() == []

    writer = LogWriter(path)
    writer.append(_entry(1))
    assert reader.entries() == [_entry(1)]

    writer.append(_entry(2))
    writer.append(_entry(1, end=10.0))
    writer.close()
    assert reader.entries() == [_entry(2), _entry(1, end=10.0)] == LogReader(path).entries()


def test_a_line_that_is_half_written_comes_when_it_is_whole(tmp_path: Path) -> None:
    whole, other = tmp_path / "whole", tmp_path / "log"
    for number in (1, 2):
        LogWriter(whole).append(_entry(number))
    text, reader = whole.read_bytes(), LogReader(other)

    other.write_bytes(text[:-5])
    assert reader.entries() == [_entry(1)]
    other.write_bytes(text)
    assert reader.entries() == [_entry(2), _entry(1)]
