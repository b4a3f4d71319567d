"""When an edition is ready, by the state of its shards and of its seeds."""

from __future__ import annotations

import pytest

from holdfast.editions.edition_view import Readiness, ShardReadiness, judge

DONE, QUEUED, FAILED = (
    ShardReadiness("indexed", "pending"),
    ShardReadiness("queued"),
    ShardReadiness("failed", "needs_review"),
)
ACCEPTED = ShardReadiness("failed", "accepted_gap")


@pytest.mark.parametrize(
    ("shards", "captured", "missing", "said"),
    [
        ([], 0, None, ("planned", False, False)),
        ([QUEUED], 0, None, ("in_progress", False, False)),
        ([DONE], 5, 0, ("research_ready", True, True)),
        ([DONE], 5, None, ("search_ready", True, False)),
        ([DONE], 5, 1, ("search_ready", True, False)),
        ([DONE], 0, 0, ("in_progress", False, False)),
        ([DONE, QUEUED], 5, 0, ("in_progress", False, False)),
        ([DONE, FAILED], 5, 0, ("needs_review", False, False)),
        ([DONE, ShardReadiness("index_failed")], 5, 0, ("needs_review", False, False)),
        ([DONE, ShardReadiness("cancelled")], 5, 0, ("needs_review", False, False)),
        ([QUEUED, FAILED], 0, 1, ("needs_review", False, False)),
        ([DONE, ACCEPTED], 5, 0, ("research_ready", True, True)),
        ([DONE, ACCEPTED], 5, 1, ("search_ready", True, False)),
        ([ACCEPTED], 0, 0, ("in_progress", False, False)),
        ([DONE, ShardReadiness("queued", "excluded")], 5, 0, ("research_ready", True, True)),
        *[([DONE, ShardReadiness(word)], 5, 0, ("in_progress", False, False))
          for word in ("retryable", "running", "completed", "indexing", "paused")],
    ],
)  # fmt: skip
def test_an_edition_is_as_ready_as_its_shards_and_seeds(
    shards: list[ShardReadiness], captured: int, missing: int | None, said: tuple[str, bool, bool]
) -> None:
    assert judge(shards, captured=captured, missing_seeds=missing, seeds=1) == Readiness(*said)  # type: ignore[arg-type]


SHORT = ShardReadiness("indexed", "pending", is_whole=False)


@pytest.mark.parametrize(
    ("shards", "seeds", "is_ready"),
    [
        ([SHORT], 1, False),
        ([DONE, SHORT], 1, False),
        ([SHORT._replace(acceptance="accepted_gap")], 1, True),
        ([DONE, SHORT._replace(acceptance="excluded")], 1, True),
        ([DONE], 0, False),
        ([DONE._replace(acceptance="accepted_gap")], 0, True),
    ],
)
def test_a_run_that_fell_short_and_an_edition_without_seeds_need_a_decision(
    shards: list[ShardReadiness], seeds: int, *, is_ready: bool
) -> None:
    ready = judge(shards, captured=5, missing_seeds=0, seeds=seeds)

    assert (ready.search_ready, ready.research_ready) == (True, is_ready)
    assert ready.status == ("research_ready" if is_ready else "search_ready")
