"""Gzip members, one per record: compression, and decompression in bounded steps with every checksum verified.

Our members state in the header's comment field their length and the CRC-32 of their compressed bytes, so that
every flipped bit is detected without a manifest, and a reader can skip a member without decompressing it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import zstandard
from deflate import deflate_compress
from isal import isal_zlib
from isal.isal_zlib import crc32

from holdfast.errors import Invalid
from holdfast.gzip_streams import GZIP, RAW, InflateBudget
from holdfast.storage.folder import AnyFile, open_file
from holdfast.storage.store import BlobReader
from holdfast.warc.payload import ZSTD_MAX_WINDOW

_WINDOW_BYTES = 256 * 1024
_READ_BYTES = 64 * 1024


class ByteSource:
    """Random and sequential reads of one blob. Memory: one window."""

    def __init__(self, reader: BlobReader) -> None:
        self._read = reader.read
        self.size = reader.size
        self._window = b""
        self._start = 0

    def at(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes from `offset`: fewer at the end of the file, none beyond it."""
        begin = offset - self._start
        if begin < 0 or begin + count > len(self._window):
            # A large read would evict the window for bytes that are not read again.
            if count > _WINDOW_BYTES:
                return self._read(offset, count)
            self._window, self._start, begin = self._read(offset, _WINDOW_BYTES), offset, 0
        return self._window[begin : begin + count]

    def pieces(self, offset: int) -> Iterator[bytes]:
        while piece := self.at(offset, _READ_BYTES):
            offset += len(piece)
            yield piece

    def find(self, needle: bytes, start: int) -> int | None:
        at = start
        while at + len(needle) <= self.size:
            if not self._start <= at <= self._start + len(self._window) - len(needle):
                self._window, self._start = self._read(at, _WINDOW_BYTES), at
                if len(self._window) < len(needle):
                    return None
            found = self._window.find(needle, at - self._start)
            if found >= 0:
                return self._start + found
            # Windows overlap by the needle's length less one: it may cross the boundary.
            at = self._start + len(self._window) - len(needle) + 1
        return None


@contextmanager
def open_source(file: AnyFile) -> Iterator[ByteSource]:
    """Open a file for reading; raise NotFound or Unavailable."""
    reader = open_file(file)
    try:
        yield ByteSource(reader)
    finally:
        reader.close()


MAGIC = b"\x1f\x8b\x08"
# Gzip's own checksum covers only what comes out: one flipped bit in a thousand changes nothing there (measured on isal
# members: a match that points to other, equal bytes). Any gzip reader passes over a comment (RFC 1952, section 2.3);
# FEXTRA would be as right, but a WARC reader in use once hung on it.
OWN_PREFIX = b"\x1f\x8b\x08\x10\x00\x00\x00\x00\x00\xff"
OWN_HEADER_BYTES = 29
_TRAILER = struct.Struct("<II")
# libdeflate 1 costs a ninth of zlib 6 on pages; it falls behind in size where they are large, and there level 2 makes
# up for it: 1.13 times the bytes of zlib 6 over the bench corpus (docs/decisions/0005 has the table).
_LARGE_BYTES = 80_000
# Records too large for memory need a stream, which libdeflate lacks; isal 2 is the cheapest with one.
_STREAM_LEVEL = 2
_MASK = 0xFFFFFFFF
# The first 4 KiB contain the heads: a reader of heads does not pay for the rest.
_BUDGET = InflateBudget(first_bytes=4096)
_MAX_HEADER_BYTES = 64 * 1024
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT, _RESERVED = 2, 4, 8, 16, 0xE0


class BadBytes(Invalid):
    """The bytes at this position are invalid; `kind` is a stable name for the damage."""

    code = "bad_bytes"

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


def own_header(length: int, checksum: int) -> bytes:
    """Return the gzip header of one of our members: its total length, and the CRC-32 of everything after the
    header.
    """
    return b"%b%010x%08x\x00" % (OWN_PREFIX, length, checksum)


def own_length(header: bytes) -> int | None:
    """Return the length in one of our headers, or None if it is not exactly in our format."""
    if len(header) < OWN_HEADER_BYTES or not header.startswith(OWN_PREFIX):
        return None
    try:
        length = int(header[10:20], 16)
        checksum = int(header[20:28], 16)
    except ValueError:
        return None
    # Python's int() accepts more than our headers contain (spaces, signs, underscores): accept only our exact spelling.
    return length if header[:OWN_HEADER_BYTES] == own_header(length, checksum) else None


def pack(record: bytes) -> bytes:
    deflated = deflate_compress(record, 1 if len(record) < _LARGE_BYTES else 2)
    trailer = _TRAILER.pack(crc32(record), len(record) & _MASK)
    header = own_header(OWN_HEADER_BYTES + len(deflated) + _TRAILER.size, crc32(trailer, crc32(deflated)))
    return b"".join((header, deflated, trailer))


