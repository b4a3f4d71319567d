"""Repairs a damaged file: every complete record stays in place, and no byte is lost.

A torn end is cut. A damaged record in the middle is replaced by a record of exactly its length that documents
the loss, so that offsets, ordinals and the ids based on them stay valid. The original bytes are saved beside it
as `.bad`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import struct
import uuid
from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from isal.isal_zlib import crc32

from holdfast import log
from holdfast.clock import Clock, SystemClock
from holdfast.errors import Conflict
from holdfast.storage.disk import digests_of, disk_error, sync_directory, synced
from holdfast.storage.folder import LocalFile
from holdfast.values import dataclass
from holdfast.warc.member import (
    OWN_HEADER_BYTES,
    OWN_PREFIX,
    BadBytes,
    ByteSource,
    GzipMember,
    Resync,
    explain_rest,
    glimpse,
    open_source,
    own_header,
    own_length,
    true_header,
    whole_own_length,
)
from holdfast.warc.outfile import OPEN_SUFFIX, SealedFile
from holdfast.warc.reader import RecordStream
from holdfast.warc.record import (
    LOST_TYPE,
    MAX_HEAD_BYTES,
    BadHead,
    RecordType,
    format_date,
    format_head,
    parse_head,
    urn,
)

_TRAILER_BYTES = 8
_STORED_HEADER_BYTES = 5
_STORED_BYTES = 65_535
_LENGTH_DIGITS = 10
_END = b"\r\n\r\n"


def lost_record(length: int, note: str, at: datetime) -> bytes | None:
    """Return a complete metadata record of exactly `length` bytes, or None if that is too short.

    For records that are held in memory anyway; `lost_pieces` yields pieces.
    """
    pieces = lost_pieces(length, note, at)
    return None if pieces is None else b"".join(pieces)


def lost_pieces(length: int, note: str, at: datetime) -> Iterator[bytes] | None:
    """Return the same record in pieces of at most 64 KiB: a damaged region may be as large as its file."""
    # Store without compression: only then can the member's length be exact to the byte.
    blocks = -(-(length - OWN_HEADER_BYTES - _TRAILER_BYTES) // (_STORED_BYTES + _STORED_HEADER_BYTES))
    data_bytes = length - OWN_HEADER_BYTES - _TRAILER_BYTES - blocks * _STORED_HEADER_BYTES
    # Leading zeros keep the head's length independent of the number (Content-Length is 1*DIGIT).
    digits = max(_LENGTH_DIGITS, len(str(length)))
    room = data_bytes - len(_head(note, at, "0" * digits)) - len(_END)
    if room < 0:
        return None
    head = _head(note, at, f"{room:0{digits}d}")
    return _member(length, head + note.encode()[:room], data_bytes, blocks)


def _head(note: str, at: datetime, content_length: str) -> bytes:
    return format_head(
        (
            ("WARC-Type", RecordType.METADATA.value),
            ("WARC-Record-ID", urn(str(uuid.uuid5(uuid.NAMESPACE_OID, note)))),
            ("WARC-Date", format_date(at)),
            ("Content-Type", LOST_TYPE),
            ("Content-Length", content_length),
        )
    )


def _member(length: int, text: bytes, size: int, blocks: int) -> Iterator[bytes]:
    """Yield a member with a record of `size` bytes: a head and a text, padded with blanks."""

    def pieces() -> Iterator[bytes]:
        end_of_block = size - len(_END)
        for number in range(blocks):
            start, end = number * _STORED_BYTES, min((number + 1) * _STORED_BYTES, size)
            blanks = max(0, min(end, end_of_block) - max(start, len(text)))
            closing = _END[max(0, start - end_of_block) : max(0, end - end_of_block)]
            yield b"".join((text[start:end], b" " * blanks, closing))

    def stored() -> Iterator[bytes]:
        """Yield a deflate stream of stored blocks (RFC 1951, section 3.2.4)."""
        for number, piece in enumerate(pieces(), 1):
            yield struct.pack("<BHH", number == blocks, len(piece), len(piece) ^ 0xFFFF) + piece

    # Header and trailer both contain a checksum of the content: generate it three times rather than hold it once.
    checksum = 0
    for piece in pieces():
        checksum = crc32(piece, checksum)
    trailer = struct.pack("<II", checksum, size & 0xFFFFFFFF)
    own = 0
    for piece in stored():
        own = crc32(piece, own)
    yield own_header(length, crc32(trailer, own))
    yield from stored()
    yield trailer


_TYPE = re.compile(rb"\nWARC-Type: *([a-z]+)", re.IGNORECASE)
_OWN_WITHIN_BYTES = 256 * 1024
_ENDS = (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n", b"")


class Region(NamedTuple):
    """A region without a complete record; at most one record started there."""

    offset: int
    length: int
    kind: str
    detail: str


class RepairReport:
    """The division of all bytes of a file into records and damage, and the changes of a repair."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.kept: list[tuple[int, int]] = []
        """Offset and length of each complete record before the repair."""
        self.damaged: list[Region] = []
        self.mended: list[tuple[int, bytes]] = []
        """Offset and new header of our members whose content is intact and whose header is damaged or outdated."""
        self.bad: Path | None = None
        """File with the removed bytes: the original, or the torn end of an adopted file."""
        self.moved = False
        """True if a damaged region was too short for a replacement record, so that later records moved."""

    @property
    def changed(self) -> bool:
        return bool(self.damaged or self.mended)

    @property
    def tail(self) -> int:
        """Start of the part at the end without a complete record; the file's size if every record is complete."""
        return sum(self.kept[-1]) if self.kept else 0

    @property
    def cut_bytes(self) -> int:
        """The length of the torn end."""
        return self.size - self.tail

    @property
    def holes(self) -> list[Region]:
        return [region for region in self.damaged if region.offset < self.tail]


