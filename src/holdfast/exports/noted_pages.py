"""The pages that the records of a sealed file name: read from the file once, then cached beside the packages.

A takedown changes a package only if one of its files names the page, in a capture or in another record. Without
this list every takedown would read all files of every package again.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from holdfast import cancellation
from holdfast.coordination.disk import CachedFile
from holdfast.exports.redaction import named_page
from holdfast.warc.outfile import sync_directory
from holdfast.warc.reader import DamagedWarc, read_records

FOLDER = ".pages"
"""Folder below that of all packages; its size is about a thousandth of the files."""


def _kept(folder: Path, digest: str) -> Path:
    return folder / FOLDER / f"{digest}.gz"


def is_noted(folder: Path, digest: str) -> bool:
    kept = _kept(folder, digest)
    return kept.is_file() and kept.stat().st_size > 0


def noted_pages(folder: Path, path: Path, digest: str) -> Sequence[str]:
    """Return the keys of the pages that a file names; the first call reads the whole file, which may take minutes."""
    kept = _kept(folder, digest)
    # A power loss may leave an empty or cut note: it counts as missing, never as "names no page".
    with suppress(FileNotFoundError, EOFError, gzip.BadGzipFile, zlib.error):
        if packed := kept.read_bytes():
            with suppress(OSError):  # of another owner: its age stays as it is
                os.utime(kept)
            return gzip.decompress(packed).decode().split("\n")
    keys = _read(path)
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


def _read(path: Path) -> list[str]:
    keys: set[str] = set()

    def damaged(_damage: DamagedWarc) -> None:
        """Ignore damage: a hidden record that cannot be read is blanked by its position."""

    for record in read_records(path, damaged, cancellation.check):
        cancellation.check()
        # A revisit names the page of its original, too.
        keys |= {named_page(name) for name in (record.head.url, record.head.address("WARC-Refers-To-Target-URI"))}
    return sorted(keys)
