"""Assembles the API: routes with their permissions, the middleware around them, and the replay host."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import __version__, config
from holdfast.api import errors
from holdfast.api.dependencies import SESSIONS
from holdfast.api.figures import CountCache, CountedTotals, CountedWork, FrontierCounts, RunReports
from holdfast.api.heavy import ReplayTurns, SlowTaskPool
from holdfast.api.lifespan import BackgroundTasks, lifespan_of
from holdfast.api.live.hub import Hub
from holdfast.api.middleware.bodies import Bodies
from holdfast.api.middleware.capabilities import Capabilities
from holdfast.api.middleware.headers import AppHeaders, CorsOrigins, HeadRequests, ReplayHeaders
from holdfast.api.middleware.host_routing import HostRouting, Hosts, RefuseAll
from holdfast.api.middleware.identity import Principals, Viewers
from holdfast.api.middleware.rate_limits import CountedElsewhere, RateLimits, Rates, RequestsAtOnce, kinds_of
from holdfast.api.middleware.request_ids import RequestIds, UsageCounts
from holdfast.api.middleware.web_files import WebPages
from holdfast.api.plain_searches import plain_searches
from holdfast.api.readiness import ArchiveChecks, BesideState, ReadinessProbe
from holdfast.api.record_answers import describe_records
from holdfast.api.response_cache import RECORDS, SEARCHES, KeptResponses, ResponseCache, record_key
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.api.routing import LazyRoute, LazyRouter, PathPermissions, RouteTable, check_permission
from holdfast.api.web_files import WebFiles
from holdfast.auth.roles import Permission
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.feedback import UsageTally
from holdfast.metrics import ServerMetrics
from holdfast.processes.part_states import served_parts
from holdfast.replay.body import RewrittenPages
from holdfast.replay.capabilities import MEMBERS_S, ReplayKeys
from holdfast.search.search import SearchService
from holdfast.wiring.accounts import open_accounts
from holdfast.wiring.archive import Archive, open_archive
from holdfast.wiring.frontier import ServedFrontier
from holdfast.wiring.jobs import JobService
from holdfast.wiring.processes import this_process

_BODY_BYTES, _QUERY_CHARS = 1024**2, 8192
"""Largest request body (except uploads) and longest query string, far beyond what any form or link of ours sends."""

_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API token (`hf_…`), HOLDFAST_API_ADMIN_TOKEN, or a JWT if HOLDFAST_AUTH_JWT_SECRET is set.",
    },
    "adminToken": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Admin-Token",
        "description": "HOLDFAST_API_ADMIN_TOKEN.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-holdfast-session-{archive}",
        "description": "A browser that signed in; {archive} is eight digits of the archive's own. Changes need "
        "X-CSRF-Token, which GET /api/session gives.",
    },
}
# Searches, most of which take a few milliseconds, have their own threads, so that single records do not wait for them.
_RECORD_THREADS, _SEARCH_THREADS = 4, 6
# Number of cached histories: one of 20,000 captures takes ten megabytes, and a second to read.
_HISTORIES = 4
# Number of cached counts by year: each takes at most a kilobyte, for up to 50,000 captures.
_COUNTED_YEARS = 256
_LICENCE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}


class DescribedApp(FastAPI):
    """An application whose OpenAPI document also describes how to send the admin token."""

    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            _name_permissions(self.state.routes.routes)
        document = super().openapi()
        describe_records(document, self.state.routes.routes)
        document.setdefault("components", {})["securitySchemes"] = _SCHEMES
        return document


def assemble(title: str, routers: Iterable[LazyRouter], archive: Archive, **options: Any) -> DescribedApp:
    table = RouteTable((route for router in routers for route in router.routes), guard=check_permission)
    app = DescribedApp(
        title=title,
        version=__version__,
        summary="An archive of websites: search, replay and compare captures.",
        # Disable FastAPI's own pages: they would be public in production, and load scripts from other hosts.
        # `routes.reference` serves both.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        license_info=_LICENCE,
        **options,
    )
    app.state.archive = archive
    app.state.routes = table
    errors.install(app)
    # Avoid `include_router`, which builds each route again for each application.
    app.router.routes.extend(table.routes)
    app.router.middleware_stack = table.in_front_of(app.router.app)
    return app


def _name_permissions(routes: tuple[LazyRoute, ...]) -> None:
    for route in routes:
        is_open = route.permission is Permission.READ
        shown: dict[str, Any] = {} if is_open else {"security": [{name: []} for name in _SCHEMES]}
        route.openapi_extra = {**(route.openapi_extra or {}), "x-permission": route.permission.value, **shown}


def create_replay_app(archive: Archive, *, inner: DescribedApp) -> DescribedApp:
    app = assemble("Holdfast replay", REPLAY_ROUTERS, archive)
    # Share those of the other host: the limits apply to the process and its pool of connections.
    app.state.sessions, app.state.heavy = inner.state.sessions, inner.state.heavy
    app.state.replay_keys, app.state.replay_turns = inner.state.replay_keys, inner.state.replay_turns
    app.state.rewritten = inner.state.rewritten
    return app


def create_app(archive: Archive, *, web: WebFiles | None = None) -> RequestIds:
    """Return the whole ASGI application for an open archive: the readers' host and the replay host.

    Without the files of the browser application, `/` is a plain page that explains how to build them.
    """
    settings, inner = archive.settings.api, create_inner_app(archive)
    replay_inner = create_replay_app(archive, inner=inner)
    inner.state.has_pages = replay_inner.state.has_pages = web is not None
    # Share one count between both hosts: a client must not get twice the limit by using both.
    rates = inner.state.rates

    def refuse(error: HoldfastError) -> ASGIApp:
        return AppHeaders(RefuseAll(error), hsts=settings.hsts)

    # These go from the inside out. Rates are checked before bodies, so that the body of a request over its rate is not
    # read.
    kept = KeptResponses(archive.clock, archive.database.raw_reads)
    search, metrics = inner.state.search, inner.state.metrics
    app: ASGIApp = ResponseCache(
        inner,
        kept,
        inner.state.search_threads,
        paths=SEARCHES,
        key=lambda scope: ("search", scope["query_string"], search.generation()),
        make=plain_searches(search, metrics, archive.settings),
        count_hit=lambda: metrics.searched("kept"),
    )
    app = UsageCounts(app, inner.state.usage) if settings.usage else app
    permissions, accounts = PathPermissions(inner.state.routes, archive.settings), inner.state.accounts
    app = Bodies(HeadRequests(app), limit=_BODY_BYTES)
    app = Viewers(RateLimits(app, rates, archive.settings, permissions=permissions))
    # The replay host needs none: no credential reaches it.
    app = identified = Principals(app, archive.settings, accounts, permissions)
    inner.state.hub.identify = identified.identify
    app = CorsOrigins(app, allowed=settings.cors_origins, permissions=permissions)
    app = WebPages(app, web, archive.settings) if web else app
    app = AppHeaders(app, hsts=settings.hsts)
    replay: ASGIApp = ResponseCache(replay_inner, kept, inner.state.record_threads, paths=RECORDS, key=record_key)
    # Accept any type of body: it is only part of the key of a captured request.
    replay = Bodies(HeadRequests(replay), limit=_BODY_BYTES, any_type=True)
    # Rates are checked before capabilities: an invented capability costs a database query.
    replay = Capabilities(replay, inner.state.replay_keys, archive.settings)
    replay = ReplayHeaders(RateLimits(replay, rates, archive.settings))
    hosts = Hosts(archive.settings)
    routed = HostRouting(hosts, app=app, replay=replay, lifespan=inner, refuse=refuse, query_chars=_QUERY_CHARS)
    counted = RequestsAtOnce(routed, refuse=refuse, per_address=settings.connections_per_address)
    # This layer is the outermost, so that a rejection has an id and a log line, too.
    kinds = kinds_of((*inner.state.routes.routes, *replay_inner.state.routes.routes))
    return RequestIds(counted, archive.clock, inner.state, kinds)


def create_inner_app(archive: Archive) -> DescribedApp:
    """Return the routes of the readers' host without the middleware."""
    redis = archive.settings.redis_url
    rates = rates_of(redis.get_secret_value() if redis else None, archive.clock)
    limits = archive.settings.timings
    app = assemble("Holdfast", ROUTERS, archive, lifespan=lifespan_of(archive))
    app.state.accounts = open_accounts(archive)
    app.state.hub = Hub(
        in_all=limits.server_streams, per_principal=limits.server_streams_per_principal, lasts_s=limits.server_stream_s
    )
    app.state.rates = rates
    app.state.record_threads = ThreadPoolExecutor(_RECORD_THREADS, "records")
    app.state.search_threads = ThreadPoolExecutor(_SEARCH_THREADS, "searches")
    app.state.sessions = Semaphore(SESSIONS)
    app.state.turn = Semaphore(1)
    app.state.totals = CountedTotals(archive.database, archive.clock)
    app.state.work = CountedWork(archive.database, archive.clock)
    app.state.usage = UsageTally(archive.database, archive.clock)
    app.state.counted_years = CountCache(archive.database, archive.clock, kept=_COUNTED_YEARS)
    app.state.histories = CountCache(archive.database, archive.clock, kept=_HISTORIES)
    app.state.heavy, app.state.replay_turns = SlowTaskPool(), ReplayTurns()
    app.state.replay_keys = ReplayKeys(archive.database, archive.clock, lasts_s=MEMBERS_S)
    app.state.metrics = ServerMetrics(started=archive.clock.monotonic(), shared=this_process())

    def beside() -> Mapping[str, BesideState]:
        running: BackgroundTasks | None = app.state.beside
        return running.states() if running is not None else {}

    checks = ArchiveChecks(archive.settings).as_mapping()
    served = partial(served_parts, archive.home)
    app.state.readiness = ReadinessProbe(checks, archive.clock, served=served, beside=beside)
    _add_services(app.state, archive)
    return app


