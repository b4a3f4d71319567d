"""Puts the API together: routes with their permissions, the layers around them, and the replay host beside them."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import __version__, config
from holdfast.api import errors
from holdfast.api.costly_answers import CostlyAnswers
from holdfast.api.dependencies import SESSIONS
from holdfast.api.figures import CountedTotals, CountedWork
from holdfast.api.heavy import HeavyWork, ReplayTurns
from holdfast.api.kept_answers import KeptAnswers
from holdfast.api.late_routes import RouteTable
from holdfast.api.lifespan import lifespan_of
from holdfast.api.listed_routes import ListedRouter
from holdfast.api.live.hub import Hub
from holdfast.api.loading import LateState, load
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
from holdfast.api.quick import SEARCH_THREADS, QuickHandler, QuickRoutes, QuickThreads, QuickWay, made_late
from holdfast.api.readiness import ArchiveChecks, BesideState, ReadinessProbe
from holdfast.api.routes import REPLAY_ROUTERS, ROUTERS
from holdfast.api.web_files import WebFiles
from holdfast.auth.roles import Permission
from holdfast.db.prepared import RawConnections
from holdfast.errors import HoldfastError
from holdfast.feedback import UsageTally
from holdfast.metrics import ServerMetrics
from holdfast.replay.capabilities import ReplayKeys
from holdfast.supervision.state import served_parts
from holdfast.wiring.accounts import open_accounts
from holdfast.wiring.archive import Archive, open_archive
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

    state: LateState

    def openapi(self) -> dict[str, Any]:
        """Return the document; made once, from all routes."""
        if not self.openapi_schema:
            _name_permissions(self.state.routes)
        document = super().openapi()
        document.setdefault("components", {})["securitySchemes"] = _SCHEMES
        return document


def assemble(title: str, routers: Iterable[APIRouter | ListedRouter], archive: Archive, **options: Any) -> DescribedApp:
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
    app.state = LateState()
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
    app.state.promise("rewritten", lambda: inner.state.rewritten)
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

    def single_row(name: str) -> QuickWay:
        return QuickWay(made_late(lambda: getattr(load("holdfast.api.single_rows"), name)(archive.settings)), quick)

    def searches() -> QuickHandler:
        plain = load("holdfast.api.plain_searches")
        search, metrics = inner.state.search, inner.state.metrics
        return kept.searches(plain.plain_searches(search, metrics, archive.settings), search.generation)

    cdx = single_row("quick_cdx")
    ways = {
        "/api/snapshot": single_row("quick_snapshot"),
        "/api/search": QuickWay(made_late(searches), inner.state.search_threads),
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
        found: Mapping[str, BesideState] = app.state.beside.states() if app.state.is_made("beside") else {}
        return found

    checks = ArchiveChecks(archive.settings, beside=beside).as_mapping()
    served = partial(served_parts, archive.home)
    app.state.readiness = ReadinessProbe(checks, archive.clock, served=served, beside=beside)
    _promise_services(app.state, archive)
    return app


def _promise_services(state: LateState, archive: Archive) -> None:
    """Let what few requests need be made, and loaded, by the first that does."""
    settings, database, clock = archive.settings, archive.database, archive.clock
    state.promise("search", lambda: load("holdfast.search.search").SearchService(database, archive.home, clock))
    state.promise("rewritten", lambda: load("holdfast.replay.body").RewrittenPages(clock))
    state.promise("job_service", lambda: load("holdfast.wiring.jobs").JobService(database, clock, settings))
    state.promise("frontier", lambda: load("holdfast.wiring.frontier").ServedFrontier(settings, clock))
    state.promise("frontier_counts", lambda: load("holdfast.api.crawler_figures").FrontierCounts(database, clock))
    state.promise("run_reports", lambda: load("holdfast.api.run_reports").RunReports(database, clock))
    state.promise("operations", lambda: load("holdfast.operations.launching").OperationLauncher(settings, clock))


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
