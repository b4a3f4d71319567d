"""Taking captures out of sight, at once and for every reader, and bringing them back; each with a reason, audited.

A page is withdrawn by its key, so it stays hidden under every spelling of its address and in every capture that comes
later, until the withdrawal is lifted. With a capture go its revisits, which show its body.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import Database
from holdfast.db.models import SearchOutbox, Snapshot, Source, Withdrawal
from holdfast.errors import Conflict, Invalid, NotFound, UrlRefused
from holdfast.urls import page_key, parse_seed
from holdfast.warc.outfile import disk_error, sync_directory
from holdfast.withdrawals.recomparing import compare_again, compare_page_again, compare_revisits_again, lock_changes
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

# In the data directory: a rebuild of a lost database must not show what was hidden.
WITHDRAWALS = "withdrawals.jsonl"
_LARGEST_ID = 2**63 - 1
MIN_REASON_CHARS = 3
MAX_REASON_CHARS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """What was hidden or shown again."""

    subject: str
    snapshots: int
    """Captures that are stored now and concerned by it."""
    withdrawal_id: int | None = None
    """What hides it now; None if it is shown again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What is meant: one snapshot, or the page with this key."""

    snapshot_id: int | None = None
    key: str | None = None


def hide(database: Database, clock: Clock, subject: str, *, reason: str, home: Path | None = None) -> Withdrawn:
    """Hide a snapshot (by its id), or all captures of a page by any spelling of its address, present and future.

    With `home`, it is noted in the data directory too, before it is in force: a rebuild from files alone goes by that.
    Invalid without a reason that says something; NotFound if there is no such snapshot; Conflict if it is hidden
    already.
    """
    if len(reason.strip()) < MIN_REASON_CHARS or len(reason) > MAX_REASON_CHARS:
        raise Invalid(
            f"say why, in {MIN_REASON_CHARS} to {MAX_REASON_CHARS:,} characters (--reason); the audit log keeps it",
            field="reason",
        )
    with database.write() as session:
        # First of all: a comparison under way would mark as compared what is marked here to be compared again.
        lock_changes(session)
        target = _target_of(session, subject)
        if target.snapshot_id is not None and any_snapshot(session, target.snapshot_id) is None:
            raise NotFound(f"there is no snapshot {target.snapshot_id}")
        if withdrawals_of(session, snapshot_id=target.snapshot_id, key=target.key):
            raise Conflict(f"{subject} is hidden already; show it again with: holdfast snapshot unhide {subject}")
        row = Withdrawal(
            snapshot_id=target.snapshot_id,
            url_key=target.key,
            subject=subject,
            reason=reason.strip(),
            actor=acting_user(),
            created_at=clock.now(),
        )
        if home is not None:
            append_lines(database, home, as_line(row))
        session.add(row)
        session.flush()
        if target.snapshot_id is not None:
            _compare_again(session, target)
        compare_revisits_again(session, snapshot_id=target.snapshot_id, key=target.key)
        return replace(_record(session, clock, subject, target, reason=reason), withdrawal_id=row.id)


def unhide(database: Database, clock: Clock, subject: str, *, home: Path | None = None) -> Withdrawn:
    """Lift the withdrawals of a snapshot or a page; NotFound if it is not hidden."""
    return _lift(database, clock, subject, None, home)


def unhide_by_id(database: Database, clock: Clock, withdrawal_id: int, *, home: Path | None = None) -> Withdrawn:
    """Lift what a withdrawal hides, and every other one of the same subject; WithdrawalNotFound, WithdrawalLifted."""
    with database.read() as session:
        row = find_withdrawal(session, withdrawal_id)
    if row.lifted_at is not None:
        raise WithdrawalLifted(row.id)
    return _lift(database, clock, row.subject, _Subject(snapshot_id=row.snapshot_id, key=row.url_key), home)


def _lift(database: Database, clock: Clock, subject: str, known: _Subject | None, home: Path | None) -> Withdrawn:
    with database.write() as session:
        lock_changes(session)
        target = known or _target_of(session, subject)
        rows = withdrawals_of(session, snapshot_id=target.snapshot_id, key=target.key)
        if not rows:
            raise NotFound(_why_not_hidden(session, subject, target))
        for row in rows:
            row.lifted_at, row.lifted_by = clock.now(), acting_user()
        session.flush()
        _compare_again(session, target)
        compare_revisits_again(session, snapshot_id=target.snapshot_id, key=target.key)
        done = _record(session, clock, subject, target, reason=None)
        lines = [as_line(row, lifted=True) for row in rows]
    if home is not None:
        # Behind the commit: a process that dies in between leaves a line that hides too much, not too little. Under the
        # lock again, which hiding holds while it notes: what is hidden again since is not noted as lifted behind it.
        with database.write() as session:
            lock_changes(session)
            if not withdrawals_of(session, snapshot_id=target.snapshot_id, key=target.key):
                append_lines(database, home, *lines)
    return done


def _why_not_hidden(session: Session, subject: str, target: _Subject) -> str:
    over = None if target.snapshot_id is None else withdrawal_over(session, target.snapshot_id)
    if over is None:
        return f"{subject} is not hidden"
    what = f"the page {over.subject}" if over.snapshot_id is None else f"snapshot {over.snapshot_id}"
    named = over.subject if over.snapshot_id is None else over.snapshot_id
    return f"{subject} is hidden with {what}; show both again with: holdfast snapshot unhide {named}"


TakedownRow = Withdrawal
"""A withdrawal, for who shows it; what is visible is asked of `visibility` alone."""


class WithdrawalNotFound(NotFound):
    """There is no such takedown."""

    code = "takedown_not_found"

    def __init__(self, withdrawal_id: int) -> None:
        super().__init__(f"there is no takedown {withdrawal_id}; they are listed at /api/admin/takedowns")


class WithdrawalLifted(Conflict):
    """What it hid is shown again already."""

    code = "takedown_lifted"

    def __init__(self, withdrawal_id: int) -> None:
        super().__init__(f"takedown {withdrawal_id} is lifted already: what it hid is shown again")


def find_withdrawal(session: Session, withdrawal_id: int) -> Withdrawal:
    """Return one withdrawal, in force or lifted; WithdrawalNotFound."""
    found = session.get(Withdrawal, withdrawal_id)
    if found is None:
        raise WithdrawalNotFound(withdrawal_id)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalFilter:
    """Which withdrawals are listed; what is None does not matter."""

    in_force: bool | None = None
    search: str | None = None
    """A part of the subject or of the reason."""
    before: int | None = None
    limit: int = 50


def listed_withdrawals(session: Session, wanted: WithdrawalFilter) -> list[Withdrawal]:
    """Return withdrawals, newest first."""
    clauses: list[ColumnElement[bool]] = []
    if wanted.in_force is not None:
        lifted = Withdrawal.lifted_at
        clauses.append(lifted.is_(None) if wanted.in_force else lifted.is_not(None))
    if wanted.search:
        parts = (column.icontains(wanted.search, autoescape=True) for column in (Withdrawal.subject, Withdrawal.reason))
        clauses.append(or_(*parts))
    if wanted.before is not None:
        clauses.append(Withdrawal.id < wanted.before)
    return list(session.scalars(select(Withdrawal).where(*clauses).order_by(Withdrawal.id.desc()).limit(wanted.limit)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HidePreview:
    """What a reader would not see any more, if a subject were hidden now."""

    subject: str
    snapshot_id: int | None
    key: str | None
    captures: int
    first: datetime | None
    last: datetime | None
    sources: dict[str, int]
    """Captures by the code of their source."""
    sample: list[tuple[Snapshot, str]]
    """The newest of them, each with the code of its source."""
    in_force: list[Withdrawal]
    """What hides it already."""


_SAMPLE = 20


def preview_hiding(session: Session, subject: str) -> HidePreview:
    """Return what hiding a subject would take away; UrlRefused if it is none, NotFound if there is no such snapshot."""
    target = _target_of(session, subject)
    if target.snapshot_id is not None and any_snapshot(session, target.snapshot_id) is None:
        raise NotFound(f"there is no snapshot {target.snapshot_id}")
    which = concerned_by(snapshot_id=target.snapshot_id, key=target.key)
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
    return HidePreview(
        subject=subject,
        snapshot_id=target.snapshot_id,
        key=target.key,
        captures=sum(row[1] for row in counted),
        first=min((row[2] for row in counted), default=None),
        last=max((row[3] for row in counted), default=None),
        sources={row[0]: row[1] for row in counted},
        sample=[(row[0], row[1]) for row in newest],
        in_force=withdrawals_of(session, snapshot_id=target.snapshot_id, key=target.key),
    )


def _compare_again(session: Session, target: _Subject) -> None:
    """Have `changes` hold the capture behind a hidden one against the one before it, or back again."""
    if target.key is not None:
        compare_page_again(session, target.key)
    elif target.snapshot_id is not None and (found := any_snapshot(session, target.snapshot_id)) is not None:
        compare_again(session, found)


def _target_of(session: Session, subject: str) -> _Subject:
    """Return what a subject names; UrlRefused if it is neither a number nor an address, nor anything in the archive.

    NotFound for a number that is larger than any id.
    """
    if subject.isascii() and subject.isdecimal():
        number = int(subject.lstrip("0")[:20] or "0")
        if number > _LARGEST_ID:  # cut or not, it is no id of ours, and no database takes it
            raise NotFound(f"there is no snapshot {subject[:40]}")
        return _Subject(snapshot_id=number)
    try:
        return _Subject(key=page_key(parse_seed(subject).fetch))
    except UrlRefused:
        # Imported captures may have addresses that no crawl would ask for (an odd port, `dns:`): these are taken if
        # they are here.
        key = page_key(subject)
        if ":" in subject and captures_of(session, key):
            return _Subject(key=key)
        raise


def _record(session: Session, clock: Clock, subject: str, target: _Subject, *, reason: str | None) -> Withdrawn:
    """Say in the audit log and to the search index what was done: hidden with a reason, shown again without one."""
    done = "shown" if reason is None else "hidden"
    session.add(
        SearchOutbox(
            kind="withdrawal",
            first_id=target.snapshot_id,
            last_id=target.snapshot_id,
            created_at=clock.now(),
            refs={"url_key": target.key, "hidden": reason is not None},
        )
    )
    # What its links say of other pages goes and comes with it.
    for named in named_by(session, snapshot_id=target.snapshot_id, key=target.key):
        session.add(SearchOutbox(kind="link_texts", created_at=clock.now(), refs={"hashes": named}))
    detail = {"reason": reason, "snapshot_id": target.snapshot_id, "url_key": target.key}
    audit.record(session, clock, action=f"snapshot.{done}", subject=subject, detail=detail)
    session.flush()
    count = count_concerned(session, snapshot_id=target.snapshot_id, key=target.key)
    return Withdrawn(subject=subject, snapshots=count)


def tell_search(session: Session, clock: Clock, source_id: int) -> None:
    """Have the search index take in anew what the links of a source say of other pages: who may see it has changed."""
    session.add(SearchOutbox(kind="visibility", first_id=source_id, last_id=source_id, created_at=clock.now(), refs={}))


def append_lines(database: Database, home: Path, *rows: dict[str, Any]) -> None:
    """Write withdrawals or liftings behind the others, on disk when it returns; the first one brings all in force."""
    path = home / WITHDRAWALS
    is_new = not path.exists()
    lines = [*rows]
    if is_new:
        with database.read() as session:
            lines = [*map(as_line, withdrawals_in_force(session)), *rows]
    try:
        with path.open("ab") as file:
            # Each begins a line of its own: the one before may be half a line of a process that died.
            file.write(b"".join(b"\n" + json.dumps(line).encode() for line in lines) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_directory(home)
    except OSError as exc:
        raise disk_error(exc, f"cannot write {path}: {exc.strerror}") from exc


def as_line(row: Withdrawal, *, lifted: bool = False) -> dict[str, Any]:
    """Return a withdrawal as its line says it."""
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
    """Return what the lines say is hidden and no row knows; half a line of a process that died says nothing."""
    try:
        raw = (home / WITHDRAWALS).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise disk_error(exc, f"cannot read {home / WITHDRAWALS}: {exc.strerror}") from exc
    latest: dict[tuple[int | None, str | None], dict[str, Any]] = {}
    for text in raw.splitlines():
        try:
            line = json.loads(text)
            # What is needed to hide it again is looked at here: one line that is not as we write them must not keep all
            # others from being in force.
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
            if not line["lifted"] and not is_known(session, snapshot_id=snapshot_id, key=key)
        ]


def _is_ours(line: dict[str, Any]) -> bool:
    """Return whether a line says all that a row needs; ValueError, KeyError or TypeError if it makes no sense."""
    number, key = line["snapshot_id"], line["url_key"]
    is_id = key is None and type(number) is int and 0 <= number <= _LARGEST_ID
    is_key = number is None and isinstance(key, str) and "\0" not in key
    is_whole = all(isinstance(line[name], str) and "\0" not in line[name] for name in ("subject", "reason", "actor"))
    is_dated = datetime.fromisoformat(line["created_at"]).tzinfo is not None
    return (is_id or is_key) and is_whole and is_dated and isinstance(line["lifted"], bool)


def restore_withdrawals(database: Database, home: Path) -> int:
    """Put back in force what the lines say is hidden and no row knows; return how many there were."""
    missing = missing_withdrawals(database, home)
    with database.write() as session:
        session.add_all(missing)
    return len(missing)
