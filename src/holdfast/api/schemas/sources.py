"""Requests about sources."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from holdfast.api.schemas.base import RequestForm, check_fields, check_values
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.jobs.administration.source_preview import MOST_URLS
from holdfast.withdrawals.viewers import Visibility

_SHOWN_ONLY = ("id", "created_at", "updated_at", "warnings", "has_run")
_SCHEDULE = (
    "When it is crawled, in words: once, every 6 hours, daily at 03:00, weekly on Monday at 03:00 Europe/Paris, "
    "monthly on day 31 at 03:00, yearly on 1 January at 03:00. Left out, it stays as it is."
)
_VISIBILITY = "Who may see its captures; left out, a new source is public and another stays as it is."


class _Writing(RequestForm):
    @model_validator(mode="before")
    @classmethod
    def _plain(cls, content: Any) -> Any:
        """Accept a source as this API returned it; read-only fields are ignored."""
        check_values(check_fields(content))
        if isinstance(content, dict):
            # A client reads a source, changes a field and sends it back: what only we write must not be refused.
            return {name: value for name, value in content.items() if name not in _SHOWN_ONLY}
        return content


class SourceForm(_Writing):
    """A complete source."""

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
    """Changes of a source; other fields keep their values, inside `config` too, and null restores the default."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"config": {"delay_s": 5}}]})

    code: str | None = Field(None, max_length=64, description="Another one, as long as it has not run.")
    name: str | None = Field(None, max_length=200, description="It has one always.")
    base_url: str | None = Field(None, max_length=8192, description="The address of its first page.")
    description: str | None = Field(None, max_length=4000, description="For readers.")
    enabled: bool | None = Field(None, description="Its jobs wait or go on, as with enable and disable.")
    visibility: Visibility | None = Field(None, strict=False, description=_VISIBILITY)
    schedule: str | None = Field(None, max_length=200, description=_SCHEDULE)
    config: SourceConfiguration | None = Field(None, description="The fields to change.")


class SourcePreviewForm(SourceForm):
    """An unsaved source, and the URLs to check against its scope."""

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


class SurveyForm(RequestForm):
    """A website to survey before it is crawled."""

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
