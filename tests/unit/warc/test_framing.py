"""Chunked bodies, whole and damaged: what came before the damage is kept, and the work stays bounded."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.warc.payload import Dechunked, PayloadProblem
from tests import patience

TEXT = b"".join(b"<p>line %d of a page that repeats itself a little</p>\n" % n for n in range(1500))
MIB = 1024 * 1024


def _chunked(data: bytes, size: int) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _slices(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 7, 1000, 70_000])
@pytest.mark.parametrize("step", [1, 3, 1000, 16_384, 10_000_000])
def test_chunks_come_out_whole_however_they_arrive(size: int, step: int) -> None:
    data = TEXT[:20_000] if step < 1000 else TEXT
    payload = Dechunked(_slices(_chunked(data, size), step))

    assert b"".join(payload) == data
    assert payload.problem is None


@given(data=st.binary(max_size=300), size=st.integers(1, 50), step=st.integers(1, 60))
@settings(max_examples=60)
def test_any_bytes_survive_framing(data: bytes, size: int, step: int) -> None:
    payload = Dechunked(_slices(_chunked(data, size), step))

    assert b"".join(payload) == data
    assert payload.problem is None


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_no_bytes_break_the_framing_reader(wire: bytes) -> None:
    payload = Dechunked([wire])

    assert len(b"".join(payload)) <= len(wire)


@pytest.mark.parametrize(
    ("wire", "data", "problem"),
    [
        (b"", b"", None),
        (b"0\r\n\r\n", b"", None),
        (b"5;ext=1;more\r\nhello\r\n0;last\r\nTrailer: x\r\n\r\n", b"hello", None),
        (b"5\nhello\n0\n\n", b"hello", None),
        (b"005  \r\nhello\r\n0\r\n", b"hello", None),
        (b"5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK", b"hello", PayloadProblem.TRAILING_BYTES),
        (b"5\r\nhello\r\n", b"hello", PayloadProblem.CUT_SHORT),
        (b"5\r\nhello", b"hello", PayloadProblem.CUT_SHORT),
        (b"5\r\nhe", b"he", PayloadProblem.CUT_SHORT),
        (b"5\r\nhello\r\n6", b"hello", PayloadProblem.CUT_SHORT),
        (b"5\r\nhello\r\nFFFFFFFFFFFFFFFF\r\nmore", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhello\r\n-1\r\nmore", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhello\r\n0x5\r\nmore!\r\n0\r\n\r\n", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhello\r\n\r\n", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhello\r\n5_0\r\nmore", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhello\r\n11111111111111111\r\nmore", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhelloXX5\r\nworld\r\n0\r\n\r\n", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhello\r\n5;" + b"x" * MIB + b"\r\nworld\r\n0\r\n\r\n", b"hello", PayloadProblem.BAD_FRAMING),
        (b"5\r\nhello\r\n0\r\n" + b"T: x\r\n" * 100_000, b"hello", PayloadProblem.BAD_FRAMING),
    ],
)
def test_damaged_framing_keeps_what_came_before(wire: bytes, data: bytes, problem: PayloadProblem | None) -> None:
    for step in (1, 5, 100_000_000):
        payload = Dechunked(_slices(wire, step) if step > 1 or len(wire) < 100 else [wire])

        assert b"".join(payload) == data
        assert payload.problem is problem


@pytest.mark.parametrize(
    "wire", [b"<html>never chunked</html>", b"-1\r\nx", b"FFFFFFFFFFFFFFFF\r\nx", b"\r\n\r\n", b"zz"]
)
def test_a_body_that_was_never_chunked_comes_out_as_it_is(wire: bytes) -> None:
    payload = Dechunked(_slices(wire, 3))

    assert b"".join(payload) == wire
    assert payload.problem is PayloadProblem.BAD_FRAMING


def test_hundreds_of_thousands_of_chunks_are_affordable() -> None:
    wire = b"1\r\na\r\n" * 300_000 + b"0\r\n\r\n"
    before = time.process_time()

    payload = Dechunked(_slices(wire, 16_384))

    assert b"".join(payload) == b"a" * 300_000
    assert time.process_time() - before < patience.allowed(2.0)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([1], id="one byte"),
        pytest.param([1, 2], id="changing"),
        pytest.param([*[3] * 300, 4], id="runs that end"),
        pytest.param([*[17] * 700, 1, 200], id="two digits"),
    ],
)
@pytest.mark.parametrize("step", [5, 16_384, 10_000_000])
def test_runs_of_equal_chunks_come_out_as_they_went_in(sizes: list[int], step: int) -> None:
    data = bytes(range(256)) * 60
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(parts) % len(sizes)]
        parts.append(data[at : at + size])
        at += size
    wire = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"

    payload = Dechunked(_slices(wire, step))

    assert b"".join(payload) == data
    assert payload.problem is None


def test_a_run_of_chunks_that_breaks_keeps_what_came_before() -> None:
    payload = Dechunked([b"1\r\na\r\n" * 5000 + b"1\r\nab\r\n0\r\n\r\n"])

    assert b"".join(payload) == b"a" * 5001
    assert payload.problem is PayloadProblem.BAD_FRAMING


@pytest.mark.parametrize(
    "unit", [b"1\r\na\r\n", b"1\r\na\r\n2\r\nbb\r\n", b"20\r\n" + b"x" * 32 + b"\r\n21\r\n" + b"y" * 33 + b"\r\n"]
)
def test_one_step_hands_over_a_bounded_piece_of_a_body_in_one_buffer(unit: bytes) -> None:
    pieces = list(Dechunked([unit * (3 * MIB // len(unit)) + b"0\r\n\r\n"]))

    assert max(map(len, pieces)) <= MIB
    assert len(pieces) < 3 * MIB // len(unit)
