"""One stream to one client: greeting, replay, then new events, until the client leaves or the stream ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from random import SystemRandom

from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.api.live.frames import EndReason, Frame, opening
from holdfast.api.live.hub import Channel, Hub, Listener
from holdfast.api.middleware.request_ids import IS_STREAM
from holdfast.values import dataclass

# A client that was cut off comes back after so long; spread, so that a restart is not followed by all of them at once.
_RETRY_MS = (2000, 6000)
_PIECE_BYTES = 64 * 1024
_random = SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWish:
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

    def __init__(self, hub: Hub, listener: Listener, wish: StreamWish) -> None:
        # `no-transform` and the last one: a proxy that packs or gathers what it forwards would hold events back.
        headers = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
        super().__init__(headers=headers)
        # Its length is not known; the base class has set one.
        del self.headers["content-length"]
        self._hub, self._listener, self._wish = hub, listener, wish

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream; errors that reject it are raised before the first byte is sent."""
        hub, listener, wish = self._hub, self._listener, self._wish
        hub.enter(listener)
        scope.setdefault("state", {})[IS_STREAM] = True
        try:
            await wish.channel.join(wish.key, listener)
            frames = await run_sync(wish.replay, limiter=hub.threads)
            listener.has_seen(frames)
            if wish.is_over():
                listener.end(EndReason.OVER)
            timer = asyncio.get_running_loop().call_later(hub.lasts_s, listener.end, EndReason.LIFETIME)
            try:
                await self._serve(receive, send, frames)
            finally:
                timer.cancel()
        finally:
            wish.channel.leave(wish.key, listener)
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
        first = opening(self._wish.channel.topic.name, retry_ms=retry_ms, beat_s=self._hub.beat_s)
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