def rates_of(redis_url: str | None, clock: Clock) -> Rates | CountedElsewhere:
    """Return the counter of requests: in Redis if configured, else in this process."""
    if redis_url is None:
        return Rates(clock)
    # Import it by name: its libraries take as long to load as the rest of the limits, and most servers have no Redis.
    shared: CountedElsewhere = import_module(".middleware.shared_rates", __package__).SharedRates(redis_url, clock)
    return shared


def _add_services(state: State, archive: Archive) -> None:
    """Create the services that routes use; none opens a file or a connection before its first use."""
    settings, database, clock = archive.settings, archive.database, archive.clock
    state.search = SearchService(database, archive.home, clock)
    state.rewritten = RewrittenPages(clock)
    state.job_service = JobService(database, clock, settings)
    state.frontier = ServedFrontier(settings, clock)
    state.frontier_counts = FrontierCounts(database, clock)
    state.run_reports = RunReports(database, clock)
    state.beside = None


def application(*, tools_only: bool = False) -> ASGIApp:
    """Return the application for the current settings, as the server starts it; it closes the archive on shutdown.

    With `tools_only`, the tools reject requests without an identity. Raises Unavailable or Invalid if the archive
    cannot be opened.
    """
    stack = ExitStack()
    archive = stack.enter_context(open_archive(config.load()))
    app = create_app(archive, web=None if tools_only else WebFiles.read())
    app.state.tools_only = tools_only

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        async def seen(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                stack.close()
            await send(message)

        await app(scope, receive, seen if scope["type"] == "lifespan" else send)

    return closing