def scan(source: ByteSource, path: Path) -> RepairReport:
    """Find the complete records in a file of gzip members. Our members are verified by their own checksum only."""
    found = RepairReport(path, source.size)
    resync = Resync(source)
    # Search near the front: the first member may be damaged.
    is_own = OWN_PREFIX in source.at(0, _OWN_WITHIN_BYTES)
    at = 0
    while at < source.size:
        length, is_mended = whole_own_length(source, at), False
        if length is None:
            try:
                length, is_mended = _recovered(source, at, resync, is_own)
            except BadBytes as bad:
                resync.spend(0, summed_bytes=own_length(source.at(at, OWN_HEADER_BYTES)) or 0)
                following = resync.after(at)
                if following is None:
                    bad = explain_rest(source, at, bad)
                end = source.size if following is None else following
                found.damaged.append(Region(at, end - at, bad.kind, bad.detail))
                at = end
                continue
            if is_mended:
                found.mended.append((at, true_header(source, at, length)))
        found.kept.append((at, length))
        at += length
    return found


def _recovered(source: ByteSource, offset: int, resync: Resync, is_own: bool) -> tuple[int, bool]:
    """Return the length of the member here, and whether it is one of ours that needs another header.

    Raise BadBytes if no complete record can be recovered either way.
    """
    # Read it as ours, whatever its header says: if only the header is damaged, the content is worth keeping.
    if is_own:
        with contextlib.suppress(BadBytes):
            return _inflated(source, offset, resync, own_form=True), True
    return _inflated(source, offset, resync, own_form=False), False


def _inflated(source: ByteSource, offset: int, resync: Resync, *, own_form: bool) -> int:
    member = GzipMember(source, offset, own_form=own_form)
    feed = RecordStream(member.pieces())
    try:
        stated = parse_head(feed.head(MAX_HEAD_BYTES)).content_length
        block = sum(map(len, feed.take(stated)))
        if block < stated:
            raise BadBytes("content_length", f"the block has {block} bytes, Content-Length says {stated}")
        # The bytes after the block show whether Content-Length was right: line breaks, another record, or nothing.
        if feed.peek(5) not in _ENDS and b"WARC/" not in feed.peek(9).upper():
            raise BadBytes("record_end", "the block is longer than Content-Length says")
        feed.drain()
    except (BadBytes, BadHead) as bad:
        # Count only failed attempts: complete members cost no byte of the file twice.
        resync.spend(member.inflated)
        raise bad if isinstance(bad, BadBytes) else BadBytes("record_header", str(bad)) from bad
    assert member.end is not None
    return member.end - offset


