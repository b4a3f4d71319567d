"""Records of any origin written anew, one gzip member each, so that every one can be sought. Fields stay the same."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from holdfast.warc import outfile
from holdfast.warc.arc import Converted, read_arc
from holdfast.warc.member import BadBytes
from holdfast.warc.outfile import OutFile, SealedFile
from holdfast.warc.reader import DamagedWarc, OnDamage, read_records
from holdfast.warc.record import RecordHead
from holdfast.warc.walk import Pulse

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
