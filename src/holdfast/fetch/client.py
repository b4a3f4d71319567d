"""Makes one GET or POST and returns the exchange as sent and received. Follows, decodes and retries nothing, sends
every header itself, and connects only to addresses that the guard permits.
"""

from __future__ import annotations

import asyncio
import resource
from collections import deque
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.errors import Invalid, Unavailable, UrlRefused
from holdfast.fetch import endings
from holdfast.fetch.body import BodySink, Spool
from holdfast.fetch.curl import PEER_FAILED_VERIFICATION, EasyOptions, KeptSockets, Multi, Transfer
from holdfast.fetch.dns import ResolvedName, Resolver, ResolverSettings
from holdfast.fetch.endings import TransferEnding, TransferFailure
from holdfast.fetch.guard import (
    REFUSAL,
    AddressGuard,
    DialledOrigin,
    FetchTarget,
    InvalidHosts,
    parse_target,
    trust_store,
)
from holdfast.fetch.headers import Pairs, RequestHeaders
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter
from holdfast.types import Fetched, FetchFailed, FetchProblem, FetchRequest
from holdfast.values import dataclass

# Descriptors reserved for the rest of the process (database, WARC files, spooled bodies).
_KEPT_DESCRIPTORS = 128
_UNNOTICED_S = 0.005
# Bytes kept of an unreadable response: more than a whole head.
_EVIDENCE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Settings and limits of an HTTP client."""

    user_agent: str
    from_header: str = ""
    """E-mail address for the From header; empty sends none."""
    accept: str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    extra_headers: tuple[tuple[str, str], ...] = ()
    connect_timeout_s: float = 10.0
    min_bytes_per_s: int = 64
    """A lower average rate over the whole window ends the exchange; 0 disables this limit."""
    rate_window_s: int = 15
    max_header_bytes: int = 256 * 1024
    """All heads of one exchange, including interim ones; libcurl's own limit is 300 KiB."""
    spool_dir: Path | None = None
    memory_bytes: int = 1024 * 1024
    """A larger body goes to disk while it arrives."""
    memory_room_bytes: int = 64 * 1024 * 1024
    """Memory limit of all arriving bodies together; beyond it, smaller ones go to disk too."""
    allow_invalid_tls: bool = False
    """Verify first; if the certificate fails, retry without verification and mark the exchange as not verified."""
    ca_file: Path | None = None
    max_connections: int = 1500
    allow_ports: frozenset[int] | None = None
    """Ports that may be requested; None leaves the policy to the caller that built the URL."""


class _Call(NamedTuple):
    # All timeouts count from here, so that waiting for a name or a connection is included.

    request: FetchRequest
    started_at: datetime
    started_s: float

    def after(self, waited_s: float) -> _Call:
        # The wait for a slot of the address is our politeness, not server time.
        if waited_s < _UNNOTICED_S:
            return self
        return _Call(self.request, self.started_at + timedelta(seconds=waited_s), self.started_s + waited_s)


