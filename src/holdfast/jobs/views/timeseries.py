"""What crawls did over time: one question for the route and the command, with a bounded number of points."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.config import JobSettings
from holdfast.db.engine import moment_in, server_clock
from holdfast.db.models import Execution
from holdfast.errors import Invalid, NotFound
from holdfast.series.counting import LATENCY, LATENCY_S, OUTCOMES, STATUSES, attempts_of, failures_of
from holdfast.series.queries import DAY_S, HOUR_S, SeriesPoint, SeriesWish, series_points
from holdfast.series.raw_queries import MINUTE_S
from holdfast.values import dataclass

STEPS_S: Final = (MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, HOUR_S, 6 * HOUR_S, DAY_S)
MOST_POINTS: Final = 2000
_USUAL_POINTS: Final = 300
DEFAULT_HOURS: Final = 24
_FIRST: Final = from_micros(0)


class BadSpan(Invalid):
    """A time series was asked for over a span that cannot be answered."""

    code = "bad_span"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesQuestion:
    """What is asked; what is None is left to us."""

    hours: int = DEFAULT_HOURS
    since: datetime | None = None
    """Wins over `hours`."""
    until: datetime | None = None
    """Now, if left out."""
    step_s: int | None = None
    execution_id: int | None = None
    source: str | None = None


class SeriesAnswer(NamedTuple):
    """The points, and what they cover."""

    since: datetime
    until: datetime
    step_s: int
    points: list[SeriesPoint]


def read_series(session: Session, clock: Clock, settings: JobSettings, asked: SeriesQuestion) -> SeriesAnswer:
    """Return the points; BadSpan if there would be too many or none, NotFound if there is no such execution."""
    now = moment_in(session, server_clock(clock))
    if asked.execution_id is not None and session.get(Execution, asked.execution_id) is None:
        raise NotFound(f"there is no execution {asked.execution_id}; the newest are listed by: holdfast status")
    for name, moment in (("from", asked.since), ("to", asked.until)):
        # No crawl was before, and near the year 1 there is no moment that lies an hour earlier.
        if moment is not None and moment < _FIRST:
            raise BadSpan(f"{name}: crawls are told of from 1970 on", field=name)
    until = min(asked.until or now, now)
    since = asked.since if asked.since is not None else until - timedelta(hours=asked.hours)
    if since >= until:
        raise BadSpan("from: it has to lie before `to` and before now", field="from")
    step_s = _step(asked.step_s, since, until, kept_s=_finest(settings, now - since))
    step = step_s * 1_000_000
    wish = SeriesWish(
        since=from_micros(to_micros(since) // step * step),
        until=from_micros(-(-to_micros(until) // step) * step),
        step_s=step_s,
        execution_id=asked.execution_id,
        source=asked.source,
    )
    return SeriesAnswer(wish.since, wish.until, step_s, series_points(session, wish))


def _finest(settings: JobSettings, age: timedelta) -> int:
    """Return the shortest step that is still kept of what happened so long ago."""
    if age <= timedelta(days=settings.series_minutes_days):
        return MINUTE_S
    return HOUR_S if age <= timedelta(days=settings.series_hours_days) else DAY_S


def _step(asked_s: int | None, since: datetime, until: datetime, *, kept_s: int) -> int:
    seconds = (until - since).total_seconds()
    if asked_s is None:
        fitting = [step_s for step_s in STEPS_S if step_s >= kept_s and seconds / step_s <= _USUAL_POINTS]
        step_s = fitting[0] if fitting else DAY_S
    else:
        # What is only kept by the hour cannot be told by the minute.
        step_s = max(asked_s, kept_s)
    if seconds / step_s > MOST_POINTS:
        most = f"{MOST_POINTS:,} points"
        raise BadSpan(f"step: there would be more than {most}; ask for a longer step or a shorter span", field="step")
    return step_s


def series_columns(points: list[SeriesPoint]) -> dict[str, Any]:
    """Return the points column by column, as the route and `--json` show them."""
    counts = [point.counts for point in points]

    def column(name: str) -> list[int]:
        return [one[name] for one in counts]

    return {
        "timestamps": [point.at for point in points],
        "pages_crawled": column("pages"),
        "pages_failed": [failures_of(one) for one in counts],
        "bytes_downloaded": column("bytes"),
        "requests": column("requests"),
        "attempts": [attempts_of(one) for one in counts],
        "retries": column("retries"),
        "links_discovered": column("links"),
        "duplicates_skipped": column("unchanged"),
        "robots_denied": column("blocked_robots"),
        "circuits_opened": column("circuits_opened"),
        "imported_records": column("imported_records"),
        "outcomes": {name: column(name) for name in OUTCOMES},
        "status_classes": {name.removeprefix("status_"): column(name) for name in STATUSES},
        "queue": [point.queue for point in points],
        "domains_waiting": [point.domains_waiting for point in points],
        "latency": {
            "bounds_seconds": list(LATENCY_S),
            "counts": [[one[name] for name in LATENCY] for one in counts],
            "seconds": [one["latency_ms"] / 1000 for one in counts],
        },
    }
