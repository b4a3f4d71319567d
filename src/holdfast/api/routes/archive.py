"""The archive as a whole: `/` for people, totals, usage, crawl activity over time and current problems for programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from enum import IntEnum
from typing import Annotated, Literal

from fastapi import Query
from fastapi.responses import HTMLResponse

from holdfast import log
from holdfast.api.dependencies import ArchiveDep, SessionDep, SourceCode, TotalsDep, UsageDep, WorkDep, source_of
from holdfast.api.live.topics import CrawlerFigures, read_figures
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.auth.roles import Permission
from holdfast.feedback import Usage, UsageDay, UsageTotals, Use
from holdfast.index.capture_queries import newest_pages, showing
from holdfast.jobs.alerts import AlertName, AlertRecord, alert_record
from holdfast.jobs.alerts import list_alerts as select_alerts
from holdfast.jobs.views.activity import Activity, BusyOrder, read_activity
from holdfast.jobs.views.timeseries import DEFAULT_HOURS, read_series
from holdfast.records import Public, from_row, record
from holdfast.replay.links import escape
from holdfast.replay.origins import browse_url
from holdfast.replay.pages import html_page
from holdfast.series.records import TimeSeries
from holdfast.withdrawals.visibility import members_among

USAGE_DAYS = 30


def page(title: str, body: str) -> str:
    """Return a page of this host; escapes the title, but expects the body to be HTML."""
    # Serve it as a separate file: the policy of this host's pages allows no inline styles.
    return html_page(title, body, style="<link rel=stylesheet href=/style.css>")


home_router = LazyRouter(tags=["archive"], include_in_schema=False, any_query=True)
_SHOWN = 200
_UNBUILT = "<p>The browser application is not built here: <code>make web</code> in a checkout builds it.</p>"


@home_router.get("/", Permission.READ)
def home(archive: ArchiveDep, session: SessionDep, totals: TotalsDep) -> HTMLResponse:
    """Show the sources, each with the newest capture of its first page; used when the application is not built."""
    kept = totals.read(session)
    listed = kept.listed[:_SHOWN]
    # Query it every time: the counted totals may be older than a takedown.
    shown = showing(session, [one for total in listed for one in kept.representatives[total.source_id].entry])
    led = members_among(session, shown)
    rows = []
    for total in listed:
        entry = next((shown[one] for one in kept.representatives[total.source_id].entry if one in shown), None)
        name = escape(total.name)
        if entry is not None:
            link = browse_url(archive.settings, entry, for_members=entry.id in led)
            name = f'<a href="{escape(link)}">{name}</a>'
        rows.append(
            f"<li>{name}: {_counted(total.snapshots, 'capture')}, {total.first:%Y-%m-%d} to {total.last:%Y-%m-%d}"
        )
    captures, pages = sum(one.snapshots for one in kept.listed), sum(one.pages for one in kept.listed)
    about = "" if archive.settings.api.strict else ' · <a href="/docs">all routes</a>'
    return HTMLResponse(
        page(
            "Holdfast",
            f"<h1>Holdfast</h1>{_UNBUILT}"
            f"<p>{_counted(captures, 'capture')} of {_counted(pages, 'page')} "
            f"from {_counted(len(kept.listed), 'source')}.</p>"
            "<form action=/api/search><label for=q>Search</label> <input id=q name=q required maxlength=256> "
            f"<button>Find</button></form><ul>{''.join(rows)}</ul>"
            f"<p><a href=/api/stats>figures</a> · <a href=/api/sources>sources</a>{about} · "
            "<a href=/report>report a problem</a></p>",
        )
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


_log = log.get()
router = LazyRouter(tags=["archive"])
_INCIDENTS = {
    AlertName.HIGH_ERROR_RATE: "Many pages cannot be fetched, so new captures may be missing.",
    AlertName.FRONTIER_BACKLOG: "Many pages are waiting to be crawled, so new captures come late.",
    AlertName.WORKER_SILENT: "A crawler does not answer, so new captures may come late.",
    AlertName.CRAWL_STALLED: "A crawl makes no progress, so new captures may come late.",
}


@record
class Incident:
    """A current problem, described for readers."""

    since: Public[datetime]
    message: Public[str]


@record
class ArchiveStatus:
    """Whether the archive works."""

    status: Public[Literal["ok", "degraded"]]
    last_capture: Public[datetime | None]
    sources: Public[int]
    """Number of public sources."""
    incidents: Public[list[Incident]]


@router.get("/api/status", Permission.READ)
def archive_status(session: SessionDep, totals: TotalsDep) -> ArchiveStatus:
    """Return the public status of the archive: the newest public capture, public sources, and incidents."""
    # Use fixed sentences: an alert's message may name hosts and sources that are not public.
    firing = select_alerts(session, is_firing=True, before=None, limit=len(_INCIDENTS))
    incidents = [Incident(since=one.since, message=_INCIDENTS[AlertName(one.name)]) for one in firing]
    found = totals.read_public(session)
    state: Literal["ok", "degraded"] = "degraded" if incidents else "ok"
    return ArchiveStatus(status=state, last_capture=found.latest, sources=len(found.sources), incidents=incidents)


@home_router.get("/status", Permission.READ)
def status_page(session: SessionDep, totals: TotalsDep) -> HTMLResponse:
    """Show the archive's status as an HTML page."""
    shown = archive_status(session, totals)
    works = "The archive works." if shown.status == "ok" else "The archive answers; something is wrong with its crawls."
    last = f"{shown.last_capture:%Y-%m-%d %H:%M} UTC" if shown.last_capture else "none yet"
    since = "".join(f"<li>{escape(one.message)} Since {one.since:%Y-%m-%d %H:%M} UTC." for one in shown.incidents)
    body = (
        f"<h1>Status</h1><p class=verb>{works}</p><p>Newest capture: {last}</p>"
        f"<p>Public sources: {shown.sources:,}</p><h2>Incidents</h2>{f'<ul>{since}</ul>' if since else '<p>None.</p>'}"
        "<p><a href=/>To the archive</a> · <a href=/report>Report a problem</a></p>"
    )
    return HTMLResponse(page("Status", body), headers={"Cache-Control": "no-store"})


