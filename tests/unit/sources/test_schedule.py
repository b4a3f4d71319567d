"""Schedules in words: read, written, and turned into dates across clock changes and short months."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.sources.schedule import Schedule, ScheduleRefused, read_schedule, schedule_of, words_of

NOW = datetime(2027, 1, 30, 12, tzinfo=UTC)


def _turns(words: str, *, after: datetime = NOW, count: int = 3) -> list[str]:
    schedule = read_schedule(words, now=NOW)
    assert schedule is not None
    return [f"{turn:%Y-%m-%dT%H:%M}" for turn in islice(schedule.turns(after), count)]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("once", "once"),
        ("6h", "every 6 hours"),
        ("daily", "every day"),
        ("every 6 hours, less often while nothing changes", "every 6 hours, less often while nothing changes"),
        ("Daily at 3:05", "daily at 03:05 UTC"),
        ("weekly on fri at 03:00 Europe/Paris", "weekly on Friday at 03:00 Europe/Paris"),
        ("monthly on the 31st at 03:00", "monthly on day 31 at 03:00 UTC"),
        ("yearly at 03:00", "yearly on 1 January at 03:00 UTC"),
        ("yearly on February 29 at 03:00", "yearly on 29 February at 03:00 UTC"),
        ("every 3 days at 03:00", "every 3 days from 2027-01-31 at 03:00 UTC"),
        ("every 2 weeks on Monday at 03:00", "every 2 weeks from 2027-02-01 at 03:00 UTC"),
        ("every 6 months from 2026-08-31 at 03:00", "every 6 months from 2026-08-31 at 03:00 UTC"),
    ],
)
def test_words_are_kept_in_one_spelling(said: str, kept: str) -> None:
    found = read_schedule(said, now=NOW)

    assert words_of(found) == kept
    assert words_of(read_schedule(kept, now=NOW + timedelta(days=400))) == kept


def test_the_31st_is_the_last_day_of_shorter_months_and_comes_back() -> None:
    turns = ["2027-01-31T03:00", "2027-02-28T03:00", "2027-03-31T03:00", "2027-04-30T03:00"]

    assert _turns("monthly on day 31 at 03:00", count=4) == turns


def test_29_february_falls_on_the_28th_of_common_years() -> None:
    turns = ["2027-02-28T03:00", "2028-02-29T03:00", "2029-02-28T03:00"]

    assert _turns("yearly on 29 February at 03:00") == turns


@pytest.mark.parametrize(
    ("after", "turns"),
    [
        # Clocks go forward on 28 March 2027 and back on 31 October.
        (datetime(2027, 3, 27, tzinfo=UTC), ["2027-03-27T02:00", "2027-03-28T01:00", "2027-03-29T01:00"]),
        (datetime(2027, 10, 30, tzinfo=UTC), ["2027-10-30T01:00", "2027-10-31T02:00", "2027-11-01T02:00"]),
    ],
)
def test_time_of_day_follows_the_clocks_of_its_zone(after: datetime, turns: list[str]) -> None:
    assert _turns("daily at 03:00 Europe/Paris", after=after) == turns


def test_skipped_hour_runs_later_and_repeated_hour_runs_once() -> None:
    spring = _turns("daily at 02:30 Europe/Paris", after=datetime(2027, 3, 27, 12, tzinfo=UTC), count=2)
    autumn = _turns("daily at 02:30 Europe/Paris", after=datetime(2027, 10, 30, 12, tzinfo=UTC), count=2)

    assert spring == ["2027-03-28T01:30", "2027-03-29T00:30"]
    assert autumn == ["2027-10-31T00:30", "2027-11-01T01:30"]


def test_longer_rhythm_keeps_its_first_date() -> None:
    assert _turns("every 3 days from 2026-12-31 at 03:00") == [
        "2027-02-02T03:00",
        "2027-02-05T03:00",
        "2027-02-08T03:00",
    ]
    assert _turns("every 90 days from 2028-01-01 at 03:00", count=2) == ["2028-01-01T03:00", "2028-03-31T03:00"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("now and then", "write for example once"),
        ("monthly", "monthly at 03:00"),
        ("every 0 days", "longer than nothing"),
        ("every 99999 days", "ten years"),
        ("every 6 hours at 03:00", "days, weeks, months and years only"),
        ("daily at 25:00", "00:00 to 23:59"),
        ("daily at 03:00 Europe", "unknown time zone 'Europe'"),
        ("daily at 03:00 Nowhere/Town", "unknown time zone"),
        ("daily on Monday at 03:00", "leave out: on Monday"),
        ("weekly on moonday at 03:00", "write on Monday"),
        ("monthly on day 32 at 03:00", "write on day 31"),
        ("yearly on 30 February at 03:00", "write on 1 January"),
        ("daily from 2027-01-01 at 03:00", "every 2 days"),
        ("every 2 days from 2026-02-30 at 03:00", "is no date"),
        ("every 2 days from 9999-02-28 at 03:00", "2100"),
        ("daily at 03:00, less often while nothing changes", "leave out"),
    ],
)
def test_words_that_are_no_schedule_say_what_to_write(said: str, why: str) -> None:
    with pytest.raises(ScheduleRefused, match="schedule: ") as caught:
        read_schedule(said, now=NOW)
    assert why in caught.value.reason


def test_zone_that_is_gone_from_this_machine_counts_as_utc() -> None:
    kept = schedule_of(1, "days", "2000-01-01T03:00[Gone/Zone]")

    assert kept is not None
    assert next(kept.turns(NOW)) == datetime(2027, 1, 31, 3, tzinfo=UTC)


@given(
    number=st.integers(1, 40),
    unit=st.sampled_from(["days", "weeks", "months", "years"]),
    start=st.datetimes(datetime(2000, 1, 1), datetime(2040, 12, 31)),
    zone=st.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Pacific/Apia"]),
    after=st.datetimes(datetime(2010, 1, 1), datetime(2050, 1, 1)),
)
def test_turns_rise_from_the_first_after_now(
    number: int, unit: str, start: datetime, zone: str, after: datetime
) -> None:
    schedule = Schedule(number=number, unit=unit, start=start.replace(second=0, microsecond=0), zone=zone)
    moment = after.replace(tzinfo=UTC)

    turns = list(islice(schedule.turns(moment), 4))

    assert moment < turns[0]
    assert all(earlier < later for earlier, later in pairwise(turns))
    # No turn lies between: the estimate of the first one passes none over.
    assert next(schedule.turns(turns[0] - timedelta(seconds=1))) == turns[0]
    longest = {"days": 1, "weeks": 7, "months": 31, "years": 366}[unit] * number
    assert turns[0] - max(moment, schedule.start.replace(tzinfo=UTC)) <= timedelta(days=longest + 2)  # type: ignore[union-attr]
    kept = schedule_of(number, unit, schedule.anchor)
    assert kept == schedule
