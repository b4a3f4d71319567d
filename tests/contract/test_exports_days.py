"""Exports of some days look into the files that hold captures of those days, and into no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, event, insert, select, update

from holdfast.changes.compute import compute_pending
from holdfast.db import connect
from holdfast.db.models import Change, Snapshot, Source, WarcFile
from holdfast.exports.queries import ExportReach
from holdfast.exports.tables import change_rows, snapshot_rows
from holdfast.index.leases import note_spans
from holdfast.warc.record import ORDINALS
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.contract.changes_bed import day

DAYS = 6
THIRD = ExportReach(since=days_later(3), until=days_later(4))


@pytest.fixture
def archive(tmp_path: Path, database_url: str) -> Iterator[Archive]:
    """Six crawls of two pages, one a day, each with a file of its own; and one of another source on the third day."""
    shots = [
        day(number, f"words of day {number}", url=f"https://example.org/{page}", execution=number + 1)
        for number in range(DAYS)
        for page in "ab"
    ]
    shots.append(Shot(url="https://other.example/", moment=days_later(3), source="other", execution=1))
    built = build_archive(tmp_path, shots, database_url=database_url)
    yield built
    built.database.close()


def _exported(archive: Archive, reach: ExportReach, *, after: int = -1, limit: int | None = None) -> list[int]:
    rows = snapshot_rows(archive.database, reach._replace(after=after, limit=limit), site="")
    return [int(str(row[0])) for row in rows]


def _all(archive: Archive) -> list[tuple[int, Any]]:
    rows = snapshot_rows(archive.database, ExportReach(), site="")
    return [(int(str(row[0])), row[5]) for row in rows]


def test_an_index_run_notes_from_when_to_when_a_file_is(archive: Archive) -> None:
    with archive.database.read() as session:
        spans = [(row.first_at, row.last_at) for row in session.query(WarcFile).order_by(WarcFile.id)]

    assert (BEGIN, BEGIN) in spans
    assert all(first == last for first, last in spans)
    assert len(spans) == DAYS + 1


def test_days_select_what_was_captured_on_them(archive: Archive) -> None:
    wanted = [number for number, moment in _all(archive) if days_later(3) <= moment < days_later(4)]

    assert _exported(archive, THIRD) == wanted
    assert len(wanted) == 3
    assert _exported(archive, ExportReach(since=days_later(50))) == []
    assert _exported(archive, ExportReach(until=BEGIN + timedelta(microseconds=1)))


def test_an_export_of_days_goes_on_behind_its_last_row(archive: Archive) -> None:
    whole = _exported(archive, ExportReach(since=days_later(2)))
    found: list[int] = []
    while part := _exported(archive, ExportReach(since=days_later(2)), after=found[-1] if found else -1, limit=2):
        found += part

    assert found == whole
    assert len(whole) == 2 * (DAYS - 2) + 1


def test_files_of_other_days_are_not_looked_into(archive: Archive) -> None:
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "FROM snapshots" in statement:
            asked.append(statement)

    event.listen(archive.database.engine, "before_cursor_execute", note)
    _exported(archive, THIRD)
    event.remove(archive.database.engine, "before_cursor_execute", note)

    assert len(asked) == 2, "the file of the third day and the other source's"


def test_a_file_whose_span_nobody_knows_is_looked_into(archive: Archive) -> None:
    wanted = _exported(archive, THIRD)
    with archive.database.write() as session:
        session.execute(update(WarcFile).values(first_at=None, last_at=None))

    assert _exported(archive, THIRD) == wanted


def test_spans_of_older_files_are_noted_later(archive: Archive) -> None:
    with archive.database.write() as session:
        before = {row.id: (row.first_at, row.last_at) for row in session.query(WarcFile)}
        session.execute(update(WarcFile).values(first_at=None, last_at=None))

    with closing(connect(archive.settings.database)) as raw_db:
        assert (note_spans(raw_db, most=4), note_spans(raw_db), note_spans(raw_db)) == (4, 3, 0)

    with archive.database.read() as session:
        assert {row.id: (row.first_at, row.last_at) for row in session.query(WarcFile)} == before


def test_files_without_captures_are_asked_for_once_and_keep_no_other_waiting(archive: Archive) -> None:
    with archive.database.write() as session:
        session.execute(update(WarcFile).values(first_at=None, last_at=None))
        empty = session.scalars(select(WarcFile.id).order_by(WarcFile.id).limit(2)).all()
        for file_id in empty:
            low = file_id * ORDINALS
            session.execute(delete(Snapshot).where(Snapshot.id.between(low, low + ORDINALS - 1)))

    with closing(connect(archive.settings.database)) as raw_db:
        assert [note_spans(raw_db, most=2) for _ in range(5)] == [2, 2, 2, 1, 0]

    wanted = [number for number, moment in _all(archive) if days_later(3) <= moment < days_later(4)]
    assert _exported(archive, THIRD) == wanted
    with archive.database.read() as session:
        assert session.scalars(select(WarcFile.id).where(WarcFile.first_at.is_(None))).all() == empty


def test_changes_of_a_source_or_of_days_are_found_behind_thousands_of_others(archive: Archive) -> None:
    compute_pending(archive.database, archive.clock)
    with archive.database.write() as session:
        last = session.query(Change).order_by(Change.id.desc()).first()
        assert last is not None
        far, source_id, at = last.id + 5000, last.source_id, last.to_captured_at
        session.execute(update(Change).where(Change.id == last.id).values(id=far))
        other = session.scalars(select(Source.id).where(Source.id != source_id)).one()
        session.execute(insert(Change), [_other(far - 4000 + number, other) for number in range(1200)])
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "FROM changes" in statement:
            asked.append(statement)

    event.listen(archive.database.engine, "before_cursor_execute", note)
    of_source = list(change_rows(archive.database, ExportReach(source_id=source_id), site="http://a"))
    event.remove(archive.database.engine, "before_cursor_execute", note)
    of_day = list(change_rows(archive.database, ExportReach(since=at, until=at + timedelta(hours=1)), site=""))

    assert of_source[-1][0] == of_day[-1][0] == far
    assert str(of_source[-1][-1]).startswith("http://a/api/changes/compare?toSnapshotId=")
    assert len(asked) <= 8, "the others are jumped over, not walked through"


def _other(change_id: int, source_id: int) -> dict[str, Any]:
    return {
        "id": change_id, "source_id": source_id, "url_hash": 1, "to_snapshot_id": change_id, "to_execution_id": 1,
        "to_captured_at": days_later(100), "type": "unchanged", "computed_at": BEGIN,
    }  # fmt: skip
