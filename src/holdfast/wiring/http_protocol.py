"""HTTP/1.1 parsing: httptools behind strict validation of each head, connection limits and timeouts.

The parser accepts heads that a proxy in front may read differently, which enables request smuggling. So each
head is cut from the input and validated as bytes first, and the parser never sees more than one request at a
time.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import unquote
from uuid import uuid4

import httptools
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from holdfast.wiring.server import AddressCounts, TooManyConnections, client_key


class ConnectionLimits:
    def __init__(self, *, in_all: int, per_address: int, trusted_proxies: Sequence[str] = ()) -> None:
        self.in_all = in_all
        self._counts = AddressCounts(per_address)
        # Use the server's own rule for trusted proxies, so that the two never differ.
        self._trusted = ProxyHeadersMiddleware(_no_application, list(trusted_proxies)).trusted_hosts

    @property
    def per_address(self) -> int:
        return self._counts.limit

    def take(self, host: str) -> str | None:
        """Count a connection; return the key to release, empty if the host is exempt, None if the limit is reached."""
        if host in self._trusted:
            return ""
        key = client_key(host)
        return key if self._counts.take(key) else None

    def give_back(self, key: str) -> None:
        if key:
            self._counts.give_back(key)


async def _no_application(_scope: object, _receive: object, _send: object) -> None:
    """Do nothing: the application behind the middleware, of which only the rule is used."""


# How long a rejected client has to read the reason; its input is discarded meanwhile.
_LINGER_S = 1.0
# Limit of rejected clients that get a reason at the same time; others are disconnected without one, to end a flood.
_LINGERING = 64

_END: Final = b"\r\n\r\n"
_BARE_LF = re.compile(rb"(?<!\r)\n")
# RFC 9112: a method, a target without spaces, one of our two versions; then fields whose names are tokens, with no
# space before the colon, no control character in the value, and no line that goes on on the next. Possessive: nothing
# is read twice.
_HEAD = re.compile(
    rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++ [\x21-\x7e\x80-\xff]++ HTTP/1\.([01])\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[\t\x20-\x7e\x80-\xff]*+\r\n)*+\r\n"
)
_FRAMING = re.compile(rb"\r\n(host|content-length|transfer-encoding):[ \t]*([^\r]*)", re.IGNORECASE)
# Longer ones are invalid, and Python is slow with numbers of thousands of digits.
_LENGTH = re.compile(rb"[0-9]{1,18}[ \t]*")


class UnreadableHead(Exception):
    """An invalid head, with the reason."""


def body_length(head: bytes) -> int | None:
    """Return the body length of a head, None if it is chunked; raise UnreadableHead if it is malformed."""
    shape = _HEAD.fullmatch(head)
    if shape is None:
        raise UnreadableHead("the head of the request is not written as RFC 9112 says")
    hosts, lengths, codings = 0, [], []
    for name, value in _FRAMING.findall(head):
        if len(name) == 4:
            hosts += 1
        elif len(name) == 14:
            lengths.append(value)
        else:
            codings.append(value)
    is_old = shape[1] == b"0"
    if hosts > 1 or not (hosts or is_old):
        raise UnreadableHead("a request names exactly one Host")
    # A proxy may use the other of two lengths: the rest would then count as a second request.
    if codings and (lengths or is_old or len(codings) > 1):
        raise UnreadableHead("the length of the body is given in two ways")
    if codings:
        if codings[0].strip().lower() != b"chunked":
            raise UnreadableHead("the only transfer coding here is chunked")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise UnreadableHead("a request has one Content-Length, and that is a number")
    return int(lengths[0])


class StrictHttp(HttpToolsProtocol):
    """uvicorn's protocol with strict heads, connection limits, and timeouts for receiving a head and for clients
    that stop reading.
    """

    head_bytes = 32 * 1024
    head_s = 10.0
    write_s = 30.0
    limits: ConnectionLimits
    """Shared by all connections of a server."""
    lingering: set[StrictHttp]
    """Rejected connections that are not closed yet."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._counted_as: str | None = None
        self._pending = b""
        """What has arrived of a head that is not whole, or behind a request that is still being answered."""
        self._left: int | None = 0
        """Bytes of the body that have still to come; None while chunks do."""
        self._is_whole = False
        """Whether the piece that is being parsed has ended its request."""
        self._is_ended = False
        """Whether nothing more is read from this connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first head; reject connections beyond the limits."""
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
        self._unset_keepalive_if_required()
        if self._left != 0:
            data = self._take_body(data)
        if data:
            self._pending = self._pending + data if self._pending else data
        if self._pending:
            self._take_heads()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted_as is not None:
            self.limits.give_back(self._counted_as)
            self._counted_as = None
        self.lingering.discard(self)
        self._is_ended = True
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timeout for the client to continue reading: unread data occupies memory and a connection."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_s, self._abandon)

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        scope = self.scope
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        # Do not use the parser here: it drops the host of `GET http://elsewhere/`, a path that the application rejects.
        raw_path, _, query = self.url.partition(b"?")
        path = raw_path.decode("latin-1")
        scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        scope["raw_path"] = self.root_path.encode("ascii") + raw_path
        scope["query_string"] = query
        is_full = self.limit_concurrency is not None and len(self.tasks) >= self.limit_concurrency
        self.cycle = RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        self._start_asgi_task(self.cycle, cast(Any, service_unavailable) if is_full else self.app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._pending and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._take_heads()

    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", msg)

    def _take_heads(self) -> None:
        while self._pending and not self._is_ended:
            if self.cycle is not None and not self.cycle.response_complete:
                # Process one request at a time: pipelined data waits here, and then in the client's socket.
                if len(self._pending) > HIGH_WATER_LIMIT:
                    self.flow.pause_reading()
                return
            end = self._end_of_head()
            if end is None:
                return
            head, behind = self._pending[:end], self._pending[end:]
            self._pending = b""
            try:
                self._left = body_length(head)
            except UnreadableHead as exc:
                self._refuse(b"400 Bad Request", str(exc))
                return
            self._stop_waiting()
            if self._feed(head):
                self._pending = self._take_body(behind) if self._left != 0 and behind else behind

    def _end_of_head(self) -> int | None:
        """Return where a head ends; None if it is incomplete, after which the connection waits or is rejected."""
        pending = self._pending
        # A request starts with a letter: reject TLS and empty lines on this port without waiting for more.
        if pending[0] < 0x21:
            self._refuse(b"400 Bad Request", "this is no HTTP request")
            return None
        at = pending.find(_END)
        end = at + len(_END) if at >= 0 else len(pending)
        if end > self.head_bytes:
            self._refuse(b"431 Request Header Fields Too Large", "the head of the request is too large; send less")
        elif at >= 0:
            return end
        # A proxy that parses a bare line feed differently sees another request than we do.
        elif _BARE_LF.search(pending):
            self._refuse(b"400 Bad Request", "a line ends without CR")
        else:
            self._await_head()
        return None

    def _take_body(self, data: bytes) -> bytes:
        if self._left is None:
            # Only the parser knows where chunks end: `on_message_begin` rejects anything after them at once.
            self._feed(data)
            return b""
        body, behind = data[: self._left], data[self._left :]
        self._left -= len(body)
        return behind if self._feed(body) else b""

    def on_message_begin(self) -> None:
        """Start a request; raise ValueError if it directly follows a chunked one in the same data."""
        if self._is_whole:
            raise ValueError("a request right behind chunks")
        super().on_message_begin()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_whole = True

    def _feed(self, data: bytes) -> bool:
        if self._is_ended:
            return False
        self._is_whole = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # No upgrade is supported: a new parser handles the request as if it had not asked for one.
            self.parser = httptools.HttpRequestParser(self)
        except httptools.HttpParserError:
            self._refuse(b"400 Bad Request", "the request cannot be read as HTTP/1.1")
            return False
        if self._is_whole:
            self._left = 0
            if not self.cycle.keep_alive:
                # This is the connection's last request: ignore what follows it.
                self._is_ended = True
        return True

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
        # Abort: closing would wait for the rest to be sent, which never happens.
        self._write_timer = None
        self.transport.abort()

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(b"408 Request Timeout", "the head of the request did not arrive in time; ask again")

    def _turn_away(self, status: bytes, code: str, error: str, detail: str) -> None:
        self.connections.discard(self)
        self._is_ended = True
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
        # Delay the close: a client that is still sending would be reset before it reads the response.
        self._head_timer = self.loop.call_later(_LINGER_S, self.transport.abort)

    def _refuse(self, status: bytes, sentence: str) -> None:
        self._is_ended, self._pending, self._left = True, b"", 0
        self._stop_waiting()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            # A response is being sent, and a second one must not be written into it: finish it, then close the
            # connection.
            cycle.keep_alive = False
            if not cycle.more_body:
                return
            # The rest of the body never arrives: its reader gets a disconnect.
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        body = _error_body("invalid", sentence, sentence)
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
            % (status, len(body), body)
        )
        self.transport.close()


def _error_body(code: str, error: str, detail: str) -> bytes:
    return json.dumps({"error": error, "detail": detail, "code": code, "requestId": str(uuid4())}).encode()


def strict_http(*, head_bytes: int, head_s: float, write_s: float, limits: ConnectionLimits) -> type[StrictHttp]:
    chosen = {"head_bytes": head_bytes, "head_s": head_s, "write_s": write_s, "limits": limits, "lingering": set()}
    return type("StrictHttp", (StrictHttp,), chosen)
