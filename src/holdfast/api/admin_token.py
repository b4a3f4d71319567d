"""The admin token, and the owner of a machine that needs none."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Scope

from holdfast.auth.credentials import is_same
from holdfast.config import Settings
from holdfast.wiring.server import is_loopback, outside_hint


def is_admin_token(settings: Settings, shown: str) -> bool:
    """Return whether this is the admin token; nothing is, where none is set."""
    token = settings.api.admin_token
    return token is not None and is_same(shown, token.get_secret_value())


_PROXY_HEADERS = frozenset(
    (
        "forwarded",
        "via",
        "cdn-loop",
        "client-ip",
        "clientip",
        "x-original-host",
        "x-original-url",
        "x-rewrite-url",
        "x-remote-addr",
        "x-remote-ip",
        "x-scheme",
        "x-request-start",
        "x-nginx-proxy",
        "x-cloud-trace-context",
        "remote-addr",
        "proxy-connection",
    )
)
_PROXY_PREFIXES = (
    "x-forwarded",
    "x-original-forwarded",
    "x-envoy-",
    "cf-",
    "x-azure-",
    "x-ms-",
    "cloudfront-",
    "x-amz-cf-",
    "x-amzn-",
    "x-arr-",
    "x-vercel-",
    "x-appengine-",
    "x-appgw-",
    "x-nf-",
    "x-akamai-",
    "akamai-",
    "fastly-",
    "fly-",
    "tailscale-",
    "ngrok-",
    "x-ngrok-",
    "x-traefik-",
    "x-haproxy-",
    "x-varnish",
)
_PROXY_ENDINGS = ("client-ip", "connecting-ip", "real-ip", "user-ip", "proxyuser-ip", "viewer-address", "forwarded-for")


def came_through_proxy(headers: Headers) -> bool:
    """Return whether a header says that a proxy, a load balancer, a CDN or a tunnel passed a request on."""
    # Each product has a header of its own; browsers and tools on this machine send none of them.
    return any(
        name in _PROXY_HEADERS or name.startswith(_PROXY_PREFIXES) or name.endswith(_PROXY_ENDINGS) for name in headers
    )


def has_owner(settings: Settings) -> bool:
    """Return whether a user of this machine needs no token: none is set, and nothing says that others come here."""
    # As soon as a setting says that others reach this server, being local proves nothing: a proxy is local, too.
    return settings.api.admin_token is None and not settings.api.strict and outside_hint(settings) is None


def is_owner(scope: Scope, headers: Headers) -> bool:
    """Return whether a request without a token is by a user of this machine, and nothing says that a proxy sent it."""
    peer = scope.get("client")
    host = headers.get("host", "")
    # An IPv6 address has colons of its own, and no port behind its bracket.
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return (
        peer is not None
        and is_loopback(str(peer[0]))
        # The Host, too: a page that a browser loaded from elsewhere may point its own name at 127.0.0.1 (DNS
        # rebinding).
        and is_loopback(name)
        # Proxies that say nothing about themselves still speak HTTP/1.0 (nginx as it comes), and no browser does.
        and scope.get("http_version", "1.1") != "1.0"
        and not came_through_proxy(headers)
    )
