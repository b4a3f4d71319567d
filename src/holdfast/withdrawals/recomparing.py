"""Queues captures for `changes` to compare again after a takedown or its lifting: their predecessors have changed."""

from __future__ import annotations

from sqlalchemy import BigInteger, ColumnElement, and_, cast, func, literal, or_, select, tuple_, update
from sqlalchemy.orm import Session

from holdfast.db.models import Snapshot
from holdfast.withdrawals.visibility import bodies_in, of_page, visible

_FOLLOWERS = 50
# `holdchng`: the advisory lock that makes PostgreSQL's writers of changes take turns, as SQLite's do anyway.
_CHANGES_LOCK = 0x686F6C6463686E67


def lock_changes(session: Session) -> None:
    """Serialize the transactions that compare captures or queue them for it; the lock ends with the transaction."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(cast(literal(_CHANGES_LOCK), BigInteger))))


def compare_again(session: Session, found: Snapshot) -> None:
    """Make `changes` compare a capture again and those after it, up to the page's next successful one.

    Their predecessor has changed: the capture was taken down, or is shown again.
    """
    later = tuple_(Snapshot.captured_at, Snapshot.id) > tuple_(
        literal(found.captured_at, Snapshot.captured_at.type), literal(found.id, Snapshot.id.type)
    )
    answered = and_(
        or_(Snapshot.status.is_(None), Snapshot.status.between(200, 399)),
        Snapshot.canonical_id.is_(None),
        Snapshot.noise.is_(None),
        *visible(),
    )
    rows = session.execute(
        select(Snapshot.id, answered)
        .where(Snapshot.url_hash == found.url_hash, Snapshot.source_id + 0 == found.source_id, Snapshot.is_page, later)
        .order_by(Snapshot.captured_at, Snapshot.id)
        .limit(_FOLLOWERS)
    ).all()
    until = next((number for number, row in enumerate(rows, 1) if row[1]), len(rows))
    _compare_anew(session, Snapshot.id.in_([found.id, *(row[0] for row in rows[:until])]))


def compare_page_again(session: Session, key: str) -> None:
    """Make `changes` compare all captures of a page again: those from the time when it was hidden were skipped."""
    _compare_anew(session, of_page(key))


def compare_revisits_again(session: Session, snapshot_id: int | None, key: str | None) -> None:
    """Make `changes` compare addresses with a revisit of this capture, or of this page's captures, again.

    A revisit is hidden and shown with the capture that holds its body.
    """
    hashes = bodies_in(snapshot_id, key, column="url_hash")
    _compare_anew(session, Snapshot.url_hash.in_(hashes))


def _compare_anew(session: Session, which: ColumnElement[bool]) -> None:
    marked = update(Snapshot).where(which, Snapshot.is_page).values(compared=False)
    session.execute(marked.execution_options(synchronize_session=False))
