"""Holds the frozen list of an edition against the archive: its digest, every capture on it, and their WARC files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from holdfast.db.engine import Database
from holdfast.editions import queries
from holdfast.editions.freezing import frozen_row
from holdfast.editions.frozen import digest_of, entries, frozen_list
from holdfast.editions.queries import FileRow
from holdfast.editions.volume import read_volume
from holdfast.warc.roots import placed

_SHOWN: Final = 20
_COMPARED: Final = ("warc_record_id", "url", "captured_at", "payload_digest")
_CHUNK: Final = 1 << 20

Tell = Callable[[str], None]
"""Hears which file is being read."""


@dataclass(slots=True, kw_only=True)
class Verified:
    """Whether the archive still holds what a list names."""

    digest_matches: bool
    listed: int = 0
    missing: int = 0
    """Captures that are not in the archive."""
    changed: int = 0
    """Captures that are not what the list says."""
    withdrawn: int = 0
    files: int = 0
    """WARC files that the captures lie in."""
    files_missing: int = 0
    files_damaged: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the list is what was cited, and everything on it is here; what was withdrawn is here, unseen."""
        return self.digest_matches and not (self.missing or self.changed or self.files_missing or self.files_damaged)

    def note(self, words: str) -> None:
        """Keep an example of what is wrong, if there are not too many."""
        if len(self.examples) < _SHOWN:
            self.examples.append(words)


def verify_frozen(
    database: Database, home: Path, edition_id: int, *, quick: bool = False, tell: Tell = lambda _words: None
) -> Verified:
    """Return whether the archive holds what an edition's frozen list names; EditionNotFound, EditionNotReady.

    Every WARC file is read whole and its digest compared with that of its sealing; `quick` only looks at its size.
    """
    with database.read() as session:
        volume = read_volume(session, edition_id)
    path = frozen_list(home, volume.edition)
    digest = digest_of(path)
    found = Verified(digest_matches=digest == volume.edition.frozen_digest)
    if not found.digest_matches:
        found.note(f"{path.name} is {digest}, cited was {volume.edition.frozen_digest}")
    files: set[int] = set()
    for batch in entries(path):
        files |= _hold(database, found, batch)
    for warc_file_id in sorted(files):
        with database.read() as session:
            row = queries.warc_file(session, warc_file_id)
        tell(row.path if row is not None else "")
        _look_at(home, found, row, quick=quick)
    return found


def _hold(database: Database, found: Verified, rows: Sequence[dict[str, Any] | None]) -> set[int]:
    """Compare some entries with the archive; return the files that their captures lie in."""
    with database.read() as session:
        here = queries.captures_by_id(session, [row["snapshot_id"] for row in rows if row is not None])
    for row in rows:
        found.listed += 1
        held = None if row is None else here.get(row["snapshot_id"])
        if row is None or held is None:
            found.missing += 1
            found.note(f"snapshot {row['snapshot_id'] if row else '?'} is not in the archive")
        elif held.withdrawn or row.get("withdrawn"):
            found.withdrawn += 1
        elif differing := [name for name in _COMPARED if frozen_row(held)[name] != row.get(name)]:
            found.changed += 1
            found.note(f"snapshot {held.id} differs in {', '.join(differing)}")
    return {held.warc_file_id for held in here.values()}


def _look_at(home: Path, found: Verified, row: FileRow | None, *, quick: bool) -> None:
    found.files += 1
    name = Path(row.path).name if row is not None else "a file without a row"
    path = placed(home, row.path if row is not None else None)
    if row is None or path is None:
        found.files_missing += 1
        found.note(f"{name} is gone; restore it from a backup")
        return
    try:
        damaged = path.stat().st_size != row.size or (not quick and _digest(path) != row.sha256)
    except OSError as exc:
        damaged, name = True, f"{name} ({exc.strerror})"
    if damaged:
        found.files_damaged += 1
        found.note(f"{name} is not what was sealed; look at it with: holdfast verify-warcs")


def _digest(path: Path) -> str:
    hasher = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()
