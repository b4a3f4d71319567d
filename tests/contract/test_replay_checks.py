"""Whether captures can be replayed, told from rows and files, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast.clock import SystemClock
from holdfast.db.models import Snapshot
from holdfast.errors import NotFound
from holdfast.replay.checks import check_execution, each_execution
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide
from tests.archive import BEGIN, Shot, build_archive

SHOTS = [
    *(Shot(url=f"https://example.org/{number}", moment=BEGIN + timedelta(minutes=number)) for number in range(6)),
    Shot(url="https://example.org/0", same_as="https://example.org/0", moment=BEGIN + timedelta(days=1), execution=2),
]


@pytest.fixture
def archive(migrated_url: str, tmp_path: Path) -> Iterator[Archive]:
    opened = build_archive(tmp_path / "home", SHOTS, database_url=migrated_url)
    yield opened
    opened.database.close()


def test_a_whole_execution_is_replayable(archive: Archive) -> None:
    assert list(each_execution(archive.database)) == [1, 2]
    found = check_execution(archive.database, archive.home, 1)
    assert (found.files, found.captures, found.checked, found.is_whole) == (1, 6, 6, True)
    assert check_execution(archive.database, archive.home, 1, sample=2).checked == 2
    assert check_execution(archive.database, archive.home, 2).is_whole
    with pytest.raises(NotFound, match="execution 9 has no sealed"):
        check_execution(archive.database, archive.home, 9)


def test_what_is_withdrawn_is_neither_counted_nor_opened(archive: Archive) -> None:
    hide(archive.database, SystemClock(), "https://example.org/3", reason="asked for")

    assert check_execution(archive.database, archive.home, 1).checked == 5


def test_a_revisit_of_what_is_withdrawn_goes_with_it_and_is_not_called_damaged(archive: Archive) -> None:
    with archive.database.read() as session:
        original = session.scalars(select(Snapshot.original_id).where(Snapshot.record_type == "revisit")).one()
    hide(archive.database, SystemClock(), str(original), reason="asked for")

    found = check_execution(archive.database, archive.home, 2)
    assert (found.captures, found.checked, found.is_whole) == (0, 0, True)


def test_faults_are_told_by_name(archive: Archive) -> None:
    with archive.database.write() as session:
        session.execute(update(Snapshot).where(Snapshot.url == "https://example.org/1").values(record_id="another"))
        session.execute(update(Snapshot).where(Snapshot.record_type == "revisit").values(original_id=None))
    assert check_execution(archive.database, archive.home, 1).faults == {"other_record": 1}
    assert check_execution(archive.database, archive.home, 2).faults == {"original_lost": 1}

    file = next(archive.home.glob("warcs/example/execution-1/*.warc.gz"))
    file.write_bytes(file.read_bytes()[:-40])
    cut = check_execution(archive.database, archive.home, 1)
    assert cut.faults["file_size"] == 1
    file.unlink()
    gone = check_execution(archive.database, archive.home, 1)
    assert (gone.faults["file_missing"], gone.faults["record_damaged"]) == (1, 6)
    assert gone.examples[0].startswith("file_missing: warcs/example/execution-1/")
