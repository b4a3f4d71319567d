"""A client for the API in this process: no socket, no thread, every status as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from starlette.types import ASGIApp

from holdfast.api.app import create_app
from holdfast.api.web_files import WebFiles
from holdfast.wiring.archive import Archive

APP = "http://127.0.0.1:8060"
REPLAY = "http://replay.localhost:8060"


class Client:
    """Asks an ASGI application; redirects are shown, not followed."""

    def __init__(self, app: ASGIApp, *, peer: str = "127.0.0.1") -> None:
        self.app, self.peer = app, peer
        self._runner = asyncio.Runner()

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Return the answer to one request; a path alone is asked of the application's host."""
        return self._runner.run(self._ask(method, url, options))

    async def _ask(self, method: str, url: str, options: Mapping[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.peer, 40_000))
        async with httpx.AsyncClient(transport=transport, base_url=APP) as client:
            return await client.request(method, url, **options)

    def together(self, asked: Iterable[tuple[str, str]]) -> list[httpx.Response]:
        """Return the answers to GET requests that are sent at once, each an address of a reader and a URL."""

        async def ask() -> list[httpx.Response]:
            readers = [(Client(self.app, peer=peer), url) for peer, url in asked]
            return await asyncio.gather(*(reader._ask("GET", url, {}) for reader, url in readers))

        return self._runner.run(ask())

    def get(self, url: str, **options: Any) -> httpx.Response:
        """Return the answer to a GET."""
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> httpx.Response:
        """Return the answer to a POST."""
        return self.request("POST", url, **options)

    def close(self) -> None:
        """End the loop that requests ran on."""
        self._runner.close()


@contextmanager
def asking(archive: Archive, *, peer: str = "127.0.0.1", web: WebFiles | None = None) -> Iterator[Client]:
    """Serve an archive in this process for the length of a block."""
    app = create_app(archive, web=web)
    # This client reads an answer to its end before it shows it: a stream of an hour would be a test of an hour.
    app.state.hub.lasts_s = min(app.state.hub.lasts_s, 0.02)
    client = Client(app, peer=peer)
    try:
        yield client
    finally:
        client.close()
        app.state.totals.close()
        app.state.work.close()
        for name in ("frontier_counts", "frontier"):
            if app.state.is_made(name):
                getattr(app.state, name).close()
        app.state.quick.close()
        app.state.search_threads.close()
        app.state.connections.close()
        app.state.readiness.close()
