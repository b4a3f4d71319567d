"""Freezes an edition into a citable list; `verify_frozen` later checks that the archive still holds it.

The list is named by its digest and never overwritten: a later freeze adds another, and a citation of the first
can still be checked. A capture under takedown is listed only by its number, marked as withdrawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from holdfast import audit
from holdfast.clock import Clock, to_micros
from holdfast.db.audit_events import AuditAction
from holdfast.db.engine import Database
from holdfast.db.models import Edition, WarcFile
from holdfast.editions import queries
from holdfast.editions.edition_files import FROZEN, EditionDraft, WrittenFile, stored_file, utc_text
from holdfast.editions.edition_view import EditionNotReady, EditionView, captures_of, draft_of, judge, view_edition
from holdfast.editions.queries import CaptureRow, WantedCaptures
from holdfast.errors import Conflict, HoldfastError
from holdfast.events import EventName, record_event
from holdfast.sorting import sorted_lines
from holdfast.storage.disk import sha256_of_file
from holdfast.storage.roots import find_file
from holdfast.values import dataclass


class EditionFrozen(Conflict):
    """The edition was frozen before: its list is cited."""

    code = "edition_frozen"


class FrozenListDamaged(Conflict):
    """The frozen list differs from the one that was cited."""

    code = "frozen_list_damaged"


OnRow = Callable[[int], None]
"""Called with the number of each row read; an exception from it ends the work, and nothing is changed."""


def silent(_count: int) -> None:
    """Do nothing."""


def counted(lines: Iterable[bytes], on_row: OnRow) -> Iterator[bytes]:
    """Yield lines unchanged, and report their number to `on_row`."""
    for number, line in enumerate(lines, 1):
        on_row(number)
        yield line


def freeze(
    database: Database, home: Path, clock: Clock, edition_id: int, *, again: bool = False, on_row: OnRow = silent
) -> Edition:
    """Write the list of all captures of an edition, store its digest, and return its row.

    Raise EditionNotReady while a shard is still to be crawled, indexed or accepted, or nothing was captured;
    EditionFrozen if there is a list and `again` is false; EditionBusy, NoSpace. Freezing an unchanged edition again
    preserves digest and date, and restores the list if it was lost or damaged.
    """
    with draft_of(database, home, edition_id) as (made, view):
        _demand_ready(view, again=again)
        listed = _write(database, made, view, on_row)
        if not listed.rows:
            raise EditionNotReady(f"nothing of {view.source.code} {view.edition.year} is indexed; there is no list")
        # Named by content: freezing the same captures again gives the same name, and no list overwrites another.
        name = f"frozen-{listed.sha256[:16]}.jsonl"
        (made.scratch / FROZEN).rename(made.scratch / name)
        made.publish(listed._replace(name=name))
        return _record(database, clock, view, name, listed)


def _demand_ready(view: EditionView, *, again: bool) -> None:
    row, label = view.edition, f"{view.source.code} {view.edition.year}"
    if row.frozen_at is not None and not again:
        raise EditionFrozen(
            f"{label} was frozen on {row.frozen_at:%Y-%m-%d} as {row.frozen_digest}; freeze it again with --again"
        )
    if not judge([shard.state for shard in view.shards], captured=1, missing_seeds=None).search_ready:
        raise EditionNotReady(
            f"{label} has shards that are neither indexed nor accepted; see: holdfast edition show {label}"
        )


def _record(database: Database, clock: Clock, view: EditionView, name: str, listed: WrittenFile) -> Edition:
    digest, now = f"sha256:{listed.sha256}", clock.now()
    with database.write() as session:
        row = queries.locked(session, view.edition.id)
        before = row.frozen_digest
        # Freezing an unchanged edition again keeps the date that was cited.
        if before != digest:
            row.frozen_at, row.frozen_digest, row.frozen_count = now, digest, listed.rows
            row.frozen_path = f"editions/{view.source.code}/{row.year}/{name}"
            action: AuditAction = "edition.frozen" if before is None else "edition.frozen_again"
            audit.record(
                session,
                clock,
                action=action,
                subject=f"edition {view.source.code} {row.year}",
                detail={"digest": digest, "before": before, "count": listed.rows},
            )
            payload = {"editionId": row.id, "source": view.source.code, "year": row.year}
            record_event(
                session,
                EventName.EDITION_FROZEN,
                at=now,
                source_id=view.source.id,
                data={**payload, "digest": digest, "captures": listed.rows, "again": before is not None},
            )
    return row


def _write(database: Database, made: EditionDraft, view: EditionView, on_row: OnRow) -> WrittenFile:
    """Write the list in order of address, time and number."""
    lines = counted((_sortable(row) for _, row in captures_of(database, view, which=WantedCaptures.ALL)), on_row)
    with made.sheet(FROZEN) as sheet:
        # Sorting gives the same bytes for the same captures, whatever order the executions ran in.
        for line in sorted_lines(lines, made.scratch):
            sheet.line(line.rsplit(b"\x00", 1)[1])
        return sheet.close()


def _sortable(row: CaptureRow) -> bytes:
    # A withdrawn capture's position must not reveal it either: list all of them at the end.
    key = "~" if row.withdrawn else row.url_key.replace("\x00", "%00").replace("\n", "%0A")
    moment = 0 if row.withdrawn else to_micros(row.captured_at)
    line = json.dumps(frozen_row(row), ensure_ascii=False).encode("utf-8", "replace")
    return b"%d\x00%b\x00%020d\x00%020d\x00%b\n" % (row.withdrawn, key.encode("utf-8", "replace"), moment, row.id, line)


def frozen_row(row: CaptureRow) -> dict[str, Any]:
    if row.withdrawn:
        return {"snapshot_id": row.id, "withdrawn": True}
    return {
        "snapshot_id": row.id,
        "warc_record_id": row.record_id and f"<urn:uuid:{row.record_id}>",
        "url": row.url,
        "captured_at": utc_text(row.captured_at),
        "payload_digest": row.payload_digest,
        "page": row.is_page,
    }


_AT_ONCE = 500


def frozen_list(home: Path, edition: Edition) -> Path:
    """Return the path of an edition's frozen list; raise EditionNotReady if it was never frozen or the file is
    gone.
    """
    if edition.frozen_path is None:
        raise EditionNotReady("this edition was never frozen; do so with: holdfast edition freeze")
    path = stored_file(home, edition.frozen_path)
    if path is None:
        raise EditionNotReady(
            f"the frozen list {Path(edition.frozen_path).name} is gone; restore it from a backup, or make it again "
            "with: holdfast edition freeze --again"
        )
    return path


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in the form used in citations."""
    return f"sha256:{sha256_of_file(path)}"