class Client:
    """Makes one request per call, any number of calls in parallel, over kept-alive connections."""

    def __init__(
        self,
        settings: ClientSettings,
        guard: AddressGuard,
        clock: Clock,
        resolver: Resolver | None = None,
        limiter: AddressLimiter | None = None,
    ) -> None:
        """Create a client without opening anything; without a limiter, requests per address are unlimited."""
        self._settings = settings
        self._guard = guard
        self._clock = clock
        self._resolver = resolver or Resolver(ResolverSettings(), guard, clock)
        self._limiter = limiter or AddressLimiter(AddressLimit(), clock)
        self._spool = Spool(settings.spool_dir, settings.memory_bytes, settings.memory_room_bytes)
        self._invalid = InvalidHosts(clock)
        self._headers = RequestHeaders(_common_headers(settings))
        self._options = EasyOptions(
            ca_file=trust_store(settings.ca_file),
            connect_timeout_s=settings.connect_timeout_s,
            min_bytes_per_s=settings.min_bytes_per_s,
            rate_window_s=settings.rate_window_s,
        )
        self._max_connections = _socket_room(settings.max_connections)
        self._in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._kept = KeptSockets()
        self._idle: list[Transfer] = []
        self._multi: Multi | None = None
        self._closed = False

    async def fetch(self, request: FetchRequest) -> Fetched | FetchFailed:
        """Return the exchange, or why none is worth storing.

        A complete head is always returned, with `truncated` set if its body is incomplete. Raise `NoSpace` or
        `Unavailable` if a large body cannot be spooled to disk, and whatever the request's `before_send` raises; every
        ending caused by the server is a value.
        """
        call = _Call(request, self._clock.now(), self._clock.monotonic())
        try:
            target = self._target(request.url)
            headers = self._headers.join(request.headers)
        except Invalid as exc:
            return self._failed(call, TransferFailure(FetchProblem.URL_REFUSED, str(exc)))
        address = target.origin.address
        if not address:
            resolved = self._known(target.origin) or await self._resolver.resolve(target.origin.host)
            if resolved.problem is not None:
                return self._failed(call, TransferFailure(resolved.problem, resolved.message))
            address = resolved.addresses[0]
        asked_at = self._clock.monotonic()
        async with self._limiter.turn(address):
            call = call.after(self._clock.monotonic() - asked_at)
            if self._in_use >= self._max_connections:
                await self._turn()
            transfer = self._take()
            try:
                transfer.ask(target, headers, request.content)
                return await self._exchange(transfer, call, address, fresh=request.fresh_connection)
            finally:
                self._put_back(transfer)

    async def close(self) -> None:
        """Abort running requests (their callers are cancelled) and close every connection. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._multi is not None:
            self._multi.close()
        self._resolver.close()
        for waiting in self._waiting:
            waiting.cancel()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()

    def _target(self, url: str) -> FetchTarget:
        target = parse_target(url)
        allowed = self._settings.allow_ports
        if allowed is not None and target.origin.port not in allowed:
            raise UrlRefused(url, "its port is not among those that may be asked")
        return target

    def _known(self, origin: DialledOrigin) -> ResolvedName | None:
        if origin.literal is None:
            return self._resolver.cached(origin.host)
        if not self._guard.judge(origin.literal):
            return ResolvedName((), FetchProblem.ADDRESS_FORBIDDEN, REFUSAL)
        return ResolvedName((), FetchProblem.URL_REFUSED, "its host is an address that is not spelt in the usual way")

    async def _exchange(
        self, transfer: Transfer, call: _Call, address: str, *, fresh: bool = False
    ) -> Fetched | FetchFailed:
        origin = transfer.target.origin
        verify = not (self._settings.allow_invalid_tls and self._invalid.known(origin.host, origin.port))
        connect_s = self._settings.connect_timeout_s
        if call.request.before_send is not None:
            connect_s = min(connect_s, call.request.before_send())
        handed_s = self._clock.monotonic() - call.started_s
        transfer.limit(call.request.deadline_s - handed_s, call.request.max_body_bytes, connect_s=connect_s)
        transfer.dial(address, verify=verify, fresh=fresh)
        ending = await self._run(transfer)
        # Its idle connection had died: nothing was sent, so the server sees one request.
        if transfer.is_stale:
            return await self._exchange(transfer, call, address, fresh=True)
        if ending.code == PEER_FAILED_VERIFICATION and verify and self._settings.allow_invalid_tls:
            self._invalid.add(origin.host, origin.port)
            return await self._exchange(transfer, call, address, fresh=fresh)
        answer = endings.read(ending, self._settings.max_header_bytes)
        sent_at = transfer.sent_at
        if isinstance(answer, TransferFailure):
            # The address may not be routed here, for example IPv6: the next exchange tries another one.
            if sent_at is None:
                self._resolver.demote(origin.host, address)
            failed = self._failed(call, answer, sent_at)
            is_bad = answer.problem is FetchProblem.BAD_RESPONSE
            return replace(
                failed,
                kept_connection=_is_of_connection(transfer, answer),
                received=_received(transfer) if is_bad else b"",
            )
        # Later data on this connection may be an attacker's and could be taken for another page's response.
        if endings.is_ambiguous(answer.head):
            transfer.shut_connection()
        return Fetched(
            url=call.request.url,
            status=answer.status,
            request_head=transfer.request_head(),
            response_head=answer.head,
            body=transfer.sink.finish(),
            ip=transfer.peer,
            started_at=call.started_at,
            took_s=self._clock.monotonic() - call.started_s,
            sent_s=0.0 if sent_at is None else sent_at - call.started_s,
            first_byte_s=None if sent_at is None else sent_at - call.started_s + transfer.waited_s(),
            truncated=answer.truncated,
            tls_verified=verify if origin.scheme == "https" else None,
        )

    async def _run(self, transfer: Transfer) -> TransferEnding:
        multi = self._multi
        if self._closed:
            raise Unavailable("this client was closed; open another one")
        if multi is None:
            multi = self._multi = Multi(asyncio.get_running_loop(), self._max_connections)
        try:
            code, message = await multi.start(transfer)
        finally:
            multi.abort(transfer)
        if transfer.sink.error is not None:
            raise transfer.sink.error
        return transfer.ending(code, message)

    async def _turn(self) -> None:
        """Wait until a connection may be opened, in order of arrival."""
        while self._in_use >= self._max_connections:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                # The slot may have been granted at the same time; it must not be lost with the caller.
                if turn.done() and not turn.cancelled():
                    self._call_next()
                raise

    def _take(self) -> Transfer:
        self._in_use += 1
        return self._idle.pop() if self._idle else self._new()

    def _new(self) -> Transfer:
        return Transfer(self._options, self._guard, self._clock, self._kept, BodySink(self._spool))

    def _put_back(self, transfer: Transfer) -> None:
        self._in_use -= 1
        transfer.reset()
        if self._closed:
            transfer.curl.close()
            return
        self._idle.append(transfer)
        if self._waiting:
            self._call_next()

    def _call_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _failed(self, call: _Call, failure: TransferFailure, sent_at: float | None = None) -> FetchFailed:
        return FetchFailed(
            url=call.request.url,
            problem=failure.problem,
            message=failure.message,
            started_at=call.started_at,
            took_s=self._clock.monotonic() - call.started_s,
            sent_s=None if sent_at is None else sent_at - call.started_s,
        )


def _is_of_connection(transfer: Transfer, failure: TransferFailure) -> bool:
    """Return whether a failure may be due to a kept-alive connection alone, not to the request."""
    if transfer.is_fresh or transfer.sent_at is None:
        return False
    nothing_came = failure.problem is FetchProblem.DISCONNECTED and not transfer.lines
    return nothing_came or failure.problem is FetchProblem.BAD_RESPONSE


def _received(transfer: Transfer) -> bytes:
    """Return the bytes libcurl delivered of a malformed response: complete head lines, and any body. The line at which
    it gave up is not included.
    """
    body = transfer.sink.finish()
    try:
        data = bytearray(b"".join(transfer.lines))
        for piece in body.chunks():
            data += piece
            if len(data) >= _EVIDENCE_BYTES:
                break
        return bytes(data[:_EVIDENCE_BYTES])
    finally:
        body.close()


def _common_headers(settings: ClientSettings) -> Pairs:
    """Return the headers of every request, in the order in which they are sent."""
    sent_by = (("From", settings.from_header),) if settings.from_header else ()
    return (
        ("User-Agent", settings.user_agent),
        ("Accept", settings.accept),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        *sent_by,
        *settings.extra_headers,
    )


def _socket_room(wanted: int) -> int:
    """Return how many connections may be open, after trying to raise the limit of file descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _KEPT_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        if raised > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        # With very few descriptors, half of them are ours.
        return max(1, min(wanted, max(soft - _KEPT_DESCRIPTORS, soft // 2)))
    return wanted
