"""Time series of crawls, for the route and the command, with a bounded number of points."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.engine import moment_in, server_clock
from holdfast.db.models import Execution
from holdfast.errors import Invalid, NotFound
from holdfast.series.counting import LATENCY, LATENCY_S, OUTCOMES, STATUSES, attempts_of, failures_of
from holdfast.series.queries import DAY_S, HOUR_S, SeriesPoint, series_points
from holdfast.series.raw_queries import MINUTE_S
from holdfast.series.records import LatencyColumns, TimeSeries
from holdfast.series.thinning import HOURS_DAYS, MINUTES_DAYS

STEPS_S: Final = (MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, HOUR_S, 6 * HOUR_S, DAY_S)
MOST_POINTS: Final = 2000
_USUAL_POINTS: Final = 300
DEFAULT_HOURS: Final = 24
_FIRST: Final = from_micros(0)


class BadSpan(Invalid):
    """A time series was requested over an invalid span."""

    code = "bad_span"


def read_series(
    session: Session,
    clock: Clock,
    *,
    hours: int = DEFAULT_HOURS,
    since: datetime | None = None,
    until: datetime | None = None,
    step_s: int | None = None,
    execution_id: int | None = None,
    source: str | None = None,
) -> TimeSeries:
    """Return the series; raise BadSpan if it would have too many points or none, NotFound for an unknown execution.

    `since` replaces `hours`; without `until` the series ends now.
    """
    now = moment_in(session, server_clock(clock))
    if execution_id is not None and session.get(Execution, execution_id) is None:
        raise NotFound(f"there is no execution {execution_id}; the newest are listed by: holdfast status")
    for name, moment in (("from", since), ("to", until)):
        # There are no earlier crawls, and near the year 1 an hour earlier does not exist.
        if moment is not None and moment < _FIRST:
            raise BadSpan(f"{name}: the series starts in 1970", field=name)
    until = min(until or now, now)
    since = since if since is not None else until - timedelta(hours=hours)
    if since >= until:
        raise BadSpan("from: it must be before `to` and before now", field="from")
    step_s = _step(step_s, since, until, kept_s=_finest(now - since))
    step = step_s * 1_000_000
    since, until = from_micros(to_micros(since) // step * step), from_micros(-(-to_micros(until) // step) * step)
    points = series_points(session, since=since, until=until, step_s=step_s, execution_id=execution_id, source=source)
    return _columns(points, since, until, step_s)


def _finest(age: timedelta) -> int:
    if age <= timedelta(days=MINUTES_DAYS):
        return MINUTE_S
    return HOUR_S if age <= timedelta(days=HOURS_DAYS) else DAY_S


def _step(asked_s: int | None, since: datetime, until: datetime, *, kept_s: int) -> int:
    seconds = (until - since).total_seconds()
    if asked_s is None:
        fitting = [step_s for step_s in STEPS_S if step_s >= kept_s and seconds / step_s <= _USUAL_POINTS]
        step_s = fitting[0] if fitting else DAY_S
    else:
        # Hourly data has no minutes.
        step_s = max(asked_s, kept_s)
    if seconds / step_s > MOST_POINTS:
        most = f"{MOST_POINTS:,} points"
        raise BadSpan(f"step: there would be more than {most}; ask for a longer step or a shorter span", field="step")
    return step_s


def _columns(points: list[SeriesPoint], since: datetime, until: datetime, step_s: int) -> TimeSeries:
    counts = [point.counts for point in points]

    def column(name: str) -> list[int]:
        return [one[name] for one in counts]

    return TimeSeries(
        since=since,
        until=until,
        step_seconds=step_s,
        timestamps=[point.at for point in points],
        pages_crawled=column("pages"),
        pages_failed=[failures_of(one) for one in counts],
        bytes_downloaded=column("bytes"),
        requests=column("requests"),
        attempts=[attempts_of(one) for one in counts],
        retries=column("retries"),
        links_discovered=column("links"),
        duplicates_skipped=column("unchanged"),
        robots_denied=column("blocked_robots"),
        circuits_opened=column("circuits_opened"),
        imported_records=column("imported_records"),
        outcomes={name: column(name) for name in OUTCOMES},
        status_classes={name.removeprefix("status_"): column(name) for name in STATUSES},
        queue=[point.queue for point in points],
        domains_waiting=[point.domains_waiting for point in points],
        latency=LatencyColumns(
            bounds_seconds=list(LATENCY_S),
            counts=[[one[name] for name in LATENCY] for one in counts],
            seconds=[one["latency_ms"] / 1000 for one in counts],
        ),
    )