_RECENT = 20


@record
class Stats:
    """Totals of the archive and its crawls, in one object."""

    snapshots_total: Public[int]
    """Number of page captures."""
    pages_total: Public[int]
    """Number of pages, ignoring query strings."""
    sources_total: Public[int]
    """Number of sources that have captures."""
    latest_capture_date: Public[date | None]
    """Day of the newest capture, UTC."""
    latest_capture_age_days: Public[int | None]
    """Days since then."""
    pages_crawled: Public[int]
    """Pages that crawls fetched successfully."""
    pages_failed: Public[int]
    """URLs that failed: errors, timeouts, 4xx and 5xx."""
    bytes_downloaded: Public[int]
    links_discovered: Public[int]
    """URLs that crawls discovered."""
    duplicates_skipped: Public[int]
    """Captures whose text was already stored."""
    frontier_pending: Public[int]
    """Queued URLs."""
    frontier_in_progress: Public[int]
    """Domains that workers are currently fetching from."""
    frontier_completed: Public[int]
    frontier_failed: Public[int]
    total_domains: Public[int]
    active_workers: Public[list[str]]
    worker_heartbeats: Public[list[WorkerHeartbeat]]
    recent_pages: Public[list[RecentPage]]
    """The 20 most recently captured pages."""
    top_domains: Public[list[TopDomain]]
    """The 10 domains with the most pages."""


@record
class WorkerHeartbeat:
    """The last heartbeat of a worker."""

    worker_id: Public[str]
    last_heartbeat: Public[datetime]


@record
class RecentPage:
    """A recently captured page."""

    id: Public[int]
    url: Public[str]
    title: Public[str | None]
    status_code: Public[int | None]
    crawled_at: Public[datetime]


@record
class TopDomain:
    """A domain, and how many of its URLs were captured."""

    domain: Public[str]
    page_count: Public[int]


@router.get("/api/stats", Permission.READ)
def stats(archive: ArchiveDep, session: SessionDep, totals: TotalsDep) -> Stats:
    """Return the totals of the archive and of its crawls. Workers are numbered, not named."""
    found = totals.read(session)
    crawls, latest = found.crawls, found.latest
    return from_row(
        Stats,
        crawls,
        snapshots_total=found.snapshots,
        pages_total=found.pages,
        sources_total=len(found.sources),
        latest_capture_date=latest.date() if latest else None,
        latest_capture_age_days=max(0, (archive.clock.now() - latest).days) if latest else None,
        duplicates_skipped=max(0, found.snapshots - found.documents),
        # Number the workers: names of machines and process ids are not public.
        active_workers=[f"worker-{number}" for number, _ in enumerate(crawls.workers, 1)],
        worker_heartbeats=[
            WorkerHeartbeat(worker_id=f"worker-{number}", last_heartbeat=owner.heartbeat_at)
            for number, owner in enumerate(crawls.workers, 1)
        ],
        recent_pages=[
            from_row(RecentPage, page, status_code=page.status, crawled_at=page.captured_at)
            for page in newest_pages(session, limit=_RECENT)
        ],
        top_domains=[TopDomain(domain=name, page_count=count) for name, count in crawls.top],
    )


@router.get("/api/usage", Permission.READ)
def usage(archive: ArchiveDep, tally: UsageDep) -> Usage:
    """Return usage counts of the last days; empty if counting is switched off."""
    settings = archive.settings.api
    days = tally.days(USAGE_DAYS) if settings.usage else {}
    return Usage(
        enabled=settings.usage,
        window_days=USAGE_DAYS,
        totals=UsageTotals(**_named(days.values())),
        daily=[UsageDay(date=date, **_named([counts])) for date, counts in days.items()],
    )


def _named(days: Collection[Mapping[Use, int]]) -> dict[str, int]:
    return {use.value: sum(counts[use] for counts in days) for use in Use}


series_router = LazyRouter(tags=["crawler"])


class SeriesStep(IntEnum):
    """Seconds between two points."""

    MINUTE = 60
    FIVE_MINUTES = 300
    QUARTER = 900
    HOUR = 3600
    SIX_HOURS = 21600
    DAY = 86400


@series_router.get("/api/stats/timeseries", Permission.WATCH, errors=(404,))
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


@series_router.get("/api/stats/activity", Permission.WATCH)
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


@series_router.get("/api/crawler/figures", Permission.WATCH)
def show_crawler_figures(archive: ArchiveDep, work: WorkDep) -> CrawlerFigures:
    """Return current crawl figures: those of the metrics stream, for clients that poll."""
    return read_figures(archive.database, work)


@series_router.get("/api/alerts", Permission.WATCH)
def list_alerts(
    session: SessionDep,
    state: Annotated[Literal["firing", "resolved"] | None, Query(description="Only these.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
) -> Piece[AlertRecord]:
    """Return firing and resolved alerts, newest first."""
    rows = select_alerts(
        session,
        is_firing=None if state is None else state == "firing",
        before=decode_id(cursor),
        limit=limit + 1,
    )
    return piece_of(rows, limit, alert_record, lambda row: row.id)
