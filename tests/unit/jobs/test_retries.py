"""What follows a failed run, number by number."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.jobs.endings import FailureCause, RetryDecision, RetryPolicy, after_failure, backoff, policy_for


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(0, 60), (1, 60), (2, 120), (3, 240), (4, 480), (5, 960), (6, 1920), (7, 3600), (8, 3600), (1_000_000, 3600)],
)
def test_the_wait_doubles_up_to_an_hour(attempt: int, seconds: int) -> None:
    assert backoff(60, attempt) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("base", "attempt", "seconds"), [(0, 9, 0), (7200, 1, 3600), (1, 12, 2048), (1, 13, 3600)])
def test_the_cap_holds_for_any_base(base: int, attempt: int, seconds: int) -> None:
    assert backoff(base, attempt) == timedelta(seconds=seconds)


def test_three_retries_then_it_is_given_up() -> None:
    waits = []
    retries = 0
    while (again := after_failure(FailureCause.FAILED, RetryPolicy(), retries=retries, infra_retries=0)) is not None:
        waits.append(again.wait.total_seconds())
        retries = again.retries

    assert waits == [60, 120, 240]


def test_the_machines_faults_burn_no_retry_and_are_given_up_after_five() -> None:
    policy = RetryPolicy()

    for count in range(5):
        assert after_failure(FailureCause.INFRA, policy, retries=1, infra_retries=count) == RetryDecision(
            wait=timedelta(minutes=10), retries=1, infra_retries=count + 1
        )
    assert after_failure(FailureCause.INFRA, policy, retries=1, infra_retries=5) is None


def test_a_wrong_configuration_is_never_tried_again() -> None:
    assert after_failure(FailureCause.CONFIG, RetryPolicy(), retries=0, infra_retries=0) is None


def test_zimit_gets_two_more_chances_at_once() -> None:
    policy = policy_for("zimit", RetryPolicy(max_retries=3, base_s=60))

    assert after_failure(FailureCause.FAILED, policy, retries=0, infra_retries=0) == RetryDecision(
        wait=timedelta(), retries=1
    )
    assert after_failure(FailureCause.FAILED, policy, retries=1, infra_retries=0) == RetryDecision(
        wait=timedelta(), retries=2
    )
    assert after_failure(FailureCause.FAILED, policy, retries=2, infra_retries=0) is None
    assert policy_for("native", RetryPolicy()) == RetryPolicy()
