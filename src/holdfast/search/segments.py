"""The columns on disk: small immutable files that the one writer adds and merges, and that every reader maps.

A segment lists the ranges of snapshot ids that it replaces, and their pages; a newer one overrides an older.
Readers follow the manifest, never the outbox, so that no late or out-of-order commit is missed. A manifest of
another version is rejected, and the index is then rebuilt.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from holdfast.search.engine import SCHEMA_VERSION, IndexBroken
from holdfast.search.fingerprints import PRINT_WIDTH
from holdfast.storage.disk import synced, write_whole
from holdfast.values import dataclass

VERSION: Final = SCHEMA_VERSION * 100 + 6

UNREADABLE: Final = (OSError, ValueError, KeyError, EOFError, BadZipFile, struct.error)
"""Exceptions that numpy raises for a torn file."""

Table = npt.NDArray[np.void]
Ranges = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int64]
FoundKeys = npt.NDArray[np.bool_]

# Of a file in a zip: what matters is how long the name and the extra fields behind it are.
_LOCAL_HEADER: Final = struct.Struct("<26xHH")

ROW: Final = np.dtype(
    [
        ("id", "<i8"),
        ("at", "<i8"),
        ("url", "<i8"),
        ("doc", "<i4"),
        ("source", "<i4"),
        ("status", "<i2"),
        ("flags", "u1"),
        ("type", "u1"),
    ]
)
"""One page: its time in microseconds, the hash of its URL as captured, its document (0: none), status (0: none)."""
ADDRESS: Final = np.dtype(
    [
        ("url", "<i8"),
        ("group", "<i8"),
        ("host", "<i8"),
        ("offset", "<i8"),
        ("length", "<i4"),
        ("flags", "u1"),
    ]
)
"""One distinct URL; its group's hash is the same as in page_groups and page_signals."""
DOCUMENT: Final = np.dtype(
    [
        ("doc", "<i8"),
        ("offset", "<i8"),
        ("title", "<i4"),
        ("snippet", "<i4"),
        ("language", "S3"),
        ("flags", "u1"),
        ("author", "<i8"),
        ("author_length", "<i2"),
        ("published", "<i4"),
        ("print", "<u8", (PRINT_WIDTH,)),
    ]
)
"""One document; title and snippet, folded, and its author are adjacent in the strings.

`author` is the hash of the folded name, 0 if missing; `published` the day since 1970, or `NO_DAY`; `print` the
fingerprint.
"""
NO_DAY: Final = -(1 << 31)

DUPLICATE: Final = 1
NOINDEX: Final = 2
NOISE: Final = 4
HAS_QUERY: Final = 1
TRACKED: Final = 2
SAYS_ARCHIVED: Final = 1
PAGE_TYPE_SHIFT: Final = 4
"""The upper half of a document's flags is the place of its page type in `operators.PAGE_TYPES`."""

