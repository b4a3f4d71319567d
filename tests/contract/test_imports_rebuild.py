"""An archive made anew from its files: every snapshot has the id that it had, on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Document, DocumentText, IndexRun, PageGroup, PageLink, Snapshot, Source, WarcFile
from holdfast.fetch.body import MemoryBody
from holdfast.imports.importer import Importer
from holdfast.imports.rebuild import plan_rebuild, restore_files
from holdfast.index.indexer import index_pending, open_indexer
from holdfast.jobs.imports import ImportOptions
from holdfast.storage.roots import record_root
from holdfast.types import Fetched
from holdfast.warc.manifest import add_to_manifest, read_manifest
from holdfast.warc.queries import read_all_again
from holdfast.warc.record import sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter
from holdfast.zimit.output_directory import STATE_NAME
from tests.unit.index.files import record, response, write


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """An empty archive."""
    with closing(Database(migrated_url)) as opened:
        yield opened


def _import(database: Database, home: Path, paths: list[Path], source: str) -> None:
    home.mkdir(exist_ok=True)
    clock = SystemClock()
    wish = ImportOptions(source=source, name=None, home=home, config={})
    with closing(connect(database.url)) as raw_db, open_indexer(raw_db, clock, home) as indexer:
        assert [one.error for one in Importer(database, raw_db, clock, indexer, wish).run(paths)] == [None] * len(paths)


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

    with closing(connect(database.url)) as raw_db:
        found = plan_rebuild(raw_db, home)
        assert (found.known, [*found.lost], found.problems) == (1, ids[1:], [])
        assert _shown(database) == []
        assert restore_files(database, raw_db, clock, home, found.lost) == 2
        assert plan_rebuild(raw_db, home).lost == {}
        with raw_db.write() as tx:
            assert read_all_again(tx, source=None) == 3
        with open_indexer(raw_db, clock, home) as indexer:
            assert [one.error for one in index_pending(indexer, raw_db, clock)] == [None] * 3

    assert _shown(database) == before
    _import(database, home, [write(tmp_path / "new.warc.gz", record(url="http://example.org/new"))], "one")
    with database.read() as session:
        assert max(session.scalars(select(WarcFile.id))) > ids[-1]


def _crawled(home: Path, folder: Path, file_id: int, plan: object, *, part_of: str) -> None:
    """Leave a file and its manifest as a crawl does whose database is gone."""
    folder.mkdir(parents=True)
    info = {"software": "Holdfast/0.1.0", "isPartOf": part_of, "description": json.dumps(plan)}
    writer = WarcWriter.create(folder, f"{part_of}-00001", file_id, info, SystemClock())
    writer.append_exchange(
        ExchangeDraft(
            fetched=Fetched(
                url="https://example.org/a",
                status=200,
                started_at=SystemClock().now(),
                took_s=0.0,
                ip="192.0.2.1",
                request_head=b"GET / HTTP/1.1\r\n\r\n",
                response_head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
                body=MemoryBody((b"<p>a</p>",)),
            ),
            payload_digest=sha256_of([b"<p>a</p>"]),
        )
    )
    add_to_manifest(file_id, writer.seal())


def _rebuilt(database: Database, home: Path) -> dict[str, tuple[str, str | None]]:
    """Make everything anew; return name and address of each source."""
    clock = SystemClock()
    with closing(connect(database.url)) as raw_db:
        restore_files(database, raw_db, clock, home, plan_rebuild(raw_db, home).lost)
        with open_indexer(raw_db, clock, home) as indexer:
            assert [one.error for one in index_pending(indexer, raw_db, clock) if one.error] == []
    with database.read() as session:
        return {row.code: (row.name, row.base_url) for row in session.scalars(select(Source))}


def test_a_source_is_again_what_its_files_say_and_its_captures_are_of_the_same_backend(
    tmp_path: Path, database: Database
) -> None:
    home, warcs = tmp_path / "home", tmp_path / "home" / "warcs"
    seeds = {"seeds": ["https://www.example.org/news/"]}
    _crawled(home, warcs / "example-org" / "1", 1, seeds, part_of="example-org-1")
    _crawled(home, warcs / "ex" / "2", 2, seeds, part_of="ex-2")
    _crawled(home, warcs / "example-org-2" / "3", 3, {"seeds": ["http://example.org:8080/"]}, part_of="example-org-2-3")
    _crawled(home, warcs / "tool" / "4" / "archive", 4, seeds, part_of="tool-4")
    (warcs / "tool" / "4" / STATE_NAME).write_text("{}")
    for number, plan in enumerate(([], {"seeds": []}, {"seeds": [7]}, {"seeds": ["javascript:1"]}), start=5):
        _crawled(home, warcs / f"odd{number}" / "1", number, plan, part_of=f"odd{number}-1")

    found = _rebuilt(database, home)

    assert found.pop("example-org") == ("www.example.org", "https://www.example.org/")
    assert found.pop("ex") == ("ex", "https://www.example.org/news/")
    assert found.pop("example-org-2") == ("example.org", "http://example.org:8080/")
    assert found.pop("tool") == ("tool", "https://www.example.org/news/")
    assert found == {f"odd{number}": (f"odd{number}", None) for number in range(5, 9)}
    with database.read() as session:
        rows = session.execute(select(Snapshot.warc_file_id, Snapshot.backend))
        backends = {row[0]: row[1] for row in rows}
    assert backends == {4: "http_warc", **dict.fromkeys((1, 2, 3, 5, 6, 7, 8), "native")}


def test_a_file_outside_belongs_to_the_source_that_it_names_and_one_of_another_archive_to_none(
    tmp_path: Path, database: Database
) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    seeds = {"seeds": ["https://example.org/"]}
    _crawled(home, outside / "own", 1, seeds, part_of="example-org-7")
    _crawled(home, outside / "foreign", 2, seeds, part_of="their-code-7")
    (outside / "foreign" / "their-code-7-00001.warc.gz").rename(outside / "foreign" / "copy.warc.gz")
    listed = outside / "foreign" / "manifest.json"
    sealed = read_manifest(outside / "foreign")[2]
    listed.unlink()
    (outside / "foreign" / "manifest.journal").unlink(missing_ok=True)
    add_to_manifest(2, replace(sealed, path=sealed.path.with_name("copy.warc.gz")))
    home.mkdir()
    record_root(home, outside)

    assert _rebuilt(database, home) == {
        "example-org": ("example.org", "https://example.org/"),
        "restored": ("restored", None),
    }


def test_a_source_that_is_there_stays_as_it_is(tmp_path: Path, database: Database) -> None:
    home, now = tmp_path / "home", SystemClock().now()
    plan = {"seeds": ["https://example.org/"]}
    with database.write() as session:
        session.add(
            Source(
                code="example-org",
                name="Ours",
                base_url="https://other.example/",
                enabled=False,
                config={"delay_s": 2.0},
                created_at=now,
                updated_at=now,
            )
        )
    _crawled(home, home / "warcs" / "example-org" / "1", 1, plan, part_of="example-org-1")

    assert _rebuilt(database, home) == {"example-org": ("Ours", "https://other.example/")}
    with database.read() as session:
        row = session.scalars(select(Source)).one()
    assert (row.enabled, row.config, row.updated_at) == (False, {"delay_s": 2.0}, now)


def test_what_does_not_fit_is_told_and_stays(tmp_path: Path, database: Database) -> None:
    home = _archive(tmp_path, database)
    with database.read() as session:
        first, second, third = session.scalars(select(WarcFile).order_by(WarcFile.id))
    (home / second.path).unlink()
    _lose(database, first.id, second.id, third.id)
    with database.write() as session:
        session.add(
            WarcFile(id=first.id, execution_id=first.execution_id, key="warcs/other.warc", state="sealed",
                     created_at=first.created_at)
        )  # fmt: skip

    with closing(connect(database.url)) as raw_db:
        found = plan_rebuild(raw_db, home)

    assert [*found.lost] == [third.id]
    assert len(found.problems) == 2
    assert any("is warcs/other.warc now" in problem for problem in found.problems)
    assert any("is not there as its manifest says" in problem for problem in found.problems)


def test_a_file_of_the_user_stays_where_it_is_although_its_path_looks_like_a_member(
    database: Database, tmp_path: Path
) -> None:
    (tmp_path / "wow!").mkdir()
    path = write(tmp_path / "wow!" / "a!b.warc.gz", record(response(b"<p>Words</p>"), url="http://example.org/"))

    _import(database, tmp_path / "home", [path], "new")

    assert path.is_file()
    assert len(_shown(database)) == 1


def test_captures_that_were_moved_to_a_linked_disk_are_found_again(database: Database, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = write(tmp_path / "a.warc.gz", record(response(b"<p>Words</p>"), url="http://example.org/"))
    _import(database, home, [path], "new")
    (home / "warcs").rename(tmp_path / "disk")
    (home / "warcs").symlink_to(tmp_path / "disk")
    _lose(database, 1)

    with closing(connect(database.url)) as raw_db:
        found = plan_rebuild(raw_db, home)

    assert [(file_id, key.key.partition("/")[0]) for file_id, (key, _) in found.lost.items()] == [(1, "warcs")]
