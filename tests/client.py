"""A client for the API in this process: no socket, no thread, every status as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
from starlette.types import ASGIApp

from holdfast.api.app import create_app
from holdfast.api.heavy import EXPORT_THREADS
from holdfast.api.web_files import WebFiles
from holdfast.config.model import Secret
from holdfast.wiring.archive import Archive

APP = "http://127.0.0.1:8060"
REPLAY = "http://replay.localhost:8060"


TOKEN = "the admin token of a test's server"
ADMIN = {"x-admin-token": TOKEN}
"""What a request shows to be the administrator's."""
WITH_TOKEN = {"HOLDFAST_API_ADMIN_TOKEN": TOKEN}
"""For the environment of a server in a process of its own."""
_CREDENTIALS = frozenset({"authorization", "x-admin-token", "cookie"})


class Client:
    """Asks an ASGI application; redirects are shown, not followed.

    With an admin token it shows that on the application's host, unless a request has a credential of its own.
    """

    def __init__(self, app: ASGIApp, *, peer: str = "127.0.0.1", admin_token: str | None = None) -> None:
        self.app, self.peer, self._admin_token = app, peer, admin_token
        self._runner = asyncio.Runner()

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Return the answer to one request; a path alone is asked of the application's host."""
        return self._runner.run(self._ask(method, url, options))

    async def _ask(self, method: str, url: str, options: Mapping[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.peer, 40_000))
        async with httpx.AsyncClient(transport=transport, base_url=APP) as client:
            request = client.build_request(method, url, **options)
            if self._admin_token is not None and _CREDENTIALS.isdisjoint(name.lower() for name in request.headers):
                request.headers["x-admin-token"] = self._admin_token
            return await client.send(request)

    def together(self, asked: Iterable[tuple[str, str]]) -> list[httpx.Response]:
        """Return the answers to GET requests that are sent at once, each an address of a reader and a URL."""

        async def ask() -> list[httpx.Response]:
            readers = [(Client(self.app, peer=peer), url) for peer, url in asked]
            return await asyncio.gather(*(reader._ask("GET", url, {}) for reader, url in readers))

        return self._runner.run(ask())

    def hold_exports(self) -> None:
        """Take all permits to begin an export or a package, and keep them."""

        async def take() -> None:
            limiter = self.app.state.heavy._exports.limiter  # type: ignore[attr-defined]
            for _ in range(EXPORT_THREADS):
                await limiter.acquire_on_behalf_of(object())

        self._runner.run(take())

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
def asking(
    archive: Archive, *, peer: str = "127.0.0.1", web: WebFiles | None = None, as_admin: bool = True
) -> Iterator[Client]:
    """Serve an archive in this process for the length of a block.

    The administrator asks, unless the test wants nobody to (`as_admin=False`) or has set an admin token of its own:
    then each request says who asks.
    """
    api = archive.settings.api
    is_admin = as_admin and api.admin_token is None and not api.strict
    if is_admin:
        with_token = api.model_copy(update={"admin_token": Secret(TOKEN)})
        archive = replace(archive, settings=archive.settings.model_copy(update={"api": with_token}))
    app = create_app(archive, web=web)
    # This client reads an answer to its end before it shows it: a stream of an hour would be a test of an hour.
    app.state.hub.lasts_s = min(app.state.hub.lasts_s, 0.02)
    client = Client(app, peer=peer, admin_token=TOKEN if is_admin else None)
    try:
        yield client
    finally:
        client.close()
        app.state.totals.close()
        app.state.work.close()
        app.state.frontier_counts.close()
        app.state.frontier.close()
        app.state.record_threads.shutdown()
        app.state.search_threads.shutdown()
        app.state.readiness.close()
