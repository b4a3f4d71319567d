"""A zimit run holds the hosts of its seeds, so that no crawl of ours asks them beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from holdfast.clock import to_micros
from holdfast.jobs.endings import RunResult
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.wiring import Runtime, open_runtime
from holdfast.worker.runner import StopReason
from tests import patience
from tests.flow.zimit.bed import Step
from tests.flow.zimit_bed import WHOLE, ZimitBed, open_zimit_bed
from tests.jobs_bed import holder

_HOST = "example.org"


@pytest.fixture
def bed(tmp_path: Path, database_url: str) -> Iterator[ZimitBed]:
    url = None if database_url.startswith("sqlite") else database_url
    with open_zimit_bed(tmp_path, url, domain_wait_s=0.5) as made:
        yield made


@pytest.fixture
def crawl(bed: ZimitBed) -> Iterator[Runtime]:
    """What a crawl of our own stands on."""
    with open_runtime(bed.settings) as runtime:
        yield runtime


def _owner(runtime: Runtime) -> int:
    return OwnerProcess(
        runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="process", execution_id=None
    ).id


def _forbid(bed: ZimitBed, crawl: Runtime, domain: str) -> None:
    given_back = crawl.frontier.lease_named(owner := _owner(crawl), domain)
    assert given_back is not None
    crawl.frontier.free([owner])
    with bed.jobs.database.write() as session:
        session.execute(text("UPDATE domains SET is_allowed = false WHERE name = :name"), {"name": domain})


def _hanging(bed: ZimitBed) -> list[Step]:
    mark = str(bed.engine.root / "mark")
    return [{"warc": "a.warc.gz"}, {"queue": {"left": 1}}, {"stats": [1, 9, 1, 0]}, {"touch": mark}, {"hang": 60}]


def test_no_crawl_gets_a_host_while_zimit_asks_it(bed: ZimitBed, crawl: Runtime) -> None:
    bed.job()
    bed.engine.script(_hanging(bed))
    lease, owner = bed.take(), _owner(crawl)
    with bed.running(lease) as (holding, _):
        bed.engine.wait_for(bed.engine.root / "mark")
        assert crawl.frontier.lease_named(owner, _HOST) is None
        holding.ask(StopReason.DRAIN)

    given_back = crawl.frontier.lease_named(owner, _HOST)
    assert given_back is not None
    assert not given_back.taken_over


def test_the_www_twin_of_a_seed_is_held_as_well(bed: ZimitBed, crawl: Runtime) -> None:
    bed.job()
    bed.engine.script(_hanging(bed))
    lease, owner = bed.take(), _owner(crawl)
    with bed.running(lease) as (holding, _):
        bed.engine.wait_for(bed.engine.root / "mark")
        assert crawl.frontier.lease_named(owner, f"www.{_HOST}") is None
        holding.ask(StopReason.DRAIN)

    assert crawl.frontier.lease_named(owner, f"www.{_HOST}") is not None


def test_run_starts_although_a_twin_is_forbidden(bed: ZimitBed, crawl: Runtime) -> None:
    bed.job()
    bed.engine.script(WHOLE)
    _forbid(bed, crawl, f"www.{_HOST}")

    assert bed.settled(bed.take()) == "completed"


def test_a_run_whose_seed_is_forbidden_ends_and_is_not_tried_for_ever(bed: ZimitBed, crawl: Runtime) -> None:
    job_id = bed.job()
    _forbid(bed, crawl, _HOST)
    lease = bed.take()

    assert bed.settled(lease) == "failed"

    assert bed.engine.calls("run") == []
    assert bed.row(job_id).next_run_at is None or bed.row(job_id).infra_retry_count == 0
    assert any(f"{_HOST} is forbidden" in line for line in bed.lines(lease.execution_id))
    assert bed.execution(lease.execution_id).reason == "infra_error_config"


def test_a_run_whose_host_a_crawl_asks_is_handed_back_and_tried_later(bed: ZimitBed, crawl: Runtime) -> None:
    job_id = bed.job()
    bed.engine.script(WHOLE)
    owner = _owner(crawl)
    assert crawl.frontier.lease_named(owner, _HOST) is not None
    lease = bed.take()
    holding = bed.holding(lease)

    assert bed.run(lease, holding) is None

    assert bed.engine.calls("run") == []
    assert any(f"{_HOST} is being crawled" in line for line in bed.lines(lease.execution_id))
    bed.jobs.leases.release(lease, rest_s=holding.rest_s)
    assert bed.jobs.leases.take(holder(bed.jobs.database, "w1")) is None, "not at once"
    row = bed.row(job_id)
    assert (row.state, row.current_retry_count, row.infra_retry_count, row.failed_runs) == ("scheduled", 0, 0, 0)

    crawl.frontier.free([owner])
    with bed.jobs.database.write() as session:
        session.execute(text("UPDATE executions SET queued_at = due_at"))
    assert bed.settled(bed.take()) == "completed"


@pytest.mark.parametrize(
    ("word", "result"), [(StopReason.FINISH, RunResult.COMPLETED), (StopReason.CANCEL, RunResult.CANCELLED)]
)
def test_a_run_that_waits_for_its_host_is_stopped_as_any_other(
    bed: ZimitBed, crawl: Runtime, word: StopReason, result: RunResult
) -> None:
    bed.job()
    assert crawl.frontier.lease_named(_owner(crawl), _HOST) is not None
    lease = bed.take()
    holding = bed.holding(lease)
    holding.ask(word)

    ending = bed.run(lease, holding)

    assert ending is not None
    assert ending.result is result
    assert bed.engine.calls("run") == []


def test_a_tool_ends_once_its_host_is_lost_to_a_crawl(bed: ZimitBed, crawl: Runtime) -> None:
    bed.job()
    bed.engine.script(_hanging(bed), WHOLE)
    lease, owner = bed.take(), _owner(crawl)
    with bed.running(lease) as (_, ends):
        bed.engine.wait_for(bed.engine.root / "mark")
        with bed.jobs.database.write() as session:
            visitors = [row[0] for row in session.execute(text("SELECT id FROM owners WHERE kind = 'visitor'"))]
        crawl.frontier.free(visitors)
        assert crawl.frontier.lease_named(owner, _HOST) is not None

    assert ends == [None]
    assert len(bed.engine.calls("stop")) == 1
    assert any("asks a host" in line for line in bed.lines(lease.execution_id))


def test_a_tool_ends_before_its_hosts_lease_is_over_when_only_its_own_worker_cannot_renew_it(
    tmp_path: Path, database_url: str
) -> None:
    url = None if database_url.startswith("sqlite") else database_url
    with open_zimit_bed(tmp_path, url, lease_s=patience.period(6.0)) as bed:
        bed.job()
        bed.engine.script(_hanging(bed))
        lease = bed.take()
        with bed.running(lease) as (_, ends):
            bed.engine.wait_for(bed.engine.root / "mark")
            # Each renewal hangs, as on a line that swallows what is sent.
            with bed.jobs.database.write() as session:
                until = session.execute(
                    text("UPDATE domains SET is_allowed = is_allowed WHERE name = :name RETURNING lease_expires_at"),
                    {"name": _HOST},
                ).scalar_one()
                bed.engine.wait_until(lambda: bed.engine.calls("stop") != [] and bed.processes() == [])
                assert to_micros(bed.jobs.clock.now()) < until, "it was gone before another could have the host"

        assert ends == [None], "handed back"
        assert any("did not answer for so long" in line for line in bed.lines(lease.execution_id))
