"""Requests that create or change jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import MAX_ID, RequestForm
from holdfast.api.schemas.source_config import SourceConfiguration

_SCHEDULE = "In words instead of the interval: once, every 6 hours, monthly on day 31 at 03:00 Europe/Paris."


class JobForm(RequestForm):
    """The crawl job of a source, to create or change."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "source_id": 1,
                    "url": "https://example.org/",
                    "interval_minutes": 6,
                    "interval_type": "hours",
                    "schedule_enabled": True,
                }
            ]
        }
    )

    source_id: int = Field(ge=0, le=MAX_ID, description="The source's id.")
    url: str | None = Field(
        None,
        min_length=1,
        max_length=8192,
        description="The start page: a seed besides the source's, which need not have any then; left out: its first.",
    )
    type: Literal["crawl"] = Field("crawl", description="Other kinds are made by their own commands.")
    name: str | None = Field(None, max_length=200, description="For people; may be left out.")
    source_name: str | None = Field(None, max_length=200, description="Not read: a source has its own name.")
    interval_minutes: int | None = Field(None, description="In units of `interval_type`; left out: the job runs once.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")
    schedule: str | None = Field(None, max_length=200, description=_SCHEDULE)
    schedule_enabled: bool = Field(False, description="Whether it recurs; that needs an interval.")
    adaptive_scheduling: bool = Field(True, description="Whether a start page that stays the same lengthens the wait.")
    max_retries: int = Field(3, description="0 to 100.")
    retry_backoff_seconds: int = Field(60, description="0 to 3600; doubled for each further try.")
    config: SourceConfiguration = Field(
        default_factory=dict, description="Fields of the source's configuration that this job has otherwise."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Kept and shown, never read.")


class JobChanges(RequestForm):
    """Changes of a job; other fields keep their values."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"interval_minutes": 12, "interval_type": "hours"}]})

    source_id: int | None = Field(None, ge=0, le=MAX_ID, description="A job stays with its source.")
    url: str | None = Field(None, max_length=8192, description="The start page, a seed; null: the source's first.")
    type: Literal["crawl"] | None = Field(None, description="It stays as it is.")
    name: str | None = Field(None, max_length=200, description="For people; null takes it away.")
    source_name: str | None = Field(None, max_length=200, description="Not read.")
    interval_minutes: int | None = Field(None, description="null: the job runs once.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")
    schedule: str | None = Field(None, max_length=200, description=_SCHEDULE)
    schedule_enabled: bool = Field(False, description="Whether it recurs.")
    adaptive_scheduling: bool = Field(True, description="Whether a start page that stays the same lengthens the wait.")
    max_retries: int = Field(3, description="0 to 100.")
    retry_backoff_seconds: int = Field(60, description="0 to 3600.")
    config: SourceConfiguration = Field(
        default_factory=dict,
        description="Fields that differ from the source, replaced as a whole; groups join the source's.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Replaced as a whole.")
