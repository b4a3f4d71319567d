"""The series: what settles is recorded once, in the same transaction, and no sum is lost however it is thinned out."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Series, Source
from holdfast.errors import Unavailable
from holdfast.jobs.endings import Counts, RunEnding, RunResult
from holdfast.series.counting import COUNTED, OUTCOMES, STATUSES, attempts_of
from holdfast.series.queries import fold_totals, queue_length, series_points, series_totals
from holdfast.series.thinning import thin_out
from holdfast.types import CircuitState, DomainLease, Outcome, Visit
from tests.clock import FakeClock
from tests.contract.frontier_bed import EXECUTION, Bed, found, many
from tests.jobs_bed import Bed as JobsBed
from tests.jobs_bed import open_bed

_SUMS = ", ".join(f"coalesce(sum({name}), 0)" for name in COUNTED)


def _series(bed: Bed, where: str = "step_s = 60") -> dict[str, int]:
    (row,) = bed.rows(f"SELECT {_SUMS} FROM series WHERE execution_id = {EXECUTION} AND {where}")
    return {name: int(number) for name, number in zip(COUNTED, row, strict=True)}


def _assert_as_settled(bed: Bed) -> None:
    """Compare the series with the attempts themselves: every one that is closed counts once."""
    for where in ("step_s = 60", "step_s = 0"):
        counts = _series(bed, where)
        closed = bed.rows("SELECT outcome, count(*) FROM page_crawls c WHERE outcome IS NOT NULL AND NOT EXISTS (SELECT"
                          " 1 FROM page_crawls n WHERE n.page_id = c.page_id AND n.attempt = c.attempt + 1)"
                          " GROUP BY outcome")  # fmt: skip
        assert {word: counts[word] for word in OUTCOMES if counts[word]} == dict(closed)
        retried = bed.rows("SELECT count(*) FROM page_crawls WHERE attempt > 1")
        assert counts["retries"] == retried[0][0]
        assert counts["queue"] == bed.frontier.open_count(EXECUTION)
        assert counts["links"] == bed.rows("SELECT count(*) FROM page_crawls WHERE attempt = 1")[0][0]
        size = bed.rows("SELECT coalesce(sum(wire_bytes), 0), coalesce(sum(requests), 0) FROM page_crawls")
        assert [counts["bytes"], counts["requests"]] == [int(number) for number in size[0]]


def _visit(bed: Bed, lease: DomainLease, attempt: Any, random: Random) -> Visit:
    status = random.choice([200, 200, 304, 404, 503])
    facts: dict[str, Any] = {"status": status, "requests": 1, "wire_bytes": random.randrange(5000)}
    if status == 503:
        retry_at = bed.clock.now() + timedelta(hours=1) if random.random() < 0.5 else None
        facts |= {"outcome": Outcome.BLOCKED_5XX, "reason": "http_503", "retry_at": retry_at}
    elif status == 404:
        facts |= {"outcome": Outcome.BLOCKED_4XX, "reason": "http_404"}
    return bed.visit(lease, attempt, found=tuple(many("b.example", random.randrange(4))), **facts)


def test_every_attempt_that_settles_is_in_the_series_once(bed: Bed) -> None:
    random = Random(4)
    bed.frontier.add(EXECUTION, [*many("a.example", 40), *many("c.example", 10)])
    for turn in range(6):
        for lease in bed.frontier.lease(EXECUTION, 7, domains=5, pages=6):
            visits = [_visit(bed, lease, attempt, random) for attempt in lease.attempts]
            bed.frontier.settle(EXECUTION, 7, visits)
            bed.frontier.settle(EXECUTION, 7, visits)
            bed.frontier.release(EXECUTION, 7, [bed.update(lease)])
        bed.clock.advance(25.0 * (turn + 1))
    bed.frontier.close_rest(EXECUTION, outcome=Outcome.EXCLUDED, reason="max_pages", limit=3)

    _assert_as_settled(bed)
    assert len(bed.rows("SELECT at FROM series WHERE step_s = 60")) > 2


def test_a_batch_whose_answer_was_lost_is_counted_once_when_it_is_offered_again(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 3))
    lease = bed.lease_one(7)
    frontier, switch = bed.breaking()
    visits = [bed.visit(lease, one, requests=1, found=(found("b.example", one.id),)) for one in lease.attempts]
    switch.breaks = True
    with pytest.raises(Unavailable):
        frontier.settle(EXECUTION, 7, visits)
    switch.breaks = False
    frontier.settle(EXECUTION, 7, visits)

    assert _series(bed)["success"] == 3
    _assert_as_settled(bed)


def test_a_process_that_is_killed_while_it_settles_leaves_neither_half(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 4))
    lease = bed.lease_one(7)
    visits = [bed.visit(lease, one, requests=1, wire_bytes=10) for one in lease.attempts]
    for settled in (False, True):
        child = os.fork()
        if child == 0:
            with closing(Bed(bed.url, bed.clock)) as other:
                if not settled:
                    other.frontier._connection.write = _killing(other.frontier._connection.write)  # type: ignore[method-assign]
                other.frontier.settle(EXECUTION, 7, visits)
                os.kill(os.getpid(), signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        _assert_as_settled(bed)
        assert _series(bed)["success"] == (4 if settled else 0)
    bed.frontier.settle(EXECUTION, 7, visits)

    assert _series(bed)["bytes"] == 40
    _assert_as_settled(bed)


def _killing(write: Any) -> Any:
    """Return a transaction that is killed when all is written and nothing committed."""

    class _Killed:
        def __enter__(self) -> Any:
            self._inner = write()
            return self._inner.__enter__()

        def __exit__(self, *_: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

    return _Killed


def test_what_is_reopened_joins_the_queue_and_takes_nothing_back(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 2))
    lease = bed.lease_one(7)
    bed.frontier.settle(
        EXECUTION, 7, [bed.visit(lease, one, outcome=Outcome.FAILED, reason="dns_failed") for one in lease.attempts]
    )
    assert bed.frontier.reopen(EXECUTION, every_domain=True) == 2

    counts = _series(bed, "step_s = 0")
    assert (counts["failed"], counts["queue"]) == (2, 2)


def test_statuses_times_and_circuits_are_counted_by_class(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 5))
    lease = bed.lease_one(7)
    told = ((200, 0.01), (301, 0.3), (404, 0.3), (503, 99.0), (999, -1.0))
    visits = []
    for one, (status, took_s) in zip(lease.attempts, told, strict=True):
        visit = bed.visit(lease, one, status=status, requests=1)
        visits.append(replace(visit, finished_at=visit.started_at + timedelta(seconds=took_s)))
    opened = bed.update(lease, circuit=CircuitState(state="open", failures=5, opened_at=bed.clock.now()))
    bed.frontier.settle(EXECUTION, 7, visits, [opened])
    bed.frontier.settle(EXECUTION, 7, [], [opened])
    bed.frontier.release(EXECUTION, 7, [bed.update(lease)])

    counts = _series(bed)
    assert [counts[name] for name in STATUSES] == [1, 1, 1, 1, 1]
    assert (counts["latency_50ms"], counts["latency_500ms"], counts["latency_longer"]) == (2, 2, 1)
    assert counts["latency_ms"] == 10 + 300 + 300 + 99_000
    assert (counts["circuits_opened"], counts["circuits_closed"]) == (1, 1)
    assert bed.rows("SELECT max(domains_waiting) FROM series")[0][0] == 1


@pytest.fixture
def jobs(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[JobsBed]:
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _ran(jobs: JobsBed, code: str, backend: str = "zimit") -> int:
    """Let a tool's run tell how far it is, twice, and end; return its execution."""
    job_id = jobs.once(code, config={"backend": backend})
    jobs.party.scheduler.tick()
    lease = jobs.party.taken()
    for crawled in (3, 5):
        jobs.party.leases.report(lease, Counts(items_crawled=crawled, items_failed=1, items_total=10), {})
        assert isinstance(jobs.clock, FakeClock)
        jobs.clock.advance(61)
    done = Counts(items_crawled=8, items_failed=2, items_total=10)
    jobs.party.leases.settle(lease, RunEnding(result=RunResult.COMPLETED, counts=done))
    return jobs.executions(job_id)[-1].id


