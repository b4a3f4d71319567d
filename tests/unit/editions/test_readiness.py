"""When an edition is ready, by the state of its shards and of its seeds."""

from __future__ import annotations

import pytest

from holdfast.editions.readiness import Readiness, ShardState, judge

DONE, QUEUED, FAILED = ShardState("indexed", "pending"), ShardState("queued"), ShardState("failed", "needs_review")
ACCEPTED = ShardState("failed", "accepted_gap")


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
        ([DONE, ShardState("index_failed")], 5, 0, ("needs_review", False, False)),
        ([DONE, ShardState("cancelled")], 5, 0, ("needs_review", False, False)),
        ([QUEUED, FAILED], 0, 1, ("needs_review", False, False)),
        ([DONE, ACCEPTED], 5, 0, ("research_ready", True, True)),
        ([DONE, ACCEPTED], 5, 1, ("search_ready", True, False)),
        ([ACCEPTED], 0, 0, ("in_progress", False, False)),
        ([DONE, ShardState("queued", "excluded")], 5, 0, ("research_ready", True, True)),
        *[([DONE, ShardState(word)], 5, 0, ("in_progress", False, False))
          for word in ("retryable", "running", "completed", "indexing", "paused")],
    ],
)  # fmt: skip
def test_an_edition_is_as_ready_as_its_shards_and_seeds(
    shards: list[ShardState], captured: int, missing: int | None, said: tuple[str, bool, bool]
) -> None:
    assert judge(shards, captured=captured, missing_seeds=missing, seeds=1) == Readiness(*said)  # type: ignore[arg-type]


SHORT = ShardState("indexed", "pending", is_whole=False)


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
    shards: list[ShardState], seeds: int, *, is_ready: bool
) -> None:
    ready = judge(shards, captured=5, missing_seeds=0, seeds=seeds)

    assert (ready.search_ready, ready.research_ready) == (True, is_ready)
    assert ready.status == ("research_ready" if is_ready else "search_ready")