class Packer:
    """Compresses a record that is too large for memory, piece by piece; its header is known at the end."""

    def __init__(self) -> None:
        self._deflate = isal_zlib.compressobj(_STREAM_LEVEL, isal_zlib.DEFLATED, RAW)
        self._crc = 0
        self._size = 0
        self._checksum = 0
        self._length = OWN_HEADER_BYTES

    def feed(self, piece: bytes) -> bytes:
        """Add a piece of the record; return compressed bytes that are ready, often none."""
        self._crc = crc32(piece, self._crc)
        self._size += len(piece)
        return self._count(self._deflate.compress(piece))

    def finish(self) -> bytes:
        return self._count(self._deflate.flush() + _TRAILER.pack(self._crc, self._size & _MASK))

    def header(self) -> bytes:
        """Return the member's header; valid only after `finish`, always of the same length."""
        return own_header(self._length, self._checksum)

    def _count(self, ready: bytes) -> bytes:
        self._checksum = crc32(ready, self._checksum)
        self._length += len(ready)
        return ready


def true_header(source: ByteSource, offset: int, length: int) -> bytes:
    """Compute our header for a member of this length from the bytes that follow it."""
    checksum = 0
    at, end = offset + OWN_HEADER_BYTES, offset + length
    while at < end and (piece := source.at(at, min(end - at, 1 << 20))):
        checksum = crc32(piece, checksum)
        at += len(piece)
    return own_header(length, checksum)


def whole_own_length(source: ByteSource, offset: int) -> int | None:
    """Return the length of one of our members if every byte is as written, without decompressing; else None."""
    header = source.at(offset, OWN_HEADER_BYTES)
    if not header.startswith(OWN_PREFIX):
        return None
    try:
        length = int(header[10:20], 16)
    except ValueError:
        return None
    # Check this before the checksum: a damaged or hostile length would make it read to the end of the file.
    if not OWN_HEADER_BYTES + _TRAILER.size <= length <= source.size - offset:
        return None
    return length if header == true_header(source, offset, length) else None


class GzipMember:
    """One gzip member of a file, being read. Nothing larger than a piece is in memory."""

    def __init__(self, source: ByteSource, offset: int, *, own_form: bool = False) -> None:
        self._source = source
        self._own_form = own_form
        """Take the header for one of ours whatever it says, and look only at what follows it."""
        self.offset = offset
        self.end: int | None = None
        """Where the next member begins; known when `pieces` is exhausted."""
        self.inflated = 0
        """How many bytes have come out so far."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the content; raise BadBytes if header, stream, checksum or length are wrong or the file ends."""
        stated = None if self._own_form else own_length(self._source.at(self.offset, OWN_HEADER_BYTES))
        is_own = self._own_form or stated is not None
        start = self.offset + (OWN_HEADER_BYTES if is_own else self._header_length())
        # Inlined from `gzip_streams.DeflateStream`, which took 15 us more per record (of 255 us).
        inflate = zlib.decompressobj(RAW)
        # Read no more than the member's bytes: otherwise each small one would read its neighbours.
        feed_bytes = _BUDGET.feed_bytes if stated is None else min(stated, _BUDGET.feed_bytes)
        crc, at = 0, start
        while not inflate.eof:
            feed = inflate.unconsumed_tail
            if not feed:
                feed = self._source.at(at, feed_bytes)
                at += len(feed)
                if not feed:
                    raise BadBytes("truncated", "the file ends inside a gzip member")
            try:
                piece = inflate.decompress(feed, _BUDGET.output_bytes if self.inflated else _BUDGET.first_bytes)
            except zlib.error as exc:
                raise BadBytes("gzip_data", "the compressed bytes cannot be inflated") from exc
            if piece:
                # The stream is raw, so check the gzip trailer's checksums here, with isal's faster CRC.
                crc = crc32(piece, crc)
                self.inflated += len(piece)
                yield piece
        at -= len(inflate.unused_data)
        self._check_trailer(at, crc)
        if stated is not None:
            self._check_own(at + _TRAILER.size)
        self.end = at + _TRAILER.size

    def _header_length(self) -> int:
        """Return the length of any gzip header (RFC 1952, section 2.3.1)."""
        fixed = self._source.at(self.offset, 10)
        if not fixed.startswith(MAGIC[: len(fixed)]):
            raise BadBytes("garbage", f"{fixed[:8].hex(' ')} is no gzip header")
        if len(fixed) < 10:
            raise BadBytes("truncated", "the file ends inside a gzip header")
        flags = fixed[3]
        # RFC 1952, section 2.3.1.2: a reader must stop at a reserved flag, because the header may be longer.
        if flags & _RESERVED:
            raise BadBytes("gzip_header", f"reserved flags are set ({flags:#04x})")
        length = 10
        if flags & _FEXTRA:
            length += 2 + int.from_bytes(self._source.at(self.offset + 10, 2), "little")
        for flag in (_FNAME, _FCOMMENT):
            if flags & flag:
                # Bounded: an unterminated name would be searched for through the whole file.
                text = self._source.at(self.offset + length, _MAX_HEADER_BYTES)
                if b"\0" not in text:
                    raise BadBytes("gzip_header", "a name or comment has no end")
                length += text.index(b"\0") + 1
        return length + (2 if flags & _FHCRC else 0)

    def _check_trailer(self, at: int, crc: int) -> None:
        trailer = self._source.at(at, _TRAILER.size)
        if len(trailer) < _TRAILER.size:
            raise BadBytes("truncated", "the file ends inside a gzip trailer")
        stated_crc, stated_size = _TRAILER.unpack(trailer)
        if stated_crc != crc:
            raise BadBytes("gzip_checksum", f"the content has CRC-32 {crc:08x}, the trailer says {stated_crc:08x}")
        if stated_size != self.inflated & _MASK:
            raise BadBytes("gzip_length", f"{self.inflated} bytes came out, the trailer says {stated_size}")

    def _check_own(self, end: int) -> None:
        length = whole_own_length(self._source, self.offset)
        if length is None:
            raise BadBytes("member_checksum", "the compressed bytes are not those that were written")
        if self.offset + length != end:
            raise BadBytes("member_checksum", f"the member is {end - self.offset} bytes long, its header says {length}")


ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_DICTIONARY = 0x184D2A5D
# Four bytes can expand to 128 KiB: a larger piece could exceed what we want to hold.
_ZSTD_PIECE_BYTES = 256
_MAX_DICTIONARY_BYTES = 8 << 20


