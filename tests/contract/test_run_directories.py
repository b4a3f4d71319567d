"""Machines that share a database and not their disks: a run stays where its files lie; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from holdfast import config
from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Owner, WarcFile
from holdfast.jobs.endings import FailureCause
from holdfast.jobs.executions import read_ending
from holdfast.jobs.indexing import next_to_index
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.pauses import AWAY
from holdfast.jobs.records import job_record
from holdfast.jobs.views import listing
from holdfast.jobs.waiting import queued_runs, waits_of
from holdfast.processes.owners import OPERATING
from holdfast.search.directory import IndexDirectory
from holdfast.storage.store import FileKey
from holdfast.warc import queries as files
from holdfast.wiring import open_runtime
from holdfast.worker.after_crawl import AfterCrawl
from holdfast.worker.background import BackgroundContext
from holdfast.worker.loop import RunnerTable, open_worker
from holdfast.zimit.output_directory import SENTINEL
from tests.api_bed import Server
from tests.clock import FakeClock
from tests.jobs_bed import Bed, Party, failed, holder, open_bed


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    """One database that several machines share."""
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _worker(database: Database, directory: str, at: datetime) -> None:
    with database.write() as session:
        session.add(Owner(kind="worker", host=f"host-{directory}", pid=1, run_file="x", started_at=at, heartbeat_at=at,
                          ended_at=at, directory=directory))  # fmt: skip


@pytest.fixture
def machines(bed: Bed, clock: FakeClock) -> tuple[Party, Party]:
    """Two machines with data directories of their own; both have been heard of."""
    for name in ("a", "b"):
        _worker(bed.database, name, clock.now())
    return bed.another("a"), bed.another("b")


def _settings(bed: Bed) -> config.Settings:
    url = None if bed.url.startswith("sqlite") else bed.url
    return config.load(home=bed.home, database_url=url, contact=None, disk={"free_bytes": 0, "free_percent": 0})


def _handed_back(bed: Bed, party: Party) -> ExecutionLease:
    bed.once()
    bed.party.scheduler.tick()
    lease = party.taken("host-a/1")
    party.leases.release(lease)
    return lease


def _leased(bed: Bed) -> int:
    job_id = bed.once()
    bed.party.scheduler.tick()
    bed.party.taken()
    return job_id


def test_started_run_is_leased_only_by_its_own_machine(bed: Bed, machines: tuple[Party, Party]) -> None:
    a, b = machines
    first = _handed_back(bed, a)

    assert b.leases.take(holder(b.database, "host-b")) is None
    again = a.taken("host-a/3")

    assert (again.execution_id, again.output_dir, again.left_behind) == (first.execution_id, first.output_dir, None)


def test_run_continues_in_its_folder_when_the_data_directory_was_moved(bed: Bed, machines: tuple[Party, Party]) -> None:
    first = _handed_back(bed, machines[0])
    first.output_dir.mkdir(parents=True)
    (bed.home / "a").rename(bed.home / "moved")

    moved = Party(bed.url, bed.clock, bed.all_settings, bed.home / "moved", "a")
    with closing(moved.database):
        again = moved.taken("host-a/3")

    assert again.execution_id == first.execution_id
    assert again.output_dir == bed.home / "moved" / first.output_dir.relative_to(bed.home / "a")


def test_new_run_is_leased_by_any_machine(bed: Bed, machines: tuple[Party, Party]) -> None:
    bed.once()
    bed.party.scheduler.tick()

    lease = machines[1].taken("host-b/2")

    assert lease.output_dir.is_relative_to((bed.home / "b").resolve())


def test_retry_stays_on_the_machine_of_its_files(bed: Bed, machines: tuple[Party, Party], clock: FakeClock) -> None:
    a, b = machines
    bed.once()
    bed.party.scheduler.tick()
    first = a.taken("host-a/1")
    a.leases.settle(first, failed(FailureCause.INFRA))
    clock.advance(3600)
    bed.party.scheduler.tick()

    assert b.leases.take(holder(b.database, "host-b")) is None
    assert a.taken("host-a/3").output_dir == first.output_dir


def test_run_of_a_silent_machine_goes_on_elsewhere(bed: Bed, machines: tuple[Party, Party], clock: FakeClock) -> None:
    a, b = machines
    first = _handed_back(bed, a)
    clock.advance(AWAY.total_seconds() + 60)
    _worker(bed.database, "b", clock.now())

    lease = b.taken("host-b/2")

    assert lease.execution_id == first.execution_id
    assert lease.output_dir.is_relative_to((bed.home / "b").resolve())
    assert lease.left_behind is not None
    assert str(first.output_dir) in lease.left_behind
    assert "host-a, silent since" in lease.left_behind
    b.leases.release(lease)
    assert a.leases.take(holder(a.database, "host-a")) is None, "it is b's now"
    assert b.taken("host-b/4").left_behind is None


def test_run_does_not_wait_for_a_worker_of_operations(bed: Bed, clock: FakeClock) -> None:
    settings = _settings(bed)
    with open_worker(settings, RunnerTable({}), kind=OPERATING):
        pass
    here, elsewhere = bed.another(IndexDirectory(bed.home).identity()), bed.another("b")
    first = _handed_back(bed, here)
    with bed.database.write() as session:
        session.execute(update(Owner).where(Owner.kind == OPERATING).values(heartbeat_at=clock.now()))

    lease = elsewhere.taken("host-b/2")

    assert lease.execution_id == first.execution_id
    assert lease.left_behind is not None


def test_waiting_run_names_its_machine_in_every_view(bed: Bed, machines: tuple[Party, Party], clock: FakeClock) -> None:
    first = _handed_back(bed, machines[0])
    seen = clock.now()
    expected = (
        f"waits for a worker on host-a (data directory a, last seen {seen:%Y-%m-%d %H:%M} UTC); from "
        f"{seen + AWAY:%Y-%m-%d %H:%M} UTC on, another machine continues the run without the files of this one"
    )

    with bed.database.read() as session:
        listed = listing.shown_job(session, first.claim.job_id)
        waits = waits_of(_settings(bed), clock, [listed.latest])
        assert waits == {first.execution_id: ("machine", expected)}
        latest = job_record(listed, waits).latest_execution
        assert latest is not None
        assert (latest.sentence, latest.waits_for) == (expected, "machine")
    with closing(connect(bed.url)) as raw_db, raw_db.read() as tx:
        assert [one.machine for one in queued_runs(tx, limit=5)] == [expected]


def test_new_run_waits_for_no_machine(bed: Bed, machines: tuple[Party, Party], clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()

    with bed.database.read() as session:
        listed = listing.shown_job(session, job_id)
        waits = waits_of(_settings(bed), clock, [listed.latest])
    assert [wait.code for wait in waits.values()] == ["contact"]


def test_api_names_the_machine_that_a_run_waits_for(server: Server) -> None:
    database, now = server.archive.database, server.clock.now()
    _worker(database, "a", now)
    with open_bed(server.archive.settings.database, server.clock, server.archive.settings.home) as bed:
        job_id = bed.once()
        bed.party.scheduler.tick()
        run = bed.executions(job_id)[0].id
    with database.write() as session:
        session.get_one(Execution, run).directory = "a"

    sentences = [
        server.get(f"/api/v1/executions/{run}").json()["sentence"],
        server.get(f"/api/v1/jobs/{job_id}/executions").json()["executions"][0]["sentence"],
        server.get(f"/api/v1/jobs/{job_id}").json()["latest_execution"]["sentence"],
    ]

    assert len(set(sentences)) == 1
    assert sentences[0].startswith("waits for a worker on host-a (data directory a, last seen ")


@pytest.mark.parametrize("is_retry", [False, True])
def test_ending_counts_files_that_are_on_another_machine(bed: Bed, clock: FakeClock, *, is_retry: bool) -> None:
    home, now = bed.home, to_micros(clock.now())
    (execution_id,) = (one.id for one in bed.executions(_leased(bed)))
    for name in ("here.warc.gz", "begun.warc.gz.open"):
        (home / name).touch()
    with closing(connect(bed.url)) as raw_db:
        with raw_db.write() as tx:
            for name in ("here", "begun", "a", "b", "discarded"):
                file_id = files.insert_file(
                    tx, execution_id=execution_id, owner_id=1, key=FileKey(f"{name}.warc.gz"), now=now
                )
            files.discard_file(tx, file_id)
            if is_retry:
                tx.execute("UPDATE executions SET state = 'failed'")
                tx.execute("INSERT INTO executions (job_id, number, state, config, output_dir, created_at, run_seconds,"
                           " resumed_from, frontier_id) SELECT job_id, 2, 'running', '{}', '', 0, 0, id, id"
                           " FROM executions")  # fmt: skip

        reading = read_ending(raw_db, home, execution_id=execution_id + is_retry)

    assert (reading.reason, reading.shortfalls, reading.rule.is_ready) == (
        "files_elsewhere",
        {"files_elsewhere": 2},
        False,
    )
    assert "2 files written by another machine and missing here" in reading.sentence()


class Folder:
    """A run that waits to be indexed, and the background task of one machine."""

    def __init__(self, url: str, home: Path, stack: ExitStack, backend: str) -> None:
        settings = config.load(home=home, database_url=None if url.startswith("sqlite") else url)
        runtime = stack.enter_context(open_runtime(settings))
        self.database = stack.enter_context(closing(Database(settings.database)))
        self.clock, self.folder = runtime.clock, home.resolve() / "warcs" / "ex" / "run"
        self.directory = IndexDirectory(home).identity()
        context = BackgroundContext(runtime=runtime, database=self.database, is_stopping=lambda: False, on_end=stack)
        self.task = AfterCrawl(context)
        with open_bed(settings.database, runtime.clock, home) as bed:
            self._job = bed.once(code="ex")
            bed.change(self._job, lambda job: setattr(job, "config", {"backend": backend}))
            bed.run_once(self._job)

    def index_state(self, directory: str | None) -> tuple[str | None, str | None]:
        """Return what becomes of the run if its files lie in this data directory: index state and error."""
        with self.database.write() as session:
            run = session.query(Execution).one()
            run.index_state, run.directory, run.output_dir, run.error = "pending", directory, str(self.folder), None
        while self.task.run_once():
            pass
        with self.database.read() as session:
            run = session.query(Execution).one()
            return run.index_state, run.error


@pytest.fixture
def run(migrated_url: str, tmp_path: Path) -> Iterator[Folder]:
    """A zimit run whose folder cannot be seen."""
    with ExitStack() as stack:
        yield Folder(migrated_url, tmp_path / "home", stack, "zimit")


@pytest.fixture
def own_run(migrated_url: str, tmp_path: Path) -> Iterator[Folder]:
    """A run of our own crawler with one sealed file in a folder that cannot be seen."""
    with ExitStack() as stack:
        run = Folder(migrated_url, tmp_path / "home", stack, "native")
        with run.database.write() as session:
            number = session.query(Execution).one().id
            session.add(WarcFile(execution_id=number, key="warcs/ex/first/a.warc.gz", state="sealed",
                                 created_at=run.clock.now()))  # fmt: skip
        yield run


def test_zimit_run_waits_for_a_worker_that_sees_its_folder(run: Folder) -> None:
    _worker(run.database, "elsewhere", run.clock.now())

    assert run.index_state("elsewhere") == ("pending", None)


def test_zimit_run_of_a_silent_machine_fails_with_its_place(run: Folder) -> None:
    _worker(run.database, "elsewhere", run.clock.now() - AWAY - timedelta(minutes=1))

    state, error = run.index_state("elsewhere")

    assert (state, f"{run.folder} lies on a machine that has been silent" in (error or "")) == ("index_failed", True)


def test_zimit_run_waits_while_its_mount_is_missing(run: Folder) -> None:
    assert run.index_state(run.directory) == ("indexing", None)


def test_zimit_run_fails_when_its_folder_was_deleted(run: Folder) -> None:
    run.folder.parent.mkdir(parents=True)
    (run.folder.parent / SENTINEL).touch()

    state, error = run.index_state(run.directory)

    assert (state, "there is no WARC file in" in (error or "")) == ("index_failed", True)


def test_index_concludes_for_a_run_that_this_machine_took_over(own_run: Folder) -> None:
    state, error = own_run.index_state(own_run.directory)

    assert state == "index_failed"
    assert "warcs/ex/first lies on a machine that has been silent for a day" in (error or "")
    assert "(files: 1)" in (error or "")


def test_index_concludes_for_an_ended_run_of_a_silent_machine(own_run: Folder) -> None:
    _worker(own_run.database, "elsewhere", own_run.clock.now() - AWAY - timedelta(minutes=1))

    assert own_run.index_state("elsewhere")[0] == "index_failed"


def test_index_waits_for_an_ended_run_of_a_living_machine(own_run: Folder) -> None:
    _worker(own_run.database, "elsewhere", own_run.clock.now())

    assert own_run.index_state("elsewhere") == ("pending", None)


def test_index_waits_for_the_own_folder_on_a_lost_mount(own_run: Folder) -> None:
    own_run.folder = own_run.folder.with_name("first")

    assert own_run.index_state(own_run.directory) == ("indexing", None)


def _more_runs(run: Folder, directory: str, count: int, *, folder: str) -> None:
    with run.database.write() as session:
        last = session.query(Execution).order_by(Execution.id.desc()).first()
        assert last is not None
        for number in range(last.number + 1, last.number + 1 + count):
            row = Execution(job_id=last.job_id, number=number, state="completed", index_state="pending",
                            output_dir=str(run.folder.with_name(folder)), created_at=run.clock.now(),
                            directory=directory)  # fmt: skip
            session.add(row)
            session.flush()
            if folder == "lost":
                session.add(WarcFile(execution_id=row.id, key=f"warcs/ex/lost/{number}.warc.gz", state="sealed",
                                     created_at=run.clock.now()))  # fmt: skip


def test_index_turn_selects_no_runs_of_other_machines(own_run: Folder) -> None:
    _worker(own_run.database, "elsewhere", own_run.clock.now())
    _more_runs(own_run, "elsewhere", 57, folder="run")
    _more_runs(own_run, own_run.directory, 1, folder="run")

    with own_run.database.read() as session:
        found = next_to_index(session, own_run.directory, now=own_run.clock.now())
        assert found is not None
        assert session.get_one(Execution, found.execution_id).number == 59


def test_index_turn_is_bounded_and_the_next_one_continues(own_run: Folder) -> None:
    _more_runs(own_run, own_run.directory, 25, folder="lost")
    _more_runs(own_run, own_run.directory, 1, folder="run")

    def states() -> list[str | None]:
        own_run.task.run_once()
        with own_run.database.read() as session:
            return [row.index_state for row in session.query(Execution).order_by(Execution.id)]

    assert states() == [None, *["indexing"] * 20, *["pending"] * 6]
    assert states() == [None, *["indexing"] * 25, "index_failed"]
