"""Lists the members' sources in the data directory, so that rebuilding a lost database never opens them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import Invalid
from holdfast.sources.queries import is_code, members_codes, named_source, source_by_code, sources_by_code
from holdfast.storage.disk import disk_error, locked, write_whole
from holdfast.withdrawals.viewers import Visibility

MEMBERS: Final = "members.json"
"""In the data directory, beside `withdrawals.jsonl`."""
_LOCK = ".members.lock"
_CHANGED: Final = "visibility_changed"


def mark_changed(session: Session, code: str, *, is_for_members: bool) -> None:
    """Update the file with this transaction (`write_noting`): a source's visibility has changed, or it is deleted."""
    session.info.setdefault(_CHANGED, {})[code] = is_for_members


@contextmanager
def write_noting(database: Database, home: Path) -> Iterator[Session]:
    """Open a transaction that may change the visibility of sources; the file is updated before a restriction applies.

    A source that becomes restricted is added before the commit, one that becomes public is removed after it:
    whenever a process dies, the file lists too many rather than too few. Raise Unavailable if it cannot be written;
    NoSpace.
    """
    with ExitStack() as held:
        with database.write() as session:
            yield session
            session.flush()
            changed: dict[str, bool] = session.info.pop(_CHANGED, {})
            if changed:
                # Hold the lock until after the commit: another process writing the note would not see this row before.
                held.enter_context(locked(home / _LOCK))
                fresh = {code for code, is_for_members in changed.items() if is_for_members}
                _write(home, _noted(home) | fresh)
        if changed:
            _write(home, _due(database, home) - {code for code, is_members in changed.items() if not is_members})


def note_members(database: Database, home: Path) -> None:
    """Correct the file if it differs from the database; it is on disk on return. Raise Unavailable or NoSpace.

    A listed source without a row stays in the file: its database may be lost, and not yet rebuilt.
    """
    # Usually there is nothing to do, and a read-only data directory suffices.
    if _due(database, home) == _noted(home):
        return
    with locked(home / _LOCK):
        _write(home, _due(database, home))


def _due(database: Database, home: Path) -> set[str]:
    noted = _noted(home)
    with database.read() as session:
        return set(members_codes(session)) | (noted - sources_by_code(session, list(noted)).keys())


def _noted(home: Path) -> set[str]:
    """Return the codes in the file; none if it is invalid, so that it is rewritten from the rows."""
    try:
        return _read(home)
    except Invalid:
        return set()


def _read(home: Path) -> set[str]:
    """Return the codes in the file, none if it is missing; raise Invalid if its content is invalid."""
    try:
        noted = json.loads((home / MEMBERS).read_bytes())["members"]
        return {code for code in noted if isinstance(code, str) and is_code(code)}
    except FileNotFoundError:
        return set()
    except (ValueError, KeyError, TypeError) as exc:
        raise Invalid(f"{home / MEMBERS} makes no sense; restore it from a backup, or move it away") from exc
    except OSError as exc:
        raise disk_error(exc, f"cannot read {home / MEMBERS}: {exc.strerror}") from exc


def _write(home: Path, codes: set[str]) -> None:
    path = home / MEMBERS
    if not codes and not path.exists():
        return
    try:
        write_whole(path, json.dumps({"members": sorted(codes)}).encode())
    except OSError as exc:
        raise disk_error(exc, f"cannot write {path}: {exc.strerror}") from exc


def restore_members(database: Database, clock: Clock, home: Path) -> int:
    """Recreate the members' sources that have no row, restricted to members; return how many.

    Those that have a row are unchanged: it is newer than the file. Raise Invalid if the file is invalid.
    """
    made, noted = 0, _read(home)
    with database.write() as session:
        for code in sorted(noted):
            if source_by_code(session, code) is None:
                named_source(session, clock, code=code).visibility = Visibility.MEMBERS.value
                made += 1
    return made
