"""The WARC files inside a WACZ: named members only, streamed, within caps. Nothing is ever unpacked by its own name.

It refuses what honest packages do not have: encryption, links, members that overlap or swell (faults W09).
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from holdfast.errors import Invalid

_MEMBER = re.compile(r"archive/(?P<name>[^/\\\x00-\x1f]{1,200}\.(?:warc|warc\.gz|warc\.zst))")
_MAX_MEMBERS = 100_000
_MAX_DIRECTORY_BYTES = 64 * 1024 * 1024
_MAX_RATIO = 200
_RATIO_FROM_BYTES = 1024 * 1024
_END = struct.Struct("<4sHHHHIIH")
_END_64 = struct.Struct("<4sQHHIIQQQQ")
_PIECE_BYTES = 1 << 20
_ENCRYPTED = 0x1


class BadPackage(Invalid):
    """This is no WACZ that can be read."""

    code = "bad_package"


class PackedFile(NamedTuple):
    """One WARC file in a package."""

    name: str
    """Without its folder."""
    size: int
    info: zipfile.ZipInfo


class Package:
    """An open WACZ."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        self.refused: list[tuple[str, str]] = []
        """Members that are not read, and why."""

    def files(self) -> list[PackedFile]:
        """Return the WARC files in it, by name; BadPackage if there are none, or the package is built to harm."""
        found: dict[str, PackedFile] = {}
        for info in self._archive.infolist():
            match = _MEMBER.fullmatch(info.filename)
            if match is None:
                continue
            why = _objection(info) or ("a second member of this name" if match["name"] in found else "")
            if why:
                self.refused.append((info.filename, why))
            else:
                found[match["name"]] = PackedFile(match["name"], info.file_size, info)
        self._refuse_overlaps(found)
        if not found:
            why = "; ".join(f"{name}: {reason}" for name, reason in self.refused[:3])
            raise BadPackage(f"{self._path.name} holds no WARC file below archive/" + (f" ({why})" if why else ""))
        return sorted(found.values())

    def _refuse_overlaps(self, found: dict[str, PackedFile]) -> None:
        end = 0
        for info in sorted(self._archive.infolist(), key=lambda one: one.header_offset):
            if info.header_offset < end and info.compress_size:
                raise BadPackage(f"{self._path.name} has members that overlap, as no honest package has")
            end = max(end, info.header_offset + 30 + info.compress_size)

    def pieces(self, file: PackedFile) -> Iterator[bytes]:
        """Yield the bytes of one file; BadPackage if they are damaged or more than announced."""
        left = file.size
        try:
            with self._archive.open(file.info) as member:
                while piece := _read(member, min(_PIECE_BYTES, left + 1)):
                    left -= len(piece)
                    if left < 0:
                        raise BadPackage(f"{file.name} is longer than the package says")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as exc:
            raise BadPackage(f"{file.name} in {self._path.name} is damaged: {exc}") from exc
        if left:
            raise BadPackage(f"{file.name} in {self._path.name} ends {left} bytes too early")


@contextmanager
def open_package(path: Path) -> Iterator[Package]:
    """Open a WACZ; BadPackage if it is none."""
    _judge_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            yield Package(archive, path)
    except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError) as exc:
        raise BadPackage(f"{path.name} is no package that can be opened: {exc}") from exc


def is_package(path: Path) -> bool:
    """Return whether a file begins as a ZIP does."""
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def _read(member: IO[bytes], count: int) -> bytes:
    return member.read(count)


def _objection(info: zipfile.ZipInfo) -> str:
    """Return why a member is not read; nothing if it may be."""
    if info.flag_bits & _ENCRYPTED:
        return "encrypted"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "a link"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compression {info.compress_type}"
    if info.file_size > max(_RATIO_FROM_BYTES, _MAX_RATIO * info.compress_size):
        return f"it would swell from {info.compress_size} to {info.file_size} bytes"
    return ""


def _judge_directory(path: Path) -> None:
    """Refuse a list of members that would take too much memory, before it is read."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 65_557))
        tail = file.read()
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) - at < _END.size:
            raise BadPackage(f"{path.name} is no package: it has no list of members at its end")
        _, _, _, _, count, directory_bytes, _, _ = _END.unpack_from(tail, at)
        locator = tail.rfind(b"PK\x06\x07", 0, at)
        if locator >= 0 and at - locator == 20:
            file.seek(min(struct.unpack_from("<Q", tail, locator + 8)[0], size))
            raw = file.read(_END_64.size)
            if len(raw) == _END_64.size and raw.startswith(b"PK\x06\x06"):
                *_, count, directory_bytes, _ = _END_64.unpack(raw)
    if count > _MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise BadPackage(f"{path.name} lists {count} members, more than the {_MAX_MEMBERS} that are read")
