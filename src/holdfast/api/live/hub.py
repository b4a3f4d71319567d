"""The listeners of one process, and the pollers that read for them. Topics without listeners are not polled.

Each poll switches to a thread once, however many clients listen; a listener that does not read is dropped,
never waited for. Everything here runs on the event loop, except the methods of `Topic`, which run on threads.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from random import SystemRandom
from typing import Any, NamedTuple, Protocol

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast import log
from holdfast.api.errors import StreamsFull, TooManyStreams
from holdfast.api.middleware.request_ids import IS_STREAM
from holdfast.auth.principal import Principal
from holdfast.auth.roles import Permission
from holdfast.values import dataclass

_log = log.get()
BEAT_S = 15.0
"""The longest silence of a stream."""
RECHECK_S = 60.0
"""How often the access of all listeners is checked."""
QUEUED_BYTES = 256 * 1024
"""Maximum size of a listener's queue, beyond the buffers of its connection."""
# Threads for polls and replays; requests have their own threads.
_THREADS = 2
BEAT = b"event: beat\ndata: {}\n\n"
"""Keeps proxies from closing a quiet stream. It is an event, not a comment, so that a page notices missing beats."""


NOTHING = -1
"""The position of a listener that has seen nothing."""


class EndReason(StrEnum):
    SHUTDOWN = "shutdown"
    """The server is shutting down; the client should reconnect soon."""
    SLOW = "slow"
    """The client read more slowly than events arrived."""
    REVOKED = "revoked"
    """The session was revoked, the token has expired, or the role was changed."""
    LIFETIME = "lifetime"
    """The stream reached its maximum duration; the client should reconnect."""
    OVER = "over"
    """No further events can follow."""


class Frame(NamedTuple):
    """One encoded event, and its position on its track; events that a client has already seen are not sent again."""

    order: int
    data: bytes
    """Empty for a frame that only advances the position."""
    track: str = ""
    """The sequence that the position belongs to. Topics that read several tables have one per table, since their ids
    are not comparable.
    """
    is_last: bool = False


def frame(event: str, data: Any, *, order: int = 0, event_id: str | None = None, track: str = "") -> Frame:
    """Return an event whose data is one line of JSON."""
    named = "" if event_id is None else f"id: {event_id}\n"
    # Compact JSON has no line breaks, and those in its strings are escaped.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Frame(order, f"event: {event}\n{named}data: {text}\n\n".encode("utf-8", "replace"), track)


def opening(topic: str, *, retry_ms: int, beat_s: float) -> bytes:
    """Return the start of every stream: the reconnect delay and a greeting."""
    greeting = frame("connected", {"topic": topic, "heartbeatSeconds": beat_s}).data
    return b"retry: %d\n\n%b" % (retry_ms, greeting)


def ending(reason: EndReason) -> bytes:
    return frame("end", {"reason": reason.value}).data


class FrameBatch(NamedTuple):
    """The frames that one poll found, as sent to every listener."""

    frames: Sequence[Frame]
    data: bytes
    first: Mapping[str, int]
    """The lowest position on each track."""

    @classmethod
    def of(cls, frames: Sequence[Frame]) -> FrameBatch:
        first: dict[str, int] = {}
        for one in frames:
            first[one.track] = min(one.order, first.get(one.track, one.order))
        return cls(frames, b"".join(one.data for one in frames), first)

    def after(self, seen: Mapping[str, int]) -> bytes:
        """Return the frames after the positions already seen on each track."""
        # Usually this is the whole event, with the same bytes for every listener.
        if all(order > seen.get(track, NOTHING) for track, order in self.first.items()):
            return self.data
        return b"".join(one.data for one in self.frames if one.order > seen.get(one.track, NOTHING))


