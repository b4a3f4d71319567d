"""What withdrawing asks of snapshots and marks on them: their pages, and what is to be compared again."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import BigInteger, ColumnElement, and_, cast, func, literal, or_, select, tuple_, union, update
from sqlalchemy.orm import Session

from holdfast.db.models import (
    Snapshot,
)
from holdfast.withdrawals.visibility import of_page, visible, withdrawal_mark, withdrawn_captures

_FOLLOWERS = 50


def any_snapshot(session: Session, snapshot_id: int) -> Snapshot | None:
    """Return one snapshot whether it is withdrawn or not; for those who withdraw, and for following a revisit."""
    return session.get(Snapshot, snapshot_id)


_CHANGES_LOCK = 0x686F6C6463686E67
"""`holdchng`: the advisory lock that makes PostgreSQL's writers of changes take turns, as SQLite's do anyway."""


def take_changes_turn(session: Session) -> None:
    """Let only one transaction at a time decide what is compared with what, or that it is to be; freed at its end."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(cast(literal(_CHANGES_LOCK), BigInteger))))


def compare_again(session: Session, found: Snapshot) -> None:
    """Let `changes` look again at a capture and at what follows it, up to the next one that the page answered.

    What stood before those is another now: the capture was withdrawn, or is shown again.
    """
    later = tuple_(Snapshot.captured_at, Snapshot.id) > tuple_(
        literal(found.captured_at, Snapshot.captured_at.type), literal(found.id, Snapshot.id.type)
    )
    answered = and_(
        or_(Snapshot.status.is_(None), Snapshot.status.between(200, 399)), Snapshot.canonical_id.is_(None), *visible()
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
    """Let `changes` look again at all captures of a page: those that came while it was hidden were passed."""
    _compare_anew(session, of_page(key))


def _compare_anew(session: Session, which: ColumnElement[bool]) -> None:
    session.execute(update(Snapshot).where(which, Snapshot.is_page).values(compared=False))


def withdrawals_word(session: Session) -> str:
    """Return a word that is another after every withdrawal and every lifting of one."""
    return "-".join(map(str, withdrawal_mark(session)))


def hidden_groups(session: Session, *, most: int) -> list[int]:
    """Return the page groups of which a capture is withdrawn, by itself or with its page: the first so many, by id.

    The database seeks each withdrawn capture; no more than the answer is held here, for a page may have any number.
    """
    found = union(*(question.where(*_PAGES) for question in withdrawn_captures(Snapshot.group_id))).subquery()
    return list(session.scalars(select(found.c.group_id).order_by(found.c.group_id).limit(most)))


def hidden_counts(session: Session, *, source_id: int, executions: Collection[int]) -> dict[int, int]:
    """Return how many captures of pages are withdrawn of each of these executions; those of which none is are left out.

    One that is withdrawn by itself and with its page counts once.
    """
    if not executions:
        return {}
    # `+ 0`: a planner that goes by the source or by the execution reads all of it.
    kept = [*_PAGES, Snapshot.source_id + 0 == source_id, (Snapshot.execution_id + 0).in_(list(executions))]
    questions = withdrawn_captures(Snapshot.id, Snapshot.execution_id)
    found = union(*(question.where(*kept) for question in questions)).subquery()
    rows = session.execute(select(found.c.execution_id, func.count()).group_by(found.c.execution_id))
    return {row[0]: row[1] for row in rows}


_PAGES = (Snapshot.is_page, Snapshot.group_id.is_not(None))


def captures_of(session: Session, key: str) -> int:
    """Return how many captures a page has, withdrawn or not, under all spellings of its address."""
    return session.scalar(select(func.count()).where(of_page(key))) or 0
