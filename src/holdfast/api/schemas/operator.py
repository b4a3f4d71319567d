"""Requests of operators: manual crawls, and annual editions."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import MAX_ID, RequestForm
from holdfast.api.schemas.source_config import SourceConfiguration


class CrawlForm(RequestForm):
    """A one-time crawl."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"urls": ["https://example.org/"], "config": {"max_depth": 2, "max_pages": 100}}]
        }
    )

    urls: list[str] = Field(min_length=1, max_length=1000, description="Start URLs.")
    source: str | None = Field(
        None, max_length=64, description="A source's code; by default the first host's source, created if missing."
    )
    name: str | None = Field(None, max_length=200, description="Name of a source that is created; its host by default.")
    config: SourceConfiguration = Field(
        default_factory=dict, description="Settings that differ from the source's; seeds are `urls`."
    )


class CrawlStopForm(RequestForm):
    """The execution to stop, and whether to preserve its captures."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"execution": 12}]})

    execution: int = Field(ge=0, le=MAX_ID, description="The execution.")
    discard: bool = Field(False, description="Discard its captures; otherwise it drains and is sealed.")


class CrawlPauseForm(RequestForm):
    """The execution to pause or resume."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"execution": 12}]})

    execution: int = Field(ge=0, le=MAX_ID, description="The execution.")


class EditionPlanForm(RequestForm):
    """A year's campaign to plan or apply."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"year": 2026, "sources": ["example"]}]})

    year: int = Field(ge=1970, le=9999)
    sources: list[str] = Field(default_factory=list, max_length=1000, description="Codes; all annual ones if empty.")
    shards: bool = Field(
        False, description="Give each seed a shard of its own where the report shows gaps, instead of yearly crawls."
    )
    max_create: int | None = Field(None, ge=0, le=100_000, description="Jobs to make at most.")
    apply: bool = Field(False, description="Make the jobs; otherwise only say what would be made.")


class ShardDecisionForm(RequestForm):
    """A decision about a shard."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"state": "excluded", "reason": "replaced on 2 March"}]})

    state: Literal["accepted", "accepted_gap", "excluded", "pending"] = Field(description="`pending` undoes it.")
    reason: str = Field(min_length=3, max_length=2000, description="Why; the report shows it.")


class PageDecisionForm(RequestForm):
    """A decision about one URL of an edition."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "https://example.org/old", "state": "accepted", "reason": "gone"}]}
    )

    url: str = Field(max_length=8192, description="The address, as the ledger has it.")
    state: Literal["accepted", "excluded", "pending"] = Field(description="`pending` undoes it.")
    reason: str = Field(min_length=3, max_length=2000, description="Why; the ledger shows it.")


class FreezeForm(RequestForm):
    """How an edition is frozen."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"again": False}]})

    again: bool = Field(False, description="Freeze it again; the earlier list is kept.")


class EditionVerifyForm(RequestForm):
    """How thoroughly a frozen edition is verified."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"quick": True}]})

    quick: bool = Field(False, description="Look at the sizes of WARC files, do not read them.")


class CompareEditionsForm(RequestForm):
    """The edition to compare with."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"earlierYear": 2025}]})

    earlier_year: int = Field(ge=1970, le=9999, alias="earlierYear", description="Of the same source.")
