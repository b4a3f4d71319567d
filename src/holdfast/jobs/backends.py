"""Who runs a job: our own crawler, or a tool that is started for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.jobs.store import FEED, IMPORT

OWN: Final = ("native", FEED)
"""Backends that are our own crawler: it registers its files itself."""


def backend_of(kind: str, *configs: Mapping[str, Any]) -> str:
    """Return who runs a job of this kind: the first configuration that says so, our own crawler if none does.

    Whatever crawls a source, its feeds are polled by us.
    """
    if kind == FEED:
        return FEED
    # The job's own configuration comes before its source's: a job may try another backend.
    return next((str(config["backend"]) for config in configs if config.get("backend")), "native")


def is_own_run(kind: str, ran_with: Mapping[str, Any], *configs: Mapping[str, Any]) -> bool:
    """Return whether a run that was begun is one of our own crawler, by what it runs with.

    Its job's and its source's configuration count only before its runner has written that: they may be others by now.
    """
    if kind == IMPORT:
        return False
    return backend_of(kind, *((ran_with,) if ran_with else configs)) in OWN
