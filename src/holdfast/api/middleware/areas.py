"""Which part of the API a path belongs to, known once: limits, origins and metrics all ask here."""

from __future__ import annotations

from typing import Final

ADMIN_PREFIXES: Final = ("/api/admin", "/api/v1", "/api/v2", "/api/pages", "/metrics")
"""What lies at or below these wants the admin token; a test holds this against the roles of all routes."""
_KINDS: Final = frozenset(
    {"health", "stats", "sources", "coverage", "search", "snapshot", "snapshots", "replay", "changes", "exports",
     "executions", "usage", "reports", "report", "admin", "pages", "metrics", "web", "cdx", "v1", "v2"}
)  # fmt: skip


def is_admin_path(path: str) -> bool:
    """Return whether a path belongs to those who keep the archive."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in ADMIN_PREFIXES)


def kind_of(path: str) -> str:
    """Return the kind of route that a path belongs to: a bounded word for metrics."""
    first, _, rest = path.lstrip("/").partition("/")
    word = rest.partition("/")[0] if first == "api" else first
    return word if word in _KINDS else "other"
