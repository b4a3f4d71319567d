"""Records of any origin written anew, one gzip member each, so that every one can be sought. Fields stay the same."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import Invalid
from holdfast.warc import outfile
from holdfast.warc.arc import Converted, read_arc
from holdfast.warc.member import (
    MAGIC,
    BadBytes,
    ByteSource,
    GzipMember,
    Packer,
    Pulse,
    ZstdFrame,
    is_zstd,
    load_dictionary,
    open_source,
)
from holdfast.warc.outfile import OutFile, SealedFile
from holdfast.warc.reader import DamagedWarc, OnDamage, open_record_at, read_records
from holdfast.warc.record import RecordHead

_END = b"\r\n\r\n"
_WHOLE_BYTES = 1 << 20
_HEADER_BYTES = 10
_LEVEL = 6


class Raw(NamedTuple):
    """A record to write."""

    offset: int
    head: bytes
    size: int
    block: Iterator[bytes]


def rewrite_warc(path: Path, folder: Path, name: str, on_damage: OnDamage, pulse: Pulse | None = None) -> SealedFile:
    """Write the whole records of a WARC file into `folder/NAME.warc.gz`, synced and sealed."""
    return _write(_raw_records(path, on_damage, pulse), folder, name, on_damage)


def convert_arc(
    path: Path, folder: Path, name: str, *, seed: str, on_damage: OnDamage, pulse: Pulse | None = None
) -> SealedFile:
    """Write the records of an ARC file as WARC 1.1 into `folder/NAME.warc.gz`, synced and sealed."""
    return _write(map(_of_arc, read_arc(path, seed, on_damage, pulse)), folder, name, on_damage)


def _raw_records(path: Path, on_damage: OnDamage, pulse: Pulse | None) -> Iterator[Raw]:
    for record in read_records(path, on_damage, pulse):
        yield Raw(record.offset, _head(record.head), record.head.content_length, record.block())


def _head(head: RecordHead) -> bytes:
    lines = [head.version, *(f"{name}: {value}" for name, value in head.fields), "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")


def _of_arc(one: Converted) -> Raw:
    return Raw(*one)


def _write(records: Iterable[Raw], folder: Path, name: str, on_damage: OnDamage) -> SealedFile:
    folder.mkdir(parents=True, exist_ok=True)
    out = outfile.create(folder, name, b"")
    count = 0
    try:
        for raw in records:
            try:
                _append(out, raw)
                count += 1
            except (DamagedWarc, BadBytes) as bad:
                out.rollback()
                kind = bad.kind
                on_damage(bad if isinstance(bad, DamagedWarc) else DamagedWarc(raw.offset, kind, bad.detail))
        return out.seal(count)
    except BaseException:
        out.discard()
        raise


def _append(out: OutFile, raw: Raw) -> None:
    # Not in our own form: `verify` would ask of these records what only our writer puts into them.
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    pieces = chain((raw.head,), raw.block, (_END,))
    if raw.size <= _WHOLE_BYTES:
        packed = b"".join(packer.compress(piece) for piece in pieces)
        out.append(packed + packer.flush())
        return
    out.begin()
    start, length = b"", 0
    for ready in _packed(packer, pieces):
        start = (start + ready)[:_HEADER_BYTES]
        length += len(ready)
        out.piece(ready)
    out.commit(start, length)


def _packed(packer: zlib._Compress, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield from map(packer.compress, pieces)
    yield packer.flush()


_PIECE_BYTES = 1 << 16


def record_pieces(path: Path, offset: int) -> Iterator[bytes]:
    """Yield the record that begins here, uncompressed, its closing line breaks included: a WARC file of its own.

    DamagedWarc if no whole record stands there; Invalid if its member holds others too.
    """
    with open_record_at(path, offset) as record:
        content_length = record.head.content_length
    with open_source(path) as source:
        try:
            if source.at(offset, 3) == MAGIC:
                yield from GzipMember(source, offset).pieces()
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
