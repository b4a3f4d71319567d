"""The watch over storage, as rows: sights add up, runs end as the machine's fault, and what was done is on record."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from holdfast.config import Settings, StorageSettings, ZimitSettings
from holdfast.db.models import AuditEvent, Recovery
from holdfast.errors import LeaseLost
from holdfast.jobs.endings import RunEnding, RunResult
from holdfast.jobs.leases import ExecutionLease
from holdfast.operations.crawl_watchdog import DEPLOY_LOCK, PathHealth, Probe
from holdfast.operations.storage_watchdog import StorageReport, StorageWatchdog
from holdfast.wiring.jobs import Jobs
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed

HERE = socket.gethostname()
DEAD = Probe(PathHealth.DEAD, 107)


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as made:
        yield made


class Machine:
    """A machine whose mount dies and comes back as the test says."""

    def __init__(self, bed: Bed, clock: FakeClock, **storage: Any) -> None:
        self.clock, self.dead = clock, True
        settings = Settings(home=bed.home, storage=StorageSettings(**storage))
        party = bed.party
        self.jobs = Jobs(settings=settings, database=bed.database, clock=clock, placement=party.placement,
                         actions=party.actions, scheduler=party.scheduler, leases=party.leases)  # fmt: skip
        self.mount = bed.home.resolve()

    def look(self, *, apply: bool = True, seconds: float = 0) -> StorageReport:
        """Let time pass, and look."""
        self.clock.advance(seconds)
        return StorageWatchdog(self.jobs, ask=self.ask, table=self.table).look(apply=apply)

    def table(self) -> str:
        """Return the kernel's list."""
        return f"1 1 0:1 / {self.mount} rw"

    def ask(self, paths: Iterable[Path]) -> Mapping[Path, Probe]:
        """Return how every path is."""
        return dict.fromkeys(paths, DEAD if self.dead else Probe(PathHealth.ALIVE))


def _running(bed: Bed, code: str = "ex", owner: str = HERE) -> ExecutionLease:
    bed.once(code)
    bed.party.scheduler.tick()
    return bed.party.taken(owner)


def _notes(bed: Bed) -> list[tuple[int, str]]:
    with bed.database.read() as session:
        return [(row.job_id, row.action) for row in session.scalars(select(Recovery).order_by(Recovery.id))]


def test_a_dead_path_is_freed_at_the_second_look_and_its_run_costs_no_retry(bed: Bed, clock: FakeClock) -> None:
    lease = _running(bed)
    machine = Machine(bed, clock, unmount_command="true {mount}", mount_command="true {mount}")

    [first] = machine.look().dead
    [second] = machine.look(seconds=120).dead

    assert (first.acted_for, second.acted_for) == ((), (lease.job.id,))
    assert [(step.step, step.ok) for step in second.steps] == [
        (f"end job {lease.job.id}", True), ("unmount", True), ("mount", True), ("probe", False),
    ]  # fmt: skip
    job, [execution] = bed.job(lease.job.id), bed.executions(lease.job.id)
    assert (job.state, job.current_retry_count, job.infra_retry_count) == ("scheduled", 0, 1)
    assert (execution.failure, execution.reason) == ("infra_error", "storage")
    assert "errno 107" in (execution.error or "")
    assert bed.holds(job.id) == [(HERE, "lease_lost")]
    with pytest.raises(LeaseLost):
        bed.party.leases.settle(lease, RunEnding(result=RunResult.COMPLETED))
    with bed.database.read() as session:
        [told] = session.scalars(select(AuditEvent).where(AuditEvent.action == "storage.path_freed"))
    assert (told.subject, told.detail["jobs"]) == (f"path {machine.mount}", [job.id])
    assert [step["step"] for step in told.detail["steps"]] == [step.step for step in second.steps]
    assert _notes(bed) == [(job.id, "seen_dead"), (job.id, "path_freed")]


def test_of_two_watchdogs_at_the_same_moment_one_acts(bed: Bed, clock: FakeClock) -> None:
    lease, machine = _running(bed), Machine(bed, clock)
    machine.look()
    clock.advance(200)
    other = StorageWatchdog(machine.jobs, ask=machine.ask, table=machine.table)

    def slow(paths: Iterable[Path]) -> Mapping[Path, Probe]:
        if not bed.holds(lease.job.id)[0][1]:  # between its look and its deed, another does all of it
            assert other.look(apply=True).dead[0].acted_for == (lease.job.id,)
        return machine.ask(paths)

    [late] = StorageWatchdog(machine.jobs, ask=slow, table=machine.table).look(apply=True).dead

    assert (late.acted_for, late.steps) == ((), ())
    assert [action for _, action in _notes(bed)] == ["seen_dead", "path_freed", "seen_dead"]