class Topic(Protocol):
    """A source of events under one or many keys (a job each, for example); called on threads, one call at a time."""

    @property
    def name(self) -> str: ...

    @property
    def interval_s(self) -> float: ...

    def begin(self, key: Hashable) -> None:
        """Record the current position of a key; `poll` returns what comes after it."""
        ...

    def poll(self, keys: Sequence[Hashable]) -> Mapping[Hashable, Sequence[Frame]]:
        """Return new events for these keys; costs one cheap statement if there are none."""
        ...

    def forget(self, key: Hashable) -> None:
        """Drop a key that has no more listeners."""
        ...


class Listener:
    def __init__(self, principal: Principal, permission: Permission, scope: Scope) -> None:
        self.principal, self.permission, self.scope = principal, permission, scope
        self._waiting: deque[FrameBatch | bytes] = deque()
        self._bytes = 0
        self._seen: dict[str, int] = {}
        self._wake = asyncio.Event()
        self.reason: EndReason | None = None
        """Why it ends; None while it does not."""
        self.was_quiet = True
        """Whether nothing was sent to it since the last heartbeat."""

    @property
    def credentials(self) -> Hashable:
        """The client's credentials; listeners with the same ones are checked together."""
        shown = [pair for pair in self.scope["headers"] if pair[0] in (b"cookie", b"authorization", b"x-admin-token")]
        peer = self.scope.get("client")
        return self.permission, str(peer[0]) if peer else "", tuple(shown)

    def has_seen(self, frames: Sequence[Frame]) -> None:
        """Record the positions that a replay has already sent, on each track."""
        for one in frames:
            self._seen[one.track] = max(one.order, self._seen.get(one.track, NOTHING))

    def put(self, batch: FrameBatch) -> None:
        """Queue the frames of a poll; a listener that is too far behind is ended."""
        if self.reason is not None:
            return
        if self._bytes + len(batch.data) > QUEUED_BYTES and self._bytes:
            self.end(EndReason.SLOW)
            return
        self._bytes += len(batch.data)
        self._waiting.append(batch)
        self.was_quiet = False
        self._wake.set()

    def beat(self) -> None:
        """Send a heartbeat if nothing else was sent for a while."""
        if self.was_quiet and not self._waiting and self.reason is None:
            self._waiting.append(BEAT)
            self._wake.set()
        self.was_quiet = True

    def end(self, reason: EndReason) -> None:
        """End the stream with one last event; the queue of a slow listener is dropped."""
        if self.reason is not None:
            return
        self.reason = reason
        if reason is EndReason.SLOW:
            self._waiting.clear()
        self._waiting.append(ending(reason))
        self._wake.set()

    async def next(self) -> tuple[bytes, bool]:
        """Wait for data to send; return it, and whether more may follow."""
        while True:
            sent = b""
            while self._waiting:
                one = self._waiting.popleft()
                if isinstance(one, FrameBatch):
                    self._bytes -= len(one.data)
                    sent += one.after(self._seen)
                else:
                    sent += one
            if sent or self.reason is not None:
                return sent, self.reason is None
            self._wake.clear()
            await self._wake.wait()


