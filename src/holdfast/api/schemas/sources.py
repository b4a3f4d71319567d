"""Sources as operators write and read them over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from holdfast.api.schemas.base import RequestForm, check_fields, check_values
from holdfast.api.schemas.jobs import JobAnswer
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.jobs.administration.source_preview import MOST_URLS
from holdfast.withdrawals.viewers import Visibility

_SHOWN_ONLY = ("id", "created_at", "updated_at", "warnings", "has_run")
_SCHEDULE = (
    "When it is crawled, in words: once, every 6 hours, daily at 03:00, weekly on Monday at 03:00 Europe/Paris, "
    "monthly on day 31 at 03:00, yearly on 1 January at 03:00. Left out, it stays as it is."
)
_VISIBILITY = "Who may see what was captured of it; left out, a new source is public and another stays as it is."


class _Writing(RequestForm):
    @model_validator(mode="before")
    @classmethod
    def _plain(cls, content: Any) -> Any:
        """Let an answer of ours be sent back as it is: what only we write is left out."""
        check_values(check_fields(content))
        if isinstance(content, dict):
            # A client reads a source, changes a field and sends it back: what only we write must not be refused.
            return {name: value for name, value in content.items() if name not in _SHOWN_ONLY}
        return content


class SourceForm(_Writing):
    """A source, whole."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "code": "example",
                    "name": "Example",
                    "config": {"seeds": ["https://example.org/"], "max_depth": 5},
                }
            ]
        }
    )

    code: str | None = Field(
        None,
        max_length=64,
        description="1 to 40 lower-case letters, digits and hyphens; from the name if left out. Fixed once it ran.",
    )
    name: str | None = Field(None, max_length=200, description="Its code if left out.")
    base_url: str | None = Field(None, max_length=8192, description="The first seed if left out.")
    description: str | None = Field(None, max_length=4000, description="For readers.")
    enabled: bool = Field(True, description="Whether its jobs run.")
    visibility: Visibility | None = Field(None, strict=False, description=_VISIBILITY)
    schedule: str | None = Field(None, max_length=200, description=_SCHEDULE)
    config: SourceConfiguration = Field(default_factory=dict, description="How it is crawled.")


class SourceChanges(_Writing):
    """What is to be otherwise about a source; what is left out stays, below `config` too, and null is the default."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"config": {"delay_s": 5}}]})

    code: str | None = Field(None, max_length=64, description="Another one, as long as it has not run.")
    name: str | None = Field(None, max_length=200, description="It has one always.")
    base_url: str | None = Field(None, max_length=8192, description="The address of its first page.")
    description: str | None = Field(None, max_length=4000, description="For readers.")
    enabled: bool | None = Field(None, description="Its jobs wait or go on, as with enable and disable.")
    visibility: Visibility | None = Field(None, strict=False, description=_VISIBILITY)
    schedule: str | None = Field(None, max_length=200, description=_SCHEDULE)
    config: SourceConfiguration | None = Field(None, description="What is to be otherwise about it.")


_SOURCE: dict[str, Any] = {
    "id": 1,
    "code": "example",
    "name": "Example",
    "base_url": "https://example.org/",
    "description": None,
    "enabled": True,
    "visibility": "public",
    "schedule": "every 6 hours",
    "has_run": False,
    "config": {"seeds": ["https://example.org/"], "max_depth": 9},
    "warnings": ["max_depth: 9 is more than 5: the crawl may grow very large"],
    "created_at": "2026-11-01T09:00:00Z",
    "updated_at": "2026-11-01T09:00:00Z",
}


class ManagedSource(JobAnswer):
    """A source with what differs from the defaults in its configuration."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SOURCE]})

    id: int
    code: str
    name: str
    base_url: str | None
    description: str | None
    enabled: bool
    visibility: Visibility = Field(description="Who may see what was captured of it.")
    schedule: str = Field(description="When it is crawled, in words; once: only when somebody starts it.")
    has_run: bool = Field(description="Whether it ran: its code is fixed then, since links and files carry it.")
    config: SourceConfiguration = Field(description="What differs from the defaults.")
    warnings: list[str] = Field(description="What is worth a second look, or why it cannot be used any more.")
    created_at: datetime
    updated_at: datetime


class SourceName(JobAnswer):
    """A source to choose from a list."""

    id: int = Field(examples=[1])
    code: str = Field(examples=["example"])
    name: str
    enabled: bool
    is_yearly: bool = Field(description="Whether it is crawled once a year.")


class SwitchedSource(ManagedSource):
    """A source that was enabled or disabled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_SOURCE, "jobs": 1}]})

    jobs: int = Field(description="Jobs that go on, or wait, because of it.")


class ManagedSourceList(JobAnswer):
    """A page of sources, by code."""

    sources: list[ManagedSource]
    total: int
    limit: int
    offset: int


class ImportedShown(JobAnswer):
    """What an import did, or would do; sources by their code."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"created": ["new"], "updated": [], "unchanged": ["example"], "dry_run": True}]}
    )

    created: list[str]
    updated: list[str]
    unchanged: list[str]
    dry_run: bool


class SourcePreviewForm(SourceForm):
    """A source that is not saved yet, and what is to be told about it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "code": "example",
                    "config": {"seeds": ["https://example.org/"], "exclude": ["/calendar/"]},
                    "urls": ["https://example.org/news", "https://other.example/"],
                    "schedule": "every 6 hours",
                }
            ]
        }
    )

    urls: list[Annotated[str, StringConstraints(max_length=8192)]] = Field(
        default_factory=list, max_length=MOST_URLS, description="Addresses to judge."
    )
    interval_minutes: int | None = Field(None, description="In units of `interval_type`; `schedule` counts before it.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")


class JudgedUrlShown(JobAnswer):
    """What the rules of a source say of one address."""

    url: str
    normalised: str | None = Field(description="As the source spells it; null if it is no address.")
    in_scope: bool
    rule: str = Field(description="The rule that decided.")
    sentence: str = Field(description="The same in words.")


class SourcePreviewShown(JobAnswer):
    """What a source would do."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "code": "example",
                    "schedule": "every 6 hours",
                    "warnings": [],
                    "urls": [
                        {
                            "url": "https://example.org/news",
                            "normalised": "https://example.org/news",
                            "in_scope": True,
                            "rule": "scope:host",
                            "sentence": "it lies within the scope host",
                        }
                    ],
                    "next_runs": ["2026-11-15T18:15:00Z"],
                    "yaml": "sources:\n- code: example\n",
                }
            ]
        }
    )

    code: str = Field(description="The one that it says, or that it would get.")
    schedule: str = Field(description="In the words that are kept.")
    warnings: list[str] = Field(description="What is allowed but worth a second look.")
    urls: list[JudgedUrlShown]
    next_runs: list[datetime] = Field(description="The next five; none for a job that runs once.")
    yaml: str = Field(description="The source as the import takes it.")


class SurveyForm(RequestForm):
    """A website to look at before it is crawled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": "example.org"}]})

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(
        description="As a person types it; https if it has no scheme."
    )
    contact: str | None = Field(
        None,
        max_length=200,
        description="E-mail or web address that site owners can use. It is kept for every later crawl, unless "
        "HOLDFAST_CONTACT is set; needed only while none is known.",
    )
    config: SourceConfiguration = Field(
        default_factory=dict, description="Fields of a source by which addresses are judged; its seed is `url`."
    )
