"""The account of a run, and the rules that are added to one under way."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, StringConstraints

from holdfast.api.schemas.base import RequestForm
from holdfast.api.schemas.jobs import JobAnswer
from holdfast.jobs.administration.run_exclusions import MOST_RULES, MatchedUrls, RunExclusions

MOST_HOSTS: Final = 200
"""A run may have met a million; all of them are listed by `/api/frontier/hosts`."""


class CountedReason(JobAnswer):
    """How many addresses ended so, and why."""

    outcome: str
    reason: str
    word: str = Field(description="The same for people, such as `not found`.")
    count: int
    examples: list[str] = Field(description="A few of the addresses; none of those that were captured.")


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
                    "ending": "completed",
                    "reason": "done",
                    "shortfalls": {},
                    "sentence": "everything in scope was asked for, and nothing was cut short",
                    "research_ready": True,
                    "landing": [],
                    "total": 30,
                    "open": 0,
                    "redirects": 0,
                    "bytes": 18476,
                    "outcomes": {"success": 28, "blocked_robots": 1, "blocked_4xx": 1},
                    "reasons": [
                        {"outcome": "success", "reason": "ok", "word": "captured", "count": 7, "examples": []},
                        {
                            "outcome": "blocked_4xx",
                            "reason": "http_404",
                            "word": "not found",
                            "count": 1,
                            "examples": ["https://example.org/gone"],
                        },
                    ],
                    "kinds": [{"kind": "page", "outcome": "success", "count": 17}],
                    "statuses": {"200": 7, "304": 21, "404": 1},
                    "types": {"text/html": 7},
                    "domains": {"example.org": 30},
                    "depths": {"0": 1, "1": 17, "requisite": 12},
                    "excluded": [],
                }
            ]
        }
    )

    execution: int
    state: str
    ending: str | None = Field(description="How it ended in a word, as of `/api/v1/executions/{id}`.")
    reason: str | None
    shortfalls: dict[str, int] = Field(
        description="What it fell short of, by word and count, the worst first; the rules behind `limits` follow it."
    )
    sentence: str | None = Field(description="The same for people; null while it runs.")
    research_ready: bool | None
    landing: list[str] = Field(description="Where seeds redirected to; those hosts are in scope too.")
    total: int
    open: int = Field(description="Those that have no outcome yet.")
    redirects: int = Field(description="Pages that only lead to another address: no captured pages.")
    bytes: int = Field(description="What came from the network.")
    outcomes: dict[str, int]
    reasons: list[CountedReason]
    kinds: list[CountedKind]
    statuses: dict[str, int]
    types: dict[str, int]
    domains: dict[str, int] = Field(description="The 200 with the most addresses.")
    depths: dict[str, int] = Field(description="Pages by depth; requisites and sitemaps, which have none, by kind.")
    excluded: list[CountedRule] = Field(description="Links that were not followed, the largest thousand.")

    @classmethod
    def of(cls, found: dict[str, Any]) -> Self:
        """Return it as it is answered."""
        return cls.model_validate({**found, "domains": dict(Counter(found["domains"]).most_common(MOST_HOSTS))})


class ExclusionsForm(RequestForm):
    """Rules that leave addresses out."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rules": ["/calendar/"]}]})

    rules: list[Annotated[str, StringConstraints(min_length=1, max_length=2000)]] = Field(
        max_length=MOST_RULES, description="RE2 patterns; they stand in the place of those that were added before."
    )


class ExclusionsShown(JobAnswer):
    """What a run leaves out by pattern."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"execution_id": 12, "rules": ["/print/"], "added": ["/calendar/"], "is_editable": True}]
        }
    )

    execution_id: int
    rules: list[str] = Field(
        description="Those that it began with; they are changed with its source, for the next run."
    )
    added: list[str] = Field(description="Those that were added while it ran.")
    is_editable: bool = Field(description="Whether it is a crawl of ours that runs and is not told to stop.")

    @classmethod
    def of(cls, found: RunExclusions) -> Self:
        """Return it as it is answered."""
        return cls(
            execution_id=found.execution_id,
            rules=list(found.rules),
            added=list(found.added),
            is_editable=found.is_editable,
        )


class ExclusionsPreview(JobAnswer):
    """What of a run's queue some rules match."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"matching": 340, "looked_at": 1200, "is_all": True, "samples": ["https://example.org/calendar/2031"]}
            ]
        }
    )

    matching: int = Field(description="Queued addresses that would not be asked for any more.")
    looked_at: int
    is_all: bool = Field(description="False if more is queued than was looked at.")
    samples: list[str]

    @classmethod
    def of(cls, found: MatchedUrls) -> Self:
        """Return it as it is answered."""
        return cls(matching=found.matching, looked_at=found.looked_at, is_all=found.is_all, samples=list(found.samples))
