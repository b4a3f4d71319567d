"""What a campaign would do, entry by entry: create, skip with a reason, or an error that stops all of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Step(StrEnum):
    """What happens to one entry."""

    CREATE = "create"
    ATTACH = "attach"
    SKIP = "skip"
    ERROR = "error"


class Skip(StrEnum):
    """Why nothing is made of an entry."""

    SCHEDULED = "already_scheduled"
    NAME_TAKEN = "name_taken"
    ACTIVE = "active_job"
    DISABLED = "source_disabled"
    LIMIT = "max_create_per_run"
    NO_REPORT = "report_not_generated"
    NO_GAPS = "no_gaps"
    COVERED = "seed_covered"
    EXISTS = "shard_exists"
    NOTHING = "nothing_to_attach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One source, or one shard of it, in a plan."""

    source: str
    step: Step
    reason: str | None = None
    name: str | None = None
    shard_key: str | None = None
    seed: str | None = None
    at: datetime | None = None
    job_id: int | None = None
    """Set once it is done."""
    notes: tuple[str, ...] = ()

    def as_object(self) -> dict[str, Any]:
        """Return it for `--json`; what is not set is left out."""
        shown = {
            "source": self.source, "action": self.step.value, "reason": self.reason, "name": self.name,
            "shardKey": self.shard_key, "seed": self.seed, "queuedAt": self.at.isoformat() if self.at else None,
            "jobId": self.job_id, "notes": list(self.notes),
        }  # fmt: skip
        return {name: value for name, value in shown.items() if value not in (None, [])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A campaign's plan; applied, or only thought through."""

    year: int
    entries: tuple[Entry, ...]
    applied: bool

    @property
    def errors(self) -> list[Entry]:
        """What keeps the plan from being applied at all."""
        return [entry for entry in self.entries if entry.step is Step.ERROR]

    @property
    def made(self) -> list[Entry]:
        """What is, or would be, created or attached."""
        return [entry for entry in self.entries if entry.step in (Step.CREATE, Step.ATTACH)]

    def as_object(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "campaignYear": self.year, "applied": self.applied, "created": len(self.made),
            "errors": len(self.errors), "entries": [entry.as_object() for entry in self.entries],
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody asked a campaign for."""

    year: int | None = None
    sources: tuple[str, ...] = ()
    """Codes; all that are meant for annual crawls if left out."""
    max_create: int | None = None
    apply: bool = False
    url_cap: int = 5000
    """How large a shard is meant to be; a figure for planning, never a limit on the crawl."""