class Channel:
    """The listeners of one topic, by key, and the one poller that reads for them."""

    def __init__(self, topic: Topic, threads: CapacityLimiter) -> None:
        self.topic, self._threads = topic, threads
        self._interest: Counter[Hashable] = Counter()
        self._listeners: dict[Hashable, set[Listener]] = {}
        # Poll one at a time: a topic stores its position.
        self._turn = asyncio.Lock()
        self._poller: asyncio.Task[None] | None = None

    async def join(self, key: Hashable, listener: Listener) -> None:
        """Subscribe a listener to new events of a key; database errors reach the caller."""
        # Count it before the first await: a last listener that leaves meanwhile must not remove the key.
        self._interest[key] += 1
        try:
            if key not in self._listeners:
                async with self._turn:
                    await run_sync(self.topic.begin, key, limiter=self._threads)
        except BaseException:
            self._let_go(key)
            raise
        self._listeners.setdefault(key, set()).add(listener)
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll(), name=f"poll {self.topic.name}")

    def leave(self, key: Hashable, listener: Listener) -> None:
        """Remove a listener; the poller ends with the last one."""
        listeners = self._listeners.get(key)
        if listeners is None or listener not in listeners:
            return
        listeners.discard(listener)
        if not listeners:
            del self._listeners[key]
        self._let_go(key)
        if not self._listeners and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    def _let_go(self, key: Hashable) -> None:
        self._interest[key] -= 1
        if self._interest[key] <= 0:
            del self._interest[key]
            self.topic.forget(key)

    async def _poll(self) -> None:
        failed = False
        while True:
            await asyncio.sleep(self.topic.interval_s)
            try:
                async with self._turn:
                    found = await run_sync(self.topic.poll, tuple(self._listeners), limiter=self._threads)
                failed = False
            except Exception as exc:
                # Catch everything: without a poller all listeners would wait forever. Log it once: a database that is
                # unavailable for an hour must not fill the log.
                if not failed:
                    _log.warning("streams.wait", topic=self.topic.name, message=repr(exc).partition("\n")[0])
                failed = True
                continue
            for key, frames in found.items():
                self._tell(key, frames)

    def _tell(self, key: Hashable, frames: Sequence[Frame]) -> None:
        if frames:
            batch, is_over = FrameBatch.of(frames), frames[-1].is_last
            for listener in self._listeners.get(key, ()):
                listener.put(batch)
                if is_over:
                    listener.end(EndReason.OVER)


class Hub:
    """All listeners of this process: their number, heartbeats and access."""

    def __init__(self, *, in_all: int, per_principal: int, lasts_s: float) -> None:
        self._in_all, self._per_principal = in_all, per_principal
        self.lasts_s = lasts_s
        """How long a stream may last."""
        self.identify: Callable[[Scope], Awaitable[Principal]] | None = None
        """Authenticates a client again; without it, access lasts as long as the stream."""
        self.beat_s, self.recheck_s = BEAT_S, RECHECK_S
        self._listeners: set[Listener] = set()
        self._held: Counter[Hashable] = Counter()
        self._channels: dict[str, Channel] = {}
        self._beating: asyncio.Task[None] | None = None
        self.threads = CapacityLimiter(_THREADS)
        self._is_ending = False

    def __len__(self) -> int:
        return len(self._listeners)

    def channel(self, name: str, make: Callable[[], Topic]) -> Channel:
        if name not in self._channels:
            self._channels[name] = Channel(make(), self.threads)
        return self._channels[name]

    def enter(self, listener: Listener) -> None:
        """Add a listener; raise TooManyStreams or StreamsFull if a limit is reached."""
        if self._is_ending or len(self._listeners) >= self._in_all:
            raise StreamsFull
        owner = _owner(listener.principal)
        if self._held[owner] >= self._per_principal:
            raise TooManyStreams(self._per_principal)
        self._held[owner] += 1
        self._listeners.add(listener)
        if self._beating is None:
            self._beating = asyncio.create_task(self._watch(), name="heartbeats of streams")

    def leave(self, listener: Listener) -> None:
        if listener not in self._listeners:
            return
        self._listeners.discard(listener)
        owner = _owner(listener.principal)
        self._held[owner] -= 1
        if self._held[owner] <= 0:
            del self._held[owner]
        if not self._listeners and self._beating is not None:
            self._beating.cancel()
            self._beating = None

    def end(self) -> None:
        """End all streams and accept no more, because the server is shutting down."""
        self._is_ending = True
        for listener in self._listeners:
            listener.end(EndReason.SHUTDOWN)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        checked_at = loop.time()
        while True:
            await asyncio.sleep(min(self.beat_s, self.recheck_s))
            for listener in self._listeners:
                listener.beat()
            if loop.time() - checked_at >= self.recheck_s:
                await self.recheck(list(self._listeners))
                checked_at = loop.time()

    async def recheck(self, listeners: Iterable[Listener]) -> None:
        """End streams whose session was revoked, whose token has expired, or whose user's role has changed."""
        by_credentials: dict[Hashable, list[Listener]] = {}
        for listener in listeners:
            by_credentials.setdefault(listener.credentials, []).append(listener)
        for alike in by_credentials.values():
            try:
                may = await self._may_still(alike[0])
            except Exception as exc:
                # An unavailable database revokes nothing; retry in a minute. Catch everything else, too: if the task
                # ended here, no stream would have a heartbeat, and none would ever be revoked.
                _log.warning("streams.unchecked", message=repr(exc).partition("\n")[0])
                return
            for listener in alike if not may else ():
                listener.end(EndReason.REVOKED)

    async def _may_still(self, listener: Listener) -> bool:
        if self.identify is None:
            return True
        # Copy the request with its own state: the identity from the start must not be reused.
        scope: dict[str, Any] = {**listener.scope, "state": {}}
        found = await self.identify(scope)
        return found.may(listener.permission) and found.user_id == listener.principal.user_id


