"""Output of the parts, line by line, labelled with the part's name; events stay JSON unless output is a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TextIO

# Split longer lines: a part that writes no line ends must not fill the memory.
_LINE_BYTES = 64 * 1024
_PIECE = 64 * 1024


class Lines:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._rest = b""
        os.set_blocking(fd, False)

    def read(self) -> Iterator[str] | None:
        """Return the complete lines available now; None at the end of the pipe."""
        try:
            came = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return iter(())
        if not came:
            return None
        *whole, self._rest = (self._rest + came).split(b"\n")
        if len(self._rest) > _LINE_BYTES:
            whole.append(self._rest)
            self._rest = b""
        return (line.decode("utf-8", "replace") for line in whole)

    def last(self) -> str:
        rest, self._rest = self._rest, b""
        return rest.decode("utf-8", "replace")


def labelled(part: str, line: str, *, for_people: bool) -> str:
    """Return a part's line with its label: an event gets a field with the part's name, other lines a prefix."""
    event = _event(line)
    if event is None:
        return f"{part} | {line}"
    if not for_people:
        return json.dumps({"part": part, **event})
    rest = [f"{key}={value!r}" for key, value in event.items() if key not in ("timestamp", "level", "event")]
    head = [f"{part} |", str(event.get("timestamp", "")), f"[{event.get('level')}]", str(event["event"])]
    return " ".join([*head, *rest])


def _event(line: str) -> dict[str, object] | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    # RecursionError: a line of ten thousand brackets is only text.
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def write(stream: TextIO, text: str) -> None:
    """Write a line; if there is no reader any more, the line is lost and the parts continue."""
    try:
        stream.write(text + "\n")
        stream.flush()
    except (OSError, ValueError):
        return


def tell(part: str, line: str) -> None:
    write(sys.stderr, labelled(part, line, for_people=sys.stderr.isatty()))
