"""The parts of an archived page: pictures, styles, scripts, each with the capture that replay shows.

`page_parts` uses the page's own markup. Requests of its style sheets and scripts are not in the markup, and
rows do not record the page of a request: `captured_beside` uses the position in the file and the time.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from pathlib import Path

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session, aliased

from holdfast.clock import digits14
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.errors import UrlRefused
from holdfast.index.queries import open_stored
from holdfast.parse.page import MAX_PARSED_BYTES, looks_pathological, parse_page
from holdfast.replay.finding import NotCaptured, candidates
from holdfast.replay.records import Part, Parts
from holdfast.urls import Base
from holdfast.withdrawals.visibility import visible, visible_snapshot

MOST_PARTS = 300
"""Parts of a page that are looked up: each takes a few seeks."""


def page_parts(database: Database, home: Path, snapshot_id: int) -> Parts:
    """Return the parts of a capture, each with the capture nearest to the page.

    Raise SnapshotNotFound, NotFound or DamagedWarc.
    """
    with database.read() as session:
        snapshot = visible_snapshot(session, snapshot_id)
        read = _read(session, home, snapshot)
    # End the session before parsing, which may take long.
    kinds = None if read is None else _named(snapshot.url, read)
    with database.read() as session:
        parts = [_part(session, snapshot, url, kind) for url, kind in islice((kinds or {}).items(), MOST_PARTS)]
    apart = [one.seconds_apart for one in parts if one.seconds_apart is not None]
    return Parts(
        snapshot_id=snapshot_id,
        is_readable=kinds is not None,
        named=len(kinds or ()),
        missing=sum(one.snapshot_id is None for one in parts),
        earliest_seconds=min(apart, default=None),
        latest_seconds=max(apart, default=None),
        parts=parts,
    )


MOST_BESIDE, BESIDE_BYTES = 300, 8 * 1024 * 1024
"""Maximum number of captures around a page, and of their bytes in the file together."""
_NEAR_RECORDS = 2_000
_NEAR_S = 300


def captured_beside(session: Session, snapshot_id: int, *, but: Collection[int], most_bytes: int) -> list[int]:
    """Return data, fonts and pictures that the same run captured around a page, nearest first; no pages.

    Scripts and style sheets of the page requested some of it. `but` is in the package already. Records that do not
    fit into `most_bytes` or `BESIDE_BYTES` are omitted.
    """
    page, original = visible_snapshot(session, snapshot_id), aliased(Snapshot)
    length = Snapshot.warc_length + func.coalesce(original.warc_length, 0)
    rows = session.execute(
        select(Snapshot.id, Snapshot.captured_at, length)
        .outerjoin(original, original.id == Snapshot.original_id)
        .where(
            # Neighbours in the file, by id: a run may have millions of captures.
            Snapshot.id.between(page.id - _NEAR_RECORDS, page.id + _NEAR_RECORDS),
            Snapshot.execution_id == page.execution_id,
            Snapshot.status.between(200, 299),
            or_(Snapshot.media_type.is_(None), Snapshot.media_type.not_like("%html%")),
            *visible(),
        )
    ).all()
    found: list[int] = []
    left = min(most_bytes, BESIDE_BYTES)
    for number, moment, size in sorted(rows, key=lambda row: (abs(row[1] - page.captured_at), row[0])):
        if number not in but and size <= left and abs(moment - page.captured_at).total_seconds() <= _NEAR_S:
            left -= size
            found.append(number)
    return found[:MOST_BESIDE]


def _read(session: Session, home: Path, snapshot: Snapshot) -> tuple[bytes, str, str | None] | None:
    """Return the body of an HTML page with its type and charset; None for anything else."""
    with open_stored(session, home, snapshot) as stored:
        media_type = stored.media_type or ""
        if "html" not in media_type:
            return None
        return stored.content(MAX_PARSED_BYTES), media_type, stored.body_head.charset if stored.body_head else None


def _named(url: str, read: tuple[bytes, str, str | None]) -> dict[str, str] | None:
    """Return the addresses that a page needs with their kinds; None if it cannot be parsed."""
    body, media_type, charset = read
    # Do not parse a page that could hang the parser; replay shows it unparsed, too.
    if looks_pathological(body) is not None:
        return None
    page = parse_page(body, url=url, media_type=media_type, charset=charset, want_text=False)
    try:
        base = Base(url, page.base)
    except UrlRefused:
        return None
    found: dict[str, str] = {}
    for link, resolved in zip(page.resources, base.each([link.url for link in page.resources])[0], strict=True):
        if resolved is not None:
            found.setdefault(resolved.fetch, link.rel)
    return found


def _part(session: Session, page: Snapshot, url: str, kind: str) -> Part:
    try:
        found = candidates(session, url, digits14(page.captured_at))[0]
    except NotCaptured:
        missing = dict.fromkeys(("snapshot_id", "capture_timestamp", "seconds_apart", "status_code", "mime_type"))
        return Part(url=url, kind=kind, **missing)
    return Part(
        url=url,
        kind=kind,
        snapshot_id=found.id,
        capture_timestamp=found.captured_at,
        seconds_apart=round((found.captured_at - page.captured_at).total_seconds()),
        status_code=found.status,
        mime_type=found.media_type,
    )
