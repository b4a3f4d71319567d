"""Takedowns: hide captures from every reader immediately, and show them again; each with a reason, and audited.

A page is hidden by its key, so it stays hidden under every spelling of its address and in every later capture,
until the takedown is lifted. Revisits of a hidden capture show its body, so they are hidden with it.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import AuditAction, acting_user
from holdfast.db.engine import Database
from holdfast.db.models import SearchOutbox, Snapshot, Source, Withdrawal
from holdfast.errors import Conflict, Invalid, NotFound, UrlRefused
from holdfast.records import from_row
from holdfast.storage.disk import append_lines as append_json_lines
from holdfast.storage.disk import read_lines
from holdfast.urls import page_key, parse_seed
from holdfast.withdrawals.recomparing import compare_again, compare_page_again, compare_revisits_again, lock_changes
from holdfast.withdrawals.records import Takedown, TakedownCapture, TakedownPreview, TakedownReceipt, kind_of
from holdfast.withdrawals.visibility import (
    any_snapshot,
    captures_of,
    concerned_by,
    count_concerned,
    is_known,
    named_by,
    withdrawal_over,
    withdrawals_in_force,
    withdrawals_of,
)

# Store it in the data directory: a rebuild of a lost database must not show hidden captures.
WITHDRAWALS = "withdrawals.jsonl"
_LARGEST_ID = 2**63 - 1
MIN_REASON_CHARS = 3
MAX_REASON_CHARS = 4000


_Subject = tuple[int | None, str | None]
"""The id of a snapshot, or the key of a page."""


def hide(database: Database, clock: Clock, subject: str, *, reason: str, home: Path | None = None) -> TakedownReceipt:
    """Hide a snapshot (by its id), or all captures of a page by any spelling of its address, present and future.

    With `home`, a line is written to the data directory before the takedown is in force: a rebuild from files reads
    it. Raise Invalid for a missing or short reason, NotFound for an unknown snapshot, Conflict if it is hidden
    already.
    """
    if len(reason.strip()) < MIN_REASON_CHARS or len(reason) > MAX_REASON_CHARS:
        raise Invalid(
            f"give a reason of {MIN_REASON_CHARS} to {MAX_REASON_CHARS:,} characters (--reason) for the audit log",
            field="reason",
        )
    with database.write() as session:
        # Lock first: a running comparison would mark captures as compared that this transaction marks to be compared
        # again.
        lock_changes(session)
        target = snapshot_id, key = _known_target(session, subject)
        if withdrawals_of(session, *target):
            raise Conflict(f"{subject} is hidden already; show it again with: holdfast snapshot unhide {subject}")
        row = Withdrawal(
            snapshot_id=snapshot_id,
            url_key=key,
            subject=subject,
            reason=reason.strip(),
            actor=acting_user(),
            created_at=clock.now(),
        )
        if home is not None:
            append_lines(database, home, as_line(row))
        session.add(row)
        session.flush()
        if snapshot_id is not None:
            _compare_again(session, target)
        compare_revisits_again(session, *target)
        return takedown_receipt(row, captures=_record(session, clock, subject, target, reason=reason))


def unhide(database: Database, clock: Clock, subject: str, *, home: Path | None = None) -> TakedownReceipt:
    """Lift the takedowns of a snapshot or a page; raise NotFound if it is not hidden."""
    return _lift(database, clock, subject, None, home)


def unhide_by_id(database: Database, clock: Clock, takedown_id: int, *, home: Path | None = None) -> TakedownReceipt:
    """Lift a takedown, and every other one of the same subject; raise TakedownNotFound or TakedownLifted."""
    with database.read() as session:
        row = find_takedown(session, takedown_id)
    if row.lifted_at is not None:
        raise TakedownLifted(row.id)
    return _lift(database, clock, row.subject, row, home)


def _lift(
    database: Database, clock: Clock, subject: str, known: Withdrawal | None, home: Path | None
) -> TakedownReceipt:
    with database.write() as session:
        lock_changes(session)
        target = _target_of(session, subject) if known is None else (known.snapshot_id, known.url_key)
        rows = withdrawals_of(session, *target)
        if not rows:
            raise NotFound(_why_not_hidden(session, subject, target))
        for row in rows:
            row.lifted_at, row.lifted_by = clock.now(), acting_user()
        session.flush()
        _compare_again(session, target)
        compare_revisits_again(session, *target)
        captures = _record(session, clock, subject, target, reason=None)
        done = takedown_receipt(rows[0] if known is None else find_takedown(session, known.id), captures=captures)
        lines = [as_line(row, lifted=True) for row in rows]
    if home is not None:
        # Write it after the commit: a process that dies in between then leaves a line that hides too much, not too
        # little. Hold the lock of hiding: a subject that was hidden again meanwhile must not get a later line that
        # lifts it.
        with database.write() as session:
            lock_changes(session)
            if not withdrawals_of(session, *target):
                append_lines(database, home, *lines)
    return done


def _why_not_hidden(session: Session, subject: str, target: _Subject) -> str:
    over = None if target[0] is None else withdrawal_over(session, target[0])
    if over is None:
        return f"{subject} is not hidden"
    what = f"the page {over.subject}" if over.snapshot_id is None else f"snapshot {over.snapshot_id}"
    named = over.subject if over.snapshot_id is None else over.snapshot_id
    return f"{subject} is hidden with {what}; show both again with: holdfast snapshot unhide {named}"


class TakedownNotFound(NotFound):
    """The takedown does not exist."""

    code = "takedown_not_found"

    def __init__(self, takedown_id: int) -> None:
        super().__init__(f"there is no takedown {takedown_id}; they are listed at /api/admin/takedowns")


class TakedownLifted(Conflict):
    """The takedown is lifted already."""

    code = "takedown_lifted"

    def __init__(self, takedown_id: int) -> None:
        super().__init__(f"takedown {takedown_id} is lifted already: what it hid is shown again")


def takedown(row: Withdrawal) -> Takedown:
    return from_row(Takedown, row, **_given(row))


def takedown_receipt(row: Withdrawal, *, captures: int) -> TakedownReceipt:
    return from_row(TakedownReceipt, row, captures=captures, **_given(row))


def _given(row: Withdrawal) -> dict[str, object]:
    return {
        "kind": kind_of(row.snapshot_id),
        "state": "in_force" if row.lifted_at is None else "lifted",
        "hidden_by": row.actor,
        "hidden_at": row.created_at,
        "shown_by": row.lifted_by,
        "shown_at": row.lifted_at,
    }


def find_takedown(session: Session, takedown_id: int) -> Withdrawal:
    """Return one takedown, in force or lifted; raise TakedownNotFound."""
    found = session.get(Withdrawal, takedown_id)
    if found is None:
        raise TakedownNotFound(takedown_id)
    return found


def list_withdrawals(
    session: Session, *, in_force: bool | None = None, search: str | None = None, before: int | None = None, limit: int
) -> list[Withdrawal]:
    """Return takedowns, newest first; `search` is a part of the subject or of the reason, `before` a takedown's id."""
    clauses: list[ColumnElement[bool]] = []
    if in_force is not None:
        clauses.append(Withdrawal.lifted_at.is_(None) if in_force else Withdrawal.lifted_at.is_not(None))
    if search:
        parts = (column.icontains(search, autoescape=True) for column in (Withdrawal.subject, Withdrawal.reason))
        clauses.append(or_(*parts))
    if before is not None:
        clauses.append(Withdrawal.id < before)
    return list(session.scalars(select(Withdrawal).where(*clauses).order_by(Withdrawal.id.desc()).limit(limit)))


