"""CDXJ 0.1: one line a capture, sorted by its bytes; and ZipNum, the same in compressed blocks with an index."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from holdfast import cancellation
from holdfast.clock import digits14
from holdfast.config import DiskSettings
from holdfast.coordination.disk import demand_room
from holdfast.db.engine import Database
from holdfast.exports import queries
from holdfast.exports.queries import IndexRow
from holdfast.sorting import sorted_lines
from holdfast.warc.outfile import disk_error

BLOCK_LINES = 1024
"""Lines of one compressed block, as the field's packages have; a reader fetches whole blocks."""
RECORD_BYTES = 200
"""What a record takes on the disk while an index is sorted, in bytes: every other one is a line of some 300, with its
share of a merge."""
_PAGE = 2000


def cdxj_line(row: IndexRow, filename: str, *, offset: int | None = None) -> bytes:
    """Return the line of one capture; numbers are strings there, as everybody writes them."""
    fields = {
        "url": row.url,
        "mime": "warc/revisit" if row.record_type == "revisit" else row.media_type or "unk",
        "status": str(row.status) if row.status is not None else "200" if row.record_type == "resource" else "-",
        "digest": row.digest or "-",
        "length": str(row.length),
        "offset": str(row.offset if offset is None else offset),
        "filename": filename,
    }
    if row.method is not None:
        fields["method"] = row.method
    text = json.dumps(fields, separators=(", ", ": "), ensure_ascii=True)
    return f"{row.url_key} {digits14(row.captured_at)} {text}\n".encode("utf-8", "replace")


def captures(
    database: Database, *, execution_id: int | None = None, source_id: int | None = None
) -> Iterator[IndexRow]:
    """Yield the captures of an execution or a source by id, in short sessions."""
    after = -1
    while True:
        cancellation.check()
        with database.read() as session:
            page = queries.index_rows(session, execution_id=execution_id, source_id=source_id, after=after, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


def export_cdxj(
    database: Database,
    scratch: Path,
    *,
    execution_id: int | None = None,
    source_id: int | None = None,
    disk: DiskSettings | None = None,
) -> Iterator[bytes]:
    """Yield the sorted index of an execution or a source; `scratch` is a folder for what memory does not hold.

    NoSpace if that folder has no room for it; with `disk`, before anything is written.
    """
    names: dict[int, str] = {}
    if disk is not None:
        with database.read() as session:
            records = queries.records_noted(session, execution_id=execution_id, source_id=source_id)
        demand_room(scratch, disk, for_bytes=records * RECORD_BYTES)

    def lines() -> Iterator[bytes]:
        for row in captures(database, execution_id=execution_id, source_id=source_id):
            if row.warc_file_id not in names:
                with database.read() as session:
                    found = queries.file_paths(session, [row.warc_file_id])
                names[row.warc_file_id] = Path(found.get(row.warc_file_id, f"{row.warc_file_id}.warc.gz")).name
            yield cdxj_line(row, names[row.warc_file_id])

    try:
        yield from sorted_lines(lines(), scratch)
    except OSError as exc:
        raise disk_error(exc, f"cannot sort the index below {scratch}: {exc.strerror}") from exc


def write_zipnum(lines: Iterable[bytes], blocks: BinaryIO, index: Callable[[bytes], object], *, name: str) -> int:
    """Write sorted lines as gzip blocks, and a line for each block to `index`; return how many lines there were."""
    meta = {"format": "cdxj-gzip-1.0", "filename": name}
    index(b"!meta 0 " + json.dumps(meta).encode() + b"\n")
    total = at = 0
    incoming = iter(lines)
    while part := list(islice(incoming, BLOCK_LINES)):
        total += len(part)
        # No time and no name in the header: the same lines give the same bytes.
        block = gzip.compress(b"".join(part), 6, mtime=0)
        blocks.write(block)
        where = {"offset": at, "length": len(block), "digest": f"sha256:{sha256(block).hexdigest()}", "filename": name}
        index(b"%b %b\n" % (part[0].partition(b" {")[0], json.dumps(where).encode()))
        at += len(block)
    return total