HTML: Final = 1
TEXT: Final = 2
PDF: Final = 3
OTHER: Final = 0
TYPE_NAMES: Final = {HTML: "html", TEXT: "text", PDF: "pdf", OTHER: "other"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One batch of changes, or many merged. `cleared` are the id ranges that it replaces, first and last."""

    name: str
    rows: Table
    addresses: Table
    documents: Table
    cleared: Ranges
    strings: mmap.mmap | bytes

    @property
    def weight(self) -> int:
        return len(self.rows) + len(self.addresses) + len(self.documents) + 1

    def has_urls(self, keys: Ids) -> FoundKeys:
        """Return which URLs a stored segment has; reads a few pages of a file of any size."""
        return _among(self.addresses["url"], keys)

    def has_documents(self, keys: Ids) -> FoundKeys:
        return _among(self.documents["doc"], keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentManifest:
    sequence: int = 0
    segments: tuple[str, ...] = ()
    signals: str | None = None


def is_of_this_version(folder: Path) -> bool:
    """Return True if the manifest exists and has this program's version. A broken one counts, so that it is
    reported.
    """
    try:
        return bool(json.loads((folder / "manifest.json").read_text()).get("version") == VERSION)
    except (FileNotFoundError, AttributeError):
        return False
    except ValueError:
        # Logged for the operator, who may want to know why the index is rebuilt.
        return True


def entries_of(folder: Path) -> Path | None:
    """Return the folder of the word index beside the columns; None if it is missing: opening one would create it."""
    entries = folder / "entries"
    return entries if (entries / "meta.json").exists() else None


def read_manifest(folder: Path) -> SegmentManifest:
    """Return the current manifest, empty for a new folder; raise IndexBroken if it has another version."""
    try:
        fields = json.loads((folder / "manifest.json").read_text())
    except FileNotFoundError:
        return SegmentManifest()
    except ValueError as exc:
        raise IndexBroken("the search index has a broken manifest; run: holdfast search-index rebuild") from exc
    if fields.pop("version", None) != VERSION:
        raise IndexBroken(
            "the search index is of another version of this program; the next index run, worker or search command "
            "rebuilds it, or run: holdfast search-index rebuild"
        )
    return SegmentManifest(sequence=fields["sequence"], segments=tuple(fields["segments"]), signals=fields["signals"])


def write_manifest(folder: Path, manifest: SegmentManifest) -> None:
    """Replace the manifest atomically; delete files that it no longer names."""
    fields = {
        "version": VERSION,
        "sequence": manifest.sequence,
        "segments": manifest.segments,
        "signals": manifest.signals,
    }
    # First the manifest, then the old files: a reader that follows the old one finds its files or looks again.
    write_whole(folder / "manifest.json", json.dumps(fields).encode())
    kept = {f"{name}{end}" for name in manifest.segments for end in (".npz", ".strings")} | {manifest.signals}
    for path in folder.iterdir():
        # Readers that still map one of these keep their pages; a reader that comes too late starts again.
        if path.suffix in (".npz", ".strings") and path.name not in kept:
            path.unlink(missing_ok=True)


def store(folder: Path, segment: Segment) -> None:
    """Write a segment's two files and sync them; they take effect with the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    with synced(folder / f"{segment.name}.strings") as out:
        out.write(segment.strings[:])
    with synced(folder / f"{segment.name}.npz") as out:
        np.savez(
            out,
            rows=segment.rows,
            addresses=_by_key(segment.addresses, "url"),
            documents=_by_key(segment.documents, "doc"),
            cleared=segment.cleared,
        )


def load(folder: Path, name: str) -> Segment:
    """Return a segment, its tables and strings mapped; raise IndexBroken if its files are missing or incomplete."""
    try:
        with (folder / f"{name}.npz").open("rb") as file, ZipFile(file) as packed:
            tables = {key: _mapped(file, packed, key) for key in ("rows", "addresses", "documents", "cleared")}
        with (folder / f"{name}.strings").open("rb") as file:
            empty = os.fstat(file.fileno()).st_size == 0
            strings: mmap.mmap | bytes = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except UNREADABLE as exc:
        raise IndexBroken(f"a file of the search index is missing or broken: {exc}") from exc
    return Segment(name=name, strings=strings, **tables)


def _by_key(table: Table, key: str) -> Table:
    keys = table[key]
    return table if np.all(keys[1:] >= keys[:-1]) else table[np.argsort(keys, kind="stable")]


_ADDRESSES_AT_ONCE: Final = 1 << 20


def addresses_of(table: Table, groups: Ids) -> Iterator[tuple[int, int]]:
    """Yield the URLs of these groups (ascending) that have no query, each with its group; one pass over all."""
    for start in range(0, len(table) if len(groups) else 0, _ADDRESSES_AT_ONCE):
        part = table[start : start + _ADDRESSES_AT_ONCE]
        nearest = groups[np.minimum(np.searchsorted(groups, part["group"]), len(groups) - 1)]
        wanted = (nearest == part["group"]) & ((part["flags"] & HAS_QUERY) == 0)
        yield from zip(part["group"][wanted].tolist(), part["url"][wanted].tolist(), strict=True)


def _mapped(file: BinaryIO, packed: ZipFile, name: str) -> npt.NDArray[Any]:
    # Not read: a process that searches has the same values in its columns, and the file's pages can be dropped.
    entry = packed.getinfo(f"{name}.npy")
    if entry.compress_type != ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    file.seek(entry.header_offset)
    local = file.read(_LOCAL_HEADER.size)
    name_bytes, extra_bytes = _LOCAL_HEADER.unpack(local)
    file.seek(name_bytes + extra_bytes, os.SEEK_CUR)
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return np.asarray(np.memmap(file, dtype, "r", file.tell(), shape)) if shape[0] else np.empty(shape, dtype)


def _among(column: Ids, keys: Ids) -> FoundKeys:
    """Return which keys a sorted column contains, with one vectorised search.

    `searchsorted` would copy the whole column first: one field of a packed table is not aligned.
    """
    if not len(column):
        return np.zeros(len(keys), np.bool_)
    low, high = np.zeros(len(keys), np.int64), np.full(len(keys), len(column))
    while (open_ := low < high).any():
        middle = (low + high) // 2
        is_less = column[np.minimum(middle, len(column) - 1)] < keys
        low, high = np.where(open_ & is_less, middle + 1, low), np.where(open_ & ~is_less, middle, high)
    found: FoundKeys = (low < len(column)) & (column[np.minimum(low, len(column) - 1)] == keys)
    return found


def cleared_by(ids: npt.NDArray[np.int64], ranges: Ranges) -> npt.NDArray[np.bool_]:
    """Return which ids are in one of the ranges; the ranges may overlap."""
    if not len(ranges):
        return np.zeros(len(ids), np.bool_)
    joined = join_ranges(ranges)
    at = np.searchsorted(joined[:, 0], ids, side="right") - 1
    inside: npt.NDArray[np.bool_] = (at >= 0) & (ids <= joined[np.maximum(at, 0), 1])
    return inside


def join_ranges(ranges: Ranges) -> Ranges:
    # A segment of changed documents or of signals alone speaks for no range.
    if not len(ranges):
        return ranges
    ordered = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ordered[:, 1])
    starts_anew = np.concatenate(([True], ordered[1:, 0] > ends[:-1] + 1))
    last_of = np.concatenate((np.flatnonzero(starts_anew)[1:] - 1, [len(ordered) - 1]))
    return np.stack((ordered[starts_anew, 0], ends[last_of]), axis=1)


