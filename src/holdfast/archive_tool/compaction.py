"""Smaller copies of WARC files: responses of some kinds are left out, every other record is copied byte for byte.

The originals are not touched: copies are staged beside them and checked, and whoever asked for them swaps or deletes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from holdfast.archive_tool.discovery import WarcFile
from holdfast.clock import Clock, digits14
from holdfast.errors import Invalid
from holdfast.warc.outfile import disk_error
from holdfast.warc.reader import DamagedWarc, Record, read_records
from holdfast.warc.source import ByteSource, open_source
from holdfast.warc.verify import verify_file

COMPACTED = "warcs_compacted"
DROPPED_KINDS = ("video/", "audio/")
_PIECE = 1024 * 1024


class Compacted(NamedTuple):
    """One staged copy."""

    source: Path
    staged: Path
    before_bytes: int
    after_bytes: int
    dropped: int
    """Records that the copy leaves out."""


def compact(
    output_dir: Path, files: Iterable[WarcFile], clock: Clock, kinds: tuple[str, ...] = DROPPED_KINDS
) -> list[Compacted]:
    """Stage smaller copies under `warcs_compacted/<moment>/` and return them; files with nothing to drop have none.

    DamagedWarc if a file is damaged (a copy would hide that); Invalid if a copy does not verify; NoSpace or Unavailable
    if the disk refuses.
    """
    folder = output_dir / COMPACTED / digits14(clock.now())
    return [made for file in files if (made := _compact_one(file, folder, kinds)) is not None]


class Compactable(NamedTuple):
    """What a compaction of one file would leave out."""

    source: Path
    before_bytes: int
    dropped: int
    dropped_bytes: int


def measure(files: Iterable[WarcFile], kinds: tuple[str, ...] = DROPPED_KINDS) -> list[Compactable]:
    """Return what `compact` would leave out, and write nothing; files with nothing to drop are not listed."""
    found = []
    for file in files:
        gone = [length for _, length, drop in _spans(file.path, kinds) if drop]
        if gone:
            found.append(Compactable(file.path, file.size, len(gone), sum(gone)))
    return found


def _spans(path: Path, kinds: tuple[str, ...]) -> list[tuple[int, int, bool]]:
    return [(record.offset, record.length, _is_dropped(record, kinds)) for record in read_records(path)]


def _compact_one(file: WarcFile, folder: Path, kinds: tuple[str, ...]) -> Compacted | None:
    spans = _spans(file.path, kinds)
    dropped = sum(drop for _, _, drop in spans)
    if not dropped:
        return None
    if len({offset for offset, _, _ in spans}) != len(spans) or any(length <= 0 for _, length, _ in spans):
        raise Invalid(f"{file.path} holds several records in one member; they cannot be copied one by one")
    target = folder / file.path.name
    if target.exists():
        raise Invalid(f"two files are called {target.name}; compact them one after the other")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open_source(file.path) as source, target.open("xb") as out:
            for offset, length, drop in spans:
                if not drop:
                    _copy(source, offset, length, out.write)
            out.flush()
            os.fsync(out.fileno())
    except OSError as exc:
        raise disk_error(exc, f"cannot write {target}: {exc.strerror}") from exc
    report = verify_file(target)
    if not report.ok or report.records != len(spans) - dropped:
        raise Invalid(f"the copy {target} does not verify: {report.problems[:1]}; the original is as it was")
    return Compacted(file.path, target, file.size, target.stat().st_size, dropped)


def _is_dropped(record: Record, kinds: tuple[str, ...]) -> bool:
    drop = False
    if record.head.type == "response":
        try:
            head, _ = record.http()
            drop = (head.media_type or "").startswith(kinds)
        except DamagedWarc as damage:
            if damage.kind != "http_head":
                raise
    record.drain()
    return drop


def _copy(source: ByteSource, offset: int, length: int, write: Callable[[bytes], int]) -> None:
    while length:
        piece = source.at(offset, min(length, _PIECE))
        if not piece:
            raise Invalid("the file became shorter while it was copied; nothing was changed")
        write(piece)
        offset += len(piece)
        length -= len(piece)
