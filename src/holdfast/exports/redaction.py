"""Blanks records under a takedown: finds them, and makes filler of exactly their length with none of the content.

The offsets of all other records stay valid, and every reader skips over the filler.
"""

from __future__ import annotations

import gzip
import os
import re
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from holdfast import cancellation
from holdfast.exports.zipping import FileRange, Segment
from holdfast.processes.disk import CachedFile
from holdfast.storage.disk import sync_directory
from holdfast.storage.folder import AnyFile
from holdfast.urls import page_key
from holdfast.warc.reader import Record, read_records
from holdfast.warc.record import bare_id, format_date, format_head, urn
from holdfast.warc.repair import lost_record
from holdfast.withdrawals.hidden_captures import HiddenRecord

NOTE = "a record stood here that was withdrawn from this archive"
_PIECE_BYTES = 64 * 1024
# A shorter last piece might not fit a replacement record.
_LEAST_BYTES = 1024
_ASKED_AT_ONCE = 500
_EMPTY_MEMBER = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff%b\0\x03\0" + b"\0" * 8
_SKIPPABLE = 0x184D2A50
_CAPTURES = ("response", "revisit", "resource")
# Browser crawlers name a page's text, screenshot and the like so: urn:text:https://…, screenshot:https://…
_PREFIX = re.compile(r"(?:urn:)?[a-z-]{1,32}:(?=https?://)", re.IGNORECASE)
_ZERO_ID = "00000000-0000-0000-0000-000000000000"


Gap = tuple[int, int]
"""Offset and length of a record to blank."""


class _RecordTable:
    """Columns about the records of a file that blanking needs: about 50 bytes each, since a file may hold millions.

    Ids, and URLs with their times, are stored as 64 bits of their SHA-256.
    """

    def __init__(self) -> None:
        self.offsets, self.lengths = array("q"), array("q")
        self.ids = array("q")
        self.moments = array("q")
        """Of the page that a record is about and its date; 0 if it is about none."""
        self.is_capture = array("B")
        """Whether it is a capture of its own; all else only accompanies one."""
        self.is_hidden = array("B")
        """Whether it is about a page under takedown."""
        self.link_from, self.link_to = array("I"), array("q")
        """Which record names which other one: it was made with it, or refers to it. Not what a revisit refers to, for
        the original may be another page's."""
        self.link_is_together = array("B")

    def add(self, record: Record, key: str) -> None:
        head, number = record.head, len(self.offsets)
        self.offsets.append(record.offset)
        self.lengths.append(record.length)
        self.ids.append(_hash64(head.record_id))
        self.moments.append(_hash64(f"{head.get('WARC-Date') or ''} {key}") if key else 0)
        self.is_capture.append(head.type in _CAPTURES)
        self.is_hidden.append(False)
        together = {bare_id(value) for value in head.every("WARC-Concurrent-To")}
        about = {"" if head.type == "revisit" else bare_id(head.get("WARC-Refers-To") or "")}
        for name in (together | about) - {""}:
            self.link_from.append(number)
            self.link_to.append(_hash64(name))
            self.link_is_together.append(name in together)


def find_gaps(
    file: AnyFile,
    hidden: Iterable[HiddenRecord],
    hidden_among: Callable[[set[str]], Iterable[str]] = lambda _keys: (),
) -> list[Gap]:
    """Return the gaps in a file: hidden records, all records about a page under takedown, and related records.

    `hidden_among` receives a few hundred keys at a time and returns those of pages under takedown. Records that other
    writers add to a capture (requests, metadata, texts and screenshots) name the page by id, by URL, or both.
    """
    lengths = {record.offset: record.length for record in hidden}
    records = _read(file, hidden_among)
    offsets, ids, moments = (np.frombuffer(one, np.int64) for one in (records.offsets, records.ids, records.moments))
    chosen = np.isin(offsets, np.fromiter(lengths, np.int64, len(lengths)))
    linked_by = np.frombuffer(records.link_from, np.uint32)
    # With a hidden record, redact the records that it names as concurrent, such as its request.
    is_together = np.frombuffer(records.link_is_together, np.bool_)
    linked = np.frombuffer(records.link_to, np.int64)[is_together & chosen[linked_by]]
    # Metadata and screenshots of a page often have only its URL and time; exclude captures, because each has its own
    # takedown.
    accompanies = ~np.frombuffer(records.is_capture, np.bool_) & (moments != 0) & np.isin(moments, moments[chosen])
    wanted = chosen | np.frombuffer(records.is_hidden, np.bool_) | np.isin(ids, linked) | accompanies
    _add_followers(records, wanted)
    found = {records.offsets[number]: records.lengths[number] for number in np.flatnonzero(wanted).tolist()}
    # Unreadable records are blanked by the positions in their rows.
    return sorted((lengths | found).items())


def _read(file: AnyFile, hidden_among: Callable[[set[str]], Iterable[str]]) -> _RecordTable:
    records = _RecordTable()
    unasked: dict[str, list[int]] = {}

    def ask() -> None:
        for key in hidden_among(set(unasked)) if unasked else ():
            for number in unasked[key]:
                records.is_hidden[number] = True
        unasked.clear()

    # Check between two pieces, too: one member can take hours to yield a record.
    for number, record in enumerate(read_records(file, lambda _damage: None, cancellation.check)):
        cancellation.check()
        # Use the takedown's key, so that every spelling of a URL matches.
        key = named_page(record.head.url)
        records.add(record, key)
        if key:
            unasked.setdefault(key, []).append(number)
        # Look up some hundred keys per query: one query for each of a million records would take minutes.
        if number % _ASKED_AT_ONCE == 0:
            ask()
    ask()
    return records


