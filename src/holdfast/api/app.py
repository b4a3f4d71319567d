"""Puts the API together: routes with their permissions, the layers around them, and the replay host beside them."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import __version__, config
from holdfast.api import errors
from holdfast.api.costly_answers import CostlyAnswers
from holdfast.api.crawler_figures import FrontierCounts
from holdfast.api.dependencies import SESSIONS
from holdfast.api.figures import CountedTotals, CountedWork
from holdfast.api.heavy import HeavyWork, ReplayTurns
from holdfast.api.kept_answers import KeptAnswers
from holdfast.api.late_routes import RouteTable
from holdfast.api.lifespan import BesideRequests, lifespan_of
from holdfast.api.live.hub import Hub
from holdfast.api.middleware.bodies import Bodies
from holdfast.api.middleware.capabilities import Capabilities
from holdfast.api.middleware.headers import AppHeaders, CorsOrigins, HeadRequests, ReplayHeaders
from holdfast.api.middleware.host_routing import HostRouting, Hosts, RefuseAll
from holdfast.api.middleware.identity import Principals
from holdfast.api.middleware.rate_counts import rates_of
from holdfast.api.middleware.rate_limits import RateLimits, RequestsAtOnce
from holdfast.api.middleware.request_ids import RequestIds, UsageCounts
from holdfast.api.middleware.visibility import Viewers
from holdfast.api.middleware.web_files import WebPages
from holdfast.api.permissions import PathPermissions, check_permission, demand_permissions, permission_of
from holdfast.api.plain_searches import plain_searches
from holdfast.api.quick import SEARCH_THREADS, QuickRoutes, QuickThreads, QuickWay
from holdfast.api.readiness import ArchiveChecks, BesideState, ReadinessProbe
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.api.run_reports import RunReports
from holdfast.api.single_rows import quick_cdx, quick_snapshot
from holdfast.api.web_files import WebFiles
from holdfast.auth.roles import Permission
from holdfast.db.prepared import RawConnections
from holdfast.errors import HoldfastError
from holdfast.feedback import UsageTally
from holdfast.metrics import ServerMetrics
from holdfast.operations.launching import OperationLauncher
from holdfast.replay.body import RewrittenPages
from holdfast.replay.capabilities import ReplayKeys
from holdfast.search.search import SearchService
from holdfast.supervision.state import served_parts
from holdfast.wiring.accounts import open_accounts
from holdfast.wiring.archive import Archive, open_archive
from holdfast.wiring.frontier import ServedFrontier
from holdfast.wiring.jobs import JobService
from holdfast.wiring.processes import this_process

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
# Histories that are kept: one of 20,000 captures takes ten megabytes, and a second to read.
_HISTORIES = 4
# Counts of captures by year: a kilobyte each at most, of up to 50,000 captures.
_COUNTED_YEARS = 256
_LICENCE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}


class DescribedApp(FastAPI):
    """An application whose OpenAPI document also says how to show the admin token."""

    def openapi(self) -> dict[str, Any]:
        """Return the document; made once, from all routes."""
        if not self.openapi_schema:
            _name_permissions(self.state.routes)
        document = super().openapi()
        document.setdefault("components", {})["securitySchemes"] = _SCHEMES
        return document


def assemble(title: str, routers: Iterable[APIRouter], archive: Archive, **options: Any) -> DescribedApp:
    """Return an application with these routes for an open archive; RuntimeError if a route has no permission."""
    table = RouteTable((route for router in routers for route in router.routes), guard=check_permission)
    demand_permissions(table.routes)
    app = DescribedApp(
        title=title,
        version=__version__,
        summary="An archive of websites: search, replay and compare captures.",
        # Off: they would be open in production, too, and load scripts from elsewhere. `routes.reference` serves both.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        license_info=_LICENCE,
        **options,
    )
    app.state.archive = archive
    app.state.routes = table.routes
    app.state.route_table = table
    errors.install(app)
    # Not by `include_router`, which makes each route anew for each application.
    app.router.routes.extend(table.routes)
    app.router.middleware_stack = table.in_front_of(app.router.app)
    return app


def _name_permissions(routes: tuple[APIRoute, ...]) -> None:
    """Let the OpenAPI document name the permission of each route."""
    for route in routes:
        asked = permission_of(sorted(route.methods or ())[0], route.path)
        is_open = asked is Permission.READ
        shown: dict[str, Any] = {} if is_open else {"security": [{name: []} for name in _SCHEMES]}
        route.openapi_extra = {**(route.openapi_extra or {}), "x-permission": asked.value, **shown}


def create_replay_app(archive: Archive, *, inner: DescribedApp) -> DescribedApp:
    """Return the replay host's routes; RuntimeError if one of them has no permission."""
    app = assemble("Holdfast replay", REPLAY_ROUTERS, archive)
    # Those of the other host: the limits are of the process and its pool of connections.
    app.state.sessions, app.state.heavy = inner.state.sessions, inner.state.heavy
    app.state.replay_keys, app.state.replay_turns = inner.state.replay_keys, inner.state.replay_turns
    app.state.rewritten = inner.state.rewritten
    return app


