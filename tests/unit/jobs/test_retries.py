"""What follows a failed run, number by number."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.config.timings import Timings
from holdfast.db.models import Job
from holdfast.jobs.endings import FailureCause, RetryDecision, after_failure, backoff


def _again(
    failure: FailureCause, *, retries: int = 0, infra_retries: int = 0, backend: str = "native"
) -> RetryDecision | None:
    job = Job(max_retries=3, retry_backoff_seconds=60, current_retry_count=retries, infra_retry_count=infra_retries)
    return after_failure(failure, job, Timings(), backend=backend)


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(0, 60), (1, 60), (2, 120), (3, 240), (4, 480), (5, 960), (6, 1920), (7, 3600), (8, 3600), (1_000_000, 3600)],
)
def test_the_wait_doubles_up_to_an_hour(attempt: int, seconds: int) -> None:
    assert backoff(60, attempt) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("base", "attempt", "seconds"), [(0, 9, 0), (7200, 1, 3600), (1, 12, 2048), (1, 13, 3600)])
def test_the_cap_holds_for_any_base(base: int, attempt: int, seconds: int) -> None:
    assert backoff(base, attempt) == timedelta(seconds=seconds)


def test_failed_crawl_is_retried_three_times() -> None:
    waits = []
    retries = 0
    while (again := _again(FailureCause.FAILED, retries=retries)) is not None:
        wait, retries, _ = again
        waits.append(wait.total_seconds())

    assert waits == [60, 120, 240]


def test_machine_failures_use_no_retry_and_end_after_five() -> None:
    for count in range(5):
        assert _again(FailureCause.INFRA, retries=1, infra_retries=count) == (timedelta(minutes=10), 1, count + 1)
    assert _again(FailureCause.INFRA, retries=1, infra_retries=5) is None


def test_wrong_configuration_is_never_retried() -> None:
    assert _again(FailureCause.CONFIG) is None


def test_zimit_is_retried_twice_immediately() -> None:
    assert _again(FailureCause.FAILED, backend="zimit") == (timedelta(), 1, 0)
    assert _again(FailureCause.FAILED, retries=1, backend="zimit") == (timedelta(), 2, 0)
    assert _again(FailureCause.FAILED, retries=2, backend="zimit") is None
