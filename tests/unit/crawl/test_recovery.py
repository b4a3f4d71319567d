"""Cleaning up after the dead: what they held is free, what they wrote is sealed, and nothing is given up too soon."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.clock import SystemClock, to_micros
from holdfast.crawl.recovery import discard, recover
from holdfast.errors import LeaseLost
from holdfast.index import forgetting
from holdfast.index.indexer import INDEX_VERSION, Indexer, index_pending
from holdfast.index.leases import FileLease, ReadProgress, claim
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.storage.roots import key_of
from holdfast.types import DomainLease, Outcome, RecordRef, Visit
from holdfast.warc import queries as files
from holdfast.warc.manifest import read_manifest
from holdfast.warc.writer import WarcWriter
from holdfast.wiring import Runtime
from tests.contract.frontier_bed import many
from tests.execution import begun_execution
from tests.unit.crawl.test_warc_output import exchange


class Dead:
    """A process that died: with a lease, with a WARC file that it was writing, or with a page in hand."""

    def __init__(self, runtime: Runtime, execution_id: int, folder: Path) -> None:
        self._runtime, self._execution_id, self._clock = runtime, execution_id, SystemClock()
        self.path = folder / "dead.warc.gz"
        self._owner = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="process", execution_id=execution_id
        )
        self.file_id = 0

    def lease(self) -> DomainLease:
        self._runtime.frontier.add(self._execution_id, many("example.org", 3))
        return self._runtime.frontier.lease(self._execution_id, self._owner.id, domains=1, pages=10)[0]

    def register(self) -> None:
        with self._runtime.raw_db.write() as tx:
            key = key_of(self._runtime.settings.home, self.path)
            now = to_micros(self._clock.now())
            self.file_id = files.insert_file(
                tx, execution_id=self._execution_id, owner_id=self._owner.id, key=key, now=now
            )

    def write(self) -> RecordRef:
        self.register()
        writer = WarcWriter.create(self.path.parent, "dead", self.file_id, {}, self._clock)
        ref = writer.append_exchange(exchange()).ref
        writer.append_exchange(exchange())
        writer.abandon()
        return ref

    def settle(self, lease: DomainLease, ref: RecordRef) -> None:
        now = self._clock.now()
        visit = Visit(attempt=lease.attempts[0], token=lease.token, outcome=Outcome.SUCCESS, reason="ok",
                      started_at=now, finished_at=now, record=ref)  # fmt: skip
        self._runtime.frontier.settle(self._execution_id, self._owner.id, [visit])

    def take(self, attempt_id: int) -> None:
        self._owner.run.take(0, attempt_id, 1.0)

    def move(self, host: str = "another-name") -> None:
        """Have been started under another host name."""
        with self._runtime.raw_db.write() as tx:
            tx.execute("UPDATE owners SET host = ? WHERE id = ?", (host, self._owner.id))

    def vanish(self, *, hours: int = 0) -> None:
        """Be of a machine whose run files cannot be seen from here, silent since three minutes or for hours."""
        self.die()
        self._owner.run.path.unlink()
        with self._runtime.raw_db.write() as tx:
            past = to_micros(self._clock.now() - timedelta(hours=hours, minutes=3))
            tx.execute("UPDATE owners SET heartbeat_at = ? WHERE id = ?", (past, self._owner.id))

    def is_buried(self) -> bool:
        with self._runtime.raw_db.read() as tx:
            return bool(tx.execute("SELECT 1 FROM owners WHERE id = ? AND ended_at IS NOT NULL", (self._owner.id,)))

    def die(self) -> None:
        path, left = self._owner.run.path, self._owner.run.path.read_bytes()
        self._owner.run.close()
        path.write_bytes(left)


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    """A data directory in which an execution has begun."""
    with begun_execution(tmp_path / "home") as begin:
        yield begin.runtime


@pytest.fixture
def dead(runtime: Runtime, tmp_path: Path) -> Dead:
    """A process that has not died yet."""
    return Dead(runtime, 1, tmp_path / "home" / "warcs")


def _state(runtime: Runtime, file_id: int) -> tuple[str, bool]:
    with runtime.raw_db.read() as tx:
        state, repaired = tx.execute("SELECT state, repaired FROM warc_files WHERE id = ?", (file_id,))[0]
    return str(state), bool(repaired)


def test_the_file_of_a_dead_process_is_sealed_listed_and_its_orphans_are_counted(runtime: Runtime, dead: Dead) -> None:
    lease = dead.lease()
    dead.settle(lease, dead.write())
    dead.die()

    report = recover(runtime)

    assert (report.owners, report.domains, report.orphans) == (1, 1, 1)
    assert report.repaired == ["dead.warc.gz"]
    assert _state(runtime, dead.file_id) == ("sealed", True)
    assert [one.path.name for one in read_manifest(dead.path.parent).values()] == ["dead.warc.gz"]
    assert recover(runtime).owners == 0


def test_the_file_of_a_process_of_another_host_name_is_sealed(runtime: Runtime, dead: Dead) -> None:
    dead.settle(dead.lease(), dead.write())
    dead.move()
    dead.die()

    report = recover(runtime)

    assert (report.owners, report.domains, report.repaired) == (1, 1, ["dead.warc.gz"])
    assert _state(runtime, dead.file_id) == ("sealed", True)


@pytest.mark.parametrize("host", ["another-name", socket.gethostname()], ids=["another", "two_machines_of_one_name"])
def test_a_file_on_another_machine_is_neither_struck_off_nor_forgotten(runtime: Runtime, dead: Dead, host: str) -> None:
    dead.write()
    dead.path.with_name("dead.warc.gz.open").rename(dead.path.with_name("elsewhere"))
    dead.move(host)
    dead.vanish()

    report = recover(runtime)

    assert (report.left, report.elsewhere, dead.is_buried()) == ({}, {}, False)
    assert _state(runtime, dead.file_id)[0] == "open"
    dead.path.with_name("elsewhere").rename(dead.path.with_name("dead.warc.gz.open"))

    assert recover(runtime).repaired == ["dead.warc.gz"]  # its machine is back, or its disk is
    assert dead.is_buried()


def test_a_file_on_a_machine_that_stays_silent_is_told_as_lost(runtime: Runtime, dead: Dead) -> None:
    dead.write()
    dead.path.with_name("dead.warc.gz.open").unlink()
    dead.move("far-away")
    dead.vanish(hours=1)

    assert "written on far-away, which is silent" in recover(runtime).elsewhere[dead.file_id]
    assert _state(runtime, dead.file_id)[0] == "open"


def test_a_file_of_an_owner_whose_row_was_closed_too_early_is_sealed(runtime: Runtime, dead: Dead) -> None:
    dead.write()
    with runtime.raw_db.write() as tx:
        tx.execute("UPDATE owners SET ended_at = heartbeat_at")
    dead.die()

    assert recover(runtime).repaired == ["dead.warc.gz"]
    assert _state(runtime, dead.file_id) == ("sealed", True)


def test_a_file_that_was_registered_and_never_made_is_struck_off(runtime: Runtime, dead: Dead) -> None:
    dead.register()
    dead.die()

    assert recover(runtime).repaired == []
    assert _state(runtime, dead.file_id)[0] == "discarded"


def test_a_file_that_no_row_points_to_is_waited_for_while_its_whole_folder_is_away(
    runtime: Runtime, dead: Dead
) -> None:
    dead.write()
    dead.die()
    away = dead.path.parent.with_name("unmounted")
    dead.path.parent.rename(away)

    report = recover(runtime)
    assert (report.repaired, list(report.left)) == ([], [dead.file_id])
    assert _state(runtime, dead.file_id)[0] == "open"
    away.rename(dead.path.parent)

    assert recover(runtime).repaired == ["dead.warc.gz"]


def test_a_file_that_rows_point_to_is_waited_for_while_its_disk_is_away(runtime: Runtime, dead: Dead) -> None:
    lease = dead.lease()
    dead.settle(lease, dead.write())
    dead.die()
    away = dead.path.parent.with_name("unmounted")
    dead.path.parent.rename(away)

    report = recover(runtime)
    assert (report.domains, report.repaired) == (1, [])
    assert _state(runtime, dead.file_id)[0] == "open"
    away.rename(dead.path.parent)

    assert recover(runtime).repaired == ["dead.warc.gz"]
    assert _state(runtime, dead.file_id)[0] == "sealed"


def test_a_page_in_hand_is_blamed_once_for_each_death_and_closed_at_the_third(runtime: Runtime, tmp_path: Path) -> None:
    quarantined: list[list[int]] = []
    for number in range(3):
        dead = Dead(runtime, 1, tmp_path / "home" / str(number))
        attempt = dead.lease().attempts[0]
        dead.take(attempt.id)
        dead.die()
        quarantined.append(recover(runtime).quarantined)

    assert quarantined == [[], [], [attempt.id]]
    with runtime.raw_db.read() as tx:
        row = tx.execute("SELECT crashes, outcome, reason FROM page_crawls WHERE id = ?", (attempt.id,))
    assert row == [(3, "failed", "quarantined")]


def test_the_living_keep_everything(runtime: Runtime, dead: Dead) -> None:
    lease = dead.lease()
    dead.write()

    assert recover(runtime).owners == 0
    assert _state(runtime, dead.file_id)[0] == "open"
    with runtime.raw_db.read() as tx:
        assert tx.execute("SELECT lease_token FROM domains WHERE lease_expires_at > 0") == [(lease.token,)]
    dead.die()


def test_a_row_that_names_a_strange_place_is_left_and_told(runtime: Runtime, dead: Dead) -> None:
    dead.settle(dead.lease(), dead.write())
    strange = dead.path.parent.parent.parent / "strange.warc.gz"
    open_path = dead.path.with_name("dead.warc.gz.open")
    torn = open_path.read_bytes()
    strange.with_name("strange.warc.gz.open").write_bytes(torn)
    with runtime.raw_db.write() as tx:
        tx.execute("UPDATE warc_files SET key = ? WHERE id = ?", (str(strange), dead.file_id))
    dead.die()

    report = recover(runtime)

    assert report.repaired == []
    assert "no place for a WARC file" in report.left[dead.file_id]
    assert _state(runtime, dead.file_id)[0] == "open"
    assert strange.with_name("strange.warc.gz.open").read_bytes() == torn


def test_what_is_discarded_is_removed_only_where_files_of_ours_may_lie(runtime: Runtime, tmp_path: Path) -> None:
    strange = tmp_path / "mine.warc.gz"
    ours = runtime.settings.home / "warcs" / "ours.warc.gz"
    ours.parent.mkdir(parents=True, exist_ok=True)
    with runtime.raw_db.write() as tx:
        for path in (strange, ours):
            path.write_bytes(b"content")
            files.insert_file(tx, execution_id=1, owner_id=1, key=key_of(runtime.settings.home, path), now=0)

    assert discard(runtime, 1) == 2

    assert (strange.read_bytes(), ours.exists()) == (b"content", False)
    with runtime.raw_db.read() as tx:
        assert files.files_of(tx, execution_id=1) == []


def _claimed(runtime: Runtime, file_id: int) -> FileLease | None:
    return claim(runtime.raw_db, runtime.clock, file_id, owner_id=None, version=INDEX_VERSION)


def _counted(runtime: Runtime, table: str) -> int:
    with runtime.raw_db.read() as tx:
        return int(tx.execute(f"SELECT count(*) FROM {table}")[0][0])


def test_what_was_indexed_of_a_discarded_execution_leaves_the_archive_and_search_hears_of_it(
    runtime: Runtime, dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "_AT_ONCE", 1)
    dead.settle(dead.lease(), dead.write())
    dead.die()
    recover(runtime)
    with closing(Indexer(runtime.raw_db, runtime.clock, runtime.settings.home)) as indexer:
        index_pending(indexer, runtime.raw_db, runtime.clock)
    with runtime.raw_db.write() as tx:
        indexed = [row[0] for row in tx.execute("SELECT id FROM snapshots")]
        tx.execute("DELETE FROM search_outbox")

    discard(runtime, 1)

    assert len(indexed) == 2
    assert (_counted(runtime, "snapshots"), _state(runtime, dead.file_id)[0]) == (0, "discarded")
    with runtime.raw_db.read() as tx:
        told = tx.execute("SELECT first_id, last_id FROM search_outbox WHERE kind = 'snapshots'")
        assert [one for one in indexed if not any(first <= one <= last for first, last in told)] == []
        assert tx.execute("SELECT count(*) FROM page_groups WHERE snapshot_count > 0") == [(0,)]


def test_who_reads_a_file_that_is_discarded_writes_nothing_any_more_and_nobody_takes_it_again(
    runtime: Runtime, dead: Dead
) -> None:
    dead.settle(dead.lease(), dead.write())
    dead.die()
    recover(runtime)
    reader = _claimed(runtime, dead.file_id)
    assert reader is not None

    discard(runtime, 1)

    with pytest.raises(LeaseLost), runtime.raw_db.write() as tx:
        reader.hold(tx, ReadProgress("read_warc", 1, 1, 1, 1, {}))
    assert _claimed(runtime, dead.file_id) is None
