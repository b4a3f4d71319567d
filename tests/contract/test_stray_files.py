"""Rows that name a place outside the archive's own, as after a restore from elsewhere: nobody opens it (faults W12)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast.db import connect
from holdfast.db.models import Snapshot, WarcFile, WarcStore
from holdfast.index.indexer import Indexer
from holdfast.storage.roots import record_root
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.client import asking


@pytest.fixture
def archive(tmp_path: Path, database_url: str) -> Iterator[Archive]:
    """One capture, whose file was moved out of the data directory, and whose row followed it."""
    home = tmp_path / "home"
    built = build_archive(home, [Shot(url="https://example.org/")], database_url=database_url)
    (tmp_path / "outside").mkdir()
    with built.database.write() as session:
        file = session.scalars(select(WarcFile)).one()
        moved = tmp_path / "outside" / Path(file.path).name
        shutil.move(home / file.path, moved)
        session.add(WarcStore(name="outside", location=str(moved.parent)))
        session.execute(update(WarcFile).values(store="outside", key=moved.name))
    yield built
    built.database.close()


def _statuses(archive: Archive) -> list[int]:
    """Return how the routes that read a file's bytes answer."""
    with archive.database.read() as session:
        snapshot_id, execution_id = session.execute(select(Snapshot.id, Snapshot.execution_id)).one()
    addresses = [f"/api/snapshots/raw/{snapshot_id}", f"/api/executions/{execution_id}/wacz"]
    with asking(archive) as client:
        return [client.get(address).status_code for address in addresses]


def _indexed(archive: Archive) -> str | None:
    with (
        closing(connect(archive.settings.database)) as raw_db,
        closing(Indexer(raw_db, archive.clock, archive.home)) as own,
    ):
        done = own.index_file(1)
    assert done is not None
    return done.error


def test_a_row_that_points_elsewhere_is_refused_by_every_reader(archive: Archive) -> None:
    assert _statuses(archive) == [404, 404]
    assert "no place for a WARC file" in (_indexed(archive) or "")


def test_a_recorded_folder_is_read_again(archive: Archive, tmp_path: Path) -> None:
    record_root(archive.home, tmp_path / "outside")

    assert _statuses(archive) == [200, 200]
    assert _indexed(archive) is None
