"""Origins of replay links: relative paths on the replay host itself, its full origin from elsewhere."""

from __future__ import annotations

import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from url import URL, URLError

from holdfast.clock import digits14
from holdfast.config import REPLAY_HOST, Settings
from holdfast.replay.address import replay_path, safe
from holdfast.storage.disk import sync_directory
from holdfast.urls import registrable


class ReplayOrigins(NamedTuple):
    """The two origins of one archive, for one request."""

    origin: str
    """Of the replay host: scheme, host, port."""
    here: str
    """Origin of the host that received this request."""
    app: str | None
    """Origin of the application's host, if known."""
    root: str = ""
    """Prefix of every path of the replay host: a capability (`capabilities`), or nothing."""

    @property
    def is_replay(self) -> bool:
        return self.here == self.origin

    @property
    def prefix(self) -> str:
        """Prefix of a replay path: nothing on the replay host, its origin elsewhere; and a capability."""
        return self.root if self.is_replay else self.origin + self.root

    @property
    def own_root(self) -> str:
        """Prefix of a path of the host that received this request."""
        return self.root if self.is_replay else ""

    @property
    def viewers(self) -> list[str]:
        """The origins whose pages may frame a page of the replay host."""
        if self.app is None:
            return []
        # Without settings the application is available under either name of this machine.
        return [self.app, *([self.app.replace("//localhost", "//127.0.0.1", 1)] if REPLAY_HOST in self.origin else [])]

    def memento(self, digits: str, modifier: str, url: str) -> str:
        """Return the full URL of a capture (URI-M); always on the replay host."""
        return self.origin + self.root + replay_path(digits, modifier, url)

    def gate(self, url: str) -> str:
        """Return the URL of an address's TimeGate (URI-G)."""
        return f"{self.here}{self.own_root}/web/{safe(url)}"

    def map(self, url: str, form: str = "link", page: str = "") -> str:
        """Return the URL of an address's TimeMap (URI-T)."""
        return f"{self.here}{self.own_root}/web/timemap/{form}/{page + '/' if page else ''}{safe(url)}"


class LocatedCapture(Protocol):
    """The fields of a capture that its URL needs: a row, a search hit, a line of a timeline."""

    @property
    def id(self) -> int:
        """The snapshot's id."""
        ...

    @property
    def url(self) -> str:
        """The address as captured."""
        ...

    @property
    def captured_at(self) -> datetime:
        """The capture time."""
        ...


def browse_url(settings: Settings, capture: LocatedCapture, *, for_members: bool = False) -> str:
    """Return a capture's URL on the replay host; the fragment names the capture for our own pages.

    A members' capture gets a URL on the application's host, which knows the user and redirects.
    """
    # Drop the archived URL's own fragment: a URL has one, and servers never see it.
    path = replay_path(digits14(capture.captured_at), "", capture.url.partition("#")[0])
    is_led = for_members or getattr(capture, "for_members", False)
    origin = (settings.api.site_url or "").rstrip("/") if is_led else settings.replay_origin
    return f"{origin}{path}#ha_snapshot={capture.id}"


def origins_of(scheme: str, host: str, *, replay_origin: str | None, site_url: str | None = None) -> ReplayOrigins:
    here = f"{scheme}://{host.lower()}"
    name, colon, port = host.lower().rpartition(":") if _has_port(host) else (host.lower(), "", "")
    if replay_origin is not None:
        origin = replay_origin.lower()
        # Compare without the scheme: behind a TLS proxy requests arrive as http.
        is_replay = origin.partition("://")[2] == host.lower()
        app = (site_url or "").rstrip("/") or None
        return ReplayOrigins(origin, origin if is_replay else here, app if is_replay else here)
    if name == REPLAY_HOST:
        return ReplayOrigins(here, here, f"{scheme}://localhost{colon}{port}")
    return ReplayOrigins(f"{scheme}://{REPLAY_HOST}{colon}{port}", here, here)


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() and not host.endswith("]")


KEY_FILE = "replay.key"
"""Beside the database: the processes of one archive create the same passes. Deleting it only makes open pages
stale.
"""
_KEY_BYTES = 32
_PASS_BYTES = 15


def site_of(url: str) -> str:
    """Return the site of an address: its registrable domain, or its host if it has none; empty without a host.

    Port and scheme are not part of it.
    """
    try:
        host = URL.parse(url).host_str
    except (URLError, ValueError):
        return ""
    return (registrable(host) or host) if host else ""


class SitePasses:
    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, url: str) -> str:
        """Return the pass of this address's site; empty if it has none."""
        site = site_of(url)
        if not site:
            return ""
        # An HMAC needs no list of issued passes.
        digest = hmac.digest(self._key, site.encode("utf-8", "replace"), "sha256")
        return urlsafe_b64encode(digest[:_PASS_BYTES]).decode()

    def admits(self, site_pass: str, url: str) -> bool:
        # Compare in constant time, so that a pass cannot be guessed letter by letter.
        return bool(site_pass) and hmac.compare_digest(site_pass.encode(), self.of(url).encode())


@lru_cache(maxsize=64)
def site_passes(home: Path) -> SitePasses:
    """Return the passes of the archive in this data directory, creating the key the first time.

    If the key can be neither read nor written, this process uses a key of its own.
    """
    path = home / KEY_FILE
    try:
        return SitePasses(_read(path) or _create(path))
    except OSError:
        # An archive on a read-only disk is served, too; only another process cannot read its pages.
        return SitePasses(secrets.token_bytes(_KEY_BYTES))


def _read(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    return key if len(key) >= _KEY_BYTES else None


def _create(path: Path) -> bytes:
    """Write a new key under another name, then rename it: of two processes, the first one's key stays."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    key = secrets.token_bytes(_KEY_BYTES)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    try:
        # Unlike a rename, a link fails if the name is taken: another process was first, and its key holds.
        os.link(draft, path)
    except FileExistsError:
        # Replace a key file that a power loss truncated: otherwise each process would use its own key.
        if _read(path) is None:
            draft.replace(path)
        key = _read(path) or key
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(path.parent)
    return key
