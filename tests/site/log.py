"""The site's log: two JSON lines a request, when it came and when it ended, each appended with one write.

Times are monotonic seconds of this machine, the same scale in every process on it.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """One request as the server saw it."""

    id: int
    connection: int
    """Counts accepted connections: two requests with one number shared one."""
    host: str
    """The name in the Host header, or the address that was dialled if there was none."""
    port: int
    method: str
    path: str
    """The request target as sent, with its query."""
    start: float
    """When the kernel received the first byte of the request, where it can tell; else when we read it."""
    end: float | None = None
    """When the last byte of the answer left, or the client hung up; None while the exchange is open."""
    status: int | None = None
    sent_bytes: int = 0
    aborted: bool = False
    """The client hung up before we were done."""
    retry_after: float | None = None
    """The seconds that we asked the client to stay away, if the header made sense."""
    fault: str | None = None
    """What broke inside the page itself: always a bug in tests/site or in a test's own page."""
    user_agent: str | None = None
    if_none_match: str | None = None
    if_modified_since: str | None = None
    cookie: str | None = None
    authorization: str | None = None


class LogWriter:
    """Appends entries to a file with one write each, so that lines of one process never mix."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append(self, entry: Entry) -> None:
        """Write one line; a later line with the same id replaces an earlier one."""
        os.write(self._fd, json.dumps(entry._asdict()).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class LogReader:
    """Reads the file of a site, each line once: tests look at it many times a second until something has come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._latest: dict[int, Entry] = {}
        self._lock = threading.Lock()

    def entries(self) -> list[Entry]:
        """Return every request so far in order of arrival, open ones with no end; a half-written line comes later."""
        with self._lock:
            if self._path.exists():
                with self._path.open("rb") as stream:
                    stream.seek(self._offset)
                    for line in stream.read().split(b"\n")[:-1]:
                        entry = Entry(**json.loads(line))
                        self._latest[entry.id] = entry
                        self._offset += len(line) + 1
            return sorted(self._latest.values(), key=lambda entry: entry.start)
