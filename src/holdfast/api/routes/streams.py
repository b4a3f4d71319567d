"""Live streams of server-sent events: jobs, health, figures, all public events, and job logs.

A client that reconnects sends `Last-Event-ID` and receives the events that it missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Header, Request
from fastapi.responses import Response, StreamingResponse

from holdfast.api.dependencies import ArchiveDep, WorkDep
from holdfast.api.errors import answers
from holdfast.api.live.hub import EventStream, Frame, Hub, Listener, StreamRequest, Topic
from holdfast.api.live.topics import (
    CrawlerTopic,
    EventsTopic,
    LogKey,
    LogTopic,
    SampledTopic,
    read_figures,
    sample_health,
)
from holdfast.api.routes.executions import Which, execution_of
from holdfast.api.routes.jobs import JobId
from holdfast.api.routing import LazyRouter, demand_own_origin, principal_of
from holdfast.auth.roles import Permission
from holdfast.records import encode

router = LazyRouter(tags=["live"])
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "Events until the client goes, or `end`."}
}
_ANSWERS = _STREAM | answers(403, 429, 503)
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=100, description="The `id` of the last event that was seen."),
]


def _open(request: Request, wanted: StreamRequest) -> EventStream:
    """Return the stream; raise OriginRefused for a page of another origin."""
    # Browsers let any page open a stream with the reader's cookies; it could not read it, but it would hold a place.
    demand_own_origin(request)
    listener = Listener(principal_of(request.scope), request.scope["route"].permission, request.scope)
    hub: Hub = request.app.state.hub
    return EventStream(hub, listener, wanted)


def _simple(request: Request, name: str, make: Callable[[], Topic], last_id: str | None) -> EventStream:
    hub: Hub = request.app.state.hub
    channel = hub.channel(name, make)
    topic = channel.topic
    assert isinstance(topic, CrawlerTopic | EventsTopic | SampledTopic)
    return _open(request, StreamRequest(channel=channel, key=None, replay=lambda: topic.replay(last_id)))


@router.get("/api/crawler/events", Permission.WATCH, response_class=StreamingResponse, responses=_ANSWERS)
async def stream_crawler(request: Request, archive: ArchiveDep, last_event_id: LastEventId = None) -> Response:
    """Stream job events: `job:status`, `job:progress`, `job:completed` and `pipeline:stage`."""
    return _simple(request, "crawler", lambda: CrawlerTopic(archive.database), last_event_id)


@router.get("/api/events", Permission.WATCH, response_class=StreamingResponse, responses=_ANSWERS)
async def stream_events(request: Request, archive: ArchiveDep, last_event_id: LastEventId = None) -> Response:
    """Stream all events that webhooks can receive, with the same names: `execution.failed`, `change.detected`."""
    return _simple(request, "events", lambda: EventsTopic(archive.database), last_event_id)


@router.get("/api/health/events", Permission.WATCH, response_class=StreamingResponse, responses=_ANSWERS)
async def stream_health(request: Request, archive: ArchiveDep) -> Response:
    """Stream the archive's health: `health:status` immediately, on changes, and every half minute."""

    def make() -> Topic:
        return SampledTopic("health", "health:status", lambda: sample_health(archive))

    return _simple(request, "health", make, None)


@router.get("/api/metrics/events", Permission.WATCH, response_class=StreamingResponse, responses=_ANSWERS)
async def stream_metrics(request: Request, archive: ArchiveDep, work: WorkDep) -> Response:
    """Stream figures of jobs and crawls: `metrics:update` immediately, on changes, and every half minute."""

    def make() -> Topic:
        return SampledTopic("metrics", "metrics:update", lambda: encode(read_figures(archive.database, work)))

    return _simple(request, "metrics", make, None)


@router.get(
    "/api/v1/jobs/{id}/logs/stream/v2",
    Permission.WATCH,
    response_class=StreamingResponse,
    responses=_STREAM
    | answers(400, 403, 404, 429, 503)
    | {204: {"description": "That execution is over and everything of it was seen: do not ask again."}},
)
async def stream_log(
    request: Request, archive: ArchiveDep, id: JobId, execution: Which = "latest", last_event_id: LastEventId = None
) -> Response:
    """Stream a job's log: `log:replay` with the last 200 lines, or with those after `Last-Event-ID`; then `log:line`.

    `log:archived` says that an execution has ended. With `latest`, the next execution follows; the stream of a
    numbered execution ends with it.
    """
    hub: Hub = request.app.state.hub
    channel = hub.channel("logs", lambda: LogTopic(archive.database))
    topic = channel.topic
    assert isinstance(topic, LogTopic)

    def find() -> bool:
        with archive.database.read() as session:
            return execution_of(session, id, execution, must_exist=execution != "latest")

    is_over = await run_sync(find, limiter=hub.threads)
    number = None if execution == "latest" else int(execution)
    if is_over and last_event_id and not await run_sync(topic.missed, id, number, last_event_id, limiter=hub.threads):
        # An EventSource in a browser does not reconnect after this status.
        return Response(status_code=204)

    def replay() -> list[Frame]:
        # Check again now that the client listens: no poll would report a log that ended in between.
        nonlocal is_over
        is_over = is_over or find()
        return topic.replay(id, number, last_event_id)

    wanted = StreamRequest(channel=channel, key=LogKey(id, number), replay=replay, is_over=lambda: is_over)
    return _open(request, wanted)
