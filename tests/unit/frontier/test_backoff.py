"""Which failures are tried again, and when."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.frontier.politeness import may_retry, next_try, retry_wait
from holdfast.types import FetchProblem


@pytest.mark.parametrize(("number", "least"), [(1, 1.0), (2, 2.0), (3, 4.0)])
def test_the_wait_doubles_with_up_to_half_a_second_more(number: int, least: float) -> None:
    waits = [retry_wait(number, random=Random(seed)) for seed in range(200)]

    assert min(waits) >= least
    assert max(waits) <= least + 0.5
    assert max(waits) - min(waits) > 0.4, "retries must not march in step"


def test_there_are_three_retries() -> None:
    waits = [next_try(number, random=Random(1)) for number in (1, 2, 3, 4)]

    assert [wait is None for wait in waits] == [False, False, False, True]


def test_no_number_of_attempts_overflows() -> None:
    assert retry_wait(10_000, random=Random(1)) < 100_000


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_statuses_that_may_be_better_next_time_are_retried(status: int) -> None:
    assert may_retry(status=status)


@pytest.mark.parametrize("status", [200, 301, 304, 400, 401, 403, 404, 410, 451, 600])
def test_other_statuses_are_final(status: int) -> None:
    assert not may_retry(status=status)


def test_only_transient_network_failures_are_retried() -> None:
    retried = {problem for problem in FetchProblem if may_retry(problem=problem)}

    assert retried == {problem for problem in FetchProblem if problem.transient}
    assert FetchProblem.ADDRESS_FORBIDDEN not in retried
    assert not may_retry()
