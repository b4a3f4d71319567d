"""One whole record out of a file, byte for byte as it was written, however it was compressed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import Invalid
from holdfast.warc.member import MAGIC, BadBytes, Member, Packer
from holdfast.warc.reader import DamagedWarc, open_record_at
from holdfast.warc.source import ByteSource, open_source
from holdfast.warc.zst import ZstdFrame, is_zstd, load_dictionary

_PIECE_BYTES = 1 << 16
_END = b"\r\n\r\n"


def record_pieces(path: Path, offset: int) -> Iterator[bytes]:
    """Yield the record that begins here, uncompressed, its closing line breaks included: a WARC file of its own.

    DamagedWarc if no whole record stands there; Invalid if its member holds others too.
    """
    with open_record_at(path, offset) as record:
        content_length = record.head.content_length
    with open_source(path) as source:
        try:
            if source.at(offset, 3) == MAGIC:
                yield from Member(source, offset).pieces()
            elif is_zstd(source, offset):
                yield from ZstdFrame(source, offset, load_dictionary(source)).pieces()
            else:
                yield from _plain(source, offset, content_length)
        except BadBytes as bad:
            raise DamagedWarc(offset, bad.kind, bad.detail) from bad


def packed_record(path: Path, offset: int) -> bytes:
    """Return the record as one gzip member; Invalid if it is larger than 256 MB."""
    packer, ready, size = Packer(), list[bytes](), 0
    for piece in record_pieces(path, offset):
        size += len(piece)
        if size > 256 << 20:
            raise Invalid("the record is too large for one piece; write it uncompressed, to a name ending in .warc")
        ready.append(packer.feed(piece))
    ready.append(packer.finish())
    return b"".join((packer.header(), *ready))


def _plain(source: ByteSource, offset: int, content_length: int) -> Iterator[bytes]:
    head = source.at(offset, 1 << 17)
    start = min((at + len(end) for end in (b"\r\n\r\n", b"\n\n") if (at := head.find(end)) >= 0), default=0)
    at, end = offset, offset + start + content_length
    while at < end:
        piece = source.at(at, min(_PIECE_BYTES, end - at))
        if not piece:
            raise BadBytes("truncated", "the file ends inside a record")
        at += len(piece)
        yield piece
    yield _END
