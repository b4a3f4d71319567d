"""How the server listens and speaks HTTP: which addresses, how many connections, and strict heads of requests.

Without an admin token it listens on loopback only, and in a strict environment not at all.
"""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.config import Settings
from holdfast.errors import Conflict, Invalid, Unavailable

END_STREAMS = "end_streams"
"""Where the application leaves, in the state of its lifespan, what ends its live streams when the server stops."""
_SECRET_CHARS = 16
_BACKLOG = 2048


def listen(settings: Settings) -> socket.socket:
    """Return a bound socket for the API; Invalid if it would be open to the world, Conflict if the port is taken."""
    demand_closed(settings)
    host, port = settings.api.host, settings.api.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind, protocol)) as listener:
            # Connections of a server that was just stopped linger for a minute, and would keep the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            return socket.socket(family, kind, protocol, listener.detach())
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE:
            raise Conflict(
                f"port {port} on {host} is taken; stop what listens there, or choose another: --port {port + 1}"
            ) from exc
        raise Invalid(
            f"cannot listen on {host}, port {port}: {exc.strerror or exc}; choose with --host and --port"
        ) from exc


def outside_hint(settings: Settings) -> str | None:
    """Return which setting says that a proxy, or another machine, stands in front of this server; None if none does."""
    # Behind a proxy on this machine every peer is loopback, and so may the Host be: neither tells who really asks.
    api = settings.api
    names = [
        ("HOLDFAST_API_HOST", (api.host,)),
        ("HOLDFAST_API_ALLOWED_HOSTS", api.allowed_hosts),
        ("HOLDFAST_API_SITE_URL", (_hostname(api.site_url),)),
        ("HOLDFAST_REPLAY_ORIGIN", (_hostname(settings.replay.origin),)),
    ]
    if api.trusted_proxies:
        return f"HOLDFAST_API_TRUSTED_PROXIES names {api.trusted_proxies[0]}"
    found = ((setting, name) for setting, given in names for name in given if name and not is_loopback(name))
    return next((f"{setting} names {name}" for setting, name in found), None)


def _hostname(url: str | None) -> str | None:
    """Return the host of an address; what has none is returned whole, for it is no loopback name either."""
    return (urlsplit(url).hostname or url) if url else None


def demand_closed(settings: Settings) -> None:
    """Refuse, with Invalid, settings under which a stranger could reach admin routes."""
    token = settings.api.admin_token
    if settings.api.strict and (token is None or len(token.get_secret_value()) < _SECRET_CHARS):
        raise Invalid(
            f"the environment {settings.api.environment} needs HOLDFAST_API_ADMIN_TOKEN with at least {_SECRET_CHARS} "
            "characters; make one with: openssl rand -hex 32"
        )
    if token is None and not is_loopback(settings.api.host):
        raise Invalid(
            f"without HOLDFAST_API_ADMIN_TOKEN the server listens on loopback only, not on {settings.api.host}; "
            "set one (openssl rand -hex 32) or leave out --host"
        )
    hint = outside_hint(settings)
    if token is None and hint is not None:
        raise Invalid(
            f"{hint}, so others than this machine's users reach the server, and admin routes would be open to them; "
            "set HOLDFAST_API_ADMIN_TOKEN (openssl rand -hex 32), or take that setting away"
        )
    replay = urlsplit(settings.replay.origin or "").hostname
    own = {urlsplit(settings.api.site_url or "").hostname, *settings.api.allowed_hosts, settings.api.host, "localhost"}
    if replay is not None and (replay in own or is_loopback(replay, below=False)):
        raise Invalid(
            f"HOLDFAST_REPLAY_ORIGIN names {replay}, which is the application's own host; archived pages need one of "
            "their own, such as https://replay.example.org"
        )


def is_loopback(host: str, *, below: bool = True) -> bool:
    """Return whether a host is this machine's own: a loopback address, `localhost`, or a name below that."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        name = host.lower()
        return name == "localhost" or (below and name.endswith(".localhost"))


class TooManyConnections(Unavailable):
    """This address holds as many connections, or has as many requests under way, as it may."""

    code = "too_many_connections"
    summary = "Too many connections"
    retry_after_s = 5

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} connections of one address are served at once; close some, or try again in {self.retry_after_s} s"
        )


def client_key(host: str) -> str:
    """Return what an address is counted as: itself, or its whole /64 for IPv6, where one household has them all.

    Whatever is no address counts as one client: made up anew for each request, it would never be limited.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return "unknown"
    if isinstance(address, IPv6Address):
        # An IPv4 client that arrives on an IPv6 socket is counted as IPv4; all of them together would be one /64.
        return str(address.ipv4_mapped or int(address) >> 64)
    return str(address)


