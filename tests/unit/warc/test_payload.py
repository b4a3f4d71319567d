"""From wire bytes to content: heads, framing, codings, and everything that can be wrong with them."""

from __future__ import annotations

import gzip
import random
import resource
import time
import zlib
from collections.abc import Callable, Iterator

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.warc.payload import (
    DecodeCaps,
    HttpHead,
    PayloadProblem,
    dechunk,
    decode,
    parse_head,
    payload_chunks,
    split_head,
)

HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; Charset="UTF-8"\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\n'
TEXT = b"".join(b"<p>line %d of a page that repeats itself a little</p>\n" % n for n in range(1500))
LARGE = random.Random(1).randbytes(700_000)
MIB = 1024 * 1024


def _raw_deflate(data: bytes) -> bytes:
    tool = zlib.compressobj(9, zlib.DEFLATED, -15)
    return tool.compress(data) + tool.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "DEFLATE": _raw_deflate,
    "br": lambda data: bytes(brotli.compress(data, quality=5)),
    "zstd": zstandard.compress,
}


def _head(*encodings: str) -> HttpHead:
    return HttpHead(200, "OK", tuple(("Content-Encoding", encoding) for encoding in encodings))


def _chunked(data: bytes, size: int) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _slices(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


# heads


def test_a_head_says_what_it_says() -> None:
    head = parse_head(HEAD)

    assert (head.status, head.reason) == (200, "OK")
    assert head.headers[0] == ("Content-Type", 'Text/HTML; Charset="UTF-8"')
    assert head.get("content-TYPE") == 'Text/HTML; Charset="UTF-8"'
    assert head.get_all("Set-Cookie") == ("a=1", "b=2")
    assert head.get("missing") is None
    assert head.get_all("missing") == ()
    assert (head.media_type, head.charset) == ("text/html", "UTF-8")


@pytest.mark.parametrize(
    ("wire", "status", "reason", "headers"),
    [
        (b"HTTP/1.0 404\r\n\r\n", 404, "", ()),
        (b"HTTP/1.1  200  Two  Words \r\nA:b\r\n\r\n", 200, "Two  Words ", (("A", "b"),)),
        (b"HTTP/2 200\nA: b\n\n", 200, "", (("A", "b"),)),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n  fold\r\n\ttoo\r\nC: d\r\n\r\n", 200, "OK", (("A", "b fold too"), ("C", "d"))),
        (b"HTTP/1.1 200 OK\r\nno colon\r\nA : b:c \r\n: e\r\n\r\nrest: of it", 200, "OK", (("A", "b:c"), ("", "e"))),
        (b"HTTP/1.1 200 \xfcbel\r\nA: \xe9\r\n\r\n", 200, "\u00fcbel", (("A", "\u00e9"),)),
        (b"HTTP/1.1 200 OK\r\nA: b", 200, "OK", (("A", "b"),)),
        (b"ICY 200 OK\r\nA: b\r\n\r\n", 0, "", (("A", "b"),)),
        (b"", 0, "", ()),
        (b"\r\n\r\n", 0, "", ()),
    ],
)  # fmt: skip
def test_odd_heads_are_read_as_far_as_they_go(
    wire: bytes, status: int, reason: str, headers: tuple[tuple[str, str], ...]
) -> None:
    assert parse_head(wire) == HttpHead(status, reason, headers)


@pytest.mark.parametrize(
    ("value", "media_type", "charset"),
    [
        ("text/html", "text/html", None),
        ("text/html;charset=latin1", "text/html", "latin1"),
        ("text/html; a=b; CHARSET = 'x-sjis' ; c", "text/html", "x-sjis"),
        ("text/html; charset=", "text/html", None),
        ("text/html, text/plain", "text/html", None),
        ("; charset=utf-8", None, "utf-8"),
        ("", None, None),
    ],
)
def test_the_content_type_is_taken_apart(value: str, media_type: str | None, charset: str | None) -> None:
    head = HttpHead(200, "", (("Content-Type", value),))

    assert (head.media_type, head.charset) == (media_type, charset)


def test_a_hostile_head_costs_little() -> None:
    before = time.process_time()
    for wire in (b"A: b\r\n" * 200_000, b"A: b\r\n" + b" fold\r\n" * 200_000, b"x" * 1_000_000, b"\r\n " * 300_000):
        head = parse_head(b"HTTP/1.1 200 OK\r\n" + wire)
        assert len(head.headers) <= 10_000

    assert time.process_time() - before < 2.0


@pytest.mark.parametrize("ending", [b"\r\n\r\n", b"\n\n", b"\r\n\n", b"\n\r\n"])
def test_a_block_is_split_at_its_first_empty_line(ending: bytes) -> None:
    head, body = split_head(b"HTTP/1.1 200 OK" + ending + b"body\r\n\r\nmore")

    assert head == b"HTTP/1.1 200 OK" + ending
    assert body == b"body\r\n\r\nmore"


def test_a_block_without_empty_line_is_all_head() -> None:
    assert split_head(b"HTTP/1.1 200 OK\r\nA: b\r\n") == (b"HTTP/1.1 200 OK\r\nA: b\r\n", b"")


# framing


@pytest.mark.parametrize("size", [1, 7, 1000, 70_000])
@pytest.mark.parametrize("step", [1, 3, 1000, 16_384, 10_000_000])
def test_chunks_come_out_whole_however_they_arrive(size: int, step: int) -> None:
    data = TEXT[:20_000] if step < 1000 else TEXT
    payload = dechunk(_slices(_chunked(data, size), step))

    assert b"".join(payload) == data
    assert payload.problem is None


@given(data=st.binary(max_size=300), size=st.integers(1, 50), step=st.integers(1, 60))
@settings(max_examples=60)
def test_any_bytes_survive_framing(data: bytes, size: int, step: int) -> None:
    payload = dechunk(_slices(_chunked(data, size), step))

    assert b"".join(payload) == data
    assert payload.problem is None


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_no_bytes_break_the_framing_reader(wire: bytes) -> None:
    payload = dechunk([wire])

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
        payload = dechunk(_slices(wire, step) if step > 1 or len(wire) < 100 else [wire])

        assert b"".join(payload) == data
        assert payload.problem is problem


@pytest.mark.parametrize(
    "wire", [b"<html>never chunked</html>", b"-1\r\nx", b"FFFFFFFFFFFFFFFF\r\nx", b"\r\n\r\n", b"zz"]
)
def test_a_body_that_was_never_chunked_comes_out_as_it_is(wire: bytes) -> None:
    payload = dechunk(_slices(wire, 3))

    assert b"".join(payload) == wire
    assert payload.problem is PayloadProblem.BAD_FRAMING


def test_hundreds_of_thousands_of_chunks_are_affordable() -> None:
    wire = b"1\r\na\r\n" * 300_000 + b"0\r\n\r\n"
    before = time.process_time()

    payload = dechunk(_slices(wire, 16_384))

    assert b"".join(payload) == b"a" * 300_000
    assert time.process_time() - before < 2.0


class _Body:
    """The smallest body there is."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.size = sum(map(len, pieces))

    def chunks(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("headers", "is_chunked"),
    [
        ((("Transfer-Encoding", "chunked"),), True),
        ((("transfer-encoding", "gzip, Chunked "),), True),
        ((("Transfer-Encoding", "gzip"), ("Transfer-Encoding", "chunked")), True),
        ((("Transfer-Encoding", "chunked, gzip"),), False),
        ((("Transfer-Encoding", "identity"),), False),
        ((), False),
    ],
)
def test_the_payload_is_the_body_without_its_chunks(headers: tuple[tuple[str, str], ...], is_chunked: bool) -> None:
    head = HttpHead(200, "", headers)
    wire = b"5\r\nhello\r\n0\r\n\r\n"

    assert b"".join(payload_chunks(head, _Body(wire[:4], wire[4:]))) == (b"hello" if is_chunked else wire)
    assert b"".join(payload_chunks(head, [wire])) == (b"hello" if is_chunked else wire)


# codings


@pytest.mark.parametrize("coding", ENCODERS)
@pytest.mark.parametrize(
    "data", [b"", b"x", TEXT, random.Random(1).randbytes(700_000)], ids=["empty", "byte", "page", "large"]
)
def test_every_coding_is_undone(coding: str, data: bytes) -> None:
    encoded = ENCODERS[coding](data)

    assert decode(_head(coding), encoded) == (data, ())
    assert decode(_head(coding), _slices(encoded, 1000)) == (data, ())


def test_bytes_without_a_coding_are_not_copied() -> None:
    for head in (_head(), _head("identity"), _head("")):
        assert decode(head, TEXT).data is TEXT
        assert decode(head, [TEXT]).data is TEXT


def test_two_layers_are_undone_in_turn() -> None:
    twice = brotli.compress(gzip.compress(TEXT))

    assert decode(_head("gzip, br"), twice) == (TEXT, ())
    assert decode(_head("gzip", "br"), twice) == (TEXT, ())
    assert decode(_head("gzip, identity, br"), twice) == (TEXT, ())


@pytest.mark.parametrize("count", [3, 20])
def test_more_layers_are_left_alone(count: int) -> None:
    data = TEXT
    for _ in range(count):
        data = gzip.compress(data)

    assert decode(_head(", ".join(["gzip"] * count)), data) == (data, ("too_many_encodings",))


@pytest.mark.parametrize("coding", ["compress", "aes128gcm", "zip", "utf-8"])
def test_an_unknown_coding_is_left_alone(coding: str) -> None:
    assert decode(_head(coding), TEXT) == (TEXT, ("unknown_encoding",))


@pytest.mark.parametrize("coding", ENCODERS)
@pytest.mark.parametrize(
    "plain",
    [TEXT, b"<!DOCTYPE html><html lang=en>" + TEXT, b"{}", b"ok", b"\x89PNG\r\n\x1a\n" + bytes(500), b"plain " * 50],
)
def test_plain_bytes_under_a_coding_come_back_as_they_are(coding: str, plain: bytes) -> None:
    assert decode(_head(coding), plain) == (plain, ("bad_encoding",))


@pytest.mark.parametrize("coding", ENCODERS)
def test_what_is_cut_is_decoded_as_far_as_it_goes(coding: str) -> None:
    encoded = ENCODERS[coding](TEXT * 5)

    decoded = decode(_head(coding), encoded[: len(encoded) // 2])

    assert (TEXT * 5).startswith(decoded.data)
    assert decoded.problems == ("cut_short",)
    # zstd gives nothing out before a block of up to 128 KiB is whole.
    assert len(decoded.data) > 1000 or coding == "zstd"


@pytest.mark.parametrize("coding", ENCODERS)
def test_junk_behind_the_end_is_noted(coding: str) -> None:
    encoded = ENCODERS[coding](TEXT)

    assert decode(_head(coding), encoded + b"junk") == (TEXT, ("trailing_bytes",))
    if coding != "br":
        assert decode(_head(coding), encoded + bytes(100)) == (TEXT, ())


@pytest.mark.parametrize("coding", ENCODERS)
def test_damage_keeps_what_came_before(coding: str) -> None:
    whole = b"".join(b"%d %d\n" % (n, n * n % 9973) for n in range(100_000))
    encoded = bytearray(ENCODERS[coding](whole))
    for at in range(len(encoded) - 3000, len(encoded) - 1000):
        encoded[at] ^= 0xA5

    decoded = decode(_head(coding), bytes(encoded))

    assert decoded.data[:100_000] == whole[:100_000]
    assert decoded.problems in (("bad_encoding",), ("cut_short",), ("trailing_bytes",))


def test_members_and_frames_may_follow_each_other() -> None:
    assert decode(_head("gzip"), gzip.compress(b"one ") + gzip.compress(b"two")) == (b"one two", ())
    assert decode(_head("zstd"), zstandard.compress(b"one ") + zstandard.compress(b"two")) == (b"one two", ())


def test_a_flood_of_empty_members_ends() -> None:
    before = time.process_time()

    decoded = decode(_head("gzip"), gzip.compress(b"") * 100_000)

    assert decoded.problems
    assert time.process_time() - before < 2.0


def _zero_bomb(mebibytes: int) -> bytes:
    """Return a gzip stream without end: one flushed block of zeros, again and again."""
    tool = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = tool.compress(bytes(MIB)) + tool.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + block * mebibytes


@pytest.mark.parametrize(
    ("coding", "bomb"),
    [
        ("gzip", lambda: _zero_bomb(20)),
        ("gzip, gzip", lambda: gzip.compress(_zero_bomb(64))),
        ("br", lambda: brotli.compress(bytes(64 * MIB), quality=1)),
        ("zstd", lambda: zstandard.compress(bytes(64 * MIB))),
        ("deflate", lambda: zlib.compress(bytes(16 * MIB))),
    ],
)
def test_bombs_stop_at_the_ratio(coding: str, bomb: Callable[[], bytes]) -> None:
    wire = bomb()
    before, rss = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    decoded = decode(_head(coding), wire)

    assert decoded.problems == ("ratio_exceeded",)
    assert len(decoded.data) == max(MIB, 200 * len(wire))
    assert time.process_time() - before < 2.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss < 128 * 1024


def test_output_stops_at_the_cap() -> None:
    bomb = decode(_head("gzip"), _zero_bomb(256))
    assert (len(bomb.data), bomb.problems) == (50 * MIB, ("too_large",))

    caps = DecodeCaps(max_output_bytes=100_000)
    large = bytes(range(256)) * 1000

    for coding, encode in ENCODERS.items():
        decoded = decode(_head(coding), encode(large), caps)
        assert decoded == (large[:100_000], ("too_large",))
    assert decode(_head(), large, caps) == (large[:100_000], ("too_large",))
    assert decode(_head(), _slices(large, 1000), caps) == (large[:100_000], ("too_large",))


@given(coding=st.sampled_from(sorted(ENCODERS)), data=st.binary(max_size=400), cut=st.integers(0, 400))
@settings(max_examples=80)
def test_decoding_never_raises_and_whole_input_round_trips(coding: str, data: bytes, cut: int) -> None:
    encoded = ENCODERS[coding](data)

    assert decode(_head(coding), encoded).data == data
    for broken in (encoded[:cut], encoded[cut:], encoded[:cut] + b"\xff" + encoded[cut:], data):
        decode(_head(coding), broken)
