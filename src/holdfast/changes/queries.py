"""The rows of changes and diffs, and what the comparison asks of snapshots. Nothing withdrawn is compared or shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Row, Select, and_, cast, func, literal, or_, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from holdfast.changes.compare import VERSION, Comparison
from holdfast.changes.rendering import pack
from holdfast.changes.verdict import Capture, Verdict
from holdfast.db.models import Change, Diff, Document, DocumentText, Snapshot, Source
from holdfast.index.queries import unpack_text, visible

_LOCK = 0x686F6C6463686E67
"""`holdchng`: the advisory lock that makes PostgreSQL's writers of changes take turns, as SQLite's do anyway."""


_WAITING = text("snapshots.is_page AND NOT snapshots.compared")
"""Spelled as the partial index is: SQLite does not see through `= 1` and `= 0`."""


def take_turn(session: Session) -> None:
    """Let only one transaction at a time decide which captures are adjacent; freed at its end."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(cast(literal(_LOCK), BigInteger))))


def _captures() -> Select[*tuple[Any, ...]]:
    shown = and_(Snapshot.canonical_id.is_(None), *visible())
    return select(
        Snapshot.id, Snapshot.source_id, Snapshot.group_id, Snapshot.url_hash, Snapshot.execution_id,
        Snapshot.captured_at, Snapshot.status, Snapshot.body_hash, Snapshot.payload_digest, Snapshot.document_id,
        Document.media_type, Snapshot.redirect_to, shown.label("counts"), Snapshot.compared,
    ).outerjoin(Document, Document.id == Snapshot.document_id)  # fmt: skip


def _capture(row: Row[*tuple[Any, ...]]) -> Capture:
    *plain, counts, compared = row
    return Capture._make((*plain, bool(counts), bool(compared)))


def source_ids(session: Session) -> list[int]:
    """Return all sources."""
    return list(session.scalars(select(Source.id).order_by(Source.id)))


def pending(
    session: Session, source_id: int, *, after: int, limit: int, since: datetime | None = None, again: bool = False
) -> list[Capture]:
    """Return the next captures of pages that were not compared yet, or all with `again`, by id."""
    query = _captures().where(Snapshot.source_id == source_id, Snapshot.is_page, Snapshot.id > after)
    if not again:
        query = query.where(_WAITING)
    if since is not None:
        query = query.where(Snapshot.captured_at >= since)
    return [_capture(row) for row in session.execute(query.order_by(Snapshot.id).limit(limit))]


def captures(session: Session, ids: Sequence[int]) -> list[Capture]:
    """Return these captures as they are now; what is gone is left out."""
    rows = session.execute(_captures().where(Snapshot.id.in_(ids)).order_by(Snapshot.id))
    return [_capture(row) for row in rows]


def count_pending(session: Session, source_id: int) -> int:
    """Return how many captures of a source wait to be compared."""
    query = select(func.count()).select_from(Snapshot).where(Snapshot.source_id == source_id, _WAITING)
    return int(session.scalar(query) or 0)


def before(session: Session, now: Capture, *, answered: bool = False) -> Capture | None:
    """Return the last capture of the same page before this one that counts; with `answered`, that did not fail."""
    query = _captures().where(
        *_same_page(now),
        or_(Snapshot.captured_at < now.captured_at,
            and_(Snapshot.captured_at == now.captured_at, Snapshot.id < now.id)),
    )  # fmt: skip
    if answered:
        query = query.where(or_(Snapshot.status.is_(None), Snapshot.status.between(200, 399)))
    row = session.execute(query.order_by(Snapshot.captured_at.desc(), Snapshot.id.desc()).limit(1)).one_or_none()
    return None if row is None else _capture(row)


def after(session: Session, now: Capture, *, limit: int) -> list[Capture]:
    """Return the captures of the same page that follow this one and count, in order."""
    query = _captures().where(
        *_same_page(now),
        or_(Snapshot.captured_at > now.captured_at,
            and_(Snapshot.captured_at == now.captured_at, Snapshot.id > now.id)),
    )  # fmt: skip
    rows = session.execute(query.order_by(Snapshot.captured_at, Snapshot.id).limit(limit))
    return [_capture(row) for row in rows]


def _same_page(now: Capture) -> tuple[Any, ...]:
    # `+ 0` keeps the planner on the index of pages: the one of sources would read the whole source.
    return (
        Snapshot.url_hash == now.url_hash, Snapshot.source_id + 0 == now.source_id, Snapshot.is_page,
        Snapshot.canonical_id.is_(None), *visible(),
    )  # fmt: skip


def text_and_headings(session: Session, document_id: int) -> tuple[str | None, str | None]:
    """Return the text and the headings of a document."""
    row = session.execute(
        select(DocumentText.text, Document.headings)
        .select_from(Document)
        .outerjoin(DocumentText, DocumentText.document_id == Document.id)
        .where(Document.id == document_id)
    ).one_or_none()
    return (None, None) if row is None else (None if row[0] is None else unpack_text(row[0]), row[1])


def diff_ids(session: Session, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return the cached diffs of these pairs of documents."""
    found: dict[tuple[int, int], int] = {}
    for pair in set(pairs):
        known = session.scalar(
            select(Diff.id).where(
                Diff.from_document_id == pair[0], Diff.to_document_id == pair[1], Diff.version == VERSION
            )
        )
        if known is not None:
            found[pair] = known
    return found


def diff(session: Session, pair: tuple[int, int]) -> Diff | None:
    """Return the cached diff of two documents."""
    return session.scalars(
        select(Diff).where(Diff.from_document_id == pair[0], Diff.to_document_id == pair[1], Diff.version == VERSION)
    ).one_or_none()


def insert_diff(session: Session, pair: tuple[int, int], found: Comparison, now: datetime) -> None:
    """Keep a diff; one that somebody else has put there meanwhile stays."""
    values = {
        "from_document_id": pair[0], "to_document_id": pair[1], "version": VERSION,
        "added_sections": found.sections.added, "removed_sections": found.sections.removed,
        "changed_sections": found.sections.changed, "added_lines": found.added_lines,
        "removed_lines": found.removed_lines, "ratio": found.ratio, "high_noise": found.high_noise,
        "truncated": found.truncated, "body": pack(found.hunks, found.touched), "created_at": now,
    }  # fmt: skip
    session.execute(_insert(session, Diff).values(values).on_conflict_do_nothing())


def write_change(session: Session, now: Capture, verdict: Verdict, diff_id: int | None, moment: datetime) -> None:
    """Say what happened to a page at this capture; what was said of it before is replaced."""
    earlier = verdict.before
    values = {
        "source_id": now.source_id, "group_id": now.group_id, "url_hash": now.url_hash,
        "from_snapshot_id": earlier.id if earlier else None, "to_snapshot_id": now.id,
        "from_execution_id": earlier.execution_id if earlier else None, "to_execution_id": now.execution_id,
        "from_captured_at": earlier.captured_at if earlier else None, "to_captured_at": now.captured_at,
        "type": verdict.type.value, "diff_id": diff_id, "error": verdict.error, "computed_at": moment,
    }  # fmt: skip
    insert = _insert(session, Change).values(values)
    changed = {name: insert.excluded[name] for name in values if name != "to_snapshot_id"}
    session.execute(insert.on_conflict_do_update(index_elements=["to_snapshot_id"], set_=changed))


def _insert(session: Session, table: type[Change] | type[Diff]) -> Any:
    return (postgresql if session.get_bind().dialect.name == "postgresql" else sqlite).insert(table)