def is_zstd(source: ByteSource, offset: int = 0) -> bool:
    head = source.at(offset, 4)
    return head == ZSTD_MAGIC or (len(head) == 4 and struct.unpack("<I", head)[0] in _SKIPPABLE)


def load_dictionary(source: ByteSource) -> zstandard.ZstdCompressionDict | None:
    """Return the dictionary at the start of a file, if any; raise BadBytes if it is invalid."""
    head = source.at(0, 8)
    if len(head) < 8 or struct.unpack_from("<I", head)[0] != _DICTIONARY:
        return None
    size = struct.unpack_from("<I", head, 4)[0]
    # Do not trust the stated size.
    raw = source.at(8, min(size, _MAX_DICTIONARY_BYTES))
    try:
        return zstandard.ZstdCompressionDict(_inflated_dictionary(raw) if raw.startswith(ZSTD_MAGIC) else raw)
    except (zstandard.ZstdError, ValueError) as exc:
        raise BadBytes("zstd_data", "the dictionary at the front of the file cannot be used") from exc


def _inflated_dictionary(raw: bytes) -> bytes:
    """Return a dictionary that is itself compressed; raise ValueError if it is too large or truncated."""
    # Decompress in pieces: one call would allocate the frame's stated size and ignore any other limit.
    inflate, found = zstandard.ZstdDecompressor().decompressobj(), bytearray()
    for at in range(0, len(raw), _ZSTD_PIECE_BYTES):
        found += inflate.decompress(raw[at : at + _ZSTD_PIECE_BYTES])
        if len(found) > _MAX_DICTIONARY_BYTES:
            raise ValueError("larger than any dictionary")
        if inflate.eof:
            return bytes(found)
    raise ValueError("cut off")


def skip_frames(source: ByteSource, offset: int) -> int:
    """Return the start of the next frame with content; skippable frames have none."""
    while len(head := source.at(offset, 8)) == 8 and struct.unpack_from("<I", head)[0] in _SKIPPABLE:
        offset += 8 + int(struct.unpack_from("<I", head, 4)[0])
    return min(offset, source.size)


class ZstdFrame:
    """One frame of a file, being read. Nothing larger than a piece is in memory."""

    def __init__(self, source: ByteSource, offset: int, dictionary: zstandard.ZstdCompressionDict | None) -> None:
        self._source = source
        self._dictionary = dictionary
        self.offset = offset
        self.end: int | None = None
        """Where the next frame begins; known when `pieces` is exhausted."""
        self.inflated = 0
        """How many bytes have come out so far."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the content; raise BadBytes if the frame is damaged or the file ends."""
        if self._source.at(self.offset, 4) != ZSTD_MAGIC:
            raise BadBytes("garbage", "no zstd frame begins here")
        inflate = zstandard.ZstdDecompressor(self._dictionary, max_window_size=ZSTD_MAX_WINDOW).decompressobj()
        at = self.offset
        while not inflate.eof:
            raw = self._source.at(at, _ZSTD_PIECE_BYTES)
            at += len(raw)
            if not raw:
                raise BadBytes("truncated", "the file ends inside a zstd frame")
            try:
                piece = inflate.decompress(raw)
            except zstandard.ZstdError as exc:
                raise BadBytes(
                    "zstd_data", "these bytes are no zstd data, or damaged, or need a window above 8 MiB"
                ) from exc
            if piece:
                self.inflated += len(piece)
                yield piece
        self.end = at - len(inflate.unused_data)


