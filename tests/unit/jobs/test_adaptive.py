"""Adaptive intervals, number by number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.db.models import Job
from holdfast.errors import Invalid
from holdfast.jobs.endings import StartPage, interval, note_start_page
from holdfast.jobs.store import interval_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EARLIER = NOW - timedelta(days=1)


@pytest.mark.parametrize(
    ("baseline", "unchanged", "minutes"),
    [
        (60, 0, 60), (60, 1, 120), (60, 2, 240), (60, 3, 480), (60, 4, 960), (60, 5, 1440), (60, 6, 1440),
        (60, 10**9, 1440), (60, -1, 60), (0, 5, 0), (15, 6, 960), (15, 7, 1440), (1440, 3, 1440),
        (10080, 0, 10080), (10080, 4, 10080),
    ],
)  # fmt: skip
def test_the_interval_doubles_up_to_a_day_and_never_falls_below_the_baseline(
    baseline: int, unchanged: int, minutes: int
) -> None:
    assert interval(timedelta(minutes=baseline), unchanged) == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("before", "page", "after"),
    [
        ((None, None, 0), StartPage(content_hash="a"), ("a", NOW, 0)),
        (("a", EARLIER, 0), StartPage(content_hash="a"), ("a", EARLIER, 1)),
        (("a", EARLIER, 3), StartPage(not_modified=True), ("a", EARLIER, 4)),
        (("a", EARLIER, 3), StartPage(content_hash="b"), ("b", NOW, 0)),
        (("a", EARLIER, 3), StartPage(), ("a", EARLIER, 3)),
    ],
)
def test_job_notes_whether_its_start_page_changed(
    before: tuple[str | None, datetime | None, int], page: StartPage, after: tuple[str, datetime, int]
) -> None:
    job = Job(start_hash=before[0], start_changed_at=before[1], unchanged_count=before[2])

    note_start_page(job, page, now=NOW)

    assert (job.start_hash, job.start_changed_at, job.unchanged_count) == after


@pytest.mark.parametrize(
    ("number", "unit", "minutes"), [(30, "minutes", 30), (6, "hours", 360), (2, "days", 2880), (60, "hours", 3600)]
)
def test_an_interval_is_a_number_of_units(number: int, unit: str, minutes: int) -> None:
    assert interval_of(number, unit) == timedelta(minutes=minutes)


def test_no_number_is_a_job_that_runs_once() -> None:
    assert interval_of(None) is None


@pytest.mark.parametrize(
    ("number", "unit", "field"),
    [(0, "minutes", "interval_minutes"), (-5, "days", "interval_minutes"), (1, "fortnights", "interval_type"),
     (10**12, "days", "interval_minutes")],
)  # fmt: skip
def test_what_is_no_interval_is_refused_by_field(number: int, unit: str, field: str) -> None:
    with pytest.raises(Invalid, match=f"^{field}: "):
        interval_of(number, unit)