def test_a_tools_run_records_what_it_tells_and_our_own_only_what_it_settles(jobs: JobsBed) -> None:
    _ran(jobs, "tool")
    _ran(jobs, "own", backend="native")

    with jobs.database.read() as session:
        totals = series_totals(session)
    assert set(totals) == {"tool"}
    told = totals["tool"]
    assert (told["pages"], told["failed"], told["queue"]) == (8, 2, 0)


def test_thinning_moves_sums_and_counters_never_fall(jobs: JobsBed) -> None:
    assert isinstance(jobs.clock, FakeClock)
    seen = []
    for turn in range(3):
        _ran(jobs, f"s{turn}")
        jobs.clock.advance(2 * 86_400)
        for days in (0, 10, 100, 2000):
            now = jobs.clock.now() + timedelta(days=days)
            thin_out(jobs.database, now=now, portions=50)
            with jobs.database.read() as session:
                seen.append(_all(series_totals(session)))
    for before, after in pairwise(seen):
        assert all(after[name] >= before[name] for name in COUNTED if name != "queue")
    assert (seen[-1]["pages"], attempts_of(seen[-1])) == (24, 30)
    with jobs.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Series)) == 0, (
            "2,000 days later only the totals of sources are left"
        )


def _all(totals: dict[str, Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counts in totals.values():
        total.update(counts)
    return total


def test_a_run_with_a_queue_keeps_it_when_its_total_is_folded(jobs: JobsBed) -> None:
    number = _ran(jobs, "tool")
    with jobs.database.write() as session:
        total = session.get_one(Series, (number, 0, from_micros(0)))
        total.queue = 7
    with jobs.database.write() as session:
        assert fold_totals(session, before=jobs.clock.now() + timedelta(days=1), limit=10) == 1
        assert fold_totals(session, before=jobs.clock.now() + timedelta(days=1), limit=10) == 0

    with jobs.database.write() as session:
        assert series_totals(session)["tool"]["queue"] == 7
        session.get_one(Execution, number).state = "stopped"
        session.flush()
        assert queue_length(session) == 7


def test_points_have_no_holes_and_know_how_long_the_queue_was(bed: Bed) -> None:
    began = bed.clock.now()
    bed.frontier.add(EXECUTION, many("a.example", 10))
    bed.clock.advance(120)
    lease = bed.lease_one(7)
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, one) for one in lease.attempts[:4]])

    start = began.replace(second=0, microsecond=0)
    until = start + timedelta(minutes=4)
    with closing(Database(bed.url)) as database, database.write() as session:
        session.add(Execution(id=EXECUTION, job_id=_job(session), number=1, state="running", output_dir="",
                              created_at=began))  # fmt: skip
        session.flush()
        points = series_points(session, since=start, until=until, step_s=60, execution_id=EXECUTION)
    assert [point.counts["success"] for point in points] == [0, 0, 4, 0]
    assert [point.queue for point in points] == [10, 10, 6, 6]
    assert to_micros(points[0].at) % 60_000_000 == 0


def _job(session: Session) -> int:
    now = FakeClock().now()
    source = Source(code="a", name="a", created_at=now, updated_at=now)
    session.add(source)
    session.flush()
    job = Job(source_id=source.id, kind="adhoc", fingerprint="x", created_at=now)
    session.add(job)
    session.flush()
    return job.id