def living_rows(segments: Sequence[Segment]) -> Table:
    found: list[Table] = []
    later = np.empty((0, 2), np.int64)
    for segment in reversed(segments):
        rows = segment.rows
        if len(later) and len(rows):
            rows = rows[~cleared_by(rows["id"], later)]
        found.append(rows)
        later = np.concatenate((later, segment.cleared)) if len(segment.cleared) else later
    return np.concatenate(found[::-1]) if found else np.empty(0, ROW)


def newest_by(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    last = np.concatenate((ordered[1:] != ordered[:-1], [True])) if len(ordered) else np.empty(0, np.bool_)
    return order[last]


def merge(segments: Sequence[Segment], name: str, *, oldest: bool) -> Segment:
    """Return these segments as one; the oldest of all need not remember what it cleared."""
    documents, addresses = united(segments, "documents"), united(segments, "addresses")
    strings = packed_texts((documents, addresses), segments)
    cleared = [segment.cleared for segment in segments]
    return Segment(
        name=name,
        # Rows that a newer segment cleared are dropped here: merging is when space is freed.
        rows=sorted_rows(living_rows(segments)),
        addresses=addresses[0],
        documents=documents[0],
        strings=strings,
        # There is nothing older that a range could still clear.
        cleared=np.empty((0, 2), np.int64) if oldest else join_ranges(np.concatenate(cleared)),
    )


def sorted_rows(rows: Table) -> Table:
    """Return rows ordered by time, then id, as in stored segments: newer rows can then simply be appended."""
    at, ids = rows["at"], rows["id"]
    later, same = at[1:] > at[:-1], at[1:] == at[:-1]
    if np.all(later | (same & (ids[1:] > ids[:-1]))):
        return rows
    return rows[np.lexsort((ids, at))]


Entries = tuple[Table, npt.NDArray[np.int64]]
"""Documents or URLs, and the number of the segment of each."""
_TABLES: Final = {"documents": (DOCUMENT, "doc"), "addresses": (ADDRESS, "url")}


def united(segments: Sequence[Segment], name: str) -> Entries:
    """Return the newest document (or URL) of each key, in the order of the keys."""
    dtype, key = _TABLES[name]
    tables: list[Table] = [getattr(segment, name) for segment in segments]
    whole = np.concatenate([np.empty(0, dtype), *tables])
    origin = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    places = newest_by(whole[key])
    return whole[places], origin[places]


def text_lengths(table: Table) -> Ids:
    names = ("length",) if table.dtype == ADDRESS else ("title", "snippet", "author_length")
    return sum((table[name].astype(np.int64) for name in names), np.zeros(len(table), np.int64))


def packed_texts(entries: Iterable[Entries], segments: Sequence[Segment]) -> bytes:
    """Return the texts of these entries of segments, one after another, and set the offsets of the entries."""
    blobs, pieces, size = [segment.strings for segment in segments], list[bytes](), 0
    for table, origin in entries:
        lengths = text_lengths(table)
        for number, start, length in zip(origin.tolist(), table["offset"].tolist(), lengths.tolist(), strict=True):
            pieces.append(blobs[number][start : start + length])
        table["offset"] = size + np.cumsum(lengths) - lengths
        size += int(lengths.sum())
    return b"".join(pieces)


def merge_plan(weights: Sequence[int], *, factor: int = 4, most: int = 12) -> int:
    """Return how many of the newest segments to merge into one; 0 or 1 means none.

    A segment is merged once it is not clearly smaller than the one before, so each entry is copied only a few
    times.
    """
    count = 1
    size = weights[-1] if weights else 0
    while count < len(weights) and (weights[-count - 1] < factor * size or len(weights) - count >= most):
        count += 1
        size += weights[-count]
    return count if count > 1 else 0


def with_segment(manifest: SegmentManifest, names: Iterable[str]) -> SegmentManifest:
    return replace(manifest, sequence=manifest.sequence + 1, segments=tuple(names))


def as_table(values: Sequence[tuple[Any, ...]], dtype: np.dtype[Any]) -> Table:
    return np.array(values, dtype) if values else np.empty(0, dtype)
