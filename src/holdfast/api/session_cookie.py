"""The cookie that holds a browser's session: HttpOnly, SameSite=Strict, and bound to this host over https.

On plain http its name has no `__Host-` prefix, because browsers accept that only with Secure. Plain http is
only for loopback names of a server whose settings name no other host and no proxy. Browsers share cookies
between the ports of a host name, so every name ends with an id of the archive: signing in to one archive does
not sign out of another.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from holdfast.auth.known_browsers import LASTS
from holdfast.auth.sessions import NewSession
from holdfast.config import Settings
from holdfast.db.installation import archive_id
from holdfast.db.raw import DatabaseReadOnly
from holdfast.wiring.server import is_loopback

SESSION, FLOW, MARK = "session", "signin", "known"
"""Purposes of the three cookies; see `cookie_name`."""
FLOW_S = 600
"""Time limit for signing in at an identity provider."""


def _archive_id(settings: Settings) -> str:
    try:
        return archive_id(settings.database)[:8]
    except DatabaseReadOnly:
        # Sessions are rows, and there are none here: any name works.
        return "read-only"


def cookie_name(settings: Settings, purpose: str = SESSION, *, is_secure: bool = False) -> str:
    return f"{'__Host-' if is_secure else ''}holdfast-{purpose}-{_archive_id(settings)}"


def _is_local(settings: Settings) -> bool:
    """Return whether no setting names a proxy or a host other than loopback."""
    api = settings.api
    urls = [url for url in (api.site_url, settings.replay.origin) if url]
    # A URL without a host counts as another host.
    names = [api.host, *api.allowed_hosts, *(urlsplit(url).hostname or url for url in urls)]
    return not api.trusted_proxies and all(is_loopback(name) for name in names)


class SessionCookie:
    """Reads and writes the session cookie, and two cookies that grant no access.

    A short-lived one binds a sign-in at an identity provider to the browser, a long-lived one records that the
    browser has signed in before (`auth.known_browsers`).
    """

    def __init__(self, settings: Settings) -> None:
        # A proxy on this machine may forward a loopback Host: with one, browsers send the cookie over https only.
        self._may_be_plain = not settings.api.strict and _is_local(settings)
        self._max_age_s = int(settings.auth.session_hours * 3600)
        self._settings = settings
        # A server is built before its first request, so the event loop never waits for this.
        _archive_id(settings)

    def is_secure(self, scope: Scope) -> bool:
        host = Headers(scope=scope).get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return not (self._may_be_plain and scope.get("scheme", "http") == "http" and is_loopback(name))

    def read(self, scope: Scope, headers: Headers) -> str | None:
        return self._read(scope, headers, SESSION)

    def read_flow(self, scope: Scope) -> str | None:
        """Return the value that binds a sign-in at an identity provider to this browser."""
        return self._read(scope, Headers(scope=scope), FLOW)

    def read_mark(self, scope: Scope) -> str | None:
        """Return the mark of a browser that has signed in before."""
        return self._read(scope, Headers(scope=scope), MARK)

    def _read(self, scope: Scope, headers: Headers, purpose: str) -> str | None:
        name = cookie_name(self._settings, purpose, is_secure=self.is_secure(scope))
        # Parse it here: the standard library drops all cookies if another page of this host has set a malformed one.
        for line in headers.getlist("cookie"):
            for pair in line.split(";"):
                key, _, value = pair.strip().partition("=")
                if key == name:
                    return value
        return None

    def written(self, scope: Scope, secret: str) -> str:
        """Return the Set-Cookie header of a session."""
        return self._made(scope, SESSION, secret, self._max_age_s, "Strict")

    def cleared(self, scope: Scope) -> str:
        """Return the Set-Cookie header that deletes the session cookie."""
        return self._made(scope, SESSION, "", 0, "Strict")

    def written_flow(self, scope: Scope, value: str) -> str:
        """Return the Set-Cookie header that binds a sign-in to the browser; an empty value deletes the cookie."""
        # Lax: the browser must send it with the redirect from the provider, which is another site.
        return self._made(scope, FLOW, value, FLOW_S if value else 0, "Lax")

    def started(self, scope: Scope, new: NewSession) -> list[str]:
        """Return the Set-Cookie headers of a session, and of the mark that identifies the browser the next time."""
        session = self.written(scope, new.secret)
        if new.mark is None:
            return [session]
        lasts_s = int(LASTS.total_seconds())
        return [session, self._made(scope, MARK, new.mark, lasts_s, "Strict")]

    def _made(self, scope: Scope, purpose: str, value: str, max_age_s: int, same_site: str) -> str:
        is_secure = self.is_secure(scope)
        name = cookie_name(self._settings, purpose, is_secure=is_secure)
        parts = [f"{name}={value}", "Path=/", f"Max-Age={max_age_s}", "HttpOnly"]
        return "; ".join([*parts, f"SameSite={same_site}", *(["Secure"] if is_secure else [])])
