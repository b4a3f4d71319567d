"""What follows a run, on both databases: files of tools are taken in, what is wrong with them is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import event, insert, select, update

from holdfast import config
from holdfast.clock import to_micros
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Snapshot, Source, WarcFile
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import Unavailable
from holdfast.index.writing import index_transaction
from holdfast.jobs import indexing
from holdfast.jobs.imports import register_directory
from holdfast.jobs.indexing import next_to_index
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.storage.store import FileKey
from holdfast.warc import queries as files
from holdfast.warc.writer import WarcWriter
from holdfast.wiring import open_runtime
from holdfast.worker.after_crawl import AfterCrawl
from holdfast.worker.background import BackgroundContext
from tests.unit.crawl.test_warc_output import exchange


class Yard:
    """A directory that a tool has filled, and the background task that sees to it."""

    def __init__(self, url: str, home: Path, stack: ExitStack) -> None:
        settings = config.load(home=home, database_url=None if url.startswith("sqlite") else url)
        self.runtime = stack.enter_context(open_runtime(settings))
        self.database = stack.enter_context(closing(Database(settings.database)))
        self.context = BackgroundContext(
            runtime=self.runtime, database=self.database, is_stopping=lambda: False, on_end=stack
        )
        self.task = AfterCrawl(self.context)
        self.folder = home / "elsewhere"
        self.folder.mkdir()

    def register(self) -> int:
        with self.database.write() as session:
            made = register_directory(
                session, self.runtime.clock, source="ex", name=None, output_dir=str(self.folder.resolve())
            )
            return made.id

    def write(self, name: str) -> Path:
        writer = WarcWriter.create(self.folder, name, 7, {}, self.runtime.clock)
        writer.append_exchange(exchange())
        return writer.seal().path

    def work(self) -> None:
        while self.task.run_once():
            pass

    def run(self, execution_id: int) -> Execution:
        with self.database.read() as session:
            return session.get_one(Execution, execution_id)

    def ask_again(self, execution_id: int) -> None:
        with self.database.write() as session:
            indexing.ask_again(session, execution_id, now=self.runtime.clock.now())

    def captures(self) -> int:
        with self.database.read() as session:
            return len(session.scalars(select(Snapshot.id)).all())


@pytest.fixture
def yard(migrated_url: str, tmp_path: Path) -> Iterator[Yard]:
    with ExitStack() as stack:
        yield Yard(migrated_url, tmp_path, stack)


def test_a_file_that_cannot_be_taken_in_is_told_and_tried_again_when_somebody_asks(yard: Yard) -> None:
    yard.write("good")
    broken = yard.folder / "broken.warc.gz"
    broken.write_bytes(b"no record at all")
    execution_id = yard.register()

    yard.work()
    run = yard.run(execution_id)
    assert (run.index_state, run.items_indexed, yard.captures()) == ("index_failed", 1, 1)
    assert "broken.warc.gz" in (run.error or "")
    broken.unlink()
    yard.write("mended")
    yard.ask_again(execution_id)
    yard.work()

    run = yard.run(execution_id)
    assert (run.index_state, run.error, run.items_indexed) == ("indexed", None, 2)


def test_a_database_that_blinks_while_files_are_taken_in_fails_no_index_and_holds_up_no_other(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.write("good")
    execution_id = yard.register()
    other = yard.folder.with_name("other")
    yard.folder.rename(other)
    yard.folder.mkdir()
    yard.write("better")
    with yard.database.write() as session:
        session.get_one(Execution, execution_id).output_dir = str(other.resolve())
    second_id = yard.register()

    def blinks(raw_db: RawDatabase) -> AbstractContextManager[Transaction]:
        monkeypatch.setattr("holdfast.imports.importer.index_transaction", index_transaction)
        raise Unavailable("the database did not take the transaction")

    monkeypatch.setattr("holdfast.imports.importer.index_transaction", blinks)
    yard.work()
    first, second = yard.run(execution_id), yard.run(second_id)
    assert (first.index_state, first.error, first.items_indexed) == ("indexing", None, 0)
    assert (second.index_state, second.error, second.items_indexed) == ("indexed", None, 1)
    yard.task = AfterCrawl(yard.context)
    yard.work()

    first = yard.run(execution_id)
    assert (first.index_state, first.error, first.items_indexed) == ("indexed", None, 1)


def test_pages_are_counted_before_anything_is_locked(yard: Yard) -> None:
    yard.write("good")
    execution_id = yard.register()
    written: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        written.append(" ".join(statement.split()))

    def end(_connection: object) -> None:
        written.append("the transaction ends")

    event.listen(yard.database.engine, "before_cursor_execute", note)
    event.listen(yard.database.engine, "commit", end)
    yard.work()

    assert yard.run(execution_id).metrics["extraction_quality"]["items_indexed"] == 1
    counted = next(at for at, text in enumerate(written) if text.startswith("SELECT count(snapshots.id)"))
    concluded = max(at for at, text in enumerate(written) if text.startswith("UPDATE executions"))
    assert "the transaction ends" in written[counted:concluded]


def test_a_row_that_names_a_strange_place_fails_the_index_and_nothing_waits_for_it(yard: Yard) -> None:
    yard.write("good")
    execution_id = yard.register()
    yard.work()
    with yard.database.write() as session:
        session.execute(update(WarcFile).values(key="/etc/passwd", index_state="pending"))
    yard.ask_again(execution_id)
    for one in yard.folder.rglob("*.warc.gz"):
        one.unlink()

    yard.work()

    assert yard.run(execution_id).index_state == "index_failed"


def test_a_file_that_a_dead_process_left_broken_ends_as_an_error_and_not_as_a_wait(yard: Yard) -> None:
    yard.write("good")
    execution_id = yard.register()
    owner = OwnerProcess(yard.runtime.raw_db, yard.runtime.clock, run=RunFile(yard.runtime.run_folder), kind="process",
                  execution_id=execution_id)  # fmt: skip
    with yard.runtime.raw_db.write() as tx:
        files.insert_file(tx, execution_id=execution_id, owner_id=owner.id, key=FileKey("/etc/hosts.warc.gz"),
                          now=to_micros(yard.runtime.clock.now()))  # fmt: skip
    path, left = owner.run.path, owner.run.path.read_bytes()
    owner.run.close()
    path.write_bytes(left)  # as a kill leaves it: there, and not locked

    yard.work()

    run = yard.run(execution_id)
    assert (run.index_state, run.items_indexed) == ("index_failed", 1)
    assert "no place for a WARC file" in (run.error or "")


def test_what_polls_feeds_is_ours_whatever_crawls_the_source(yard: Yard) -> None:
    execution_id = yard.register()
    with yard.database.write() as session:
        session.execute(update(Source).values(config={"backend": "zimit"}))
        session.execute(update(Execution).values(config={}))
        session.execute(update(Job).values(kind="feed"))

    with yard.database.read() as session:
        found = next_to_index(session, "here", now=yard.runtime.clock.now())
        assert found is not None
        assert (found.execution_id, found.backend) == (execution_id, "feed")


def test_executions_without_files_hide_none_that_has_some(yard: Yard) -> None:
    with yard.database.write() as session:
        now = yard.runtime.clock.now()
        session.add(Source(id=1, code="ex", name="ex", created_at=now, updated_at=now))
        session.flush()
        session.add(Job(id=1, source_id=1, kind="crawl", fingerprint="", created_at=now))
        session.flush()
        shared = {"job_id": 1, "state": "completed", "config": {}, "created_at": now, "run_seconds": 0.0, "metrics": {},
                  "artifacts": {}, "storage": {}}  # fmt: skip
        rows = [
            {"id": number, "number": number, "output_dir": f"/away/{number}", **shared} for number in range(1, 2003)
        ]
        session.execute(insert(Execution), rows)
        session.add(WarcFile(execution_id=1500, key="a.warc.gz", state="sealed", created_at=now))

    found = indexing.find_unindexed(yard.database, lambda folder: folder == "/away/2002", limit=10)
    assert [(one.execution, one.files) for one in found] == [(1500, 1), (2002, 0)]
    assert len(indexing.find_unindexed(yard.database, lambda _folder: True, limit=3)) == 3
