"""The built files of the browser application, read once; no other file is served.

The build (`make web`) writes them to `api/web_app`, with compressed copies of compressible files. A name in the
folder of hashed files is never reused for other bytes; every other file may change with the next version.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import brotli

from holdfast.values import dataclass

BUILT: Final = Path(__file__).parent / "web_app"
"""Output folder of the build; missing in a checkout that was not built."""
PAGES: Final = frozenset({"search", "changes", "compare", "sources", "page", "view", "editions", "control"})
"""First path segments of the application's pages; a test compares them with its table of routes."""
_INDEX = "index.html"
FILES: Final = "assets"
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
    return path[1:].partition("/")[0]


@dataclass(frozen=True, slots=True)
class WebFile:
    media_type: str
    etag: str
    is_fixed: bool
    """Whether its name is a hash of its bytes, so that they never change."""
    bodies: Mapping[str, bytes]
    """The bytes by content coding; always includes `identity`."""

    @property
    def is_page(self) -> bool:
        """Whether it is the application's HTML page."""
        return self.media_type.startswith("text/html")

    def choose(self, accepted: str) -> tuple[str, bytes]:
        """Return the best coding that a browser accepts, and the encoded bytes."""
        offered = _offered(accepted)
        coding = next((one for one in _TWINS if one in self.bodies and one in offered), "identity")
        return coding, self.bodies[coding]


def _offered(accepted: str) -> frozenset[str]:
    found = set()
    for one in accepted.lower().split(","):
        name, _, weight = one.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            found.add(name.strip())
    return frozenset(found)


class WebFiles:
    def __init__(self, files: Mapping[str, WebFile]) -> None:
        self._files, self._index = files, files[f"/{_INDEX}"]

    @property
    def page(self) -> WebFile:
        return self._index

    @classmethod
    def read(cls, folder: Path = BUILT) -> WebFiles | None:
        if not (folder / _INDEX).is_file():
            return None
        found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.suffix in _TYPES}
        # Files that start with a dot are notes of the build.
        served = {name: path for name, path in found.items() if not any(part.startswith(".") for part in name.parts)}
        return cls({f"/{name.as_posix()}": _file(path, name) for name, path in served.items()})

    def find(self, path: str) -> WebFile | None:
        """Return the file for a path: the HTML page for a page of the application, a file, or None."""
        if path == "/" or first_word(path) in PAGES:
            return self._index
        # Serve only files that existed at the start, by their whole name: a lookup in a table cannot leave the folder.
        return self._files.get(path)


def _unpacked(coding: str, packed: bytes) -> bytes | None:
    """Return the unpacked bytes of a compressed copy; None if it is invalid."""
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
        # A partial compressed file of a killed build, or one of another build, would break the page for years.
        if packed and _unpacked(coding, packed) == body:
            bodies[coding] = packed
    return WebFile(
        media_type=_TYPES[path.suffix],
        # Use a weak one: it is the same in every encoding.
        etag=f'W/"{sha256(body).hexdigest()[:32]}"',
        is_fixed=name.parts[0] == FILES,
        bodies=bodies,
    )