def cited_list(home: Path, edition: Edition) -> Path:
    """Return the frozen list of an edition; raise FrozenListDamaged if it differs from the cited one.

    Raise EditionNotReady if it was never frozen or the file is gone.
    """
    path = frozen_list(home, edition)
    if digest_of(path) != edition.frozen_digest:
        raise FrozenListDamaged(
            f"the frozen list {path.name} differs from the cited {edition.frozen_digest}; restore it from a backup, "
            "or look what became of it with: holdfast edition verify"
        )
    return path


def entries(path: Path) -> Iterator[list[dict[str, Any] | None]]:
    """Yield the entries of a list, some hundred at a time; None for a damaged line."""
    with path.open("rb") as file:
        while batch := list(islice(file, _AT_ONCE)):
            yield [_entry(line) for line in batch]


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = row.get("snapshot_id") if isinstance(row, dict) else None
    # Others may write to the file's disk: a number that no row can have must not reach the database.
    return row if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 1 << 63 else None


_SHOWN: Final = 20
_COMPARED: Final = ("warc_record_id", "url", "captured_at", "payload_digest")

# Called with the path of each file before it is read.
OnFile = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Verified:
    """Result of checking the archive against a frozen list."""

    digest_matches: bool
    listed: int = 0
    missing: int = 0
    changed: int = 0
    """Captures that differ from the list."""
    withdrawn: int = 0
    files: int = 0
    """WARC files that contain the captures."""
    files_missing: int = 0
    files_damaged: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the list is the cited one and all its captures exist, including those under takedown."""
        return self.digest_matches and not (self.missing or self.changed or self.files_missing or self.files_damaged)

    def note(self, sentence: str) -> None:
        if len(self.examples) < _SHOWN:
            self.examples.append(sentence)


def verify_frozen(
    database: Database, home: Path, edition_id: int, *, quick: bool = False, on_file: OnFile = lambda _path: None
) -> Verified:
    """Check that the archive holds an edition's frozen captures; raise EditionNotFound or EditionNotReady.

    Every WARC file is read completely and its digest compared with the sealed one; `quick` only checks its size.
    """
    with database.read() as session:
        view = view_edition(session, edition_id)
    path = frozen_list(home, view.edition)
    digest = digest_of(path)
    found = Verified(digest_matches=digest == view.edition.frozen_digest)
    if not found.digest_matches:
        found.note(f"{path.name} is {digest}, cited was {view.edition.frozen_digest}")
    files: set[int] = set()
    for batch in entries(path):
        files |= _hold(database, found, batch)
    for warc_file_id in sorted(files):
        with database.read() as session:
            row = queries.warc_file(session, warc_file_id)
        on_file(row.path if row is not None else "")
        _look_at(home, found, row, quick=quick)
    return found


def _hold(database: Database, found: Verified, rows: Sequence[dict[str, Any] | None]) -> set[int]:
    """Compare some entries with the archive; return the ids of the files that contain their captures."""
    with database.read() as session:
        here = queries.captures_by_id(session, [row["snapshot_id"] for row in rows if row is not None])
    for row in rows:
        found.listed += 1
        held = None if row is None else here.get(row["snapshot_id"])
        if row is None or held is None:
            found.missing += 1
            found.note(f"snapshot {row['snapshot_id'] if row else '?'} is not in the archive")
        # The list has only its id: there is nothing to compare.
        elif held.withdrawn or row.get("withdrawn"):
            found.withdrawn += 1
        elif differing := [name for name in _COMPARED if frozen_row(held)[name] != row.get(name)]:
            found.changed += 1
            found.note(f"snapshot {held.id} differs in {', '.join(differing)}")
    return {held.warc_file_id for held in here.values()}


def _look_at(home: Path, found: Verified, row: WarcFile | None, *, quick: bool) -> None:
    found.files += 1
    name = row.file_key.name if row is not None else "a file without a row"
    file = find_file(home, row.file_key if row is not None else None)
    if row is None or file is None:
        found.files_missing += 1
        found.note(f"{name} is gone; restore it from a backup")
        return
    try:
        # Check the size first: it reveals most damage without reading gigabytes.
        damaged = file.size() != row.size or (not quick and file.sha256() != row.sha256)
    except HoldfastError as exc:
        damaged, name = True, f"{name} ({exc})"
    if damaged:
        found.files_damaged += 1
        found.note(f"{name} differs from the sealed file; check it with: holdfast verify-warcs")
