"""Taking captures out of sight, at once and for every reader, and bringing them back; each with a reason, audited.

A page is withdrawn by its key, so it stays hidden under every spelling of its address and in every capture that comes
later, until the withdrawal is lifted.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import Database
from holdfast.db.models import SearchOutbox, Withdrawal
from holdfast.errors import Conflict, Invalid, NotFound, UrlRefused
from holdfast.urls import page_key, parse_seed
from holdfast.warc.outfile import disk_error, sync_directory
from holdfast.withdrawals import queries
from holdfast.withdrawals.visibility import is_known, withdrawals_in_force, withdrawals_of

WITHDRAWALS = "withdrawals.jsonl"
"""In the data directory: a rebuild of a lost database must not show what was hidden."""
_LINE = ("subject", "reason", "actor", "created_at", "lifted")
_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """What was hidden or shown again."""

    subject: str
    snapshots: int
    """Captures that are stored now and concerned by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What is meant: one snapshot, or the page with this key."""

    snapshot_id: int | None = None
    key: str | None = None


def hide(database: Database, clock: Clock, subject: str, *, reason: str, home: Path | None = None) -> Withdrawn:
    """Hide a snapshot (by its id), or all captures of a page by any spelling of its address, present and future.

    With `home`, it is noted in the data directory too, before it is in force: a rebuild from files alone goes by that.
    Invalid without a reason; NotFound if there is no such snapshot; Conflict if it is hidden already.
    """
    if not reason.strip():
        raise Invalid("say why with --reason; it is kept in the audit log")
    with database.write() as session:
        # First of all: a comparison under way would mark as compared what is marked here to be compared again.
        queries.take_changes_turn(session)
        meant = _meant(session, subject)
        if meant.snapshot_id is not None and queries.any_snapshot(session, meant.snapshot_id) is None:
            raise NotFound(f"there is no snapshot {meant.snapshot_id}")
        if withdrawals_of(session, snapshot_id=meant.snapshot_id, key=meant.key):
            raise Conflict(f"{subject} is hidden already; show it again with: holdfast snapshot unhide {subject}")
        row = Withdrawal(
            snapshot_id=meant.snapshot_id,
            url_key=meant.key,
            subject=subject,
            reason=reason.strip(),
            actor=acting_user(),
            created_at=clock.now(),
        )
        if home is not None:
            note(database, home, as_line(row))
        session.add(row)
        session.flush()
        if meant.snapshot_id is not None:
            _compare_again(session, meant)
        return _told(session, clock, subject, meant, reason=reason)


def unhide(database: Database, clock: Clock, subject: str, *, home: Path | None = None) -> Withdrawn:
    """Lift the withdrawals of a snapshot or a page; NotFound if it is not hidden."""
    with database.write() as session:
        queries.take_changes_turn(session)
        meant = _meant(session, subject)
        rows = withdrawals_of(session, snapshot_id=meant.snapshot_id, key=meant.key)
        if not rows:
            raise NotFound(f"{subject} is not hidden")
        for row in rows:
            row.lifted_at, row.lifted_by = clock.now(), acting_user()
        session.flush()
        _compare_again(session, meant)
        told = _told(session, clock, subject, meant, reason=None)
        lines = [as_line(row, lifted=True) for row in rows]
    if home is not None:
        # Behind the commit: a process that dies in between leaves a line that hides too much, not too little. In a turn
        # of its own, as hiding notes in its: whatever is hidden again meanwhile is not noted as lifted behind that.
        with database.write() as session:
            queries.take_changes_turn(session)
            if not withdrawals_of(session, snapshot_id=meant.snapshot_id, key=meant.key):
                note(database, home, *lines)
    return told


def _compare_again(session: Session, meant: _Subject) -> None:
    """Leave word for `changes`: the capture behind a hidden one is held against the one before it, and back again."""
    if meant.key is not None:
        queries.compare_page_again(session, meant.key)
    elif meant.snapshot_id is not None and (found := queries.any_snapshot(session, meant.snapshot_id)) is not None:
        queries.compare_again(session, found)


def _meant(session: Session, subject: str) -> _Subject:
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
        if ":" in subject and queries.captures_of(session, key):
            return _Subject(key=key)
        raise


def _told(session: Session, clock: Clock, subject: str, meant: _Subject, *, reason: str | None) -> Withdrawn:
    """Say in the audit log and to the search index what was done: hidden with a reason, shown again without one."""
    done = "shown" if reason is None else "hidden"
    session.add(
        SearchOutbox(
            kind="withdrawal",
            first_id=meant.snapshot_id,
            last_id=meant.snapshot_id,
            created_at=clock.now(),
            refs={"url_key": meant.key, "hidden": reason is not None},
        )
    )
    detail = {"reason": reason, "snapshot_id": meant.snapshot_id, "url_key": meant.key}
    audit.record(session, clock, action=f"snapshot.{done}", subject=subject, detail=detail)
    session.flush()
    count = 1 if meant.key is None else queries.captures_of(session, meant.key)
    return Withdrawn(subject=subject, snapshots=count)


def note(database: Database, home: Path, *rows: dict[str, Any]) -> None:
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
            datetime.fromisoformat(line["created_at"])
            latest[line["snapshot_id"], line["url_key"]] = {name: line[name] for name in _LINE}
        except (ValueError, KeyError, TypeError):
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


def restore_withdrawals(database: Database, home: Path) -> int:
    """Put back in force what the lines say is hidden and no row knows; return how many there were."""
    missing = missing_withdrawals(database, home)
    with database.write() as session:
        session.add_all(missing)
    return len(missing)
