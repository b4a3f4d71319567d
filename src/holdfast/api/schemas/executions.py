"""The account of a run."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Self

from pydantic import ConfigDict, Field

from holdfast.api.schemas.jobs import JobAnswer

MOST_HOSTS: Final = 200
"""A run may have met a million; all of them are listed by `/api/frontier/hosts`."""


class CountedReason(JobAnswer):
    """How many addresses ended so, and why."""

    outcome: str
    reason: str
    count: int


class CountedKind(JobAnswer):
    """How many addresses of a kind ended so."""

    kind: str
    outcome: str
    count: int


class CountedRule(JobAnswer):
    """How many links to a host a rule left out."""

    rule: str
    host: str
    count: int


class RunReport(JobAnswer):
    """The account of a run: every address that it met has one outcome."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "execution": 2,
                    "state": "completed",
                    "reason": "done",
                    "shortfalls": {},
                    "sentence": "everything in scope was asked for, and nothing was cut short",
                    "research_ready": True,
                    "total": 30,
                    "open": 0,
                    "bytes": 18476,
                    "outcomes": {"success": 28, "blocked_robots": 1, "blocked_4xx": 1},
                    "reasons": [{"outcome": "success", "reason": "ok", "count": 7}],
                    "kinds": [{"kind": "page", "outcome": "success", "count": 17}],
                    "statuses": {"200": 7, "304": 21, "404": 1},
                    "types": {"text/html": 7},
                    "domains": {"example.org": 30},
                    "depths": {"0": 1, "1": 17},
                    "excluded": [],
                }
            ]
        }
    )

    execution: int
    state: str
    reason: str | None
    shortfalls: dict[str, int] = Field(description="What it fell short of, by word and count, the worst first.")
    sentence: str | None = Field(description="The same for people; null while it runs.")
    research_ready: bool | None
    total: int
    open: int = Field(description="Those that have no outcome yet.")
    bytes: int = Field(description="What came from the network.")
    outcomes: dict[str, int]
    reasons: list[CountedReason]
    kinds: list[CountedKind]
    statuses: dict[str, int]
    types: dict[str, int]
    domains: dict[str, int] = Field(description="The 200 with the most addresses.")
    depths: dict[str, int] = Field(description="Of pages.")
    excluded: list[CountedRule] = Field(description="Links that were not followed, the largest thousand.")

    @classmethod
    def of(cls, found: dict[str, Any]) -> Self:
        """Return it as it is answered."""
        return cls.model_validate({**found, "domains": dict(Counter(found["domains"]).most_common(MOST_HOSTS))})
