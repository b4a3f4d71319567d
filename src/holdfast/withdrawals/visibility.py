"""What was withdrawn, and the one predicate by which every reader leaves it out. No other file compares withdrawals.

A withdrawal names a snapshot by its id, or a page by its key (`holdfast.urls.page_key`): the page's captures are out
of sight under every spelling, those that are here and those that are still to come. Each clause is a seek in the
partial index of withdrawals in force.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import SignalPage, Snapshot, Withdrawal

_IN_FORCE = Withdrawal.lifted_at.is_(None)


def is_withdrawn(capture: Any = Snapshot) -> ColumnElement[bool]:
    """Return the clause, over Snapshot or an alias of it, for what is withdrawn, by itself or with its page."""
    return or_(_by_id(capture.id), _by_key(func.coalesce(capture.page_key, capture.url_key)))


def visible(capture: Any = Snapshot) -> tuple[ColumnElement[bool], ...]:
    """Return the clauses, over Snapshot or an alias of it, that leave out what is withdrawn."""
    return ~_by_id(capture.id), ~_by_key(func.coalesce(capture.page_key, capture.url_key))


def visible_change(change: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the clauses, over Change or what has its columns, that leave out what is withdrawn on either side."""
    # Both captures are of one page, so one of them tells its key. That takes 4 us a change on SQLite, 40 ms for a whole
    # list, so it is asked only where a page is withdrawn at all.
    here = aliased(Snapshot)
    is_any = exists().where(_IN_FORCE, Withdrawal.url_key >= "")
    hidden_page = exists().where(here.id == change.to_snapshot_id, _by_key(func.coalesce(here.page_key, here.url_key)))
    return ~_by_id(change.to_snapshot_id), ~_by_id(change.from_snapshot_id), ~and_(is_any, hidden_page)


def visible_page(page_id: Any) -> ColumnElement[bool]:
    """Return the clause that leaves out withdrawn pages of which only signals are kept."""
    here = aliased(SignalPage)  # the question around it may read the same table
    return ~exists().where(here.page_id == page_id, _by_key(here.page_key))


def _by_id(snapshot_id: Any) -> ColumnElement[bool]:
    return exists().where(_IN_FORCE, Withdrawal.snapshot_id == snapshot_id)


def _by_key(key: Any) -> ColumnElement[bool]:
    return exists().where(_IN_FORCE, Withdrawal.url_key == key)


def withdrawn_captures(*columns: Any) -> tuple[Select[*tuple[Any, ...]], ...]:
    """Return questions that together find all withdrawn captures, some twice: a seek for each withdrawal in force."""
    wanted = select(*columns).select_from(Withdrawal).where(_IN_FORCE)
    # An expression is in no index: the planner has to go from the few withdrawals to the captures, not the other way.
    key = Withdrawal.url_key.concat("")
    return (
        wanted.join(Snapshot, Snapshot.id == Withdrawal.snapshot_id + 0),
        wanted.join(Snapshot, Snapshot.url_key == key).where(Snapshot.page_key.is_(None)),
        wanted.join(Snapshot, Snapshot.page_key == key),
    )


def visible_address(url_hash: Any) -> ColumnElement[bool]:
    """Return the clause, over the hash of an address, that leaves out addresses of which a capture is withdrawn."""
    return and_(*(url_hash.not_in(question) for question in withdrawn_captures(Snapshot.url_hash)))


def of_page(key: str) -> ColumnElement[bool]:
    """Return the clause over Snapshot for all captures of the page with this key."""
    return or_(and_(Snapshot.url_key == key, Snapshot.page_key.is_(None)), Snapshot.page_key == key)


def withdrawals_of(session: Session, *, snapshot_id: int | None, key: str | None) -> list[Withdrawal]:
    """Return the withdrawals in force of one snapshot, or of a page."""
    by = Withdrawal.snapshot_id == snapshot_id if snapshot_id is not None else Withdrawal.url_key == key
    return list(session.scalars(select(Withdrawal).where(_IN_FORCE, by).order_by(Withdrawal.id)))


def withdrawals_in_force(session: Session) -> list[Withdrawal]:
    """Return all withdrawals in force, oldest first."""
    return list(session.scalars(select(Withdrawal).where(_IN_FORCE).order_by(Withdrawal.id)))


def is_known(session: Session, *, snapshot_id: int | None, key: str | None) -> bool:
    """Return whether a snapshot or a page was ever withdrawn, lifted since or not."""
    by = Withdrawal.snapshot_id == snapshot_id if snapshot_id is not None else Withdrawal.url_key == key
    return session.scalar(select(Withdrawal.id).where(by).limit(1)) is not None


def withdrawn_among(session: Session, *, snapshots: Collection[int] = (), keys: Collection[str] = ()) -> set[int | str]:
    """Return which of these snapshots and of these pages (by key) are withdrawn by themselves; ask for some hundred."""
    found: set[int | str] = set()
    for column, wanted in ((Withdrawal.snapshot_id, snapshots), (Withdrawal.url_key, keys)):
        if wanted:
            rows = session.scalars(select(column).where(_IN_FORCE, column.in_(list(wanted))))
            found.update(row for row in rows if row is not None)
    return found


def is_any_withdrawn(session: Session) -> bool:
    """Return whether anything at all is withdrawn now."""
    for column in (Withdrawal.url_key, Withdrawal.snapshot_id):
        # Ordered, so that the partial index of what stands is read and not the table with all that was lifted.
        found = select(Withdrawal.id).where(_IN_FORCE, column.is_not(None)).order_by(column)
        if session.scalar(found.limit(1)) is not None:
            return True
    return False


Mark = tuple[int, int, int]
"""Of the withdrawals in force: how many, their last id, and the sum of their ids."""

# Count and last id alone would not do: PostgreSQL may commit a smaller id late, while another withdrawal is lifted.
_MARK = select(func.count(), func.max(Withdrawal.id), func.sum(Withdrawal.id)).where(_IN_FORCE)


def withdrawal_mark(session: Session) -> Mark:
    """Return a mark that is another after every withdrawal and every lifting of one."""
    count, last, total = session.connection().execute(_MARK).one()
    return count, last or 0, int(total or 0)


LAST_WITHDRAWALS = func.max(Withdrawal.id), func.max(Withdrawal.lifted_at)
"""Figures that change with every withdrawal and every lifting, for a question that asks for other figures too."""