def _owner(principal: Principal) -> Hashable:
    """Return the key under which streams are counted: the user, however they signed in."""
    return ("user", principal.user_id) if principal.user_id is not None else ("name", principal.name)


# Delay before a disconnected client reconnects; it is random, so that not all reconnect at once after a restart.
_RETRY_MS = (2000, 6000)
_PIECE_BYTES = 64 * 1024
_random = SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """The topic and key that a client subscribes to."""

    channel: Channel
    key: Hashable
    replay: Callable[[], Sequence[Frame]]
    """The first events, read on a thread after subscribing, so that no event between the two is missed."""
    is_over: Callable[[], bool] = lambda: False
    """Whether the stream ends after the replay; called after it."""


class EventStream(Response):
    media_type = "text/event-stream"
    charset = "utf-8"

    def __init__(self, hub: Hub, listener: Listener, wanted: StreamRequest) -> None:
        # `no-transform` and the last header: a proxy that compresses or buffers would delay events.
        headers = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
        super().__init__(headers=headers)
        # Remove the length that the base class has set: it is unknown.
        del self.headers["content-length"]
        self._hub, self._listener, self._wanted = hub, listener, wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream; errors that reject it are raised before the first byte is sent."""
        hub, listener, wanted = self._hub, self._listener, self._wanted
        hub.enter(listener)
        scope.setdefault("state", {})[IS_STREAM] = True
        try:
            await wanted.channel.join(wanted.key, listener)
            frames = await run_sync(wanted.replay, limiter=hub.threads)
            listener.has_seen(frames)
            if wanted.is_over():
                listener.end(EndReason.OVER)
            timer = asyncio.get_running_loop().call_later(hub.lasts_s, listener.end, EndReason.LIFETIME)
            try:
                await self._serve(receive, send, frames)
            finally:
                timer.cancel()
        finally:
            wanted.channel.leave(wanted.key, listener)
            hub.leave(listener)

    async def _serve(self, receive: Receive, send: Send, frames: Sequence[Frame]) -> None:
        writing = asyncio.ensure_future(self._write(send, frames))
        leaving = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        finally:
            for task in (writing, leaving):
                task.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await task

    async def _write(self, send: Send, frames: Sequence[Frame]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        retry_ms = _random.randint(*_RETRY_MS)
        first = opening(self._wanted.channel.topic.name, retry_ms=retry_ms, beat_s=self._hub.beat_s)
        for frame in frames:
            if len(first) >= _PIECE_BYTES:
                await send({"type": "http.response.body", "body": first, "more_body": True})
                first = b""
            first += frame.data
        await send({"type": "http.response.body", "body": first, "more_body": True})
        lasts = True
        while lasts:
            data, lasts = await self._listener.next()
            await send({"type": "http.response.body", "body": data, "more_body": lasts})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
