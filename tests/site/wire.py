"""One connection of the site: heads in, whatever bytes a page wants out. It corrects nothing and refuses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Protocol, cast
from urllib.parse import parse_qsl, urlsplit

from tests.site.log import Entry

SO_TIMESTAMPNS = 35
_READ_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
_LONGEST_WAIT_S = 86_400.0
# struct tcp_info: its first byte is the state; milliseconds since the last acknowledgement come after twelve numbers.
_TCP_INFO_BYTES = 104
_LAST_ACK_AT = 8 + 12 * 4
_CLOSE_WAIT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request head, taken apart without judging it."""

    method: str
    target: str
    version: str
    headers: Mapping[str, str]
    """Names in lower case; of a repeated one, the last."""
    head: bytes

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.split("?", 1)[0]

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the target."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


def parse_head(head: bytes) -> Request:
    """Return the request in these bytes; what is missing is empty."""
    lines = head.decode("latin-1").split("\r\n")
    method, target, version, *_ = [*lines[0].split(" "), "", "", ""]
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return Request(method=method, target=target, version=version, headers=headers, head=head)


def arrival(sock: socket.socket) -> float:
    """Return when the kernel received the next unread byte, in monotonic seconds; now, if it does not say.

    A busy machine may let the byte wait for many milliseconds, and the judge must not blame the client for that.
    """
    with contextlib.suppress(OSError):
        for level, kind, stamp in sock.recvmsg(1, 256, socket.MSG_PEEK)[1]:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(stamp) == 16:
                seconds, nanos = struct.unpack("qq", stamp)
                return float(seconds) + float(nanos) / 1e9 - _wall_minus_monotonic()
    return time.monotonic()


def hung_up(sock: socket.socket) -> float:
    """Return when the kernel heard that a client closed its side, in monotonic seconds; now, if it does not say.

    For the same reason: our loop may hear of it many milliseconds later.
    """
    now = time.monotonic()
    with contextlib.suppress(OSError, struct.error):
        told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        # A client that closes says so with its last acknowledgement; one that resets says nothing that is noted.
        if told[0] == _CLOSE_WAIT:
            (silent_ms,) = struct.unpack_from("I", told, _LAST_ACK_AT)
            return now - float(silent_ms) / 1000
    return now


def _wall_minus_monotonic() -> float:
    """Return how far the wall clock, in which the kernel stamps, is ahead; read again if interrupted between."""
    best_gap, offset = float("inf"), 0.0
    for _ in range(20):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        if after - before < best_gap:
            best_gap, offset = after - before, wall - (before + after) / 2
        if best_gap < 20e-6:
            break
    return offset


class Keeper(Protocol):
    """What a connection and a page need of the server behind them."""

    connections: set[Connection]

    async def answer(self, exchange: Exchange) -> None:
        """Find the page and let it answer."""
        ...

    def opened(self, exchange: Exchange, started: float) -> Entry:
        """Log that a request came."""
        ...

    def closed(self, entry: Entry) -> None:
        """Log how it ended."""
        ...

    def url(self, exchange: Exchange, path: str, hosts_on: int) -> str:
        """Return the address of a path on a host counted from the exchange's own."""
        ...


