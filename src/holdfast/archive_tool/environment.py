"""Which variables a child process may see. No database address, no token, no secret is among them (faults.md, S09)."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PLAIN = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE",
)  # fmt: skip
_DOCKER = (
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "DOCKER_API_VERSION",
)
_CRAWL = (
    "HOLDFAST_CONTACT", "HOLDFAST_USER_AGENT", "HOLDFAST_ALLOW_NETWORKS", "HOLDFAST_LOG_LEVEL", "HOLDFAST_LEASE_",
    "HOLDFAST_POLITENESS_", "HOLDFAST_FETCH_", "HOLDFAST_PARSE_", "HOLDFAST_WARC_", "HOLDFAST_ENGINE_",
    "HOLDFAST_DISK_",
)  # fmt: skip


def docker_environment(outer: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what `docker` and the VPN command see."""
    return {name: outer[name] for name in (*_PLAIN, *_DOCKER) if name in outer}


def crawl_environment(outer: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what our own crawl sees when it captures instead of zimit."""
    ours = {name: value for name, value in outer.items() if name.startswith(_CRAWL)}
    return {**{name: outer[name] for name in _PLAIN if name in outer}, **ours}


def tool_environment(outer: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what `archive-tool` itself sees when the backend calls it."""
    zimit = {name: value for name, value in outer.items() if name.startswith("HOLDFAST_ZIMIT_")}
    return {**docker_environment(outer), **crawl_environment(outer), **zimit}
