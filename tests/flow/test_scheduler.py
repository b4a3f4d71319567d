"""Several schedulers and workers on one database, killed and frozen at random (F17, F18, F19)."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import func, select, text, update

from holdfast.config import Settings, Timings
from holdfast.db.migrate import upgrade
from holdfast.db.models import Execution, Hold, Job
from holdfast.errors import LeaseLost
from holdfast.jobs.endings import RunEnding, RunResult, StartPage
from holdfast.sources import registry
from tests import patience
from tests.flow.jobs_process import Crew, World, schedule, work
from tests.jobs_bed import DONE, Party, holder

JOBS, TURNS = 200, 5
FEW = 40
"""Jobs that workers run to their end, too."""


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    """A database with jobs that run every fast minute, which is a second of ours."""
    upgrade(database_url)
    quick = Timings(
        jobs_poll_s=1.0,
        jobs_stale_s=60.0,
        jobs_sweep_s=20.0,
        jobs_metrics_s=600.0,
        jobs_heartbeat_s=10.0,
        jobs_takeovers=1000,
    )
    settings = Settings(timings=quick)
    return World(url=database_url, home=tmp_path, settings=settings, since=time.time())


def _jobs(party: Party, world: World, count: int) -> None:
    now = world.clock().now()
    with party.database.write() as session:
        for number in range(count):
            code = f"s{number}"
            spec = registry.read_spec({"code": code, "config": {"seeds": [f"https://{code}.example/"]}})
            source = registry.create(session, world.clock(), spec)
            session.add(Job(
                source_id=source.id, kind="crawl", fingerprint="", config={}, created_at=now, updated_at=now,
                state="scheduled", interval_minutes=1, schedule_enabled=True, adaptive_scheduling=False,
                next_run_at=now, rhythm_at=now, url=f"https://{code}.example/",
            ))  # fmt: skip


def _wait_until(true: object, seconds: float) -> None:
    assert callable(true)
    pause, deadline = threading.Event(), time.monotonic() + patience.deadline(seconds)
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        pause.wait(0.05)


def _finished(party: Party) -> int:
    with party.database.read() as session:
        return session.scalar(select(func.count()).where(Execution.state == "completed")) or 0


def _queued(party: Party) -> int:
    with party.database.read() as session:
        return session.scalar(select(func.count()).where(Execution.state == "queued")) or 0


def _run_all(party: Party, world: World) -> None:
    """End everything that is queued, and let every job be due again, in one step: workers have tests of their own."""
    with party.database.write() as session:
        session.execute(update(Execution).where(Execution.state == "queued").values(state="completed"))
        session.execute(update(Job).values(next_run_at=world.clock().now()))


def _check_history(party: Party) -> dict[int, int]:
    """Check that no turn ran twice and nobody ran a job while another did; return the good runs of each job."""
    with party.database.read() as session:
        if session.get_bind().dialect.name == "postgresql":  # both questions at one moment, as SQLite has it anyway
            session.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        executions = session.scalars(select(Execution).order_by(Execution.job_id, Execution.number)).all()
        holds = session.scalars(select(Hold).order_by(Hold.job_id, Hold.epoch)).all()
    turns: dict[int, list[object]] = defaultdict(list)
    done: dict[int, int] = defaultdict(int)
    for execution in executions:
        turns[execution.job_id].append(execution.due_at)
        done[execution.job_id] += execution.state == "completed"
    for job_id, moments in turns.items():
        assert len(set(moments)) == len(moments), f"a turn of job {job_id} ran twice"
    settled: dict[int, int] = defaultdict(int)
    for earlier, later in pairwise(holds):
        if earlier.job_id == later.job_id:
            assert earlier.ended_at is not None, "two hold one job"
            assert earlier.ended_at <= later.acquired_at, "two held one job at once"
    for hold in holds:
        settled[hold.execution_id] += hold.ending == "settled"
    for execution in executions:
        assert settled[execution.id] == (execution.state == "completed"), "an end without its owner"
    return done


def test_four_schedulers_run_each_turn_once(world: World) -> None:
    party = world.party()
    _jobs(party, world, FEW)
    party.database.close()  # no connection is shared with a fork; it opens anew
    with Crew() as crew:
        for _ in range(4):
            crew.start(schedule, world)
        for number in range(2):
            crew.start(work, world, f"w{number}", 0.0)
        _wait_until(lambda: _finished(party) >= 2 * FEW, 40)
    done = _check_history(party)

    assert len(done) == FEW
    assert min(done.values()) >= 1
    party.database.close()


def test_four_schedulers_queue_each_turn_of_200_jobs_once(world: World) -> None:
    party = world.party()
    _jobs(party, world, JOBS)
    party.database.close()  # no connection is shared with a fork; it opens anew
    with Crew() as crew:
        for _ in range(4):
            crew.start(schedule, world)
        for _ in range(TURNS):
            _wait_until(lambda: _queued(party) == JOBS, 60)
            _run_all(party, world)
        _wait_until(lambda: _queued(party) == JOBS, 60)
    with party.database.read() as session:
        turns = session.execute(select(Execution.job_id, Execution.due_at)).all()

    assert len(turns) == len(set(turns)), "a turn ran twice"
    assert Counter(job_id for job_id, _ in turns) == dict.fromkeys(range(1, JOBS + 1), TURNS + 1)
    party.database.close()


def test_random_kills_and_freezes_lose_nothing_and_double_nothing(world: World) -> None:
    party, chance = world.party(), random.Random(4)
    _jobs(party, world, 12)
    pause = threading.Event()
    party.database.close()  # no connection is shared with a fork; it opens anew
    with Crew() as crew:
        for _ in range(2):
            crew.start(schedule, world)
        for number in range(3):
            crew.start(work, world, f"w{number}", 0.02)
        for round_number in range(8):
            pause.wait(0.3)
            victim = chance.choice(crew.processes)
            assert victim.pid is not None
            if round_number % 2:
                os.kill(victim.pid, signal.SIGKILL)
                victim.join()
                crew.processes.remove(victim)
                crew.start(*((schedule, world) if round_number % 4 == 1 else (work, world, f"x{round_number}", 0.02)))
            else:
                os.kill(victim.pid, signal.SIGSTOP)
                pause.wait(0.6)
                os.kill(victim.pid, signal.SIGCONT)
        before = _check_history(party)
        for number in range(2):
            crew.start(work, world, f"last{number}", 0.0)
        crew.start(schedule, world)
        # Whatever was held by the dead comes back within a stale period: every job runs again.
        _wait_until(lambda: all(_check_history(party)[job] > before[job] for job in range(1, 13)), 40)
    _check_history(party)
    party.database.close()


def _hold_and_settle(world: World, line: Connection) -> None:
    party = world.party()
    lease = party.leases.take(holder(party.database, "late"))
    assert lease is not None
    line.send(lease.execution_id)
    line.recv()
    said = []
    for call in (
        lambda: party.leases.renew(lease),
        lambda: party.leases.release(lease),
        lambda: party.leases.settle(lease, RunEnding(result=RunResult.FAILED, start=StartPage(content_hash="late"))),
    ):
        try:
            call()
            said.append("done")
        except LeaseLost:
            said.append("lease_lost")
    line.send(said)


def test_an_owner_whose_lock_expired_cannot_undo_the_next_ones(world: World) -> None:
    party = world.party()
    _jobs(party, world, 1)
    party.scheduler.tick()
    ours, theirs = get_context("fork").Pipe()
    party.database.close()  # no connection is shared with a fork; it opens anew
    with Crew() as crew:
        late = crew.start(_hold_and_settle, world, theirs)
        assert ours.poll(30)
        execution_id = ours.recv()
        assert late.pid is not None
        os.kill(late.pid, signal.SIGSTOP)
        with party.database.write() as session:
            session.execute(update(Job).values(lock_heartbeat_at=world.clock().now().replace(year=2020)))
        assert party.scheduler.start() == 1
        fresh = party.leases.take(holder(party.database, "new"))
        os.kill(late.pid, signal.SIGCONT)
        ours.send("go on")
        assert ours.poll(30)
        assert ours.recv() == ["lease_lost"] * 3

    assert fresh is not None
    assert fresh.execution_id == execution_id
    party.leases.settle(fresh, DONE)
    with party.database.read() as session:
        holds = session.scalars(select(Hold).order_by(Hold.epoch)).all()
        assert [hold.ending for hold in holds] == ["lease_lost", "settled"]
        assert (holds[0].owner.partition("/")[0], holds[1].owner) == ("late", fresh.owner)
        assert session.get_one(Execution, execution_id).state == "completed"
    party.database.close()


def test_a_scheduler_that_starts_takes_nothing_from_a_living_worker(world: World) -> None:
    # Half a minute of ours: a slow machine must not make the living look dead.
    world = replace(world, settings=Settings(timings=replace(world.settings.timings, jobs_stale_s=1800.0)))
    party = world.party()
    _jobs(party, world, 10)
    party.scheduler.tick()
    leases = [party.leases.take(holder(party.database, f"w{number}")) for number in range(10)]
    party.database.close()  # no connection is shared with a fork; it opens anew
    with Crew() as crew:
        crew.start(schedule, world)
        pause = threading.Event()
        for _ in range(10):
            pause.wait(0.1)
            for lease in leases:
                assert lease is not None
                party.leases.renew(lease)  # LeaseLost if it had been stolen
    for lease in leases:
        assert lease is not None
        party.leases.settle(lease, DONE)
    assert _check_history(party) == dict.fromkeys(range(1, 11), 1)
    party.database.close()
