"""Answers about single captures."""

from __future__ import annotations

from datetime import date, datetime

from pydantic import Field

from holdfast.api.schemas.base import Answer

_ID = 4194305
_REPLAY = "http://replay.localhost:8060/web/20260901120000/https://example.org/#ha_snapshot=4194305"


class SnapshotDetail(Answer):
    """One capture of a page (HA-055, HA-056)."""

    id: int = Field(examples=[_ID])
    title: str | None = Field(examples=["Tides"])
    source_code: str = Field(examples=["example-org"])
    source_name: str = Field(examples=["example.org"])
    language: str | None = Field(description="BCP-47, where it is known.", examples=["en"])
    capture_date: date
    capture_timestamp: datetime
    job_id: int = Field(description="The execution that captured it.", examples=[1])
    original_url: str = Field(examples=["https://example.org/"])
    snippet: str | None = Field(examples=["High water at the station."])
    raw_snapshot_url: str = Field(description="Path of the raw view.", examples=[f"/api/snapshots/raw/{_ID}"])
    browse_url: str | None = Field(description="Where the capture is replayed.", examples=[_REPLAY])
    capture_backend: str = Field(examples=["native"])
    capture_fidelity: str = Field(examples=["high"])
    mime_type: str | None = Field(examples=["text/html"])
    status_code: int | None = Field(examples=[200])


class LatestCapture(Answer):
    """The newest capture of the same page."""

    found: bool = Field(examples=[True])
    snapshot_id: int | None = Field(None, examples=[_ID])
    capture_timestamp: datetime | None = None
    mime_type: str | None = Field(None, examples=["text/html"])


class Resolved(LatestCapture):
    """The capture that answers for an address and a moment."""

    resolved_url: str | None = Field(None, examples=["https://example.org/"])
    browse_url: str | None = Field(None, examples=[_REPLAY])
