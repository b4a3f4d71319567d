"""Deflate streams come out in pieces of bounded size, say where they end, and never go beyond what is there."""

from __future__ import annotations

import gzip
import zlib

import pytest

from holdfast.gzip_streams import (
    GZIP,
    RAW,
    DeflateStream,
    EndOfInput,
    InflateBudget,
    gzipped,
    largest_honest,
    reader_of,
)

BODY = b"".join(b"%d words, " % (number * 7919 % 10_007) for number in range(20_000))
PACKED = gzip.compress(BODY)


@pytest.mark.parametrize("feed_bytes", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize("output_bytes", [100, 4096, 1 << 20])
def test_pieces_are_bounded_and_whole_and_the_end_is_known(feed_bytes: int, output_bytes: int) -> None:
    budget = InflateBudget(feed_bytes=feed_bytes, output_bytes=output_bytes, first_bytes=50)
    stream = DeflateStream(reader_of(b"in front" + PACKED + b"behind"), 8, GZIP, budget)

    pieces = list(stream)

    assert b"".join(pieces) == BODY
    assert len(pieces[0]) <= 50
    assert max(map(len, pieces)) <= output_bytes
    assert stream.end == 8 + len(PACKED)


def test_what_ends_early_says_so_after_what_came_out() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, RAW)
    cut = (packer.compress(BODY) + packer.flush())[:-20]
    stream, found = DeflateStream(reader_of(cut), 0, RAW), list[bytes]()

    with pytest.raises(EndOfInput):
        found.extend(stream)

    assert BODY.startswith(b"".join(found))
    assert stream.end is None


def test_the_same_pieces_give_the_same_gzip_file() -> None:
    pieces = [BODY[at : at + 1000] for at in range(0, len(BODY), 1000)]

    assert b"".join(gzipped(pieces)) == b"".join(gzipped(pieces))
    assert gzip.decompress(b"".join(gzipped(pieces))) == BODY
    assert gzip.decompress(b"".join(gzipped([]))) == b""


def test_short_bodies_may_swell_and_long_ones_up_to_a_ratio() -> None:
    assert largest_honest(10) == 1024 * 1024
    assert largest_honest(1 << 20) == 200 << 20