_SAMPLE = 20


def preview_hiding(session: Session, subject: str) -> TakedownPreview:
    """Return the captures that a takedown would hide; raise UrlRefused for an invalid address, NotFound if unknown."""
    target = snapshot_id, key = _known_target(session, subject)
    which = concerned_by(*target)
    counted = session.execute(
        select(Source.code, func.count(), func.min(Snapshot.captured_at), func.max(Snapshot.captured_at))
        .join(Source, Source.id == Snapshot.source_id)
        .where(which)
        .group_by(Source.code)
        .order_by(Source.code)
    ).all()
    newest = session.execute(
        select(Snapshot, Source.code)
        .join(Source, Source.id == Snapshot.source_id)
        .where(which)
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
        .limit(_SAMPLE)
    )
    return TakedownPreview(
        subject=subject,
        kind=kind_of(snapshot_id),
        snapshot_id=snapshot_id,
        url_key=key,
        captures=sum(row[1] for row in counted),
        first_capture=min((row[2] for row in counted), default=None),
        last_capture=max((row[3] for row in counted), default=None),
        sources={row[0]: row[1] for row in counted},
        sample=[from_row(TakedownCapture, row, source=code, status_code=row.status) for row, code in newest],
        in_force=[*map(takedown, withdrawals_of(session, *target))],
    )


def _compare_again(session: Session, target: _Subject) -> None:
    snapshot_id, key = target
    if key is not None:
        compare_page_again(session, key)
    elif snapshot_id is not None and (found := any_snapshot(session, snapshot_id)) is not None:
        compare_again(session, found)


