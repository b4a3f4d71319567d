"""The application as the server starts it: settings from the environment, the archive opened, closed at the end."""

from __future__ import annotations

from contextlib import ExitStack

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast import config
from holdfast.api.app import create_app
from holdfast.wiring.archive import open_archive


def application() -> ASGIApp:
    """Return the application for the settings in force; Unavailable or Invalid if the archive cannot be opened."""
    stack = ExitStack()
    archive = stack.enter_context(open_archive(config.load()))
    app = create_app(archive)

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        async def seen(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                stack.close()
            await send(message)

        await app(scope, receive, seen if scope["type"] == "lifespan" else send)

    return closing
