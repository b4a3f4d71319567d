"""Which running crawls are helped: every number of 1.10 is a case here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.config import RecoverySettings
from holdfast.db.models import Recovery
from holdfast.operations.crawl_watchdog import RecoveryAction, RunActivity, decide

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LIMITS = RecoverySettings()
STALLED = RunActivity(pages=500, running_s=90_000, idle_s=3600, pages_per_minute=0.0)


def _helped(hours_ago: float, action: RecoveryAction = RecoveryAction.RESTART_STALLED, pages: int = 0) -> Recovery:
    return Recovery(job_id=1, at=NOW - timedelta(hours=hours_ago), action=action.value, pages=pages)


@pytest.mark.parametrize(
    ("activity", "help_", "reason"),
    [
        (STALLED, RecoveryAction.RESTART_STALLED, "stalled"),
        (STALLED._replace(idle_s=3599, pages_per_minute=5.0), RecoveryAction.NOTHING, "healthy"),
        (STALLED._replace(running_s=599), RecoveryAction.NOTHING, "just_started"),
        (STALLED._replace(running_s=600, idle_s=600, pages_per_minute=2.0), RecoveryAction.NOTHING, "healthy"),
        (STALLED._replace(idle_s=60, pages_per_minute=1.9), RecoveryAction.SEEN_SLOW, "slow 1 of 6"),
        (STALLED._replace(idle_s=60, pages_per_minute=None), RecoveryAction.NOTHING, "healthy"),
    ],
)
def test_a_crawl_is_judged_by_how_long_nothing_moved_and_how_fast_it_is(
    activity: RunActivity, help_: RecoveryAction, reason: str
) -> None:
    assert decide(activity, [], LIMITS, now=NOW) == (help_, reason)


def test_three_restarts_a_day_are_enough() -> None:
    pages = [100, 200, 300]
    today = [_helped(hours, pages=count) for hours, count in zip((20, 10, 5), pages, strict=True)]

    assert decide(STALLED, today, LIMITS, now=NOW)[1] == "helped_too_often"
    yesterday = [_helped(25, pages=100), *today[1:]]
    assert decide(STALLED, yesterday, LIMITS, now=NOW)[0] is RecoveryAction.RESTART_STALLED


def test_a_restart_is_given_its_time() -> None:
    assert decide(STALLED, [_helped(599 / 3600)], LIMITS, now=NOW)[1] == "just_helped"
    assert decide(STALLED, [_helped(601 / 3600)], LIMITS, now=NOW)[0] is RecoveryAction.RESTART_STALLED


@pytest.mark.parametrize(("pages", "reason"), [((481, 485, 491), "breaker_open"), ((480, 490, 491), "stalled")])
def test_three_restarts_in_vain_open_the_breaker(pages: tuple[int, ...], reason: str) -> None:
    """Each of them led to fewer than 10 new pages; one that led to 10 keeps it closed."""
    days = [_helped(hours, pages=count) for hours, count in zip((80, 60, 40), pages, strict=True)]

    assert decide(STALLED, days, LIMITS, now=NOW)[1] == reason


def test_a_crawl_that_counts_from_nothing_again_is_not_taken_for_one_in_vain() -> None:
    days = [_helped(80, pages=900), _helped(60, pages=30), _helped(40, pages=35)]

    assert decide(STALLED._replace(pages=38), days, LIMITS, now=NOW)[0] is RecoveryAction.RESTART_STALLED


def test_a_slow_crawl_is_restarted_at_the_sixth_look_in_a_row() -> None:
    slow = STALLED._replace(idle_s=60, pages_per_minute=0.5)
    looks = [_helped(hour, RecoveryAction.SEEN_SLOW) for hour in (5, 4, 3, 2, 1)]

    assert decide(slow, looks, LIMITS, now=NOW)[0] is RecoveryAction.RESTART_SLOW
    assert decide(slow, looks[1:], LIMITS, now=NOW)[1] == "slow 5 of 6"
    interrupted = [*looks[:3], _helped(2.5, RecoveryAction.SEEN_FINE), *looks[3:]]
    assert decide(slow, interrupted, LIMITS, now=NOW)[1] == "slow 3 of 6"


def test_a_crawl_that_gets_on_again_ends_its_streak() -> None:
    fine = STALLED._replace(idle_s=60, pages_per_minute=9.0)

    assert decide(fine, [_helped(1, RecoveryAction.SEEN_SLOW)], LIMITS, now=NOW)[0] is RecoveryAction.SEEN_FINE
    assert decide(fine, [_helped(1, RecoveryAction.SEEN_FINE)], LIMITS, now=NOW)[0] is RecoveryAction.NOTHING
