"""Encodes server-sent events once for all listeners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

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
    # JSON has no line breaks of its own, and those in its texts are escaped.
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
        # Mostly all of it, and so the same bytes for every listener.
        if all(order > seen.get(track, NOTHING) for track, order in self.first.items()):
            return self.data
        return b"".join(one.data for one in self.frames if one.order > seen.get(one.track, NOTHING))
