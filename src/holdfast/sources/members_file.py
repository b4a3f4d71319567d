"""Which sources are for members, noted in the data directory: a rebuild of a lost database must not open them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.sources.queries import is_code, members_codes, named_source, source_by_code
from holdfast.warc.outfile import disk_error, sync_directory
from holdfast.withdrawals.viewers import Visibility

MEMBERS: Final = "members.json"
"""In the data directory, beside `withdrawals.jsonl`."""
_CHANGED: Final = "visibility_changed"


def mark_changed(session: Session) -> None:
    """Have the note written once this transaction is committed (`note_if_changed`)."""
    session.info[_CHANGED] = True


def note_if_changed(session: Session, database: Database, home: Path) -> None:
    """Write the note anew if a transaction, which is committed by now, changed who may see a source."""
    if session.info.pop(_CHANGED, False):
        note_members(database, home)


def note_members(database: Database, home: Path) -> None:
    """Write down which sources are for members, all of them, on disk when it returns; Unavailable if it cannot be."""
    path = home / MEMBERS
    with database.read() as session:
        codes = members_codes(session)
    if not codes and not path.exists():
        return
    draft = path.with_name(f".{MEMBERS}.{os.getpid()}")
    try:
        with draft.open("w") as file:
            json.dump({"members": codes}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(home)
    except OSError as exc:
        raise disk_error(exc, f"cannot write {path}: {exc.strerror}") from exc


def restore_members(database: Database, clock: Clock, home: Path) -> int:
    """Make the sources again that were for members and have no row, for members; return how many there were.

    Those that have a row stay as they are: it is newer than the note.
    """
    try:
        noted = json.loads((home / MEMBERS).read_bytes())["members"]
    except FileNotFoundError:
        return 0
    except OSError as exc:
        raise disk_error(exc, f"cannot read {home / MEMBERS}: {exc.strerror}") from exc
    codes = [code for code in noted if isinstance(code, str) and is_code(code)]
    made = 0
    with database.write() as session:
        for code in codes:
            if source_by_code(session, code) is None:
                named_source(session, clock, code=code).visibility = Visibility.MEMBERS.value
                made += 1
    return made
