"""What is kept of runs on both databases: metrics, history that is pruned, logs, events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from holdfast.db.engine import Database
from holdfast.db.models import Execution, LogLine, WarcFile
from holdfast.errors import Unavailable
from holdfast.jobs.endings import Counts, RunEnding, RunResult
from holdfast.jobs.journal import (
    LogBook,
    all_lines,
    entry,
    last_event,
    last_lines,
    payload,
    prune_aged,
    read_events,
    read_lines,
)
from holdfast.jobs.schedule_queries import count_hour
from holdfast.jobs.states import JobAction, State
from tests.clock import FakeClock
from tests.jobs_bed import DONE, Bed, failed, open_bed


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def test_metrics_count_jobs_and_the_last_day(bed: Bed, clock: FakeClock) -> None:
    ids = [bed.once(f"s{n}", max_retries=0) for n in range(4)]
    for job_id in ids[:3]:
        bed.set_next_run(job_id, clock.now() - timedelta(seconds=10 - job_id))
        bed.run_once(job_id, failed() if job_id == ids[2] else DONE, seconds=2)
    bed.party.scheduler.tick()
    bed.party.taken()
    clock.advance(301)
    bed.party.scheduler.tick()

    metrics = bed.party.scheduler.metrics
    assert metrics is not None
    assert (metrics.jobs["completed"], metrics.jobs["failed"], metrics.jobs["running"]) == (2, 1, 0)
    assert set(metrics.jobs) == set(State)
    assert (metrics.executions.total, metrics.executions.average_duration_ms) == (3, 2000.0)
    assert metrics.executions.success_rate == pytest.approx(2 / 3)
    assert metrics.stale_locks_cleared == 1
    assert not any("succeeded" in warning for warning in metrics.warnings), "three runs are too few for a rate"
    with bed.database.write() as session:
        count_hour(session, clock.now().replace(minute=0, second=0), failed=2)
    clock.advance(301)
    bed.party.scheduler.tick()
    assert bed.party.scheduler.metrics is not None
    assert any("succeeded" in warning for warning in bed.party.scheduler.metrics.warnings)
    clock.advance(2 * 86400)
    bed.party.scheduler.tick()
    assert bed.party.scheduler.metrics is not None
    assert bed.party.scheduler.metrics.executions.success_rate == 1.0


def test_history_is_pruned_to_the_newest_hundred(bed: Bed, clock: FakeClock) -> None:
    bed.settings = bed.settings.model_copy(update={"history_rows": 3})
    bed.party = bed.another()
    job_id = bed.recurring(minutes=60)
    bed.set_next_run(job_id, clock.now())
    for number in range(5):
        bed.run_once(job_id, RunEnding(result=RunResult.COMPLETED, metrics={"n": number}), seconds=0)
        clock.advance(3600)

    assert [e.number for e in bed.executions(job_id)] == [3, 4, 5]
    assert [e.metrics["n"] for e in bed.executions(job_id)] == [2, 3, 4]
    assert bed.job(job_id).total_runs == 5


def test_what_is_older_than_thirty_days_loses_its_log_and_stays_if_something_refers_to_it(
    bed: Bed, clock: FakeClock
) -> None:
    job_id = bed.recurring(minutes=60)
    bed.set_next_run(job_id, clock.now())
    for ending in (DONE, DONE, failed()):
        bed.run_once(job_id, ending, seconds=0)
        clock.advance(3600)
    plain, filed, retried = bed.executions(job_id)
    with bed.database.write() as session:
        session.add(WarcFile(execution_id=filed.id, key="a.warc.gz", state="sealed", created_at=clock.now()))
    book = LogBook(bed.database, clock, retried.id, bed.settings)
    book.write("error", "crawler.error", "boom")
    book.flush()
    clock.advance(31 * 86400)
    bed.run_once(job_id)

    kept = {e.id: e for e in bed.executions(job_id)}
    assert plain.id not in kept
    assert kept[filed.id].pruned_at is not None
    assert (kept[retried.id].stack, kept[retried.id].error) == (None, "it broke")
    assert kept[max(kept)].output_dir == retried.output_dir
    assert kept[max(kept)].pruned_at is None
    with bed.database.read() as session:
        assert session.scalars(select(LogLine.id)).all() == []


def test_old_things_are_looked_for_once_a_minute_however_often_locks_are(bed: Bed, clock: FakeClock) -> None:
    bed.settings = bed.settings.model_copy(update={"history_days": 1.0})
    bed.timings = replace(bed.timings, jobs_sweep_s=0.5)
    bed.party = bed.another()
    first, second = bed.recurring("first"), bed.recurring("second")
    scheduler = bed.another().scheduler
    for job_id, looks in ((first, [(0, 1)]), (second, [(1, 0), (30, 0), (30, 1)])):
        bed.set_next_run(job_id, clock.now())
        bed.run_once(job_id, DONE, seconds=0)
        clock.shift_wall(2 * 86400.0)
        for seconds, pruned in looks:
            clock.advance(seconds)
            assert scheduler.tick().pruned == pruned, (job_id, seconds)


def test_a_long_log_is_let_go_of_in_short_transactions(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60)
    bed.set_next_run(job_id, clock.now())
    bed.run_once(job_id, DONE, seconds=0)
    (old,) = bed.executions(job_id)
    line = {"execution_id": old.id, "at": clock.now(), "level": 20, "category": "crawler.fetch", "message": "m",
            "fields": {}}  # fmt: skip
    with bed.database.write() as session:
        session.execute(insert(LogLine), [line] * 25)
        session.add(WarcFile(execution_id=old.id, key="a.warc.gz", state="sealed", created_at=clock.now()))
    later = clock.now() + timedelta(days=31)

    left = []
    for _ in range(3):
        with bed.database.write() as session:
            stripped, is_all = prune_aged(session, before=later, now=later, lines=10)
        with bed.database.read() as session:
            left.append((session.scalar(select(func.count()).select_from(LogLine)), stripped, is_all))
    assert left == [(15, 0, False), (5, 0, False), (0, 1, True)]
    assert bed.executions(job_id)[0].pruned_at == later


def test_logs_are_structured_bounded_and_readable_while_they_grow(bed: Bed, clock: FakeClock) -> None:
    bed.settings = bed.settings.model_copy(update={"log_lines": 100})
    job_id = bed.once()
    bed.party.scheduler.tick()
    execution_id = bed.party.taken().execution_id
    book = LogBook(bed.database, clock, execution_id, bed.settings)
    book.write("debug", "crawler.fetch", "below the level")
    for number in range(150):
        book.write("info", "crawler.fetch", f"page {number}", url="https://ex.example/", cookie="secret")
    book.flush()
    book.write("error", "crawler.error", "x" * 10_000, huge="y" * 20_000)
    book.flush()

    with bed.database.read() as session:
        first = read_lines(session, execution_id, limit=10)
        rest = read_lines(session, execution_id, after=first[-1].id)
        errors = read_lines(session, execution_id, level="error")
        tail = last_lines(session, execution_id, limit=2)
        execution = session.get_one(Execution, execution_id)
    assert len(first) + len(rest) == 99
    assert (execution.log_lines, execution.log_dropped) == (99, 52)
    assert [line.id for line in tail] == [rest[-2].id, rest[-1].id]
    shown = entry(first[0], job_id=job_id)
    assert (shown["schema_version"], shown["level"], shown["category"]) == (1, "info", "crawler.fetch")
    assert shown["fields"] == {"url": "https://ex.example/", "cookie": "[redacted]"}
    assert len(errors) == 1
    assert (len(errors[0].message), errors[0].fields["truncated"]) == (4096, True)
    assert len(list(all_lines(bed.database, execution_id))) == 99


class _Away(Database):
    """A database that is away until it is told to be back."""

    is_away = True

    @contextmanager
    def write(self) -> Iterator[Session]:
        if self.is_away:
            raise Unavailable("away")
        with super().write() as session:
            yield session


def test_while_the_database_is_away_lines_wait_in_bounds_and_the_rest_is_counted(bed: Bed, clock: FakeClock) -> None:
    bed.once()
    bed.party.scheduler.tick()
    execution_id = bed.party.taken().execution_id
    with closing(_Away(bed.database.url)) as database:
        book = LogBook(database, clock, execution_id, bed.settings)
        for number in range(10_050):
            with suppress(Unavailable):
                book.write("info", "crawler.fetch", f"page {number}")
        database.is_away = False
        book.flush()

    with bed.database.read() as session:
        execution = session.get_one(Execution, execution_id)
        tail = last_lines(session, execution_id, limit=1)
    assert (execution.log_lines, execution.log_dropped) == (10_000, 50)
    assert tail[0].message == "page 9999"


ODD = "half \ud800, nothing \x00, a whole \U0001f600 and the text \\u0000"
STORED = "half ?, nothing \ufffd, a whole \U0001f600 and the text \\u0000"


def test_what_a_broken_machine_says_is_kept_as_far_as_it_can_be(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once(max_retries=0)
    bed.party.scheduler.tick()
    lease = bed.party.taken()
    book = LogBook(bed.database, clock, lease.execution_id, bed.settings)
    book.write("info", "crawler.fetch", ODD, path=ODD, rate=float("nan"), nested={"list": [ODD, float("inf")]})
    book.flush()
    bed.party.leases.report(lease, Counts(items_crawled=1), {"top": ODD})
    bed.party.leases.settle(lease, RunEnding(
        result=RunResult.FAILED, error=ODD, reason=ODD, stack="x" * 40_000 + ODD, stage="crawl",
        metrics={"top_errors": [{"message": ODD, "count": float("nan")}]}, artifacts={"final_zim": ODD},
    ))  # fmt: skip

    (run,) = bed.executions(job_id)
    assert (run.error, run.reason, (run.stack or "")[-len(STORED) :]) == (STORED, STORED, STORED)
    assert len(run.stack or "") == 32_000
    assert run.metrics["top_errors"] == [{"message": STORED, "count": None}]
    assert run.artifacts == {"final_zim": STORED}
    assert bed.job(job_id).error_message == STORED
    with bed.database.read() as session:
        (line,) = read_lines(session, run.id)
        assert (line.message, line.fields["path"], line.fields["rate"]) == (STORED, STORED, None)
        assert line.fields["nested"] == {"list": [STORED, None]}
        told = [one.data for one in read_events(session, after=0, job_id=job_id) if one.name == "job:completed"]
    assert told[0]["error_message"] == STORED


@pytest.mark.parametrize("how", ["released", "lost"])
def test_a_word_that_was_said_to_a_run_reaches_its_next_holder(bed: Bed, clock: FakeClock, how: str) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken("first")
    with bed.database.write() as session:
        session.get_one(Execution, lease.execution_id).stop_requested = "cancel"
    if how == "released":
        bed.party.leases.release(lease)
    else:
        clock.advance(bed.timings.jobs_stale_s + 1)
        assert bed.party.scheduler.sweep() == 1

    again = bed.party.taken("second")
    assert (again.execution_id, bed.party.leases.poll_signals(again).stop) == (lease.execution_id, "cancel")
    bed.party.leases.settle(again, RunEnding(result=RunResult.CANCELLED, reason="discarded"))
    assert [(run.state, run.stop_requested) for run in bed.executions(job_id)] == [("cancelled", None)]


def test_discarded_run_leaves_the_schedule_of_its_job(bed: Bed) -> None:
    jobs = [bed.recurring("monthly", minutes=60), bed.once("single")]
    bed.party.scheduler.tick()
    for _ in jobs:
        bed.party.leases.settle(bed.party.taken(), RunEnding(result=RunResult.CANCELLED, reason="discarded"))

    recurring, single = map(bed.job, jobs)
    assert (recurring.state, recurring.next_run_at is not None) == ("scheduled", True)
    assert (single.state, single.next_run_at) == ("cancelled", None)


def test_what_a_run_cost_adds_up_over_its_holders(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once(max_retries=0)
    bed.party.scheduler.tick()
    first = bed.party.taken("first")
    bed.party.leases.report(first, Counts(items_crawled=3, items_total=9, cpu_ms=100, peak_memory_bytes=50), {"n": 1})
    bed.party.leases.release(first)
    second = bed.party.taken("second")
    bed.party.leases.report(second, Counts(items_crawled=5, items_total=9, cpu_ms=20, peak_memory_bytes=70), {"n": 2})
    clock.advance(bed.timings.jobs_stale_s + 1)
    bed.party.scheduler.sweep()
    third = bed.party.taken("third")
    bed.party.leases.report(third, Counts(items_crawled=6, items_total=9, cpu_ms=7, peak_memory_bytes=60), {"n": 3})
    (run,) = bed.executions(job_id)
    assert (run.cpu_ms, run.peak_memory_bytes) == (127, 70)
    bed.party.leases.settle(third, failed())

    (run,) = bed.executions(job_id)
    assert (run.cpu_ms, run.peak_memory_bytes, run.items_crawled, run.items_total) == (127, 70, 6, 9)
    assert run.metrics == {"n": 3}


def test_a_run_of_a_cancelled_job_that_is_lost_ends_with_all_that_an_end_has(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken()
    bed.party.leases.report(lease, Counts(items_crawled=3), {})
    bed.party.act(job_id, JobAction.CANCEL)
    clock.advance(bed.timings.jobs_stale_s + 1)
    bed.party.scheduler.sweep()

    (run,) = bed.executions(job_id)
    assert (run.state, run.reason, run.items_crawled, run.stop_requested) == ("cancelled", "lease_lost", 3, None)
    assert run.duration_ms == round((bed.timings.jobs_stale_s + 1) * 1000)
    assert (bed.job(job_id).total_runs, bed.events(job_id)[-1]) == (1, "job:completed cancelled")


def test_old_events_are_let_go(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    clock.advance(8 * 86400)
    bed.party.scheduler.tick()

    assert bed.events(job_id) == ["job:status pending"]
    with bed.database.read() as session:
        (told,) = read_events(session, after=0, job_id=job_id)
        assert last_event(session) == told.id
    assert payload(told) == {
        "job_id": job_id, "execution_id": bed.executions(job_id)[0].id, "status": "pending",
        "details": {"queued": True}, "timestamp": clock.now().isoformat(),
    }  # fmt: skip
