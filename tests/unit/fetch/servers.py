"""Raw servers for the client's tests: each test writes the bytes that go over the wire, and reads those that came."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from holdfast.clock import Clock, SystemClock
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.dns import Resolver, ResolverSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.types import Fetched, FetchFailed, FetchRequest

T = TypeVar("T")

LOOPBACK = AddressGuard([ip_network("127.0.0.0/8"), ip_network("::1/128")])
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BYE = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test on the loop that production uses, with a limit that no test should ever see."""

    async def limited() -> T:
        async with asyncio.timeout(20):
            return await main

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(limited())


class Peer:
    """One connection, seen from the server."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer

    async def request(self) -> bytes:
        """Return the next request's head; empty once the client has hung up."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await self._reader.readuntil(b"\r\n\r\n")
            self._server.requests.append(head)
            self._server.asked.set()
            return head
        return b""

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def drip(self, data: bytes, every_s: float) -> None:
        """Send one byte at a time until the client has had enough."""
        for at in range(len(data)):
            await self.send(data[at : at + 1])
            await asyncio.sleep(every_s)

    async def gone(self) -> None:
        """Wait until the client hangs up."""
        with suppress(ConnectionError):
            await self._reader.read()

    def alpn(self) -> str | None:
        """Return the protocol that the handshake agreed on."""
        chosen: str | None = self._writer.get_extra_info("ssl_object").selected_alpn_protocol()
        return chosen

    def reset(self) -> None:
        """Break the connection the hard way."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Handler = Callable[[Peer], Awaitable[None]]


class Server:
    """A listening socket and what came in through it."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[bytes] = []
        self.asked = asyncio.Event()
        self.connections = 0
        self.open = 0
        self.most_open = 0

    async def closed(self) -> None:
        """Wait until no connection is open and the other side has had the time to see it."""
        while self.open:  # noqa: ASYNC110 (a test's wait, bounded by the test's own limit)
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.03)

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(
    handler: Handler, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Server]:
    """Serve every connection with this handler, each in a task of its own that ends with the test."""
    server = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        server.connections += 1
        server.open += 1
        server.most_open = max(server.most_open, server.open)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                await handler(Peer(server, reader, writer))
        finally:
            server.open -= 1
            writer.transport.abort() if writer.transport.is_closing() else writer.close()
            tasks.discard(task)

    listener = await asyncio.start_server(connected, host, 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.sleep(0)


def answering(*pieces: bytes, then_wait: bool = False) -> Handler:
    """Return a handler that answers with these pieces and hangs up, unless told to wait for the next request."""

    async def handler(peer: Peer) -> None:
        while await peer.request():
            for piece in pieces:
                await peer.send(piece)
            if not then_wait:
                return

    return handler


@asynccontextmanager
async def open_client(
    guard: AddressGuard = LOOPBACK, clock: Clock | None = None, hosts: Path | None = None, **settings: Any
) -> AsyncIterator[Client]:
    """Give a client that may ask this machine, with a hosts file of the test's own."""
    clock = clock or SystemClock()
    resolver = Resolver(ResolverSettings(nameservers=("127.0.0.1:1",), hosts_file=hosts, timeout_s=0.2), guard, clock)
    client = Client(ClientSettings(user_agent="holdfast-test/1", **settings), guard, clock, resolver)
    try:
        yield client
    finally:
        await client.close()


async def ask(client: Client, url: str, **request: Any) -> Fetched:
    """Fetch what has to come back as a response."""
    result = await client.fetch(FetchRequest(url=url, **{"deadline_s": 5.0, **request}))
    assert isinstance(result, Fetched), result
    return result


async def fail(client: Client, url: str, **request: Any) -> FetchFailed:
    """Fetch what has to fail."""
    result = await client.fetch(FetchRequest(url=url, **{"deadline_s": 5.0, **request}))
    assert isinstance(result, FetchFailed), result
    return result


def content(fetched: Fetched) -> bytes:
    """Return a body in one piece and let go of it."""
    data = b"".join(fetched.body.chunks())
    assert len(data) == fetched.body.size
    fetched.body.close()
    return data


async def exchange(handler: Handler, **request: Any) -> Fetched:
    """Ask a server of one handler once; a response has to come back."""
    async with serving(handler) as server, open_client() as client:
        return await ask(client, server.url(), **request)


async def failure(handler: Handler, **request: Any) -> FetchFailed:
    """Ask a server of one handler once; a failure has to come back."""
    async with serving(handler) as server, open_client() as client:
        return await fail(client, server.url(), **request)
