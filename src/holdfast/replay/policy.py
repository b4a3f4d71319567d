"""What a browser may do with an archived answer: run it in an origin of nobody, and load from the archive alone.

The sandbox has no `allow-same-origin` (no cookie, no storage, no worker, nothing of another capture), no
`allow-top-navigation` and no `allow-popups`. `'self'` is the origin of the answer's address, not the opaque one of its
document. A policy for content does not stop a script from sending its own window elsewhere, nor WebRTC: the
Connection-Allowlist does, in the browsers that know it (Chromium; tests/flow/replay). Scripts are replayed as they
were captured; `nojs` forbids them.
"""

from __future__ import annotations

_SANDBOX = "sandbox allow-forms allow-downloads"
_CONTENT = "'unsafe-inline' 'unsafe-eval' data: blob:"


def replay_policy(origins: tuple[str, ...] = (), *, nojs: bool = False) -> str:
    """Return the Content-Security-Policy of an archived answer; `origins` are the archive's own beside this one."""
    own = " ".join(("'self'", *origins))
    parts = [
        _SANDBOX if nojs else f"{_SANDBOX} allow-scripts",
        f"default-src {own} {_CONTENT}",
        f"form-action {own}",
        f"base-uri {own}",
    ]
    if nojs:
        parts.append("script-src 'none'")
    return "; ".join(parts)


def connections(*origins: str) -> str:
    """Return the Connection-Allowlist: where a page may go or connect to at all, its own origin and these.

    Redirects are followed: without that word every link to a capture of another second, and every archived redirect,
    ends in an error page. None of ours leads out of the archive.
    """
    return f"({' '.join(('response-origin', *(_quoted(origin) for origin in origins)))});redirects=allow"


def _quoted(origin: str) -> str:
    return f'"{origin}/*"'


OWN_PAGE_POLICY = (
    "sandbox allow-forms; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
)
"""For pages that we write ourselves (calendar, not found): no script, nothing loaded."""

GUARDS: tuple[tuple[str, str], ...] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-DNS-Prefetch-Control", "off"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    # An opaque origin is foreign to everybody: fonts, module scripts and fetches need this, and nothing here is secret.
    ("Access-Control-Allow-Origin", "*"),
    ("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""On every answer of the replay space."""