class AddressCounts:
    """How much each address holds now; as large as what is held, for an address that lets go is forgotten."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: Counter[str] = Counter()

    def take(self, key: str) -> bool:
        """Count one more of an address; False, and nothing is counted, if it has as many as it may."""
        if self._held[key] >= self.limit:  # reading a Counter adds nothing to it
            return False
        self._held[key] += 1
        return True

    def give_back(self, key: str) -> None:
        """Count one less."""
        self._held[key] -= 1
        if self._held[key] <= 0:
            del self._held[key]

    def __len__(self) -> int:
        return len(self._held)


class ConnectionLimits:
    """What a serving process allows: so many connections in all, and so many of one address."""

    def __init__(self, *, in_all: int, per_address: int, trusted_proxies: Sequence[str] = ()) -> None:
        self.in_all = in_all
        self._counts = AddressCounts(per_address)
        # The very rule by which the server believes what a proxy forwards: the two can never differ.
        self._trusted = ProxyHeadersMiddleware(_no_application, list(trusted_proxies)).trusted_hosts

    @property
    def per_address(self) -> int:
        """How many one address may hold."""
        return self._counts.limit

    def take(self, host: str) -> str | None:
        """Count a connection; return the key to give back, empty for one that is not counted, None if it is refused."""
        if host in self._trusted:
            return ""
        key = client_key(host)
        return key if self._counts.take(key) else None

    def give_back(self, key: str) -> None:
        """Forget a connection that is closed."""
        if key:
            self._counts.give_back(key)


async def _no_application(_scope: object, _receive: object, _send: object) -> None:
    """Serve nothing: only the rule of the middleware around it is asked."""


# How long a client that was turned away has to read why; what it sends meanwhile is dropped.
_LINGER_S = 1.0
# Clients that are told why at once; beyond, a connection is closed without a word: the flood is what must end.
_LINGERING = 64


class StrictHead(ReceiveBuffer):
    """Cuts the heads of requests out of what arrives; h11 itself takes sloppy ones (RFC 9112, 2.2, 5.2, 6.1)."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self.is_too_large = False

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines of a head once it is whole; RemoteProtocolError for one that is too large or sloppy."""
        before = bytes(self._data)
        lines: list[bytearray] | None = super().maybe_extract_lines()
        if lines is None:
            # h11 gives up on what is not whole by then; why is told in `send_400_response`.
            self.is_too_large = len(before) > self._limit
            return None
        head = before[: len(before) - len(self._data)]
        self.is_too_large = len(head) > self._limit
        if self.is_too_large:
            raise h11.RemoteProtocolError("the head is too large", error_status_hint=431)
        # A proxy that reads a bare line feed differently sees another request than we do: that is how requests are
        # smuggled.
        if head.count(b"\n") != head.count(b"\r\n"):
            raise h11.RemoteProtocolError("a line ends without CR")
        if any(line.startswith((b" ", b"\t")) for line in lines[1:]):
            raise h11.RemoteProtocolError("a line goes on on the next")
        names = {bytes(line.partition(b":")[0]).lower() for line in lines[1:]}
        # Two lengths, of which a proxy may believe the other one: what follows would be taken for a second request.
        if b"transfer-encoding" in names and (b"content-length" in names or lines[0].endswith(b"HTTP/1.0")):
            raise h11.RemoteProtocolError("the length of the body is told in two ways")
        return lines


class StrictHttp(H11Protocol):
    """uvicorn's protocol with strict heads, limits for connections, and times: for a head to be whole, and for a client
    to read on.
    """

    head_bytes = 32 * 1024
    head_s = 10.0
    write_s = 30.0
    limits: ConnectionLimits
    """Shared by all connections of a server."""
    lingering: set[StrictHttp]
    """Connections that were turned away and not closed yet."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head = StrictHead(self.head_bytes)
        self.conn._receive_buffer = self._head
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._counted_as: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head, but not for ever; turn away what is more than this client, or all, may hold."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.in_all:
            sentence = "this server holds as many connections as it can; try again in a few seconds"
            self._turn_away(b"503 Service Unavailable", "unavailable", sentence, sentence)
            return
        self._counted_as = self.limits.take(self.client[0] if self.client else "")
        if self._counted_as is None:
            error = TooManyConnections(self.limits.per_address)
            self._turn_away(b"429 Too Many Requests", error.code, error.summary, str(error))
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take what arrived; a head that has begun must be whole in time."""
        if self in self.lingering:
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._await_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        if self._counted_as is not None:
            self.limits.give_back(self._counted_as)
            self._counted_as = None
        self.lingering.discard(self)
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client to read on, but not for ever: what it does not fetch holds memory and a place."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_s, self._abandon)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        self._stop_watching()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be read, and say if it was its size."""
        if self._head.is_too_large:
            self._refuse(b"431 Request Header Fields Too Large", "the head of the request is too large; send less")
            return
        body = _error_body("invalid", msg, msg)
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        # By way of the connection's own state: it refuses to write an answer into one that is under way.
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_watching(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _abandon(self) -> None:
        # Closing would wait until the rest is sent, and that never is.
        self._write_timer = None
        self.transport.abort()

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
            self._refuse(b"408 Request Timeout", "the head of the request did not arrive in time; ask again")

    def _turn_away(self, status: bytes, code: str, error: str, detail: str) -> None:
        """Say why a connection is not served, and end it."""
        self.connections.discard(self)
        if len(self.lingering) >= _LINGERING:
            self.transport.abort()
            return
        self.lingering.add(self)
        body = _error_body(code, error, detail)
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nRetry-After: %d\r\n"
            b"Connection: close\r\n\r\n%b" % (status, len(body), TooManyConnections.retry_after_s, body)
        )
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # Not closed at once: a client that is still sending would be reset before it has read the answer.
        self._head_timer = self.loop.call_later(_LINGER_S, self.transport.abort)

    def _refuse(self, status: bytes, sentence: str) -> None:
        body = _error_body("invalid", sentence, sentence)
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
            % (status, len(body), body)
        )
        self.transport.close()


def _error_body(code: str, error: str, detail: str) -> bytes:
    """Return an error as every route tells one."""
    return json.dumps({"error": error, "detail": detail, "code": code, "requestId": str(uuid4())}).encode()


def strict_http(*, head_bytes: int, head_s: float, write_s: float, limits: ConnectionLimits) -> type[StrictHttp]:
    """Return the protocol for a server with these limits."""
    chosen = {"head_bytes": head_bytes, "head_s": head_s, "write_s": write_s, "limits": limits, "lingering": set()}
    return type("StrictHttp", (StrictHttp,), chosen)
