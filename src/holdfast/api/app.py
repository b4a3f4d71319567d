"""Puts the API together: routes with their roles, the layers around them, and the replay host beside them."""

from __future__ import annotations

from asyncio import Semaphore

from fastapi import FastAPI
from starlette.types import ASGIApp

from holdfast.api.assembly import assemble
from holdfast.api.deps import SESSIONS
from holdfast.api.heavy import HeavyWork
from holdfast.api.life import life_of
from holdfast.api.middleware.at_once import RequestsAtOnce
from holdfast.api.middleware.bodies import Bodies
from holdfast.api.middleware.entrance import Entrance, Hosts, Refusal
from holdfast.api.middleware.headers import AppHeaders, ReplayHeaders
from holdfast.api.middleware.heads import Heads
from holdfast.api.middleware.origins import Origins
from holdfast.api.middleware.rates import RateLimits, Rates
from holdfast.api.middleware.shell import Shell
from holdfast.api.middleware.usage import UsageCounts
from holdfast.api.replay_app import create_replay_app
from holdfast.api.routes import ROUTERS
from holdfast.api.totals import Totals
from holdfast.api.work import Work
from holdfast.errors import HoldfastError
from holdfast.feedback.usage import UsageTally
from holdfast.metrics import ServerMetrics
from holdfast.search.search import Search
from holdfast.wiring.archive import Archive
from holdfast.wiring.desk import Desk


def create_app(archive: Archive) -> Shell:
    """Return the whole ASGI application for an open archive: the readers' host and the replay host."""
    settings, inner = archive.settings.api, create_inner_app(archive)
    replay_inner = create_replay_app(archive, sessions=inner.state.sessions, heavy=inner.state.heavy)
    rates = Rates(archive.clock)

    def refuse(error: HoldfastError) -> ASGIApp:
        return AppHeaders(Refusal(error), hsts=settings.hsts)

    app: ASGIApp = UsageCounts(inner, inner.state.usage) if settings.usage else inner
    app = RateLimits(Bodies(Heads(app), limit=settings.body_bytes), rates, archive.settings)
    app = AppHeaders(Origins(app, allowed=settings.cors_origins), hsts=settings.hsts)
    replay: ASGIApp = Bodies(Heads(replay_inner), limit=settings.body_bytes, any_type=True)
    replay = ReplayHeaders(RateLimits(replay, rates, archive.settings, replay=True))
    hosts = Hosts(archive.settings)
    entrance = Entrance(hosts, app=app, replay=replay, refuse=refuse, query_chars=settings.query_chars)
    counted = RequestsAtOnce(entrance, refuse=refuse, per_address=settings.connections_per_address)
    return Shell(counted, archive.clock, inner.state)


def create_inner_app(archive: Archive) -> FastAPI:
    """Return the routes of the readers' host without the layers around them; RuntimeError if one has no role."""
    totals, work = Totals(archive.database, archive.clock), Work(archive.database, archive.clock)
    usage = UsageTally(archive.database, archive.clock)
    search = Search(archive.database, archive.home, archive.clock)
    app = assemble("Holdfast", ROUTERS, archive, lifespan=life_of(archive, (totals, work), usage, search))
    app.state.sessions = Semaphore(SESSIONS)
    app.state.desk, app.state.turn = Desk(archive.database, archive.clock, archive.settings), Semaphore(1)
    app.state.totals, app.state.work, app.state.usage = totals, work, usage
    app.state.search, app.state.heavy = search, HeavyWork()
    app.state.metrics = ServerMetrics(started=archive.clock.monotonic())
    return app