def is_gzip(source: ByteSource, name: str) -> bool:
    """Return whether to read a file as gzip members."""
    # Detect by content, not by name: plain WARC files are named .warc.gz, too. If the front is damaged, the name
    # decides, so that members after the damage are still found.
    return source.at(0, 3) == MAGIC or (name.endswith((".gz", ".open")) and source.at(0, 5).upper() != b"WARC/")


def compressed_pieces(source: ByteSource, offset: int) -> Iterator[bytes] | None:
    """Return the content of the gzip member or zstd frame that starts here; None in an uncompressed file."""
    if source.at(offset, 3) == MAGIC:
        return GzipMember(source, offset).pieces()
    if is_zstd(source, offset):
        return ZstdFrame(source, offset, load_dictionary(source)).pieces()
    return None


_GLIMPSE_BYTES = 256
_GLIMPSE_SOURCE_BYTES = 1024
# A CRC over eight bytes costs less than decompressing one: count summed bytes as an eighth.
_SUMMED_FOR_ONE = 8

Pulse = Callable[[], None]
"""Called for each piece of a file that is read; may raise to stop reading."""


def pulsed(pieces: Iterator[bytes], pulse: Pulse | None) -> Iterator[bytes]:
    """Yield the pieces with a pulse before each: a member can run for hours without yielding a record."""
    return pieces if pulse is None else _pulsed(pieces, pulse)


def _pulsed(pieces: Iterator[bytes], pulse: Pulse) -> Iterator[bytes]:
    for piece in pieces:
        pulse()
        yield piece


def glimpse(source: ByteSource, offset: int) -> bytes:
    """Return the first bytes of the member that starts here; empty if nothing can be decompressed."""
    # Use one call and no stream: a search with thousands of such positions must not read further at any.
    raw = source.at(offset, _GLIMPSE_SOURCE_BYTES)
    if not raw.startswith(MAGIC):
        return b""
    try:
        if own_length(raw) is not None:
            return zlib.decompressobj(RAW).decompress(raw[OWN_HEADER_BYTES:], _GLIMPSE_BYTES)
        return zlib.decompressobj(GZIP).decompress(raw, _GLIMPSE_BYTES)
    except zlib.error:
        return b""


class Resync:
    """Finds the next member after damage, until a file has cost more than an honest one can."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        # Accidental damage leaves a few false members; a hostile file of them, each reaching to its end, would be
        # decompressed once for each.
        self._tries = 100_000
        self._spare_bytes = 16 * source.size + (64 << 20)

    def spend(self, inflated_bytes: int, *, summed_bytes: int = 0) -> None:
        """Count the cost of examining a member: they can be nested so that each costs the whole file.

        A checksum costs a small part of decompressing as many bytes.
        """
        self._spare_bytes -= inflated_bytes + summed_bytes // _SUMMED_FOR_ONE

    @property
    def is_spent(self) -> bool:
        return self._spare_bytes <= 0

    def after(self, offset: int) -> int | None:
        """Return the first offset after this one where a member starts that looks like a record; None without one.

        Our members are recognized by their header alone, so that repeated damage is still counted record by record.
        """
        # Start at the damaged member's second byte, not at its stated end, which may be wrong.
        at = self._source.find(MAGIC, offset + 1)
        while at is not None and self._tries > 0 and self._spare_bytes > 0:
            is_own = own_length(self._source.at(at, OWN_HEADER_BYTES)) is not None
            if is_own or glimpse(self._source, at)[:5].upper() == b"WARC/":
                return at
            self._tries -= 1
            at = self._source.find(MAGIC, at + 1)
        return None


def explain_rest(source: ByteSource, offset: int, bad: BadBytes) -> BadBytes:
    """Classify damage that reaches to the end of the file: a cut, a tail of zeros, or the original error."""
    if bad.kind == "truncated":
        return bad
    # Some file systems leave zeros at the end of a file that was growing during a power loss.
    at = offset
    while at < source.size:
        piece = source.at(at, 1 << 16)
        if piece.strip(b"\0"):
            return bad
        at += len(piece) or source.size
    return BadBytes("zero_tail", f"{source.size - offset} zero bytes at the end")
