"""Verification: every byte of a WARC file is looked at, and everything that is wrong is said, with its offset.

Streaming, with flat memory. It trusts nothing that it reads, and raises only if the file cannot be opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.warc.feed import Feed
from holdfast.warc.inspection import Inspection, Ledger, Problem
from holdfast.warc.manifest import ManifestEntry
from holdfast.warc.member import MAGIC, OWN_PREFIX, BadBytes, Member, own_length
from holdfast.warc.source import ByteSource, open_source
from holdfast.warc.walk import Resync, explain_rest
from holdfast.warc.zst import ZstdFrame, is_zstd, load_dictionary, skip_frames

__all__ = ["Problem", "VerifyReport", "verify_file"]

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was found in one file."""

    path: Path
    records: int
    bytes: int
    problems: tuple[Problem, ...]
    """The first thousand, in the order of the file; `problem_count` counts all."""
    notes: tuple[Problem, ...]
    """What is not wrong, but worth knowing."""
    problem_count: int

    @property
    def ok(self) -> bool:
        """Whether the file is as it should be."""
        return self.problem_count == 0


Advance = Callable[[int], None]
"""Told how many more bytes of the file have been looked at."""


def _nobody(_count: int) -> None:
    return None


def verify_file(path: Path, expected: ManifestEntry | None = None, advance: Advance = _nobody) -> VerifyReport:
    """Return what is wrong with a `.warc.gz`, `.warc` or `.warc.zst` file, and against its manifest entry if given.

    A cut exactly between two records leaves a valid file: only the manifest can tell. NotFound or Unavailable if the
    file cannot be opened or read.
    """
    ledger = Ledger()
    with open_source(path) as source:
        verifier = _Verifier(source, ledger, advance)
        if source.size == 0:
            ledger.problem(0, "empty_file", "there is nothing in it")
        elif source.at(0, 3) == MAGIC or (path.name.endswith((".gz", ".open")) and source.at(0, 5).upper() != b"WARC/"):
            verifier.members()
        elif is_zstd(source):
            verifier.frames()
        else:
            verifier.plain()
        if expected is not None:
            _compare(source, expected, ledger)
        return VerifyReport(
            path=path, records=ledger.records, bytes=source.size, problems=tuple(ledger.problems),
            notes=tuple(ledger.notes), problem_count=ledger.problem_count,
        )  # fmt: skip


class _Verifier:
    """Walks one file."""

    def __init__(self, source: ByteSource, ledger: Ledger, advance: Advance) -> None:
        self._source = source
        self._ledger = ledger
        self._advance = advance
        self._inspection = Inspection(ledger)

    def members(self) -> None:
        """Walk gzip members; damage is listed, and the walk goes on at the next one that can be found."""
        source, ledger = self._source, self._ledger
        ledger.own = source.at(0, len(OWN_PREFIX)) == OWN_PREFIX
        resync = Resync(source)
        at = 0
        while at < source.size:
            member = Member(source, at)
            try:
                self._inside(at, Feed(member.pieces()))
            except BadBytes as bad:
                resync.spend(member.inflated)
                found = resync.after(at)
                if found is None:
                    bad = explain_rest(source, at, bad)
                ledger.problem(at, bad.kind, bad.detail)
                end = source.size if found is None else found
                self._advance(end - at)
                at = end
                continue
            if ledger.own and own_length(source.at(at, 29)) is None:
                ledger.problem(at, "gzip_header", "the member's header is not the one that was written")
            assert member.end is not None
            self._advance(member.end - at)
            at = member.end

    def frames(self) -> None:
        """Walk zstd frames; damage ends the walk, for nothing tells where the next frame begins."""
        at = 0
        try:
            dictionary = load_dictionary(self._source)
            at = skip_frames(self._source, 0)
            while at < self._source.size:
                frame = ZstdFrame(self._source, at, dictionary)
                self._inside(at, Feed(frame.pieces()))
                assert frame.end is not None
                self._advance(frame.end - at)
                at = skip_frames(self._source, frame.end)
        except BadBytes as bad:
            self._ledger.problem(at, bad.kind, bad.detail)

    def plain(self) -> None:
        """Walk records that are not compressed; after damage, go on at the next line that begins one."""
        source, inspection = self._source, Inspection(self._ledger, plain=True)
        resync = Resync(source)
        at = 0
        while at < source.size:
            feed = Feed(_pieces(source, at))
            try:
                whole = inspection.record(at, feed)
            except BadBytes as bad:
                kind = "truncated" if bad.kind == "content_length" else bad.kind
                self._ledger.problem(at, kind, bad.detail)
                whole = False
            if whole:
                self._advance(feed.position)
                at += feed.position
                continue
            # Each head can state a length that reaches to the end of the file, and be followed by another such head.
            resync.spend(feed.position)
            if resync.is_spent:
                self._ledger.problem(at, "garbage", "the rest costs more to read than that of an honest file")
                return
            found = source.find(b"\nWARC/1.", at + 1)
            end = source.size if found is None else found + 1
            self._advance(end - at)
            at = end

    def _inside(self, offset: int, feed: Feed) -> None:
        """Look at what one member or frame holds: one record, and nothing else."""
        many = False
        follows = self._inspection.record(offset, feed)
        while follows and feed.peek(5).upper() == b"WARC/":
            many = True
            follows = self._inspection.record(offset, feed)
        left = feed.drain()
        if many:
            self._ledger.problem(offset, "not_per_record", "one member holds several records: none can be addressed")
        elif follows and left:
            self._ledger.problem(offset, "record_end", f"{left} bytes follow the record inside its member")


def _compare(source: ByteSource, expected: ManifestEntry, ledger: Ledger) -> None:
    if source.size != expected.size:
        ledger.problem(0, "file_size", f"the file has {source.size} bytes, the manifest says {expected.size}")
        return
    hasher = hashlib.sha256()
    for at in range(0, source.size, _PIECE_BYTES):
        hasher.update(source.at(at, _PIECE_BYTES))
    if hasher.hexdigest() != expected.sha256:
        ledger.problem(0, "file_digest", "the file does not have the SHA-256 that the manifest says")
    if ledger.records != expected.record_count and ledger.problem_count == 0:
        ledger.problem(0, "record_count", f"{ledger.records} records, the manifest says {expected.record_count}")


def _pieces(source: ByteSource, offset: int) -> Iterator[bytes]:
    while piece := source.at(offset, 1 << 16):
        offset += len(piece)
        yield piece