def test_without_commands_in_the_settings_nothing_is_run_and_the_run_ends_all_the_same(
    bed: Bed, clock: FakeClock
) -> None:
    lease, machine = _running(bed), Machine(bed, clock)
    machine.look()

    [case] = machine.look(seconds=200).dead

    assert [step.said for step in case.steps][1] == "HOLDFAST_STORAGE_UNMOUNT_COMMAND is not set: nothing was run"
    assert (case.healed, bed.job(lease.job.id).infra_retry_count) == (False, 1)


def test_a_dry_run_notes_nothing_and_so_confirms_nothing(bed: Bed, clock: FakeClock) -> None:
    lease, machine = _running(bed), Machine(bed, clock)

    for _ in range(3):
        found = machine.look(apply=False, seconds=300)

    assert (found.is_well, found.dead[0].reason) == (False, "seen dead 1 of 2 times")
    assert (_notes(bed), bed.job(lease.job.id).state) == ([], "running")


def test_a_path_that_answers_again_is_noted_and_counted_anew(bed: Bed, clock: FakeClock) -> None:
    lease, machine = _running(bed), Machine(bed, clock)
    machine.look()
    machine.dead = False
    assert machine.look(seconds=300).is_well
    machine.look(seconds=300)
    machine.dead = True

    [case] = machine.look(seconds=300).dead

    assert case.acted_for == ()
    assert [action for _, action in _notes(bed)] == ["seen_dead", "seen_alive", "seen_dead"]
    assert bed.job(lease.job.id).state == "running"


def test_a_job_that_waits_for_its_machine_is_a_reason_to_mount_again_and_a_cooldown_holds(
    bed: Bed, clock: FakeClock
) -> None:
    lease = _running(bed)
    machine = Machine(bed, clock, unmount_command="true", mount_command="true")
    machine.look()
    machine.look(seconds=120)
    assert bed.job(lease.job.id).infra_retry_count == 1

    waits = [machine.look(seconds=200).dead[0] for _ in range(4)]
    again = machine.look(seconds=200).dead[0]

    assert [one.reason for one in waits] == ["seen dead 1 of 2 times", *["something was done a short while ago"] * 3]
    assert (again.acted_for, [step.step for step in again.steps]) == (
        (lease.job.id,),
        ["unmount", "mount", "probe"],
    )


def test_runs_of_another_machine_and_deployments_are_left_alone(bed: Bed, clock: FakeClock) -> None:
    _running(bed, owner="elsewhere")
    machine = Machine(bed, clock)
    assert machine.look().looked_at == ()

    _running(bed, "other")
    assert len(machine.look().looked_at) == 1
    (bed.home / DEPLOY_LOCK).touch()
    os.utime(bed.home / DEPLOY_LOCK, (clock.now().timestamp(),) * 2)
    assert (machine.look(seconds=7199).deploying, machine.look(seconds=1).deploying) == (True, False)
    # From a year ahead, by a clock that was wrong: the watch must not sleep until then.
    os.utime(bed.home / DEPLOY_LOCK, (clock.now().timestamp() + 365 * 86_400,) * 2)
    assert machine.look(seconds=1).deploying is False


def test_a_store_that_is_not_mounted_is_dead_whatever_stands_in_its_place(bed: Bed, clock: FakeClock) -> None:
    lease, machine = _running(bed), Machine(bed, clock)
    root = lease.output_dir.parents[2]
    storage = StorageSettings(mount_command="true {mount}")
    settings = Settings(home=bed.home, storage=storage, zimit=ZimitSettings(store_root=root))

    def ask(paths: Iterable[Path]) -> Mapping[Path, Probe]:
        return {
            path: Probe(PathHealth.MISSING if path.name == ".holdfast-store" else PathHealth.ALIVE) for path in paths
        }

    guard = StorageWatchdog(replace(machine.jobs, settings=settings), ask=ask, table=lambda: "")
    guard.look(apply=True)
    clock.advance(130)
    [case] = guard.look(apply=True).dead

    assert (case.path, case.mount, case.acted_for) == (root, True, (lease.job.id,))
    assert [step.said for step in case.steps][1:3] == ["it is not mounted", "ended with 0"]
