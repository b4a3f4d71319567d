"""A poll that has nothing to do ends at once, and one whose feeds all failed is no failed run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config import Settings
from holdfast.jobs.administration.source_jobs import follow_all, run_soon
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.journal import LogBook
from holdfast.jobs.kinds import FEED
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.store import crawl_job
from holdfast.sources import registry as sources
from holdfast.sources.queries import note_search
from holdfast.wiring.jobs import open_jobs
from holdfast.worker.feeds import FeedJobs, FeedRunner, as_poll
from holdfast.worker.runner import RunnerHolding
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed


@pytest.fixture
def jobs(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as bed:
        yield bed


def _lease(jobs: Bed) -> ExecutionLease:
    """Return the lease of a poll of a source that has no feeds and was searched a moment ago."""
    source_id = jobs.source("ex", feeds=True)
    follow_all(jobs.database, jobs.party.actions, jobs_settings(jobs).feeds)
    with jobs.database.write() as session:
        note_search(session, source_id=source_id, at=jobs.clock.now())
        run_soon(session, jobs.clock, jobs.party.actions, source_id)
    jobs.party.scheduler.tick()
    return jobs.party.taken()


def jobs_settings(jobs: Bed) -> Settings:
    """Return settings that lead to the bed's database; what is searched once is not searched again here."""
    return Settings(home=jobs.home, database_url=jobs.url, feeds={"search_hours": 1e6})


def _run(jobs: Bed, lease: ExecutionLease) -> RunEnding | None:
    book = LogBook(jobs.database, jobs.clock, lease.execution_id, jobs.settings)
    return FeedRunner(jobs_settings(jobs)).run(lease, RunnerHolding(book, jobs.clock, report=lambda *_: None))


def test_a_poll_with_nothing_due_starts_no_process(jobs: Bed) -> None:
    lease = _lease(jobs)

    ending = _run(jobs, lease)

    assert ending is not None
    assert (ending.result, ending.reason, ending.index_state) == (RunResult.COMPLETED, "nothing_due", None)
    assert not lease.output_dir.exists()
    jobs.party.leases.settle(lease, ending)
    assert jobs.job(lease.job.id).state == "scheduled"


def test_a_poll_of_a_source_that_zimit_crawls_leaves_it_alone(jobs: Bed) -> None:
    lease = _lease(jobs)
    with jobs.database.write() as session:
        sources.edit(session, jobs.clock, "ex", {"config": {"backend": "zimit"}})
    jobs.upsert(lease.source.id)
    jobs.party.scheduler.tick()
    crawl = jobs.party.taken("w2")
    assert crawl.job.kind == "crawl"

    ending = _run(jobs, lease)

    assert ending is not None
    assert (ending.result, ending.reason) == (RunResult.COMPLETED, "crawl_is_running")


def test_a_worker_makes_the_feed_jobs_that_sources_want(jobs: Bed) -> None:
    source_id = jobs.source("ex", feeds=True)
    with open_jobs(jobs_settings(jobs)) as opened:
        made = FeedJobs(opened)
        looks = [made.look(), made.look()]

    with jobs.database.read() as session:
        job = crawl_job(session, source_id=source_id, kind=FEED)
    assert looks == [1, 0]
    assert job is not None
    assert (job.kind, job.schedule_enabled, job.adaptive_scheduling) == ("feed", True, False)


def test_what_feeds_answer_is_no_failure_of_the_run() -> None:
    failed = RunEnding(
        result=RunResult.FAILED, failure=FailureCause.FAILED, reason="nothing_captured", error="http_404 (1)"
    )
    broken = RunEnding(result=RunResult.FAILED, failure=FailureCause.FAILED, reason="8 processes died in a row")

    assert as_poll(broken, has_files=True) is broken
    ending = as_poll(failed, has_files=False)
    assert (ending.result, ending.failure, ending.error, ending.index_state) == (RunResult.COMPLETED, None, None, None)
    assert as_poll(failed, has_files=True).index_state == "pending"
