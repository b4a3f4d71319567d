"""`holdfast api`: serves the archive over HTTP until it is stopped; refuses to serve publicly without a secret."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated

import typer
import uvicorn
from sqlalchemy.exc import SQLAlchemyError
from uvicorn.importer import import_from_string

from holdfast import config, log
from holdfast.auth.users import SETUP_HOURS
from holdfast.cli.parameters import Home, Host, Port
from holdfast.cli.runner import example
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.db.schema import open_to_others
from holdfast.errors import HoldfastError
from holdfast.processes.part_process import FOR_PEOPLE, STARTED_AGAIN
from holdfast.processes.part_states import address_path
from holdfast.wiring.accounts import setup_link
from holdfast.wiring.http_protocol import ConnectionLimits, strict_http
from holdfast.wiring.processes import ServingProcesses
from holdfast.wiring.server import END_STREAMS, listen

_log = log.get()
_APPLICATION = "holdfast.api.app:application"
# Limit of request line and headers together.
_HEAD_BYTES = 32 * 1024
_DRAIN_S = 10
# Most concurrent connections; more are rejected, so that idle ones cannot use up the process's file descriptors.
_CONNECTIONS = 1000


@example("api --port 8060")
def api(
    host: Host = None,
    port: Port = None,
    processes: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that answer; one for each core is enough.")
    ] = 1,
    home: Home = None,
) -> None:
    """Serve search, replay, changes and exports over HTTP until Ctrl-C."""
    settings = configured(home=str(home) if home else None, host=host, port=port)
    log.configure(settings.log_level)
    serve(settings, ready=lambda address: announce(settings, address), processes=processes)
    # Keep it if the start failed: the file may belong to another server.
    with suppress(OSError):
        address_path(settings.home).unlink()


def announce(settings: Settings, address: str) -> None:
    """Print the server's address and, without any administrator, how to create the first one."""
    # Store the address for links that other commands print. A read-only data directory has none.
    with suppress(OSError):
        address_path(settings.home).parent.mkdir(exist_ok=True)
        address_path(settings.home).write_text(address)
    print(f"serving {address}", flush=True)
    # The link from the first start is still valid; a new one would revoke it.
    if os.environ.get(STARTED_AGAIN):
        return
    try:
        link = setup_link(settings, address)
    except (HoldfastError, SQLAlchemyError):
        # The database is read-only or unavailable: serve what can be read.
        return
    if link is not None:
        notice = f"{FOR_PEOPLE}create one, once and within {SETUP_HOURS} hours: {link}"
        # Do not use standard output, where scripts read the address.
        print(notice, file=sys.stderr, flush=True)


def configured(*, home: str | None, host: str | None, port: int | None) -> Settings:
    """Return the settings with a command's own values, and export those to the environment for the server."""
    # uvicorn creates the application from its import path, and it reads the environment, not our arguments.
    for name, value in (("HOLDFAST_HOME", home), ("HOLDFAST_API_HOST", host), ("HOLDFAST_API_PORT", port)):
        if value is not None:
            os.environ[name] = str(value)
    return config.load()


def serve(
    settings: Settings, *, ready: Callable[[str], None], processes: int = 1, application: str = _APPLICATION
) -> None:
    """Serve until SIGINT or SIGTERM, then finish running requests; `ready` is called with the address once it
    serves.
    """
    # Bind the socket here: a used port then gives one sentence instead of uvicorn's traceback.
    listener = listen(settings)
    if (advice := open_to_others(settings)) is not None:
        _log.warning("home.open", home=str(settings.home), message=advice)
    name, port = listener.getsockname()[:2]
    # The kernel chooses a port for 0; links that the API builds need the real one.
    os.environ["HOLDFAST_API_PORT"] = str(port)
    shown = f"http://[{name}]:{port}" if listener.family == socket.AF_INET6 else f"http://{name}:{port}"
    try:
        # Garbage collection takes a tenth of the loading and finds nothing; each server enables it once it is ready.
        # Load the app once, before forking, so that the processes share its memory.
        gc.disable()
        import_from_string(application)
        gc.freeze()
        if processes == 1:
            code = _serve_here(settings, listener, application, lambda: ready(shown))
        else:
            if settings.api.rate_limiting and settings.redis_url is None:
                _log.warning("api.rates_apart", processes=processes, message="without Redis each process counts alone")
            serve_child = partial(_serve_child, settings, listener, application)
            children = ServingProcesses(processes, serve_child, drain_s=_DRAIN_S + 5.0, clock=SystemClock())
            code = children.run(lambda: ready(shown))
    finally:
        gc.enable()
        listener.close()
    if code:
        print("holdfast: the server did not start; its log says why", file=sys.stderr)
        raise typer.Exit(code)


def _serve_child(
    settings: Settings, listener: socket.socket, application: str, number: int, ready: Callable[[], None]
) -> int:
    if number:
        # One process is enough for background work.
        os.environ["HOLDFAST_API_UPKEEP"] = os.environ["HOLDFAST_WEBHOOKS_DELIVER"] = "false"
    return _serve_here(settings, listener, application, ready)


def _serve_here(settings: Settings, listener: socket.socket, application: str, ready: Callable[[], None]) -> int:
    """Serve in this process; return 1 if it could not start."""
    server = _Server(
        uvicorn.Config(
            application,
            factory=True,
            loop="uvloop",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.api.trusted_proxies),
            forwarded_allow_ips=list(settings.api.trusted_proxies),
            http=_protocol(settings),
            timeout_graceful_shutdown=_DRAIN_S,
            ws="none",
            # Beyond it uvicorn responds with 503 immediately.
            limit_concurrency=_CONNECTIONS,
        ),
        ready=ready,
    )
    # The server raises the signal again once it has drained; then nothing is left to end.
    previous = {
        number: signal.signal(number, lambda _number, _frame: None) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 0 if server.started else 1


def _protocol(settings: Settings) -> type[asyncio.Protocol]:
    api = settings.api
    limits = ConnectionLimits(
        in_all=_CONNECTIONS, per_address=api.connections_per_address, trusted_proxies=api.trusted_proxies
    )
    return strict_http(
        head_bytes=_HEAD_BYTES,
        head_s=settings.timings.server_head_s,
        write_s=settings.timings.server_write_s,
        limits=limits,
    )


class _Server(uvicorn.Server):
    def __init__(self, settings: uvicorn.Config, *, ready: Callable[[], None]) -> None:
        super().__init__(settings)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # Objects that exist now stay alive: the collector can skip them.
            gc.freeze()
            gc.enable()
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. Live streams end first, since uvicorn waits until every connection is closed."""
        end_streams = self.lifespan.state.get(END_STREAMS)
        if end_streams is not None:
            end_streams()
        await super().shutdown(sockets)
