"""`/api/stats/…` and `/api/alerts`: crawl activity over time and recently, and current problems."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import IntEnum
from typing import Annotated, Literal

from fastapi import Query

from holdfast.api.dependencies import ArchiveDep, SessionDep, SourceCode, WorkDep, source_of
from holdfast.api.live.topics import CrawlerFigures, read_figures
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_cursor, piece_of
from holdfast.auth.roles import Permission
from holdfast.jobs.alerts import AlertRecord, alert_record
from holdfast.jobs.alerts import list_alerts as select_alerts
from holdfast.jobs.views.activity import Activity, BusyOrder, read_activity
from holdfast.jobs.views.timeseries import DEFAULT_HOURS, read_series
from holdfast.series.records import TimeSeries

router = LazyRouter(tags=["crawler"])


class SeriesStep(IntEnum):
    """Seconds between two points."""

    MINUTE = 60
    FIVE_MINUTES = 300
    QUARTER = 900
    HOUR = 3600
    SIX_HOURS = 21600
    DAY = 86400


@router.get("/api/stats/timeseries", Permission.WATCH, errors=(404,))
def show_timeseries(
    archive: ArchiveDep,
    session: SessionDep,
    hours: Annotated[int, Query(ge=1, le=43_800, description="How far back, if `from` is left out.")] = DEFAULT_HOURS,
    since: Annotated[datetime | None, Query(alias="from", description="First moment; UTC unless it says.")] = None,
    until: Annotated[datetime | None, Query(alias="to", description="Last moment; now if left out.")] = None,
    step: Annotated[
        SeriesStep | None,
        Query(description="Seconds of a point; ours if left out, longer where no finer ones are kept."),
    ] = None,
    execution: Annotated[RowId | None, Query(description="Only this execution.")] = None,
    source: SourceCode = None,
) -> TimeSeries:
    """Return crawl figures over time: pages, bytes, outcomes, statuses, times, queue; at most 2,000 points."""
    return read_series(
        session,
        archive.clock,
        hours=hours,
        since=_aware(since),
        until=_aware(until),
        step_s=step,
        execution_id=execution,
        source=source_of(session, source).code if source else None,
    )


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


@router.get("/api/stats/activity", Permission.WATCH)
def show_activity(
    archive: ArchiveDep,
    session: SessionDep,
    hours: Annotated[int, Query(ge=1, le=43_800, description="How far back.")] = DEFAULT_HOURS,
    sort_by: Annotated[
        BusyOrder, Query(alias="sortBy", description="By what the domains are chosen and sorted.")
    ] = BusyOrder.CAPTURES,
) -> Activity:
    """Return recent crawl activity: status codes, busiest domains, newest pages, unreachable hosts."""
    return read_activity(session, archive.clock, hours=hours, order=sort_by)


@router.get("/api/crawler/figures", Permission.WATCH)
def show_crawler_figures(archive: ArchiveDep, work: WorkDep) -> CrawlerFigures:
    """Return current crawl figures: those of the metrics stream, for clients that poll."""
    return read_figures(archive.database, work)


@router.get("/api/alerts", Permission.WATCH)
def list_alerts(
    session: SessionDep,
    state: Annotated[Literal["firing", "resolved"] | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Piece[AlertRecord]:
    """Return firing and resolved alerts, newest first."""
    place = decode_cursor(cursor, int)
    rows = select_alerts(
        session,
        is_firing=None if state is None else state == "firing",
        before=int(place[0]) if place else None,
        limit=limit + 1,
    )
    return piece_of(rows, limit, alert_record, lambda row: row.id)
