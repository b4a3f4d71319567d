"""One zstd frame per record, as others write it (`.warc.zst`, a draft); read only, dictionaries included."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import zstandard

from holdfast.warc.codings import ZSTD_MAX_WINDOW
from holdfast.warc.member import BadBytes
from holdfast.warc.source import ByteSource

MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_DICTIONARY = 0x184D2A5D
# A block of four bytes can hold 128 KiB of one letter: a larger piece could swell to more than we want to hold.
_PIECE_BYTES = 256
_MAX_DICTIONARY_BYTES = 8 << 20


def is_zstd(source: ByteSource, offset: int = 0) -> bool:
    """Return whether a frame of any kind begins here."""
    head = source.at(offset, 4)
    return head == MAGIC or (len(head) == 4 and struct.unpack("<I", head)[0] in _SKIPPABLE)


def load_dictionary(source: ByteSource) -> zstandard.ZstdCompressionDict | None:
    """Return the dictionary that a file begins with, if it does; BadBytes if it cannot be used."""
    head = source.at(0, 8)
    if len(head) < 8 or struct.unpack_from("<I", head)[0] != _DICTIONARY:
        return None
    size = struct.unpack_from("<I", head, 4)[0]
    raw = source.at(8, min(size, _MAX_DICTIONARY_BYTES))
    try:
        if raw.startswith(MAGIC):
            raw = zstandard.ZstdDecompressor().decompress(raw, max_output_size=_MAX_DICTIONARY_BYTES)
        return zstandard.ZstdCompressionDict(raw)
    except (zstandard.ZstdError, ValueError) as exc:
        raise BadBytes("zstd_data", "the dictionary at the front of the file cannot be used") from exc


def skip_frames(source: ByteSource, offset: int) -> int:
    """Return where the next frame with content begins: skippable ones hold none."""
    while len(head := source.at(offset, 8)) == 8 and struct.unpack_from("<I", head)[0] in _SKIPPABLE:
        offset += 8 + int(struct.unpack_from("<I", head, 4)[0])
    return min(offset, source.size)


class ZstdFrame:
    """One frame of a file, being read. Nothing larger than a piece is held."""

    def __init__(self, source: ByteSource, offset: int, dictionary: zstandard.ZstdCompressionDict | None) -> None:
        self._source = source
        self._dictionary = dictionary
        self.offset = offset
        self.end: int | None = None
        """Where the next frame begins; known when `pieces` is exhausted."""
        self.inflated = 0
        """How many bytes have come out so far."""

    def pieces(self) -> Iterator[bytes]:
        """Yield what is inside; BadBytes if the frame is damaged or the file ends."""
        if self._source.at(self.offset, 4) != MAGIC:
            raise BadBytes("garbage", "no zstd frame begins here")
        inflate = zstandard.ZstdDecompressor(self._dictionary, max_window_size=ZSTD_MAX_WINDOW).decompressobj()
        at = self.offset
        while not inflate.eof:
            raw = self._source.at(at, _PIECE_BYTES)
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
