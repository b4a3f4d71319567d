"""Taking in changes: crashes are replayed, late rows are not missed, readers follow, a rebuild serves all the while."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import delete, update

from holdfast.db.models import Document, SearchOutbox, Snapshot
from holdfast.errors import Unavailable
from holdfast.index.indexer import Interrupted
from holdfast.search import engine, queries
from holdfast.search import segments as disk
from holdfast.search.directory import IndexBusy, IndexDirectory
from holdfast.search.outbox import drain, rebuild
from holdfast.search.readers import ReaderCache
from holdfast.search.writer import SearchWriter
from tests.clock import FakeClock
from tests.patience import Calls
from tests.search_bed import DAY, Bed, Capture, pages


def test_a_drain_with_nothing_to_do_makes_nothing(bed: Bed) -> None:
    assert bed.drain() == 0
    assert not IndexDirectory(bed.home).folder.exists()


def test_a_row_that_commits_late_with_a_smaller_id_is_taken_in_by_the_next_drain(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    late = bed.add(pages(["parrot late"], host="late.test"), outbox=False)
    bed.fill(pages(["parrot two"], host="two.test"))
    assert bed.ask("parrot").total == 2

    with bed.database.write() as session:
        session.add(SearchOutbox(id=1, kind="snapshots", first_id=late[0], last_id=late[0], refs={}, created_at=DAY))
    bed.drain()

    assert bed.ask("parrot").total == 3


def test_a_reader_follows_what_another_process_writes(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    assert bed.ask("parrot").total == 1

    bed.fill(pages(["parrot two"], host="two.test"))

    assert bed.ask("parrot").total == 2


def test_a_reader_that_may_not_write_follows_what_another_process_writes(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a server whose user may only read the data directory; the process of the tests may do everything.
    monkeypatch.setattr(engine, "os", SimpleNamespace(access=lambda *_: False, W_OK=os.W_OK))
    bed.fill(pages(["parrot one"]))
    assert bed.ask("parrot").total == 1

    bed.fill(pages(["parrot two"], host="two.test"))

    assert bed.ask("parrot").total == 2


def test_snapshots_that_are_gone_leave_with_their_range(bed: Bed) -> None:
    ids = bed.fill(pages(["parrot one", "parrot two", "parrot three"]))
    with bed.database.write() as session:
        session.execute(delete(Snapshot).where(Snapshot.id == ids[1]))
        session.execute(update(Snapshot).where(Snapshot.id == ids[2]).values(noindex=True))
        session.add(SearchOutbox(kind="snapshots", first_id=ids[0], last_id=ids[2], refs={}, created_at=DAY))
    bed.drain()

    found = bed.ask("parrot")

    assert ([hit.row.id for hit in found.hits], found.total) == ([ids[0]], 1)


def test_a_range_that_is_told_of_twice_before_a_drain_is_taken_in_once(bed: Bed) -> None:
    ids = bed.add(pages(["parrot one", "parrot two", "parrot three"]))
    with bed.database.write() as session:
        session.add(SearchOutbox(kind="snapshots", first_id=ids[1], last_id=ids[2], refs={}, created_at=DAY))
    bed.drain()

    assert sorted(hit.row.id for hit in bed.ask("parrot", duplicates=True).hits) == ids
    assert bed.ask().total == 3


def test_a_changed_document_replaces_itself(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    with bed.database.write() as session:
        session.execute(update(Document).values(title="Cockatoo"))
        session.add(SearchOutbox(kind="documents", refs={"ids": [1, 99]}, created_at=DAY))
    bed.drain()

    assert bed.ask("cockatoo").total == 1
    assert bed.ask("(title:page)").total == 0


def test_a_second_writer_is_refused(bed: Bed) -> None:
    bed.add(pages(["parrot"]))
    with IndexDirectory(bed.home).writing(), pytest.raises(IndexBusy):
        bed.drain()

    assert bed.drain() == 1


def test_a_disk_that_does_not_take_it_is_said_and_nothing_is_lost(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    bed.add(pages(["parrot two"], host="two.test"))
    folder = IndexDirectory(bed.home).current()
    sequence = ReaderCache(bed.home, FakeClock()).view().manifest.sequence
    (folder / f"{sequence + 1}.strings").mkdir()  # a folder where the next segment's file belongs

    with pytest.raises(Unavailable, match="drain again"):
        bed.drain()
    assert bed.ask("parrot").total == 1
    (folder / f"{sequence + 1}.strings").rmdir()

    assert bed.drain() == 1
    assert bed.ask("parrot").total == 2


def test_what_a_later_commit_of_a_drain_had_added_when_it_broke_off_is_not_added_twice(bed: Bed) -> None:
    bed.fill(pages(["parrot zero"]))
    ids = bed.add(pages([f"parrot {n}" for n in range(4)], host="two.test"))
    folder = IndexDirectory(bed.home).current()

    def take_in(index_writer: SearchWriter, first: int, last: int) -> None:
        with bed.database.read() as session:
            index_writer.pages(first, last, queries.pages_between(session, first, last, limit=10))
        index_writer.commit()

    with closing(SearchWriter(folder, bed.database)) as broken:
        take_in(broken, ids[0], ids[1])
        blocked = folder / f"{broken.manifest.sequence + 1}.strings"
        blocked.mkdir()  # a folder where the next segment's file belongs: the entries are in, the list is not
        with pytest.raises(OSError, match="directory"):
            take_in(broken, ids[2], ids[3])
    blocked.rmdir()
    with closing(SearchWriter(folder, bed.database)) as again:
        take_in(again, ids[0], ids[1])
        take_in(again, ids[2], ids[3])
        again.caught_up()

    assert bed.drain() >= 1
    assert sorted(bed.urls("parrot")) == sorted({*bed.urls("parrot")})
    assert bed.ask("parrot").total == 5
    assert not (folder / "unfinished").exists()


def test_unfinished_mark_is_synced_before_any_entry(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.fill(pages(["parrot one"]))
    folder = IndexDirectory(bed.home).current()
    sync, synced = os.fsync, list[tuple[str, bool]]()

    def noted(fd: int) -> None:
        sync(fd)
        synced.append((str(Path(f"/proc/self/fd/{fd}").readlink()), (folder / "unfinished").exists()))

    monkeypatch.setattr(os, "fsync", noted)
    with closing(SearchWriter(folder, bed.database)) as index_writer:
        index_writer.documents([])  # begins, and adds nothing

        assert synced == [(str(folder.resolve()), True)]


def test_many_small_drains_are_merged_and_lose_nothing(bed: Bed) -> None:
    for n in range(14):
        bed.fill([Capture(url=f"https://example.org/{n}", text=f"parrot number{n}", at=DAY + timedelta(days=n))])

    view = ReaderCache(bed.home, FakeClock()).view()
    assert len(view.manifest.segments) < 6
    assert bed.ask("parrot").total == 14
    assert bed.ask("url:example.org/1 AND snippet:number1").total == 5
    files = {path.name for path in view.folder.iterdir() if path.suffix == ".strings"}
    assert files == {f"{name}.strings" for name in view.manifest.segments}


def test_a_rebuild_gives_the_same_answers_and_serves_meanwhile(bed: Bed) -> None:
    bed.fill(pages([f"parrot {n}" for n in range(30)]))
    before, old = bed.urls("parrot"), IndexDirectory(bed.home).current()
    seen: list[int] = []

    rebuild(bed.database, bed.home, bed.clock, progress=lambda _pages: seen.append(bed.ask("parrot").total))

    assert seen == [30, 30], "as it begins, and as it ends"
    assert bed.urls("parrot") == before
    directory = IndexDirectory(bed.home)
    assert [path for path in directory.folder.iterdir() if path.is_dir()] == [directory.current()] != [old]


def test_an_index_that_was_thrown_away_is_made_anew(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    for path in sorted(IndexDirectory(bed.home).folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

    drain(bed.database, bed.home, bed.clock)

    assert bed.ask("parrot").total == 1


def test_an_index_of_another_version_is_made_anew_by_the_next_drain(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    manifest = IndexDirectory(bed.home).current() / "manifest.json"
    manifest.write_text(manifest.read_text().replace(str(disk.VERSION), str(disk.VERSION - 1)))

    drain(bed.database, bed.home, bed.clock)

    assert bed.ask("parrot").total == 1


def test_a_time_limit_leaves_the_rest_for_later(bed: Bed) -> None:
    for n in range(3):
        bed.add(pages([f"parrot {n}"], host=f"h{n}.test"))

    done = drain(bed.database, bed.home, bed.clock, limit_s=0.0)

    assert done.finished  # a batch of 200 changes is the smallest step
    assert bed.ask("parrot").total == 3


def test_a_withdrawal_works_at_once_and_so_does_lifting_it(bed: Bed) -> None:
    ids = bed.fill(pages(["parrot one", "parrot two", "parrot three"]))
    assert bed.ask("parrot").total == 3

    bed.withdraw(snapshot_id=ids[0])
    bed.withdraw(url="https://example.org/2")

    found = bed.ask("parrot")
    assert ([hit.row.id for hit in found.hits], found.total) == ([ids[2]], 1)
    assert found.facets["host"][0].count == 1
    assert bed.ask("https://example.org/2").total == 0
    with bed.database.write() as session:
        session.connection().exec_driver_sql("UPDATE withdrawals SET lifted_at = 1")
    assert bed.ask("parrot").total == 3


def test_a_snapshot_that_sql_no_longer_has_is_not_shown(bed: Bed) -> None:
    ids = bed.fill(pages(["parrot one", "parrot two"]))
    with bed.database.write() as session:
        session.execute(delete(Snapshot).where(Snapshot.id == ids[0]))

    assert [hit.row.id for hit in bed.ask("parrot").hits] == [ids[1]]


def test_readers_and_a_writer_at_the_same_time(bed: Bed) -> None:
    bed.fill(pages(["parrot 0"], host="h0.test"))
    failures: list[BaseException] = []
    ended = threading.Event()

    def read() -> None:
        try:
            while not ended.is_set():
                assert bed.ask("parrot").total >= 1
        except BaseException as exc:
            failures.append(exc)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(1, 8):
        bed.fill(pages([f"parrot {n}"], host=f"h{n}.test"))
    ended.set()
    for reader in readers:
        reader.join()

    assert failures == []
    assert bed.ask("parrot").total == 8


def test_a_first_drain_that_is_told_to_stop_leaves_nothing_behind_and_the_next_one_goes_on(bed: Bed) -> None:
    bed.add(pages([f"parrot {n}" for n in range(1_200)]))
    asked: list[bool] = []

    def is_stopping() -> bool:
        asked.append(True)
        return len(asked) > 2

    stopped = drain(bed.database, bed.home, bed.clock, is_stopping=is_stopping)

    assert (stopped.finished, stopped.changes) == (False, 0)
    assert not IndexDirectory(bed.home).exists()
    assert [path.name for path in IndexDirectory(bed.home).folder.iterdir() if path.is_dir()] == []
    assert drain(bed.database, bed.home, bed.clock).finished
    assert bed.ask("parrot").total == 1_200


def test_a_drain_that_is_told_to_stop_keeps_what_was_committed_and_repeats_the_rest(bed: Bed) -> None:
    bed.fill(pages(["parrot one"]))
    bed.add(pages([f"parrot {n}" for n in range(1_200)], host="two.test"))
    asked: list[bool] = []

    def is_stopping() -> bool:
        asked.append(True)
        return len(asked) > 2

    assert not drain(bed.database, bed.home, bed.clock, is_stopping=is_stopping).finished
    assert bed.ask("parrot").total == 1
    assert drain(bed.database, bed.home, bed.clock).finished
    assert bed.ask("parrot").total == 1_201


def test_a_rebuild_that_is_told_to_stop_leaves_the_old_index_in_force(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two"]))

    with pytest.raises(Interrupted):
        rebuild(bed.database, bed.home, bed.clock, is_stopping=lambda: True)

    assert bed.ask("parrot").total == 2
    assert len([path for path in IndexDirectory(bed.home).folder.iterdir() if path.is_dir()]) == 1


def test_a_drain_does_no_more_work_however_much_is_kept(bed: Bed) -> None:
    work = []
    for number, kept in enumerate((20, 2000)):
        bed.fill(pages([f"parrot {n}" for n in range(kept)], host=f"kept{number}.test"))
        rows = bed.add(pages(["parrot new"], host=f"new{number}.test"))
        with bed.database.read() as session:
            found = queries.pages_between(session, rows[0], rows[0], limit=1)
        with Calls() as calls, closing(SearchWriter(IndexDirectory(bed.home).current(), bed.database)) as index_writer:
            index_writer.pages(rows[0], rows[0], found)
        work.append(calls.count)
        bed.drain()

    assert bed.ask("parrot").total == 2022
    assert work[1] < work[0] + 500


def test_a_withdrawal_opens_no_index(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two"]))
    before = (IndexDirectory(bed.home).current() / "manifest.json").read_text()
    with bed.database.write() as session:
        session.add(SearchOutbox(kind="withdrawal", first_id=1, last_id=1, refs={}, created_at=DAY))

    assert bed.drain() == 1

    assert (IndexDirectory(bed.home).current() / "manifest.json").read_text() == before


def test_documents_are_read_by_the_bytes_of_their_texts(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two", "parrot three"]))
    with bed.database.read() as session:
        assert queries.portions(session, [1, 2, 3, 99], most_bytes=1) == [[1], [2], [3]]
        assert queries.portions(session, [1, 2, 3, 99], most_bytes=1_000_000) == [[1, 2, 3]]
        assert queries.portions(session, [99], most_bytes=1) == []


class _Killed:
    """A tantivy writer whose thread has met a full disk."""

    def add_document(self, _document: object) -> None:
        """Fail as tantivy does from then on."""
        raise ValueError("An error occurred in a thread: 'An index writer was killed..'")

    def rollback(self) -> None:
        """Discard the additions."""

    wait_merging_threads = rollback


def test_drain_says_that_the_index_cannot_be_written(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.Writer, "__init__", lambda writer, _folder: setattr(writer, "_writer", _Killed()))

    with pytest.raises(Unavailable, match="cannot be written"):
        bed.fill(pages(["text"]))