class _Transport(Protocol):
    """The part of a transport that TLS and plain ones share."""

    def write(self, data: bytes | memoryview) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def set_write_buffer_limits(self, high: int) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """One accepted socket: requests are answered one after the other, a client that hangs up stops the page."""

    def __init__(self, server: Keeper, sock: socket.socket, number: int) -> None:
        self.server, self.sock, self.number = server, sock, number
        self.address, self.port = sock.getsockname()[:2]
        self.wrote_at = time.monotonic()
        self.sent_bytes = 0
        self._inbox = bytearray()
        self._view = memoryview(bytearray(_READ_BYTES))
        self._arrived: float | None = None
        self._hung_up: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: _Transport | None = None
        self._drained = asyncio.Event()
        self._drained.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Any byte that the kernel does not take at once pauses the page, so that `wrote_at` is true."""
        self._transport = cast("_Transport", transport)
        self._transport.set_write_buffer_limits(high=0)
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the page that was answering."""
        self._transport = None
        self.server.connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """The kernel's buffer is full."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """Everything has left."""
        self.wrote_at = time.monotonic()
        self._drained.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Called right before the bytes are read: the last moment at which the kernel can tell when they came."""
        if self._arrived is None:
            self._arrived = arrival(self.sock)
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        self._inbox += self._view[:nbytes]
        self._advance()

    def eof_received(self) -> bool:
        """A client that closes its side is gone."""
        self._hung_up = hung_up(self.sock)
        return False

    def _advance(self) -> None:
        """Start the next page if a whole request waits and no page is running."""
        end = self._inbox.find(b"\r\n\r\n")
        if self._task is not None or end < 0:
            return
        request = parse_head(bytes(self._inbox[:end]))
        length = request.headers.get("content-length", "0")
        whole = end + 4 + (int(length) if length.isdigit() else 0)
        if len(self._inbox) < whole:
            return
        del self._inbox[:whole]
        started = self._arrived if self._arrived is not None else time.monotonic()
        self._arrived = time.monotonic() if self._inbox else None
        self._task = asyncio.create_task(self._answer(request, started), name=f"answer {request.target[:60]}")

    async def _answer(self, request: Request, started: float) -> None:
        """Run one page and log how it went."""
        exchange = Exchange(self, request)
        self.sent_bytes, self.wrote_at = 0, started
        entry = self.server.opened(exchange, started)
        fault, aborted = None, False
        try:
            await self.server.answer(exchange)
        except (asyncio.CancelledError, ConnectionError):
            aborted = True
        except Exception as exc:
            fault, exchange.keep = repr(exc), False
        gone_at = time.monotonic() if self._hung_up is None else max(self._hung_up, started)
        self.server.closed(
            entry._replace(
                end=gone_at if aborted else self.wrote_at,
                status=exchange.status,
                sent_bytes=self.sent_bytes,
                aborted=aborted,
                retry_after=exchange.retry_after,
                fault=fault,
            )
        )
        self._task = None
        if exchange.keep and not aborted:
            self._advance()
        else:
            self.close()

    async def write(self, data: bytes) -> None:
        """Send bytes and return when the kernel has them; raises ConnectionError if the client is gone."""
        view = memoryview(data)
        for at in range(0, len(view), _PIECE_BYTES):
            if self._transport is None:
                raise ConnectionResetError("the client hung up")
            piece = view[at : at + _PIECE_BYTES]
            self.wrote_at = time.monotonic()
            self._transport.write(piece)
            self.sent_bytes += len(piece)
            await asyncio.sleep(0)  # an endless page must let the loop notice that nobody listens any more
            await self._drained.wait()

    def close(self) -> None:
        """Close in good order, after what was written."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Close with a TCP reset: what the client has not read yet is lost to it."""
        if self._transport is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()


class Exchange:
    """What a page is given: the request, and ways to answer it well or badly."""

    def __init__(self, connection: Connection, request: Request) -> None:
        self.connection, self.request = connection, request
        self.server = connection.server
        named = request.headers.get("host", "").rsplit(":", 1)[0]
        self.host: str = named or connection.address
        self.visits = 1
        """How often this host was asked for this target, this time included."""
        self.rest = ""
        """What follows the page's own path."""
        self.keep = False
        """Whether the connection may serve another request; `reply` sets it."""
        self.status: int | None = None
        self.retry_after: float | None = None

    def word(self, name: str, default: str) -> str:
        """Return a parameter of the query."""
        return self.request.query.get(name, default)

    def number(self, name: str, default: float) -> float:
        """Return a parameter of the query as a number."""
        return float(self.request.query.get(name, default))

    def url(self, path: str, *, hosts_on: int = 0) -> str:
        """Return the absolute address of a path on this host, or on the one that is so many hosts further."""
        return self.server.url(self, path, hosts_on)

    async def send(self, data: bytes) -> None:
        """Send raw bytes; the connection is closed after the page unless it sets `keep`."""
        if self.status is None and data.startswith(b"HTTP/1.") and data[9:12].isdigit():
            self.status = int(data[9:12])
        await self.connection.write(data)

    async def reply(
        self,
        body: bytes | str = b"",
        *,
        status: int = 200,
        headers: Iterable[tuple[str, str]] = (),
        media: str | None = "text/html; charset=utf-8",
    ) -> None:
        """Send a well-framed answer; strings are UTF-8, header values Latin-1."""
        payload = body.encode() if isinstance(body, str) else body
        extra = list(headers)
        lines = [f"HTTP/1.1 {status} {'OK' if status == 200 else 'Status'}", f"Content-Length: {len(payload)}"]
        if media is not None:
            lines.append(f"Content-Type: {media}")
        lines += [f"{name}: {value}" for name, value in extra]
        if status == 304:
            del lines[1]
        self.status = status
        self.retry_after = next((_seconds(value) for name, value in extra if name.lower() == "retry-after"), None)
        self.keep = self.request.version == "HTTP/1.1" and self.request.headers.get("connection", "").lower() != "close"
        bodiless = self.request.method == "HEAD" or status == 304
        await self.connection.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if bodiless else payload))

    async def pause(self, seconds: float) -> None:
        """Wait; ends early only if the client hangs up."""
        await asyncio.sleep(seconds)

    async def silence(self) -> None:
        """Say nothing for ever: ends when the client hangs up or the site stops."""
        await asyncio.Event().wait()

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        self.connection.reset()


def _seconds(value: str) -> float | None:
    """Return what a Retry-After asks for, at most a day; None if it makes no sense."""
    if value.isdigit():
        return min(float(value), _LONGEST_WAIT_S)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return min(max(0.0, moment.timestamp() - time.time()), _LONGEST_WAIT_S)
