"""What a browser may do with an archived answer: run it in an origin of nobody, and load from the archive alone.

The sandbox has no `allow-same-origin` (no cookie, no storage, no worker, nothing of another capture), no
`allow-top-navigation`, no `allow-popups` and no `allow-downloads`. `'self'` is the origin of the answer's address, not
the opaque one of its document. A policy for content does not stop a script from sending its own window elsewhere, nor
WebRTC: the Connection-Allowlist does, in the browsers that know it (Chromium; tests/flow/replay). Scripts are replayed
as they were captured; `nojs` forbids them. What a script may read of the archive is decided by `site_pass`.
"""

from __future__ import annotations

_SANDBOX = "sandbox allow-forms"
_CONTENT = "'unsafe-inline' 'unsafe-eval' data: blob:"


def replay_policy(origin: str = "'self'", *, nojs: bool = False) -> str:
    """Return the Content-Security-Policy of an archived answer, which loads from this origin alone."""
    parts = [
        _SANDBOX if nojs else f"{_SANDBOX} allow-scripts",
        f"default-src {origin} {_CONTENT}",
        f"form-action {origin}",
        f"base-uri {origin}",
    ]
    if nojs:
        parts += ["script-src 'none'", "connect-src 'none'"]
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
    "sandbox allow-forms allow-downloads; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'"
)
"""For pages that we write ourselves (calendar, not found, a file to download): no script, nothing loaded."""

GUARDS: tuple[tuple[str, str], ...] = (
    ("X-Content-Type-Options", "nosniff"),
    # A page in a sandbox sends no Referer at all; style sheets and module scripts do, and it never leaves the archive.
    ("Referrer-Policy", "same-origin"),
    ("X-DNS-Prefetch-Control", "off"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""On every answer of the replay space."""

READABLE = ("Access-Control-Allow-Origin", "*")
"""On answers that scripts may read, and fonts and module scripts that a page without an origin could not use else."""

_CODE = (
    "font/",
    "application/font-",
    "application/x-font-",
    "application/vnd.ms-fontobject",
    "text/css",
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "text/ecmascript",
)
_CODE_DESTINATIONS = frozenset({"font", "script", "style", "worker", "sharedworker", "audioworklet", "paintworklet"})


def is_code(content_type: str, destination: str) -> bool:
    """Return whether an answer is a font, script or style sheet, asked for as such.

    Browsers fetch fonts, module scripts and what is marked `crossorigin` only with leave to read, and other sites'
    servers give that leave to everybody. `destination` is Sec-Fetch-Dest, which no script can forge; it is missing on
    plain http, where the type has to do.
    """
    return content_type.lower().startswith(_CODE) and (not destination or destination in _CODE_DESTINATIONS)
