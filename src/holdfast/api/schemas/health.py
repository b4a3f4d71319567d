"""What monitors are told: that the process lives, whether it can serve, and how the archive does."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from holdfast.api.readiness import BesideState
from holdfast.api.schemas.base import Answer
from holdfast.supervision.state import PartState


class Alive(Answer):
    """That this process answers."""

    status: Literal["alive"]


class Ready(Answer):
    """Whether this process can serve, and which part cannot."""

    status: Literal["ready", "not_ready"]
    parts: dict[str, str]
    """`ok`, or what is wrong, by part: database, storage, search."""
    serve: dict[str, PartState] | None = None
    """How the parts of `holdfast serve` do, where that runs; one that is `failing` does not make this not ready."""
    beside: dict[str, BesideState] | None = None
    """What runs beside requests (operations, upkeep, webhooks, search) and is not there: `not_begun` is tried again,
    `opening` is the search index at its first opening. Neither makes this not ready."""


class Checks(Answer):
    """What was checked, and how it is."""

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
    """What the archive depends on."""

    database: Literal["ok", "error"]
    redis: Literal["ok", "away", "not configured"] = Field(
        description="`away` while it does not answer and each process counts requests for itself; `not configured` "
        "without HOLDFAST_REDIS_URL."
    )


class Health(Answer):
    """Whether the archive can answer, for monitors of either kind: `checks`, and `services` with `workers`."""

    status: Literal["ok", "error"]
    checks: Checks
    timestamp: datetime
    version: str
    uptime: float = Field(description="Seconds since the server started.")
    services: Services
    workers: int = Field(description="Processes at work.")
