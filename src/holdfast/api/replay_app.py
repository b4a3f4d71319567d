"""The application of the replay host: archived pages and nothing else. No account, no session of a reader."""

from __future__ import annotations

from asyncio import Semaphore

from fastapi import FastAPI

from holdfast.api.assembly import assemble
from holdfast.api.heavy import HeavyWork
from holdfast.api.routes import REPLAY_ROUTERS
from holdfast.wiring.archive import Archive


def create_replay_app(archive: Archive, *, sessions: Semaphore, heavy: HeavyWork) -> FastAPI:
    """Return the replay host's routes; RuntimeError if one of them declares no role."""
    app = assemble("Holdfast replay", REPLAY_ROUTERS, archive)
    app.state.sessions, app.state.heavy = sessions, heavy
    return app
