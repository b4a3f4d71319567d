"""A worker and real crawls of the test site: everything that follows a due job, and what may come between."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.cli.worker import reconcile_indexing, recover_stale
from holdfast.jobs.states import JobAction
from tests import patience
from tests.flow.crawler import Crawler, fetched
from tests.flow.faults.bed import arm, disarmed, rows, until
from tests.flow.plant import Plant
from tests.jobs_bed import holder
from tests.site import Site, judge
from tests.site.book import html, links


@pytest.fixture
def plant(crawler: Crawler) -> Iterator[Plant]:
    """An installation on SQLite; its processes do not outlive the test."""
    made = Plant(crawler)
    yield made
    made.end()


@pytest.fixture
def any_plant(any_crawler: Crawler) -> Iterator[Plant]:
    """The same on each kind of database."""
    made = Plant(any_crawler)
    yield made
    made.end()


def _status(plant: Plant) -> dict[str, object]:
    found: dict[str, object] = json.loads(plant.crawler.run("status", "--json").stdout)["jobs"]
    return found


def test_once_runs_what_is_due_and_all_that_follows(any_plant: Plant) -> None:
    with Site.plain(hosts=2, pages=12) as site:
        first = any_plant.job("first", site.url(0), max_depth=-1, user_agents=["One", "Two"])
        hourly = {"interval_minutes": 1, "interval_type": "hours", "schedule_enabled": True}
        second = any_plant.job("second", site.url(1), spec=hourly, max_pages=5)
        report = any_plant.once_by_command()
        agents = {entry.user_agent for entry in site.settled() if entry.host == site.hosts[0]}

    assert report["endings"] == {"completed": 2}
    runs = any_plant.executions()
    assert [(run.state, run.reason, run.index_state) for run in runs] == [
        ("completed", "done", "indexed"),
        ("completed", "max_pages", "indexed"),
    ]
    assert [run.items_crawled for run in runs] == [12, 5]
    assert all(run.items_indexed >= run.items_crawled and run.cpu_ms and run.peak_memory_bytes for run in runs)
    assert runs[0].metrics["status_codes"]["200"] == 12
    assert runs[0].metrics["extraction_quality"]["items_indexed"] == runs[0].items_indexed
    assert len(agents) == 1
    assert str(agents.pop()).startswith("One Holdfast/")
    assert (any_plant.a_job(first).state, any_plant.a_job(second).state) == ("completed", "scheduled")
    assert any_plant.a_job(second).start_hash is not None
    assert rows(any_plant.crawler, "SELECT count(*) FROM changes")[0][0] == sum(run.items_indexed for run in runs)
    assert rows(any_plant.crawler, "SELECT count(*) FROM search_outbox WHERE kind <> 'owner'") == [(0,)]
    assert any_plant.crawler.faults(1) + any_plant.crawler.faults(2) == []


def test_a_worker_that_is_terminated_drains_and_the_next_one_asks_for_nothing_again(plant: Plant) -> None:
    with Site.plain(hosts=3, pages=40) as site:
        plant.job("ex", *(site.url(host) for host in range(3)), max_depth=-1)
        worker = plant.worker()
        until(lambda: len(site.log()) > 30, within_s=30, what="thirty requests")
        told_at = time.monotonic()
        worker.terminate()
        worker.join(patience.deadline(30))
        took_s = time.monotonic() - told_at
        assert worker.exitcode == 0
        drained = plant.executions()[0]
        assert (drained.state, drained.takeovers) == ("queued", 0)
        assert plant.crawler.faults() == []  # sealed, released, nobody left

        plant.once()
        log = site.settled()

    counts = fetched(log)
    print(f"drained in {took_s:.1f} s, {counts.total() - len(counts)} pages asked again")
    assert took_s < patience.allowed(3 + 2 + 3), "the fetch deadline, two seconds, and a busy machine"
    assert counts.total() == len(counts)
    assert judge(log, delay_s=0.05) == []
    assert [(run.state, run.items_crawled, run.index_state) for run in plant.executions()] == [
        ("completed", 120, "indexed")
    ]  # fmt: skip
    assert plant.crawler.faults() == []


def test_a_second_signal_hands_back_at_once(plant: Plant) -> None:
    plant.crawler.environment["HOLDFAST_FETCH_DEADLINE_S"] = "30"
    with Site.start(hosts=1) as site:
        site.serve("/", "<a href='/slow/late?after=20'>slow</a>")
        plant.job("ex", site.url(0))
        worker = plant.worker()
        until(lambda: any("late" in entry.path for entry in site.log()), within_s=30, what="the slow page")
        worker.terminate()
        until(lambda: "draining" in str(rows(plant.crawler, "SELECT counts FROM execution_counts")),
              within_s=30, what="it drains")  # fmt: skip
        assert rows(plant.crawler, "SELECT count(*) FROM jobs WHERE lock_token IS NOT NULL") == [(1,)]
        told_at = time.monotonic()
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGINT)
        worker.join(patience.deadline(30))
        took_s = time.monotonic() - told_at

    assert took_s < patience.allowed(8)
    assert worker.exitcode == 0
    assert plant.executions()[0].state == "queued"
    assert plant.crawler.faults() == []


@pytest.mark.parametrize("place", ["index_batch", "index_finishing"])
def test_a_worker_that_is_killed_while_it_indexes_is_followed_by_another(
    plant: Plant, tmp_path: Path, place: str
) -> None:
    tokens = arm(tmp_path / "tokens", place)
    with Site.plain(hosts=1, pages=10) as site:
        plant.job("ex", site.url(0), max_depth=-1)
        plant.crawler.environment["HOLDFAST_FAILPOINT"] = f"{place}:kill:0:{tokens}"
        killed = plant.start("start-worker", "--once")
        killed.communicate(timeout=patience.deadline(60))
        assert killed.returncode == -signal.SIGKILL
        del plant.crawler.environment["HOLDFAST_FAILPOINT"]
        assert disarmed(tokens)
        assert plant.executions()[0].index_state != "indexed"

        plant.once()
        asked = fetched(site.settled())

    run = plant.executions()[0]
    assert (run.state, run.index_state, len(plant.executions())) == ("completed", "indexed", 1)
    assert asked.total() == len(asked)
    assert rows(plant.crawler, "SELECT count(*) FROM snapshots WHERE is_page") == [(run.items_indexed,)]
    assert plant.crawler.faults() == []


def test_a_worker_is_terminated_while_it_indexes_and_nothing_is_lost(plant: Plant, tmp_path: Path) -> None:
    tokens = arm(tmp_path / "tokens", "index_batch")
    with Site.plain(hosts=1, pages=10) as site:
        plant.job("ex", site.url(0), max_depth=-1)
        plant.crawler.environment["HOLDFAST_FAILPOINT"] = f"index_batch:stop:0:{tokens}"
        worker = plant.start("start-worker")
        until(lambda: disarmed(tokens), within_s=60, what="frozen in a batch")
        worker.terminate()
        os.kill(worker.pid, signal.SIGCONT)
        worker.communicate(timeout=patience.deadline(30))
        del plant.crawler.environment["HOLDFAST_FAILPOINT"]
    assert worker.returncode == 0
    assert plant.crawler.faults() == []

    plant.once()

    assert plant.executions()[0].index_state == "indexed"


def test_a_cancelled_job_keeps_what_it_captured(plant: Plant) -> None:
    with Site.plain(hosts=1, pages=60) as site:
        job_id = plant.job("ex", site.url(0), max_depth=-1)
        worker = plant.worker()
        until(lambda: len(site.log()) > 10, within_s=30, what="ten requests")
        plant.act(job_id, JobAction.CANCEL)
        until(lambda: plant.executions()[0].index_state == "indexed", within_s=30, what="cancelled and indexed")
        worker.terminate()
        worker.join(patience.deadline(30))

    run = plant.executions()[0]
    assert (run.state, plant.a_job(job_id).state) == ("cancelled", "cancelled")
    assert 0 < run.items_crawled < 60
    assert run.items_indexed >= run.items_crawled
    assert plant.crawler.faults() == []


def test_a_run_that_is_stopped_is_over_and_one_that_is_discarded_leaves_nothing(plant: Plant) -> None:
    with Site.plain(hosts=2, pages=60) as site:
        for number in range(2):
            plant.job(f"s{number}", site.url(number), max_depth=-1, delay_s=0.3)
        worker = plant.worker(concurrency=2)
        until(lambda: len(site.log()) > 8, within_s=30, what="eight requests")
        assert plant.crawler.run("stop", "1").returncode == 0
        assert plant.crawler.run("stop", "2", "--cancel").returncode == 0
        until(lambda: all(run.finished_at for run in plant.executions()), within_s=30, what="both over")
        worker.terminate()
        worker.join(patience.deadline(30))

    first, second = plant.executions()
    assert (first.state, first.reason) == ("completed", "stopped")
    assert (second.state, second.reason, second.index_state) == ("cancelled", "discarded", None)
    assert rows(plant.crawler, "SELECT DISTINCT execution_id FROM warc_files WHERE state = 'sealed'") == [(1,)]


def test_a_site_that_is_down_fails_the_run_and_status_says_so(plant: Plant) -> None:
    with Site.start(hosts=1) as site:
        dead = site.url(0)
    job_id = plant.job("ex", dead, spec={"retry_backoff_seconds": 60})

    plant.once()

    run, job = plant.executions()[0], plant.a_job(job_id)
    assert (run.state, run.reason, run.failure) == ("failed", "no_server", "failed")
    assert "nothing could be captured" in (run.error or "")
    assert (job.state, job.current_retry_count) == ("scheduled", 1)
    failed = _status(plant)["failed"]
    assert isinstance(failed, list)
    assert (failed[0]["execution"], failed[0]["source"]) == (1, "ex")
    shown = plant.crawler.run("status").stdout
    assert "failed: execution 1 of ex" in shown
    assert "again at" in shown


def test_storage_that_cannot_be_used_is_the_machines_fault_and_others_go_on(plant: Plant) -> None:
    with Site.plain(hosts=2, pages=5) as site:
        bad, good = plant.job("bad", site.url(0)), plant.job("good", site.url(1))
        (plant.crawler.home / "warcs").mkdir()
        (plant.crawler.home / "warcs" / "bad").write_text("no folder")
        plant.once()
        job = plant.a_job(bad)
        assert plant.executions()[0].failure == "infra_error"
        assert (job.current_retry_count, job.infra_retry_count, job.state) == (0, 1, "scheduled")
        assert plant.a_job(good).state == "completed"

        (plant.crawler.home / "warcs" / "bad").unlink()
        plant.due(bad)
        plant.once()

    assert plant.a_job(bad).state == "completed"
    assert plant.a_job(bad).infra_retry_count == 0


def test_storage_that_vanishes_under_a_crawl_is_not_made_anew(plant: Plant) -> None:
    plant.crawler.environment["HOLDFAST_WARC_BYTES"] = "4096"
    with Site.plain(hosts=1, pages=60) as site:
        job_id = plant.job("ex", site.url(0), max_depth=-1)
        worker = plant.worker()
        until(lambda: len(site.log()) > 10, within_s=30, what="ten requests")
        folder = Path(plant.executions()[0].output_dir)
        away = folder.rename(folder.with_name("away"))
        until(lambda: plant.executions()[0].state == "failed", within_s=60, what="noticed")
        run, job = plant.executions()[0], plant.a_job(job_id)
        assert run.failure == "infra_error"
        assert (job.current_retry_count, job.infra_retry_count) == (0, 1)
        assert not folder.exists(), "nothing may be written where the storage was"
        away.rename(folder)
        plant.due(job_id)
        until(lambda: plant.a_job(job_id).state == "completed", within_s=60, what="it goes on")
        worker.terminate()
        worker.join(patience.deadline(30))

    assert plant.executions()[-1].output_dir == str(folder)


def test_stale_jobs_are_shown_and_freed_only_with_apply(plant: Plant) -> None:
    plant.job("ex", "https://ex.example/")
    with plant.jobs() as jobs:
        jobs.scheduler.tick()
        lease = jobs.leases.take(holder(jobs.database, "elsewhere"))
        assert lease is not None
        shown = recover_stale(jobs, older_than_minutes=0, apply=False)
        assert ([one.owner for one in shown.record["stale"]], shown.record["freed"]) == (
            [f"elsewhere/{holder(jobs.database, 'elsewhere')}"],
            0,
        )
        assert plant.executions()[0].state == "running"

        freed = recover_stale(jobs, older_than_minutes=0, apply=True)

    assert "1 released" in freed.sentence
    assert (plant.executions()[0].state, plant.executions()[0].takeovers) == ("queued", 1)


def test_what_was_crawled_outside_a_worker_is_indexed_after_reconciling(
    plant: Plant,
) -> None:
    with Site.plain(hosts=1, pages=5) as site:
        plant.crawler.crawl(site.url(0), "--delay", "0.02")
    with closing(plant.crawler.raw_db()) as raw_db, raw_db.write() as tx:  # as crawls were left by earlier versions
        assert tx.execute("UPDATE executions SET index_state = NULL RETURNING index_state") == [(None,)]
    with plant.jobs() as jobs:
        assert [one.execution for one in reconcile_indexing(jobs, apply=False).record["unindexed"]] == [1]
        assert plant.executions()[0].index_state is None

        reconcile_indexing(jobs, apply=True)

    [done] = plant.executions()
    assert done.index_state == "indexed"
    assert done.items_indexed == 5
    with plant.jobs() as jobs:
        assert "nothing to do" in reconcile_indexing(jobs).sentence


def test_job_of_added_pages_captures_them_alone(plant: Plant) -> None:
    with Site.start(hosts=1, pages=5) as site:
        site.serve("/one", html("one", links(["/two"]) + '<img src="/picture.png">'))
        site.serve("/moved", b"", status=302, headers=[("Location", "/three")])
        site.serve("/three", html("three", links(["/two"])))
        site.serve("/two", html("two", ""))
        for path in ("/one", "/moved"):
            plant.crawler.run("frontier", "add", site.url(0, path))
        plant.once()
        asked = {entry.path for entry in site.settled()}

    assert asked == {"/robots.txt", "/one", "/picture.png", "/moved", "/three"}
    assert [(run.state, run.reason) for run in plant.executions()] == [("completed", "done")]
