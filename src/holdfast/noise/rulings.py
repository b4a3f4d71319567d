"""Manual rulings: a capture is noise, or it is not. They permanently override the classifier; each is audited.

A page may be named by any spelling of its URL; the ruling also applies to its future captures. Rulings are
stored in the data directory too, so that a rebuild of a lost database can restore them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import Database
from holdfast.db.models import NoiseRuling
from holdfast.errors import Invalid, NotFound
from holdfast.noise import queries
from holdfast.noise.marking import ruled_finding, write_findings
from holdfast.noise.queries import Ruled
from holdfast.noise.words import NoiseKind
from holdfast.records import Operator, record
from holdfast.urls import page_key, parse_seed
from holdfast.warc.outfile import disk_error, sync_directory
from holdfast.withdrawals.recomparing import lock_changes
from holdfast.withdrawals.visibility import SnapshotNotFound, visible_snapshot

RULINGS = "noise-rulings.jsonl"
_LARGEST_ID = 2**63 - 1
_AT_ONCE = 500


@record
class RulingReceipt:
    """The manual label."""

    subject: Operator[str]
    noise: Operator[NoiseKind | None]
    """null: it shows the page."""
    snapshots: Operator[int]
    """Captures that it holds for now."""


class NotJudged(Invalid):
    """This capture is neither a page nor a redirect: nothing excludes it, so it needs no ruling."""

    code = "not_judged"


def rule(
    database: Database, clock: Clock, subject: str, *, kind: NoiseKind | None, reason: str, home: Path | None = None
) -> RulingReceipt:
    """Rule that a capture (by its id), or a page with all its captures (by its URL), is noise or is not.

    Raise Invalid without a reason; SnapshotNotFound if the capture is missing or under a takedown; NotFound if a
    page has no captures.
    """
    if not reason.strip():
        raise Invalid("say why with --reason; it is kept in the audit log")
    with database.write() as session:
        lock_changes(session)
        row = NoiseRuling(
            subject=subject,
            kind=None if kind is None else kind.value,
            reason=reason.strip().replace("\0", ""),
            actor=acting_user(),
            created_at=clock.now(),
        )
        row.snapshot_id, row.url_key = _target(subject)
        held, shown = _held(session, row)
        if home is not None:
            append_rulings(database, home, row)
        session.add(row)
        session.flush()
        _put_in_force(session, row, held, now=clock.now())
        detail = {"kind": row.kind, "reason": row.reason, "snapshot_id": row.snapshot_id, "url_key": row.url_key}
        action = "noise.cleared" if kind is None else "noise.marked"
        audit.record(session, clock, action=action, subject=subject, detail=detail)
        return RulingReceipt(subject=subject, noise=kind, snapshots=shown)


def _target(subject: str) -> tuple[int | None, str | None]:
    if subject.isascii() and subject.isdecimal():
        number = int(subject.lstrip("0")[:20] or "0")
        if number > _LARGEST_ID:
            raise SnapshotNotFound(f"there is no snapshot {subject[:40]}")
        return number, None
    return None, page_key(parse_seed(subject).fetch)


def _held(session: Session, row: NoiseRuling) -> tuple[list[int], int]:
    if row.snapshot_id is not None:
        found = visible_snapshot(session, row.snapshot_id)
        if not found.is_page and found.redirect_to is None:
            raise NotJudged(f"snapshot {found.id} is neither a page nor a redirect: it is left out nowhere")
        return [found.id], 1
    assert row.url_key is not None
    shown = len(queries.captures_of_page(session, row.url_key, withdrawn=False))
    if not shown:
        raise NotFound(f"no page was captured at {row.subject}; find one with: holdfast search WORDS")
    # Those that are withdrawn now, too: they may be shown again, and nothing is judged then.
    return queries.captures_of_page(session, row.url_key, withdrawn=True), shown


def _put_in_force(session: Session, row: NoiseRuling, held: Sequence[int], *, now: datetime) -> None:
    finding = ruled_finding(Ruled(row.kind, row.reason, row.actor))
    for at in range(0, len(held), _AT_ONCE):
        some = held[at : at + _AT_ONCE]
        queries.drop_suspects(session, some)
        # Rulings are asked for once more: that of a capture stands before that of its page.
        write_findings(session, dict.fromkeys(some, finding), {}, now=now)


def append_rulings(database: Database, home: Path, *rows: NoiseRuling) -> None:
    """Append rulings to the file, synced to disk; the first call writes all known ones."""
    path = home / RULINGS
    is_new = not path.exists()
    lines = [_as_line(row) for row in rows]
    if is_new:
        with database.read() as session:
            lines = [*map(_as_line, queries.all_rulings(session)), *lines]
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


_TEXTS = ("subject", "reason", "actor")


def _as_line(row: NoiseRuling) -> dict[str, Any]:
    return {
        "snapshot_id": row.snapshot_id,
        "url_key": row.url_key,
        "kind": row.kind,
        **{name: getattr(row, name) for name in _TEXTS},
        "created_at": row.created_at.isoformat(),
    }


def restore_rulings(database: Database, clock: Clock, home: Path) -> int:
    """Restore rulings from the file that are missing or older in the database; return their number.

    Captures that are not here yet get them when they are indexed.
    """
    latest: dict[tuple[int | None, str | None], NoiseRuling] = {}
    for line in _lines(home):
        row = _read_line(line)
        if row is not None:
            latest[row.snapshot_id, row.url_key] = row
    with database.write() as session:
        lock_changes(session)
        known = queries.known_rulings(session)
        missing = [row for subject, row in latest.items() if subject not in known or known[subject] < row.created_at]
        session.add_all(missing)
        session.flush()
        for row in missing:
            # At once: files that are read again and have not changed are not judged again.
            held = [row.snapshot_id] if row.snapshot_id is not None else []
            held += queries.captures_of_page(session, row.url_key, withdrawn=True) if row.url_key is not None else []
            _put_in_force(session, row, held, now=clock.now())
    return len(missing)


def _lines(home: Path) -> list[bytes]:
    try:
        return (home / RULINGS).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise disk_error(exc, f"cannot read {home / RULINGS}: {exc.strerror}") from exc


def _read_line(text: bytes) -> NoiseRuling | None:
    """Return the ruling in a line, or None if it is malformed: it must not invalidate the others."""
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
    return NoiseRuling(snapshot_id=number, url_key=key, kind=kind, created_at=moment, **words)
