"""The files of the browser application as its build left them, read once: what is not in this table is not served.

The build (`make web`) writes them to `api/web_app`, with compressed twins beside what compresses. A name in the folder
of hashed files is never used for other bytes; every other file may change with the next version.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import brotli

BUILT: Final = Path(__file__).parent / "web_app"
"""Where the build puts the application; not there in a checkout without it."""
PAGES: Final = frozenset({"search", "changes", "compare", "sources", "page", "view", "editions", "control"})
"""The first words of the paths that are pages of the application; a test holds them against its table of routes."""
_INDEX = "index.html"
FILES: Final = "assets"
"""The folder of hashed files."""
_TWINS: Final = {"br": ".br", "gzip": ".gz"}
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}


def first_word(path: str) -> str:
    """Return what stands between the first slash of a path and the next."""
    return path[1:].partition("/")[0]


@dataclass(frozen=True, slots=True)
class WebFile:
    """One file, ready to be sent."""

    media_type: str
    etag: str
    is_fixed: bool
    """Whether its name stands for these bytes for ever."""
    bodies: Mapping[str, bytes]
    """The bytes by their coding; `identity` is always there."""

    @property
    def is_page(self) -> bool:
        """Whether it is the page that all others belong to."""
        return self.media_type.startswith("text/html")

    def choose(self, accepted: str) -> tuple[str, bytes]:
        """Return the best coding that a browser accepts, and the bytes in it."""
        offered = _offered(accepted)
        coding = next((one for one in _TWINS if one in self.bodies and one in offered), "identity")
        return coding, self.bodies[coding]


def _offered(accepted: str) -> frozenset[str]:
    """Return the codings that an Accept-Encoding names and does not refuse."""
    found = set()
    for one in accepted.lower().split(","):
        name, _, weight = one.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            found.add(name.strip())
    return frozenset(found)


class WebFiles:
    """Every file of the application by the path that it is asked for."""

    def __init__(self, files: Mapping[str, WebFile]) -> None:
        self._files, self._index = files, files[f"/{_INDEX}"]

    @property
    def page(self) -> WebFile:
        """The page that all others belong to."""
        return self._index

    @classmethod
    def read(cls, folder: Path = BUILT) -> WebFiles | None:
        """Return the files of a build; None if there is none."""
        if not (folder / _INDEX).is_file():
            return None
        found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.suffix in _TYPES}
        # What begins with a dot are notes of the build.
        served = {name: path for name, path in found.items() if not any(part.startswith(".") for part in name.parts)}
        return cls({f"/{name.as_posix()}": _file(path, name) for name, path in served.items()})

    def find(self, path: str) -> WebFile | None:
        """Return what a path shows: the page itself for a page of the application, a file, or None."""
        if path == "/" or first_word(path) in PAGES:
            return self._index
        # Only what was there at the start, by its whole name: no path leads out of a table.
        return self._files.get(path)


def _unpacked(coding: str, packed: bytes) -> bytes | None:
    """Return what a twin unpacks to; None if it does not."""
    try:
        unpacked: bytes = brotli.decompress(packed) if coding == "br" else gzip.decompress(packed)
    except (brotli.error, OSError, EOFError, zlib.error):
        return None
    return unpacked


def _file(path: Path, name: Path) -> WebFile:
    body = path.read_bytes()
    bodies = {"identity": body}
    for coding, ending in _TWINS.items():
        twin = path.with_name(path.name + ending)
        packed = twin.read_bytes() if twin.is_file() else b""
        # Half a twin of a build that was killed, or one of another build, would break the page for years.
        if packed and _unpacked(coding, packed) == body:
            bodies[coding] = packed
    return WebFile(
        media_type=_TYPES[path.suffix],
        # A weak one: it is the same in every coding.
        etag=f'W/"{sha256(body).hexdigest()[:32]}"',
        is_fixed=name.parts[0] == FILES,
        bodies=bodies,
    )
