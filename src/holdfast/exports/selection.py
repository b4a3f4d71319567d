"""Builds a WACZ 1.1.1 of selected captures (a page with its parts, or search results), reading records in place.

Nothing is written: index and description are small and built in memory, because a selection is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.errors import Invalid, NotFound
from holdfast.exports import queries
from holdfast.exports.package import (
    CopiedRecords,
    Resource,
    cdxj_line,
    describe,
    in_seconds,
    page_list,
    write_zipnum,
)
from holdfast.exports.zipping import VirtualZip
from holdfast.index.queries import CdxRow
from holdfast.storage.roots import find_file
from holdfast.withdrawals.hidden_captures import veiled_revisits

MOST_CAPTURES = 2_000
"""Limit on the captures of one selection: their index is sorted in memory."""
MOST_BYTES = 256 * 1024 * 1024
"""Limit on their size: records are read twice, once for the checksums that precede them."""


class SelectionTooLarge(Invalid):
    """The selection has too many or too large captures for one package."""

    code = "selection_too_large"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; narrow the choice down, or take whole crawls from /api/executions/<number>/wacz")


def pack_selection(database: Database, home: Path, ids: Sequence[int], *, title: str, now: datetime) -> VirtualZip:
    """Return the package of these captures, including the originals of revisits.

    Raise NotFound if none of them is visible or their files are missing; SelectionTooLarge.
    """
    if len(ids) > MOST_CAPTURES:
        raise SelectionTooLarge(f"these are {len(ids):,} captures, and a package takes {MOST_CAPTURES:,}")
    with database.read() as session:
        rows = rows_with_originals(session, ids)
        for number in veiled_revisits(session, Snapshot.id.in_(list(rows))):
            del rows[number]
        keys = queries.file_keys(session, sorted({row.warc_file_id for row in rows.values()}))
        pages = queries.chosen_pages(session, [number for number in ids if number in rows])
    size = sum(row.length for row in rows.values())
    if size > MOST_BYTES:
        raise SelectionTooLarge(f"these captures take {size:,} bytes, and a package takes {MOST_BYTES:,}")
    files = {number: find_file(home, key) for number, key in keys.items()}
    lines, records = list[bytes](), CopiedRecords("captures")
    for row in sorted(rows.values()):
        place = records.add(row, files.get(row.warc_file_id))
        # As in whole packages, do not list a 304: readers would show the 304 itself.
        if place is not None and not (row.record_type == "revisit" and row.status == 304):
            lines.append(cdxj_line(row, place[0], offset=place[1]))
    resources = records.resources()
    if not resources:
        raise NotFound("none of these captures can be packed: they are not in this archive, or their files are gone")
    blocks, index = BytesIO(), BytesIO()
    write_zipnum(sorted(lines), blocks, index.write, name="index.cdx.gz")
    order = {number: place for place, number in enumerate(ids)}
    pages.sort(key=lambda page: order[page.id])
    resources += [
        Resource("indexes/index.cdx.gz", [blocks.getvalue()]),
        Resource("indexes/index.idx", [index.getvalue()]),
        Resource("pages/pages.jsonl", [page_list(pages)]),
    ]
    made = in_seconds(now)
    main = {"mainPageUrl": pages[0].url, "mainPageDate": in_seconds(pages[0].captured_at)} if pages else {}
    closing = describe(resources, title=title, times=(made, made), more=main)
    resources += [Resource(name, [content]) for name, content in closing.items()]
    return VirtualZip([resource.member for resource in resources], now)


def rows_with_originals(session: Session, ids: Iterable[int]) -> dict[int, CdxRow]:
    rows = queries.whole_rows_of(session, ids)
    originals = [row.original_id for row in rows.values() if row.original_id is not None]
    return rows | queries.whole_rows_of(session, originals)