def create_app(archive: Archive, *, web: WebFiles | None = None) -> RequestIds:
    """Return the whole ASGI application for an open archive: the readers' host and the replay host.

    Without the files of the browser application `/` is a plain page that says how to build them.
    """
    settings, inner = archive.settings.api, create_inner_app(archive)
    replay_inner = create_replay_app(archive, inner=inner)
    inner.state.has_pages = replay_inner.state.has_pages = web is not None
    # One count for both hosts: a client does not get twice the limit by using both.
    rates = inner.state.rates

    def refuse(error: HoldfastError) -> ASGIApp:
        return AppHeaders(RefuseAll(error), hsts=settings.hsts)

    # From the inside out. Rates come before bodies: what is refused for its number is not read first.
    kept = KeptAnswers(archive.clock, inner.state.metrics)
    quick, connections = inner.state.quick, inner.state.connections

    search = inner.state.search
    searches = kept.searches(plain_searches(search, inner.state.metrics, archive.settings), search.generation)
    cdx = QuickWay(quick_cdx(archive.settings), quick)
    ways = {
        "/api/snapshot": QuickWay(quick_snapshot(archive.settings), quick),
        "/api/search": QuickWay(searches, inner.state.search_threads),
        "/cdx": cdx,
    }
    app: ASGIApp = QuickRoutes(inner, ways, connections, kept.keeping)
    app = UsageCounts(app, inner.state.usage) if settings.usage else app
    permissions, accounts = PathPermissions(inner.state.route_table, archive.settings), inner.state.accounts
    app = Bodies(HeadRequests(app), limit=settings.body_bytes)
    app = Viewers(RateLimits(app, rates, archive.settings, permissions=permissions))
    # Not for the replay host: no credential reaches it.
    app = identified = Principals(app, archive.settings, accounts, permissions)
    inner.state.hub.identify = identified.identify
    app = CorsOrigins(app, allowed=settings.cors_origins, permissions=permissions)
    app = WebPages(app, web, archive.settings) if web else app
    app = AppHeaders(app, hsts=settings.hsts)
    # Any type of body: it is only looked up, as part of the key of a captured request.
    ways = {"/web": QuickWay(kept.records(), quick), "/cdx": cdx}
    replay: ASGIApp = QuickRoutes(replay_inner, ways, connections, kept.keeping)
    replay = Bodies(HeadRequests(replay), limit=settings.body_bytes, any_type=True)
    # Rates come before capabilities: one that is made up costs a look into the database.
    replay = Capabilities(replay, inner.state.replay_keys, archive.settings)
    replay = ReplayHeaders(RateLimits(replay, rates, archive.settings))
    hosts = Hosts(archive.settings)
    routed = HostRouting(hosts, app=app, replay=replay, refuse=refuse, query_chars=settings.query_chars)
    counted = RequestsAtOnce(routed, refuse=refuse, per_address=settings.connections_per_address)
    # Outermost, so that a refusal has an id and a line in the log, too.
    return RequestIds(counted, archive.clock, inner.state)


def create_inner_app(archive: Archive) -> DescribedApp:
    """Return the routes of the readers' host without the layers around them; RuntimeError if one has no permission."""
    totals, work = CountedTotals(archive.database, archive.clock), CountedWork(archive.database, archive.clock)
    usage = UsageTally(archive.database, archive.clock)
    accounts = open_accounts(archive)
    metrics = ServerMetrics(started=archive.clock.monotonic(), shared=this_process())
    written = (usage.flush, accounts.identities.flush, metrics.share)
    redis = archive.settings.redis_url
    rates = rates_of(redis.get_secret_value() if redis else None, archive.clock)
    api = archive.settings.api
    hub = Hub(in_all=api.streams, per_principal=api.streams_per_principal, lasts_s=api.stream_s)
    lifespan = lifespan_of(archive, (totals, work), written, hub)
    app = assemble("Holdfast", ROUTERS, archive, lifespan=lifespan)
    app.state.accounts = accounts
    app.state.hub = hub
    app.state.rates = rates
    app.state.quick, app.state.connections = QuickThreads(), RawConnections(archive.settings.database)
    app.state.search_threads = QuickThreads(SEARCH_THREADS)
    app.state.sessions = Semaphore(SESSIONS)
    app.state.turn = Semaphore(1)
    app.state.totals, app.state.work, app.state.usage = totals, work, usage
    app.state.counted_years = CostlyAnswers(archive.clock, kept=_COUNTED_YEARS)
    app.state.histories = CostlyAnswers(archive.clock, kept=_HISTORIES)
    app.state.heavy, app.state.replay_turns = HeavyWork(), ReplayTurns()
    app.state.replay_keys = ReplayKeys(archive.database, archive.clock, lasts_s=archive.settings.replay.members_s)
    app.state.metrics = metrics

    def beside() -> Mapping[str, BesideState]:
        running: BesideRequests | None = app.state.beside
        return running.states() if running is not None else {}

    checks = ArchiveChecks(archive.settings).as_mapping()
    served = partial(served_parts, archive.home)
    app.state.readiness = ReadinessProbe(checks, archive.clock, served=served, beside=beside)
    _add_services(app.state, archive)
    return app


def _add_services(state: State, archive: Archive) -> None:
    """Make what routes ask for; none of it opens a file or a connection before it is used."""
    settings, database, clock = archive.settings, archive.database, archive.clock
    state.search = SearchService(database, archive.home, clock)
    state.rewritten = RewrittenPages(clock)
    state.job_service = JobService(database, clock, settings)
    state.frontier = ServedFrontier(settings, clock)
    state.frontier_counts = FrontierCounts(database, clock)
    state.run_reports = RunReports(database, clock)
    state.operations = OperationLauncher(settings, clock)
    state.beside = None


def application(*, tools_only: bool = False) -> ASGIApp:
    """Return the application for the settings in force, as the server starts it: it closes the archive at its end.

    With `tools_only` the tools refuse a request without an identity. Unavailable or Invalid if the archive cannot be
    opened.
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
