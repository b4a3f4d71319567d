"""Stores whether captures are noise: findings of the classifier, and manual labels, which permanently override them.

A page may be named by any spelling of its URL; its label also applies to its future captures. Manual labels are
audited, and stored in the data directory too, so that a rebuild of a lost database can restore them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import AuditAction, acting_user
from holdfast.db.engine import Database
from holdfast.db.models import ManualLabel, Snapshot
from holdfast.errors import Invalid, NotFound
from holdfast.index.queries import renew_good_captures
from holdfast.noise import queries
from holdfast.noise.words import NoiseKind
from holdfast.records import Operator, record
from holdfast.storage.disk import append_lines, read_lines
from holdfast.urls import page_key, parse_seed
from holdfast.withdrawals.recomparing import compare_again, lock_changes
from holdfast.withdrawals.visibility import SnapshotNotFound, visible_snapshot

RULINGS = "noise-rulings.jsonl"
_LARGEST_ID = 2**63 - 1
_AT_ONCE = 500

Finding = tuple[str, str]
"""The kind of noise, and the evidence."""


def write_findings(
    session: Session, found: Mapping[int, Finding | None], labels: Mapping[int, ManualLabel], *, now: datetime
) -> tuple[Counter[str], int]:
    """Store changed findings of these captures; a manual label wins. Return the number of new marks by kind, and of
    cleared ones.

    `labels` holds known labels; those of other captures are queried. The caller holds the lock of changes.
    """
    rows = queries.snapshots(session, found.keys())
    others = ((row.id, row.page_key or row.url_key) for row in rows if row.id not in labels)
    labels = {**labels, **queries.labels_on(session, others)}
    new, removed = Counter[str](), 0
    marked, cleared, touched = list[int](), list[int](), list[Snapshot]()
    for row in rows:
        label = labels.get(row.id)
        finding = found[row.id] if label is None else _finding_of(label)
        kind = None if finding is None else finding[0]
        (cleared if finding is None else marked).append(row.id)
        if finding is not None and (row.noise != kind or label is not None):
            queries.put_verdict(session, row.id, *finding, by=None if label is None else label.actor, now=now)
        if row.noise != kind:
            touched.append(row)
            row.noise = kind
            removed += kind is None
            new.update([] if kind is None else [kind])
    # Write these before examining the neighbours: which captures of a page count as successful depends on which are
    # noise now.
    session.flush()
    for row in touched:
        # A capture that was not compared yet will be, with those after it.
        if row.is_page and row.compared:
            compare_again(session, row)
    queries.drop_verdicts(session, [row.id for row in touched if row.noise is None])
    queries.note_marked(session, marked, cleared)
    queries.tell_search(session, [row.id for row in touched if row.is_page], now=now)
    renew_good_captures(session, touched, now=now)
    return new, removed


def _finding_of(label: ManualLabel) -> Finding | None:
    return None if label.kind is None else (label.kind, f"{label.actor} ruled so: {label.reason}")


@record
class RulingReceipt:
    """The manual label."""

    subject: Operator[str]
    noise: Operator[NoiseKind | None]
    """null: it shows the page."""
    snapshots: Operator[int]
    """Captures that it holds for now."""


class NotJudged(Invalid):
    """This capture is neither a page nor a redirect: nothing excludes it, so it needs no label."""

    code = "not_judged"


def set_label(
    database: Database, clock: Clock, subject: str, *, kind: NoiseKind | None, reason: str, home: Path | None = None
) -> RulingReceipt:
    """Label a capture (by its id), or a page with all its captures (by its URL), as noise or not.

    Raise Invalid without a reason; SnapshotNotFound if the capture is missing or under a takedown; NotFound if a
    page has no captures.
    """
    if not reason.strip():
        raise Invalid("say why with --reason; it is kept in the audit log")
    with database.write() as session:
        lock_changes(session)
        row = ManualLabel(
            subject=subject,
            kind=None if kind is None else kind.value,
            reason=reason.strip().replace("\0", ""),
            actor=acting_user(),
            created_at=clock.now(),
        )
        row.snapshot_id, row.url_key = _target(subject)
        held, shown = _held(session, row)
        if home is not None:
            append_labels(database, home, row)
        session.add(row)
        session.flush()
        _put_in_force(session, row, held, now=clock.now())
        detail = {"kind": row.kind, "reason": row.reason, "snapshot_id": row.snapshot_id, "url_key": row.url_key}
        action: AuditAction = "noise.cleared" if kind is None else "noise.marked"
        audit.record(session, clock, action=action, subject=subject, detail=detail)
        return RulingReceipt(subject=subject, noise=kind, snapshots=shown)


def _target(subject: str) -> tuple[int | None, str | None]:
    if subject.isascii() and subject.isdecimal():
        number = int(subject.lstrip("0")[:20] or "0")
        if number > _LARGEST_ID:
            raise SnapshotNotFound(f"there is no snapshot {subject[:40]}")
        return number, None
    return None, page_key(parse_seed(subject).fetch)


def _held(session: Session, row: ManualLabel) -> tuple[list[int], int]:
    if row.snapshot_id is not None:
        found = visible_snapshot(session, row.snapshot_id)
        if not found.is_page and found.redirect_to is None:
            raise NotJudged(f"snapshot {found.id} is neither a page nor a redirect: it is left out nowhere")
        return [found.id], 1
    assert row.url_key is not None
    shown = len(queries.captures_of_page(session, row.url_key, withdrawn=False))
    if not shown:
        raise NotFound(f"no page was captured at {row.subject}; find one with: holdfast search WORDS")
    # Include captures under a takedown: nothing is classified again when it is lifted.
    return queries.captures_of_page(session, row.url_key, withdrawn=True), shown


def _put_in_force(session: Session, row: ManualLabel, held: Sequence[int], *, now: datetime) -> None:
    finding = _finding_of(row)
    for at in range(0, len(held), _AT_ONCE):
        some = held[at : at + _AT_ONCE]
        queries.drop_suspects(session, some)
        # Query the labels again: a capture's label wins over that of its page.
        write_findings(session, dict.fromkeys(some, finding), {}, now=now)


def append_labels(database: Database, home: Path, *rows: ManualLabel) -> None:
    """Append labels to the file, synced to disk; the first call writes all known ones."""
    known: list[ManualLabel] = []
    if not (home / RULINGS).exists():
        with database.read() as session:
            known = queries.all_labels(session)
    append_lines(home / RULINGS, [_as_line(row) for row in (*known, *rows)])


_TEXTS = ("subject", "reason", "actor")


def _as_line(row: ManualLabel) -> dict[str, Any]:
    return {
        "snapshot_id": row.snapshot_id,
        "url_key": row.url_key,
        "kind": row.kind,
        **{name: getattr(row, name) for name in _TEXTS},
        "created_at": row.created_at.isoformat(),
    }


def restore_labels(database: Database, clock: Clock, home: Path) -> int:
    """Restore labels from the file that are missing or older in the database; return their number.

    Captures that are not here yet get them when they are indexed.
    """
    latest: dict[tuple[int | None, str | None], ManualLabel] = {}
    for line in read_lines(home / RULINGS):
        row = _read_line(line)
        if row is not None:
            latest[row.snapshot_id, row.url_key] = row
    with database.write() as session:
        lock_changes(session)
        known = queries.known_labels(session)
        missing = [row for subject, row in latest.items() if subject not in known or known[subject] < row.created_at]
        session.add_all(missing)
        session.flush()
        for row in missing:
            # Apply them now: files that are read again without a change are not classified again.
            held = [row.snapshot_id] if row.snapshot_id is not None else []
            held += queries.captures_of_page(session, row.url_key, withdrawn=True) if row.url_key is not None else []
            _put_in_force(session, row, held, now=clock.now())
    return len(missing)


def _read_line(text: bytes) -> ManualLabel | None:
    """Return the label in a line, or None if it is malformed: it must not invalidate the others."""
    try:
        line = json.loads(text)
        number, key, kind = line["snapshot_id"], line["url_key"], line["kind"]
        moment = datetime.fromisoformat(line["created_at"])
        words = {name: line[name] for name in _TEXTS}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_id = key is None and type(number) is int and 0 <= number <= _LARGEST_ID
    is_key = number is None and isinstance(key, str) and "\0" not in key
    is_whole = all(isinstance(word, str) and "\0" not in word for word in words.values())
    is_kind = kind is None or kind in list(NoiseKind)
    if not (is_id or is_key) or not is_whole or not is_kind or moment.tzinfo is None:
        return None
    return ManualLabel(snapshot_id=number, url_key=key, kind=kind, created_at=moment, **words)
