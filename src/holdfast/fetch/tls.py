"""Which certificates are trusted, and which hosts were seen to fail. It never trusts anything by itself."""

from __future__ import annotations

import ssl
from collections import OrderedDict
from pathlib import Path

from holdfast.clock import Clock
from holdfast.errors import Unavailable

# Debian and Alpine, Fedora and its kin, SUSE, and where OpenSSL itself would look.
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_MAX_HOSTS = 10_000


def trust_store(configured: Path | None = None) -> str:
    """Return the file of certificates to trust: the configured one, else OpenSSL's, else the system's.

    Raises Unavailable if there is none: an https crawl that trusts nobody would fail page by page.
    """
    if configured is not None:
        candidates = [str(configured)]
    else:
        default = ssl.get_default_verify_paths().cafile
        candidates = [*([default] if default else []), *_BUNDLES]
    for candidate in candidates:
        if Path(candidate).is_file():
            return candidate
    raise Unavailable("no certificate bundle was found; install ca-certificates or name one in the settings")


class InvalidHosts:
    """Origins whose certificate failed a short while ago, so that each connection does not fail first again."""

    __slots__ = ("_clock", "_seen", "_ttl_s")

    def __init__(self, clock: Clock, ttl_s: float = 300.0) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._seen: OrderedDict[tuple[str, int], float] = OrderedDict()

    def add(self, host: str, port: int) -> None:
        """Remember a failure; the oldest one is forgotten when there are too many."""
        self._seen.pop((host, port), None)
        self._seen[host, port] = self._clock.monotonic() + self._ttl_s
        if len(self._seen) > _MAX_HOSTS:
            self._seen.popitem(last=False)

    def known(self, host: str, port: int) -> bool:
        """Return whether this origin failed recently."""
        until = self._seen.get((host, port))
        if until is None:
            return False
        if until < self._clock.monotonic():
            del self._seen[host, port]
            return False
        return True
