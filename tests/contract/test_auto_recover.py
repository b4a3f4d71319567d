"""Runs of our own crawler that do not get on, as rows: taken from their holder and gone on with, by the same limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast.clock import boot_id, to_micros
from holdfast.config import DiskSettings, RecoverySettings, Settings
from holdfast.db import connect
from holdfast.db.models import Domain, Execution, Queue, Recovery
from holdfast.db.raw import DatabaseClock
from holdfast.db.sqlite import since_boot
from holdfast.errors import LeaseLost
from holdfast.jobs.endings import Counts
from holdfast.jobs.leases import ExecutionLease
from holdfast.operations.crawl_watchdog import DEPLOY_LOCK, RecoveryCase, is_deploying, recover
from holdfast.wiring.jobs import Jobs
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed

ROOMY = DiskSettings(free_bytes=0, free_percent=0)


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as made:
        yield made


def _jobs(bed: Bed, disk: DiskSettings = ROOMY) -> Jobs:
    party = bed.party
    settings = Settings(home=bed.home, disk=disk, recovery=RecoverySettings(keep_running=0))
    return Jobs(settings=settings, database=bed.database, clock=bed.clock, placement=party.placement,
                actions=party.actions, scheduler=party.scheduler, leases=party.leases)  # fmt: skip


def _running(bed: Bed) -> ExecutionLease:
    bed.party.scheduler.tick()
    return bed.party.taken("far/1")


def _cases(found: tuple[list[RecoveryCase], list[int]] | None) -> list[RecoveryCase]:
    assert found is not None
    return found[0]


def _look(bed: Bed, *, apply: bool = True) -> RecoveryCase:
    [case] = _cases(recover(_jobs(bed), apply=apply))
    return case


def test_a_crawl_without_progress_for_an_hour_goes_on_with_another_holder_and_burns_no_retry(
    bed: Bed, clock: FakeClock
) -> None:
    job_id = bed.once()
    lease = _running(bed)
    clock.advance(5000)
    bed.party.leases.report(lease, Counts(items_crawled=40), {})
    clock.advance(3600)
    assert _look(bed).reason == "healthy", "its own delay of a second is no standstill"
    clock.advance(1)

    dry, case = _look(bed, apply=False), _look(bed)

    assert (dry.action, dry.done, case.done, case.raised) == ("restart_stalled", False, True, {})
    assert (bed.job(job_id).state, bed.job(job_id).current_retry_count) == ("scheduled", 0)
    assert bed.holds(job_id) == [("far/1", "lease_lost")]
    with pytest.raises(LeaseLost):
        bed.party.leases.release(lease)
    again = bed.party.taken("near/2")
    assert (again.execution_id, again.output_dir, again.resumed) == (lease.execution_id, lease.output_dir, True)
    with bed.database.read() as session:
        [row] = session.scalars(select(Recovery))
    assert (row.action, row.pages) == ("restart_stalled", 40)


def test_a_source_that_cannot_be_used_any_more_keeps_no_other_run_from_being_looked_at(
    bed: Bed, clock: FakeClock
) -> None:
    tool, ours, other = bed.once("tool"), bed.once("ours"), bed.once("other")
    bed.party.scheduler.tick()
    for _ in range(3):
        bed.party.taken("far/1")
    # Without the reason that the source had when the job was made.
    for job_id in (tool, ours):
        bed.change(job_id, lambda job: setattr(job, "config", {"robots": "ignore"}))
    with bed.database.write() as session:
        for run in session.scalars(select(Execution).where(Execution.job_id == tool)):
            run.config, run.output_dir = {"backend": "zimit"}, str(bed.home)
    clock.advance(9000)

    cases = _cases(recover(_jobs(bed), apply=True, ask=lambda _run: True))

    found = {case.watched.run.job.id: (case.action, case.raised, case.done) for case in cases}
    assert found == dict.fromkeys((tool, ours, other), ("restart_stalled", {}, True))


def test_a_run_is_judged_by_the_delay_that_it_runs_with(bed: Bed, clock: FakeClock) -> None:
    bed.upsert(bed.source(delay_s=1))
    lease = _running(bed)
    with bed.database.write() as session:
        session.get_one(Execution, lease.execution_id).config = {"delay_s": 3600.0}
    clock.advance(7199)
    assert _look(bed).reason == "healthy"
    clock.advance(1)
    assert _look(bed).action == "restart_stalled"


def test_what_waits_as_a_site_asks_is_not_stalled(bed: Bed, clock: FakeClock) -> None:
    bed.once()
    lease = _running(bed)
    clock.advance(4000)
    with bed.database.write() as session:
        session.add(Domain(id=1, name="ex.example", created_at=clock.now()))
        session.add(Queue(execution_id=lease.execution_id, domain_id=1, open=3, due_at=to_micros(clock.now())))

    assert _look(bed).reason == "healthy"
    clock.advance(3601)
    assert _look(bed).action == "restart_stalled"


def test_a_patient_source_is_not_taken_for_a_stalled_one(bed: Bed, clock: FakeClock) -> None:
    bed.upsert(bed.source(delay_s=3600))
    _running(bed)
    clock.advance(7199)

    assert _look(bed).reason == "healthy"


def test_a_crawl_that_waits_for_room_on_the_disk_is_left_alone(bed: Bed, clock: FakeClock) -> None:
    bed.once()
    _running(bed)
    clock.advance(9000)

    [case] = _cases(recover(_jobs(bed, DiskSettings(free_bytes=10**18)), apply=True))

    assert (case.reason, case.done) == ("no_space", False)


def test_three_restarts_in_vain_are_enough(bed: Bed, clock: FakeClock) -> None:
    bed.once()
    reasons = []
    for _ in range(5):
        _running(bed)
        clock.advance(9 * 3600)
        reasons.append(_look(bed).reason)
        bed.party.scheduler.tick()
        if reasons[-1] != "stalled":
            break

    assert reasons == ["stalled", "stalled", "stalled", "breaker_open"]


def test_ages_of_files_are_judged_by_the_clock_of_their_machine(migrated_sqlite: str, tmp_path: Path) -> None:
    machine = FakeClock()
    with closing(connect(migrated_sqlite)) as raw_db, raw_db.write() as tx:
        ahead = to_micros(machine.now() + timedelta(hours=2)) - since_boot(machine)
        tx.execute("INSERT INTO clock_anchors (boot_id, micros) VALUES (?, ?)", (boot_id(), ahead))
    with closing(connect(migrated_sqlite)) as raw_db:
        clock = DatabaseClock(raw_db, machine)
    with open_bed(migrated_sqlite, clock, tmp_path) as bed:
        bed.once("tool")
        lease = _running(bed)
        folder = tmp_path / "crawl"
        folder.mkdir()
        log = folder / "archive_crawl.combined.log"
        with bed.database.write() as session:
            run = session.get_one(Execution, lease.execution_id)
            run.config, run.output_dir = {"backend": "zimit"}, str(folder)
        machine.advance(9000)
        log.touch()
        os.utime(log, (machine.now().timestamp() - 60,) * 2)

        case = _look(bed, apply=False)

        assert (case.reason, case.watched.activity.idle_s) == ("healthy", 60.0)
        (bed.home / DEPLOY_LOCK).touch()
        os.utime(bed.home / DEPLOY_LOCK, (machine.now().timestamp(),) * 2)
        assert is_deploying(_jobs(bed).settings, clock)
        machine.advance(7201)
        assert not is_deploying(_jobs(bed).settings, clock)
