"""An archive made anew from its files: every snapshot has the id that it had, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from holdfast.clock import SystemClock
from holdfast.db.connect import connect
from holdfast.db.engine import Database
from holdfast.db.models import Document, DocumentText, IndexRun, PageGroup, PageLink, Snapshot, Source, WarcFile
from holdfast.index.indexer import index_pending
from holdfast.index.intake.importer import Importer
from holdfast.index.owning import open_indexer
from holdfast.index.rebuild import plan_rebuild, restore_files
from holdfast.jobs.imports import ImportWish
from holdfast.warc.queries import read_all_again
from tests.unit.index.files import record, response, write


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """An empty archive."""
    with closing(Database(migrated_url)) as opened:
        yield opened


def _import(database: Database, home: Path, paths: list[Path], source: str) -> None:
    home.mkdir(exist_ok=True)
    clock = SystemClock()
    wish = ImportWish(source=source, name=None, home=home, config={})
    with closing(connect(database.url)) as hot, open_indexer(hot, clock, home) as indexer:
        assert [one.error for one in Importer(database, hot, clock, indexer, wish).run(paths)] == [None] * len(paths)


def _shown(database: Database) -> list[tuple[object, ...]]:
    with database.read() as session:
        rows = session.execute(
            select(Snapshot.id, Snapshot.url, Snapshot.body_hash, Snapshot.warc_offset, Source.code)
            .join(Source, Source.id == Snapshot.source_id)
            .order_by(Snapshot.id)
        )
        return [tuple(row) for row in rows]


def _lose(database: Database, *which: int) -> None:
    """Forget all that was derived, and the rows of some files."""
    with database.write() as session:
        for table in (PageLink, Snapshot, DocumentText, Document, PageGroup, IndexRun):
            session.execute(delete(table))
        session.execute(delete(WarcFile).where(WarcFile.id.in_(which)))


def _archive(tmp_path: Path, database: Database) -> Path:
    home = tmp_path / "home"
    pages = [record(response(b"<p>%d</p>" % number), url=f"http://example.org/{number}") for number in range(6)]
    files = [write(tmp_path / f"{number}.warc.gz", *pages[number * 2 :][:2]) for number in range(3)]
    _import(database, home, files[:2], "one")
    _import(database, home, files[2:], "two")
    return home


def test_all_ids_come_back_from_the_files_alone(tmp_path: Path, database: Database) -> None:
    home, clock = _archive(tmp_path, database), SystemClock()
    before = _shown(database)
    with database.read() as session:
        ids = sorted(session.scalars(select(WarcFile.id)))
    _lose(database, *ids[1:])

    with closing(connect(database.url)) as hot:
        found = plan_rebuild(hot, home)
        assert (found.known, [one.id for one in found.lost], found.problems) == (1, ids[1:], [])
        assert _shown(database) == []
        assert restore_files(database, hot, clock, home, found.lost) == 2
        assert plan_rebuild(hot, home).lost == []
        with hot.write() as tx:
            assert read_all_again(tx, source=None) == 3
        with open_indexer(hot, clock, home) as indexer:
            assert [one.error for one in index_pending(indexer, hot, clock)] == [None] * 3

    assert _shown(database) == before
    _import(database, home, [write(tmp_path / "new.warc.gz", record(url="http://example.org/new"))], "one")
    with database.read() as session:
        assert max(session.scalars(select(WarcFile.id))) > ids[-1]


def test_what_does_not_fit_is_told_and_stays(tmp_path: Path, database: Database) -> None:
    home = _archive(tmp_path, database)
    with database.read() as session:
        first, second, third = session.scalars(select(WarcFile).order_by(WarcFile.id))
    (home / second.path).unlink()
    _lose(database, first.id, second.id, third.id)
    with database.write() as session:
        session.add(
            WarcFile(id=first.id, execution_id=first.execution_id, path="warcs/other.warc", state="sealed",
                     created_at=first.created_at)
        )  # fmt: skip

    with closing(connect(database.url)) as hot:
        found = plan_rebuild(hot, home)

    assert [one.id for one in found.lost] == [third.id]
    assert len(found.problems) == 2
    assert any("is warcs/other.warc now" in problem for problem in found.problems)
    assert any("is not there as its manifest says" in problem for problem in found.problems)
