"""Queries on changes and diffs, and on the snapshots to compare. Captures under a takedown are excluded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, and_, bindparam, or_, select, text
from sqlalchemy.orm import Session, aliased

from holdfast.changes.compare import VERSION, TextComparison
from holdfast.changes.rendering import pack
from holdfast.changes.verdict import ChangeVerdict, ComparedCapture
from holdfast.db.engine import insert_into
from holdfast.db.models import Change, Diff, Document, DocumentText, Snapshot, Source
from holdfast.index.queries import unpack_text
from holdfast.types import BROKEN_OFF
from holdfast.withdrawals.visibility import visible

# Spelled like the partial index: SQLite does not match `= 1` and `= 0` with it.
_WAITING = text("snapshots.is_page AND NOT snapshots.compared")


_SHOWN = and_(Snapshot.canonical_id.is_(None), *visible())
_CAPTURES = select(
    *(Snapshot.id, Snapshot.source_id, Snapshot.group_id, Snapshot.url_hash, Snapshot.execution_id),
    *(Snapshot.captured_at, Snapshot.status, Snapshot.body_hash, Snapshot.payload_digest),
    *(Snapshot.document_id, Document.text_chars, Snapshot.redirect_to, Snapshot.truncated),
    _SHOWN.label("counts"),
    Snapshot.compared,
    Snapshot.noise,
).outerjoin(Document, Document.id == Snapshot.document_id)
# Build statements once: SQLAlchemy takes longer to compile one than SQLite to run it.
_BY_ID = _CAPTURES.where(Snapshot.id.in_(bindparam("ids", expanding=True))).order_by(Snapshot.id)


def _capture(row: Row[*tuple[Any, ...]]) -> ComparedCapture:
    *plain, counts, compared, noise = row
    return ComparedCapture._make((*plain, bool(counts), bool(compared), noise))


def source_ids(session: Session) -> list[int]:
    return list(session.scalars(select(Source.id).order_by(Source.id)))


def pending(
    session: Session, source_id: int, *, after: int, limit: int, since: datetime | None = None, again: bool = False
) -> list[ComparedCapture]:
    """Return the next captures of pages that were not compared yet (all with `again`), by id."""
    query = _CAPTURES.where(Snapshot.source_id == source_id, Snapshot.is_page, Snapshot.id > after)
    if not again:
        # The partial index contains only captures to compare: a few of millions.
        query = query.where(_WAITING)
    if since is not None:
        query = query.where(Snapshot.captured_at >= since)
    return [_capture(row) for row in session.execute(query.order_by(Snapshot.id).limit(limit))]


def captures(session: Session, ids: Collection[int]) -> dict[int, ComparedCapture]:
    if not ids:
        return {}
    return {row[0]: _capture(row) for row in session.execute(_BY_ID, {"ids": sorted(ids)})}


# Ids of the previous capture that is not noise, the previous one neither noise nor failed, and the next of any kind.
Neighbours = tuple[int | None, int | None, int | None]


def neighbours(session: Session, ids: Collection[int]) -> dict[int, Neighbours]:
    """Return the neighbours of each capture, ordered by time and then id: three index seeks each."""
    if not ids:
        return {}
    return {row[0]: (row[1], row[2], row[3]) for row in session.execute(_NEIGHBOURS, {"ids": sorted(ids)})}


_Here = aliased(Snapshot)


def _nearest(*clauses: ColumnElement[bool], newest: bool) -> ScalarSelect[int]:
    order = (Snapshot.captured_at.desc(), Snapshot.id.desc()) if newest else (Snapshot.captured_at, Snapshot.id)
    # `+ 0` keeps the planner on the index of pages: the one of sources would read the whole source.
    same_page = Snapshot.url_hash == _Here.url_hash, Snapshot.source_id + 0 == _Here.source_id, Snapshot.is_page
    nearest = select(Snapshot.id).where(*same_page, _SHOWN, *clauses).order_by(*order).limit(1)
    return nearest.correlate(_Here).scalar_subquery()


_EARLIER = (
    # Stated twice, as a bound and exactly: no planner uses the index for the `or` alone.
    Snapshot.captured_at <= _Here.captured_at,
    or_(Snapshot.captured_at < _Here.captured_at, Snapshot.id < _Here.id),
)
_LATER = (
    Snapshot.captured_at >= _Here.captured_at,
    or_(Snapshot.captured_at > _Here.captured_at, Snapshot.id > _Here.id),
)
_WHOLE = or_(Snapshot.truncated.is_(None), Snapshot.truncated.not_in(sorted(BROKEN_OFF)))
_ANSWERED = or_(
    and_(Snapshot.status.is_(None), _WHOLE),
    and_(Snapshot.status.between(200, 299), _WHOLE),
    Snapshot.status.between(300, 399),
)
_SHOWS = Snapshot.noise.is_(None)
_NEIGHBOURS = select(
    _Here.id,
    _nearest(*_EARLIER, _SHOWS, newest=True),
    _nearest(*_EARLIER, _SHOWS, _ANSWERED, newest=True),
    _nearest(*_LATER, newest=False),
).where(_Here.id.in_(bindparam("ids", expanding=True)))


def text_and_headings(session: Session, document_id: int) -> tuple[str | None, str | None]:
    row = session.execute(
        select(DocumentText.text, Document.headings)
        .select_from(Document)
        .outerjoin(DocumentText, DocumentText.document_id == Document.id)
        .where(Document.id == document_id)
    ).one_or_none()
    return (None, None) if row is None else (None if row[0] is None else unpack_text(row[0]), row[1])


def diff_ids(session: Session, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
    if not pairs:
        return {}
    earlier, later = sorted({pair[0] for pair in pairs}), sorted({pair[1] for pair in pairs})
    rows = session.execute(_DIFFS, {"earlier": earlier, "later": later})
    # The two lists are filtered independently, so the rows include other pairs.
    return {(row[0], row[1]): row[2] for row in rows if (row[0], row[1]) in pairs}


_DIFFS = select(Diff.from_document_id, Diff.to_document_id, Diff.id).where(
    Diff.from_document_id.in_(bindparam("earlier", expanding=True)),
    Diff.to_document_id.in_(bindparam("later", expanding=True)),
    Diff.version == VERSION,
)


def diff(session: Session, pair: tuple[int, int], version: int) -> Diff | None:
    return session.scalars(
        select(Diff).where(Diff.from_document_id == pair[0], Diff.to_document_id == pair[1], Diff.version == version)
    ).one_or_none()


SECTION_COUNTS = ("added_sections", "removed_sections", "changed_sections")


def diff_values(pair: tuple[int, int], found: TextComparison, now: datetime, version: int) -> dict[str, Any]:
    return {
        "from_document_id": pair[0],
        "to_document_id": pair[1],
        "version": version,
        **dict(zip(SECTION_COUNTS, found.sections, strict=True)),
        "added_lines": found.added_lines,
        "removed_lines": found.removed_lines,
        "ratio": found.ratio,
        "high_noise": found.high_noise,
        "truncated": found.truncated,
        "body": pack(found.hunks, found.touched),
        "created_at": now,
    }


def insert_diffs(session: Session, found: Mapping[tuple[int, int], TextComparison], now: datetime) -> None:
    """Store diffs by their pair of documents; an existing diff of another run stays."""
    values = [diff_values(pair, one, now, VERSION) for pair, one in found.items()]
    if values:
        session.connection().execute(insert_into(session, Diff).on_conflict_do_nothing(), values)


def write_changes(
    session: Session, verdicts: Iterable[tuple[ComparedCapture, ChangeVerdict, int | None]], moment: datetime
) -> None:
    """Write the change at each capture with its diff; an earlier verdict is replaced."""
    values = [
        {
            "source_id": now.source_id,
            "group_id": now.group_id,
            "url_hash": now.url_hash,
            "from_snapshot_id": earlier.id if earlier else None,
            "to_snapshot_id": now.id,
            "from_execution_id": earlier.execution_id if earlier else None,
            "to_execution_id": now.execution_id,
            "from_captured_at": earlier.captured_at if earlier else None,
            "to_captured_at": now.captured_at,
            "type": verdict.type.value,
            "diff_id": diff_id,
            "error": verdict.error,
            "computed_at": moment,
        }
        for now, verdict, diff_id in verdicts
        for earlier in [verdict.before]
    ]
    if not values:
        return
    insert = insert_into(session, Change)
    changed = {name: insert.excluded[name] for name in values[0] if name != "to_snapshot_id"}
    # One change per capture, so a killed or concurrent run repeats itself harmlessly.
    statement = insert.on_conflict_do_update(index_elements=["to_snapshot_id"], set_=changed)
    session.connection().execute(statement, values)
