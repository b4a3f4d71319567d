"""Schedules of sources in words: `every 6 hours`, `monthly on day 31 at 03:00 Europe/Paris`, `once`.

Files, commands, the API and the pages all use these words; this module parses, writes and evaluates them.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.errors import Invalid
from holdfast.values import dataclass

UNITS: Final = {
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
    "weeks": timedelta(weeks=1),
    # Only an approximate length: their runs are dates.
    "months": timedelta(days=30),
    "years": timedelta(days=365),
}
LONGEST: Final = timedelta(days=3660)
ONCE: Final = "once"
ADAPTS: Final = "less often while nothing changes"
_MONTHS_IN: Final = {"months": 1, "years": 12}
DATED: Final = frozenset(_MONTHS_IN)
"""Units whose turns are dates and which therefore need a start date."""
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_OFTEN: Final = {"daily": "days", "weekly": "weeks", "monthly": "months", "yearly": "years"}
_WORD_OF: Final = {unit: word for word, unit in _OFTEN.items()}
_SHORT: Final = {"": "minutes", "m": "minutes", "h": "hours", "d": "days"}
# In the year 2000 the first of January is a Saturday, and February has 29 days: every day of a year can be named.
_EPOCH: Final = datetime(2000, 1, 1)
_LAST_YEAR: Final = 2100
_EXAMPLES: Final = "once, every 6 hours, daily at 03:00, weekly on Monday at 03:00, monthly on day 31 at 03:00"
_SENTENCE: Final = re.compile(
    r"(?:(?P<often>daily|weekly|monthly|yearly)"
    r"|every (?:(?P<number>\d{1,7}) )?(?P<unit>minute|hour|day|week|month|year)s?)"
    r"(?: on (?:the |day )?(?P<on>[a-z]+|\d{1,2}(?:st|nd|rd|th)?(?: [a-z]+)?|[a-z]+ \d{1,2}(?:st|nd|rd|th)?))?"
    r"(?: from (?P<from>\d{4}-\d{2}-\d{2}))?"
    r"(?: at (?P<at>\d{1,2}:\d{2})(?: (?P<zone>[a-z0-9_+/-]{1,40}))?)?"
    rf"(?P<adapts>,? {ADAPTS})?",
    re.I,
)
_ANCHOR: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)\[([^\]]{1,40})\]")


class ScheduleRefused(Invalid):
    """The text is not a valid schedule."""

    code = "schedule_refused"

    def __init__(self, reason: str) -> None:
        super().__init__(f"schedule: {reason}")
        self.field, self.reason = "schedule", reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """An interval, with an optional local start date and time; without one the scheduler chooses the time."""

    number: int
    unit: str
    start: datetime | None = None
    """The first turn in the local time of `zone`; the others follow in whole units."""
    zone: str = "UTC"
    adapts: bool = False
    """Whether an unchanged start page lengthens the interval; dates are never moved."""

    @property
    def interval(self) -> timedelta:
        """Time between two turns; approximate for months and years."""
        return self.number * UNITS[self.unit]

    @property
    def anchor(self) -> str | None:
        return None if self.start is None else f"{self.start:%Y-%m-%dT%H:%M}[{self.zone}]"

    def turns(self, after: datetime) -> Iterator[datetime]:
        """Yield the due times after this one. Requires a schedule with a start."""
        assert self.start is not None
        zone = _clock_of(self.zone)
        # Start one run early: the estimate ignores zone offsets and the lengths of months.
        for turn in count(max(0, self._turns_since(after.astimezone(zone).replace(tzinfo=None)) - 1)):
            # A skipped hour counts as the one after it, and a repeated hour as its first occurrence.
            moment = self._local(turn).replace(tzinfo=zone).astimezone(UTC)
            if moment > after:
                yield moment

    def _turns_since(self, local: datetime) -> int:
        assert self.start is not None
        if self.unit in _MONTHS_IN:
            months = (local.year - self.start.year) * 12 + local.month - self.start.month
            return months // (self.number * _MONTHS_IN[self.unit])
        return (local - self.start) // self.interval

    def _local(self, turn: int) -> datetime:
        assert self.start is not None
        if self.unit not in _MONTHS_IN:
            return self.start + turn * self.interval
        months = self.start.month - 1 + turn * self.number * _MONTHS_IN[self.unit]
        year, month = self.start.year + months // 12, months % 12 + 1
        # Use the start's day each time: a February must not turn the 31st into the 28th forever.
        return self.start.replace(year=year, month=month, day=min(self.start.day, monthrange(year, month)[1]))

    def words(self) -> str:
        if self.start is None:
            every = f"every {self.unit[:-1]}" if self.number == 1 else f"every {self.number} {self.unit}"
            return f"{every}, {ADAPTS}" if self.adapts else every
        time = f"at {self.start:%H:%M} {self.zone}"
        if self.number > 1:
            return f"every {self.number} {self.unit} from {self.start:%Y-%m-%d} {time}"
        on = {
            "days": "",
            "weeks": f" on {_DAYS[self.start.weekday()]}",
            "months": f" on day {self.start.day}",
            "years": f" on {self.start.day} {_MONTHS[self.start.month - 1]}",
        }
        return f"{_WORD_OF[self.unit]}{on[self.unit]} {time}"


def schedule_of(number: int | None, unit: str, anchor: str | None, *, adapts: bool = False) -> Schedule | None:
    """Return the schedule stored in a row; None for a single run."""
    if number is None:
        return None
    found = _ANCHOR.fullmatch(anchor or "")
    if found is None:
        return Schedule(number=number, unit=unit, adapts=adapts)
    return Schedule(number=number, unit=unit, start=datetime.fromisoformat(found[1]), zone=found[2])


def words_of(schedule: Schedule | None) -> str:
    return ONCE if schedule is None else schedule.words()


def read_schedule(text: str, *, now: datetime) -> Schedule | None:
    """Parse a schedule, None for `once`; raise ScheduleRefused with a suggestion.

    An interval of several units with a time of day but no date starts at the next such time after `now`.
    """
    said = " ".join(text.split())
    if said.lower() == ONCE:
        return None
    short = re.fullmatch(r"(\d{1,7})([mhd]?)", said.lower())
    if short is not None:
        return _checked(Schedule(number=int(short[1]), unit=_SHORT[short[2]]))
    found = _SENTENCE.fullmatch(said)
    if found is None:
        raise ScheduleRefused(f"{said[:60]!r} is invalid; write for example {_EXAMPLES}")
    unit = _OFTEN.get((found["often"] or "").lower()) or f"{found['unit'].lower()}s"
    number = int(found["number"] or 1)
    adapts, is_dated = found["adapts"] is not None, bool(found["on"] or found["from"])
    if found["at"] is None:
        if is_dated or unit in DATED:
            raise ScheduleRefused(f"a time of day is missing; write for example: {said[:60]} at 03:00")
        return _checked(Schedule(number=number, unit=unit, adapts=adapts))
    if unit in ("minutes", "hours"):
        raise ScheduleRefused("a time of day goes with days, weeks, months and years only")
    if adapts:
        raise ScheduleRefused(f"a fixed time is kept whatever the page does; leave out: {ADAPTS}")
    _checked(Schedule(number=number, unit=unit))
    zone = _zone(found["zone"] or "UTC")
    start = _start(found["on"], unit, _time(found["at"]))
    if found["from"] is not None:
        start = _from(found["from"], found["on"], start, number)
    elif number > 1:
        start = next(Schedule(number=1, unit=unit, start=start, zone=zone).turns(now)).astimezone(_clock_of(zone))
        start = start.replace(tzinfo=None)
    return Schedule(number=number, unit=unit, start=start, zone=zone)


def _checked(schedule: Schedule) -> Schedule:
    if not 0 < schedule.number <= LONGEST // UNITS[schedule.unit]:
        raise ScheduleRefused("the time between two runs must be longer than nothing, and ten years at most")
    return schedule


def _zone(name: str) -> str:
    name = "UTC" if name.upper() == "UTC" else name
    if name != "UTC" and _clock_of(name) is UTC:
        raise ScheduleRefused(f"unknown time zone {name!r}; write for example UTC or Europe/Paris")
    return name


def _clock_of(zone: str) -> tzinfo:
    """Return a time zone; UTC if this machine does not know it, so that a run that ends still gets its next turn."""
    try:
        return ZoneInfo(zone)
    # A folder of the zone database, as `Europe`, raises OSError.
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _time(text: str) -> timedelta:
    hour, minute = map(int, text.split(":"))
    if hour > 23 or minute > 59:
        raise ScheduleRefused(f"{text} is no time of day; write 00:00 to 23:59")
    return timedelta(hours=hour, minutes=minute)


def _start(on: str | None, unit: str, time: timedelta) -> datetime:
    said = (on or "").lower()
    digits = re.search(r"\d+", said)
    day, word = int(digits[0]) if digits else None, re.sub(r"\d+(st|nd|rd|th)?", "", said).strip()
    if unit == "weeks" and (place := _place(word, _DAYS)) is not None and day is None:
        return _EPOCH + timedelta(days=(place - _EPOCH.weekday()) % 7) + time
    if unit == "months" and not word and (day is None or 1 <= day <= 31):
        return _EPOCH.replace(day=day or 1) + time
    if unit == "years" and (place := _place(word, _MONTHS)) is not None:
        if 1 <= (day or 1) <= monthrange(2000, place + 1)[1]:
            return _EPOCH.replace(month=place + 1, day=day or 1) + time
    elif unit == "days" and not said:
        return _EPOCH + time
    wanted = {"weeks": "on Monday", "months": "on day 31", "years": "on 1 January"}.get(unit)
    said_so = f"{(on or '')[:40]!r} is no day of {'a week' if unit == 'weeks' else unit}"
    raise ScheduleRefused(f"{said_so}; write {wanted}" if wanted else f"days have no day to choose; leave out: on {on}")


def _place(word: str, names: tuple[str, ...]) -> int | None:
    if not word:
        return 0
    return next((place for place, name in enumerate(names) if word in (name.lower(), name.lower()[:3])), None)


def _from(text: str, on: str | None, start: datetime, number: int) -> datetime:
    if on is not None or number == 1:
        raise ScheduleRefused("`from DATE` goes with `every 2 days` and more, and names the day itself")
    try:
        day = datetime.fromisoformat(text)
    except ValueError as exc:
        raise ScheduleRefused(f"{text} is no date; write for example 2026-01-31") from exc
    if not _EPOCH.year <= day.year <= _LAST_YEAR:
        raise ScheduleRefused(f"{text} must lie between {_EPOCH.year} and {_LAST_YEAR}")
    return datetime.combine(day.date(), start.time())
