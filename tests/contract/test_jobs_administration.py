"""Second chances and careful changes by hand, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from holdfast.db.models import AuditEvent, Source
from holdfast.errors import Conflict, Invalid
from holdfast.jobs.administration import actions
from holdfast.jobs.administration.actions import NotPatchable, NotRetryable, Retried, patch_zimit, reset_retries, retry
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult
from holdfast.jobs.specs import job_config
from holdfast.jobs.store import JobNotFound
from holdfast.sources.config import SourceConfig
from tests.clock import FakeClock
from tests.jobs_bed import Bed, failed, open_bed


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _retry(bed: Bed, job_id: int) -> Retried:
    with bed.database.write() as session:
        return retry(session, bed.clock, bed.party.actions, job_id)


def _audited(bed: Bed) -> list[str]:
    with bed.database.read() as session:
        return list(session.scalars(select(AuditEvent.action).order_by(AuditEvent.id)))


def test_a_failed_job_waits_for_another_run_with_its_whole_budget(bed: Bed) -> None:
    job_id = bed.once()
    bed.run_once(job_id, failed(FailureCause.CONFIG))
    bed.change(job_id, lambda job: setattr(job, "current_retry_count", 2))

    assert _retry(bed, job_id) is Retried.QUEUED

    job = bed.job(job_id)
    assert (job.state, job.current_retry_count, job.next_run_at) == ("pending", 0, bed.clock.now())
    assert "job.retried" in _audited(bed)


@pytest.mark.parametrize("recurring", [True, False])
def test_an_index_that_failed_is_read_again_and_the_crawl_stays(bed: Bed, recurring: bool) -> None:
    job_id = bed.recurring() if recurring else bed.once()
    bed.run_once(job_id, RunEnding(result=RunResult.COMPLETED, index_state="index_failed"))
    before = bed.job(job_id)

    assert _retry(bed, job_id) is Retried.INDEX_RESET

    (execution,) = bed.executions(job_id)
    assert (execution.state, execution.index_state) == ("completed", "pending")
    assert (bed.job(job_id).state, bed.job(job_id).next_run_at) == (before.state, before.next_run_at)
    with pytest.raises(NotRetryable):
        _retry(bed, job_id)


def test_what_did_not_fail_is_not_retried(bed: Bed) -> None:
    with pytest.raises(JobNotFound):
        _retry(bed, 99)
    job_id = bed.once()
    with pytest.raises(NotRetryable, match="job 1 is queued"):
        _retry(bed, job_id)
    bed.change(job_id, lambda job: setattr(job, "state", None))
    with pytest.raises(Conflict, match="holdfast crawl"):
        _retry(bed, job_id)
    assert "job.retried" not in _audited(bed)


def test_burnt_retries_are_given_back_but_not_to_what_somebody_holds(bed: Bed) -> None:
    burnt, held, fresh = bed.once("a"), bed.once("b"), bed.once("c")
    for job_id in (burnt, held):
        bed.change(job_id, lambda job: setattr(job, "infra_retry_count", 3))
    bed.change(held, lambda job: setattr(job, "lock_token", "x"))
    with bed.database.read() as session:
        assert actions.retried_ids(session, source_id=None, states=(), limit=10) == [burnt, held]
        assert actions.retried_ids(session, source_id=None, states=("failed",), limit=10) == []
        assert actions.retried_ids(session, source_id=bed.job(held).source_id, states=("pending",), limit=1) == [held]

    with bed.database.write() as session:
        dry = reset_retries(session, bed.clock, [burnt, held, fresh, 99, burnt], reason=None, apply=False)
    assert (dry.reset, dry.locked, dry.unchanged, dry.missing) == ((burnt,), (held,), (fresh,), (99,))
    assert bed.job(burnt).infra_retry_count == 3
    with bed.database.write() as session:
        reset_retries(session, bed.clock, [burnt, held], reason="the disk was full", apply=True)
    assert (bed.job(burnt).infra_retry_count, bed.job(held).infra_retry_count) == (0, 3)
    assert _audited(bed).count("job.retries_reset") == 1


def _patch(bed: Bed, job_id: int, *, apply: bool = True, **options: Any) -> None:
    def check(config: SourceConfig) -> None:
        if config.zimit.tool_options.get("initial_workers") == 13:
            raise Invalid("thirteen brings no luck")

    with bed.database.write() as session:
        patch_zimit(session, bed.clock, job_id, {"tool_options": options}, check=check, apply=apply)


def test_a_patch_keeps_the_sources_other_options_and_is_checked_first(bed: Bed) -> None:
    source_id = bed.source(zimit={"tool_options": {"cleanup": True, "initial_workers": 2}})
    job_id = bed.upsert(source_id, config={"max_depth": 1}).job.id
    _patch(bed, job_id, apply=False, initial_workers=4)
    assert bed.job(job_id).config == {"max_depth": 1}
    with pytest.raises(Invalid, match="thirteen"):
        _patch(bed, job_id, initial_workers=13)
    with pytest.raises(Invalid, match="enable_adaptive_workers"):
        _patch(bed, job_id, enable_adaptive_workers=True)
    assert bed.job(job_id).config == {"max_depth": 1}

    _patch(bed, job_id, initial_workers=4, cleanup=None)

    config = bed.job(job_id).config
    assert (config["max_depth"], config["zimit"]["tool_options"]) == (1, {"initial_workers": 4, "cleanup": None})
    with bed.database.read() as session:
        whole = job_config(bed.job(job_id), session.get_one(Source, source_id))
    assert whole.zimit.tool_options == {"initial_workers": 4}, "what was taken away does not come back"


def test_a_job_that_runs_or_is_done_is_not_patched(bed: Bed) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken()
    with pytest.raises(NotPatchable, match="running"):
        _patch(bed, job_id, initial_workers=4)
    bed.party.leases.settle(lease, RunEnding(result=RunResult.COMPLETED))
    with pytest.raises(NotPatchable, match="completed"):
        _patch(bed, job_id, initial_workers=4)
    with pytest.raises(JobNotFound):
        _patch(bed, 99, initial_workers=4)