def _known_target(session: Session, subject: str) -> _Subject:
    """Return the snapshot or page of a subject; raise NotFound if the snapshot does not exist."""
    snapshot_id, key = _target_of(session, subject)
    if snapshot_id is not None and any_snapshot(session, snapshot_id) is None:
        raise NotFound(f"there is no snapshot {snapshot_id}")
    return snapshot_id, key


def _target_of(session: Session, subject: str) -> _Subject:
    """Return the snapshot or page of a subject; raise UrlRefused for an invalid address without captures.

    Raise NotFound for a number that is larger than any id.
    """
    if subject.isascii() and subject.isdecimal():
        number = int(subject.lstrip("0")[:20] or "0")
        if number > _LARGEST_ID:  # no database accepts it
            raise NotFound(f"there is no snapshot {subject[:40]}")
        return number, None
    try:
        return None, page_key(parse_seed(subject).fetch)
    except UrlRefused:
        # Imported captures may have addresses that no crawl requests (an odd port, `dns:`).
        key = page_key(subject)
        if ":" in subject and captures_of(session, key):
            return None, key
        raise


def _record(session: Session, clock: Clock, subject: str, target: _Subject, *, reason: str | None) -> int:
    """Audit a takedown or its lifting (without a reason), and queue it for the search index.

    Return the number of affected stored captures.
    """
    action: AuditAction = "snapshot.shown" if reason is None else "snapshot.hidden"
    snapshot_id, key = target
    # Hide and show link texts of other pages that come from it together with it.
    for named in [*named_by(session, *target)] or [[]]:
        refs = {"url_key": key, "hidden": reason is not None, "hashes": named}
        row = SearchOutbox(kind="withdrawal", first_id=snapshot_id, last_id=snapshot_id, refs=refs)
        row.created_at = clock.now()
        session.add(row)
    detail = {"reason": reason, "snapshot_id": snapshot_id, "url_key": key}
    audit.record(session, clock, action=action, subject=subject, detail=detail)
    session.flush()
    return count_concerned(session, *target)


def tell_search(session: Session, clock: Clock, source_id: int) -> None:
    """Make the search index read a source's link texts again, because its visibility has changed."""
    session.add(SearchOutbox(kind="visibility", first_id=source_id, last_id=source_id, created_at=clock.now(), refs={}))


def append_lines(database: Database, home: Path, *rows: dict[str, Any]) -> None:
    """Append lines to the file of takedowns and sync it; a new file starts with all takedowns in force."""
    known: list[Withdrawal] = []
    if not (home / WITHDRAWALS).exists():
        with database.read() as session:
            known = withdrawals_in_force(session)
    append_json_lines(home / WITHDRAWALS, [*map(as_line, known), *rows])


def as_line(row: Withdrawal, *, lifted: bool = False) -> dict[str, Any]:
    return {
        "snapshot_id": row.snapshot_id,
        "url_key": row.url_key,
        "subject": row.subject,
        "reason": row.reason,
        "actor": row.actor,
        "created_at": row.created_at.isoformat(),
        "lifted": lifted,
    }


def missing_withdrawals(database: Database, home: Path) -> list[Withdrawal]:
    """Return takedowns that are in force in the file and have no row; invalid lines are skipped."""
    latest: dict[tuple[int | None, str | None], dict[str, Any]] = {}
    for text in read_lines(home / WITHDRAWALS):
        try:
            line = json.loads(text)
            # Check it here, because one invalid line must not keep the others from being restored.
            if _is_ours(line):
                latest[line["snapshot_id"], line["url_key"]] = line
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    with database.read() as session:
        return [
            Withdrawal(
                snapshot_id=snapshot_id,
                url_key=key,
                subject=line["subject"],
                reason=line["reason"],
                actor=line["actor"],
                created_at=datetime.fromisoformat(line["created_at"]),
            )
            for (snapshot_id, key), line in latest.items()
            if not line["lifted"] and not is_known(session, snapshot_id, key)
        ]


def _is_ours(line: dict[str, Any]) -> bool:
    """Return whether a line has all that a row needs; raise ValueError, KeyError or TypeError if malformed."""
    number, key = line["snapshot_id"], line["url_key"]
    is_id = key is None and type(number) is int and 0 <= number <= _LARGEST_ID
    is_key = number is None and isinstance(key, str) and "\0" not in key
    is_whole = all(isinstance(line[name], str) and "\0" not in line[name] for name in ("subject", "reason", "actor"))
    is_dated = datetime.fromisoformat(line["created_at"]).tzinfo is not None
    return (is_id or is_key) and is_whole and is_dated and isinstance(line["lifted"], bool)


def restore_withdrawals(database: Database, home: Path) -> int:
    """Restore the takedowns that only the file has; return how many."""
    missing = missing_withdrawals(database, home)
    with database.write() as session:
        session.add_all(missing)
    return len(missing)
