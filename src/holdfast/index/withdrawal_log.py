"""Withdrawals as lines of a file in the data directory: a rebuild of a lost database must not show what was hidden."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.db.engine import Database
from holdfast.db.models import Withdrawal
from holdfast.db.visibility import is_known, withdrawals_in_force
from holdfast.warc.outfile import disk_error, sync_directory

WITHDRAWALS = "withdrawals.jsonl"


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
            latest[line["snapshot_id"], line["url_key"]] = line
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