def record_type(source: ByteSource, offset: int) -> str:
    """Return the type of the record that starts here, judged by its first bytes; empty if unknown."""
    match = _TYPE.search(glimpse(source, offset))
    return match[1].decode().lower() if match else ""


_PIECE_BYTES = 1 << 20
_log = log.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The result of adopting a file whose owner died."""

    sealed: SealedFile
    report: RepairReport
    response_offsets: tuple[int, ...]
    """Offsets of responses and revisits: each is referenced by a settled attempt, or it is an orphan."""

    @property
    def torn_bytes(self) -> int:
        return self.report.cut_bytes


class FileInUse(Conflict):
    """A live process holds the lock of this file."""

    code = "file_in_use"


def repair(path: Path, *, out: Path | None = None, clock: Clock | None = None) -> RepairReport:
    """Repair a `.warc.gz`: in place with the original saved as `.bad`, or as a copy at `out`.

    An intact file is not modified, so a second repair changes nothing. Raise Conflict for an open file (`adopt` is
    for those); NotFound, NoSpace or Unavailable on disk errors.
    """
    if path.name.endswith(OPEN_SUFFIX):
        raise Conflict(f"{path} is open; adopt it instead, which asks first whether its owner lives")
    with open_source(path) as source:
        report = scan(source, path)
        if not report.changed and out is None:
            return report
        try:
            if out is not None:
                _rewrite(source, report, out, _now(clock))
                return report
            # Keep the original: better tools may recover more of it.
            report.bad = _free_name(path, ".bad")
            if not report.kept:
                path.rename(report.bad)
            else:
                fresh = path.with_name(f".{path.name}.repair")
                _rewrite(source, report, fresh, _now(clock))
                _keep(path, report.bad, source)
                fresh.replace(path)
            sync_directory(path.parent)
        except OSError as exc:
            raise disk_error(exc, f"cannot repair {path}: {exc.strerror}") from exc
    _log_repair(report)
    return report


def adopt(path: Path, *, clock: Clock | None = None) -> Adoption | None:
    """Repair and seal the file of a dead owner, given by its sealed or its open name.

    Return None without a complete record: no file at all, or one that was moved to `.bad`. If it got its sealed
    name before its owner died, its digests are computed again. Raise FileInUse, changing nothing, if its owner
    lives.
    """
    sealed = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
    path = sealed.with_name(sealed.name + OPEN_SUFFIX)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return _take_over(sealed) if sealed.exists() else None
    except OSError as exc:
        raise disk_error(exc, f"cannot open {path}: {exc.strerror}") from exc
    try:
        # Locked, but renamed meanwhile: another recovery was faster.
        if not _lock(fd, path):
            return _take_over(sealed) if sealed.exists() else None
        return _adopt(fd, path, sealed, clock)
    except OSError as exc:
        raise disk_error(exc, f"cannot adopt {path}: {exc.strerror}") from exc
    finally:
        os.close(fd)


def _adopt(fd: int, path: Path, sealed: Path, clock: Clock | None) -> Adoption | None:
    if sealed.exists():
        # A process was killed between the two renames below: the repaired file exists, and the original still has its
        # old name.
        path.rename(_free_name(sealed, ".bad"))
        return _take_over(sealed)
    source = ByteSource(LocalFile(fd))
    report = scan(source, path)
    if not report.kept:
        report.bad = _free_name(sealed, ".bad")
        path.rename(report.bad)
    elif report.holes or report.mended:
        report.bad = _free_name(sealed, ".bad")
        fresh = path.with_name(f".{sealed.name}.repair")
        _rewrite(source, report, fresh, _now(clock))
        # Name the repaired file before renaming the original: after a kill in between both exist, and the next adoption
        # finds them above.
        fresh.rename(sealed)
        path.rename(report.bad)
    else:
        if report.cut_bytes:
            report.bad = _free_name(sealed, ".tail.bad")
            # Keep only the damaged end: a copy of a gigabyte for a few bytes would double the disk use.
            _write(report.bad, source, report.tail, source.size)
            os.ftruncate(fd, report.tail)
        os.fsync(fd)
        path.rename(sealed)
    sync_directory(path.parent)
    _log_repair(report)
    if not report.kept:
        return None
    with open_source(sealed) as whole:
        return _adopted(whole, scan(whole, sealed) if report.moved or report.holes else report, sealed, report)


def _take_over(sealed: Path) -> Adoption:
    with open_source(sealed) as source:
        report = scan(source, sealed)
        if report.changed:
            raise Conflict(f"{sealed} is damaged; repair it first")
        return _adopted(source, report, sealed, report)


def _adopted(source: ByteSource, found: RepairReport, path: Path, report: RepairReport) -> Adoption:
    offsets = [offset for offset, _ in found.kept]
    digests = digests_of(source.pieces(0))
    return Adoption(
        sealed=SealedFile(path=path, record_count=len(offsets), **digests._asdict()),
        report=report,
        response_offsets=tuple(at for at in offsets if record_type(source, at) in ("response", "revisit")),
    )


def _lock(fd: int, path: Path) -> bool:
    """Lock the file; return whether it still has this name."""
    try:
        # Do not wait: a held lock means that its owner lives, however long it has been silent.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        raise FileInUse(f"{path} is being written by a live process") from exc
    try:
        there, ours = path.stat(), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _log_repair(report: RepairReport) -> None:
    if report.changed:
        _log.warning(
            "warc.repaired",
            file=report.path.name,
            kept=len(report.kept),
            damaged=len(report.damaged),
            cut_bytes=report.cut_bytes,
            bad=report.bad.name if report.bad else None,
        )


def _rewrite(source: ByteSource, report: RepairReport, target: Path, now: datetime) -> None:
    """Write the repaired file, synced; note in the report whether records had to move."""
    at = 0
    patches: list[Region | tuple[int, bytes]] = [*report.holes, *report.mended]
    with synced(target) as file:
        for patch in sorted(patches, key=itemgetter(0)):
            copy_bytes(source, at, patch[0], file.fileno())
            if not isinstance(patch, Region):
                start, header = patch
                _write_all(file.fileno(), header)
                at = start + len(header)
                continue
            filler = lost_pieces(patch.length, _note(source, patch), now)
            report.moved = report.moved or filler is None
            for piece in filler or ():
                _write_all(file.fileno(), piece)
            at = patch.offset + patch.length
        copy_bytes(source, at, report.tail, file.fileno())


def _note(source: ByteSource, region: Region) -> str:
    hasher = hashlib.sha256()
    for at in range(region.offset, region.offset + region.length, _PIECE_BYTES):
        hasher.update(source.at(at, min(_PIECE_BYTES, region.offset + region.length - at)))
    return (
        f"lost: {region.length} bytes at {region.offset}, {region.kind}, sha256 {hasher.hexdigest()}; "
        "the original was kept as .bad\r\n"
    )


def _keep(path: Path, bad: Path, source: ByteSource) -> None:
    try:
        os.link(path, bad)
    except OSError:  # no hard links here
        _write(bad, source, 0, source.size)


def _write(path: Path, source: ByteSource, start: int, end: int) -> None:
    with synced(path) as file:
        copy_bytes(source, start, end, file.fileno())


def copy_bytes(source: ByteSource, start: int, end: int, fd: int) -> None:
    """Write a range of bytes to an open file; raise OSError if they end early, or if the disk fails."""
    at = start
    while at < end:
        piece = source.at(at, min(_PIECE_BYTES, end - at))
        if not piece:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        _write_all(fd, piece)
        at += len(piece)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _free_name(path: Path, suffix: str) -> Path:
    name = path.with_name(path.name + suffix)
    number = 1
    while name.exists():
        name = path.with_name(f"{path.name}{suffix}.{number}")
        number += 1
    return name


def _now(clock: Clock | None) -> datetime:
    return (clock or SystemClock()).now()
