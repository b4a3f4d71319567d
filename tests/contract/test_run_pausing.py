"""A run that is paused and resumed, over HTTP and as rows, on both databases: who, when, what counts, what is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.config import DiskSettings, RecoverySettings, Settings
from holdfast.db import connect
from holdfast.db.models import Execution, Job
from holdfast.jobs import execution_queries, executions
from holdfast.jobs.administration.run_pausing import PausedRun, pause_run, resume_run, runs_under_way
from holdfast.jobs.endings import Counts
from holdfast.jobs.executions import ExecutionEnding, ExecutionOptions, WorkTime
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.states import JobAction
from holdfast.jobs.views.status import read_status
from holdfast.operations.crawl_watchdog import RecoveryCase, recover
from holdfast.sources.plan import CrawlPlan
from holdfast.wiring.jobs import Jobs
from tests.api_bed import Server
from tests.clock import FakeClock
from tests.contract.crawl_bed import Crawl, crawl
from tests.jobs_bed import DONE, Bed, holder, open_bed

_PAUSE, _RESUME = "/api/admin/crawls/pause", "/api/admin/crawls/resume"


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path, takeovers=1) as made:
        yield made


def _orders(running: Crawl) -> bool:
    with running.raw_db.read() as tx:
        return execution_queries.run_orders(tx, running.raw_db.dialect, execution_id=running.id).is_paused


def test_a_run_is_paused_and_resumed_and_both_are_audited_told_and_heard(server: Server) -> None:
    with crawl(server) as running:
        first = server.ask("POST", _PAUSE, execution=running.id)
        server.clock.advance(90)
        again = server.ask("POST", _PAUSE, execution=running.id)
        waits, shown = running.status(), server.get(f"/api/v1/executions/{running.id}").json()
        heard = _orders(running)
        goes_on = server.ask("POST", _RESUME, execution=running.id)
        still = server.ask("POST", _RESUME, execution=running.id)
        after, heard_after = running.status(), _orders(running)
        events = [one for one in server.get("/api/v1/events").json()["events"] if "run_paused" in str(one)]
        audited = server.get("/api/admin/audit", params={"action": "execution"}).json()

    assert (first.status_code, first.json()["isChanged"], first.json()["pausedSeconds"]) == (200, True, 0.0)
    # Idempotent: since when, and by whom, is as it was.
    assert again.json() == {**first.json(), "isChanged": False, "pausedSeconds": 90.0}
    assert (waits.state, waits.condition, waits.paused_seconds) == ("running", "paused", 90.0)
    assert (shown["status"], shown["paused_at"], shown["paused_by"]) == (
        "running",
        first.json()["pausedAt"],
        first.json()["pausedBy"],
    )
    assert (heard, heard_after) == (True, False)
    assert goes_on.json() == {**first.json(), "pausedAt": None, "pausedBy": None, "pausedSeconds": 90.0}
    assert still.json()["isChanged"] is False
    assert (after.condition, after.paused_at, after.paused_seconds) == ("running", None, 90.0)
    assert [one["data"]["details"] for one in events] == [{"run_paused": True}, {"run_paused": False}]
    assert str(audited).count("execution.paused") == str(audited).count("execution.resumed") == 1


@pytest.mark.parametrize("path", [_PAUSE, _RESUME])
def test_what_is_over_cannot_wait_and_the_answer_names_the_next_step(server: Server, path: str) -> None:
    with crawl(server, state="completed") as over:
        refused = server.ask("POST", path, execution=over.id)
    missing = server.ask("POST", path, execution=9999)

    assert (refused.status_code, refused.json()["code"]) == (409, "not_pausable")
    assert f"holdfast report {over.id}" in refused.json()["detail"]
    assert (missing.status_code, "holdfast status" in missing.json()["detail"]) == (404, True)


def _altered(server: Server, running: Crawl, statement: str) -> str:
    with running.raw_db.write() as tx:
        tx.execute(statement, (running.id,))
    answer = server.ask("POST", _PAUSE, execution=running.id)
    assert answer.status_code == 409
    return str(answer.json()["detail"])


def test_pause_is_refused_for_ending_queued_and_tool_runs(server: Server) -> None:
    with crawl(server) as running:
        ends = _altered(server, running, "UPDATE executions SET stop_requested = 'drain' WHERE id = ?")
        waits = _altered(server, running, "UPDATE executions SET state = 'queued', started_at = NULL WHERE id = ?")
    with crawl(server, code="tool") as other:
        tool = _altered(
            server,
            other,
            'UPDATE executions SET config = \'{"backend": "zimit"}\' WHERE id = ?',
        )
    with crawl(server, code="brought", kind="import") as brought:
        imported = _altered(server, brought, "UPDATE executions SET reason = NULL WHERE id = ?")

    assert ["is stopping" in ends, "holdfast job cancel" in waits, "holdfast stop" in tool] == [True] * 3
    assert "no crawl of our own crawler" in imported


_OF_THE_JOB = """UPDATE jobs SET config = '{"backend": "zimit"}'
 WHERE id = (SELECT job_id FROM executions WHERE id = ?)"""


def test_whose_a_run_is_the_run_says_and_not_what_its_source_is_now(server: Server) -> None:
    with crawl(server) as running:
        with running.raw_db.write() as tx:
            tx.execute(_OF_THE_JOB, (running.id,))
        ours = server.ask("POST", _PAUSE, execution=running.id)
        with running.raw_db.write() as tx:
            tx.execute('UPDATE executions SET config = \'{"backend": "zimit"}\' WHERE id = ?', (running.id,))
        let_go = server.ask("POST", _RESUME, execution=running.id)
        theirs = server.ask("POST", _PAUSE, execution=running.id)
        # Its runner has written nothing yet: then what it will run with counts.
        unbegun = _altered(server, running, "UPDATE executions SET config = '{}' WHERE id = ?")

    assert (ours.status_code, let_go.status_code, theirs.status_code) == (200, 200, 409)
    assert let_go.json()["pausedAt"] is None
    assert "no crawl of our own crawler" in unbegun


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ("state = 'running'", "pause"),
        ("state = 'queued'", "pause"),
        ("state = 'queued', started_at = NULL", None),
        ("paused_at = 1", "resume"),
        ("paused_at = 1, state = 'queued'", "resume"),
        ("paused_at = 1, stop_requested = 'drain'", None),
        ('paused_at = 1, config = \'{"backend": "zimit"}\'', "resume"),
        ("stop_requested = 'cancel'", None),
        ('config = \'{"backend": "zimit"}\'', None),
        ("state = 'failed', finished_at = 1", None),
    ],
)
def test_a_job_says_what_may_be_done_to_its_run_and_the_doors_agree(
    server: Server, change: str, may: str | None
) -> None:
    with crawl(server) as running:
        with running.raw_db.write() as tx:
            tx.execute(f"UPDATE executions SET {change} WHERE id = ?", (running.id,))
        [job] = server.get("/api/v1/jobs").json()["jobs"]
        door = _RESUME if may == "resume" else _PAUSE
        answer = server.ask("POST", door, execution=running.id)

    assert job["run_may"] == may
    assert (answer.status_code, answer.json().get("isChanged")) == ((409, None) if may is None else (200, True))


def _leased(bed: Bed) -> ExecutionLease:
    bed.party.scheduler.tick()
    return bed.party.taken("far/1")


def _paused(bed: Bed, execution_id: int) -> PausedRun:
    with bed.database.write() as session:
        return pause_run(session, bed.clock, execution_id)


def _resumed(bed: Bed, execution_id: int) -> PausedRun:
    with bed.database.write() as session:
        return resume_run(session, bed.clock, execution_id)


def test_a_pause_is_no_time_at_work_whoever_holds_the_run_meanwhile(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    lease = _leased(bed)
    clock.advance(10)
    _paused(bed, lease.execution_id)
    clock.advance(100)
    with closing(connect(bed.url)) as raw_db:
        bed.party.leases.renew(lease)
        seen = read_status(raw_db, clock, lease.execution_id).run_seconds
        bed.party.leases.release(lease)
        clock.advance(1000)
        lease = bed.party.taken("near/2")
        clock.advance(50)
        between = read_status(raw_db, clock, lease.execution_id)
        done = _resumed(bed, lease.execution_id)
        clock.advance(7)
        bed.party.leases.renew(lease)
        after = read_status(raw_db, clock, lease.execution_id).run_seconds
        _paused(bed, lease.execution_id)
        clock.advance(3)
        bed.party.leases.settle(lease, DONE)
    [run] = bed.executions(job_id)

    assert (seen, between.run_seconds, between.condition) == (10.0, 10.0, "paused")
    assert (done.paused_seconds, after) == (1150.0, 17.0)
    assert (run.run_seconds, run.paused_seconds, run.paused_at, run.paused_by) == (17.0, 1153.0, None, None)
    assert run.duration_ms == 1_170_000


def test_workers_that_die_while_it_is_paused_do_not_count_against_it(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    for _ in range(4):
        bed.party.scheduler.tick()
        lease = bed.party.taken()
        _paused(bed, lease.execution_id)
        clock.advance(3600)
        assert bed.party.scheduler.sweep() == 1
    [run] = bed.executions(job_id)

    assert (run.state, run.takeovers, run.paused_at is not None) == ("queued", 0, True)


def _handed_back(bed: Bed, clock: FakeClock) -> int:
    """Return a job whose run was handed back while it was paused, half a minute ago."""
    job_id = bed.once()
    lease = _leased(bed)
    _paused(bed, lease.execution_id)
    bed.party.leases.release(lease)
    clock.advance(30)
    return job_id


@pytest.mark.parametrize("how", [JobAction.PAUSE, JobAction.CANCEL, None])
def test_a_paused_run_that_is_taken_back_before_a_worker_takes_it_up_is_paused_no_more(
    bed: Bed, clock: FakeClock, how: JobAction | None
) -> None:
    job_id = _handed_back(bed, clock)
    if how is None:
        bed.change(job_id, lambda job: setattr(job, "state", "failed"))
        assert bed.party.leases.take(holder(bed.party.database, "far")) is None
    else:
        with bed.database.write() as session:
            bed.party.actions.act(session, job_id, how)
    [run] = bed.executions(job_id)

    assert (run.state, run.paused_at, run.paused_by, run.paused_seconds) == ("cancelled", None, None, 30.0)


def _look(bed: Bed) -> RecoveryCase:
    party = bed.party
    settings = Settings(
        home=bed.home, disk=DiskSettings(free_bytes=0, free_percent=0), recovery=RecoverySettings(keep_running=0)
    )
    jobs = Jobs(
        settings=settings,
        database=bed.database,
        clock=bed.clock,
        placement=party.placement,
        actions=party.actions,
        scheduler=party.scheduler,
        leases=party.leases,
    )
    found = recover(jobs, apply=False)
    assert found is not None
    [case] = found[0]
    return case


def test_a_paused_run_is_not_taken_for_a_stalled_one_nor_is_one_that_was_just_resumed(
    bed: Bed, clock: FakeClock
) -> None:
    bed.once()
    lease = _leased(bed)
    bed.party.leases.report(lease, Counts(items_crawled=40), {})
    _paused(bed, lease.execution_id)
    clock.advance(9 * 3600)
    paused = _look(bed)
    _resumed(bed, lease.execution_id)
    clock.advance(60)
    resumed = _look(bed)
    clock.advance(3 * 3600)

    assert (paused.reason, paused.watched.activity.idle_s) == ("healthy", 0.0)
    assert resumed.reason == "healthy"
    assert _look(bed).action == "restart_stalled"


def test_a_crawl_of_its_own_counts_no_pause_and_forgets_it_when_it_ends(
    migrated_url: str, clock: FakeClock, tmp_path: Path, bed: Bed
) -> None:
    plan = CrawlPlan(seeds=("https://a.example/",), contact="tests@example.org")
    with closing(connect(migrated_url)) as raw_db:
        begun = executions.begin(raw_db, clock, plan, ExecutionOptions(home=tmp_path), is_working=lambda _: False)
        time = WorkTime(clock, begun)
        clock.advance(4)
        _paused(bed, begun.execution_id)
        time.rest(is_paused=True)
        clock.advance(1000)
        time.rest(is_paused=True)
        with raw_db.write() as tx:
            time.write(tx)
        assert time.used_s == 4.0
        with bed.database.read() as session:
            under_way = [runs_under_way(session, are_paused=paused) for paused in (True, False)]
        _resumed(bed, begun.execution_id)
        time.rest(is_paused=False)
        clock.advance(2)
        _paused(bed, begun.execution_id)
        time.rest(is_paused=True)
        clock.advance(5)

        executions.end(raw_db, clock, ExecutionEnding(begun.execution_id, "stopped", "stopped"), time=time)

        status = read_status(raw_db, clock, begun.execution_id)
    assert under_way == [[begun.execution_id], []]
    assert (status.run_seconds, status.paused_seconds, status.paused_at) == (6.0, 1005.0, None)
    with bed.database.read() as session:
        assert session.get_one(Job, session.get_one(Execution, begun.execution_id).job_id).state is None


def test_who_resumes_the_job_of_a_paused_run_is_told_how_to_resume_the_run(server: Server) -> None:
    with crawl(server) as running:
        server.ask("POST", _PAUSE, execution=running.id)
        [job] = server.get("/api/v1/jobs").json()["jobs"]
        answer = server.ask("POST", f"/api/v1/jobs/{job['id']}/resume")

    assert (answer.status_code, _RESUME in answer.json()["error"]) == (400, True)
