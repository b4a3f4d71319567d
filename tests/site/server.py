"""The server behind the site: listeners, routes and counters, all on one event loop. It holds no page itself."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.site.book import Handler
from tests.site.log import Entry, LogWriter
from tests.site.pages import GROUPS, ROBOTS
from tests.site.plain import PlainSite
from tests.site.tls import make_certificate
from tests.site.wire import SO_TIMESTAMPNS, Connection, Exchange

TlsKind = Literal["good", "expired", "wrong-host", "stalled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to serve and where."""

    hosts: int = 8
    pages: int = 12
    """Ordinary pages on each host."""
    rough: bool = False
    """Whether some ordinary pages first answer 503 or lead to another host."""
    robots: Mapping[int, str] = field(default_factory=dict)
    """Which robots.txt a host serves, by index; 404 for the rest."""
    tls: TlsKind | None = None
    """What is wrong with the second, encrypted port; None for no such port, `stalled` for one that never speaks."""
    folder: Path
    """Where the log and the certificate are written."""

    @property
    def log(self) -> Path:
        """The file that the log is appended to."""
        return self.folder / "requests.jsonl"


def addresses(count: int) -> list[str]:
    """Return so many loopback addresses, from 127.0.0.2 on."""
    return [f"127.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in range(2, count + 2)]


def listen_on(hosts: list[str]) -> list[socket.socket]:
    """Return one listening socket a host, all on one port that the kernel chose."""
    for _ in range(20):
        opened: list[socket.socket] = []
        port = 0
        try:
            for host in hosts:
                sock = socket.socket()
                opened.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                sock.setblocking(False)
                sock.bind((host, port))
                port = port or sock.getsockname()[1]
                sock.listen(512)
        except OSError:
            for sock in opened:
                sock.close()
        else:
            return opened
    raise RuntimeError(f"no port is free on all of {len(hosts)} loopback addresses")


class Server:
    """Answers on all hosts until it is told to stop."""

    def __init__(self, plan: Plan) -> None:
        self.hosts = addresses(plan.hosts)
        self.connections: set[Connection] = set()
        self.custom: dict[tuple[str | None, str], Handler] = {}
        """Pages that a test added, by host (None for any) and path."""
        self.robots: dict[str, str] = {self.hosts[index]: name for index, name in plan.robots.items()}
        self.plain = PlainSite(hosts=self.hosts, pages=plan.pages, rough=plan.rough)
        self._log = LogWriter(plan.log)
        self._visits: Counter[tuple[str, str]] = Counter()
        self._ids = itertools.count(1)
        self._numbers = itertools.count(1)
        self._listeners = listen_on(self.hosts)
        self._tls_listeners = listen_on(self.hosts) if plan.tls else []
        self.certificate: Path | None = None
        self._context: ssl.SSLContext | None = None
        if plan.tls is not None and plan.tls != "stalled":
            self.certificate, key = make_certificate(plan.folder, self.hosts, plan.tls)
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(self.certificate, key)
        self._mute: list[socket.socket] = []
        self.port: int = self._listeners[0].getsockname()[1]
        self.tls_port: int | None = self._tls_listeners[0].getsockname()[1] if self._tls_listeners else None

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then hang up on everybody."""
        async with asyncio.TaskGroup() as tasks:
            accepting = [
                *(tasks.create_task(self._accept(sock, None), name="accept") for sock in self._listeners),
                *(
                    tasks.create_task(self._accept(sock, self._context), name="accept tls")
                    for sock in self._tls_listeners
                ),
            ]
            await stop.wait()
            for task in accepting:
                task.cancel()
        for connection in list(self.connections):
            connection.reset()
        while self.connections:  # noqa: ASYNC110 - each yield lets the loop tell one more that it is gone
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        for sock in [*self._listeners, *self._tls_listeners, *self._mute]:
            sock.close()
        self._log.close()

    async def _accept(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        """Take connections from one listener; a handshake that fails or stalls is that client's affair."""
        loop = asyncio.get_running_loop()
        muted = listener in self._tls_listeners and context is None
        async with asyncio.TaskGroup() as tasks:
            while True:
                sock, _ = await loop.sock_accept(listener)
                if muted:
                    self._mute.append(sock)
                    continue
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                tasks.create_task(self._welcome(sock, context), name="welcome")

    async def _welcome(self, sock: socket.socket, context: ssl.SSLContext | None) -> None:
        """Hand an accepted socket to a connection of its own."""
        connection = Connection(self, sock, next(self._numbers))
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: connection, sock, ssl=context)
        except (OSError, ssl.SSLError):
            sock.close()

    async def answer(self, exchange: Exchange) -> None:
        """Let the page behind the target answer: a test's own, robots.txt, one of the table, or an ordinary one."""
        path = exchange.request.path
        self._visits[exchange.host, exchange.request.target] += 1
        exchange.visits = self._visits[exchange.host, exchange.request.target]
        handler = self.custom.get((exchange.host, path)) or self.custom.get((None, path))
        if handler is None and path == "/robots.txt":
            handler = ROBOTS.pages[self.robots.get(exchange.host, "404")].handler
        if handler is None:
            group, _, below = path.removeprefix("/").partition("/")
            name, _, exchange.rest = below.partition("/")
            page = GROUPS[group].pages.get(name) if group in GROUPS else None
            handler = page.handler if page else self.plain.answer
        await handler(exchange)

    def opened(self, exchange: Exchange, started: float) -> Entry:
        """Log that a request came."""
        headers = exchange.request.headers
        entry = Entry(
            id=next(self._ids),
            connection=exchange.connection.number,
            host=exchange.host,
            port=exchange.connection.port,
            method=exchange.request.method,
            path=exchange.request.target,
            start=started,
            user_agent=headers.get("user-agent"),
            if_none_match=headers.get("if-none-match"),
            if_modified_since=headers.get("if-modified-since"),
            cookie=headers.get("cookie"),
            authorization=headers.get("authorization"),
        )
        self._log.append(entry)
        return entry

    def closed(self, entry: Entry) -> None:
        """Log how a request ended."""
        self._log.append(entry)

    def url(self, exchange: Exchange, path: str, hosts_on: int) -> str:
        """Return the address of a path on a host counted from the exchange's own, scheme and port unchanged."""
        at = self.hosts.index(exchange.connection.address) + hosts_on
        address = self.hosts[at % len(self.hosts)] if hosts_on else exchange.host
        port = exchange.connection.port
        return f"{'https' if port == self.tls_port else 'http'}://{address}:{port}{path}"
