"""When something is done about a dead path: every number of 1.10's watchdog is a case here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.config import StorageSettings
from holdfast.db.models import Recovery
from holdfast.operations.storage_watchdog import FREED, SEEN_ALIVE, SEEN_DEAD, decide_storage

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LIMITS = StorageSettings()


def _note(seconds_ago: float, action: str = SEEN_DEAD, job_id: int = 1) -> Recovery:
    return Recovery(job_id=job_id, at=NOW - timedelta(seconds=seconds_ago), action=action)


@pytest.mark.parametrize(
    ("notes", "jobs", "reason"),
    [
        ([], (), "seen dead 1 of 2 times"),
        ([_note(119)], (), "dead for 119 of 120 s"),
        ([_note(120)], (1,), "dead"),
        ([_note(500), _note(60, SEEN_ALIVE)], (), "seen dead 1 of 2 times"),
        ([_note(500), _note(60, SEEN_ALIVE), _note(30)], (), "dead for 30 of 120 s"),
        ([_note(899, FREED), _note(200)], (), "something was done a short while ago"),
        ([_note(900, FREED), _note(200)], (1,), "dead"),
        ([_note(899, FREED, job_id=9), _note(200)], (), "something was done a short while ago"),
        ([_note(3599, FREED), _note(1000, FREED), _note(200)], (), "something was done too often"),
        ([_note(3600, FREED), _note(1000, FREED), _note(200)], (1,), "dead"),
        ([*(_note(3600 * hours, FREED, job_id=9) for hours in (20, 18, 16, 14, 12, 10)), _note(200)], (),
         "something was done too often"),
        ([*(_note(3600 * hours, FREED) for hours in (20, 18, 16)), _note(200)], (),
         "its jobs were helped too often today"),
        ([*(_note(3600 * hours, FREED) for hours in (24, 18, 16)), _note(200)], (1,), "dead"),
    ],
)  # fmt: skip
def test_a_path_is_freed_when_it_is_surely_dead_and_not_too_often(
    notes: list[Recovery], jobs: tuple[int, ...], reason: str
) -> None:
    assert decide_storage([1], notes, LIMITS, now=NOW) == (jobs, reason)


def test_a_job_that_was_helped_too_often_does_not_keep_help_from_others_and_one_deed_for_two_jobs_counts_once() -> None:
    earlier = [_note(3600 * hours, FREED, job_id) for hours in (20, 18, 16) for job_id in (1, 2)]
    seen = [_note(200, job_id=job_id) for job_id in (1, 2, 3)]

    assert decide_storage([1, 2, 3], [*earlier, *seen], LIMITS, now=NOW)[0] == (3,)
