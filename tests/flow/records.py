"""What stands in the WARC files of a crawl, read by another library than our own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fastwarc.warc import ArchiveIterator


class Stored(NamedTuple):
    """One record."""

    type: str
    url: str
    headers: dict[str, str]
    block: bytes
    path: Path

    @property
    def status(self) -> int:
        """The HTTP status of a response."""
        return int(self.block.split(b" ", 2)[1])

    @property
    def body(self) -> bytes:
        """What follows the HTTP head, as received."""
        return self.block.partition(b"\r\n\r\n")[2]

    @property
    def truncated(self) -> str | None:
        """Why the body is short, if it is."""
        return self.headers.get("WARC-Truncated")


def stored(paths: Iterable[Path | str]) -> list[Stored]:
    """Return every record of these files, in order."""
    found = []
    for path in map(Path, paths):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, parse_http=False):
                headers = {str(name): str(value) for name, value in record.headers}
                url = headers.get("WARC-Target-URI", "")
                found.append(Stored(headers["WARC-Type"], url, headers, record.reader.read(), path))
    return found


def captures(paths: Iterable[Path | str]) -> dict[str, list[Stored]]:
    """Return responses and revisits by address."""
    by_url: dict[str, list[Stored]] = {}
    for record in stored(paths):
        if record.type in ("response", "revisit"):
            by_url.setdefault(record.url, []).append(record)
    return by_url
