"""Verification: checks every byte of a WARC file and lists every problem with its offset.

Streams in constant memory. It trusts no input, and raises only if the file cannot be opened.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast.storage.disk import digests_of
from holdfast.storage.folder import AnyFile
from holdfast.warc.member import (
    OWN_HEADER_BYTES,
    OWN_PREFIX,
    BadBytes,
    ByteSource,
    GzipMember,
    Resync,
    ZstdFrame,
    explain_rest,
    is_gzip,
    is_zstd,
    load_dictionary,
    open_source,
    own_length,
    skip_frames,
)
from holdfast.warc.outfile import SealedFile
from holdfast.warc.payload import parse_head as parse_http_head
from holdfast.warc.payload import payload_chunks
from holdfast.warc.reader import RecordStream
from holdfast.warc.record import (
    LOST_TYPE,
    MAX_HEAD_BYTES,
    MAX_HTTP_HEAD_BYTES,
    BadHead,
    Hasher,
    RecordHead,
    agrees,
    bare_id,
    hasher_for,
    parse_head,
    percent_encoded,
)

_MANDATORY = ("WARC-Type", "WARC-Record-ID", "WARC-Date")
_MANY = {"warc-concurrent-to", "warc-protocol"}
_MAX_LISTED = 1000
_MAX_BREAKS = 64
# Other writers count empty lines differently, or end them with LF; an odd mixture means a wrong Content-Length.
_SLOPPY = re.compile(rb"(?:\r\n)+|\n+")
_CAPTURES = {"response", "revisit"}


class RecordProblem(NamedTuple):
    offset: int
    kind: str
    detail: str


class VerifyReport:
    """The findings in one file. Problems make it invalid; notes are informative."""

    def __init__(self, size: int) -> None:
        self.bytes = size
        self.records = 0
        self.problem_count = 0
        self.problems: list[RecordProblem] = []
        """The first thousand, in file order; `problem_count` counts all."""
        self.notes: list[RecordProblem] = []
        self.own = False
        """True once the file is known to be ours: then nothing is excused."""

    @property
    def ok(self) -> bool:
        return self.problem_count == 0

    def problem(self, offset: int, kind: str, detail: str) -> None:
        self.problem_count += 1
        if len(self.problems) < _MAX_LISTED:
            self.problems.append(RecordProblem(offset, kind, detail))

    def note(self, offset: int, kind: str, detail: str) -> None:
        """Add a note about something that is permitted, but that our writer never does."""
        if len(self.notes) < _MAX_LISTED:
            self.notes.append(RecordProblem(offset, kind, detail))

    def fault(self, offset: int, kind: str, detail: str) -> None:
        """Add a problem for one of our files, or a note for those of others."""
        (self.problem if self.own else self.note)(offset, kind, detail)


class Inspection:
    def __init__(self, findings: VerifyReport, *, plain: bool = False) -> None:
        self._findings = findings
        self._plain = plain
        """True if nothing but the records themselves tells where they end."""
        self._before: RecordHead | None = None

    def record(self, offset: int, feed: RecordStream) -> bool:
        """Check the current record of the feed to its end; return whether the next one can follow there.

        Raise BadBytes if the stream itself is damaged.
        """
        try:
            head = parse_head(feed.head(MAX_HEAD_BYTES))
            size = head.content_length
        except BadHead as exc:
            self._findings.problem(offset, "record_header", str(exc))
            return False
        first, self._findings.records = self._findings.records == 0, self._findings.records + 1
        self._block(offset, head, RecordStream(feed.take(size)), size, first)
        self._fields(offset, head)
        self._order(offset, head, first)
        self._before = head
        return self._end(offset, feed)

    def _block(self, offset: int, head: RecordHead, block: RecordStream, size: int, first: bool) -> None:
        """Read the block once, computing both digests; a warcinfo at the start shows whether the file is ours."""
        stated = head.get("WARC-Block-Digest")
        hasher = hasher_for(stated) if stated else None
        watched = RecordStream(_watch(block.take(size), hasher))
        if first and head.type == "warcinfo":
            # Identify an uncompressed copy of our file, or one with a damaged first header, by its content.
            self._findings.own = self._findings.own or b"software: holdfast" in watched.peek(512).lower()
        self._payload(offset, head, watched, size)
        watched.drain()
        if watched.position < size:
            raise BadBytes("content_length", f"the block has {watched.position} bytes, Content-Length says {size}")
        if stated and hasher is None:
            self._findings.note(offset, "digest_unknown", f"{stated[:40]!r} cannot be checked")
        elif stated and hasher is not None and not agrees(stated, hasher):
            self._findings.problem(offset, "block_digest", f"the block does not have the digest {stated[:100]}")
        elif not stated and self._findings.own and head.get("Content-Type") != LOST_TYPE:
            self._findings.problem(offset, "digest_missing", "no WARC-Block-Digest")

    def _payload(self, offset: int, head: RecordHead, block: RecordStream, size: int) -> None:
        stated = head.get("WARC-Payload-Digest")
        if not stated or head.type == "revisit" or head.get("WARC-Segment-Number"):
            return  # it is the digest of a payload in other records
        decoded, raw = hasher_for(stated), hasher_for(stated)
        if decoded is None or raw is None:
            self._findings.note(offset, "digest_unknown", f"{stated[:40]!r} cannot be checked")
            return
        if "application/http" in (head.get("Content-Type") or "").lower():
            self._http(offset, block, size, decoded, raw)
        else:
            for piece in block.take(size):
                decoded.update(piece)
        if agrees(stated, decoded):
            return
        # warcio and fastwarc compute the digest before removing the chunk framing; the standard requires it after.
        if not self._findings.own and agrees(stated, raw):
            self._findings.note(offset, "payload_digest", "it was made before the transfer encoding was removed")
        elif not self._findings.own and head.get("WARC-Truncated"):
            self._findings.note(offset, "payload_digest", "it is that of more bytes than were kept")
        else:
            self._findings.problem(offset, "payload_digest", f"the payload does not have the digest {stated[:100]}")

    def _http(self, offset: int, block: RecordStream, size: int, decoded: Hasher, raw: Hasher) -> None:
        try:
            http = parse_http_head(block.head(min(size, MAX_HTTP_HEAD_BYTES)))
            for piece in payload_chunks(http, _watch(block.take(size - block.position), raw)):
                decoded.update(piece)
        except BadBytes as bad:
            if bad.kind != "record_header":
                raise
            self._findings.note(offset, "http_head", "the block does not begin with an HTTP head")

    def _fields(self, offset: int, head: RecordHead) -> None:
        findings = self._findings
        for name in _MANDATORY:
            if not head.get(name):
                findings.problem(offset, "field_missing", f"no {name}")
        if head.type == "revisit" and not head.get("WARC-Profile"):
            findings.problem(offset, "field_missing", "no WARC-Profile in a revisit")
        for name, count in Counter(name.lower() for name, _ in head.fields).items():
            if count > 1 and name not in _MANY:
                findings.fault(offset, "field_repeated", f"{percent_encoded(name)} is there {count} times")
        if head.get("WARC-Date"):
            try:
                _ = head.date
            except BadHead as exc:
                findings.problem(offset, "field_value", str(exc))

    def _order(self, offset: int, head: RecordHead, first: bool) -> None:
        findings = self._findings
        is_lost = (head.get("Content-Type") or "") == LOST_TYPE
        if first and head.type != "warcinfo" and not is_lost:
            findings.fault(offset, "warcinfo_missing", f"the file begins with a record of type {head.type[:40]!r}")
        if is_lost:
            findings.note(offset, "lost_record", "a repair found a damaged record here")
        before = self._before
        # The lost record may be this request's capture.
        if head.type != "request" or before is None or before.type == "metadata":
            return
        partner = bare_id(head.get("WARC-Concurrent-To") or "")
        same_event = partner == before.record_id and head.get("WARC-Date") == before.get("WARC-Date")
        # Our writer puts a request directly after its capture; others put it before, or elsewhere.
        if findings.own and not (same_event and before.type in _CAPTURES):
            findings.problem(offset, "pair_broken", "a request does not belong to the capture before it")

    def _end(self, offset: int, feed: RecordStream) -> bool:
        near = feed.peek(_MAX_BREAKS)
        breaks = near[: len(near) - len(near.lstrip(b"\r\n"))]
        feed.drop(len(breaks))
        if breaks == b"\r\n\r\n":
            return True
        after = feed.peek(5).upper()
        detail = f"after the block stands {near[:8]!r}, not two empty lines"
        if after not in (b"", b"WARC/"):
            self._findings.problem(offset, "record_end", detail)
            return False
        if self._plain and not after and b"\r\n\r\n".startswith(breaks):
            self._findings.problem(offset, "truncated", "the file ends before the two empty lines after the block")
        elif _SLOPPY.fullmatch(breaks) or (not breaks and not self._plain):
            self._findings.fault(offset, "record_end", detail)
        else:
            self._findings.problem(offset, "record_end", detail)
        return True


def _watch(pieces: Iterator[bytes], hasher: Hasher | None) -> Iterator[bytes]:
    for piece in pieces:
        if hasher is not None:
            hasher.update(piece)
        yield piece


Advance = Callable[[int], None]
"""Called with the number of bytes checked since the last call; may raise to stop."""


def _ignore(_count: int) -> None:
    return None


def verify_file(file: AnyFile, expected: SealedFile | None = None, advance: Advance = _ignore) -> VerifyReport:
    """Verify a `.warc.gz`, `.warc` or `.warc.zst` file, and compare it with its manifest entry if given.

    A cut exactly between two records leaves a valid file: only the manifest reveals it. Raise NotFound or
    Unavailable if the file cannot be opened or read.
    """
    with open_source(file) as source:
        findings = VerifyReport(source.size)
        verifier = _Verifier(source, findings, advance)
        if source.size == 0:
            findings.problem(0, "empty_file", "there is nothing in it")
        elif is_gzip(source, file.name):
            verifier.members()
        elif is_zstd(source):
            verifier.frames()
        else:
            verifier.plain()
        if expected is not None:
            _compare(source, expected, findings)
        return findings


class _Verifier:
    def __init__(self, source: ByteSource, findings: VerifyReport, advance: Advance) -> None:
        self._source = source
        self._findings = findings
        self._advance = advance
        self._inspection = Inspection(findings)

    def members(self) -> None:
        """Walk gzip members; after damage, continue at the next one that can be found."""
        source, findings = self._source, self._findings
        findings.own = source.at(0, len(OWN_PREFIX)) == OWN_PREFIX
        resync = Resync(source)
        at = 0
        while at < source.size:
            member = GzipMember(source, at)
            try:
                self._inside(at, RecordStream(member.pieces()))
            except BadBytes as bad:
                resync.spend(member.inflated)
                found = resync.after(at)
                if found is None:
                    bad = explain_rest(source, at, bad)
                findings.problem(at, bad.kind, bad.detail)
                end = source.size if found is None else found
                self._advance(end - at)
                at = end
                continue
            # It decompresses, but a byte of the header differs: no checksum covers the header itself.
            if findings.own and own_length(source.at(at, OWN_HEADER_BYTES)) is None:
                findings.problem(at, "gzip_header", "the member's header is not the one that was written")
            assert member.end is not None
            self._advance(member.end - at)
            at = member.end

    def frames(self) -> None:
        """Walk zstd frames; damage ends the walk, because the start of the next frame is unknown."""
        at = 0
        try:
            dictionary = load_dictionary(self._source)
            at = skip_frames(self._source, 0)
            while at < self._source.size:
                frame = ZstdFrame(self._source, at, dictionary)
                self._inside(at, RecordStream(frame.pieces()))
                assert frame.end is not None
                self._advance(frame.end - at)
                at = skip_frames(self._source, frame.end)
        except BadBytes as bad:
            self._findings.problem(at, bad.kind, bad.detail)

    def plain(self) -> None:
        """Walk uncompressed records; after damage, continue at the next line that starts one."""
        source, inspection = self._source, Inspection(self._findings, plain=True)
        resync = Resync(source)
        at = 0
        while at < source.size:
            feed = RecordStream(source.pieces(at))
            try:
                whole = inspection.record(at, feed)
            except BadBytes as bad:
                # In a plain file a short block can only mean that the file ends.
                kind = "truncated" if bad.kind == "content_length" else bad.kind
                self._findings.problem(at, kind, bad.detail)
                whole = False
            if whole:
                self._advance(feed.position)
                at += feed.position
                continue
            # Each head can state a length up to the end of the file and be followed by another such head.
            resync.spend(feed.position)
            if resync.is_spent:
                self._findings.problem(at, "garbage", "the rest costs more to read than that of an honest file")
                return
            found = source.find(b"\nWARC/1.", at + 1)
            end = source.size if found is None else found + 1
            self._advance(end - at)
            at = end

    def _inside(self, offset: int, feed: RecordStream) -> None:
        """Check that a member or frame contains one record and nothing else."""
        many = False
        follows = self._inspection.record(offset, feed)
        while follows and feed.peek(5).upper() == b"WARC/":
            many = True
            follows = self._inspection.record(offset, feed)
        left = feed.drain()
        if many:
            self._findings.problem(offset, "not_per_record", "one member holds several records: none can be addressed")
        elif follows and left:
            self._findings.problem(offset, "record_end", f"{left} bytes follow the record inside its member")


def _compare(source: ByteSource, expected: SealedFile, findings: VerifyReport) -> None:
    if source.size != expected.size:
        findings.problem(0, "file_size", f"the file has {source.size} bytes, the manifest says {expected.size}")
        return
    if digests_of(source.pieces(0)).sha256 != expected.sha256:
        findings.problem(0, "file_digest", "the file does not have the SHA-256 that the manifest says")
    if findings.records != expected.record_count and findings.problem_count == 0:
        findings.problem(0, "record_count", f"{findings.records} records, the manifest says {expected.record_count}")
