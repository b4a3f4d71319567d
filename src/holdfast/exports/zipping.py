"""A ZIP archive that is never written: its layout is computed from names, sizes and checksums, and its bytes are
read from the original files. Stored members only, sizes known before the first byte, ZIP64 where a number does
not fit.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Self

from holdfast import cancellation
from holdfast.errors import Conflict, NotFound
from holdfast.storage.folder import AnyFile, open_file
from holdfast.storage.store import BlobReader
from holdfast.values import dataclass

_PIECE_BYTES = 256 * 1024
_LIMIT_32, _LIMIT_16 = 0xFFFFFFFF, 0xFFFF
_LOCAL, _CENTRAL = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L")
_END, _END_64, _LOCATOR_64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_UTF8_NAMES = 0x800
_VERSION, _VERSION_64, _UNIX = 20, 45, 3 << 8
_PLAIN_FILE = 0o100644 << 16


class MemberChanged(Conflict):
    """A file differs from its sealed state; run `holdfast verify` for details."""

    code = "member_changed"


class FileRange(NamedTuple):
    file: AnyFile
    """A sealed file, or a generated one beside the package."""
    start: int
    size: int


Segment = bytes | FileRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipMember:
    name: str
    crc32: int
    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        return sum(segment_size(segment) for segment in self.segments)


def segment_size(segment: Segment) -> int:
    return len(segment) if isinstance(segment, bytes) else segment.size


def read_segments(segments: Iterable[Segment]) -> Iterator[bytes]:
    """Yield the bytes of segments in order; raise NotFound or MemberChanged if a file differs from its sealed
    state.
    """
    with _OpenFile() as files:
        for segment in segments:
            yield from files.part(segment, 0, segment_size(segment))


class VirtualZip:
    """The archive of these members, in this order; the same members and time give the same bytes."""

    def __init__(self, members: Sequence[ZipMember], moment: datetime) -> None:
        names = [member.name for member in members]
        # Readers differ in which of two members with one name they use.
        if len(set(names)) != len(names):
            raise ValueError("two members of one name")
        self._segments: list[Segment] = []
        self._starts: list[int] = []
        self.size = 0
        stamp = _stamp(moment)
        directory = []
        for member in members:
            directory.append(_central(member, stamp, self.size))
            self._append(_local(member, stamp))
            for segment in member.segments:
                self._append(segment)
        start, size = self.size, sum(map(len, directory))
        self._append(b"".join(directory))
        self._append(_end(len(directory), size, start))

    def _append(self, segment: Segment) -> None:
        if segment_size(segment):
            self._segments.append(segment)
            self._starts.append(self.size)
            self.size += segment_size(segment)

    def read(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from `start` to `end`; raise NotFound or MemberChanged if a file differs from its sealed
        state.
        """
        end = self.size if end is None else min(end, self.size)
        with _OpenFile() as files:
            for number in range(max(0, bisect_right(self._starts, start) - 1), len(self._segments)):
                segment, at = self._segments[number], self._starts[number]
                if at >= end:
                    return
                size = segment_size(segment)
                if at + size > start:
                    yield from files.part(segment, max(0, start - at), min(size, end - at))


class _OpenFile:
    """The last read file, held open: a member may consist of a million segments of one file."""

    def __init__(self) -> None:
        self._file: AnyFile | None = None
        self._reader: BlobReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()

    def part(self, segment: Segment, start: int, end: int) -> Iterator[bytes]:
        if isinstance(segment, bytes):
            yield segment[start:end]
            return
        reader = self._opened(segment.file)
        at, stop = segment.start + start, segment.start + end
        while at < stop:
            piece = reader.read(at, min(stop - at, _PIECE_BYTES))
            if not piece:
                raise MemberChanged(f"{segment.file.name} is shorter than when it was sealed; see: holdfast verify")
            at += len(piece)
            # The client may have disconnected: do not read a package of gigabytes to its end.
            cancellation.check()
            yield piece

    def _opened(self, file: AnyFile) -> BlobReader:
        if self._reader is not None and self._file == file:
            return self._reader
        self.__exit__()
        self._reader = None
        try:
            self._reader, self._file = open_file(file), file
        except NotFound as exc:
            raise NotFound(f"{file.name} is not where it was; see: holdfast verify") from exc
        return self._reader


def _stamp(moment: datetime) -> tuple[int, int]:
    """Return time and date in the format of ZIP: two-second resolution, from 1980 to 2107."""
    at = moment.astimezone(UTC)
    year = min(max(at.year, 1980), 2107)
    return at.hour << 11 | at.minute << 5 | at.second // 2, (year - 1980) << 9 | at.month << 5 | at.day


def _local(member: ZipMember, stamp: tuple[int, int]) -> bytes:
    name, size = member.name.encode(), member.size
    large = size >= _LIMIT_32
    extra = struct.pack("<2H2Q", 1, 16, size, size) if large else b""
    shown = _LIMIT_32 if large else size
    version = _VERSION_64 if large else _VERSION
    return (
        _LOCAL.pack(b"PK\3\4", version, _UTF8_NAMES, 0, *stamp, member.crc32, shown, shown, len(name), len(extra))
        + name
        + extra
    )


def _central(member: ZipMember, stamp: tuple[int, int], offset: int) -> bytes:
    name, size = member.name.encode(), member.size
    wide = [size, size] if size >= _LIMIT_32 else []
    wide += [offset] if offset >= _LIMIT_32 else []
    extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    shown = min(size, _LIMIT_32)
    version = _VERSION_64 if wide else _VERSION
    return (
        _CENTRAL.pack(
            b"PK\1\2",
            _UNIX | version,
            version,
            _UTF8_NAMES,
            0,
            *stamp,
            member.crc32,
            shown,
            shown,
            len(name),
            len(extra),
            0,
            0,
            0,
            _PLAIN_FILE,
            min(offset, _LIMIT_32),
        )
        + name
        + extra
    )


def _end(count: int, size: int, start: int) -> bytes:
    wide = b""
    if count >= _LIMIT_16 or size >= _LIMIT_32 or start >= _LIMIT_32:
        version = _UNIX | _VERSION_64
        wide = _END_64.pack(b"PK\6\6", 44, version, _VERSION_64, 0, 0, count, count, size, start)
        wide += _LOCATOR_64.pack(b"PK\6\7", 0, start + size, 1)
    few = min(count, _LIMIT_16)
    return wide + _END.pack(b"PK\5\6", 0, 0, few, few, min(size, _LIMIT_32), min(start, _LIMIT_32), 0)
