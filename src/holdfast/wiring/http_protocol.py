"""How requests are read off a connection: strictly, within a size and a time; what can be read in two ways is refused.

A proxy in front may understand a request otherwise than we do where its head is sloppy: a length beside chunks, lines
without CR, lines that go on on the next. Behind such a request another one can hide, so none of them is read.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.wiring.connections import ConnectionLimits, TooManyConnections

_LINGER_S = 1.0
"""How long a client that was turned away has to read why; what it sends meanwhile is dropped."""
_LINGERING = 64
"""Clients that are told why at once; beyond, a connection is closed without a word: the flood is what must end."""


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
        if head.count(b"\n") != head.count(b"\r\n"):
            raise h11.RemoteProtocolError("a line ends without CR")
        if any(line.startswith((b" ", b"\t")) for line in lines[1:]):
            raise h11.RemoteProtocolError("a line goes on on the next")
        names = {bytes(line.partition(b":")[0]).lower() for line in lines[1:]}
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
        body = _told("invalid", msg, msg)
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
        """Say why a connection is not served, and end it.

        It is not closed at once: a client that is still sending would be reset before it has read the answer.
        """
        self.connections.discard(self)
        if len(self.lingering) >= _LINGERING:
            self.transport.abort()
            return
        self.lingering.add(self)
        body = _told(code, error, detail)
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nRetry-After: %d\r\n"
            b"Connection: close\r\n\r\n%b" % (status, len(body), TooManyConnections.retry_after_s, body)
        )
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._head_timer = self.loop.call_later(_LINGER_S, self.transport.abort)

    def _refuse(self, status: bytes, sentence: str) -> None:
        body = _told("invalid", sentence, sentence)
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
            % (status, len(body), body)
        )
        self.transport.close()


def _told(code: str, error: str, detail: str) -> bytes:
    """Return an error as every route tells one."""
    return json.dumps({"error": error, "detail": detail, "code": code, "requestId": str(uuid4())}).encode()


def strict_http(*, head_bytes: int, head_s: float, write_s: float, limits: ConnectionLimits) -> type[StrictHttp]:
    """Return the protocol for a server with these limits."""
    chosen = {"head_bytes": head_bytes, "head_s": head_s, "write_s": write_s, "limits": limits, "lingering": set()}
    return type("StrictHttp", (StrictHttp,), chosen)
