"""Server-sent events as bytes: written once for all listeners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

BEAT = b"event: beat\ndata: {}\n\n"
"""It keeps proxies from closing a quiet stream. An event, not a comment: a page notices when the beats stop."""


NOTHING = -1
"""The place of a listener that has seen nothing."""


class EndReason(StrEnum):
    """Why a stream ends."""

    SHUTDOWN = "shutdown"
    """The server stops; another one, or the same, answers soon."""
    SLOW = "slow"
    """The client read more slowly than there was to tell."""
    REVOKED = "revoked"
    """The session was revoked, the token has expired, or the role was changed."""
    LIFETIME = "lifetime"
    """It has lasted for as long as a stream may; take it up again."""
    OVER = "over"
    """Nothing can follow any more."""


class Frame(NamedTuple):
    """One event as it is sent, and its place in the order of its track: what was seen before is not sent again."""

    order: int
    data: bytes
    """Empty for a frame that only says up to where something was seen."""
    track: str = ""
    """A topic that reads several tables has an order for each: their numbers say nothing of one another."""
    is_last: bool = False
    """Whether nothing can follow it."""


def frame(event: str, data: Any, *, order: int = 0, event_id: str | None = None, track: str = "") -> Frame:
    """Return an event; its data is one line of JSON."""
    named = "" if event_id is None else f"id: {event_id}\n"
    # JSON has no line breaks of its own, and what stands in its texts is escaped.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Frame(order, f"event: {event}\n{named}data: {text}\n\n".encode("utf-8", "replace"), track)


def opening(topic: str, *, retry_ms: int, beat_s: float) -> bytes:
    """Return what every stream begins with: after how long a client that was cut off comes back, and a greeting."""
    greeting = frame("connected", {"topic": topic, "heartbeatSeconds": beat_s}).data
    return b"retry: %d\n\n%b" % (retry_ms, greeting)


def ending(reason: EndReason) -> bytes:
    """Return the last event of a stream."""
    return frame("end", {"reason": reason.value}).data


class FrameBatch(NamedTuple):
    """What one look of a poller found, as it is sent to everyone."""

    frames: Sequence[Frame]
    data: bytes
    first: Mapping[str, int]
    """The lowest place on each track."""

    @classmethod
    def of(cls, frames: Sequence[Frame]) -> FrameBatch:
        """Return the frames of one look, joined once for all listeners."""
        first: dict[str, int] = {}
        for one in frames:
            first[one.track] = min(one.order, first.get(one.track, one.order))
        return cls(frames, b"".join(one.data for one in frames), first)

    def after(self, seen: Mapping[str, int]) -> bytes:
        """Return what of it comes after the places that were seen, by track."""
        # Mostly all of it, and so the same bytes for every listener.
        if all(order > seen.get(track, NOTHING) for track, order in self.first.items()):
            return self.data
        return b"".join(one.data for one in self.frames if one.order > seen.get(one.track, NOTHING))
