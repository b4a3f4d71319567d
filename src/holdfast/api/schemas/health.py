"""Responses for monitors: whether the process is alive, whether it is ready, and the archive's health."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from holdfast.api.readiness import BesideState
from holdfast.api.schemas.base import Answer
from holdfast.supervision.state import PartState


class Alive(Answer):
    """The process is alive."""

    status: Literal["alive"]


class Ready(Answer):
    """Whether this process is ready, and which part is not."""

    status: Literal["ready", "not_ready"]
    parts: dict[str, str]
    """`ok`, or the problem, by part: database, storage, search."""
    serve: dict[str, PartState] | None = None
    """State of the parts of `holdfast serve`, if it is running; a `failing` part does not affect readiness."""
    beside: dict[str, BesideState] | None = None
    """Background parts (operations, upkeep, webhooks, search) that are not running: `not_begun` is retried,
    `opening` means that the search index is being opened for the first time. Neither affects readiness.
    """


class Checks(Answer):
    """A check and its result."""

    db: Literal["ok", "error"]
    jobs: dict[str, int] | None = Field(
        None, description="Jobs by status, in the words of `/api/admin/jobs`, with details=1."
    )
    snapshots: dict[str, int] | None = Field(None, description="`total`, with details=1.")
    disk: Literal["ok", "low"] | None = Field(
        None, description="Whether the volumes of database and captures have room, with details=1."
    )
    writes: Literal["ok", "refused"] | None = Field(
        None, description="Whether the database refused the last write for want of room, with details=1."
    )
    parts: dict[str, PartState] | None = Field(
        None,
        description="How the parts of `holdfast serve` do, by name, where it runs; `failing` ended ten times in "
        "a minute and is tried once a minute.",
    )


class Services(Answer):
    """Services that the archive depends on."""

    database: Literal["ok", "error"]
    redis: Literal["ok", "away", "not configured"] = Field(
        description="`away` while it does not answer and each process counts requests for itself; `not configured` "
        "without HOLDFAST_REDIS_URL."
    )


class Health(Answer):
    """The archive's health, for monitors of either kind: `checks`, and `services` with `workers`."""

    status: Literal["ok", "error"]
    checks: Checks
    timestamp: datetime
    version: str
    uptime: float = Field(description="Seconds since the server started.")
    services: Services
    workers: int = Field(description="Processes at work.")
