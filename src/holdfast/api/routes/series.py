"""`/api/stats/…` and `/api/alerts`: what crawls did over time and lately, and what is wrong with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query

from holdfast.api.dependencies import ArchiveDep, SessionDep, SourceCode, WorkDep, source_of
from holdfast.api.errors import answers
from holdfast.api.late_routes import LateRouter
from holdfast.api.live.topics import sample_figures
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.api.schemas.series import (
    ActivityShown,
    AlertShown,
    AlertState,
    BusyDomain,
    CrawlerFigures,
    HostGivenUp,
    RequestedPage,
    SeriesStep,
    StatusCount,
    TimeSeries,
)
from holdfast.db.models import Alert
from holdfast.jobs.alert_queries import list_alerts as select_alerts
from holdfast.jobs.alerts import AlertName, AlertSeverity
from holdfast.jobs.views.activity import BusyOrder, read_activity
from holdfast.jobs.views.outcome_words import outcome_word
from holdfast.jobs.views.timeseries import DEFAULT_HOURS, SeriesQuestion, read_series, series_columns
from holdfast.types import Outcome

router = LateRouter(tags=["crawler"])


@router.get("/api/stats/timeseries", responses=answers(404, 422, 503))
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
    """Return what crawls did: pages, bytes, outcomes, statuses, times, queue; at most 2,000 points."""
    asked = SeriesQuestion(
        hours=hours,
        since=_aware(since),
        until=_aware(until),
        step_s=step,
        execution_id=execution,
        source=source_of(session, source).code if source else None,
    )
    found = read_series(session, archive.clock, archive.settings.jobs, asked)
    columns = series_columns(found.points)
    return TimeSeries(since=found.since, until=found.until, step_seconds=found.step_s, **columns)


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


@router.get("/api/stats/activity", responses=answers(422, 503))
def show_activity(
    archive: ArchiveDep,
    session: SessionDep,
    hours: Annotated[int, Query(ge=1, le=43_800, description="How far back.")] = DEFAULT_HOURS,
    sort_by: Annotated[
        BusyOrder, Query(alias="sortBy", description="By what the domains are chosen and sorted.")
    ] = BusyOrder.CAPTURES,
) -> ActivityShown:
    """Return what crawls did lately: status codes, busiest domains, newest pages, hosts that do not answer."""
    found = read_activity(session, archive.clock, archive.settings.jobs, hours=hours, order=sort_by)
    return ActivityShown(
        since=found.since,
        until=found.until,
        status_classes=dict(found.status_classes),
        attempts=found.attempts,
        is_cut=found.is_cut,
        counted_from=found.counted_from,
        statuses=[StatusCount(status=status, attempts=count) for status, count in found.statuses],
        domains=[BusyDomain(**one._asdict()) for one in found.domains],
        pages=[
            RequestedPage(
                url=one.url,
                title=one.title,
                outcome=Outcome(one.outcome),
                word=outcome_word(one.outcome, one.reason),
                reason=one.reason,
                status=one.status,
                completed_at=one.completed_at,
                execution_id=one.execution_id,
                source_code=one.source,
                snapshot_id=one.capture.id if one.capture else None,
                captured_at=one.capture.captured_at if one.capture else None,
            )
            for one in found.pages
        ],
        unreachable_hosts=[HostGivenUp(**one._asdict()) for one in found.unreachable],
    )


@router.get("/api/crawler/figures", responses=answers(503))
def show_crawler_figures(archive: ArchiveDep, work: WorkDep) -> CrawlerFigures:
    """Return what crawls do now: what the stream of figures tells, for those that ask from time to time."""
    return CrawlerFigures.model_validate(sample_figures(archive.database, work))


@router.get("/api/alerts", responses=answers(422, 503))
def list_alerts(
    session: SessionDep,
    state: Annotated[AlertState | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Listed[AlertShown]:
    """Return what is and was wrong, newest first."""
    place = decode_cursor(cursor, int)
    rows = select_alerts(
        session,
        is_firing=None if state is None else state is AlertState.FIRING,
        before=int(place[0]) if place else None,
        limit=limit + 1,
    )
    shown = rows[:limit]
    return Listed(
        items=[_shown(row) for row in shown],
        next=encode_cursor(shown[-1].id) if len(rows) > limit else None,
        limit=limit,
    )


def _shown(row: Alert) -> AlertShown:
    return AlertShown(
        id=row.id,
        name=AlertName(row.name),
        severity=AlertSeverity(row.severity),
        state=AlertState.FIRING if row.resolved_at is None else AlertState.RESOLVED,
        since=row.since,
        last_seen_at=row.last_seen_at,
        resolved_at=row.resolved_at,
        value=row.value,
        message=row.message,
    )
