"""Content codings undone in bounded steps: whole, cut, damaged, wrong, and built to explode."""

from __future__ import annotations

import gzip
import random
import resource
import time
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.warc.payload import DecodeCaps, HttpHead, decode
from tests import patience

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


def _slices(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


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
        assert decode(head, TEXT)[0] is TEXT
        assert decode(head, [TEXT])[0] is TEXT


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

    data, problems = decode(_head(coding), encoded[: len(encoded) // 2])

    assert (TEXT * 5).startswith(data)
    assert problems == ("cut_short",)
    # zstd gives nothing out before a block of up to 128 KiB is whole.
    assert len(data) > 1000 or coding == "zstd"


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

    data, problems = decode(_head(coding), bytes(encoded))

    assert data[:100_000] == whole[:100_000]
    assert problems in (("bad_encoding",), ("cut_short",), ("trailing_bytes",))


def test_members_and_frames_may_follow_each_other() -> None:
    assert decode(_head("gzip"), gzip.compress(b"one ") + gzip.compress(b"two")) == (b"one two", ())
    assert decode(_head("zstd"), zstandard.compress(b"one ") + zstandard.compress(b"two")) == (b"one two", ())


def test_a_flood_of_empty_members_ends() -> None:
    before = time.process_time()

    _, problems = decode(_head("gzip"), gzip.compress(b"") * 100_000)

    assert problems
    assert time.process_time() - before < patience.allowed(2.0)


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

    data, problems = decode(_head(coding), wire)

    assert problems == ("ratio_exceeded",)
    assert len(data) == max(MIB, 200 * len(wire))
    assert time.process_time() - before < patience.allowed(2.0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss < 128 * 1024


def test_output_stops_at_the_cap() -> None:
    data, problems = decode(_head("gzip"), _zero_bomb(256))
    assert (len(data), problems) == (50 * MIB, ("too_large",))

    caps = DecodeCaps(max_output_bytes=100_000)
    large = bytes(range(256)) * 1000

    for coding, encode in ENCODERS.items():
        assert decode(_head(coding), encode(large), caps) == (large[:100_000], ("too_large",))
    assert decode(_head(), large, caps) == (large[:100_000], ("too_large",))
    assert decode(_head(), _slices(large, 1000), caps) == (large[:100_000], ("too_large",))


@given(coding=st.sampled_from(sorted(ENCODERS)), data=st.binary(max_size=400), cut=st.integers(0, 400))
@settings(max_examples=80)
def test_decoding_never_raises_and_whole_input_round_trips(coding: str, data: bytes, cut: int) -> None:
    encoded = ENCODERS[coding](data)

    assert decode(_head(coding), encoded)[0] == data
    for broken in (encoded[:cut], encoded[cut:], encoded[:cut] + b"\xff" + encoded[cut:], data):
        decode(_head(coding), broken)
