"""Checks an execution's captures against its files: each file exists in full size, each row finds its record.

Replay reads the snapshot table and has no index of its own to rebuild, so this check covers everything that it
needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.engine import Database
from holdfast.db.models import Snapshot, WarcFile
from holdfast.errors import HoldfastError, NotFound, Unavailable
from holdfast.index.queries import file_of, open_stored
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import SnapshotNotFound, visible

_BATCH = 200
_MAX_EXAMPLES = 20


class Fault(StrEnum):
    """Why a capture or file cannot be replayed."""

    FILE_MISSING = "file_missing"
    FILE_SIZE = "file_size"
    """The file's size differs from the sealed one."""
    NOT_INDEXED = "not_indexed"
    RECORD = "record_damaged"
    OTHER_RECORD = "other_record"
    """Its position has the record of another capture."""
    LOST_ORIGINAL = "original_lost"
    """A revisit whose body is not in the archive; it shows its headers only."""
    WITHDRAWN_ORIGINAL = "original_withdrawn"
    """A revisit whose original is hidden: undamaged, but it shows nothing until the original is visible again."""


@dataclass(slots=True, kw_only=True)
class Replayable:
    execution_id: int
    files: int = 0
    captures: int = 0
    checked: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    """The first few faults, with details."""

    @property
    def is_whole(self) -> bool:
        return not self.faults

    def add_fault(self, fault: Fault, what: str) -> None:
        self.faults[fault.value] += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(f"{fault.value}: {what}")


def check_execution(
    database: Database,
    home: Path,
    execution_id: int,
    *,
    sample: int | None = None,
    seen: Callable[[int], None] = lambda _count: None,
) -> Replayable:
    """Check the files of an execution and its captures: all, or about `sample` of them, evenly spread.

    Raise NotFound without sealed files: then there is nothing to replay.
    """
    found = Replayable(execution_id=execution_id)
    with database.read() as session:
        _check_files(session, home, found)
        of_execution = Snapshot.execution_id == execution_id, *visible()
        found.captures = session.scalar(select(func.count()).where(*of_execution)) or 0
    if not found.files:
        raise NotFound(f"execution {execution_id} has no sealed WARC file: nothing of it can be replayed")
    # Sample evenly over all files: damage affects ranges, and the first captures are not a sample.
    step = 1 if not sample else max(1, found.captures // sample)
    after, number = 0, 0
    while True:
        with database.read() as session:
            wanted = select(Snapshot).where(*of_execution, Snapshot.id > after).order_by(Snapshot.id).limit(_BATCH)
            page = session.scalars(wanted).all()
            for snapshot in page:
                if number % step == 0:
                    _check_capture(session, home, snapshot, found)
                number += 1
        if not page:
            return found
        after = page[-1].id
        seen(found.checked)


def each_execution(database: Database) -> Iterator[int]:
    """Yield every execution with sealed files, oldest first."""
    number, after = WarcFile.execution_id, 0
    while True:
        with database.read() as session:
            wanted = select(number).where(number > after, WarcFile.state == "sealed").distinct()
            page = session.scalars(wanted.order_by(number).limit(_BATCH)).all()
        if not page:
            return
        yield from page
        after = page[-1]


def _check_files(session: Session, home: Path, found: Replayable) -> None:
    sealed = select(WarcFile).where(WarcFile.execution_id == found.execution_id, WarcFile.state == "sealed")
    for file in session.scalars(sealed.order_by(WarcFile.id)).all():
        found.files += 1
        try:
            size = file_of(session, home, file.id).size()
        except (NotFound, Unavailable):
            found.add_fault(Fault.FILE_MISSING, file.path)
            continue
        if file.size is not None and size != file.size:
            found.add_fault(Fault.FILE_SIZE, f"{file.path} has {size:,} bytes, {file.size:,} were sealed")
        if file.index_state != "indexed":
            found.add_fault(Fault.NOT_INDEXED, f"{file.path} is {file.index_state}")


def _check_capture(session: Session, home: Path, snapshot: Snapshot, found: Replayable) -> None:
    found.checked += 1
    # Nothing is damaged: the original's file never came into this archive.
    if snapshot.record_type == "revisit" and snapshot.original_id is None:
        found.add_fault(Fault.LOST_ORIGINAL, f"snapshot {snapshot.id}")
        return
    try:
        with open_stored(session, home, snapshot) as stored:
            # A file replaced by another of the same size still reads well: only the record's id shows it.
            other = snapshot.record_id is not None and stored.record.record_id != snapshot.record_id
    except SnapshotNotFound:
        found.add_fault(Fault.WITHDRAWN_ORIGINAL, f"snapshot {snapshot.id}")
        return
    except (HoldfastError, OSError) as exc:
        found.add_fault(Fault.RECORD, f"snapshot {snapshot.id}: {exc}")
        return
    if other:
        found.add_fault(Fault.OTHER_RECORD, f"snapshot {snapshot.id}")
