"""Requests that change the frontier, its domains and the storage."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import Field, StringConstraints

from holdfast.api.schemas.base import RequestForm
from holdfast.jobs.administration.frontier_actions import MOST_URLS
from holdfast.jobs.administration.requeueing import RequeueStatus
from holdfast.operations.stores import CleanTarget

_Address = Annotated[str, StringConstraints(min_length=1, max_length=8192)]
_Code = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class AddForm(RequestForm):
    """URLs to crawl."""

    urls: Annotated[list[_Address], Field(min_length=1, max_length=MOST_URLS)] = Field(
        description="URLs; all of them are checked before one is added.", examples=[["https://example.org/news"]]
    )
    source: _Code | None = Field(
        default=None, description="The source that they belong to; by default found by its scope."
    )
    priority: Annotated[int, Field(ge=1, le=3)] | None = Field(
        default=None, description="3 is fetched first; by default as the crawl itself ranks them."
    )


class SeedForm(RequestForm):
    """Seed URLs to crawl."""

    urls: Annotated[list[_Address], Field(max_length=MOST_URLS)] = Field(
        default_factory=list, description="URLs; by default the seeds of the source.", examples=[[]]
    )
    source: _Code | None = Field(default=None, examples=["example-org"])


class RequeueForm(RequestForm):
    """Pages to queue again."""

    domain: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(examples=["example.org"])
    since: date | None = Field(
        None, strict=False, description="First day (UTC) of their last fetch, or failure. Required without `until`."
    )
    until: date | None = Field(
        None, strict=False, description="Last day. Required without `since`.", examples=["2026-01-31"]
    )
    status: RequeueStatus = Field(RequeueStatus.FETCHED, strict=False, description="Which pages: fetched or failed.")
    apply: bool = Field(False, description="Queue them; without it, only count.")
    after: int | None = Field(None, description="`next` of the previous response.", ge=-(2**63), lt=2**63)


class RunRequeueForm(RequestForm):
    """Queue the failed pages of a run again."""

    apply: bool = Field(False, description="Queue them; without it, only count.", examples=[True])
    cursor: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        None, description="`next` of the previous response."
    )


class DomainSettingsForm(RequestForm):
    """Settings to change; missing ones keep their value."""

    crawl_delay: Annotated[float, Field(ge=0, le=86_400)] | None = Field(
        default=None,
        alias="crawlDelay",
        description="Seconds between two requests, at least 1; null: the source's delay. It only slows.",
    )
    paused: bool | None = Field(default=None, description="A paused domain is not requested; its queue is kept.")
    is_allowed: bool | None = Field(
        default=None, alias="isAllowed", description="A forbidden domain is never requested; its queue is excluded."
    )


class CleanForm(RequestForm):
    """Parts of the storage to remove."""

    targets: Annotated[list[Annotated[CleanTarget, Field(strict=False)]], Field(min_length=1, max_length=10)] = Field(
        default_factory=lambda: list(CleanTarget), description="All of them by default."
    )
    apply: bool = Field(default=False, description="Remove them; otherwise only list them.")
