"""What a worker does with what is due: order, kinds, failures, lost leases, hand-backs, low disk; on both databases."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast.crawl.recovery import recover, recover_leases
from holdfast.crawl.stopping import Stops
from holdfast.db.models import Job, Owner
from holdfast.errors import Invalid
from holdfast.jobs.endings import Counts, RunEnding, RunResult
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.states import JobAction
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.wiring import open_runtime
from holdfast.wiring.jobs import open_jobs
from holdfast.worker.runner import RunnerHolding, StopReason
from tests import patience
from tests.contract.worker_bed import DONE, WorkerBed
from tests.jobs_bed import holder


@pytest.fixture
def bed(database_url: str, tmp_path: Path) -> Iterator[WorkerBed]:
    """A database of each kind, and workers on it."""
    made = WorkerBed(database_url, tmp_path)
    yield made
    made.database.close()


@pytest.fixture
def light_bed(sqlite_url: str, tmp_path: Path) -> Iterator[WorkerBed]:
    """The same on SQLite only, for what no database has a say in."""
    made = WorkerBed(sqlite_url, tmp_path)
    yield made
    made.database.close()


def _done(_lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
    return DONE


def test_what_is_due_runs_in_the_order_of_its_turn(bed: WorkerBed) -> None:
    order: list[str] = []
    now = datetime.now(UTC)
    for code, minutes in (("late", 1), ("early", 30), ("middle", 10)):
        job_id = bed.job(code, kind="annual")
        with bed.database.write() as session:
            session.get_one(Job, job_id).next_run_at = now - timedelta(minutes=minutes)

    def play(lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        order.append(lease.source.code)
        return DONE

    bed.work(play)

    assert order == ["early", "middle", "late"]


def test_an_annual_job_for_next_year_does_not_start_before_its_date(light_bed: WorkerBed) -> None:
    later = light_bed.job("next", kind="annual", at=datetime.now(UTC) + timedelta(days=365))
    now = light_bed.job("now", kind="annual")

    report = light_bed.work(_done)

    assert report.endings == {"completed": 1}
    assert [run.state for run in light_bed.runs(now)] == ["completed"]
    assert light_bed.runs(later) == []
    assert light_bed.get(later).state == "pending"


def test_a_worker_for_some_kinds_leaves_the_others_queued(light_bed: WorkerBed) -> None:
    crawl, annual = light_bed.job("crawl"), light_bed.job("annual", kind="annual")

    light_bed.work(_done, kinds=("annual",))

    assert [run.state for run in light_bed.runs(annual)] == ["completed"]
    assert [run.state for run in light_bed.runs(crawl)] == ["queued"]


def test_as_many_run_at_once_as_were_asked_for_and_no_more(light_bed: WorkerBed) -> None:
    for number in range(5):
        light_bed.job(f"s{number}")
    both, at_once, most, lock = threading.Barrier(2), [0], [0], threading.Lock()

    def play(_lease: ExecutionLease, holding: RunnerHolding) -> RunEnding:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        if is_early():
            both.wait(patience.deadline(10))
        holding.wait(0.05)
        with lock:
            at_once[0] -= 1
        return DONE

    turns = iter([True, True])

    def is_early() -> bool:
        return next(turns, False)

    report = light_bed.work(play, concurrency=2)

    assert report.endings == {"completed": 5}
    assert most == [2]


def test_a_run_that_crashes_fails_with_its_stack_and_is_tried_again_later(light_bed: WorkerBed) -> None:
    job_id = light_bed.job("ex", retry_backoff_seconds=60)

    def play(_lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        raise ZeroDivisionError("what nobody foresaw")

    report = light_bed.work(play)

    run, job = light_bed.runs(job_id)[0], light_bed.get(job_id)
    assert report.endings == {"failed": 1}
    assert (run.state, run.failure) == ("failed", "failed")
    assert "what nobody foresaw" in (run.error or "")
    assert "Traceback" in (run.stack or "")
    assert (job.state, job.current_retry_count) == ("scheduled", 1)
    assert job.next_run_at is not None
    assert 60 - patience.allowed(5) < (job.next_run_at - datetime.now(UTC)).total_seconds() <= 60
    assert [event.data["status"] for event in light_bed.events(job_id) if event.name == "job:completed"] == ["failed"]
    assert any(line.level >= 40 for line in light_bed.lines(run.id))


def test_storage_trouble_burns_no_retry_and_waits_ten_minutes(light_bed: WorkerBed) -> None:
    job_id = light_bed.job("ex")

    def play(_lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        raise OSError(errno.ENOTCONN, "transport endpoint is not connected")

    light_bed.work(play)

    run, job = light_bed.runs(job_id)[0], light_bed.get(job_id)
    assert run.failure == "infra_error"
    assert (job.current_retry_count, job.infra_retry_count) == (0, 1)
    assert job.next_run_at is not None
    assert 600 - patience.allowed(5) < (job.next_run_at - datetime.now(UTC)).total_seconds() <= 600


def test_a_configuration_that_cannot_be_used_is_never_tried_again(light_bed: WorkerBed) -> None:
    job_id = light_bed.job("ex")

    def play(_lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        raise Invalid("seeds: none of them is an address")

    light_bed.work(play)

    assert light_bed.runs(job_id)[0].failure == "infra_error_config"
    assert light_bed.get(job_id).state == "failed"
    assert light_bed.work(play).executions == []


def test_a_backend_that_nobody_runs_fails_as_configuration(light_bed: WorkerBed) -> None:
    job_id = light_bed.job("ex", config={"backend": "zimit", "seeds": ["https://ex.example/"]})

    light_bed.work(_done)

    assert light_bed.runs(job_id)[0].failure == "infra_error_config"
    assert "zimit" in (light_bed.runs(job_id)[0].error or "")


def test_a_lost_lease_stops_the_run_at_once_and_nothing_is_written(bed: WorkerBed) -> None:
    job_id = bed.job("ex")
    heard: list[StopReason | None] = []

    def play(_lease: ExecutionLease, holding: RunnerHolding) -> RunEnding:
        with bed.database.write() as session:
            session.execute(update(Job).values(lock_token="another", lock_epoch=Job.lock_epoch + 1))
        heard.append(holding.wait(patience.deadline(10)))
        return RunEnding(result=RunResult.COMPLETED, reason="late", counts=Counts(items_crawled=7))

    report = bed.work(play)

    run = bed.runs(job_id)[0]
    assert heard == [StopReason.LOST]
    assert report.endings == {"lost": 1}
    assert (run.state, run.items_crawled, run.reason) == ("running", 0, None)
    assert bed.get(job_id).lock_token == "another"


def test_an_ending_that_the_rows_do_not_take_fails_its_run_and_no_other(bed: WorkerBed) -> None:
    bad, good = bed.job("bad"), bed.job("good")

    def play(lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        return (
            DONE
            if lease.claim.job_id == good
            else RunEnding(result=RunResult.COMPLETED, counts=Counts(items_crawled=10**30))
        )

    report = bed.work(play, concurrency=2)

    run = bed.runs(bad)[0]
    assert report.endings == {"completed": 1, "failed": 1}
    assert (run.state, run.reason) == ("failed", "unsettled")
    assert "could not be written" in (run.error or "")
    assert bed.get(bad).state == "scheduled", "it is tried again, and status shows that it failed"
    assert [hold.ending for hold in bed.holds(bad)] == ["settled"]


def test_a_worker_that_drains_hands_back_and_another_goes_on_with_the_same_execution(bed: WorkerBed) -> None:
    job_id, stops = bed.job("ex"), Stops()

    def hand_back(_lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        stops.ask(1)
        assert holding.wait(patience.deadline(10)) is StopReason.DRAIN
        return None

    def go_on(lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        resumed.append(lease.resumed)
        return DONE

    resumed: list[bool] = []
    first = bed.work(hand_back, stops=stops)
    second = bed.work(go_on)

    assert (first.endings, second.endings) == ({"released": 1}, {"completed": 1})
    assert resumed == [True]
    assert [hold.ending for hold in bed.holds(job_id)] == ["released", "settled"]
    assert len(bed.runs(job_id)) == 1
    assert bed.runs(job_id)[0].takeovers == 0


def test_the_second_signal_does_not_wait(light_bed: WorkerBed) -> None:
    light_bed.job("ex")
    stops = Stops()

    def play(_lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        stops.ask(1)
        assert holding.wait(patience.deadline(10)) is StopReason.DRAIN
        stops.ask(2)
        assert holding.wait(patience.deadline(10)) is StopReason.NOW
        return None

    assert light_bed.work(play, stops=stops).endings == {"released": 1}


def test_a_job_that_is_cancelled_while_it_runs_is_heard_of_and_stays_cancelled(bed: WorkerBed) -> None:
    job_id = bed.job("ex")

    def play(_lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        with open_jobs(bed.settings) as jobs, jobs.database.write() as session:
            jobs.actions.act(session, job_id, JobAction.CANCEL)
        assert holding.wait(patience.deadline(10)) is StopReason.CANCEL
        return RunEnding(result=RunResult.CANCELLED, reason="cancelled", counts=Counts(items_crawled=3))

    bed.work(play)

    assert bed.get(job_id).state == "cancelled"
    assert (bed.runs(job_id)[0].state, bed.runs(job_id)[0].items_crawled) == ("cancelled", 3)


def test_low_disk_starts_nothing_and_is_told_once(sqlite_url: str, tmp_path: Path) -> None:
    bed = WorkerBed(sqlite_url, tmp_path, disk={"free_bytes": 10**18})
    job_id, stops = bed.job("ex"), Stops()

    def told() -> list[object]:
        return [event.data["details"] for event in bed.events(job_id) if "waits_for" in event.data.get("details", {})]

    def stop_after_a_few_more_looks() -> None:
        while not told() and not stops.wait(0.05):
            pass
        stops.wait(0.3)
        stops.ask(1)

    watching = threading.Thread(target=stop_after_a_few_more_looks, daemon=True)
    watching.start()
    report = bed.work(_done, once=False, stops=stops)
    watching.join()

    assert report.low_disk
    assert told() == [{"waits_for": "disk_space"}]
    assert [run.state for run in bed.runs(job_id)] == ["queued"]
    bed.database.close()


def test_a_worker_that_ends_cleans_up_after_what_died_beside_it_during_its_last_run(bed: WorkerBed) -> None:
    bed.job("ex")
    with open_runtime(bed.settings) as runtime:
        run_file = runtime.run_folder / "died.run"

    def play(lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        run_file.touch()
        now = datetime.now(UTC)
        with bed.database.write() as session:
            session.add(Owner(kind="crawl", host=socket.gethostname(), pid=1, run_file=str(run_file), started_at=now,
                              heartbeat_at=now, execution_id=lease.execution_id))  # fmt: skip
        return DONE

    bed.work(play)

    with bed.database.read() as session:
        assert list(session.scalars(select(Owner.kind).where(Owner.ended_at.is_(None)))) == []
    assert not run_file.exists()


def test_progress_is_told_each_ten_items_and_the_log_can_be_read_while_it_runs(bed: WorkerBed) -> None:
    job_id = bed.job("ex")
    seen: list[str] = []

    def play(lease: ExecutionLease, holding: RunnerHolding) -> RunEnding:
        for items in range(1, 31):
            holding.progress(Counts(items_crawled=items, items_total=40))
        holding.note("warning", "rate_limit", "slow down", password="secret")
        deadline = threading.Event()
        while not seen and not deadline.wait(0.05):
            seen.extend(line.message for line in bed.lines(lease.execution_id) if line.category == "crawler.rate_limit")
        return DONE

    bed.work(play)

    found = [event.data["items_found"] for event in bed.events(job_id) if event.name == "job:progress"]
    assert found == [10, 20, 30]
    assert seen == ["slow down"]
    lines = bed.lines(bed.runs(job_id)[0].id)
    assert [line.message for line in lines if line.category == "crawler.lifecycle"] == ["run starts", "run completed"]
    assert "secret" not in str([line.fields for line in lines])


def test_turns_that_passed_while_nobody_worked_are_noticed(light_bed: WorkerBed) -> None:
    job_id = light_bed.job("ex", interval_minutes=60, schedule_enabled=True, adaptive_scheduling=False)
    with light_bed.database.write() as session:
        job = session.get_one(Job, job_id)
        job.next_run_at = job.rhythm_at = datetime.now(UTC) - timedelta(hours=5, minutes=30)

    light_bed.work(_done)

    assert light_bed.runs(job_id)[0].metrics["skipped_turns"] == 5
    assert any(
        event.data["details"].get("skipped_turns") == 5 for event in light_bed.events(job_id) if "details" in event.data
    )


def test_a_worker_that_fell_silent_loses_its_run_to_another_after_the_stale_period(
    database_url: str, tmp_path: Path
) -> None:
    bed = WorkerBed(database_url, tmp_path)
    job_id = bed.job("ex")
    with open_jobs(bed.settings) as jobs:
        jobs.scheduler.tick()
        dead = jobs.leases.take(holder(jobs.database, "elsewhere"))
        assert dead is not None
    with bed.database.write() as session:  # silent for the stale period: a short one would end the other lease, too
        job = session.get_one(Job, job_id)
        assert job.lock_heartbeat_at is not None
        job.lock_heartbeat_at -= timedelta(seconds=bed.settings.timings.jobs_stale_s)
    stops, ran = Stops(), threading.Event()

    def play(_lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        ran.set()
        return DONE

    another = bed.beside(play, stops=stops)
    assert ran.wait(patience.deadline(10))
    stops.ask(1)
    another.join(patience.deadline(10))

    assert [hold.ending for hold in bed.holds(job_id)][:1] == ["lease_lost"]
    assert bed.holds(job_id)[-1].ending == "settled"
    assert bed.runs(job_id)[0].takeovers == 1
    bed.database.close()


def test_job_of_a_killed_worker_is_free_at_the_next_poll(database_url: str, tmp_path: Path) -> None:
    bed = WorkerBed(database_url, tmp_path)
    bed.job("ex")
    with closing(bed.database), open_jobs(bed.settings) as jobs, open_runtime(bed.settings) as runtime:
        run = RunFile(runtime.run_folder)
        killed = OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind="worker", execution_id=None)
        jobs.scheduler.tick()
        assert jobs.leases.take(killed.id) is not None
        assert (recover_leases(runtime), jobs.scheduler.sweep()) == (0, 0)

        run.let_go()
        assert (recover_leases(runtime), jobs.scheduler.sweep()) == (1, 1)
        assert (recover_leases(runtime), jobs.scheduler.sweep()) == (0, 0)


@pytest.mark.parametrize("kind", ["worker", "runner"])
def test_a_worker_of_another_machine_keeps_its_jobs_for_the_whole_stale_period(
    database_url: str, tmp_path: Path, kind: str
) -> None:
    bed = WorkerBed(database_url, tmp_path, jobs={"stale_s": 600.0})
    job_id, now = bed.job("ex"), datetime.now(UTC)
    with bed.database.write() as session:
        far = Owner(kind=kind, host="far", pid=1, run_file="/far/x.run", started_at=now, heartbeat_at=now)
        session.add(far)
        session.flush()
        number = far.id

    def silent_for(seconds: float) -> None:
        with bed.database.write() as session:
            heard = datetime.now(UTC) - timedelta(seconds=seconds)
            session.get_one(Owner, number).heartbeat_at = session.get_one(Job, job_id).lock_heartbeat_at = heard

    with closing(bed.database), open_jobs(bed.settings) as jobs, open_runtime(bed.settings) as runtime:
        jobs.scheduler.tick()
        assert jobs.leases.take(number) is not None
        silent_for(590)
        assert recover(runtime).owners == 0
        assert recover_leases(runtime) == 0
        assert jobs.scheduler.sweep() == 0
        assert jobs.leases.take(holder(jobs.database, "here")) is None, "it may come back, and goes on"

        silent_for(601)
        assert jobs.scheduler.sweep() == 1
        silent_for(721)
        assert recover(runtime).owners == 1, "in the end its row is closed as any other"