def named_page(url: str) -> str:
    """Return the key of the page that a record's URL names; empty if it has none."""
    return page_key(_PREFIX.sub("", url)) if url else ""


def _add_followers(records: _RecordTable, wanted: npt.NDArray[np.bool_]) -> None:
    ids, linked_by = np.frombuffer(records.ids, np.int64), np.frombuffer(records.link_from, np.uint32)
    order = np.argsort(np.frombuffer(records.link_to, np.int64)).astype(np.uint32)
    targets, starts, counts = np.unique(
        np.frombuffer(records.link_to, np.int64)[order], return_index=True, return_counts=True
    )
    is_done = np.zeros(len(targets), np.bool_)
    fresh = np.flatnonzero(wanted)
    while len(fresh) and len(targets):
        cancellation.check()
        names = np.unique(ids[fresh])
        places = np.minimum(np.searchsorted(targets, names), len(targets) - 1)
        # Follow each target once: any number of records may have one id.
        places = places[(targets[places] == names) & ~is_done[places]]
        is_done[places] = True
        many = counts[places]
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        found = np.unique(linked_by[order[np.repeat(starts[places], many) + within]])
        fresh = found[~wanted[found]]
        wanted[fresh] = True


def _hash64(text: str) -> int:
    # URLs are compared by this many bits everywhere; a collision would redact one record too many, never too few.
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)


def blanked(file: AnyFile, size: int, gaps: Iterable[Gap], at: datetime) -> list[Segment]:
    segments: list[Segment] = []
    done = 0
    for offset, length in gaps:
        if offset > done:
            segments.append(FileRange(file, done, offset - done))
        segments += filling(file.name, length, at)
        done = offset + length
    segments.append(FileRange(file, done, size - done))
    return segments


def filling(name: str, length: int, at: datetime) -> list[bytes]:
    """Return pieces of exactly `length` bytes in total, in the format (compression) that the file name implies."""
    one = _zstd_piece if name.endswith(".zst") else _gzip_piece if name.endswith(".gz") else _plain_piece
    pieces: list[bytes] = []
    whole = one(_PIECE_BYTES, at)
    while length >= _PIECE_BYTES + _LEAST_BYTES:
        pieces.append(whole)
        length -= _PIECE_BYTES
    return [*pieces, one(length, at)]


def _zstd_piece(length: int, _at: datetime) -> bytes:
    return struct.pack("<II", _SKIPPABLE, length - 8) + b"\0" * (length - 8)


def _gzip_piece(length: int, at: datetime) -> bytes:
    whole = lost_record(length, NOTE, at)
    return whole if whole is not None else _EMPTY_MEMBER % (b" " * (length - len(_EMPTY_MEMBER) + 2))


def _plain_piece(length: int, at: datetime) -> bytes:
    fields = [
        ("WARC-Type", "metadata"),
        ("WARC-Record-ID", urn(_ZERO_ID)),
        ("WARC-Date", format_date(at)),
        ("Content-Type", "text/plain"),
        ("Content-Length", "0" * 10),
    ]
    head = format_head(fields)
    # Always ten digits, so that the head's length does not depend on the number.
    room = length - len(head) - 4
    if room < 0:
        return b"\r\n" * (length // 2) + b"\n" * (length % 2)
    head = format_head([*fields[:-1], ("Content-Length", f"{room:010d}")])
    return head + NOTE.encode()[:room].ljust(room) + b"\r\n\r\n"


FOLDER = ".pages"
"""Folder, below that of all packages, of the pages that each sealed file names: read once, since a takedown changes a
package only if one of its files names the page. Its size is about a thousandth of the files.
"""


def _kept(folder: Path, digest: str) -> Path:
    return folder / FOLDER / f"{digest}.gz"


def is_noted(folder: Path, digest: str) -> bool:
    kept = _kept(folder, digest)
    return kept.is_file() and kept.stat().st_size > 0


def noted_pages(folder: Path, file: AnyFile, digest: str) -> Sequence[str]:
    """Return the keys of the pages that a file names; the first call reads the whole file, which may take minutes."""
    kept = _kept(folder, digest)
    # A power loss may leave an empty or truncated note: treat it as missing, never as "names no page".
    with suppress(FileNotFoundError, EOFError, gzip.BadGzipFile, zlib.error):
        if packed := kept.read_bytes():
            with suppress(OSError):  # of another owner: its age stays as it is
                os.utime(kept)
            return gzip.decompress(packed).decode().split("\n")
    keys = _named_in(file)
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_name(f".{uuid4().hex}")
    fresh.write_bytes(gzip.compress("\n".join(keys).encode("utf-8", "replace"), 1))
    sync_directory(fresh)
    fresh.replace(kept)
    return keys


def stored_notes(folder: Path) -> list[CachedFile]:
    """Return all cached lists, including those of deleted files, each with the time of its last use."""
    found: list[CachedFile] = []
    for path in (folder / FOLDER).glob("*"):
        with suppress(FileNotFoundError):  # another process trims the cache
            facts = path.stat()
            found.append(CachedFile(facts.st_mtime_ns, path, facts.st_blocks * 512))
    return found


def _named_in(file: AnyFile) -> list[str]:
    keys: set[str] = set()
    # Ignore damage: an unreadable hidden record is redacted by its position.
    for record in read_records(file, lambda _damage: None, cancellation.check):
        cancellation.check()
        # A revisit contains its original's URL, too.
        keys |= {named_page(name) for name in (record.head.url, record.head.address("WARC-Refers-To-Target-URI"))}
    return sorted(keys)
