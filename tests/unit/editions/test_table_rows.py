"""The table behind the figures of an edition, read piece by piece however it is cut into chunks."""

from __future__ import annotations

from threading import Event

import pytest

from holdfast.cancellation import WorkAbandoned, until
from holdfast.editions.publishing import table_rows

_ROWS = [f'"https://example.org/{number},""x""",{"captured" if number % 3 else "failed"},ok' for number in range(20)]
_TABLE = "\n".join(("url,outcome,reason", *_ROWS, "")).encode()


def _read(
    chars: int, start: int, limit: int, outcome: str | None = None, table: bytes = _TABLE
) -> tuple[list[dict[str, str]], int | None]:
    chunks = iter([table[at : at + chars] for at in range(0, len(table), chars)])
    return table_rows(chunks, {} if outcome is None else {"outcome": [outcome]}, start=start, limit=limit)


@pytest.mark.parametrize("chars", [1, 7, 64, 10_000])
def test_pieces_are_the_whole_in_its_order(chars: int) -> None:
    found: list[str] = []
    start: int | None = 0
    while start is not None:
        rows, start = _read(chars, start, 3)
        found += [row["url"] for row in rows]

    assert found == [f'https://example.org/{number},"x"' for number in range(20)]


@pytest.mark.parametrize("chars", [1, 64, 10_000])
def test_a_filter_says_where_to_go_on(chars: int) -> None:
    first, following = _read(chars, 0, 3, "failed")
    rest, end = _read(chars, following or 0, 10, "failed")

    assert [len(first), len(rest), end] == [3, 4, None]


def test_an_end_without_a_line_break_and_a_place_behind_the_end_are_right() -> None:
    cut = _TABLE.rstrip(b"\n")

    assert _read(50, 19, 3, table=cut)[0][0]["url"] == 'https://example.org/19,"x"'
    assert [_read(50, start, 3, table=cut) for start in (20, 1 << 60)] == [([], None)] * 2
    assert _read(50, 0, 3, table=b"url,outcome,reason") == ([], None)
    assert _read(50, 5, 3, table=b"") == ([], None)


def test_rows_before_the_place_are_not_taken_apart() -> None:
    # What a reader of tables would refuse: a cell that is longer than any.
    odd = b"url,outcome,reason\n" + b"x" * 200_000 + b"\nhttps://example.org/,captured,ok\n"

    assert [row["url"] for row in _read(4096, 1, 3, table=odd)[0]] == ["https://example.org/"]


def test_nobody_waits_for_it_any_more_and_it_ends() -> None:
    left = Event()
    left.set()

    with until(left), pytest.raises(WorkAbandoned):
        _read(50, 0, 3)


def test_several_values_of_a_column_are_wanted_at_once() -> None:
    table = iter([b"kind,url\nnew,a\nunchanged,b\ngone,c\n"])

    assert [row["url"] for row in table_rows(table, {"kind": ["new", "gone"]}, start=0, limit=9)[0]] == ["a", "c"]
