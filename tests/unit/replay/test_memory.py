"""Bodies that are held whole share one budget, and give it back however they end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.replay.body import HeldBody, MemoryBudget, ReplayBusy


def test_what_does_not_fit_is_refused_until_something_is_given_back() -> None:
    budget = MemoryBudget(100, wait_s=0.01)
    first = budget.take(70)
    with pytest.raises(ReplayBusy):
        budget.take(40)

    first.shrink(20)
    second = budget.take(80)

    assert budget.left == 0
    del first, second
    assert budget.left == 100


def test_a_body_gives_its_memory_back_when_it_is_sent_or_given_up() -> None:
    budget = MemoryBudget(10_000_000)
    sent = HeldBody(b"x" * 600_000, budget.take(5_000_000))
    left_alone = HeldBody(b"y" * 600_000, budget.take(5_000_000))
    assert budget.left == 10_000_000 - 1_200_000

    assert b"".join(sent) == b"x" * 600_000
    assert budget.left == 10_000_000 - 600_000
    del left_alone
    assert budget.left == 10_000_000


def test_no_body_asks_for_more_than_there_is() -> None:
    budget = MemoryBudget(10)

    assert budget.take(1_000) is not None
    assert budget.left == 10


def test_budget_waits_until_another_share_is_released() -> None:
    budget = MemoryBudget(100, wait_s=60)
    first = budget.take(70)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(budget.take, 40)
        first.shrink(60)

        assert second.result(timeout=60) is not None
    assert budget.left == 100 - 60 - 40
